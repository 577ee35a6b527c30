"""A submission read as what a judge said before, of answers that nobody need have rated."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from proctor.audit.ratings import Key
from proctor.audit.tables import Fault, read_table
from proctor.benchmarks.mediqa_eval.native import Entry, entries, shown
from proctor.benchmarks.mediqa_eval.task import COLUMNS, OPTED_OUT
from proctor.judges.dimensions import Case

__all__ = ["recorded_scores"]


def recorded_scores(file: Path, cases: Mapping[tuple[str, str], Case]) -> dict[Case, dict[str, float]]:
    """The scores of cases (by item and system) in a submission; rows of other answers are not looked at.

    As in the task, the first of two rows with one key counts; −1 opts out, and gives no score. Raises
    `InputError`, with the row, for anything that is not as the task lays down, a text that differs, a case
    without a row, and two systems that gave the same text and got different scores, since a judge is
    never told which of them it judges.
    """
    good, faults = entries(read_table(file, COLUMNS).checked(file), rated=False)
    if faults:
        raise faults[0].error(file)
    first: dict[Key, Entry] = {}
    for one in good:
        if one.key[:2] in cases:
            first.setdefault(one.key, one)
    found: dict[Case, dict[str, float]] = {}
    rows: dict[tuple[Case, str], Entry] = {}
    for (item, system), case in cases.items():
        for dimension in case.dimensions:
            key = (item, system, dimension.name)
            if key not in first:
                raise Fault(0, "", f"no row for {shown(key)}", "one for every answer").error(file)
            one = first[key]
            if one.candidate != case.candidate:
                raise Fault(one.row, "candidate", "another text than the answer's", "the same").error(file)
            before = rows.setdefault((case, dimension.name), one)
            if before.value != one.value:
                place = f"{one.value:g} for the text of row {before.row}"
                raise Fault(one.row, "value", place, f"the same score, {before.value:g}").error(file)
            if one.value != OPTED_OUT:
                found.setdefault(case, {})[dimension.name] = one.value
    return found
