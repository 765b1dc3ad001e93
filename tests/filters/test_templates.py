"""The template stage on made-up hosts: what goes, what stays, and that nothing else bears on it."""

from __future__ import annotations

import random

import pytest

from gristmill.documents.errors import UsageError
from gristmill.documents.exchange import CuttingStage
from gristmill.filters.templates import Templates, families


def test_stage_is_one_that_cuts(hosts):
    assert isinstance(hosts.STAGE, CuttingStage)


def test_template_pages_go_but_for_exemplars(hosts, draw):
    docs = [hosts.filled(draw, i) for i in range(40)]
    found, left, measured = hosts.decide(docs)
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
def test_exemplars_number_and_choice_as_asked(hosts, draw, choice):
    docs = [hosts.filled(draw, i, own=5 * (i == 17)) for i in range(30)]
    found, left, _ = hosts.decide(docs, Templates(exemplars=1, choice=choice))
    (kept,) = [i for i, t in enumerate(left) if t is not None]
    assert found[kept]["exemplar"]
    assert kept == (0 if choice == "id" else 17)


def test_page_with_prose_of_its_own_stays_without_the_template(hosts, draw):
    docs = [hosts.filled(draw, i, own=80 if i % 4 == 0 else 20) for i in range(40)]
    found, left, _ = hosts.decide(docs)
    for i in range(0, 40, 4):
        assert left[i] is not None
        assert found[i]["own_words"] == 80
        assert docs[i].text.split("\n")[-1] in left[i]
    assert sum(t is None for t in left) == 27
    standing = "The forecast is made four times a day"
    assert sum(standing in left[i] for i in range(0, 40, 4)) <= 1  # the host's first page keeps it


def test_members_are_laid_a_bounded_number_of_bytes_at_a_time_same_results(
    hosts, draw, monkeypatch
):
    docs = [hosts.filled(draw, i, own=draw.choice([0, 20, 80, 900])) for i in range(40)]
    whole, sizes, cover = hosts.decide(docs)[:2], [], families.cover

    def seen(words, *rest):
        sizes.append((words.view.rows, int(words.view.offsets[-1] - words.view.offsets[0])))
        return cover(words, *rest)

    monkeypatch.setattr(families, "cover", seen)
    monkeypatch.setattr(families, "FETCH", 4000)
    assert hosts.decide(docs)[:2] == whole
    assert all(rows == 1 or size <= 4000 for rows, size in sizes)
    assert {rows > 1 for rows, _ in sizes} == {size > 4000 for _, size in sizes} == {True, False}
    assert sum(rows for rows, _ in sizes) > 30


def test_family_across_hosts_is_found(hosts, draw):
    docs = [hosts.filled(draw, i, host=f"h{i}.example") for i in range(30)]
    _, left, _ = hosts.decide(docs)
    assert sum(t is None for t in left) == 27


def test_family_smaller_than_asked_stays(hosts, draw):
    docs = [hosts.filled(draw, i) for i in range(9)]
    _, left, _ = hosts.decide(docs)
    assert None not in left


def test_page_crawled_ten_times_is_no_template(hosts, draw):
    pages = [hosts.prose(draw, 120) + "\n" + hosts.prose(draw, 90) for _ in range(20)]
    docs = [
        hosts.Doc(f"{text}\n{n} was seen {i} times", f"https://a.example/{n}", "a.example")
        for i in range(10)
        for n, text in enumerate(pages)
    ]
    found, left, _ = hosts.decide(docs)
    assert left == [d.text for d in docs]
    assert not any(r["code"] for r in found.values())


def test_one_text_on_many_hosts_is_left_to_the_duplicate_stages(hosts, draw):
    text = hosts.prose(draw, 200)
    docs = [
        hosts.Doc(f"{hosts.prose(draw, 8)}\n{text}", f"https://h{i}.example/", f"h{i}.example")
        for i in range(30)
    ]
    found, _left, _ = hosts.decide(docs)
    assert not any(r["code"] for r in found.values())


def test_boilerplate_lines_go_and_the_first_page_keeps_them(hosts, draw):
    lines = [
        "Home About Contact Prices Letter",
        "Sign up for our letter and get a new recipe every week.",
    ]
    docs = [
        hosts.Doc(
            "\n".join([lines[0], hosts.prose(draw, 80), lines[1]]),
            f"https://a.example/{i}",
            "a.example",
        )
        for i in range(12)
    ]
    _, left, measured = hosts.decide(docs)
    for line in lines:
        assert sum(line in text for text in left) == 1
    assert measured.edits.reason_names[0] == "boilerplate"
    assert not measured.edits.reasons.any()
    assert all(docs[i].text.split("\n")[1] in text for i, text in enumerate(left))


def test_line_on_few_pages_of_a_large_host_stays(hosts, draw):
    line = "Preheat the oven and grease the tin with a little butter."
    docs = [
        hosts.Doc(
            hosts.prose(draw, 90) + ("\n" + line if i < 6 else ""),
            f"https://a.example/{i}",
            "a.example",
        )
        for i in range(200)
    ]
    _, left, _ = hosts.decide(docs)
    assert left == [d.text for d in docs]


def test_fill_in_lines_are_marked_and_stay(hosts, draw):
    docs = [
        hosts.Doc(
            f"{hosts.prose(draw, 90)}\n"
            f"This was written by {hosts.word(draw).capitalize()} on day {i} in May",
            f"https://a.example/{i}",
            "a.example",
        )
        for i in range(12)
    ]
    _, left, measured = hosts.decide(docs)
    assert left == [d.text for d in docs]
    assert measured.scores["fill_lines"].tolist() == [1] * 12
    assert all("This was written by" in note for note in measured.evidence.notes)


def test_notice_on_ten_hosts_goes_where_it_is_seen_once_at_an_end(hosts, draw):
    notice = "We use cookies to make this page work as well as it can for you."
    saying = "The early bird catches the worm, as people have always said here."
    recipe = "The cookies will keep for a week in a tin that closes well."
    docs = [
        hosts.Doc(
            f"{notice}\n{hosts.prose(draw, 80)}\n{recipe}\n{hosts.prose(draw, 50)}\n{saying}",
            f"https://h{i}.example/",
            f"h{i}.example",
        )
        for i in range(12)
    ]
    _, left, _ = hosts.decide(docs)
    assert sum(notice in text for text in left) == 1
    assert all(saying in text and recipe in text for text in left)


def test_line_is_kept_by_a_page_that_stays(hosts, draw):
    terms = ["Terms", "Write to the office of the house before you copy what you have read on it."]
    pages = [f"{hosts.filled(draw, i).text}\n" + "\n".join(terms) for i in range(40)]
    pages += ["\n".join([hosts.prose(draw, 200), *terms]) for _ in range(6)]
    for seed in range(5):  # whichever URL has the least hash
        docs = hosts.host_of(pages, f"h{seed}.example")
        found, left, _ = hosts.decide(docs)
        keep = [i for i in range(40, 46) if all(line in left[i] for line in terms)]
        assert len(keep) == 1  # an article, which says more than the pages that are examples
        assert sum(found[i]["code"] for i in range(40)) == 37


def test_line_is_kept_by_the_page_with_most_lines_of_its_own(hosts, draw):
    menu = "Home | Recipes | Songs | About us"
    pages = [f"{menu}\n{hosts.prose(draw, 30 + 40 * (i == 7))}" for i in range(20)]
    _, left, _ = hosts.decide(hosts.host_of(pages))
    assert [i for i, text in enumerate(left) if menu in text] == [7]


def test_hosts_of_few_pages_get_line_rules_where_asked(hosts, draw):
    told = "We use cookies to make this page work as well as it can for you."
    cut = ["Share on Facebook Twitter Pinterest", "Copyright 2024 by us, all rights reserved"]

    def pages(host, number):
        return [
            hosts.Doc(
                f"{cut[0]}\n{hosts.prose(draw, 80)}\n{told}\n\n{hosts.prose(draw, 60)}\n{cut[1]}",
                f"https://{host}/{i}",
                host,
            )
            for i in range(number)
        ]

    lone = [d for h in range(12) for d in pages(f"h{h}.example", 1)] + pages("four.example", 4)
    docs = [*lone, *pages("five.example", 5)]
    _, plain, _ = hosts.decide(docs)
    assert all(cut[0] in text for text in plain[: len(lone)])
    found, left, measured = hosts.decide(docs, Templates(lone="line_rules"))
    assert {i for i, r in found.items() if r["lone"]} == set(range(len(lone)))
    assert not any(line in text for line in cut for text in left[: len(lone)])
    assert left[len(lone) :] == plain[len(lone) :]
    assert [told in text for text in left] == [told in text for text in plain]  # as before
    names = measured.edits.reason_names
    assert {names[r] for r in measured.edits.reasons} == {"boilerplate", "notice", "share_bar"}
    _, again, _ = hosts.decide(
        [hosts.Doc(t, d.url, d.host) for t, d in zip(left, docs, strict=True)],
        Templates(lone="line_rules"),
    )
    assert again == left


def test_rows_without_host_or_url_skip_host_rules(hosts, draw):
    docs = [
        hosts.Doc(f"{hosts.prose(draw, 80)}\nHome About Contact", None, None) for _ in range(40)
    ]
    _found, left, _ = hosts.decide(docs)
    assert left == [d.text for d in docs]
    pages = [hosts.Doc(hosts.filled(draw, i).text, None, None) for i in range(60)]
    _, left, _ = hosts.decide(pages)
    assert sum(t is None for t in left) == 57


@pytest.mark.parametrize(("shards", "partitions", "seed"), [(1, 1, None), (3, 5, 1), (5, 2, 2)])
def test_decisions_any_order_shards_and_partitions_the_same(hosts, shards, partitions, seed):
    draw = random.Random(3)
    docs = [hosts.filled(draw, i, own=80 * (i % 5 == 0)) for i in range(30)]
    docs += [hosts.filled(draw, i, host=f"h{i}.example") for i in range(30)]
    docs += [
        hosts.Doc(f"Home\n{hosts.prose(draw, 80)}", f"https://b.example/{i}", "b.example")
        for i in range(12)
    ]
    found, left, _ = hosts.decide(docs)
    again, left_again, _ = hosts.decide(docs, shards=shards, partitions=partitions, seed=seed)
    drop = ("shard", "row", "witness_shard")
    plain = [
        {i: {k: v for k, v in r.items() if k not in drop} for i, r in f.items()}
        for f in (found, again)
    ]
    assert plain[0] == plain[1]
    assert left == left_again


def test_second_run_removes_nothing(hosts, draw):
    docs = [hosts.filled(draw, i, own=80 * (i % 3 == 0)) for i in range(30)]
    docs += [
        hosts.Doc(
            f"Home\n{hosts.prose(draw, 80)}\nContact us", f"https://b.example/{i}", "b.example"
        )
        for i in range(12)
    ]
    _, left, _ = hosts.decide(docs)
    rest = [hosts.Doc(t, d.url, d.host) for t, d in zip(left, docs, strict=True) if t is not None]
    _, again, _ = hosts.decide(rest)
    assert again == [d.text for d in rest]


def test_nothing_in_nothing_out(hosts):
    assert hosts.decide([hosts.Doc("", None, None)])[1] == [""]
    assert hosts.decide([hosts.Doc("a", "https://a.example/", "a.example")])[1] == ["a"]


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


def test_form_at_the_foot_goes_whole_where_one_line_in_three_is_a_sentence(hosts, draw):
    lines = ["Was this page of help?", "Thank you for it", "Subject", "Choose one", "Send"]
    long = hosts.prose(draw, 38)
    for form, whole in (([long, *lines], True), ([long, long + "s", *lines[:3]], False)):
        pages = ["\n".join([hosts.prose(draw, 80), *([] if i % 3 else form)]) for i in range(60)]
        left = hosts.decide(hosts.host_of(pages))[1]
        assert sum(long in text for text in left) == (1 if whole else 20)
        assert sum("Subject" in text for text in left) == 1
