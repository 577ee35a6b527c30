"""Plain functions as metrics, metrics that a benchmark brings, and scoring what is stored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import proctor
from proctor import Answer, ConfigurationError, Evaluation, InputError, Item, RefusalError
from proctor.core import registry as registry_module
from proctor.metrics import build_scorer
from tests.support.lamp_benchmark import lamps


def guesses(question: str) -> str:
    if question == "Is lamp 2 on?":
        raise RefusalError("no")
    return "the ANAESTHESIA machine, I think" if "beside" in question else "yes, it is"


@pytest.fixture
def made() -> Evaluation:
    return proctor.run(lamps(free_text=True), guesses, conditions="text-only", store=":memory:", baselines=False)


@proctor.metric(formats=("free_text",), percent=True)
def overlap(text: str, reference: str) -> float:
    """The share of the reference's words that the answer has."""
    words = reference.lower().split()
    return sum(word in text.lower().replace(",", "").split() for word in words) / len(words)


def values(made: Evaluation, metric: str) -> list[float]:
    frame = made.export()
    return sorted(frame[frame["metric"] == metric]["value"].dropna())


def test_a_function_scores_stored_answers(made: Evaluation) -> None:
    scored = made.score(metrics=overlap)
    assert scored.by == {"overlap": 4}
    (row,) = [row for row in made.results(draws=200) if row["metric"] == "overlap"]
    assert (row["value"], row["scorer"], row["n"]) == (1.0, "overlap", 4)
    assert "Overlap" in repr(made.results(draws=200))


def test_what_never_came_is_worst_and_no_call(made: Evaluation) -> None:
    seen: list[str] = []

    @proctor.metric(low=0, high=100, higher_is_better=False)
    async def length(item: Item, answer: Answer, text: str) -> int:
        assert answer.item_id == item.id
        seen.append(text)
        return len(text)

    made.score(metrics=[length])
    assert values(made, "length") == [10.0] * 8 + [32.0] * 4 + [100.0] * 4
    assert len(seen) == 12  # four answers were refused


def test_an_edited_metric_scores_anew(made: Evaluation) -> None:
    made.score(metrics=proctor.metric(name="m")(lambda text: 0.25))
    made.score(metrics=proctor.metric(name="m")(lambda text: True))
    assert values(made, "m") == [0.0] * 4 + [1.0] * 12
    with pytest.raises(InputError, match="metric m: found another declaration, expected the same range"):
        made.score(metrics=proctor.metric(name="m", high=5)(lambda text: 3))


def test_a_broken_metric_is_one_sentence_with_its_line(made: Evaluation) -> None:
    def broken(text: str) -> float:
        return 1 / 0

    line = broken.__code__.co_firstlineno + 1
    location = rf"ZeroDivisionError: division by zero \(test_function_metrics.py, line {line}\)"
    with pytest.raises(ConfigurationError, match=rf"broken, item 'room-1/q1': {location}"):
        made.score(metrics=proctor.metric(broken))
    with pytest.raises(ConfigurationError, match=r"big, item 'room-1/q1': found 2, expected 0 to 1 \(or declare"):
        made.score(metrics=proctor.metric(name="big")(lambda text: 2))
    with pytest.raises(ConfigurationError, match="none, item 'room-1/q1': found NoneType, expected a number"):
        made.score(metrics=proctor.metric(name="none")(lambda text: None))
    with pytest.raises(ConfigurationError, match="nan, item 'room-1/q1': found nan, expected 0 to 1"):
        made.score(metrics=proctor.metric(name="nan")(lambda text: float("nan")))


@pytest.mark.parametrize("value", [np.bool_(True), np.float32(1), np.int64(1), np.uint8(1)])
def test_numbers_of_numpy_are_numbers(made: Evaluation, value: object) -> None:
    made.score(metrics=proctor.metric(name="m")(lambda text: value))
    assert set(values(made, "m")) == {0.0, 1.0}  # 0 for what was refused


def test_a_benchmark_brings_its_scorers() -> None:
    made = proctor.run(lamps(free_text=True, scorers=(overlap,)), guesses, conditions="text-only", store=":memory:")
    assert values(made, "overlap") == [1.0] * 4
    assert "overlap" in {metric.name for metric in made.store.card("lamps").metrics}


def test_two_scorers_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="2 scorers give the metric 'overlap' as 'overlap': rename one"):
        proctor.run(lamps(scorers=(overlap, overlap)), guesses, conditions="text-only", store=":memory:")


def test_a_scorer_that_fails_loses_no_answer() -> None:
    @proctor.metric
    def broken(parsed: bool) -> float:
        raise KeyError("x")

    store = proctor.open_store(":memory:")
    with pytest.raises(ConfigurationError, match="broken, item "):
        proctor.run(
            lamps(scorers=(broken,)), guesses, conditions="text-only", store=store, concurrency=1, baselines=False
        )
    (run,) = [run for run in store.runs("lamps") if run.system == "guesses"]
    (answer,) = store.answers(run).values()  # the one that was being scored is kept, and no other was asked
    assert answer.parsed is True
    rows = proctor.export(store, systems="guesses").set_index("metric")["value"]
    assert rows.to_dict() == {"accuracy": 1.0}


def test_a_name_that_is_built_in_is_refused_to_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    from proctor.metrics import SCORERS

    point = EntryPoint("accuracy", "hospital.mine:METRIC", "proctor.scorers")
    monkeypatch.setattr(registry_module, "entry_points", lambda **_: [point])
    monkeypatch.setattr(SCORERS, "_offered", None)
    with pytest.raises(
        proctor.ProctorError, match="the metric 'accuracy' is built in, and offered by an unknown package"
    ):
        build_scorer("accuracy")
    monkeypatch.setattr(SCORERS, "_offered", None)


def test_scoring_is_by_metrics_or_by_a_judge(made: Evaluation) -> None:
    with pytest.raises(InputError, match="Nothing to score with"):
        made.score()
    with pytest.raises(InputError, match="Metrics and a judge score one after the other"):
        made.score(metrics=overlap, model="openai:judge")
    with pytest.raises(InputError, match=r"lamps has no judge of its own\. Name one, such as --judge three-level"):
        made.score(model="judge", base_url="http://localhost:1/v1")


def test_baselines_are_scored_by_metrics_on_text_only_where_they_are_named(tmp_path: Path) -> None:
    made = proctor.run(
        lamps(free_text=True), lambda question: "the lamp", conditions="text-only", store=tmp_path / "l.db"
    )
    assert proctor.score(made.store, metrics="rouge-1-mean").by == {"rouge-1-mean": 4}
    assert proctor.score(made.store, metrics="rouge-1-mean", systems="text-similarity").by == {"rouge-1-mean": 4}
