"""What packages offer is loaded when it is asked for, and a broken one breaks nothing else."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from proctor.core import Parts, ProctorError, Registry, SubmissionWriter, UnknownNameError, one_of, registry
from proctor.core.registry import BENCHMARKS


def offering(monkeypatch: pytest.MonkeyPatch, **points: str) -> Registry[object]:
    found = [EntryPoint(name, value, "proctor.test") for name, value in points.items()]
    monkeypatch.setattr(registry, "entry_points", lambda **_: found)
    return Registry("thing", group="proctor.test")


def test_a_broken_package_breaks_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    things = offering(monkeypatch, good="json:dumps", gone="no_such_module:x", old="json:no_such_name")
    assert things.names() == ["gone", "good", "old"]
    assert callable(things.get("good"))
    with pytest.raises(
        ProctorError, match=r"the thing 'gone' of an unknown package \(no_such_module:x\) can't be loaded: No module"
    ):
        things.get("gone")
    with pytest.raises(
        ProctorError, match=r"the thing 'old' of an unknown package \(json:no_such_name\) can't be loaded"
    ):
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


def test_what_is_no_such_part_is_refused_by_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    class Half:
        formats = ("answer",)

    monkeypatch.setattr(EntryPoint, "load", lambda _: Half())
    monkeypatch.setattr(registry, "entry_points", lambda **_: [EntryPoint("lamps", "hospital.lamps:HALF", "proctor.x")])
    writers: Parts[SubmissionWriter] = Parts("writer", "proctor.x", "formats", "write_submission")
    assert writers.of("focus") is None
    with pytest.raises(ProctorError, match=r"found Half, expected an object with formats and write_submission$"):
        writers.of("lamps")


def test_a_summary_loads_nothing_but_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "get", lambda *_: pytest.fail("the reader was loaded"))
    told = {name: BENCHMARKS.summary(name) for name in BENCHMARKS.names()}
    monkeypatch.undo()
    assert told == {name: BENCHMARKS.get(name).summary for name in told}
    assert all(told.values())


def test_a_word_for_a_thing_that_is_no_choice_is_not_suggested() -> None:
    assert one_of(["video", "black"], "blind") == "one of video, black"
    assert one_of(["video", "text-only"], "blind").endswith("; did you mean 'text-only'?")
