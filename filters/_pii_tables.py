"""What the kernels of `pii` look things up in: lists of words, forms of keys, and tables of bytes.

Words that numbers stand behind are those of `number_labels.tsv`. Top-level domains (`tlds.txt`) are
those of the root zone as of that file; one that comes later is not known, so addresses in it are
not found.
"""

from __future__ import annotations

import re
from functools import cache
from html.entities import html5
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from . import _kernels_common as bits
from . import _kernels_email as email
from ._characters import table

KINDS = ("email", "ipv4", "ipv6", "phone", "iban", "card", "key", "private_key", "secret")

# How often a text is read at most: for what stands free where something else was found (an address
# before a key before an address ...); for what nobody sees, and dashes. Made texts need one a line
ROUNDS, TURNS = 16, 16
RESERVED = "example invalid test localhost local"  # RFC 2606, 6761, 6762
HOSTS = "@example.com .example.com @example.org .example.org @example.net .example.net"
# Domains after which `(` and `[` are no call and no index
CALLED = (
    "com org net edu gov mil info biz eu us uk ie au nz ca za de ch fr be nl it es pt dk se fi "
    "pl cz sk hu ro gr tr ru ua il cn jp kr tw hk sg br mx ar cl co"
)
SHELLS = "ssh| scp| sftp| rsync| sshfs| mosh| ssh-copy-id| git|clone| ssh:// sftp://"
VERSIONS = (
    "version ", "version: ", "release ", "firmware ", "build ", "ver. ", " v. ", "section ",
    "version=", "version='", 'version="', "version>", "version': '", 'version": "', "==",
    "table ", "figure ", "fig. ", "clause ", "article ", "chapter ", "§ ", "§", "§\u00a0",
    " ec ", "(ec ", "\nec ", "enzyme ec ", "ec number ",
)  # fmt: skip
NUMBERED = (  # what is counted by numbers that look like those of telephones and cards
    "sku isbn issn upc ean asin gtin mpn p/n s/n serial serial|no serial|number part|no "
    "part|number item|no item|number item|id model model|no model|number order|no order|number "
    "order|id invoice invoice|no invoice|number ref ref|no reference tracking|no tracking|number "
    "lot lot|no batch|no batch|number ticket case|no case|number product|code product|id "
    "artikelnummer art.-nr bestellnummer bestell-nr rechnungsnummer référence "
    "range ranges dimensions dims coordinates timestamp seq pmid"
)
UNITS = (  # what stands after a quantity, and not after the number of a telephone
    "€ % euro euros eur usd gbp dollars pounds kr ft rub px pixels dpi mm cm km kg mg hz khz mhz "
    "ghz rpm fps bps baud bands points units users views viewers visitors people seats copies sold "
    "pieces pcs stück stk miles metres meters lines pages steps tokens rows "
    "руб рублей грн ₽ ₴ ₸ £ ¥ ₹ ₩ ₫ đ vnd vnđ 元 円 圓 원 万 萬 만 亿 億 억 台 명"  # noqa: RUF001
)
SIZES = (  # of screens in pixels, and bands of radio in MHz: two of these are no telephone
    "480 600 640 720 750 768 800 828 850 900 960 1024 1050 1080 1125 1170 1200 1242 1280 1284 "
    "1334 1366 1440 1600 1680 1792 1800 1900 1920 2048 2100 2160 2340 2400 2436 2532 2560 2600 "
    "2688 2778 3840 4096 4320 7680"
)
# ITU E.164: where a country's calling code ends is told by its first digits
CALLING = (
    "1 7 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 "
    "63 64 65 66 81 82 84 86 90 91 92 93 94 95 98 211 212 213 216 218 220 221 222 223 224 225 226 "
    "227 228 229 230 231 232 233 234 235 236 237 238 239 240 241 242 243 244 245 246 247 248 249 "
    "250 251 252 253 254 255 256 257 258 260 261 262 263 264 265 266 267 268 269 290 291 297 298 "
    "299 350 351 352 353 354 355 356 357 358 359 370 371 372 373 374 375 376 377 378 379 380 381 "
    "382 383 385 386 387 389 420 421 423 500 501 502 503 504 505 506 507 508 509 590 591 592 593 "
    "594 595 596 597 598 599 670 672 673 674 675 676 677 678 679 680 681 682 683 685 686 687 688 "
    "689 690 691 692 800 808 850 852 853 855 856 870 871 872 873 874 878 880 881 882 883 886 888 "
    "960 961 962 963 964 965 966 967 968 970 971 972 973 974 975 976 977 979 992 993 994 995 996 "
    "998"
)
NAMES = (
    "password passwd passwort pwd secret token api_key apikey api-key access_key access-key "
    "auth_key accesskey account_key accountkey private_key secret_key secretkey client_secret "
    "credential credentials passphrase authorization"
)
TAILS = "_prod _production _dev _development _test _testing _stage _staging _live _1 _2"
SCHEMES = "bearer| basic| token|"
TEMPLATES = r"${ $( {{ }} #{ %{ %( <% (? .* a-z 0-9 \d \w [^"  # values to be put in, patterns
# Code points that stand for ASCII: full width apart, the first digit of each script that has ten,
# spaces, hyphens; dashes, which stand for one within a number alone; and what nobody sees
DIGITS = (
    0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50, 0xED0,
    0xF20, 0x1040, 0x17E0, 0x1810,
)  # fmt: skip
SPACES = (
    0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000,
)  # fmt: skip
HYPHENS = (0x2010, 0x2011, 0xFE63)
DASHES = (*range(0x2012, 0x2016), 0x2212, 0xFE58)
DASHED = re.compile("|".join(map(chr, DASHES)).encode())
UNSEEN = (
    0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065),
    *range(0x2066, 0x2070), 0xFEFF,
)  # fmt: skip
# ISO 13616 registry: country and length
IBANS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 "
    "DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 "
    "IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 "
    "MR27 MT31 MU30 NI28 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SD18 SE24 SI19 "
    "SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20"
)
# Prefix, least and most bytes after it, letters (of `_SETS`), dots among them
FORMS = (
    ("AKIA", 16, 16, 0, 0), ("ASIA", 16, 16, 0, 0),
    ("ghp_", 36, 36, 1, 0), ("gho_", 36, 36, 1, 0), ("ghu_", 36, 36, 1, 0),
    ("ghs_", 36, 36, 1, 0), ("ghr_", 36, 76, 1, 0), ("github_pat_", 60, 100, 2, 0),
    ("glpat-", 20, 64, 2, 0), ("glrt-", 20, 64, 2, 0), ("gldt-", 20, 64, 2, 0),
    ("xoxb-", 20, 120, 2, 0), ("xoxp-", 20, 120, 2, 0), ("xoxa-", 20, 120, 2, 0),
    ("xoxr-", 20, 120, 2, 0), ("xoxs-", 20, 120, 2, 0), ("xoxe-", 20, 200, 2, 0),
    ("xapp-", 20, 160, 2, 0), ("hooks.slack.com/services/T", 30, 80, 4, 0),
    ("AIza", 35, 35, 2, 0), ("whsec_", 24, 64, 1, 0),
    ("sk_live_", 20, 120, 1, 0), ("rk_live_", 20, 120, 1, 0), ("sk_test_", 20, 120, 1, 0),
    ("sk-proj-", 40, 250, 2, 0), ("sk-svcacct-", 40, 250, 2, 0), ("sk-ant-", 40, 200, 2, 0),
    ("sk-or-v1-", 64, 64, 1, 0), ("sk-", 48, 48, 1, 0),
    ("hf_", 34, 34, 1, 0), ("npm_", 36, 36, 1, 0), ("pypi-AgEI", 50, 250, 2, 0),
    ("dop_v1_", 64, 64, 1, 0), ("dckr_pat_", 27, 27, 2, 0),
    ("shpat_", 32, 32, 1, 0), ("shpca_", 32, 32, 1, 0), ("shppa_", 32, 32, 1, 0),
    ("SG.", 60, 80, 3, 1), ("eyJ", 40, 4096, 3, 2),
)  # fmt: skip
PAIRS = sorted({form[0][:2] for form in FORMS})  # groups of forms
_UPPER, _LOWER, _DIGIT = (np.arange(*map(ord, pair)) for pair in ("A[", "a{", "0:"))


def _words(values: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Lower-case words, one after another, and int64[n + 1] bounds; the longest first."""
    given = [v.replace("|", " ") for v in values]
    raw = list({w.encode().lower() for v in given for w in (v, v.upper(), v.title())})
    raw.sort(key=lambda word: (-len(word), word))
    bounds = np.zeros(len(raw) + 1, np.int64)
    np.cumsum([len(r) for r in raw], out=bounds[1:])
    return np.frombuffer(b"".join(raw), np.uint8), bounds


def _set(chars: str, *ranges: np.ndarray) -> np.ndarray:
    out = np.zeros(256, np.uint8)
    out[[ord(c) for c in chars]] = 1
    for each in ranges:
        out[each] = 1
    return out


def _grouped(words: tuple[str, ...]) -> tuple[Any, ...]:
    """Words as `_words` has them, but by the pair of bytes that they end with; see `_after`."""
    text, bounds = _words(words)
    raw = [text[a:z].tobytes() for a, z in pairwise(bounds.tolist())]
    pairs = [(w[-2] | 32) << 8 | w[-1] | 32 for w in raw]
    order = sorted(range(len(raw)), key=lambda at: (pairs[at], at))  # the longest first in each
    of, firsts = np.unique(np.sort(pairs), return_index=True)
    lasts = np.zeros(1 << 16, np.uint16)
    lasts[of] = np.arange(1, len(of) + 1)
    bounds[1:] = np.cumsum([len(raw[at]) for at in order])
    listed = np.frombuffer(b"".join(raw[at] for at in order), np.uint8), bounds
    return listed, lasts, np.append(firsts, len(raw)).astype(np.int64)


@cache
def labels(kind: str) -> tuple[str, ...]:
    """Words of a kind of `number_labels.tsv`, each once."""
    lines = Path(__file__).with_name("number_labels.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return tuple(dict.fromkeys(w for of, _, words in rows if of == kind for w in words.split()))


def _hashed(known: dict[bytes, int], size: int, kind: type) -> tuple[np.ndarray, np.ndarray]:
    """Slots uint64 and values of an open table, as `_kernels_email._found` asks it."""
    slots: np.ndarray = np.zeros(size, np.uint64)
    values: np.ndarray = np.zeros(size, kind)
    for name, value in known.items():
        h = 0xCBF29CE484222325
        for byte in name:
            h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        at = (h >> 32) % size
        while slots[at]:
            at = (at + 1) % size
        slots[at], values[at] = h | 1, value
    return slots, values


@cache
def stands() -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Pairs of bytes that what is folded begins with, and by code point what it stands for.

    An ASCII byte, `email.DASH` for a dash, `email.NONE` for what nobody sees, `email.ITSELF` for a
    letter, which a reference alone stands for. And the names of references (HTML 5) to such, or to
    ASCII but `&` (`&amp;nbsp;` is what a reader sees), with the code point.
    """
    pairs, ascii_of = np.zeros(1 << 16, np.uint8), np.zeros(1 << 16, np.uint8)
    for first in DIGITS:
        ascii_of[first : first + 10] = np.arange(0x30, 0x3A)
    ascii_of[0xFF01:0xFF5F] = np.arange(0x21, 0x7F)
    ascii_of[[*SPACES]], ascii_of[[*HYPHENS]] = 0x20, 0x2D
    ascii_of[[*DASHES]], ascii_of[[*UNSEEN]] = email.DASH, email.NONE
    for code in np.flatnonzero(ascii_of).tolist():
        one, two, *_ = chr(code).encode()
        pairs[one << 8 | two] = 1
    kinds = table()[0x80:0x10000]
    letters = 0x80 + np.flatnonzero(np.isin(kinds, (bits.LETTER, bits.LATIN, bits.UNSPACED)))
    ascii_of[letters[ascii_of[letters] == 0]] = email.ITSELF
    names = {
        name[:-1].encode(): ord(of)
        for name, of in html5.items()
        if name[:-1].isalpha() and name[-1] == ";" and len(of) == 1 and of != "&"
        if "!" <= of <= "~" or (ord(of) < len(ascii_of) and ascii_of[ord(of)])
    }
    return pairs, ascii_of, _hashed(names, 1 << 11, np.int64)


@cache
def top_domains() -> dict[bytes, int]:
    """Bits (of `_kernels_email`) of each top-level domain: `com`, `xn--p1ai`, `рф`, `РФ`."""
    lines = Path(__file__).with_name("tlds.txt").read_text("ascii").splitlines()
    found = {}
    for name in " ".join(line for line in lines if not line.startswith("#")).split():
        found[name.encode()] = 1 | email.CALLED * (name in CALLED.split())
        if name.startswith("xn--"):
            own = name[4:].encode().decode("punycode")
            found[own.encode()] = 1 | email.CALLED
            if own < "\u0530":  # scripts with capitals
                found[own.upper().encode()] = 1 | email.CALLED
    return found | {name.encode(): email.RESERVED for name in RESERVED.split()}


@cache
def of_email() -> tuple[Any, ...]:
    """All that `_kernels_email.find` looks things up in."""
    words = _words(tuple(HOSTS.split())), _words(tuple(SHELLS.split()))
    return tables()[0], table(), _hashed(top_domains(), 1 << 13, np.uint8), *words


@cache
def tables() -> tuple[Any, ...]:
    """All that the kernels look things up in: (classes, personal data, secrets)."""
    alnum = _set("", _UPPER, _LOWER, _DIGIT)
    printed = _set("", np.arange(0x20, 0x7F)) & ~_set("\"'`")
    classes = (
        bits.ALNUM * alnum
        + bits.DIGIT * _set("", _DIGIT)
        + bits.LOCAL * (alnum | _set("._%+-"))
        + bits.HEX * _set("abcdefABCDEF", _DIGIT)
        + bits.UPPER * _set("", _UPPER)
        + bits.ALPHA * _set("", _UPPER, _LOWER)
        + bits.BASE64 * (alnum | _set("+/="))
        + bits.VALUE * printed
    ).astype(np.uint8)
    codes = np.zeros(1000, np.uint8)  # digits of the calling code that three digits begin with
    for code in CALLING.split():
        first, many = int(code), 10 ** (3 - len(code))
        codes[first * many : (first + 1) * many] = len(code)
    lengths = np.zeros(26 * 26, np.int64)
    for each in IBANS.split():
        lengths[(ord(each[0]) - 65) * 26 + ord(each[1]) - 65] = int(each[2:])
    listed = _grouped(labels("phone") + labels("brief"))
    spelled = _words(labels("brief"))
    briefs = {spelled[0][a:z].tobytes() for a, z in pairwise(spelled[1])}
    thirds = np.zeros((256, 256), np.uint8)  # the last byte of a word, and the last but two
    for a, z in pairwise(listed[0][1].tolist()):
        thirds[listed[0][0][z - 3] | 32 if z - a > 2 else slice(None), listed[0][0][z - 1] | 32] = 1
    sizes = np.zeros(10_000, np.uint8)
    sizes[np.array(SIZES.split(), int)] = 1
    phones = (
        listed,
        _grouped(tuple(NUMBERED.split())),
        np.array([listed[0][0][a:z].tobytes() in briefs for a, z in pairwise(listed[0][1])], bool),
        (codes, _words(tuple(UNITS.split())), sizes),
        thirds.reshape(-1),
    )
    forms = sorted(FORMS, key=lambda form: form[0][:2])
    firsts = [form[0][:2] for form in forms]
    groups = [*(firsts.index(pair) for pair in PAIRS), len(forms)]
    prefixes = [form[0].encode() for form in forms]
    bounds = np.zeros(len(prefixes) + 1, np.int64)
    np.cumsum([len(p) for p in prefixes], out=bounds[1:])
    bare = (_set("", _UPPER, _DIGIT), alnum)
    sets = np.stack([*bare, *(alnum | _set(more) for more in ("_-", "_-.", "/"))])
    keys = (
        np.frombuffer(b"".join(prefixes), np.uint8),
        bounds,
        np.array([form[1:] for form in forms], np.int64),
        sets,
        _words(("example",)),
        np.array(groups, np.int64),
    )
    # 64 c log2(c), rounded down, in whole numbers: the same on every machine
    shares = np.array([0] + [(c ** (64 * c)).bit_length() - 1 for c in range(1, 257)], np.int64)
    ends = (("-----BEGIN ",), ("PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"), ("-----END ",))
    block = tuple(_words(w) for w in ends)
    lasts = np.zeros(1 << 16, np.uint8)
    for mark, which in ((2, "tr ng es r]"), (1, f"{NAMES} {TAILS}")):  # types; names
        for end in which.split():
            lasts[(ord(end[-2]) | 32) << 8 | ord(end[-1]) | 32] = mark
    names, tails, schemes, forms_ = (
        _words(tuple(w.split())) for w in (NAMES, TAILS, SCHEMES, TEMPLATES)
    )
    named = names, tails, schemes, lasts, forms_
    thirds = np.stack([_set("".join(f[0][2] for f in FORMS if f[0][:2] == p)) for p in PAIRS])
    return (
        classes,
        (_words(VERSIONS), phones, (lengths, _grouped(labels("iban")))),
        ((lasts, thirds), named, block, keys, shares),
    )


@cache
def starts(on: tuple[bool, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of bytes at which something may start, uint8[65536] for data and for secrets."""
    data, secret = np.zeros((256, 256), np.uint8), np.zeros((256, 256), np.uint8)
    of = dict(zip(KINDS, on, strict=True))
    if of["ipv4"] or of["phone"] or of["card"]:
        data[_DIGIT] = 1
    if of["phone"]:
        data[ord("+"), _DIGIT] = data[ord("("), _DIGIT] = 1
    if of["ipv6"]:
        data[ord(":"), [*b"0123456789abcdefABCDEF:"]] = 1
    if of["iban"]:
        for each in IBANS.split():
            data[ord(each[0]), ord(each[1])] = 1
        data[_DIGIT] = 1  # after small letters
    if of["key"]:
        for group, pair in enumerate(PAIRS, 2):
            secret[ord(pair[0]), ord(pair[1])] = group
    if of["private_key"]:
        secret[ord("-"), ord("-")] = 1
    if of["secret"]:
        secret[[ord(":"), ord("=")]] = 1
    return data.reshape(-1), secret.reshape(-1)
