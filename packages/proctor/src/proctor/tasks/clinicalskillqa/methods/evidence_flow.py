"""`evidence-flow-m` and `evidence-flow-r`: key frames ordered by evidence, by the model alone or corrected by rules.

Only evidence that the model calls certain makes a rule. On simulated evidence the rules help while about nine in ten
certain notes are right, and harm where fewer are: hence both variants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations, pairwise, permutations
from typing import ClassVar, Literal

from pydantic import Field, JsonValue
from pydantic_core import to_jsonable_python

from proctor.metrics.ordering import MOST_LABELS, nearest_order
from proctor.tasks.clinicalskillqa.methods.keyframes import (
    FoundOrder,
    KeyFrameMethod,
    LabelList,
    MethodOptions,
    OrderingTask,
    OrderReply,
    ReplyForm,
    clipped,
    in_turn,
    read_labels,
    spelled,
    workflow_named,
)
from proctor.tasks.clinicalskillqa.methods.workflow import Lasting, Workflow


class OverviewReply(ReplyForm):
    """What all pictures show together."""

    summary: str = Field(default="", description="Who and what is there, and what changes from picture to picture.")
    procedure: str = Field(default="", description="The name of the procedure, or other.")
    order: LabelList = Field(default=[], description="The order guessed at first sight.")


class FrameReply(ReplyForm):
    """What one picture shows."""

    seen: str = Field(default="", description="What the picture shows.")
    step: str | None = Field(default=None, description="The name of the step that it shows, or none.")
    certain: bool = Field(default=False, description="Whether no other step fits.")
    true_facts: list[str] = Field(default=[], description="Names of the facts that it shows.")
    false_facts: list[str] = Field(default=[], description="Names of the facts that it shows not to be so.")


class PairReply(ReplyForm):
    """What two pictures tell about time."""

    change: str = Field(default="", description="What differs between them that tells about time.")
    earlier: str = Field(default="", description="The label of the earlier one, or unclear.")
    certain: bool = Field(default=False, description="Whether the change can not have gone the other way.")


@dataclass(frozen=True, slots=True)
class FrameEvidence:
    """One frame: what is seen, its step (None: none of the workflow's), which facts are true and which false."""

    seen: str
    step: str | None
    certain: bool
    true_facts: tuple[str, ...]
    false_facts: tuple[str, ...]

    @classmethod
    def of(cls, reply: FrameReply, workflow: Workflow | None) -> FrameEvidence:
        """Unknown names are left out, and facts that the reply calls both true and false."""
        known = workflow.facts.keys() if workflow is not None else ()
        true, false = spelled(reply.true_facts), spelled(reply.false_facts)
        step = workflow.step(next(iter(spelled([reply.step or ""])))) if workflow is not None else None
        return cls(
            seen=clipped(reply.seen),
            step=step.name if step is not None else None,
            certain=reply.certain and step is not None,
            true_facts=tuple(name for name in true if name in known and name not in false),
            false_facts=tuple(name for name in false if name in known and name not in true),
        )


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """Two frames: what changes, and which is the earlier one (None: unclear, or neither label)."""

    first: str
    second: str
    change: str
    earlier: str | None
    certain: bool

    @classmethod
    def of(cls, first: str, second: str, reply: PairReply) -> PairEvidence:
        known = read_labels([reply.earlier], (first, second)).known
        earlier = known[0] if known else None
        return cls(first, second, clipped(reply.change, 200), earlier, reply.certain and earlier is not None)

    @property
    def later(self) -> str | None:
        if self.earlier is None:
            return None
        return self.second if self.earlier == self.first else self.first


@dataclass(frozen=True)
class GatheredEvidence:
    """All notes before the decision. `workflow` is None where the model names no known procedure."""

    workflow: Workflow | None = None
    overview: str = ""
    draft: tuple[str, ...] = ()
    frames: dict[str, FrameEvidence] = field(default_factory=dict)
    pairs: tuple[PairEvidence, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """For an answer's `extra`: at most 600 characters of the overview, 300 of a frame, 200 of a pair."""
        pairs = [
            {"pair": (pair.first, pair.second), "change": pair.change, "earlier": pair.earlier, "certain": pair.certain}
            for pair in self.pairs
        ]
        found: dict[str, JsonValue] = to_jsonable_python(
            {
                "procedure": self.workflow and self.workflow.name,
                "overview": self.overview,
                "draft": self.draft,
                "frames": self.frames,
                "pairs": pairs,
            }
        )
        return found


@dataclass(frozen=True, slots=True)
class Constraint:
    """That one frame comes before another, the kind of reason, and what was seen that supports it.

    `step`: both frames certainly show steps of which one always precedes the other. `lasting`: a lasting fact is not
    yet true in one frame and true in the other. `pair`: comparing the two frames leaves no doubt.
    """

    earlier: str
    later: str
    kind: Literal["step", "lasting", "pair"]
    why: str


@dataclass(frozen=True, slots=True)
class Correction:
    """The order after the rules. `violated` are the constraints that the model's own order breaks, `broken` those that
    the corrected order still breaks (constraints may contradict each other), `moved` the pairs that were swapped.

    `because` says why nothing could be corrected.
    """

    order: tuple[str, ...]
    violated: tuple[Constraint, ...] = ()
    broken: tuple[Constraint, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    because: str = ""

    def to_json(self, own: Sequence[str]) -> dict[str, JsonValue]:
        """For an answer's `extra`, violation by violation; `own` is the model's order."""
        violations: list[JsonValue] = [
            {**asdict(constraint), "corrected": constraint not in self.broken} for constraint in self.violated
        ]
        given_up: list[JsonValue] = [
            asdict(constraint) for constraint in self.broken if constraint not in self.violated
        ]
        return {
            "model_order": [*own],
            "violations": violations,
            "given_up": given_up,
            "moved": [[*pair] for pair in self.moved],
            **({"because": self.because} if self.because else {}),
        }


def constraints(evidence: GatheredEvidence) -> list[Constraint]:
    """All constraints, at most one of each kind and direction for two frames; opposite ones may contradict each other."""
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
    """The order that breaks the fewest constraints, and among those the nearest to `order`.

    Exact for up to `MOST_LABELS` frames (see `nearest_order`); a longer order is not corrected. `order` has each label
    at most once; constraints on other labels are ignored.
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
    position = {label: number for number, label in enumerate(order)}
    return tuple(rule for rule in rules if position[rule.earlier] > position[rule.later])


def _by_steps(
    a: str, frame_evidence: FrameEvidence, b: str, other: FrameEvidence, workflow: Workflow
) -> Iterator[Constraint]:
    if not (frame_evidence.certain and other.certain and frame_evidence.step and other.step):
        return
    if workflow.precedes(frame_evidence.step, other.step):
        why = f"{a} shows {frame_evidence.step}, {b} shows {other.step}, which comes after it in {workflow.title}"
        yield Constraint(a, b, "step", why)


def _by_lasting(
    a: str, frame_evidence: FrameEvidence, b: str, other: FrameEvidence, workflow: Workflow
) -> Iterator[Constraint]:
    names = [
        name
        for name, fact in workflow.facts.items()
        if fact.lasts is not None
        and name in frame_evidence.false_facts
        and name in other.true_facts
        and not _may_be_over(fact.lasts, frame_evidence, workflow)
    ]
    if names:
        seen = "; ".join(workflow.facts[name].seen for name in names)
        yield Constraint(a, b, "lasting", f"not yet in {a}, and so in {b}: {seen}")


def _may_be_over(lasts: Lasting, frame_evidence: FrameEvidence, workflow: Workflow) -> bool:
    """Whether the fact may be false in a frame because it has ended."""
    if lasts.until is None:
        return False
    return (
        not frame_evidence.certain
        or frame_evidence.step is None
        or not workflow.precedes(frame_evidence.step, lasts.until)
    )


class EvidenceFlowOptions(MethodOptions):
    """`pairs`: which frames are compared, `all` pairs or only neighbours in the overview's `draft` order."""

    pairs: Literal["all", "draft"] = "all"


class EvidenceFlow(KeyFrameMethod):
    """Orders key frames by evidence that is collected step by step; with `ruled`, rules correct the model's order.

    For n frames shown (n ≥ 1) it makes 2 + n + p calls with 3·n + 2·p images: an overview (n images), a note on each
    frame (1), a note on each of p pairs (2), and the decision (n). p is n·(n − 1)/2 with `pairs="all"`, and n − 1 with
    `pairs="draft"` (fewer where the draft leaves frames out). Without frames it makes 1 call, the decision, with no
    image. Calls do not overlap.

    The procedure is what the options say, else what the question names; else the overview chooses among all known ones,
    and where it chooses none, steps and facts are not asked for. With `ruled`, the order is corrected to satisfy the
    constraints that follow from the evidence (see `Constraint`); that takes no call.

    `Answer.extra`: `rationale` (the model's; where rules changed the order, made from the evidence), `evidence`,
    `calls`, `images`, with `ruled` also `correction`; `labels` where the model's order misses, repeats or invents
    labels. The model-led variant answers with the model's order, faults included; the ruled one with each label at its
    first position.
    """

    version, folder, files = "1", "evidence_flow", ("overview", "frame", "pair", "decision")
    form = EvidenceFlowOptions
    options: EvidenceFlowOptions
    ruled: ClassVar[bool] = False

    def details(self) -> dict[str, JsonValue]:
        return {"pairs": self.options.pairs}

    async def find(self, task: OrderingTask) -> FoundOrder:
        """Evidence, the model's decision, and its correction by rules."""
        evidence = await self._gather(task) if task.frames.frames else GatheredEvidence()
        decided = await self._decide(task, evidence)
        own = read_labels(decided.order, task.frames.labels)
        extra: dict[str, JsonValue] = {"evidence": evidence.to_json()}
        order, rationale = own.labels, decided.rationale
        if self.ruled:
            correction = correct(own.known, constraints(evidence))
            order = correction.order
            extra["correction"] = correction.to_json(own.labels)
            if correction.moved:
                rationale = assembled(evidence, correction)
        return FoundOrder(order, rationale, extra)

    async def _gather(self, task: OrderingTask) -> GatheredEvidence:
        frames, ask = task.frames, task.model.ask
        shown = {"labels": frames.shown, "unseen": frames.unseen, "workflows": task.workflows}
        first = await ask(
            self.prompts["overview"], OverviewReply, frames.captioned(), question=task.item.question, **shown
        )
        workflow, overview = workflow_named(first.procedure, task.workflows), clipped(first.summary, 600)
        draft = tuple(one for one in read_labels(first.order, frames.labels).known if one in frames.shown)
        notes: dict[str, FrameEvidence] = {}
        for label in frames.shown:
            values = {"label": label, "workflow": workflow, "overview": overview}
            note = await ask(self.prompts["frame"], FrameReply, frames.captioned([label]), **values)
            notes[label] = FrameEvidence.of(note, workflow)
        pairs: list[PairEvidence] = []
        for one, other in self._pairs(frames.shown, draft):
            values = {"first": one, "second": other, "overview": overview}
            compared = await ask(self.prompts["pair"], PairReply, frames.captioned([one, other]), **values)
            pairs.append(PairEvidence.of(one, other, compared))
        return GatheredEvidence(workflow, overview, draft, notes, tuple(pairs))

    def _pairs(self, shown: Sequence[str], draft: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The pairs to compare, each in the order in which its frames are given: the prompt must not reveal the draft."""
        if self.options.pairs == "all":
            yield from combinations(shown, 2)
            return
        for one, other in pairwise(draft):
            yield (one, other) if shown.index(one) < shown.index(other) else (other, one)

    async def _decide(self, task: OrderingTask, evidence: GatheredEvidence) -> OrderReply:
        frames = task.frames
        return await task.model.ask(
            self.prompts["decision"],
            OrderReply,
            frames.captioned(),
            question=task.item.question,
            labels=frames.labels,
            shown=frames.shown,
            unseen=frames.unseen,
            workflows=(evidence.workflow,) if evidence.workflow is not None else task.workflows,
            overview=evidence.overview,
            frames=evidence.frames,
            pairs=evidence.pairs,
        )


class EvidenceFlowM(EvidenceFlow):
    """Overview, evidence per frame and pair, order by the model (DLNLP's EvidenceFlow-M)."""

    method = "evidence-flow-m"


class EvidenceFlowR(EvidenceFlow):
    """The same, its order corrected by rules with the evidence for each (DLNLP's EvidenceFlow-R)."""

    method, ruled = "evidence-flow-r", True


def assembled(evidence: GatheredEvidence, correction: Correction) -> str:
    """A rationale for an order that the rules changed: each frame in turn, then the corrections."""
    titles = {}
    for label, note in evidence.frames.items():
        step = evidence.workflow.step(note.step) if evidence.workflow is not None else None
        titles[label] = step.title if step is not None else ""
    turns = in_turn(correction.order, {label: note.seen for label, note in evidence.frames.items()}, titles)
    corrected = [
        f"{rule.earlier} comes before {rule.later}: {rule.why.rstrip('.')}."
        for rule in correction.violated
        if rule not in correction.broken
    ]
    return " ".join([turns, *corrected])
