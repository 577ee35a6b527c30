"""What packages offer is loaded when it is asked for, and a broken one breaks nothing else."""

from __future__ import annotations

import asyncio
import inspect
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from proctor.core import (
    Benchmark,
    BenchmarkReader,
    ProctorError,
    Registry,
    UnknownNameError,
    one_of,
    protocols,
    registry,
)
from proctor.core.registry import BENCHMARKS


def offering(monkeypatch: pytest.MonkeyPatch, **points: str) -> Registry[object]:
    found = [EntryPoint(name, value, "proctor.test") for name, value in points.items()]
    monkeypatch.setattr(registry, "entry_points", lambda **_: found)
    return Registry("thing", group="proctor.test")


def test_a_broken_package_breaks_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    things = offering(monkeypatch, good="json:dumps", gone="no_such_module:x", old="json:no_such_name")
    assert things.names() == ["gone", "good", "old"]
    assert callable(things.get("good"))
    with pytest.raises(ProctorError, match=r"the thing 'gone' \(no_such_module:x\) can't be loaded: No module"):
        things.get("gone")
    with pytest.raises(ProctorError, match=r"the thing 'old' \(json:no_such_name\) can't be loaded"):
        things.get("old")


def test_an_unknown_name_lists_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    things = offering(monkeypatch, one="json:dumps")
    with pytest.raises(UnknownNameError, match="unknown thing 'two': expected one of one"):
        things.get("two")


def test_a_name_is_taken_once() -> None:
    things: Registry[int] = Registry("thing", group="proctor.none")
    things.register("a")(1)
    with pytest.raises(ProctorError, match="the thing 'a' is registered twice"):
        things.add("a", 2)


def test_a_name_that_two_packages_offer_is_refused_and_both_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Package:
        def __init__(self, name: str) -> None:
            self.name = name

    points = []
    for name in ("hospital", "clinic"):
        point = EntryPoint("lamps", f"{name}.lamps:READER", "proctor.test")
        vars(point)["dist"] = Package(name)
        points.append(point)
    monkeypatch.setattr(registry, "entry_points", lambda **_: points)
    things: Registry[object] = Registry("benchmark", group="proctor.test")
    with pytest.raises(ProctorError) as caught:
        things.names()
    assert str(caught.value) == (
        "the benchmark 'lamps' is offered by clinic (clinic.lamps:READER) and hospital (hospital.lamps:READER): "
        "uninstall one of them"
    )


def test_a_reader_has_the_methods_of_what_it_states() -> None:
    with pytest.raises(TypeError) as caught:

        class Promising(BenchmarkReader):
            protocols = ("official",)

    assert str(caught.value) == "Promising states `protocols` and has no method `official_summary`"

    with pytest.raises(TypeError, match="Silent states `verified_files` and has no method `verify`"):

        class Silent(BenchmarkReader):
            verified_files = ()  # no file is needed: that is a statement, too


@pytest.mark.parametrize(
    ("attribute", "method"), [(one, method) for one, methods in protocols._METHODS.items() for method in methods]
)
def test_a_method_of_what_is_not_stated_says_so(attribute: str, method: str) -> None:
    class Plain(BenchmarkReader):
        name = summary = "plain"

        def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
            raise AssertionError

    asked = getattr(Plain(), method)
    parameters = inspect.signature(asked).parameters.values()
    given = {one.name: None for one in parameters if one.kind is not one.VAR_KEYWORD}

    async def ask() -> None:
        found = asked(**given)
        if inspect.isawaitable(found):
            await found

    with pytest.raises(NotImplementedError, match=f"Plain does not state `{attribute}`"):
        asyncio.run(ask())


def test_a_summary_loads_nothing_but_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "get", lambda *_: pytest.fail("the reader was loaded"))
    told = {name: BENCHMARKS.summary(name) for name in BENCHMARKS.names()}
    monkeypatch.undo()
    assert told == {name: BENCHMARKS.get(name).summary for name in told}
    assert all(told.values())


def test_a_word_for_a_thing_that_is_no_choice_is_not_suggested() -> None:
    assert one_of(["video", "black"], "blind") == "one of video, black"
    assert one_of(["video", "text-only"], "blind").endswith("; did you mean 'text-only'?")
