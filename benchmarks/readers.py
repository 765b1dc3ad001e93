"""Readers and extraction, one core: decoded MB/s beside FastWARC, pages/s of main text.

    python benchmarks/readers.py [FOLDER]        FOLDER holds *.warc.wet.gz and *.warc.gz

CPU seconds of this process, best of five, so that a busy machine disturbs little; the ratio of two
columns of one run disturbs least. Both sides hand over each record's whole content and headers,
ours as records with their fields, and decode what is text.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gristmill.documents.records import Draft
from gristmill.pipelines.convert import MainText, PlainText
from gristmill.pipelines.readers import ReadAccount, plan_extents, read_extent

ROUNDS = 5


def best(work: Callable[[], float]) -> tuple[float, float]:
    """CPU seconds of the fastest round and what the work returned."""
    result, seconds = 0.0, float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        result = work()
        seconds = min(seconds, time.process_time() - start)
    return seconds, result


def ours(folder: Path, pattern: str) -> float:
    """Decoded bytes."""
    account = ReadAccount()
    for shard in plan_extents(folder, [pattern]):
        for extent in shard:
            for _ in read_extent(folder, extent, account):
                pass
    account.check()
    return account.decoded_bytes


def documents(folder: Path) -> float:
    """Decoded bytes of WET files, read and made into documents under the text policy."""
    account = ReadAccount()
    convert = PlainText()
    for shard in plan_extents(folder, ["*.warc.wet.gz"]):
        for extent in shard:
            for _ in convert(read_extent(folder, extent, account)):
                pass
    return account.decoded_bytes


def theirs(folder: Path, pattern: str) -> float:
    """Number of records."""
    from fastwarc import ArchiveIterator

    count = 0
    text = pattern.endswith("wet.gz")
    for file in sorted(folder.glob(pattern)):
        for record in ArchiveIterator(str(file), parse_http=not text, fsspec_args=False):
            dict(record.headers)
            content = record.reader.read()
            if text:
                content.decode()
            count += 1
    return count


def pages(folder: Path) -> float:
    """Pages extracted."""
    count = 0
    for shard in plan_extents(folder, ["*.warc.gz"]):
        for extent in shard:
            items = MainText()(read_extent(folder, extent, ReadAccount()))
            count += sum(isinstance(item, Draft) for item in items)
    return count


def main() -> None:
    default = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    data = Path(os.environ.get("GRISTMILL_DATA", default))
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else data / "a-warc-built"
    if not folder.is_dir():
        sys.exit(f"no folder {folder}: give one that holds *.warc.gz and *.warc.wet.gz")
    for name, pattern in (("WET", "*.warc.wet.gz"), ("WARC", "*.warc.gz")):
        seconds, decoded = best(lambda p=pattern: ours(folder, p))
        print(
            f"{name:<5} {decoded / 1e6:8.1f} MB decoded  ours {decoded / seconds / 1e6:6.0f} MB/s",
            end="",
        )
        try:
            other, _ = best(lambda p=pattern: theirs(folder, p))
        except ImportError:
            print("  FastWARC not installed")
        else:
            print(f"  FastWARC {decoded / other / 1e6:6.0f} MB/s")
    seconds, decoded = best(lambda: documents(folder))
    print(f"WET to documents, text policy included  {decoded / seconds / 1e6:6.0f} MB/s")
    seconds, count = best(lambda: pages(folder))
    print(f"main text {count:6.0f} pages from WARC  {count / seconds:6.0f} pages/s")


if __name__ == "__main__":
    main()
