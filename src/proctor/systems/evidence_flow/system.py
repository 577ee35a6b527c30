"""`evidence-flow-m` and `evidence-flow-r`: overview, evidence per frame and per pair, and a decision.

After EvidenceFlow (DLNLP, in the overview of ClinicalSkillQA 2026), which has a variant led by the model and one
corrected by rules. The prompts and rules are this project's own: those of the paper are not public.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from proctor.core import Answer, Item, System, View
from proctor.models import ModelClient, Prompt, load_prompt
from proctor.systems.evidence_flow.replies import (
    Evidence,
    FrameEvidence,
    FrameReply,
    OverviewReply,
    PairEvidence,
    PairReply,
    named,
)
from proctor.systems.evidence_flow.rules import Correction, constraints, correct
from proctor.systems.keyframes import (
    Asking,
    KeyFrames,
    OrderReply,
    clipped,
    in_turn,
    key_frames,
    order_answer,
    orders_frames,
    read_labels,
)
from proctor.systems.methods import method_options, only_client
from proctor.systems.workflow import Offer, Workflow

__all__ = ["EvidenceFlow", "Options", "build_m", "build_r"]

VERSION = "1"
"""Changes whenever the same replies may give another answer; prompts have hashes of their own."""

PROMPTS = ("overview", "frame", "pair", "decision")


class Options(BaseModel):
    """`scenario` (cpr, aed, bmv) or `workflow` (a file) say what the procedure is; `pairs` which are compared:
    `all`, or only neighbours in the order that the overview `draft`s."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scenario: str | None = None
    workflow: str | None = None
    pairs: Literal["all", "draft"] = "all"


class EvidenceFlow:
    """Orders key frames by evidence that is gathered step by step; `ruled` has rules correct the model's order.

    For n frames shown (n ≥ 1) it makes 2 + n + p calls with 3·n + 2·p images: an overview (n images), a note on each
    frame (1), a note on each of p pairs (2), and the decision (n). p is n·(n − 1)/2 with `pairs="all"`, and n − 1 with
    `pairs="draft"` (fewer where the draft leaves frames out). Without frames it makes 1 call, the decision, with no
    image. One after the other: an answer's stopwatch can't tell overlapping calls apart.

    The procedure is what the options say, else what the question names; else the overview chooses among all that are
    known, and where it chooses none, steps and facts are not asked for. With `ruled`, constraints that the evidence
    compels (see `Constraint`) hold the order to account; it costs no call.

    `Answer.extra`: `rationale` (the model's; where rules changed the order, put together from the evidence),
    `evidence`, `calls`, `images`, with `ruled` also `correction`; `labels` where the model's order misses, repeats or
    invents labels. The model-led variant answers with the order as the model gave it, faults included; the ruled one
    with each label at its first place.
    """

    def __init__(self, client: ModelClient, options: Options, *, ruled: bool) -> None:
        self._client = client
        self._options = options
        self._ruled = ruled
        self._method = f"evidence-flow-{'r' if ruled else 'm'}"
        self._offer = Offer(self._method, scenario=options.scenario, workflow=options.workflow)
        self._prompts: dict[str, Prompt] = {
            name: load_prompt(Path(__file__).with_name(f"{name}.txt.j2")) for name in PROMPTS
        }

    @property
    def name(self) -> str:
        """With the model, since another model is another system."""
        return f"{self._method}[{self._client.name}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model, the prompts by hash, the workflows by hash, the pairs."""
        return {
            **self._client.settings,
            **self._offer.settings,
            "version": VERSION,
            "pairs": self._options.pairs,
            "prompts_sha256": {name: prompt.sha256 for name, prompt in self._prompts.items()},
        }

    def supports(self, item: Item) -> bool:
        """Orderings alone."""
        return orders_frames(item)

    async def answer(self, item: Item, view: View) -> Answer:
        """Raises `MachineryError` and `RefusalError` where a call ends so, `ValueError` for another format."""
        frames = await key_frames(item, view)
        workflows = self._offer.of(item.question)
        asking = Asking(self._client)
        evidence = (
            await self._gather(asking, frames, item.question, workflows) if frames.frames else Evidence()
        )
        decided = await self._decide(asking, frames, item.question, workflows, evidence)
        said = read_labels(decided.order, frames.labels)
        extra: dict[str, JsonValue] = {"evidence": evidence.told(), **asking.counts()}
        order, rationale = said.said, decided.rationale
        if self._ruled:
            correction = correct(said.known, constraints(evidence))
            order = correction.order
            extra["correction"] = correction.told(said.said)
            if correction.moved:
                rationale = assembled(evidence, correction)
        return order_answer(item, order, rationale=rationale, usage=asking.usage, extra=extra)

    async def _gather(
        self, asking: Asking, frames: KeyFrames, question: str, workflows: Sequence[Workflow]
    ) -> Evidence:
        first = await asking.ask(
            self._prompts["overview"],
            OverviewReply,
            frames.captioned(),
            question=question,
            labels=frames.shown,
            unseen=frames.unseen,
            workflows=workflows,
        )
        workflow, overview = named(first.procedure, workflows), clipped(first.summary, 600)
        draft = tuple(one for one in read_labels(first.order, frames.labels).known if one in frames.shown)
        notes: dict[str, FrameEvidence] = {}
        for label in frames.shown:
            note = await asking.ask(
                self._prompts["frame"],
                FrameReply,
                frames.captioned([label]),
                label=label,
                workflow=workflow,
                overview=overview,
            )
            notes[label] = FrameEvidence.of(note, workflow)
        pairs: list[PairEvidence] = []
        for one, other in self._pairs(frames.shown, draft):
            seen = await asking.ask(
                self._prompts["pair"],
                PairReply,
                frames.captioned([one, other]),
                first=one,
                second=other,
                overview=overview,
            )
            pairs.append(PairEvidence.of(one, other, seen))
        return Evidence(workflow, overview, draft, notes, tuple(pairs))

    def _pairs(self, shown: Sequence[str], draft: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Which are compared, each in the order in which its frames are given: the draft is not to be told."""
        if self._options.pairs == "all":
            yield from combinations(shown, 2)
            return
        for one, other in pairwise(draft):
            yield (one, other) if shown.index(one) < shown.index(other) else (other, one)

    async def _decide(
        self,
        asking: Asking,
        frames: KeyFrames,
        question: str,
        workflows: Sequence[Workflow],
        evidence: Evidence,
    ) -> OrderReply:
        chosen = (evidence.workflow,) if evidence.workflow is not None else workflows
        return await asking.ask(
            self._prompts["decision"],
            OrderReply,
            frames.captioned(),
            question=question,
            labels=frames.labels,
            shown=frames.shown,
            unseen=frames.unseen,
            workflows=chosen,
            overview=evidence.overview,
            frames=evidence.frames,
            pairs=evidence.pairs,
        )


def assembled(evidence: Evidence, correction: Correction) -> str:
    """A rationale for an order that the rules changed: each frame in turn, then what the rules mended."""
    titles = {}
    for label, note in evidence.frames.items():
        step = evidence.workflow.step(note.step) if evidence.workflow is not None else None
        titles[label] = step.title if step is not None else ""
    turns = in_turn(correction.order, {label: note.seen for label, note in evidence.frames.items()}, titles)
    mended = [
        f"{rule.earlier} comes before {rule.later}: {rule.why.rstrip('.')}."
        for rule in correction.violated
        if rule not in correction.broken
    ]
    return " ".join([turns, *mended])


def build_m(clients: Sequence[ModelClient], *, seed: int = 0, options: Mapping[str, JsonValue]) -> System:
    """Overview, evidence per frame and pair, order by the model (DLNLP's EvidenceFlow-M).

    It draws nothing, so the seed changes nothing.
    """
    del seed
    return _built("evidence-flow-m", clients, options, ruled=False)


def build_r(clients: Sequence[ModelClient], *, seed: int = 0, options: Mapping[str, JsonValue]) -> System:
    """The same, its order corrected by rules with the evidence for each (DLNLP's EvidenceFlow-R).

    It draws nothing, so the seed changes nothing.
    """
    del seed
    return _built("evidence-flow-r", clients, options, ruled=True)


def _built(
    method: str, clients: Sequence[ModelClient], options: Mapping[str, JsonValue], *, ruled: bool
) -> System:
    client = only_client(method, clients)
    return EvidenceFlow(client, method_options(method, Options, options), ruled=ruled)
