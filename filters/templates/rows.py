"""Rows of the template stage's exchange as NumPy arrays, and small tools to group them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from ...documents.exchange import KEY, RANK

PAGE, LINE, ANCHOR = 0, 1, 2
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_C1, _C2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_THIRTY_THREE = np.uint64(33)


def mix(*values: np.ndarray) -> np.ndarray:
    """Hash of parallel uint64 arrays, fully mixed."""
    out = np.zeros(len(values[0]), np.uint64)
    for value in values:
        out = (out ^ value) * _GOLDEN
        out ^= out >> _THIRTY_THREE
        out *= _C1
        out ^= out >> _THIRTY_THREE
        out *= _C2
        out ^= out >> _THIRTY_THREE
    return out


def array(table: pa.Table, name: str) -> np.ndarray:
    """A column of numbers without nulls."""
    return table.column(name).to_numpy()


def runs(*fields: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find stretches of rows equal in all `fields`, which are sorted: starts and sizes, int64."""
    size = len(fields[0])
    change = np.zeros(size, bool)
    change[:1] = True
    for values in fields:
        change[1:] |= values[1:] != values[:-1]
    starts = np.flatnonzero(change).astype(np.int64)
    return starts, np.diff(np.append(starts, size))


def group_of(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Number of the run that each row stands in."""
    return np.repeat(np.arange(len(starts)), sizes)


def distinct(major: tuple[np.ndarray, ...], minor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row: distinct `minor` values among rows of equal `major`, and the least of them."""
    order = np.lexsort((minor, *reversed(major)))
    sorted_major = [m[order] for m in major]
    sorted_minor = minor[order]
    starts, sizes = runs(*sorted_major)
    fresh = np.zeros(len(order), np.int64)
    fresh[runs(*sorted_major, sorted_minor)[0]] = 1
    number = np.add.reduceat(fresh, starts) if len(starts) else fresh
    count = np.empty(len(order), np.int64)
    least = np.empty(len(order), minor.dtype)
    count[order] = np.repeat(number, sizes)
    least[order] = np.repeat(sorted_minor[starts], sizes)
    return count, least


def places(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Shard and row, which name a document where its id does not stand."""
    return array(table, "shard"), array(table, "row")


def document_hash(shard: np.ndarray, row: np.ndarray) -> np.ndarray:
    """A number for each document."""
    return mix(shard, row.astype(np.uint64))


def home(shard: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The partition in which the rows of a document meet: one for 256 neighbours in a shard.

    So an added shard has rows in few partitions; and a host of any size splits.
    """
    return mix(shard, row.astype(np.uint64) >> np.uint64(8))


def fraction(text: str) -> Fraction:
    """A decimal or fraction as it is written; 0 where it is neither, or finer than 2**-30."""
    try:
        found = Fraction(text)
    except (ValueError, ZeroDivisionError):
        return Fraction(0)
    return found if found.denominator <= 1 << 30 else Fraction(0)


def ids_of(table: pa.Table) -> pa.FixedSizeBinaryArray:
    """The column `id` as one array."""
    found = table.column("id").combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def id_order(table: pa.Table, *major: np.ndarray) -> np.ndarray:
    """Positions sorted by `major`, then by id and shard."""
    ids = ids_of(table)
    raw = np.empty((0, 2), ">u8")
    if len(ids):
        raw = np.frombuffer(ids.buffers()[1], ">u8")[2 * ids.offset : 2 * (ids.offset + len(ids))]
    pair = raw.reshape(-1, 2)
    return np.lexsort((array(table, "shard"), pair[:, 1], pair[:, 0], *reversed(major)))


# Who a document is stands once, in its page row, as a list of one; 26 bytes less for all others.
DOCUMENT = pa.struct([KEY.field("id"), *RANK])
ROWS = pa.schema([
    pa.field("partition", pa.uint64(), nullable=False),  # of page rows by host, else by what it is
    pa.field("kind", pa.uint8(), nullable=False),
    KEY.field("shard"),
    KEY.field("row"),
    pa.field("host", pa.uint64(), nullable=False),  # 0: none
    pa.field("page", pa.uint64(), nullable=False),  # of the URL
    pa.field("value", pa.uint64(), nullable=False),  # line: its words; page: its text
    pa.field("words", pa.uint16(), nullable=False),  # of a line, at most 65,535
    pa.field("mark", pa.uint16(), nullable=False),  # line: see `mark_of`; page: anchors
    pa.field("before", pa.uint16(), nullable=False),  # of a line: tag of its neighbour; 0: none
    pa.field("after", pa.uint16(), nullable=False),
    pa.field("document", pa.list_(DOCUMENT), nullable=False),
])  # fmt: skip
# What was counted: of lines and anchors that enough pages share, and of all pages.
SEEN = pa.schema([
    *(f for f in ROWS if f.name not in {"before", "after"}),
    pa.field("pages", pa.uint32(), nullable=False),  # that have it; page: of its host
    pa.field("flag", pa.uint8(), nullable=False),
])  # fmt: skip
MANY = 255


def mark_of(literals: np.ndarray, notices: np.ndarray) -> np.ndarray:
    """Literals and words of notices of a line, each at most 255."""
    both = np.minimum(literals, MANY) | np.minimum(notices, MANY) << 8
    return both.astype(np.uint16)


def documents_of(table: pa.Table) -> pa.Array:
    """The column `document` of page rows."""
    fields = [table.column(f.name).combine_chunks() for f in DOCUMENT]
    flat = [pa.concat_arrays(f.chunks) if isinstance(f, pa.ChunkedArray) else f for f in fields]
    inner = pa.StructArray.from_arrays(flat, fields=list(DOCUMENT))
    return pa.ListArray.from_arrays(pa.array(np.arange(len(inner) + 1, dtype=np.int32)), inner)


def no_documents(rows: int) -> pa.Array:
    """The column `document` of other rows."""
    empty = pa.array([], DOCUMENT)
    return pa.ListArray.from_arrays(pa.array(np.zeros(rows + 1, np.int32)), empty)
