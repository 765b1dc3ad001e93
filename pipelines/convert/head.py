"""What a page says of itself: title, language, date, licence."""

from __future__ import annotations

import re
from typing import Any, Final

from .cleaning import clean_line

_TITLE: Final = 1_000  # characters kept of a title
_VALUE: Final = 200  # of the others
_DATES: Final = (
    "article:published_time", "datepublished", "dc.date.issued", "dc.date", "dcterms.created",
    "date", "pubdate", "publishdate", "sailthru.date", "og:published_time", "citation_date",
    "citation_publication_date", "parsely-pub-date",
)  # fmt: skip
_JSON_DATE: Final = re.compile(r'"datePublished"\s*:\s*"([^"]{4,40})"')
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}|\d{4}/\d{2}/\d{2}|\d{8}\b")
_LICENCE: Final = re.compile(
    r"creativecommons\.org/(?:licenses/([a-z-]{2,8})/(\d\.\d)|publicdomain/(zero|mark)/(\d\.\d))"
)
_PRODUCT: Final = re.compile(
    r'"@type"\s*:\s*"Product"|schema\.org/Product"|og:type"\s+content="product|product:price:amount'
)
PRODUCT_TIMES: Final = 6  # a page that names more products is a list of them


def is_product(html: str) -> bool:
    """Whether the page is about one thing for sale, by its own structured data."""
    if "roduct" not in html:
        return False
    found = 0
    for _ in _PRODUCT.finditer(html):
        found += 1
        if found > PRODUCT_TIMES:
            return False
    return found > 0


def stated(tree: Any, html: str) -> dict[str, str]:
    """Of `title`, `language`, `published`, `license_hint` those that the page gives.

    Hints, as the page has them: the date is cut to its day, the licence a Creative Commons name
    (`cc-by-sa-4.0`) that the page links to, which may be that of a picture.
    """
    found: dict[str, str | None] = {"title": clean_line(tree.title)}
    if (title := found["title"]) is not None:
        found["title"] = title[:_TITLE]
    root = tree.document.first_element_child if tree.document is not None else None
    if root is not None:
        found["language"] = clean_line(root.getattr("lang") or root.getattr("xml:lang"))
    if date := _published(tree, html):
        found["published"] = date
    if match := _LICENCE.search(html):
        name, version, domain, domain_version = match.groups()
        found["license_hint"] = (
            f"cc-{name}-{version}" if name else f"cc-{domain.replace('zero', '0')}-{domain_version}"
        )
    return {k: v if k == "title" else v[:_VALUE] for k, v in found.items() if v}


def _published(tree: Any, html: str) -> str | None:
    head = tree.head
    values: dict[str, str] = {}
    if head is not None:
        for meta in head.get_elements_by_tag_name("meta"):
            name = meta.getattr("property") or meta.getattr("name") or meta.getattr("itemprop")
            if name and (key := name.lower()) in _DATES and (content := meta.getattr("content")):
                values.setdefault(key, content)
    for key in _DATES:
        if key in values and (day := _DATE.search(values[key])):
            return day.group()
    if (match := _JSON_DATE.search(html)) and (day := _DATE.search(match.group(1))):
        return day.group()
    return None
