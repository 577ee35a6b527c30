"""Instances of ClinicalSkillQA built from videos, and their rationales from event logs."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.stats import binomtest, chisquare

from proctor.core import Benchmark, InputError, generator
from proctor.media import MediaLibrary, Picture, view
from proctor.metrics import MetricEstimate
from proctor.metrics.ordering import OrderComparison, compare_orders, order_chance, order_estimates
from proctor.stats import Resampling
from proctor.systems import build_system
from proctor.tasks.clinicalskillqa import READER
from proctor.tasks.clinicalskillqa.instances import (
    Built,
    InstancePlan,
    LoggedEvent,
    build_instances,
    choose,
    padded,
    rationale,
    read_events,
    scenarios_of,
    stretches,
)
from proctor.tasks.clinicalskillqa.native import read_references
from proctor.tasks.simulated import simulate

PLAN = InstancePlan(per_video=10, seconds=2.0, seed=1)


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated")
    return simulate(folder, videos=21, seconds=21, fps=5, size=(256, 144), seed=3, questions_per_video=1)


@pytest.fixture(scope="module")
def built(videos: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Built]:
    out = tmp_path_factory.mktemp("task")
    return out, build_instances(videos / "videos", out, PLAN, cache=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def benchmark(built: tuple[Path, Built]) -> Benchmark:
    return READER.load(built[0])


def rows(task: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (task / "references.jsonl").read_text("utf-8").splitlines()]


# ── what is made ──


def test_what_is_made_is_what_the_reader_reads(built: tuple[Path, Built], benchmark: Benchmark) -> None:
    task, found = built
    assert (found.videos, found.too_short) == (21, ())
    assert found.instances + found.too_alike == 21 * 10 * 2
    assert Counter(item.tags["frames"] for item in benchmark.items).keys() == {4, 6}
    assert min(Counter(item.tags["frames"] for item in benchmark.items).values()) >= 200
    assert len(benchmark.items) == found.instances == len(read_references(task / "references.jsonl"))
    assert benchmark.simulated
    assert "not real" in benchmark.title
    assert benchmark.seeds == {"instances": 1}
    assert len({item.group for item in benchmark.items}) == 21


def test_a_written_frame_is_the_one_at_its_recorded_time(
    videos: Path, built: tuple[Path, Built], tmp_path: Path
) -> None:
    """Times were rounded to a millisecond, which may lie on the other side of a frame."""
    library = MediaLibrary(videos / "videos", cache_dir=tmp_path)
    task = built[0]
    known = rows(task)
    assert any(time != round(time, 3) for row in known for time in row["times"])
    for row in known[:12]:
        shown = library.jpegs([Picture(row["video"], time) for time in row["times"]])
        for label, jpeg in zip(row["order"], shown, strict=True):
            written = (task / "instances" / row["id"] / f"{label}.jpg").read_bytes()
            assert padded(jpeg, len(written)) == written


def test_each_video_may_show_a_scenario_of_its_own(tmp_path: Path) -> None:
    """By its folder, or by a file; a video that neither names is said."""
    for name in ("cpr/a.mp4", "AED/deep/b.mp4", "c.mp4"):
        (tmp_path / "v" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "v" / name).touch()
    with pytest.raises(InputError, match=r"c.mp4: found 0 folders named so, expected one of CPR, AED, BMV"):
        scenarios_of(tmp_path / "v")
    (tmp_path / "v" / "c.mp4").unlink()
    assert scenarios_of(tmp_path / "v") == {"AED/deep/b.mp4": "AED", "cpr/a.mp4": "CPR"}
    file = tmp_path / "s.json"
    file.write_text('{"cpr/a": "bmv", "AED/deep/b.mp4": "AED"}')
    assert scenarios_of(tmp_path / "v", file) == {"AED/deep/b.mp4": "AED", "cpr/a.mp4": "BMV"}
    file.write_text('{"cpr/a": "ECG"}')
    with pytest.raises(InputError, match=r"s.json: video 'AED/deep/b.mp4': found no scenario, expected one of"):
        scenarios_of(tmp_path / "v", file)


def test_scenarios_stand_in_the_references(videos: Path, tmp_path: Path) -> None:
    source = tmp_path / "videos"
    names = sorted(path.name for path in (videos / "videos").iterdir())[:2]
    for folder, name in zip(("CPR", "bmv"), names, strict=True):
        (source / folder).mkdir(parents=True)
        shutil.copy(videos / "videos" / name, source / folder / name)
    plan = InstancePlan(frames=(4,), per_video=2, seconds=2.0)
    build_instances(source, tmp_path / "task", plan, cache=tmp_path / "c", scenarios=scenarios_of(source))
    told = {row["video"].partition("/")[0]: row["scenario"] for row in rows(tmp_path / "task")}
    assert told == {"CPR": "CPR", "bmv": "BMV"}
    assert READER.load(tmp_path / "task").facets == ("scenario", "frames")


def test_frames_are_spread_over_their_stretch(built: tuple[Path, Built]) -> None:
    for row in rows(built[0]):
        slot = (row["end"] - row["start"]) / len(row["times"])
        indices = [int((time - row["start"]) / slot) for time in row["times"]]
        assert indices == list(range(len(row["times"])))


def test_the_same_seed_gives_the_same_files_and_another_one_others(videos: Path, tmp_path: Path) -> None:
    def made(name: str, seed: int) -> dict[str, bytes]:
        out = tmp_path / name
        few = tmp_path / "few"
        few.mkdir(exist_ok=True)
        for file in sorted((videos / "videos").iterdir())[:2]:
            if not (few / file.name).exists():
                (few / file.name).write_bytes(file.read_bytes())
        build_instances(few, out, InstancePlan(per_video=2, seconds=4, seed=seed), cache=tmp_path / "cache")
        return {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*") if file.is_file()}

    first = made("a", 1)
    assert first == made("b", 1)
    assert first != made("c", 2)


# ── nothing gives the order away ──


def test_names_metadata_and_file_times_say_nothing(built: tuple[Path, Built]) -> None:
    task, _ = built
    files = sorted((task / "instances").rglob("*.jpg"))
    assert {file.stat().st_mtime_ns for file in files} == {946_684_800 * 10**9}
    assert {folder.stat().st_mtime_ns for folder in (task / "instances").iterdir()} == {946_684_800 * 10**9}
    assert {file.stem for file in files} == set("ABCDEF")
    tables = set()
    for file in files[:200]:
        with Image.open(file) as opened:
            assert not opened.getexif()
            assert set(opened.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density", "comment"}
            assert not bytes(opened.info["comment"]).strip(b"\0")
            tables.add(str(vars(opened)["quantization"]))
    assert len(tables) == 1  # all are encoded alike
    # Neither the id nor its number says which video, or which part of it, an instance is of.
    numbers = np.array([int(row["id"].removeprefix("i")) for row in rows(task)], dtype=float)
    starts = np.array([row["start"] for row in rows(task)])
    names = np.unique([row["video"] for row in rows(task)], return_inverse=True)[1]
    assert abs(np.corrcoef(numbers, starts)[0, 1]) < 0.2
    assert abs(np.corrcoef(numbers, names)[0, 1]) < 0.2


def test_every_label_is_as_likely_at_every_place(built: tuple[Path, Built]) -> None:
    for count in (4, 6):
        table = np.zeros((count, count))
        for row in rows(built[0]):
            if len(row["order"]) == count:
                for index, label in enumerate(row["order"]):
                    table["ABCDEF".index(label), index] += 1
        assert chisquare(table.ravel()).pvalue > 0.001


def test_the_files_of_an_instance_are_equally_long(built: tuple[Path, Built]) -> None:
    """Else they would tell: sorted by what the pictures take, 15 % of four frames were right up to reversal."""
    for folder in (built[0] / "instances").iterdir():
        assert len({file.stat().st_size for file in folder.iterdir()}) == 1


@pytest.mark.parametrize("gap", [0, 4, 5, 65_537, 65_538, 65_540, 65_541, 200_000])
def test_a_picture_that_is_filled_up_stays_the_same(gap: int) -> None:
    out = io.BytesIO()
    Image.effect_noise((64, 48), 80).save(out, "JPEG")
    jpeg = out.getvalue()
    longer = padded(jpeg, len(jpeg) + gap)
    assert len(longer) == len(jpeg) + gap
    with Image.open(io.BytesIO(jpeg)) as one, Image.open(io.BytesIO(longer)) as other:
        assert one.tobytes() == other.tobytes()


# ── who can order them ──


def compared(
    benchmark: Benchmark, name: str, cache: Path, count: int
) -> tuple[list[OrderComparison], dict[str, MetricEstimate]]:
    system = build_system(name, seed=0)
    library = MediaLibrary(benchmark.media_root, cache_dir=cache)
    items = [item for item in benchmark.items if item.tags["frames"] == count]

    async def orders() -> list[Any]:
        return [(await system.answer(item.as_asked(), view(item, "video", library))).parsed for item in items]

    found = []
    for item, order in zip(items, asyncio.run(orders()), strict=True):
        assert item.reference is not None
        key = item.reference.answer
        assert isinstance(key, list)
        found.append(compare_orders([str(label) for label in key], order))
    marks = order_estimates(found, [item.group for item in items], plan=Resampling(draws=500))
    return found, {mark.metric.name: mark for mark in marks}


@pytest.mark.parametrize("count", [4, 6])
def test_who_looks_beats_chance_on_simulated_procedures(benchmark: Benchmark, tmp_path: Path, count: int) -> None:
    chance = order_chance("task_accuracy", [count]) or 0.0
    for looking in ("seriation", "classical-vision"):
        _, marks = compared(benchmark, looking, tmp_path, count)
        for name, least in (("task_accuracy", chance), ("up_to_reversal", 0.5)):
            estimate = marks[name].estimate
            assert estimate.ci_low is not None
            assert estimate.ci_low > least
    for blind in ("random", "as-given"):
        _, marks = compared(benchmark, blind, tmp_path, count)
        for name, level in (("task_accuracy", chance), ("pairwise_accuracy", 0.5)):
            estimate = marks[name].estimate
            assert estimate.ci_low is not None
            assert estimate.ci_high is not None
            assert estimate.ci_low <= level <= estimate.ci_high


@pytest.fixture(scope="module")
def real(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Benchmark, Path]:
    task, cache = tmp_path_factory.mktemp("real"), tmp_path_factory.mktemp("real-cache")
    build_instances(data / "video", task, InstancePlan(per_video=8, seconds=1.0, seed=1), cache=cache)
    return READER.load(task), cache


@pytest.mark.parametrize("count", [4, 6])
def test_seriation_is_right_up_to_reversal_on_real_clips(real: tuple[Benchmark, Path], count: int) -> None:
    """Labels are shuffled alike, so whoever does not look is right up to reversal with 2/n! per instance,
    independently of the clip: the test is exact though there are but two clips."""
    benchmark, cache = real
    assert not benchmark.simulated
    found, _ = compared(benchmark, "seriation", cache, count)
    right = sum(one.up_to_reversal for one in found)
    assert (
        binomtest(right, len(found), 2 * (order_chance("task_accuracy", [count]) or 0.0), alternative="greater").pvalue
        < 1e-3
    )


# ── parts and faults ──


def test_stretches_lie_apart_in_the_video() -> None:
    for count in (1, 3, 9):
        found = stretches(20.0, 4.0, count, generator(0, str(count)))
        assert len(found) == min(count, 5)
        assert all(start >= 0 and end <= 20 + 1e-9 for start, end in found)
        assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(found))
    assert stretches(3.0, 4.0, 2, generator(0)) == []


def test_frames_that_look_the_same_are_not_chosen(videos: Path, tmp_path: Path) -> None:
    still = next((videos / "videos").iterdir())
    library = MediaLibrary(still.parent, cache_dir=tmp_path)
    one = library.jpegs([Picture(still.name, 1.0)])
    assert choose((0, 4), 4, 0.01, lambda times: one * len(times), generator(0)) is None


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        ({"frames": (1,)}, "frames: found 1, expected 2 to 26"),
        ({"frames": (4, 4)}, "frames: found (4, 4), expected numbers of frames, each once"),
        ({"per_video": 0}, "per_video: found 0, expected 1 to 10000"),
        ({"seconds": 0.0}, "seconds: found 0, expected 0.2 to 36000"),
        ({"apart": 0.9}, "apart: found 0.9, expected 0 to 0.5"),
        ({"scenario": "ECG"}, "scenario: found 'ECG', expected one of CPR, AED, BMV"),
    ],
)
def test_plans_that_make_no_sense(plan: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as caught:
        InstancePlan(**plan)
    assert str(caught.value) == text


def test_folders_that_can_not_be_used(videos: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no such folder, expected a folder of videos"):
        build_instances(tmp_path / "none", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="found no video, expected files such as"):
        build_instances(tmp_path / "empty", tmp_path / "out")
    with pytest.raises(InputError, match="found something there already"):
        build_instances(videos / "videos", videos)
    with pytest.raises(InputError, match="expected longer or livelier videos"):
        build_instances(videos / "videos", tmp_path / "out", InstancePlan(seconds=60), cache=tmp_path / "cache")
    assert not (tmp_path / "out").exists()


def event(start: float, end: float, text: str) -> LoggedEvent:
    return LoggedEvent(start=start, end=end, text=text)


def test_what_is_seen_and_what_happens_between() -> None:
    log = [
        event(0, 1, "too early"),
        event(2, 5.5, "compressions go on."),
        event(6.1, 6.9, "the pads are placed"),
        event(7, 9, "everyone stands clear"),
        event(9.5, 12, "too late"),
    ]
    assert rationale("DBAC", [2.0, 4.0, 6.0, 7.0], log) == (
        "In D and B compressions go on. Between A and C the pads are placed. In C everyone stands clear."
    )
    assert rationale("BA", [1.1, 1.9], log) == ""
    assert rationale("CAB", [2, 3, 4], log) == "In C, A and B compressions go on."


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{}", "field 'events': found nothing, expected a value"),
        ("[]", "found an empty list, expected an object"),
        (
            '{"events": [{"start": 3, "end": 1, "text": "x"}]}',
            "field 'events.0': found an object, expected an end from 3 on",
        ),
        (
            '{"events": [{"start": 1, "end": 1, "kind": "seen"}]}',
            "field 'events.0': found an object, expected a text, or a kind (inserted, ",
        ),
        ('{"events": [{"start": -1, "end": 1, "text": "x"}]}', "field 'events.0.start': found -1, expected"),
        ("no", "found broken JSON ("),
    ],
)
def test_logs_that_are_refused(tmp_path: Path, content: str, text: str) -> None:
    (tmp_path / "v.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_events(tmp_path, "v.mp4")
    assert str(caught.value).startswith(f"{tmp_path / 'v.json'}: {text}")


def test_a_video_without_a_log_is_named_before_anything_is_written(tmp_path: Path) -> None:
    source = simulate(tmp_path / "sim", videos=1, seconds=8, fps=5, size=(256, 144), seed=2, questions_per_video=1)
    (tmp_path / "logs").mkdir()
    with pytest.raises(InputError, match=r"sim-000.json: found no such file, expected the event log of sim-000.mp4"):
        build_instances(source / "videos", tmp_path / "task", events=tmp_path / "logs", cache=tmp_path / "c")
    assert not (tmp_path / "task").exists()


def test_references_of_simulated_videos_say_why(tmp_path: Path) -> None:
    """Each rationale is told from the script: its frames are those at whose time the event is under way, and it says
    things in the order in which they begin. The frames themselves are the same as without a log."""
    source = simulate(tmp_path / "sim", videos=3, seconds=12, fps=5, size=(256, 144), seed=2, questions_per_video=1)

    def made(name: str, **options: Any) -> dict[str, bytes]:
        out, plan = tmp_path / name, InstancePlan(per_video=3, seconds=3, seed=4)
        build_instances(source / "videos", out, plan, cache=tmp_path / "cache", **options)
        found = {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*") if file.is_file()}
        about = json.loads(found.pop("about.json"))
        assert about["events"] is bool(options)
        return found

    plain, told = made("plain"), made("told", events=source / "events")
    rows = [json.loads(line) for line in told.pop("references.jsonl").decode().splitlines()]
    bare = [json.loads(line) for line in plain.pop("references.jsonl").decode().splitlines()]
    assert plain == told
    assert bare == [{**row, "rationale": ""} for row in rows]
    assert sum(bool(row["rationale"]) for row in rows) > len(rows) / 2
    for row in rows:
        log = read_events(source / "events", row["video"])
        assert all(a.start <= b.start for a, b in pairwise(log))
        said = [one.description for one in log if one.description in row["rationale"]]
        seen = {one.description for one in log if any(one.start <= time <= one.end for time in row["times"])}
        assert seen <= set(said)
