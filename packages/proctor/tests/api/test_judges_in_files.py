"""Judges and metrics in a file are found as systems are: a function, decorated or not, a class, a factory of dimensions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import proctor
from proctor import ConfigurationError, Evaluation, InputError
from proctor.core import Dimension, RatingScheme, UsageError
from proctor.runs import declare_ratings
from tests.support.faulty_server import FaultyServer
from tests.support.lamp_benchmark import lamps

FILE = '''"""Judges of one's own."""

from pydantic import BaseModel

import proctor
from proctor.core import Metric, Score
from proctor.judges.dimensions import DimensionScores, RatesDimensions


class Same(BaseModel):
    same: bool


async def alike(reference, answer, ask):
    return (await ask(f"Same? {reference} / {answer}", Same)).same


@proctor.judge(percent=True)
def declared(answer, ask):
    return ask(f"Good? {answer}", Same).same


def breaks(answer, ask):
    raise KeyError("chave")


def greedy(answer, ask):
    return 7


def no_model(answer):
    return 1


class ByLength:
    name, settings = "by-length", {"most": 40}

    async def judge(self, case):
        return DimensionScores(values={one.name: min(len(case.candidate), 40) / 40 for one in case.dimensions}, missing={})


@RatesDimensions
def lengths(setup):
    """Longer is better."""
    return ByLength()


@RatesDimensions
def empty(setup):
    return [][1]


class Words:
    def __init__(self):
        self.name = "words"
        self.metrics = (Metric("words", "Words", high=99.0),)

    def applies(self, item):
        return item.answer.kind == "free_text"

    async def score(self, item, answer):
        return [Score(item_id=item.id, metric="words", value=float(len(answer.text.split())), scorer="words")]


number = 3
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "juizes.py"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def made() -> Evaluation:
    return proctor.run(
        lamps(free_text=True),
        lambda: "the machine",
        name="one",
        conditions="text-only",
        store=":memory:",
        baselines=False,
    )


def yes(request: object) -> str:
    return json.dumps({"same": True})


@pytest.mark.parametrize("name", ["alike", "declared"])
def test_a_judge_in_a_file_asks_the_model(made: Evaluation, file: Path, name: str) -> None:
    with FaultyServer(yes) as server:
        done = made.score(judge=f"{file}:{name}", model="judge", base_url=server.url)
    assert done.by == {f"{name}[judge]": 4}
    (row,) = [row for row in made.results(draws=200) if row["metric"] == name]
    assert (row["value"], row["n"]) == (1.0, 4)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("breaks", r"juizes\.py:breaks, item 'room-1/why': KeyError: 'chave' \(juizes\.py, line 2\d\)"),
        ("greedy", r"juizes\.py:greedy, item 'room-1/why': found 7, expected 0 to 1 \(or declare low and high\)"),
        ("number", r"juizes\.py:number: found int, expected a function, or a factory with @RatesDimensions"),
        ("Same", r"juizes\.py:Same: found a class, expected a function"),
        ("nobody", r"juizes\.py: found no 'nobody', expected one of .*alike, "),
    ],
)
def test_a_fault_of_the_file_is_one_line(made: Evaluation, file: Path, name: str, said: str) -> None:
    with FaultyServer(yes) as server, pytest.raises(proctor.ProctorError, match=said) as caught:
        made.score(judge=f"{file}:{name}", model="judge", base_url=server.url)
    assert "\n" not in str(caught.value)


def test_a_judge_needs_a_model_and_a_function_without_one_is_a_metric(made: Evaluation, file: Path) -> None:
    with pytest.raises(
        UsageError,
        match=r"juizes\.py:no_model asks a model. Give one: --model PROVIDER:NAME. A function that asks none is a metric",
    ):
        made.score(judge=f"{file}:no_model")


def test_a_factory_in_a_file_rates_dimensions(made: Evaluation, file: Path) -> None:
    scheme = RatingScheme(dimensions=(Dimension("clarity", (0.0, 0.5, 1.0)),))
    declare_ratings(made.store, "lamps", scheme)
    assert made.score(judge=f"{file}:lengths").by == {"by-length": 4}
    rows = [row for run in made.store.runs("lamps") for row in made.store.score_rows(run, scorer="by-length")]
    assert {(row.metric, row.value) for row in rows} == {("clarity", len("the machine") / 40)}
    with pytest.raises(
        ConfigurationError, match=r"juizes\.py: can't be loaded: IndexError: .* \(juizes\.py, line \d+\)"
    ):
        made.score(judge=f"{file}:empty")


def test_a_scorer_may_be_a_class(made: Evaluation, file: Path) -> None:
    assert made.score(metrics=f"{file}:Words").by == {"words": 4}
    with pytest.raises(ConfigurationError, match=r"juizes\.py:number: found int, expected a function or a scorer"):
        made.score(metrics=f"{file}:number")
    with pytest.raises(InputError, match=r"nada\.py: found no such file, expected a Python file"):
        made.score(metrics=f"{file.with_name('nada.py')}:x")
