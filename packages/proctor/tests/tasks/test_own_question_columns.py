"""Columns of your own questions that say more than the answer: tolerances, units, criteria; and the judge that
scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import proctor
from proctor.core import Benchmark, InputError
from proctor.core.formats import CountFormat, FreeTextFormat, PercentageFormat, QuantityFormat, TimestampsFormat
from tests.support.faulty_server import FaultyServer


def loaded(
    folder: Path, *rows: str, head: str = "id,question,answer,patient,tolerance,unit", settings: str = ""
) -> Benchmark:
    folder.mkdir(exist_ok=True)
    (folder / "questions.csv").write_text("\n".join((head, *rows)))
    (folder / "benchmark.yaml").write_text(settings)
    return proctor.load(folder)


def test_each_row_may_have_a_tolerance_and_a_unit(tmp_path: Path) -> None:
    rows: tuple[str, ...] = (
        "q1,How long?,3,p1,0.5,cm",
        "q2,How long?,3.5 cm,p1,10 %,mm",
        "q3,When?,0:30,p2,3,",
        "q4,Which share?,40 %,p2,5 %,",
    )
    rows = (*rows, "q5,How many?,3,p3,,", "q6,How long?,7,p3,,cm")
    found = loaded(tmp_path / "mine", *rows, settings="tolerances: {quantity: 0.25}")
    assert [item.answer for item in found.items] == [
        QuantityFormat(unit="cm", tolerance=0.5),
        QuantityFormat(unit="mm", tolerance=0.25, relative=0.1),
        TimestampsFormat(tolerance=3),
        PercentageFormat(tolerance=5),
        CountFormat(),
        QuantityFormat(unit="cm", tolerance=0.25),
    ]
    assert [item.reference.answer for item in found.items if item.reference][:2] == [3.0, 35.0]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("q1,Is it on?,yes,p1,3,", "column 'tolerance': found '3', expected no tolerance: the format binary has none"),
        ("q1,Which share?,40 %,p1,,mm", "column 'unit': found 'mm', expected no unit: the answer is a percentage"),
        ("q1,How long?,3,p1,about 2,mm", "column 'tolerance': found 'about 2', expected a number, such as 0.5 or 5 %"),
        ("q1,How long?,3,p1,,cmm", "column 'unit': found 'cmm', expected "),
        ("q1,How long?,3,p1,-1,mm", "column 'tolerance': found '-1', expected a number, such as 0.5 or 5 %"),
    ],
)
def test_what_fits_no_format_is_a_fault_of_its_column(row: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        loaded(tmp_path / "mine", row, "q2,How long?,3,p1,,mm")
    assert f"row 2, {told}" in str(caught.value)


def test_a_column_unit_or_criteria_with_other_things_is_a_facet(tmp_path: Path) -> None:
    head = "id,question,answer,patient,unit,criteria"
    found = loaded(
        tmp_path / "mine", "q1,Is it on?,yes,p1,ICU,inclusion", "q2,Is it on?,no,p2,ward,exclusion", head=head
    )
    assert (found.facets, found.items[0].tags) == (("unit", "criteria"), {"unit": "ICU", "criteria": "inclusion"})


def test_free_text_references_stay_as_they_are_written(tmp_path: Path) -> None:
    """Signs that mean something else when they are made plain: a power, a micro sign, full-width brackets."""
    text = "Leukocytes 12·10⁹/L, CRP 5 µg/L（high）"
    found = loaded(tmp_path / "mine", f'q1,Say?,"{text}",p1', head="id,question,answer,patient")
    assert found.items[0].reference is not None
    assert found.items[0].reference.answer == text


def test_criteria_are_scored_by_their_judge_where_none_is_named(tmp_path: Path) -> None:
    """HealthBench's form, worked by hand: 5 of 8 points are met, then 3 of them are lost."""
    criteria = '[{"criterion": "names the spleen", "points": 5}, {"criterion": "names a grade", "points": 3}]'
    head, row = "id,question,answer,patient,criteria", ["q2", "What next?", "", "p1", json.dumps(json.loads(criteria))]
    quoted = ",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row)
    found = loaded(
        tmp_path / "mine", 'q1,What is it?,,p2,"5: names the spleen\n-3: advises surgery"', quoted, head=head
    )
    first, second = found.items
    assert (found.judge, type(first.answer)) == ("criteria", FreeTextFormat)
    assert first.reference is not None
    assert second.reference is not None
    assert [(one.points, one.criterion) for one in first.reference.criteria] == [
        (5, "names the spleen"),
        (-3, "advises surgery"),
    ]
    made = proctor.run(found, lambda: "The spleen.", name="me", conditions="text-only", store=tmp_path / "s.db")

    def met(request: object) -> str:
        return json.dumps({"explanation": "so", "criteria_met": "names the spleen" in request.text})  # type: ignore[attr-defined]

    with FaultyServer(met) as server:
        made.score(model="m", base_url=server.url)
    values = {row["metric"]: row["value"] for row in made.results()}
    assert values["criteria_score"] == pytest.approx((5 / 5 + 5 / 8) / 2)


def test_the_judge_of_the_settings_scores_and_an_unknown_one_is_a_fault(tmp_path: Path) -> None:
    head, row = "id,question,answer,patient", "q1,What is it?,the spleen,p1"
    found = loaded(tmp_path / "mine", row, head=head, settings="judge: three-level")
    made = proctor.run(found, lambda: "The spleen.", name="me", conditions="text-only", store=tmp_path / "s.db")
    assert made.store.card(found.name).judge == "three-level"
    with pytest.raises(
        InputError, match=r"column 'judge': found 'three-levels', expected one of .*did you mean 'three-level'\?"
    ):
        loaded(tmp_path / "mine", row, head=head, settings="judge: three-levels")
    with pytest.raises(InputError, match="criteria of the format binary"):
        loaded(tmp_path / "other", "q1,Is it?,yes,p1,5: x", head="id,question,answer,patient,criteria")
