"""Every hostile input of the list, by its number, in each container and codec that it can occur in.

A case is a fault put into records; a container says how records look; a codec how they are stored.
Documents are what the converters make of what the readers give.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import zlib
from dataclasses import dataclass

import brotli
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from gristmill.documents.records import Draft, Loss
from gristmill.documents.schema import DOCUMENTS
from gristmill.pipelines.convert import MainText, PlainText

CODECS = ("plain", "gzip", "zstd", "bzip2", "xz")
PACKED = CODECS[1:]
WORDS = "<p>It was the best of times, it was the worst of times, text {}.</p>"


def html(text: str) -> bytes:
    return f"<html><head><title>t</title></head><body>{text}</body></html>".encode()


@dataclass(frozen=True)
class Container:
    """How the record of number n looks; text is what its document says."""

    name: str

    def record(self, make, n: int, text: str | bytes | None = None, **more) -> bytes:
        text = f"text {n} of the file" if text is None else text
        raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        if self.name == "jsonl":
            if isinstance(text, bytes):
                return b'{"id": "%d", "text": "%s"}\n' % (n, raw)
            return json.dumps({"id": str(n), "text": text}).encode() + b"\n"
        if self.name == "wet":
            return make.warc("conversion", raw, WARC_Record_ID=f"<urn:{n}>", **more)
        page = b"<html><body><p>" + raw + b"</p></body></html>"
        if self.name == "warc":
            made = make.response(n, page)
            if "length" in more or "end" in more:
                _, _, content = made.partition(b"\r\n\r\n")
                content = content.removesuffix(b"\r\n\r\n")
                kept = {"WARC_Record_ID": f"<urn:{n}>", "Content_Type": "application/http"}
                return make.warc("response", content, **kept, **more)
            return made
        return make.arc(n, page, **more)

    def file(self, make, records: list[bytes], codec: str, *, each: bool = True) -> list[bytes]:
        """Members: one a record, or one for all."""
        first = [make.arc(0, b"")] if self.name == "arc" else []
        parts = [*first, *records]
        return [make.pack(p, codec) for p in (parts if each else [b"".join(parts)])]


CONTAINERS = {name: Container(name) for name in ("jsonl", "wet", "warc", "arc")}
EVERYWHERE = [(c, k) for c in CONTAINERS for k in CODECS]
COMPRESSED = [(c, k) for c in CONTAINERS for k in PACKED]


def texts(got) -> list[str]:
    """The documents' texts."""
    made = [MainText()(iter([item])) for item in got.items]
    return [d.text for drafts in made for d in drafts if isinstance(d, Draft)]


def drafts(got) -> list[Draft]:
    """The documents."""
    return [d for d in MainText()(iter(got.items)) if isinstance(d, Draft)]


def good(*numbers: int) -> list[str]:
    return [f"text {n} of the file" for n in numbers]


def parquet(columns, **options) -> bytes:
    out = io.BytesIO()
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), out, **options)
    return out.getvalue()


@pytest.mark.parametrize(("container", "codec"), EVERYWHERE)
def test_case_01_wrong_bytes_cost_one_record_at_most(make, container, codec):
    box = CONTAINERS[container]
    records = [box.record(make, n, b"\xff\xfe" if n == 3 else None) for n in range(1, 12)]
    got = make.read(b"".join(box.file(make, records, codec)))
    kept = [t for t in texts(got) if t.startswith("text")]
    assert kept == good(1, 2, *range(4, 12))
    if container in {"jsonl", "wet"}:  # stated to be UTF-8
        assert got.reasons == ["invalid_utf8"]
    else:  # a page's charset may be stated wrongly: it is decoded, and says what it could not be
        assert got.losses == []


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd", "snappy", "brotli", "lz4"])
def test_case_01_in_parquet(make, compression):
    raw = pa.array([b"ok", b"\xff\xfe", b"fine"], pa.binary())
    text = pa.StringArray.from_buffers(3, raw.buffers()[1], raw.buffers()[2])
    got = make.read(parquet({"text": text}, compression=compression))
    assert texts(got) == ["ok", "fine"]
    assert [(x.reason, x.locator.inner) for x in got.losses] == [("invalid_utf8", 1)]


@pytest.mark.parametrize("codec", CODECS)
def test_case_01_in_text_files_is_decoded_and_counted(make, codec):
    got = make.read(make.pack(b"a line\n" * 200 + b"\xff\xfe\n", codec), format="text")
    (draft,) = drafts_of_text(got)
    assert draft.text.count("a line") == 200
    assert draft.repairs == {"undecoded": 2} or draft.metadata["charset"] != "utf-8"


def drafts_of_text(got) -> list[Draft]:
    return [d for d in PlainText()(iter(got.items)) if isinstance(d, Draft)]


@pytest.mark.parametrize(("container", "codec"), EVERYWHERE)
def test_case_02_stream_cut_keeps_what_is_whole_and_says_where(make, container, codec):
    box = CONTAINERS[container]
    rng = random.Random(2)
    words = {n: f"text {n} {rng.randbytes(200).hex()}" for n in range(1, 1_500)}
    records = [box.record(make, n, t) for n, t in words.items()]
    (packed,) = box.file(make, records, codec, each=False)
    got = make.read(packed[: len(packed) * 6 // 10])
    found = texts(got)
    assert found == list(words.values())[: len(found)]
    assert got.reasons == ["truncated_stream"]
    assert got.losses[0].kind == "fault"
    assert got.losses[0].locator.offset < len(packed)
    if codec in {"plain", "gzip", "zstd"}:  # bzip2 and xz have blocks larger than the file
        assert len(found) > 600
    short = make.read(packed[: len(packed) // 1_000 + 30])  # within the first block
    assert short.reasons == ["truncated_stream"]
    assert texts(short) == list(words.values())[: len(short.records)]
    assert len(short.records) < 3


def test_case_02_in_parquet(make):
    data = parquet({"text": [f"row {n}" for n in range(500)]})
    assert make.read(data[: len(data) * 6 // 10]).reasons == ["truncated_stream"]


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("kind", ["text", "html"])
def test_case_02_in_files_that_are_one_document_hands_no_half_on(make, codec, kind):
    whole = make.pack(b"<p>words and more words</p>" * 9_000, codec)
    got = make.read(whole[: len(whole) * 6 // 10], format=kind)
    assert (got.records, got.reasons) == ([], ["truncated_stream"])
    tail = make.pack(b"<p>another member</p>", codec)
    broken = whole[:30] + b"\xff" * 8 + whole[38:] + tail
    got = make.read(broken, format=kind)
    assert got.records == []
    assert "corrupt_member" in got.reasons


CODINGS = {
    "br": brotli.compress,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("container", ["warc", "arc"])
def test_case_04_coded_body_is_decoded(make, container, codec, coding):
    body = CODINGS[coding](html(WORDS.format(1)))
    build = make.response if container == "warc" else make.arc
    record = build(1, body, f"Content-Encoding: {coding}\r\n")
    got = make.read(b"".join(CONTAINERS[container].file(make, [record], codec)))
    assert texts(got) == ["It was the best of times, it was the worst of times, text 1."]
    cut = build(1, body[:-9], f"Content-Encoding: {coding}\r\n")
    got = make.read(b"".join(CONTAINERS[container].file(make, [cut], codec)))
    if coding != "zstd":
        assert got.reasons == ["truncated_body"]
    assert texts(got) == []


@pytest.mark.parametrize(("container", "codec"), COMPRESSED)
def test_case_06_empty_member_in_the_middle(make, container, codec):
    box = CONTAINERS[container]
    members = box.file(make, [box.record(make, n) for n in (1, 2, 3)], codec)
    members.insert(len(members) - 1, make.pack(b"", codec))
    got = make.read(b"".join(members))
    assert texts(got) == good(1, 2, 3)
    assert got.losses == []


@pytest.mark.parametrize("cut", [1, 9, 20, 40])
@pytest.mark.parametrize(("container", "codec"), COMPRESSED)
def test_case_08_last_member_cut_is_never_handed_on_short(make, container, codec, cut):
    box = CONTAINERS[container]
    rng = random.Random(8)
    words = [f"text {n} {rng.randbytes(300).hex()}" for n in (1, 2)]
    members = box.file(make, [box.record(make, n, words[n - 1]) for n in (1, 2)], codec)
    got = make.read(b"".join(members)[:-cut])
    assert texts(got)[0] == words[0]
    assert set(texts(got)) <= set(words)
    assert got.reasons == ["truncated_stream"]


@pytest.mark.parametrize(("container", "codec"), EVERYWHERE)
def test_case_09_all_records_in_one_member(make, container, codec):
    box = CONTAINERS[container]
    got = make.read(
        b"".join(box.file(make, [box.record(make, n) for n in range(1, 6)], codec, each=False))
    )
    assert texts(got) == good(*range(1, 6))
    assert got.losses == []


@pytest.mark.parametrize("length", [5_000, 3, 10**9, 10**17])
@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("container", ["wet", "warc", "arc"])
def test_case_10_wrong_length_costs_its_record_alone(make, container, codec, each, length):
    box = CONTAINERS[container]
    records = [box.record(make, n, **({"length": length} if n == 2 else {})) for n in (1, 2, 3, 4)]
    got = make.read(b"".join(box.file(make, records, codec, each=each)))
    assert texts(got) == good(1, 3, 4)
    assert got.reasons == ["bad_framing"]
    assert got.losses[0].locator.span == len(records[1])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("container", "end"), [("wet", b"\n"), ("warc", b"\n"), ("arc", b"\r\n"), ("arc", b"\n")]
)
def test_case_12_line_ends_of_the_other_kind(make, container, codec, end):
    box = CONTAINERS[container]
    got = make.read(
        b"".join(box.file(make, [box.record(make, n, end=end) for n in (1, 2)], codec, each=False))
    )
    assert texts(got) == good(1, 2)
    assert got.losses == []


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("container", ["wet", "warc", "arc"])
def test_case_12_line_ends_of_a_transfer_as_text(make, container, codec):
    """CRCRLF, what a transfer as text makes of CRLF, in headers whose lengths are still right."""
    box = CONTAINERS[container]
    records = [box.record(make, n, end=b"\r\r\n") for n in (1, 2, 3)]
    got = make.read(b"".join(box.file(make, records, codec, each=False)))
    assert texts(got) == good(1, 2, 3)
    assert got.losses == []


@pytest.mark.parametrize("container", ["wet", "warc"])
def test_case_12_whole_file_transferred_as_text_is_a_fault_for_each_record(make, container):
    """Content has more bytes than its length says: nothing of it is as it was written."""
    box = CONTAINERS[container]
    lines = "one line\nand another\n\nof record {}\n"
    records = [box.record(make, n, lines.format(n)) for n in (1, 2, 3)]
    got = make.read(b"".join(box.file(make, records, "plain", each=False)).replace(b"\n", b"\r\n"))
    assert texts(got) == []
    assert got.reasons == ["bad_framing"] * 3


@pytest.mark.parametrize("codec", CODECS)
def test_case_12_in_jsonl_crlf_lines(make, codec):
    lines = [CONTAINERS["jsonl"].record(make, n).replace(b"\n", b"\r\n") for n in (1, 2)]
    assert texts(make.read(make.pack(b"".join(lines), codec))) == good(1, 2)


@pytest.mark.parametrize(("container", "codec"), COMPRESSED)
def test_case_13_nuls_between_members(make, container, codec):
    box = CONTAINERS[container]
    members = box.file(make, [box.record(make, n) for n in (1, 2)], codec)
    got = make.read(bytes(64).join(members) + bytes(512))
    assert texts(got) == good(1, 2)
    assert got.losses == []
    assert got.account.padding == 64 * (len(members) - 1) + 512


@pytest.mark.parametrize("container", ["wet", "warc", "arc"])
def test_case_13_nuls_between_plain_records_are_one_fault(make, container):
    box = CONTAINERS[container]
    records = box.file(make, [box.record(make, n) for n in (1, 2, 3)], "plain")
    got = make.read(b"".join(records[:-1]) + bytes(64) + b"\n" + records[-1])
    assert texts(got)[-1] == good(3)[0]
    assert "bad_framing" in got.reasons


@pytest.mark.parametrize("codec", CODECS)
def test_case_14_lone_surrogates_become_replacement_characters(make, codec):
    got = make.read(make.pack(b'{"text":"a\\ud800b", "x\\udc00": ["\\ud800"]}\n', codec))
    (draft,) = drafts(got)
    assert (draft.text, draft.repairs) == ("a\ufffdb", {"surrogate": 1})
    json.dumps(draft.metadata, ensure_ascii=False).encode()


@pytest.mark.parametrize("container", ["warc", "arc"])
def test_case_14_as_character_references_in_pages(make, container):
    box = CONTAINERS[container]
    got = make.read(
        b"".join(box.file(make, [box.record(make, 1, "before &#xD800; after")], "gzip"))
    )
    (text,) = texts(got)
    text.encode()
    assert text.startswith("before ")
    assert text.endswith(" after")


@pytest.mark.parametrize(("container", "codec"), EVERYWHERE)
def test_case_15_text_behind_a_nul_survives(make, container, codec):
    box = CONTAINERS[container]
    got = make.read(b"".join(box.file(make, [box.record(make, 1, "before\0 and after")], codec)))
    (draft,) = drafts(got)
    assert draft.text == "before and after"
    assert draft.repairs == {"nul": 1}


def test_case_15_in_parquet_and_text_files(make):
    (draft,) = drafts(make.read(parquet({"text": ["before\0 and after"]})))
    assert (draft.text, draft.repairs) == ("before and after", {"nul": 1})
    (draft,) = drafts_of_text(make.read(b"before\0 and after", format="text"))
    assert (draft.text, draft.repairs) == ("before and after", {"nul": 1})


DEEP = (
    "".join(f"<p>Paragraph {n} stands before the depth of the page.</p>" for n in range(3))
    + "<div>" * 300
    + "<p>The deep paragraph has a text that must not be lost.</p>"
    + "</div>" * 300
    + "".join(f"<p>Paragraph {n} stands behind the depth of the page.</p>" for n in range(3))
)


@pytest.mark.parametrize("container", ["warc", "arc", "html"])
def test_case_16_deep_text_and_the_tail_survive(make, container):
    if container == "html":
        got = make.read(html(DEEP), format="html")
    else:
        build = make.response if container == "warc" else make.arc
        got = make.read(b"".join(CONTAINERS[container].file(make, [build(1, html(DEEP))], "gzip")))
    (text,) = texts(got)
    assert "The deep paragraph" in text
    assert text.count("before the depth") == text.count("behind the depth") == 3


@pytest.mark.parametrize("value", ["9007199254740991", "-1", "1e9", "99999999999999999999"])
@pytest.mark.parametrize("name", ["colspan", "rowspan"])
def test_case_17_giant_table_spans_cost_nothing(make, name, value):
    page = html(
        f"<p>Some words stand here.</p><table><tr><td {name}={value}>cell</td></tr></table>"
    )
    (text,) = texts(make.read(make.response(1, page)))
    assert "cell" in text
    assert len(text) < 1_000


@pytest.mark.parametrize("codec", CODECS)
def test_case_19_wrong_types_cost_their_line_alone(make, codec):
    lines = [b'{"text":123}', b"[1,2]", b'{"text":"a","media":null}', b'"x"', b"null", b'{"t":1}']
    lines += [b'{"text":["a"]}', b'{"text":{"a":1}}', b'{"text":true}', b'{"text":"b"}']
    got = make.read(make.pack(b"\n".join(lines) + b"\n", codec))
    assert texts(got) == ["a", "b"]
    assert got.reasons == ["bad_schema"] * 8


@pytest.mark.parametrize(
    "column", [pa.array([1, 2]), pa.array([["a"], None]), pa.array([{"a": 1}, None])]
)
def test_case_19_in_parquet(make, column):
    assert make.read(parquet({"text": column})).reasons == ["bad_schema"]


@pytest.mark.parametrize(("container", "codec"), EVERYWHERE)
def test_case_20_bom_before_the_first_record(make, container, codec):
    box = CONTAINERS[container]
    (data,) = box.file(make, [box.record(make, n) for n in (1, 2)], "plain", each=False)
    got = make.read(make.pack(b"\xef\xbb\xbf" + data, codec))
    assert texts(got) == good(1, 2)
    assert got.losses == []


@pytest.mark.parametrize("codec", CODECS)
def test_case_20_bom_in_texts_is_taken_off(make, codec):
    bom = "\ufeff"
    got = make.read(make.pack(CONTAINERS["wet"].record(make, 1, bom + "words"), codec))
    assert [(d.text, d.repairs) for d in drafts(got)] == [("words", {"bom": 1})]
    got = make.read(make.pack((bom + "words").encode(), codec), format="text")
    assert [d.text for d in drafts_of_text(got)] == ["words"]
    got = make.read(make.pack((bom + "words").encode("utf-16-le"), codec), format="text")
    assert [d.text for d in drafts_of_text(got)] == ["words"]


def test_case_21_fields_that_change_type_keep_one_schema(make, tmp_path):
    """None then a string, a new key, an integer then a float: in JSONL and over Parquet files."""
    from types import SimpleNamespace

    from gristmill.pipelines.read import _within, _Writer

    lines = b'{"text":"a","license":null,"n":1}\n{"text":"b","license":"mit","n":1.5,"more":[]}\n'
    items = make.read(lines).items
    nulls = parquet({"text": ["c"], "license": pa.array([None], pa.null()), "n": [1]})
    given = parquet({"text": ["d"], "license": ["mit"], "n": [1.5]})
    items += make.read(nulls).items + make.read(given).items
    out = _Writer(
        [tmp_path / n for n in ("documents", "losses", "narrow")],
        SimpleNamespace(name="s", dump=None, license=None),
        frozenset(),
    )
    for item in PlainText()(_within(item, 0, 0) for item in items):
        assert not isinstance(item, Loss)
        out.add(item)
    out.close()
    table = pq.read_table(tmp_path / "documents")
    assert table.schema.remove_metadata() == DOCUMENTS
    assert table["license"].to_pylist() == [None, "mit", None, "mit"]
    assert [json.loads(m).get("n") for m in table["metadata"].to_pylist()] == [1, 1.5, 1, 1.5]


@pytest.mark.parametrize(("container", "codec"), EVERYWHERE)
def test_case_23_giant_record_is_one_loss(make, container, codec):
    box = CONTAINERS[container]
    records = [box.record(make, n, "x" * 3_000_000 if n == 2 else None) for n in (1, 2, 3)]
    got = make.read(
        b"".join(box.file(make, records, codec, each=False)), max_record_bytes=1_000_000
    )
    assert texts(got) == good(1, 3)
    assert [(x.reason, x.locator.span) for x in got.losses] == [("too_large", len(records[1]))]


def test_case_23_in_parquet_and_text_files(make):
    data = parquet({"text": [c * 4_000_000 for c in "abcd"]}, compression="zstd")
    got = make.read(data, max_record_bytes=1_000_000)
    assert (got.reasons, got.account.decoded_bytes) == (["too_large"], 0)
    for codec in CODECS:
        got = make.read(make.pack(b"x" * 3_000_000, codec), format="text", max_record_bytes=10**6)
        assert (got.records, got.reasons) == ([], ["too_large"])


@pytest.mark.parametrize(("container", "codec"), EVERYWHERE)
@pytest.mark.parametrize("name", ["a.warc.gz", "a.jsonl.zst", "a.parquet", "a.txt", "a"])
def test_misnamed_files_are_read_by_their_bytes(make, container, codec, name):
    box = CONTAINERS[container]
    got = make.read(b"".join(box.file(make, [box.record(make, 1)], codec)), name)
    assert texts(got) == good(1)
