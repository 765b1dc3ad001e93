"""Plain-Python twins of filters/templates/_kernels.py and _kernels_laid.py."""

from __future__ import annotations

import re
from itertools import groupby
from typing import NamedTuple

M64 = (1 << 64) - 1
BASE = 0xA24BAED4963EE407
SPREAD = 0xD6E8FEB86659FD93
MASK = 0x6D61736B656420B5


def fmix(x: int) -> int:
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & M64
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & M64
    return x ^ x >> 33


def digits(values) -> int:
    """A number whose digits, in BASE, are `values`."""
    h = 0
    for value in values:
        h = (h * BASE + value) & M64
    return h


class Word(NamedTuple):
    hash: int
    masked: bool
    start: int
    end: int
    line: int


# One alternative per rule; the order decides. A word byte is taken one at a time, so that a
# separator or a character of its own inside a run of bytes ends the word.
TOKEN = re.compile(
    rb"(?P<gap>\xc2[\x80-\xff]|\xe2[\x80\x81][\x80-\xff]|\xef\xbc[\x80-\x8f]|\xe3\x80[\x80-\xff]"
    rb"|\xe0\xbc[\x8b-\x94]|\xe1\x81[\x8a\x8b]|\xe1\x9f[\x94-\x96])"
    rb"|(?P<single>[\xe4-\xe9][\x80-\xff]{2}|\xe3[\x81-\xff][\x80-\xff]"
    rb"|\xf0[\xa0-\xff][\x80-\xff]{2})"
    rb"|(?P<letter>\xe0[\xb8-\xbb][\x80-\xff]|\xe1[\x80\x81\x9e\x9f][\x80-\xff]"
    rb"|\xe1\x82[\x80-\x9f])"
    rb"|(?P<word>[0-9A-Za-z\x80-\xff])"
    rb"|(?P<line>\n)|(?P<stop>[.!?])|(?P<other>[\x00-\xff])",
    re.DOTALL,
)


def is_capital(word: bytes) -> bool:
    first = word[0]
    if first < 0x80:
        return 65 <= first <= 90
    if len(word) < 2:
        return False
    second = word[1]
    if first == 0xC3:
        return 0x80 <= second <= 0x9E
    if first == 0xCE:
        return 0x86 <= second <= 0xAB
    return first == 0xD0 and second < 0xB0


def parts(text: bytes, at: int) -> bool:
    """Whether a word begins at a letter of a script without spaces after another."""
    return fmix(digits(text[at - 3 : at + 3])) & 3 == 0


def scan(text: bytes, common) -> list[Word]:
    found, line, initial, known, letters = [], 0, True, 0, 0
    pieces = [(m.lastgroup, m.start(), m.end()) for m in TOKEN.finditer(text)]
    # A run of word bytes is one word, so are letters up to where one parts; others stand alone.
    merged = []
    for kind, start, end in pieces:
        joins = merged and merged[-1][0] == kind and merged[-1][2] == start
        if joins and (kind == "word" or (kind == "letter" and not parts(text, start))):
            merged[-1] = (kind, merged[-1][1], end)
        else:
            merged.append((kind, start, end))
    for kind, start, end in merged:
        if kind == "line":
            line, initial = line + 1, True
        elif kind == "stop":
            initial = True
        if kind not in {"word", "single", "letter"}:
            continue
        raw = text[start:end]
        h = digits(raw.lower() if kind == "word" else raw)
        h = fmix((h ^ h >> 32) * SPREAD & M64)
        mask = ""
        if kind == "word":
            if re.search(rb"[0-9]", raw):
                mask = "digit"
            elif is_capital(raw) and not initial:
                mask = "name"
            else:
                bit = h >> 44
                seen = common[bit >> 3] >> (bit & 7) & 1
                letters += 1
                known += int(seen)
                mask = "" if seen else "rare"
        found.append((h, mask, start, end, line))
        initial = False
    if 2 * known < letters:
        found = [(h, "" if m == "rare" else m, *rest) for h, m, *rest in found]
    return [Word(h, bool(m), *rest) for h, m, *rest in found]


def collapse(words: list[Word]) -> list[tuple[int, int, int]]:
    """(hash, first word, word after) of literals and of runs of masked words."""
    items = []
    for i, word in enumerate(words):
        if word.masked and items and items[-1][0] == MASK and words[i - 1].masked:
            items[-1] = (MASK, items[-1][1], i + 1)
        else:
            items.append((MASK if word.masked else word.hash, i, i + 1))
    return items


def item_grams(words, n, least):
    """(hash, first word, word after) of n-grams of items with `least` literals.

    Of a run of masked words at an end it covers those in the line of the item beside it.
    """
    items = collapse(words)
    for at in range(len(items) - n + 1):
        some = items[at : at + n]
        if sum(h != MASK for h, _, _ in some) >= least:
            first, after = some[0][1], some[-1][2]
            if some[0][0] == MASK:
                first = next(
                    i for i in range(first, after) if words[i].line == words[some[1][1]].line
                )
            if some[-1][0] == MASK:
                line = words[some[-1][1] - 1].line
                after = 1 + max(i for i in range(some[-1][1] - 1, after) if words[i].line == line)
            yield fmix(digits(h for h, _, _ in some)), first, after


def word_grams(words, n):
    for at in range(len(words) - n + 1):
        yield fmix(digits(w.hash for w in words[at : at + n])) ^ 1, at, at + n


def lines_of(words):
    return [list(group) for _, group in groupby(words, key=lambda w: w.line)]


def exact(line) -> int:
    return fmix(digits(w.hash for w in line))


def survey(text: bytes, common, notices, n, k):
    """Lines (exact, skeleton, words, literals, notices, tags of neighbours), anchors, text."""
    words = scan(text, common)
    lines = []
    for line in lines_of(words):
        items = [h for h, _, _ in collapse(line)]
        literals = sum(not w.masked for w in line)
        told = sum(int(notices[w.hash >> 47] >> (w.hash >> 44 & 7) & 1) for w in line)
        lines.append((exact(line), fmix(digits(items)), len(line), literals, told))
    tags = [0, *((line[1] if line[3] >= 3 else line[0]) >> 48 | 1 for line in lines), 0]
    lines = [(*line, tags[i], tags[i + 2]) for i, line in enumerate(lines)]
    anchors = sorted({h for h, _, _ in item_grams(words, n, 2)})[:k]
    whole = fmix(digits(digits(w.hash for w in line) for line in lines_of(words)))
    return lines, anchors, whole, len(words)


def grams(text: bytes, common, n) -> list[int]:
    words = scan(text, common)
    return [g[0] for g in item_grams(words, n, 3)] + [g[0] for g in word_grams(words, n)]


def weigh(text: bytes, common, n, shared, usual, sizes):
    """Words: all, the template's, own in prose, literals, in lines with a slot; hash of fills."""
    gap, prose, sentence, told, bridge = sizes
    words = scan(text, common)
    state = [0] * len(words)
    for h, first, after in item_grams(words, n, 3):
        if h in shared:
            for i in range(first, after):
                state[i] = state[i] or (2 if words[i].masked else 1)
    for h, first, after in word_grams(words, n):
        if h in shared:
            state[first:after] = [1] * n
    own = slotted = 0
    for _, group in groupby(range(len(words)), key=lambda i: words[i].line):
        mine = list(group)
        if 2 * sum(state[i] != 0 for i in mine) < len(mine):
            for i in mine:
                state[i] = 0
        runs = [(k, list(g)) for k, g in groupby(mine, key=lambda i: state[i] == 0)]
        for is_own, run in runs:
            whole = len(run) == len(mine)
            if is_own and len(run) <= gap and not whole:
                for i in run:
                    state[i] = 2
        for fills in sentences([i for i in mine if state[i] == 2], bridge):
            plain = [i for i in fills if not words[i].masked and words[i].hash not in usual]
            if len(fills) >= sentence and len(plain) >= max(told, len(fills) / 4):
                for i in fills:
                    state[i] = 0
        left = sum(state[i] == 0 for i in mine)
        own += left if left >= prose else 0
        slotted += len(mine) - left if any(state[i] == 2 for i in mine) else 0
    fill = digits(w.hash for w, s in zip(words, state, strict=True) if s == 2)
    of_template = sum(s != 0 for s in state)
    return len(words), of_template, own, state.count(1), slotted, fmix(fill)


def sentences(fills, bridge):
    """Fills of a line in groups, with at most `bridge` words between two of one group."""
    groups = []
    for i in fills:
        if groups and i - groups[-1][-1] <= bridge + 1:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


SPACE = b"\t\v\f\r "


def indented(raw: bytes):
    """Whether a line begins with a tab or four blanks."""
    line = raw.rstrip(b"\n")
    return line[:1] == b"\t" or len(line) - len(line.lstrip(SPACE)) >= 4


def linked(a, b):
    """Whether of two lines (digest, state, how) the first leads to the second and it to the first.

    A fill-in line has no `how`: what stands beside it leads to it or not.
    """
    states = {"gone", "first", "fill"}
    to = a[1] == "fill" or "after" in a[2]
    back = b[1] == "fill" or "before" in b[2]
    return a[1] in states and b[1] in states and to and back


def stands(lines, block_lines, block_words):
    """Which of the lines that may go do: lines with words, as (digest, state, how, words)."""
    blocks = []
    for i, line in enumerate(lines):
        if i and linked(lines[i - 1], line):
            blocks[-1].append(i)
        else:
            blocks.append([i])
    goes = set()
    for block in blocks:
        first, last = lines[block[0]], lines[block[-1]]
        edge = block[0] == 0 and (first[1] == "fill" or "before" in first[2])
        edge |= block[-1] == len(lines) - 1 and (last[1] == "fill" or "after" in last[2])
        own = [lines[i] for i in block if lines[i][1] in {"gone", "first"}]
        once = any(sum(x[0] == y[0] and x[1] == y[1] for y in lines) == 1 for x in own)
        large = len(own) >= block_lines or sum(x[3] for x in own) >= block_words
        often = all("often" in x[2] for x in own)
        if (often or (once and large)) and (len(own) > 1 or edge):
            goes |= set(block)
    return [i in goes or "notice" in line[2] for i, line in enumerate(lines)]


def strip(text: bytes, common, gone, pages, marked, sizes):
    """Cuts (start, length, fewest pages), fill-in lines: number, words, bytes of the first.

    `pages`: digest of a line to pages that have it; `gone`: digest of a line to a set of "first",
    "notice", "often", "before", "after".
    """
    heading, paragraph, block_lines, block_words = sizes
    by_line = {line[0].line: line for line in lines_of(scan(text, common))}
    lines, at, code = [], 0, False
    raws = re.findall(rb"[^\n]*\n|[^\n]+$", text)
    full = [
        raw
        for n, raw in enumerate(raws)
        if raw.strip(SPACE + b"\n")
        and (n not in by_line or exact(by_line[n]) not in gone or exact(by_line[n]) in marked)
    ]
    block = indents = 4 * sum(map(indented, full)) < 3 * len(full)
    for number, raw in enumerate(raws):
        words = by_line.get(number, [])
        bare = raw.rstrip(b"\n").lstrip(SPACE)
        form = "plain"
        if bare.startswith(b"```") and len(bare) >= 3:
            code, form = not code, "code"
        elif code or (block and bare and indented(raw) and bare[:1] not in b"*+-"):
            form = "code"
        elif bare.startswith(b"#"):
            form = "heading"
        elif bare.startswith(b"|"):
            form = "table"
        block = indents and (form == "code" or not bare)
        state = "blank" if not bare else "kept"
        if words and exact(words) in marked:
            state = "fill"
        elif words and exact(words) in gone:
            state = "first" if "first" in gone[exact(words)] else "gone"
        lines.append([at, at + len(raw), len(words), state, form, exact(words)])
        at += len(raw)
    told = [x for number, x in enumerate(lines) if number in by_line]
    about = [(x[5], x[3], gone.get(x[5], set()), x[2]) for x in told]
    for x, goes in zip(told, stands(about, block_lines, block_words), strict=True):
        if x[3] == "first" or (x[3] == "gone" and (not goes or x[4] == "code")):
            x[3] = "kept"
    blocks = [(k, list(g)) for k, g in groupby(lines, key=lambda x: x[4] == "table")]
    for table, group in blocks:
        if table and any(x[3] != "gone" and x[2] > 0 for x in group):
            for x in group:
                x[3] = "kept" if x[3] == "gone" else x[3]
    under = follows = False
    for x in reversed(lines):
        if x[3] == "blank" or (x[2] == 0 and x[4] == "plain"):
            continue
        if x[4] == "heading":
            if x[3] == "gone" and under:
                x[3] = "kept"
            under = follows = False
        elif x[3] == "gone" and follows and x[4] == "plain" and x[2] <= heading:
            x[3] = "kept"
            follows, under = False, True
        else:
            follows = x[3] != "gone" and x[2] >= paragraph
            under = under or x[3] != "gone"
    fills = [x for x in lines if x[3] == "fill"]
    told = (len(fills), sum(x[2] for x in fills), *(fills[0][:2] if fills else (0, 0)))
    cuts, mine = [], []
    for x in [*lines, [0, 0, 0, "kept", "plain", 0]]:
        if x[3] == "gone" or (mine and x[3] == "blank"):
            mine.append(x)
        elif mine:
            while x[4] == "code" and mine[-1][3] == "blank":
                mine.pop()
            few = min(pages[y[5]] for y in mine if y[3] == "gone")
            cuts.append((mine[0][0], mine[-1][1] - mine[0][0], few))
            mine = []
    return cuts, told


def address(url: bytes) -> int:
    """Hash of a URL without what does not tell pages apart; 0 for none."""
    if not url:
        return 0
    at = url[:12].find(b"://")
    url = url[at + 3 :] if at >= 0 else url
    if re.match(rb"(?i)www\..", url):
        url = url[4:]
    url = re.sub(rb"(?s)#(?!!).*", b"", url).rstrip(b"/")
    host, slash, path = url.partition(b"/")
    return max(fmix(digits(c + 1 for c in host.lower() + slash + path)), 1)
