"""The template stage on made-up hosts: what goes, what stays, and that nothing else bears on it."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from gristmill.documents.edits import apply_edits
from gristmill.documents.errors import UsageError
from gristmill.documents.exchange import CuttingStage
from gristmill.documents.identity import shard_hash
from gristmill.documents.stage import checked_measure
from gristmill.filters.templates import Templates

STAGE = Templates()
CONSONANTS, VOWELS = "bcdfghjklmnprstvz", "aeiou"
TEMPLATE = """Weather in {town} on {day}
Today the sky over {town} is {sky} and the wind comes from the {wind} with {speed} km an hour.
The highest temperature is {high} degrees and the lowest temperature is {low} degrees in the night.
You should take a {thing} with you when you leave the house, because the weather may change.
The forecast is made four times a day from the figures of the nearest station of the service.
If you find a mistake on this page, please write to the office and name the date and the place."""


@dataclass(frozen=True)
class Doc:
    text: str
    url: str | None
    host: str | None


def word(draw):
    return "".join(draw.choice(CONSONANTS) + draw.choice(VOWELS) for _ in range(3))


COMMON = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "was",
    "for",
    "that",
    "with",
    "as",
    "on",
    "by",
    "at",
    "from",
    "are",
    "this",
    "have",
    "not",
    "which",
    "one",
    "had",
    "his",
    "they",
    "time",
    "year",
    "people",
    "first",
    "city",
    "state",
    "world",
    "life",
    "part",
    "house",
    "water",
    "church",
    "school",
    "system",
    "number",
    "group",
    "history",
    "family",
    "music",
    "river",
    "company",
    "university",
    "government",
    "small",
    "large",
    "early",
    "later",
    "between",
    "under",
    "during",
    "found",
    "called",
    "made",
    "used",
    "known",
    "many",
    "several",
    "great",
    "other",
    "after",
    "before",
    "where",
    "while",
    "there",
    "more",
]


def prose(draw, words):
    """Sentences that no other page has."""
    found = (draw.choice(COMMON) + ("." if i % 9 == 8 else "") for i in range(words))
    return " ".join(found).capitalize()


def filled(draw, number, host="a.example", own=0, url=None):
    """A page of the template with `own` words of its own."""
    fills = {k: draw.randrange(99) for k in ("speed", "high", "low")}
    names = {k: word(draw) for k in ("sky", "wind", "thing")}
    text = TEMPLATE.format(town=word(draw).capitalize(), day=number, **fills, **names)
    more = f"\n{prose(draw, own)}" if own else ""
    return Doc(text + more, url or f"https://{host}/{number}", host)


def decide(docs, stage=STAGE, *, shards=2, partitions=1, seed=None):
    """Decisions by document, and the texts that are left (None: dropped)."""
    order = list(range(len(docs)))
    if seed is not None:
        random.Random(seed).shuffle(order)
    by_shard = [
        sorted(order[s::shards]) if seed is None else order[s::shards] for s in range(shards)
    ]
    names = {shard_hash(f"s{s}"): s for s in range(shards)}

    def batch(rows):
        return pa.record_batch({
            "text": pa.array([docs[i].text for i in rows], pa.large_string()),
            "url": pa.array([docs[i].url for i in rows], pa.string()),
            "host": pa.array([docs[i].host for i in rows], pa.string()),
        })  # fmt: skip

    def texts(shard, row):
        found = [
            docs[by_shard[names[s]][r]].text
            for s, r in zip(shard.tolist(), row.tolist(), strict=False)
        ]
        return pa.array(found, pa.large_string())

    tables = []
    for name, s in names.items():
        rows = by_shard[s]
        columns = {
            "shard": pa.array([name] * len(rows), pa.uint64()),
            "id": pa.array([i.to_bytes(16, "big") for i in rows], pa.binary(16)),
            "row": pa.array(range(len(rows)), pa.uint32()),
            "priority": pa.array([0] * len(rows), pa.uint16()),
            "quality": pa.array([-1] * len(rows), pa.int32()),
            "bytes": pa.array([len(docs[i].text.encode()) for i in rows], pa.uint32()),
            "text": batch(rows).column("text"),
        }
        scores = checked_measure(stage.survey, batch(rows)).scores
        tables.append(
            stage.scatter(pa.table(columns | {k: pa.array(v) for k, v in scores.items()}))
        )
    for step in stage.rounds:
        rows = pa.concat_tables(tables)
        part = rows.column("partition").to_numpy() % np.uint64(partitions)
        tables = [step.gather(rows.filter(pa.array(part == p)), texts) for p in range(partitions)]
    table = pa.concat_tables(tables).sort_by("id")
    assert table.schema == stage.decided
    at = np.array([int.from_bytes(i, "big") for i in table.column("id").to_pylist()], np.int64)
    whole = batch(range(len(docs)))
    measured = stage.cut(whole, table, at)
    measured.edits.check(whole.column("text"), "templates")
    left = apply_edits(whole.column("text"), measured.edits).to_pylist()
    found = dict(zip(at.tolist(), table.to_pylist(), strict=True))
    for i, row in found.items():
        left[i] = None if row["code"] else left[i]
    return found, left, measured


@pytest.fixture(name="draw")
def draw_fixture():
    return random.Random(7)


def test_stage_is_one_that_cuts():
    assert isinstance(STAGE, CuttingStage)


def test_template_pages_go_but_for_exemplars(draw):
    docs = [filled(draw, i) for i in range(40)]
    found, left, measured = decide(docs)
    assert sum(t is None for t in left) == 37
    kept = [i for i, t in enumerate(left) if t is not None]
    assert [found[i]["exemplar"] for i in kept] == [True] * 3
    assert all(left[i] == docs[i].text for i in kept)  # exemplars stay whole
    gone = [r for r in found.values() if r["code"]]
    assert {int.from_bytes(r["witness_id"], "big") for r in gone} <= set(kept)
    assert all(2 * r["shared"] >= r["either"] > 0 for r in gone)
    assert {r["cluster_size"] for r in found.values()} == {40}
    assert (measured.scores["template_share"] > 0.9).all()


@pytest.mark.parametrize("choice", ["novelty", "length", "id"])
def test_exemplars_number_and_choice_as_asked(draw, choice):
    docs = [filled(draw, i, own=5 * (i == 17)) for i in range(30)]
    found, left, _ = decide(docs, Templates(exemplars=1, choice=choice))
    (kept,) = [i for i, t in enumerate(left) if t is not None]
    assert found[kept]["exemplar"]
    assert kept == (0 if choice == "id" else 17)


def test_page_with_prose_of_its_own_stays_without_the_template(draw):
    docs = [filled(draw, i, own=80 if i % 4 == 0 else 20) for i in range(40)]
    found, left, _ = decide(docs)
    for i in range(0, 40, 4):
        assert left[i] is not None
        assert found[i]["own_words"] == 80
        assert docs[i].text.split("\n")[-1] in left[i]
    assert sum(t is None for t in left) == 27
    standing = "The forecast is made four times a day"
    assert sum(standing in left[i] for i in range(0, 40, 4)) <= 1  # the host's first page keeps it


def test_family_across_hosts_is_found(draw):
    docs = [filled(draw, i, host=f"h{i}.example") for i in range(30)]
    _, left, _ = decide(docs)
    assert sum(t is None for t in left) == 27


def test_family_smaller_than_asked_stays(draw):
    docs = [filled(draw, i) for i in range(9)]
    _, left, _ = decide(docs)
    assert None not in left


def test_page_crawled_ten_times_is_no_template(draw):
    pages = [prose(draw, 120) + "\n" + prose(draw, 90) for _ in range(20)]
    docs = [
        Doc(f"{text}\n{n} was seen {i} times", f"https://a.example/{n}", "a.example")
        for i in range(10)
        for n, text in enumerate(pages)
    ]
    found, left, _ = decide(docs)
    assert left == [d.text for d in docs]
    assert not any(r["code"] for r in found.values())


def test_one_text_on_many_hosts_is_left_to_the_duplicate_stages(draw):
    text = prose(draw, 200)
    docs = [
        Doc(f"{prose(draw, 8)}\n{text}", f"https://h{i}.example/", f"h{i}.example")
        for i in range(30)
    ]
    found, _left, _ = decide(docs)
    assert not any(r["code"] for r in found.values())


def test_boilerplate_lines_go_and_the_first_page_keeps_them(draw):
    lines = [
        "Home About Contact Prices Letter",
        "Sign up for our letter and get a new recipe every week.",
    ]
    docs = [
        Doc("\n".join([lines[0], prose(draw, 80), lines[1]]), f"https://a.example/{i}", "a.example")
        for i in range(12)
    ]
    _, left, measured = decide(docs)
    for line in lines:
        assert sum(line in text for text in left) == 1
    assert measured.edits.reason_names[0] == "boilerplate"
    assert not measured.edits.reasons.any()
    assert all(docs[i].text.split("\n")[1] in text for i, text in enumerate(left))


def test_line_on_few_pages_of_a_large_host_stays(draw):
    line = "Preheat the oven and grease the tin with a little butter."
    docs = [
        Doc(prose(draw, 90) + ("\n" + line if i < 6 else ""), f"https://a.example/{i}", "a.example")
        for i in range(200)
    ]
    _, left, _ = decide(docs)
    assert left == [d.text for d in docs]


def test_fill_in_lines_are_marked_and_stay(draw):
    docs = [
        Doc(
            f"{prose(draw, 90)}\nThis was written by {word(draw).capitalize()} on day {i} in May",
            f"https://a.example/{i}",
            "a.example",
        )
        for i in range(12)
    ]
    _, left, measured = decide(docs)
    assert left == [d.text for d in docs]
    assert measured.scores["fill_lines"].tolist() == [1] * 12
    assert all("This was written by" in note for note in measured.evidence.notes)


def test_headings_tables_and_code_stay_with_what_stays(draw):
    docs = [
        Doc(
            f"## Ingredients\n{prose(draw, 30)}\n| Year | Club |\n| {i} | {word(draw)} |\n"
            f"```\nimport numpy as np\n{word(draw)}\n```\n## Menu\nOur letter comes every week.\n",
            f"https://a.example/{i}",
            "a.example",
        )
        for i in range(20)
    ]
    _, left, _ = decide(docs)
    assert sum("Our letter" in text for text in left) == 1
    assert sum("## Menu" in text for text in left) == 1
    for text in left:
        for line in ("## Ingredients", "| Year | Club |", "import numpy as np"):
            assert line in text


@pytest.mark.parametrize("indent", ["    ", "\t"])
def test_indented_code_stays_and_a_page_indented_throughout_is_none(draw, indent):
    def page(host, number, margin):
        lines = [prose(draw, 40), "", "try:", f"{indent}{word(draw)}", "except OSError:", ""]
        code = [
            lines[0],
            "",
            *(indent + line for line in lines[2:5]),
            "",
            "Our letter comes weekly.",
        ]
        text = "\n".join(margin + line for line in code)
        return Doc(text, f"https://{host}/{number}", host)

    docs = [page("a.example", i, "") for i in range(20)]
    docs += [page("b.example", i, indent) for i in range(20)]
    _, left, _ = decide(docs)
    assert all("except OSError" in text for text in left[:20])
    assert sum("Our letter" in text for text in left[:20]) == 1
    assert sum("except OSError" in text for text in left[20:]) == 1


def test_headings_without_marks_stay_over_their_paragraphs(draw):
    docs = [
        Doc(
            f"Abstract\n========\n\n{prose(draw, 40)}\n\nEarly life\n\n{prose(draw, 40)}\n\n"
            "Related\n\nMore news",
            f"https://a.example/{i}",
            "a.example",
        )
        for i in range(20)
    ]
    _, left, _ = decide(docs)
    assert all("Abstract\n========\n" in text and "Early life" in text for text in left)
    assert sum("Related" in text for text in left) == 1


def test_notice_on_ten_hosts_goes_where_it_is_seen_once(draw):
    notice = "We use cookies to make this page work as well as it can for you."
    saying = "The early bird catches the worm, as people have always said here."
    docs = [
        Doc(f"{prose(draw, 80)}\n{notice}\n{saying}", f"https://h{i}.example/", f"h{i}.example")
        for i in range(12)
    ]
    _, left, _ = decide(docs)
    assert sum(notice in text for text in left) == 1
    assert all(saying in text for text in left)


def test_hosts_of_few_pages_get_line_rules_where_asked(draw):
    told = "We use cookies to make this page work as well as it can for you."
    cut = ["Share on Facebook Twitter Pinterest", "Copyright 2024 by us, all rights reserved"]

    def pages(host, number):
        return [
            Doc(
                f"{cut[0]}\n{prose(draw, 80)}\n{told}\n\n{prose(draw, 60)}\n{cut[1]}",
                f"https://{host}/{i}",
                host,
            )
            for i in range(number)
        ]

    lone = [d for h in range(12) for d in pages(f"h{h}.example", 1)] + pages("four.example", 4)
    docs = [*lone, *pages("five.example", 5)]
    _, plain, _ = decide(docs)
    assert all(cut[0] in text for text in plain[: len(lone)])
    found, left, measured = decide(docs, Templates(lone="line_rules"))
    assert {i for i, r in found.items() if r["lone"]} == set(range(len(lone)))
    assert not any(line in text for line in cut for text in left[: len(lone)])
    assert left[len(lone) :] == plain[len(lone) :]
    assert [told in text for text in left] == [told in text for text in plain]  # as before
    names = measured.edits.reason_names
    assert {names[r] for r in measured.edits.reasons} == {"boilerplate", "notice", "share_bar"}
    _, again, _ = decide(
        [Doc(t, d.url, d.host) for t, d in zip(left, docs, strict=True)],
        Templates(lone="line_rules"),
    )
    assert again == left


def test_rows_without_host_or_url_skip_host_rules(draw):
    docs = [Doc(f"{prose(draw, 80)}\nHome About Contact", None, None) for _ in range(40)]
    _found, left, _ = decide(docs)
    assert left == [d.text for d in docs]
    pages = [Doc(filled(draw, i).text, None, None) for i in range(60)]
    _, left, _ = decide(pages)
    assert sum(t is None for t in left) == 57


@pytest.mark.parametrize(("shards", "partitions", "seed"), [(1, 1, None), (3, 5, 1), (5, 2, 2)])
def test_decisions_any_order_shards_and_partitions_the_same(shards, partitions, seed):
    draw = random.Random(3)
    docs = [filled(draw, i, own=80 * (i % 5 == 0)) for i in range(30)]
    docs += [filled(draw, i, host=f"h{i}.example") for i in range(30)]
    docs += [
        Doc(f"Home\n{prose(draw, 80)}", f"https://b.example/{i}", "b.example") for i in range(12)
    ]
    found, left, _ = decide(docs)
    again, left_again, _ = decide(docs, shards=shards, partitions=partitions, seed=seed)
    drop = ("shard", "row", "witness_shard")
    plain = [
        {i: {k: v for k, v in r.items() if k not in drop} for i, r in f.items()}
        for f in (found, again)
    ]
    assert plain[0] == plain[1]
    assert left == left_again


def host_of(pages, host="a.example"):
    return [Doc(text, f"https://{host}/{i}", host) for i, text in enumerate(pages)]


MENU = "Home | Recipes | Songs | About us"
FOOTER = "All that you read on this page may be copied by people who ask before they do."


def framed(lines):
    return "\n".join([MENU, *lines, FOOTER])


def without(text):
    return text.removeprefix(f"{MENU}\n").removesuffix(f"\n{FOOTER}").removesuffix("\n")


def assert_only_frames_go(bodies):
    _, left, _ = decide(host_of([framed(lines) for lines in bodies]))
    assert [without(text) for text in left] == ["\n".join(lines) for lines in bodies]
    assert sum(MENU in text for text in left) == 1
    assert sum(FOOTER in text for text in left) == 1


def test_lines_of_content_that_recur_stay(draw):
    usual = [f"{n} spoons of {word(draw)}" for n in range(12)]
    steps = [
        f"{x} it well, and then set it all aside."
        for x in ("Mix", "Cook", "Cool", "Fry", "Bake", "Boil")
    ]
    bodies = []
    for _ in range(60):
        mine = [*draw.sample(usual, 6), *(f"{draw.randrange(99)} of {word(draw)}" for _ in "ab")]
        both = [*draw.sample(steps, 2), prose(draw, 30), prose(draw, 30)]
        draw.shuffle(mine)
        draw.shuffle(both)
        bodies.append([prose(draw, 30), "Take", *mine, "Method", *both])
    assert_only_frames_go(bodies)


def test_refrains_and_answers_that_recur_on_a_page_stay(draw):
    refrain = ["and home they went", "home to the house by the river", "all in the early morning"]
    bodies = []
    for i in range(60):
        lines = [prose(draw, 6) for _ in range(12)]
        song = [x for k in range(0, 12, 4) for x in (*lines[k : k + 4], *refrain)]
        bodies.append(song if i % 3 == 0 else lines)
    assert_only_frames_go(bodies)


@pytest.mark.parametrize("between", [": ", "\n"])
def test_labels_stay_with_their_values(draw, between):
    bodies = []
    for _ in range(60):
        values = {label: draw.choice("abcdefgh") * 3 for label in ("Colour", "Size", "Made in")}
        facts = [f"{k}{between}{v}" for k, v in values.items() if draw.random() < 0.9]
        bodies.append([prose(draw, 60), *"\n".join(facts).split("\n"), prose(draw, 20)])
    assert_only_frames_go(bodies)


def test_sentences_in_slots_are_prose_of_the_page(draw):
    def page(i):
        said = [prose(draw, 14) for _ in range(6)]
        return "\n".join(
            f"Lot {i * 10 + k} of the sale on view: {x} Ask for it at the desk of the large house."
            for k, x in enumerate(said)
        )

    _, left, _ = decide(host_of([page(i) for i in range(40)]))
    assert None not in left
    values = [
        "\n".join(
            f"Lot {i * 10 + k} of the sale on view: {word(draw)} {word(draw)} {i * k} Ask for it "
            "at the desk of the large house."
            for k in range(6)
        )
        for i in range(40)
    ]
    _, left, _ = decide(host_of(values))
    assert sum(text is None for text in left) == 37


@pytest.mark.parametrize("first", ["ก", "ກ", "ក", "က", "ၵ", "ཀ", "一"])
def test_texts_without_spaces_under_one_template_stay(draw, first):
    letters = [chr(ord(first) + i) for i in range(14)]
    syllables = [a + b for a in letters[:8] for b in letters[8:]]
    mark = "་" if first == "ཀ" else ""

    def page(i):
        text = mark.join(draw.choice(syllables) for _ in range(300))
        return f"{filled(draw, i).text}\n{text}"

    _, left, _ = decide(host_of([page(i) for i in range(40)]))
    assert None not in left


def test_footer_that_strangers_share_makes_no_template_pages(draw):
    def page(i):
        lines = [prose(draw, 4) for _ in range(25)]
        name = word(draw).capitalize()
        footer = (
            f"This site is run by {name} and was made on day {i} of the year. Write to us at box "
            f"{i * 7} or call {i * 131} from nine to five, and name the page that you have read."
        )
        return Doc("\n".join([*lines, footer]), f"https://h{i}.example/", f"h{i}.example")

    docs = [page(i) for i in range(30)]
    _, left, _ = decide(docs)
    assert left == [d.text for d in docs]


def test_one_page_under_several_addresses_counts_once(draw):
    pages = [prose(draw, 120) + "\n" + prose(draw, 90) for _ in range(4)]
    forms = ("http://a.example/{}", "https://www.a.example/{}/", "https://A.example/{}#top")
    docs = [
        Doc(f"{text}\nRead {k} times", form.format(n), form.split("/")[2])
        for k, form in enumerate(forms * 3)
        for n, text in enumerate(pages)
    ]
    _, left, _ = decide(docs)
    assert left == [d.text for d in docs]


def test_evidence_of_a_cut_names_the_pages_that_have_it(draw):
    pages = [framed([prose(draw, 80)]) if i < 9 else prose(draw, 80) for i in range(12)]
    _, _, measured = decide(host_of(pages))
    (note,) = [
        json.loads(n)
        for r, n in zip(measured.evidence.rows, measured.evidence.notes, strict=True)
        if r == 5
    ]
    assert note["boilerplate"]["pages_of_host"] == 12
    assert note["boilerplate"]["cuts"] == [
        {"start": 0, "pages": 9},
        {"start": len(pages[5]) - len(FOOTER), "pages": 9},
    ]


def test_second_run_removes_nothing(draw):
    docs = [filled(draw, i, own=80 * (i % 3 == 0)) for i in range(30)]
    docs += [
        Doc(f"Home\n{prose(draw, 80)}\nContact us", f"https://b.example/{i}", "b.example")
        for i in range(12)
    ]
    _, left, _ = decide(docs)
    rest = [Doc(t, d.url, d.host) for t, d in zip(left, docs, strict=True) if t is not None]
    _, again, _ = decide(rest)
    assert again == [d.text for d in rest]


def test_nothing_in_nothing_out():
    assert decide([Doc("", None, None)])[1] == [""]
    assert decide([Doc("a", "https://a.example/", "a.example")])[1] == ["a"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"min_share": "half"}, "min_share is 'half'"),
        ({"line_share": 0}, "line_share is '0'"),
        ({"exemplars": 0}, "exemplars is 0, expected >= 1"),
        ({"anchors": 100_000}, "anchors is 100000, expected 4 to 1,024"),
        ({"ngram": 65}, "ngram is 65, expected 2 to 64"),
        ({"cross_share": "2"}, "cross_share is '2'"),
        ({"choice": "novel"}, "did you mean 'novelty'"),
        ({"lone": "line_rule"}, "did you mean 'line_rules'"),
    ],
)
def test_wrong_fields_are_named(fields, says):
    with pytest.raises(UsageError, match=says):
        Templates(**fields)
