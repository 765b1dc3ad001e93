"""What the template stage leaves on a page: content that recurs is no boilerplate."""

from __future__ import annotations

import json

import pytest


def test_headings_tables_and_code_stay_with_what_stays(hosts, draw):
    docs = [
        hosts.Doc(
            f"## Ingredients\n{hosts.prose(draw, 30)}\n"
            f"| Year | Club |\n| {i} | {hosts.word(draw)} |\n"
            f"```\nimport numpy as np\n{hosts.word(draw)}\n```\n"
            "## Menu\nOur letter comes every week.\n",
            f"https://a.example/{i}",
            "a.example",
        )
        for i in range(20)
    ]
    _, left, _ = hosts.decide(docs)
    assert sum("Our letter" in text for text in left) == 1
    assert sum("## Menu" in text for text in left) == 1
    for text in left:
        for line in ("## Ingredients", "| Year | Club |", "import numpy as np"):
            assert line in text


@pytest.mark.parametrize("indent", ["    ", "\t"])
def test_indented_code_stays_and_a_page_indented_throughout_is_none(hosts, draw, indent):
    def page(host, number, margin):
        lines = [
            hosts.prose(draw, 40),
            "",
            "try:",
            f"{indent}{hosts.word(draw)}",
            "except OSError:",
            "",
        ]
        code = [
            lines[0],
            "",
            *(indent + line for line in lines[2:5]),
            "",
            "Our letter comes weekly.",
        ]
        text = "\n".join(margin + line for line in code)
        return hosts.Doc(text, f"https://{host}/{number}", host)

    docs = [page("a.example", i, "") for i in range(20)]
    docs += [page("b.example", i, indent) for i in range(20)]
    _, left, _ = hosts.decide(docs)
    assert all("except OSError" in text for text in left[:20])
    assert sum("Our letter" in text for text in left[:20]) == 1
    assert sum("except OSError" in text for text in left[20:]) == 1


def test_headings_without_marks_stay_over_their_paragraphs(hosts, draw):
    docs = [
        hosts.Doc(
            f"Abstract\n========\n\n{hosts.prose(draw, 40)}\n\n"
            f"Early life\n\n{hosts.prose(draw, 40)}\n\nRelated\n\nMore news",
            f"https://a.example/{i}",
            "a.example",
        )
        for i in range(20)
    ]
    _, left, _ = hosts.decide(docs)
    assert all("Abstract\n========\n" in text and "Early life" in text for text in left)
    assert sum("Related" in text for text in left) == 1


MENU = "Home | Recipes | Songs | About us"


FOOTER = "All that you read on this page may be copied by people who ask before they do."


def framed(lines):
    return "\n".join([MENU, *lines, FOOTER])


def without(text):
    return text.removeprefix(f"{MENU}\n").removesuffix(f"\n{FOOTER}").removesuffix("\n")


def assert_only_frames_go(hosts, bodies):
    _, left, _ = hosts.decide(hosts.host_of([framed(lines) for lines in bodies]))
    assert [without(text) for text in left] == ["\n".join(lines) for lines in bodies]
    assert sum(MENU in text for text in left) == 1
    assert sum(FOOTER in text for text in left) == 1


def test_lines_of_content_that_recur_stay(hosts, draw):
    usual = [f"{n} spoons of {hosts.word(draw)}" for n in range(12)]
    steps = [
        f"{x} it well, and then set it all aside."
        for x in ("Mix", "Cook", "Cool", "Fry", "Bake", "Boil")
    ]
    bodies = []
    for _ in range(60):
        mine = [
            *draw.sample(usual, 6),
            *(f"{draw.randrange(99)} of {hosts.word(draw)}" for _ in "ab"),
        ]
        both = [*draw.sample(steps, 2), hosts.prose(draw, 30), hosts.prose(draw, 30)]
        draw.shuffle(mine)
        draw.shuffle(both)
        bodies.append([hosts.prose(draw, 30), "Take", *mine, "Method", *both])
    assert_only_frames_go(hosts, bodies)


def test_refrains_and_answers_that_recur_on_a_page_stay(hosts, draw):
    refrain = ["and home they went", "home to the house by the river", "all in the early morning"]
    bodies = []
    for i in range(60):
        lines = [hosts.prose(draw, 6) for _ in range(12)]
        song = [x for k in range(0, 12, 4) for x in (*lines[k : k + 4], *refrain)]
        bodies.append(song if i % 3 == 0 else lines)
    assert_only_frames_go(hosts, bodies)


@pytest.mark.parametrize("between", [": ", "\n"])
def test_labels_stay_with_their_values(hosts, draw, between):
    bodies = []
    for _ in range(60):
        values = {label: draw.choice("abcdefgh") * 3 for label in ("Colour", "Size", "Made in")}
        facts = [f"{k}{between}{v}" for k, v in values.items() if draw.random() < 0.9]
        bodies.append([hosts.prose(draw, 60), *"\n".join(facts).split("\n"), hosts.prose(draw, 20)])
    assert_only_frames_go(hosts, bodies)


def test_sentences_in_slots_are_prose_of_the_page(hosts, draw):
    def page(i):
        said = [hosts.prose(draw, 14) for _ in range(6)]
        return "\n".join(
            f"Lot {i * 10 + k} of the sale on view: {x} Ask for it at the desk of the large house."
            for k, x in enumerate(said)
        )

    _, left, _ = hosts.decide(hosts.host_of([page(i) for i in range(40)]))
    assert None not in left
    values = [
        "\n".join(
            f"Lot {i * 10 + k} of the sale on view: {hosts.word(draw)} {hosts.word(draw)} {i * k} "
            "Ask for it at the desk of the large house."
            for k in range(6)
        )
        for i in range(40)
    ]
    _, left, _ = hosts.decide(hosts.host_of(values))
    assert sum(text is None for text in left) == 37


@pytest.mark.parametrize("first", ["ก", "ກ", "ក", "က", "ၵ", "ཀ", "一"])
def test_texts_without_spaces_under_one_template_stay(hosts, draw, first):
    letters = [chr(ord(first) + i) for i in range(14)]
    syllables = [a + b for a in letters[:8] for b in letters[8:]]
    mark = "་" if first == "ཀ" else ""

    def page(i):
        text = mark.join(draw.choice(syllables) for _ in range(300))
        return f"{hosts.filled(draw, i).text}\n{text}"

    _, left, _ = hosts.decide(hosts.host_of([page(i) for i in range(40)]))
    assert None not in left


def test_footer_that_strangers_share_makes_no_template_pages(hosts, draw):
    def page(i):
        lines = [hosts.prose(draw, 4) for _ in range(25)]
        name = hosts.word(draw).capitalize()
        footer = (
            f"This site is run by {name} and was made on day {i} of the year. Write to us at box "
            f"{i * 7} or call {i * 131} from nine to five, and name the page that you have read."
        )
        return hosts.Doc("\n".join([*lines, footer]), f"https://h{i}.example/", f"h{i}.example")

    docs = [page(i) for i in range(30)]
    _, left, _ = hosts.decide(docs)
    assert left == [d.text for d in docs]


def test_one_page_under_several_addresses_counts_once(hosts, draw):
    pages = [hosts.prose(draw, 120) + "\n" + hosts.prose(draw, 90) for _ in range(4)]
    forms = ("http://a.example/{}", "https://www.a.example/{}/", "https://A.example/{}#top")
    docs = [
        hosts.Doc(f"{text}\nRead {k} times", form.format(n), form.split("/")[2])
        for k, form in enumerate(forms * 3)
        for n, text in enumerate(pages)
    ]
    _, left, _ = hosts.decide(docs)
    assert left == [d.text for d in docs]


def test_evidence_of_a_cut_names_the_pages_that_have_it(hosts, draw):
    pages = [framed([hosts.prose(draw, 80)]) if i < 9 else hosts.prose(draw, 80) for i in range(12)]
    _, _, measured = hosts.decide(hosts.host_of(pages))
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
