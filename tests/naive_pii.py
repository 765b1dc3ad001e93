"""What `filters.pii` finds, in plain Python: try every rule at every byte, mask, begin again."""

from __future__ import annotations

import re
import runpy
from functools import cache
from html.entities import html5
from pathlib import Path

from gristmill.filters._characters import table as characters

GONE = b"\x01"
numbers = runpy.run_path(str(Path(__file__).with_name("naive_numbers.py")))
measured, counted, number = (numbers[name] for name in ("measured", "counted", "number"))
issued, luhn = numbers["issued"], numbers["luhn"]
WORD = re.compile(rb"[A-Za-z0-9_]")


def word(w: bytes, i: int) -> bool:
    return 0 <= i < len(w) and WORD.match(w, i) is not None


def before(w: bytes, i: int) -> bytes:
    return w[i - 1 : i] if i else b""


def chars(raw: bytes) -> list[tuple[int, int]]:
    """(code point, size); a byte that begins no character is U+FFFD."""
    out, at = [], 0
    while at < len(raw):
        lead = raw[at]
        more = 0 if lead < 0x80 else 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        tail = raw[at + 1 : at + 1 + more]
        cp = lead if not more else lead & (0x1F, 0x0F, 0x07)[more - 1]
        for byte in tail:
            cp = cp << 6 | byte & 0x3F
        wrong = 0x80 <= lead < 0xC2 or lead > 0xF4 or len(tail) < more or cp > 0x10FFFF
        if wrong or any(byte & 0xC0 != 0x80 for byte in tail):
            cp, more = 0xFFFD, 0
        out.append((cp, more + 1))
        at += more + 1
    return out


REFERENCE = re.compile(
    rb"%40|%2[Ee]|&([A-Za-z]{1,24});|&#(\d{1,7})(?:;|(?!\d))|&#[xX]([0-9a-fA-F]{1,7})(?:;|(?![0-9a-fA-F]))"
)


def units(raw: bytes) -> list[tuple[int, int]]:
    """Characters and references: (code point, size); of `&amp;` the `&` alone."""
    out, at = [], 0
    given = {sum(n for _, n in chars(raw)[:k]): c for k, c in enumerate(chars(raw))}
    while at < len(raw):
        m = REFERENCE.match(raw, at)
        name = html5.get(m[1].decode() + ";", "") if m and m[1] else ""
        cp = ord(name) if len(name) == 1 and name != "&" else 0
        if m and not m[1]:
            cp = int(m[2] or b"0") or int(m[3] or b"0", 16)
            cp = int(m.group()[1:], 16) if m.group()[:1] == b"%" else cp
            cp = cp if cp < 0x7F or m.group()[-1:] == b";" else 0
        out.append((cp, m.end() - at) if cp >= 0x20 else given[at])
        at += out[-1][1]
    return out


def meaning(cp: int, size: int, pii) -> int:
    """What a character or reference stands for: a byte of ASCII, `DASH`, `NONE`, a letter or 0."""
    if size < 2 or cp >= 0x10000:
        return 0
    byte = cp if cp < 0x7F else int(pii.stands()[1][cp])
    if byte == pii.email.ITSELF:
        return cp if size > len(chr(cp).encode()) else 0
    return byte


def in_number(said: bytes, after: tuple[int, int] | None, pii) -> bool:
    """Whether a dash between `said` and the character `after` stands within a number."""
    follows = chr(meaning(*after, pii) or (after[0] if after[1] == 1 else 0)) if after else " "
    if follows not in "0123456789( " or not re.search(rb"(?:^|[\d) ])\Z", said):
        return False
    run = re.search(rb"[0-9 ()./-]*\Z", said[-39:]).group()
    many = len(re.findall(rb"\d", run)) >= 10 and not CARD_SO_FAR.fullmatch(run)
    return not (many and follows.isdigit())


CARD_SO_FAR = re.compile(rb"[ ()./-]?".join([rb"\d{4}"] * 3))


def folded(raw: bytes, pii, gap: bool) -> tuple[bytes, list[tuple[int, int]]]:
    """The text with ASCII for what stands for it, and where each byte of it begins and ends."""
    out, places, at = bytearray(), [], 0
    given = units(raw)
    for k, (cp, size) in enumerate(given):
        byte = meaning(cp, size, pii)
        if byte == pii.email.DASH:
            after = given[k + 1] if k + 1 < len(given) else None
            byte = 0x2D if in_number(bytes(out), after, pii) else 0
        elif byte == pii.email.NONE:
            byte = 0x20 if gap else None
        if byte:
            letter = bytes([byte]) if byte < 0x80 else chr(byte).encode()
            out += letter
            places += [(at, at + size)] * len(letter)
        elif byte == 0:
            out += raw[at : at + size]
            places += [(t, t + 1) for t in range(at, at + size)]
        at += size
    return bytes(out), places


def sure(raw: bytes, pii) -> bool:
    """Whether nothing that nobody sees stands within what is no space and is ASCII on a side."""
    at = 0
    for cp, size in units(raw):
        beside = raw[max(0, at - 1) : at] + raw[at + size : at + size + 1]
        within = re.fullmatch(rb"[\x01\x21-\xff]{2}", beside) and re.search(rb"[\0-\x7e]", beside)
        if meaning(cp, size, pii) == pii.email.NONE and within:
            return False
        at += size
    return True


def kinds(raw: bytes) -> list[tuple[str, int, int]]:
    """(kind, first byte, last byte) of each character: `a`, `1`, `-`, `.`, M to F by class, ?."""
    table = characters()
    out, at = [], 0
    for cp, size in chars(raw):
        kind = int(table[cp])
        if cp < 0x80:
            c = chr(cp)
            sort = "a" if c.isalpha() else "1" if c.isdigit() else c if c in "-." else "?"
        else:
            sort = "?????MNLTF"[kind]
        out.append((sort, at, at + size))
        at += size
    return out


def local(w: bytes, at: int) -> tuple[int, bool] | None:
    s, free, scripts = at, False, set()
    while s > 0:
        ascii_ = re.search(rb"[A-Za-z0-9._%+-]\Z", w[s - 1 : s])
        tails = [n for n in (2, 3, 4) if s >= n and chars(w[s - n : s])[0][1] == n]
        sort, size = "?", 1
        if tails and w[s - 1] >= 0x80 and w[s - tails[0]] >= 0x80:
            sort, size = kinds(w[s - tails[0] : s])[0][0], tails[0]
        free = free or (s == at and sort == "F")
        if not (sort == "F" if free else ascii_ or sort in "MNLT"):
            break
        if re.search(rb"%(?:2[0-9acf]|3[a-f])\Z", w[max(0, s - 1) : min(at, s + 2)], re.IGNORECASE):
            s += 2
            break
        scripts |= {"T"} if w[s - 1 : s].isalpha() or sort == "T" else {sort} & {"L"}
        if len(scripts) > 1:
            break
        s -= size
        if at - s > 64:
            return None
    if w[max(0, s - 1) : s + 1] in (rb"\n", rb"\r", rb"\t"):
        s += 1
    while s < at and w[s : s + 1] in (b".", b"%", b"+", b"-"):
        s += 1
    return None if s == at or w[at - 1 : at] == b"." else (s, free)


def lowered(raw: bytes) -> bytes:
    return re.sub(rb"[A-Z]", lambda m: m.group().lower(), raw)


def label(w: bytes, i: int, hi: int, pii) -> tuple[int, int | None, int]:
    """End of a label, end of the top-level domain that it begins with, bits of that."""
    whole = kinds(w[i:hi])
    sorts = "".join(k for k, *_ in whole)
    run = re.match(r"(?:[a1NLTF][a1MNLTF-]*)?", sorts).group()
    ends = [i] + [i + stop for *_, stop in whole]
    tops = pii.top_domains()
    if not run:
        return i, None, 0
    if re.match(rb"(?i)xn--", w[i:hi]):
        head = re.match(r"[a1-]*", run).group().rstrip("-")
    else:
        head = re.match(r"[MNLTF]*" if run[0] in "NLTF" else r"a*", run).group()
    after = run[len(head) :]
    sizes = range(len(head), 0, -1) if run[0] == "F" else [len(head)]
    for size in sizes:
        if size == len(head) and after[:1] in ("a", "1"):
            continue
        bits = tops.get(lowered(w[i : ends[size]]))
        if bits:
            return ends[len(run)], ends[size], bits
    if not after and (m := re.match(rb"[^A-Z\x80-\xff]+(?=[A-Z])", w[i : ends[len(run)]])):
        bits = tops.get(m.group(), 0)
        if bits & 2 or (bits and m.end() > 2):
            return ends[len(run)], i + m.end(), bits
    return ends[len(run)], None, 0


def email(w: bytes, at: int, pii, reserved: bool):
    mine = local(w, at)
    if not mine or (mine[1] and w[at + 1 : at + 2] < b"\x80"):
        return None
    labels = []
    p, stop = at + 1, min(len(w), at + 256)
    while True:
        e, a, bits = label(w, p, stop, pii)
        if e == p:
            break
        labels.append((p, e, a, bits))
        if w[e : min(e + 1, stop)] != b".":
            break
        p = e + 1
    good = [one for one in labels[1:] if one[2] and (reserved or not one[3] & 4)]
    if not good:
        return None
    first, _, end, bits = good[-1]
    after = w[end : end + 1]
    if after in (b"(", b"[") and after and not bits & 2:
        return None
    if after == b"." and end < labels[-1][1] and not re.match(rb"[A-Z\x80-\xff]", w[end + 1 :]):
        return None
    if w[end : end + 2] in (b":/", b":~"):
        return None
    if not reserved and w[at:end].lower().endswith(tuple(h.encode() for h in pii.HOSTS.split())):
        return None
    if re.match(rb"[a-z\x60\x7b-\x7f]", w[first:end]) and re.search(rb"[A-Z]\Z", w[first:end]):
        return None
    shells = tuple(s.replace("|", " ").encode() for s in pii.SHELLS.split())
    if w[mine[0] : at] == b"git" or w[: mine[0]].lower().endswith(shells):
        return None
    return mine[0], end


def ipv4(w: bytes, i: int, pii, reserved: bool):
    if word(w, i - 1) or before(w, i) == b".":
        return None
    schemed = w[:i].endswith(b"//")
    if before(w, i) == b"/" and not schemed:
        return None
    m = re.compile(
        rb"(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})"
    ).match(w, i)
    if not m or word(w, m.end()) or re.compile(rb"\.[A-Za-z0-9]").match(w, m.end()):
        return None
    a, b, c, d = map(int, m.groups())
    if max(a, b, c, d) > 255 or not (schemed or before(w, i) == b"@" or max(a, b, c, d) > 99):
        return None
    if w[:i].lower().endswith(tuple(v.encode() for v in pii.VERSIONS)):
        return None
    private = (
        a in (0, 10, 127)
        or a >= 224
        or (a, b) in ((169, 254), (192, 168), (198, 18), (198, 19))
        or (a == 172 and 16 <= b < 32)
        or (a == 100 and 64 <= b < 128)
        or (a, b, c) in ((192, 0, 0), (192, 0, 2), (198, 51, 100), (203, 0, 113))
    )
    return None if private and not reserved else (i, m.end())


def ipv6(w: bytes, at: int, reserved: bool):
    left = re.search(rb"[0-9A-Fa-f:]*\Z", w[max(0, at - 46) : at]).group()
    s = at - len(left)
    run = re.compile(rb"[0-9A-Fa-f:]*").match(w, s).group()[:46]
    if len(run) > 45 or word(w, s - 1) or word(w, s + len(run)):
        return None
    text = run[:-1] if run.endswith(b":") and not run.endswith(b"::") else run
    if b":::" in text or text.count(b"::") > 1 or (text.startswith(b":") and text[:2] != b"::"):
        return None
    groups = [g for g in text.split(b":") if g]
    if any(len(g) > 4 for g in groups) or not 3 <= len(groups) <= (7 if b"::" in text else 8):
        return None
    if b"::" not in text and len(groups) != 8:
        return None
    first, second = int(groups[0], 16), int(groups[1], 16)
    if not 0x2000 <= first < 0x4000 or (not reserved and (first, second) == (0x2001, 0x0DB8)):
        return None
    return s, s + len(text)


CARD = re.compile(
    rb"\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?!\d)|\d{4}([ -])\d{6}\2\d{5}(?!\d)|\d{13,19}(?!\d)"
)


def card(w: bytes, i: int, pii):
    if word(w, i - 1) or (before(w, i) and before(w, i) in b".,/+#=&$%"):
        return None
    if before(w, i) == b"-" and word(w, i - 2):
        return None
    m = CARD.match(w, i)
    if not m or word(w, m.end()) or re.compile(rb"[-.,]\d").match(w, m.end()):
        return None
    digits = re.sub(rb"\D", b"", m.group()).decode()
    good = issued(digits) and luhn(digits) and not worded(w, i, pii.NUMBERED)
    return (i, m.end()) if good else None


@cache
def spellings(words: str | tuple[str, ...]) -> frozenset[bytes]:
    listed = words.split() if isinstance(words, str) else words
    given = [word.replace("|", " ") for word in listed]
    return frozenset(
        v.encode().lower() for word in given for v in (word, word.upper(), word.title())
    )


def ungapped(head: bytes) -> bytes:
    gap = re.search(rb"[ .:(\t#=*]*\Z", head).group()
    return head[: len(head) - min(len(gap), 4)]


def worded(w: bytes, i: int, words: str | tuple[str, ...]) -> bytes | None:
    """The word of a list that stands before `i`."""
    head = ungapped(w[:i])
    bracket = re.search(rb"[])]\Z|\xe3\x80\x91\Z", head)
    head = ungapped(head[: bracket.start()]) if bracket else head
    fits = [word for word in spellings(words) if head.lower().endswith(word)]
    if not fits or (head.endswith(b"pH") and len(max(fits, key=len)) == 2):
        return None
    word = max(fits, key=len)
    cut = len(head) - len(word)
    opening = {b")": b"(", b"]": b"[", b"": b""}.get(
        bracket[0] if bracket else b"", b"\xe3\x80\x90"
    )
    if not head[:cut].endswith(opening):
        return None
    if head[cut] < 0x80 and re.search(rb"(?:[A-Za-z]|[\xc3-\xc9][\x80-\xff])\Z", head[:cut]):
        return None
    prior = re.search(rb"([\xd0\xd1][\x80-\xff])\Z", head[:cut])
    if prior and head[cut] in (0xD0, 0xD1):  # Cyrillic: a capital may begin a label after a small
        capital = rb"\xd0[\x00-\xaf]"
        if re.match(capital, prior[1]) or not re.match(capital, head[cut : cut + 2]):
            return None
    return word


AREA = rb"(?![23]00|\d11)[2-9][0-8]\d"
SHAPE = rb"(?:1[ .-])?(?:\(%s\) ?|%s[.-])[2-9]\d\d[.-]\d{4}" % (AREA, AREA)
AMERICAN = re.compile(SHAPE + rb"(?![A-Za-z0-9_])(?!\.\d)(?!-(?!%s(?!\d))\d)" % SHAPE)


def unit(w: bytes, end: int, pii) -> bool:
    for word_ in sorted(spellings(pii.UNITS)):
        at = end + (w[end : end + 1] == b" " and word_[0] < 0xE3)
        stop = at + len(word_)
        if lowered(w[at:stop]) != word_:
            continue
        letter = re.search(rb"(?:[a-z]|[\xc3-\xdf].)\Z", word_, re.DOTALL)
        more = rb"[A-Za-z0-9\x80-\xff]" if letter else rb" ?\d"
        if not re.compile(more).match(w, stop):
            return True
    return False


def called(w: bytes, end: int, parts: list[str], pii) -> bool:
    """Whether a number after a `+` begins with a calling code, and is no quantity."""
    digits = "".join(parts[::2])
    code = next((c for c in pii.CALLING.split() if digits.startswith(c)), None)
    if code is None or len(code) > len(parts[0]) or re.compile(rb",\d").match(w, end):
        return False
    if len(code) == 1 and (len(digits) < 11 or re.match(r"1[01]", digits)):
        return False
    one = len(parts) == 4 or (len(parts) > 4 and len(parts[2]) >= 4)
    other = parts[3][1:2] if parts[3:] and parts[3][:1] == " " and len(parts[3]) > 1 else ""
    other = other or (parts[3][:1] if parts[3:] else "")
    if parts[1] == "." and one and (len(parts) == 4 or other != "."):
        return False
    return not measured(parts, pii) and not (len(parts) > 4 and len(digits) <= 8)


def phone(w: bytes, i: int, pii):
    every = pii.labels("phone") + pii.labels("brief")
    if w[i : i + 1] == b"+":
        if word(w, i - 1) or before(w, i) == b"+" or not re.compile(rb"[1-9]").match(w, i + 1):
            return None
        found = number(w, i + 1, 8)
        if not found:
            return None
        end, parts = found
        if counted(parts) and unit(w, end, pii):
            return None
        return (i, end) if called(w, end, parts, pii) or worded(w, i, every) else None
    joined = before(w, i) == b"-" and word(w, i - 2)
    if not word(w, i - 1) and not joined and not (before(w, i) and before(w, i) in b"./+#=&$"):
        m = AMERICAN.match(w, i)
        if m and not worded(w, i, pii.NUMBERED) and not unit(w, m.end(), pii):
            return i, m.end()
    first = i + (w[i : i + 1] == b"(")
    if word(w, i - 1) or not re.compile(rb"\d").match(w, first):
        return None
    dash = re.search(rb"(?:- |(?<= )-|\xe2\x80[\x92-\x95] ?)\Z", w[:i])
    label = worded(w, dash.start() if dash else i, every)
    found = label and number(w, first, 7 if label in spellings(pii.labels("brief")) else 6)
    if not found or measured(found[1], pii):
        return None
    priced = re.compile(rb",\d\d(?!\d)").match(w, found[0])
    if counted(found[1]) and (priced or unit(w, found[0], pii)):
        return None
    return i, found[0]


def iban(w: bytes, i: int, pii):
    sizes = {each[:2].encode(): int(each[2:]) for each in pii.IBANS.split()}
    size = sizes.get(w[max(i, 0) : i + 2].upper())
    if size is None or i < 0 or word(w, i - 1):
        return None
    letters = (
        b"A-Z" if w[i : i + 2].isupper() else b"A-Za-z" if worded(w, i, pii.labels("iban")) else b""
    )
    m = re.compile(rb"[A-Za-z]{2}\d\d(?:[ -]?[%s0-9]){%d}" % (letters, size - 4)).match(w, i)
    if not m or word(w, m.end()):
        return None
    text = re.sub(rb"[ -]", b"", m.group()).decode()
    value = int("".join(str(int(c, 36)) for c in text[4:] + text[:4]))
    return (i, m.end()) if value % 97 == 1 else None


def _first_email(w: bytes, pii, reserved: bool):
    for i in range(len(w)):
        if w[i : i + 1] == b"@" and (found := email(w, i, pii, reserved)):
            yield "email", found


def _first_data(w: bytes, pii, reserved: bool):
    for i in range(len(w)):
        b = w[i : i + 1]
        digit = b.isdigit()
        for kind, found in (
            ("ipv6", ipv6(w, i, reserved) if re.compile(rb":[0-9A-Fa-f:]").match(w, i) else None),
            ("ipv4", ipv4(w, i, pii, reserved) if digit else None),
            ("card", card(w, i, pii) if digit else None),
            ("phone", phone(w, i, pii) if re.compile(rb"\d|[+(]\d").match(w, i) else None),
            ("iban", iban(w, i, pii) if w[i : i + 2].isupper() else None),
            ("iban", iban(w, i - 2, pii) if digit and not w[i - 2 : i].isupper() else None),
        ):
            if found:
                yield kind, found


def find(text: bytes, pii, secrets, reserved: bool = False) -> list[tuple[int, int, str]]:
    """(start, length, kind) of all that is masked in a text, in order.

    `pii` and `secrets` are the module of tables and the twin `naive_secrets`.
    """
    found: list[tuple[int, int, str]] = []
    rules = (
        lambda w: secrets.first(w, pii),
        lambda w: _first_email(w, pii, reserved),
        lambda w: _first_data(w, pii, reserved),
    )
    gap, quiet = False, 0
    again = not sure(text, pii) or any(
        meaning(*unit_, pii) == pii.email.DASH for unit_ in units(text)
    )
    for _ in range(pii.TURNS if again else 1):
        w, places = folded(text, pii, gap and not sure(text, pii))
        before, known = None, len(found)
        for _ in range(pii.ROUNDS):
            if w == before:
                break
            before = w
            for rule in rules:
                while hit := next(rule(w), None):
                    kind, (s, e) = hit
                    found.append((places[s][0], places[e - 1][1] - places[s][0], kind))
                    w = w[:s] + GONE * (e - s) + w[e:]
        for start, size, _ in found[known:]:
            text = text[:start] + GONE * size + text[start + size :]
        gap, quiet = not gap, quiet + 1 if len(found) == known else 0
        if quiet == 2:
            break
    return sorted(found)
