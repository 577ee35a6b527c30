"""Whether a trained judge is the same judge wherever its weights go: in the trainer's memory, as an adapter that is
loaded again, merged into its base, and served over HTTP.

A judge that was good in the trainer and is served without its adapter, under another chat template or with another
tokenizer still gives scores, and nothing in them says so. So the scores of the same items are compared along all paths,
and nothing is exported unless they agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from proctor.core import InputError, Table, columns, number

TOLERANCE = 0.01
"""So far may scores be apart, as a share of the dimension's range."""

_ROUNDED = 1e-9

_BITS = {"bfloat16": 7, "float16": 10, "float32": 23, "float64": 52}

ITEMS = 50
"""So many items are compared, or all where there are fewer."""

ParityPath = Literal["base", "memory", "reloaded", "merged", "served"]

_FROZEN = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PathScores(BaseModel):
    """What one path gives each item: by dimension the expected score (`scores`, as a share of the range) and the
    likeliest level (`levels`). An item without a score is left out. `prompts` are hashes of each item's prompt as
    tokens, `template` and `tokenizer` hashes, `precision` the type of number that is enough for the weights; empty
    where a path does not show them (a server)."""

    model_config = _FROZEN

    path: ParityPath
    scores: dict[str, dict[str, float]]
    levels: dict[str, dict[str, float]]
    prompts: dict[str, str] = {}
    template: str = ""
    tokenizer: str = ""
    precision: str = ""

    def furthest(self, other: PathScores) -> tuple[float, str]:
        """The largest difference of a score from another path's, and where it is."""
        apart = [
            (abs(value - other.scores[item][name]), f"{item}, {name}")
            for item, values in self.scores.items()
            for name, value in values.items()
            if name in other.scores.get(item, {})
        ]
        return max(apart, default=(0.0, ""))

    def flips(self, other: PathScores) -> int:
        """How many likeliest levels are others."""
        return sum(
            level != other.levels[item][name]
            for item, levels in self.levels.items()
            for name, level in levels.items()
            if name in other.levels.get(item, {})
        )

    def lacks(self, other: PathScores) -> int:
        """How many of another path's scores it does not have."""
        return sum(name not in self.scores.get(item, {}) for item, values in other.scores.items() for name in values)


@dataclass(frozen=True)
class ParityRow:
    """One path beside the trainer's memory: how many items it scored, how far the scores are apart at most, how many
    likeliest levels are others, and how far its scores are from those of the untrained base at most."""

    path: ParityPath
    items: int
    worst: float
    flips: int
    from_base: float


@dataclass(frozen=True)
class ParityReport:
    """The paths, and what is wrong with them, one line each; without a fault the judge may be exported."""

    rows: tuple[ParityRow, ...]
    faults: tuple[str, ...]

    def check(self) -> None:
        """Raises `InputError` that names the first fault."""
        if self.faults:
            more = f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
            raise InputError("parity", found=self.faults[0] + more, expected="the same judge on every path: no export")

    def table(self) -> Table:
        """The paths as a table."""
        rows = tuple(
            (one.path, str(one.items), number(one.worst), str(one.flips), number(one.from_base)) for one in self.rows
        )
        heads = columns("path", ">items", ">largest difference", ">levels flipped", ">furthest from the base")
        return Table("The same items on every path, compared with the trainer's memory.", heads, rows, title="Parity")


def compare_paths(base: PathScores, memory: PathScores, others: Sequence[PathScores]) -> ParityReport:
    """Compares each path with the scores in the trainer's memory, and with those of the untrained base.

    A fault is: a score further away than `TOLERANCE`, a score that is missing, a prompt that is made of other tokens,
    another chat template or tokenizer, weights of lower precision, and a path with no score further than `TOLERANCE` from the base
    model's, since nothing then shows that the adapter was loaded. Flipped levels alone are none: they are counted.
    Raises `InputError` where memory has no scores at all.
    """
    if not memory.scores:
        raise InputError("parity", found="no scores", expected="some: the model gives no rating of the asked form")
    rows, faults = [], []
    for one in (memory, *others):
        worst, where = one.furthest(memory)
        from_base = one.furthest(base)[0]
        rows.append(ParityRow(one.path, len(one.scores), worst, one.flips(memory), from_base))
        faults += _identity_faults(one, memory)
        if worst > TOLERANCE + _ROUNDED:
            faults.append(f"{one.path}: a score is off by {worst:.3f} ({where}), at most {TOLERANCE} is expected")
        if missing := one.lacks(memory):
            faults.append(f"{one.path}: scores missing that the trainer's memory gives: {missing}")
        if from_base <= TOLERANCE + _ROUNDED:
            faults.append(
                f"{one.path}: the adapter is inert: no score is further than {TOLERANCE} from the base model's"
            )
    return ParityReport(tuple(rows), tuple(faults))


def _identity_faults(one: PathScores, memory: PathScores) -> list[str]:
    found = []
    kinds: Mapping[str, tuple[str, str]] = {
        "chat template": (one.template, memory.template),
        "tokenizer": (one.tokenizer, memory.tokenizer),
    }
    for what, (own, expected) in kinds.items():
        if own and expected and own != expected:
            found.append(f"{one.path}: another {what} ({own[:12]}, trained with {expected[:12]})")
    if one.precision and _BITS.get(one.precision, 0) < _BITS.get(memory.precision, 0):
        found.append(f"{one.path}: weights in {one.precision}, trained in {memory.precision}")
    other = sum(prompt != memory.prompts.get(item, prompt) for item, prompt in one.prompts.items())
    if other:
        found.append(f"{one.path}: prompts of other tokens than in training: {other}")
    return found
