"""Plain-Python twins of the kernels of filters/templates."""

from __future__ import annotations

import re
from collections import Counter
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


SIGNS = b"#$%&*+-/<=>@^|~"


class Word(NamedTuple):
    hash: int
    masked: bool
    digit: bool
    rare: bool
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
        low = raw.lower() if kind == "word" else raw
        h = digits(int.from_bytes(low[k : k + 8], "little") for k in range(0, len(low), 8))
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
    if 3 * known < 2 * letters:
        found = [(h, "" if m == "rare" else m, *rest) for h, m, *rest in found]
    return [Word(h, bool(m), m == "digit", m == "rare", *rest) for h, m, *rest in found]


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


def exact(line, text: bytes) -> int:
    """Digest of a line: its words, and its signs."""
    start = text.rfind(b"\n", 0, line[0].start) + 1
    rest = text[start:].split(b"\n", 1)[0]
    between = bytes(rest[k] for k in range(len(rest)) if not within(line, start + k))
    signs = digits(c for c in between if c in SIGNS)
    return fmix(digits(w.hash for w in line) + signs * SPREAD & M64)


def within(line, at: int) -> bool:
    return any(w.start <= at < w.end for w in line)


def survey(text: bytes, common, notices, n, k):
    """Lines (exact, skeleton, words, literals, notices, tags of neighbours), anchors, text."""
    words = scan(text, common)
    lines = []
    for line in lines_of(words):
        items = [h for h, _, _ in collapse(line)]
        literals = sum(not w.masked for w in line)
        told = sum(int(notices[w.hash >> 47] >> (w.hash >> 44 & 7) & 1) for w in line)
        lines.append((exact(line, text), fmix(digits(items)), len(line), literals, told))
    bare = [fmix(digits(w.hash for w in line)) for line in lines_of(words)]
    pairs = zip(lines, bare, strict=True)
    tags = [0, *((line[1] if line[3] >= 3 else own) >> 48 | 1 for line, own in pairs), 0]
    lines = [(*line, tags[i], tags[i + 2]) for i, line in enumerate(lines)]
    anchors = sorted({h for h, _, _ in item_grams(words, n, 2)})[:k]
    whole = fmix(digits(digits(w.hash for w in line) for line in lines_of(words)))
    return lines, anchors, whole, len(words)


def grams(text: bytes, common, n) -> list[int]:
    words = scan(text, common)
    return [g[0] for g in item_grams(words, n, 3)] + [g[0] for g in word_grams(words, n)]


def weigh(text: bytes, common, n, shared, usual, heard, sizes):
    """Words: all, the template's, own in prose, literals, in lines with a slot; hash of fills."""
    gap, prose, sentence, told, bridge, plain_of, verse, card, most, least = sizes
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
    rows, values = [], []
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
            plain = sum(not words[i].masked and words[i].hash not in usual for i in fills)
            plain += sum(words[i].rare and words[i].hash in heard for i in fills)
            if len(fills) >= sentence and plain >= max(told, len(fills) / plain_of):
                state = [0 if i in fills else s for i, s in enumerate(state)]
        left = sum(state[i] == 0 for i in mine)
        own += left if left >= prose else 0
        slotted += len(mine) - left if any(state[i] == 2 for i in mine) else 0
        rows.append((left == len(mine), mine))
        value = sum(state[i] != 1 and not words[i].digit for i in mine)
        values += [value] * (value >= least and sum(state[i] == 1 for i in mine) <= most)
    for whole, run in groupby(rows, key=lambda x: x[0]):
        short = [mine for _, mine in run]
        if whole and len(short) >= verse:
            spoken = [i for mine in short if len(mine) < prose for i in mine]
            own += sum(not words[i].digit for i in spoken)
    own = max(own, sum(values) if len(values) >= card else 0)
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


def beside(lines):
    """Digest of a candidate -> its neighbours on the page, before and after, as sets."""
    found = {}
    for i, line in enumerate(lines):
        sides = found.setdefault(line[0], (set(), set()))
        for side, j in zip(sides, (i - 1, i + 1), strict=True):
            inside = 0 <= j < len(lines)
            side.add((lines[j][0] if lines[j][4] else "own") if inside else "end")
    return found


def linked(a, b, sides):
    """Whether of two lines (digest, state, how) the first leads to the second and back."""
    if not {a[1], b[1]} <= {"gone", "first"}:
        return False
    same = len(sides[a[0]][1]) == len(sides[b[0]][0]) == 1
    return same and "after" in a[2] and "before" in b[2]


def stands(lines, sizes):
    """Which of the lines that may go do, asked again of what is left while some do."""
    left = list(range(len(lines)))
    while True:
        goes = stand_once([lines[i] for i in left], sizes)
        if not any(goes):
            return [i not in left for i in range(len(lines))]
        left = [i for i, gone in zip(left, goes, strict=True) if not gone]


def stand_once(lines, sizes):
    """Which of the lines that may go do.

    `lines`: those with words, as (digest, state, how, words, may go or be kept).
    """
    _, _, block_lines, block_words, longest, scale, again, head, foot, ends, form, *_ = sizes
    sides, size = beside(lines), len(lines)
    times = Counter(line[0] for line in lines if line[4])
    quarter = max(size // 4, 1)
    fills = [line[1] == "fill" for line in lines]
    top = next((i for i, x in enumerate(fills) if not x), size)
    bottom = max(next((size - i for i, x in enumerate(fills[::-1]) if not x), 0), top)
    blocks = []
    for i, line in enumerate(lines):
        if i and linked(lines[i - 1], line, sides):
            blocks[-1].append(i)
        else:
            blocks.append([i])
    goes = set()
    for block in blocks:
        first, last = block[0], block[-1]
        several = len(block) > 1
        edge = first == top and "before" in lines[first][2] and (top == 0 or several)
        edge |= last + 1 == bottom and "after" in lines[last][2] and (bottom == size or several)
        own = [lines[i] for i in block if lines[i][4]]
        often = all("often" in x[2] for x in own)
        nearly = all("nearly" in x[2] for x in own)
        once = sum(times[x[0]] == 1 for x in own)
        long = sum(x[3] >= block_words for x in own)
        if edge:
            large = len(own) >= block_lines or sum(x[3] for x in own) >= block_words
            large = large and (often or 2 * long < len(own))
            twice = sum(times[x[0]] <= ends for x in own)
            some = (nearly and 2 * twice >= len(own)) or (once and large)
        else:
            apart = 4 * once >= len(own) or len(own) > scale
            some = often and len(own) >= block_lines and apart and 2 * long < len(own)
        for i in block:
            _, state, how, words, _ = lines[i]
            notice = "notice" in how and (i < min(head, quarter) or i >= size - min(foot, quarter))
            fits = words <= longest or "often" in how or form * long <= len(own)
            if state == "gone" and (notice or (some and fits)):
                goes.add(i)
    usual = [line[4] and "often" in line[2] for line in lines]
    for told, group in groupby(range(size), key=lambda i: usual[i]):
        row = list(group)
        rarely = sum(times[lines[i][0]] <= again for i in row)
        leads = sum("after" in lines[i][2] for i in row)
        long = sum(lines[i][3] >= block_words for i in row)
        if told and len(row) > scale and 4 * min(rarely, leads) >= 3 * len(row) > 6 * long:
            while row and times[lines[row[0]][0]] > again:
                row.pop(0)
            while row and times[lines[row[-1]][0]] > again:
                row.pop()
            if len(row) > scale:
                goes |= {i for i in row if lines[i][1] == "gone"}
    left = [usual[i] and lines[i][1] == "gone" and i not in goes for i in range(size)]
    for told, group in groupby(range(size), key=lambda i: left[i]):
        row = list(group)
        around = [row[0] - 1, row[-1] + 1]
        there = [i for i in around if 0 <= i < size]
        if told and there and all(i in goes for i in there):
            goes |= set(row)
    return [i in goes for i in range(size)]


def strip(text: bytes, common, gone, pages, marked, sizes, code):
    """Cuts (start, length, fewest pages), fill-in lines: number, words, bytes of the first.

    `pages`: digest of a line to pages that have it; `gone`: digest of a line to a set of "first",
    "notice", "often", "before", "after"; `code`: `naive_code_lines`.
    """
    heading, paragraph, *_, items, program = sizes
    by_line = {line[0].line: line for line in lines_of(scan(text, common))}
    lines, at = [], 0
    raws = re.findall(rb"[^\n]*\n|[^\n]+$", text)
    digests = {n: exact(line, text) for n, line in by_line.items()}
    may_go = {n for n, line in digests.items() if line in gone and line not in marked}
    codes = code.code_lines(raws, may_go)
    for number, raw in enumerate(raws):
        words = by_line.get(number, [])
        bare = raw.rstrip(b"\n").lstrip(code.SPACE)
        form = "plain"
        if number in codes:
            form = "code"
        elif bare.startswith(b"#"):
            form = "heading"
        elif bare.startswith(b"|"):
            form = "table"
        elif code.in_list(bare):
            form = "list"
        state = "blank" if not bare else "kept"
        mine = digests.get(number, 0)
        if words and mine in marked:
            state = "fill"
        elif words and mine in gone:
            state = "first" if "first" in gone[mine] else "gone"
        lines.append([at, at + len(raw), len(words), state, form, mine])
        at += len(raw)
    told = [x for number, x in enumerate(lines) if number in by_line]
    may = {"gone", "first"}
    about = [(x[5], x[3], gone.get(x[5], set()), x[2], x[3] in may) for x in told]
    for x, goes in zip(told, stands(about, sizes), strict=True):
        if x[3] == "first" or (x[3] == "gone" and not goes):
            x[3] = "kept"
    # Between lines of code with nothing between them that stays, all of a program does.
    for _, group in groupby(lines, key=lambda x: x[3] in ("gone", "blank") or x[4] == "code"):
        run = list(group)
        codes = [i for i, x in enumerate(run) if x[4] == "code"]
        inner = [x for x in run[codes[0] : codes[-1] + 1] if x[3] != "blank"] if codes else []
        whole = program * len(codes) >= len(inner)
        for x in inner:
            x[3] = "kept" if x[3] == "gone" and (whole or x[4] == "code") else x[3]
    for form, group in groupby(lines, key=lambda x: x[4]):
        mine = [x for x in group if x[2] > 0]
        stay = sum(x[3] != "gone" for x in mine)
        if (form == "table" and stay) or (form == "list" and items * stay >= max(len(mine), 1)):
            for x in mine:
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
            follows = x[3] != "gone" and (x[2] >= paragraph or x[4] == "list")
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
