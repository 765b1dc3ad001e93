from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from gristmill.documents.errors import ContractError, UsageError
from gristmill.mixing import MixSpec, Plan, compile_plan
from gristmill.mixing.account import DIMENSIONS, account, rolled
from gristmill.mixing.usage import window_counts


@pytest.fixture(scope="module", name="plan")
def plan_fixture(naive, tmp_path_factory):
    tools = naive("naive_mixing")
    folder = tmp_path_factory.mktemp("account")
    catalog, digests = tools.make_corpus(folder / "tokens", tools.mixed_documents())
    spec = MixSpec.parse(tools.THREE_STAGES)
    name = compile_plan(
        catalog, spec, tokens_digests=digests, tokenizer_digest=tools.TOKENIZER, out=folder
    )
    return Plan.open(folder / name)


def counted(plan, end=None):
    """The accounts by walking every token of every position: {(stage, slice, source): row}."""
    end = plan.positions if end is None else end
    times = Counter()
    cells: dict[tuple, Counter] = {}
    epochs: dict[tuple, set] = {}
    for k, stage in enumerate(plan.stages):
        by_slice = {lane: [] for lane in stage.lanes}
        for row in plan.rows(min(stage.first, end), min(stage.first + stage.windows, end)).tolist():
            by_slice[row[3]].append(row[5])
        for lane, windows in by_slice.items():
            before = dict(times)
            for window in windows:
                pieces = plan.window_pieces(lane, window).tolist()
                head = (k, lane, int(plan.document_sources[pieces[0][0]]))
                cell = cells.setdefault(head, Counter())
                cell["windows"] += 1
                cell["padding_tokens"] += stage.sequence_length - sum(p[2] for p in pieces)
                for document, start, length in pieces:
                    key = (k, lane, int(plan.document_sources[document]))
                    cell = cells.setdefault(key, Counter())
                    cell["real_tokens"] += length
                    cell["fragments"] += 1
                    ends = start + length == int(plan.documents[document, 2])
                    cell["special_tokens"] += ends
                    for i in range(start, start + length):
                        token = (document, i)
                        cell["unique_tokens"] += token not in before and times[token] == 0
                        times[token] += 1
        for lane in stage.lanes:
            for document in np.unique(plan.pieces[lane][:, 0]).tolist():
                key = (k, lane, int(plan.document_sources[document]))
                tokens = range(int(plan.documents[document, 2]))
                epochs.setdefault(key, set()).add(max(times[document, i] for i in tokens))
    return cells, epochs


@pytest.mark.parametrize("end", [None, 0, 1, 16, 100, 120, 121, 149, 167, 190])
def test_account_equals_counting_every_token(plan, end):
    cells, epochs = counted(plan, end)
    books = account(plan, end=end)
    seen = set()
    for row in books.to_pylist():
        k = [s.name for s in plan.stages].index(row["stage"])
        stage = plan.stages[k]
        lane = stage.lanes[stage.slices.index(row["slice"])]
        key = (k, lane, plan.sources.index(row["source"]))
        seen.add(key)
        names = ["windows", "real_tokens", "padding_tokens", "special_tokens", "unique_tokens"]
        names += ["fragments"]
        expected = cells.get(key, Counter())
        assert {n: row[n] for n in names} == {n: expected[n] for n in names}
        assert row["repeated_tokens"] == row["real_tokens"] - row["unique_tokens"]
        assert row["epochs_max"] == max(epochs[key])
    assert set(cells) <= seen


@pytest.mark.parametrize("end", [None, 130])
def test_account_cube_tells_documents_apart_and_rolls_up_to_the_account(plan, end):
    cube = account(plan, by=list(DIMENSIONS), end=end)
    for by in ([], ["source"], ["language", "length_bucket"]):
        whole = account(plan, by=by, end=end)
        key = [(name, "ascending") for name in ("stage", "slice", "sequence_length", *by)]
        assert rolled(cube, by).sort_by(key).equals(whole.sort_by(key))
    documents = plan.documents[:, 2]
    for row in cube.to_pylist():
        low, high = 2.0 ** (row["length_bucket"] - 1), 2 ** row["length_bucket"]
        lane = next(n for n, lane in enumerate(plan.lanes) if lane.slice == row["slice"])
        mine = [
            int(documents[d])
            for d in np.unique(plan.pieces[lane][:, 0]).tolist()
            if low < documents[d] <= high
            and plan.sources[plan.document_sources[d]] == row["source"]
            and ("eng_Latn", "deu_Latn", None)[d % 3] == row["language"]
        ]
        assert row["held_tokens"] == sum(mine)
        assert row["documents"] <= len(mine)
        assert row["license"] == ("mit" if row["source"] == "code" else None)
        assert row["page_format"] is row["quality_bucket"] is row["dump"] is None


def test_account_wrong_dimension_or_position_is_named(plan):
    with pytest.raises(UsageError, match="no dimension 'sorce'; did you mean 'source'"):
        account(plan, by=["sorce"])
    with pytest.raises(UsageError, match="position 191 is outside plan"):
        account(plan, end=191)


def test_account_reconciles_to_the_token(plan):
    books = account(plan).to_pylist()
    for stage in plan.stages:
        mine = [r for r in books if r["stage"] == stage.name]
        assert sum(r["windows"] for r in mine) == stage.windows
        total = sum(r["real_tokens"] + r["padding_tokens"] for r in mine)
        assert total == stage.windows * stage.sequence_length


@pytest.mark.parametrize(
    ("piece", "change", "words"),
    [
        ((7, 2), -1, "its windows hold 13019 tokens"),  # a token lost from a window
        ((8, 1), 1, "1 runs of them twice"),  # a piece that reads into the next
    ],
)
def test_account_pieces_that_do_not_tile_are_a_contract_error(
    plan, monkeypatch, piece, change, words
):
    pieces = np.array(plan.pieces[0]).astype(np.int64)
    pieces[piece] += change
    monkeypatch.setattr(plan, "pieces", [pieces, *plan.pieces[1:]])
    with pytest.raises(ContractError, match=words):
        account(plan)


def test_account_ledger_that_is_off_by_one_is_a_contract_error(plan, monkeypatch):
    ledger = np.array(plan.ledgers[1])
    ledger[-1, 0] += 1  # a window more than stage 1 has positions
    monkeypatch.setattr(plan, "ledgers", [plan.ledgers[0], ledger, *plan.ledgers[2:]])
    with pytest.raises(ContractError, match="stage 'long_context': its ledger gives 31 windows"):
        account(plan)


@pytest.mark.parametrize("spread", [(0, 0), (0, 5), (3, 4), (5, 44), (44, 88), (43, 200), (7, 500)])
def test_window_counts_equal_walking(plan, spread):
    lane = plan.lanes[2]
    counts = Counter()
    for ordinal in range(*spread):
        epoch, r = divmod(ordinal, lane.windows)
        counts[lane.order(plan.seed, epoch).forward(r)] += 1
    found = window_counts(plan.seed, lane, *spread).tolist()
    assert found == [counts[w] for w in range(lane.windows)]
