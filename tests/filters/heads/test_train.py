"""From labelled pages to a model, a card and figures; each step once more gives the same bytes."""

from __future__ import annotations

import csv
import json
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest

from gristmill.documents.errors import UsageError
from gristmill.filters._cards import read_card
from gristmill.filters._reading import read
from gristmill.filters.fasttext import load
from gristmill.filters.fasttext.parse import parse
from gristmill.filters.heads import commands, fit
from gristmill.filters.heads.annotate import digest_of
from gristmill.filters.heads.card import render
from gristmill.filters.heads.data import read_recipe
from gristmill.filters.heads.features import Tokens, fnv
from gristmill.filters.heads.train import cross_fit
from gristmill.filters.quality import Quality

LESSON = ("proof", "because", "energy", "theorem", "cell", "molecule", "explains", "therefore")
SHOP = ("buy", "cart", "now", "sale", "deal", "order", "price", "free")


def quiet(line):
    pass


def trained(folder, where, head="edu"):
    commands.train(folder / f"{head}.yaml", folder, where / f"{head}.bin", quiet)
    commands.quantize(where / f"{head}.bin", where / f"{head}.ftz")
    return where / f"{head}.bin", where / f"{head}.ftz"


@pytest.mark.parametrize("head", ["edu", "kind"])
def test_train_twice_gives_the_same_bytes(folder, tmp_path, head):
    one, two = (trained(folder, tmp_path / n, head) for n in "ab")
    for a, b in zip(one, two, strict=True):
        assert a.read_bytes() == b.read_bytes()


@pytest.mark.parametrize("head", ["edu", "kind"])
def test_model_is_read_alike_by_the_library(folder, tmp_path, head):
    fasttext = pytest.importorskip("fasttext")
    recipe, texts = commands.read(folder / f"{head}.yaml", folder)
    _, path = trained(folder, tmp_path, head)
    model, library = load(path), fasttext.load_model(str(path))
    column = read(pa.array(texts.texts[:40], pa.large_string()), recipe.reads)
    for row, text in zip(model.probabilities(column), column.to_pylist(), strict=True):
        names, chances = library.predict(text, k=-1)
        theirs = {n.removeprefix("__label__"): c for n, c in zip(names, chances, strict=True)}
        expected = [theirs[label] for label in model.labels]
        np.testing.assert_allclose(row, expected, atol=2e-4)  # float32 sums, 1e-5 added


def test_quantized_head_ranks_as_the_dense_one(folder, tmp_path):
    dense, small = trained(folder, tmp_path)
    recipe, texts = commands.read(folder / "edu.yaml", folder)
    column = read(pa.array(texts.texts, pa.large_string()), recipe.reads)
    a, b = (load(p).probabilities(column) @ np.arange(4) for p in (dense, small))
    assert np.abs(a - b).max() < 0.05


def test_cross_fit_judges_no_page_by_a_model_that_saw_its_site(folder, tmp_path, monkeypatch):
    from gristmill.filters.heads import train as module

    recipe, data = commands.read(folder / "edu.yaml", folder)
    seen = []
    real = module.train

    def spy(part, *rest):
        seen.append(set(part.sites.tolist()))
        return real(part, *rest)

    monkeypatch.setattr(module, "train", spy)
    cross_fit(data, recipe, data.sites, 3, tmp_path)
    fold = fit.folds(data.sites, 3)
    for k, sites in zip(sorted(set(fold.tolist())), seen, strict=True):
        assert sites.isdisjoint(data.sites[fold == k].tolist())
        assert sites == set(data.sites[fold != k].tolist())


def test_folds_stay_when_other_sites_come():
    few = fit.folds(np.array(["a", "b", "b"]), 5)
    more = fit.folds(np.array(["a", "b", "b", "c", "d"]), 5)
    assert few.tolist() == more[:3].tolist()


def test_evaluate_and_card_say_the_same(folder, tmp_path):
    _, small = trained(folder, tmp_path)
    found = commands.evaluate(folder / "edu.yaml", small, folder, None, quiet)
    again = commands.evaluate(folder / "edu.yaml", small, folder, None, quiet)
    assert json.dumps(found) == json.dumps(again)
    rows = {row["model"]: row for row in found["ladder"]}
    assert rows["constant"]["auc"] < 0.6
    assert rows["head, quantized"]["auc"] > 0.85
    assert len(found["canaries"]) == 12
    text = render(found)
    assert f"{rows['head, quantized']['auc']:.3f}" in text
    assert "not** training" in text
    assert "Who gave the labels is not stated." in text
    stated = found | {"recipe": found["recipe"] | {"labelled_by": "two readers"}}
    assert "The labels were given by two readers." in render(stated)
    assert "nan" not in text.lower().replace("finance", "")


def test_evaluate_refuses_a_model_of_other_labels(folder, tmp_path):
    _, small = trained(folder, tmp_path, "kind")
    with pytest.raises(UsageError, match="labels lesson, shop; the recipe's: 0, 1, 2, 3"):
        commands.evaluate(folder / "edu.yaml", small, folder, None, quiet)


def test_evaluate_refuses_a_model_of_other_grades_under_the_same_labels(folder, tmp_path):
    (tmp_path / "pages.jsonl").write_bytes((folder / "pages.jsonl").read_bytes())
    head, *rows = (folder / "pages.csv").read_text().splitlines()
    other = [f"{row[:-1]}{3 - int(row[-1])}" for row in rows]
    (tmp_path / "pages.csv").write_text("\n".join([head, *other]) + "\n")
    (tmp_path / "edu.yaml").write_bytes((folder / "edu.yaml").read_bytes())
    _, small = trained(tmp_path, tmp_path)
    with pytest.raises(UsageError, match="of another head"):
        commands.evaluate(folder / "edu.yaml", small, folder, None, quiet)


def test_evaluate_refuses_a_truncated_model(folder, tmp_path):
    dense, small = trained(folder, tmp_path)
    for path in (dense, small):
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(UsageError, match="truncated"):
            commands.evaluate(folder / "edu.yaml", path, folder, None, quiet)
    with pytest.raises(UsageError, match="truncated"):
        commands.quantize(dense, tmp_path / "again.ftz")


def few(where, rows, more=""):
    lines = [json.dumps({"id": f"p{i}", "text": text}) for i, (_, _, text) in enumerate(rows)]
    (where / "pages.jsonl").write_text("\n".join(lines) + "\n")
    labels = [f"p{i},{site},{label}" for i, (site, label, _) in enumerate(rows)]
    (where / "pages.csv").write_text("\n".join(["id,site,edu", *labels]) + "\n")
    (where / "edu.yaml").write_text(
        "texts: pages.jsonl\nlabels: pages.csv\nhead: edu\nlabel: edu\npositive: 1\n" + more
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("one", i % 3, f"proof {i} buy") for i in range(40)], "40 texts of 1 sites: without one"),
        ([(f"s{i}", i % 3, "") for i in range(40)], "no word stands in"),
        ([("a", 0, "buy now"), ("b", 1, "a proof of it")] * 2, "is left to learn from"),
    ],
)
def test_train_names_what_texts_lack(tmp_path, rows, message):
    few(tmp_path, rows)
    with pytest.raises(UsageError, match=message):
        commands.train(tmp_path / "edu.yaml", tmp_path, tmp_path / "edu.bin", quiet)


def test_few_texts_make_a_head_with_figures_or_one_line(tmp_path):
    words, made = [*LESSON, *SHOP], 0
    for seed in range(24):
        draw = np.random.default_rng(seed)
        rows = [
            (f"s{draw.integers(1 + seed)}", draw.integers(3), " ".join(draw.choice(words, seed)))
            for _ in range(int(draw.integers(2, 30)))
        ]
        few(tmp_path, rows, "at_least: 1\nbucket: 1024\n")
        with suppress(UsageError):
            _, small = trained(tmp_path, tmp_path)
            found = commands.evaluate(tmp_path / "edu.yaml", small, tmp_path, None, quiet)
            assert len(found["ladder"]) == 6
            made += 1
    assert made > 8


def test_train_joins_what_annotate_wrote_by_site_host_or_id(folder, tmp_path):
    rows = list(csv.DictReader((folder / "pages.csv").read_text().splitlines()))
    texts = [json.loads(x) for x in (folder / "pages.jsonl").read_text().splitlines()]
    for row, text in zip(rows, texts, strict=True):
        text["url"] = f"https://{row['site']}/{row['id']}?from=https://other.example/"
    answers = [
        {"id": r["id"], "text_sha256": digest_of(t["text"]), "asked": "", "edu": int(r["edu"])}
        for r, t in zip(rows, texts, strict=True)
    ]
    first = [{"id": rows[0]["id"], "failed": "status 500"}, {"id": "late", "failed": "no answer"}]
    first.append({"id": "changed", "text_sha256": digest_of("before"), "edu": 3})
    texts += [{"id": name, "text": "buy"} for name in ("late", "changed", "not asked")]
    for name, lines in (("pages.jsonl", texts), ("labels.jsonl", [*first, *answers])):
        (tmp_path / name).write_text("".join(json.dumps(x) + "\n" for x in lines))
    (tmp_path / "edu.yaml").write_text(
        (folder / "edu.yaml").read_text().replace("labels: pages.csv", "labels: labels.jsonl")
    )
    said = []
    commands.train(tmp_path / "edu.yaml", tmp_path, tmp_path / "edu.bin", said.append)
    assert "left out: 3 texts without a label" in said[-1]
    (tmp_path / "by_hand").mkdir()
    other, _ = trained(folder, tmp_path / "by_hand")
    assert (tmp_path / "edu.bin").read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "pages.csv",
            '{"id": "p0", "edu": 1}\n{"id": "p1", "edu": 2}\n',
            "expected CSV with a head",
        ),
        ("labels.jsonl", "id,site,edu\np0,a,1\n", "expected a line of `quality annotate`"),
        ("labels.jsonl", '{"id": "p0", "fun": 1}\n', "'id' and 'edu'"),
        ("labels.jsonl", '{"id": "p0", "failed": "no answer"}\n', "no label of the texts in"),
    ],
)
def test_labels_of_the_other_form_are_named(folder, tmp_path, name, text, message):
    (tmp_path / "pages.jsonl").write_bytes((folder / "pages.jsonl").read_bytes())
    (tmp_path / name).write_text(text)
    recipe = (folder / "edu.yaml").read_text().replace("labels: pages.csv", f"labels: {name}")
    (tmp_path / "edu.yaml").write_text(recipe)
    with pytest.raises(UsageError, match=message):
        commands.train(tmp_path / "edu.yaml", tmp_path, tmp_path / "edu.bin", quiet)


def test_evaluate_takes_a_model_of_labels_that_cannot_be_learnt(tmp_path):
    draw = np.random.default_rng(0)  # its model ranks its own texts backwards
    words = [*LESSON, *SHOP]
    few(
        tmp_path,
        [(f"s{i}", draw.integers(3), " ".join(draw.choice(words, 40))) for i in range(57)],
        "at_least: 1\nbucket: 1024\n",
    )
    _, small = trained(tmp_path, tmp_path)
    assert commands.evaluate(tmp_path / "edu.yaml", small, tmp_path, None, quiet)["ladder"]


def test_evaluate_names_the_kinds(folder, tmp_path):
    _, small = trained(folder, tmp_path, "kind")
    found = commands.evaluate(folder / "kind.yaml", small, folder, None, quiet)
    assert found["ladder"][-1]["accuracy"] > found["ladder"][0]["accuracy"] + 0.2
    assert "## By label" in render(found)


def test_evaluate_held_back_pages_count_sites_seen_before(folder, tmp_path):
    _, small = trained(folder, tmp_path)
    held = (folder / "pages.jsonl", folder / "pages.csv")
    found = commands.evaluate(folder / "edu.yaml", small, folder, held, quiet)
    assert found["held_back"]["shared_sites"] == 180
    assert found["held_back"]["gain_over_tfidf"]["auc_95"][0] <= 0.0  # a ridge that saw them all
    assert "paired" in render(found)


@pytest.mark.parametrize("head", ["edu", "kind"])
def test_calibrate_writes_the_card_that_the_stage_reads(folder, tmp_path, head):
    _, small = trained(folder, tmp_path, head)
    found = commands.evaluate(folder / f"{head}.yaml", small, folder, None, quiet)
    (tmp_path / "figures.json").write_text(json.dumps(found))
    commands.calibrate(tmp_path / "figures.json", small)
    card = read_card(small, load(small).labels)
    batch = pa.RecordBatch.from_pydict(
        {"text": pa.array([" ".join(LESSON), " ".join(SHOP)], pa.large_string())}
    )
    scores = Quality(models=(small,), min_words=0).measure(batch).scores
    if head == "kind":
        assert card.values is None
        assert scores["kind"].tolist() == [b"lesson", b"shop"]
    else:
        assert len(card.cut_points) == 19
        assert scores["edu_bucket"][0] > scores["edu_bucket"][1]


def test_quantized_end_of_text_keeps_its_weight(folder, tmp_path):
    dense, small = (parse(path).input.whole()[0] for path in trained(folder, tmp_path))
    assert np.array_equal(dense, small)


def test_head_is_asked_of_what_its_recipe_reads(folder, tmp_path):
    (tmp_path / "edu.yaml").write_text((folder / "edu.yaml").read_text() + "reads: 0\n")
    for reads, recipe in ((6000, folder / "edu.yaml"), (0, tmp_path / "edu.yaml")):
        where = tmp_path / str(reads)
        commands.train(recipe, folder, where / "edu.bin", quiet)
        commands.quantize(where / "edu.bin", where / "edu.ftz")
        found = commands.evaluate(recipe, where / "edu.ftz", folder, None, quiet)
        (where / "figures.json").write_text(json.dumps(found))
        commands.calibrate(where / "figures.json", where / "edu.ftz")
        shouted = "PROOF, BECAUSE ENERGY! " * 3 + "theorem " * 50
        batch = pa.RecordBatch.from_pydict({"text": pa.array([shouted], pa.large_string())})
        score = Quality(models=(where / "edu.ftz",)).measure(batch).scores["edu_score"][0]
        column = read(batch["text"], reads) if reads else batch["text"]
        chances = load(where / "edu.ftz").probabilities(column)
        assert score == pytest.approx(float(chances[0] @ np.arange(4)), abs=1e-6)


def test_quantize_refuses_a_model_that_is_quantized(folder, tmp_path):
    _, small = trained(folder, tmp_path)
    with pytest.raises(UsageError, match=r"expected the \.bin"):
        commands.quantize(small, tmp_path / "again.ftz")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bukcet: 5", r"unknown key 'bukcet'; did you mean 'bucket'"),
        ("bucket: many", r"bucket: expected int, found 'many'"),
        ("ridge: 0", r"ridge: cannot be 0"),
        ("reads: 2", r"reads: cannot be 2"),
        ("kind: ordinal", r"kind: cannot be 'ordinal'"),
    ],
)
def test_recipe_with_a_fault_names_it(tmp_path, line, message):
    path = tmp_path / "r.yaml"
    path.write_text("head: x\ntexts: t\nlabels: l\nlabel: y\n" + line + "\n")
    with pytest.raises(UsageError, match=message):
        read_recipe(path)


def test_recipe_without_a_key_names_it(tmp_path):
    (tmp_path / "r.yaml").write_text("head: x\n")
    with pytest.raises(UsageError, match="'texts'"):
        read_recipe(tmp_path / "r.yaml")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("id,site,edu\np000,s,1\n", "179 ids stand in one alone"),
        ("id,site,edu\np000,s,\n", "no 'edu'"),
        ("id,site,edu\n" + "".join(f"p{n:03},s,2\n" for n in range(180)), "the same label"),
        ("id,site,edu\n" + "".join(f"p{n:03},s,x{n}\n" for n in range(180)), "whole numbers"),
    ],
)
def test_labels_with_a_fault_are_refused(folder, tmp_path, labels, message):
    for name in ("pages.jsonl", "edu.yaml"):
        (tmp_path / name).write_text((folder / name).read_text())
    (tmp_path / "pages.csv").write_text(labels)
    with pytest.raises(UsageError, match=message):
        commands.read(tmp_path / "edu.yaml", tmp_path)


def test_tokens_are_what_stands_between_blanks():
    tokens = Tokens()
    assert tokens.read("a\tb\n\na\0b  ").tolist() == [0, 1, 0, 1, 2]
    assert list(tokens.number) == ["a", "b", "</s>"]


def test_hash_widens_signed_bytes_as_the_library_does():
    assert fnv(b"") == 2166136261
    assert fnv(b"a") == 0xE40C292C  # FNV-1a of "a"
    assert fnv("é".encode()) != 0
    assert fnv(b"\xc3") == ((2166136261 ^ 0xFFFFFFC3) * 16777619 & 0xFFFFFFFF)
