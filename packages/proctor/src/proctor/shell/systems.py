"""Connections to models, and building the systems of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pydantic import BaseModel, JsonValue, ValidationError

from proctor.core import (
    InputError,
    System,
    UsageError,
    count_of,
    first_problem,
    is_file_address,
    origin_of,
    reader_or_default,
)
from proctor.shell.model_options import ModelOptions, RunOptions
from proctor.shell.options import listed

if TYPE_CHECKING:
    from proctor.core import Item
    from proctor.models import BatchFolder, ModelClient, ModelSpec
    from proctor.systems import ReplyRequest

TOKEN_PROBABILITIES: Mapping[str, JsonValue] = {"openai_logprobs": True, "openai_top_logprobs": 20}
"""The settings that ask for the probabilities of tokens, for models whose protocol has them."""

Model = TypeVar("Model", bound=BaseModel)

SystemLike = str | System | Callable[..., Any]
"""A built-in system or a method by name, `path/to/file.py:function`, a function, or a system."""


class ModelAccess:
    """Access to models with the given options (see `ModelOptions`). Connections are made when they are needed."""

    def __init__(self, options: ModelOptions) -> None:
        self._options = options
        self.opened: list[ModelClient] = []
        self.batch: BatchFolder | None = None
        """The folder of request and reply files, if models are asked in batches."""

    def specs(self, models: Sequence[str | ModelSpec]) -> list[ModelSpec]:
        """The specifications of models. Each is given by its name, or as "NAME KEY=VALUE …" with settings of its own on
        top of the shared ones. Servers are one for all models, one for each, or several for one model. Raises
        `UsageError` for any other number of servers."""
        given: list[str] = listed(self._options["base_url"])
        more = given[1:] if len(models) == 1 else []
        positions = [given[0]] if more else self._each("base_url", len(models))
        prices = self._each("price", len(models))
        return [
            one if not isinstance(one, str) else self._spec(one, position, price).served_by(more)
            for one, position, price in zip(models, positions, prices, strict=True)
        ]

    def _each(self, option: Literal["base_url", "price"], count: int) -> list[str | None]:
        """The value of an option for each of `count` models; it is given once for all, or once for each."""
        given: list[str | None] = listed(self._options[option])
        if len(given) not in {0, 1, count}:
            name = f"--{option.replace('_', '-')}"
            raise UsageError(
                f"{name} is given {len(given)} times: give it once for all models, or once for each ({count})."
            )
        return given if len(given) == count else (given or [None]) * count

    def clients(
        self, models: Sequence[str | ModelSpec], likes: Mapping[str, JsonValue] | None = None
    ) -> list[ModelClient]:
        """Access to several models. `likes` are settings for models that take them."""
        from proctor.models import ModelClient

        made = [ModelClient(spec, self.batch, likes=likes) for spec in self.specs(models)]
        self.opened += made
        return made

    async def check_servers(self) -> None:
        """Raises `ConfigurationError` if a server can't be reached, before anything is paid or written."""
        if self.batch is not None or not self.opened:
            return
        from proctor.models import reachable

        await reachable(url for client in self.opened for url in client.servers)

    @asynccontextmanager
    async def closing(self) -> AsyncIterator[None]:
        """Close the connections at the end, in the event loop that used them."""
        try:
            yield
        finally:
            for client in self.opened:
                await client.aclose()

    def _spec(self, model: str, base_url: str | None, price: str | None) -> ModelSpec:
        from proctor.models import ModelSpec, parse_price, parse_settings

        name, *own = model.split() or [""]
        if not name:
            raise UsageError("--model is empty. Give PROVIDER:NAME, such as openai:gpt-5.2.")
        given = self._options
        settings = {**given["settings"], **parse_settings(own)}
        how = {"timeout_s": given["timeout_s"], "retries": given["retries"], "structured": given["structured"]}
        if self.batch is not None:  # a reply that was read stays what it is
            how["retries"] = 0
        return checked(
            ModelSpec,
            name=name,
            base_url=base_url,
            settings=settings,
            price=None if price is None else parse_price(price),
            **how,
        )


def build_systems(
    benchmark: str,
    systems: Sequence[SystemLike],
    options: RunOptions,
    access: ModelAccess,
    items: Sequence[Item] = (),
    abstain: Literal["", "allow", "forbid"] = "",
) -> list[System]:
    """Build the systems of a run: the given systems and, for each model, a system with the prompt of the benchmark, named
    by its reader (or the general one, for `items` with sound the general one for sound); or one method with the models
    that it asks. `abstain` is what the benchmark's protocol says of abstaining.

    Raises `UsageError` if nothing is given, something is given twice, two systems would have the same name, or options
    do not fit together.
    """
    from proctor.systems import Renamed

    models, name, seed = listed(options["model"]), _name_in(options), options["seed"]
    if not systems and not models:
        raise UsageError("Nothing to ask. Give --system NAME (proctor list systems) or --model PROVIDER:NAME.")
    _refuse_twice("--system", systems)
    _refuse_twice("--model", models)
    systems = [_in_file(one) for one in systems]
    methods = [one for one in systems if _asks(one)]
    if name and len(systems) + len(models) != 1 and not methods:
        raise InputError(f"--name {name} is for one system, and several are asked. Ask them one after the other.")
    if methods or not models:
        _refuse_wording(options)
    if methods:
        _refuse_beside(systems)
        method = _method(methods[0], access.clients(models), options)
        return [Renamed(method, name) if name else method]
    own = options["options"]
    if own:
        _refuse_unnamed(systems[0] if len(systems) == 1 and not models else None, own)
    built = [_system(system, name, seed, own) for system in systems]
    if models:
        likes = TOKEN_PROBABILITIES if options["confidence"] == "tokens" else None
        request = _request(benchmark, options, items, abstain)
        built += _of_models(benchmark, options, access.clients(models, likes), items, request)
    _check_names(built)
    return built if models else _without_settings(built, options)


def _refuse_twice(option: str, given: Sequence[object]) -> None:
    twice = next((one for one in given if list(given).count(one) > 1), None)
    if twice is not None:
        raise UsageError(f"{option} {twice} is given twice: give each once.")


def _refuse_beside(systems: Sequence[SystemLike]) -> None:
    """Raises `InputError` for other systems beside a method."""
    if len(systems) > 1:
        named = ", ".join(one if isinstance(one, str) else str(getattr(one, "name", one)) for one in systems)
        raise InputError(f"{named} can't be asked together. Give one method alone.")


def _refuse_unnamed(alone: SystemLike | None, options: Mapping[str, Any]) -> None:
    """Raises `InputError` for options of a system, unless it is the only one and given by name."""
    from proctor.systems import SYSTEMS

    if not (isinstance(alone, str) and alone in SYSTEMS.names()):
        raise InputError(f"--option {', '.join(options)} belongs to one named system. Give that alone: --system NAME")


def _in_file(given: SystemLike) -> SystemLike:
    """The system itself, or the one at `path/to/file.py:name`. Raises `UsageError` for a class."""
    from proctor.systems import system_in_file

    if isinstance(given, type):
        raise UsageError(f"{given.__name__} is a class. Give an object of it: {given.__name__}(…)")
    return system_in_file(given) if isinstance(given, str) and is_file_address(given) else given


def _asks(given: SystemLike) -> bool:
    """Whether it takes models: a method by name, or a function with the parameter `ask`."""
    from proctor.systems import SYSTEMS, asks_a_model, asks_models

    if isinstance(given, str):
        return given in SYSTEMS.names() and asks_models(given)
    return asks_a_model(given)


def _method(given: SystemLike, clients: Sequence[ModelClient], options: RunOptions) -> System:
    from proctor.systems import FunctionSystem, build_system, only_model

    if isinstance(given, str):
        return build_system(given, clients, options["options"], seed=options["seed"])
    if options["options"]:
        raise InputError(
            f"--option {', '.join(options['options'])} belongs to one named system. Give that alone: --system NAME"
        )
    made = given if isinstance(given, FunctionSystem) else FunctionSystem(cast("Callable[..., Any]", given))
    return made.with_model(only_model(made.name, clients))


def _refuse_wording(options: RunOptions) -> None:
    """Raises `InputError` for options that say how a plain model is asked."""
    named = ("orders", "abstain", "confidence")
    given_ones = [(f"--{name}", options[name]) for name in named]  # type: ignore[literal-required]
    for location, given in (("prompt", options["prompt"]), *given_ones):
        if given:
            raise InputError(f"--{location.removeprefix('--')} {given} is for models without a method. Leave it out.")


def _of_models(
    benchmark: str, options: RunOptions, clients: Sequence[ModelClient], items: Sequence[Item], request: ReplyRequest
) -> list[System]:
    from proctor.systems import ModelSystem, Sampling, prompt_for_benchmark

    template = prompt_for_benchmark(benchmark, options["prompt"], sounding=any(item.sounding for item in items))
    asked = next((name for name in ("abstain", "confidence") if request.settings.get(name) not in {None, "tokens"}), "")
    if asked and "instruction" not in template.variables:
        raise UsageError(f"--{asked} stands in {{{{ instruction }}}}, which the prompt {template.name} does not have.")
    sampling = Sampling(video_as=options["video_as"])
    briefing = reader_or_default(benchmark).briefing
    orders = orders_asked_by(options) if any(item.answer.kind == "ordering" for item in items) else None
    name = options["name"] or None
    return [ModelSystem(client, template, name, sampling, briefing, orders, request) for client in clients]


def _request(
    benchmark: str, options: RunOptions, items: Sequence[Item], protocol: Literal["", "allow", "forbid"]
) -> ReplyRequest:
    """What models are asked for beside the answer. Questions that are unanswerable allow abstaining, unless the benchmark's
    protocol says otherwise. Raises `UsageError` for options that contradict the protocol or the questions."""
    from proctor.systems import ReplyRequest

    chosen, without = options["abstain"], sum(item.unanswerable for item in items)
    if protocol and chosen and chosen != protocol:
        raise UsageError(f"The protocol of {benchmark} says --abstain {protocol}. Leave --abstain {chosen} out.")
    if chosen == "forbid" and without:
        told = f"{count_of(without, 'question')} of {benchmark} can't be answered, and abstaining is right there"
        raise UsageError(f"{told}. Leave --abstain forbid out.")
    if chosen == "allow" and options["orders"] == "schema":
        raise UsageError(
            "A schema of an order leaves no room to abstain. Leave --orders schema out, or --abstain allow."
        )
    allowed: Literal["", "allow", "forbid"] = (
        "" if protocol == "forbid" else chosen or protocol or ("allow" if without else "")
    )
    return ReplyRequest(allowed, options["confidence"] or "")


def orders_asked_by(options: RunOptions) -> Literal["schema", "text"]:
    """How models are asked for orders: as text by a prompt other than the benchmark's, whose words ask for text, unless
    the option says otherwise."""
    return options["orders"] or ("text" if options["prompt"] else "schema")


def _without_settings(built: list[System], options: RunOptions) -> list[System]:
    if options["settings"]:
        raise InputError(f"--settings {', '.join(options['settings'])} are a model's. Leave them out, or give --model.")
    return built


def _name_in(options: RunOptions) -> str:
    """The name to store the answers under; "" for none."""
    from proctor.runs import check_given_name

    if options["name"]:
        check_given_name(options["name"])
        _refuse_own_name(options["name"])
    return options["name"]


def _refuse_own_name(name: str) -> None:
    """Raises `InputError` for the name of a system of Proctor's own, beside which the answers would be stored."""
    from proctor.systems import SYSTEMS

    if SYSTEMS.is_own(name):
        raise InputError(f"--name {name!r} is the name of Proctor's own system. Choose another.")


def _check_names(built: Sequence[System]) -> None:
    """Raises `UsageError` if two systems would be stored as one run, or one from outside Proctor as one of its own."""
    from proctor.systems import SYSTEMS

    for system in built:
        if origin_of(system) and SYSTEMS.is_own(system.name):
            raise UsageError(
                f"{system.name!r} of {origin_of(system)} has the name of Proctor's own system, and results would stand in its row. Give it "
                "another name (name=, or --name)."
            )
    names = [system.name for system in built]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(
            f"Two systems would both be stored as {twice!r}. Run them one after the other, with another --name."
        )


def checked(model: type[Model], **fields: Any) -> Model:
    """Create a pydantic model. Raises `InputError` that names the first invalid field."""
    try:
        return model(**fields)
    except ValidationError as error:
        problem = first_problem(error)
        raise InputError(problem.field, found=problem.found, expected=problem.expected) from None


def _system(given: SystemLike, name: str, seed: int, options: Mapping[str, Any]) -> System:
    from proctor.systems import FunctionSystem, Renamed, build_system, is_system

    if isinstance(given, FunctionSystem):
        return given.renamed(name) if name else given
    if isinstance(given, str):
        if name and not options:
            raise InputError(f"{given} keeps its own name. Leave --name {name} out.")
        built = build_system(given, options=options, seed=seed)
        return Renamed(built, name) if name else built
    if not is_system(given):
        return FunctionSystem(given, name=name)
    return Renamed(given, name) if name else given
