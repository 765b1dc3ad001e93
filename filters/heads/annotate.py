"""Labels from a language model behind any OpenAI-compatible endpoint, under a rubric.

One request a text, `concurrency` at a time. An answer is one line of the output, flushed when it
comes: a killed run resumes with the same command, asks for what is missing, and a line that the
kill tore is cut off. What was asked (text, rubric, model) is in each line by digest, so another
rubric or model never mixes with earlier answers unnoticed.

HTTP is `requests` over urllib3: fasttext-community, which the `quality` extra needs anyway, brings
them, and urllib3's `Retry` already waits as `Retry-After` says, backs off on 429 and 5xx, on
connections refused or cut, and on timeouts. An answer that does not fit the rubric is asked for
again (`attempts` in all), then booked as `failed`, as is a request that the server keeps refusing;
401, 403 and 404 stop the run, for they would fail every text, and so do eight texts in a row (twice
`concurrency` at least) to which it did not answer, or was too busy: the next run asks again.

A long text is judged by its beginning and a piece from its middle, cut between words. Tokens before
the run are an estimate (4 bytes a token), after it what the server counted, or unknown.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...documents.errors import StopError, UsageError
from ...documents.files import read_lines
from .rubric import Rubric

KEY = "OPENAI_API_KEY"  # the environment's; a key never stands in a file or an argument
_BYTES_A_TOKEN = 4  # a rough mean of English; said to be an estimate wherever it shows
_ANSWER_TOKENS = 24  # `{"edu": 3, "know": 2, "templ": 0}` and its frame
_FATAL = frozenset({400, 401, 403, 404, 405})  # every text would get the same
_BUSY = (408, 409, 425, 429, 500, 502, 503, 504)  # asked again; other refusals are of the text
_MUTE = ("no answer", *(f"status {code}" for code in _BUSY))  # how such a failure begins
_GIVE_UP = 8  # texts in a row that fail so, twice `concurrency` at least: all would


@dataclass(frozen=True, kw_only=True, slots=True)
class Asker:
    """Whom to ask, and how."""

    endpoint: str  # up to and with `/v1`
    model: str
    rubric: Rubric
    concurrency: int = 8  # requests at a time
    timeout: float = 120.0  # seconds without a byte from the server
    attempts: int = 3  # answers asked for, where they do not fit the rubric
    retries: int = 6  # of one request: refused, 429, 5xx, timed out
    max_chars: int = 12_000  # of a text; 2/3 from its beginning, 1/3 from its middle
    backoff: float = 0.5  # seconds, doubled with each retry; `Retry-After` goes before
    price_in: float | None = None  # per million tokens, in whatever currency
    price_out: float | None = None

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        if not self.endpoint.startswith(("http://", "https://")):
            msg = f"endpoint: expected http://... or https://..., found {self.endpoint!r}"
            raise UsageError(msg)
        for name in ("concurrency", "timeout", "attempts", "max_chars"):
            if getattr(self, name) <= 0:
                msg = f"{name}: expected more than 0, found {getattr(self, name)}"
                raise UsageError(msg)

    @property
    def asked(self) -> str:
        """What an answer is kept under beside its text."""
        return f"{self.model}@{self.rubric.digest}"


@dataclass(slots=True)
class Tally:
    """What a run came to."""

    labelled: int = 0
    failed: int = 0
    reused: int = 0
    tokens_in: int | None = 0  # None: the server did not say
    tokens_out: int | None = 0
    cost: float | None = None
    reasons: dict[str, int] = field(default_factory=dict)


def read_documents(path: Path, text_field: str = "text") -> Iterator[tuple[str, str]]:
    """Id and text of each line of a JSONL file (`.gz`, `.zst` too); UsageError for a bad line."""
    seen: set[str] = set()
    for number, line in read_lines(path, "documents"):
        try:
            row = json.loads(line)
            key, text = str(row["id"]), row[text_field]
        except (ValueError, TypeError, KeyError) as error:
            msg = f"{path}:{number}: expected JSON with 'id' and {text_field!r}: {error!r}"
            raise UsageError(msg) from error
        if not isinstance(text, str) or key in seen:
            found = "an id that was there before" if isinstance(text, str) else "no text"
            msg = f"{path}:{number}: {found} (id {key}); expected one text for each id"
            raise UsageError(msg)
        seen.add(key)
        # Half a surrogate, which JSON can spell, is no text that a request could hold.
        yield key, text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def excerpt(text: str, max_chars: int) -> str:
    """The whole text, or its beginning and a piece from its middle, cut between words."""
    if len(text) <= max_chars:
        return text
    head, piece = 2 * max_chars // 3, max_chars // 3
    start = max(head, (len(text) - piece) // 2)
    first = _cut(text[:head], -1)
    second = _cut(_cut(text[start : start + piece], 0), -1)
    return f"{first}\n[...]\n{second}"


def _cut(text: str, end: int) -> str:
    """Without its first (0) or last (-1) word, which may be torn; one word alone stays."""
    words = text.rsplit(None, 1) if end else text.split(None, 1)
    return words[-1 - end] if words else ""


def estimate(documents: Iterable[tuple[str, str]], asker: Asker) -> tuple[int, int, float | None]:
    """Tokens to send, tokens to get, and their price, before anything is sent: an estimate."""
    frame = len(asker.rubric.ask().encode())
    sizes = [frame + len(excerpt(t, asker.max_chars).encode()) for _, t in documents]
    sent, got = sum(sizes) // _BYTES_A_TOKEN, _ANSWER_TOKENS * len(sizes)
    return sent, got, _price(asker, sent, got)


def pending(
    documents: Iterable[tuple[str, str]], out: Path, asker: Asker
) -> tuple[list[tuple[str, str]], int]:
    """The documents without a label in `out`, and how many have one; a torn last line is cut off.

    Documents whose text changed, and those that failed before, are pending.
    """
    done: set[tuple[str, str]] = set()
    for row in _answers(out):
        if row.get("asked") != asker.asked:
            msg = (
                f"{out}: holds answers of {row.get('asked')!r}, this run asks {asker.asked!r}; "
                "give --out another file"
            )
            raise UsageError(msg)
        if "failed" not in row:
            done.add((row["id"], row["text_sha256"]))
    rest = [(k, t) for k, t in documents if (k, digest_of(t)) not in done]
    return rest, len(done)


def annotate(
    documents: list[tuple[str, str]],
    out: Path,
    asker: Asker,
    say: Callable[[str], None],
) -> Tally:
    """Ask for the labels of `documents`, append them to `out`; return what it came to."""
    tally, mute = Tally(), 0
    out.parent.mkdir(parents=True, exist_ok=True)
    local = threading.local()
    waits = _Waits(say)

    def work(item: tuple[str, str]) -> dict[str, Any]:
        if not hasattr(local, "session"):
            local.session = _session(asker, waits)
        return _ask(local.session, asker, *item)

    with out.open("a", encoding="utf-8") as file, ThreadPoolExecutor(asker.concurrency) as pool:
        try:
            for row in _bounded(pool, work, documents, 2 * asker.concurrency):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                file.flush()
                _count(tally, row)
                mute = mute + 1 if str(row.get("failed", "")).startswith(_MUTE) else 0
                _hold_on(asker, tally, row, mute)
                if (tally.labelled + tally.failed) % 100 == 0:
                    say(f"{tally.labelled} labelled, {tally.failed} failed of {len(documents)}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if tally.tokens_in is not None and tally.tokens_out is not None:
        tally.cost = _price(asker, tally.tokens_in, tally.tokens_out)
    return tally


def _hold_on(asker: Asker, tally: Tally, row: dict[str, Any], mute: int) -> None:
    """StopError where `mute` texts in a row, this the last, failed by the server's fault."""
    if mute >= max(_GIVE_UP, 2 * asker.concurrency):
        msg = (
            f"{asker.endpoint}: {mute} texts in a row have no label ({row['failed']}, each after "
            f"{asker.retries} more requests); {tally.labelled} labelled. See that the server is "
            "up; the same command goes on"
        )
        raise StopError(msg)


def _bounded(
    pool: ThreadPoolExecutor, work: Callable[[Any], Any], items: Iterable[Any], most: int
) -> Iterator[Any]:
    """Results as they come, with at most `most` items given out."""
    running: set[Future[Any]] = set()
    for item in items:
        running.add(pool.submit(work, item))
        if len(running) >= most:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in done)


class _Waits:
    """Says that a server is waited for, once for all that wait at the same time."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say, self.lock, self.until = say, threading.Lock(), 0.0

    def __call__(self, why: str, seconds: float, left: int) -> None:
        """Say so unless what was said last still holds."""
        with self.lock:
            now = time.monotonic()
            if seconds <= 0 or now < self.until:
                return
            self.until = now + seconds
        self.say(f"{why}: asking again in {seconds:g} s, {left} more times at most")


def _session(asker: Asker, waits: _Waits) -> Any:
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util.retry import Retry

    class Told(Retry):
        """Retries that say so."""

        def increment(
            self,
            method: Any = None,
            url: Any = None,
            response: Any = None,
            error: Any = None,
            _pool: Any = None,
            _stacktrace: Any = None,
        ) -> Any:
            then = super().increment(method, url, response, error, _pool, _stacktrace)
            # or MaxRetryError: nothing is waited for
            why = f"status {response.status}" if response else f"no answer ({error})"
            after = self.get_retry_after(response) if response else None
            waits(
                f"{asker.endpoint}: {why}", after or then.get_backoff_time(), int(then.total or 0)
            )
            return then

    retry = Told(
        total=asker.retries,
        status_forcelist=_BUSY,
        allowed_methods=None,  # POST as well: asking twice costs a label, it changes nothing
        backoff_factor=asker.backoff,
        raise_on_status=False,  # the last answer comes back and is booked
    )
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=retry))
    key = os.environ.get(KEY)
    if key:
        session.headers["Authorization"] = f"Bearer {key}"
    return session


def _ask(session: Any, asker: Asker, key: str, text: str) -> dict[str, Any]:
    """One line of the output for one text."""
    import requests

    body = {
        "model": asker.model,
        "temperature": 0,
        "messages": [
            {"role": "system", "content": asker.rubric.ask()},
            {"role": "user", "content": excerpt(text, asker.max_chars)},
        ],
    }
    row: dict[str, Any] = {"id": key, "text_sha256": digest_of(text), "asked": asker.asked}
    used: list[tuple[Any, Any]] = []
    failed = ""
    for _ in range(asker.attempts):
        try:
            url = f"{asker.endpoint.rstrip('/')}/chat/completions"
            reply = session.post(url, json=body, timeout=asker.timeout)
        except requests.RequestException as error:
            failed = f"no answer: {type(error).__name__}"
            break  # urllib3 has tried `retries` times
        if reply.status_code in _FATAL:
            msg = f"{url} answered {reply.status_code}: {reply.text[:200]!r}; see {KEY}, --model"
            raise StopError(msg)
        if reply.status_code != 200:
            failed = f"status {reply.status_code}"
            break
        answer, usage = _content(reply)
        used.append(usage)
        labels = None if answer is None else asker.rubric.read(answer)
        if labels is not None:
            return row | labels | _usage(used)
        failed = "no JSON of this rubric" if answer is not None else "no chat completion"
    return row | {"failed": failed} | _usage(used)


def _content(reply: Any) -> tuple[str | None, tuple[Any, Any]]:
    """The answer's text and its counts of tokens; None for whatever the server did not give."""
    try:
        body = reply.json()
        content = body["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError):
        return None, (None, None)
    usage = body.get("usage")
    said = usage if isinstance(usage, dict) else {}
    counts = (said.get("prompt_tokens"), said.get("completion_tokens"))
    return (content if isinstance(content, str) else None), counts


def _usage(used: list[tuple[Any, Any]]) -> dict[str, Any]:
    if any(not isinstance(n, int) for pair in used for n in pair):
        return {"tokens_in": None, "tokens_out": None}
    return {"tokens_in": sum(p[0] for p in used), "tokens_out": sum(p[1] for p in used)}


def _count(tally: Tally, row: dict[str, Any]) -> None:
    if "failed" in row:
        tally.failed += 1
        tally.reasons[row["failed"]] = tally.reasons.get(row["failed"], 0) + 1
    else:
        tally.labelled += 1
    for name in ("tokens_in", "tokens_out"):
        so_far = getattr(tally, name)
        unknown = so_far is None or row[name] is None
        setattr(tally, name, None if unknown else so_far + row[name])


def _answers(out: Path) -> list[dict[str, Any]]:
    """The lines of an earlier run; what a kill left of a last line is cut off the file."""
    if not out.exists():
        return []
    raw = out.read_bytes()
    whole = raw.rfind(b"\n") + 1
    if whole != len(raw):
        with out.open("r+b") as file:
            file.truncate(whole)
    rows = []
    for number, line in enumerate(raw[:whole].splitlines(), 1):
        try:
            row = json.loads(line)
            rows.append({"id": row["id"], "text_sha256": row["text_sha256"], **row})
        except (ValueError, TypeError, KeyError) as error:
            msg = f"{out}:{number}: not a line of `quality annotate`; give --out another file"
            raise UsageError(msg) from error
    return rows


def digest_of(text: str) -> str:
    """What a line of the output knows a text by: 16 hex digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _price(asker: Asker, sent: int, got: int) -> float | None:
    if asker.price_in is None or asker.price_out is None:
        return None
    return (sent * asker.price_in + got * asker.price_out) / 1e6
