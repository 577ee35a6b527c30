"""Frames sorted by stage; frames of one stage by where they lie along the direction in which all frames differ most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proctor.systems.stage_score.features import first_component

__all__ = ["Sorted", "sort_frames"]


@dataclass(frozen=True, slots=True)
class Sorted:
    """The order; `borrowed` says of each frame without a stage of its own whose stage it was given (the most alike
    frame's that has one); `tied` are the groups that shared a stage, and `direction` is what told the component's
    first end from its last: "stages", "given" (no knowledge), or "" where nothing was tied."""

    order: tuple[str, ...]
    borrowed: dict[str, str]
    tied: tuple[tuple[str, ...], ...]
    direction: str


def sort_frames(
    labels: Sequence[str], stages: Mapping[str, int | None], vectors: NDArray[np.float64]
) -> Sorted:
    """Sorts by stage, ties by the first principal component of `vectors` (one row per label, in the order of `labels`).

    A component has no direction of its own: it runs with the stages, as far as they go up or down along it (Pearson's
    correlation, over the frames that have one); else, without knowledge, from the end of the frame that is given first.
    A frame without a stage gets that of the nearest one (Euclidean) that has one. Where none has, all are tied.
    """
    own = {label: stage for label in labels if (stage := stages.get(label)) is not None}
    if not labels:
        return Sorted((), {}, (), "")
    row = {label: number for number, label in enumerate(labels)}
    stageless = [] if not own else [label for label in labels if label not in own]
    borrowed = {
        label: min(
            own, key=lambda one: (float(np.linalg.norm(vectors[row[label]] - vectors[row[one]])), row[one])
        )
        for label in stageless
    }
    stage_of = dict.fromkeys(labels, 0) | own | {label: own[lender] for label, lender in borrowed.items()}
    groups = {
        stage: tuple(one for one in labels if stage_of[one] == stage)
        for stage in sorted(set(stage_of.values()))
    }
    tied = tuple(group for group in groups.values() if len(group) > 1)
    if not tied:
        return Sorted(tuple(group[0] for group in groups.values()), borrowed, (), "")
    along, direction = _directed(first_component(vectors), labels, own)
    order = sorted(labels, key=lambda one: (stage_of[one], round(float(along[row[one]]), 9), row[one]))
    return Sorted(tuple(order), borrowed, tied, direction)


def _directed(
    places: NDArray[np.float64], labels: Sequence[str], own: Mapping[str, int]
) -> tuple[NDArray[np.float64], str]:
    """The places, turned so that they go up with the stages."""
    if not own:
        return (places if places[0] <= 0 else -places), "given"
    with_stage = [number for number, label in enumerate(labels) if label in own]
    stages = np.array([own[labels[number]] for number in with_stage], dtype=float)
    with_them = float(((stages - stages.mean()) * (places[with_stage] - places[with_stage].mean())).sum())
    if abs(with_them) > 1e-9:
        return (places if with_them > 0 else -places), "stages"
    return (places if places[0] <= 0 else -places), "given"
