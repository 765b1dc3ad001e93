"""Chosen nodes to text: headings, lists, tables, code.

Self-contained, as Numba's cache does not see edits elsewhere; tags by `tree.vocabulary.TAG`, which
a test holds. One pass over the nodes and the bytes that are kept: 0.08 ms for a page of 250 kB.
"""

# ruff: noqa: PLR1714, SIM102, SIM109
from __future__ import annotations

import numpy as np
from numba import njit

TEXT = 1
(P, H1, H6, UL, OL, LI, TABLE, TR, TD, TH, PRE, CODE, KBD, SAMP, BR, HR, BLOCKQUOTE, SUP) = (
    15, 16, 21, 22, 23, 24, 28, 32, 33, 34, 36, 37, 38, 39, 40, 41, 42, 76
)  # fmt: skip
PLAINTEXT, XMP = 91, 88
CODE_HINT = 1 << 18
SPACE = 32
NEWLINE = 10
TICK = 96
BAR = 124
MARK_HEADING, MARK_BULLET, MARK_NUMBER = 1, 2, 3
SHORT_CELL = 60  # characters: below, the cells of a row that is no data stay on one line
MAX_INDENT = 8  # levels of nested lists that are shown


@njit(cache=True, nogil=True)
def _language(buf, start, end):
    """Where in a start tag the name after `language-`, `lang-` or `source-` stands; 0, 0: none."""
    for word in (
        np.frombuffer(b"language-", np.uint8),
        np.frombuffer(b"lang-", np.uint8),
        np.frombuffer(b"source-", np.uint8),
    ):
        size = len(word)
        for at in range(start, min(end - size, start + 2_000)):
            if buf[at] != word[0]:
                continue
            k = 1
            while k < size and buf[at + k] == word[k]:
                k += 1
            if k < size:
                continue
            stop = at + size
            while stop < end and stop - at - size < 20:
                c = buf[stop]
                if not (97 <= (c | 32) <= 122 or 48 <= c <= 57 or c == 43 or c == 35 or c == 45):
                    break
                stop += 1
            if stop > at + size:
                return at + size, stop
    return 0, 0


@njit(cache=True, nogil=True)
def render(buf, tag, parent, last, start, end, hints, chars, cut, root, block, data, marks):
    """The text of the kept nodes under `root`, as bytes. `marks`: with Markdown's marks or without.

    Worst case of growth: 2 bytes for each byte, 64 for each node.
    """
    n = len(tag)
    stop = last[root]
    out = np.empty(2 * len(buf) + 64 * n + 64, np.uint8)
    stack = np.empty(n + 1, np.int32)
    opened = np.zeros(n + 1, np.int64)  # per level: where in `out` it began, for those that need it
    counter = np.zeros(n, np.int32)
    lists = 0
    top = 0
    o = 0
    breaks = 0  # line breaks owed before the next character
    space = False
    mark = 0
    value = 0
    pre = -1
    fenced = False
    table = -1  # the data table around, if any
    cell = False  # inside a row of it
    shown = 0  # characters so far
    row_shown = 0
    first_cell = True
    row_cells = 0
    row_heads = 0
    rows_done = 0
    whole = max(1, chars[root])
    i = root
    while True:
        while top and (i >= stop or last[stack[top - 1]] <= i):  # close
            top -= 1
            e = stack[top]
            t = tag[e]
            if e == pre:
                pre = -1
                if shown == opened[top]:
                    breaks = 2
                elif fenced:
                    while out[o - 1] == NEWLINE or out[o - 1] == SPACE:
                        o -= 1
                    out[o] = NEWLINE
                    o += 1
                    for k in range(3):
                        out[o + k] = TICK
                    o += 3
                    breaks = 2
                else:
                    while o and out[o - 1] == NEWLINE:
                        o -= 1
                    breaks = 2
                fenced = False
            elif cell and t == TR:
                if shown == row_shown:
                    o = opened[top]
                else:
                    out[o] = SPACE
                    out[o + 1] = BAR
                    o += 2
                    if row_heads and rows_done == 0:
                        out[o] = NEWLINE
                        out[o + 1] = BAR
                        o += 2
                        for _ in range(row_cells):
                            for c in (SPACE, 45, 45, 45, SPACE, BAR):
                                out[o] = c
                                o += 1
                    rows_done += 1
                breaks = 1
                space = False
                cell = False
            elif e == table:
                table = -1
                breaks = 2
            elif opened[top] and (t == CODE or t == KBD or t == SAMP):
                if shown == opened[top] - 1:  # nothing shown: take the tick back
                    if o and out[o - 1] == TICK:
                        o -= 1
                else:
                    out[o] = TICK
                    o += 1
            elif block[t] and pre < 0:
                if t == LI or H1 <= t <= H6:
                    mark = 0  # of an empty one
                if t == UL or t == OL:
                    lists -= 1
                    breaks = max(breaks, 1 if lists else 2)
                elif t == P or H1 <= t <= H6 or t == BLOCKQUOTE or t == TABLE:
                    tight = t == P and lists and parent[e] >= 0 and tag[parent[e]] == LI
                    breaks = max(breaks, 1 if tight else 2)
                elif (t == TD or t == TH) and chars[e] < SHORT_CELL:
                    space = True
                else:
                    breaks = max(breaks, 1)
        if i >= stop:
            break
        if cut[i]:
            i = max(last[i], i + 1)
            continue
        t = tag[i]
        if t == TEXT:
            above = parent[i]
            plain = above >= 0 and (tag[above] == PLAINTEXT or tag[above] == XMP)
            at = start[i]
            while at < end[i]:
                c = buf[at]
                at += 1
                if c == 38 and not plain:  # &
                    d = buf[at] if at < end[i] else 0
                    if d == 97:
                        at += 4
                    elif d == 108:
                        c = 60
                        at += 3
                    elif d == 103:
                        c = 62
                        at += 3
                    elif d == 113:
                        c = 34
                        at += 5
                    elif d == 110:
                        c = SPACE
                        at += 5
                if pre >= 0:
                    if o and breaks:
                        for _ in range(breaks):
                            out[o] = NEWLINE
                            o += 1
                    breaks = 0
                    if c > SPACE:
                        shown += 1
                    out[o] = c
                    o += 1
                    continue
                if c <= SPACE:
                    space = True
                    continue
                if breaks and cell:
                    breaks = 0
                    space = True
                if o and breaks:
                    for _ in range(breaks):
                        out[o] = NEWLINE
                        o += 1
                elif space and o and out[o - 1] != NEWLINE and not (cell and out[o - 1] == SPACE):
                    out[o] = SPACE
                    o += 1
                breaks = 0
                space = False
                if mark:
                    if marks and not cell:
                        if mark == MARK_HEADING:
                            for _ in range(value):
                                out[o] = 35
                                o += 1
                        else:
                            for _ in range(2 * min(MAX_INDENT, max(0, lists - 1))):
                                out[o] = SPACE
                                o += 1
                            if mark == MARK_BULLET:
                                out[o] = 45
                                o += 1
                            else:
                                digits = 1
                                while value >= 10**digits and digits < 9:
                                    digits += 1
                                for k in range(digits - 1, -1, -1):
                                    out[o] = 48 + (value // 10**k) % 10
                                    o += 1
                                out[o] = 46
                                o += 1
                        out[o] = SPACE
                        o += 1
                    mark = 0
                if cell and c == BAR and marks:
                    out[o] = 92
                    o += 1
                out[o] = c
                o += 1
                shown += 1
            i += 1
            continue
        opened[top] = 0
        if t == BR or t == HR:
            if pre >= 0:
                out[o] = NEWLINE
                o += 1
            else:
                breaks = max(breaks, 1 if t == BR else 2)
                mark = 0 if t == HR else mark
            i += 1
            continue
        if pre >= 0:
            if block[t] and o and out[o - 1] != NEWLINE:
                out[o] = NEWLINE
                o += 1
        elif t == PRE and not cell:
            breaks = max(breaks, 2)
            mark = 0
            space = False
            pre = i
            opened[top] = shown
            fenced = False
            if marks and chars[i]:
                inner = i + 1
                while inner < last[i] and tag[inner] == TEXT:
                    inner += 1
                a = parent[i]
                b = parent[a] if a >= 0 else -1
                fenced = (
                    hints[i] & CODE_HINT != 0
                    or (inner < last[i] and tag[inner] == CODE)
                    or (a >= 0 and hints[a] & CODE_HINT != 0)
                    or (b >= 0 and hints[b] & CODE_HINT != 0)
                    or chars[i] * 2 < whole
                )
                if fenced:
                    if o:
                        for _ in range(breaks):
                            out[o] = NEWLINE
                            o += 1
                    breaks = 0
                    for k in range(3):
                        out[o + k] = TICK
                    o += 3
                    s, f = _language(buf, start[i], end[i])
                    if f == 0 and inner < last[i] and tag[inner] == CODE:
                        s, f = _language(buf, start[inner], end[inner])
                    if f == 0 and a >= 0:
                        s, f = _language(buf, start[a], end[a])
                    if f == 0 and b >= 0:
                        s, f = _language(buf, start[b], end[b])
                    for k in range(s, f):
                        out[o] = buf[k]
                        o += 1
                    out[o] = NEWLINE
                    o += 1
        elif t == TABLE and data[i] and marks and table < 0:
            table = i
            rows_done = 0
            breaks = max(breaks, 2)
            mark = 0
        elif table >= 0 and t == TR and not cell:
            cell = True
            mark = 0
            breaks = 1 if rows_done else 2
            opened[top] = o
            row_shown = shown
            if o:
                for _ in range(breaks):
                    out[o] = NEWLINE
                    o += 1
            breaks = 0
            space = False
            first_cell = True
            row_cells = 0
            row_heads = 0
        elif cell and (t == TD or t == TH):
            if not first_cell:
                out[o] = SPACE
                o += 1
            out[o] = BAR
            out[o + 1] = SPACE
            o += 2
            first_cell = False
            row_cells += 1
            row_heads += t == TH
            breaks = 0
            space = False
        elif H1 <= t <= H6:
            breaks = max(breaks, 2)
            mark = MARK_HEADING
            value = t - H1 + 1
        elif t == UL or t == OL:
            breaks = max(breaks, 1 if lists else 2)
            lists += 1
        elif t == LI:
            breaks = max(breaks, 1)
            mark = MARK_BULLET
            above = parent[i]
            if above >= 0 and tag[above] == OL:
                counter[above] += 1
                mark = MARK_NUMBER
                value = counter[above]
        elif t == TD or t == TH:
            if chars[i] >= SHORT_CELL:
                breaks = max(breaks, 1)
            space = True
        elif t == P or t == BLOCKQUOTE or t == TABLE:
            tight = t == P and lists and parent[i] >= 0 and tag[parent[i]] == LI
            breaks = max(breaks, 1 if tight else 2)
        elif block[t]:
            breaks = max(breaks, 1)
        elif t == CODE or t == KBD or t == SAMP:
            if marks and 0 < chars[i] <= 200 and last[i] - i <= 16:
                ticks = False
                for at in range(start[i], start[last[i] - 1]):
                    ticks = ticks or buf[at] == TICK
                if tag[last[i] - 1] == TEXT:
                    for at in range(start[last[i] - 1], end[last[i] - 1]):
                        ticks = ticks or buf[at] == TICK
                up = parent[i]
                if up >= 0 and (tag[up] == CODE or tag[up] == KBD or tag[up] == SAMP):
                    ticks = True
                if not ticks and not mark:
                    if breaks and cell:
                        breaks = 0
                        space = True
                    if o and breaks:
                        for _ in range(breaks):
                            out[o] = NEWLINE
                            o += 1
                    elif space and o and out[o - 1] != NEWLINE:
                        out[o] = SPACE
                        o += 1
                    breaks = 0
                    space = False
                    out[o] = TICK
                    o += 1
                    opened[top] = shown + 1
        elif t == SUP and o and not space and not breaks and last[i] == i + 2:
            c = out[o - 1]
            d = buf[start[i + 1]] if tag[i + 1] == TEXT else np.uint8(0)
            if 97 <= (c | 32) <= 122 or 48 <= c <= 57 or c == 41:
                if 48 <= d <= 57 or d == 45 or d == 0xE2 or chars[i] == 1:
                    out[o] = 94
                    o += 1
        stack[top] = i
        top += 1
        i += 1
    return out[:o]
