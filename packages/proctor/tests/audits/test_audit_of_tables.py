"""Tables of scores and ratings are compared as a store that holds the same: who, with whom, on which answers."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import proctor
from proctor.audits import Key, Rating, RatingsTable, recorded_by_system
from proctor.core import Benchmark, Dimension, InputError, Item, RatingScheme, Reference, UsageError, generator
from proctor.core.formats import FreeTextFormat
from proctor.runs import Store, add_recorded_scores, import_systems
from tests.support.program import within

SCHEME = RatingScheme(
    dimensions=(
        Dimension("good", (1.0, 2.0, 3.0)),
        Dimension("harm", (0.0, 1.0), lower_is_better=True),
        Dimension("tone", (0.0, 1.0), languages=("en",)),
    )
)
WORDS = ("mole", "wart", "burn", "rash", "cyst", "scar")


@dataclass
class Made:
    """The same ratings, and scores of two metrics, in a store and as tables."""

    store: Store
    ratings: pd.DataFrame
    scores: dict[str, dict[Key, float]]

    def tables(self) -> dict[str, pd.DataFrame]:
        columns = ["item", "system", "dimension", "value"]
        return {
            name: pd.DataFrame([(*key, value) for key, value in some.items()], columns=columns)
            for name, some in self.scores.items()
        }


def _low(dimension: str) -> float:
    """Scores are on the scale of their dimension."""
    return 1.0 if dimension == "good" else 0.0


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Two systems' answers to 24 questions in two languages and datasets. Two of three people rate each of them. `some`
    lacks a few scores, and all of tone; `all` lacks none."""
    rng = generator(3, "audit of tables")
    items = tuple(
        Item(
            id=f"q{number}",
            group=f"g{number // 2}",
            question="What is it?",
            answer=FreeTextFormat(),
            reference=Reference(answer=" ".join(WORDS[:3])),
            tags={"language": ("en", "de")[number % 3 == 0], "dataset": f"d{number % 2}"},
        )
        for number in range(24)
    )
    texts = {(one.id, system): " ".join(rng.choice(WORDS, size=4)) for one in items for system in ("s1", "s2")}
    ratings = [
        Rating(
            *(item.id, text, system, dimension.name, rater),
            float(rng.choice(dimension.levels)),
            *(item.group, str(item.tags["dataset"]), str(item.tags["language"])),
        )
        for item in items
        for system in ("s1", "s2")
        for text in [texts[item.id, system]]
        for dimension in SCHEME.of(str(item.tags["language"]))
        for rater in rng.choice(["r1", "r2", "r3"], size=2, replace=False)
    ]
    benchmark = Benchmark("rated", "Rated", items, SCHEME.metrics, "good", rating=SCHEME)
    store = Store(tmp_path / "rated.db")
    asyncio.run(import_systems(store, benchmark, recorded_by_system(texts, ratings, "made up"), condition="video"))
    keys = list(dict.fromkeys(one.key for one in ratings))
    scores = {
        "all": {key: _low(key[2]) + float(rng.random()) for key in keys},
        "some": {key: _low(key[2]) + float(rng.random()) for key in keys if key[2] != "tone" and rng.random() < 0.9},
    }
    for name, some in scores.items():
        add_recorded_scores(store, "rated", name, some)
    columns = ["item", "candidate", "system", "dimension", "rater", "value", "group", "dataset", "language"]
    frame = pd.DataFrame([[getattr(one, name) for name in columns] for one in ratings], columns=columns)
    frame["lower_is_better"] = np.where(frame["dimension"] == "harm", "yes", "no")
    return Made(store, frame, scores)


def human(options: dict[str, Any]) -> dict[str, Any]:
    """The same options for a store, in which people are scorers."""
    return options | {"against": [f"human:{name}" for name in options.get("against", ())]}


@pytest.mark.parametrize(
    "options",
    [
        {"scorer": "all"},
        {"scorer": ["all"], "against": ["r2"]},
        {"scorer": "all", "against": ["r3", "r1"]},
        {"allow_missing": True},
        {"allow_missing": True, "against": ["r1"]},
        {"scorer": ["some", "all"], "allow_missing": True},
    ],
    ids=str,
)
def test_tables_say_what_a_store_says(made: Made, options: dict[str, Any]) -> None:
    def told(found: Any) -> tuple[list[Any], dict[str, list[str]]]:
        names = ("metric", "language", "dimension", "dataset", "rater")
        rows = sorted(found.rows, key=lambda row: [row[name] for name in names])
        return rows, {one.name: [line.replace("human:", "") for line in one.notes] for one in found.data.metrics}

    rows, metrics = told(proctor.audit(made.tables(), made.ratings, draws=100, **options))
    wanted, known = told(proctor.audit(made.store, draws=100, **human(options)))
    assert len(rows) == len(wanted) > 10
    for row, other in zip(rows, wanted, strict=True):
        assert row == {
            name: pytest.approx(one, abs=1e-12) if isinstance(one, float) else one for name, one in other.items()
        }
    assert metrics == known


def test_the_answers_are_those_of_the_raters_and_of_all_metrics(made: Made) -> None:
    """By an independent join: Kendall's τ-b on the ratings of r1 of answers that both metrics scored."""
    found = proctor.audit(made.tables(), made.ratings, against="r1", allow_missing=True, draws=0)
    rows = {
        (row["metric"], row["language"], row["dimension"]): row
        for row in found.rows
        if (row["dataset"], row["rater"]) == ("ALL", "")
    }
    keys = ["item", "system", "dimension"]
    scores = [table.rename(columns={"value": name}) for name, table in made.tables().items()]
    own = made.ratings[made.ratings["rater"] == "r1"].merge(scores[0], on=keys)
    for dimension in ("good", "harm"):
        both = own[(own["language"] == "en") & (own["dimension"] == dimension)].merge(scores[1], on=keys)
        for name in ("all", "some"):
            row = rows[name, "en", dimension]
            assert row["ratings"] == len(both)
            assert row["kendalltau"] == pytest.approx(stats.kendalltau(both[name], both["value"])[0])
    tone = own[own["dimension"] == "tone"]
    assert rows["all", "en", "tone"]["ratings"] == len(tone)
    assert (rows["some", "en", "tone"]["kendalltau"], rows["some", "en", "tone"]["reason"]) == (None, "opted out")


def test_what_is_wrong_with_options_is_told(made: Made) -> None:
    lacks = sum(key not in made.scores["some"] for key in made.scores["all"])
    first = ", ".join(next(key for key in made.scores["all"] if key not in made.scores["some"]))
    expected = "expected one for each, or --allow-missing"
    for options, said in (
        ({"scorer": "mine"}, "scores: found no metric 'mine', expected one of all, some"),
        ({"against": ["r1", "r4"]}, "ratings: found no rater 'r4', expected one of r1, r2, r3"),
        ({}, f"scores by some: found none for {lacks} rated answers, the first {first}, {expected}"),
    ):
        with pytest.raises(InputError) as caught:
            proctor.audit(made.tables(), made.ratings, draws=0, **options)
        assert str(caught.value) == said
    with pytest.raises(UsageError, match="--all-items is for a store: of tables every answer"):
        proctor.audit(made.tables(), made.ratings, all_items=True)
    tables = made.tables()
    good = made.ratings[made.ratings["dimension"] == "good"]
    one, other = (tables["all"][tables["all"]["dimension"] == "good"][row : row + 1] for row in (0, 1))
    with pytest.raises(InputError, match="scores by one: found no rated answer that all metrics scored, expected some"):
        proctor.audit({"one": one, "other": other}, good, allow_missing=True)


def test_a_score_without_a_dimension_is_one_of_quality_in_tables_as_in_a_store(made: Made) -> None:
    """`proctor score --metric` gives 1 − the score where lower is better, and so does a table that names no dimension."""
    name = "rouge-1-best"
    proctor.score(made.store, metrics=[name])
    rows = [
        (row.item_id, run.system, row.value)
        for run in made.store.runs("rated")
        for row in made.store.score_rows(run, scorer=name)
        if row.metric == "tone"
    ]
    table = pd.DataFrame(rows, columns=["item", "system", "value"])
    english = made.ratings[made.ratings["language"] == "en"]
    of_tables, of_store = (
        {
            (row["dimension"], row["dataset"], row["rater"]): row["kendalltau"]
            for row in found.rows
            if row["language"] == "en"
        }
        for found in (proctor.audit({name: table}, english, draws=0), proctor.audit(made.store, scorer=name, draws=0))
    )
    assert of_tables == pytest.approx(of_store)
    for dimension, sign in (("good", 1), ("harm", -1)):
        own = english[english["dimension"] == dimension].merge(table, on=["item", "system"])
        by_hand = sign * stats.kendalltau(own["value_y"], own["value_x"])[0]
        assert of_tables[dimension, "ALL", ""] == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("column", "name", "means", "of_python"),
    [
        ("rater", "mean", "the raters' mean", Rating("q", "", "s", "d", "mean", 1.0)),
        ("dataset", "ALL", "all datasets", Rating("q", "", "s", "d", "r", 1.0, dataset="ALL")),
        ("dimension", "ALL", "all dimensions", Rating("q", "", "s", "ALL", "r", 1.0)),
    ],
)
def test_names_that_figures_are_told_by_are_refused(
    made: Made, column: str, name: str, means: str, of_python: Rating
) -> None:
    """Their rows could not be told from those of the mean and of all; another spelling is a name like any other."""
    ratings = made.ratings[made.ratings["dimension"] == "good"].reset_index(drop=True)
    ratings.loc[ratings[column] == ratings[column].iloc[3], column] = name
    row = 2 + int(ratings.index[ratings[column] == name][0])
    scores = {"all": ratings.drop_duplicates(["item", "system"])[["item", "system", "value"]]}
    with pytest.raises(InputError) as caught:
        proctor.audit(scores, ratings, draws=0)
    expected = f"expected another name: it stands for {means}"
    assert str(caught.value) == f"ratings: row {row}, column '{column}': found '{name}', {expected}"
    with pytest.raises(InputError, match=re.escape(f"found the {column} '{name}', {expected}")):
        RatingsTable((of_python,))
    ratings[column] = ratings[column].replace(name, name.swapcase())
    assert proctor.audit(scores, ratings, draws=0).rows


def test_a_benchmark_beside_tables_is_refused(tmp_path: Path) -> None:
    """Tables name no benchmark, so its name would say nothing; the official figures need it."""
    with pytest.raises(UsageError, match=r"Tables name no benchmark\. Leave 'mine' out"):
        proctor.audit(tmp_path / "scores.csv", tmp_path / "ratings.csv", benchmark="mine")
    given = ("--scores", tmp_path / "scores.csv", "--ratings", tmp_path / "ratings.csv")
    code, said = within("audit", "mine", *given)
    assert code != 0
    assert "Tables name no benchmark. Leave 'mine' out, or add --protocol official" in said
