"""Simulated procedures: the same seed gives the same files, and the ground truth is what the pixels show."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from proctor.core import InputError
from proctor.tasks.simulated import simulate
from proctor.tasks.simulated.pictures import CLASSES, Renderer
from proctor.tasks.simulated.script import Scene, Script, draw_script
from proctor.tasks.simulated.simulation import observe, sighting
from proctor.tracks import Annotation

Pixels = NDArray[np.int16]

SECONDS, FPS, SEED = 20.0, 10, 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("simulated") / "procedures"
    return simulate(out, videos=3, seconds=SECONDS, fps=FPS, size=(320, 180), seed=SEED)


def frames_of(path: Path) -> list[Pixels]:
    with av.open(str(path)) as file:
        return [frame.to_ndarray(format="rgb24").astype(np.int16) for frame in file.decode(video=0)]


def truth_of(folder: Path, video: str) -> tuple[Script, Annotation]:
    log = Script.model_validate_json((folder / "events" / f"{video}.json").read_text())
    tracks = Annotation.model_validate_json((folder / "tracks" / f"{video}.json").read_text())
    return log, tracks


def videos(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / "videos").iterdir())


# What each class looks like, said here once more and in other terms than the renderer's or the system's.
COLOURS: dict[str, Callable[[Pixels], NDArray[np.bool_]]] = {
    "clip": lambda p: (
        (p[..., 2] > p[..., 0] + 25) & (p[..., 2] > p[..., 1] + 8) & (p[..., 1] > p[..., 0] + 8) & (p[..., 0] > 60)
    ),
    "gallstone": lambda p: (p[..., 1] > 1.8 * p[..., 2]) & (p[..., 1] > 0.58 * p[..., 0]) & (p[..., 0] > 60),
    "needle": lambda p: (p[..., 2] > p[..., 1] + 30) & (p[..., 0] > p[..., 1] + 12) & (p[..., 2] > 0.9 * p[..., 0]),
    "specimen bag": lambda p: (p[..., 1] > p[..., 0] + 15) & (p[..., 1] > p[..., 2] + 8),
    "sponge": lambda p: (p.min(axis=-1) > 118) & (p.max(axis=-1) - p.min(axis=-1) < 30),
}
LEAST_SHARE = {"clip": 0.2, "gallstone": 0.5, "needle": 0.08, "specimen bag": 0.5, "sponge": 0.4}


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    first, again, other = (
        simulate(tmp_path / name, videos=2, seconds=8, size=(256, 144), seed=seed)
        for name, seed in (("first", 1), ("again", 1), ("other", 2))
    )
    assert digest(first) == digest(again)
    assert digest(first).keys() == digest(other).keys()
    assert all(digest(first)[name] != digest(other)[name] for name in digest(first))


def test_a_videos_content_does_not_depend_on_how_many_there_are(tmp_path: Path) -> None:
    one = digest(simulate(tmp_path / "one", videos=1, seconds=8, size=(256, 144)))
    two = digest(simulate(tmp_path / "two", videos=2, seconds=8, size=(256, 144)))
    for name in ("videos/sim-000.mp4", "events/sim-000.json", "tracks/sim-000.json"):
        assert one[name] == two[name]


def test_the_folder_says_that_it_is_simulated_and_how(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["simulated"] is True
    assert manifest["kind"] == "simulated procedures"
    assert (manifest["seed"], manifest["simulator_version"]) == (SEED, "1")
    assert [video["id"] for video in manifest["videos"]] == videos(folder)


def test_videos_have_the_promised_size_rate_and_length(folder: Path) -> None:
    for name in videos(folder):
        with av.open(str(folder / "videos" / f"{name}.mp4")) as file:
            stream = file.streams.video[0]
            assert (stream.codec_context.name, stream.width, stream.height) == ("h264", 320, 180)
            assert stream.average_rate == FPS
            assert stream.frames == SECONDS * FPS


def test_boxes_hold_the_colour_of_their_class(folder: Path) -> None:
    checked = dict.fromkeys(COLOURS, 0)
    for name in videos(folder):
        frames = frames_of(folder / "videos" / f"{name}.mp4")
        _, tracks = truth_of(folder, name)
        for second, objects in tracks.by_second().items():
            picture = frames[second * FPS]
            for seen in objects:
                if seen.box is None or (seen.visibility or 0) < 0.85:
                    continue
                left, right = (round(edge) for edge in (seen.box.x, seen.box.x + seen.box.width))
                top, bottom = (round(edge) for edge in (seen.box.y, seen.box.y + seen.box.height))
                mask = COLOURS[seen.class_name](picture)
                inside = mask[top:bottom, left:right]
                around = mask[max(0, top - 5) : bottom + 5, max(0, left - 5) : right + 5]
                assert inside.mean() > LEAST_SHARE[seen.class_name], (name, second, seen)
                assert around.sum() - inside.sum() <= 0.1 * inside.sum(), (name, second, seen)
                wide, high = (float(np.ptp(np.flatnonzero(inside.any(axis=axis)))) for axis in (0, 1))
                assert max(wide / (right - left), high / (bottom - top)) > 0.4, (name, second, seen)
                checked[seen.class_name] += 1
    assert min(checked.values()) >= 5, checked


def test_what_is_not_there_or_hidden_leaves_no_pixel(folder: Path) -> None:
    absent = hidden = 0
    for name in videos(folder):
        frames = frames_of(folder / "videos" / f"{name}.mp4")
        _, tracks = truth_of(folder, name)
        by_second = tracks.by_second()
        for second in range(tracks.video.whole_seconds):
            picture, objects = frames[second * FPS], by_second.get(second, [])
            for class_name, colour in COLOURS.items():
                mine = [seen for seen in objects if seen.class_name == class_name]
                thread = class_name == "clip" and any(seen.class_name == "sponge" for seen in objects)
                if all(seen.box is None for seen in mine) and not thread:  # the sponge's thread is blue too
                    stray = 200 if class_name == "sponge" else 12  # highlights and the shine of metal are white too
                    assert colour(picture).sum() <= stray, (name, second, class_name)
                    absent += not mine
                    hidden += bool(mine)
    assert absent > 30
    assert hidden >= 3


def test_objects_come_and_go_when_the_log_says(folder: Path) -> None:
    """The first (last) picture with half of what is later (was earlier) seen of the class, against the log."""
    checked = 0
    for name in videos(folder):
        frames = frames_of(folder / "videos" / f"{name}.mp4")
        log, _ = truth_of(folder, name)
        for class_name, colour in COLOURS.items():
            mine = [event for event in log.events if event.class_name == class_name]
            came = [event for event in mine if event.kind == "inserted"]
            if len(came) != 1 or any(event.kind == "hidden" for event in mine):
                continue
            if class_name == "clip" and any(event.class_name == "sponge" for event in log.events):
                continue  # the sponge's thread is blue too
            shown = np.array([int(colour(picture).sum()) for picture in frames])
            half = shown > 0.45 * np.median(shown[shown > 0.3 * shown.max()])
            times = np.flatnonzero(half) / FPS
            assert abs(float(times[0]) - came[0].start) < 0.4, (name, class_name)
            gone = [event for event in mine if event.kind == "retrieved"]
            last = gone[0].end if gone else SECONDS
            assert abs(float(times[-1]) - last) < 0.4, (name, class_name)
            checked += 1 + len(gone)
    assert checked >= 4


@pytest.mark.parametrize("seed", range(12))
def test_scripts_are_possible(seed: int) -> None:
    """No event without the object, one thing at a time with an object and with a hand, all within the video."""
    script = draw_script(seed, "v", 30.0)
    assert script == draw_script(seed, "v", 30.0)
    here: dict[str, float] = {}
    gone: set[str] = set()
    hands: dict[str, float] = {}
    for event in script.events:
        assert 0 < event.start < event.end < 30.0
        assert event.instance.startswith(event.class_name)
        assert event.instance not in gone
        assert (event.kind == "inserted") == (event.instance not in here)
        assert event.start > here.get(event.instance, 0.0)
        here[event.instance] = event.end
        if event.kind == "retrieved":
            gone.add(event.instance)
        assert (event.hand is None) == (event.kind == "hidden") == (event.cover is not None)
        if event.hand is not None:
            assert event.start > hands.get(event.hand, 0.0)
            hands[event.hand] = event.end
    assert {event.class_name for event in script.events} <= {kind.name for kind in CLASSES}


def test_every_kind_of_event_and_class_occurs() -> None:
    scripts = [draw_script(seed, "v", 24.0) for seed in range(12)]
    assert {event.kind for script in scripts for event in script.events} == {"inserted", "moved", "hidden", "retrieved"}
    assert {event.class_name for script in scripts for event in script.events} == {kind.name for kind in CLASSES}
    assert {event.cover for script in scripts for event in script.events} == {None, "tissue", "retractor"}


def test_an_object_crosses_the_edge_at_the_times_of_its_events() -> None:
    for seed in range(6):
        script = draw_script(seed, "v", 24.0)
        scene = Scene(script, (384, 216), seed)
        for event in script.events:
            if event.kind in {"inserted", "retrieved"}:
                moment = event.start if event.kind == "inserted" else event.end
                (kept_rows,) = [one for one in scene.at(moment).objects if one.instance == event.instance]
                depth = min(kept_rows.x, kept_rows.y, 384 - kept_rows.x, 216 - kept_rows.y)
                assert abs(depth) < 0.01, event
                assert kept_rows.held


def test_every_object_is_plainly_seen_and_covers_really_cover() -> None:
    for seed in range(4):
        script = draw_script(seed, "v", 24.0)
        truth = observe(script, Renderer(script, (384, 216), seed))
        for event in truth.of("inserted"):
            assert max(truth.visibility(event.instance).values()) > 0.9, event
        for event in truth.of("hidden"):
            times = truth.visibility(event.instance)
            assert min(share for time, share in times.items() if event.start < time < event.end) == 0.0, event


def test_a_box_holds_all_pixels_up_to_the_edge() -> None:
    for height, width in ((180, 320), (216, 384)):
        for side in (1, 2, 39):
            shown = np.zeros((height, width), dtype=bool)
            shown[-side:, -side:] = True
            box = sighting(3, "clip-1", "clip", shown, 4 * side * side).box
            assert box is not None
            assert (box.x + box.width, box.y + box.height) == (width, height)
            assert (box.width, box.height) == (side, side)
    nothing = sighting(3, "clip-1", "clip", np.zeros((9, 16), dtype=bool), 10)
    assert (nothing.box, nothing.visibility, nothing.occluded) == (None, 0.0, True)
    whole = sighting(3, "clip-1", "clip", np.ones((9, 16), dtype=bool), 9 * 16)
    assert (whole.visibility, whole.occluded, whole.clear) == (1.0, False, True)


def test_tracks_name_the_video_and_the_moments_of_the_log(folder: Path) -> None:
    for name in videos(folder):
        log, tracks = truth_of(folder, name)
        assert tracks.video.model_dump() == {
            "id": name,
            "file": f"{name}.mp4",
            "width": 320,
            "height": 180,
            "seconds": SECONDS,
            "fps": FPS,
            "procedure": "simulated procedure",
        }
        for kind, edge, moment in (("inserted", "start", "insertion"), ("retrieved", "end", "retrieval")):
            logged = {(event.instance, getattr(event, edge)) for event in log.events if event.kind == kind}
            assert {(one.instance, one.time) for one in tracks.moments if one.kind == moment} == logged


def test_a_script_without_events_is_just_tissue() -> None:
    truth = observe(
        Script(video="v", seconds=8.0, events=()), Renderer(Script(video="v", seconds=8.0, events=()), (256, 144), 0)
    )
    assert (truth.annotation.sightings, truth.annotation.moments, truth.annotation.video.seconds) == ((), (), 8.0)


def test_the_picture_moves_and_is_textured() -> None:
    script = Script(video="v", seconds=8.0, events=())
    renderer = Renderer(script, (256, 144), 0)
    one, other = (renderer.picture(time).pixels.astype(float) for time in (0.0, 3.0))
    assert one.std() > 20
    assert np.abs(one - other).mean() > 5
    red, green, blue = one.reshape(-1, 3).mean(axis=0)
    assert red > 1.4 * green > 1.2 * blue


def test_progress_is_told_per_video(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    simulate(tmp_path / "a", videos=2, seconds=8, size=(256, 144), progress=lambda *done: told.append(done))
    assert told == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"videos": 0}, "videos: found 0, expected 1 to 1000"),
        ({"seconds": 3.0}, "seconds: found 3, expected 8 to 3600"),
        ({"fps": 2}, "fps: found 2, expected 5 to 60"),
        ({"size": (100, 80)}, "width: found 100, expected 256 to 1920"),
        ({"size": (321, 180)}, "size: found 321x180, expected even numbers of pixels"),
        ({"size": (1000, 200)}, "size: found 1000x200, expected a width of 1.2 to 2.4 times the height"),
        ({"questions_per_video": 0}, "questions_per_video: found 0, expected 1 to 60"),
    ],
)
def test_arguments_out_of_range_write_nothing(tmp_path: Path, arguments: dict[str, int], error: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(error)}$"):
        simulate(tmp_path / "out", **arguments)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(InputError, match="found something there already, expected a new or an empty folder"):
        simulate(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
