"""Filters: MB/s and kept share of each rule beside datatrove's, and agreement rule by rule.

    python benchmarks/filters.py              speed: both sides on the same documents
    python benchmarks/filters.py agreement    which documents each rule drops, ours and theirs
    python benchmarks/filters.py languages    the same, datatrove with each language's tokeniser

Real texts come from GRISTMILL_DATA, else ../shared/data; without them speed is measured on the
sample data. datatrove 0.10.1 goes into an environment of its own below `--cache` (`peers/venv.py`);
where it cannot be installed its side is skipped, and that is said. MB are 10^6 bytes of UTF-8;
times are CPU time, ours the best of five.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from _texts import DATA, batch_of, best, rows_of, texts
from peers.venv import UnavailableError, peer

from gristmill.documents.edits import apply_edits
from gristmill.filters import C4, FineWebQuality, GopherQuality, GopherRepetition, Language

TOGETHER = (GopherRepetition(), GopherQuality(), C4(), FineWebQuality())
AS_DATATROVE = (
    GopherRepetition(as_datatrove=True),
    GopherQuality(as_datatrove=True, stop_languages=("eng",)),
    C4(as_datatrove=True),
    FineWebQuality(),
)
ENOUGH = 30  # hits from which a rule's agreement is asked for
# Languages as datatrove's table of tokenisers has them; with the script, for without it the last
# row of a language wins there (`"FALSE"` is taken for true), which is another script's.
SCRIPTS = {
    "ar": "arb_Arab",
    "ara_Arab": "arb_Arab",
    "pes_Arab": "fas_Arab",
    "zho_Hans": "zho_Hani",
    "ca": "cat_Latn",
    "fr": "fra_Latn",
    "pt": "por_Latn",
    "sv": "swe_Latn",
    "de": "deu_Latn",
    "en": "eng_Latn",
    "fi": "fin_Latn",
    "es": "spa_Latn",
}
THEIRS = {
    "gopher_short_doc": "few_words",
    "gopher_long_doc": "many_words",
    "gopher_below_avg_threshold": "short_words",
    "gopher_above_avg_threshold": "long_words",
    "gopher_too_many_hashes": "hashes",
    "gopher_too_many_ellipsis": "ellipses",
    "gopher_too_many_bullets": "bullet_lines",
    "gopher_too_many_end_ellipsis": "ellipsis_lines",
    "gopher_below_alpha_threshold": "few_alphabetic_words",
    "gopher_enough_stop_words": "few_stop_words",
    "dup_para_frac": "duplicate_paragraphs",
    "dup_para_char_frac": "duplicate_paragraph_chars",
    "dup_line_frac": "duplicate_lines",
    "dup_line_char_frac": "duplicate_line_chars",
    **{f"duplicated_{n}_n_grams": f"duplicate_{n}_grams" for n in range(5, 11)},
    "too_few_sentences": "few_sentences",
    "line_punct_ratio": "few_terminal_lines",
    "short_line_ratio": "short_lines",
    "char_dup_ratio": "duplicate_chars",
    "list_ratio": "line_breaks",
}


def documents() -> Iterator[tuple[str, str]]:
    """Real web texts of 24 languages, and the language of each."""
    for row in rows_of(DATA / "labels" / "web_pages.jsonl.zst"):
        yield str(row["text"]), "eng_Latn"
    for path in sorted((DATA / "c-register-web").glob("*.jsonl.gz")):
        for row in rows_of(path):
            yield str(row["text"]), SCRIPTS[str(row["lang"])]
    for row in rows_of(DATA / "c-line-noise-turku" / "lines.jsonl.gz"):
        yield "\n".join(row["text"]), SCRIPTS[str(row["lang"])]  # type: ignore[arg-type]
    for row in rows_of(DATA / "f-multilingual-hplt" / "human_labelled.jsonl.gz"):
        language = str(row["lang_claimed"])
        if language != "gla_Latn":  # datatrove's tokeniser of Gaelic is a download
            yield str(row["text"]), SCRIPTS.get(language, language)


def ask(cache: Path, what: str, rows: list[tuple[str, str]]) -> dict[str, dict[str, object]] | None:
    """Answers of datatrove on these texts and languages; None where it cannot be had."""
    try:
        python, _ = peer(cache / "datatrove")
    except UnavailableError as error:
        print(f"datatrove is left out, it cannot be installed here: {error}")
        return None
    source, out = cache / "documents.jsonl", cache / "answers.json"
    with source.open("w", encoding="utf-8") as file:
        for text, language in rows:
            file.write(json.dumps({"text": text, "language": language}) + "\n")
    script = Path(__file__).parent / "peers" / "datatrove_rules.py"
    subprocess.run(
        [str(python), str(script), str(source), str(out), what],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return dict(json.loads(out.read_text()))


def speed(cache: Path, every: int) -> None:
    """MB/s and kept share of each stage on the same documents, theirs beside ours."""
    name, values = texts()
    values = values[::every]
    batch = batch_of(values)
    mb = sum(len(v.encode()) for v in values) / 1e6
    theirs = ask(cache, "speed", [(v, "en") for v in values])
    print(f"{name}: {len(values):,} texts, {mb:.1f} MB; MB/s on one core and share kept")
    print(f"{'stage':<20} {'gristmill':>10} {'kept':>7} {'datatrove':>10} {'kept':>7} {'ratio':>7}")
    ours_all, theirs_all = 0.0, 0.0
    for stage in (*TOGETHER, Language(keep=("eng_Latn",))):
        seconds = best(lambda stage=stage: stage.verdict(stage.measure(batch).scores))
        kept = np.mean(stage.verdict(stage.measure(batch).scores) == 0)
        line = f"{stage.name:<20} {mb / seconds:10.1f} {kept:7.1%}"
        if stage in TOGETHER:
            ours_all += seconds
            if theirs:
                took = float(theirs[stage.name]["seconds"])  # type: ignore[arg-type]
                theirs_all += took
                share = int(theirs[stage.name]["kept"]) / len(values)  # type: ignore[call-overload]
                line += f" {mb / took:10.2f} {share:7.1%} {took / seconds:6.0f}x"
        print(line)
    line = f"{'the first four':<20} {mb / ours_all:10.1f} {'':7}"
    print(
        line + (f" {mb / theirs_all:10.2f} {'':7} {theirs_all / ours_all:6.0f}x" if theirs else "")
    )
    edits = C4().measure(batch).edits
    seconds = best(lambda: apply_edits(batch.column("text"), edits), 1)
    print(f"C4 makes {len(edits.rows):,} edits; making them: {mb / seconds:.1f} MB/s")


def agreement(cache: Path, every: int, own_tokenisers: bool) -> None:
    """Which documents each rule drops when it is asked alone, ours beside theirs."""
    rows = list(documents())[::every]
    if not own_tokenisers:  # the filters as they come: English; useless where no spaces are
        rows = [(text, "en") for text, language in rows if language != "zho_Hani"]
    found = ask(cache, "rules", rows)
    if found is None:
        return
    batch = batch_of([text for text, _ in rows])
    how = "the tokeniser of each language" if own_tokenisers else "datatrove's filters as they come"
    print(f"{len(rows):,} texts, {how}; documents that each rule drops when asked alone")
    print(f"{'rule':<32} {'theirs':>7} {'as theirs':>10} {'Jaccard':>8} {'ours':>6} {'Jaccard':>8}")
    for like, own in zip(AS_DATATROVE, TOGETHER, strict=True):
        sides = []
        for stage, c4 in ((like, AS_DATATROVE[2]), (own, TOGETHER[2])):
            seen = left(batch, c4) if own.name == "fineweb_quality" else batch
            rules = stage.rules(stage.measure(seen).scores)
            sides.append(dict(zip(stage.reasons[1:], (r.broken() for r in rules), strict=True)))
        print(own.name)
        said: dict[str, np.ndarray] = {}
        crashed = np.zeros(len(rows), bool)
        for reason, numbers in found["dropped"][own.name].items():
            dropped = np.zeros(len(rows), bool)
            dropped[numbers] = True
            said[THEIRS.get(reason, reason)] = dropped
        crashed |= said.pop("crash", crashed)
        said.pop("empty", None) if own.name != "fineweb_quality" else None
        for reason in own.reasons[1:]:
            line(reason, said.get(reason, np.zeros(len(rows), bool)), *(s[reason] for s in sides))
        union = [np.logical_or.reduce(list(side.values())) for side in (said, *sides)]
        line("in all", *union)
        if crashed.any():
            print(f"  {'an exception':<30} {int(crashed.sum()):7}")


def left(batch: pa.RecordBatch, c4: C4) -> pa.RecordBatch:
    """What C4 leaves: in the FineWeb recipe FineWeb's own rules see that."""
    return pa.record_batch({"text": apply_edits(batch.column("text"), c4.measure(batch).edits)})


def line(name: str, theirs: np.ndarray, like: np.ndarray, own: np.ndarray) -> None:
    """One rule: documents dropped, and Jaccard of the sets."""

    def jaccard(other: np.ndarray) -> str:
        either = int((theirs | other).sum())
        return f"{int((theirs & other).sum()) / either:8.3f}" if either else f"{'-':>8}"

    mark = "" if theirs.sum() >= ENOUGH else "  (few)"
    print(
        f"  {name:<30} {theirs.sum():7} {like.sum():10} {jaccard(like)} {own.sum():6} "
        f"{jaccard(own)}{mark}"
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "what", nargs="?", default="speed", choices=("speed", "agreement", "languages")
    )
    parser.add_argument(
        "--cache", type=Path, help="for datatrove's environment; default: temporary"
    )
    parser.add_argument("--every", type=int, help="one document in so many (speed 4, else 2)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        cache = given.cache or Path(temporary)
        cache.mkdir(parents=True, exist_ok=True)
        if given.what == "speed":
            speed(cache, given.every or 4)
        else:
            agreement(cache, given.every or 2, given.what == "languages")


if __name__ == "__main__":
    main()
