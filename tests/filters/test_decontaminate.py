"""Evaluation items in texts: found by length, named, not flagged by what items share."""

# ruff: noqa: RUF001 - full-width marks are those of the script

from __future__ import annotations

import gzip

import pyarrow as pa
import pytest

from gristmill.documents.errors import UsageError
from gristmill.documents.fingerprint import measure_fingerprint
from gristmill.documents.stage import checked_measure, checked_verdict
from gristmill.filters import Decontaminate


def batch_of(texts) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(texts, pa.large_string())})


@pytest.mark.parametrize("size", [8, 9, 10, 12, 13, 20, 49, 50, 51, 200])
def test_planted_item_of_any_length_is_found_and_named(found, sentence, write, size):
    items = [{"id": f"q{k}", "question": sentence(k, size)} for k in range(50)]
    stage = Decontaminate(files=write(items))
    plant = sentence(7, size).upper().replace(" ", ", ", 3)
    text = f"{sentence(100, 300)}\n\n{plant}? {sentence(101, 300)}"
    (note,) = found(stage, text)
    assert (note["item"], note["file"], note["words"], note["share"]) == (
        "q7",
        "items.jsonl",
        size,
        1.0,
    )
    start, stop = note["bytes"]
    assert text.encode()[start:stop].decode() == plant
    scores = checked_measure(stage, batch_of([text, sentence(200, 900)])).scores
    assert checked_verdict(stage, scores, 2).tolist() == [1, 0]


@pytest.mark.parametrize("size", [8, 9, 10, 12, 13])
@pytest.mark.parametrize("more", [["other"], ["an", "other"], [], None])
def test_short_item_may_have_one_word_changed(found, sentence, write, size, more):
    """Of eight or nine words those in the middle may not: no gram of five is left."""
    item = sentence(1, size).split()
    stage = Decontaminate(files=write([" ".join(item), sentence(2, 30)]), near="any")
    for at in range(1, size - 1):
        left = item[:at] + ([item[at], "more"] if more is None else more) + item[at + 1 :]
        seed = max(at + (more is None), size - at - 1) >= 5
        text = f"{sentence(5, 40)}. {' '.join(left)}! {sentence(6, 40)}"
        notes = found(stage, text)
        assert [note["share"] for note in notes] == [(size - 1) * 1000 // size / 1000] * seed
        if seed:
            start, stop = notes[0]["bytes"]
            assert text.encode()[start:stop].decode() == " ".join(left)
            two = [*left[:-2], "another", left[-1]] if at < size // 2 else ["x", *left[1:]]
            assert not found(stage, " ".join(two))
    assert not found(stage, " ".join(item[1:]))
    assert not found(stage, " ".join([*item[:-1], "other"]))


ASKED = [
    "If a train travels 60 miles in 2 hours what is its speed",
    "Who was the first president of the United States of America",
    "What is the boiling point of water at sea level",
    "Janet ducks lay 16 eggs per day and she eats three for breakfast and bakes muffins with four",
    "Why did people leave Ireland for good before the railway was built there",
    "Which reagent turns the colour of a long chain alkane when no light falls on it",
    "Name each river that flows through Poland and reaches the sea near Gdansk",
    "An alkene is told by bromine water that loses all of its brown colour at once",
    "Which country exports the most coffee and cocoa to its neighbours in the north",
    "What was said of the old trial of Joan in the court of that town",
    "Rosa pays 1.50 for a book and 1,200 for a desk in May while prices fall",
]


@pytest.mark.parametrize(
    ("at", "old", "new", "same"),
    [
        (0, "60", "90", False),
        (1, "first", "last", False),
        (1, "first", "frist", True),
        (1, "president", "presidant", True),
        (1, "the first", "first", True),
        (1, "first", "first vice", False),
        (2, "water", "ethanol", False),
        (3, "16", "17", False),
        (3, "four", "five", False),
        (3, "Janet", "Marys", False),
        (3, "she", "he", True),
        (2, "the", "teh", True),
        (4, "Ireland", "Iceland", False),
        (4, "before", "after", False),
        (5, "alkane", "alkene", False),
        (5, "colour", "color", True),
        (6, "and reaches", "or reaches", False),
        (6, "and reaches", "nad reaches", True),
        (1, "first", "1st", True),
        (3, "three", "3", True),
        (8, "country", "county", False),
        (8, "country", "coutry", True),
        (8, "exports", "exported", False),
        (8, "neighbours", "neighbour", True),
        (9, "trial", "trail", False),
        (9, "trial", "tiral", True),
        (10, "1.50", "1.5", True),
        (10, "1.50", "1.05", False),
        (10, "1.50", "150", False),
        (10, "1,200", "1200", True),
        (10, "1,200", "1 200", True),
        (10, "1,200", "1300", False),
    ],
)
def test_another_word_of_content_or_number_is_another_question(
    found, sentence, write, at, old, new, same
):
    """A page with a question like an item was lost; `near: any` has it as before."""
    stage = Decontaminate(files=write(ASKED))
    changed = ASKED[at].replace(old, new)
    text = f"{sentence(5, 40)}. {changed}? {sentence(6, 40)}"
    assert bool(found(stage, text)) == same
    assert found(Decontaminate(files=write(ASKED), near="any"), text)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("48", "56", False),
        ("1,250", "1250", True),
        ("1,250", "1,350", False),
        ("48", "48.00", True),
        ("48", "48.5", False),
        ("half", "other", True),
    ],
)
def test_long_item_with_another_number_is_another_question(found, sentence, write, old, new, same):
    item = (
        "Natalia sold clips to 48 of her friends in April and then she sold half as many clips in "
        "May while her sister Rosa who lives across the river put 1,250 beads on strings"
    )
    text = f"{sentence(5, 40)}. {item.replace(old, new)}. {sentence(6, 40)}"
    assert bool(found(Decontaminate(files=write([item])), text)) == same
    assert found(Decontaminate(files=write([item]), near="any"), text)


def test_evidence_says_how_an_item_was_found(found, write):
    stage = Decontaminate(files=write(ASKED))
    (note,) = found(stage, ASKED[1])
    assert note["own_grams"] == "7 of 7"
    (note,) = found(stage, ASKED[1].replace("first", "frist"))
    assert (note["differs"], "own_grams" in note) == ("one word", False)


def test_word_that_tells_items_apart_may_not_be_another(found, sentence, write):
    frame = sentence(1, 11).split()
    items = [" ".join([*frame[:6], word, *frame[6:]]) for word in ("false", "true")]
    stage = Decontaminate(files=write(items), near="any")
    assert not found(stage, items[0].replace("false", "other"))
    assert found(stage, items[0].replace(frame[8], "other"))


def test_short_item_must_be_whole_and_long_one_may_be_changed(found, sentence, write):
    short, long = sentence(1, 9), sentence(2, 80).split()
    stage = Decontaminate(files=write([short, " ".join(long)]))
    assert not found(stage, " ".join(short.split()[:8]))
    for at in range(11, 80, 11):
        long[at] = "other"
    assert found(stage, " ".join(long))[0]["share"] >= 0.5
    for at in range(5, 80, 11):
        long[at] = "other"
    assert not found(stage, " ".join(long))


@pytest.mark.parametrize("items", [2, 3, 5, 40])
def test_instruction_that_items_share_flags_none_alone(found, sentence, write, items):
    shared = sentence(1000, 100)
    rest = [sentence(k, 9) for k in range(items)]
    others = [sentence(k, 30) for k in range(500, 700)]
    stage = Decontaminate(files=write([f"{shared}\n{r}" for r in rest] + others))
    assert not found(stage, f"{sentence(50, 50)} {shared} {sentence(51, 50)}")
    (note,) = found(stage, f"{shared} {rest[1]} {sentence(52, 20)}")
    assert note["item"] == "line 2"
    if items >= 3:  # then it is known to be shared, and the question alone is looked for
        assert found(stage, f"{sentence(53, 30)} {rest[1]} {sentence(52, 20)}")[0]["words"] == 9


def test_what_many_items_begin_with_does_not_stand_for_an_item(naive, found, sentence, write):
    """Of an item like this one gram alone is its own; the words around it must be there as well."""
    asked, words = "Which one of the following statements about it is", naive("made_items").WORDS
    items = [
        f"{asked} {w}?"
        for w in (
            "false",
            *(f"{a} {b}" for a in words[:9] for b in words[9:12]),
        )
    ]
    stage = Decontaminate(files=write(items))
    assert not found(stage, "following statements about it is false, and more of that kind")
    assert not found(stage, f"{asked.replace('statements', 'claims')} false")
    (note,) = found(stage, f"{sentence(1, 20)} {asked} false {sentence(2, 20)}")
    assert note["item"] == "line 1"


def test_parts_far_apart_are_no_item(found, sentence, write):
    item = sentence(1, 12).split()
    stage = Decontaminate(files=write([" ".join(item)]))
    filler = sentence(2, 400)
    assert not found(stage, f"{' '.join(item[:8])} {filler} {' '.join(item[4:])}")
    assert found(stage, f"{filler} {' '.join(item)} {filler}")


def test_short_question_takes_its_choices_and_placeholders_are_not_looked_for(
    found, sentence, write
):
    choices = [{"text": sentence(k, 4), "label": "A"} for k in range(3)]
    items = [
        {"question": {"stem": "Which of these?", "choices": choices}},
        {"question": "Which of these?", "choices": [sentence(9, 4), sentence(8, 4)], "answer": "C"},
        {"question": "question", "choices": ["a", "b"]},
    ]
    stage = Decontaminate(files=write(items))
    assert stage.load() == (
        "1 of 3 items are looked for; 2 are shorter than 8 words, or than 5 tokens",
    )
    assert not found(stage, "Which of these? " * 30 + "question a b")
    assert found(stage, f"Which of these?\n{sentence(9, 4)}\n{sentence(8, 4)}")


LAYOUTS = (
    "{q} A. {0} B. {1} C. {2} D. {3}",
    "{q}\n(A) {0}\n(B) {1}\n(C) {2}\n(D) {3}",
    "{q}\n1. {0}\n2. {1}\n3. {2}\n4. {3}",
    "{q} Choices: a) {2} b) {0} c) {3} d) {1} Answer: c",
    "{q} Answer: B\nOptions: A: {3}\nB: {1}\nC: {2}\nD: {0}",
    '{q} ["{0}", "{1}", "{2}", "{3}"]',
)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sizes", [(4, 1, 1, 1, 1), (6, 1, 2, 1, 2), (7, 5, 3, 4, 6)])
def test_choices_of_a_short_question_may_be_numbered_and_mixed(found, write, layout, sizes, draw):
    """Of 842 items of MMLU with such questions 41 % were found with letters before choices."""
    words = [f"{c}{k}" for k in range(40) for c in ("bel", "dor", "mik")]
    parts = [" ".join(draw.sample(words, size)) for size in sizes]
    question, *choices = parts
    item = {"id": "q", "question": question, "choices": choices}
    stage = Decontaminate(files=write([item, "some other question of a good many words or more"]))
    asked = layout.format(*choices, q=question)
    text = f"Before it. {asked} Behind it."
    notes = found(stage, text)
    assert notes or (sizes[0] < 5 and "a) {2}" in layout)  # no gram leads to it
    if notes and "own_grams" not in notes[0]:
        assert (notes[0]["share"], notes[0]["differs"]) == (1, "layout")
        start, stop = notes[0]["bytes"]
        there = text.encode()[start:stop].decode()
        assert there.startswith(question)
        assert all(choice in there for choice in choices)
    missing = asked.replace(choices[1], "another")
    far = asked.replace(choices[1], f"one that is in none of the others {choices[1]}")
    if max(sizes) < 7:
        assert not found(stage, missing)
        assert not found(stage, far)


def test_scripts_without_spaces_count_two_characters_a_word(found, write):
    item = "某农场有十二头牛和三十只羊请问一共有多少条腿"
    stage = Decontaminate(files=write([item]))
    assert found(stage, f"今天的天气很好。{item}？我们走吧。")[0]["words"] == len(item) // 2
    assert not found(stage, "今天的天气很好，我们去公园散步吧，一共有三十只羊。")


@pytest.mark.parametrize("asked", ["f(x) = x {} 1", "x {} 1 <= y and 3 well-known roots"])
def test_opposite_sign_is_another_question(found, write, asked):
    item = f"Find the largest real root of {asked} for x in the second quarter"
    stage = Decontaminate(
        files=write([item.format("+"), "another one of eight words or so is here"])
    )
    assert found(stage, item.format("+"))
    assert found(stage, item.format("&#43;"))
    assert found(stage, item.format(""))  # marks are gone
    for other in ("-", "−", "&minus;"):
        assert not found(stage, item.format(other))
        assert len(found(stage, f"{item.format(other)}\n{item.format('+')}")) == 1
    assert found(Decontaminate(files=stage.files, near="any"), item.format("-"))


def test_digits_of_other_scripts_are_digits(found, write):
    stage = Decontaminate(files=write(["कक्षा में 42 छात्र हैं और उनमें से 17 लड़के हैं तो कितने 9"]))
    text = "कक्षा में ४२ छात्र हैं और उनमें से १७ लड़के हैं तो कितने ९"
    assert found(stage, text)[0]["share"] == 1
    assert not found(stage, text.replace("४", "५"))


@pytest.mark.parametrize("size", [9, 20])
def test_ways_to_write_a_word_are_one(sentence, write, size):
    item = sentence(1, size - 2) + " doesn't Zoë's"
    stage = Decontaminate(files=write([item]))
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in item)
    refs = "".join(c if "a" <= c <= "z" or c == " " else f"&#{ord(c)};" for c in item)
    half = item.index(" ") // 2
    ways = [
        f"&ldquo;{refs}&#34;",
        item.replace("'", "&rsquo;").replace("ë", "&euml;"),
        item.replace("'", "&#x27;").replace("ë", "&#XEB;"),
        item.replace("'", "&#146;"),
        f"{item[:half]}-\n  {item[half:]}",
        f"{item[:half]}\xad\r\n{item[half:]}",
        wide,
        item.replace("'", "\u2019"),
        item.replace("'", ""),
        " ".join(f"{word[:1]}\xad{word[1:]}" for word in item.split()),
    ]
    texts = [f"{sentence(5, 40)} {way} {sentence(6, 40)}" for way in ways]
    assert checked_measure(stage, batch_of(texts)).scores["items"].tolist() == [1] * len(ways)


def test_files_count_by_digest_and_fields_can_be_named(found, sentence, write, tmp_path):
    items = [{"uid": 5, "deep": {"q": sentence(1, 6)}, "a": sentence(2, 6), "question": "no"}]
    path = write(items)
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    stage = Decontaminate(files=path, fields=("deep.q", "a"))
    assert found(stage, f"{sentence(1, 6)}\n{sentence(2, 6)}")[0]["item"] == "5"
    again = Decontaminate(files=packed, fields=("deep.q", "a"))
    assert found(again, f"{sentence(1, 6)}\n{sentence(2, 6)}")[0]["file"] == "packed.jsonl.gz"
    assert measure_fingerprint(stage) != measure_fingerprint(again)  # other bytes
    before = measure_fingerprint(stage)
    write([*items, {"deep": {"q": "x"}}])
    assert measure_fingerprint(stage) != before


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "is empty"),
        (b'{"question": "a"}\n{"question"', r"items.jsonl:2: not JSON"),
        (b"[1, 2]\n", r"items.jsonl:1: expected an object, found list"),
        (b'{"frage": "x", "id": 1}\n', r"items.jsonl:1: none of the known fields .*frage, id"),
        (b'{"question": 3}\n', "holds text"),
        (b"\xff\xfe{}\n", "not UTF-8"),
        (b"PK\x03\x04\x00\x00\n", "NUL byte"),
        (b"[" * 100_000 + b"\n", "not JSON"),
    ],
)
def test_bad_item_file_is_an_error_that_names_the_line(tmp_path, raw, said):
    (tmp_path / "items.jsonl").write_bytes(raw)
    with pytest.raises(UsageError, match=rf"decontaminate.files: .*{said}"):
        Decontaminate(files=tmp_path / "items.jsonl").load()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "expected the JSONL files"),
        ({"files": "nowhere"}, "no file or folder nowhere"),
        ({"files": ".", "policy": "mask"}, "found 'mask', expected drop, cut or keep"),
        ({"files": ".", "ngram": 9}, r"found 9, expected 2 to 8 \(no more than min_words"),
        ({"files": ".", "full_to": 50}, "expected full_to below long_from"),
        ({"files": ".", "share": 1.5}, "decontaminate.share"),
        ({"files": ".", "near": None}, "decontaminate.near: found None, expected spelling or any"),
    ],
)
def test_wrong_fields_are_named(fields, said):
    with pytest.raises(UsageError, match=said):
        Decontaminate(**fields)


def test_folder_without_items_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"no \.jsonl"):
        Decontaminate(files=tmp_path).load()


def test_items_that_cannot_be_told_find_nothing(found, write):
    stage = Decontaminate(files=write(["too short", "also too short"]))
    assert "0 of 2 items" in stage.load()[0]
    assert not found(stage, "too short also too short " * 20)
    assert checked_measure(stage, batch_of([])).scores["items"].shape == (0,)


def test_large_text_of_items_alone_names_each_once(sentence, write):
    """16,000 grams of every item: a search from each of them would not end."""
    items = [sentence(k, 20) for k in range(30)]
    stage = Decontaminate(files=write(items))
    measured = checked_measure(stage, batch_of([(" ".join(items) + " ") * 800]))
    assert measured.scores["items"].tolist() == [30]
