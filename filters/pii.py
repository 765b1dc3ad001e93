r"""Mask personal data and secrets: an editing stage. The rules, and what they leave alone.

- email: `name@host.tld`: 1 to 64 bytes of letters (of any script), digits and `._%+-` before, and a
  host after that ends in a top-level domain (`tlds.txt`), which `рф` and `xn--p1ai` are. Not:
  `git@host`, who logs in (`ssh me@host.com`, `me@host.com:/srv`), code (`q@k.mT`, `x@a.co.shape`),
  what is called (`q@k.to(`; after `.com` and the like that is a remark), names kept for examples
  (RFC 2606, 6761). In scripts without spaces a name is all in that script, and so is its host. Of a
  handle (`@joe@mastodon.social`) all but the first `@` is one: it names a person as they do.
- ipv4: four numbers up to 255, no leading zeros. Not: private, reserved and documentation ranges;
  after a slash (`Chrome/91.0.4.124`) unless after `//`; after "version" and the like; where all
  four are below 100 (numbers of versions and sections look so; 2.3% of addresses do).
- ipv6: global unicast (2000::/3) of three groups or more. Not: 2001:db8::/32.
- phone: `+` and 8 to 15 digits that begin with a country's calling code (11 or more after +1, +7);
  North American `(ddd) ddd-dddd`, `ddd-ddd-dddd` and with dots, of an area that there may be; any 6
  to 15 digits after a word like "Tel." of 62 languages (`number_labels.tsv`), behind a dash or not,
  the word in brackets or stars or not (`(Tel.) 030 123456`, `**Phone:** ...`). Up to three of
  ` .-/()` between groups; after 10 digits it goes on across a lone hyphen only. Not: other national
  forms without such a word; without one also what reads as a decimal, a coordinate or a quantity
  (`+37.774929`, `+12 500 000`, `@@ +44123456,8`); with one or without, what a unit follows and may
  be a quantity: up to nine digits, thousands, a size or a range, no 0 before it (`mobile 1080 1920
  px`, `手机 129900元`; but `Tel. 030 123456 km 5`; of North American forms any); after such a word
  decimals and prices, years, dates (Persian, Islamic, Buddhist and Chinese years too), hours, sizes
  of screens, bands, round numbers, addresses of machines (`pH 7.35-7.45`, `phone 2015-2016`,
  `Mobile 1299.00`, `GSM 900/1800`; but `Tel: 900 900 900`); an hour behind it (`Tel. 123456
  10:30`); what is counted (`SKU 415-555-2671`). A date without marks (`phone 20241012`) reads as a
  number, `1.234.567` does not.
- iban: of 83 countries by length, check digits right (mod 97, ISO 13616); in small letters after
  IBAN, `Bankverbindung` and the like, or where all that follows the country is digits.
- card: 13 to 19 digits, or 4-4-4-4 or 4-6-5, of an issuer's range and length, Luhn's digit right.
  Not: what is counted (`order no. 4111...`).
- key: by form: AWS, GitHub, GitLab, Slack, Google, Stripe, OpenAI, OpenRouter, Anthropic, Hugging
  Face, npm, PyPI, Docker, DigitalOcean, Shopify, SendGrid, JSON web tokens; with a digit; not those
  that end in EXAMPLE.
- private_key: from `-----BEGIN ... PRIVATE KEY-----` to its END, 64 letters of base64 or more in
  runs of 16; quoted, joined or with headers too; where the END is missing to the last of the runs.
- secret: 16 to 255 bytes in quotes (`"`, `\"`) given (`=`, `:`) to a name that ends in `password`,
  `secret`, `token`, `api_key` ..., a tail (`_prod`) or type (`: str`) after it or not; or 20 of
  `A-Za-z0-9+/=_-` without; of 3.5 bits of entropy a byte or more, 3 where all are hex digits. Not:
  names and words with numbers, where digits meet letters less than three times and the kind of
  character changes at less than half of the bytes (or marks count as a kind as well, there are two
  of each, and it is no word, list or template as below); addresses. With ` $(),;<>{|}` in it not:
  five small letters in a row, a space, comma or semicolon at more than each tenth byte, templates
  and patterns (`${X}`, `{x}`, `<x>`, `a-z`), what code joins (`+f(x)+`).

Full-width characters, digits of other scripts, other hyphens and spaces, and references (`&#64;`,
`&#64`, `&nbsp;`, `&shy;`, all of HTML 5 that stand for such; `%40`, `%2E`) are read as the ASCII
that they stand for (`_pii_tables`), references to letters as these (`m&uuml;ller@mail.de`); so are
dashes within a number, of up to 10 digits before (a year may follow). What nobody sees (soft
hyphens, zero-width spaces) is read as nothing, and as a space. Characters are never cut. A masked
text has nothing left to mask, but one where more than `ROUNDS` masks each showed the one before it
(a text made so had cost a pass for each). Which personal data a text may hold beyond these (names,
streets) is not looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..documents.edits import Edits
from ..documents.errors import UsageError
from ..documents.stage import Measured
from ..documents.text import text_view
from . import _kernels_email as emails
from . import _kernels_pii as kernels
from . import _kernels_secrets as secrets
from ._exact import check_flags
from ._pii_tables import DASHED, KINDS, ROUNDS, TURNS, of_email, stands, starts, tables


def find(
    data: np.ndarray, offsets: np.ndarray, on: tuple[bool, ...], reserved: bool
) -> tuple[np.ndarray, ...]:
    """All that is to be masked: rows, starts, lengths int64[n], kinds uint8[n], in order.

    What nobody sees is first read as nothing and then as a space, and dashes once more when what
    stood before them is gone, by turns until nothing is found; most rows have no such thing. There
    are `TURNS` at most: each reads the text again, and a text may be made to need one a line.
    """
    text, offsets = data[offsets[0] : offsets[-1]], offsets - offsets[0]
    rows = np.arange(len(offsets) - 1)
    parts = []
    before, gap = None, False
    for _ in range(TURNS):
        unsure, *found = _search(text, offsets, on, reserved, gap)
        here = np.bincount(found[0], minlength=len(rows)) > 0
        parts.append((rows[found[0]], *found[1:]))
        if before is None:
            again = unsure
            again[_before_dashes(text, offsets, found)] = True
        else:
            again = here | before
        if not again.any():
            break
        text, offsets = _without(text, offsets, found, again)
        rows, before, gap = rows[again], here[again], not gap
    all_rows, begins, lengths, kinds = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((begins, all_rows))
    return all_rows[order], begins[order], lengths[order], kinds[order]


def _before_dashes(text: np.ndarray, offsets: np.ndarray, found: list[np.ndarray]) -> list[int]:
    """Rows where a dash stands behind what was found, as near as dashes look back."""
    rows, begins, lengths, _ = found
    stops = offsets[rows] + begins + lengths
    ends = np.minimum(stops + 4 * emails.BACK, offsets[rows + 1])
    every = zip(rows.tolist(), stops.tolist(), ends.tolist(), strict=True)
    return [row for row, stop, end in every if DASHED.search(text[stop:end].tobytes())]


def _without(
    text: np.ndarray, offsets: np.ndarray, found: list[np.ndarray], again: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The texts of the rows to look at `again`, with what was found gone; and their bounds."""
    mine = again[found[0]]
    which = np.cumsum(again) - 1
    bounds = np.append(0, np.cumsum(np.diff(offsets)[again]))
    every = zip(offsets[:-1][again], offsets[1:][again], strict=True)
    out = np.concatenate([text[a:z] for a, z in every])
    firsts = bounds[which[found[0][mine]]] + found[1][mine]
    for first, length in zip(firsts, found[2][mine], strict=True):
        out[first : first + length] = emails.GONE
    return out, bounds


def _search(
    text: np.ndarray, offsets: np.ndarray, on: tuple[bool, ...], reserved: bool, gap: bool
) -> tuple[np.ndarray, ...]:
    """What `fold` says is unsure, and what is found in the texts folded, as `find` returns it."""
    classes, of_data, of_secrets = tables()
    data_may, secret_may = starts(on)
    places = np.zeros(len(offsets), np.int64)
    unsure = np.zeros(len(offsets) - 1, bool)
    flags = np.array(on, bool)
    names, counts = (classes, *of_secrets), np.zeros(256, np.int64)
    other, what = (classes, *of_data), (flags, reserved)
    scratch = np.zeros(64, np.int64), np.zeros((16, 4), np.int64)

    def once(room: int) -> tuple[int, list[tuple[np.ndarray, ...]], np.ndarray]:
        work, marks = _folded(text, offsets, gap, places, unsure)
        ats = np.flatnonzero(work == ord("@")) if on[emails.EMAIL] else np.zeros(0, np.int64)
        todo = np.ones(len(places) - 1, bool)
        most = 0
        parts: list[tuple[np.ndarray, ...]] = []

        def step(run: Callable[..., int], *args: Any) -> None:
            nonlocal most
            out: tuple[np.ndarray, ...] = (
                *(np.empty(room, np.int64) for _ in range(3)),
                np.empty(room, np.uint8),
            )
            n = run(work, (places, todo), *args, out)
            most = max(most, n)
            parts.append(tuple(v[:n] for v in out))

        def touched() -> np.ndarray:
            """Rows where what was found last bore on what is looked for first."""
            hit = np.zeros(len(todo), bool)
            for row, start, length, _ in parts[-2:]:
                at = places[row] + start
                before = work[np.maximum(0, at[:, None] - np.arange(1, 16))]
                hit[row[(classes[before] & secrets.TOUCHED > 0).all(axis=1)]] = True  # a key
                for beside in (np.maximum(at - 1, 0), np.minimum(at + length, len(work) - 1)):
                    byte = work[beside]  # of an address
                    near = (byte >= 0x80) | (byte == ord("@")) | (classes[byte] & emails.LOCAL > 0)
                    hit[row[near]] = True
            return hit

        for _ in range(ROUNDS):
            step(secrets.find, secret_may, flags, names, counts)
            step(emails.find, ats, reserved, of_email())
            step(kernels.find, data_may, what, other, scratch)
            todo = touched()
            if not todo.any():
                break
        return most, parts, marks

    room = 256 + len(text) // 1024
    most, outs, marks = once(room)
    if most > room:
        most, outs, marks = once(most)
    none = tuple(np.zeros(0, kind) for kind in (*[np.int64] * 3, np.uint8))
    rows, first, lengths, kinds = (np.concatenate(p) for p in zip(none, *outs, strict=True))
    order = np.lexsort((first, rows))
    rows, first, lengths, kinds = rows[order], first[order], lengths[order], kinds[order]
    begins, stops = _unfolded(places[rows] + first, lengths, marks)
    return unsure, rows, begins - offsets[rows], stops - begins, kinds


def _folded(
    text: np.ndarray,
    offsets: np.ndarray,
    gap: bool,
    places: np.ndarray,
    unsure: np.ndarray,
    room: int = 256,
) -> tuple[np.ndarray, np.ndarray]:
    """The texts with ASCII for what stands for it, bounds in `places`, and `marks` of the fold."""
    out = np.empty_like(text)
    marks = np.empty((max(room, len(text) // 64), 2), np.int64)
    folded = emails.fold(text, offsets, stands(), gap, out, places, marks, unsure)
    if folded > len(marks):
        return _folded(text, offsets, gap, places, unsure, folded)
    return out[: places[-1]], marks[:folded]


def _unfolded(
    places: np.ndarray, lengths: np.ndarray, marks: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where in the texts what is at places of the folded texts begins and stops.

    What nobody sees and stands before it, or after it, is not of it.
    """
    shifts = np.append(0, marks[:, 1])
    stops = places + lengths
    begins = places + shifts[np.searchsorted(marks[:, 0], 2 * places + 1, side="right")]
    return begins, stops + shifts[np.searchsorted(marks[:, 0], 2 * stops, side="right")]


@dataclass(frozen=True, kw_only=True, slots=True)
class PII:
    """Mask e-mail and IP addresses, telephone, account and card numbers, keys and secrets.

    Each field of a kind holds its mask; `null` leaves the kind alone. Scores: int32 counts by kind.
    """

    email: str | None = "<EMAIL>"
    ipv4: str | None = "<IP>"
    ipv6: str | None = "<IP>"
    phone: str | None = "<PHONE>"
    iban: str | None = "<IBAN>"
    card: str | None = "<CARD>"
    key: str | None = "<KEY>"
    private_key: str | None = "<PRIVATE_KEY>"
    secret: str | None = "<SECRET>"  # noqa: S105 - a mask
    reserved: bool = False  # mask example.com, 192.168.0.1 and their like as well
    at_most: int | None = None  # drop texts with more: lists of addresses

    name: ClassVar[str] = "pii"
    revision: ClassVar[int] = 7
    reasons: ClassVar[tuple[str, ...]] = ("keep", "many")
    verdict_fields: ClassVar[frozenset[str]] = frozenset({"at_most"})

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        check_flags(self, ("reserved",))
        for kind in KINDS:
            mask = getattr(self, kind)
            good = isinstance(mask, str) and mask[:1] + mask[-1:] in ("<>", "||")
            inside = mask[1:-1].replace("_", "") if isinstance(mask, str) else ""
            if mask is not None and not (good and inside.isascii() and inside.isalnum()):
                msg = (
                    f"{self.name}.{kind}: found {mask!r}, expected null or letters in <> or ||, "
                    f"such as <{kind.upper()}>, which no rule takes for what it masks"
                )
                raise UsageError(msg)
            if mask is not None and any(c.isdigit() for c in mask):  # without, no rule holds
                raw = np.frombuffer(mask.encode(), np.uint8)
                every = (True,) * len(KINDS)
                if len(find(raw, np.array([0, len(raw)], np.int64), every, reserved=True)[0]):
                    msg = f"{self.name}.{kind}: found {mask!r}, which is itself to be masked"
                    raise UsageError(msg)
        if self.at_most is not None and (
            isinstance(self.at_most, bool) or not isinstance(self.at_most, int) or self.at_most < 0
        ):
            msg = f"{self.name}.at_most: found {self.at_most!r}, expected null or a whole number"
            raise UsageError(msg)

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Find what is to be masked."""
        view = text_view(batch.column("text"))
        masks = tuple((getattr(self, kind) or "").encode() for kind in KINDS)
        on = tuple(getattr(self, kind) is not None for kind in KINDS)
        rows, starts, lengths, kinds = find(view.data, view.offsets, on, self.reserved)
        counts = np.zeros((view.rows, len(KINDS)), np.int32)
        np.add.at(counts, (rows, kinds), 1)
        scores = {kind: np.ascontiguousarray(counts[:, at]) for at, kind in enumerate(KINDS)}
        edits = Edits(
            rows=rows,
            starts=starts,
            lengths=lengths,
            reasons=kinds,
            reason_names=KINDS,
            replacements=masks,
            replacement=kinds,
        )
        return Measured(scores, edits=edits)

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Keep all, or those with at most `at_most` masks."""
        total = np.sum([scores[kind].astype(np.int64) for kind in KINDS], axis=0)
        limit = np.iinfo(np.int64).max if self.at_most is None else self.at_most
        return np.asarray(total > limit).astype(np.uint8)
