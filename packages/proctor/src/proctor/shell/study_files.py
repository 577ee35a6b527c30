"""A study as a file: benchmarks, systems, conditions, repetitions, judges and comparisons, stated before anything is run."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, JsonValue, ValidationError, model_validator

from proctor.core import (
    BENCHMARKS,
    FrozenModel,
    InputError,
    ProblemsError,
    ProctorError,
    one_of,
    problem_texts,
    read_yaml,
)
from proctor.shell.option_values import time_span

_BASELINE_CONDITION = "text-only"


class StudyBenchmark(FrozenModel):
    """A benchmark: its `name`, with the folder of its own `data`, or the `path` of your own questions. Paths are as seen from the
    folder of the study file."""

    name: str = ""
    path: str = ""
    data: str = ""
    media: str = ""
    track: str = ""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if bool(self.name) == bool(self.path):
            raise ValueError("expected either a name or a path")
        return self


class StudySystem(FrozenModel):
    """A system: a `model` (provider:name) under the `name` that its runs get, or a built-in `system`, a method, or
    file.py:function."""

    name: str = ""
    model: str = ""
    system: str = ""
    base_url: str = ""
    price: str = ""
    prompt: str = ""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not self.model and not self.system:
            raise ValueError("expected a model or a system")
        if self.model and not self.name:
            raise ValueError("expected a name for the model's runs")
        return self

    @property
    def shown(self) -> str:
        """The name of its runs."""
        return self.name or self.system


class StudyJudge(FrozenModel):
    """A judge of stored answers; `benchmarks` are those that it scores (none named: all)."""

    judge: str = ""
    model: str | tuple[str, ...] = ()
    base_url: str = ""
    price: str = ""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    repetitions: int = Field(default=1, ge=1, le=100)
    benchmarks: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if not self.judge and not self.model:
            raise ValueError("expected a judge or a model")
        return self


class StudyComparison(FrozenModel):
    """A comparison of two runs (SYSTEM/CONDITION), by a metric (by default all; of a gate the headline's), with
    its gate or margin, if there is one."""

    first: str
    second: str
    metric: str = ""
    gate: str = ""
    benchmark: str = ""


class StudyLimits(FrozenModel):
    """Limits of one call: no part of what the study states."""

    max_cost: float | None = Field(default=None, ge=0.0001)
    max_time: str = ""
    concurrency: int | None = Field(default=None, ge=1)
    give_up_after: int | None = Field(default=None, ge=1)


class Study(FrozenModel):
    """What a study file states. All systems answer all benchmarks under all conditions, `repetitions` times each."""

    study: str = Field(min_length=1, max_length=200)
    benchmarks: tuple[StudyBenchmark, ...] = Field(min_length=1)
    systems: tuple[StudySystem, ...] = Field(min_length=1)
    conditions: tuple[str, ...] = Field(default=("video",), min_length=1)
    repetitions: int = Field(default=1, ge=1, le=1000)
    seed: int = 0
    limit: int | None = Field(default=None, ge=1)
    failed: Literal["", "wrong", "exclude"] = ""
    judges: tuple[StudyJudge, ...] = ()
    comparisons: tuple[StudyComparison, ...] = ()
    store: str = ""
    limits: StudyLimits = StudyLimits()

    @property
    def body(self) -> str:
        """What the study states, as canonical JSON: all but where it is stored and the limits of a call."""
        stated = self.model_dump(mode="json", exclude={"store", "limits"})
        return json.dumps(stated, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @property
    def sha256(self) -> str:
        """The SHA-256 of `body`: comments, order of fields and spaces in the file change nothing."""
        return hashlib.sha256(self.body.encode()).hexdigest()


def read_study(file: Path) -> Study:
    """Reads a study file and checks all that can be checked without its data. Raises `ProblemsError` with every problem and
    its location."""
    content = read_yaml(file, "a study file (docs/tasks/run-a-study.md)")
    try:
        study = Study.model_validate(content)
    except ValidationError as error:
        raise ProblemsError(file, problem_texts(error, Study)) from error
    if problems := [*_name_problems(study), *_comparison_problems(study)]:
        raise ProblemsError(file, problems)
    return study


def _name_problems(study: Study) -> list[str]:
    """Unknown conditions, benchmarks and times, and names given twice."""
    from proctor.media import CONDITIONS

    found = []
    for number, name in enumerate(study.conditions, 1):
        if name not in CONDITIONS.names():
            found.append(f"conditions {number}: found {name!r}, expected {one_of(CONDITIONS.names(), name)}")
    for number, one in enumerate(study.benchmarks, 1):
        if one.name and one.name not in BENCHMARKS.names():
            known = one_of(BENCHMARKS.names(), one.name)
            found.append(f"benchmarks {number}, name: found {one.name!r}, expected {known}, or a path")
    for what, names in (
        ("systems", [one.shown for one in study.systems]),
        ("conditions", [*study.conditions]),
        ("benchmarks", [one.name or one.path for one in study.benchmarks]),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        found += [f"{what}: found {name!r} twice, expected each name once" for name in twice]
    try:
        time_span(study.limits.max_time or None)
    except ProctorError as error:
        found.append(f"limits, max_time: {error}")
    return found


def _comparison_problems(study: Study) -> list[str]:
    """Comparisons of runs that the study does not make, and gates that can't be read."""
    from proctor.results import read_gate
    from proctor.runs import BASELINES

    runs = [f"{one.shown}/{condition}" for one in study.systems for condition in study.conditions]
    known = {*runs, *(f"{name}/{_BASELINE_CONDITION}" for name in BASELINES)}
    benchmarks = [one.name or one.path for one in study.benchmarks]
    found = []
    for number, one in enumerate(study.comparisons, 1):
        for side in ("first", "second"):
            name = getattr(one, side)
            if name not in known:
                found.append(f"comparisons {number}, {side}: found {name!r}, expected {one_of(runs, name)}")
        if one.benchmark not in {"", *benchmarks}:
            expected = one_of(benchmarks, one.benchmark)
            found.append(f"comparisons {number}, benchmark: found {one.benchmark!r}, expected {expected}")
        try:
            read_gate(one.gate)
        except ProctorError as error:
            found.append(f"comparisons {number}, gate: {error}")
    for number, judge in enumerate(study.judges, 1):
        odd = [name for name in judge.benchmarks if name not in benchmarks]
        found += [f"judges {number}, benchmarks: found {name!r}, expected {one_of(benchmarks, name)}" for name in odd]
    return found


def study_path(folder: Path, given: str) -> str:
    """A path of a study file, as seen from its folder; an address stays as it is."""
    return given if "://" in given or Path(given).is_absolute() else str(folder / given)


def refuse_beside(file: Path, given: dict[str, Any]) -> None:
    """Raises `InputError` for an option beside a study file, which states it."""
    if given:
        name = next(iter(given))
        raise InputError(
            file, found=f"--{name.replace('_', '-')} beside the study", expected="it in the file, where it is recorded"
        )
