"""Export: one row per item, system, condition and metric; and a copy of a store for publication."""

from __future__ import annotations

import csv
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Table, insert, select

from proctor.core import (
    CONFIDENCE,
    NO_ANSWER,
    Answer,
    InputError,
    Item,
    Metric,
    Status,
    generator,
    json_line,
    safe_cell,
    when_gone,
    whole_file,
)
from proctor.judges import DECIDED_BY_A_PERSON, is_decided
from proctor.results.arrays import ItemTable, Series, load_items, load_repetitions
from proctor.results.judgements import judgements_of
from proctor.runs import (
    BASELINES,
    CODE,
    ORACLE,
    UNSUPPORTED,
    BenchmarkCard,
    Ruling,
    Run,
    Store,
    chosen_runs,
    record_study,
    schema,
    studies_of,
)

ExportFormat = Literal["jsonl", "csv", "parquet", "xlsx"]

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
    "extra",
    "repetition",
    "confidence",
)
"""The first columns; then come the facets (several values joined by "|"), last the scorer."""


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
    """Writes the rows of all runs, or of some systems and conditions, to `out` and returns their number. The file appears
    only when it is complete.

    In an Excel workbook the one sheet is "answers"; texts stay texts, and a text with more than 32,767 characters, the most
    that a cell holds, is cut off with "…". In CSV a text that a spreadsheet would take for a formula gets a leading apostrophe, since answers are untrusted text.
    Raises `InputError` for an unknown system or condition, if `out` can't be written, and for more rows than a workbook
    holds.
    """
    card = store.card(benchmark)
    chosen = chosen_runs(store, benchmark, systems, conditions)
    facets, rows = export_rows(store, benchmark, card, all_items=all_items, runs=chosen)
    return write_rows(
        out, form, [*COLUMNS, *facets, "scorer"], rows, {"value", "latency_s", "repetition", "confidence"}
    )


def write_rows(
    out: Path, form: ExportFormat, columns: Sequence[str], rows: Iterator[dict[str, Any]], numbers: Collection[str] = ()
) -> int:
    """Writes rows to `out` and returns their number; the file appears only when it is complete. In Parquet the columns
    `numbers` are floats and all others texts. Raises `InputError` if `out` can't be written."""
    with whole_file(out) as part:
        if form == "parquet":
            return _write_parquet(part, columns, rows, numbers)
        if form == "xlsx":
            return _write_workbook(out, part, columns, rows)
        return (_write_jsonl if form == "jsonl" else _write_csv)(part, columns, rows)


def export_rows(
    store: Store, benchmark: str, card: BenchmarkCard, *, all_items: bool = False, runs: Sequence[Run] | None = None
) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """The facets' names, and the rows of these runs (None: all). `value` is None if an answer has no score of a metric that
    applies to its format; an answer whose metrics have no score in the run gets one such row, of the first metric that
    applies."""
    table = load_items(store, card, all_items=all_items)
    facets = [name for name in table.facet_names() if name not in {*COLUMNS, "scorer"}]
    chosen = chosen_runs(store, benchmark) if runs is None else list(runs)
    return facets, _rows(store, chosen, card, table, facets)


def _rows(
    store: Store, runs: Sequence[Run], card: BenchmarkCard, table: ItemTable, facets: Sequence[str]
) -> Iterator[dict[str, Any]]:
    items = {item.id: item for item in store.items(card.name)}
    columns = {name: table.facet(name) for name in facets}
    scorable: dict[tuple[str, str], NDArray[np.bool_]] = {}
    unscored = [Series(metric.name, "", np.full(len(table.ids), np.nan)) for metric in _first(card)]
    for run in runs:
        for number, repetition in enumerate(load_repetitions(store, run, table)):
            answers, series = store.answers(run, number), repetition.series
            for one in (*series, *unscored):
                scorable[one.metric, one.scorer] = table.scorable(card.metric(one.metric), one.scorer)
            for position, name in enumerate(table.ids):
                if name not in answers:
                    continue
                tags = {facet: "|".join(values[position]) for facet, values in columns.items()}
                own = [one for one in series if scorable[one.metric, one.scorer][position]]
                scoring = (one for one in unscored if scorable[one.metric, one.scorer][position])
                for one in own or [next(scoring, unscored[0])]:
                    yield _row(run, items[name], answers[name], one, position) | tags | {"scorer": one.scorer}


def _first(card: BenchmarkCard) -> list[Metric]:
    """The benchmark's metrics, the headline first."""
    return [card.metric(card.headline), *(metric for metric in card.metrics if metric.name != card.headline)]


def _row(run: Run, item: Item, answer: Answer, series: Series, row: int) -> dict[str, Any]:
    value = float(series.values[row]) if series.scored[row] else None
    return {
        "item": item.id,
        "group": item.group,
        "system": run.system,
        "condition": run.condition,
        "status": answer.status.value,
        "metric": series.metric,
        "value": value,
        "text": answer.text,
        # An answer of which nothing could be read is null in JSON; none at all has no cell.
        "parsed": json.dumps(answer.parsed, ensure_ascii=False) if answer.status is Status.ANSWERED else None,
        "latency_s": answer.timing.model_s if answer.timing else None,
        "extra": json.dumps(answer.extra, ensure_ascii=False) if answer.extra else None,
        "repetition": answer.repetition,
        "confidence": None if answer.confidence is None else answer.confidence.value,
    }


def _write_jsonl(part: Path, columns: Sequence[str], rows: Iterator[dict[str, Any]]) -> int:
    count = 0
    with part.open("w", encoding="utf-8") as file:
        for row in rows:
            ordered = {column: row[column] for column in columns}
            file.write(json_line(ordered))
            count += 1
    return count


def _write_csv(part: Path, columns: Sequence[str], rows: Iterator[dict[str, Any]]) -> int:
    count = 0
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(map(safe_cell, columns))
        for row in rows:
            writer.writerow([safe_cell(row[column]) for column in columns])
            count += 1
    return count


_MAX_ROWS, _MAX_TEXT = 1_048_576, 32_767  # of Excel


def _write_workbook(out: Path, part: Path, columns: Sequence[str], rows: Iterator[dict[str, Any]]) -> int:
    """A workbook with one sheet. A cell holds a number or a text, and never a formula."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    book = Workbook(write_only=True)
    sheet = book.create_sheet("answers")

    def cell(value: Any) -> Any:
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        text = ILLEGAL_CHARACTERS_RE.sub("\ufffd", str(value))
        text = text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
        made = WriteOnlyCell(sheet, value=text)
        made.data_type = "s"
        return made

    count = 0
    sheet.append([cell(name) for name in columns])
    for count, row in enumerate(rows, start=1):
        if count >= _MAX_ROWS:
            raise InputError(
                out, found=f"more than {_MAX_ROWS - 1:,} rows", expected="a file that holds them: .csv or .parquet"
            )
        sheet.append([cell(row.get(name)) for name in columns])
    book.save(part)
    return count


def _write_parquet(part: Path, columns: Sequence[str], rows: Iterator[dict[str, Any]], numbers: Collection[str]) -> int:
    import pyarrow as pa
    from pyarrow import parquet

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


_CHUNK = 1000
_WITHHELD = "withheld"
_MEMBERS = re.compile(r"(?P<kind>[^\[\]]+)\[(?P<members>.*)\]", re.DOTALL)
_PUBLIC_SETTINGS = {ORACLE, UNSUPPORTED, "budget_s"}

Row = dict[str, Any]
Change = Callable[[Row], Row]


def pseudonyms_of(store: Store, benchmark: str, baselines: Collection[str] = (), seed: int = 0) -> dict[str, str]:
    """ "System 1", "System 2" … for every system of a benchmark except the baselines. The numbers are drawn by seed and
    independent of names and ranks."""
    known = sorted({run.system for run in store.runs(benchmark)} - {*BASELINES, *baselines})
    order = generator(seed, "pseudonyms", benchmark).permutation(len(known))
    return {name: f"System {position + 1}" for name, position in zip(known, order.tolist(), strict=True)}


def hidden_judges(scorers: Collection[str]) -> dict[str, str]:
    """Names without models for all scorers except code: "judge A", "panel[judge A, judge B]".

    >>> hidden_judges(["code", "panel[gpt, claude]", "gpt"])
    {'code': 'code', 'gpt': 'judge B', 'panel[gpt, claude]': 'panel[judge B, judge A]'}
    """
    members = {name: _members(name) for name in sorted(scorers) if name != CODE}
    judges = sorted({one for _, some in members.values() for one in some})
    letters = {name: f"judge {_letters(position)}" for position, name in enumerate(judges)}
    shown = {name: ", ".join(letters[one] for one in some) for name, (_, some) in members.items()}
    found = {name: f"{kind}[{shown[name]}]" if kind else shown[name] for name, (kind, _) in members.items()}
    return {CODE: CODE} | found


def public_copy(store: Store, benchmark: str, pseudonyms: Mapping[str, str] | None = None) -> Store:
    """A temporary store of one benchmark's runs without texts of questions, answers and reasons, and without judgements and
    settings; scorers have names without models (`hidden_judges`), systems those of `pseudonyms`.

    References and parsed answers stay in the copy, since figures are computed from them: the tables and pages made from
    the copy may be published, the copy itself may not.
    """
    shown = pseudonyms or {}
    folder = tempfile.mkdtemp(prefix="proctor-")
    copy = Store(Path(folder) / "public.db")
    when_gone(copy, shutil.rmtree, folder, ignore_errors=True)
    with store.reading() as source, copy.writing() as target:
        tables = schema.benchmarks, schema.items, schema.flags, schema.runs, schema.answers, schema.scores
        benchmarks, items, flags, runs, answers, scores = tables
        own = select(benchmarks.c.id).where(benchmarks.c.name == benchmark).scalar_subquery()
        own_items = select(items.c.id).where(items.c.benchmark == own)
        own_runs = select(runs.c.id).where(runs.c.benchmark == own)
        scored = scores.c.run.in_(own_runs)
        judges = hidden_judges(source.scalars(select(scores.c.scorer).where(scored).distinct()).all())
        parts: list[tuple[Table, ColumnElement[bool], Change]] = [
            (benchmarks, benchmarks.c.id == own, lambda row: _card(row, shown, judges)),
            (items, items.c.benchmark == own, _item),
            (flags, flags.c.item.in_(own_items), lambda row: row),
            (runs, runs.c.benchmark == own, lambda row: _run(row, shown)),
            (answers, answers.c.run.in_(own_runs), _answer),
            (scores, scored, lambda row: _score(row, judges)),
        ]
        for table, where, change in parts:
            rows = source.execute(select(table).where(where)).mappings()
            while some := rows.fetchmany(_CHUNK):
                target.execute(insert(table), [change(dict(row)) for row in some])
    for one in studies_of(store, benchmark):  # the hash alone: the file names systems
        record_study(copy, benchmark, "study" if shown else one.name, one.sha256, "")
    return copy


def _card(row: Row, shown: Mapping[str, str], judges: Mapping[str, str]) -> Row:
    """Scorers without scores are left out. Disqualifications are public, their reasons are not: they may quote answers."""
    card = BenchmarkCard.model_validate(row["card"])
    rulings = tuple(
        Ruling(system=shown.get(ruling.system, ruling.system), reason="", since=ruling.since, lifted=ruling.lifted)
        for ruling in card.rulings
    )
    gives = {judges[name]: metrics for name, metrics in card.gives.items() if name in judges}
    bare = card.model_copy(update={"rulings": rulings, "folders": {}, "scorers": {}, "gives": gives})
    return row | {"card": bare.model_dump(mode="json")}


def _item(row: Row) -> Row:
    """Without the question and the reference's rationale."""
    item = Item.model_validate_json(row["body"])
    reference = item.reference and item.reference.model_copy(update={"rationale": ""})
    bare = item.model_copy(update={"question": _WITHHELD, "reference": reference})
    return row | {"body": bare.model_dump_json()}


def _run(row: Row, shown: Mapping[str, str]) -> Row:
    settings = {name: value for name, value in row["settings"].items() if name in _PUBLIC_SETTINGS}
    system = row["settings"].get("system")
    asked = {name: system[name] for name in ("abstain", "confidence") if isinstance(system, dict) and name in system}
    settings |= {"system": asked} if asked else {}
    return row | {"settings": settings, "system": shown.get(row["system"], row["system"]), "owner": ""}


def _score(row: Row, judges: Mapping[str, str]) -> Row:
    """Without judgements and names of people who decided."""
    label = DECIDED_BY_A_PERSON if is_decided(row["label"]) else row["label"]
    return row | {"scorer": judges[row["scorer"]], "judgement_key": "", "label": label}


def _answer(row: Row) -> Row:
    reason = NO_ANSWER if row["reason"] == NO_ANSWER else ""
    return row | {"text": "", "problem": "", "reason": reason, "extra": json.dumps(_public_extra(row["extra"]))}


def _public_extra(extra: str) -> dict[str, Any]:
    """The confidence of an answer, without the words of the reply: nothing else of `extra` is public."""
    if f'"{CONFIDENCE}"' not in extra:
        return {}
    found = Answer(item_id="", extra=json.loads(extra)).confidence
    return {} if found is None else {CONFIDENCE: found.public.model_dump(mode="json", exclude_defaults=True)}


def _members(scorer: str) -> tuple[str, list[str]]:
    """The kind and the members of a scorer of several models; "" and itself for a single one."""
    several = _MEMBERS.fullmatch(scorer)
    return (several["kind"], several["members"].split(", ")) if several else ("", [scorer])


def _letters(row: int) -> str:
    """A, B … Z, AA, AB …"""
    text = ""
    row += 1
    while row:
        row, rest = divmod(row - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


@dataclass(frozen=True)
class ScoredAnswer:
    """An answer of a system with one scorer's scores by dimension."""

    item: Item
    system: str
    text: str
    values: Mapping[str, float]


def scored_answers(store: Store, benchmark: str, runs: Sequence[Run], scorer: str) -> list[ScoredAnswer]:
    """The answers of these runs (without failed ones) with the scorer's scores, if any, by item and system."""
    values = {
        (judgement.item, judgement.system): judgement.values
        for judgement in judgements_of(store, benchmark, runs, scorer)
    }
    answers = {run.system: store.answers(run) for run in runs}
    return [
        ScoredAnswer(item, system, own[item.id].text, values.get((item.id, system), {}))
        for item in store.items(benchmark)
        for system, own in sorted(answers.items())
        if item.id in own and own[item.id].status is not Status.FAILED
    ]
