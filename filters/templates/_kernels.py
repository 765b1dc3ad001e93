"""Kernels of the template stage: tokens with masks, lines, anchors, shared n-grams.

Words. Runs of ASCII letters and digits and of bytes >= 0x80, hashed in lower case (of ASCII alone);
spaces and punctuation of U+0080-00BF, U+2000-207F, U+3000-303F and the full-width marks separate;
a character of a script without spaces is a word of its own.

Masks. A word is masked when it holds a digit, when it begins with a capital and does not begin a
sentence, or when it is rare: not in the table of common words (a bit for each of 2**20 hashes). The
last rule speaks only where the table knows at least half of a text's words, so that a language that
it does not know is not masked away. A run of masked words counts as one, so a slot is one place
whatever fills it.

Integers only; the same on every CPU. Plain-Python twins: tests/naive_templates.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

U = np.uint64
GOLDEN = U(0x9E3779B97F4A7C15)
BASE = U(0xA24BAED4963EE407)  # odd; bytes of a word, and words of a line, are digits in it
SPREAD = U(0xD6E8FEB86659FD93)
MASK = U(0x6D61736B656420B5)  # what stands for a run of masked words
NOTHING = U(0)
VERBATIM = U(1)  # tells n-grams of words from those of masked items

LITERAL, DIGIT, NAME, RARE = 0, 1, 2, 3  # why a word is masked; LITERAL: it is not

# 0 separates, 1 belongs to a word, 2 needs a look at the bytes after it, 3 separates and ends a
# sentence.
_KIND = np.zeros(256, np.uint8)
_KIND[0x80:] = 1
for _first, _last in ((48, 58), (65, 91), (97, 123)):
    _KIND[_first:_last] = 1
_KIND[[0xC2, *range(0xE0, 0xEA), 0xEF, 0xF0]] = 2
_KIND[[33, 46, 63]] = 3
_LOWER = np.arange(256, dtype=np.uint64)
_LOWER[65:91] += U(32)
_SPACE = np.zeros(256, np.uint8)
_SPACE[[9, 11, 12, 13, 32]] = 1


@njit(cache=True, nogil=True, inline="always")
def _fmix(x):
    """Finaliser of MurmurHash3."""
    x ^= x >> U(33)
    x *= U(0xFF51AFD7ED558CCD)
    x ^= x >> U(33)
    x *= U(0xC4CEB9FE1A85EC53)
    x ^= x >> U(33)
    return x


@njit(cache=True, nogil=True)
def longest(offsets):
    """Bytes of the longest text."""
    most = 0
    for row in range(len(offsets) - 1):
        most = max(most, offsets[row + 1] - offsets[row])
    return most


@njit(cache=True, nogil=True)
def _wide(data, at, end):
    """Width of the character at a lead byte, and 0: it separates, 1: word byte, 2: word.

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
    if c == 0xE3 or 0xE4 <= c <= 0xE9 or (c == 0xE0 and d >= 0xB8):
        return 3, 2
    if c == 0xE1 and (0x80 <= d <= 0x82 or 0x9E <= d <= 0x9F):
        return 3, 2
    if c == 0xF0 and d >= 0xA0 and at + 3 < end and data[at + 3] >= 0x80:
        return 4, 2
    return 1, 1


@njit(cache=True, nogil=True)
def _capital(data, at, end):
    """Whether a word begins with a capital: Latin, Greek or Cyrillic."""
    c = data[at]
    if c < 0x80:
        return 65 <= c <= 90
    if at + 1 >= end:
        return False
    d = data[at + 1]
    if c == 0xC3:
        return 0x80 <= d <= 0x9E
    if c == 0xCE:
        return 0x86 <= d <= 0xAB
    return c == 0xD0 and d < 0xB0


@njit(cache=True, nogil=True)
def scan(data, start, end, common, words, masks, places):
    """Words of one text: hashes, masks, and (first byte, byte after, line) in `places` int64[n, 3].

    Returns how many. Lines are counted from 0 at every line feed.
    """
    count = 0
    known = 0
    letters = 0
    line = 0
    initial = True
    at = start
    while at < end:
        c = data[at]
        kind = _KIND[c]
        if kind in (0, 3):
            if c == 10:
                line += 1
                initial = True
            elif kind == 3:
                initial = True
            at += 1
            continue
        single = False
        width = 1
        if kind == 2:
            width, what = _wide(data, at, end)
            if what == 0:
                at += width
                continue
            single = what == 2
        begin = at
        h = NOTHING
        digit = False
        if single:
            at = min(at + width, end)
            for k in range(begin, at):
                h = h * BASE + U(data[k])
        else:
            while at < end:
                c = data[at]
                kind = _KIND[c]
                if kind in (0, 3):
                    break
                if kind == 2 and _wide(data, at, end)[1] != 1:
                    break
                digit |= 48 <= c <= 57
                h = h * BASE + _LOWER[c]
                at += 1
        h = _fmix((h ^ (h >> U(32))) * SPREAD)
        mask = LITERAL
        if digit:
            mask = DIGIT
        elif not single:
            capital = _capital(data, begin, at)
            if capital and not initial:
                mask = NAME
            else:
                bit = h >> U(44)
                seen = common[bit >> U(3)] >> np.uint8(bit & U(7)) & 1
                letters += 1
                known += seen
                if not seen:
                    mask = RARE
        words[count] = h
        masks[count] = mask
        places[count, 0] = begin
        places[count, 1] = at
        places[count, 2] = line
        count += 1
        initial = False
    if 2 * known < letters:
        for i in range(count):
            if masks[i] == RARE:
                masks[i] = LITERAL
    return count


@njit(cache=True, nogil=True)
def collapse(words, masks, count, items, firsts):
    """Hashes of literals and of runs of masked words; `firsts[i]` is where item i begins."""
    size = 0
    before = False
    for i in range(count):
        masked = masks[i] != LITERAL
        if not (masked and before):
            items[size] = MASK if masked else words[i]
            firsts[size] = i
            size += 1
        before = masked
    firsts[size] = count
    return size


@njit(cache=True, nogil=True)
def _gram(items, at, n):
    """Hash of n items, and how many of them are literals."""
    h = NOTHING
    literals = 0
    for k in range(at, at + n):
        h = h * BASE + items[k]
        literals += items[k] != MASK
    return _fmix(h), literals


@njit(cache=True, nogil=True)
def _within(shared, h):
    low = 0
    high = len(shared)
    while low < high:
        middle = (low + high) // 2
        if shared[middle] < h:
            low = middle + 1
        else:
            high = middle
    return low < len(shared) and shared[low] == h


@njit(cache=True, nogil=True)
def survey(data, offsets, common, notices, n, anchors, pages, lines, marks, texts):
    """Lines and anchors of every text; returns the number of lines.

    `anchors` uint64[rows, k]: the k least hashes of the distinct n-grams of masked items with at
    least two literals, 0 where there are fewer. `pages` int32[rows, 2]: words, anchors.
    `lines` uint64[lines, 2]: hash of the words, hash of the masked items. `marks` int32[lines, 4]:
    row, words, literals, words that notices use. Lines without words are left out. `texts`
    uint64[rows]: hash of all words.
    """
    room = longest(offsets) + 1
    words = np.empty(room, np.uint64)
    masks = np.empty(room, np.uint8)
    places = np.empty((room, 3), np.int64)
    items = np.empty(room, np.uint64)
    firsts = np.empty(room + 1, np.int64)
    k = anchors.shape[1]
    total = 0
    for row in range(len(offsets) - 1):
        count = scan(data, offsets[row], offsets[row + 1], common, words, masks, places)
        i = 0
        text = NOTHING
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
                told += _within(notices, words[i])
                masked = masks[i] != LITERAL
                if not masked:
                    skeleton = skeleton * BASE + words[i]
                    literals += 1
                elif not before:
                    skeleton = skeleton * BASE + MASK
                before = masked
                i += 1
            lines[total, 0] = _fmix(exact)
            lines[total, 1] = _fmix(skeleton)
            marks[total, 0] = row
            marks[total, 1] = i - begin
            marks[total, 2] = literals
            marks[total, 3] = told
            total += 1
            text = text * BASE + exact
        texts[row] = _fmix(text)
        size = collapse(words, masks, count, items, firsts)
        held = 0
        least = anchors[row]
        for at in range(size - n + 1):
            h, literals = _gram(items, at, n)
            if literals < 2 or (held == k and h >= least[k - 1]):
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
def grams(data, offsets, common, n, starts, out, ends):
    """Hashes of all n-grams of masked items of each text with two literals, from `starts[row]`."""
    room = longest(offsets) + 1
    words = np.empty(room, np.uint64)
    masks = np.empty(room, np.uint8)
    places = np.empty((room, 3), np.int64)
    items = np.empty(room, np.uint64)
    firsts = np.empty(room + 1, np.int64)
    for row in range(len(offsets) - 1):
        count = scan(data, offsets[row], offsets[row + 1], common, words, masks, places)
        size = collapse(words, masks, count, items, firsts)
        write = starts[row]
        for at in range(size - n + 1):
            h, literals = _gram(items, at, n)
            if literals >= 2:
                out[write] = h
                write += 1
        for at in range(count - n + 1):
            out[write] = _gram(words, at, n)[0] ^ VERBATIM
            write += 1
        ends[row] = write


@njit(cache=True, nogil=True)
def cover(data, start, end, common, n, shared, scratch, state):
    """How the words of one text stand to a family's shared n-grams; returns how many words.

    `state` uint8[words]: 0 own, 1 literal of the template, 2 fill. A word in a shared n-gram is of
    the template, and a fill where it is masked. In a line of which at least half is of the
    template, runs of up to `GAP` other words are fills too.
    """
    words, masks, places, items, firsts = scratch
    count = scan(data, start, end, common, words, masks, places)
    size = collapse(words, masks, count, items, firsts)
    state[:count] = 0
    done = 0
    for at in range(size - n + 1):
        h, literals = _gram(items, at, n)
        if literals < 2 or not _within(shared, h):
            continue
        for i in range(max(done, firsts[at]), firsts[at + n]):
            state[i] = 1 if masks[i] == LITERAL else 2
        done = firsts[at + n]
    done = 0
    for at in range(count - n + 1):
        if _within(shared, _gram(words, at, n)[0] ^ VERBATIM):
            state[max(done, at) : at + n] = 1
            done = at + n
    i = 0
    while i < count:
        begin = i
        line = places[i, 2]
        covered = 0
        while i < count and places[i, 2] == line:
            covered += state[i] != 0
            i += 1
        if 2 * covered < i - begin:
            for j in range(begin, i):
                state[j] = 0
            continue
        j = begin
        while j < i:
            if state[j] != 0:
                j += 1
                continue
            run = j
            while j < i and state[j] == 0:
                j += 1
            if j - run <= GAP:
                state[run:j] = 2
    return count


GAP = 20  # words
PROSE = 5  # words; a line of fewer is a label, not prose


@njit(cache=True, nogil=True)
def weigh(data, offsets, common, n, shared, out, fills):
    """How each text stands to a template: `out` int32[rows, 4], `fills` uint64[rows].

    Words, words of the template, own words in lines of prose, literals of the template; and a hash
    of what fills the slots, in their order.
    """
    room = longest(offsets) + 1
    words = np.empty(room, np.uint64)
    masks = np.empty(room, np.uint8)
    places = np.empty((room, 3), np.int64)
    items = np.empty(room, np.uint64)
    firsts = np.empty(room + 1, np.int64)
    state = np.empty(room, np.uint8)
    scratch = (words, masks, places, items, firsts)
    for row in range(len(offsets) - 1):
        count = cover(data, offsets[row], offsets[row + 1], common, n, shared, scratch, state)
        i = 0
        template = 0
        own = 0
        literal = 0
        fill = NOTHING
        while i < count:
            line = places[i, 2]
            mine = 0
            while i < count and places[i, 2] == line:
                mine += state[i] == 0
                template += state[i] != 0
                literal += state[i] == 1
                if state[i] == 2:
                    fill = fill * BASE + words[i]
                i += 1
            if mine >= PROSE:
                own += mine
        out[row, 0] = count
        out[row, 1] = template
        out[row, 2] = own
        out[row, 3] = literal
        fills[row] = _fmix(fill)


@njit(cache=True, nogil=True)
def known_words(data, offsets, bits):
    """Set the bit of every word in `bits` uint8[2 ** 17]."""
    common = np.zeros(1 << 17, np.uint8)
    room = longest(offsets) + 1
    words = np.empty(room, np.uint64)
    masks = np.empty(room, np.uint8)
    places = np.empty((room, 3), np.int64)
    for row in range(len(offsets) - 1):
        count = scan(data, offsets[row], offsets[row + 1], common, words, masks, places)
        for i in range(count):
            bit = words[i] >> U(44)
            bits[bit >> U(3)] |= np.uint8(1) << np.uint8(bit & U(7))


@njit(cache=True, nogil=True)
def hash_names(data, offsets, out):
    """Hash of each string, uint64[rows]; 0 for an empty one alone."""
    for row in range(len(offsets) - 1):
        h = NOTHING
        for at in range(offsets[row], offsets[row + 1]):
            h = h * BASE + U(data[at]) + U(1)
        if offsets[row + 1] > offsets[row]:
            h = max(_fmix(h), U(1))
        out[row] = h


@njit(cache=True, nogil=True)
def hash_words(data, offsets, common, out):
    """Hash of the first word of each text, uint64[rows]."""
    room = longest(offsets) + 1
    words = np.empty(room, np.uint64)
    masks = np.empty(room, np.uint8)
    places = np.empty((room, 3), np.int64)
    for row in range(len(offsets) - 1):
        scan(data, offsets[row], offsets[row + 1], common, words, masks, places)
        out[row] = words[0]


HEADING = 4  # words; a line of at most so many may head the paragraph after it
PARAGRAPH = 8  # words; a line of fewer is not one


@njit(cache=True, nogil=True)
def _line_kinds(data, start, end, places, words, count, gone, marked, kinds):
    """What each line of one text is; returns how many lines.

    `kinds` int64[lines, 5]: first byte, byte after (the line feed included), words, state (0 kept,
    1 goes, 2 fill-in, 3 blank), and form (0 plain, 1 heading, 2 row of a table, 3 code).
    """
    number = 0
    at = start
    i = 0
    line = 0
    code = False
    while at < end:
        first = at
        while at < end and data[at] != 10:
            at += 1
        stop = at
        at = min(at + 1, end)
        exact = NOTHING
        begin = i
        while i < count and places[i, 2] == line:
            exact = exact * BASE + words[i]
            i += 1
        exact = _fmix(exact)
        here = first
        while here < stop and _SPACE[data[here]] == 1:
            here += 1
        state = 0
        if here == stop:
            state = 3
        elif i > begin:
            if _within(marked, exact):
                state = 2
            elif _within(gone, exact):
                state = 1
        form = 0
        if here + 2 < stop and data[here] == 96 and data[here + 1] == 96 and data[here + 2] == 96:
            code = not code
            form = 3
        elif code:
            form = 3
        elif here < stop and data[here] == 35:
            form = 1
        elif here < stop and data[here] == 124:
            form = 2
        kinds[number, 0] = first
        kinds[number, 1] = at
        kinds[number, 2] = i - begin
        kinds[number, 3] = state
        kinds[number, 4] = form
        number += 1
        line += 1
    return number


@njit(cache=True, nogil=True)
def _protect(kinds, number):
    """Keep lines of code, tables of which a row stays, and headings of what stays."""
    i = 0
    while i < number:
        if kinds[i, 4] == 3 and kinds[i, 3] == 1:
            kinds[i, 3] = 0
        if kinds[i, 4] != 2:
            i += 1
            continue
        j = i
        whole = True
        while j < number and kinds[j, 4] == 2:
            whole &= kinds[j, 3] == 1 or kinds[j, 2] == 0
            j += 1
        if not whole:
            for k in range(i, j):
                if kinds[k, 3] == 1:
                    kinds[k, 3] = 0
        i = j
    under = False  # something of the section stays
    paragraph = False  # the next line is a paragraph that stays
    for i in range(number - 1, -1, -1):
        state = kinds[i, 3]
        if state == 3:
            continue
        if kinds[i, 4] == 1:
            if state == 1 and under:
                kinds[i, 3] = 0
            under = False
            paragraph = False
            continue
        if state == 1 and paragraph and kinds[i, 4] == 0 and kinds[i, 2] <= HEADING:
            kinds[i, 3] = 0
            paragraph = False
            under = True
            continue
        paragraph = state != 1 and kinds[i, 2] >= PARAGRAPH
        under |= state != 1


@njit(cache=True, nogil=True)
def strip(
    data, offsets, common, gone, gone_ends, marked, marked_ends, rows, starts, lengths, fills
):
    """Lines to cut, with blank lines after them; returns how many cuts.

    `gone` and `marked` uint64: digests of lines, ascending in each row, rows ending at `*_ends`.
    `rows`, `starts`, `lengths` int64[lines] take the cuts; `fills` int64[rows, 4]: fill-in lines,
    words in them, and bytes (first, after) of the first of them, counted from the text's start.
    """
    room = longest(offsets) + 1
    words = np.empty(room, np.uint64)
    masks = np.empty(room, np.uint8)
    places = np.empty((room, 3), np.int64)
    kinds = np.empty((room, 5), np.int64)
    total = 0
    for row in range(len(offsets) - 1):
        fills[row, :] = 0
        mine = gone[(gone_ends[row - 1] if row else 0) : gone_ends[row]]
        told = marked[(marked_ends[row - 1] if row else 0) : marked_ends[row]]
        if len(mine) == 0 and len(told) == 0:
            continue
        start = offsets[row]
        count = scan(data, start, offsets[row + 1], common, words, masks, places)
        number = _line_kinds(data, start, offsets[row + 1], places, words, count, mine, told, kinds)
        _protect(kinds, number)
        i = 0
        while i < number:
            if kinds[i, 3] == 2:
                if fills[row, 0] == 0:
                    fills[row, 2] = kinds[i, 0] - start
                    fills[row, 3] = kinds[i, 1] - start
                fills[row, 0] += 1
                fills[row, 1] += kinds[i, 2]
            if kinds[i, 3] != 1:
                i += 1
                continue
            j = i
            while j < number and (kinds[j, 3] == 1 or kinds[j, 3] == 3):
                j += 1
            rows[total] = row
            starts[total] = kinds[i, 0] - start
            lengths[total] = kinds[j - 1, 1] - kinds[i, 0]
            total += 1
            i = j
    return total
