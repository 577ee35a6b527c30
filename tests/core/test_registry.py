"""What packages offer is loaded when it is asked for, and a broken one breaks nothing else."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from proctor.core import BenchmarkReader, ProctorError, Registry, UnknownNameError, registry


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


def test_a_word_for_a_thing_that_is_no_choice_is_not_suggested() -> None:
    assert registry.one_of(["video", "black"], "blind") == "one of video, black"
    assert registry.one_of(["video", "text-only"], "blind").endswith("; did you mean 'text-only'?")
