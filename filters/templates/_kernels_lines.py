"""Kernels of the template stage: what each line of a text is, and which are cut.

Words as in `_kernels_laid`. Plain-Python twins: tests/naive_templates.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

U = np.uint64
BASE = U(0xA24BAED4963EE407)  # as in `_kernels`
NOTHING = U(0)
FIRST, NOTICE, OFTEN, BEFORE, AFTER = 1, 4, 8, 16, 32  # as in `gather`
BLOCK_LINES = 3  # of boilerplate within a page; two lines may follow each other by chance
BLOCK_WORDS = 12  # or as many words in two of them
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
def _found_at(shared, h):
    """Where `h` stands in ascending hashes; -1: nowhere."""
    low = 0
    high = len(shared)
    while low < high:
        middle = (low + high) // 2
        if shared[middle] < h:
            low = middle + 1
        else:
            high = middle
    return low if low < len(shared) and shared[low] == h else -1


@njit(cache=True, nogil=True)
def _line_kinds(data, start, end, words, places, first, last, gone, how, marked, kinds):
    """What each line of one text is; returns how many lines.

    `kinds` int64[lines, 8]: first byte, byte after (the line feed included), words, state (0 kept,
    1 goes, 2 fill-in, 3 blank, 4 kept as the first of its host), form (0 plain, 1 heading, 2 row
    of a table, 3 code), how a line that goes stands, its place in `gone` or -1, and first mark.
    """
    number = 0
    at = start
    i = first
    line = 0
    while at < end:
        begins = at
        exact = NOTHING
        begin = i
        while i < last and places[i, 2] == line:
            exact = exact * BASE + words[i]
            i += 1
        if i > begin:
            at = places[i - 1, 1]
        while at < end and data[at] != 10:
            at += 1
        stop = at
        at = min(at + 1, end)
        exact = _fmix(exact)
        here = begins
        while here < stop and _SPACE[data[here]] == 1:
            here += 1
        state = 0
        stands = 0
        place = -1
        if here == stop:
            state = 3
        elif i > begin:
            if _found_at(marked, exact) >= 0:
                state = 2
            else:
                place = _found_at(gone, exact)
                if place >= 0:
                    stands = how[place]
                    state = 4 if stands & FIRST else 1
        kinds[number, 0] = begins
        kinds[number, 1] = at
        kinds[number, 2] = i - begin
        kinds[number, 3] = state
        kinds[number, 5] = stands
        kinds[number, 6] = place
        kinds[number, 7] = here
        number += 1
        line += 1
    _forms(data, end, kinds, number)
    return number


@njit(cache=True, nogil=True)
def _forms(data, end, kinds, number):
    """Form of each line. Code stands between fences, or is indented, where that says something.

    Whole pages as text are indented by depth, and hold no code for that: fewer than 3 of 4 lines
    may be, of those that do not go, or the lines that go would bear on what a second run takes.
    """
    balance = 0
    for i in range(number):
        if kinds[i, 3] in (0, 2):
            balance += -1 if _deep(data, kinds[i, 0], kinds[i, 7]) else 3
    indents = balance > 0
    block = indents  # the line before is blank or indented code
    code = False
    for i in range(number):
        here = kinds[i, 7]
        blank = kinds[i, 3] == 3
        form = 0
        if not blank and here + 2 < end and data[here] == data[here + 1] == data[here + 2] == 96:
            code = not code
            form = 3
        elif code:
            form = 3
        elif not blank and block and _deep(data, kinds[i, 0], here) and not _item(data[here]):
            form = 3
        elif not blank and data[here] == 35:
            form = 1
        elif not blank and data[here] == 124:
            form = 2
        block = indents and (form == 3 or blank)
        kinds[i, 4] = form


@njit(cache=True, nogil=True, inline="always")
def _deep(data, begins, here):
    """Whether a line whose first mark stands at `here` is indented like code."""
    return here - begins >= INDENT or (here > begins and data[begins] == 9)


@njit(cache=True, nogil=True, inline="always")
def _item(mark):
    """Whether a line that begins with this byte is an item of a list."""
    return mark in (42, 43, 45)


@njit(cache=True, nogil=True)
def _linked(kinds, i, j):
    """Whether two lines, one after the other, stand together wherever the host has them."""
    left, right = kinds[i, 3], kinds[j, 3]
    if left == 2 and right == 2:
        return True
    if left == 2:
        return right in (1, 4) and kinds[j, 5] & BEFORE != 0
    if right == 2:
        return left in (1, 4) and kinds[i, 5] & AFTER != 0
    if left not in (1, 4) or right not in (1, 4):
        return False
    return kinds[i, 5] & AFTER != 0 and kinds[j, 5] & BEFORE != 0


@njit(cache=True, nogil=True)
def _stand(kinds, number, order, times):
    """Keep lines that do not stand in the neighbourhood in which the host's pages have them.

    Boilerplate stands in blocks: lines that follow each other on most pages that have them; one
    line alone at the head or foot of the page. A block is on half of the host's pages, or stands
    once a page and has `BLOCK_LINES` or `BLOCK_WORDS`. A line of content recurs wherever it is
    needed (an ingredient, a statement, a label, an answer, a refrain), and what is last above a
    footer stands at the foot when the footer is gone: that alone must say nothing, or a second run
    would go on cutting.

    `order` int64[lines] and `times` int64[candidates] are scratch.
    """
    size = 0
    times[:] = 0
    for i in range(number):
        if kinds[i, 2] > 0:
            order[size] = i
            size += 1
            if kinds[i, 6] >= 0:
                times[kinds[i, 6]] += 1
    k = 0
    while k < size:
        begin = k
        while k + 1 < size and _linked(kinds, order[k], order[k + 1]):
            k += 1
        k += 1
        first, last = order[begin], order[k - 1]
        edge = begin == 0 and (kinds[first, 3] == 2 or kinds[first, 5] & BEFORE != 0)
        edge |= k == size and (kinds[last, 3] == 2 or kinds[last, 5] & AFTER != 0)
        lines, words, once, often = 0, 0, 0, 0
        for m in range(begin, k):
            i = order[m]
            if kinds[i, 3] in (1, 4):
                lines += 1
                words += kinds[i, 2]
                once += times[kinds[i, 6]] == 1
                often += kinds[i, 5] & OFTEN != 0
        goes = once > 0 and (lines >= BLOCK_LINES or words >= BLOCK_WORDS)
        goes = (goes or often == lines) and (lines > 1 or edge)
        for m in range(begin, k):
            i = order[m]
            if kinds[i, 3] == 1 and not goes and kinds[i, 5] & NOTICE == 0:
                kinds[i, 3] = 0


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
    data, offsets, words, places, ends, gone, how, pages, gone_ends, marked, marked_ends, rows,
    starts, lengths, least, fills,
):  # fmt: skip
    """Lines to cut, with blank lines after them unless code follows; returns how many cuts.

    `gone` and `marked` uint64: digests of lines, ascending in each row, rows ending at `*_ends`;
    of those in `gone`, `how` uint8 has the bits that `_stand` reads, `pages` uint32 how many pages
    of the host have it. `rows`, `starts`, `lengths` int64[lines] take the cuts, `least` the pages
    of the line in a cut that the fewest have; `fills` int64[rows, 4]: fill-in lines,
    words in them, and bytes (first, after) of the first of them, counted from the text's start.
    """
    most = np.diff(offsets).max() if len(ends) else 0
    kinds = np.empty((most + 1, 8), np.int64)
    order = np.empty(most + 1, np.int64)
    times = np.empty(len(gone), np.int64)
    total = 0
    for row in range(len(ends)):
        fills[row, :] = 0
        from_ = gone_ends[row - 1] if row else 0
        mine, stands = gone[from_ : gone_ends[row]], how[from_ : gone_ends[row]]
        told = marked[(marked_ends[row - 1] if row else 0) : marked_ends[row]]
        if len(mine) == 0 and len(told) == 0:
            continue
        start = offsets[row]
        first = ends[row - 1] if row else 0
        number = _line_kinds(
            data, start, offsets[row + 1], words, places, first, ends[row], mine, stands, told,
            kinds,
        )  # fmt: skip
        _stand(kinds, number, order, times[: len(mine)])
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
            few = np.int64(pages[from_ + kinds[i, 6]])
            while j < number and (kinds[j, 3] == 1 or kinds[j, 3] == 3):
                if kinds[j, 3] == 1:
                    few = min(few, np.int64(pages[from_ + kinds[j, 6]]))
                j += 1
            if j < number and kinds[j, 4] == 3:  # no code without the blank line before it
                while kinds[j - 1, 3] == 3:
                    j -= 1
            least[total] = few
            rows[total] = row
            starts[total] = kinds[i, 0] - start
            lengths[total] = kinds[j - 1, 1] - kinds[i, 0]
            total += 1
            i = j
    return total


@njit(cache=True, nogil=True)
def code(data, offsets, words, places, ends, out):
    """Whether each word stands in a line of code, fenced or indented: `out` bool[words]."""
    most = np.diff(offsets).max() if len(ends) else 0
    kinds = np.empty((most + 1, 8), np.int64)
    none, how = np.empty(0, np.uint64), np.empty(0, np.uint8)
    for row in range(len(ends)):
        first = ends[row - 1] if row else 0
        _line_kinds(
            data, offsets[row], offsets[row + 1], words, places, first, ends[row], none, how, none,
            kinds,
        )  # fmt: skip
        for i in range(first, ends[row]):
            out[i] = kinds[places[i, 2], 4] == 3
