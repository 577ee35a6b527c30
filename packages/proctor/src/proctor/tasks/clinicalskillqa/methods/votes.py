"""Key frames in the order that most votes agree with: votes of one model on pairs (`pairwise-vote`), or orders of several
systems, models or samples (`consensus`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, permutations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from proctor.core import (
    Answer,
    ConfigurationError,
    Frame,
    Item,
    ParseError,
    ProctorError,
    RefusalError,
    Status,
    System,
    SystemFaultError,
    Usage,
    View,
    count_of,
)
from proctor.core.formats import OrderingFormat
from proctor.metrics.ordering import MOST_LABELS, Consensus, compare_orders, kemeny_of_votes
from proctor.models import ModelClient
from proctor.systems import NO_OPTIONS, SYSTEMS, ModelSystem, SystemOptions, asks_models, build_system, read_options
from proctor.tasks.clinicalskillqa.methods.keyframes import (
    FoundOrder,
    KeyFrameMethod,
    MethodOptions,
    OrderingTask,
    ReplyForm,
    clipped,
    order_answer,
    ordering_labels,
    read_labels,
)

_CHOICE = re.compile(r"(?:picture|image|frame|number|no\.?)?[\s#:]*([12])(?:st|nd)?", re.IGNORECASE)
_CHOICE_WORDS = {"first": 1, "the first": 1, "second": 2, "the second": 2, "one": 1, "two": 2}


def read_choice(text: str) -> int | None:
    """1 or 2, as a model wrote it; None where it is undecided or says something else.

    >>> [read_choice(text) for text in ("1", "Picture 2", "the first", "unclear", "1 or 2", "A")]
    [1, 2, 1, None, None, None]
    """
    plain = text.strip().strip("\"'.()[]").casefold()
    found = _CHOICE.fullmatch(plain)
    return int(found[1]) if found else _CHOICE_WORDS.get(plain)


@dataclass(frozen=True, slots=True)
class Ballot:
    """One vote on two frames: in which order they were shown, which of them is the earlier one (1, 2, or None for
    undecided), and why."""

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
        self.decided = [ballot for ballot in ballots if ballot.choice is not None]

    def votes(self, labels: Sequence[str]) -> NDArray[np.float64]:
        """Labels × labels: the number of votes that put the first before the second."""
        index = {label: number for number, label in enumerate(labels)}
        table = np.zeros((len(labels), len(labels)))
        for ballot in self.decided:
            a, b = ballot.shown if ballot.choice == 1 else ballot.shown[::-1]
            if a in index and b in index:
                table[index[a], index[b]] += 1
        return table

    def consensus(self) -> Consensus | None:
        """The exact Kemeny order of the labels with a decided vote; None where there is no decided vote.

        Of several best orders it is the one that begins with the labels that are given first.
        """
        voted = {label for ballot in self.decided for label in ballot.shown}
        known = [label for label in self.labels if label in voted]
        return kemeny_of_votes(known, self.votes(known)) if known else None

    def even(self, order: Sequence[str]) -> list[tuple[str, str]]:
        """Neighbours in an order with as many votes for one as for the other: their order is open."""
        table = self.votes(order)
        return [pair for i, pair in enumerate(pairwise(order)) if table[i, i + 1] == table[i + 1, i]]

    def agreement(self, found: Consensus | None) -> dict[str, JsonValue]:
        """How far the votes agree with their consensus, for an answer's `extra`."""
        if found is None:
            return {"agreement": None, "against": None, "even": []}
        even: list[JsonValue] = [[*pair] for pair in self.even(found.order)]
        return {"agreement": found.agreement, "against": found.against, "even": even}

    def first_shown_share(self) -> float | None:
        """The share of decided votes for the frame that was shown first; None without a decided vote.

        0.5 is no position bias, provided that every pair is shown equally often each way round.
        """
        return sum(ballot.choice == 1 for ballot in self.decided) / len(self.decided) if self.decided else None

    def both_ways(self) -> tuple[int, int]:
        """The number of pairs with a majority in both ways round, and how many of them have the same one."""
        lean: Counter[tuple[str, str]] = Counter()
        for ballot in self.decided:
            lean[ballot.shown] += 1 if ballot.choice == 1 else -1
        pairs = [(a, b) for a, b in combinations(self.labels, 2) if lean[a, b] and lean[b, a]]
        return len(pairs), sum((lean[a, b] > 0) != (lean[b, a] > 0) for a, b in pairs)

    def to_json(self) -> dict[str, JsonValue]:
        """For an answer's `extra`."""
        pairs, alike = self.both_ways()
        return {
            "labels": [*self.labels],
            "votes": [[int(count) for count in row] for row in self.votes(self.labels)],
            "decided": len(self.decided),
            "undecided": len(self.ballots) - len(self.decided),
            "first_shown_share": self.first_shown_share(),
            "pairs_decided_both_ways": pairs,
            "pairs_decided_alike": alike,
        }


def _short_ordering(item: Item) -> bool:
    """Whether the item asks for an order of no more labels than the exact search takes."""
    return isinstance(item.answer, OrderingFormat) and len(item.answer.labels) <= MOST_LABELS


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

    An undecided vote, or one for neither, does not count. The order holds the frames with a vote; without any vote the
    answer states no order. Items with more than `MOST_LABELS` (14) labels are not supported.

    The procedure is what the options say, else what the question names; where it names none, the prompt describes all
    known ones.

    `Answer.extra`: `rationale` (the reasons of votes for each step of the order), `agreement` (the share of the votes
    that the order keeps, 0.5 to 1: its confidence), `against` (votes), `even` (neighbours in the order without a
    majority, which stand as given), `voting` (`labels`, the matrix `votes` with [i][j] the votes for i before j,
    `decided`, `undecided`, `first_shown_share` (0.5 is no position bias), `pairs_decided_both_ways` and how many of
    them `pairs_decided_alike`), `calls`, `images`.
    """

    method, version, folder, files = "pairwise-vote", "1", "pairwise_vote", ("vote",)
    form = PairwiseVoteOptions
    options: PairwiseVoteOptions

    def details(self) -> dict[str, JsonValue]:
        return {"samples": self.options.samples}

    def supports(self, item: Item) -> bool:
        return _short_ordering(item)

    async def find(self, task: OrderingTask) -> FoundOrder:
        """Votes on each pair, one call after the other."""
        shown = task.frames.shown
        ballots = [await self._vote(task, pair) for _ in range(self.options.samples) for pair in permutations(shown, 2)]
        tally = VoteTally(shown, ballots)
        found = tally.consensus()
        order = found.order if found is not None else ()
        return FoundOrder(order, _reasons(order, tally), {**tally.agreement(found), "voting": tally.to_json()})

    async def _vote(self, task: OrderingTask, pair: tuple[str, str]) -> Ballot:
        frames = [
            Frame(frame.jpeg, None, f"Picture {number}")
            for number, frame in enumerate(task.frames.captioned(pair), start=1)
        ]
        reply = await task.model.ask(self.prompts["vote"], VoteReply, frames, workflows=task.workflows)
        return Ballot(pair, read_choice(reply.earlier), clipped(reply.reason, 200))


def _reasons(order: Sequence[str], tally: VoteTally) -> str:
    """For each step from one frame to the next the count of votes and the first reason."""
    lines = []
    for one, other in pairwise(order):
        votes = [ballot for ballot in tally.decided if set(ballot.shown) == {one, other}]
        backing = [ballot for ballot in votes if ballot.earlier == one]
        counted = f"{one} before {other} ({len(backing)} of {len(votes)} votes)"
        reason = next((ballot for ballot in backing if ballot.reason), None)
        if reason is None:
            lines.append(f"{counted}.")
            continue
        named = ", ".join(f"picture {number} is {label}" for number, label in enumerate(reason.shown, 1))
        lines.append(f"{counted}: {reason.reason.rstrip('.')} ({named}).")
    return " ".join(lines)


CONSENSUS = "consensus"
CONSENSUS_VERSION = "1"
"""Changes whenever the same votes may give another answer."""

PLAIN = "model"
"""In `over`: the model itself, with the prompt of all its questions."""


class ConsensusOptions(SystemOptions):
    """`over` names systems and methods, joined by commas (`model` is the model itself, with its plain prompt);
    `samples` is how often each model, and each method with each model, votes. `scenario` or `workflow` is that of all
    methods among them. An option of one of them has its name before it: `pairwise-vote.samples=1`."""

    over: str = PLAIN
    samples: int = Field(default=1, ge=1, le=100)
    scenario: str | None = None
    workflow: str | None = None


def members(models: Sequence[ModelClient], *, seed: int, options: Mapping[str, JsonValue]) -> list[tuple[str, System]]:
    """The voters with a name each; the k-th sample has the seed `seed` + k.

    Raises `ConfigurationError` for unknown names, a name twice, options of methods that do not vote, a method
    without a model, models that no member uses, and fewer than two votes.
    """
    undotted = {key: value for key, value in options.items() if "." not in key}
    chosen = read_options(CONSENSUS, ConsensusOptions, undotted)
    names = [name.strip() for name in chosen.over.split(",")]
    _check(names, models)
    shared = chosen.model_dump(include={"scenario", "workflow"}, exclude_none=True)
    methods = [name for name in names if name != PLAIN and asks_models(name)]
    if shared and not methods:
        raise ConfigurationError(f"{CONSENSUS}: option {min(shared)!r}: found no method in 'over' that takes it")
    alone = _member_options(names, options)
    options_of = {name: alone.get(name) or {} for name in methods}
    options_of = {
        name: ({} if {"scenario", "workflow"} & own.keys() else shared) | own for name, own in options_of.items()
    }
    voters: list[tuple[str, System]] = []
    for name in names:
        if not _needs_model(name):  # it would vote the same a second time
            voters.append((name, build_system(name, seed=seed)))
            continue
        for model in models:
            for sample in range(chosen.samples):
                system = _member(model, name, seed + sample, options_of.get(name, {}))
                number = f"#{sample + 1}" if chosen.samples > 1 else ""
                voters.append((f"{system.name}{number}", system))
    if len(voters) < 2:
        raise ConfigurationError(
            f"{CONSENSUS}: found one vote, expected two or more: several --model, --option samples=5, or --option over=…"
        )
    return voters


def _needs_model(name: str) -> bool:
    return name == PLAIN or asks_models(name)


def _member(model: ModelClient, name: str, seed: int, options: Mapping[str, JsonValue]) -> System:
    if name == PLAIN:
        return ModelSystem(model)
    if name == "stage-score":  # an order by appearance alone is no vote
        options = {"unseen": "none", **options}
    return build_system(name, [model], options, seed=seed)


def _check(names: Sequence[str], models: Sequence[ModelClient]) -> None:
    known = {PLAIN, *SYSTEMS.names()} - {CONSENSUS}
    for number, name in enumerate(names):
        if name not in known:
            expected = ", ".join(sorted(known))
            raise ConfigurationError(f"{CONSENSUS}: option 'over': found {name!r}, expected one of {expected}")
        if name in names[:number]:
            raise ConfigurationError(f"{CONSENSUS}: option 'over': found {name!r} twice, expected each once")
    asking = [name for name in names if _needs_model(name)]
    if asking and not models:
        raise ConfigurationError(f"{CONSENSUS}: found no model for {asking[0]}, expected one or more (--model)")
    if models and not asking:
        raise ConfigurationError(f"{CONSENSUS}: found {count_of(len(models), 'model')} that nobody in 'over' asks")
    if len({model.name for model in models}) != len(models):
        raise ConfigurationError(f"{CONSENSUS}: found a model twice, expected each once (samples repeats them)")


def _member_options(names: Sequence[str], options: Mapping[str, JsonValue]) -> dict[str, dict[str, JsonValue]]:
    """The options of each method: those with its name before them."""
    found: dict[str, dict[str, JsonValue]] = {}
    for key, value in options.items():
        name, dot, rest = key.partition(".")
        if not dot:
            continue
        if name not in names or name == PLAIN or not asks_models(name):
            raise ConfigurationError(f"{CONSENSUS}: option {key!r}: found no method {name!r} among those in 'over'")
        found.setdefault(name, {})[rest] = value
    return found


@dataclass(frozen=True, slots=True)
class _Vote:
    """One member's order, each known label once; where it has none, `why`."""

    name: str
    order: tuple[str, ...] = ()
    why: str = ""
    rationale: str = ""
    usage: Usage = field(default_factory=Usage)


_REFUSED = "refused: "
_ERROR = "error: "


class ConsensusOfSystems:
    """Asks its members one after the other and answers with the exact Kemeny consensus of their orders.

    It makes the calls of all members together, with their images; the plain model makes one with all n images.
    All members have the same weight. An order that lacks labels has no vote on them. A member that refuses, or states
    no order, has no vote, and `extra` says so. Where all refuse, so does the consensus; where none states an order,
    neither does the consensus. An infrastructure error of one member fails the whole answer: with fewer voters it would
    be another system's. Items with more than `MOST_LABELS` (14) labels are not supported.

    `Answer.extra`: `rationale` (of the member whose order is nearest to the consensus, `rationale_of`), `agreement`
    (share of pairwise votes that the order keeps, 0.5 to 1: its confidence), `against`, `even` (neighbours in the order
    without a majority, which stand as given), `unanimous`, `members` (of each `name`, `order`, and `why` it has none).
    """

    def __init__(self, voters: Sequence[tuple[str, System]], seed: int) -> None:
        self._voters = list(voters)
        self._seed = seed

    @property
    def name(self) -> str:
        """The method's name with its members, each with the number of its samples."""
        counted = Counter(name.partition("#")[0] for name, _ in self._voters)
        shown = [name if count == 1 else f"{count} × {name}" for name, count in counted.items()]
        return f"{CONSENSUS}[{', '.join(shown)}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Those of each member, and the seed of the first sample."""
        return {
            "version": CONSENSUS_VERSION,
            "seed": self._seed,
            "members": {name: dict(system.settings) for name, system in self._voters},
        }

    def supports(self, item: Item) -> bool:
        """Orderings of up to `MOST_LABELS` labels that every member supports."""
        return _short_ordering(item) and all(system.supports(item) for _, system in self._voters)

    async def answer(self, item: Item, view: View) -> Answer:
        """Raises `RefusalError` where all members refuse, `SystemFaultError` where none can handle the item,
        `InfrastructureError` where a call of one fails for good, `ValueError` for another format."""
        labels = ordering_labels(item)
        votes, usage = list[_Vote](), Usage()
        for name, system in self._voters:
            try:
                votes.append(await _vote_of(name, system, item, view))
            except ProctorError as error:
                error.after(usage)
                raise
            usage += votes[-1].usage
        if all(vote.why.startswith(_REFUSED) for vote in votes):
            raise RefusalError(f"{CONSENSUS}: all {len(votes)} members refused: {votes[0].why}").after(usage)
        if all(vote.why.startswith((_REFUSED, _ERROR)) for vote in votes):
            faults = [vote.why for vote in votes if vote.why.startswith(_ERROR)]
            raise SystemFaultError(f"{CONSENSUS}: none of {len(votes)} members answered: {faults[0]}").after(usage)
        tally = VoteTally(labels, [Ballot(pair, 1, "") for vote in votes for pair in combinations(vote.order, 2)])
        found = tally.consensus()
        order = found.order if found is not None else ()
        chosen = _nearest(order, votes)
        extra: dict[str, JsonValue] = {
            **tally.agreement(found),
            "unanimous": bool(order) and len({vote.order for vote in votes}) == 1,
            **({"rationale_of": chosen.name} if chosen is not None else {}),
            "members": [
                {"name": vote.name, "order": [*vote.order], **({"why": vote.why} if vote.why else {})} for vote in votes
            ],
        }
        rationale = chosen.rationale if chosen is not None else ""
        return order_answer(item, order, rationale=rationale, usage=usage, extra=extra)


async def _vote_of(name: str, system: System, item: Item, view: View) -> _Vote:
    try:
        answer = await system.answer(item, view)
    except RefusalError as error:
        return _Vote(name, why=f"{_REFUSED}{error}", usage=error.usage or Usage())
    except SystemFaultError as error:
        return _Vote(name, why=f"{_ERROR}{error}", usage=error.usage or Usage())
    order, why = _order_in(answer, item)
    rationale = answer.extra.get("rationale")
    return _Vote(name, order, why, rationale if isinstance(rationale, str) else "", answer.usage)


def _order_in(answer: Answer, item: Item) -> tuple[tuple[str, ...], str]:
    """The order that an answer states, and why it states none."""
    if answer.status is not Status.ANSWERED:
        return (), f"{answer.status.value}: {answer.reason}"
    try:
        parsed = answer.parsed if answer.parsed is not None else item.answer.parse(answer.text)
    except ParseError as error:
        return (), str(error)
    labels = [str(label) for label in parsed] if isinstance(parsed, list) else []
    order = read_labels(labels, ordering_labels(item)).known
    return (order, "") if len(order) > 1 else ((), f"no two labels in {clipped(answer.text, 80)!r}")


def _nearest(order: Sequence[str], votes: Sequence[_Vote]) -> _Vote | None:
    """Of the members with an order and a rationale the one that has the most pairs as the consensus has them."""
    reasoned = [vote for vote in votes if vote.order and vote.rationale]
    return max(reasoned, key=lambda vote: compare_orders(order, vote.order).all_right, default=None)


def build(
    models: Sequence[ModelClient], options: Mapping[str, JsonValue] = NO_OPTIONS, seed: int = 0
) -> ConsensusOfSystems:
    """The order that several models, samples, systems or methods agree on most, by exact Kemeny.

    The k-th sample of a method draws with `seed` + k.
    """
    return ConsensusOfSystems(members(models, seed=seed, options=options), seed)
