"""A judge's scores as the task takes them: ratings.csv's columns, `rater_id` being the judge."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from proctor.audits import Key
from proctor.core import InputError, write_whole
from proctor.runs import ScoredAnswer
from proctor.tasks.mediqa_eval.answers import AnswerRow, answers_to_judge
from proctor.tasks.mediqa_eval.task import COLUMNS, DIMENSIONS


def write_scores(
    scorer: str,
    scored: Sequence[ScoredAnswer],
    file: Path,
    *,
    template: Path | None = None,
    allow_missing: bool = False,
) -> int:
    """Writes a row for every answer and dimension and returns how many: in the order of the answers, or those of a
    template (a ratings file) in its order.

    The task takes a score for every answer, so one that is missing is an `InputError` and nothing is written;
    `allow_missing` leaves its row out. Raises `InputError` too for a template with other answers.
    """
    values = {(one.item.id, one.system, name): value for one in scored for name, value in one.values.items()}
    texts = {(one.item.id, one.system): one.text for one in scored}
    rows = [row for one in scored for row in _rows_of(one)] if template is None else _rows_in(template, texts)
    missing = [row for row in rows if row.key not in values]
    if missing and not allow_missing:
        found = f"no score for {len(missing)} of {len(rows)} rows, the first {', '.join(missing[0].key)}"
        raise InputError(file, found=found, expected="one for each: proctor score again, or --allow-missing")
    return _write(file, scorer, [row for row in rows if row.key in values], values)


def _rows_of(one: ScoredAnswer) -> list[AnswerRow]:
    dataset, language = str(one.item.tags["dataset"]), str(one.item.tags["language"])
    encounter = one.item.group.removeprefix(f"{dataset}/")
    return [AnswerRow(dataset, encounter, language, one.text, one.system, name) for name in DIMENSIONS[language]]


def _rows_in(template: Path, texts: Mapping[tuple[str, str], str]) -> Sequence[AnswerRow]:
    rows = answers_to_judge(template)
    for row in rows:
        if texts.get(row.key[:2], row.candidate) != row.candidate:
            place = f"{row.item}, {row.system}"
            raise InputError(template, place, found="another text than the scored one", expected="the same")
    return rows


def _write(file: Path, scorer: str, rows: Sequence[AnswerRow], values: Mapping[Key, float]) -> int:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in rows:
        cells = (one.dataset, one.encounter, one.language, one.candidate, one.system, one.dimension)
        writer.writerow((*cells, scorer, f"{values[one.key]:.10g}"))
    write_whole(file, text.getvalue())
    return len(rows)
