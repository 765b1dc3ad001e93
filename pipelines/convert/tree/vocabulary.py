"""Names of tags and words of `class`, `id` and `role`, as tables that the kernels look up.

Words are looked up whole (`add-to-cart`, `addToCart` and `add_to_cart` are `add`, `to`, `cart`):
substrings are what makes other extractors cut `class="download"` for its `ad`. Each list was read
off common content systems and kept where the tuning half of the benchmark did not get worse.
"""

from __future__ import annotations

from typing import Final

import numpy as np

TEXT: Final = 1
# 2..: the order is used by the kernels' constants below and must not change on its own.
_NAMES: Final = (
    "a html body head main article section nav header footer aside form div p h1 h2 h3 h4 h5 h6 "
    "ul ol li dl dt dd table thead tbody tfoot tr td th caption pre code kbd samp br hr blockquote "
    "figure figcaption details summary script style template noscript svg iframe object embed "
    "canvas audio video map select option datalist button input textarea progress meter dialog "
    "math img picture time address label fieldset legend sup sub title meta link area base col "
    "param source track wbr xmp noembed noframes plaintext center menu span b strong i em optgroup "
    "tt hgroup search"
)
TAGS: Final = _NAMES.split()
TAG: Final = {name: 2 + at for at, name in enumerate(TAGS)}


def _codes(names: str) -> np.ndarray:
    table = np.zeros(256, np.bool_)
    table[[TAG[n] for n in names.split()]] = True
    table.setflags(write=False)
    return table


BLOCK: Final = _codes(
    "html body main article section nav header footer aside form div p h1 h2 h3 h4 h5 h6 ul ol li "
    "dl dt dd table thead tbody tfoot tr td th caption pre hr blockquote figure figcaption details "
    "summary address fieldset legend center menu dialog hgroup search option"
)
VOID: Final = _codes("br hr img input meta link area base col embed param source track wbr")
RAW: Final = _codes("script style xmp iframe noembed noframes plaintext")
NEVER: Final = _codes(
    "head script style template svg iframe object embed canvas audio video map select option "
    "datalist button input textarea progress meter noembed noframes title math"
)

# Bits of hints. The first 16 are reasons to cut, in the order of REASONS.
REASONS: Final = (
    "navigation", "footer", "header", "sidebar", "share", "promotion", "related", "comments",
    "filter", "hidden", "form", "byline", "cookies", "links", "outside", "reviews",
    "labels", "caption", "repeated",
)  # fmt: skip
CONTENT: Final = 1 << 16
MAIN: Final = 1 << 17
CODE: Final = 1 << 18
GUTTER: Final = 1 << 19
FORMULA: Final = 1 << 20
TAB: Final = 1 << 21
BUTTON: Final = 1 << 22
CAROUSEL: Final = 1 << 23
BODY: Final = 1 << 24  # a HEAD and a TAIL in one name: `entry-content`
HEAD: Final = 1 << 25
TAIL: Final = 1 << 26
NEGATES: Final = 1 << 27
CAPTION: Final = 1 << 28

_WORDS: Final = {
    "navigation": "nav navbar navigation menu submenu megamenu breadcrumb breadcrumbs crumbs crumb "
    "pagination pager paginator paging sitemap skiplink topnav subnav dropdown navlinks "
    "contentinfo menubar hamburger",
    "footer": "footer foot colophon copyright legal disclaimer",
    "header": "masthead topbar siteheader utility",
    "sidebar": "sidebar aside rail widget widgets complementary",
    "share": "share sharing social socials addtoany addthis sharedaddy follow",
    "promotion": "newsletter subscribe subscription signup ad ads advert adverts "
    "advertisement sponsor sponsored popup lightbox toast offcanvas minicart "
    "addtocart login signin captcha paywall adsbygoogle dfp taboola outbrain optin announcement",
    "related": "related recommend recommended recommendations similar recently upsell upsells "
    "crosssell readnext suggested",
    "comments": "comment comments disqus respond commentlist",
    "filter": "filter filters facet facets refine sort sorting refinements",
    "hidden": "sronly offscreen",
    "byline": "tags taglist postmeta signature postprofile userinfo userextras swatch swatches "
    "variations stars reactions likes",
    "cookies": "cookie cookies consent gdpr ccpa onetrust ot",
    "reviews": "review reviews reviewblock ratings bazaarvoice yotpo",
}
_OTHER: Final = {
    CONTENT: "content article post entry story text description product message thread topic "
    "posts postbody body answer question",
    MAIN: "main",
    CODE: "code highlight prettyprint brush sourcecode source codehilite syntax snippet hljs "
    "language lang",
    GUTTER: "lineno linenos gutter linenumber linenumbers rouge-gutter",
    TAB: "tab tabs tabpanel pane panel accordion collapse collapsible",
    CAROUSEL: "carousel slider swiper slick splide faq faqs questions",
    BUTTON: "btn button cta readmore",
    FORMULA: "math latex katex mathjax mjx",
    BODY: "articlebody postbody entrycontent postcontent articlecontent storybody",
    HEAD: "article entry post story news blog",
    TAIL: "content body text",
    CAPTION: "caption captions gallery slideshow",
    NEGATES: "has no with without elementor",
}


def word_hash(word: str) -> int:
    """FNV-1a over the bytes, 32 bits: what the kernel computes."""
    value = 2166136261
    for byte in word.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value


def _table(entries: dict[str, int], bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Open addressing over 2**bits places: key (0 = free) and value."""
    size = 1 << bits
    keys = np.zeros(size, np.int64)
    values = np.zeros(size, np.int64)
    for word, value in entries.items():
        key = word_hash(word)
        at = key & (size - 1)
        while keys[at] not in (0, key):
            at = (at + 1) & (size - 1)
        keys[at] = key
        values[at] |= value
    keys.setflags(write=False)
    values.setflags(write=False)
    return keys, values


def _hints() -> dict[str, int]:
    found: dict[str, int] = {}
    for reason, words in _WORDS.items():
        for word in words.split():
            found[word] = found.get(word, 0) | 1 << REASONS.index(reason)
    for bit, words in _OTHER.items():
        for word in words.split():
            found[word] = found.get(word, 0) | bit
    return found


TAG_KEYS, TAG_VALUES = _table(TAG, 10)
HINT_KEYS, HINT_VALUES = _table(_hints(), 11)
