"""From facts to a procedural state, and from a state to an ordinal stage: rules without a model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from proctor.systems.workflow import Workflow

__all__ = ["State", "state_of"]


@dataclass(frozen=True, slots=True)
class State:
    """What a frame shows of the procedure: its step (None: none), the steps that are behind it because what they
    brought about is there (`done`), and the stage, from 0, that follows (None: nothing tells it).

    A step at level k of the workflow stands for the stage 2·k, and a step that is behind for 2·k + 1; the stage is the
    largest of them.
    """

    step: str | None
    done: tuple[str, ...]
    stage: int | None


def state_of(facts: Collection[str], workflow: Workflow) -> State:
    """The state in which these facts are true, and no others are known to be.

    The step is the latest one (by level, then as listed) all of whose `shown_by` are true and none of whose
    `never_with` is. Facts that the workflow does not know say nothing.

    >>> from proctor.systems.workflow import built_in
    >>> state_of(["hands_on_chest", "chest_bare"], built_in("cpr"))
    State(step='compress', done=('bare_chest',), stage=8)
    >>> state_of(["chest_bare"], built_in("cpr")).stage, state_of([], built_in("cpr")).stage
    (7, None)
    """
    shown = [
        step.name
        for step in workflow.steps
        if all(name in facts for name in step.shown_by) and not any(name in facts for name in step.never_with)
    ]
    step = max(shown, key=workflow.level, default=None)
    done = tuple(
        dict.fromkeys(
            fact.lasts.since
            for name, fact in workflow.facts.items()
            if name in facts and fact.lasts is not None
        )
    )
    stages = [2 * workflow.level(name) + 1 for name in done]
    if step is not None:
        stages.append(2 * workflow.level(step))
    return State(step, done, max(stages, default=None))
