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


def without_visits(path: bytes, ignored, twin) -> bytes:
    """A path without `;jsessionid=...` and the like."""
    keep = lambda m: m[0] if tells(m[1], ignored, twin) else b""  # noqa: E731
    return re.sub(rb";([^/;]*)", keep, path)


def parameters(query: bytes, ignored, twin) -> int:
    """A sum over the parameters of a query that tell pages apart."""
    found = 0
    for parameter in query.split(b"&"):
        bare = re.sub(rb"\A(amp;)+", b"", parameter)
        if tells(bare, ignored, twin):
            found += twin.fmix(twin.digits([64, *(c + 1 for c in bare)]))
    return found


def address(url: bytes, ignored, twin) -> int:
    """Hash of a URL without what does not tell pages apart; 0 for none."""
    if not url:
        return 0
    at = url[:12].find(b"://")
    url = url[at + 3 :] if at >= 0 else url
    if re.match(rb"(?i)www\..", url):
        url = url[4:]
    url, _, fragment = url.partition(b"#")
    place, _, query = url.partition(b"?")
    first, *parts = re.split(rb"(?=/)", place, maxsplit=1)
    place = b"".join([first, *(without_visits(x, ignored, twin) for x in parts)])
    host, rest = re.fullmatch(rb"(?s)([^/:]*)(.*)", place.rstrip(b"/")).groups()
    rest = re.sub(rb"(?s)\A:(80|443)(?=/|\Z)", b"", rest)
    values = [c + 1 for c in host.lower() + rest]
    values.append(parameters(query, ignored, twin))
    bang = fragment[:1] == b"!"
    named = fragment[bang:].lstrip(b"/") and (bang or fragment[:1] == b"/")
    if named and not re.match(rb"(?s)/media/.*:", fragment):
        place, _, query = fragment.partition(b"?")
        place = b"#" + without_visits(place, ignored, twin).rstrip(b"/")
        values += [*(c + 1 for c in place), parameters(query, ignored, twin)]
    return max(twin.fmix(twin.digits(values)), 1)
