"""The answers that are to be judged, as cases: read from a ratings file without looking at its ratings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.audit import RatingsTable
from proctor.audit.ratings import Key
from proctor.audit.tables import Fault, read_table
from proctor.benchmarks.mediqa_eval.native import Encounter, cell_faults, item_id
from proctor.benchmarks.mediqa_eval.task import COLUMNS, dimensions
from proctor.core import InputError
from proctor.judges.dimensions import Case, RatedCase

__all__ = ["AnswerRow", "answers_to_judge", "cases_of", "rated_cases"]

_LOOKED_AT = tuple(name for name in COLUMNS if name not in {"rater_id", "value"})


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One row of a submission to be: an answer and the dimension that it is judged on."""

    dataset: str
    encounter: str
    language: str
    candidate: str
    system: str
    dimension: str

    @property
    def item(self) -> str:
        """The encounter's question in one language."""
        return item_id(self.dataset, self.encounter, self.language)

    @property
    def key(self) -> Key:
        """Item, system and dimension."""
        return self.item, self.system, self.dimension


def answers_to_judge(file: Path) -> tuple[AnswerRow, ...]:
    """The rows that a submission must have, each once, in the order of the file.

    The columns `value` and `rater_id` are not looked at, and may be absent. Raises `InputError`, with the
    row, for anything else that is not as the task lays down, and for two candidates of one system for one
    encounter and language.
    """
    found: dict[Key, AnswerRow] = {}
    texts: dict[tuple[str, str], tuple[int, str]] = {}
    for row in read_table(file, _LOOKED_AT).checked(file):
        wrong = cell_faults(row)
        if wrong:
            raise wrong[0].error(file)
        one = AnswerRow(*(row.cells[name] for name in _LOOKED_AT))
        place, text = texts.setdefault(one.key[:2], (row.number, one.candidate))
        if text != one.candidate:
            raise Fault(row.number, "candidate", "another text", f"that of row {place}").error(file)
        found.setdefault(one.key, one)
    return tuple(found.values())


def cases_of(
    rows: Iterable[AnswerRow],
    encounters: Sequence[Encounter],
    *,
    image_root: Path | None = None,
    file: str | Path = "encounters",
) -> dict[tuple[str, str], Case]:
    """The case of each answer, by item and system, in the order of the rows; on all dimensions of its
    language. Raises `InputError`, naming `file`, for an answer without an encounter."""
    known = {one.item: one for one in encounters}
    found: dict[tuple[str, str], Case] = {}
    for one in rows:
        if one.item not in known:
            raise InputError(file, found=f"no encounter {one.item}", expected="one for every answer")
        if one.key[:2] not in found:
            found[one.key[:2]] = _case(known[one.item], one.candidate, image_root)
    return found


def rated_cases(
    table: RatingsTable,
    encounters: Sequence[Encounter],
    *,
    image_root: Path | None = None,
    file: str | Path = "encounters",
) -> dict[tuple[str, str], RatedCase]:
    """The rated answers as cases with the mean of their raters, by item and system, in the order of the
    ratings. Raises `InputError`, naming `file`, for an answer without an encounter."""
    known = {one.item: one for one in encounters}
    texts: dict[tuple[str, str], str] = {}
    given: dict[tuple[str, str], dict[str, list[float]]] = {}
    for one in table.ratings:
        if one.item not in known:
            raise InputError(file, found=f"no encounter {one.item}", expected="one for every answer")
        texts[one.item, one.system] = one.candidate
        given.setdefault((one.item, one.system), {}).setdefault(one.dimension, []).append(one.value)
    return {
        key: RatedCase(
            _case(known[key[0]], texts[key], image_root),
            {name: sum(values) / len(values) for name, values in rated.items()},
        )
        for key, rated in given.items()
    }


def _case(encounter: Encounter, candidate: str, image_root: Path | None) -> Case:
    return Case(
        id=encounter.item,
        encounter=f"{encounter.dataset}/{encounter.encounter_id}",
        dataset=encounter.dataset,
        language=encounter.lang,
        query=encounter.query,
        references=encounter.expert_answers,
        candidate=candidate,
        dimensions=dimensions(encounter.lang),
        images=encounter.images,
        image_root=image_root,
    )
