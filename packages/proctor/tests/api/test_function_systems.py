"""Plain functions as systems: what they are given, where they run, and what becomes of their errors."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor import Answer, Benchmark, ConfigurationError, InputError, Item, RefusalError, Status
from proctor.core import View
from tests.support.lamp_benchmark import lamps

RIGHT_BY_NAME = "Is lamp 3 on?"


def answers(system: Any, benchmark: Benchmark | None = None, **options: Any) -> dict[str, Answer]:
    made = proctor.run(
        benchmark or lamps(), system, conditions="text-only", store=":memory:", baselines=False, **options
    )
    return made.store.answers(made.runs[0])


def test_a_function_gets_what_its_parameters_name() -> None:
    seen: list[dict[str, Any]] = []

    def everything(item: Item, question: str, options: tuple[str, ...], instruction: str, frames: list[Any]) -> str:
        seen.append(locals())
        return "no" if question == RIGHT_BY_NAME else "yes"

    given = answers(everything)
    assert all(answer.parsed is (name[-1] != "3") for name, answer in given.items())
    assert len(seen) == 12
    for one in seen:
        assert one["item"].reference is None  # a function sees no more than any system
        assert one["item"].tags == {}
        assert one["question"] == one["item"].question
        assert one["instruction"].startswith("Start your reply")
        assert one["frames"] == []


def test_sync_functions_run_in_threads_and_async_ones_in_the_loop() -> None:
    threads: dict[str, set[int]] = {"sync": set(), "async": set()}

    def sync(question: str) -> str:
        threads["sync"].add(threading.get_ident())
        return "yes"

    async def awaited(item: Item, view: View) -> str:
        threads["async"].add(threading.get_ident())
        assert await view.frames() == []
        return "yes"

    answers(sync)
    answers(awaited)
    assert threading.get_ident() not in threads["sync"]
    assert threads["async"] == {threading.get_ident()}


def test_sync_functions_wait_for_one_another_at_no_time() -> None:
    together = threading.Barrier(4, timeout=600)  # passes only where four calls are under way at once

    def meets(question: str) -> str:
        together.wait()
        return "yes"

    given = answers(meets, concurrency=4)
    assert {answer.status for answer in given.values()} == {Status.ANSWERED}


def test_a_sync_function_asks_its_view_for_frames() -> None:
    def looks(view: Any) -> str:
        return f"{'yes' if view.frames(count=2) == [] else 'no'}, {view.condition}, {view.span}"

    assert {answer.text for answer in answers(looks).values()} == {"yes, text-only, None"}


def test_a_sync_function_that_returns_a_coroutine_must_not_block_the_loop() -> None:
    async def inner(view: Any) -> str:
        view.frames()
        return "yes"

    def outer(view: Any) -> Any:
        return inner(view)

    given = answers(outer)
    reasons = {answer.reason for answer in given.values()}
    assert reasons == {"view.frames() was called in the event loop: make the function async"}


def test_an_exception_is_an_error_with_its_place() -> None:
    def broken(question: str) -> str:
        return {"Is lamp 1 on?": "yes"}[question]

    given = answers(broken)
    line = broken.__code__.co_firstlineno + 1
    assert given["room-1/q1"].status is Status.ANSWERED
    assert given["room-1/q2"].status is Status.ERROR
    assert given["room-1/q2"].reason == f"KeyError: 'Is lamp 2 on?' ({Path(__file__).name}, line {line})"


def raises(error: BaseException) -> Callable[[str], str]:
    def system(question: str) -> str:
        raise error

    return system


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (RefusalError("not for me"), Status.REFUSED, "not for me"),
        (ConnectionError("refused"), Status.FAILED, "ConnectionError: refused (test_function_systems.py, line "),
        (TimeoutError(), Status.FAILED, "TimeoutError: (test_function_systems.py, line "),
        (StopIteration("end"), Status.ERROR, "RuntimeError: StopIteration: end (test_function_systems.py, line "),
    ],
)
def test_other_errors_mean_what_they_mean_of_every_system(error: Exception, status: Status, reason: str) -> None:
    given = answers(raises(error), limit=1)
    assert [(answer.status, answer.reason.startswith(reason)) for answer in given.values()] == [(status, True)]


async def ends_awaited(question: str) -> str:
    sys.exit("no weights")


async def cancels_itself(question: str) -> str:
    inner = asyncio.ensure_future(asyncio.sleep(600))
    inner.cancel()
    await inner
    return "yes"


class PanicError(BaseException):
    """As libraries in Rust raise it (`pyo3_runtime.PanicException`)."""


class EndsWhole:
    name = "ends"
    settings: Mapping[str, Any] = {}

    def supports(self, item: Item) -> bool:
        return True

    async def answer(self, item: Item, view: View) -> Answer:
        raise SystemExit(0)


def ends_later(question: str) -> Any:
    return ends_awaited(question)


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        (raises(SystemExit(0)), "RuntimeError: SystemExit: 0 (test_function_systems.py, line "),
        (raises(SystemExit("no weights")), "RuntimeError: SystemExit: no weights (test_function_systems.py, line "),
        (raises(PanicError("index out of bounds")), "RuntimeError: PanicError: index out of bounds"),
        (raises(asyncio.CancelledError()), "RuntimeError: CancelledError (test_function_systems.py, line "),
        (ends_awaited, "RuntimeError: SystemExit: no weights (test_function_systems.py, line "),
        (ends_later, "RuntimeError: SystemExit: no weights (test_function_systems.py, line "),
        (cancels_itself, "RuntimeError: CancelledError (test_function_systems.py, line "),
        (EndsWhole(), "RuntimeError: SystemExit: 0"),
    ],
)
def test_a_system_that_ends_the_program_or_cancels_itself_is_its_own_error(system: Any, reason: str) -> None:
    given = answers(system)
    assert {answer.status for answer in given.values()} == {Status.ERROR}
    assert len(given) == 12
    assert all(answer.reason.startswith(reason) for answer in given.values())


def test_a_cancellation_from_outside_cancels_a_system(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def waits(question: str) -> str:
        begun.set()
        await asyncio.sleep(600)
        return "yes"

    async def stopped() -> None:
        asked = asyncio.ensure_future(
            proctor.run_async(lamps(), waits, conditions="text-only", store=tmp_path / "runs.db", baselines=False)
        )
        await begun.wait()
        asked.cancel()
        await asked

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(stopped())
    store = proctor.open_store(tmp_path / "runs.db")
    assert store.answers(store.runs("lamps")[0]) == {}


def test_a_function_returns_words_or_an_answer() -> None:
    def whole(item: Item) -> Answer:
        return Answer(item_id="another", text="Answer: yes", extra={"steps": 3})

    def number(item: Item) -> int:
        return 3

    assert answers(whole, limit=1)["room-1/q1"].extra == {"steps": 3, "shown": []}
    assert answers(number, limit=1)["room-1/q1"].reason == "number returned int, expected str or Answer"


def test_a_late_sync_function_does_not_hold_up_the_end() -> None:
    never = threading.Event()

    def hangs(question: str) -> str:
        never.wait(600)
        return "yes"

    given = answers(hangs, limit=1, budget_s=0.05)
    assert [answer.status for answer in given.values()] == [Status.TIMED_OUT]
    never.set()


def test_what_is_there_is_counted_without_what_a_system_does_not_answer(tmp_path: Path) -> None:
    @proctor.system(formats=["binary"])
    def one(question: str) -> str:
        return "yes"

    given: dict[str, Any] = {"conditions": "text-only", "store": tmp_path / "lamps.db", "baselines": False}
    first = proctor.run(lamps(free_text=True), one, **given)
    assert first.notes == ("one skipped 4 items: unsupported answer format.",)
    again = proctor.run(lamps(free_text=True), one, **given)
    assert "12 answers there already; 0 to ask." in again.notes


def test_the_benchmarks_own_budget_counts_where_no_other_is_named(tmp_path: Path) -> None:
    async def slow(question: str) -> str:
        await asyncio.sleep(2)
        return "yes"

    hurried = replace(lamps(), budget_s=0.05)
    made = proctor.run(hurried, slow, conditions="text-only", limit=1, store=tmp_path / "lamps.db")
    assert [answer.status for answer in made.store.answers(made.runs[0]).values()] == [Status.TIMED_OUT]


def test_a_parameter_that_nobody_offers_is_named_before_anything_is_asked() -> None:
    expected = (
        "q: found the parameter 'words', expected of a system: item, view, question, options, instruction, frames"
    )
    with pytest.raises(ConfigurationError, match=expected):
        answers(named("q", lambda words: "yes"))
    with pytest.raises(
        ConfigurationError, match=r"^q: found the parameter 'question' before '/', expected one that can be"
    ):
        answers(named("q", lambda question, /: "yes"))


def named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = name
    return function


def test_an_edited_function_is_another_system(tmp_path: Path) -> None:
    def say(text: str) -> Callable[..., str]:
        scope: dict[str, Any] = {}
        exec(f"def said(question):\n    return {text!r}", scope)  # as typed into an interpreter: without a file
        made: Callable[..., str] = scope["said"]
        return made

    store = tmp_path / "lamps.db"
    proctor.run(lamps(), say("yes"), conditions="text-only", store=store)
    again = proctor.run(lamps(), say("yes"), conditions="text-only", store=store)
    assert again.outcome is not None
    assert again.outcome.tally.done == 0  # the same function: nothing is asked again
    with pytest.raises(InputError, match=r"run of said under text-only: found other settings \(system.source_sha256"):
        proctor.run(lamps(), say("no"), conditions="text-only", store=store)


def test_the_decorator_names_formats_and_settings() -> None:
    @proctor.system(name="always", formats="binary", settings={"word": "yes"})
    def said(question: str) -> str:
        """Says yes."""
        return "yes"

    assert (said.name, said("?"), said.__doc__) == ("always", "yes", "Says yes.")
    made = proctor.run(lamps(free_text=True), said, conditions="text-only", store=":memory:")
    assert made.runs[0].system == "always"
    assert made.runs[0].settings["system"] == said.settings
    assert said.settings["word"] == "yes"
    assert len(made.store.answers(made.runs[0])) == 12
    assert "always skipped 4 items: unsupported answer format." in made.notes


FILE = """
from helper import WORD
from dataclasses import dataclass


@dataclass
class Kept:
    word: str


def sync(question):
    return Kept(WORD).word


async def awaited(item, view):
    return WORD


class Whole:
    name = "whole"
    settings = {}

    def supports(self, item):
        return True

    async def answer(self, item, view):
        from proctor import Answer

        return Answer(item_id=item.id, text=WORD)


def broken(question):
    return question[1000]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine.py").write_text(FILE, encoding="utf-8")
    (tmp_path / "helper.py").write_text("WORD = 'Answer: yes'\n", encoding="utf-8")
    yield tmp_path
    for name in [name for name in sys.modules if name == "helper" or name.startswith("proctor_file_")]:
        del sys.modules[name]


@pytest.mark.parametrize(("name", "shown"), [("sync", "sync"), ("awaited", "awaited"), ("Whole", "whole")])
def test_a_system_in_a_file(folder: Path, name: str, shown: str) -> None:
    made = proctor.run(lamps(), f"{folder}/mine.py:{name}", conditions="text-only", store=":memory:")
    assert made.runs[0].system == shown
    assert {answer.text for answer in made.store.answers(made.runs[0]).values()} == {"Answer: yes"}


def test_a_system_in_a_file_under_another_name(folder: Path) -> None:
    made = proctor.run(lamps(), f"{folder}/mine.py:sync", name="mine", conditions="text-only", store=":memory:")
    assert made.systems == ("mine",)


def test_what_is_wrong_with_a_file_is_one_sentence(folder: Path) -> None:
    with pytest.raises(
        InputError, match=r"mine.py: found no 'answer', expected one of Kept, sync, awaited, Whole, broken"
    ):
        answers(f"{folder}/mine.py:answer")
    with pytest.raises(InputError, match=r"gone.py: found no such file, expected a Python file"):
        answers(f"{folder}/gone.py:answer")
    (folder / "bad.py").write_text("x = 1\nimport no_such_module\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"bad.py: can't be loaded: ModuleNotFoundError: .*\(bad.py, line 2\)"):
        answers(f"{folder}/bad.py:answer")
    for name, text, said in (
        ("exits", "import sys\nsys.exit(0)\n", "SystemExit: 0 (exits.py, line 2)"),
        (
            "class",
            "class It:\n    def __init__(self):\n        raise SystemExit(3)\n",
            "SystemExit: 3 (class.py, line 3)",
        ),
    ):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        with pytest.raises(ConfigurationError) as refused:
            answers(f"{folder}/{name}.py:It")
        assert str(refused.value) == f"{folder}/{name}.py: can't be loaded: {said}"
    (folder / "needs.py").write_text(
        "\n\nclass It:\n    def __init__(self, level, *more, name, kind=1, **rest):\n        self.level = level\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError) as needs:
        answers(f"{folder}/needs.py:It")
    assert str(needs.value) == (
        f"{folder}/needs.py: line 3: found the class It, which needs 'level', 'name', expected defaults for all, or an "
        f"object: mine = It(…), named as {folder}/needs.py:mine"
    )
    given = answers(f"{folder}/mine.py:broken", limit=1)
    assert [answer.reason for answer in given.values()] == ["IndexError: string index out of range (mine.py, line 33)"]


def test_it_works_where_an_event_loop_runs() -> None:
    async def notebook() -> list[int]:
        made = proctor.run(lamps(), lambda question: "yes", conditions="text-only", store=":memory:")
        awaited = await proctor.run_async(
            lamps(), lambda question: "yes", name="again", conditions="text-only", store=made.store
        )
        return [len(one.store.answers(one.runs[0])) for one in (made, awaited)]

    assert asyncio.run(notebook()) == [12, 12]
