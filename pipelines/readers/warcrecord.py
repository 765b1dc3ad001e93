"""What a framed WARC record is to the mill: a record to convert, a loss, or bytes to pass over.

How each case is caught:

    type written wrongly       the first word of Content-Type counts, without quotes and commas
    type missing or vague      a body that starts with a tag of HTML is a page (WHATWG sniffs so)
    XML                        a page when its root is html
    type that is a lie         a body that is binary is `not_text` (`binary.py`), dropped: it is
                               not damaged, the server sent it so
    100 Continue and its kin   the answer behind them in the record counts
    conversion to an image     skipped by its type
    conversion cut short       inside its last letter: that letter is lost, and counted
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ...documents.records import Locator, Loss, Record, Skip
from .binary import binary
from .http import HttpError, decode_body, parse_head

HTML = frozenset({"text/html", "application/xhtml+xml"})
_UNTYPED = frozenset({"", "application/octet-stream", "unk", "unknown", "no-type"})
# Names that pages bear beside other things: only what starts as a page is one.
_XML = frozenset({"text/xml", "application/xml"})
_LIKE = frozenset({"application/html", "application/x-httpd-php", "text/htm", "text/x-html"})
_BEFORE = rb"(?:\xef\xbb\xbf)?+\s*+(?:(?:<!--(?>.*?-->)|<\?[^>]*+>)\s*+)*+"
_LOOKS_HTML = re.compile(
    _BEFORE
    + rb"<(?:!doctype\s+html|a|abbr|address|article|aside|b|base|basefont|big|blockquote|body|br"
    rb"|button|caption|center|code|dd|div|dl|dt|em|fieldset|figure|font|footer|form|frame|frameset"
    rb"|h[1-6]|head|header|hr|html|i|iframe|img|input|label|li|link|main|map|meta|nav|noscript|ol"
    rb"|p|pre|script|section|select|small|span|strong|style|sub|sup|table|tbody|td|textarea|th"
    rb"|title|tr|tt|u|ul)(?=[\s/>])",
    re.IGNORECASE | re.DOTALL,
)
_HTML_ROOT = re.compile(_BEFORE + rb"<(?:!doctype\s+html|html)(?=[\s>])", re.IGNORECASE | re.DOTALL)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:+-]{1,40})", re.IGNORECASE)
_MEDIA = re.compile(r"[\s\"',;]*([^\s\"',;]*)")  # servers put quotes, and commas for semicolons
_MIME = re.compile(r"[a-z0-9][a-z0-9.+_-]{0,40}/[a-z0-9][a-z0-9.+_-]{0,60}")
_CUT = "unexpected end of data"  # of Python's decoder
_TYPE = re.compile(r"[a-z][a-z0-9_.-]{0,40}")
_KNOWN = frozenset({"warcinfo", "request", "metadata", "revisit", "continuation", "wat"})
_SEEN = 16 << 10  # bytes that say whether a page is text; all of 250 kB would take a tenth
# HTTP headers that later stages ask for: opt-out signals, dates, languages
_KEPT = (
    "x-robots-tag",
    "tdm-reservation",
    "tdm-policy",
    "last-modified",
    "content-language",
    "link",
)


def make_item(
    headers: Mapping[str, str], data: bytes, begin: int, end: int, locator: Locator, limit: int
) -> Record | Loss | Skip:
    """The content is data[begin:end]; a skipped one is never copied."""
    kind = headers.get("warc-type", "").lower()
    stated = headers.get("content-type", "").lower()
    if kind not in {"response", "conversion", "resource"}:
        if kind == "metadata" and stated.startswith("application/json"):
            kind = "wat"  # what a WAT file is made of: data on a page, not the page
        if not kind:
            return Loss(locator=locator, reason="no_type", detail="a WARC header without WARC-Type")
        named = kind if _TYPE.fullmatch(kind) else "invalid"
        return Skip(reason=kind if kind in _KNOWN else f"type:{named}", span=locator.span)
    if "warc-segment-number" in headers or "warc-segment-total-length" in headers:
        detail = "a piece of a record that was cut up; the pieces are not joined"
        url = headers.get("warc-target-uri", "").strip("<>") or None
        return Loss(locator=locator, reason="segmented", detail=detail, url=url)
    if kind == "conversion":
        return _conversion(headers, data, begin, end, locator)
    url = headers.get("warc-target-uri", "").strip("<>")
    fields: dict[str, object] = {"warc_type": kind}
    if "warc-truncated" in headers:
        fields["truncated"] = headers["warc-truncated"]
    if (
        kind == "response"
        and not stated.startswith("application/http")
        and not data.startswith(b"HTTP/", begin)
    ):
        scheme = url.partition(":")[0].lower()
        return Skip(reason="dns" if scheme == "dns" else "not_http", span=locator.span)
    return make_page(
        data,
        begin,
        end,
        locator=locator,
        limit=limit,
        url=url or None,
        date=headers.get("warc-date"),
        identity=headers.get("warc-record-id"),
        stated=stated,
        fields=fields,
        archived=kind == "response",
    )


def status_reason(status: int) -> str:
    """Why an answer of this status is no document: redirects and errors are counted apart."""
    kinds = {3: "http_redirect", 4: "http_client_error", 5: "http_server_error"}
    return kinds.get(status // 100, "http_status")


def make_page(
    data: bytes,
    begin: int,
    end: int,
    *,
    locator: Locator,
    limit: int,
    url: str | None,
    date: str | None,
    identity: str | None,
    stated: str,
    fields: dict[str, object],
    archived: bool,
) -> Record | Loss | Skip:
    """The page data[begin:end], with its HTTP head before it when it is `archived` so."""
    coded: Mapping[str, str] = {}
    content_type = stated
    if archived:
        try:
            status, coded, start = parse_head(data, begin, end)
            while status // 100 == 1 and data.startswith(b"HTTP/", start, end):  # 100 Continue
                status, coded, start = parse_head(data, start, end)
        except HttpError as error:
            return Loss(locator=locator, reason=error.args[0], detail=error.args[1], url=url)
        if status != 200:
            detail = " ".join([str(status), *filter(None, [coded.get("location", "")[:200]])])
            reason = status_reason(status)
            return Loss(locator=locator, reason=reason, detail=detail, kind="dropped", url=url)
        begin = start
        content_type = coded.get("content-type", "")
        fields["status"] = status
        fields |= {k: coded[k] for k in _KEPT if k in coded}
    media = _media(content_type)
    sniffed = _sniffed(media)
    if media not in HTML and sniffed is None:
        return Skip(reason=f"mime:{_named(media)}", span=locator.span)
    try:
        body = decode_body(coded, data[begin:end], limit)
    except HttpError as error:
        return Loss(locator=locator, reason=error.args[0], detail=error.args[1], url=url)
    if sniffed is not None:
        if not sniffed.match(body, 0, 4096):
            return Skip(reason=f"mime:{_named(media)}", span=locator.span)
        media = "text/html"
    charset = _CHARSET.search(content_type)
    if why := _binary(body[:_SEEN], charset[1] if charset else ""):
        return Loss(locator=locator, reason="not_text", detail=why, kind="dropped", url=url)
    return Record(
        locator=locator,
        body=body,
        media_type=media,
        charset=charset[1] if charset else "",
        url=url,
        date=date,
        identity=identity,
        fields=fields,
    )


@lru_cache(maxsize=1024)
def _media(content_type: str) -> str:
    """`text/html` of `text/html charset=utf-8`, `"text/html"`, `text/html, text/html`, ..."""
    match = _MEDIA.match(content_type)
    return match[1].lower() if match else ""


def _named(media: str) -> str:
    """A media type as skips are counted by."""
    return (
        "none"
        if media in _UNTYPED - {"application/octet-stream"}
        else (media if _MIME.fullmatch(media) else "invalid")
    )


def _sniffed(media: str) -> re.Pattern[bytes] | None:
    """What a body of this type must start with to be a page; None where the type says enough."""
    if media in _XML:
        return _HTML_ROOT
    return _LOOKS_HTML if media in _UNTYPED | _LIKE or "/" not in media else None


def _binary(start: bytes, charset: str) -> str:
    """`binary` of how a page starts; one said to be in UTF-16 has NULs, of its markup."""
    nuls = max(start[::2].count(0), start[1::2].count(0))
    utf16 = nuls * 10 > len(start) and (b"<\0" in start or b"\0<" in start)
    return "" if utf16 and charset.lower().startswith("utf-16") else binary(start)


def _conversion(
    headers: Mapping[str, str], data: bytes, begin: int, end: int, locator: Locator
) -> Record | Loss | Skip:
    media = _media(headers.get("content-type", ""))
    if "/" in media and not media.startswith("text/") and media not in _UNTYPED:
        return Skip(reason=f"mime:{_named(media)}", span=locator.span)
    url = headers.get("warc-target-uri", "").strip("<>") or None
    utf8 = data[begin:end]
    text: str | None = None
    try:
        text = utf8.decode()
    except UnicodeDecodeError as error:
        if not error.start or error.end < len(utf8) or error.reason != _CUT:
            detail = f"byte {error.start} of the content: {error.reason}"
            return Loss(locator=locator, reason="invalid_utf8", detail=detail, url=url)
    fields: dict[str, object] = {"warc_type": "conversion"}
    languages = headers.get("warc-identified-content-language")
    if languages:
        fields["languages"] = languages
    record = Record(
        locator=locator,
        text=text,
        utf8=utf8,
        url=url,
        date=headers.get("warc-date"),
        identity=headers.get("warc-record-id"),
        fields=fields,
    )
    if text is None:  # cut inside its last letter: for the converter to decode, and to count
        record.utf8, record.body = None, utf8
        record.media_type, record.charset = "text/plain", "utf-8"
    return record
