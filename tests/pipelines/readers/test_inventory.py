"""A small archive of everything, item by item: what each record is called and where it stands."""

from __future__ import annotations

from gristmill.documents.records import Loss, Record, Skip


def test_inventory_of_a_mixed_archive(make):
    parts = [
        make.warc("warcinfo", b"software: x"),
        make.response(1, b"<html><p>one</p></html>"),
        make.warc("request", b"GET / HTTP/1.0"),
        make.response(2, b"gone", status="404 Not Found"),
        make.wet(3),
        make.warc("conversion", b"x", length=77),
        make.wet(4),
        make.warc("resource", b"{}", Content_Type="application/json"),
    ]
    members = [make.pack(p, "gzip") for p in parts]
    at = [sum(map(len, members[:n])) for n in range(9)]
    cut = make.pack(make.wet(5, "never ends " * 9), "gzip")[:-20]
    got = make.read(b"".join(members) + bytes(5) + cut)
    seen = []
    for item in got.items:
        if isinstance(item, Record):
            seen.append(("record", item.identity, item.locator.offset, item.locator.span))
        elif isinstance(item, Loss):
            seen.append((item.kind, item.reason, item.locator.offset, item.locator.span))
        elif isinstance(item, Skip):
            seen.append(("skip", item.reason, None, item.span))
    assert seen[:-1] == [
        ("skip", "warcinfo", None, len(parts[0])),
        ("record", "<urn:1>", at[1], len(parts[1])),
        ("skip", "request", None, len(parts[2])),
        ("dropped", "http_client_error", at[3], len(parts[3])),
        ("record", "<urn:3>", at[4], len(parts[4])),
        ("fault", "bad_framing", at[5], len(parts[5])),
        ("record", "<urn:4>", at[6], len(parts[6])),
        ("skip", "mime:application/json", None, len(parts[7])),
    ]
    assert seen[-1][:3] == ("fault", "truncated_stream", at[8] + 5)
    account = got.account
    assert (account.members, account.padding, account.damaged) == (at[8], 5, len(cut))
    assert account.records == 3
