"""What the model is asked for, and what of it is kept as evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import Field, JsonValue

from proctor.systems.keyframes import LabelList, Reply, clipped, read_labels, spelled
from proctor.systems.workflow import Workflow

__all__ = ["Evidence", "FrameEvidence", "FrameReply", "OverviewReply", "PairEvidence", "PairReply", "named"]


class OverviewReply(Reply):
    """What all pictures show together."""

    summary: str = Field(
        default="", description="Who and what is there, and what changes from picture to picture."
    )
    procedure: str = Field(default="", description="The name of the procedure, or other.")
    order: LabelList = Field(default=[], description="The order guessed at first sight.")


class FrameReply(Reply):
    """What one picture shows."""

    seen: str = Field(default="", description="What the picture shows.")
    step: str | None = Field(default=None, description="The name of the step that it shows, or none.")
    certain: bool = Field(default=False, description="Whether no other step fits.")
    true_facts: list[str] = Field(default=[], description="Names of the facts that it shows.")
    false_facts: list[str] = Field(default=[], description="Names of the facts that it shows not to be so.")


class PairReply(Reply):
    """What two pictures tell about time."""

    change: str = Field(default="", description="What differs between them that tells about time.")
    earlier: str = Field(default="", description="The label of the earlier one, or unclear.")
    certain: bool = Field(default=False, description="Whether the change can not have gone the other way.")


@dataclass(frozen=True, slots=True)
class FrameEvidence:
    """Of one frame: what is seen, its step (None: none that the workflow knows), which facts are true and false."""

    seen: str
    step: str | None
    certain: bool
    true_facts: tuple[str, ...]
    false_facts: tuple[str, ...]

    @classmethod
    def of(cls, reply: FrameReply, workflow: Workflow | None) -> FrameEvidence:
        """Names that the workflow does not know are left out, and facts that are said to be both true and false."""
        known = workflow.facts.keys() if workflow is not None else ()
        said, denied = spelled(reply.true_facts), spelled(reply.false_facts)
        step = workflow.step(next(iter(spelled([reply.step or ""])))) if workflow is not None else None
        return cls(
            seen=clipped(reply.seen),
            step=step.name if step is not None else None,
            certain=reply.certain and step is not None,
            true_facts=tuple(name for name in said if name in known and name not in denied),
            false_facts=tuple(name for name in denied if name in known and name not in said),
        )

    def told(self) -> dict[str, JsonValue]:
        """For an answer's `extra`."""
        return {
            "seen": self.seen,
            "step": self.step,
            "certain": self.certain,
            "true_facts": [*self.true_facts],
            "false_facts": [*self.false_facts],
        }


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """Of two frames: what changes, and which is the earlier one (None: unclear, or no label that was shown)."""

    first: str
    second: str
    change: str
    earlier: str | None
    certain: bool

    @classmethod
    def of(cls, first: str, second: str, reply: PairReply) -> PairEvidence:
        """The reply, with the label as it was meant."""
        known = read_labels([reply.earlier], (first, second)).known
        earlier = known[0] if known else None
        return cls(first, second, clipped(reply.change, 200), earlier, reply.certain and earlier is not None)

    @property
    def later(self) -> str | None:
        """The other one."""
        if self.earlier is None:
            return None
        return self.second if self.earlier == self.first else self.first

    def told(self) -> dict[str, JsonValue]:
        """For an answer's `extra`."""
        return {
            "pair": [self.first, self.second],
            "change": self.change,
            "earlier": self.earlier,
            "certain": self.certain,
        }


@dataclass(frozen=True)
class Evidence:
    """All that was noted before the decision. `workflow` is None where the model names no known procedure."""

    workflow: Workflow | None = None
    overview: str = ""
    draft: tuple[str, ...] = ()
    frames: dict[str, FrameEvidence] = field(default_factory=dict)
    pairs: tuple[PairEvidence, ...] = ()

    def told(self) -> dict[str, JsonValue]:
        """For an answer's `extra`: at most 600 characters of the overview, 300 of a frame, 200 of a pair."""
        return {
            "procedure": self.workflow.name if self.workflow is not None else None,
            "overview": self.overview,
            "draft": [*self.draft],
            "frames": {label: one.told() for label, one in self.frames.items()},
            "pairs": [one.told() for one in self.pairs],
        }


def named(procedure: str, workflows: Sequence[Workflow]) -> Workflow | None:
    """The workflow that is the only one offered, else the one that the model names."""
    if len(workflows) == 1:
        return workflows[0]
    return next((one for one in workflows if one.name == procedure.strip().casefold()), None)
