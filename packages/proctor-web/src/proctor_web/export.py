"""Exports of a review: readings, the consensus, scores for the store, preferences, and a section of a datasheet.

People appear by pseudonym. An export holds what its viewer may see.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, select

from proctor.core import DASH, Dimension, InputError, Score, count_of, human, number, number_interval, percent
from proctor.results import ExportFormat, write_rows
from proctor.runs import Store
from proctor.stats import PreferenceModel, Resampling, bradley_terry
from proctor_web.agreement import PLAN, sealed_readings, study_agreement
from proctor_web.progress import SETTLED, read_version
from proctor_web.schema import accounts, assignments, consensus, readings, studies, study_items, versions
from proctor_web.settings import StudySettings
from proctor_web.sources import items_of_runs
from proctor_web.visibility import sealed_of_study

READING_COLUMNS = (
    "study", "form", "item", "group", "version", "gold", "reader", "payload", "comment", "seconds", "sealed", "origin",
)  # fmt: skip
CONSENSUS_COLUMNS = (
    "study", "form", "item", "group", "version", "current", "by", "payload", "reason", "at", "body", "readings",
)  # fmt: skip


def reading_rows(connection: Connection, viewer: int, study: str) -> list[dict[str, Any]]:
    """All sealed readings that an account may see, by item, version and reader, with the columns `READING_COLUMNS`;
    `seconds` are None where they were not measured, and `origin` is the version of the construction project's record that
    was read ("" for items from elsewhere)."""
    query = sealed_of_study(
        viewer,
        study,
        studies.c.name.label("study"),
        studies.c.form,
        study_items.c.key.label("item"),
        study_items.c.group_name.label("group"),
        versions.c.number.label("version"),
        study_items.c.gold.is_not(None).label("gold"),
        accounts.c.pseudonym.label("reader"),
        readings.c.payload,
        readings.c.comment,
        readings.c.seconds,
        readings.c.sealed,
        versions.c.body,
    )
    found = []
    for row in connection.execute(query).mappings():
        entry = dict(row)
        origin = entry.pop("body").get("origin", "")
        found.append(entry | {"gold": bool(row["gold"]), "seconds": row["seconds"] or None, "origin": origin})
    return found


def consensus_rows(connection: Connection, viewer: int, study: str) -> list[dict[str, Any]]:
    """All versions that are settled, and the current ones that all readers have submitted and nobody has settled, of the
    items whose readings an account may see, with the columns `CONSENSUS_COLUMNS`. `by` is the adjudicator's pseudonym,
    "agreed", or "" where nothing is settled, with no `payload`; `body` is the item as it was settled; `current` is false
    where a newer version is read now; `readings` are those of this version, by reader."""
    readings_of: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in reading_rows(connection, viewer, study):
        said = {name: row[name] for name in ("reader", "payload", "comment")}
        if not row["gold"]:
            readings_of[row["item"], row["version"]].append(said)
    found = []
    for settled in connection.execute(_consensus(study)).mappings():
        entry = dict(settled)
        said_of = readings_of.get((entry["item"], entry["version"]))
        if said_of and (entry["current"] or entry["payload"] is not None):
            body, current = entry.pop("changed") or entry["body"], bool(entry["current"])
            by = entry["by"] or ("" if entry["payload"] is None else "agreed")
            more = {"by": by, "reason": entry["reason"] or "", "body": body, "current": current, "readings": said_of}
            found.append(entry | more)
    return found


def _consensus(study: str) -> Select[Any]:
    """All versions of a study's items, with what was settled."""
    own = versions.alias("own")
    return (
        select(
            studies.c.name.label("study"),
            studies.c.form,
            study_items.c.key.label("item"),
            study_items.c.group_name.label("group"),
            own.c.number.label("version"),
            (own.c.id == read_version(study_items.c.id)).label("current"),
            accounts.c.pseudonym.label("by"),
            consensus.c.payload,
            consensus.c.reason,
            consensus.c.at,
            own.c.body,
            versions.c.body.label("changed"),
        )
        .select_from(own)
        .join(study_items, study_items.c.id == own.c.item)
        .join(studies, studies.c.id == study_items.c.study)
        .outerjoin(consensus, consensus.c.version == own.c.id)
        .outerjoin(accounts, accounts.c.id == consensus.c.account)
        .outerjoin(
            versions,
            (versions.c.item == own.c.item) & (versions.c.number == own.c.number + 1) & (versions.c.why == SETTLED),
        )
        .where(studies.c.name == study)
        .order_by(study_items.c.position, own.c.number)
    )


ROWS: Mapping[str, tuple[Callable[[Connection, int, str], list[dict[str, Any]]], Sequence[str]]] = {
    "readings": (reading_rows, READING_COLUMNS),
    "consensus": (consensus_rows, CONSENSUS_COLUMNS),
}
"""The exports in rows, with their columns."""


def write_readings(rows: Sequence[dict[str, Any]], columns: Sequence[str], out: Path, form: ExportFormat) -> int:
    """Writes rows of readings or of the consensus, and returns their number. In Parquet and CSV, payloads are JSON
    texts. Raises `InputError` where `out` can't be written."""
    flat = rows if form == "jsonl" else [{name: _cell(value) for name, value in row.items()} for row in rows]
    return write_rows(out, form, columns, iter(flat), {"version", "seconds"})


def _cell(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return str(value).lower() if isinstance(value, bool) else value


# -- ratings and preferences


def scores_into_store(connection: Connection, viewer: int, study: StudySettings, store: Store) -> int:
    """Writes the sealed ratings of answers as scores by `human:PSEUDONYM`, which `proctor audit` compares with judges,
    and returns their number. Repeated calls write the same scores.

    Raises `InputError` for a study that rates no answers of a store.
    """
    _check_form(study, "rating")
    origins = {new.key: origin for new, origin in items_of_runs(store, study)}
    metrics: dict[str, Any] = {}
    by_run: dict[int, tuple[Any, list[Score]]] = {}
    for reading in sealed_readings(connection, viewer, study.name):
        if reading.gold is not None or reading.key not in origins:
            continue
        (run,), item = origins[reading.key].runs, origins[reading.key].item
        for dimension in reading.body.dimensions:
            metrics[dimension.name] = Dimension(dimension.name, dimension.levels).metric
            score = Score(
                item_id=item,
                metric=dimension.name,
                value=reading.payload.scores[dimension.name],
                scorer=human(reading.reader),
            )
            by_run.setdefault(run.id, (run, []))[1].append(score)
    known = {metric.name for metric in store.card(study.benchmark).metrics}
    store.declare_metrics(study.benchmark, [one for name, one in metrics.items() if name not in known])
    for run, scores in by_run.values():
        store.add_scores(run, scores)
    return sum(len(scores) for _, scores in by_run.values())


def preferences(
    connection: Connection, viewer: int, study: StudySettings, store: Store, plan: Resampling = PLAN
) -> PreferenceModel:
    """The strengths of systems by a study's pairwise choices (Bradley and Terry, ties after Davidson), with bootstrap
    intervals over groups. Raises `InputError` for a study of another form."""
    _check_form(study, "pairwise")
    origins = {new.key: origin for new, origin in items_of_runs(store, study)}
    points = {"first": 1.0, "second": 0.0, "tie": 0.5}
    some = [
        reading
        for reading in sealed_readings(connection, viewer, study.name)
        if reading.gold is None and reading.key in origins
    ]
    first, second = ([origins[sealed_reading.key].runs[row].system for sealed_reading in some] for row in (0, 1))
    return bradley_terry(
        first,
        second,
        [points[sealed_reading.payload.choice] for sealed_reading in some],
        [sealed_reading.group for sealed_reading in some],
        plan,
    )


def _check_form(study: StudySettings, form: str) -> None:
    if study.form != form or not study.benchmark:
        expected = f"a study with form: {form} and benchmark: NAME"
        raise InputError(f"study {study.name}", found=f"the form {study.form}", expected=expected)


# -- a datasheet


def datasheet_section(connection: Connection, viewer: int, study: str) -> list[str]:
    """The section of a datasheet on the review, as lines of Markdown: readers, readings, agreement, and what was
    settled."""
    found = study_agreement(connection, viewer, study)
    rows = reading_rows(connection, viewer, study)
    settled = [row for row in consensus_rows(connection, viewer, study) if row["by"]]
    agreed = sum(one["by"] == "agreed" for one in settled)
    readers = sorted({row["reader"] for row in rows})
    dealt = (
        select(study_items.c.id)
        .join(studies, studies.c.id == study_items.c.study)
        .join(assignments, assignments.c.item == study_items.c.id)
        .where(studies.c.name == study, study_items.c.gold.is_(None))
        .distinct()
    )
    items = len(connection.execute(dealt).all())
    lines = [
        "## Reviewed by",
        "",
        (
            f"{count_of(len(readers), 'reader')} ({', '.join(readers)}), each blind to the others until the reading was "
            f"submitted: {count_of(len(rows), 'submitted reading')} of {found.items} of {count_of(items, 'item')}."
        ),
        (
            f"{count_of(agreed, 'item')} settled by agreement, {len(settled) - agreed} by adjudication. Two readings of an "
            f"item said the same in {percent(found.same.value)} of pairs "
            f"[{percent(found.same.ci_low)}, {percent(found.same.ci_high)}]."
        ),
        "",
        "| dimension | agreement | Gwet's AC1 | Krippendorff's α |",
        "|---|---|---|---|",
    ]
    for dimension in found.dimensions:
        ac1, alpha = (
            DASH if a is None else f"{number(a.value)} [{number_interval(a.ci_low, a.ci_high)}]"
            for a in (dimension.ac1, dimension.alpha)
        )
        name = (dimension.name or "all").replace("|", "\\|")
        lines.append(f"| {name} | {percent(dimension.percent.value)} | {ac1} | {alpha} |")
    return lines
