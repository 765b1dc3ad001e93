"""Real archives, many broken on purpose: no crash, every byte booked, locators that hold."""

from __future__ import annotations

from collections import Counter

import pytest

from gristmill.documents.records import Loss, Record
from gristmill.pipelines.readers import Extent, ReadAccount, read_extent, reread


def read(root, name) -> tuple[list, ReadAccount]:
    account = ReadAccount()
    size = (root / name).stat().st_size
    items = list(read_extent(root, Extent(name, 0, size), account))
    account.check()
    assert account.stored_bytes == size
    return items, account


@pytest.fixture
def archives(real_data):
    root = real_data / "a-warc"
    names = sorted(p.name for p in root.iterdir() if p.suffix not in {".tsv", ".md"})
    if not names:
        pytest.skip("the set a-warc is not there")
    return root, names


def test_real_archives_balance_and_every_record_is_found_again(archives):
    root, names = archives
    found = 0
    for name in names:
        items, account = read(root, name)
        assert items, name
        for item in items:
            if isinstance(item, Record):
                found += 1
                assert reread(root, item.locator) == item, name
            elif isinstance(item, Loss):
                assert item.locator.file == name
                assert 0 <= item.locator.offset <= account.stored_bytes
    assert found > 100


def test_real_archive_and_its_compressed_twin_hold_the_same(archives):
    root, names = archives
    twins = [n for n in names if f"{n}.gz" in names]
    assert len(twins) > 5
    for name in twins:
        if name == "pywb__example.warc":  # the plain one has a wrong length in it
            continue
        plain, packed = read(root, name)[0], read(root, f"{name}.gz")[0]
        texts = [
            [(i.url, i.body, i.text) for i in items if isinstance(i, Record)]
            for items in (plain, packed)
        ]
        assert texts[0] == texts[1], name


def test_real_archives_inventory(archives):
    """Requests agree with warcio's counts where it reads the file; the rest pins what was found."""
    root, names = archives
    expected = {
        "chatnoir-resiliparse__warcfile.warc.gz": (16, {}, 17),
        "pywb__iana.warc.gz": (16, {"http_redirect": 4}, 171),
        "webarchive-discovery__transfer_compression_brotli.warc.gz": (1, {}, 1),
        "warcio__example-bad-non-chunked.warc.gz": (1, {}, 2),
        "warcio.js__example-bad-length.warc": (0, {"bad_framing": 1}, 2),
        "pywb__valid_example_1.wacz": (0, {"unknown_format": 1}, 0),
        "whirlwind-python__whirlwind.warc.wet.gz": (1, {}, 0),
    }
    for name, (records, losses, requests) in expected.items():
        if name in names:
            _, account = read(root, name)
            assert (account.records, account.losses, account.skips["request"]) == (
                records,
                Counter(losses),
                requests,
            ), name


def test_real_shards_lose_nothing(real_data):
    root = real_data / "a-warc-built"
    for path in sorted(root.glob("*.gz")):
        items, account = read(root, path.name)
        assert account.losses == Counter()
        assert account.records + account.skips["warcinfo"] == len(items)
