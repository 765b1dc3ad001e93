"""The whole base pipeline, FineWeb's rules: `gristmill run` beside datatrove's own blocks.

    python benchmarks/pipeline.py wet  [--sample 4] [--large 60] [--repeat 1] [--no-peer]
    python benchmarks/pipeline.py warc
    python benchmarks/pipeline.py memory [--large 1024]

Both sides read the same WET (or WARC) files, one worker each, bound to one core: language, Gopher
repetition, Gopher quality, C4, FineWeb quality, near duplicates, tokens by the same tokenizer.json.
Ours does exact duplicates, the accounts (tokens counted after reading and after every edit) and the
ledger besides. Neither has quality heads, URL lists or masking in this recipe.

Seconds are of CPU, of all processes of a side together, since other work on the machine blurs them
less; wall seconds stand beside them. Start-up is in: Python, imports, the ledger and the report. It
weighs on the small sample and hardly on the large one, so ours is measured on both, and the ratio
is given for both; datatrove's start-up is small beside its seconds per MB, so its sample stands for
any size. Numba's cache and Python's byte code are warmed by an untimed run first; datatrove's byte
code was written when it was installed.

Input: real texts with planted copies (`_wet.py`) from GRISTMILL_DATA or ../shared/data, else the
sample data. datatrove stands in an environment of its own below --cache (`peers/venv.py`); where it
cannot be installed, its side is skipped and said so.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _wet
from peers.venv import UnavailableError, peer

ROOT = Path(__file__).resolve().parents[1]
TOKENIZER = ROOT / "mixing" / "tokenizer.json"
RECIPE = """\
name: base
sources:
  crawl:
    paths: ["*.{kind}.gz"]
    converter: {converter}
    dump: bench
    removal_cap: 1
    stages:
      - language: {{keep: [eng_Latn]}}
      - gopher_repetition
      - gopher_quality: {{stop_languages: [eng]}}
      - c4
      - fineweb_quality
shared: [exact_duplicates, near_duplicates]
"""
# Where the peer's count of a stage stands: part, and a piece of the block's name.
PEER_STAGES = {
    "read": ("filters", "READER"),
    "main text": ("filters", "rafilatura"),
    "language": ("filters", "Language"),
    "gopher_repetition": ("filters", "Gopher Repetition"),
    "gopher_quality": ("filters", "Gopher Quality"),
    "c4": ("filters", "C4"),
    "fineweb_quality": ("filters", "FineWeb"),
    "near_duplicates": ("filter", "MinHash stage 4"),
}


def spent(
    command: list[str], core: int, bytecode: Path | None = None
) -> tuple[dict[str, float], str]:
    """Run on one core: wall and CPU seconds, peak bytes of its largest process; stdout.

    `bytecode`: where Python keeps its compiled modules, as an installation does beside them.
    """
    env = os.environ | {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    env["TOKENIZERS_PARALLELISM"] = "false"
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    if bytecode is not None:
        env["PYTHONPYCACHEPREFIX"] = str(bytecode)
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(bound(command, core), stdout=out, stderr=err, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        out.seek(0)
        err.seek(0)
        if process.returncode:
            sys.exit(
                f"{command[:4]} ended with {process.returncode}:\n{err.read()[-3000:].decode()}"
            )
        said = out.read().decode()
    cpu = usage.ru_utime + usage.ru_stime
    return {"seconds": wall, "cpu": cpu, "peak": usage.ru_maxrss * 1024.0}, said


def bound(command: list[str], core: int) -> list[str]:
    """The command kept on one core with its children, where the system can."""
    return ["taskset", "-c", str(core), *command] if shutil.which("taskset") else command


def ours(folder: Path, kind: str, out: Path, core: int) -> dict[str, Any]:
    """One `gristmill run` of a folder of WET or WARC files, and what its books say."""
    shutil.rmtree(out, ignore_errors=True)
    recipe = out.with_suffix(".yaml")
    converter = "plain" if kind == "wet" else "main_text"
    recipe.write_text(RECIPE.format(kind=kind, converter=converter))
    command = [sys.executable, "-m", "gristmill", "run", str(recipe), "--root", str(folder)]
    command += ["--out", str(out), "--workers", "1"]
    used, _ = spent(command, core, out.with_name("bytecode"))
    return used | books(out)


def books(run: Path) -> dict[str, Any]:
    """Documents after each stage, tokens, text bytes, CPU seconds and peak of each step."""
    import duckdb

    with duckdb.connect(str(run / "ledger.duckdb"), read_only=True) as con:
        flow = con.execute(
            "SELECT stage, sum(documents)::BIGINT, sum(bytes)::BIGINT, sum(tokens)::BIGINT "
            "FROM flow WHERE account = 'kept' GROUP BY stage"
        ).fetchall()
    kept = {stage: documents for stage, documents, _, _ in flow}
    steps: dict[str, list[float]] = {}
    done: set[tuple[str, str]] = set()
    for path in sorted(run.rglob("*.run.json")):
        fact = json.loads(path.read_bytes())
        task = (fact.get("step", ""), path.name.split(".")[0])
        if "step" not in fact or task in done:
            continue
        done.add(task)
        entry = steps.setdefault(fact["step"], [0.0, 0.0])
        entry[0] += fact["cpu_seconds"]
        entry[1] = max(entry[1], fact["peak_rss_bytes"])
    return {
        "kept": kept,
        "text_bytes": next(size for stage, _, size, _ in flow if stage == "read"),
        "tokens": next(tokens for stage, _, _, tokens in flow if stage == "corpus"),
        "steps": steps,
        "worker_peak": max(peak for _, peak in steps.values()),
    }


def theirs(python: Path, model: Path | None, folder: Path, kind: str, out: Path, core: int) -> Any:
    """The peer's run of the same folder."""
    shutil.rmtree(out, ignore_errors=True)
    script = Path(__file__).with_name("peers") / "datatrove_base.py"
    command = [str(python), str(script), str(folder), str(out), str(TOKENIZER)]
    used, said = spent([*command, str(model or "-"), kind], core)
    parts = json.loads(said.splitlines()[-1])
    kept = {}
    for stage, (part, name) in PEER_STAGES.items():
        for block in parts[part]["blocks"]:
            if name in block["block"]:
                counts = ("forwarded", "extracted", "documents")
                kept[stage] = next((block[c] for c in counts if c in block), 0)
    tokens = next(b["tokens"] for b in parts["filter"]["blocks"] if "tokens" in b)
    return used | {"kept": kept, "tokens": tokens, "parts": parts}


def median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run of median CPU seconds."""
    middle = statistics.median_low(r["cpu"] for r in runs)
    return next(r for r in runs if r["cpu"] == middle)


def line(name: str, used: dict[str, Any], text_bytes: int) -> str:
    """One row of figures; MB are of text as ours reads or extracts it."""
    rate = text_bytes / 1e6 / used["cpu"]
    return (
        f"{name:<28}{text_bytes / 1e6:8.1f} MB {used['cpu']:8.2f} s CPU {used['seconds']:8.2f} s "
        f"wall {rate:8.3f} MB/s {used['peak'] / 1e6:7.0f} MB peak"
    )


def compare(kind: str, sample: Path, large: Path | None, options: argparse.Namespace) -> None:
    """Both sides on `sample`, ours on `large` too; prints figures, stages and ratios."""
    scratch: Path = options.cache / "runs"
    scratch.mkdir(parents=True, exist_ok=True)
    mine: Callable[[Path], dict[str, Any]] = lambda f: ours(f, kind, scratch / "ours", options.core)  # noqa: E731
    mine(sample)  # Numba's cache
    small = median([mine(sample) for _ in range(options.repeat)])
    big = median([mine(large) for _ in range(options.repeat)]) if large else None
    size = small["text_bytes"]
    other = None
    try:
        python, model = (None, None) if options.no_peer else peer(options.cache / "datatrove")
        if python:
            if model is None:
                print("datatrove: no language model offline; its language filter is left out")
            runs = [
                theirs(python, model, sample, kind, scratch / "theirs", options.core)
                for _ in range(options.repeat)
            ]
            other = median(runs)
    except UnavailableError as error:
        print(f"datatrove: cannot be installed here ({error}); its side is skipped")
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    print(f"load average {load}; median of {options.repeat}")
    print(line("gristmill, sample", small, size))
    if big:
        print(line("gristmill, large", big, big["text_bytes"]))
    if other:
        print(line("datatrove, sample", other, size))
        print(f"ratio on the sample, start-up and all: {other['cpu'] / small['cpu']:.0f} x")
        if big:
            rate = (big["text_bytes"] / big["cpu"]) / (size / other["cpu"])
            print(f"ratio of MB per second, ours on the large input: {rate:.0f} x")
            work = big["cpu"] - small["cpu"]
            more = (big["text_bytes"] - size) / work / (size / other["cpu"])
            print(f"ratio of what one more MB takes (large less sample): {more:.0f} x")
    print_stages(small, other)
    print_steps(big or small)


def print_stages(small: dict[str, Any], other: dict[str, Any] | None) -> None:
    """Documents left after each stage of the sample, side by side."""
    order = ["read", "language", "gopher_repetition", "gopher_quality", "c4", "fineweb_quality"]
    order += ["exact_duplicates", "near_duplicates"]
    print(f"\n{'documents left after':<28}{'gristmill':>12}{'datatrove':>12}")
    if other and "main text" in other["kept"]:
        print(f"{'records':<28}{'':>12}{other['kept']['read']:>12}")
        other["kept"]["read"] = other["kept"]["main text"]
    for stage in order:
        peers = other["kept"].get(stage, "-") if other else "-"
        print(f"{stage:<28}{small['kept'].get(stage, 0):>12}{peers:>12}")
    print(f"{'tokens':<28}{small['tokens']:>12}{other['tokens'] if other else '-':>12}")
    if other:
        parts = {k: v["cpu_seconds"] for k, v in other["parts"].items() if isinstance(v, dict)}
        print("datatrove, s of CPU: " + ", ".join(f"{k} {s:.1f}" for k, s in parts.items()))
        timed = [b for v in other["parts"].values() if isinstance(v, dict) for b in v["blocks"]]
        each = (f"{b['block'].split(': ', 1)[-1]} {b['seconds']:.1f}" for b in timed)
        print("datatrove, s of wall: " + ", ".join(each))


def print_steps(used: dict[str, Any]) -> None:
    """Seconds of CPU and peak memory of each of our steps."""
    print(f"\n{'step (gristmill)':<36}{'s of CPU':>10}{'share':>8}{'peak MB':>10}")
    steps = sorted(used["steps"].items(), key=lambda item: -item[1][0])
    for step, (cpu, peak) in steps:
        print(f"{step:<36}{cpu:>10.2f}{cpu / used['cpu']:>8.0%}{peak / 1e6:>10.0f}")
    rest = used["cpu"] - sum(cpu for cpu, _ in used["steps"].values())
    print(f"{'start-up, driver, ledger, report':<36}{rest:>10.2f}{rest / used['cpu']:>8.0%}")


def memory(folder: Path, options: argparse.Namespace) -> None:
    """Peak of a worker over a large input, and the step that had it."""
    (options.cache / "runs").mkdir(parents=True, exist_ok=True)
    used = ours(folder, "wet", options.cache / "runs" / "memory", options.core)
    print(line("gristmill", used, used["text_bytes"]))
    print(f"peak of a worker: {used['worker_peak'] / 1e6:.0f} MB; documents left:")
    print_stages(used, None)
    print_steps(used)


def inputs(data: Path, folder: Path, megabytes: int) -> Path:
    """WET files of about so many MB of text, made once."""
    target = folder / f"wet-{megabytes}"
    if not target.is_dir():
        texts = _wet.real_texts(data) if data.is_dir() else []
        if not texts:
            print("no real texts (set GRISTMILL_DATA): the sample data stands in, repeated")
            texts = _wet.sample_texts(ROOT / "sample_data")
        building = target.with_suffix(".building")
        shutil.rmtree(building, ignore_errors=True)
        _wet.write_wet(building, texts, megabytes << 20)
        building.rename(target)
    return target


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("wet", "warc", "memory"), nargs="?", default="wet")
    default = Path(os.environ.get("GRISTMILL_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default)
    place = Path(tempfile.gettempdir()) / "gristmill-benchmarks"
    parser.add_argument("--cache", type=Path, default=place, help="inputs, runs, the peer")
    parser.add_argument("--sample", type=int, default=4, help="MB of text for both sides")
    parser.add_argument("--large", type=int, help="MB of text for ours (wet: 60, memory: 1024)")
    parser.add_argument("--copies", type=int, default=6, help="of the WARC files, for ours")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    if options.what == "warc":
        pages = options.data / "a-warc-built"
        if not pages.is_dir():
            sys.exit(f"no WARC files in {pages}: set GRISTMILL_DATA")
        many = options.cache / f"warc-{options.copies}"
        if not many.is_dir():
            building = many.with_suffix(".building")
            shutil.rmtree(building, ignore_errors=True)
            _wet.copy_warc(pages, building, options.copies)
            building.rename(many)
        compare("warc", pages, many, options)
    elif options.what == "memory":
        memory(inputs(options.data, options.cache, options.large or 1024), options)
    else:
        sample = inputs(options.data, options.cache, options.sample)
        compare("wet", sample, inputs(options.data, options.cache, options.large or 60), options)


if __name__ == "__main__":
    main()
