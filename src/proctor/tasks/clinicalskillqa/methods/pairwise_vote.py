"""`pairwise-vote`: key frames in the order that most votes on pairs agree with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from proctor.core import Frame, Item
from proctor.core.formats import OrderingFormat
from proctor.metrics.ordering import MOST_LABELS, Consensus, kemeny_of_votes
from proctor.tasks.clinicalskillqa.methods.keyframes import (
    FoundOrder,
    KeyFrameMethod,
    MethodOptions,
    OrderingTask,
    ReplyForm,
    clipped,
)

_ANSWER = re.compile(r"(?:picture|image|frame|number|no\.?)?[\s#:]*([12])(?:st|nd)?", re.IGNORECASE)
_WORDS = {"first": 1, "the first": 1, "second": 2, "the second": 2, "one": 1, "two": 2}


def read_choice(said: str) -> int | None:
    """1 or 2, as a model wrote it; None where it is undecided or says something else.

    >>> [read_choice(said) for said in ("1", "Picture 2", "the first", "unclear", "1 or 2", "A")]
    [1, 2, 1, None, None, None]
    """
    plain = said.strip().strip("\"'.()[]").casefold()
    found = _ANSWER.fullmatch(plain)
    return int(found[1]) if found else _WORDS.get(plain)


@dataclass(frozen=True, slots=True)
class Ballot:
    """One vote: the two frames as they were shown, which place was said to be earlier (None: undecided), and why."""

    shown: tuple[str, str]
    choice: int | None
    reason: str

    @property
    def earlier(self) -> str | None:
        return None if self.choice is None else self.shown[self.choice - 1]


class VoteTally:
    """All ballots on some labels."""

    def __init__(self, labels: Sequence[str], ballots: Sequence[Ballot]) -> None:
        self.labels = tuple(labels)
        self.ballots = tuple(ballots)

    @property
    def decided(self) -> list[Ballot]:
        """Those that name one of the two."""
        return [ballot for ballot in self.ballots if ballot.choice is not None]

    def votes(self, labels: Sequence[str]) -> NDArray[np.float64]:
        """Labels × labels: how many votes put the first one before the second one."""
        place = {label: number for number, label in enumerate(labels)}
        table = np.zeros((len(labels), len(labels)))
        for ballot in self.decided:
            a, b = ballot.shown if ballot.choice == 1 else ballot.shown[::-1]
            if a in place and b in place:
                table[place[a], place[b]] += 1
        return table

    def consensus(self) -> Consensus | None:
        """The exact Kemeny order of the labels that at least one decided vote is about; None where none is."""
        voted = {label for ballot in self.decided for label in ballot.shown}
        known = [label for label in self.labels if label in voted]
        return kemeny_of_votes(known, self.votes(known)) if known else None

    def even(self, order: Sequence[str]) -> list[tuple[str, str]]:
        """Neighbours in an order of which as many votes say the one as the other: what is between them is open."""
        table = self.votes(order)
        steps = enumerate(pairwise(order))
        return [pair for place, pair in steps if table[place, place + 1] == table[place + 1, place]]

    def first_shown_share(self) -> float | None:
        """The share of decided votes for the frame that was shown first: 0.5 without position bias, if every pair is
        shown as often each way round; None without a decided vote."""
        decided = self.decided
        return sum(ballot.choice == 1 for ballot in decided) / len(decided) if decided else None

    def both_ways(self) -> tuple[int, int]:
        """Pairs that most votes decide in both ways round, and how many of them the same way."""
        lean: dict[tuple[str, str], int] = {}
        for ballot in self.decided:
            lean[ballot.shown] = lean.get(ballot.shown, 0) + (1 if ballot.choice == 1 else -1)
        pairs = [
            (a, b) for a, b in lean if self.labels.index(a) < self.labels.index(b) and lean.get((b, a)) and lean[a, b]
        ]
        return len(pairs), sum((lean[a, b] > 0) != (lean[b, a] > 0) for a, b in pairs)

    def to_json(self) -> dict[str, JsonValue]:
        """For an answer's `extra`."""
        decided, (pairs, alike) = len(self.decided), self.both_ways()
        return {
            "labels": [*self.labels],
            "votes": [[int(count) for count in row] for row in self.votes(self.labels)],
            "decided": decided,
            "undecided": len(self.ballots) - decided,
            "first_shown_share": self.first_shown_share(),
            "pairs_decided_both_ways": pairs,
            "pairs_decided_alike": alike,
        }


class PairwiseVoteOptions(MethodOptions):
    """`samples` is how often each pair is asked each way round."""

    samples: int = Field(default=2, ge=1, le=25)


class VoteReply(ReplyForm):
    """Which of two pictures was taken earlier, and why."""

    reason: str = Field(default="", description="What tells which is the earlier one.")
    earlier: str = Field(default="", description="1, 2 or unclear.", coerce_numbers_to_str=True)


class PairwiseVote(KeyFrameMethod):
    """Which of two frames comes first, asked both ways round; the consensus by exact Kemeny.

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

    method, version, folder, files = "pairwise-vote", "1", "pairwise_vote", ("vote",)
    form = PairwiseVoteOptions
    options: PairwiseVoteOptions

    def details(self) -> dict[str, JsonValue]:
        return {"samples": self.options.samples}

    def supports(self, item: Item) -> bool:
        return isinstance(item.answer, OrderingFormat) and len(item.answer.labels) <= MOST_LABELS

    async def find(self, task: OrderingTask) -> FoundOrder:
        """Votes on each pair, one call after the other."""
        shown = task.frames.shown
        ballots = [await self._vote(task, pair) for _ in range(self.options.samples) for pair in permutations(shown, 2)]
        tally = VoteTally(shown, ballots)
        found = tally.consensus()
        order = found.order if found is not None else ()
        extra: dict[str, JsonValue] = {
            "agreement": found.agreement if found is not None else None,
            "against": found.against if found is not None else None,
            "even": [[*pair] for pair in tally.even(order)],
            "voting": tally.to_json(),
        }
        return FoundOrder(order, _rationale(order, tally), extra)

    async def _vote(self, task: OrderingTask, pair: tuple[str, str]) -> Ballot:
        shown = [
            Frame(frame.jpeg, None, f"Picture {number}")
            for number, frame in enumerate(task.frames.captioned(pair), start=1)
        ]
        said = await task.asking.ask(self.prompts["vote"], VoteReply, shown, workflows=task.workflows)
        return Ballot(pair, read_choice(said.earlier), clipped(said.reason, 200))


def _rationale(order: Sequence[str], tally: VoteTally) -> str:
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
