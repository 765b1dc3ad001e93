"""Kernels over Arrow's UTF-8 buffers: text hash, tokens, shingles, sketch. Pairs: `_kernels_pairs`.

Tokens. ASCII letters and digits, lower-cased, and bytes >= 0x80 make words; all else separates.
Some non-ASCII characters separate too: the block U+0080-00BF (no-break space, quotation marks),
U+2000-207F (dashes, spaces, quotation marks), U+3000-303F and the full-width marks U+FF00-FF0F.
A character of a script without spaces (U+3040-9FFF: kana, Han and their kin; Han beyond U+20000;
Thai, Lao, Tibetan, Burmese, Khmer) is a token of its own, so a mixed document has no cliff: n
tokens in a row are a word n-gram where there are spaces and a character n-gram where there are
none. Other letters keep their case.

The scan is free of branches on ASCII text: per byte h = h * MUL[c] + LOW[c], where MUL is 0 for a
separator, and the hash is written at every byte but the cursor moves only at the end of a word.
That is one multiply-add of latency a byte; a branch per word would cost a mispredict each.

Integers only; the same bytes on every CPU. Plain-Python twins: tests/naive_dedup.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

U = np.uint64
GOLDEN = U(0x9E3779B97F4A7C15)
BASE = U(0xA24BAED4963EE407)  # odd; word bytes are digits of a number in this base, modulo 2**64
STEP = U(0x9FB21C651E98DF25)  # odd; base of the tokens of a shingle and of the lanes of a band
SPREAD = U(0xD6E8FEB86659FD93)
LOW32 = U(0xFFFFFFFF)
FULL = U(0xFFFFFFFFFFFFFFFF)
DISTINCT = 4096  # slots of the table that drops repeated shingles; half of them are used at most
BLOCK = 256  # shingles that a round of the sketch mixes at a time
PATIENT = 8  # rounds of the sketch before repeated shingles are dropped; 3 for more than MANY:
MANY = 1024  # so many distinct ones fill 256 lanes in 2 rounds, so more rounds mean repeats

# What a byte is: 0 separates, 1 belongs to a word, 2 needs a look at the bytes after it, 3 begins a
# token of three bytes if the next is at least _FROM (this short cut makes Han scan 1.7 x faster).
_KIND = np.zeros(256, np.uint8)
_KIND[0x80:] = 1
_KIND[[0xC2, 0xE1, 0xE2, 0xEF, 0xF0]] = 2
_KIND[[0xE0, 0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9]] = 3
_FROM = np.zeros(256, np.uint8)
_FROM[0xE0] = 0xB8  # Thai, Lao, Tibetan; below it are scripts of India, which have spaces
_FROM[0xE3] = 0x81  # kana and other signs of East Asia; below it are its marks
_LOWER = np.arange(256, dtype=np.uint64)
for _first, _last in ((48, 58), (65, 91), (97, 123)):
    _KIND[_first:_last] = 1
_LOWER[65:91] += U(32)
_LOW = np.where(_KIND > 0, _LOWER, U(0))
_MUL = np.where(_KIND > 0, BASE, U(0))
_SPACE = np.zeros(256, np.uint8)
_SPACE[[9, 10, 11, 12, 13, 32]] = 1


@njit(cache=True, nogil=True, inline="always")
def _fmix(x):
    """Finaliser of MurmurHash3: a bijection of 64 bits in which every bit moves every bit."""
    x ^= x >> U(33)
    x *= U(0xFF51AFD7ED558CCD)
    x ^= x >> U(33)
    x *= U(0xC4CEB9FE1A85EC53)
    x ^= x >> U(33)
    return x


@njit(cache=True, nogil=True, inline="always")
def _rotl(x, by):
    return (x << U(by)) | (x >> U(64 - by))


@njit(cache=True, nogil=True)
def _longest(offsets):
    longest = 0
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    return longest


@njit(cache=True, nogil=True)
def hash_texts(data, offsets, out):
    """MurmurHash3 x64 128 (seed 0) of each text with runs of ASCII white space made one space.

    `out` uint64[rows, 2]. White space at both ends goes; an empty text is (0, 0).
    """
    rows = len(offsets) - 1
    longest = _longest(offsets)
    words = np.zeros(longest // 8 + 3, np.uint64)
    text = words.view(np.uint8)  # little-endian machines alone: Numba runs on no other
    c1 = U(0x87C37B91114253D5)
    c2 = U(0x4CF5AD432745937F)
    for row in range(rows):
        size = 0
        blank = 1  # the byte before was white space: text begins as if it were
        for at in range(offsets[row], offsets[row + 1]):
            c = data[at]
            space = _SPACE[c]
            text[size] = 32 if space else c
            size += 1 - (space & blank)
            blank = space
        size -= blank if size else 0
        blocks = size // 16
        for at in range(size, blocks * 16 + 16):  # the tail is read as whole words
            text[at] = 0
        h1 = U(0)
        h2 = U(0)
        for block in range(blocks):
            h1 ^= _rotl(words[2 * block] * c1, 31) * c2
            h1 = (_rotl(h1, 27) + h2) * U(5) + U(0x52DCE729)
            h2 ^= _rotl(words[2 * block + 1] * c2, 33) * c1
            h2 = (_rotl(h2, 31) + h1) * U(5) + U(0x38495AB5)
        h2 ^= _rotl(words[2 * blocks + 1] * c2, 33) * c1
        h1 ^= _rotl(words[2 * blocks] * c1, 31) * c2
        h1 ^= U(size)
        h2 ^= U(size)
        h1 += h2
        h2 += h1
        h1 = _fmix(h1)
        h2 = _fmix(h2)
        h1 += h2
        out[row, 0] = h1
        out[row, 1] = h2 + h1


@njit(cache=True, nogil=True)
def own_bytes(data, edges, out):
    """Bytes of each stretch from its first to its last that is no white space, int64[n]."""
    for i in range(len(out)):
        first, last = edges[i], edges[i + 1]
        while first < last and _SPACE[data[first]]:
            first += 1
        while last > first and _SPACE[data[last - 1]]:
            last -= 1
        out[i] = last - first


@njit(cache=True, nogil=True)
def _special(data, at, end):
    """Width of the character at a lead byte, and 0: it separates, 1: word byte, 2: token."""
    c = data[at]
    if at + 1 >= end:
        return 1, 1
    d = data[at + 1]
    if c == 0xC2:
        return 2, 0
    if at + 2 >= end:
        return 1, 1
    if c == 0xE2:
        return (3, 0) if d <= 0x81 else (1, 1)
    if c == 0xEF:
        return (3, 0) if d == 0xBC and data[at + 2] < 0x90 else (1, 1)
    if c == 0xE3 and d == 0x80:
        return 3, 0
    if c == 0xF0:
        return (4, 2) if d >= 0xA0 and at + 3 < end else (1, 1)
    if c == 0xE1 and (0x80 <= d <= 0x82 or 0x9E <= d <= 0x9F):
        return 3, 2
    return 1, 1


@njit(cache=True, nogil=True)
def _scan(data, start, end, tokens):
    """Write one hash per token; return how many, and how many of them are unspaced characters."""
    count = 0
    single = 0
    inside = np.uint8(0)
    h = U(0)
    at = start
    while at < end:
        c = data[at]
        kind = _KIND[c]
        if kind >= 2:
            if kind == 3 and at + 2 < end and data[at + 1] >= _FROM[c]:
                tokens[count] = h
                count += inside
                inside = np.uint8(0)
                h = U(0)
                tokens[count] = (U(c) * BASE + U(data[at + 1])) * BASE + U(data[at + 2])
                count += 1
                single += 1
                at += 3
                continue
            width, what = _special(data, at, end)
            if what != 1:
                tokens[count] = h
                count += inside
                inside = np.uint8(0)
                h = U(0)
                if what == 2:
                    for k in range(at, at + width):
                        h = h * BASE + U(data[k])
                    tokens[count] = h
                    count += 1
                    single += 1
                    h = U(0)
                at += width
                continue
            kind = np.uint8(1)
        tokens[count] = h
        count += inside & (kind ^ np.uint8(1))
        h = h * _MUL[c] + _LOW[c]
        inside = kind
        at += 1
    tokens[count] = h
    return count + inside, single


@njit(cache=True, nogil=True)
def _shingles(tokens, count, n, out):
    """Fully mixed hashes of every run of `n` tokens (rolling, so any n costs the same)."""
    if count < n:
        return 0
    top = U(1)
    for _ in range(n):
        top *= STEP
    for i in range(count):
        x = tokens[i]
        tokens[i] = (x ^ (x >> U(32))) * SPREAD
    s = U(0)
    for i in range(n - 1):
        s = s * STEP + tokens[i]
    last = U(0)
    for i in range(n - 1, count):
        s = s * STEP + tokens[i] - last * top
        last = tokens[i - n + 1]
        out[i - n + 1] = _fmix(s)
    return count - n + 1


@njit(cache=True, nogil=True)
def _distinct(shingles, count, slots):
    """Drop repeats in place; give up, changing nothing that matters, when there are too many."""
    slots[:] = U(0)
    kept = 0
    for i in range(count):
        x = shingles[i]
        at = np.int64(x & U(DISTINCT - 1))
        while slots[at] != U(0) and slots[at] != x:
            at = (at + 1) & (DISTINCT - 1)
        if slots[at] != x or x == U(0):
            if kept >= DISTINCT // 2:  # the rest stays as it is: repeats cost time, not truth
                for rest in range(i, count):
                    shingles[kept] = shingles[rest]
                    kept += 1
                return kept
            slots[at] = x
            shingles[kept] = x
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def sketch(shingles, count, lanes, slots):
    """Fast Similarity Sketching (Dahlgaard, Knudsen, Thorup, FOCS 2017) of `shingles[:count]`.

    Fills `lanes` uint64[k]. Two sets agree in a lane with probability J; on small sets the variance
    is half that of k independent hashes. A lane is round << 32 | value and the smallest wins, so
    the first round that fills a lane decides. Round r hashes every shingle anew with a full mixer,
    fmix64(h ^ r * golden); one multiply instead costs 5 points of recall on sets of 20 shingles.
    After k rounds, lanes still empty take the minimum of a round of their own, so that one shingle
    ends too. Repeats do not matter; `slots` uint64[DISTINCT] is scratch.
    """
    k = len(lanes)
    wide = U(k)
    block = slots[:BLOCK]
    lanes[:] = FULL
    if count == 0:
        return
    patient = PATIENT if count <= MANY else 3
    for i in range(count):
        x = shingles[i]
        lane = ((x >> U(32)) * wide) >> U(32)
        x &= LOW32
        lanes[lane] = min(lanes[lane], x)
    mixed = count
    look = k  # fewer cannot have filled them
    for r in range(1, k):
        if mixed >= look:
            empty = 0
            for lane in range(k):
                empty += lanes[lane] == FULL
            if empty == 0:
                return
            look = mixed + k // 4  # a round too many costs time alone: the rounds before it win
        mixed += count
        if r == patient:
            count = _distinct(shingles, count, slots)
        salt = U(r) * GOLDEN
        front = U(r) << U(32)
        for begin in range(0, count, BLOCK):
            some = min(BLOCK, count - begin)
            for i in range(some):  # apart from the scatter, so that it becomes SIMD: 15 % faster
                block[i] = _fmix(shingles[begin + i] ^ salt)
            for i in range(some):
                x = block[i]
                lane = ((x >> U(32)) * wide) >> U(32)
                lanes[lane] = min(lanes[lane], (x & LOW32) | front)
    for lane in range(k):
        if lanes[lane] == FULL:
            salt = U(k + lane) * GOLDEN
            front = U(k + lane) << U(32)
            for i in range(count):
                lanes[lane] = min(lanes[lane], (_fmix(shingles[i] ^ salt) & LOW32) | front)


@njit(cache=True, nogil=True)
def _keys(lanes, out):
    """Keys of the bands of one sketch."""
    per = len(lanes) // len(out)
    for band in range(len(out)):
        key = U(0)
        for j in range(band * per, band * per + per):
            key = key * STEP + lanes[j]
        out[band] = _fmix(key ^ (U(band + 1) * GOLDEN))


@njit(cache=True, nogil=True)
def band_keys(data, offsets, ngram, char_ngram, k, bands_out, shingles_out):
    """Scan, shingle, sketch and band every text.

    `bands_out` uint64[rows, bands]: keys that hold their band's number, so that equal keys mean the
    same band; zeros for a text of fewer tokens than a shingle. `shingles_out` int32[rows]: shingles
    with repeats, 0 for such a text. The shingle is `char_ngram` tokens long where more than half
    of the tokens are unspaced characters, else `ngram`.
    """
    rows = len(offsets) - 1
    longest = _longest(offsets)
    tokens = np.empty(longest // 2 + 2, np.uint64)  # a token takes a byte and a separator, or 3
    hashes = np.empty(longest // 2 + 2, np.uint64)
    slots = np.empty(DISTINCT, np.uint64)
    lanes = np.empty(k, np.uint64)
    for row in range(rows):
        count, single = _scan(data, offsets[row], offsets[row + 1], tokens)
        n = char_ngram if 2 * single > count else ngram
        count = _shingles(tokens, count, n, hashes)
        shingles_out[row] = min(count, 0x7FFFFFFF)
        if count == 0:
            bands_out[row, :] = U(0)
            continue
        sketch(hashes, count, lanes, slots)
        _keys(lanes, bands_out[row])


@njit(cache=True, nogil=True)
def shingle_lists(data, offsets, ngram, char_ngram, starts, out, ends):
    """Write each text's shingle hashes, with repeats, at `out[starts[row]:]`; set `ends`."""
    rows = len(offsets) - 1
    longest = _longest(offsets)
    tokens = np.empty(longest // 2 + 2, np.uint64)
    for row in range(rows):
        count, single = _scan(data, offsets[row], offsets[row + 1], tokens)
        n = char_ngram if 2 * single > count else ngram
        ends[row] = starts[row] + _shingles(tokens, count, n, out[starts[row] :])


@njit(cache=True, nogil=True)
def spell(data, offsets, text, begins, ends, tokens_out, single_out):
    """Write each text's tokens as bytes, lower-cased, with one space after each.

    `text` uint8[2 * bytes + rows]; token t is text[begins[t]:ends[t]], int64[bytes]. Sets for each
    row the number of tokens and how many of them are unspaced characters, int64[rows].
    """
    size = 0
    count = 0
    for row in range(len(offsets) - 1):
        first = count
        single = 0
        begin = size
        at = offsets[row]
        end = offsets[row + 1]
        while at < end:
            c = data[at]
            kind = _KIND[c]
            width = 1
            what = 1 if kind else 0
            if kind >= 2:
                if kind == 3 and at + 2 < end and data[at + 1] >= _FROM[c]:
                    width, what = 3, 2
                else:
                    width, what = _special(data, at, end)
            if what == 1:
                text[size] = _LOWER[c]
                size += 1
                at += 1
                continue
            if size > begin:
                begins[count] = begin
                ends[count] = size
                count += 1
                text[size] = 32
                size += 1
                begin = size
            if what == 2:
                for k in range(at, at + width):
                    text[size] = data[k]
                    size += 1
                begins[count] = begin
                ends[count] = size
                count += 1
                single += 1
                text[size] = 32
                size += 1
                begin = size
            at += width
        if size > begin:
            begins[count] = begin
            ends[count] = size
            count += 1
            text[size] = 32
            size += 1
        tokens_out[row] = count - first
        single_out[row] = single


@njit(cache=True, nogil=True)
def band_lanes(lanes, counts, bands_out):
    """Keys of the bands of signatures uint64[rows, k], as `band_keys` makes them; 0 if none."""
    for row in range(len(lanes)):
        if counts[row]:
            _keys(lanes[row], bands_out[row])
        else:
            bands_out[row, :] = U(0)
