"""Reliance on the evidence: worked by hand, on the same items, with what could not be asked counted and never scored."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from PIL import Image

import proctor
from proctor.core import (
    ACCURACY,
    Answer,
    Benchmark,
    ConfigurationError,
    Evidence,
    EvidenceWindow,
    InputError,
    Item,
    Reference,
    VideoClip,
)
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary, pictures_at
from proctor.results import Options, compare_runs, load_items, reliances, status_counts
from proctor.runs import PlanOptions, estimate_runs
from proctor.systems import build_system
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.program import proctor as command

VIDEOS, QUESTIONS = 12, 3


def benchmark(root: Path) -> Benchmark:
    """Of each video: a question whose answer is visible for 2 of 10 s, one for 8 of them (so that there is no room elsewhere),
    and one that does not say where."""
    items = []
    for video in range(VIDEOS):
        write_clock_video(root / f"v{video}.mp4", ClockVideo(times_ms=range(0, 10000, 500), rate=2))
        for number, end in enumerate((4.0, 10.0, None)):
            evidence = None if end is None else Evidence(windows=(EvidenceWindow(start=2.0, end=end),))
            items.append(
                Item(
                    id=f"v{video}/q{number}",
                    group=f"v{video}",
                    question=f"Is lamp {number} on?",
                    answer=BinaryFormat(),
                    media=(VideoClip(source=f"v{video}.mp4"),),
                    reference=Reference(answer=True),
                    evidence=evidence,
                )
            )
    return Benchmark("lamps", "Lamps", tuple(items), (ACCURACY,), "accuracy", media_root=root)


@proctor.system
async def looks(view: Any) -> str:
    """Right if it sees 3 s after the start."""
    (frame,) = await view.frames(count=1, window=(3.0, 3.2))
    return "no" if is_dark(frame.jpeg) else "yes"


@proctor.system
async def guesses(view: Any) -> str:
    """Never looks, although it asks."""
    await view.frames(count=1)
    return "yes"


def is_dark(jpeg: bytes) -> bool:
    with Image.open(io.BytesIO(jpeg)) as opened:
        return not opened.getbbox()


CONDITIONS = ["video", "occlude-elsewhere", "occlude-evidence"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("lamps")
    systems: list[Any] = [looks, guesses]
    return proctor.run(
        benchmark(root), systems, conditions=CONDITIONS, store=root / "s.db", media=root, baselines=False
    )


def test_what_it_loses_with_the_evidence_and_not_elsewhere(made: Any) -> None:
    by_system = {one.system: one for one in reliances(made.store, made.benchmark, made.store.runs(made.benchmark))}
    first, second = by_system["looks"], by_system["guesses"]
    assert (first.system, first.elsewhere, first.evidence) == ("looks", 1.0, 0.0)
    each = first.comparison.difference
    assert (each.value, each.n, each.groups) == (1.0, VIDEOS, VIDEOS)  # the one question that has both
    assert each.p is not None
    assert each.p < 0.001
    assert (second.system, second.elsewhere, second.evidence) == ("guesses", 1.0, 1.0)
    assert (second.comparison.difference.value, second.comparison.difference.p) == (0.0, 1.0)
    assert first.unsupported == second.unsupported == 2 * VIDEOS


def test_it_is_the_paired_comparison_that_compare_makes(made: Any) -> None:
    by_name = {(run.system, run.condition): run for run in made.store.runs(made.benchmark)}
    pair = by_name["looks", "occlude-elsewhere"], by_name["looks", "occlude-evidence"]
    other = by_name["guesses", "occlude-elsewhere"], by_name["guesses", "occlude-evidence"]
    expected = compare_runs(made.store, made.benchmark, [pair, other], Options(), metrics=("accuracy",))
    found = reliances(made.store, made.benchmark, list(by_name.values()))
    assert {one.system: one.comparison for one in found} == {one.first.system: one for one in expected}


def test_what_can_not_be_asked_is_counted_and_never_scored(made: Any) -> None:
    rows = {(row.system, row.condition): row for row in made.results().data.rows if row.metric == "accuracy"}
    counted = {name: (row.n, row.unsupported, row.missing) for (system, name), row in rows.items() if system == "looks"}
    assert counted == {
        "video": (3 * VIDEOS, 0, 0),
        "occlude-elsewhere": (VIDEOS, 2 * VIDEOS, 0),
        "occlude-evidence": (2 * VIDEOS, VIDEOS, 0),
    }
    (run,) = [one for one in made.store.runs(made.benchmark) if run_is(one, "looks", "occlude-elsewhere")]
    items = load_items(made.store, made.store.card(made.benchmark))
    ended = status_counts(made.store, run, items)
    assert (ended["unsupported"], ended["not_asked"], ended["failed"]) == (2 * VIDEOS, 0, 0)


def run_is(run: Any, system: str, condition: str) -> bool:
    return (run.system, run.condition) == (system, condition)


def test_a_run_says_what_it_does_not_ask(made: Any) -> None:
    notes = " ".join(made.notes)
    assert f"occlude-elsewhere: {VIDEOS} items unsupported: no room for as much elsewhere." in notes
    assert f"occlude-elsewhere: {VIDEOS} items unsupported: no evidence." in notes
    assert f"occlude-evidence: {VIDEOS} items unsupported: no evidence." in notes


def test_in_json_the_rows_of_hidden_evidence_have_it(made: Any, tmp_path: Path) -> None:
    store = made.store.shown
    printed = command("results", "lamps", "--store", store, "--format", "json")
    assert printed.returncode == 0, printed.stderr
    rows = json.loads(printed.stdout)
    told = {(row["system"], row["condition"]): row["reliance"] for row in rows if "reliance" in row}
    assert set(told) == {("looks", "occlude-evidence"), ("guesses", "occlude-evidence")}
    own = told["looks", "occlude-evidence"]
    assert (own["difference"], own["n"], own["groups"], own["unsupported"]) == (1.0, VIDEOS, VIDEOS, 2 * VIDEOS)
    assert own["ci_low"] >= 0.5
    split = command("results", "lamps", "--store", store, "--format", "json", "--by", "format")
    assert all("reliance" not in row for row in json.loads(split.stdout))


def test_it_is_shown_by_terminal_notebook_analysis_and_report(made: Any, tmp_path: Path) -> None:
    table = made.results()
    assert {row["system"]: row["difference"] for row in table.reliance} == {"looks": 1.0, "guesses": 0.0}
    assert "Reliance on the evidence" in repr(table)
    printed = command("results", "lamps", "--store", made.store.shown)
    assert "+100.0 pts" in printed.stdout
    summary = made.report(tmp_path / "report.html")
    page = Path(summary.path).read_text(encoding="utf-8")
    assert "Does it look at the evidence?" in page
    assert "1 of 2 systems significantly rely on the evidence" in page


def test_without_both_conditions_there_is_none(made: Any) -> None:
    runs = [run for run in made.store.runs(made.benchmark) if run.condition != "occlude-elsewhere"]
    assert reliances(made.store, made.benchmark, runs) == ()
    shown = proctor.results(made.store, made.benchmark, conditions="video")
    assert shown.reliance == []


def test_a_run_that_is_not_complete_has_a_range(tmp_path: Path) -> None:
    """Half of the answers under one condition failed: without a policy there is no single figure."""
    calls: list[int] = []

    @proctor.system
    async def breaks(view: Any) -> str:
        if view.condition == "occlude-evidence":
            calls.append(1)
            if len(calls) % 4 == 1:  # two questions of each video are asked there
                raise OSError("unplugged")
        return "yes"

    folder = tmp_path / "media"
    folder.mkdir()
    again = proctor.run(
        benchmark(folder),
        [breaks],
        conditions=["occlude-elsewhere", "occlude-evidence"],
        store=tmp_path / "b.db",
        media=folder,
        baselines=False,
        concurrency=1,
    )
    (found,) = reliances(again.store, again.benchmark, again.store.runs(again.benchmark))
    assert (found.elsewhere, found.evidence, found.comparison.policy) == (None, None, "both")
    assert found.comparison.if_wrong.value is not None
    assert found.comparison.if_wrong.value > 0
    assert found.comparison.if_excluded.value == 0


def test_a_moment_alone_is_hidden_as_in_the_view(made: Any, tmp_path: Path) -> None:
    """What training reads picture by picture is hidden, too."""
    root = Path(made.store.shown).parent
    item = made.store.items(made.benchmark)[0]
    library = MediaLibrary(root, cache_dir=tmp_path / "cache")
    frames = pictures_at(item, "occlude-evidence", library, [1.0, 2.5, 3.5, 5.0])
    assert [is_dark(frame.jpeg) for frame in frames] == [False, True, True, False]
    assert len(pictures_at(item, "cut-evidence", library, [1.0, 2.5, 3.5, 5.0])) == 2


def test_no_system_is_told_the_evidence_also_where_it_says_what_it_supports(tmp_path: Path) -> None:
    """All that a system ever gets of an item, with the reference."""
    seen: list[Item] = []

    class Nosy:
        name = "nosy"
        settings: ClassVar[dict[str, Any]] = {}

        def supports(self, item: Item) -> bool:
            seen.append(item)
            return True

        async def answer(self, item: Item, view: Any) -> Answer:
            seen.append(item)
            return Answer(item_id=item.id, text="yes")

    proctor.run(
        benchmark(tmp_path),
        [Nosy()],
        conditions=["occlude-evidence"],
        store=":memory:",
        media=tmp_path,
        baselines=False,
    )
    assert len(seen) > 3 * VIDEOS
    assert all(item.evidence is None and item.reference is None for item in seen)


def test_a_condition_that_shows_no_item_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    whole = benchmark(tmp_path)
    plain = replace(whole, items=tuple(item.model_copy(update={"evidence": None}) for item in whole.items))
    with pytest.raises(ConfigurationError) as caught:
        proctor.run(plain, [guesses], conditions=["cut-evidence"], store=":memory:", media=tmp_path, baselines=False)
    assert str(caught.value) == (
        "condition 'cut-evidence' makes no sense for lamps: no item says where and when its answer is visible (evidence)"
    )
    long = replace(whole, items=tuple(item for item in whole.items if item.id.endswith("q1")))
    with pytest.raises(InputError) as told:
        proctor.run(
            long, [guesses], conditions=["occlude-elsewhere"], store=":memory:", media=tmp_path, baselines=False
        )
    assert str(told.value) == (
        "lamps: condition 'occlude-elsewhere': found 12 items: no room for as much elsewhere, expected an item to ask"
    )


def test_a_run_that_goes_on_asks_nothing_again(made: Any) -> None:
    root = Path(made.store.shown).parent
    again = proctor.run(
        benchmark(root), [looks], conditions=CONDITIONS, store=made.store.shown, media=root, baselines=False
    )
    assert again.done[0].startswith("Asked 0")
    library = MediaLibrary(root, cache_dir=root / "cache")
    system = build_system("random", seed=0)
    estimates = estimate_runs(None, benchmark(root), [system], CONDITIONS, library, PlanOptions(repeats=2))
    assert [one.items for one in estimates] == [2 * 3 * VIDEOS, 2 * VIDEOS, 2 * 2 * VIDEOS]
