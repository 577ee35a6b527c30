"""Answers and ratings of MEDIQA-EVAL in a store: every cell of the file is a score, and nothing else is."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from proctor.core import BENCHMARKS, Reference, Reliability
from proctor.results import load_items
from proctor.results.arrays import load_raw_series
from proctor.runs import Store
from proctor.tasks.mediqa_eval.native import COLUMNS, DIMENSIONS, SCHEME
from tests.support.program import within

Cell = tuple[str, str, str, str]


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def written(file: Path, rows: list[dict[str, str]], columns: tuple[str, ...] = COLUMNS) -> Path:
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return file


def scores_in(store: Store) -> dict[Cell, float]:
    """Every score: by item, system, dimension and scorer."""
    items = load_items(store, store.card("mediqa-eval"), all_items=True)
    return {
        (items.ids[row], run.system, one.metric, one.scorer): float(one.values[row])
        for run in store.runs("mediqa-eval")
        for one in load_raw_series(store, run, items)
        for row in one.scored.nonzero()[0].tolist()
    }


@pytest.fixture(scope="module")
def task(data: Path) -> Path:
    return data / "mediqa-eval"


def imported(task: Path, ratings: Path, store: Path, *more: str) -> tuple[int, str]:
    return within("import", "mediqa-eval", ratings, "--data", task, "--store", store, *more)


def test_every_cell_of_the_ratings_is_a_score_of_its_rater(task: Path, tmp_path: Path) -> None:
    code, said = imported(task, task / "ratings.csv", tmp_path / "runs.db")
    assert code == 0, said
    assert "242 answers with 968 ratings as SYSTEM001 / video" in said
    store = Store(tmp_path / "runs.db", create=False)
    rows = rows_of(task / "ratings.csv")
    expected = {
        (
            f"{row['dataset']}/{row['encounter_id']}/{row['lang']}",
            row["candidate_author_id"],
            row["metric"],
            f"human:{row['rater_id']}",
        ): float(row["value"])
        for row in rows
    }
    assert len(expected) == len(rows) == 2904
    assert scores_in(store) == expected
    texts = {(key[0], key[1]): row["candidate"] for key, row in zip(expected, rows, strict=True)}
    answers = {
        (item, run.system): answer.text
        for run in store.runs("mediqa-eval")
        for item, answer in store.answers(run).items()
    }
    assert (answers, len(answers)) == (texts, 726)


def test_importing_again_changes_nothing(task: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    assert imported(task, task / "ratings.csv", store)[0] == 0
    before = scores_in(Store(store, create=False))
    assert imported(task, task / "ratings.csv", store)[0] == 0
    assert scores_in(Store(store, create=False)) == before


def test_other_answers_under_a_systems_name_are_refused_and_nothing_is_written(task: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    rows = [row for row in rows_of(task / "ratings.csv") if row["candidate_author_id"] != "SYSTEM001"]
    assert imported(task, written(tmp_path / "some.csv", rows), store)[0] == 0
    changed = [
        row | ({"candidate": "?"} if row["candidate_author_id"] == "SYSTEM003" else {})
        for row in rows_of(task / "ratings.csv")
    ]
    code, said = imported(task, written(tmp_path / "other.csv", changed), store)
    assert (code, "run of SYSTEM003 under video: found other answers already" in said) == (1, True), said
    assert [run.system for run in Store(store, create=False).runs("mediqa-eval")] == ["SYSTEM002", "SYSTEM003"]


def test_a_files_name_decides_nothing_and_a_persons_rating_is_never_replaced(task: Path, tmp_path: Path) -> None:
    """The same ratings from another file change nothing, another value of one of them is refused with its row, and a
    further rater of some of the answers is welcome."""
    store = tmp_path / "runs.db"
    rows = rows_of(task / "ratings.csv")
    assert imported(task, task / "ratings.csv", store)[0] == 0
    before = scores_in(Store(store, create=False))
    assert imported(task, written(tmp_path / "renamed.csv", rows), store)[0] == 0
    assert scores_in(Store(store, create=False)) == before
    other = [*rows[:-1], rows[-1] | {"value": "0.5" if rows[-1]["value"] != "0.5" else "1.0"}]
    for name in ("ratings.csv", "another.csv"):
        code, said = imported(task, written(tmp_path / name, other), store)
        item = f"{rows[-1]['dataset']}/{rows[-1]['encounter_id']}/{rows[-1]['lang']}"
        row = f"{item}, {rows[-1]['candidate_author_id']}, {rows[-1]['metric']} by {rows[-1]['rater_id']}"
        value = float(rows[-1]["value"])
        assert (code, f"the rating of {row}: found {float(other[-1]['value']):g}, expected {value:g}, as " in said) == (
            1,
            True,
        )
        assert scores_in(Store(store, create=False)) == before
    third = [row | {"rater_id": "third", "value": "1.0"} for row in rows[::7]]
    code, said = imported(task, written(tmp_path / "third.csv", third), store)
    assert code == 0, said
    after = scores_in(Store(store, create=False))
    assert {key: value for key, value in after.items() if key[3] != "human:third"} == before
    assert len(after) == len(before) + len(third)


@pytest.mark.parametrize("how", ["no columns", "empty cells", "asked for"])
def test_a_template_has_answers_and_no_ratings(how: str, task: Path, tmp_path: Path) -> None:
    rows = rows_of(task / "ratings.csv")
    empty = [row | {"value": "", "rater_id": ""} for row in rows]
    columns = COLUMNS[:-2] if how == "no columns" else COLUMNS
    file = written(tmp_path / "template.csv", rows if how == "asked for" else empty, columns)
    more = ("--answers-only",) if how == "asked for" else ()
    code, said = imported(task, file, tmp_path / "runs.db", *more)
    assert (code, "242 answers with 0 ratings as SYSTEM003 / video" in said) == (0, True), said
    store = Store(tmp_path / "runs.db", create=False)
    assert scores_in(store) == {}
    assert len(store.answers(store.runs("mediqa-eval")[0])) == 242


def test_an_answer_without_an_encounter_is_refused(task: Path, tmp_path: Path) -> None:
    lines = (task / "encounters.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "encounters.jsonl").write_text("".join(lines[1:]), encoding="utf-8")
    code, said = imported(tmp_path, task / "ratings.csv", tmp_path / "runs.db")
    assert code == 1
    assert "ratings.csv: found no encounter iiyi/ENC00853/en, expected one for every answer" in said
    assert not (tmp_path / "runs.db").exists()


def test_the_file_names_its_systems(task: Path, tmp_path: Path) -> None:
    code, said = imported(task, task / "ratings.csv", tmp_path / "runs.db", "--name", "mine")
    assert (code, "The file names its systems. Leave --name mine out." in said) == (2, True)
    assert not (tmp_path / "runs.db").exists()


def test_items_keep_what_is_known_of_references(tmp_path: Path) -> None:
    one = {"dataset": "iiyi", "encounter_id": "E1", "lang": "zh", "query": "?", "images": ["a.png", "b.png"],
           "references": ["A.", {"text": "B.", "frequency": 2, "completeness": 0.5}]}  # fmt: skip
    (tmp_path / "encounters.jsonl").write_text(json.dumps(one), encoding="utf-8")
    (item,) = BENCHMARKS.get("mediqa-eval").load(tmp_path).items
    assert (item.id, item.group, item.question) == ("iiyi/E1/zh", "iiyi/E1", "?")
    assert item.tags == {"dataset": "iiyi", "language": "zh"}
    assert [image.source for image in item.media] == ["a.png", "b.png"]
    assert item.reference == Reference(
        answer="A.", accepted=("B.",), reliability=(Reliability(), Reliability(frequency=2, completeness=0.5))
    )


def test_the_scheme_says_what_is_rated_in_which_language() -> None:
    scheme = SCHEME
    for language, names in DIMENSIONS.items():
        assert {one.name for one in scheme.of(language)} == set(names)
    assert [one.name for one in scheme.metrics if not one.higher_is_better] == ["disagree_flag"]
    values = {"overall": 0.8, "completeness": 0.7, "factual-accuracy": 0.5}
    assert scheme.breaks(values) == ("overall-above-both", "overall-above-half")
    assert scheme.breaks(values | {"overall": 0.7}) == ("overall-above-half",)
    assert scheme.breaks(values | {"overall": 0.5, "factual-accuracy": 0.0}) == ()
    assert scheme.breaks({"writing-style": 1.0}) == ()


def test_references_without_reliability_keep_their_fingerprint() -> None:
    """Stores written before know items by this hash."""
    assert Reference(answer="A.").model_dump(mode="json") == {"answer": "A.", "accepted": [], "rationale": ""}
