"""What a run costs is said where it is asked for, and an unknown cost is never nothing."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

import proctor
from proctor.core import Answer, Score, Usage
from proctor.reports import cost_lines
from proctor.results import Consumption, RunCost, load_consumption, load_items, run_costs
from proctor.runs import Run, Store
from proctor.runs.plan import RunEstimate
from tests.support.program import proctor as shell
from tests.support.report_store import CONDITIONS, a_benchmark

PRICED, UNPRICED = (
    Usage(requests=1, input_tokens=900, output_tokens=20, cost_usd=0.002),
    Usage(requests=1, input_tokens=900),
)


def filled(folder: Path, system: str, usages: list[Usage]) -> tuple[Store, Run]:
    """A store with a run that has asked the first items, one with each usage."""
    store, benchmark = Store(folder / "cost.db"), a_benchmark()
    store.add_benchmark(benchmark)
    run = store.start_run(benchmark.name, system, CONDITIONS[0], {"seed": 1})
    asked = zip(benchmark.items, usages, strict=False)
    answers = [Answer(item_id=item.id, text="Answer: A", parsed="A", usage=usage) for item, usage in asked]
    scored = [(answer, [Score(item_id=answer.item_id, metric="accuracy", value=1.0)]) for answer in answers]
    store.write(run, scored)
    return store, run


@pytest.mark.parametrize(
    ("usages", "said"),
    [
        ([PRICED] * 3, "Cost of m / video: $0.0060 for 3 answers; all 48: about $0.0960."),
        ([PRICED] * 48, "Cost of m / video: $0.0960 for 48 answers."),
        ([UNPRICED] * 3, "Cost of m / video: unknown for 3 answers."),
        ([PRICED, UNPRICED], "Cost of m / video: $0.0020 and unknown for 1 answer for 2 answers."),
    ],
)
def test_results_say_what_a_run_cost_and_what_all_of_it_will(tmp_path: Path, usages: list[Usage], said: str) -> None:
    store, run = filled(tmp_path, "m", usages)
    costs = run_costs(store, [run], load_items(store, store.card("toy")))
    assert cost_lines(costs) == [said]
    assert said in proctor.results(store, "toy", draws=100).notes
    store.close()
    printed = shell("results", "toy", "--store", tmp_path / "cost.db", "--draws", "100")
    assert said in printed.stderr.splitlines()


def test_a_run_without_requests_has_no_cost(tmp_path: Path) -> None:
    store, run = filled(tmp_path, "random", [Usage()] * 3)
    assert run_costs(store, [run], load_items(store, store.card("toy"))) == ()
    assert not [note for note in proctor.results(store, "toy", draws=100).notes if "Cost" in note]


def test_the_database_adds_up_the_costs_of_a_whole_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading every answer of every run for them made `results` three times slower."""
    store, run = filled(tmp_path, "m", [PRICED, UNPRICED, PRICED])
    card = store.card("toy")
    items = load_items(store, card)
    read = load_consumption(store, run, items)
    with monkeypatch.context() as context:
        context.setattr(import_module("proctor.results.costs"), "load_consumption", None)
        (added,) = run_costs(store, [run], items)
    assert added.consumption == replace(read, seconds={}, input_tokens=None, output_tokens=None, cached_tokens=None)
    some = load_items(store, card.model_copy(update={"only": {"question_type": "no such"}}))
    assert len(some) < len(items)
    assert run_costs(store, [run], some) == ()
    store.close()


def test_no_projection_from_a_part_whose_price_is_unknown() -> None:
    some = Consumption({}, 2, 10, 10, 0, 0.5, unpriced=1, priced=1)
    assert RunCost("m", "video", some, 2, 100).whole_usd is None


def test_an_estimate_has_the_cost_of_the_input(tmp_path: Path) -> None:
    questions = tmp_path / "mine.csv"
    questions.write_text("question,answer,A,B,group\nWhich?,A,on,off,1\nAnd now?,B,on,off,2\n")
    given = ("run", questions, "--model", "openai:gpt-5.2", "--condition", "text-only", "--dry-run")
    key = {"OPENAI_API_KEY": "none"}
    priced = shell(*given, "--price", "1000000/0", **key)
    assert priced.returncode == 0, priced.stderr
    (row,) = [line for line in priced.stdout.splitlines() if "gpt-5.2" in line]
    tokens, cost = row.split()[-2:]
    assert cost == f"${float(tokens):.2f}"  # a dollar a token
    assert "Input: about $" in priced.stderr
    unknown = shell(*given, **key)
    assert unknown.stdout.split()[-1] == "unknown"
    assert "The cost is unknown: give --price" in unknown.stderr


def test_of_a_system_without_a_model_nothing_is_estimated() -> None:
    assert RunEstimate("random", "text-only", 0, 3, 0, 0).input_usd is None
