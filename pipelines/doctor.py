"""What a machine needs, looked at one by one."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .. import __version__

NEEDED = (
    "numpy", "pyarrow", "numba", "duckdb", "typer", "PyYAML", "resiliparse", "fastokens",
    "tokenizers", "zstandard", "brotli", "isal", "jsonschema-rs", "fsspec",
)  # fmt: skip
OPTIONAL = (
    "datatrove", "ray", "s3fs", "tiktoken", "sentencepiece", "scikit-learn", "scipy", "requests",
    "onnxruntime", "sentence-transformers", "torch",
)  # fmt: skip
LEAST_DISK = 1 << 30  # bytes free in the working folder


def examine() -> tuple[bool, str]:
    """Whether all is well, and what was found, line by line."""
    lines = [f"gristmill {__version__}, Python {platform.python_version()}, {os.cpu_count()} CPUs"]
    good = True
    for check in (_libraries, _cache, _tokenizer, _disk):
        fine, found = check()
        good &= fine
        lines += [f"{'ok' if fine else 'BAD':<4}{line}" for line in found]
    return good, "\n".join(lines)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _libraries() -> tuple[bool, list[str]]:
    missing = [n for n in NEEDED if _version(n) is None]
    lines = [", ".join(f"{n} {_version(n)}" for n in NEEDED if n not in missing)]
    lines += [f"{n}: not installed; pip install gristmill brings it" for n in missing]
    there = [f"{n} {_version(n)}" for n in OPTIONAL if _version(n)]
    return not missing, [*lines, f"optional: {', '.join(there) or 'none'}"]


def _cache() -> tuple[bool, list[str]]:
    """Numba's cache: without it every process compiles every kernel again."""
    from .executors import prepare_environment

    folder = prepare_environment()
    if folder.is_dir() and os.access(folder, os.W_OK):
        return True, [f"Numba's cache: {folder}"]
    return False, [f"Numba's cache: {folder} cannot be written; set NUMBA_CACHE_DIR"]


def _tokenizer() -> tuple[bool, list[str]]:
    """Loading the tokenizer compares its fast engine with the reference on a fixed probe."""
    from ..documents.errors import GristmillError
    from ..mixing.encoder import load_encoder

    try:
        encoder = load_encoder(None)
    except GristmillError as error:
        return False, [f"tokenizer: {error}"]
    return True, [f"tokenizer: engine {encoder.engine} gives the ids of the reference"]


def _disk() -> tuple[bool, list[str]]:
    free = shutil.disk_usage(Path.cwd()).free
    return free >= LEAST_DISK, [f"free disk here: {free / 1e9:,.1f} GB"]
