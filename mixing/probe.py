"""The fixed texts on which an encoder is proven when it is loaded: where engines were seen to part.

Written by hand or made by a counter, never random at run time: the ids of it are a golden value.
"""

# ruff: noqa: RUF001  (characters that look like others are the point)
from __future__ import annotations

from collections.abc import Iterator


def _every(low: int, high: int, step: int = 1) -> str:
    """Give the characters of a range of code points, without surrogates."""
    return "".join(chr(c) for c in range(low, high, step) if not 0xD800 <= c < 0xE000)


def _mixed(length: int) -> str:
    """Give valid Unicode in no order: a 32-bit linear generator picks planes and characters."""
    state, out = 20_260_101, []
    ranges = (
        *((0x20, 0x7F), (0x20, 0x250), (0x300, 0x600), (0x900, 0xE80), (0x2000, 0x2070)),
        *((0x3000, 0x9FFF), (0xFB00, 0xFFFE), (0x1F300, 0x1FAFF), (0x9, 0x21), (1 << 16, 0x10FFFF)),
    )
    for _ in range(length):
        state = (state * 1_664_525 + 1_013_904_223) & 0xFFFFFFFF
        low, high = ranges[(state >> 8) % len(ranges)]
        state = (state * 1_664_525 + 1_013_904_223) & 0xFFFFFFFF
        out.append(chr(low + (state >> 8) % (high - low)))
    return "".join(out)


_CODE = """def f(x: int) -> str:
\tif x>=10 and not y[0]:
        return f"{x!r:>08}\\n" + 'it\\'s' # don't  \u2028

#include <a/b.h>\r\n\r\n    for (;;) { i++; }  //   \r\n<a href="https://e.example/?q=1&b=%20">
{"a":[1,22,333,4444,55555],"b":null}
"""
_LANGUAGES = (
    "The quick brown fox doesn't; HE'LL 'S it'ſ I'M we’re 12345 1,234.5e-6 ½ ²³ Ⅷ ٣٤٥",
    "Zażółć gęślą jaźń. Größe ÄÖÜß œuvre niño Ångström ǅ ﬁ İstanbul ısı",
    "Съешь ещё этих мягких французских булок. Ξεσκεπάζω την ψυχοφθόρα. גִּבֵּן ضَمَّة",
    "मनुष्य জ্ঞান தமிழ் ภาษาไทยไม่มีช่องว่าง မြန်မာ ខ្មែរ ລາວ ქართული አማርኛ",
    "我能吞下玻璃，而不伤身体。\n吾輩は猫である。名前はまだ無い。\u3000한국어",
    "\u1100\u1161\u11a8 𠀀𪜶",
    "e\u0301 e\u0300\u0323 a\u20dd \u0301start z\u0351\u036b\u0343\u036a\u0302",
    "a\u200b \u200d\ufeff\u00ad",
    "👩‍👩‍👧‍👦👍🏽🇩🇪🏴\U000e0067\U000e0062\U000e007f ☕️ 1️⃣ \U0001f9ff",
)
_CONTROL = (
    "<|endoftext|> <|end_of_text|></s><s>[SEP]<|im_start|>system<|system|>"
    "<|fim_prefix|>a<pad> <|user|><|tool_call|>{}\n<|end_of_turn|><eos>"
)
_SPACES = "\u0085\u00a0\u1680\u180e\u2003\u2028\u3000"

PROBE: list[str] = [
    "",
    " ",
    "\n",
    *_LANGUAGES,
    _CODE,
    _CONTROL,
    _every(0, 0x3000),
    _every(0x3000, 0x20000, 37),
    " ".join(_every(0x80, 0x2100, 3)),
    "".join(f"a{c}b {c} {c}{c}\n" for c in _every(0, 0x40) + _SPACES),
    "".join(" " * n + "x" + "\n" * (n % 5) + "\t" * (n % 3) for n in range(70)),
    "ab" * 700 + "=" * 900 + "9" * 300 + "\r\n" * 200 + "a" * 3,
    _mixed(6000),
    ("one line of words, 12 of them; ".join(_LANGUAGES) + _CODE) * 70,  # above 64 KiB
]


def chained_pairs() -> Iterator[str]:
    """Texts that share 4 KiB and a run of whitespace with the one before, and go on otherwise.

    An earlier engine kept the splits of the text before and looked one character short: ids hung
    on what the thread had encoded last. Encode them one by one, in this order.
    """
    head = "some words here and there " * 190
    for width in (1, 60, 700):
        for after in ("x", " ", "\nx", "\tx", " x", "", "y", "'s", "1"):
            yield head + " " * width + after
