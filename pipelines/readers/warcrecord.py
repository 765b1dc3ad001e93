"""What a framed WARC record is to the mill: a record to convert, a loss, or bytes to pass over."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...documents.records import Locator, Loss, Record, Skip
from .binary import binary
from .http import HttpError, decode_body, parse_head

HTML = frozenset({"text/html", "application/xhtml+xml"})
_UNTYPED = frozenset({"", "application/octet-stream", "unk", "unknown", "no-type"})
_LOOKS_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*|<\?xml[^>]*>\s*)*"
    rb"<(?:!doctype\s+html|html|head|body|title|div|p|h1|table)\b",
    re.IGNORECASE | re.DOTALL,
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:+-]{1,40})", re.IGNORECASE)
_MIME = re.compile(r"[a-z0-9][a-z0-9.+_-]{0,40}/[a-z0-9][a-z0-9.+_-]{0,60}")
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
        return Skip(reason=kind if kind in _KNOWN else "other_type", span=locator.span)
    if headers.get("warc-segment-number", "1") != "1" or "warc-segment-total-length" in headers:
        return Loss(locator=locator, reason="segmented", kind="dropped")
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
    media = content_type.partition(";")[0].strip().lower()
    if media not in HTML and media not in _UNTYPED:
        named = media if _MIME.fullmatch(media) else "invalid"
        return Skip(reason=f"mime:{named}", span=locator.span)
    try:
        body = decode_body(coded, data[begin:end], limit)
    except HttpError as error:
        return Loss(locator=locator, reason=error.args[0], detail=error.args[1], url=url)
    if media not in HTML:
        if not _LOOKS_HTML.match(body, 0, 4096):
            return Skip(reason=f"mime:{media if '/' in media else 'none'}", span=locator.span)
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


def _binary(start: bytes, charset: str) -> str:
    """`binary` of how a page starts; one said to be in UTF-16 has NULs, of its markup."""
    nuls = max(start[::2].count(0), start[1::2].count(0))
    utf16 = nuls * 10 > len(start) and (b"<\0" in start or b"\0<" in start)
    return "" if utf16 and charset.lower().startswith("utf-16") else binary(start)


def _conversion(
    headers: Mapping[str, str], data: bytes, begin: int, end: int, locator: Locator
) -> Record | Loss:
    utf8 = data[begin:end]
    try:
        text = utf8.decode()
    except UnicodeDecodeError as error:
        detail = f"byte {error.start} of the content: {error.reason}"
        return Loss(locator=locator, reason="invalid_utf8", detail=detail)
    fields: dict[str, object] = {"warc_type": "conversion"}
    languages = headers.get("warc-identified-content-language")
    if languages:
        fields["languages"] = languages
    return Record(
        locator=locator,
        text=text,
        utf8=utf8,
        url=headers.get("warc-target-uri", "").strip("<>") or None,
        date=headers.get("warc-date"),
        identity=headers.get("warc-record-id"),
        fields=fields,
    )
