"""What the kernel of the text policy says, over characters."""

from __future__ import annotations

import unicodedata

NUL, CR, VERTICAL, CONTROL, C1, LINE, BOM, FORM = (1 << bit for bit in range(8))
_ONE = {"\0": NUL, "\r": CR, "\x0b": VERTICAL, "\x0c": VERTICAL, "\x7f": CONTROL, "\ufeff": BOM}
_ONE |= {"\x85": LINE, "\u2028": LINE, "\u2029": LINE, "\t": 0, "\n": 0}


def look(text: str, joining: set[str]) -> int:
    """What of the policy the text asks for.

    `joining`: characters that are the second or a later one of a canonical decomposition.
    """
    found = last = 0
    for char in text:
        if char in _ONE:
            found |= _ONE[char]
        elif char < " ":
            found |= CONTROL
        elif "\x80" <= char < "\xa0":
            found |= C1
        elif char in joining or unicodedata.normalize("NFC", char) != char:
            found |= FORM
        else:
            mark = unicodedata.combining(char)
            if mark and mark < last:
                found |= FORM
            last = mark
            continue
        last = 0
    return found
