"""Every option of `run` and `score` arrives where it works: in the plan, the media library, the system, the model or
the limits.

The rooms below only write down what they were called with; the default of each option is the documented one.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, is_typeddict

import pytest

import proctor
from proctor import runs, shell
from proctor.core import InputError, UsageError
from proctor.results import Contest, Options
from proctor.shell import arrange, prepare_scorers
from proctor.shell.model_options import RunOptions, ScoreOptions
from proctor.shell.options import declared, filled
from proctor.stats import RankingPlan, Resampling
from tests.support.lamp_benchmark import lamps

BLIND: dict[str, Any] = {
    "conditions": "text-only",
    "model": "openai:m",
    "base_url": "http://localhost:9/v1",
    "baselines": False,
}

# What is given, and how it is read from what was arranged.
ARRANGED: dict[str, tuple[Any, Callable[[Any], Any], Any]] = {
    "seed": (7, lambda one: one.plan.seed, 7),
    "all_items": (True, lambda one: one.plan.all_items, True),
    "limit": (3, lambda one: one.plan.limit, 3),
    "budget_s": (2.5, lambda one: one.plan.budget_s, 2.5),
    "skip_broken": (True, lambda one: one.plan.skip_broken, True),
    "conditions": (["text-only", "muted"], lambda one: one.conditions, ("text-only", "muted")),
    "fps": (2.0, lambda one: one.library.settings.fps, 2.0),
    "max_frames": (9, lambda one: one.library.settings.max_frames, 9),
    "max_side": (99, lambda one: one.library.settings.max_side, 99),
    "overlay": ("clip", lambda one: one.library.settings.overlay, "clip"),
    "cache": (Path("frames"), lambda one: one.library.cache_dir, Path("frames")),
    "cache_size": ("2KB", lambda one: one.library._cache_bytes, 2000),
    "media": ("pictures", lambda one: one.library.root, Path("pictures")),
    "name": ("mine", lambda one: one.systems[0].name, "mine"),
    "video_as": ("file", lambda one: one.systems[0].settings["sampling"]["video_as"], "file"),
    "settings": ({"temperature": 0.5}, lambda one: one.access.opened[0].spec.settings, {"temperature": 0.5}),
    "timeout_s": (9.0, lambda one: one.access.opened[0].spec.timeout_s, 9.0),
    "retries": (1, lambda one: one.access.opened[0].spec.retries, 1),
    "structured": ("tool", lambda one: one.access.opened[0].spec.structured, "tool"),
    "price": ("0.5/2", lambda one: one.access.opened[0].spec.price, (0.5, 2.0)),
    "base_url": ("http://localhost:8/v1", lambda one: one.access.opened[0].spec.base_url, "http://localhost:8/v1"),
    "model": ("openai:n", lambda one: one.access.opened[0].spec.name, "openai:n"),
}


@pytest.mark.parametrize("name", ARRANGED)
def test_an_option_of_a_run_arrives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    given, where, wanted = ARRANGED[name]
    assert where(arrange(lamps(), None, **(BLIND | {name: given}))) == wanted
    default = declared(RunOptions)[name][1].default
    assert given != default
    if isinstance(default, bool | int | float):
        assert where(arrange(lamps(), None, **BLIND)) == default != wanted


def said(question: str) -> str:
    return "yes"


class ReachedError(Exception):
    """The function below was called."""


def test_limits_of_a_run_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    """How much at once, how long, when to give up, whom to tell and when to stop."""
    found: dict[str, Any] = {}

    async def execute(_store: Any, _plan: Any, limits: Any, **more: Any) -> Any:
        found.update(vars(limits) if hasattr(limits, "__dict__") else {}, **more)
        raise ReachedError

    monkeypatch.setattr(runs, "execute", execute)
    stop, told = asyncio.Event(), list[Any]()
    how: dict[str, Any] = {
        "concurrency": 3,
        "budget_s": 4.0,
        "give_up_after": 5,
        "stop": stop,
        "on_change": told.append,
    }
    for given, wanted in ((how, how), ({}, {"concurrency": 8, "budget_s": None, "give_up_after": 50, "stop": None})):
        with pytest.raises(ReachedError):
            proctor.run(lamps(), said, conditions="text-only", store=":memory:", **given)
        assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize("share", [True, False])
def test_claims_are_made_where_a_run_is_shared(share: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []

    async def execute(_store: Any, _plan: Any, _limits: Any, *, claims: Any = None, **_: Any) -> Any:
        found.append(claims)
        raise ReachedError

    monkeypatch.setattr(runs, "execute", execute)
    with pytest.raises(ReachedError):
        proctor.run(lamps(), said, conditions="text-only", store=":memory:", share=share)
    assert [isinstance(one, runs.ItemClaims) for one in found] == [share]


@pytest.mark.parametrize("beside", [True, False])
def test_baselines_are_asked_beside_with_the_seed(beside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = []

    async def add_baselines(*_: Any, seed: int, **__: Any) -> None:
        seeds.append(seed)

    monkeypatch.setattr(runs, "add_baselines", add_baselines)
    proctor.run(lamps(), said, conditions="text-only", store=":memory:", seed=6, baselines=beside)
    assert seeds == ([6] if beside else [])


REFUSED: list[tuple[Mapping[str, Any], str]] = [
    ({}, "Nothing to score with"),
    ({"metrics": "rouge-l", "model": "x"}, "Metrics and a judge score one after the other"),
    ({"metrics": "rouge-l", "judge": "panel"}, "Metrics and a judge score one after the other"),
    ({"judge": "panel"}, "This judge asks a model. Give one"),
    *(({"judge": "panel", "model": "x", name: value}, f"--{name.removesuffix('s') if name == 'options' else name} is for judges of dimensions")
      for name, value in {"options": {"a": "1"}, "dimensions": "x.yaml", "rated": "x.db"}.items()),
    ({"judge": "bertscore", "prompt": "paper"}, "BERTScore asks no model. Leave --prompt paper out"),
    ({"judge": "rating-judge", "model": "x", "fallback": "y"}, "A judge of dimensions has no fallback"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_does_not_go_together_is_refused(given: Mapping[str, Any], message: str) -> None:
    made = proctor.run(lamps(free_text=True), said, conditions="text-only", store=":memory:", baselines=False)
    with pytest.raises((UsageError, InputError), match=message):
        asyncio.run(prepare_scorers(made, "", filled("score", ScoreOptions, dict(given))))  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{}, {"concurrency": 3, "limit": 2, "all_items": True}])
def test_limits_of_a_judge_arrive(given: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, Any] = {}

    async def judge_all(_store: Any, chosen: Any, _scorer: Any, limits: Any, **more: Any) -> Any:
        found.update(runs=[run.system for run in chosen], concurrency=limits.concurrency, limit=limits.most, **more)
        found["shard"] = limits.shard
        raise ReachedError

    monkeypatch.setattr(runs, "judge_all", judge_all)
    made = proctor.run(lamps(free_text=True), said, conditions="text-only", store=":memory:", baselines=False)
    stop, told = asyncio.Event(), list[Any]()
    with pytest.raises(ReachedError):
        made.score(metrics="rouge-l-best", stop=stop, on_change=told.append, **given)
    wanted = {"concurrency": 8, "limit": None, "all_items": False, "runs": ["said"], "shard": None} | dict(given)
    assert {name: found[name] for name in wanted} == wanted
    assert found["stop"] is stop
    found["on_change"]("so far")
    assert told == ["so far"]


def test_the_rooms_below_have_the_documented_defaults() -> None:
    """Where a room below has an option of the API, it has its default too: 2,000 draws, seed 0, 95 %, whole groups."""
    from proctor.shell.options import AnalyzeOptions, RankOptions, ResultOptions

    rooms: list[tuple[Any, Any]] = [
        (Options(), ResultOptions),
        (Contest(), AnalyzeOptions),
        (Resampling(), ResultOptions),
    ]
    rooms += [(runs.Limits(), RunOptions), (runs.JudgeLimits(), ScoreOptions), (runs.PlanOptions(), RunOptions)]
    rooms += [(RankingPlan(draws=2000, stability=1000), RankOptions)]
    compared = 0
    for below, kind in rooms:
        for name, (_, option) in declared(kind).items():
            if hasattr(below, name) and name != "condition":
                assert getattr(below, name) == option.default, (type(below).__name__, name)
                compared += 1
    assert compared > 25
    wanted: dict[str, Any] = {
        "draws": 2000,
        "level": 0.95,
        "seed": 0,
        "two_level": False,
        "all_items": False,
        "failed": None,
    }
    assert {name: getattr(Options(), name) for name in wanted} == wanted
    assert (Contest().condition, RankingPlan().draws, RankingPlan().level, RankingPlan().alpha) == (
        "video",
        10_000,
        0.95,
        0.05,
    )


def test_functions_of_the_door_have_the_documented_defaults() -> None:
    """Where a function names an option itself, its default is that of all others."""
    wanted = {"draws": 2000, "level": 0.95, "seed": 0, "two_level": False, "all_items": False, "failed": None}
    found = {
        (name, option): parameter.default
        for name in proctor.api.__all__
        if inspect.isfunction(function := getattr(proctor.api, name))
        for option, parameter in inspect.signature(function).parameters.items()
        if option in wanted and parameter.default is not parameter.empty
    }
    assert ("score_predictions", "draws") in found
    assert found == {(name, option): wanted[option] for name, option in found}


def test_an_option_without_a_default_may_be_none() -> None:
    """Else a function would meet None where its contract knows none."""
    modules = [importlib.import_module(f"proctor.shell.{one.name}") for one in iter_modules(shell.__path__)]
    kinds = {kind for module in modules for kind in vars(module).values() if is_typeddict(kind)}
    wrong = []
    for kind in kinds:
        for name, (meant, option) in declared(kind).items():
            said = meant if isinstance(meant, str) else getattr(meant, "__forward_arg__", str(meant))
            if option.default is None and not re.search(r"None|Any|Optional|Store", said):
                wrong.append((kind.__name__, name, said))
    assert wrong == []
