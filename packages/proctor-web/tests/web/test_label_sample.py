"""From a judge's scores to corrected ones: a sample becomes a review in the browser, whose ratings correct."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

import proctor
from proctor.core import Answer, Benchmark, InputError, Item, Metric, Reference, Score
from proctor.core.formats import FreeTextFormat
from proctor.runs import Store
from proctor_web import add_person, open_review, ratings_to_scores, review_accounts, sample_study
from proctor_web.readings import Save, seal
from proctor_web.schema import accounts, study_items, versions
from proctor_web.settings import read_review
from tests.support.web_study import NOW

QUALITY = Metric("quality", "Quality", low=0, high=2)


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    items = tuple(
        Item(id=f"q{n}", group=f"v{n}", question="What?", answer=FreeTextFormat(), reference=Reference(answer="liver"))
        for n in range(30)
    )
    with_runs = Store(tmp_path / "runs.db")
    with_runs.add_benchmark(Benchmark("b", "B", items, (QUALITY,), "quality"))
    for system in ("one", "two"):
        run = with_runs.start_run("b", system, "video", {})
        with_runs.write(run, [(Answer(item_id=item.id, text=f"{system} {item.id}"), []) for item in items])
        scores = [(item.id, float((number + (system == "two")) % 3)) for number, item in enumerate(items)]
        with_runs.add_scores(run, [Score(item_id=i, metric="quality", value=v, scorer="judge") for i, v in scores])
    with_runs.close()
    return tmp_path / "runs.db"


def test_a_sample_is_a_review_whose_ratings_correct_the_judge(answers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "labels"
    sample = sample_study(answers, "b", folder, judge="judge", groups=9, readers=["anna"], seed=1)
    settings = read_review(folder)
    (study,) = settings.studies
    assert (study.groups, study.condition, study.systems) == (sample.drawn, "video", ("one", "two"))
    assert [(one.name, one.levels) for one in study.dimensions] == [("quality", (0.0, 1.0, 2.0))]
    location = review_accounts(folder)
    for name, role in (("anna", "reviewer"), ("olga", "organiser")):
        add_person(location, name, role, "en")
    site, (update,) = open_review(folder)
    assert (update.items.new, update.assigned) == (18, 18)
    with site.engine.begin() as connection:
        anna = connection.execute(select(accounts.c.id).where(accounts.c.name == "anna")).scalar_one()
        query = select(study_items.c.id, versions.c.body).join(versions, versions.c.item == study_items.c.id)
        for row in connection.execute(query).all():
            level = int(row.body["answer"].split("q")[1]) % 3
            seal(connection, anna, row.id, Save(1, 0, {"scores": {"quality": level}}), NOW)
    site.engine.dispose()
    assert ratings_to_scores(folder, "labels")[0] == 18
    table = proctor.corrected(answers, folder / "sample.json")
    one, two, pair = table.data.scores
    assert [one.mean is not None, two.mean is not None] == [True, True]
    assert one.mean is not None
    assert (one.mean.labelled, one.mean.n) == (9, 30)
    assert one.mean.ci_low <= 1.0 <= one.mean.ci_high
    assert one.mean.correlation == pytest.approx(1.0), "here people say what the judge says of this system"
    assert pair.mean is not None
    with pytest.raises(InputError, match="a sample is drawn once"):
        sample_study(answers, "b", folder, judge="judge", groups=9)


def test_a_study_of_unknown_groups_is_refused(answers: Path, tmp_path: Path) -> None:
    folder = tmp_path / "labels"
    sample = sample_study(answers, "b", folder, judge="judge", groups=9)
    file = folder / "review.yaml"
    file.write_text(file.read_text("utf-8").replace(sample.drawn[0], "v99", 1), "utf-8")
    with pytest.raises(InputError, match=r"study labels, groups: found 'v99', expected a group of b"):
        open_review(folder)
