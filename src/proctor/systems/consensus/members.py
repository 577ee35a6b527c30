"""Who votes: the systems that a person names, each as often as asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from proctor.core import ConfigurationError, System
from proctor.models import ModelClient
from proctor.systems.methods import METHODS, method_options
from proctor.systems.model_system import ModelSystem
from proctor.systems.registry import SYSTEMS

__all__ = ["METHOD", "PLAIN", "Options", "members"]

METHOD = "consensus"

PLAIN = "model"
"""In `over`: the model itself, with the prompt that it is asked all questions with."""


class Options(BaseModel):
    """`over` names systems and methods, joined by commas (`model` is the model itself, with its plain prompt);
    `samples` is how often each model, and each method with each model, votes. An option of a method among them is
    written with its name before: `pairwise-vote.samples=1`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    over: str = PLAIN
    samples: int = Field(default=1, ge=1, le=100)


def members(
    clients: Sequence[ModelClient], *, seed: int, options: Mapping[str, JsonValue]
) -> list[tuple[str, System]]:
    """The voters with a name each; the k-th sample has the seed `seed` + k.

    Raises `ConfigurationError` for unknown names, a name twice, options of methods that do not vote, a method
    without a model, models that nobody asks, and fewer than two votes.
    """
    own = {key: value for key, value in options.items() if "." not in key}
    chosen = method_options(METHOD, Options, own)
    names = [name.strip() for name in chosen.over.split(",")]
    _check(names, clients)
    apart = _options_of(names, options)
    voters: list[tuple[str, System]] = []
    for name in names:
        if name in SYSTEMS.names():  # it asks no model: a second vote would be the first one again
            voters.append((name, SYSTEMS.get(name)(seed=seed)))
            continue
        for client in clients:
            for sample in range(chosen.samples):
                system = _with(client, name, seed + sample, apart.get(name, {}))
                mark = f"#{sample + 1}" if chosen.samples > 1 else ""
                voters.append((f"{system.name}{mark}", system))
    if len(voters) < 2:
        raise ConfigurationError(
            f"{METHOD}: found one vote, expected two or more: several --model, --option samples=5, or --option over=…"
        )
    return voters


def _with(client: ModelClient, name: str, seed: int, options: Mapping[str, JsonValue]) -> System:
    if name == PLAIN:
        return ModelSystem(client)
    if name == "stage-score":  # an order that rests on looks alone is no vote
        options = {"unseen": "none", **options}
    return METHODS.get(name)([client], seed=seed, options=options)


def _check(names: Sequence[str], clients: Sequence[ModelClient]) -> None:
    known = {PLAIN, *SYSTEMS.names(), *METHODS.names()} - {METHOD}
    for place, name in enumerate(names):
        if name not in known:
            expected = ", ".join(sorted(known))
            raise ConfigurationError(f"{METHOD}: option 'over': found {name!r}, expected one of {expected}")
        if name in names[:place]:
            raise ConfigurationError(f"{METHOD}: option 'over': found {name!r} twice, expected each once")
    asking = [name for name in names if name not in SYSTEMS.names()]
    if asking and not clients:
        raise ConfigurationError(f"{METHOD}: found no model for {asking[0]}, expected one or more (--model)")
    if clients and not asking:
        raise ConfigurationError(f"{METHOD}: found {len(clients)} models that nobody in 'over' asks")
    if len({client.name for client in clients}) != len(clients):
        raise ConfigurationError(f"{METHOD}: found a model twice, expected each once (samples repeats them)")


def _options_of(names: Sequence[str], options: Mapping[str, JsonValue]) -> dict[str, dict[str, JsonValue]]:
    """The options of each method: those with its name before."""
    found: dict[str, dict[str, JsonValue]] = {}
    for key, value in options.items():
        name, dot, rest = key.partition(".")
        if not dot:
            continue
        if name not in names or name in SYSTEMS.names() or name == PLAIN:
            raise ConfigurationError(
                f"{METHOD}: option {key!r}: found no method {name!r} among those in 'over'"
            )
        found.setdefault(name, {})[rest] = value
    return found
