"""Tables of ratings as people keep them: which column is which, and what each cell of a rating holds."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from proctor.audits import RatingsTable, is_rating_table, read_metrics, read_rating_rows, read_ratings
from proctor.core import InputError

Given = dict[str, list[str]]


def written(folder: Path, text: str, name: str = "r.csv") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def told(table: RatingsTable) -> set[tuple[str, str, str, str, float]]:
    return {(one.item, one.system, one.dimension, one.rater, one.value) for one in table.ratings}


RATED = {("c1", "alfa", "clareza", "ana", 4.0), ("c1", "alfa", "dano", "ana", 0.5)}


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("item,system,rater,dimension,value\nc1,alfa,ana,clareza,4\nc1,alfa,ana,dano,0.5\n", {}),
        ("caso;sistema;avaliador;clareza;dano\nc1;alfa;ana;4;0,5\n", {}),
        ("Fall;Modell;Gutachterin;Kriterium;Bewertung\nc1;alfa;ana;clareza;4\nc1;alfa;ana;dano;0,5\n", {}),
        ("病例,模型,专家,clareza,dano\nc1,alfa,ana,4,0.5\n", {}),
        ("случай,модель,эксперт,критерий,балл\nc1,alfa,ana,clareza,4\nc1,alfa,ana,dano,0.5\n", {}),
        ("症例\tシステム\t評価者\t観点\tスコア\nc1\talfa\tana\tclareza\t4\nc1\talfa\tana\tdano\t0,5\n", {}),
        ("kysymys,malli,kuka,clareza,dano\nc1,alfa,ana,4,0.5\n",
         {"item": ["kysymys"], "system": ["malli"], "rater": ["kuka"]}),
        ("caso,sistema,avaliador,clareza,dano,minutos\nc1,alfa,ana,4,0.5,7\n", {"dimension": ["clareza", "dano"]}),
        ("caso,sistema,avaliador,clareza,dano,comentário\nc1,alfa,ana,4,0.5,muito bom\n", {}),
        ("caso,sistema,avaliador,clareza,dano,nota\nc1,alfa,ana,4,0.5,revisto\n", {}),
    ],
)  # fmt: skip
def test_the_same_ratings_in_many_forms(text: str, given: Given, tmp_path: Path) -> None:
    name = "r.tsv" if "\t" in text else "r.csv"
    assert told(read_ratings(written(tmp_path, text, name), given)) == RATED


@pytest.mark.parametrize("separator", ["", " ", "_"])
def test_a_column_for_each_rater(separator: str, tmp_path: Path) -> None:
    text = f"item,system,aspect,rater{separator}1,rater{separator}2\nc1,alfa,tone,1,2\nc2,alfa,tone,3,\n"
    table = read_ratings(written(tmp_path, text))
    first, second = f"rater{separator}1", f"rater{separator}2"
    assert told(table) == {
        ("c1", "alfa", "tone", first, 1.0), ("c1", "alfa", "tone", second, 2.0), ("c2", "alfa", "tone", first, 3.0),
    }  # fmt: skip
    assert "1 cell without a rating left out" in table.notes


def test_named_columns_of_raters_and_dimensions_that_are_better_low(tmp_path: Path) -> None:
    text = "item,system,Weber,Anna\nc1,alfa,1,2\n"
    table = read_ratings(written(tmp_path, text), {"rater": ["Weber", "anna"]})
    assert told(table) == {("c1", "alfa", "quality", "Weber", 1.0), ("c1", "alfa", "quality", "Anna", 2.0)}
    wide = "caso,sistema,avaliador,clareza,erros\nc1,alfa,ana,4,2\n"
    assert read_ratings(written(tmp_path, wide), {"lower_is_better": ["erros"]}).lower_is_better == {"erros"}
    long = "caso,sistema,avaliador,critério,nota\nc1,alfa,ana,erros,2\nc1,alfa,ana,clareza,4\n"
    assert read_ratings(written(tmp_path, long), {"lower_is_better": ["erros"]}).lower_is_better == {"erros"}
    with pytest.raises(
        InputError, match=r"row 1: found no dimension 'faltas' \(lower_is_better\), expected one of cla"
    ):
        read_ratings(written(tmp_path, long), {"lower_is_better": ["faltas"]})


@pytest.mark.parametrize(
    ("columns", "given", "holds"),
    [
        (["item", "system", "rater", "value"], [], True),
        (["Frage-ID", "Modell", "Bewerterin", "Klarheit"], [], True),
        (["item", "system", "rater 1", "rater 2"], [], True),
        (["item", "answer"], [], False),
        (["index", "prediction", "A", "B"], [], False),
        (["id", "model", "answer", "score"], [], False),
        (
            ["dataset", "encounter_id", "lang", "candidate", "candidate_author_id", "metric", "rater_id", "value"],
            [],
            False,
        ),
        (["a", "b", "c"], ["rater"], True),
        (["a", "b", "c"], ["item"], False),
    ],
)
def test_which_tables_hold_ratings(columns: list[str], given: list[str], holds: bool) -> None:
    assert is_rating_table(columns, given) is holds


def test_of_several_columns_of_items_the_one_with_known_items_counts(tmp_path: Path) -> None:
    file = written(tmp_path, "nr,question id,model,rater,clarity\n1,q7,m,a,3\n2,q9,m,a,5\n")
    assert read_rating_rows(file, {}, known_items=["q7", "q9"]).columns.item == "question id"
    assert read_rating_rows(file, {}, known_items=["1", "2"]).columns.item == "nr"


def test_a_facet_of_the_items_is_no_dimension(tmp_path: Path) -> None:
    file = written(tmp_path, "item,model,rater,clarity,ward\nq7,m,a,3,12\n")
    assert read_rating_rows(file, {}, facets=["Ward"]).columns.dimensions == ("clarity",)
    assert read_rating_rows(file, {}).columns.dimensions == ("clarity", "ward")


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("caso,sistema,clareza\nc1,alfa,4\n", {"item": ["caso"]}, ("row 1: found no column of the raters among 'caso', "
         "'sistema', 'clareza', expected one, or --map rater=COLUMN")),
        ("item,rater,clareza\nc1,alfa,4\n", {}, ("row 1: found no column of the systems among 'item', 'rater', 'clareza', "
         "expected one, or --map system=COLUMN")),
        ("item,system,rater,remark\nc1,alfa,ana,good\n", {}, ("row 1: found no column of the ratings among 'item', 'system', "
         "'rater', 'remark', expected one, or --map value=COLUMN (wide: --map dimension=COLUMN for each dimension)")),
        ("item,system,rater,score,clarity\nc1,alfa,ana,4,5\n", {}, ("row 1: found the values of 'score' beside numbers in "
         "'clarity', expected one meaning: --map value=score, or --map dimension=score --map dimension=clarity …")),
        ("item,system,rater,value\nc1,alfa,ana,4\n", {"rater": ["médico"]}, ("row 1: found no column 'médico' for rater, "
         "expected one of item, system, rater, value")),
        ("item,system,rater,clarity\nc1,alfa,ana,4\nc2,alfa,ana,5\nc3,alfa,ana,good\n", {}, ("row 4, column 'clarity': found "
         "'good', expected a finite number")),
        ("item,system,rater,value\nc1,alfa,mean,4\n", {}, ("row 2, column 'rater': found 'mean', expected another name: it "
         "stands for the raters' mean")),
        ("item,system,rater,answer,value\nc1,alfa,ana,x,4\nc1,alfa,bia,y,4\n", {}, ("row 3, column 'answer': found another "
         "text, expected that of row 2")),
    ],
)  # fmt: skip
def test_a_refusal_says_the_row_and_what_to_do(text: str, given: Given, said: str, tmp_path: Path) -> None:
    file = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_ratings(file, given)
    assert str(caught.value) == f"{file}: {said}"


def test_many_faults_are_told_by_their_causes(tmp_path: Path) -> None:
    rows = "".join(f"c{k},alfa,ana,{'bad' if k % 2 else 4}\n" for k in range(20))
    file = written(tmp_path, "item,system,rater,clarity\n" + rows + "c0,alfa,ana,3\n")
    with pytest.raises(InputError, match="row 3, column 'clarity': found 'bad', expected a finite number") as caught:
        read_ratings(file)
    head, *causes = caught.value.__notes__
    assert (head, len(causes)) == ("11 faults in all:", 2)
    assert "column 'clarity': 10 times: found 'bad', expected a finite number (rows 3, 5, 7 and 7 more)" in causes[0]
    assert "row 22, column 'rater': found a second rating by 'ana', after row 2" in causes[1]


def test_what_a_spreadsheet_made_of_a_cell_is_refused(tmp_path: Path) -> None:
    """A date among the ratings (1.5 in a German Excel), among the ids, and a text that was cut."""
    import openpyxl

    def refused(rows: list[list[Any]]) -> list[str]:
        book = openpyxl.Workbook()
        for row in [["item", "system", "rater", "answer", "clarity"], *rows]:
            book.active.append(row)
        book.save(tmp_path / "r.xlsx")
        return [f"{fault.location}: {fault.found}" for fault in read_rating_rows(tmp_path / "r.xlsx", {}).faults]

    date = dt.datetime(2026, 5, 1)  # noqa: DTZ001 - as a workbook holds it
    good: list[list[Any]] = [["q1", "m", "a", "x", 1.5], ["q2", "m", "a", "y", 2]]
    assert refused(good) == []
    made = "a date (2026-05-01), as a spreadsheet makes it of other texts"
    assert refused([*good, ["q3", "m", "a", "z", date]]) == [f"row 4, column 'clarity': {made}"]
    assert refused([*good, [date, "m", "a", "z", 2]]) == [f"row 4, column 'item': {made}"]
    cut = "row 4, column 'answer': 32,767 characters, where a spreadsheet cuts a text"
    assert refused([*good, ["q3", "m", "a", "z" * 32_767, 2]]) == [cut]


def test_truth_values_are_one_and_zero(tmp_path: Path) -> None:
    rows = [
        {"item": "q1", "system": "m", "rater": "a", "safe": True},
        {"item": "q2", "system": "m", "rater": "a", "safe": False},
    ]
    file = written(tmp_path, json.dumps(rows), "r.json")
    assert [one.value for one in read_ratings(file).ratings] == [1.0, 0.0]


def test_a_named_column_counts_before_one_that_is_called_as_its_field(tmp_path: Path) -> None:
    """The scores' own column `item` was read although another was named."""
    ratings = written(tmp_path, "caso,system,rater,value\na,s,r,1\nb,s,r,2\n")
    scores = written(tmp_path, "item,caso,system,mine\n1,a,s,0.1\n2,b,s,0.2\n", "s.csv")
    given = {"item": ["caso"]}
    (metric,) = read_metrics(scores, read_ratings(ratings, given), columns=given)
    assert (metric.name, metric.scores) == ("mine", {("a", "s", "quality"): 0.1, ("b", "s", "quality"): 0.2})


def test_a_name_that_was_made_safe_for_spreadsheets_keeps_its_conditions_apart(tmp_path: Path) -> None:
    head = "item,system,condition,metric,scorer,value\n"
    lines = "".join(f"a,'=s,{name},quality,human:r,{value}\n" for name, value in (("video", 1), ("black", 2)))
    table = read_ratings(written(tmp_path, head + lines))
    assert {(rating.system, rating.value) for rating in table.ratings} == {("=s / video", 1.0), ("=s / black", 2.0)}
