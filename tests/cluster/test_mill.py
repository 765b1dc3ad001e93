"""The mill itself on a real Slurm and a real Ray: the same bytes as on this machine alone."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.cluster


def run_on(cluster, mill, recipe, out):
    """The command line with a cluster's options; several keys share a rank, or start-up rules."""
    options = {**cluster.options, "max_ranks": 2}
    flags = [part for k, v in options.items() for part in ("--option", f"{k}={v}")]
    command = ["run", recipe, "--out", out, "--executor", cluster.name, "--workers", 2]
    return mill.command(*command, *flags, env=cluster.env)


def test_mill_on_slurm_same_bytes(slurm_cluster, mill, small_run, tmp_path):
    done = run_on(slurm_cluster, mill, mill.small_recipe(tmp_path), tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert mill.differing(mill.snapshot(small_run), mill.snapshot(tmp_path / "run")) == []


def test_mill_on_ray_same_bytes(ray_cluster, mill, small_run, tmp_path):
    done = run_on(ray_cluster, mill, mill.small_recipe(tmp_path), tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert mill.differing(mill.snapshot(small_run), mill.snapshot(tmp_path / "run")) == []
