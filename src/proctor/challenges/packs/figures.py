"""What a pack says of a file of answers: aggregates alone, from the code that marks submissions here."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from proctor.api import audit, import_answers, results
from proctor.challenges.marking import Entrant, Figures, mark_entrant
from proctor.challenges.sealed import SealedPart
from proctor.challenges.settings import ChallengeSettings, Phase
from proctor.core import InputError, RecordedAnswers, content_hash, input_bytes, read_model, reader_of
from proctor.runs import import_answers as import_recorded

PART_FILE = "part.json"
"""The file beside the questions of a pack: how they are read and marked."""

RATINGS_FILE = "ratings.csv"
"""People's ratings, in the folder of a phase whose benchmark has scorers marked against them."""

LONGEST_KEY = 36
"""Characters of a column's key and title on Codabench."""

STATUSES = ("readable", "unreadable", "not_submitted", "refused", "timed_out", "error")
"""How answers ended, each counted once."""

_NAME = "submission"
_DRAWS = 2000


class PackedPart(BaseModel):
    """The questions of a phase as a pack carries them: `settings` are those of a challenge of this one phase, with
    paths beside this file; `fingerprint` is the hash of the questions with their references."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: ChallengeSettings
    fingerprint: str

    @property
    def phase(self) -> Phase:
        """The one phase."""
        return self.settings.phases[0]


@dataclass(frozen=True)
class PackFigure:
    """One aggregate. `value` is None where there is none; `ascending`: lower is better; `aside`: it bounds another
    figure or counts something, and ranks nobody."""

    name: str
    title: str
    value: float | None
    ascending: bool = False
    aside: bool = False

    @property
    def key(self) -> str:
        """The name as platforms take it: at most 36 characters, the same for the same name.

        >>> PackFigure("accuracy", "Accuracy", 0.5).key
        'accuracy'
        """
        if len(self.name) <= LONGEST_KEY:
            return self.name
        return f"{self.name[:27]}_{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"


def read_part(folder: Path) -> PackedPart:
    """A pack's questions. Raises `InputError` where they are not those that were packed."""
    part = read_model(folder / PART_FILE, PackedPart, "the questions of a pack")
    check_part(part, folder)
    return part


def check_part(part: PackedPart, folder: Path) -> None:
    """Raises `InputError` where the questions in a folder are not those that were packed."""
    if packed_hash(SealedPart(folder, part.settings), part.phase) != part.fingerprint:
        raise InputError(folder, found="other questions or references", expected="those that were packed")


def packed_hash(sealed: SealedPart, phase: Phase) -> str:
    """The hash of all that marks: the questions with their references, and people's ratings where there are some."""
    ratings = ratings_of(sealed, phase)
    known = hashlib.sha256(input_bytes(ratings)).hexdigest() if ratings.is_file() else ""
    return content_hash([sealed.benchmark(phase.name).fingerprint, known])


def ratings_of(sealed: SealedPart, phase: Phase) -> Path:
    """Where people's ratings lie, if there are some."""
    return sealed.folder / (phase.sealed or phase.questions) / RATINGS_FILE


def figures_of(
    folder: Path, settings: ChallengeSettings, phase: Phase, given: Path | RecordedAnswers
) -> list[PackFigure]:
    """The figures of answers, or of a file of answers, or of one with a scorer's scores where the benchmark has
    ratings; the first ranks. A judge is not asked: it would need a network. Raises `InputError` for a file that can't
    be read."""
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as scratch:
        changed = {"answers": f"sqlite:///{scratch}/{{phase}}.sqlite", "judge": None, "baselines": ()}
        sealed = SealedPart(folder, settings.model_copy(update=changed))
        if reader_of(settings.benchmark, settings.track).ratings:
            if isinstance(given, RecordedAnswers):
                raise InputError(
                    folder, "answers", found="answers", expected="a file of scores: answers are rated here"
                )
            return _agreement(sealed, phase, given)
        return _marked(sealed, phase, given)


def _marked(sealed: SealedPart, phase: Phase, given: Path | RecordedAnswers) -> list[PackFigure]:
    store, benchmark = sealed.store_at(phase.name), sealed.benchmark(phase.name)
    if isinstance(given, RecordedAnswers):
        with sealed.store(phase.name) as opened:
            how: dict[str, Any] = {"name": _NAME, "condition": phase.condition, "scorers": ()}  # marked below
            asyncio.run(import_recorded(opened, benchmark, given, **how))
    else:
        import_answers(benchmark, given, name=_NAME, condition=phase.condition, store=store)
    told = mark_entrant(sealed, phase.name, Entrant(_NAME))
    found = [*_boards(told)]
    rows = results(store, benchmark.name, systems=[_NAME], conditions=[phase.condition], draws=_DRAWS).data
    by_name = {row.metric: row for row in sorted(rows.rows, key=lambda one: one.value is not None)}
    for name in dict.fromkeys(row.metric for row in rows.rows):
        declared = rows.card.metric(name)
        found.append(PackFigure(name, declared.label, by_name[name].value, not declared.higher_is_better))
    return [
        *found,
        *(PackFigure(name, name.replace("_", " "), told.statuses.get(name, 0), aside=True) for name in STATUSES),
    ]


def _boards(figures: Figures) -> Iterator[PackFigure]:
    for one in figures.boards:
        title = one.name.capitalize()
        yield PackFigure(one.name, f"{title} board", one.mean, not one.higher_is_better)
        yield PackFigure(f"{one.name}_low", f"{title}, low", one.low, aside=True)
        yield PackFigure(f"{one.name}_high", f"{title}, high", one.high, aside=True)
        yield PackFigure(f"{one.name}_questions", f"{title}, questions", one.questions, aside=True)


def _agreement(sealed: SealedPart, phase: Phase, file: Path) -> list[PackFigure]:
    """A scorer's agreement with people, under the organisers' own keys."""
    from proctor.audits import CorrelationSettings
    from proctor.audits import audit as audit_of

    store, benchmark = sealed.store_at(phase.name), sealed.benchmark(phase.name)
    import_answers(benchmark, ratings_of(sealed, phase), store=store)
    import_answers(benchmark, file, scorer=_NAME, store=store)
    compared = audit(store, benchmark=benchmark.name).data
    found = audit_of(compared.table, compared.metrics[0], CorrelationSettings(draws=0))
    figures = reader_of(sealed.settings.benchmark, sealed.settings.track).official_audit(found)
    whole = [name for name in figures if name.endswith("-ALL-mean")]
    named = [*whole, *(name for name in figures if name not in whole)]
    return [PackFigure(name, name, figures[name], aside=not name.startswith("ALL-")) for name in named]


def shown(figures: list[PackFigure], digits: int) -> dict[str, float]:
    """The figures that there are, rounded, by key."""
    return {one.key: round(float(one.value), digits) for one in figures if one.value is not None}
