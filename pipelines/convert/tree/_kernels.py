"""Kernels over the bytes of a page as lexbor writes its tree back: scan, measure, tables.

Self-contained, as Numba's cache does not see edits elsewhere. Why bytes and not the tree: a step
through Resiliparse's tree from Python costs 1-4 us a node, 5-20 ms for a page of 5,000; the tree
written back is regular HTML (every tag closed, attributes quoted, `<`, `>`, `&` and quotes
escaped), which one pass reads at 550 MB/s. Offsets are bytes of that text.
"""

# ruff: noqa: PLR1714, SIM102, SIM109
from __future__ import annotations

import numpy as np
from numba import njit

# Tags by vocabulary.TAG; a test holds the two together.
TEXT = 1
A = 2
H1, H6, DT, BUTTON = 16, 21, 26, 62
TABLE, TR, TD, TH, PRE, BLOCKQUOTE = 28, 32, 33, 34, 36, 42
XMP, PLAINTEXT = 88, 91
BODY_HINT, HEAD_HINT, TAIL_HINT, NEGATES = 1 << 24, 1 << 25, 1 << 26, 1 << 27  # hints


@njit(cache=True, nogil=True)
def _find(keys, values, key):
    at = key & (len(keys) - 1)
    while keys[at] != 0:
        if keys[at] == key:
            return values[at]
        at = (at + 1) & (len(keys) - 1)
    return 0


@njit(cache=True, nogil=True)
def _matches(buf, at, word):
    """Whether `word` (lower case bytes) stands at `at`, in any case."""
    if at + len(word) > len(buf):
        return False
    for k in range(len(word)):
        c = buf[at + k]
        if 65 <= c <= 90:
            c |= 32
        if c != word[k]:
            return False
    return True


@njit(cache=True, nogil=True)
def _is_space(c):
    return c == 32 or 9 <= c <= 13


@njit(cache=True, nogil=True)
def _hint_words(buf, start, end, keys, values):
    """Bits of the words in buf[start:end], which are names apart by spaces.

    A word ends at a non-letter or before a capital. What follows `--` modifies a name (BEM) and
    `has-`, `no-`, `with-` speak of something else: their words do not count. A name like
    `post-content` or `articleBody` is that of a main text (BODY_HINT).
    """
    bits = 0
    name = 0  # bits of the name so far
    h = 2166136261
    size = 0
    lower = False
    skip = False
    for at in range(start, end + 1):
        c = buf[at] if at < end else 32
        upper = 65 <= c <= 90
        letter = upper or 97 <= c <= 122
        if size and (not letter or (upper and lower)):
            if not skip:
                found = _find(keys, values, h)
                if found & NEGATES:
                    skip = True
                elif found & TAIL_HINT and name & HEAD_HINT:
                    found |= BODY_HINT
                name |= found
            h = 2166136261
            size = 0
        if letter:
            lower = not upper
            h = ((h ^ int(c | 32)) * 16777619) & 0xFFFFFFFF
            size += 1
        elif c == 45 and at + 1 < end and buf[at + 1] == 45:
            skip = True
        elif _is_space(c):
            bits |= name
            name = 0
            skip = False
    return bits | name


@njit(cache=True, nogil=True)
def _hides(buf, start, end):
    """Whether a style holds `display:none` or `visibility:hidden`."""
    display = np.frombuffer(b"display", np.uint8)
    none = np.frombuffer(b"none", np.uint8)
    visibility = np.frombuffer(b"visibility", np.uint8)
    hidden = np.frombuffer(b"hidden", np.uint8)
    for at in range(start, end):
        c = buf[at] | 32
        if c == 100 and _matches(buf, at, display):
            k = at + 7
            while k < end and (buf[k] == 58 or _is_space(buf[k])):
                k += 1
            if k < end and _matches(buf, k, none):
                return True
        if c == 118 and _matches(buf, at, visibility):
            k = at + 10
            while k < end and (buf[k] == 58 or _is_space(buf[k])):
                k += 1
            if k < end and _matches(buf, k, hidden):
                return True
    return False


@njit(cache=True, nogil=True)
def scan(buf, tag_keys, tag_values, hint_keys, hint_values, void, raw, hidden_bit):
    """Nodes in document order: tag, parent, last (one past the subtree), start, end, hints.

    For an element start:end is its start tag; for text (tag 1) its bytes. One end tag closes the
    nearest open element of its name among the innermost 64; the others have none open, and are
    passed over.
    """
    count = 2
    for at in range(len(buf)):
        if buf[at] == 60:
            count += 2
    tag = np.zeros(count, np.uint8)
    parent = np.full(count, -1, np.int32)
    last = np.zeros(count, np.int32)
    start = np.zeros(count, np.int32)
    end = np.zeros(count, np.int32)
    hints = np.zeros(count, np.int32)
    stack = np.empty(count + 1, np.int32)
    names = np.empty(count + 1, np.int64)
    word_class = np.frombuffer(b"class", np.uint8)
    word_id = np.frombuffer(b"id", np.uint8)
    word_role = np.frombuffer(b"role", np.uint8)
    word_type = np.frombuffer(b"type", np.uint8)
    word_style = np.frombuffer(b"style", np.uint8)
    word_hidden = np.frombuffer(b"hidden", np.uint8)
    word_item = np.frombuffer(b"itemprop", np.uint8)
    word_body = np.frombuffer(b"articlebody", np.uint8)
    word_comment = np.frombuffer(b"<!--", np.uint8)
    top = 0
    n = 0
    at = 0
    size = len(buf)
    while at < size:
        if buf[at] != 60:
            begin = at
            while at < size and buf[at] != 60:
                at += 1
            tag[n] = 1
            parent[n] = stack[top - 1] if top else -1
            start[n] = begin
            end[n] = at
            n += 1
            last[n - 1] = n
            continue
        if at + 1 >= size:
            break
        c = buf[at + 1]
        if c == 33 or c == 63:  # a comment, or a declaration
            comment = _matches(buf, at, word_comment)
            at += 4 if comment else 2
            while at < size:
                if buf[at] == 62 and (not comment or (buf[at - 1] == 45 and buf[at - 2] == 45)):
                    break
                at += 1
            at += 1
            continue
        closing = c == 47
        begin = at
        at += 2 if closing else 1
        name_start = at
        h = 2166136261
        while at < size and buf[at] != 62 and buf[at] != 47 and not _is_space(buf[at]):
            b = buf[at]
            if 65 <= b <= 90:
                b |= 32
            h = ((h ^ int(b)) * 16777619) & 0xFFFFFFFF
            at += 1
        name_end = at
        if closing:
            while at < size and buf[at] != 62:
                at += 1
            at += 1
            k = top - 1
            while k >= 0 and k >= top - 64 and names[k] != h:
                k -= 1
            if k >= 0 and k >= top - 64:
                while top > k:
                    top -= 1
                    last[stack[top]] = n
            continue
        code = _find(tag_keys, tag_values, h)
        node = n
        n += 1
        tag[node] = code
        parent[node] = stack[top - 1] if top else -1
        start[node] = begin
        bits = 0
        while at < size and buf[at] != 62:  # attributes
            if _is_space(buf[at]) or buf[at] == 47:
                at += 1
                continue
            key = at
            while at < size and buf[at] != 61 and buf[at] != 62 and not _is_space(buf[at]):
                at += 1
            key_size = at - key
            value = at
            value_end = at
            if at < size and buf[at] == 61:
                at += 1
                if at < size and buf[at] == 34:
                    at += 1
                    value = at
                    while at < size and buf[at] != 34:
                        at += 1
                    value_end = at
                    at += 1
                else:
                    value = at
                    while at < size and buf[at] != 62 and not _is_space(buf[at]):
                        at += 1
                    value_end = at
            if (
                (key_size == 5 and _matches(buf, key, word_class))
                or (key_size == 2 and _matches(buf, key, word_id))
                or (key_size == 4 and _matches(buf, key, word_role))
                or (key_size == 4 and raw[code] and _matches(buf, key, word_type))
            ):
                bits |= _hint_words(buf, value, value_end, hint_keys, hint_values)
            elif key_size == 5 and _matches(buf, key, word_style):
                if _hides(buf, value, value_end):
                    bits |= hidden_bit
            elif key_size == 6 and _matches(buf, key, word_hidden):
                bits |= hidden_bit
            elif key_size == 8 and _matches(buf, key, word_item):
                if _matches(buf, value, word_body):
                    bits |= BODY_HINT
        at += 1
        end[node] = min(at, size)
        hints[node] = bits
        last[node] = n
        if void[code] and code:
            continue
        if raw[code] and code:  # up to its own end tag
            length = name_end - name_start
            begin = at
            while at < size:
                if (
                    buf[at] == 60
                    and at + 1 < size
                    and buf[at + 1] == 47
                    and _matches(buf, at + 2, buf[name_start:name_end])
                ):
                    break
                at += 1
            if at > begin:
                tag[n] = 1
                parent[n] = node
                start[n] = begin
                end[n] = at
                n += 1
                last[n - 1] = n
            last[node] = n
            at += length + 2
            while at < size and buf[at] != 62:
                at += 1
            at += 1
            continue
        stack[top] = node
        names[top] = h
        top += 1
    while top:
        top -= 1
        last[stack[top]] = n
    return tag[:n], parent[:n], last[:n], start[:n], end[:n], hints[:n]


@njit(cache=True, nogil=True)
def measure(buf, tag, parent, start, end, never):
    """Characters that are not spaces, and sentence marks outside of links, per node and subtree.

    Marks: `.,!?;:` before a space, `.!?` at the end of a text, their CJK twins anywhere. Nothing
    inside tags that never show text counts.
    """
    n = len(tag)
    chars = np.zeros(n, np.int32)
    marks = np.zeros(n, np.int32)
    state = np.zeros(n, np.uint8)  # 1: inside a link, 2: inside what never shows
    for i in range(n):
        above = parent[i]
        s = state[above] if above >= 0 else np.uint8(0)
        if tag[i] == TEXT:
            if s & 2:
                continue
            count = 0
            found = 0
            plain = above >= 0 and (tag[above] == XMP or tag[above] == PLAINTEXT)
            skip = start[i]
            for at in range(start[i], end[i]):
                if at < skip:  # the rest of an entity
                    continue
                c = buf[at]
                if c == 38 and not plain and at + 1 < end[i]:
                    d = buf[at + 1]  # &amp; &lt; &gt; &quot; &nbsp;: lexbor writes no others
                    skip = at + (5 if d == 97 else 4 if d == 108 or d == 103 else 6)
                    if d == 110:
                        c = np.uint8(32)
                if c <= 32:
                    if at > start[i]:
                        p = buf[at - 1]
                        if p == 46 or p == 44 or p == 33 or p == 63 or p == 59 or p == 58:
                            found += 1
                elif c < 128 or c >= 192:
                    count += 1
                    if c == 0xE3 or c == 0xEF:  # 、 。 and full-width marks
                        if at + 2 < end[i]:
                            d = buf[at + 2]
                            if buf[at + 1] == 0x80 and (d == 0x81 or d == 0x82):
                                found += 1
                            elif buf[at + 1] == 0xBC and (d == 0x8C or d == 0x8E):
                                found += 1
            if count and end[i] > start[i]:
                p = buf[end[i] - 1]
                if p == 46 or p == 33 or p == 63:
                    found += 1
            chars[i] = count
            if not s & 1:
                marks[i] = found
            continue
        if tag[i] == A:
            s |= 1
        if never[tag[i]] and not (
            tag[i] == BUTTON and above >= 0 and (H1 <= tag[above] <= H6 or tag[above] == DT)
        ):
            s |= 2
        state[i] = s
    for i in range(n - 1, -1, -1):
        above = parent[i]
        if above >= 0:
            chars[above] += chars[i]
            marks[above] += marks[i]
    return chars, marks


@njit(cache=True, nogil=True)
def data_tables(tag, parent, chars, cut):
    """Which tables hold data: two rows or more, two columns or more, nothing laid out in a cell."""
    n = len(tag)
    found = np.zeros(n, np.bool_)
    rows = np.zeros(n, np.int32)
    cells = np.zeros(n, np.int32)
    heads = np.zeros(n, np.int32)
    inner = np.zeros(n, np.int32)  # what no data table holds
    table = np.full(n, -1, np.int32)  # the nearest one around
    for i in range(n):
        above = parent[i]
        if above >= 0:
            table[i] = above if tag[above] == TABLE else table[above]
        near = table[i]
        if near < 0 or cut[i]:
            continue
        t = tag[i]
        if t == TR:
            rows[near] += 1
        elif t == TD or t == TH:
            cells[near] += 1
            heads[near] += t == TH
            if chars[i] > 400:
                inner[near] += 1
        elif t == TABLE or t == PRE or H1 <= t <= H6 or t == BLOCKQUOTE:
            inner[near] += 1
    for i in range(n):
        if tag[i] == TABLE and not cut[i] and not inner[i]:
            found[i] = rows[i] >= 2 and cells[i] >= 2 * rows[i] - (rows[i] // 2)
    return found
