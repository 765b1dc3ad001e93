"""What the template stage leaves on a page: content that recurs is no boilerplate."""

from __future__ import annotations

import json

import pytest

from gristmill.filters.templates import Templates


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


@pytest.mark.parametrize("letter", ["", "ж", "न", "한"])
def test_sentences_of_an_unknown_language_in_slots_are_prose_and_rare_values_are_none(
    hosts, draw, letter
):
    """Words that the table does not know: as in a language some come again, as in slots none do."""
    particles = [hosts.word(draw) + letter for _ in range(40)]

    def page(i, words):
        lots = [" ".join(words() for _ in range(8)) for _ in range(14)]
        return "\n".join(
            f"Lot {i * 10 + k} of the sale on view: {x} Ask for it at the desk of the large house "
            "of the city at any time of the year."
            for k, x in enumerate(lots)
        )

    def spoken():
        return draw.choice(particles) if draw.random() < 0.4 else hosts.word(draw) * 2 + letter

    _, left, _ = hosts.decide(hosts.host_of([page(i, spoken) for i in range(40)]))
    assert None not in left
    rare = lambda: hosts.word(draw) + hosts.word(draw) + letter  # noqa: E731 - none comes again
    values = [page(i, rare) for i in range(40)]
    _, left, _ = hosts.decide(hosts.host_of(values))
    assert sum(text is None for text in left) == 37


@pytest.mark.parametrize("between", ["\n", ": "])
def test_cards_stay_where_their_values_say_much_and_go_where_they_are_single(hosts, draw, between):
    labels = [hosts.word(draw).capitalize() for _ in range(20)]

    def card(i, size):
        names = [[hosts.word(draw).capitalize() for _ in range(size)] for _ in labels]
        facts = [f"{k}{between}{' '.join(v)}" for k, v in zip(labels, names, strict=True)]
        return "\n".join([hosts.filled(draw, i).text, *facts])

    _, left, _ = hosts.decide(hosts.host_of([card(i, 4) for i in range(40)]))
    assert None not in left
    _, left, _ = hosts.decide(hosts.host_of([card(i, 1) for i in range(40)]))
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
    pages = [hosts.prose(draw, 120) + "\n" + hosts.prose(draw, 90) for _ in range(2)]
    forms = ("http://a.example/{}", "https://www.a.example/{}/", "https://A.example/{}#top")
    docs = [
        hosts.Doc(f"{text}\nRead {k} times", form.format(n), form.split("/")[2])
        for k, form in enumerate(forms * 3)
        for n, text in enumerate(pages)
    ]
    _, left, _ = hosts.decide(docs)
    assert left == [d.text for d in docs]


def test_page_of_boilerplate_alone_is_dropped_as_emptied(hosts, draw):
    pages = [framed([hosts.prose(draw, 80)]) for _ in range(20)]
    pages += [f"{MENU}\n\n* * *\n{FOOTER}", framed([]), framed(["Own."]), "* * *"]
    found, left, measured = hosts.decide(hosts.host_of(pages))
    reasons = [hosts.STAGE.reasons[code] for code in measured.scores["decision"]]
    assert reasons == ["keep"] * 20 + ["emptied"] * 2 + ["keep"] * 2
    assert not any(row["code"] for row in found.values())
    assert left[20:] == [None, None, "Own.\n", "* * *"]
    assert sum(MENU in text for text in left[:20]) == 1  # a page that stays keeps the line


def test_page_that_line_rules_empty_is_dropped(hosts):
    docs = [
        hosts.Doc("Tweet Share\n\nHome\n", "https://a.example/", "a.example"),
        hosts.Doc("Tweet Share\n", "https://b.example/", "b.example"),
    ]
    _, left, measured = hosts.decide(docs, Templates(lone="line_rules"))
    assert left == ["\nHome\n", None]
    assert measured.scores["decision"].tolist() == [0, 2]


def test_evidence_of_a_cut_names_the_pages_that_have_it(hosts, draw):
    pages = [
        framed([hosts.prose(draw, 80)]) if i < 18 else hosts.prose(draw, 80) for i in range(20)
    ]
    _, _, measured = hosts.decide(hosts.host_of(pages))
    (note,) = [
        json.loads(n)
        for r, n in zip(measured.evidence.rows, measured.evidence.notes, strict=True)
        if r == 5
    ]
    assert note["boilerplate"]["pages_of_host"] == 20
    assert note["boilerplate"]["cuts"] == [
        {"start": 0, "pages": 18},
        {"start": len(pages[5]) - len(FOOTER), "pages": 18},
    ]


def test_answers_and_labels_between_own_lines_stay(hosts, draw):
    bodies = []
    for i in range(60):
        facts = [
            x
            for label, values in (("Diet", "plants meat"), ("Status", "common rare"))
            for x in (label, draw.choice(values.split()))
        ]
        question = [hosts.prose(draw, 9), "D) All of the above", f"Answer: {draw.choice('ABC')}"]
        more = ["Why?", hosts.prose(draw, 20), "How long does it last?", draw.choice("ab") * 2]
        first = [f"Is {hosts.word(draw)} {i} safe?", draw.choice(["Yes.", "No."]), *more]
        last = [hosts.prose(draw, 20), *facts, *question, hosts.prose(draw, 20)]
        bodies.append([*first, *last])
    assert_only_frames_go(hosts, bodies)


def test_scale_below_each_question_stays(hosts, draw):
    scale = ["Agree very much", "Agree", "Neither", "Disagree", "Disagree very much"]
    bodies = [
        [x for _ in range(5) for x in (hosts.prose(draw, 9), *scale)] + [hosts.prose(draw, 12)]
        for _ in range(40)
    ]
    assert_only_frames_go(hosts, bodies)
    assert_only_frames_go(hosts, [lines[:-1] for lines in bodies])  # and above the footer


@pytest.mark.parametrize("mark", ["- ", "* ", "• ", "1. "])
def test_lists_go_whole_or_not_at_all(hosts, draw, mark):
    same = ["Heat the oven.", "Mix the flour and the salt.", "Let it all cool."]
    bodies = [
        [hosts.prose(draw, 30), *(mark + x for x in (*same, hosts.prose(draw, 8), "Serve."))]
        for _ in range(40)
    ]
    _, left, _ = hosts.decide(hosts.host_of(["\n".join(lines) for lines in bodies]))
    assert sum(mark + same[0] in text for text in left) == 1  # four of five are the host's
    for lines in bodies:
        lines.insert(2, mark + hosts.prose(draw, 7))
        lines.insert(4, mark + hosts.prose(draw, 7))
    assert_only_frames_go(hosts, bodies)


def test_clauses_between_own_paragraphs_stay(hosts, draw):
    clauses = [hosts.prose(draw, 40) for _ in range(6)]
    bodies = [[hosts.prose(draw, 50), *clauses, hosts.prose(draw, 40)] for _ in range(20)]
    assert_only_frames_go(hosts, bodies)


def test_articles_keep_the_title_and_lead_that_lists_name(hosts, draw):
    articles = [[hosts.prose(draw, n) for n in (6, 40, 50, 50)] for _ in range(20)]
    lists = [
        [hosts.prose(draw, 5), *(x for a in draw.sample(articles, 6) for x in (*a[:2], "Read on"))]
        for _ in range(20)
    ]
    assert_only_frames_go(hosts, [*articles, *lists])


def test_code_without_fences_stays(hosts, draw):
    bodies = [
        [hosts.prose(draw, 40), "#include <vector>", "using namespace std;", "int main() {",
         f"  int {hosts.word(draw)};", "}", hosts.prose(draw, 30), "import numpy as np",
         "import pandas as pd", "git clone https://a.example/x", hosts.prose(draw, 30)]
        for _ in range(20)
    ]  # fmt: skip
    assert_only_frames_go(hosts, bodies)


def test_code_that_all_pages_end_with_stays(hosts, draw):
    closing = [
        *('if __name__ == "__main__":', 'with open("out.csv") as target:', "print(x)", "run()"),
        *("SELECT name, age", "FROM Customers", "WHERE age > 3 AND city != ''", "`make install`"),
        *("conda install -c conda-forge x", "ls -l /tmp", "x += 1", "y = np.zeros((3, 4))"),
    ]
    bodies = [[hosts.prose(draw, 40), hosts.prose(draw, 30), *closing] for _ in range(20)]
    assert_only_frames_go(hosts, bodies)


CODE = [
    'if __name__ == "__main__":', 'with open("x") as f:', "SELECT a", "FROM b", "WHERE c",
    "conda install -c x y", "`the word of the day`", "ls -a x", "tar --list x", "print(x)",
    "x = 3", "std::vector<int> v", "p->next", "def_(a) -> b:",
]  # fmt: skip
CHROME = [
    "item(s)", "Cart (0)", "Cart(0)", "cart(2)", "Select a language", "SELECT YOUR LANGUAGE",
    "FROM THE BLOG", "Home -> News", "Home :: News", "Home->News", "A -Z", "Copyright(c)",
    "Use `tab` to move", "== More ==", "Home - About - Contact", "Name =",
    "part(s) of 3",
]  # fmt: skip


@pytest.mark.parametrize("top", [True, False])
@pytest.mark.parametrize("line", CODE)
def test_code_of_nearly_all_pages_stays_at_an_end_and_within(hosts, draw, line, top):
    pages = [[hosts.prose(draw, 60), line] for _ in range(20)]
    pages = ["\n".join(lines[::-1] if top else lines) for lines in pages]
    assert hosts.decide(hosts.host_of(pages))[1] == pages
    between = [hosts.prose(draw, 60) for _ in range(20)]
    pages = [f"{x}\nThen write\n{line}\nand run\n{x[::-1]}" for x in between]
    assert all(line in text for text in hosts.decide(hosts.host_of(pages))[1])


@pytest.mark.parametrize("line", CHROME)
def test_boilerplate_that_looks_a_little_like_code_goes(hosts, draw, line):
    pages = [f"{hosts.prose(draw, 60)}\n{line}" for _ in range(20)]
    assert sum(line in text for text in hosts.decide(hosts.host_of(pages))[1]) == 1


def test_programs_that_some_pages_share_stay_whole(hosts, draw):
    program = [
        *("x = 0", "while True:", "    x += 1", "    try:", "        y = f(x)", "    except:"),
        *("        y = None", "    if x > 3:", "        break", "    else:", "        print(y)"),
    ]
    pages = [
        "\n".join([hosts.prose(draw, 80), *(program if i % 3 == 0 else [])]) for i in range(30)
    ]
    assert hosts.decide(hosts.host_of(pages))[1] == pages


def test_sentences_that_fewer_than_half_of_the_pages_share_stay_at_an_end(hosts, draw):
    closing = [hosts.prose(draw, 14) for _ in range(3)]
    pages = ["\n".join([hosts.prose(draw, 80), *(closing if i % 3 else [])]) for i in range(60)]
    fewer = ["\n".join([hosts.prose(draw, 80), *([] if i % 3 else closing)]) for i in range(60)]
    assert hosts.decide(hosts.host_of(fewer))[1] == fewer
    left = hosts.decide(hosts.host_of(pages))[1]
    assert sum(closing[0] in text for text in left) == 1


def test_short_lines_in_a_row_are_the_page_s_own(hosts, draw):
    def page(i, lines):
        return hosts.filled(draw, i).text + "".join(
            f"\n{hosts.prose(draw, 4)}" for _ in range(lines)
        )

    _, left, _ = hosts.decide(hosts.host_of([page(i, 16) for i in range(40)]))
    assert None not in left
    _, left, _ = hosts.decide(hosts.host_of([page(i, 2) for i in range(40)]))
    assert sum(text is None for text in left) == 37


def test_variants_of_an_address_leave_no_shells(hosts, draw):
    forms = (
        "?utm_source={}", "?sessionid={}", "?PHPSESSID={}", ":443/", "?gclid={}", "?fbclid={}",
        ";jsessionid={}?", "?_ga=a&amp;utm_id={}", "?srsltid={}", "?_gl={}",
    )  # fmt: skip
    pages = [
        "\n".join(hosts.prose(draw, 40) for _ in range(4)) for _ in range(2)
    ]  # half of what the host has
    docs = [
        hosts.Doc(
            f"{text}\nRead {k} times",
            f"https://a.example/{n}{form.format(k)}"
            if "?" in form
            else f"https://a.example{form}{n}",
            "a.example",
        )
        for n, text in enumerate(pages)
        for k, form in enumerate(forms * 2)
    ]
    _, left, _ = hosts.decide(docs)
    assert left == [d.text for d in docs]


@pytest.mark.parametrize(
    "ends",
    [
        ("Language: C", "Language: C++", "Language: C#"),
        ("Mean in winter: -3", "Mean in winter: 3", "Mean in winter: +3"),
        ("3 * 4 =", "3 + 4 =", "3 - 4 ="),
    ],
)
def test_lines_that_signs_tell_apart_are_lines_of_their_own(hosts, draw, ends):
    pages = [f"{hosts.prose(draw, 80)}\n{ends[i % 3]}" for i in range(60)]
    assert hosts.decide(hosts.host_of(pages))[1] == pages


@pytest.mark.parametrize("share", [0.55, 0.75])
@pytest.mark.parametrize(
    ("most", "others", "top"),
    [
        ("Final decision: yes", "Final decision: no", False),
        ("Conservation status\nLeast concern", "Conservation status\nEndangered", False),
        ("Yes.", "No.", False),
        ("Our stars for it: 5 out of 5", "Our stars for it: 4 out of 5", True),
        ("Final decision of the board: yes", "Final decision of the board: no", True),
    ],
)
def test_answers_of_most_pages_stay_at_an_end_without_a_footer(
    hosts, draw, share, most, others, top
):
    pages = []
    for i in range(60):
        said, body = most if i < 60 * share else others, hosts.prose(draw, 80)
        pages.append(f"{said}\n{body}" if top else f"{body}\n{said}")
    assert hosts.decide(hosts.host_of(pages))[1] == pages


def test_warnings_of_a_few_pages_stay_at_the_foot(hosts, draw):
    kinds = [[hosts.prose(draw, 9) for _ in range(3)] for _ in range(6)]
    pages = ["\n".join([hosts.prose(draw, 80), *kinds[i % 6]]) for i in range(60)]
    assert hosts.decide(hosts.host_of(pages))[1] == pages


def test_menu_under_a_menu_goes_in_the_same_run(hosts, draw):
    """What a cut leaves at the head is cut at once, or a second run would."""
    menu = [
        "Home News About Contact Help",
        "Search Shop Cart Offers Login",
        "Songs of the last month",
    ]
    below = "Subscribe to the letter of the week and read what our editors like most of all"
    pages = [
        "\n".join([*menu, *[below] * (i % 5 < 3), hosts.prose(draw, 80)]) for i in range(60)
    ]  # three in five have it, so that it is no part of the menu above
    once = hosts.decide(hosts.host_of(pages))[1]
    assert [sum(line in text for text in once) for line in (*menu, below)] == [1, 1, 1, 1]
    assert hosts.decide(hosts.host_of(once))[1] == once
