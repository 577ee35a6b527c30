"""Precedence that the evidence compels, and the order nearest to the model's own that breaks the least of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

from pydantic import JsonValue

from proctor.metrics.ordering import MOST_LABELS, nearest_order
from proctor.systems.evidence_flow.replies import Evidence, FrameEvidence
from proctor.systems.workflow import Lasting, Workflow

__all__ = ["Constraint", "Correction", "constraints", "correct"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """That one frame comes before another, of what kind the reason is, and what was seen that supports it.

    `step`: both certainly show steps of which one always precedes the other. `lasting`: something that stays once
    it is so is not yet so in one, and so in the other. `pair`: the two side by side leave no doubt.
    """

    earlier: str
    later: str
    kind: Literal["step", "lasting", "pair"]
    why: str

    def told(self) -> dict[str, JsonValue]:
        """For an answer's `extra`."""
        return {"earlier": self.earlier, "later": self.later, "kind": self.kind, "why": self.why}


@dataclass(frozen=True, slots=True)
class Correction:
    """The order after the rules. `violated` are the constraints that the model's own order breaks, `broken` those
    that the corrected one breaks still (where they contradict each other), `moved` the pairs that changed places.

    `because` says why nothing was corrected, where nothing could be.
    """

    order: tuple[str, ...]
    violated: tuple[Constraint, ...] = ()
    broken: tuple[Constraint, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    because: str = ""

    def told(self, own: Sequence[str]) -> dict[str, JsonValue]:
        """For an answer's `extra`, violation by violation; `own` is the model's order."""
        violations: list[JsonValue] = [
            {**one.told(), "mended": one not in self.broken} for one in self.violated
        ]
        given_up: list[JsonValue] = [one.told() for one in self.broken if one not in self.violated]
        return {
            "model_order": [*own],
            "violations": violations,
            "given_up": given_up,
            "moved": [[*pair] for pair in self.moved],
            **({"because": self.because} if self.because else {}),
        }


def constraints(evidence: Evidence) -> list[Constraint]:
    """All of them, at most one of a kind for two frames; one each way round is possible, and then they contradict."""
    found: list[Constraint] = []
    if evidence.workflow is not None:
        for (a, one), (b, other) in permutations(evidence.frames.items(), 2):
            found += _by_steps(a, one, b, other, evidence.workflow)
            found += _by_lasting(a, one, b, other, evidence.workflow)
    for pair in evidence.pairs:
        if pair.certain and pair.earlier is not None and pair.later is not None:
            found.append(Constraint(pair.earlier, pair.later, "pair", pair.change))
    return found


def correct(order: Sequence[str], rules: Sequence[Constraint]) -> Correction:
    """The order that breaks the fewest constraints, each counted, and among those the nearest to `order`.

    Exact for up to `MOST_LABELS` frames (see `nearest_order`); a longer order stays as it is, and says so. `order`
    has each label at most once; constraints on labels that it lacks are left aside, and labels that it lacks stay away.
    """
    here = [rule for rule in rules if rule.earlier in order and rule.later in order]
    if not here:
        return Correction(tuple(order))
    violated = _broken(order, here)
    if len(order) > MOST_LABELS:
        because = f"more than {MOST_LABELS} frames"
        return Correction(tuple(order), violated, violated, because=because)
    repair = nearest_order(order, [(rule.earlier, rule.later) for rule in here])
    return Correction(repair.order, violated, _broken(repair.order, here), repair.moved)


def _broken(order: Sequence[str], rules: Sequence[Constraint]) -> tuple[Constraint, ...]:
    place = {label: number for number, label in enumerate(order)}
    return tuple(rule for rule in rules if place[rule.earlier] > place[rule.later])


def _by_steps(
    a: str, one: FrameEvidence, b: str, other: FrameEvidence, workflow: Workflow
) -> Iterator[Constraint]:
    if not (one.certain and other.certain and one.step and other.step):
        return
    if workflow.precedes(one.step, other.step):
        why = f"{a} shows {one.step}, {b} shows {other.step}, which comes after it in {workflow.title}"
        yield Constraint(a, b, "step", why)


def _by_lasting(
    a: str, one: FrameEvidence, b: str, other: FrameEvidence, workflow: Workflow
) -> Iterator[Constraint]:
    names = [
        name
        for name, fact in workflow.facts.items()
        if fact.lasts is not None
        and name in one.false_facts
        and name in other.true_facts
        and not _may_be_over(fact.lasts, one, workflow)
    ]
    if names:
        seen = "; ".join(workflow.facts[name].seen for name in names)
        yield Constraint(a, b, "lasting", f"not yet in {a}, and so in {b}: {seen}")


def _may_be_over(lasts: Lasting, one: FrameEvidence, workflow: Workflow) -> bool:
    """Whether the fact may be false in a frame because its time has passed."""
    if lasts.until is None:
        return False
    return not one.certain or one.step is None or not workflow.precedes(one.step, lasts.until)
