"""What the embedded judge learns from beside ratings: other judges' scores, and their labels where nobody rated."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proctor_train
from proctor.core import Answer, Benchmark, InputError, Item, Judgement, RatingScheme, RecordedAnswers, Reference, Score
from proctor.core.formats import FreeTextFormat
from proctor.judges.dimensions import Case, RatedCase
from proctor.runs import Store, import_systems
from proctor_train.judge_fit import _material
from proctor_train.mediqa_eval.embedded import (
    TRAINED_ON,
    Recipe,
    TrainingMaterial,
    answers,
    out_of_fold,
    read_rated,
    scores_of,
)
from proctor_train.mediqa_eval.embedded.judge import EmbeddedJudge
from proctor_train.mediqa_eval.embedded.learning import RatedAnswers, task_figure
from tests.support.rated_answers import DIMENSIONS, hashed, made_up

SMALL = Recipe(folds=3, designs=2, kept=1)


@pytest.fixture(autouse=True)
def few_changed_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wording is put around two answers: enough to learn from where texts are so alike."""
    monkeypatch.setattr(answers, "_EACH", 2)


def said(rated: list[RatedCase], noise: float, seed: int = 0) -> dict[Case, dict[str, float]]:
    """A judge's scores: the ratings, with noise."""
    rng = np.random.default_rng(seed)
    return {
        one.case: {name: float(np.clip(value + noise * rng.normal(), 0, 1)) for name, value in one.values.items()}
        for one in rated
    }


def distinct(rated: list[RatedCase]) -> list[RatedCase]:
    """The same with no two answers to a question alike, so that a judge's scores can be found by them."""
    return [
        replace(one, case=replace(one.case, candidate=f"{one.case.candidate} ({k})")) for k, one in enumerate(rated)
    ]


def figure(known: RatedAnswers) -> float:
    scores, told = out_of_fold(known, SMALL)[known.split.rated], known.ratings[known.split.rated]
    return float(np.mean([task_figure(one, other) for one, other in zip(scores.T, told.T, strict=True)]))


@pytest.mark.training
def test_a_stacked_judge_is_looked_at_as_far_as_it_is_worth() -> None:
    def by(rated: list[RatedCase], stacked: dict[str, dict[Case, dict[str, float]]]) -> float:
        return figure(read_rated(rated, hashed, TrainingMaterial(stacked=stacked))[0])

    found = []
    for seed in range(3):  # one draw of 15 encounters may agree with the texts by chance
        rated = distinct(made_up(15, languages=("en",), signal=0.0, seed=seed))  # the texts tell nothing
        shuffled = said([replace(one, values=rated[k - 7].values) for k, one in enumerate(rated)], 0.1)
        found.append([by(rated, {"good": said(rated, 0.3)}), by(rated, {}), by(rated, {"shuffled": shuffled})])
    good, none, drawn = np.mean(found, axis=0)
    assert good > 0.6
    assert abs(none) < 0.25
    assert abs(drawn) < 0.25


def test_an_answer_without_a_stacked_score_has_none() -> None:
    rated = distinct(made_up(9, languages=("en",)))
    material = TrainingMaterial(stacked={"other": said(rated, 0.1)})
    judge = EmbeddedJudge.train(rated, read_rated(rated, hashed, material), SMALL, material, encoders=hashed)
    new = replace(rated[0].case, candidate="Something else.")
    known, unknown = judge.score([rated[0].case, new])
    assert set(known.values) == {"disagree_flag", "overall"}
    assert dict(unknown.values) == {}
    assert unknown.missing["overall"] == "other:disagree_flag: no score of this answer"


def test_a_stacked_judge_is_found_again(tmp_path: Path) -> None:
    rated = distinct(made_up(9, languages=("en",)))
    scores = said(rated, 0.1)
    material = TrainingMaterial(stacked={"other": scores})
    judge = EmbeddedJudge.train(rated, read_rated(rated, hashed, material), SMALL, material, encoders=hashed)
    judge.save(tmp_path / "judge")
    loaded = EmbeddedJudge.load(tmp_path / "judge", encoders=hashed, recorded=lambda _: scores)
    assert loaded.score([rated[0].case]) == judge.score([rated[0].case])
    with pytest.raises(InputError, match="stacked judges: found no store, expected a store with scores by other"):
        EmbeddedJudge.load(tmp_path / "judge", encoders=hashed)
    with pytest.raises(InputError, match="judge:other:disagree_flag: found no score of some answers"):
        read_rated(rated, hashed, TrainingMaterial(stacked={"other": dict(list(scores.items())[1:])}))


def weak_of(encounters: int, seed: int) -> tuple[RatedCase, ...]:
    found = made_up(encounters, languages=("en",), seed=seed)
    return tuple(
        replace(one, case=replace(one.case, id=f"w/{one.case.id}", encounter=f"w/{one.case.encounter}"))
        for one in found
    )


@pytest.mark.training
def test_labels_of_other_encounters_are_weighed_against_ratings() -> None:
    rated = made_up(9, languages=("en",), seed=1)
    noisy = [replace(one, values={name: 1.0 - value for name, value in one.values.items()}) for one in rated]
    alone = read_rated(noisy, hashed)[0]
    helped = read_rated(noisy, hashed, TrainingMaterial(weak=weak_of(30, 2)))[0]
    assert len(helped.answers) == len(alone.answers) + 90
    assert helped.positions == alone.positions
    truth = np.array([[one.values["disagree_flag"], one.values["overall"]] for one in rated])
    figures = []
    for known in (alone, helped):
        scores = out_of_fold(known, replace(SMALL, contrast=0))[known.split.rated]  # denials tell much of these texts
        figures.append(np.mean([task_figure(one, other) for one, other in zip(scores.T, truth.T, strict=True)]))
    assert figures[0] < -0.5  # what was rated is the reverse of the truth
    assert figures[1] > figures[0] + 0.3  # which thirty other encounters with labels tell, at a third of the weight
    keys = [(f"i{k}", "s") for k in range(len(noisy))]
    scored = scores_of("judge", keys, [(helped, out_of_fold(helped, SMALL))]).scores
    assert len(scored) == 2 * len(noisy)  # of the answers that people rated
    assert all(value is not None and np.isfinite(value) for value in scored.values())


@pytest.mark.training
def test_a_label_of_the_judged_encounter_has_no_part_in_its_scores() -> None:
    rated = made_up(9, languages=("en",))
    own = [replace(one, case=replace(one.case, candidate=f"{one.case.candidate} Rest.")) for one in rated[:3]]
    assert {one.case.encounter for one in own} == {rated[0].case.encounter}
    turned = [replace(one, values={name: 1.0 - value for name, value in one.values.items()}) for one in own]
    first, second = (
        out_of_fold(read_rated(rated, hashed, TrainingMaterial(weak=tuple(weak)))[0], SMALL)[:3]
        for weak in (own, turned)
    )
    assert np.array_equal(first, second)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Answers to one question, rated by a person, scored by two judges, of which one learned from just this."""
    scheme = RatingScheme(dimensions=DIMENSIONS["zh"])
    item = Item(
        id="q",
        group="g",
        question="?",
        answer=FreeTextFormat(),
        reference=Reference(answer="a"),
        tags={"language": "en"},
    )
    opened = Store(tmp_path / "runs.db")
    benchmark = Benchmark(
        name="cases", title="Cases", items=(item,), metrics=scheme.metrics, rating=scheme, headline="overall"
    )
    judgements = tuple(
        Judgement(key=name * 64, judge=judge, item_id="q", reply={}, flags=flags)
        for name, judge, flags in (("a", "fair", ()), ("b", "learned", (TRAINED_ON,)))
    )
    scores = [Score(item_id="q", metric="overall", value=1.0, scorer="human:r1")]
    scores += [
        Score(item_id="q", metric="overall", value=0.5, scorer=one.judge, judgement_key=one.key) for one in judgements
    ]
    answers = (Answer(item_id="q", text="b", parsed="b"),)
    recorded = RecordedAnswers(answers, scores=tuple(scores), system="s", judgements=judgements)
    asyncio.run(import_systems(opened, benchmark, [recorded], condition="video"))
    return opened


def test_a_judge_that_learned_from_these_encounters_is_no_feature(store: Store) -> None:
    given: dict[str, object] = {"stack": ("fair",), "weak": "", "encoder": ""}
    found = _material(store, "cases", {}, given)  # type: ignore[arg-type]
    ((scores,),) = [list(one.values()) for one in found.stacked.values()]
    assert scores == {"overall": 0.5}
    assert [one.values for one in _material(store, "cases", {}, given | {"weak": "fair"}).weak] == [{"overall": 0.5}]  # type: ignore[arg-type]
    with pytest.raises(InputError, match="judge learned: found scores of encounters that it has learned from"):
        _material(store, "cases", {}, given | {"stack": ("learned",)})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="judge learned: found scores of encounters that it has learned from"):
        _material(store, "cases", {}, given | {"weak": "learned"})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="human:r1: found a person's"):
        _material(store, "cases", {}, given | {"stack": ("human:r1",)})  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["scorer", "learned"])
def test_a_judge_that_learned_from_these_encounters_is_not_compared(store: Store, option: str) -> None:
    given: Any = {option: ["learned"]}
    with pytest.raises(InputError, match="judge learned: found scores of encounters that it has learned from"):
        proctor_train.judge_agreement(store, "cases", **given)
