"""Masks of long runs of one piece: read a bounded number of times, and as the twin reads them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from gristmill.filters import _pii_tables
from gristmill.filters.pii import KINDS, find

EY = "eyJ"  # put together here, so that no scanner of repositories finds a key
AIZA = "AI" + "za" + "x8Kd92Lmq0ZpW73hTy5aBx8Kd92Lmq0Zp1"
CHAIN = f"93.184.216.34.{AIZA}-"  # an address ends at the key behind it, which ends at an address
RUNS = (
    "1 ", "1-", "1.", "(1", "+1", "+49 30 1234567 ", "tel 123456 ", "a@", "@a.", "@中", "1.2.3.4 ",
    ":", ":a", "2001:1:", "-", "- ", "-----BEGIN ", "token=", "token='", 'secret="a1B2;', "=", "\\",
    '\\"', "&#6", "%4", "—", "1—", "1\u200b2", "415-555-2671\u200b", "415-555-2671—", "DE89",
    "4111-", "sk-", "a.b.c.d.",
    f"{EY}.", f"{EY}-", f"{EY}{'a1' * 6}.", f"{EY}{'a1' * 20}.", f"{EY}a1.{EY}.", CHAIN,
)  # fmt: skip

# The kernels as plain Python, over bytes that count how often they are read.
COUNTED = """
import sys
import numpy as np
from gristmill.filters.pii import KINDS, find

class Counted(np.ndarray):
    reads = 0

    def __getitem__(self, at):
        found = super().__getitem__(at)
        if not isinstance(found, np.uint8):
            return found
        Counted.reads += 1
        return int(found)

for piece in sys.argv[1:]:
    for size in (5_000, 20_000):
        Counted.reads = 0
        text = (piece.encode("utf-8", "surrogateescape") * size)[:size]
        text = text[: len(text) - len(text) % len(piece.encode())]
        raw = np.frombuffer(text, np.uint8).view(Counted)
        find(raw, np.array([0, len(raw)]), (True,) * len(KINDS), reserved=False)
        print(Counted.reads)
"""


def test_pii_runs_are_read_a_bounded_number_of_times():
    """Four times the text is read four times as often, and 16 times where that is quadratic.

    Or eight times, where more is found than the first pass has room for. In tokens joined by dots a
    byte was read 21,000 times.
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COUNTED, *RUNS],  # sums wrap without Numba, and warn
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    counts = list(map(int, done.stdout.split()))
    for piece, once, four_times in zip(RUNS, counts[::2], counts[1::2], strict=True):
        assert 0 < four_times < 10 * once, piece
        assert four_times < 400 * 20_000, piece


@pytest.mark.parametrize("piece", RUNS, ids=lambda p: p[:12])
@pytest.mark.parametrize("tail", ["", f" {EY}{'a1' * 20}.b2.c3", "'"])
def test_pii_runs_equal_twin(naive, piece, tail):
    twin, known = naive("naive_pii"), (_pii_tables, naive("naive_secrets"))
    data = (piece * max(2, 240 // len(piece)) + tail).encode()
    raw = np.frombuffer(data, np.uint8)
    _, starts, lengths, kinds = find(
        raw, np.array([0, len(raw)]), (True,) * len(KINDS), reserved=False
    )
    rows = zip(starts.tolist(), lengths.tolist(), (KINDS[k] for k in kinds), strict=True)
    assert list(rows) == twin.find(data, *known)


@pytest.mark.parametrize("links", [7, 8, 9, 12])
def test_pii_chain_longer_than_the_rounds_is_cut_as_in_twin(naive, links, monkeypatch):
    """Each round finds one link; a chain of more is left behind the last."""
    twin, known = naive("naive_pii"), (_pii_tables, naive("naive_secrets"))
    monkeypatch.setattr("gristmill.filters.pii.ROUNDS", 8)
    monkeypatch.setattr(_pii_tables, "ROUNDS", 8)
    data = (CHAIN * links).encode()
    raw = np.frombuffer(data, np.uint8)
    _, starts, *_ = find(raw, np.array([0, len(raw)]), (True,) * len(KINDS), reserved=False)
    assert starts.tolist() == [s for s, *_ in twin.find(data, *known)]
    assert len(starts) == 2 * min(links, 8)
