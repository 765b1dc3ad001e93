"""Small things inside the main part that are not text: three passes over its nodes.

Self-contained, as Numba's cache does not see edits elsewhere; tags by `tree.vocabulary.TAG`, which
a test holds. All three change `cut` in place:

1. lists of links; on pages of prose also single links in blocks of their own, and captions (by
   tag or by name);
2. short labels that stand LABEL_TIMES times or more in blocks of their own (`Reply`, `Read more`);
3. texts that stood before: pages carry blocks twice, for wide and for narrow screens. Only titles
   that are links and teasers are taken, never paragraphs, other headings (the name above each of
   a writer's posts), items, cells, code or quotations, which may repeat.
   Alternative: all texts of 40 characters: 0.002 F1 better on the tuned half, and it cuts refrains.

Numbers by hand, as in `choose._kernels`.
"""

# ruff: noqa: PLR1714, SIM102, SIM109
from __future__ import annotations

import numpy as np
from numba import njit

TEXT = 1
(A, P, H1, H6, LI, DT, DD, TD, TH, PRE, CODE, BLOCKQUOTE, FIGCAPTION) = (
    2, 15, 16, 21, 24, 26, 27, 33, 34, 36, 37, 42, 44
)  # fmt: skip

# Reasons, as vocabulary.REASONS counts them from 1.
LINKS, LABELS, CAPTIONS, REPEATED = 14, 17, 18, 19

CAPTION_HINT = 1 << 28

# Shares in per cent, lengths in characters that are not spaces.
LIST_LINKS, LIST_SHARE, LIST_LENGTH = 5, 60, 60
PROSE_LINKED = 50
CAPTION_SHARE = 30  # a block named after pictures that holds more is the text
LABEL_TEXT, LABEL_TIMES = 20, 4
REPEATED_TEXT, REPEATED_MARKS = 30, 2  # the shortest, and the most sentence marks


@njit(cache=True, nogil=True)
def _heads(t):
    return H1 <= t <= H6 or t == DT


@njit(cache=True, nogil=True)
def _slot(keys, key):
    """Where `key` stands in open addressing, or the free place for it."""
    at = (key >> 20) & (len(keys) - 1)
    while keys[at] != 0 and keys[at] != key:
        at = (at + 1) & (len(keys) - 1)
    return at


@njit(cache=True, nogil=True)
def _key(buf, start, end):
    """A hash of the characters that are not spaces (never 0), and how many bytes are of letters."""
    h = np.int64(1469598103934665603)
    letters = 0
    for at in range(start, end):
        c = buf[at]
        letters += 97 <= (c | 32) <= 122 or c >= 128
        if c > 32:
            h = (h ^ c) * np.int64(1099511628211)
    return h | 1, letters


@njit(cache=True, nogil=True)
def _lists(tag, last, hints, cut, kept, root, block, prose):
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
        elif prose and hints[i] & CAPTION_HINT and text * 100 <= kept[root, 0] * CAPTION_SHARE:
            if not code:
                reason = CAPTIONS
        if reason:
            for j in range(i, last[i]):
                if not cut[j]:
                    cut[j] = reason
            i = last[i]
            continue
        i += 1


@njit(cache=True, nogil=True)
def _labels(buf, tag, parent, last, start, end, chars, cut, root, keys):
    keys[:] = 0
    counts = np.zeros(len(keys), np.int32)
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
        key, letters = _key(buf, start[i], end[i])
        if letters < 2:
            continue
        at = _slot(keys, key)
        keys[at] = key
        counts[at] += 1
        slot[i - root] = at
    for i in range(root, last[root]):
        if slot[i - root] >= 0 and counts[slot[i - root]] >= LABEL_TIMES:
            cut[i] = LABELS


@njit(cache=True, nogil=True)
def _repeated(buf, tag, parent, last, start, end, chars, marks, cut, root, keys):
    keys[:] = 0
    spared = np.zeros(
        last[root] - root, np.uint8
    )  # 1: always, 2: a heading, 3: a link, which is not
    for i in range(root, last[root]):
        t = tag[i]
        s = spared[parent[i] - root] if i > root else np.uint8(0)
        if t != TEXT:
            own = t == P or t == PRE or t == CODE or t == TD or t == TH or t == LI or t == DD
            if own or t == BLOCKQUOTE:
                s = np.uint8(1)
            elif t == A and s != 1:
                s = np.uint8(3)
            elif _heads(t) and s == 0:
                s = np.uint8(2)
            spared[i - root] = s
            continue
        if s == 1 or s == 2 or cut[i] or chars[i] < REPEATED_TEXT or marks[i] > REPEATED_MARKS:
            continue
        key, _ = _key(buf, start[i], end[i])
        at = _slot(keys, key)
        if keys[at] == key:
            cut[i] = REPEATED
        keys[at] = key


@njit(cache=True, nogil=True)
def weed(buf, tag, parent, last, start, end, hints, chars, marks, cut, root, kept, block, prose):
    """Cut inside `root` what is no text; `kept` and `prose` as `choose` gives them."""
    size = 256
    while size < 2 * (last[root] - root):
        size *= 2
    keys = np.empty(size, np.int64)
    _lists(tag, last, hints, cut, kept, root, block, prose)
    _labels(buf, tag, parent, last, start, end, chars, cut, root, keys)
    _repeated(buf, tag, parent, last, start, end, chars, marks, cut, root, keys)
