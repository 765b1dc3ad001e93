"""What a page says of itself: title, language, date, licence, and what it forbids."""

from __future__ import annotations

import re
from html import unescape
from typing import Any, Final

from .cleaning import clean_line

_TITLE: Final = 1_000  # characters kept of a title
_VALUE: Final = 200  # of the others
_DATES: Final = (
    "article:published_time", "datepublished", "dc.date.issued", "dc.date", "dcterms.created",
    "date", "pubdate", "publishdate", "sailthru.date", "og:published_time", "citation_date",
    "citation_publication_date", "parsely-pub-date",
)  # fmt: skip
_HEAD: Final = 100_000  # characters searched where a page has no end of its head
# By pattern: to list the tree's <meta> takes 0.9 ms, this 0.06.
_META: Final = re.compile(r"<meta\b[^<>]{0,2000}>", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(
    r"""([a-zA-Z:-]{1,40})\s*=\s*(?:["']([^"'>]{0,500})["']|([^\s"'>]{1,500}))"""
)
_SIGNALS: Final = ("robots", "tdm-reservation", "tdm-policy")  # names of <meta>, as of HTTP headers
_ROBOT: Final = re.compile(r"[a-z-]{0,30}bot(?:-[a-z]{1,20})?")  # googlebot, googlebot-news, gptbot
_FORBIDS: Final = re.compile(r"no[a-z\W]{2}", re.IGNORECASE)  # noai, noindex, none
_LICENCE_LINK: Final = ('rel="license"', "rel='license'", "rel=license")
_JSON_DATE: Final = '"datePublished"'
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}|\d{4}/\d{2}/\d{2}|\d{8}\b")
_LICENCE: Final = re.compile(
    r"creativecommons\.org/(?:licenses/([a-z-]{2,8})/(\d\.\d)|publicdomain/(zero|mark)/(\d\.\d))"
)
_RESTRICTIONS: Final = ("nc", "nd", "sa", "by")  # the first weighs most
# Plain searches: a regex over a whole page of 250 kB takes 1 ms, a search for a string 0.03.
_PRODUCT: Final = (
    '"@type":"Product"', '"@type": "Product"', 'schema.org/Product"', 'og:type" content="product',
    "product:price:amount",
)  # fmt: skip
PRODUCT_TIMES: Final = 6  # a page that names more products is a list of them


def is_product(html: str) -> bool:
    """Whether the page is about one thing for sale, by its own structured data."""
    return 0 < sum(html.count(sign) for sign in _PRODUCT) <= PRODUCT_TIMES


def stated(tree: Any, html: str) -> dict[str, str]:
    """Of `title`, `language`, `published`, `license_hint`, `license_link`, and `_SIGNALS`.

    Hints, as the page has them: the date is cut to its day, the licence a Creative Commons name
    (`cc-by-sa-4.0`) that the page links to, which may be that of a picture: where rel=license
    leads, else of all links the most restricted; `license_link` is where rel=license leads.
    `robots`, `tdm-reservation` and `tdm-policy` are those of <meta>; an HTTP header of the same
    name, which the reader gives, stays where there is no <meta>. What is said to one robot
    stands in `robots` behind the others, as in a header: `noindex, googlebot: noai`.
    """
    found: dict[str, str | None] = {"title": clean_line(tree.title)}
    if (title := found["title"]) is not None:
        found["title"] = title[:_TITLE]
    root = tree.document.first_element_child if tree.document is not None else None
    if root is not None:
        found["language"] = clean_line(root.getattr("lang") or root.getattr("xml:lang"))
    metas = _metas(html)
    if date := _published(metas, html):
        found["published"] = date
    for name in _SIGNALS:
        found[name] = clean_line(metas.get(name))
    link = _licence_link(html)
    found["license_link"] = clean_line(link)
    if match := _LICENCE.search(link or "") or _most_restricted(html):
        name, version, domain, domain_version = match.groups()
        found["license_hint"] = (
            f"cc-{name}-{version}" if name else f"cc-{domain.replace('zero', '0')}-{domain_version}"
        )
    return {k: v if k == "title" else v[:_VALUE] for k, v in found.items() if v}


def _metas(html: str) -> dict[str, str]:
    """Of the head's <meta> those that are asked for; of equal names the first, of robots all."""
    stop = html.find("</head>")
    values: dict[str, str] = {}
    named: list[str] = []
    for tag in _META.findall(html, 0, stop if stop >= 0 else _HEAD):
        lower = tag.lower()
        if not any(sign in lower for sign in ("date", "time", "created", "bot", "tdm-")):
            continue
        said = {
            name.lower(): unescape(one or other) for name, one, other in _ATTRIBUTE.findall(tag)
        }
        key = said.get("property") or said.get("name") or said.get("itemprop") or ""
        key = key.strip().lower()
        if key in values and key == "robots":
            values[key] += ", " + said.get("content", "")
        elif (key in _DATES or key in _SIGNALS) and "content" in said:
            values.setdefault(key, said["content"])
        elif _ROBOT.fullmatch(key) and _FORBIDS.search(said.get("content", "")):
            named.append(f"{key}: {said['content']}")
    if named:
        values["robots"] = ", ".join([*filter(None, [values.get("robots")]), *named])
    return values


def _licence_link(html: str) -> str | None:
    """Where the first element with rel=license leads."""
    for sign in _LICENCE_LINK:
        if (at := html.find(sign)) >= 0:
            start, end = html.rfind("<", max(0, at - 1000), at), html.find(">", at, at + 1000)
            for name, one, other in _ATTRIBUTE.findall(html, max(start, 0), end):
                if start >= 0 and name.lower() == "href":
                    return one or other
    return None


def _most_restricted(html: str) -> re.Match[str] | None:
    """Of a page's links to licences the most restricted: nc before nd, nd before sa."""
    if (at := html.find("creativecommons.org/")) < 0:
        return None
    links = _LICENCE.finditer(html, at)
    return max(links, key=lambda link: [c in (link[1] or "") for c in _RESTRICTIONS], default=None)


def _published(metas: dict[str, str], html: str) -> str | None:
    for key in _DATES:
        if key in metas and (day := _DAY.search(metas[key])):
            return day.group()
    at = html.find(_JSON_DATE)
    if at >= 0 and (day := _DAY.search(html, at, at + 60)):
        return day.group()
    return None
