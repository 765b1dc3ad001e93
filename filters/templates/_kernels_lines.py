"""Kernels of the template stage: what each line of a text is, and which are cut.

Words as in `_kernels_laid`. Plain-Python twins: tests/naive_templates.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# How a line stands: this page keeps it; a notice; half of the host's pages have it; the line before
# (after) it is the one that nearly all of its pages have there; nine in ten of the pages have it
FIRST, NOTICE, OFTEN, BEFORE, AFTER, NEARLY = 1, 4, 8, 16, 32, 64
BLOCK_LINES = 3  # of boilerplate at an end of a page; two lines may follow each other by chance
BLOCK_WORDS = 12  # or as many words in two of them; and of a line that is a sentence
SCALE = 7  # lines of a block that may be a scale of answers, and so stand again and again
LONGEST = 30  # words; a longer line is boilerplate where half of the pages have it, or in a form
FORM = 3  # lines of a block for each that is a sentence: a form, which goes whole
HEAD, FOOT = 4, 3  # lines of a page among which notices stand, a quarter of its lines at most
PROGRAM = 3  # lines that go or are code, one of which is: they are a program
ITEMS = 2  # of a list, one of which stays: so do all; menus name the page itself, or a new part
AGAIN = 3  # times; menus stand on a page twice or so
ENDS = 2  # times; a menu may stand at both ends of a page, a scale of answers below each question
AT_END, UNSEEN, MIXED = -2, -3, -4  # in place of a line's neighbour on a page
STAYS, WENT = 5, 6  # states of lines while others are looked at; 1 in place of the first: it may go
UNDERLINE = 4  # signs; fewer underline nothing
HEADING = 4  # words; a line of at most so many may head the paragraph or list after it
PARAGRAPH = 8  # words; a line of fewer is not one
TABLE, CODE, LIST = 2, 3, 4  # forms of lines, beside 0 plain, 1 heading
# Bits of lines, as of `_kernels_marks`: blank, begins with ``` or ~~~, indented, begins with - * or
# +, reads as code, begins with # or |, an item of a list; begins as code and menus do; a fence of
# ~, one with nothing behind it; <pre> opens, and closes; above them the number of a fence's signs
BLANK, FENCE, DEEP, BULLET, READS, HASH, BAR, ITEM = (1 << _bit for _bit in range(8))
OPENS, TILDE, BARE, PRE, PRE_END = (1 << _bit for _bit in range(8, 13))
LENGTH = 16


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
def _line_kinds(digests, lines, marks, first, last, gone, how, marked, kinds):
    """What each line of one text is, `lines[first:last]`; returns how many.

    `kinds` int64[lines, 7]: first byte, byte after (the line feed included), words, state (0 kept,
    1 goes, 2 fill-in, 3 blank, 4 kept for its host), form (0 plain, 1 heading, 2 row of a table,
    3 code, 4 item of a list), how a line that goes stands, its place in `gone` or -1.
    """
    for i in range(first, last):
        state = 0
        stands = 0
        place = -1
        if marks[i] & BLANK:
            state = 3
        elif lines[i, 2] > 0:
            if len(marked) and _found_at(marked, digests[i]) >= 0:
                state = 2
            else:
                place = _found_at(gone, digests[i])
                if place >= 0:
                    stands = how[place]
                    state = 4 if stands & FIRST else 1
        number = i - first
        kinds[number, 0] = lines[i, 0]
        kinds[number, 1] = lines[i, 1]
        kinds[number, 2] = lines[i, 2]
        kinds[number, 3] = state
        kinds[number, 5] = stands
        kinds[number, 6] = place
    _forms(marks[first:last], kinds)
    return last - first


@njit(cache=True, nogil=True)
def _underlines(marks, kinds, i):
    """Whether a fence is none but underlines the line before, as reStructuredText has headings."""
    size = marks[i] >> LENGTH
    if i == 0 or size < UNDERLINE or marks[i - 1] & BLANK or not marks[i] & BARE:
        return False
    return size >= kinds[i - 1, 1] - kinds[i - 1, 0] - 1


@njit(cache=True, nogil=True)
def _forms(marks, kinds):
    """Form of each line. Code stands between fences, is indented, where that tells, or reads so.

    A fence ends at one of the same sign that is as long at least, <pre> where it is closed; what is
    as long as the line above it underlines a heading. A line that begins as code and menus do
    (`return policy`) is code beside a line of code.

    Whole pages as text are indented by depth, and hold no code for that: fewer than 3 of 4 lines
    may be, of those that do not go, or the lines that go would bear on what a second run takes.
    """
    balance = 0
    closed = 0  # the last line that closes a <pre>
    for i in range(len(marks)):
        if kinds[i, 3] in (0, 2):
            balance += -1 if marks[i] & DEEP else 3
        if marks[i] & PRE_END:
            closed = i
    indents = balance > 0
    block = indents  # the line before is blank or indented code
    fence = 0  # mark of the line that opened a fence, or a <pre>
    near = False  # the line before, blank ones apart, is code
    for i in range(len(marks)):
        mark = marks[i]
        form = 0
        if fence:
            form = CODE
            if fence & PRE:
                fence = 0 if mark & PRE_END else fence
            elif mark & FENCE and mark & BARE and (mark ^ fence) & TILDE == 0:
                fence = 0 if mark >> LENGTH >= fence >> LENGTH else fence
        elif (mark & FENCE and not _underlines(marks, kinds, i)) or (mark & PRE and i < closed):
            fence = np.int64(mark)
            form = CODE
        elif mark & READS or (block and mark & DEEP and not mark & BULLET):
            form = CODE
        elif near and mark & OPENS:
            form = CODE
        elif mark & HASH:
            form = 1
        elif mark & BAR:
            form = TABLE
        elif mark & ITEM:
            form = LIST
        block = indents and (form == CODE or mark & BLANK)
        near = form == CODE or (near and mark & BLANK)
        kinds[i, 4] = form
    near = False
    for i in range(len(marks) - 1, -1, -1):
        if near and marks[i] & OPENS:
            kinds[i, 4] = CODE
        near = kinds[i, 4] == CODE or (near and marks[i] & BLANK)


@njit(cache=True, nogil=True)
def _linked(kinds, i, j, beside):
    """Whether two lines, one after the other, stand together wherever the host has them.

    And on this page: a line that ends a scale has another after it where the scale stands again.
    """
    if kinds[i, 3] not in (1, 4) or kinds[j, 3] not in (1, 4):
        return False
    if beside[kinds[i, 6], 1] == MIXED or beside[kinds[j, 6], 0] == MIXED:
        return False
    return kinds[i, 5] & AFTER != 0 and kinds[j, 5] & BEFORE != 0


@njit(cache=True, nogil=True)
def _stand(kinds, number, order, times, beside):
    """Which lines go, looked at again as long as some do: what they leave is another page.

    Where a menu goes, what is below it stands at the head, and so it would for a second run.
    """
    size = 0
    may = 0  # how many lines may go yet
    for i in range(number):
        if kinds[i, 2] > 0:
            order[size] = i
            size += 1
            may += kinds[i, 3] == 1
    left = size + 1
    while may > 0 and size < left:
        _go(kinds, order, size, times, beside)
        left, size, may = size, 0, 0
        for k in range(left):
            i = order[k]
            if kinds[i, 3] == 1:
                kinds[i, 3] = WENT
                continue
            if kinds[i, 3] == STAYS:
                kinds[i, 3] = 1
                may += 1
            order[size] = i
            size += 1
    for i in range(number):
        if kinds[i, 3] == 1:
            kinds[i, 3] = 0
        elif kinds[i, 3] == WENT:
            kinds[i, 3] = 1


@njit(cache=True, nogil=True)
def _go(kinds, order, size, times, beside):
    """Keep lines that do not stand as the host's pages have them.

    Boilerplate stands in blocks: lines that follow each other on nearly all pages that have them.
    At an end of the page, a block goes that nine in ten of the host's pages have and that stands at
    most `ENDS` times (half of them may end in the same answer or value), or one of `BLOCK_LINES` or
    `BLOCK_WORDS` that stands once; but where fewer than half of the pages have it, neither a block
    of which most lines are sentences, nor a line of over `LONGEST` words unless at most one line in
    `FORM` is a sentence (a form for feedback: half of it is worse than all). Between lines that
    stay, one of `BLOCK_LINES` goes if half of the pages have each of its lines, most are no
    sentences, and one in four stands once, or there are more than in a scale of answers. A line of
    content recurs wherever it is needed (an ingredient, a statement, a label, an answer, a refrain,
    a clause) and has other neighbours there. What is last above a footer stands at the foot when
    the footer is gone: that alone must say nothing, or content would go on going.

    `order` int64[size] has the lines with words; `times` int64[candidates] and `beside`
    int64[candidates, 2] are scratch. Column 3 of `kinds` becomes `STAYS` in those that do.
    """
    times[:] = 0
    for k in range(size):
        place = kinds[order[k], 6]
        if place >= 0:
            times[place] += 1
    beside[:] = UNSEEN
    for k in range(size):
        place = kinds[order[k], 6]
        if place >= 0:
            before = kinds[order[k - 1], 6] if k > 0 else AT_END
            after = kinds[order[k + 1], 6] if k < size - 1 else AT_END
            beside[place, 0] = before if beside[place, 0] in (UNSEEN, before) else MIXED
            beside[place, 1] = after if beside[place, 1] in (UNSEEN, after) else MIXED
    quarter = max(size // 4, 1)
    head, foot = min(HEAD, quarter), size - min(FOOT, quarter)
    top, bottom = 0, size  # without fill-in lines at the ends
    while top < size and kinds[order[top], 3] == 2:
        top += 1
    while bottom > top and kinds[order[bottom - 1], 3] == 2:
        bottom -= 1
    k = 0
    while k < size:
        begin = k
        while k + 1 < size and _linked(kinds, order[k], order[k + 1], beside):
            k += 1
        k += 1
        first, last = order[begin], order[k - 1]
        edge = begin == top and kinds[first, 5] & BEFORE != 0 and (top == 0 or k - begin > 1)
        end = k == bottom and kinds[last, 5] & AFTER != 0 and (bottom == size or k - begin > 1)
        lines, words, once, twice, often, nearly, said = 0, 0, 0, 0, 0, 0, 0
        for m in range(begin, k):
            i = order[m]
            if kinds[i, 3] in (1, 4):
                lines += 1
                words += kinds[i, 2]
                once += times[kinds[i, 6]] == 1
                twice += times[kinds[i, 6]] <= ENDS
                often += kinds[i, 5] & OFTEN != 0
                nearly += kinds[i, 5] & NEARLY != 0
                said += kinds[i, 2] >= BLOCK_WORDS
        if edge or end:
            large = once > 0 and (lines >= BLOCK_LINES or words >= BLOCK_WORDS)
            large &= often == lines or 2 * said < lines
            goes = (nearly == lines and 2 * twice >= lines) or large
        else:
            apart = 4 * once >= lines or lines > SCALE
            goes = often == lines and lines >= BLOCK_LINES and apart and 2 * said < lines
        for m in range(begin, k):
            i = order[m]
            if kinds[i, 3] != 1:
                continue
            notice = kinds[i, 5] & NOTICE != 0 and (m < head or m >= foot)
            short = kinds[i, 2] <= LONGEST or kinds[i, 5] & OFTEN != 0 or FORM * said <= lines
            kinds[i, 3] = 1 if (goes and short) or notice else STAYS
    _stretches(kinds, order, size, times)


@njit(cache=True, nogil=True, inline="always")
def _usual(kinds, i):
    """Whether half of the host's pages have a line."""
    return kinds[i, 3] in (1, 4, STAYS) and kinds[i, 5] & OFTEN != 0


@njit(cache=True, nogil=True, inline="always")
def _again(kinds, i, times):
    """Whether a line stands on its page over `AGAIN` times."""
    return kinds[i, 6] >= 0 and times[kinds[i, 6]] > AGAIN


@njit(cache=True, nogil=True)
def _stretches(kinds, order, size, times):
    """Menus: lines in a row that half of the pages have, which go though no block of them does.

    Over `SCALE` of them, of which three in four do not stand on the page again and again (answers
    of a table do) and have the neighbour after them that nearly all pages have there (values below
    labels have not), without what stands again and again at the ends of the row. Parts of a menu
    stand on a page more than once, so that blocks end at them. And lines between two that go.
    """
    k = 0
    while k < size:
        begin = k
        rarely, said, linked = 0, 0, 0
        while k < size and _usual(kinds, order[k]):
            i = order[k]
            rarely += not _again(kinds, i, times)
            said += kinds[i, 2] >= BLOCK_WORDS
            linked += kinds[i, 5] & AFTER != 0
            k += 1
        lines = k - begin
        if lines > SCALE and 4 * min(rarely, linked) >= 3 * lines and 2 * said < lines:
            first, stop = begin, k  # without a scale above or below a menu
            while first < stop and _again(kinds, order[first], times):
                first += 1
            while stop > first and _again(kinds, order[stop - 1], times):
                stop -= 1
            for m in range(first, stop if stop - first > SCALE else first):
                if kinds[order[m], 3] == STAYS:
                    kinds[order[m], 3] = 1
        k += k == begin
    k = 0
    while k < size:
        begin = k
        while k < size and kinds[order[k], 3] == STAYS and kinds[order[k], 5] & OFTEN != 0:
            k += 1
        goes = begin > 0 and kinds[order[begin - 1], 3] == 1
        goes |= k < size and kinds[order[k], 3] == 1
        goes &= begin == 0 or kinds[order[begin - 1], 3] == 1
        goes &= k == size or kinds[order[k], 3] == 1
        for m in range(begin, k):
            kinds[order[m], 3] = 1 if goes else STAYS
        k += k == begin


@njit(cache=True, nogil=True)
def _protect(kinds, number):
    """Keep code with what stands between its lines, tables of which a row stays, and headings.

    And lists of which one item in `ITEMS` stays.
    """
    i = 0
    while i < number:
        if kinds[i, 4] != CODE:
            i += 1
            continue
        last = i  # line of code of those that follow with nothing between that stays
        lines, codes, few = 0, 0, 0
        j = i
        while j < number and (kinds[j, 3] in (1, 3) or kinds[j, 4] == CODE):
            few += kinds[j, 3] != 3
            if kinds[j, 4] == CODE:
                codes += 1
                last, lines = j, few
            j += 1
        for k in range(i, last if PROGRAM * codes >= lines else i):
            if kinds[k, 3] == 1:
                kinds[k, 3] = 0
        i = last + 1
    i = 0
    while i < number:
        form = kinds[i, 4]
        if form == CODE and kinds[i, 3] == 1:
            kinds[i, 3] = 0
        if form not in (TABLE, LIST):
            i += 1
            continue
        j = i
        items, stay = 0, 0
        while j < number and kinds[j, 4] == form:
            items += kinds[j, 2] > 0
            stay += kinds[j, 2] > 0 and kinds[j, 3] != 1
            j += 1
        if stay * (ITEMS if form == LIST else items) >= max(items, 1):
            for k in range(i, j):
                if kinds[k, 3] == 1:
                    kinds[k, 3] = 0
        i = j
    under = False  # something of the section stays
    paragraph = False  # the next line is a paragraph, or an item of a list, that stays
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
        paragraph = state != 1 and (kinds[i, 2] >= PARAGRAPH or kinds[i, 4] == LIST)
        under |= state != 1


@njit(cache=True, nogil=True)
def strip(
    digests, lines, marks, ends, gone, how, pages, gone_ends, marked, marked_ends, rows, starts,
    lengths, least, fills,
):  # fmt: skip
    """Lines to cut, with blank lines after them unless code follows; returns how many cuts.

    `digests`, `lines`, `ends`: as of `_kernels.lines_of`; `marks` as of `_kernels_marks`. `gone`
    and `marked` uint64: digests of lines, ascending in each row, rows ending at `*_ends`; of those
    in `gone`, `how` uint8 has the bits that `_stand` reads, `pages` uint32 how many pages of the
    host have it. `rows`, `starts`, `lengths` int64[lines] take the cuts, `least` the pages of the
    line in a cut that the fewest have; `fills` int64[rows, 4]: fill-in lines, words in them, and
    bytes (first, after) of the first of them, counted from the text's start.
    """
    most = 0
    for row in range(len(ends)):
        most = max(most, ends[row] - (ends[row - 1] if row else 0))
    kinds = np.empty((most, 7), np.int64)
    order = np.empty(most, np.int64)
    times = np.empty(len(gone), np.int64)
    beside = np.empty((len(gone), 2), np.int64)
    total = 0
    for row in range(len(ends)):
        fills[row, :] = 0
        from_ = gone_ends[row - 1] if row else 0
        mine, stands = gone[from_ : gone_ends[row]], how[from_ : gone_ends[row]]
        told = marked[(marked_ends[row - 1] if row else 0) : marked_ends[row]]
        first = ends[row - 1] if row else 0
        if first == ends[row] or (len(mine) == 0 and len(told) == 0):
            continue
        start = lines[first, 0]
        number = _line_kinds(digests, lines, marks, first, ends[row], mine, stands, told, kinds)
        _stand(kinds, number, order, times[: len(mine)], beside[: len(mine)])
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
            if j < number and kinds[j, 4] == CODE:  # no code without the blank line before it
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
def code(lines, marks, ends, out):
    """Whether each line is one of code: `out` bool[lines]."""
    none, nothing, how = (
        np.empty(0, np.uint64),
        np.zeros(len(lines), np.uint64),
        np.empty(0, np.uint8),
    )
    for row in range(len(ends)):
        first = ends[row - 1] if row else 0
        kinds = np.empty((ends[row] - first, 7), np.int64)
        _line_kinds(nothing, lines, marks, first, ends[row], none, how, none, kinds)
        for i in range(first, ends[row]):
            out[i] = kinds[i - first, 4] == CODE
