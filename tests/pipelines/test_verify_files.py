"""Verify finds nothing wrong with a run, and names any file that is damaged, missing or stale."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gristmill.documents.errors import UsageError
from gristmill.documents.fingerprint import canonical
from gristmill.pipelines.run import Run, open_run
from gristmill.pipelines.store import Store
from gristmill.pipelines.verify import check_bytes, notes, verify, verify_folder


@pytest.fixture(scope="module")
def shared(small_run, tmp_path_factory) -> Path:
    """A copy for tests that mend what they damage."""
    return Path(shutil.copytree(small_run, tmp_path_factory.mktemp("shared") / "run"))


def outputs(run: Path) -> list[str]:
    """Every file of a run but timings and the driver's notes."""
    names = sorted(p.relative_to(run).as_posix() for p in run.rglob("*") if p.is_file())
    return [n for n in names if not n.endswith("run.json") and n != "inputs.seen"]


def test_verify_whole_run_finds_nothing(small_run):
    lines: list[str] = []
    assert verify(open_run(small_run), lines.append) == []
    assert any(line.startswith("hashing 1 of") for line in lines)


def test_verify_changes_nothing(shared):
    before = {n: (shared / n).read_bytes() for n in outputs(shared)}
    verify_folder(shared)
    assert {n: (shared / n).read_bytes() for n in outputs(shared)} == before


def test_verify_folder_without_a_run_is_wrong_use(tmp_path):
    with pytest.raises(UsageError, match="not a run folder"):
        verify_folder(tmp_path)


def test_flipped_byte_in_any_output_names_the_file(shared):
    rng = random.Random(0)
    names = outputs(shared)
    assert {"ledger.duckdb", "report.html", "recipe.yaml", "lock.json", "manifest.jsonl"} <= set(
        names
    )
    store = Store(shared)
    assert check_bytes(store) == []
    # One of each kind of file in each folder; which one, a seeded draw says.
    kinds: dict[str, list[str]] = {}
    for name in names:
        folder, _, rest = name.rpartition("/")
        kinds.setdefault(f"{folder}/{rest.partition('.')[2]}", []).append(name)
    for those in kinds.values():
        name = rng.choice(those)
        path = shared / name
        old = path.read_bytes()
        if not old:
            continue
        at = rng.randrange(len(old))
        path.write_bytes(old[:at] + bytes([old[at] ^ (1 << rng.randrange(8))]) + old[at + 1 :])
        found = check_bytes(Store(shared))
        path.write_bytes(old)
        blamed = name.removesuffix(".json") if name not in open_names(shared) else name
        assert [p.file for p in found] == [blamed], f"{name} at {at}"


def open_names(run: Path) -> set[str]:
    """Files that have a sidecar."""
    return {n for n in outputs(run) if (run / f"{n}.json").is_file()}


@pytest.mark.parametrize("name", ["recipe.yaml", "manifest.jsonl"])
def test_run_that_cannot_be_opened_is_named_all_the_same(copy, name):
    (copy / name).write_bytes(b"{" + (copy / name).read_bytes())
    assert [p.file for p in verify_folder(copy)] == [name]


def test_sidecar_in_another_spelling_is_damaged(copy):
    path = copy / "lock.json.json"
    path.write_bytes(path.read_bytes().replace(b'":', b'": ', 1))
    assert [p.file for p in check_bytes(Store(copy))] == ["lock.json"]


def test_stray_missing_and_bare_files_are_named(copy, damage):
    shard = damage.web(copy)
    (copy / "documents" / "stray.parquet").write_bytes(b"x")
    (copy / f"corpus/{shard}.parquet").unlink()
    (copy / f"losses/{shard}.parquet.json").unlink()
    found = {p.file: p.what for p in check_bytes(Store(copy))}
    assert found.keys() == {
        "documents/stray.parquet",
        f"corpus/{shard}.parquet",
        f"losses/{shard}.parquet",
    }
    assert "missing" in found[f"corpus/{shard}.parquet"]
    assert "no sidecar" in found["documents/stray.parquet"]


def test_output_and_sidecar_both_gone_are_named(copy, damage):
    shard = damage.web(copy)
    for suffix in ("", ".json", ".run.json"):
        (copy / f"tokens/{shard}.bin{suffix}").unlink()
    assert f"tokens/{shard}.bin" in {p.file for p in verify_folder(copy)}


def test_sidecar_of_another_file_is_named(copy):
    a, b = sorted(p for p in (copy / "corpus").glob("*.parquet"))[:2]
    shutil.copy(f"{a}.json", f"{b}.json")
    shutil.copy(a, b)
    assert f"corpus/{b.name}" in {p.file for p in check_bytes(Store(copy))}


def test_output_of_an_older_input_is_stale(copy, damage):
    shard = damage.web(copy)
    name = f"attributes/base/{shard}.parquet"
    table = pq.read_table(copy / name)
    pq.write_table(table, copy / name, compression="none")  # the same rows in other bytes
    damage.reseal(copy, name)
    found = {p.file: p.what for p in verify_folder(copy)}
    assert "stale" in found[f"accounts/base/{shard}.parquet"]
    assert f"attributes/base/{shard}.parquet" in found[f"corpus/{shard}.parquet"]
    assert name not in found


def test_output_under_another_configuration_is_stale(copy, damage):
    recipe = copy / "recipe.yaml"
    text = recipe.read_text()
    assert "  notes:\n" in text
    recipe.write_text(text.replace("  notes:\n", "  notes:\n    license: X\n"))
    damage.reseal(copy, "recipe.yaml")
    stale = {p.file for p in verify_folder(copy) if "stale" in p.what}
    assert "lock.json" in stale
    assert any(n.startswith("documents/notes-") for n in stale)
    assert not any(n.startswith("documents/web-") for n in stale)


def test_stale_output_is_counted_all_the_same(copy, damage):
    shard = damage.web(copy)
    name = f"accounts/base/{shard}.parquet"
    path = copy / f"{name}.json"
    side = json.loads(path.read_bytes()) | {"fingerprint": "0" * 32}
    path.write_bytes(canonical(side))
    damage.reseal(copy, name, lambda counts: counts["flow"][0].__setitem__(5, 1))
    found = [p.what for p in verify_folder(copy) if p.file == name]
    assert any(w.startswith("stale") for w in found)
    assert any("in the books" in w for w in found)


def test_other_libraries_are_a_note_and_no_fault(small_run, monkeypatch):
    assert notes(small_run) == []
    honest = Run.versions
    newer = lambda *names: [v + ".9" if "pyarrow" in v else v for v in honest(*names)]  # noqa: E731
    monkeypatch.setattr(Run, "versions", staticmethod(newer))
    assert verify_folder(small_run) == []
    (note,) = notes(small_run)
    assert "pyarrow" in note
    assert ".9 here" in note


def test_file_that_is_no_parquet_is_named_not_raised(copy, damage):
    shard = damage.web(copy)
    name = f"attributes/base/{shard}.parquet"
    (copy / name).write_bytes(b"not parquet")
    damage.reseal(copy, name)
    assert any(shard in str(p) for p in verify_folder(copy))
