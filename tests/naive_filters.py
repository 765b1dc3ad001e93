"""Plain-Python twins of filters/_kernels*.py: lists, sets and counters, one rule at a time."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import floor
from typing import NamedTuple

from gristmill.filters._characters import NAMES, table
from gristmill.filters._reading import FRONT, LEAST_WORDS, WINDOW

ASCII_DIGITS = b"0123456789"


class Token(NamedTuple):
    kind: str  # word, unspaced, or the class of a single character
    text: bytes
    chars: list[int]
    start: int


def decode(data: bytes) -> list[tuple[int, bytes]]:
    out, i = [], 0
    while i < len(data):
        b = data[i]
        size = 1 if b < 0x80 else 2 if 0xC2 <= b < 0xE0 else 3 if 0xE0 <= b < 0xF0 else 4
        raw = data[i : i + size]
        code = 0xFFFD
        if size == 1:
            code = b
        elif b < 0xF5 and len(raw) == size and b >= 0xC2 and all(x >> 6 == 2 for x in raw[1:]):
            bits = "".join(f"{x:08b}"[2:] for x in raw[1:])
            code = int(f"{b:08b}"[size + 1 :] + bits, 2)
            if code > 0x10FFFF:
                code = 0xFFFD
        if code == 0xFFFD and raw != b"\xef\xbf\xbd":
            raw = data[i : i + 1]
        out.append((code, raw))
        i += len(raw)
    return out


def kind_of(code: int) -> str:
    return NAMES[table()[code]]


def tokens(data: bytes) -> list[Token]:
    chars = decode(data)
    kinds = [kind_of(code) for code, _ in chars]
    spaced = ("letter", "latin", "number")
    out, i, at = [], 0, 0
    while i < len(chars):
        j = i + 1
        if kinds[i] in spaced:
            while j < len(chars):
                before, after = kinds[j - 1], kinds[j + 1] if j + 1 < len(chars) else ""
                code = chars[j][0]
                letters = before in ("letter", "latin") and after in ("letter", "latin")
                numbers = before == "number" == after
                if not (
                    kinds[j] in spaced
                    or kinds[j] == "mark"
                    or (code in (0x27, 0x2019) and letters)
                    or (code in (0x2E, 0x2C) and numbers)
                ):
                    break
                j += 1
        raw = b"".join(r for _, r in chars[i:j])
        kind = "word" if kinds[i] in spaced else kinds[i]
        out.append(Token(kind, raw, [c for c, _ in chars[i:j]], at))
        at += len(raw)
        i = j
    return out


def split(items: list[Token], at) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for item in items:
        if at(item):
            parts.append([])
        else:
            parts[-1].append(item)
    return parts


def is_break(token: Token) -> bool:
    return token.text == b"\n"


def strip(line: list[Token]) -> list[Token]:
    seen = [i for i, t in enumerate(line) if t.kind != "space"]
    return line[seen[0] : seen[-1] + 1] if seen else []


def size(line: list[Token]) -> int:
    return sum(len(t.chars) for t in line)


def same(line: list[Token]) -> tuple[bytes, ...]:
    return tuple(t.text for t in line if t.kind != "space")


def visible_lines(items: list[Token]) -> list[list[Token]]:
    return [strip(line) for line in split(items, is_break) if strip(line)]


def is_word(token: Token) -> bool:
    return token.kind in ("word", "unspaced")


def ends_with_ellipsis(line: list[Token]) -> bool:
    return line[-1].chars == [0x2026] or ends_with_dots(line)


def ends_with_dots(line: list[Token]) -> bool:
    return len(line) >= 3 and all(t.text == b"." for t in line[-3:])


def ends_with_terminal(line: list[Token], quotes: bool) -> bool:
    ended = False
    for token in line:
        if token.kind == "terminal" or (quotes and token.kind == "quote"):
            ended = True
        elif token.kind not in ("space", "quote", "closer"):
            ended = False
    return ended


def quality(data: bytes, stops: dict[str, tuple[str, ...]], bullets: str) -> dict[str, int]:
    items = tokens(data)
    words = [t for t in items if is_word(t)]
    spaced = [t for t in words if t.kind == "word"]
    letters = [c for t in words for c in t.chars if kind_of(c) in ("letter", "latin", "unspaced")]
    lines = visible_lines(items)
    chunks = [c for c in split(items, lambda t: t.kind == "space") if c]
    dots = "".join("." if t.text == b"." else "_" for t in items)
    folded = {bytes(b | 0x20 for b in t.text) for t in spaced if len(t.text) <= 8}
    lists = [{bytes(b | 0x20 for b in w.encode()) for w in ws} for ws in stops.values()]
    alphabetic = [
        t for t in words if any(kind_of(c) in ("letter", "latin", "unspaced") for c in t.chars)
    ]
    return {
        "words": len(words),
        "unspaced_words": len(words) - len(spaced),
        "word_chars": size(spaced),
        "alphabetic_words": len(alphabetic),
        "symbol_words": sum(not any(is_word(t) for t in c) for c in chunks),
        "hashes": sum(t.text == b"#" for t in items),
        "ellipses": dots.count("...") + sum(t.chars == [0x2026] for t in items),
        "letters": len(letters),
        "latin_letters": sum(kind_of(c) == "latin" for c in letters),
        "lines": len(lines),
        "bullet_lines": sum(chr(line[0].chars[0]) in bullets for line in lines),
        "ellipsis_lines": sum(ends_with_ellipsis(line) for line in lines),
        "stop_words": min(4, max((len(folded & words) for words in lists), default=0)),
        "marks": sum(not is_word(t) and t.kind != "space" for t in items),
    }


def repeated_chars(words: list[Token], n: int) -> int:
    seen, repeated, i = set(), 0, 0
    while i + n <= len(words):
        gram = same(words[i : i + n])
        if gram in seen:
            repeated += size(words[i : i + n])
            i += n
        else:
            seen.add(gram)
            i += 1
    return repeated


def top_chars(words: list[Token], n: int, space: int) -> int:
    grams = [same(words[i : i + n]) for i in range(len(words) - n + 1)]
    if not grams:
        return 0
    gram, count = Counter(grams).most_common(1)[0]
    at = grams.index(gram)
    return count * (size(words[at : at + n]) + space * (n - 1)) if count > 1 else 0


def duplicates(groups: list[list[list[Token]]]) -> tuple[int, int, int]:
    """Groups (a line: one; a paragraph: its lines), those that stood before, their characters."""
    seen, count, chars = set(), 0, 0
    for group in groups:
        key = tuple(b"".join(t.text for t in line) for line in group)
        if key in seen:
            count += 1
            chars += sum(size(line) for line in group) + len(group) - 1
        seen.add(key)
    return len(groups), count, chars


def repetition(data: bytes) -> dict[str, int]:
    items = tokens(data)
    words = [t for t in items if is_word(t)]
    unspaced = sum(t.kind == "unspaced" for t in words)
    paragraphs: list[list[list[Token]]] = [[]]
    for line in split(items, is_break):
        if strip(line):
            paragraphs[-1].append(strip(line))
        else:
            paragraphs.append([])
    lines = duplicates([[line] for line in visible_lines(items)])
    parts = duplicates([p for p in paragraphs if p])
    step, space = (2, 0) if 2 * unspaced > len(words) else (1, 1)
    return {
        "chars": size(items),
        "words": len(words),
        "unspaced_words": unspaced,
        "lines": lines[0],
        "duplicate_lines": lines[1],
        "duplicate_line_chars": lines[2],
        "paragraphs": parts[0],
        "duplicate_paragraphs": parts[1],
        "duplicate_paragraph_chars": parts[2],
        **{f"top_{n}_gram_chars": top_chars(words, n * step, space) for n in (2, 3, 4)},
        **{f"duplicate_{n}_gram_chars": repeated_chars(words, n * step) for n in range(5, 11)},
    }


def fineweb(data: bytes, short: int) -> dict[str, int]:
    items = tokens(data)
    lines = visible_lines(items)
    raw = split(items, is_break)
    return {
        "lines": len(lines),
        "terminal_lines": sum(ends_with_terminal(line, quotes=False) for line in lines),
        "short_lines": sum(size(line) <= short for line in lines),
        "duplicate_chars": duplicates([[line] for line in lines])[2],
        "line_chars": size(items) - sum(is_break(t) for t in items),
        "words": sum(is_word(t) for t in items),
        "line_breaks": sum(bool(strip(line)) for line in raw[:-1]),
    }


def citation(data: bytes, end: int) -> int:
    """Length of the citation mark at the bracket that `data` begins with, 0 if there is none."""
    body = data[1:end].lstrip(ASCII_DIGITS)
    if body[:1] == b"]":
        return end - len(body) + 1
    return next((len(f) for f in (b"[edit]", b"[citation needed]") if data[:end].startswith(f)), 0)


def sentences(line: list[Token]) -> int:
    count = int(any(is_word(t) for t in line))
    full, gap = None, False
    for token in line:
        if token.kind == "space":
            gap = True
        elif is_word(token):
            cjk = full is not None and full >= 0x3000
            lower = full == 0x2E and 0x61 <= token.text[0] <= 0x7A
            count += full is not None and (cjk or gap) and not lower
            full, gap = None, False
        elif token.kind == "terminal":
            full, gap = token.chars[0], False
    return count


def longest_run(line: list[Token]) -> int:
    best = run = 0
    for token in line:
        run = 0 if token.kind in ("space", "unspaced") else run + len(token.chars)
        best = max(best, run)
    return best


def c4(data: bytes, stage) -> tuple[dict[str, int], list[tuple[int, int, str]]]:
    """Counts, and edits as (start, length, reason)."""
    counts = dict.fromkeys(
        ("sentences", "lorem_ipsum_lines", "curly_brackets", "kept_lines", "cut_lines"), 0
    )
    edits: list[tuple[int, int, str]] = []
    blank_before, cutting = True, False
    start = 0
    for piece in raw_lines(data):
        items = tokens(piece)
        line: list[Token] = []
        marks: list[tuple[int, int, str]] = []
        skip = 0
        for token in items:
            if token.start < skip:
                continue
            if stage.citations and token.text == b"[":
                n = citation(piece[token.start :], len(piece) - token.start)
                if n:
                    marks.append((start + token.start, n, "citation"))
                    skip = token.start + n
                    continue
            line.append(token)
        if not strip(line) and not marks:
            if cutting:
                s, n, reason = edits[-1]
                edits[-1] = (s, n + len(piece), reason)
            else:
                blank_before = True
            start += len(piece)
            continue
        shown = strip(line)
        low = bytes(b | 0x20 if 0x41 <= b <= 0x5A else b for b in piece)
        reason = ""
        if longest_run(line) > stage.max_word_chars:
            reason = "long_word"
        elif stage.terminal_punctuation and (
            ends_with_dots(shown) or not ends_with_terminal(line, quotes=True)
        ):
            reason = "no_terminal_punctuation"
        elif sum(is_word(t) for t in line) < stage.min_line_words:
            reason = "few_words"
        elif any(p.lower().encode() in low for p in stage.javascript):
            reason = "javascript"
        elif any(p.lower().encode() in low for p in stage.policy):
            reason = "policy"
        cutting = bool(reason) and blank_before
        if reason:
            edits.append((start, len(piece), reason))
            counts["cut_lines"] += 1
        else:
            edits.extend(marks)
            blank_before = False
            counts["kept_lines"] += 1
            counts["lorem_ipsum_lines"] += b"lorem ipsum" in low
            counts["curly_brackets"] += sum(t.text == b"{" for t in line)
            counts["sentences"] += sentences(line)
        start += len(piece)
    return counts, edits


def raw_lines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def sampled(text: bytes, samples: int, size: int) -> list[bytes]:
    if len(text) <= samples * size:
        return [text] + [b""] * (samples - 1)
    pieces = []
    for k in range(samples):
        start = k * (len(text) - size) // max(samples - 1, 1)
        end = start + size
        while start < end and text[start] & 0xC0 == 0x80:
            start += 1
        while end > start and end < len(text) and text[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(b" " * (k > 0) + text[start:end])
    return pieces


def read_kind(char: str) -> str:
    code = ord(char)
    if char == "\n":
        return "line"
    blanks = [(0, 0x20), (0x7F, 0xA0), (0xAD, 0xAD), (0x2000, 0x200F), (0x2028, 0x202F)]
    if any(a <= code <= b for a, b in [*blanks, (0x205F, 0x206F), (0x3000, 0x3000)]):
        return "blank"
    signs = [(0x21, 0xBF), (0x2010, 0x205E), (0x3001, 0x303F)]
    word = (char.isascii() and char.isalnum()) or code in (0xAA, 0xB5, 0xBA)
    return "sign" if not word and any(a <= code <= b for a, b in signs) else "word"


def excerpt(text: str, limit: int) -> list[str]:
    """The front; two thirds of `limit` bytes of the text, one of its middle, blanks being one."""
    data = text.encode()

    def back(at: int) -> int:
        while 0 < at < len(data) and data[at] >> 6 == 2:
            at -= 1
        return at

    def walk(at: int, size: int) -> int:
        rest = data[at:].decode(errors="surrogateescape")
        blanks = [read_kind(char) in ("blank", "line") for char in rest]
        for char, blank, before in zip(rest, blanks, [False, *blanks], strict=False):
            if size <= 0:
                break
            width = len(char.encode(errors="surrogateescape"))
            step = width if blank else min(width, size)
            size -= not before if blank else step
            at += step
        return at

    front = back(walk(0, FRONT))
    if len(data) <= limit:
        return [data[:front].decode(), text]
    while data and data[-1] <= 0x20:
        data = data[:-1]
    piece = limit // 3
    stop = walk(0, 2 * limit // 3)
    if walk(stop, piece) == len(data):
        return [data[:front].decode(), data.decode()]
    stop = back(stop)
    second = back(max(stop, (len(data) - piece) // 2))
    return [
        data[: min(front, stop)].decode(),
        data[:stop].decode(),
        data[second : back(walk(second, piece))].decode(),
    ]


def small(char: str) -> str:
    return char.lower() if char < "\u00df" else char


def read_words(text: str, limit: int) -> str:
    """The first words, marked; plain words without repetitions, thinned; short texts again."""
    found: list[tuple[str, str]] = []  # as it is written, and with its digits
    digits = str.maketrans("123456789", "000000000")
    front, *pieces = excerpt(text, limit)
    title = "".join(c if read_kind(c) == "word" else " " for c in front).split(" ")
    lines = 0
    for piece in pieces:
        word = ""
        for char in piece + " ":
            kind = read_kind(char)
            lines = 0 if kind in ("word", "sign") else lines + (kind == "line")
            if kind == "word":
                word += small(char)
                continue
            found += [(word.translate(digits), word)] * bool(word)
            found += [(char, char)] * (kind == "sign")
            found += [("\u00b6", "\u00b6")] * (kind == "line" and lines <= 2)
            word = ""
    if not {token for token, _ in found} - {"\u00b6"}:
        return ""
    seen: Counter[str] = Counter()
    out = []
    for word in filter(None, title):
        token = "@" + "".join(map(small, word)).translate(digits)
        seen[token] += 1
        out += [token] * (seen[token].bit_count() == 1)
    windows = set()
    for at, (token, _) in enumerate(found):
        window = tuple(exact for _, exact in found[at - WINDOW + 1 : at + 1])
        if at < WINDOW - 1 or window not in windows:
            windows.add(window)
            seen[token] += 1
            out += [token] * (seen[token].bit_count() == 1)
    if len(out) < LEAST_WORDS:
        out = (out * 8)[:LEAST_WORDS]
    return "".join(token + " " for token in out)


def long_range(data: bytes, stage) -> dict[str, int]:
    """Scores of one text: sets of segments, and every pair looked at."""
    words = [t for t in tokens(data) if t.kind in ("word", "unspaced")]
    halves, where, said = 0, {}, set()
    before: list[object] = [None, None, None]
    end = -1
    total = sum(1 if t.kind == "unspaced" else 2 for t in words)
    count = total // (2 * stage.segment)
    nothing = {"segments": count, "near": -1, "far": -1, "score": -1}
    if count < 2 * stage.distance:
        return nothing
    last = b""
    for token in words:
        segment = halves // (2 * stage.segment)
        if token.kind == "unspaced":
            halves += 1
            follows = end == token.start
            term = (last, token.text) if follows else token.text
            good = follows
            last, end = token.text, token.start + len(token.text)
        else:
            halves += 2
            term = token.text.lower()  # bytes: ASCII alone
            good = len(token.chars) >= stage.min_letters and kind_of(token.chars[0]) != "number"
        phrase = (*before, term)
        before = [*before[1:], term]
        if good and phrase not in said and segment < count:
            said.add(phrase)
            where.setdefault(term, set()).add(segment)
    share = Fraction(str(stage.common))
    pairs = [
        b - a >= stage.distance
        for places in where.values()
        if len(places) <= count * share
        for a, b in combinations(sorted(places), 2)
    ]
    every = [b - a >= stage.distance for a, b in combinations(range(count), 2)]
    mean = Fraction(sum(map(len, where.values())), count)
    if not mean:
        return nothing | {"near": 0, "far": 0, "score": 0}
    far = Fraction(sum(pairs), sum(every)) / mean
    near = Fraction(len(pairs) - sum(pairs), len(every) - sum(every)) / mean
    score = far * min(1, far / near) if near else far
    return {
        "segments": count,
        **{
            name: floor(10_000 * value)
            for name, value in (("near", near), ("far", far), ("score", score))
        },
    }
