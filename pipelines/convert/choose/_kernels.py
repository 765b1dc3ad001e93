"""Which part of a page is its main text, and why the rest is not.

Self-contained, as Numba's cache does not see edits elsewhere; tags by `tree.vocabulary.TAG`, hints
by its bits, which a test holds. Integers alone, each loop linear in nodes: the same on every CPU,
and no page is slow. In this order (`weed` then does the small things inside):

1. cuts by tag (`nav`, page `footer`...) and by words of `class`, `id`, `role`, unless the element
   holds so much of the page, or so much code or prose, that the name must mean something else;
2. narrowing: from the body down into the one child that holds most of what is left, by prose
   where the page is prose, else by text and sentence marks; never into one of several twins
   (posts of a thread, cards of a list) that weigh something together;
3. from there into the one element that says to be the main part (`main`, `entry-content`,
   `itemprop=articleBody`), if it holds enough.

The numbers below were set by hand on one half of the sites of the benchmark (benchmarks/
extraction.py), never on pages of the other. Where a wide range gave the same F1 there, the value
that cuts least was taken: on sites never seen, a cut that is not needed costs more than one that
is missed (a narrower rule of the same F1 on the first half lost 4% of the text of the second).
Alternatives: one search for the best node (Readability, Resiliparse): as good on articles, 0.25 F1
worse on listings; boosted trees over 119 features of each text, in folds of that half: 0.07 F1
worse (benchmarks/README.md).
"""

# ruff: noqa: PLR1714, SIM102, SIM109
from __future__ import annotations

import numpy as np
from numba import njit

TEXT = 1
(A, BODY, MAIN, ARTICLE, NAV, HEADER, FOOTER, ASIDE, FORM, P, H1, H6, UL, OL, DL, DT, TABLE) = (
    2, 4, 6, 7, 9, 10, 11, 12, 13, 15, 16, 21, 22, 23, 25, 26, 28
)  # fmt: skip
(TR, PRE, BLOCKQUOTE, NOSCRIPT, BUTTON, DIALOG, LABEL, MENU, SEARCH) = (
    32, 36, 42, 50, 62, 67, 73, 93, 102
)  # fmt: skip

# Reasons, as vocabulary.REASONS counts them from 1; 255 is what never shows as text.
NAVIGATION, FOOT, TOP, SIDE, PROMOTION, RELATED, HIDDEN, FORMS = 1, 2, 3, 4, 6, 7, 10, 11
COOKIES, OUTSIDE, LABELS = 13, 15, 17
NEVER = 255

REASON_BITS = 0xFFFF
CONTENT, MAIN_HINT, GUTTER, TAB, PRESS, CAROUSEL, BODY_HINT = (
    1 << 16, 1 << 17, 1 << 19, 1 << 21, 1 << 22, 1 << 23, 1 << 24,
)  # fmt: skip
LAST_RESORT = (1 << 9) | (1 << 12)  # hidden, cookies

# Shares in per cent, lengths in characters that are not spaces.
SMALL_TEXT, SMALL_MARKS = 50, 40  # of the page: a named block above either is content
# What no class word and no tag cuts: code; prose, by what a block of that name may well hold.
SPARED_CODE = 100
SPARED_PROSE = 200
SPARED_PROSE_KINDS = 1_000  # footers, sidebars, comments, reviews, consent are prose themselves
SPARED_PROSE_TAG = 600
KINDS = (1 << 1) | (1 << 3) | (1 << 7) | (1 << 15)  # footer, sidebar, comments, reviews
MARK_PROSE = 5  # text outside of paragraphs is prose as far as it has sentence marks
NAV_UNLINKED, NAV_LINKED = 100, 70  # more text outside of links, less in links: no navigation
COOKIE_TEXT = 50
FORM_MARKS = 10  # sentence marks that make a form a text
PRESS_TEXT = 30  # the longest label of a button
# Of its parent's weight (or of what was narrowed down to) that an element must hold.
SHARE_PROSE, SHARE = 75, 90
SHARE_ARTICLE, SHARE_WORD, SHARE_BODY, SHARE_MAIN = 75, 60, 40, 30
ALONE = 80  # of the weight of all elements that say the same of themselves
MARK_WEIGHT = 10  # one sentence mark weighs as much as so many characters
TWIN_TEXT, TWIN_SHARE = 100, 10  # the shortest twin; what all must hold of the one chosen
BRIEF = 15  # the longest text of a link that counts as navigation
PROSE_SHARE, PROSE_TEXT = 50, 400
GUTTER_TEXT = 20_000
KEPT_MARKS = 20  # a page that keeps less of its sentence marks is chosen again without words


@njit(cache=True, nogil=True)
def _heads(t):
    return H1 <= t <= H6 or t == DT


@njit(cache=True, nogil=True)
def _by_name(i, t, above, within, hints, marks, held, small, never, product, mask):
    """The reason to cut one element by its tag and its hints, or 0. `held`: its row of _weigh."""
    h = hints[i]
    text, linked, code = held[i, 0], held[i, 1], held[i, 7]
    prose = max(held[i, 6], min(text - linked, MARK_PROSE * held[i, 3]))
    if never[t] and not (t == BUTTON and _heads(above)):
        return NEVER
    if h & PRESS and text <= PRESS_TEXT and not marks[i] and not _heads(t) and not _heads(above):
        return FORMS
    if code > SPARED_CODE and t != DIALOG:
        return 0
    plain = prose <= SPARED_PROSE_TAG
    if plain and (t == NAV or t == MENU or t == SEARCH):
        return NAVIGATION
    if h & (1 << (COOKIES - 1)) and t != BODY and text * 100 <= held[0, 0] * COOKIE_TEXT:
        if prose <= SPARED_PROSE_KINDS:
            return COOKIES
    if t == DIALOG:
        return PROMOTION
    if not small:
        return 0
    if t == NOSCRIPT:
        return HIDDEN
    if plain:
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
        if not (mask >> k) & 1 or (k + 1 == HIDDEN and h & TAB):
            return 0
        if prose > (SPARED_PROSE_KINDS if (KINDS >> k) & 1 else SPARED_PROSE):
            return 0
        if (
            k + 1 == NAVIGATION
            and text - linked > NAV_UNLINKED
            and linked * 100 < text * NAV_LINKED
        ):
            return 0
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

    Columns: characters, linked, in brief links, marks, links, code or quotations, prose, code.
    """
    n = len(tag)
    kept = np.zeros((n, 8), np.int32)
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
            if t == PRE:
                row[7] = row[0]
        elif t == P:
            row[6] = row[0] - row[1] if row[3] else 0
        above = parent[i]
        if above >= 0:
            for k in range(6):
                kept[above, k] += row[k]
            if tag[above] != P:
                kept[above, 6] += row[6]
            if tag[above] != PRE:
                kept[above, 7] += row[7]
    return kept


@njit(cache=True, nogil=True)
def _weight(row):
    return row[0] - row[2] + MARK_WEIGHT * row[3]


@njit(cache=True, nogil=True)
def _twins(tag, last, hints, cut, kept, root, best):
    """Characters of the other children of `root` that look as `best` does."""
    text = 0
    i = root + 1
    while i < last[root]:
        if i != best and not cut[i] and tag[i] == tag[best] and hints[i] == hints[best]:
            if kept[i, 0] >= TWIN_TEXT:
                text += kept[i, 0]
        i = last[i]
    return text


@njit(cache=True, nogil=True)
def _narrow(tag, last, hints, cut, kept, prose):
    """The element that holds the main part, child by child."""
    root = 0
    while True:
        best = -1
        want = kept[root, 6] if prose else _weight(kept[root])
        i = root + 1
        while i < last[root]:
            t = tag[i]
            if t != TEXT and not cut[i]:
                have = kept[i, 6] if prose else _weight(kept[i])
                share = SHARE_PROSE if prose else SHARE
                if t == MAIN:
                    share = SHARE_MAIN
                elif hints[i] & MAIN_HINT:
                    share = SHARE_WORD
                elif hints[i] & BODY_HINT:
                    share = SHARE_BODY
                elif t == ARTICLE:
                    share = SHARE_ARTICLE
                if have > 0 and have * 100 >= want * share:
                    best = i
                    break
            i = last[i]
        if best < 0:
            return root
        t = tag[best]
        if t == TABLE or t == UL or t == OL or t == DL or t == P or t == PRE or t == TR:
            return root
        if t != MAIN:
            twins = _twins(tag, last, hints, cut, kept, root, best)
            if twins and twins * 100 >= kept[best, 0] * TWIN_SHARE:
                return root
        root = best


@njit(cache=True, nogil=True)
def _says(k, t, h):
    """Whether an element says to be the main part: 0 by its tag, 1 and 2 by its names."""
    if k == 0:
        return t == MAIN
    return h & (MAIN_HINT if k == 1 else BODY_HINT) != 0


@njit(cache=True, nogil=True)
def _inner(tag, last, hints, cut, kept, root):
    """The one element inside that says to be the main part and holds enough of it, or `root`."""
    want = _weight(kept[root])
    sums = np.zeros(3, np.int64)
    ends = np.zeros(3, np.int64)
    for i in range(root + 1, last[root]):
        if cut[i] or tag[i] == TEXT:
            continue
        for k in range(3):
            if i >= ends[k] and _says(k, tag[i], hints[i]):
                sums[k] += _weight(kept[i])
                ends[k] = last[i]
    for i in range(root + 1, last[root]):
        if cut[i] or tag[i] == TEXT:
            continue
        have = _weight(kept[i])
        for k in range(3):
            if have > 0 and _says(k, tag[i], hints[i]) and have * 100 >= sums[k] * ALONE:
                share = SHARE_MAIN if k == 0 else SHARE_WORD if k == 1 else SHARE_BODY
                if have * 100 >= want * share:
                    return i
    return root


@njit(cache=True, nogil=True)
def _choose(buf, tag, parent, last, start, end, hints, chars, marks, never, product, mask):
    n = len(tag)
    cut = np.zeros(n, np.uint8)
    held = _weigh(tag, parent, chars, marks, cut)
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
            i, t, tag[above] if above >= 0 else 0, w, hints, marks, held, small, never, product,
            mask,
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
    root = _inner(tag, last, hints, cut, kept, root)
    for i in range(n):
        if not cut[i] and (i < root or i >= last[root]):
            cut[i] = OUTSIDE
    return cut, root, kept, prose


@njit(cache=True, nogil=True)
def choose(buf, tag, parent, last, start, end, hints, chars, marks, never, product):
    """Reason per node (0: kept), the main part's element, weights, whether the page is prose.

    `product`: the page says that it sells one thing; lists of other things are cut there. Weights
    (nodes x 8, see `_weigh`) are of what was left before narrowing.
    """
    cut, root, kept, prose = _choose(
        buf, tag, parent, last, start, end, hints, chars, marks, never, product, REASON_BITS
    )
    left = 0
    for i in range(len(tag)):
        if tag[i] == TEXT and not cut[i]:
            left += marks[i]
    if not product and left * 100 < marks[0] * KEPT_MARKS:
        cut, root, kept, prose = _choose(
            buf, tag, parent, last, start, end, hints, chars, marks, never, product, LAST_RESORT
        )
    return cut, root, kept, prose


@njit(cache=True, nogil=True)
def tally(tag, chars, cut):
    """Characters per reason, over the text nodes; 0 is what is kept."""
    found = np.zeros(256, np.int64)
    for i in range(len(tag)):
        if tag[i] == TEXT:
            found[cut[i]] += chars[i]
    return found
