# mypy: ignore-errors
"""Text to sums of a linear model's rows, as the fastText library would take them, in one pass.

A stretch of 512 words at a time: words are cut and hashed (FNV-1a: four cycles a byte, whatever one
does), then looked up, then their n-grams are made; all give row numbers of one table. At last the
rows are added, four columns in registers at a time: no row waits for another, so a core has ten
misses of the cache under way and not one. That is what the speed comes from; the table of an
unpruned model (2,000,000 rows) is far larger than any cache.

The table holds int32 in fixed point and the sums are int64: exact, and so the same in any order, on
any CPU. `exp` is ours: sums and products of float64 in a fixed order, where libraries differ in
the last bit (`_kernels_linear.py`).

Tuples that the kernels take:

    words    slots uint64[2^k, 4] (open table: an entry's last eight bytes, its first eight, its
             size in bytes, 1 + its number, where 0 is free: one line of the cache settles a word),
             pool uint8 and bounds int64[entries + 1] (the entries' bytes), count (how many of the
             entries are words; the rest are labels, which a text's words may not be)
    scheme   wordNgrams, bucket, minn, maxn as in the model's header
    buckets  bits uint64 and ranks uint32 (which buckets a pruned model kept); empty: all
"""

# ruff: noqa: SIM102, SIM110 - Numba compiles loops

from __future__ import annotations

import numpy as np
from numba import njit

from .._kernels_common import _load8, _ones

COMMON = "60450845"  # version of _kernels_common

STRETCH = 512  # words
ROWS = 4096  # row numbers held back until they are added
MEMO = 16384  # new words whose subwords' sum is kept
LOW = np.uint64(0xFFFFFFFF)
FNV_BASIS, FNV_PRIME = np.uint64(2166136261), np.uint64(16777619)
NGRAM_PRIME = np.uint64(116049371)
SPACES = np.uint64(1 << 0 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12 | 1 << 13 | 1 << 32)
EOS_KEY, EOS_HASH = np.uint64(0x3C2F733E), np.uint64(3617362777)  # of "</s>"
LABEL = np.frombuffer(b"__label__", np.uint8)
ONE, EIGHT = np.uint64(1), np.uint64(8)
_NONE = np.int64(-1)


@njit(cache=True, nogil=True, forceinline=True)
def _step(h, byte):
    """One byte of the library's FNV-1a, which takes bytes as signed: 0xE9 is 0xFFFFFFE9."""
    b = np.uint64(byte)
    signed = b | (b >> np.uint64(7)) * np.uint64(0xFFFFFF00)
    return ((h ^ signed) * FNV_PRIME) & LOW


@njit(cache=True, nogil=True, forceinline=True)
def _wide(h):
    """The hash as the library keeps it in an int32, widened: the sign goes up."""
    return h | (h >> np.uint64(31)) * np.uint64(0xFFFFFFFF00000000)


@njit(cache=True, nogil=True, forceinline=True)
def _is_space(byte):
    return (byte <= 32) and (SPACES >> np.uint64(byte)) & np.uint64(1) != 0


@njit(cache=True, nogil=True)
def _same(data, start, pool, first, size):
    """Whether `size` bytes at data[start:] and at pool[first:] are the same."""
    for t in range(size):
        if data[start + np.uint64(t)] != pool[first + t]:
            return False
    return True


@njit(cache=True, nogil=True, forceinline=True)
def _look(slots, pool, bounds, at, key, data, start, size):
    """The entry of a word, or -1, from slot `at` on; `key` is its last eight bytes."""
    while slots[at, 3] != 0:
        if slots[at, 0] == key:
            entry = slots[at, 3] - np.uint64(1)
            if size < EIGHT:
                return np.int64(entry)  # the key holds all of it
            if slots[at, 2] == size and slots[at, 1] == _load8(data, start):
                if size <= 16 or _same(data, start, pool, bounds[entry], np.int64(size)):
                    return np.int64(entry)
        at = (at + np.uint64(1)) & np.uint64(len(slots) - 1)
    return _NONE


@njit(cache=True, nogil=True)
def entries(data, at, count, starts, sizes, counts, kinds):
    """Read the dictionary at `at`: words end in NUL, an int64 count and an int8 kind follow.

    Returns where it ends, or -1 - the number of the entry that the file ends in.
    """
    for i in range(count):
        starts[i] = at
        while at < len(data) and data[at] != 0:
            at += 1
        sizes[i] = at - starts[i]
        at += 1
        if at + 9 > len(data):
            return -1 - i
        value = np.uint64(0)
        for t in range(8):
            value |= np.uint64(data[at + t]) << np.uint64(8 * t)
        counts[i] = np.int64(value)
        kinds[i] = data[at + 8]
        at += 9
    return at


@njit(cache=True, nogil=True)
def index(pool, bounds, slots):
    """Fill the open table of `words`; of two equal entries the first is found."""
    mask = np.uint64(len(slots) - 1)
    for entry in range(len(bounds) - 1):
        h, key, size = FNV_BASIS, np.uint64(0), bounds[entry + 1] - bounds[entry]
        for t in range(bounds[entry], bounds[entry + 1]):
            h = _step(h, pool[t])
            key = (key << EIGHT) | np.uint64(pool[t])
        at = h & mask
        while slots[at, 3] != 0:
            at = (at + ONE) & mask
        slots[at, 0], slots[at, 2], slots[at, 3] = key, size, entry + 1
        if size >= 8:
            slots[at, 1] = _load8(pool, np.uint64(bounds[entry]))


@njit(cache=True, nogil=True, forceinline=True)
def _row(bucket, bits, ranks, count):
    """The table's row of a bucket, or -1 where it was pruned."""
    if len(bits) == 0:
        return np.int64(bucket) + count
    block, bit = bucket >> np.uint64(6), bucket & np.uint64(63)
    word = bits[block]
    if (word >> bit) & np.uint64(1) == 0:
        return _NONE
    below = word & ((np.uint64(1) << bit) - np.uint64(1))
    return np.int64(ranks[block]) + np.int64(_ones(below)) + count


@njit(cache=True, nogil=True)
def _add(table, rows, n, sums):
    """Add rows[:n] of the table to `sums`, four columns at a time."""
    for block in range(0, table.shape[1], 4):
        a, b, c, d = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        for i in range(n):
            row = rows[i]
            a += table[row, block]
            b += table[row, block + 1]
            c += table[row, block + 2]
            d += table[row, block + 3]
        sums[block] += a
        sums[block + 1] += b
        sums[block + 2] += c
        sums[block + 3] += d


@njit(cache=True, nogil=True, forceinline=True)
def _at(data, start, size, i):
    """Byte `i` of the word between its brackets: "<", its bytes, ">"."""
    if i == 0:
        return np.uint64(0x3C)
    if i > size:
        return np.uint64(0x3E)
    return np.uint64(data[start + np.uint64(i - 1)])


@njit(cache=True, nogil=True)
def _subwords(data, start, size, bucket, minn, maxn, bits, ranks, count, rows, n, table, sums):
    """Row numbers of the word's character n-grams; returns how many `rows` now holds."""
    total = size + 2
    for i in range(total):
        if _at(data, start, size, i) & np.uint64(0xC0) == np.uint64(0x80):
            continue  # not the beginning of a character
        h, j = FNV_BASIS, i
        for length in range(1, maxn + 1):
            if j >= total:
                break
            h = _step(h, _at(data, start, size, j))
            j += 1
            while j < total and _at(data, start, size, j) & np.uint64(0xC0) == np.uint64(0x80):
                h = _step(h, _at(data, start, size, j))
                j += 1
            if length >= minn and not (length == 1 and (i == 0 or j == total)):
                row = _row(h % np.uint64(bucket), bits, ranks, count)
                if row >= 0:
                    rows[n] = row
                    n += 1
                    if n == len(rows):
                        _add(table, rows, n, sums)
                        n = 0
    return n


@njit(cache=True, nogil=True)
def fold(pool, bounds, own, scheme, buckets, values, first, out, counts):
    """Rows of whole words, their character n-grams added once and for all.

    `values` float[rows, columns]: the model's rows, words before buckets, `first` of them words;
    `own` int32[entries]: the row of each entry in it, -1: unknown to this model. Into `out`
    float64[entries, columns] goes the sum, into `counts` int32[entries] how many rows it is of.
    """
    _, bucket, minn, maxn = scheme
    bits, ranks = buckets
    longest = 0
    for entry in range(len(own)):
        longest = max(longest, bounds[entry + 1] - bounds[entry])
    rows = np.empty((longest + 2) * max(maxn, 1) + 1, np.uint32)  # never full, never added
    columns = values.shape[1]
    nothing, sums = np.empty((0, 0), np.int32), np.empty(0, np.int64)
    for entry in range(len(own)):
        if own[entry] >= 0:
            counts[entry] = 1
            for c in range(columns):
                out[entry, c] = values[own[entry], c]
        size = bounds[entry + 1] - bounds[entry]
        start = bounds[entry]
        end = size == 4 and pool[start] == 0x3C and pool[start + 1] == 0x2F
        end = end and pool[start + 2] == 0x73 and pool[start + 3] == 0x3E
        if maxn <= 0 or end:
            continue
        n = _subwords(
            pool,
            np.uint64(start),
            size,
            bucket,
            minn,
            maxn,
            bits,
            ranks,
            first,
            rows,
            0,
            nothing,
            sums,
        )
        counts[entry] += n
        for i in range(n):
            for c in range(columns):
                out[entry, c] += values[rows[i], c]


@njit(cache=True, nogil=True)
def _cut(data, i, end, fresh, keys, starts, sizes):
    """Cut and hash words of data[i:end] until the arrays are full or the line ends.

    Returns how many, and where it stopped. A line ends in "</s>": after the text, or where that
    stands in it. Indices are unsigned: Numba would test the sign of each for negative ones.
    """
    for w in range(STRETCH):
        while i < end and _is_space(data[i]):
            i += ONE
        start, h, key = i, FNV_BASIS, np.uint64(0)
        while i < end:
            byte = data[i]
            if _is_space(byte):
                break
            h = _step(h, byte)
            key = (key << EIGHT) | np.uint64(byte)
            i += ONE
        if i == start:
            h, key = EOS_HASH, EOS_KEY
        fresh[w], keys[w], starts[w], sizes[w] = h, key, start, i - start
        if key == EOS_KEY:
            return w + 1, i
    return STRETCH, i


@njit(cache=True, nogil=True)
def words(data, offsets, out):
    """How many words each text has, int64[texts]: stretches without the library's blanks."""
    for text in range(len(offsets) - 1):
        count, blank = 0, True
        for i in range(offsets[text], offsets[text + 1]):
            now = _is_space(data[i])
            count += blank and not now
            blank = now
        out[text] = count


@njit(cache=True, nogil=True)
def sums(data, offsets, words, scheme, buckets, table, out):
    """Add the rows of each text's features: `out` int64[texts, columns] (zeros at first).

    `table` int32[words + buckets, columns], columns a multiple of four. The features are those of
    the library's `predict` on the text with its line feeds as spaces and one at the end.
    """
    ngrams, bucket, minn, maxn = scheme
    # Taken apart here: a tuple of arrays handed to an inner function costs counts of
    # references with each call.
    slots, pool, bounds, count = words
    bits, ranks = buckets
    mask = np.uint64(len(slots) - 1)
    hashes = np.empty(STRETCH + ngrams, np.uint64)
    keys = np.empty(STRETCH, np.uint64)
    starts, sizes = np.empty(STRETCH, np.uint64), np.empty(STRETCH, np.uint64)
    fresh, first = np.empty(STRETCH, np.uint64), np.empty(STRETCH, np.uint64)
    rows, fewer = np.empty(ROWS, np.uint32), np.empty(ROWS, np.uint32)
    # Texts repeat their words: the sum of a new word's subwords is kept until another word needs
    # the place. Sums are exact, so it does not show. `seen` tells words of up to 16 bytes apart.
    columns = table.shape[1]
    seen = np.zeros((MEMO if maxn > 0 else 0, 3), np.uint64)
    memos = np.empty((len(seen), columns), np.int64)
    for text in range(len(offsets) - 1):
        i, end = np.uint64(offsets[text]), np.uint64(offsets[text + 1])
        total = out[text]
        n, carried, open_ = 0, 0, True
        while open_:
            # 1. Cut and hash.
            w, i = _cut(data, i, end, fresh, keys, starts, sizes)
            open_ = keys[w - 1] != EOS_KEY
            # 2. Look up. First slots are fetched without a branch, so that misses overlap.
            for t in range(w):
                at = fresh[t] & mask
                first[t] = slots[at, 3] if slots[at, 0] == keys[t] else np.uint64(0)
            kept = carried
            for t in range(w):
                if first[t] != 0 and sizes[t] < EIGHT:
                    entry = np.int64(first[t]) - 1
                else:
                    entry = _look(
                        slots, pool, bounds, fresh[t] & mask, keys[t], data, starts[t], sizes[t]
                    )
                if entry >= count:
                    continue  # a label
                if entry >= 0:
                    rows[n] = entry
                    n += 1
                    if n == ROWS:
                        _add(table, rows, n, total)
                        n = 0
                elif keys[t] != EOS_KEY:
                    if sizes[t] >= len(LABEL) and data[starts[t]] == 0x5F:
                        if _same(data, starts[t], LABEL, 0, len(LABEL)):
                            continue
                    size = np.int64(sizes[t])
                    if maxn > 0 and size > 16:
                        n = _subwords(
                            data, starts[t], size, bucket, minn, maxn, bits, ranks, count, rows, n,
                            table, total,
                        )  # fmt: skip
                    elif maxn > 0:
                        at = fresh[t] & np.uint64(MEMO - 1)
                        head = _load8(data, starts[t]) if size >= 8 else np.uint64(size)
                        if seen[at, 0] != keys[t] or seen[at, 1] != head or seen[at, 2] != size:
                            seen[at, 0], seen[at, 1], seen[at, 2] = keys[t], head, size
                            # At most 18 * 18 rows, so that nothing of it is added to `total`.
                            more = _subwords(
                                data, starts[t], size, bucket, minn, maxn, bits, ranks, count,
                                fewer, 0, table, total,
                            )  # fmt: skip
                            for c in range(columns):
                                memos[at, c] = 0
                            for g in range(more):
                                for c in range(columns):
                                    memos[at, c] += table[fewer[g], c]
                        for c in range(columns):
                            total[c] += memos[at, c]
                hashes[kept] = _wide(fresh[t])
                kept += 1
            # 3. n-grams of words: those that begin with a carried word end in this stretch.
            if ngrams > 1 and bucket > 0:
                for a in range(kept):
                    h = hashes[a]
                    for b in range(a + 1, min(kept, a + ngrams)):
                        h = h * NGRAM_PRIME + hashes[b]
                        if b < carried:
                            continue
                        row = _row(h % np.uint64(bucket), bits, ranks, count)
                        if row >= 0:
                            rows[n] = row
                            n += 1
                            if n == ROWS:
                                _add(table, rows, n, total)
                                n = 0
                carried = min(kept, ngrams - 1)
                for t in range(carried):
                    hashes[t] = hashes[kept - carried + t]
        _add(table, rows, n, total)
