"""`pairwise-vote`: which of two frames comes first, asked both ways round, and the consensus of all votes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, permutations
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import Answer, Frame, Item, System, View
from proctor.metrics.ordering import MOST_LABELS
from proctor.models import ModelClient, load_prompt
from proctor.systems.keyframes import (
    Asking,
    KeyFrames,
    Reply,
    clipped,
    key_frames,
    order_answer,
    ordering_labels,
    orders_frames,
)
from proctor.systems.methods import method_options, only_client
from proctor.systems.pairwise_vote.votes import Ballot, Tally, read_choice
from proctor.systems.workflow import Offer, Workflow

__all__ = ["Options", "PairwiseVote", "build"]

VERSION = "1"
"""Changes whenever the same replies may give another answer; the prompt has a hash of its own."""

METHOD = "pairwise-vote"


class Options(BaseModel):
    """`samples` is how often each pair is asked each way round; `scenario` (cpr, aed, bmv) or `workflow` (a file) say
    what the procedure is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    samples: int = Field(default=2, ge=1, le=25)
    scenario: str | None = None
    workflow: str | None = None


class VoteReply(Reply):
    """Which of two pictures was taken earlier, and why."""

    reason: str = Field(default="", description="What tells which is the earlier one.")
    earlier: str = Field(default="", description="1, 2 or unclear.", coerce_numbers_to_str=True)


class PairwiseVote:
    """Orders key frames by votes on pairs: the exact Kemeny consensus.

    For n frames shown it makes n·(n − 1)·samples calls with two images each, one after the other; fewer than two
    frames, no calls. Both frames of a pair are shown in both orders, under the numbers 1 and 2, never under their
    labels. Samples differ only where the model's temperature is above 0.

    An undecided vote, or one for neither, is no vote. The order holds the frames that a vote was cast on; where there
    is none, the answer states none. Up to `MOST_LABELS` (14) labels: items with more are not supported.

    The procedure is what the options say, else what the question names; where it names none, all that are known
    stand in the prompt.

    `Answer.extra`: `rationale` (the reasons of votes for each step of the order), `agreement` (the share of the votes
    that the order keeps, 0.5 to 1: its confidence), `against` (votes), `even` (neighbours in the order that as many
    votes have the other way round, or none at all: they stand as given), `voting` (`labels`, the matrix `votes` with
    [i][j] the votes for i before j, `decided`, `undecided`, `first_shown_share` (0.5 is no position bias),
    `pairs_decided_both_ways` and how many of them `pairs_decided_alike`), `calls`, `images`.
    """

    def __init__(self, client: ModelClient, options: Options) -> None:
        self._client = client
        self._samples = options.samples
        self._offer = Offer(METHOD, scenario=options.scenario, workflow=options.workflow)
        self._prompt = load_prompt(Path(__file__).with_name("vote.txt.j2"))

    @property
    def name(self) -> str:
        """With the model, since another model is another system."""
        return f"{METHOD}[{self._client.name}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model, the prompt and the workflows by hash, the samples."""
        return {
            **self._client.settings,
            **self._offer.settings,
            "version": VERSION,
            "samples": self._samples,
            "prompts_sha256": {"vote": self._prompt.sha256},
        }

    def supports(self, item: Item) -> bool:
        """Orderings of up to `MOST_LABELS` labels."""
        return orders_frames(item) and len(ordering_labels(item)) <= MOST_LABELS

    async def answer(self, item: Item, view: View) -> Answer:
        """Raises `MachineryError` and `RefusalError` where a call ends so, `ValueError` for another format."""
        frames = await key_frames(item, view)
        asking = Asking(self._client)
        workflows = self._offer.of(item.question)
        ballots = [
            await self._vote(asking, frames, pair, workflows)
            for _ in range(self._samples)
            for pair in permutations(frames.shown, 2)
        ]
        tally = Tally(frames.shown, ballots)
        found = tally.consensus()
        order = found.order if found is not None else ()
        extra: dict[str, JsonValue] = {
            "agreement": found.agreement if found is not None else None,
            "against": found.against if found is not None else None,
            "even": [[*pair] for pair in tally.even(order)],
            "voting": tally.told(),
            **asking.counts(),
        }
        return order_answer(item, order, rationale=_rationale(order, tally), usage=asking.usage, extra=extra)

    async def _vote(
        self, asking: Asking, frames: KeyFrames, pair: tuple[str, str], workflows: Sequence[Workflow]
    ) -> Ballot:
        shown = [
            Frame(frame.jpeg, None, f"Picture {number}")
            for number, frame in enumerate(frames.captioned(pair), start=1)
        ]
        said = await asking.ask(self._prompt, VoteReply, shown, workflows=workflows)
        return Ballot(pair, read_choice(said.earlier), clipped(said.reason, 200))


def _rationale(order: Sequence[str], tally: Tally) -> str:
    """Of each step from one frame to the next, how the votes fell and the first reason for it."""
    lines = []
    for one, other in pairwise(order):
        about = [ballot for ballot in tally.decided if set(ballot.shown) == {one, other}]
        backing = [ballot for ballot in about if ballot.earlier == one]
        counted = f"{one} before {other} ({len(backing)} of {len(about)} votes)"
        reason = next((ballot for ballot in backing if ballot.reason), None)
        if reason is None:
            lines.append(f"{counted}.")
            continue
        named = ", ".join(f"picture {number} is {label}" for number, label in enumerate(reason.shown, 1))
        lines.append(f"{counted}: {reason.reason.rstrip('.')} ({named}).")
    return " ".join(lines)


def build(clients: Sequence[ModelClient], *, seed: int = 0, options: Mapping[str, JsonValue]) -> System:
    """Which of two frames comes first, asked both ways round; the consensus by exact Kemeny.

    It draws nothing, so the seed changes nothing.
    """
    del seed
    return PairwiseVote(only_client(METHOD, clients), method_options(METHOD, Options, options))
