"""What a pack says of one file of answers: aggregates alone, by the same code on every platform and here."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from proctor.api import audit, import_answers, load, rank, results
from proctor.core import Benchmark, InputError, content_hash, read_model, reader_of

PART_FILE = "part.json"
"""The file beside the questions of a pack: how they are read and marked."""

RATINGS_FILE = "ratings.csv"
"""People's ratings, in the folder of a phase whose benchmark has scorers marked against them."""

LONGEST_KEY = 36
"""Characters of a column's key and title on Codabench."""

_NAME = "submission"
_COUNTS = ("n", "groups", "answered", "timed_out", "refused", "error", "unreadable", "not_submitted", "missing")
_DRAWS = 2000
_BOARD_DRAWS = 100  # of win rates, which no pack shows


class PackedPart(BaseModel):
    """The questions of a phase as a pack carries them: `data` and `media` are paths beside this file. `digits` is how
    figures are rounded; `fingerprint` is the hash of the questions with their references."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    benchmark: str
    track: str = ""
    data: str
    media: str
    condition: str = "video"
    budget_s: float = Field(gt=0)
    digits: int = Field(ge=1, le=17)
    fingerprint: str


@dataclass(frozen=True)
class PackFigure:
    """One aggregate. `value` is None where there is none; `ascending`: lower is better; `count`: it counts answers or
    questions, or bounds another figure, and ranks nobody."""

    name: str
    title: str
    value: float | None
    ascending: bool = False
    count: bool = False

    @property
    def key(self) -> str:
        """The name as platforms take it: at most 36 characters, the same for the same name.

        >>> PackFigure("accuracy", "Accuracy", 0.5).key
        'accuracy'
        """
        if len(self.name) <= LONGEST_KEY:
            return self.name
        return f"{self.name[:27]}_{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"


def read_part(folder: Path) -> tuple[PackedPart, Benchmark]:
    """A pack's questions. Raises `InputError` where they are not those that were packed."""
    part = read_model(folder / PART_FILE, PackedPart, "the questions of a pack")
    return part, part_benchmark(part, folder)


def part_benchmark(part: PackedPart, folder: Path) -> Benchmark:
    """The questions at the part's paths below a folder. Raises `InputError` where they are not those that were packed."""
    loaded = load(part.benchmark, folder / part.data, folder / part.media, track=part.track)
    if packed_hash(loaded, folder / part.data) != part.fingerprint:
        raise InputError(folder, found="other questions or references", expected="those that were packed")
    return replace(loaded, budget_s=part.budget_s)


def packed_hash(benchmark: Benchmark, data: Path) -> str:
    """The hash of all that marks: the questions with their references, and people's ratings where there are some."""
    ratings = data / RATINGS_FILE
    known = hashlib.sha256(ratings.read_bytes()).hexdigest() if ratings.is_file() else ""
    return content_hash([benchmark.fingerprint, known])


def figures_of(part: PackedPart, benchmark: Benchmark, data: Path, file: Path, form: str = "") -> list[PackFigure]:
    """The figures of one file of answers, or of a scorer's scores where the benchmark has ratings; the first ranks.

    `form` names the format where it is not the benchmark's own. A judge is not asked: it would need a network. Raises
    `InputError` for a file that can't be read.
    """
    with tempfile.TemporaryDirectory(prefix="proctor-pack-") as folder:
        store = Path(folder) / "marks.sqlite"
        if reader_of(part.benchmark, part.track).ratings:
            return _agreement(part, benchmark, data, file, store)
        how: dict[str, Any] = {"name": _NAME, "condition": part.condition, "store": store, "form": form}
        import_answers(benchmark, file, **how)
        return _marked(benchmark, store, part)


def _marked(benchmark: Benchmark, store: Path, part: PackedPart) -> list[PackFigure]:
    where: dict[str, Any] = {"source": store, "benchmark": benchmark.name, "systems": [_NAME]}
    rows = results(**where, conditions=[part.condition], draws=_DRAWS).data
    found: list[PackFigure] = []
    if benchmark.buckets:
        for board in rank(**where, condition=part.condition, draws=_BOARD_DRAWS, stability=0).boards:
            mean = next((one.standing.mean for one in board.runs), None)
            found.append(PackFigure(board.name, f"{board.name.capitalize()} (mean over buckets)", mean))
            found.append(
                PackFigure(f"{board.name}_questions", f"{board.name.capitalize()}: questions", board.items, count=True)
            )
    first = [one for one in rows.rows if one.metric == benchmark.headline]
    for row in [*first, *(one for one in rows.rows if one not in first)]:
        declared = rows.card.metric(row.metric)
        found.append(PackFigure(row.metric, declared.label, row.value, not declared.higher_is_better))
        found.append(PackFigure(f"{row.metric}_low", f"{declared.label}, low", row.ci_low, count=True))
        found.append(PackFigure(f"{row.metric}_high", f"{declared.label}, high", row.ci_high, count=True))
    for row in first[:1]:
        found += [PackFigure(name, name.replace("_", " "), float(getattr(row, name)), count=True) for name in _COUNTS]
    return found


def _agreement(part: PackedPart, benchmark: Benchmark, data: Path, file: Path, store: Path) -> list[PackFigure]:
    """A scorer's agreement with people, under the organisers' own keys."""
    from proctor.audits import CorrelationSettings
    from proctor.audits import audit as audit_of

    import_answers(benchmark, data / RATINGS_FILE, store=store)
    import_answers(benchmark, file, scorer=_NAME, store=store)
    compared = audit(store, benchmark=benchmark.name).data
    found = audit_of(compared.table, compared.metrics[0], CorrelationSettings(draws=0))
    figures = reader_of(part.benchmark, part.track).official_audit(found)
    whole = [name for name in figures if name.endswith("-ALL-mean")]
    named = [*whole, *(name for name in figures if name not in whole)]
    return [PackFigure(name, name, figures[name], count=not name.startswith("ALL-")) for name in named]


def shown(figures: list[PackFigure], digits: int) -> dict[str, float]:
    """The figures that there are, rounded, by key."""
    return {one.key: round(float(one.value), digits) for one in figures if one.value is not None}
