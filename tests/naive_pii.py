"""What `filters.pii` finds, in plain Python: try every rule at every byte, mask, begin again."""

from __future__ import annotations

import math
import re
from functools import cache

from gristmill.filters._characters import table as characters

GONE = b"\x01"
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


def folded(raw: bytes, pii) -> tuple[bytes, list[int]]:
    """The text with ASCII for what stands for it, and where each byte of it, and its end, was."""
    stands = pii.stands()[1]
    out, places, at = bytearray(), [], 0
    for cp, size in chars(raw):
        own = raw[at : at + size]
        byte = int(stands[cp]) if cp < 0x10000 and own != b"\xff" else 0
        out += bytes([byte]) if byte and size > 1 else own
        places += [at] if byte and size > 1 else range(at, at + size)
        at += size
    return bytes(out), [*places, at]


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
    run = re.match(r"(?![-M])[a1MNLTF-]*", sorts).group()
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


def luhn(digits: str) -> bool:
    total = 0
    for t, d in enumerate(map(int, reversed(digits))):
        total += d if t % 2 == 0 else sum(divmod(2 * d, 10))
    return total % 10 == 0


ISSUERS = (
    r"4(\d{12}|\d{15}|\d{18})",
    r"5[1-5]\d{14}",
    r"3[47]\d{13}",
    r"(6011|64[4-9]\d|65\d\d|62\d\d)\d{12,15}",
    r"(30[0-5]|36\d|38\d)\d{11}",
)


def issued(digits: str) -> bool:
    four = int(digits[:4])
    if 2221 <= four <= 2720:
        return len(digits) == 16
    if 3528 <= four <= 3589 and len(digits) >= 16:
        return True
    return any(re.fullmatch(form, digits) for form in ISSUERS)


CARD = re.compile(
    rb"\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?!\d)|\d{4}([ -])\d{6}\2\d{5}(?!\d)|\d{13,19}(?!\d)"
)


def card(w: bytes, i: int, pii):
    if word(w, i - 1) or (before(w, i) and before(w, i) in b".,-/+#=&$%"):
        return None
    m = CARD.match(w, i)
    if not m or word(w, m.end()) or re.compile(rb"[-.,]\d").match(w, m.end()):
        return None
    digits = re.sub(rb"\D", b"", m.group()).decode()
    good = issued(digits) and luhn(digits) and not worded(w, i, pii.NUMBERED)
    return (i, m.end()) if good else None


@cache
def spellings(words: str) -> frozenset[bytes]:
    given = [word.replace("|", " ") for word in words.split()]
    return frozenset(
        v.encode().lower() for word in given for v in (word, word.upper(), word.title())
    )


def worded(w: bytes, i: int, words: str) -> bytes | None:
    """The word of a list that stands before `i`."""
    gap = len(re.search(rb"[ .:(\t#=]*\Z", w[:i]).group())
    head = w[: i - min(gap, 4)]
    fits = [word for word in spellings(words) if head.lower().endswith(word)]
    if not fits or (head.endswith(b"pH") and len(max(fits, key=len)) == 2):
        return None
    word = max(fits, key=len)
    cut = len(head) - len(word)
    return None if head[cut] < 0x80 and re.search(rb"[A-Za-z]\Z", head[:cut]) else word


SHAPE = rb"(?:1[ .-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[.-])[2-9]\d\d[.-]\d{4}"
AMERICAN = re.compile(SHAPE + rb"(?![A-Za-z0-9_])(?!\.\d)(?!-(?!%s(?!\d))\d)" % SHAPE)
GROUP = re.compile(rb"\d{1,20}")
GAP = re.compile(rb"[ ()./-]{1,3}(?=\d)")


def number(w: bytes, i: int, least: int):
    """End, and the number as text: 1 for a lone digit, marks by their first (` - ` is a dash)."""
    total, end, p = 0, None, i
    parts: list[str] = []
    while True:
        m = GROUP.match(w, p)
        size = m.end() - p
        if total + size > 15:
            break
        total += size
        end = m.end()
        marks = re.compile(rb"[ ()./-]{0,3}").match(w, end).group() if size < 20 else b""
        parts += [m.group().decode(), marks.decode()]
        gap = GAP.match(w, end) if size < 20 else None
        if not gap or (total >= 10 and gap.group() != b"-"):
            break
        p = gap.end()
    return None if end is None or total < least or word(w, end) else (end, parts)


YEAR = r"(?:18|19|20)\d\d"
MEASURED = (
    r"\d\.\d\d?(?!\d).*",
    rf"{YEAR}.(?:{YEAR}|(?<! )\d\d)",
    r"[1-9]\d{0,2}(?:.000)+",
    rf"(?:0?\d|[12]\d|3[01])([./()-])(?:0?\d|[12]\d|3[01])\1{YEAR}",
    rf"{YEAR}([./()-])(?:0?\d|1[0-2])\1(?:0?\d|[12]\d|3[01])",
    r"(?:[01]?\d|2[0-4])\.[0-5]\d-(?:[01]?\d|2[0-4])\.[0-5]\d",
)


def measured(parts: list[str]) -> bool:
    marks = [m[1] if m[:1] == " " and len(m) > 1 else m[:1] for m in parts[1::2]]
    said = "".join(d + m for d, m in zip(parts[::2], marks, strict=True))
    said = said if not marks[-1] else said[:-1]
    return any(re.fullmatch(form, said) for form in MEASURED)


def phone(w: bytes, i: int, pii):
    if w[i : i + 1] == b"+":
        if word(w, i - 1) or before(w, i) == b"+" or not re.compile(rb"[1-9]").match(w, i + 1):
            return None
        found = number(w, i + 1, 8)
        if not found:
            return None
        end, parts = found
        one = len(parts) == 4 or (len(parts) > 4 and len(parts[2]) >= 4)
        other = parts[3][1:2] if parts[3:] and parts[3][:1] == " " and len(parts[3]) > 1 else ""
        other = other or (parts[3][:1] if parts[3:] else "")
        decimal = parts[1] == "." and one and (len(parts) == 4 or other != ".")
        return (i, end) if not decimal or worded(w, i, pii.LABELS) else None
    joined = before(w, i) == b"-" and word(w, i - 2)
    if not word(w, i - 1) and not joined and not (before(w, i) and before(w, i) in b"./+#=&"):
        m = AMERICAN.match(w, i)
        if m and not worded(w, i, pii.NUMBERED):
            return i, m.end()
    first = i + (w[i : i + 1] == b"(")
    if word(w, i - 1) or not re.compile(rb"\d").match(w, first):
        return None
    label = worded(w, i, pii.LABELS)
    found = label and number(w, first, 7 if label.decode() in pii.BRIEF.split() else 6)
    return (i, found[0]) if found and not measured(found[1]) else None


def iban(w: bytes, i: int, pii):
    sizes = {each[:2].encode(): int(each[2:]) for each in pii.IBANS.split()}
    size = sizes.get(w[i : i + 2])
    if size is None or word(w, i - 1):
        return None
    m = re.compile(rb"[A-Z]{2}\d\d(?: ?[A-Z0-9]){%d}" % (size - 4)).match(w, i)
    if not m or word(w, m.end()):
        return None
    text = m.group().replace(b" ", b"").decode()
    value = int("".join(str(int(c, 36)) for c in text[4:] + text[:4]))
    return (i, m.end()) if value % 97 == 1 else None


def key(w: bytes, i: int, pii):
    if word(w, i - 1):
        return None
    sets = (rb"[A-Z0-9]", rb"[A-Za-z0-9]", rb"[A-Za-z0-9_-]", rb"[A-Za-z0-9_.-]", rb"[A-Za-z0-9/]")
    for prefix, least, most, kind, dots in pii.FORMS:
        if not w.startswith(prefix.encode(), i):
            continue
        tail = re.compile(sets[kind] + b"{0,%d}" % (most + 1)).match(w, i + len(prefix)).group()
        tail = tail[: (w[i + len(prefix) :].find(b"-----") + 1 or len(w) + 1) - 1]
        if kind == 3:
            whole = prefix.encode() + tail
            tail = (
                whole.rstrip(b".")[len(prefix) :] if len(whole.rstrip(b".")) > len(prefix) else b""
            )
        good = least <= len(tail) <= most and re.search(rb"\d", tail)
        if good and tail.count(b".") == dots and not tail.lower().endswith(b"example"):
            return i, i + len(prefix) + len(tail)
    return None


CLOSE = re.compile(rb"PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE)
RUN = re.compile(rb"[A-Za-z0-9+/=]+")


def block(w: bytes, i: int):
    if w[i : i + 11].lower() != b"-----begin ":
        return None
    line = w[i : i + 64].split(b"\n")[0]
    m = next((m for m in CLOSE.finditer(line) if m.end() > 20), None)
    if not m:
        return None
    last = p = i + m.end()
    sizes = []
    while p < len(w):
        if run := RUN.match(w, p):
            p = run.end()
            size = p - run.start()
            if size >= 16 or (p == len(w) and sum(sizes) >= 64):
                sizes.append(size)
                last = p
            continue
        if w.startswith(b"-----", p):
            m = next((m for m in CLOSE.finditer(w[p : p + 64]) if m.end() > 20), None)
            if w[p : p + 9].lower() == b"-----end " and m:
                return (i, p + m.end()) if sum(sizes) >= 64 else None
            break
        if w[p : p + 1] in (GONE, b"<", b"|") or p - last >= (64 if sizes else 512):
            break
        p += 1
    return (i, last) if sum(sizes) >= 64 and max(sizes) >= 40 else None


VALUE = rb"[!#%&*+./0-9:=?@A-Z\[\]\\^_a-z~-]"


def secret(w: bytes, at: int, pii):
    names = "|".join(map(re.escape, pii.NAMES.split()))
    tails = "|".join(map(re.escape, pii.TAILS.split()))
    head = rb"(?:%s)(?:%s)?[\"'`]?[ \t]{0,32}" % (names.encode(), tails.encode())
    typed = rb"(?:%s:[ \t]{0,32}[\"'`]?[A-Za-z0-9_.\[\]]{1,24}[\"'`]?[ \t]{0,32})" % head
    form = rb"(?:%s|%s)\Z" % (head, typed) if w[at : at + 1] == b"=" else rb"(?:%s)\Z" % head
    if not re.search(form, w[max(0, at - 250) : at], re.IGNORECASE):
        return None
    p = re.compile(rb"[=>]{0,2}[ \t]{0,32}").match(w, at + 1).end()
    quote = w[p : p + 1] if w[p : p + 1] in (b'"', b"'", b"`") else b""
    p += len(quote)
    scheme = re.compile(rb"bearer |basic |token ", re.IGNORECASE).match(w, p)
    s = scheme.end() if scheme else p
    chars = VALUE if quote else rb"[A-Za-z0-9+/=_-]"
    value = re.compile(rb"(?:(?!-----)%s){0,256}" % chars).match(w, s).group()
    end = s + len(value)
    n = len(value)
    kinds = re.sub(rb"[A-Z]", b"U", re.sub(rb"[a-z]", b"l", re.sub(rb"[0-9]", b"1", value)))
    pairs = [kinds[t : t + 2] for t in range(n - 1)]
    changes = [b for b in pairs if re.fullmatch(rb"[Ul1]{2}", b) and b[0] != b[1]]
    mixed = [b for b in changes if b"1" in b]
    if b"://" in value or not 16 <= n <= 255 or not re.search(rb"\d", value):
        return None
    if not re.search(rb"[A-Za-z]", value) or (len(mixed) < 3 and 2 * len(changes) < n):
        return None
    after = w[end : end + 1]
    if quote:
        if after != quote:
            return None
    elif n < 20 or (after and 0x21 <= after[0] < 0x80 and after not in b"\"&'),;<\\]`|}"):
        return None
    bits = share(n) - sum(share(value.count(b)) for b in set(value))
    least = 6 if re.fullmatch(rb"[0-9A-Fa-f]+", value) else 7
    return (s, end) if bits * 2 >= least * 64 * n else None


def share(c: int) -> int:
    """64 c log2(c), rounded down."""
    return math.floor(64 * c * math.log2(c) + 1e-9)


def _first_secret(w: bytes, pii):
    for i in range(len(w)):
        b = w[i : i + 1]
        for kind, found in (
            ("secret", secret(w, i, pii) if b in (b":", b"=") else None),
            ("private_key", block(w, i) if b == b"-" else None),
            ("key", key(w, i, pii)),
        ):
            if found:
                yield kind, found


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
            ("iban", iban(w, i, pii)),
        ):
            if found:
                yield kind, found


def find(text: bytes, pii, reserved: bool = False) -> list[tuple[int, int, str]]:
    """(start, length, kind) of all that is masked in a text, in order."""
    w, places = folded(text, pii)
    found = []
    rules = (
        lambda w: _first_secret(w, pii),
        lambda w: _first_email(w, pii, reserved),
        lambda w: _first_data(w, pii, reserved),
    )
    before = None
    while w != before:
        before = w
        for rule in rules:
            while hit := next(rule(w), None):
                kind, (s, e) = hit
                found.append((places[s], places[e] - places[s], kind))
                w = w[:s] + GONE * (e - s) + w[e:]
    return sorted(found)
