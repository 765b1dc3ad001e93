"""Hand-written books that balance, and each way in which they can fail to."""

from __future__ import annotations

import copy

import pytest

from gristmill.documents.errors import ContractError, UsageError
from gristmill.ledger.balance import imbalances
from gristmill.ledger.funnel import ask, by, funnel
from gristmill.ledger.writer import connect, fill, write_ledger


def flow(pass_name, position, stage, account, reason, documents, size, tokens):
    return [pass_name, position, stage, "web", None, "", account, reason, documents, size, tokens]


BOOKS = {
    "runs": [["small", "r" * 32, "m" * 32, None, "0.1.0"]],
    "sources": [["web", None, None, 0, 0.0, 0.9]],
    "shards": [
        ["web-1", "web", "done", None, 400, 1000, 10, 800],
        ["web-2", "web", "duplicate_input", "web-1", 400, None, None, None],
    ],
    "reads": [
        ["web-1", "web", "in", "", "", None, 1000],
        ["web-1", "web", "kept", "", "", 10, 900],
        ["web-1", "web", "skipped", "", "warcinfo", 1, 60],
        ["web-1", "web", "lost", "fault", "bad_framing", 1, 40],
    ],
    "losses": [["web-1", "web", "a.warc", 7, 0, 40, "fault", "bad_framing", "no header", None]],
    "flow": [
        flow("read", 0, "read", "kept", "", 10, 800, 200),
        flow("base", 1000, "clean", "in", "", 10, 800, 200),
        flow("base", 1000, "clean", "stripped", "citation", 2, 60, 11),
        flow("base", 1000, "clean", "added", "mask", 1, 10, 3),
        flow("base", 1000, "clean", "dropped", "short", 3, 150, 42),
        flow("base", 1000, "clean", "kept", "", 7, 600, 150),
        flow("corpus", 2000, "corpus", "in", "", 7, 600, 150),
        flow("corpus", 2000, "corpus", "kept", "", 7, 600, 150),
    ],
    "tokens": [["web-1", "web", 7, 150, 7, 0, 600]],
    "clusters": [["near_duplicates", 2, 1, 1]],
    "slices": [["web", None, "eng_Latn", None, "forum", 3, 5, 7, 600, 157]],
    "plan": [["p", 0, "base", "all", "web", 16, 10, 157, 3, 0, 7, 150, 157, 0, 157, 7, 9, 1.0, 1]],
    "cube": [["p", 0, "base", "all", "web", None, "eng_Latn", None, "forum", 3, 5,
              16, 10, 157, 3, 0, 7, 150, 157, 0, 157, 7, 9, 1.0, 1]],
    "served": [[5, "p", 0, "base", "all", "web", 16, 5, 78, 2, 0, 3, 75, 78, 0, 157, 4, 5, 0.5, 1]],
    "plan_stages": [["p", 0, "base", 10, 16, 160]],
    "speed": [["read", "", 1, 0.5, 0.4, 400, 0, None]],
}  # fmt: skip


def books(change=None):
    tables = copy.deepcopy(BOOKS)
    if change:
        change(tables)
    con = connect()
    fill(con, tables)
    return con


def test_books_that_balance_have_no_imbalance():
    assert imbalances(books()) == []


DAMAGE = "lost as fault bad_framing"


def bump(table, row, column, by=1):
    def change(tables):
        tables[table][row][column] += by

    return change


@pytest.mark.parametrize(
    ("change", "check", "stage", "unit", "difference"),
    [
        (bump("reads", 0, 6), "read", "read/web-1", "decoded bytes", -1),
        (bump("reads", 1, 6), "read", "read/web-1", "decoded bytes", 1),
        (bump("reads", 2, 6), "read", "read/web-1", "decoded bytes", 1),
        (bump("losses", 0, 5), "losses", "read/web-1", f"decoded bytes {DAMAGE}", 1),
        (bump("reads", 3, 5), "losses", "read/web-1", f"records {DAMAGE}", -1),
        (bump("shards", 0, 6), "read", "read/read", "documents", -1),
        (bump("shards", 0, 7), "read", "read/read", "bytes", -1),
        (bump("flow", 2, 9), "flow", "base/clean", "bytes", 1),
        (bump("flow", 2, 10), "flow", "base/clean", "tokens", 1),
        (bump("flow", 3, 9), "flow", "base/clean", "bytes", -1),
        (bump("flow", 3, 10, -1), "flow", "base/clean", "tokens", 1),
        (bump("flow", 4, 8), "flow", "base/clean", "documents", 1),
        (bump("flow", 4, 10, -1), "flow", "base/clean", "tokens", -1),
        (bump("flow", 0, 10), "chain", "base/clean after read/read", "tokens", -1),
        (bump("flow", 0, 8), "chain", "base/clean after read/read", "documents", -1),
        (bump("tokens", 0, 3), "tokens", "corpus/tokens", "tokens", 1),
        (bump("tokens", 0, 2), "tokens", "corpus/tokens", "documents", 1),
        (bump("tokens", 0, 6), "tokens", "corpus/tokens", "bytes", 1),
        (bump("slices", 0, 9), "slices", "corpus/slices", "tokens", 1),
        (bump("slices", 0, 7), "slices", "corpus/slices", "documents", 1),
        (bump("slices", 0, 8), "slices", "corpus/slices", "bytes", 1),
        (bump("plan", 0, 8), "plan", "base", "tokens", 1),
        (bump("plan", 0, 6), "plan", "base", "windows", 1),
        (bump("plan", 0, 13), "plan", "base/all", "tokens read again or first", 1),
        (bump("cube", 0, 17), "cube", "base/all", "loss_tokens", 1),
        (bump("cube", 0, 21), "cube", "base/all", "documents", 1),
        (bump("served", 0, 7, 6), "served", "base/all", "tokens at most", -80),
    ],
)  # fmt: skip
def test_one_too_many_is_named_with_stage_source_and_difference(
    change, check, stage, unit, difference
):
    found = [
        i for i in imbalances(books(change)) if (i.check, i.stage, i.unit) == (check, stage, unit)
    ]
    assert [i.difference for i in found] == [difference]
    assert f"{difference:+,}" in str(found[0])
    assert found[0].source in str(found[0])


@pytest.mark.parametrize("row", [1, 5, 6])
def test_missing_rows_of_a_stage_are_an_imbalance(row):
    assert imbalances(books(lambda t: t["flow"].pop(row)))


def test_missing_token_shard_is_an_imbalance():
    assert imbalances(books(lambda t: t["tokens"].clear()))


def test_missing_loss_rows_are_an_imbalance():
    found = imbalances(books(lambda t: t["losses"].clear()))
    assert {i.check for i in found} == {"losses"}


def test_funnel_counts_down_over_all_sources():
    columns, rows = funnel(books())
    assert columns == ["pass", "stage", "documents", "bytes", "tokens", "documents_dropped"]
    assert rows == [("read", "read", 10, 800, 200, 0), ("base", "clean", 7, 600, 150, 3)]


def test_by_sums_the_flow():
    assert by(books(), ["stage", "reason"]).rows == [
        ("clean", "citation", 0, 0, 0, 60, 11),
        ("clean", "mask", 0, 0, 0, 0, 0),
        ("clean", "short", 3, 150, 42, 0, 0),
    ]
    assert by(books(), ["stage", "account"]).rows[0] == ("read", "kept", 10, 800, 200)
    columns, rows = by(books(), ["source", "stage"])
    row = dict(zip(columns, rows[1], strict=True))
    assert row["stage"] == "clean"
    assert (row["tokens_in"], row["tokens_kept"], row["tokens_dropped"]) == (200, 150, 42)


def test_by_unknown_column_names_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'source'"):
        by(books(), ["sorce"])


def test_ask_wrong_sql_is_wrong_use():
    with pytest.raises(UsageError, match=r"tables: .*flow"):
        ask(books(), "SELECT * FROM flows")


def test_unknown_count_stays_unknown():
    rows = ask(books(), "SELECT decoded_bytes, documents FROM shards WHERE shard = 'web-2'").rows
    assert rows == [(None, None)]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"flows": []}, "did you mean 'flow'"),
        ({"tokens": [["web-1", "web", 1]]}, "got a row"),
        ({"tokens": [["web-1", "web", 1, 2, None, 0, 4]]}, "NOT NULL"),
        ({"tokens": [["web-1", "web", 1, 2, "many", 0, 4]]}, "tokens"),
    ],
)
def test_fill_refuses_rows_that_do_not_fit(tables, message):
    with pytest.raises(ContractError, match=message):
        fill(connect(), tables)


def test_write_ledger_makes_a_file_that_reads_back(tmp_path):
    write_ledger(tmp_path / "ledger.duckdb", BOOKS)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ledger.duckdb"]
    con = connect(tmp_path / "ledger.duckdb", read_only=True)
    assert con.execute("SELECT count(*) FROM flow").fetchall() == [(8,)]
    assert imbalances(con) == []
    con.close()
