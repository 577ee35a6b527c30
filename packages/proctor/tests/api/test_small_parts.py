"""Small parts of the API alone, where hardly any whole way leads through them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib import pyplot

import proctor
from proctor import reports
from proctor.api import analysis, downloads, evaluation, import_export
from proctor.core import Excerpt, InputError, Item, Reference, VideoClip
from proctor.core.criteria import Criterion
from proctor.core.formats import BinaryFormat
from proctor.media import Excerpts, MediaAs, MediaLibrary
from proctor.reports import ReportSummary, plots
from proctor.reports.blocks import Story
from tests.support.clock_video import ClockVideo, read_clock, write_clock_video
from tests.support.fuzzed_store import NAME, fuzzed
from tests.support.killed_child import in_a_fork
from tests.support.lamp_benchmark import lamps


def test_several_metrics_tell_together() -> None:
    made = proctor.run(lamps(free_text=True), "random", conditions="text-only", store=":memory:")
    one, two = (proctor.score(made, metrics=name, all_items=True) for name in ("rouge-1-mean", "rouge-l-mean"))
    again = proctor.run(lamps(free_text=True), "random", conditions="text-only", store=":memory:")
    both = proctor.score(again, metrics=["rouge-1-mean", "rouge-l-mean"], all_items=True)
    assert both.by == {**one.by, **two.by}
    assert set(both.notes) == {*one.notes, *two.notes}


def test_a_notebook_shows_a_figure_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, _ = plots._canvas(None, 3.0)
    assert plain.get_size_inches().tolist() == [7.0, 3.0]
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None, version_info=(9, 0)))
    for height, shown in ((3.0, 3.0), (0.4, 1.6)):
        figure, axes = plots._canvas(None, height)
        assert figure.get_size_inches().tolist() == [7.0, shown]
        assert axes.figure is figure
        assert figure.get_layout_engine() is not None
        assert not pyplot.get_fignums()  # else the notebook would draw it again
    assert plots._canvas(axes, 9.0) == (figure, axes)


@pytest.mark.parametrize(
    ("location", "name"),
    [("https://a.test/data/cases.json?x=1", "cases.json"), ("https://a.test/", "data"), ("https://a.test/..", "data")],
)
def test_a_file_that_is_no_archive_is_taken_under_its_name(location: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "sent").write_text("[]")
    (tmp_path / "draft").mkdir()
    downloads._take(tmp_path / "sent", tmp_path / "draft", None, location)
    assert [(one.name, one.read_text()) for one in (tmp_path / "draft").iterdir()] == [(name, "[]")]
    known: Any = SimpleNamespace(download=SimpleNamespace(folders={"clips": "clips"}, most_mb=1))
    with pytest.raises(InputError, match=r"found no archive \(tar or zip\), expected one with clips"):
        downloads._take(tmp_path / "sent", tmp_path / "draft", known, location)


def test_what_verification_has_done_is_told(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    found = proctor.verify(tmp_path, ["focus", "mediqa-eval"], on_change=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 2), (2, 2)]
    assert (found.missing, found.rows) == (("focus", "mediqa-eval"), [])


def test_a_report_of_an_evaluation_is_of_all_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = proctor.run(lamps(), "random", conditions="text-only", store=":memory:")
    assert (made.systems, made.conditions) == (("random",), ("text-only",))
    given: list[Any] = []

    def write(*_: Any, options: Any, **__: Any) -> Any:
        given.append(options)
        return ReportSummary(tmp_path, 1, (), 0, 0, 0, (), Story("", ()))

    monkeypatch.setattr(reports, "write_report", write)
    proctor.report(made, tmp_path / "r.html")
    assert [(one.systems, one.conditions) for one in given] == [((), ())]


@pytest.mark.parametrize("name", ["results", "compare", "rank", "analyze", "score", "report", "export"])
def test_what_an_evaluation_is_asked_goes_to_the_function_of_that_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = proctor.run(lamps(), "random", conditions="text-only", store=":memory:")
    module = {"score": evaluation, "export": import_export}.get(name, analysis)
    given: list[Any] = []

    def function(*words: Any, **options: Any) -> str:
        given.append((words, options))
        return "done"

    monkeypatch.setattr(module, name, function)
    locations = {"report": ("page.html",), "export": ("rows.csv",)}.get(name, ())
    assert getattr(made, name)(*locations, draws=7, failed="wrong") == "done"
    assert given == [((made, *locations), {"draws": 7, "failed": "wrong"})]
    if locations:
        getattr(made, name)()
        assert given[1:] == [((made, {"report": "report.html", "export": None}[name]), {})]


def test_items_that_do_not_count_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    @proctor.metric(low=0, high=99)
    def letters(answer: Any) -> float:
        return float(len(answer.text))

    made, sums, scored = fuzzed(tmp_path, 3, items=40), list[Any](), list[int]()
    assert made.store.card(NAME).only
    for everything in (False, True):
        proctor.export(made.store, tmp_path / "sums.json", NAME, format="sums", all_items=everything)
        sums.append(json.loads((tmp_path / "sums.json").read_text()))
        scored.append(proctor.score(made.store, NAME, metrics=letters, all_items=everything).by["letters"])
    assert sums[0] != sums[1]
    assert 0 < scored[0] < scored[1]


def test_a_ranking_of_baselines_alone_says_so() -> None:
    made = proctor.run(lamps(), "random", conditions="text-only", store=":memory:", baselines=False)
    with pytest.raises(InputError, match="no run under text-only but those of baselines"):
        proctor.rank(made.store, condition="text-only", baselines="none")
    with pytest.raises(InputError, match="no run under video"):
        proctor.rank(made.store, condition="video", baselines="none")


def test_a_run_says_which_judge_has_to_score_what() -> None:
    rubric = (Criterion(criterion="Names the machine.", points=2.0), Criterion(criterion="Names a lamp.", points=1.0))
    plain = lamps(free_text=True)
    free = [item for item in plain.items if item.answer.kind == "free_text"]
    ruled = {one.id: one.model_copy(update={"reference": Reference(answer=None, criteria=rubric)}) for one in free[:1]}
    mixed = replace(plain, items=tuple(ruled.get(one.id, one) for one in plain.items))
    for benchmark, told in (
        (plain, [
            "4 questions in free text: a judge has to score the answers (proctor score lamps --model PROVIDER:MODEL --judge three-level",
        ]),
        (mixed, [
            "1 question with criteria: a judge has to score the answers (proctor score lamps --model PROVIDER:MODEL --judge criteria",
            "3 questions in free text: a judge has to score the answers (proctor score lamps --model PROVIDER:MODEL --judge three-level",
        ]),
    ):  # fmt: skip
        made = proctor.run(benchmark, lambda question: "yes", name="mine", conditions="text-only", store=":memory:")
        assert [one.partition(" --store ")[0] for one in made.done[1:]] == told
    done = proctor.run(lamps(), lambda question: "yes", name="mine", conditions="text-only", store=":memory:").done
    assert len(done) == 1


def test_a_fork_that_lets_go_of_a_store_in_memory_leaves_it_to_its_parent() -> None:
    held = [proctor.run(lamps(), "random", conditions="text-only", store=":memory:")]
    file = Path(held[0].store.shown)
    assert in_a_fork(held.clear) == 0
    assert file.is_file()
    assert held[0].results(draws=100).rows
    held.clear()
    assert not file.exists()


def test_small_pictures_are_of_the_same_part_of_a_video(tmp_path: Path) -> None:
    """The file is the whole video, of which the questions know an excerpt."""
    write_clock_video(tmp_path / "v.mp4", ClockVideo(range(0, 8000, 40)))
    excerpts = Excerpts({"v.mp4": Excerpt(start=4.0, end=6.0)}, MediaAs.FULL)
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache", excerpts=excerpts)
    item = Item(
        id="q", group="g", question="?", answer=BinaryFormat(), media=(VideoClip(source="v.mp4", start=0, end=2),)
    )
    small = analysis.thumbnails_of(library, 160)(item)
    assert len(small) == 4
    clocks = [read_clock(jpeg) for _, jpeg in small]
    assert clocks == sorted(clocks)
    assert all(100 <= number <= 150 for number in clocks)
