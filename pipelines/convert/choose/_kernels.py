"""Which nodes of a page are its main text, and why the others are not.

Self-contained, as Numba's cache does not see edits elsewhere; tags by `tree.vocabulary.TAG`, hints
by its bits, which a test holds. Integers alone, each loop linear in nodes: the same on every CPU,
and no page is slow. In this order:

1. cuts by tag (`nav`, page `footer`...) and by words of `class`, `id`, `role`, unless the element
   holds so much of the page that the name must mean something else;
2. narrowing: from the body down into the one child that holds most of what is left, by prose
   where the page is prose, else by text and sentence marks; never into one of several twins
   (posts of a thread, cards of a list);
3. lists of links; on pages of prose also single links in blocks of their own, and captions;
4. short labels that stand three times or more in blocks of their own (`Reply`, `Read more`).

The numbers below were set by hand on one half of the sites of the benchmark (benchmarks/
extraction.py), never on the other; each was moved both ways and stands where the mean F1 was best
or did not change. Alternative: one search for the best node (Readability, Resiliparse): as good on
articles, 0.25 F1 worse on listings.
"""

# ruff: noqa: PLR1714, SIM102, SIM109
from __future__ import annotations

import numpy as np
from numba import njit

TEXT = 1
(A, BODY, MAIN, ARTICLE, NAV, HEADER, FOOTER, ASIDE, FORM, P, H1, H6, UL, OL, LI, DL, DT, TABLE) = (
    2, 4, 6, 7, 9, 10, 11, 12, 13, 15, 16, 21, 22, 23, 24, 25, 26, 28
)  # fmt: skip
(TR, TD, TH, PRE, CODE, BLOCKQUOTE, FIGCAPTION, NOSCRIPT, BUTTON, DIALOG, LABEL, MENU, SEARCH) = (
    32, 33, 34, 36, 37, 42, 44, 50, 62, 67, 73, 93, 102
)  # fmt: skip

# Reasons, as vocabulary.REASONS counts them from 1; 255 is what never shows as text.
NAVIGATION, FOOT, TOP, SIDE, PROMOTION, RELATED, HIDDEN, FORMS = 1, 2, 3, 4, 6, 7, 10, 11
COOKIES, LINKS, OUTSIDE, LABELS, CAPTIONS = 13, 14, 15, 17, 18
NEVER = 255

REASON_BITS = 0xFFFF
CONTENT, MAIN_HINT, GUTTER, TAB, PRESS, CAROUSEL = (
    1 << 16, 1 << 17, 1 << 19, 1 << 21, 1 << 22, 1 << 23,
)  # fmt: skip
LAST_RESORT = (1 << 9) | (1 << 12)  # hidden, cookies

# Shares in per cent, lengths in characters that are not spaces.
SMALL_TEXT, SMALL_MARKS = 50, 40  # of the page: a named block above either is content
COOKIE_TEXT = 95
FORM_MARKS = 10  # sentence marks that make a form a text
PRESS_TEXT = 30  # the longest label of a button
SHARE, SHARE_MAIN, SHARE_ARTICLE = 75, 30, 75  # of its parent's weight that a child must hold
MARK_WEIGHT = 10  # one sentence mark weighs as much as so many characters
TWIN_TEXT = 40  # the shortest block that counts as a twin
BRIEF = 15  # the longest text of a link that counts as navigation
LIST_LINKS, LIST_SHARE, LIST_LENGTH = 3, 60, 60
PROSE_SHARE, PROSE_TEXT, PROSE_LINKED = 50, 400, 50
LABEL_TEXT, LABEL_TIMES = 20, 3
GUTTER_TEXT = 20_000
KEPT_MARKS = 20  # a page that keeps less of its sentence marks is chosen again without words


@njit(cache=True, nogil=True)
def _heads(t):
    return H1 <= t <= H6 or t == DT


@njit(cache=True, nogil=True)
def _by_name(i, t, above, within, hints, chars, marks, small, total, never, product, mask):
    """The reason to cut one element by its tag and its hints, or 0."""
    h = hints[i]
    if never[t] and not (t == BUTTON and _heads(above)):
        return NEVER
    if (
        h & PRESS
        and chars[i] <= PRESS_TEXT
        and not marks[i]
        and not _heads(t)
        and not _heads(above)
    ):
        return FORMS
    if t == NAV or t == MENU or t == SEARCH:
        return NAVIGATION
    if h & (1 << (COOKIES - 1)) and t != BODY and chars[i] * 100 <= total * COOKIE_TEXT:
        return COOKIES
    if t == DIALOG:
        return PROMOTION
    if not small:
        return 0
    if t == NOSCRIPT:
        return HIDDEN
    if product and h & CAROUSEL:
        return RELATED
    if (t == LABEL or t == FORM) and marks[i] <= FORM_MARKS:
        return FORMS
    if t == FOOTER and not within & 1:
        return FOOT
    if t == HEADER and not within:
        return TOP
    if t == ASIDE:
        return SIDE
    if h & REASON_BITS and not h & CONTENT:
        if t == BODY or t == MAIN or t == ARTICLE or t == PRE or H1 <= t <= H6:
            return 0
        k = 0
        while not (h >> k) & 1:
            k += 1
        if (mask >> k) & 1 and not (k + 1 == HIDDEN and h & TAB):
            return k + 1
    return 0


@njit(cache=True, nogil=True)
def _digits(buf, tag, last, start, end, i):
    """Whether the text under a node is digits and spaces: the numbers beside lines of code."""
    for j in range(i + 1, last[i]):
        if tag[j] == TEXT:
            for at in range(start[j], end[j]):
                c = buf[at]
                if c > 32 and not 48 <= c <= 57:
                    return False
    return True


@njit(cache=True, nogil=True)
def _weigh(tag, parent, chars, marks, cut):
    """Of what is not cut, per node.

    Columns: characters, linked, in brief links, marks, links, code or quotations, prose.
    """
    n = len(tag)
    kept = np.zeros((n, 7), np.int32)
    for i in range(n - 1, -1, -1):
        if cut[i]:
            continue
        t = tag[i]
        row = kept[i]
        if t == TEXT:
            row[0] = chars[i]
            row[3] = marks[i]
        elif t == A:
            row[4] += 1
            row[1] = row[0]
            row[3] = 0
            if row[0] < BRIEF:
                row[2] = row[0]
        elif t == PRE or t == BLOCKQUOTE:
            row[5] = 1
        elif t == P:
            row[6] = row[0] - row[1] if row[3] else 0
        above = parent[i]
        if above >= 0:
            for k in range(6):
                kept[above, k] += row[k]
            if tag[above] != P:
                kept[above, 6] += row[6]
    return kept


@njit(cache=True, nogil=True)
def _narrow(tag, last, hints, cut, kept, prose):
    """The element that holds the main part."""
    root = 0
    while True:
        best = -1
        want = (
            kept[root, 6] if prose else kept[root, 0] - kept[root, 2] + MARK_WEIGHT * kept[root, 3]
        )
        i = root + 1
        while i < last[root]:
            t = tag[i]
            if t != TEXT and not cut[i]:
                have = kept[i, 6] if prose else kept[i, 0] - kept[i, 2] + MARK_WEIGHT * kept[i, 3]
                share = SHARE
                if t == MAIN or hints[i] & MAIN_HINT:
                    share = SHARE_MAIN
                elif t == ARTICLE:
                    share = SHARE_ARTICLE
                if have > 0 and have * 100 >= want * share:
                    best = i
                    break
            i = last[i]
        if best < 0:
            break
        t = tag[best]
        if t == TABLE or t == UL or t == OL or t == DL or t == P or t == PRE or t == TR:
            break
        if t != MAIN:
            twin = False
            i = root + 1
            while i < last[root] and not twin:
                twin = (
                    i != best
                    and not cut[i]
                    and tag[i] == t
                    and hints[i] == hints[best]
                    and kept[i, 0] >= TWIN_TEXT
                )
                i = last[i]
            if twin:
                break
        root = best
    want = kept[root, 0] - kept[root, 2] + MARK_WEIGHT * kept[root, 3]
    for i in range(root + 1, last[root]):
        if not cut[i] and tag[i] != TEXT and (tag[i] == MAIN or hints[i] & MAIN_HINT):
            have = kept[i, 0] - kept[i, 2] + MARK_WEIGHT * kept[i, 3]
            if have * 100 >= want * SHARE_MAIN:
                return i
    return root


@njit(cache=True, nogil=True)
def _labels(buf, tag, parent, last, start, end, chars, cut, root):
    """Cut short texts, alone in their blocks, that stand LABEL_TIMES times or more."""
    size = 256
    while size < 2 * (last[root] - root):
        size *= 2
    keys = np.zeros(size, np.int64)
    counts = np.zeros(size, np.int32)
    slot = np.full(last[root] - root, -1, np.int32)
    for i in range(root, last[root]):
        if tag[i] != TEXT or cut[i] or chars[i] == 0 or chars[i] > LABEL_TEXT or parent[i] < 0:
            continue
        above = parent[i]
        t = tag[above]
        if t == P or t == PRE or t == CODE or t == TD or t == TH or _heads(t):
            continue
        if last[above] - above > 4:
            continue
        up = tag[parent[above]] if parent[above] >= 0 else 0
        if up == P or up == PRE or up == CODE or up == TD:
            continue
        h = np.int64(1469598103934665603)
        letters = 0
        for at in range(start[i], end[i]):
            c = buf[at]
            letters += 97 <= (c | 32) <= 122 or c >= 128
            if c > 32:
                h = (h ^ c) * np.int64(1099511628211)
        if letters < 2:
            continue
        h |= 1
        at = (h >> 20) & (size - 1)
        while keys[at] != 0 and keys[at] != h:
            at = (at + 1) & (size - 1)
        keys[at] = h
        counts[at] += 1
        slot[i - root] = at
    for i in range(root, last[root]):
        if slot[i - root] >= 0 and counts[slot[i - root]] >= LABEL_TIMES:
            cut[i] = LABELS


@njit(cache=True, nogil=True)
def _choose(buf, tag, parent, last, start, end, hints, chars, marks, never, block, product, mask):
    n = len(tag)
    cut = np.zeros(n, np.uint8)
    within = np.zeros(n, np.uint8)  # 1: in an article, 2: in the main element
    i = 0
    while i < n:
        t = tag[i]
        if t == TEXT:
            i += 1
            continue
        above = parent[i]
        w = within[above] if above >= 0 else np.uint8(0)
        small = chars[i] * 100 <= chars[0] * SMALL_TEXT and marks[i] * 100 <= marks[0] * SMALL_MARKS
        reason = _by_name(
            i, t, tag[above] if above >= 0 else 0, w, hints, chars, marks, small, chars[0],
            never, product, mask,
        )  # fmt: skip
        if (
            not reason
            and hints[i] & GUTTER
            and chars[i] <= GUTTER_TEXT
            and _digits(buf, tag, last, start, end, i)
        ):
            reason = LABELS
        if reason:
            cut[i : last[i]] = reason
            i = last[i]
            continue
        within[i] = w | (t == ARTICLE) | (2 if t == MAIN or hints[i] & MAIN_HINT else 0)
        i += 1
    kept = _weigh(tag, parent, chars, marks, cut)
    prose = kept[0, 6] * 100 >= kept[0, 0] * PROSE_SHARE and kept[0, 6] >= PROSE_TEXT
    root = _narrow(tag, last, hints, cut, kept, prose)
    for i in range(n):
        if not cut[i] and (i < root or i >= last[root]):
            cut[i] = OUTSIDE
    i = root + 1
    while i < last[root]:
        t = tag[i]
        if cut[i] or t == TEXT or not block[t]:
            i += 1
            continue
        text, linked, brief, found, links, code = kept[i, :6]
        reason = 0
        if text * 2 < kept[root, 0] and not code:
            if links >= LIST_LINKS and found <= links and brief * 100 >= text * LIST_SHARE:
                if linked <= LIST_LENGTH * links:
                    reason = LINKS
            if prose and links and linked * 100 >= text * PROSE_LINKED:
                if t != P and t != LI and not _heads(t):
                    reason = LINKS
        if prose and t == FIGCAPTION:
            reason = CAPTIONS
        if reason:
            for j in range(i, last[i]):
                if not cut[j]:
                    cut[j] = reason
            i = last[i]
            continue
        i += 1
    _labels(buf, tag, parent, last, start, end, chars, cut, root)
    return cut, root


@njit(cache=True, nogil=True)
def choose(buf, tag, parent, last, start, end, hints, chars, marks, never, block, product):
    """Reason per node (0: kept) and the element that holds the main part.

    `product`: the page says that it sells one thing; lists of other things are cut there.
    """
    cut, root = _choose(
        buf, tag, parent, last, start, end, hints, chars, marks, never, block, product, REASON_BITS
    )
    if product:
        return cut, root
    left = 0
    for i in range(len(tag)):
        if tag[i] == TEXT and not cut[i]:
            left += marks[i]
    if left * 100 < marks[0] * KEPT_MARKS:
        return _choose(
            buf, tag, parent, last, start, end, hints, chars, marks, never, block, product,
            LAST_RESORT,
        )  # fmt: skip
    return cut, root


@njit(cache=True, nogil=True)
def tally(tag, chars, cut):
    """Characters per reason, over the text nodes; 0 is what is kept."""
    found = np.zeros(256, np.int64)
    for i in range(len(tag)):
        if tag[i] == TEXT:
            found[cut[i]] += chars[i]
    return found
