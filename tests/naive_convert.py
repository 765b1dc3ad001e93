"""What the kernel of the text policy says, over characters."""

from __future__ import annotations

import unicodedata

_CHANGED = {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), "\u2028", "\u2029", "\ufeff"}
_CHANGED -= {"\t", "\n"}


def is_clean(text: str, joining: set[str]) -> bool:
    """Whether no character is changed on its own, may join one before it, or stands out of order.

    `joining`: characters that are the second or a later one of a canonical decomposition.
    """
    last = 0
    for char in text:
        if char in _CHANGED or char in joining or unicodedata.normalize("NFC", char) != char:
            return False
        mark = unicodedata.combining(char)
        if mark and mark < last:
            return False
        last = mark
    return True
