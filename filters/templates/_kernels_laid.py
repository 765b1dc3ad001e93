"""Kernels of the template stage: a text laid over its template, and lines cut from it.

They take words as `_kernels.words_of` gives them: hashes `words` uint64, `masks` uint8 and `places`
int64[words, 3] (first byte, byte after, line) of all texts one after another, those of row i from
`ends[i - 1]` to `ends[i]`. Plain-Python twins: tests/naive_templates.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

U = np.uint64
BASE = U(0xA24BAED4963EE407)  # as in `_kernels`, here and below
MASK = U(0x6D61736B656420B5)
NOTHING = U(0)
VERBATIM = U(1)  # tells n-grams of words from those of masked items
LITERAL = 0
LITERALS = 3  # in an n-gram; with 2, phrases of prose are shared by chance
GAP = 20  # words; a longer run of others in a line of the template is no fill
PROSE = 5  # words; a line of fewer is a label, not prose
INDENT = 4  # blanks, or a tab; a line after so many may be code
HEADING = 4  # words; a line of at most so many may head the paragraph after it
PARAGRAPH = 8  # words; a line of fewer is not one
_SPACE = np.zeros(256, np.uint8)
_SPACE[[9, 11, 12, 13, 32]] = 1


@njit(cache=True, nogil=True, inline="always")
def _fmix(x):
    """Finaliser of MurmurHash3: a bijection of 64 bits in which every bit moves every bit."""
    x ^= x >> U(33)
    x *= U(0xFF51AFD7ED558CCD)
    x ^= x >> U(33)
    x *= U(0xC4CEB9FE1A85EC53)
    x ^= x >> U(33)
    return x


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
def _collapse(words, masks, first, last, items, firsts):
    """Hashes of literals and of runs of masked words; item i begins at word `firsts[i]`."""
    size = 0
    before = False
    for i in range(first, last):
        masked = masks[i] != LITERAL
        if not (masked and before):
            items[size] = MASK if masked else words[i]
            firsts[size] = i
            size += 1
        before = masked
    firsts[size] = last
    return size


@njit(cache=True, nogil=True)
def _grams(items, first, last, n, least, out):
    """Hash of the n items from each place in items[first:last]; 0: under `least` literals."""
    top = U(1)
    for _ in range(n):
        top *= BASE
    rolling = NOTHING
    literals = 0
    for at in range(first, last):
        rolling = rolling * BASE + items[at]
        literals += items[at] != MASK
        if at - first >= n:
            rolling -= items[at - n] * top
            literals -= items[at - n] != MASK
        if at - first >= n - 1:
            out[at - first - n + 1] = _fmix(rolling) if literals >= least else NOTHING
    return max(last - first - n + 1, 0)


@njit(cache=True, nogil=True)
def grams(words, masks, ends, n, starts, out, stops):
    """Hashes of all n-grams of each text, from `starts[row]`.

    Of masked items with `LITERALS` literals first, then of words.
    """
    items = np.empty(len(words) + 1, np.uint64)
    firsts = np.empty(len(words) + 1, np.int64)
    hashes = np.empty(len(words) + 1, np.uint64)
    for row in range(len(ends)):
        first = ends[row - 1] if row else 0
        write = starts[row]
        size = _collapse(words, masks, first, ends[row], items, firsts)
        for i in range(_grams(items, 0, size, n, LITERALS, hashes)):
            if hashes[i] != NOTHING:
                out[write] = hashes[i]
                write += 1
        for i in range(_grams(words, first, ends[row], n, 0, hashes)):
            out[write] = hashes[i] ^ VERBATIM
            write += 1
        stops[row] = write


@njit(cache=True, nogil=True)
def table_of(shared, table):
    """Put hashes into `table` uint64[2**k], which is empty (0) and at least twice as large."""
    wrap = len(table) - 1
    for h in shared:
        at = np.int64(h & U(wrap))
        while table[at] != NOTHING:
            at = (at + 1) & wrap
        table[at] = h


@njit(cache=True, nogil=True, inline="always")
def _held(table, h):
    wrap = len(table) - 1
    at = np.int64(h & U(wrap))
    while table[at] != NOTHING and table[at] != h:
        at = (at + 1) & wrap
    return h != NOTHING and table[at] == h


@njit(cache=True, nogil=True)
def cover(words, masks, places, ends, n, table, state):
    """How each word stands to a family's shared n-grams, `table`.

    `state` uint8[words]: 0 own, 1 literal of the template, 2 fill. A word in a shared n-gram is of
    the template, and a fill where it is masked. In a line of which at least half is of the
    template, runs of up to `GAP` other words are fills too; in other lines all are the page's own.
    """
    items = np.empty(len(words) + 1, np.uint64)
    firsts = np.empty(len(words) + 1, np.int64)
    hashes = np.empty(len(words) + 1, np.uint64)
    state[:] = 0
    for row in range(len(ends)):
        first = ends[row - 1] if row else 0
        size = _collapse(words, masks, first, ends[row], items, firsts)
        done = first
        for at in range(_grams(items, 0, size, n, LITERALS, hashes)):
            if _held(table, hashes[at]):
                left = firsts[at]
                right = firsts[at + n]
                # A run of masked words at an end fills a slot in its neighbour's line alone.
                if items[at] == MASK:
                    while places[left, 2] != places[firsts[at + 1], 2]:
                        left += 1
                if items[at + n - 1] == MASK:
                    while places[right - 1, 2] != places[firsts[at + n - 1] - 1, 2]:
                        right -= 1
                for i in range(max(done, left), right):
                    state[i] = 1 if masks[i] == LITERAL else 2
                done = max(done, right)
        done = first
        for at in range(_grams(words, first, ends[row], n, 0, hashes)):
            if _held(table, hashes[at] ^ VERBATIM):
                state[max(done, first + at) : first + at + n] = 1
                done = first + at + n
        i = first
        while i < ends[row]:
            begin = i
            line = places[i, 2]
            covered = 0
            while i < ends[row] and places[i, 2] == line:
                covered += state[i] != 0
                i += 1
            if 2 * covered < i - begin:
                state[begin:i] = 0
                continue
            j = begin
            while j < i:
                run = j
                while j < i and state[j] == 0:
                    j += 1
                if j - run <= GAP:
                    state[run:j] = 2
                j += j == run


@njit(cache=True, nogil=True)
def weigh(words, places, ends, state, out, fills):
    """How each text stands to its template: `out` int32[rows, 5], `fills` uint64[rows].

    Words, words of the template, own words in lines of prose, literals of the template, words in
    lines of the template with a slot; and a hash of what fills the slots, in their order.
    """
    for row in range(len(ends)):
        i = ends[row - 1] if row else 0
        out[row, 0] = ends[row] - i
        template = 0
        own = 0
        literal = 0
        slotted = 0
        fill = NOTHING
        while i < ends[row]:
            line = places[i, 2]
            mine = 0
            others = 0
            slot = False
            while i < ends[row] and places[i, 2] == line:
                mine += state[i] == 0
                others += state[i] != 0
                literal += state[i] == 1
                if state[i] == 2:
                    fill = fill * BASE + words[i]
                    slot = True
                i += 1
            template += others
            slotted += others if slot else 0
            if mine >= PROSE:
                own += mine
        out[row, 1] = template
        out[row, 2] = own
        out[row, 3] = literal
        out[row, 4] = slotted
        fills[row] = _fmix(fill)


@njit(cache=True, nogil=True)
def _indented(data, begins, here):
    """Whether a line whose first mark stands at `here` may be code: indented, no item of a list."""
    deep = here - begins >= INDENT or (here > begins and data[begins] == 9)
    return deep and data[here] not in (42, 43, 45)


@njit(cache=True, nogil=True)
def _indents(data, start, end):
    """Whether fewer than 3 of 4 lines of a text are indented, so that to be so means something.

    Whole pages as text are indented by depth, and hold no code for that.
    """
    balance = 0
    at = start
    while at < end:
        begins = at
        while at < end and data[at] != 10 and _SPACE[data[at]] == 1:
            at += 1
        if at < end and data[at] != 10:
            deep = at - begins >= INDENT or (at > begins and data[begins] == 9)
            balance += -1 if deep else 3
        while at < end and data[at] != 10:
            at += 1
        at += 1
    return balance > 0


@njit(cache=True, nogil=True)
def _line_kinds(data, start, end, words, places, first, last, gone, marked, kinds):
    """What each line of one text is; returns how many lines.

    `kinds` int64[lines, 5]: first byte, byte after (the line feed included), words, state (0 kept,
    1 goes, 2 fill-in, 3 blank), and form (0 plain, 1 heading, 2 row of a table, 3 code).
    """
    number = 0
    at = start
    i = first
    line = 0
    code = False
    indents = _indents(data, start, end)
    block = indents  # the line before is blank or indented code
    while at < end:
        begins = at
        while at < end and data[at] != 10:
            at += 1
        stop = at
        at = min(at + 1, end)
        exact = NOTHING
        begin = i
        while i < last and places[i, 2] == line:
            exact = exact * BASE + words[i]
            i += 1
        exact = _fmix(exact)
        here = begins
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
        elif here < stop and block and _indented(data, begins, here):
            form = 3
        elif here < stop and data[here] == 35:
            form = 1
        elif here < stop and data[here] == 124:
            form = 2
        block = indents and (form == 3 or here == stop)
        kinds[number, 0] = begins
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
        if state == 3 or (kinds[i, 2] == 0 and kinds[i, 4] == 0):  # rules, underlines of headings
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
    data, offsets, words, places, ends, gone, gone_ends, marked, marked_ends, rows, starts, lengths,
    fills,
):  # fmt: skip
    """Lines to cut, with blank lines after them; returns how many cuts.

    `gone` and `marked` uint64: digests of lines, ascending in each row, rows ending at `*_ends`.
    `rows`, `starts`, `lengths` int64[lines] take the cuts; `fills` int64[rows, 4]: fill-in lines,
    words in them, and bytes (first, after) of the first of them, counted from the text's start.
    """
    most = np.diff(offsets).max() if len(ends) else 0
    kinds = np.empty((most + 1, 5), np.int64)
    total = 0
    for row in range(len(ends)):
        fills[row, :] = 0
        mine = gone[(gone_ends[row - 1] if row else 0) : gone_ends[row]]
        told = marked[(marked_ends[row - 1] if row else 0) : marked_ends[row]]
        if len(mine) == 0 and len(told) == 0:
            continue
        start = offsets[row]
        first = ends[row - 1] if row else 0
        number = _line_kinds(
            data, start, offsets[row + 1], words, places, first, ends[row], mine, told, kinds
        )
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
