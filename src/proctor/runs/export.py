"""Export: one row per item, system, condition and metric, for every other tool."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proctor.core import Answer, InputError, Item
from proctor.runs.cards import BenchmarkCard
from proctor.runs.results import chosen_runs
from proctor.runs.store import Run, Store
from proctor.runs.table import ItemTable, Series, load_items, load_series

__all__ = ["COLUMNS", "ExportFormat", "export", "export_rows", "safe_cell"]

ExportFormat = Literal["jsonl", "csv", "parquet"]

COLUMNS = (
    "item",
    "group",
    "system",
    "condition",
    "status",
    "metric",
    "value",
    "text",
    "parsed",
    "latency_s",
)
"""The first columns; then come the facets (several values joined by "|"), last the scorer."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # a spreadsheet would run a cell that begins so


def export(
    store: Store,
    benchmark: str,
    out: Path,
    form: ExportFormat,
    *,
    all_items: bool = False,
    systems: Sequence[str] = (),
    conditions: Sequence[str] = (),
) -> int:
    """Writes the rows of all runs, or of those of some systems and conditions, to `out` and returns their number. The
    file appears only when it is whole.

    In CSV a text that a spreadsheet would take for a formula gets a leading apostrophe: answers are
    hostile text. Raises `InputError` for an unknown system or condition, and where `out` can't be written.
    """
    card = store.card(benchmark)
    chosen = chosen_runs(store, benchmark, systems, conditions)
    facets, rows = export_rows(store, benchmark, card, all_items=all_items, runs=chosen)
    columns = [*COLUMNS, *facets, "scorer"]
    writers = {"jsonl": _write_jsonl, "csv": _write_csv, "parquet": _write_parquet}
    with _whole_file(out) as part:
        return writers[form](part, columns, rows)


def export_rows(
    store: Store,
    benchmark: str,
    card: BenchmarkCard,
    *,
    all_items: bool = False,
    runs: Sequence[Run] | None = None,
) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """The facets' names, and the rows of these runs (None: of all) one by one. An answer without a score of a metric that marks its
    format has `value` None."""
    table = load_items(store, card, all_items=all_items)
    facets = [name for name in table.facet_names() if name not in {*COLUMNS, "scorer"}]
    chosen = chosen_runs(store, benchmark) if runs is None else list(runs)
    return facets, _rows(store, chosen, card, table, facets)


def _rows(
    store: Store, runs: Sequence[Run], card: BenchmarkCard, table: ItemTable, facets: Sequence[str]
) -> Iterator[dict[str, Any]]:
    items = {item.id: item for item in store.items(card.name)}
    columns = {name: table.facet(name) for name in facets}
    markable: dict[tuple[str, str], NDArray[np.bool_]] = {}
    for run in runs:
        answers = store.answers(run)
        series = load_series(store, run, table) or [_unscored(card, table)]
        for one in series:
            markable[one.metric, one.scorer] = table.markable(card.metric(one.metric), one.scorer)
        for place, name in enumerate(table.ids):
            if name not in answers:
                continue
            tags = {facet: "|".join(values[place]) for facet, values in columns.items()}
            for one in series:
                if markable[one.metric, one.scorer][place]:
                    yield _row(run, items[name], answers[name], one, place) | tags | {"scorer": one.scorer}


def _unscored(card: BenchmarkCard, table: ItemTable) -> Series:
    return Series(card.headline, "", np.full(len(table.ids), np.nan))


def _row(run: Run, item: Item, answer: Answer, series: Series, place: int) -> dict[str, Any]:
    value = float(series.values[place]) if series.marked[place] else None
    return {
        "item": item.id,
        "group": item.group,
        "system": run.system,
        "condition": run.condition,
        "status": answer.status.value,
        "metric": series.metric,
        "value": value,
        "text": answer.text,
        "parsed": None if answer.parsed is None else json.dumps(answer.parsed, ensure_ascii=False),
        "latency_s": answer.timing.model_s if answer.timing else None,
    }


@contextmanager
def _whole_file(out: Path) -> Iterator[Path]:
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            part.replace(out)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(out, found=error.strerror or str(error), expected="a place to write to") from error


def _write_jsonl(part: Path, columns: Sequence[str], rows: Iterator[dict[str, Any]]) -> int:
    count = 0
    with part.open("w", encoding="utf-8") as file:
        for row in rows:
            ordered = {column: row[column] for column in columns}
            file.write(json.dumps(ordered, ensure_ascii=False, allow_nan=False) + "\n")
            count += 1
    return count


def _write_csv(part: Path, columns: Sequence[str], rows: Iterator[dict[str, Any]]) -> int:
    count = 0
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in rows:
            writer.writerow([safe_cell(row[column]) for column in columns])
            count += 1
    return count


def safe_cell(value: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula: those get a leading apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _write_parquet(part: Path, columns: Sequence[str], rows: Iterator[dict[str, Any]]) -> int:
    import pyarrow as pa
    from pyarrow import parquet

    numbers = {"value", "latency_s"}
    types = pa.schema([(column, pa.float64() if column in numbers else pa.string()) for column in columns])
    count = 0
    with parquet.ParquetWriter(part, types) as writer:
        batch: list[dict[str, Any]] = []
        for row in rows:
            batch.append(row)
            if len(batch) == 10_000:
                writer.write_table(pa.Table.from_pylist(batch, schema=types))
                count += len(batch)
                batch = []
        writer.write_table(pa.Table.from_pylist(batch, schema=types))
    return count + len(batch)
