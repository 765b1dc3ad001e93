"""73 real archives, many broken on purpose: what is in each, held against its bytes.

`inventory.json` states of each file its records, skips and losses by kind and its faults with their
places. A second count, by zlib and regular expressions alone, says that it is what the bytes hold:
the items cover the decoded stream from end to end, and each starts where a header of its type
stands. To write the inventory anew run this file as a script, with GRISTMILL_DATA set.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from pathlib import Path

import duckdb
import pytest

from gristmill.documents.records import Loss, Record, Skip
from gristmill.pipelines.readers import Extent, ReadAccount, read_extent

HERE = Path(__file__).parent
FILE = HERE / "inventory.json"
GOLDEN = json.loads(FILE.read_text()) if FILE.exists() else {}
WARC = re.compile(rb"WARC/\d\.\d+[ \t]*\r*\n(?:[^\r\n]+\r*\n)*?WARC-Type: *(\w+)", re.IGNORECASE)
ARC = re.compile(rb"(\w+):(?://)?\S[^\n]* [\d.]+ \d{14} [^\n]*?(?<= )\d+\r?\n")


def inventory(root: Path, name: str) -> tuple[dict, list]:
    """What is read of a file, in numbers, and the items."""
    account = ReadAccount()
    size = (root / name).stat().st_size
    items = list(read_extent(root, Extent(name, 0, size), account))
    account.check()
    faults = [
        [i.reason, i.locator.offset, i.locator.inner, i.locator.span]
        for i in items
        if isinstance(i, Loss) and i.kind == "fault"
    ]
    found = {
        "stored": account.stored_bytes,
        "decoded": account.decoded_bytes,
        "records": account.records,
        "skips": dict(sorted(account.skips.items())),
        "losses": dict(sorted(account.losses.items())),
        "faults": faults,
    }
    return found, items


def decoded(data: bytes) -> bytes:
    """All members of a gzip file, by zlib."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    parts = []
    while data:
        member = zlib.decompressobj(31)
        parts.append(member.decompress(data))
        assert member.eof
        data = member.unused_data
    return b"".join(parts)


def kinds(item) -> set[bytes]:
    """The header types that an item may come from."""
    if isinstance(item, Record):
        return {str(item.fields.get("warc_type", "http")).encode(), b"https"}
    if isinstance(item, Loss):
        return {b"response", b"resource", b"conversion", b"http", b"https"}
    if item.reason in {"warcinfo", "request", "revisit", "metadata", "filedesc"}:
        return {item.reason.encode()}
    if item.reason == "wat":
        return {b"metadata"}
    if item.reason == "dns":
        return {b"response", b"resource", b"dns"}
    return {b"response", b"resource", b"http", b"https", b"unknown"}


@pytest.fixture
def root(real_data):
    folder = real_data / "a-warc"
    if not folder.is_dir():
        pytest.skip("the set a-warc is not there")
    return folder


def test_golden_inventory_names_every_file(root):
    there = {p.name for p in root.iterdir() if p.suffix not in {".tsv", ".md"}}
    assert there == set(GOLDEN)
    assert len(there) == 73


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_golden_inventory_holds_and_agrees_with_the_bytes(root, name):
    found, items = inventory(root, name)
    assert found == GOLDEN[name]
    stream = decoded((root / name).read_bytes())
    assert len(stream) == found["decoded"]
    arc = stream.startswith(b"filedesc:")
    position = 0
    for item in items:
        span = item.span if isinstance(item, Skip) else item.locator.span
        part = stream[position : position + span]
        fault = isinstance(item, Loss) and item.kind == "fault" and item.reason != "bad_http"
        if not fault and not (isinstance(item, Skip) and not item.records):
            header = (ARC if arc else WARC).match(part)
            assert header, (position, item)
            kind = header[1].lower()
            assert kind in kinds(item) or kind not in KNOWN, (position, item)
            # Nothing else starts within it, but a line of its content that says so of itself.
            inner = [m for m in WARC.finditer(part, 1) if not arc]
            assert not inner, (position, item)
        position += span
    assert position == len(stream)


KNOWN = {
    *(b"warcinfo", b"request", b"revisit", b"metadata", b"response", b"resource", b"conversion"),
    *(b"http", b"https", b"dns", b"filedesc"),
}


RECIPE = """
name: broken
root: {root}
sources:
  all: {{paths: [shards], converter: main_text, max_loss: {loss}}}
"""


@pytest.mark.parametrize(("loss", "code"), [(0, 1), (1, 0)])
def test_run_over_broken_shards_balances_and_says_so(root, tmp_path, mill, loss, code):
    recipe = tmp_path / "broken.yaml"
    (tmp_path / "shards").mkdir()
    for name in GOLDEN:
        shutil.copy(root / name, tmp_path / "shards" / name)
    recipe.write_text(RECIPE.format(root=tmp_path, loss=loss))
    done = mill.command("run", recipe, "--out", tmp_path / "run", "--workers", 2)
    assert done.returncode == code, done.stderr
    checked = mill.command("verify", tmp_path / "run")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with duckdb.connect(str(tmp_path / "run" / "ledger.duckdb"), read_only=True) as books:
        listed = books.sql("SELECT file, reason FROM losses WHERE kind = 'fault'").fetchall()
    faults = [(f"shards/{n}", f[0]) for n, g in GOLDEN.items() for f in g["faults"]]
    assert sorted(listed) == sorted(faults)
    if code:
        assert "max_loss" in done.stderr


if __name__ == "__main__":
    data = Path(os.environ["GRISTMILL_DATA"]) / "a-warc"
    names = sorted(p.name for p in data.iterdir() if p.suffix not in {".tsv", ".md"})
    made = {n: inventory(data, n)[0] for n in names}
    lines = ",\n".join(f"{json.dumps(n)}: {json.dumps(v)}" for n, v in made.items())
    FILE.write_text("{\n" + lines + "\n}\n")
