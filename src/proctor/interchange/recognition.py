"""Which program wrote answers: by what stands in the file, not by its name."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from proctor.core import SHEET_SUFFIXES, InputError, read_sheet

TABLE = "table"
"""The format of a plain table of ids and answers."""

_HEAD = 2**20
_SIGNS: tuple[tuple[str, frozenset[str]], ...] = (
    ("openai-batch", frozenset({"custom_id", "response"})),
    ("lmms-eval", frozenset({"doc_id", "filtered_resps"})),
    ("vlmevalkit", frozenset({"index", "prediction"})),
)
_INSPECT = ('"version"', '"status"', '"eval"')


_SAMPLES = "*_samples_*.jsonl"  # what lmms-eval, and `proctor export`, write into a folder


def recognised(path: Path) -> str:
    """The format's name; "" for a folder without samples of lmms-eval, and for what is none of them."""
    try:
        if path.is_dir() and (samples := next(path.glob(_SAMPLES), None)) is not None:
            return recognised(samples)
        if not path.is_file():
            return ""
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return ""
    if head.startswith(b"PK"):
        return _archive(path)
    if path.suffix.lower() in {".parquet", ".arrow"}:
        return TABLE
    text = head.decode("utf-8-sig", "replace")
    start = text.lstrip()
    if start.startswith("{"):
        return _object(start, path)
    return _columns(_names(start), path)


def file_of(path: Path) -> Path:
    """The file with the answers: the path itself, or the one file of samples in a folder. Raises `InputError` where a
    folder has none, or several."""
    if not path.is_dir():
        return path
    found = sorted(path.glob(_SAMPLES))
    if len(found) != 1:
        several = f"{len(found)} ({', '.join(one.name for one in found[:5])})" if found else "none"
        raise InputError(path, f"files of samples ({_SAMPLES})", found=several, expected="one, or the path of one")
    return found[0]


def is_export(path: Path) -> bool:
    """Whether a table holds the rows of `proctor export`."""
    from proctor.runs import EXPORT_COLUMNS

    try:
        return set(EXPORT_COLUMNS[:6]) <= set(read_sheet(path).columns)
    except InputError:
        return False


def _archive(path: Path) -> str:
    try:
        with ZipFile(path) as archive:
            names = set(archive.namelist())
    except (BadZipFile, OSError, ValueError):
        return ""
    if "header.json" in names or "_journal/start.json" in names:
        return "inspect"
    if not any(name.startswith("xl/") for name in names):
        return ""
    return _columns(set(read_sheet(path).columns), path)


def _object(text: str, path: Path) -> str:
    try:
        first = json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        first = None
    if isinstance(first, Mapping):
        return _columns(set(first), path)
    return "inspect" if all(name in text for name in _INSPECT) else ""


def _names(text: str) -> set[str]:
    """The names of columns of a list of objects, or of separated values."""
    if text.startswith("["):
        try:
            first: Any = json.JSONDecoder().raw_decode(text[1:].lstrip())[0]
        except (ValueError, RecursionError):
            return set()
        return set(first) if isinstance(first, dict) else set()
    line = text.split("\n", 1)[0].rstrip("\r")
    delimiter = max(",;\t|", key=line.count)
    try:
        return set(next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error:
        return set()


def _columns(names: set[str], path: Path) -> str:
    if {"version", "status", "eval"} <= names:
        return "inspect"
    for form, signs in _SIGNS:
        if signs <= names:
            return form
    return TABLE if names and path.suffix.lower() in SHEET_SUFFIXES else ""
