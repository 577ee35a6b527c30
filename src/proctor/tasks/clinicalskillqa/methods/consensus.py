"""`consensus`: key frames in the order that several systems, models or samples agree on most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pydantic import Field, JsonValue

from proctor.core import (
    Answer,
    ConfigurationError,
    Item,
    ParseError,
    RefusalError,
    Status,
    System,
    SystemFaultError,
    Usage,
    View,
    count_of,
)
from proctor.core.formats import OrderingFormat
from proctor.metrics.ordering import MOST_LABELS, Consensus, kemeny
from proctor.models import ModelClient
from proctor.systems import NO_OPTIONS, SYSTEMS, ModelSystem, SystemOptions, asks_models, build_system, read_options
from proctor.tasks.clinicalskillqa.methods.keyframes import clipped, order_answer, ordering_labels, read_labels

METHOD = "consensus"

PLAIN = "model"
"""In `over`: the model itself, with the prompt that it is asked all questions with."""


class ConsensusOptions(SystemOptions):
    """`over` names systems and methods, joined by commas (`model` is the model itself, with its plain prompt);
    `samples` is how often each model, and each method with each model, votes. An option of a method among them is
    written with its name before: `pairwise-vote.samples=1`."""

    over: str = PLAIN
    samples: int = Field(default=1, ge=1, le=100)


def members(models: Sequence[ModelClient], *, seed: int, options: Mapping[str, JsonValue]) -> list[tuple[str, System]]:
    """The voters with a name each; the k-th sample has the seed `seed` + k.

    Raises `ConfigurationError` for unknown names, a name twice, options of methods that do not vote, a method
    without a model, models that nobody asks, and fewer than two votes.
    """
    own = {key: value for key, value in options.items() if "." not in key}
    chosen = read_options(METHOD, ConsensusOptions, own)
    names = [name.strip() for name in chosen.over.split(",")]
    _check(names, models)
    apart = _options_of(names, options)
    voters: list[tuple[str, System]] = []
    for name in names:
        if not _asks(name):  # a second vote would be the first one again
            voters.append((name, build_system(name, seed=seed)))
            continue
        for model in models:
            for sample in range(chosen.samples):
                system = _with(model, name, seed + sample, apart.get(name, {}))
                mark = f"#{sample + 1}" if chosen.samples > 1 else ""
                voters.append((f"{system.name}{mark}", system))
    if len(voters) < 2:
        raise ConfigurationError(
            f"{METHOD}: found one vote, expected two or more: several --model, --option samples=5, or --option over=…"
        )
    return voters


def _asks(name: str) -> bool:
    return name == PLAIN or asks_models(name)


def _with(model: ModelClient, name: str, seed: int, options: Mapping[str, JsonValue]) -> System:
    if name == PLAIN:
        return ModelSystem(model)
    if name == "stage-score":  # an order that rests on looks alone is no vote
        options = {"unseen": "none", **options}
    return build_system(name, [model], options, seed=seed)


def _check(names: Sequence[str], models: Sequence[ModelClient]) -> None:
    known = {PLAIN, *SYSTEMS.names()} - {METHOD}
    for place, name in enumerate(names):
        if name not in known:
            expected = ", ".join(sorted(known))
            raise ConfigurationError(f"{METHOD}: option 'over': found {name!r}, expected one of {expected}")
        if name in names[:place]:
            raise ConfigurationError(f"{METHOD}: option 'over': found {name!r} twice, expected each once")
    asking = [name for name in names if _asks(name)]
    if asking and not models:
        raise ConfigurationError(f"{METHOD}: found no model for {asking[0]}, expected one or more (--model)")
    if models and not asking:
        raise ConfigurationError(f"{METHOD}: found {count_of(len(models), 'model')} that nobody in 'over' asks")
    if len({model.name for model in models}) != len(models):
        raise ConfigurationError(f"{METHOD}: found a model twice, expected each once (samples repeats them)")


def _options_of(names: Sequence[str], options: Mapping[str, JsonValue]) -> dict[str, dict[str, JsonValue]]:
    """The options of each method: those with its name before."""
    found: dict[str, dict[str, JsonValue]] = {}
    for key, value in options.items():
        name, dot, rest = key.partition(".")
        if not dot:
            continue
        if name not in names or name == PLAIN or not asks_models(name):
            raise ConfigurationError(f"{METHOD}: option {key!r}: found no method {name!r} among those in 'over'")
        found.setdefault(name, {})[rest] = value
    return found


VERSION = "1"
"""Changes whenever the same votes may give another answer."""


@dataclass(frozen=True, slots=True)
class _Vote:
    """One member's order, with each known label at its first place; empty where it gave none, and then `why`."""

    name: str
    order: tuple[str, ...]
    why: str
    rationale: str
    usage: Usage


class ConsensusOfSystems:
    """Asks its members one after the other and answers with the exact Kemeny consensus of their orders.

    It makes the calls of all members together, with their images; the plain model makes one with all n images.
    Members count alike. An order may lack labels: it then has no say about them. A member that refuses, or states no
    order, has no vote, and `extra` says so; where all refuse, so does the consensus, and where nobody states an order,
    neither does it. An infrastructure error in one member fails the whole answer: with fewer voters it would be
    another system's. Up to `MOST_LABELS` (14) labels: items with more are not supported.

    `Answer.extra`: `rationale` (of the member whose order is nearest to the consensus, `rationale_of`), `agreement`
    (share of pairwise votes that the order keeps, 0.5 to 1: its confidence), `against`, `even` (neighbours in the order
    that as many members have the other way round, or none at all: they stand as given), `unanimous`, `members`
    (of each `name`, `order`, and `why` it has none).
    """

    def __init__(self, voters: Sequence[tuple[str, System]], seed: int) -> None:
        self._voters = list(voters)
        self._seed = seed

    @property
    def name(self) -> str:
        """With its members; the samples of one are told by their number."""
        counted: dict[str, int] = {}
        for name, _ in self._voters:
            plain = name.partition("#")[0]
            counted[plain] = counted.get(plain, 0) + 1
        shown = [name if count == 1 else f"{count} × {name}" for name, count in counted.items()]
        return f"{METHOD}[{', '.join(shown)}]"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Those of each member, and the seed from which the samples count."""
        return {
            "version": VERSION,
            "seed": self._seed,
            "members": {name: dict(system.settings) for name, system in self._voters},
        }

    def supports(self, item: Item) -> bool:
        """Orderings of up to `MOST_LABELS` labels that every member supports."""
        fits = isinstance(item.answer, OrderingFormat) and len(item.answer.labels) <= MOST_LABELS
        return fits and all(system.supports(item) for _, system in self._voters)

    async def answer(self, item: Item, view: View) -> Answer:
        """Raises `RefusalError` where all members refuse, `SystemFaultError` where none can handle the item,
        `InfrastructureError` where a call of one fails for good, `ValueError` for another format."""
        labels = ordering_labels(item)
        votes = [await _asked(name, system, item, view) for name, system in self._voters]
        if all(vote.why.startswith(_REFUSED) for vote in votes):
            raise RefusalError(f"{METHOD}: all {len(votes)} members refused: {votes[0].why}")
        if all(vote.why.startswith((_REFUSED, _ERROR)) for vote in votes):
            faults = [vote.why for vote in votes if vote.why.startswith(_ERROR)]
            raise SystemFaultError(f"{METHOD}: none of {len(votes)} members answered: {faults[0]}")
        orders = [vote.order for vote in votes if vote.order]
        found = kemeny([_as_given(orders, labels), *orders], [0.0, *[1.0] * len(orders)]) if orders else None
        usage = sum((vote.usage for vote in votes), Usage())
        chosen = _nearest(votes, found)
        extra: dict[str, JsonValue] = {
            "agreement": found.agreement if found is not None else None,
            "against": found.against if found is not None else None,
            "even": _even(found.order, orders) if found is not None else [],
            "unanimous": len({vote.order for vote in votes}) == 1 and bool(orders),
            **({"rationale_of": chosen.name} if chosen is not None else {}),
            "members": [
                {"name": vote.name, "order": [*vote.order], **({"why": vote.why} if vote.why else {})} for vote in votes
            ],
        }
        order = found.order if found is not None else ()
        rationale = chosen.rationale if chosen is not None else ""
        return order_answer(item, order, rationale=rationale, usage=usage, extra=extra)


_REFUSED = "refused: "
_ERROR = "error: "


async def _asked(name: str, system: System, item: Item, view: View) -> _Vote:
    try:
        answer = await system.answer(item, view)
    except RefusalError as error:
        return _Vote(name, (), f"{_REFUSED}{error}", "", Usage())
    except SystemFaultError as error:
        return _Vote(name, (), f"{_ERROR}{error}", "", Usage())
    rationale = answer.extra.get("rationale")
    told = rationale if isinstance(rationale, str) else ""
    if answer.status is not Status.ANSWERED:
        return _Vote(name, (), f"{answer.status.value}: {answer.reason}", told, answer.usage)
    try:
        parsed = answer.parsed if answer.parsed is not None else item.answer.parse(answer.text)
    except ParseError as error:
        return _Vote(name, (), str(error), told, answer.usage)
    said = [str(label) for label in parsed] if isinstance(parsed, list) else []
    order = read_labels(said, ordering_labels(item)).known
    if len(order) < 2:
        return _Vote(name, (), f"no two labels in {clipped(answer.text, 80)!r}", told, answer.usage)
    return _Vote(name, order, "", told, answer.usage)


def _as_given(orders: Sequence[Sequence[str]], labels: Sequence[str]) -> list[str]:
    """The labels that are in some order, as given: ties among best orders fall to those that stand first here, and
    not to those that the first member happens to name first."""
    named = {label for order in orders for label in order}
    return [label for label in labels if label in named]


def _even(order: Sequence[str], orders: Sequence[Sequence[str]]) -> list[JsonValue]:
    found: list[JsonValue] = []
    for one, other in pairwise(order):
        about = [vote for vote in orders if one in vote and other in vote]
        if 2 * sum(vote.index(one) < vote.index(other) for vote in about) == len(about):
            found.append([one, other])
    return found


def _nearest(votes: Sequence[_Vote], found: Consensus | None) -> _Vote | None:
    """Whose rationale is told: of the members that have one, the one with the fewest pairs against the consensus."""
    if found is None:
        return None
    place = {label: number for number, label in enumerate(found.order)}

    def apart(vote: _Vote) -> int:
        pairs = [(a, b) for k, a in enumerate(vote.order) for b in vote.order[k + 1 :]]
        possible = len(place) * (len(place) - 1) // 2
        return sum(place[a] > place[b] for a, b in pairs) + possible - len(pairs)

    return min((vote for vote in votes if vote.order and vote.rationale), key=apart, default=None)


def build(
    models: Sequence[ModelClient], options: Mapping[str, JsonValue] = NO_OPTIONS, seed: int = 0
) -> ConsensusOfSystems:
    """The order that several models, samples, systems or methods agree on most, by exact Kemeny.

    The k-th sample of a method draws with `seed` + k.
    """
    return ConsensusOfSystems(members(models, seed=seed, options=options), seed)
