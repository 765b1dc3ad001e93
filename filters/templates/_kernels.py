"""Kernels of the template stage: words with masks, lines, anchors.

Words. Runs of ASCII letters and digits and of bytes >= 0x80, hashed in lower case (of ASCII alone);
spaces and punctuation of U+0080-00BF, U+2000-207F, U+3000-303F and the full-width marks separate;
an ideograph or kana is a word of its own; letters of other scripts without spaces (Thai, Lao,
Myanmar, Khmer) are cut into words of 4 on average where two of them meet that hash so, for a letter
is no word: five of them are a syllable, which all texts share. Tibetan parts syllables by a mark.

Masks. A word is masked when it holds a digit, when it begins with a capital and does not begin a
sentence, or when it is rare: not in the table of common words (a bit for each of 2**20 hashes). The
last rule speaks only where the table knows two thirds of a text's words at least, so that a
language that it does not know, or by its neighbours alone, is not masked away. A run of masked
words counts as one, so a slot is one place whatever fills it.

Integers only; the same on every CPU. Plain-Python twins: tests/naive_templates.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .._kernels_common import (
    ALL,
    BASE,
    LITERAL,
    MASK,
    NOTHING,
    U,
    _ascii_word,
    _fmix,
    _load8,
)

COMMON = "60450845"  # version of _kernels_common
SPREAD = U(0xD6E8FEB86659FD93)
TOLD = 3  # literals by which a line is known whatever its masked words are

DIGIT, NAME, RARE = 1, 2, 3  # why a word is masked; LITERAL, 0: it is not

# 1 belongs to a word, 2 needs a look at the bytes after it; 0 separates, and so do 3, which ends a
# sentence, 4, a sign, and 5, the end of a line.
SIGNS = b"#$%&*+-/<=>@^|~"  # marks that make another line of the same words: `C`, `C++`, `C#`
_KIND = np.zeros(256, np.uint8)
_KIND[0x80:] = 1
for _first, _last in ((48, 58), (65, 91), (97, 123)):
    _KIND[_first:_last] = 1
_KIND[[0xC2, *range(0xE0, 0xEA), 0xEF, 0xF0]] = 2
_KIND[[33, 46, 63]] = 3
_KIND[list(SIGNS)] = 4
_KIND[10] = 5
_LOWER = np.arange(256, dtype=np.uint64)
_LOWER[65:91] += U(32)
# Of a byte, in one look: its digit in a hash, 256 for a numeral, 512 for a byte of a word.
_BYTE = _LOWER.copy()
_BYTE[48:58] |= U(256)
_BYTE[_KIND == 1] |= U(512)
_VALUE, _NUMERAL, _INSIDE = U(255), U(256), U(512)


@njit(cache=True, nogil=True)
def longest(offsets):
    """Bytes of the longest text."""
    most = 0
    for row in range(len(offsets) - 1):
        most = max(most, offsets[row + 1] - offsets[row])
    return most


@njit(cache=True, nogil=True)
def _wide(data, at, end):
    """Width of the character at a lead byte, and what it is.

    0: it separates, 1: byte of a word, 2: a word, 3: letter of a script without spaces.

    A lead byte without the bytes that follow it is a word byte: a line feed is never swallowed.
    """
    c = data[at]
    d = data[at + 1] if at + 1 < end else 0
    if d < 0x80:
        return 1, 1
    if c == 0xC2:
        return 2, 0
    e = data[at + 2] if at + 2 < end else 0
    if e < 0x80:
        return 1, 1
    if (
        (c == 0xE2 and d <= 0x81)
        or (c == 0xEF and d == 0xBC and e < 0x90)
        or (c == 0xE3 and d == 0x80)
    ):
        return 3, 0
    if 0xE3 <= c <= 0xE9:  # kana, ideographs
        return 3, 2
    if c == 0xE0 and d >= 0xB8:  # Thai and Lao; Tibetan has a mark between syllables
        if d < 0xBC:
            return 3, 3
        return 3, 0 if d == 0xBC and 0x8B <= e <= 0x94 else 1
    if c == 0xE1 and (d <= 0x81 or (d == 0x82 and e < 0xA0)):  # Myanmar
        return 3, 0 if d == 0x81 and 0x8A <= e <= 0x8B else 3
    if c == 0xE1 and 0x9E <= d <= 0x9F:  # Khmer
        return 3, 0 if d == 0x9F and 0x94 <= e <= 0x96 else 3
    if c == 0xF0 and d >= 0xA0 and at + 3 < end and data[at + 3] >= 0x80:
        return 4, 2
    return 1, 1


@njit(cache=True, nogil=True)
def _capital(data, at, end):
    """Whether a word that begins beyond ASCII begins with a capital: Latin, Greek, Cyrillic."""
    c = data[at]
    if at + 1 >= end:
        return False
    d = data[at + 1]
    if c == 0xC3:
        return 0x80 <= d <= 0x9E
    if c == 0xCE:
        return 0x86 <= d <= 0xAB
    return c == 0xD0 and d < 0xB0


@njit(cache=True, nogil=True)
def _parts(data, at):
    """Whether a word begins at a letter of three bytes that stands after another: one in four."""
    h = NOTHING
    for k in range(at - 3, at + 3):
        h = h * BASE + U(data[k])
    return _fmix(h) & U(3) == NOTHING


@njit(cache=True, nogil=True, inline="always")
def _put(h, part, shift, byte):
    """One more byte into a hash of which `part` has the last ones, `shift` bits of them."""
    part |= byte << shift
    if shift == U(56):
        return h * BASE + part, NOTHING, NOTHING
    return h, part, shift + U(8)


@njit(cache=True, nogil=True, inline="always")
def _read_word(data, begin, end, width, what):
    """Hash of the word at `begin`, the byte after it, and whether it holds a numeral (not 0).

    `width` and `what` are those of its first character, as `_wide` tells them. Digits of the hash
    are eight bytes each, and words of ASCII are read so.
    """
    at = begin
    h = NOTHING
    numeral = NOTHING
    whole = False
    while what < 2 and at + 8 <= end:
        x = _load8(data, at)
        size, letter, digit = _ascii_word(x)
        if size:
            keep = ALL >> U(64 - 8 * size)
            numeral |= digit & keep
            h = h * BASE + ((x | letter >> U(2)) & keep)
            at += size
        if size < 8:
            whole = data[at] < 0x80
            break
    if not whole:
        at = begin
        h = NOTHING
        numeral = NOTHING
        part = NOTHING
        shift = NOTHING
        while at < end and what < 2:
            byte = _BYTE[data[at]]
            if byte & _INSIDE == NOTHING:
                kind = _KIND[data[at]]
                if kind != 2 or _wide(data, at, end)[1] != 1:
                    break
            numeral |= byte & _NUMERAL
            h, part, shift = _put(h, part, shift, byte & _VALUE)
            at += 1
        # Letters become words of 4 on average, cut between the same two wherever they stand.
        while what >= 2:
            for _ in range(min(width, end - at)):
                h, part, shift = _put(h, part, shift, U(data[at]))
                at += 1
            if what == 2 or at == end or _KIND[data[at]] != 2:
                break
            width, what = _wide(data, at, end)
            if what != 3 or _parts(data, at):
                break
        h = h * BASE + part if shift else h
    return _fmix((h ^ (h >> U(32))) * SPREAD), at, numeral


@njit(cache=True, nogil=True, inline="always")
def _line(words, signs):
    """Digest of a line: of its words, in their order, and of its signs."""
    return _fmix(words + signs * SPREAD)


@njit(cache=True, nogil=True)
def scan(data, start, end, common, words, masks, places, signs):
    """Words of one text: hashes, masks, and (first byte, byte after, line) in `places` int64[n, 3].

    Returns how many. Lines are counted from 0 at every line feed; `signs` uint64[lines] takes a
    number for the signs of each, in their order.
    """
    count = 0
    known = 0
    letters = 0
    line = 0
    sign = NOTHING
    initial = True
    at = start
    while at < end:
        c = data[at]
        kind = _KIND[c]
        if kind == 0 or kind > 2:
            if kind == 4:
                sign = sign * BASE + U(c)
            elif kind == 5:
                signs[line] = sign
                sign = NOTHING
                line += 1
                initial = True
            elif kind == 3:
                initial = True
            at += 1
            continue
        width, what = _wide(data, at, end) if kind == 2 else (1, 1)
        if what == 0:
            at += width
            continue
        begin = at
        single = what >= 2
        h, at, numeral = _read_word(data, begin, end, width, what)
        digit = numeral != NOTHING
        capital = (c >= 65) & (c <= 90) if c < 0x80 else _capital(data, begin, at)
        name = capital & (not initial)
        bit = h >> U(44)
        seen = common[bit >> U(3)] >> np.uint8(bit & U(7)) & 1
        # Without branches: which of these a word is, no processor guesses.
        plain = (not digit) & (not single) & (not name)
        letters += plain
        known += plain & seen
        mask = RARE if plain & (seen == 0) else LITERAL
        mask = NAME if name & (not single) else mask
        mask = DIGIT if digit else mask
        words[count] = h
        masks[count] = mask
        places[count, 0] = begin
        places[count, 1] = at
        places[count, 2] = line
        count += 1
        initial = False
    signs[line] = sign
    if 3 * known < 2 * letters:
        for i in range(count):
            if masks[i] == RARE:
                masks[i] = LITERAL
    return count


@njit(cache=True, nogil=True)
def lines_of(data, offsets, digests, lines, ends):
    """All lines of all texts; those of row i end at `ends[i]`.

    `digests` uint64[lines], those of `survey`; `lines` int64[lines, 3]: first byte, byte after (the
    line feed included), words. A line feed at the end begins no line.
    """
    number = 0
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        while at < end:
            begin = at
            exact = NOTHING
            sign = NOTHING
            count = 0
            while at < end:
                kind = _KIND[data[at]]
                if kind == 0 or kind > 2:
                    if kind == 5:
                        break
                    if kind == 4:
                        sign = sign * BASE + U(data[at])
                    at += 1
                    continue
                width, what = _wide(data, at, end) if kind == 2 else (1, 1)
                if what == 0:
                    at += width
                    continue
                h, at, _ = _read_word(data, at, end, width, what)
                exact = exact * BASE + h
                count += 1
            at = min(at + 1, end)
            digests[number] = _line(exact, sign)
            lines[number, 0] = begin
            lines[number, 1] = at
            lines[number, 2] = count
            number += 1
        ends[row] = number


@njit(cache=True, nogil=True)
def survey(data, offsets, common, notices, n, anchors, pages, lines, marks, texts):
    """Lines and anchors of every text; returns the number of lines.

    `anchors` uint64[rows, k]: the k least hashes of the distinct n-grams of masked items with at
    least two literals, 0 where there are fewer. `pages` int32[rows, 2]: words, anchors.
    `lines` uint64[lines, 2]: hash of the words, hash of the masked items. `marks` int32[lines, 6]:
    row, words, literals, words that notices use, tags of the line before and after (0 at the ends
    of the page). Lines without words are left out. `texts` uint64[rows]: hash of all words.
    """
    room = longest(offsets) // 2 + 2  # a word takes a byte and a separator, or more
    words = np.empty(room, np.uint64)
    masks = np.empty(room, np.uint8)
    places = np.empty((room, 3), np.int64)
    items = np.empty(room + 1, np.uint64)
    signs = np.empty(2 * room, np.uint64)
    top = U(1)
    for _ in range(n):
        top *= BASE
    k = anchors.shape[1]
    total = 0
    for row in range(len(offsets) - 1):
        count = scan(data, offsets[row], offsets[row + 1], common, words, masks, places, signs)
        i = 0
        size = 0
        hidden = False  # the word before is masked, of whatever line
        text = NOTHING
        left = np.int32(0)
        while i < count:
            line = places[i, 2]
            exact = NOTHING
            skeleton = NOTHING
            literals = 0
            told = 0
            begin = i
            before = False
            while i < count and places[i, 2] == line:
                exact = exact * BASE + words[i]
                bit = words[i] >> U(44)
                told += notices[bit >> U(3)] >> np.uint8(bit & U(7)) & 1
                masked = masks[i] != LITERAL
                item = MASK if masked else words[i]
                literals += not masked
                # Without branches, which would be guessed wrong at every third word.
                skeleton = skeleton if masked & before else skeleton * BASE + item
                before = masked
                items[size] = item
                size += not (masked & hidden)
                hidden = masked
                i += 1
            lines[total, 0] = _line(exact, signs[line])
            lines[total, 1] = _fmix(skeleton)
            marks[total, 0] = row
            marks[total, 1] = i - begin
            marks[total, 2] = literals
            marks[total, 3] = told
            # A line that names a date or a person is the same neighbour whatever fills it.
            tag = np.int32((_fmix(skeleton) if literals >= TOLD else _fmix(exact)) >> U(48)) | 1
            marks[total, 4] = left
            marks[total, 5] = 0
            if left:
                marks[total - 1, 5] = tag
            left = tag
            total += 1
            text = text * BASE + exact
        texts[row] = _fmix(text)
        held = 0
        least = anchors[row]
        rolling = NOTHING
        literals = 0
        for at in range(size):
            rolling = rolling * BASE + items[at]
            literals += items[at] != MASK
            if at >= n:
                rolling -= items[at - n] * top
                literals -= items[at - n] != MASK
            if at < n - 1 or literals < 2:
                continue
            h = _fmix(rolling)
            if held == k and h >= least[k - 1]:
                continue
            place = held
            while place > 0 and least[place - 1] > h:
                place -= 1
            if place > 0 and least[place - 1] == h:
                continue
            last = held if held < k else k - 1
            for j in range(last, place, -1):
                least[j] = least[j - 1]
            least[place] = h
            held = min(held + 1, k)
        least[held:] = NOTHING
        pages[row, 0] = count
        pages[row, 1] = held
    return total


@njit(cache=True, nogil=True)
def words_of(data, offsets, common, words, masks, places, ends):
    """All words of all texts one after another; row i's end at `ends[i]`. See `scan`."""
    total = 0
    signs = np.empty(longest(offsets) + 1, np.uint64)
    for row in range(len(offsets) - 1):
        start, end = offsets[row], offsets[row + 1]
        total += scan(data, start, end, common, words[total:], masks[total:], places[total:], signs)
        ends[row] = total


@njit(cache=True, nogil=True)
def known_words(data, offsets, bits):
    """Set the bit of every word in `bits` uint8[2 ** 17]."""
    common = np.zeros(1 << 17, np.uint8)
    room = longest(offsets) // 2 + 2  # a word takes a byte and a separator, or more
    words = np.empty(room, np.uint64)
    masks = np.empty(room, np.uint8)
    places = np.empty((room, 3), np.int64)
    signs = np.empty(2 * room, np.uint64)
    for row in range(len(offsets) - 1):
        count = scan(data, offsets[row], offsets[row + 1], common, words, masks, places, signs)
        for i in range(count):
            bit = words[i] >> U(44)
            bits[bit >> U(3)] |= np.uint8(1) << np.uint8(bit & U(7))
