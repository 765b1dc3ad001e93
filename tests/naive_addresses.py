"""Plain-Python twin of filters/templates/_kernels_url.py; `twin` is `naive_templates`."""

from __future__ import annotations

import re


def tells(parameter: bytes, ignored, twin) -> bool:
    """Whether a parameter of a query tells pages apart."""
    name = parameter.split(b"=")[0].lower()
    return (
        bool(parameter)
        and not re.match(rb"(?i)utm_", parameter)
        and twin.digits(name) not in ignored
    )


def address(url: bytes, ignored, twin) -> int:
    """Hash of a URL without what does not tell pages apart; 0 for none."""
    if not url:
        return 0
    at = url[:12].find(b"://")
    url = url[at + 3 :] if at >= 0 else url
    if re.match(rb"(?i)www\..", url):
        url = url[4:]
    url = re.sub(rb"(?s)#(?!!).*", b"", url)
    place, _, query = url.partition(b"?")
    first, *parts = re.split(rb"(?=/)", place, maxsplit=1)
    parts = [
        re.sub(rb";([^/;]*)", lambda m: m[0] if tells(m[1], ignored, twin) else b"", x)
        for x in parts
    ]
    place = b"".join([first, *parts])
    host, rest = re.fullmatch(rb"(?s)([^/:]*)(.*)", place.rstrip(b"/")).groups()
    rest = re.sub(rb"(?s)\A:(80|443)(?=/|\Z)", b"", rest)
    values = [c + 1 for c in host.lower() + rest]
    both = 0
    for parameter in query.split(b"&"):
        bare = re.sub(rb"\A(amp;)+", b"", parameter)
        if tells(bare, ignored, twin):
            both += twin.fmix(twin.digits([64, *(c + 1 for c in bare)]))
    return max(twin.fmix(twin.digits([*values, both])), 1)
