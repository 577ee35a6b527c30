"""A corrected reference comes into a store without its answers being asked again; a changed question does not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.core import Benchmark, InputError
from proctor.media import MediaLibrary
from proctor.metrics import code_scorers
from proctor.runs import Limits, Run, Store, execute, plan, revise_benchmark
from proctor.systems import build_system
from proctor.tasks.simulated import READER
from tests.support.text_folder import write_text_folder


def asked(folder: Path) -> tuple[Store, Benchmark, Run]:
    """Guesses at ten questions, scored."""
    benchmark = READER.load(write_text_folder(folder, 10))
    store, system = Store(folder / "runs.db"), build_system("random", seed=0)
    planned = plan(store, benchmark, [system], ["text-only"], MediaLibrary(None), scorers=code_scorers(benchmark))
    asyncio.run(execute(store, planned, Limits()))
    return store, benchmark, planned.runs[0]


def changed(folder: Path, change: Callable[[dict[str, Any]], None]) -> Benchmark:
    file = folder / "questions.json"
    questions = json.loads(file.read_text())
    change(questions["questions"][3])
    file.write_text(json.dumps(questions))
    return READER.load(folder)


def test_what_was_scored_by_the_former_reference_goes(tmp_path: Path) -> None:
    store, benchmark, run = asked(tmp_path)
    answers, scores = store.answers(run), {row.item_id for row in store.score_rows(run)}
    assert revise_benchmark(store, benchmark) == 0
    new = changed(tmp_path, lambda one: one.update(answer=one["answer"] + 1))
    with pytest.raises(InputError, match="changed: 1 item, first q003"):
        store.add_benchmark(new)
    assert revise_benchmark(store, new) == 1
    assert store.fingerprint("simulated") == new.fingerprint
    assert store.items("simulated") == list(new.items)
    assert store.answers(run) == answers
    assert scores - {row.item_id for row in store.score_rows(run)} == {"q003"}
    store.add_benchmark(new)
    store.close()


def test_another_question_is_refused(tmp_path: Path) -> None:
    store, benchmark, run = asked(tmp_path)
    scores = len(store.score_rows(run))
    with pytest.raises(InputError, match="found another question 'q003', or none"):
        revise_benchmark(store, changed(tmp_path, lambda one: one.update(question="How many?", answer=9)))
    assert store.fingerprint("simulated") == benchmark.fingerprint
    assert len(store.score_rows(run)) == scores
    store.close()
