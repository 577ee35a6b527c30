"""`proctor audit --scores` reads what `proctor export` writes: by scorer and metric, people apart, conditions apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.audits import read_metrics, read_ratings
from proctor.core import InputError

HEAD = "item,group,system,condition,status,metric,value,text,parsed,latency_s,extra,scorer\n"


def row(item: str, metric: str, value: str, scorer: str, system: str = "alfa", condition: str = "video") -> str:
    return f"{item},g-{item},{system},{condition},answered,{metric},{value},text of {item},,,,{scorer}\n"


def exported(folder: Path, *rows: str, name: str = "s.csv") -> Path:
    file = folder / name
    file.write_text(HEAD + "".join(rows), encoding="utf-8")
    return file


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    file = tmp_path / "ratings.csv"
    lines = [f"{item},alfa,ana,{clear},{harm}\n" for item, clear, harm in (("c1", 4, 0), ("c2", 2, 1))]
    file.write_text("caso,sistema,avaliador,clareza,dano\n" + "".join(lines), encoding="utf-8")
    return file


def test_a_scorer_of_dimensions_one_of_quality_and_code(ratings: Path, tmp_path: Path) -> None:
    table = read_ratings(ratings, {"lower_is_better": ["dano"]})
    file = exported(
        tmp_path,
        *(row(item, "clareza", "0.5", "juiz") for item in ("c1", "c2", "c3")),
        *(row(item, "dano", "0.25", "juiz") for item in ("c1", "c2")),
        *(row(item, "rouge-l-best", "0.75", "rouge-l-best") for item in ("c1", "c2")),
        *(row(item, "accuracy", "1.0", "code") for item in ("c1", "c2")),
        *(row(item, "clareza", "5", "human:bia") for item in ("c1", "c2")),
        row("c1", "unresolved", "1", "juiz"),
        row("c2", "accuracy", "", ""),
    )
    found = {one.name: one for one in read_metrics(file, table)}
    assert {*found} == {"juiz", "rouge-l-best", "accuracy"}
    keys = [(item, "alfa", dimension) for item in ("c1", "c2") for dimension in ("clareza", "dano")]
    assert [found["juiz"].scores[key] for key in keys] == [0.5, 0.25, 0.5, 0.25]
    assert [found["rouge-l-best"].scores[key] for key in keys] == [
        0.75,
        0.25,
        0.75,
        0.25,
    ]  # 1 − it, where low is better
    assert found["juiz"].notes == ("1 score of answers without a rating left out",)


def test_people_in_an_export_are_raters(tmp_path: Path) -> None:
    file = exported(
        tmp_path,
        *(
            row(item, "clareza", str(value), f"human:{who}")
            for item, who, value in (("c1", "ana", 4), ("c1", "bia", 5))
        ),
        row("c1", "clareza", "0.5", "juiz"),
        row("c2", "accuracy", "", ""),
    )
    table = read_ratings(file)
    assert [(one.item, one.group, one.candidate, one.rater, one.value) for one in table.ratings] == [
        ("c1", "g-c1", "text of c1", "ana", 4.0), ("c1", "g-c1", "text of c1", "bia", 5.0),
    ]  # fmt: skip
    assert [one.name for one in read_metrics(file, table)] == ["juiz"]


def test_a_system_under_two_conditions_is_two(tmp_path: Path) -> None:
    pairs = [(condition, who) for condition in ("video", "text-only") for who in ("human:ana", "juiz")]
    rows = [row("c1", "clareza", f"{k}.0", who, condition=condition) for k, (condition, who) in enumerate(pairs)]
    file = exported(tmp_path, *rows)
    table = read_ratings(file)
    assert {one.system: one.value for one in table.ratings} == {"alfa / video": 0.0, "alfa / text-only": 2.0}
    (judge,) = read_metrics(file, table)
    assert judge.scores == {("c1", "alfa / video", "clareza"): 1.0, ("c1", "alfa / text-only", "clareza"): 3.0}


def test_a_melted_table_needs_no_scorer(ratings: Path, tmp_path: Path) -> None:
    table, file = read_ratings(ratings), tmp_path / "mine.csv"
    file.write_text("caso,sistema,metric,value\n" + "".join(f"{c},alfa,{m},0.{k}\n" for k, (c, m) in enumerate(
        (c, m) for c in ("c1", "c2") for m in ("bleu", "chrf"))), encoding="utf-8")  # fmt: skip
    found = {one.name: one.scores["c2", "alfa", "dano"] for one in read_metrics(file, table)}
    assert found == {"bleu": 0.2, "chrf": 0.3}
    file.write_text("item,system,scorer,dimension,value\nc1,alfa,j,clareza,1\nc2,alfa,j,clareza,0\n", encoding="utf-8")
    (one,) = read_metrics(file, table, allow_missing=True)
    assert (one.name, len(one.scores)) == ("j", 2)


def test_two_scores_of_one_answer_are_refused_with_the_row(ratings: Path, tmp_path: Path) -> None:
    file = exported(tmp_path, *[row("c1", "bleu", "0.5", "bleu")] * 2, row("c2", "bleu", "0.5", "bleu"))
    with pytest.raises(InputError, match="row 3: found c1, alfa, clareza again, expected one score of each"):
        read_metrics(file, read_ratings(ratings))
    other = exported(tmp_path, row("c7", "bleu", "0.5", "bleu"))
    with pytest.raises(InputError, match="found 0 metrics with scores of rated answers, expected 1 to 50"):
        read_metrics(other, read_ratings(ratings))
