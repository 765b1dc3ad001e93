"""The published S-curves."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from gristmill.cli import app
from gristmill.dedup import NearDuplicates
from gristmill.dedup.curve import (
    candidate_probability,
    cost,
    curve_table,
    expected_recall,
    sketch_bounds,
)
from gristmill.documents.errors import UsageError


@pytest.mark.parametrize(
    ("bands", "rows", "similarity", "published"),
    [  # FineWeb's own page: 56, 77, 92, 98.8 %
        (14, 8, 0.70, 0.56), (14, 8, 0.75, 0.77), (14, 8, 0.80, 0.92), (14, 8, 0.85, 0.988),
        (8, 16, 0.80, 0.204), (32, 8, 0.80, 0.997),
    ],
)  # fmt: skip
def test_curve_published_settings_agree(bands, rows, similarity, published):
    assert candidate_probability(similarity, bands, rows) == pytest.approx(published, abs=0.007)


def test_curve_ends_and_means():
    assert candidate_probability(0, 32, 8) == 0
    assert candidate_probability(1, 32, 8) == 1
    assert expected_recall([0, 1], 32, 8) == 0.5
    assert expected_recall([], 32, 8) == 1
    with pytest.raises(ValueError, match="expected 0 to 1"):
        candidate_probability(1.5, 32, 8)


def test_curve_sketch_bounds_enclose_the_paper():
    least, greatest = sketch_bounds(0.8, 8, 256)
    assert (round(least, 4), round(greatest, 4)) == (0.1631, 0.1678)
    assert sketch_bounds(0.01, 8, 256)[0] == 0


def test_curve_table_rows_grow_with_similarity():
    for bands, rows, odds in curve_table([(32, 8), (14, 8)]):
        assert odds == sorted(odds)
        assert odds[5] == candidate_probability(0.80, bands, rows)


def test_curve_command_prints_the_setting_and_refuses_a_swap():
    done = CliRunner().invoke(app, ["dedup", "curve", "--bands", "14", "--rows", "8"])
    assert done.exit_code == 0
    (row,) = [line for line in done.stdout.splitlines() if "<- threshold" in line]
    assert row.split()[:3] == ["0.8", "0.9235", "0.9972"]  # the setting, then the default
    swapped = CliRunner().invoke(app, ["dedup", "curve", "--bands", "8", "--rows", "14"])
    assert swapped.exit_code == 2
    assert "State bands: 14, rows: 8" in swapped.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scheme", "foo"], "unknown scheme 'foo'; known: datasketch, fss"),
        (["--scheme", "datasketh"], "did you mean 'datasketch'"),
        (["--bands", "100000", "--rows", "100000"], "expected at most 16384"),
    ],
)
def test_curve_command_refuses_what_no_stage_takes(options, message):
    done = CliRunner().invoke(app, ["dedup", "curve", *options])
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    bands, rows = (100000, 100000) if "--bands" in options else (32, 8)
    scheme = options[1] if "--scheme" in options else "fss"
    with pytest.raises(UsageError, match=message):
        NearDuplicates(bands=bands, rows=rows, scheme=scheme)


def test_cost_grows_with_bands_and_classic_hashes_more():
    fss, classic = cost(32, 8, 0.8), cost(32, 8, 0.8, scheme="datasketch")
    assert (fss.stored, classic.stored) == (260, 260 + 4 * 256)
    assert fss.exchanged == 2 * cost(16, 8, 0.8).exchanged
    assert classic.hashes == 256
    assert 1 < fss.hashes < 5
    assert fss.expected_recall > cost(14, 8, 0.8).expected_recall > 0.98
