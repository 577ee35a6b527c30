"""The best judge for each dimension, chosen without a leak, and how good that honestly is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from proctor.audits import CorrelationSettings, MetricScores, Rating, RatingsTable
from proctor.core import InputError, generator
from proctor.judges.dimensions.calibration import DimensionChoice, PerFold, agreement, choose_judges, read_choice
from tests.support.rated_pool import CHINESE

NO_DRAWS = CorrelationSettings(draws=0)
ENGLISH = ("disagree_flag", "completeness", "factual-accuracy", "relevance", "writing-style", "overall")


def table(
    encounters: int,
    dimensions: Sequence[str] = ("overall",),
    seed: int = 0,
    systems: int = 3,
    languages: Sequence[str] = ("en", "zh"),
) -> RatingsTable:
    """Random ratings of 0, ½ and 1: answers of several systems to each encounter in each language."""
    draw = generator(seed, "ratings")
    return RatingsTable(
        tuple(
            Rating(f"E{k}/{language}", "text", f"S{s}", name, "r", float(draw.choice([0, 0.5, 1])), f"E{k}",
                   "iiyi", language)
            for k in range(encounters)
            for language in languages
            for s in range(systems)
            for name in dimensions
        )
    )  # fmt: skip


def noisy(ratings: RatingsTable, name: str, noise: float | Mapping[str, float], seed: int = 0) -> MetricScores:
    """A judge that gives the rating and noise of its own; how much may depend on the dimension."""
    draw = generator(seed, "judge", name)
    spread = noise if isinstance(noise, Mapping) else dict.fromkeys({one.dimension for one in ratings.ratings}, noise)
    return MetricScores(name, {one.key: one.value + spread[one.dimension] * draw.normal() for one in ratings.ratings})


def test_each_dimension_gets_the_judge_that_agrees_best_on_it() -> None:
    ratings = table(40, ("overall", "relevance"))
    judges = [
        noisy(ratings, "first", {"overall": 0.1, "relevance": 2.0}),
        noisy(ratings, "second", {"overall": 2.0, "relevance": 0.1}),
    ]
    choice = choose_judges(ratings, judges, settings=NO_DRAWS)
    assert {name: one.everything for name, one in choice.chosen.items()} == {
        "en/overall": "first",
        "en/relevance": "second",
        "zh/overall": "first",
        "zh/relevance": "second",
    }
    assert choice.judge_for("E999", "en", "overall") == "first"
    row = next(one for one in choice.honest if (one.language, one.dimension) == ("en", "overall"))
    assert (row.same_in_folds, row.folds) == (5, 5)
    assert row.value is not None
    assert row.value > 0.85
    with pytest.raises(InputError, match=r"found none for fr/overall, expected one of en/overall, "):
        choice.judge_for("E1", "fr", "overall")


def test_the_honest_figure_by_hand() -> None:
    """Within each fold the agreement of the judge that is best on the others; then their mean."""
    ratings = table(20)
    judges = [noisy(ratings, name, 0.8) for name in "abc"]
    choice = choose_judges(ratings, judges, seed=4, settings=NO_DRAWS)
    expected = []
    for fold in range(5):
        inside = [one for one in ratings.ratings if one.language == "en" and choice.folds[one.group] == fold]
        outside = [one for one in ratings.ratings if one.language == "en" and choice.folds[one.group] != fold]

        def held(judge: MetricScores, rows: Sequence[Rating]) -> float:
            found = agreement([float(judge.scores[one.key] or 0) for one in rows], [one.value for one in rows])
            assert found is not None
            return found

        best = max(judges, key=lambda judge: held(judge, outside))
        assert choice.chosen["en/overall"].without[fold] == best.name
        expected.append(held(best, inside))
    row = next(one for one in choice.honest if (one.language, one.dimension) == ("en", "overall"))
    assert row.value == pytest.approx(np.mean(expected))
    assert choice == choose_judges(ratings, judges, seed=4, settings=NO_DRAWS)
    assert choice.folds != choose_judges(ratings, judges, seed=5, settings=NO_DRAWS).folds


def test_an_encounters_own_ratings_never_decide_who_judges_it() -> None:
    """Turning the ratings of an encounter round, in both languages, changes nothing for it."""
    ratings = table(15)
    judges = [noisy(ratings, name, 1.0) for name in "abcd"]
    choice = choose_judges(ratings, judges, settings=NO_DRAWS)
    changed_elsewhere = 0
    for encounter in choice.folds:
        turned = RatingsTable(
            tuple(
                Rating(one.item, one.candidate, one.system, one.dimension, one.rater,
                       1 - one.value if one.group == encounter else one.value, one.group, one.dataset, one.language)
                for one in ratings.ratings
            )
        )  # fmt: skip
        other = choose_judges(turned, judges, settings=NO_DRAWS)
        for language in ("en", "zh"):
            mine = choice.judge_for(encounter, language, "overall")
            assert other.judge_for(encounter, language, "overall") == mine
        changed_elsewhere += other.chosen != choice.chosen
    assert changed_elsewhere  # the ratings do decide about other encounters


def test_choosing_among_equals_is_not_told_to_be_better_than_it_is() -> None:
    """Twelve equally good judges on 30 encounters of 3 answers, 40 times over: the figure of nested choice stays at
    what any one of them is worth; that of choosing on the same answers is inflated."""
    nested, flattering, plain = [], [], []
    for seed in range(100, 140):
        ratings = table(30, seed=seed, languages=("en",))
        judges = [noisy(ratings, f"j{k}", 1.0, seed) for k in range(12)]
        choice = choose_judges(ratings, judges, seed=seed, settings=NO_DRAWS)
        row = next(one for one in choice.honest if (one.language, one.dimension) == ("en", "overall"))
        assert row.value is not None
        assert row.apparent is not None
        nested.append(row.value)
        flattering.append(row.apparent)
        by_chance = generator(seed, "fixed").integers(12)  # a judge that nobody chose: what they are worth
        fixed = [judges[int(by_chance)], judges[int(by_chance) - 1]]
        alone = choose_judges(ratings, [fixed[0], MetricScores("none", dict.fromkeys(fixed[0].scores, 0.0))],
                              seed=seed, settings=NO_DRAWS)  # fmt: skip
        plain.append(float(alone.honest[1].value or 0))
    error = float(np.std(np.array(nested) - np.array(plain)) / np.sqrt(len(nested)))
    bias = float(np.mean(nested) - np.mean(plain))
    assert abs(bias) < 3 * error < 0.09
    assert np.mean(flattering) - np.mean(plain) > 0.06  # without nesting
    assert np.mean(flattering) - np.mean(nested) > 0.06


def test_intervals_cover_and_a_language_has_its_mean() -> None:
    ratings = table(30, ("overall", "relevance"))
    judges = [noisy(ratings, "a", 0.5), noisy(ratings, "b", 3.0)]
    choice = choose_judges(ratings, judges, settings=CorrelationSettings(draws=200))
    by = {(one.language, one.dimension): one for one in choice.honest}
    assert list(by)[:3] == [("en", ""), ("en", "overall"), ("en", "relevance")]
    for row in choice.honest:
        assert row.value is not None
        assert row.ci_low is not None
        assert row.ci_high is not None
        assert row.ci_low < row.value < row.ci_high
    parts = [by["en", name].value or 0 for name in ("overall", "relevance")]
    assert by["en", ""].value == pytest.approx(sum(parts) / 2)


def test_folds_whose_ratings_are_all_the_same_are_left_out() -> None:
    plain = table(10)
    choice = choose_judges(plain, [noisy(plain, name, 0.5) for name in "ab"], settings=NO_DRAWS)
    flat = RatingsTable(
        tuple(
            Rating(one.item, one.candidate, one.system, one.dimension, one.rater,
                   1.0 if choice.folds[one.group] == 0 else one.value, one.group, one.dataset, one.language)
            for one in plain.ratings
        )
    )  # fmt: skip
    again = choose_judges(flat, [noisy(flat, name, 0.5) for name in "ab"], settings=NO_DRAWS)
    row = again.honest[1]
    assert (row.folds, row.reason) == (4, "")
    assert row.value is not None


def test_a_judge_that_opted_out_or_tells_nothing_apart_is_not_chosen() -> None:
    ratings = table(10)
    out = MetricScores("out", {one.key: None if one.language == "zh" else one.value for one in ratings.ratings})
    flat = MetricScores("flat", {one.key: 0.5 for one in ratings.ratings})
    rough = noisy(ratings, "rough", 3.0)
    choice = choose_judges(ratings, [flat, out, rough], settings=NO_DRAWS)
    assert choice.chosen["en/overall"].everything == "out"
    assert choice.chosen["zh/overall"].everything == "rough"
    assert choice.needed == ("out", "rough")
    with pytest.raises(InputError, match="zh/overall: found no judge that agreement can be stated for"):
        choose_judges(ratings, [flat, out], settings=NO_DRAWS)


def test_what_can_not_be_chosen_from_is_told(tmp_path: Path) -> None:
    ratings = table(4)
    one = noisy(ratings, "a", 1.0)
    with pytest.raises(InputError, match=r"^judges: found a, expected two or more, each once$"):
        choose_judges(ratings, [one])
    with pytest.raises(InputError, match=r"^judges: found a, a, expected two or more"):
        choose_judges(ratings, [one, one])
    with pytest.raises(InputError, match=r"^ratings: found 4 encounters, expected 5 or more$"):
        choose_judges(ratings, [one, noisy(ratings, "b", 1.0)])
    file = tmp_path / "choice.json"
    for text, said in (
        ("{", "found broken JSON"),
        (
            '{"kind": "proctor calibration 1"}',
            "field 'kind': found 'proctor calibration 1', expected 'proctor choice 1'",
        ),
        (_choice(a="x").model_dump_json().replace('"x","x"', '"x"'), "a choice for every fold is expected"),
        (_choice(a="x").model_dump_json().replace('["x"]', '["y"]', 1), "choices among the judges"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=said):
            read_choice(file)
    with pytest.raises(InputError, match="no such file, expected a choice"):
        read_choice(tmp_path / "no.json")


def _choice(folds: dict[str, int] | None = None, **by: str) -> DimensionChoice:
    """`a` judges all dimensions but those named."""
    chosen = {f"en/{name}": by.get(name.replace("-", "_"), by["a"]) for name in ENGLISH}
    chosen |= {f"zh/{name}": by["a"] for name in CHINESE}
    return DimensionChoice(
        judges=sorted(set(by.values())),
        seed=0,
        folds=folds if folds is not None else {"iiyi/E7": 1},
        chosen={name: PerFold(everything=one, without=[one, one]) for name, one in chosen.items()},
        honest=[],
    )
