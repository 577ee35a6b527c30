"""The answers that are to be judged: read from a ratings file without looking at its ratings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from proctor.audits import Key
from proctor.core import TableFault, read_table
from proctor.tasks.mediqa_eval.native import cell_faults, item_id
from proctor.tasks.mediqa_eval.task import COLUMNS

LOOKED_AT = tuple(name for name in COLUMNS if name not in {"rater_id", "value"})


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
    for row in read_table(file, LOOKED_AT).checked(file):
        wrong = cell_faults(row)
        if wrong:
            raise wrong[0].error(file)
        one = AnswerRow(*(row.cells[name] for name in LOOKED_AT))
        place, text = texts.setdefault(one.key[:2], (row.number, one.candidate))
        if text != one.candidate:
            raise TableFault(row.number, "candidate", "another text", f"that of row {place}").error(file)
        found.setdefault(one.key, one)
    return tuple(found.values())
