"""Between a store and the files of other programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.api.exchange_options import ExportOptions, ImportOptions
from proctor.api.sources import Stored, media_at
from proctor.core import BenchmarkReader

if TYPE_CHECKING:
    from proctor.core import Benchmark, RecordedAnswers
    from proctor.interchange import Written


_LINES = (".jsonl", ".ndjson")
_KINDS = {
    "jsonl": _LINES,
    "judgements": _LINES,
    "csv": (".csv", ".txt"),
    "parquet": (".parquet",),
    "sums": (".json",),
    "inspect": (".eval", ".json"),
    "hf-eval": (".yaml", ".yml"),
    "model-card": (".md",),
}
_SUBMISSIONS = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".zip")
"""The endings of files that each format replaces."""


def export_place(where: Stored, out: Path, form: str, template: str | Path | None = None) -> Path:
    """Where a format goes; raises `InputError` where that would replace anything but an earlier export of its kind."""
    from proctor.interchange import FORMATS

    kinds = _KINDS.get(form, () if form in FORMATS.written() else _SUBMISSIONS)
    return where.output(out, kinds, [] if template is None else [template])


def form_of(path: Path, named: str, reader: BenchmarkReader) -> str:
    """The format of another program that a file is read as: the one that was named, or the one that its content says;
    "" for the benchmark's own. A plain table that `proctor export` did not write is the benchmark's own where it has a
    format for recorded answers."""
    from proctor.interchange import FORMATS, TABLE, is_export, recognised

    if named:
        return FORMATS.get(named, FORMATS.read()).name
    found = recognised(path)
    own = type(reader).read_recorded is not BenchmarkReader.read_recorded and not reader.reads_paths
    return "" if found == TABLE and (own or reader.ratings) and not is_export(path) else found


def read_foreign(path: Path, form: str, benchmark: Benchmark, given: ImportOptions) -> RecordedAnswers:
    """The answers in another program's file."""
    from proctor.interchange import FORMATS

    return FORMATS.get(form).read(path, benchmark, given["id_column"], given["answer_column"], given["name"])


def write_foreign(where: Stored, out: Path, form: str, given: ExportOptions) -> Written:
    """The chosen runs, or the benchmark, in the format of another program."""
    from proctor.api.numbers import options_of
    from proctor.interchange import FORMATS, ExportSource

    card = where.store.card(where.benchmark)
    media = given["media"] or card.folders.get("media")
    options = replace(options_of(where, {"failed": None}), all_items=given["all_items"])
    source = ExportSource(
        where.store,
        card,
        options,
        origin=given["origin"],
        media=media_at(media),
        copy_media=given["copy_media"],
        references=not given["no_references"],
    )
    return FORMATS.get(form).write(source, out)
