"""Annotation against a server on loopback that fails in the ways that real ones do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gristmill.documents.errors import StopError, UsageError
from gristmill.filters.heads import annotate as asking
from gristmill.filters.heads.rubric import read_rubric

RUBRIC = "# Rubric\n\n## edu: 0-5, how useful\n0 none\n\n## templ: 0/1/2, a template?\n"
GOOD = '{"edu": 3, "templ": 0}'


class Server(ThreadingHTTPServer):
    """Answers with what `script(text, nth time)` returns: content, or (status, headers, body)."""

    daemon_threads = True

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.asked, self.lock = script, [], threading.Lock()
        self.at_once = self.most = 0
        self.url = f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["messages"][1]["content"]
        with self.server.lock:
            self.server.asked.append((text, self.path, dict(self.headers), body))
            nth = sum(a[0] == text for a in self.server.asked)
            self.server.at_once += 1
            self.server.most = max(self.server.most, self.server.at_once)
        try:
            found = self.server.script(text, nth)
        finally:
            with self.server.lock:
                self.server.at_once -= 1
        if isinstance(found, str):
            usage = {"prompt_tokens": 100, "completion_tokens": 10}
            reply = {"choices": [{"message": {"content": found}}], "usage": usage}
            found = (200, {}, json.dumps(reply))
        status, headers, raw = found
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw.encode())
        except OSError:
            pass  # who asked went away


@pytest.fixture
def serve():
    servers = []

    def start(script):
        server = Server(script)
        servers.append((server, threading.Thread(target=server.serve_forever)))
        servers[-1][1].start()
        return server

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def rubric(tmp_path):
    path = tmp_path / "rubric.md"
    path.write_text(RUBRIC)
    return path


def ask(server, rubric, **more):
    given = {"backoff": 0.0, "concurrency": 4, "timeout": 10.0, "price_in": 2.0, "price_out": 5.0}
    return asking.Asker(
        endpoint=server.url, model="m", rubric=read_rubric(rubric), **(given | more)
    )


def run(texts, out, asker):
    rest, done = asking.pending(texts, out, asker)
    tally = asking.annotate(rest, out, asker, lambda line: None)
    tally.reused = done
    return tally, {r["id"]: r for r in map(json.loads, out.read_text().splitlines())}


def texts(n):
    return [(f"d{i}", f"text {i}") for i in range(n)]


def test_annotate_labels_every_text_and_counts_tokens(serve, rubric, tmp_path, monkeypatch):
    monkeypatch.setenv(asking.KEY, "sesame")
    server = serve(lambda text, nth: GOOD)
    tally, rows = run(texts(20), tmp_path / "out.jsonl", ask(server, rubric))
    assert {(r["edu"], r["templ"]) for r in rows.values()} == {(3, 0)}
    assert (tally.labelled, tally.failed, len(rows)) == (20, 0, 20)
    assert (tally.tokens_in, tally.tokens_out) == (2000, 200)
    assert tally.cost == pytest.approx((2000 * 2 + 200 * 5) / 1e6)
    _, path, headers, body = server.asked[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer sesame"
    assert RUBRIC.strip() in body["messages"][0]["content"]


def test_annotate_keeps_to_its_concurrency(serve, rubric, tmp_path):
    def slow(text, nth):
        time.sleep(0.03)
        return GOOD

    server = serve(slow)
    run(texts(24), tmp_path / "out.jsonl", ask(server, rubric, concurrency=3))
    assert 1 < server.most <= 3


@pytest.mark.parametrize(
    "garbage",
    [
        "I think it is a 3.",
        '{"edu": 9, "templ": 0}',
        '{"edu": 3}',
        '{"edu": true, "templ": 0}',
        '{"edu": 3.5, "templ": 0}',
        '{"edu": 3, "templ": 0',
        "",
    ],
)
def test_annotate_asks_again_after_garbage(serve, rubric, tmp_path, garbage):
    server = serve(lambda text, nth: garbage if nth == 1 else f"Well: ```json\n{GOOD}\n```")
    tally, rows = run(texts(2), tmp_path / "out.jsonl", ask(server, rubric))
    assert (tally.labelled, len(server.asked)) == (2, 4)
    assert rows["d0"]["tokens_in"] == 200  # both answers were paid for


@pytest.mark.parametrize(
    "body",
    ["<html>gateway</html>", "{}", '{"choices": []}', '{"choices": [{"message": null}]}', "[]"],
)
def test_annotate_books_what_is_no_completion(serve, rubric, tmp_path, body):
    server = serve(lambda text, nth: (200, {}, body))
    tally, rows = run(texts(1), tmp_path / "out.jsonl", ask(server, rubric, attempts=2))
    assert rows["d0"]["failed"] == "no chat completion"
    assert (tally.failed, tally.tokens_in, tally.cost) == (1, None, None)
    assert tally.reasons == {"no chat completion": 1}


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_annotate_tries_again_when_the_server_is_busy(serve, rubric, tmp_path, status):
    server = serve(lambda text, nth: (status, {}, "later") if nth < 3 else GOOD)
    tally, _ = run(texts(3), tmp_path / "out.jsonl", ask(server, rubric))
    assert (tally.labelled, len(server.asked)) == (3, 9)


def test_annotate_says_how_long_it_waits_and_why(serve, rubric, tmp_path):
    server = serve(lambda text, nth: (500, {}, "") if nth < 4 else GOOD)
    said = []
    asker = ask(server, rubric, concurrency=1, backoff=0.01)
    asking.annotate([("d", "text")], tmp_path / "out.jsonl", asker, said.append)
    waits = [line for line in said if "asking again" in line]
    assert waits == [
        f"{server.url}: status 500: asking again in {seconds} s, {left} more times at most"
        for seconds, left in (("0.02", 4), ("0.04", 3))
    ]


def test_annotate_says_that_nobody_answers(rubric, tmp_path):
    said = []
    asker = asking.Asker(
        endpoint="http://127.0.0.1:9/v1",
        model="m",
        rubric=read_rubric(rubric),
        retries=2,
        backoff=0.01,
    )
    asking.annotate([("d", "text")], tmp_path / "out.jsonl", asker, said.append)
    assert [line for line in said if "no answer" in line and "again in 0.02 s" in line]


def test_annotate_waits_as_long_as_it_is_told(serve, rubric, tmp_path):
    server = serve(lambda text, nth: (429, {"Retry-After": "1"}, "") if nth == 1 else GOOD)
    start = time.monotonic()
    run(texts(1), tmp_path / "out.jsonl", ask(server, rubric))
    assert time.monotonic() - start >= 1  # never earlier; how much later is the machine's affair


def test_annotate_books_a_text_that_is_always_refused_and_goes_on(serve, rubric, tmp_path):
    server = serve(lambda text, nth: (500, {}, "") if text == "text 1" else GOOD)
    tally, rows = run(texts(4), tmp_path / "out.jsonl", ask(server, rubric, retries=2))
    assert rows["d1"]["failed"] == "status 500"
    assert (tally.labelled, tally.failed) == (3, 1)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_annotate_gives_up_on_a_server_that_answers_no_text(serve, rubric, tmp_path, concurrency):
    up = []
    server = serve(lambda text, nth: GOOD if up or text in {"text 0", "text 9"} else (500, {}, ""))
    asker = ask(server, rubric, retries=1, concurrency=concurrency)
    with pytest.raises(StopError, match=r"8 texts in a row have no label \(status 500, .*goes on"):
        run(texts(300), tmp_path / "out.jsonl", asker)
    assert len({a[0] for a in server.asked}) < 40
    up.append(True)
    tally, rows = run(texts(300), tmp_path / "out.jsonl", asker)
    assert tally.labelled + tally.reused == len(rows) == 300


def test_annotate_goes_on_over_texts_that_are_refused_one_after_the_other(serve, rubric, tmp_path):
    long = {f"text {i}" for i in range(20)}
    server = serve(lambda text, nth: (413, {}, "") if text in long else GOOD)
    tally, _ = run(texts(30), tmp_path / "out.jsonl", ask(server, rubric))
    assert (tally.labelled, tally.failed) == (10, 20)


def test_annotate_books_a_timeout(serve, rubric, tmp_path):
    gate = threading.Event()

    def stuck(text, nth):
        gate.wait(20)
        return GOOD

    server = serve(stuck)
    _, rows = run(texts(1), tmp_path / "out.jsonl", ask(server, rubric, timeout=0.2, retries=1))
    gate.set()
    assert rows["d0"]["failed"].startswith("no answer")


@pytest.mark.parametrize("status", [401, 404])
def test_annotate_stops_where_every_text_would_fail(serve, rubric, tmp_path, status):
    server = serve(lambda text, nth: (status, {}, "no such key"))
    with pytest.raises(StopError, match="no such key"):
        run(texts(50), tmp_path / "out.jsonl", ask(server, rubric))
    assert len(server.asked) < 50


def test_annotate_resumes_with_what_is_missing_changed_or_failed(serve, rubric, tmp_path):
    out = tmp_path / "out.jsonl"
    server = serve(lambda text, nth: "no" if text == "text 1" else GOOD)
    asker = ask(server, rubric, attempts=1)
    run(texts(3), out, asker)
    with out.open("a") as file:
        file.write('{"id": "d9", "text_sha')  # a kill in the middle of a line
    server.script = lambda text, nth: GOOD
    server.asked.clear()
    changed = [("d0", "text 0"), ("d1", "text 1"), ("d2", "another"), ("d3", "text 3")]
    tally, rows = run(changed, out, asker)
    assert sorted(a[0] for a in server.asked) == ["another", "text 1", "text 3"]
    assert all("failed" not in r for r in rows.values())
    assert tally.reused == 2
    server.asked.clear()
    assert run(changed, out, asker)[0].labelled == 0
    assert server.asked == []


def test_annotate_refuses_the_answers_of_another_rubric(serve, rubric, tmp_path):
    server = serve(lambda text, nth: GOOD)
    run(texts(1), tmp_path / "out.jsonl", ask(server, rubric))
    rubric.write_text(RUBRIC + "Be strict.\n")
    with pytest.raises(UsageError, match="give --out another file"):
        run(texts(1), tmp_path / "out.jsonl", ask(server, rubric))


def test_annotate_killed_and_resumed_asks_for_no_label_twice(serve, rubric, tmp_path):
    gate = threading.Event()

    def script(text, nth):
        if int(text.split()[1]) >= 6:
            gate.wait(30)
        return GOOD

    server = serve(script)
    docs, out = tmp_path / "docs.jsonl", tmp_path / "out.jsonl"
    docs.write_text("".join(json.dumps({"id": k, "text": t}) + "\n" for k, t in texts(10)))
    command = [sys.executable, "-m", "gristmill", "quality", "annotate", str(docs)]
    command += ["--rubric", str(rubric), "--endpoint", server.url, "--model", "m"]
    command += ["--out", str(out), "--concurrency", "1", "--price", "2", "5"]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not out.exists() or out.read_bytes().count(b"\n") < 6:
        assert first.poll() is None, first.communicate()
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    gate.set()
    server.asked.clear()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert sorted(a[0] for a in server.asked) == [f"text {i}" for i in range(6, 10)]
    tally = json.loads(done.stdout)
    assert (tally["labelled"], tally["reused"], tally["tokens_in"]) == (4, 6, 400)
    assert "4 texts to label, 6 done" in done.stderr
    assert "(estimate)" in done.stderr
    assert len({json.loads(line)["id"] for line in out.read_text().splitlines()}) == 10


def test_excerpt_of_a_long_text_is_its_beginning_and_a_piece_of_its_middle():
    text = " ".join(f"w{i}" for i in range(5000))
    found = asking.excerpt(text, 3000)
    first, second = found.split("\n[...]\n")
    assert text.startswith(first + " ")
    assert f" {second} " in text
    assert len(found) <= 3010
    assert 0.4 < text.index(second) / len(text) < 0.6
    assert asking.excerpt("short", 3000) == "short"
    assert len(asking.excerpt("x" * 9000, 3000)) <= 3010  # without a blank to cut at


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"id": "a"}\n', "'text'"),
        ("nonsense\n", "expected JSON"),
        ('{"id": "a", "text": 5}\n', "no text"),
        ('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n', "was there before"),
    ],
)
def test_documents_with_a_fault_are_refused_with_their_line(tmp_path, lines, message):
    (tmp_path / "d.jsonl").write_text(lines)
    with pytest.raises(UsageError, match=message):
        list(asking.read_documents(tmp_path / "d.jsonl"))


@pytest.mark.parametrize("text", [" " * 20_000, " " * 9_000 + "word " * 900, "x" * 20_000])
def test_excerpt_of_blanks_or_of_one_word_stays_in_bounds(text):
    cut = asking.excerpt(text, 12_000)
    assert len(cut) <= 12_000 + len("\n[...]\n")
    assert set(cut) <= set(text) | set("\n[...]\n")


def test_documents_with_half_a_surrogate_are_mended(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text('{"id": "a", "text": "one \\ud800 two \\ud83d\\ude00"}\n')
    assert list(asking.read_documents(path)) == [("a", "one \ufffd two \U0001f600")]


@pytest.mark.parametrize("usage", ["many", 7, [1], None])
def test_annotate_takes_usage_that_is_no_object_for_unknown(serve, rubric, tmp_path, usage):
    body = json.dumps({"choices": [{"message": {"content": GOOD}}], "usage": usage})
    server = serve(lambda text, nth: (200, {}, body))
    tally, rows = run(texts(2), tmp_path / "out.jsonl", ask(server, rubric))
    assert (tally.labelled, tally.tokens_in, tally.tokens_out) == (2, None, None)
    assert len(rows) == 2


def test_rubric_names_its_labels(rubric, tmp_path):
    assert read_rubric(rubric).values == {"edu": (0, 1, 2, 3, 4, 5), "templ": (0, 1, 2)}
    (tmp_path / "none.md").write_text("# A rubric\n\njudge well\n")
    with pytest.raises(UsageError, match="found no label"):
        read_rubric(tmp_path / "none.md")
