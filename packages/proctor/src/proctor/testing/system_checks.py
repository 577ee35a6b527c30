"""Checks of systems: what the engine relies on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any
from unittest import SkipTest

from pydantic import JsonValue

from proctor.core import (
    Answer,
    InfrastructureError,
    Item,
    NeedsReferences,
    ProctorError,
    RefusalError,
    System,
    Usage,
    admit_settings,
    answered,
    error_line,
    looks_secret,
)
from proctor.systems import SYSTEMS, FunctionSystem, build_system, is_system
from proctor.testing.checks import Check, CheckReport, Faults, awaited, expecting, run_checks
from proctor.testing.fakes import PictureView, ScriptedModel, example_items, picture, raising, view_of

_BROKEN = "the connection broke"
_OFFERED = {"models", "options", "seed"}

SystemLike = str | System | FunctionSystem | Callable[..., Any]
"""A system by its registered name, as itself, as a function, or as what makes one (from `models`, `options`, `seed`)."""


def check_system(
    system: SystemLike,
    *,
    items: Sequence[Item] | None = None,
    replies: Any = None,
    options: Mapping[str, JsonValue] | None = None,
    expected_failures: Mapping[str, str] | None = None,
) -> CheckReport:
    """Run `system_checks`. Raises `CheckFailedError` with all faults.

    >>> check_system("random").passed[0]
    'system random: name_is_a_text'
    """
    return run_checks(
        system_checks(system, items=items, replies=replies, options=options, expected_failures=expected_failures)
    )


def system_checks(
    system: SystemLike,
    *,
    items: Sequence[Item] | None = None,
    replies: Any = None,
    options: Mapping[str, JsonValue] | None = None,
    expected_failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """The checks of a system: its name, settings and `supports`; that it answers what it supports, with pictures and
    without, alike in any order and at the same time; that its usage is that of its calls; and that errors of the
    infrastructure, and being stopped, pass through it.

    A system that asks a model asks a `ScriptedModel` with these `replies` (see there). It is asked `items`, by default an
    example of each answer format; `options` are its own. Of `expected_failures`, the names are those of checks, and the
    values the reasons.

    >>> [check.name for check in system_checks("random")][:2]
    ['name_is_a_text', 'settings_are_json']
    """
    tried = _Tried(system, list(items or example_items()), replies, dict(options or {}))
    checks = {
        "name_is_a_text": tried.name_is_a_text,
        "settings_are_json": tried.settings_are_json,
        "settings_say_the_seed": tried.settings_say_the_seed,
        "settings_say_the_options": tried.settings_say_the_options,
        "supports_says_yes_or_no": tried.supports_says_yes_or_no,
        "it_answers_what_it_supports": tried.it_answers_what_it_supports,
        "it_answers_alike_in_any_order": tried.it_answers_alike_in_any_order,
        "it_answers_alike_when_made_again": tried.it_answers_alike_when_made_again,
        "usage_is_that_of_its_calls": tried.usage_is_that_of_its_calls,
        "infrastructure_errors_pass": tried.infrastructure_errors_pass,
        "errors_of_the_view_pass": tried.errors_of_the_view_pass,
        "it_can_be_stopped": tried.it_can_be_stopped,
    }
    named = (Check(f"system {tried.called}", name, find) for name, find in checks.items())
    return expecting(named, expected_failures)


@dataclass(frozen=True)
class _Tried:
    """A system that is checked, made again for each check."""

    system: SystemLike
    items: list[Item]
    replies: Any
    options: dict[str, JsonValue]

    @property
    def called(self) -> str:
        given = self.system
        return given if isinstance(given, str) else str(getattr(given, "name", getattr(given, "__name__", "")))

    @property
    def asks(self) -> bool:
        """Whether it takes models."""
        known = SYSTEMS.get(self.system) if isinstance(self.system, str) else self.system
        return known.asks if isinstance(known, FunctionSystem) else "models" in _parameters(known)

    def make(self, model: ScriptedModel | None = None, *, seed: int = 0, without: str = "") -> System:
        """The system, `without` one of its options."""
        options = {name: value for name, value in self.options.items() if name != without}
        models = [model or self.model()] if self.asks else []
        given = self.system
        if isinstance(given, str):
            made = build_system(given, models, options, seed=seed)
        elif isinstance(given, FunctionSystem):
            made = given.with_model(models[0]) if given.asks else given
        elif not isinstance(given, type) and is_system(given):
            made = given
        elif isinstance(given, type) or _needed(given) <= _OFFERED:
            offered = {"models": models, "options": options, "seed": seed}
            made = given(**{name: value for name, value in offered.items() if name in _parameters(given)})
        else:
            made = FunctionSystem(given)
        if isinstance(made, NeedsReferences):
            made.learn(self.items)
        return made

    def model(self) -> ScriptedModel:
        return ScriptedModel(self.replies)

    def supported(self, made: System) -> list[Item]:
        """The items that it answers. Raises `SkipTest` if there are none."""
        found = [item for item in self.items if made.supports(item.as_asked())]
        if not found:
            raise SkipTest("it supports none of the items: give items=")
        return found

    def name_is_a_text(self) -> Faults:
        name, again = self.make().name, self.make().name
        if not isinstance(name, str) or not name.strip() or name != name.strip():
            yield f"`name`: found {name!r}, expected a text without space at its ends"
        if name != again:
            yield f"`name`: found {again!r} when made again, expected {name!r}"

    def settings_are_json(self) -> Faults:
        made = self.make()
        settings = admit_settings(made, made.settings)
        if settings != self.make().settings:
            yield "`settings`: found others when it is made again, expected the same"
        for name in _keys(settings):
            if looks_secret(name):
                yield f"`settings`: found {name!r}, expected no secret: they are stored and shown"

    def settings_say_the_seed(self) -> Faults:
        known = SYSTEMS.get(self.system) if isinstance(self.system, str) else self.system
        if "seed" not in _parameters(known):
            raise SkipTest("it takes no seed")
        first, others = self.make(seed=0), [self.make(seed=seed) for seed in (1, 2, 3)]
        for item in self.supported(first) if all(one.settings == first.settings for one in others) else ():
            said = awaited(_outcome(first, item))
            if any(awaited(_outcome(one, item)) != said for one in others):
                yield f"item {item.id!r}: found other answers with another seed, expected the seed in `settings`"

    def settings_say_the_options(self) -> Faults:
        if not self.options:
            raise SkipTest("no options= were given")
        reasons: list[str] = []
        for name in self.options:
            try:
                other = self.make(without=name)
            except ProctorError as error:
                reasons.append(str(error))
                continue
            if self.make().settings == other.settings:
                yield f"`settings`: found the same with and without {name!r}, expected the option in them"
        if len(reasons) == len(self.options):
            raise SkipTest(f"it can't be made without them: {reasons[0]}")

    def supports_says_yes_or_no(self) -> Faults:
        made = self.make()
        for item in (*example_items(), *example_items(references=False), *self.items):
            said: object = made.supports(item.as_asked())
            if not isinstance(said, bool):
                yield f"item {item.id!r}: `supports` returned {type(said).__name__}, expected True or False"

    def it_answers_what_it_supports(self) -> Faults:
        made = self.make()
        for item in self.supported(made):
            for view in (_view(item), view_of()):
                location = f"item {item.id!r}, {view.condition}"
                try:
                    answer = awaited(answered(made, item.as_asked(), view))
                except RefusalError:
                    continue  # with nothing to see, or by a model
                except Exception as error:  # noqa: BLE001  (other people's code)
                    yield f"{location}: it raised {error_line(error)}, expected an answer or a RefusalError"
                    continue
                if answer.item_id != item.id:
                    yield f"{location}: found an answer to {answer.item_id!r}, expected item_id=item.id"

    def it_answers_alike_in_any_order(self) -> Faults:
        first, second, third = self.make(), self.make(), self.make()
        items = self.supported(first)
        forward = [awaited(_outcome(first, item)) for item in items]
        backward = [awaited(_outcome(second, item)) for item in reversed(items)][::-1]
        together = awaited(_gathered(third, items))
        for how, found in (("in reverse", backward), ("at the same time", together)):
            for item, one, other in zip(items, forward, found, strict=True):
                if one != other:
                    yield f"item {item.id!r}: found {other} when asked {how}, expected {one}, as one after the other"

    def it_answers_alike_when_made_again(self) -> Faults:
        first, second = self.make(), self.make()
        for item in self.supported(first):
            one, other = awaited(_outcome(first, item)), awaited(_outcome(second, item))
            if one != other:
                yield f"item {item.id!r}: found {other} of a second one, expected {one}: draw from a seed"

    def usage_is_that_of_its_calls(self) -> Faults:
        if not self.asks:
            raise SkipTest("it asks no model")
        model = self.model()
        made = self.make(model)
        for item in self.supported(made):
            before = len(model.requests)
            try:
                usage = awaited(made.answer(item.as_asked(), _view(item))).usage
            except ProctorError as error:
                usage = error.usage or Usage()
            calls = len(model.requests) - before
            if usage.requests != calls:
                yield f"item {item.id!r}: found a usage of {usage.requests} requests, expected {calls}"

    def infrastructure_errors_pass(self) -> Faults:
        if not self.asks:
            raise SkipTest("it asks no model")
        model = ScriptedModel(raising(InfrastructureError(_BROKEN)))
        made = self.make(model)
        for item in self.supported(made):
            before = len(model.requests)
            try:
                answer = awaited(made.answer(item.as_asked(), _view(item)))
            except InfrastructureError:
                continue
            except RefusalError:
                if len(model.requests) == before:
                    continue
                answer = None
            if len(model.requests) > before:
                found = "another error" if answer is None else f"the answer {answer.text!r}"
                yield f"item {item.id!r}: found {found}, expected the InfrastructureError of its model: it is no answer"

    def errors_of_the_view_pass(self) -> Faults:
        made = self.make()
        for item in self.supported(made):
            view = view_of([picture()], fault=OSError(_BROKEN))
            try:
                answer = awaited(made.answer(item.as_asked(), view))
            except (OSError, InfrastructureError):
                continue
            if view.asked:
                yield f"item {item.id!r}: found the answer {answer.text!r}, expected the OSError of its view"

    def it_can_be_stopped(self) -> Faults:
        if not self.asks:
            raise SkipTest("it asks no model")
        model = self.model()
        made = self.make(model)
        for item in self.supported(made):
            outcome = awaited(_stopped(made, item, model))
            if outcome:
                yield f"item {item.id!r}: found {outcome} when it was cancelled, expected asyncio.CancelledError"
            break


def _parameters(thing: object) -> frozenset[str]:
    if isinstance(thing, FunctionSystem) or not callable(thing):
        return frozenset()
    return frozenset(signature(thing).parameters)


def _needed(function: Callable[..., Any]) -> set[str]:
    """The parameters that it can't do without."""
    parameters = signature(function).parameters.values()
    return {one.name for one in parameters if one.default is Parameter.empty}


def _keys(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from _keys(part)


def _view(item: Item) -> PictureView:
    """Three pictures: stills with the labels of an order, else frames of a video."""
    pictures = [picture(step) for step in range(3)]
    return view_of(pictures, times=None if item.answer.kind == "ordering" else (0.0, 1.0, 2.0))


async def _outcome(system: System, item: Item) -> str:
    """The answer, or the error, in words that can be compared."""
    try:
        answer: Answer = await system.answer(item.as_asked(), _view(item))
    except ProctorError as error:
        return f"{type(error).__name__}: {error}"
    return f"{answer.status.value} {answer.text!r}"


async def _gathered(system: System, items: Sequence[Item]) -> list[str]:
    return await asyncio.gather(*(_outcome(system, item) for item in items))


async def _stopped(system: System, item: Item, model: ScriptedModel) -> str:
    """What a system does that is cancelled while its model is asked; "" if it ends."""
    model.hold = asyncio.Event()
    task = asyncio.ensure_future(system.answer(item.as_asked(), _view(item)))
    asked = asyncio.ensure_future(model.asked.wait())
    await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if task.done():
        raise SkipTest(f"item {item.id!r}: it did not ask its model")
    task.cancel()
    model.hold.set()
    try:
        answer = await task
    except asyncio.CancelledError:
        return ""
    except Exception as error:  # noqa: BLE001  (other people's code)
        return error_line(error)
    return f"the answer {answer.text!r}"
