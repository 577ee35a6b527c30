"""What a run says when nothing comes of it: the first cause, at its stage, and every call that was paid for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import pytest
import yaml

from proctor.core import InputError
from proctor_build.pipeline import Project, first_causes, funnel, run_stages
from proctor_build.pipeline.commands import run_report, status
from tests.support.faulty_server import FaultyServer


def test_a_model_that_never_gives_a_readable_reply_is_the_first_cause(one_source: Path, server: FaultyServer) -> None:
    file = one_source / "project.yaml"
    settings = yaml.safe_load(file.read_text())
    settings["stages"]["normalise"] = {}
    file.write_text(yaml.safe_dump(settings))
    server._reply = lambda _: "I would rather talk about something else."
    report = run_report(one_source, _steps, "questions", ())
    calls = server.count
    (cause,) = first_causes(Project(one_source))
    assert cause.startswith("normalise: the model gave no readable reply in ")
    assert cause in report.notes
    project = Project(one_source)
    with closing(project.store):
        rows = {row.stage: row for row in funnel(project)}
    assert sum(row.calls for row in rows.values()) == calls
    assert rows["normalise"].calls == rows["normalise"].failed_calls > 0
    told = [line for line in status(one_source).shown if isinstance(line, str)]
    failed = rows["questions"].failed_calls
    assert f"questions: {failed} calls without a readable reply" in told
    with pytest.raises(InputError, match=r"no question that stays \(normalise: the model gave no readable reply"):
        asyncio.run(run_stages(Project(one_source)))


def test_a_stage_that_makes_nothing_is_named(one_source: Path, server: FaultyServer) -> None:
    server._reply = lambda _: '{"fits": false, "why": "a lecture"}'
    asyncio.run(run_stages(Project(one_source), until="questions"))
    (cause,) = first_causes(Project(one_source))
    assert cause.startswith("questions: nothing was made of 6 records: ")
    assert "a lecture" in cause


def _steps(name: str, total: int) -> AbstractContextManager[Callable[[int, int], None]]:
    del name, total
    return nullcontext(lambda done, of: None)
