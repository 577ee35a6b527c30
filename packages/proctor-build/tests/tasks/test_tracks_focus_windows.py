"""Questions on frames and segments: read again from the log, which knows the whole procedure, and by the reader."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from proctor.core import InputError, generator
from proctor.tasks.focus import READER
from proctor.tasks.simulated.script import Event
from proctor.tracks import Annotation
from proctor_build import complete
from proctor_build.focus.builder import ask_focus, build_focus
from proctor_build.focus.plan import RULES_OF_TRACK, FocusPlan, windows_of
from proctor_build.focus.rules import ATTRIBUTE_RULES, FOCUS_RULES
from tests.support.drawn_tracks import drawn
from tests.support.hand_tracks import HAND
from tests.support.log_reading import disagreements, times


@pytest.fixture(scope="module")
def many() -> tuple[list[Annotation], dict[str, list[Event]]]:
    found = {f"v{number:02d}": drawn(5, f"v{number:02d}", 60.0) for number in range(12)}
    return [annotation for annotation, _ in found.values()], {name: log for name, (_, log) in found.items()}


@pytest.mark.parametrize(
    ("track", "rules"),
    [("frame", RULES_OF_TRACK["frame"]), ("segment", RULES_OF_TRACK["segment"])],
    ids=["frame", "segment"],
)
def test_every_answer_is_that_of_the_log(
    many: tuple[list[Annotation], dict[str, list[Event]]], tmp_path: Path, track: str, rules: tuple[str, ...]
) -> None:
    plan = FocusPlan(per_video=40, times=5, track=track, segment_s=25, seed=3)
    built = build_focus([complete(one) for one in many[0]], tmp_path / "focus", plan)
    events = {name: [event.model_dump(mode="json") for event in log] for name, log in many[1].items()}
    wrong, read = disagreements(built, events, {one.video.id: one for one in many[0]})
    assert wrong == []
    asked = {one.rule for one in built.references}
    assert asked == set(rules) - set(ATTRIBUTE_RULES) == set(read)
    loaded = READER.on_track(track).load(tmp_path / "focus")
    assert len(loaded.items) == len(built.requests) >= 12 * 15
    other = "segment" if track == "frame" else "frame"
    with pytest.raises(InputError, match=f"track {other}"):
        READER.on_track(other).load(tmp_path / "focus")


def test_a_frame_shows_one_second_and_a_segment_its_length() -> None:
    annotation, _ = drawn(5, "v01", 60.0)
    frames = ask_focus([annotation], FocusPlan(per_video=30, times=5, track="frame"))
    assert all(one.start_time == one.end_time for one in frames.requests)
    assert len({one.end_time for one in frames.requests}) == 6
    assert not [one for one in frames.requests if " at 00:" in one.question], "the frame has no other time"
    segments = ask_focus([annotation], FocusPlan(per_video=40, times=3, track="segment", segment_s=20))
    assert {one.end_time - one.start_time for one in segments.requests} == {20.0}
    for request, reference in zip(segments.requests, segments.references, strict=True):
        if reference.format == "time":
            assert all(request.start_time < time < request.end_time for time in times(reference.answer))
            assert reference.format_kwargs["threshold_seconds"] == pytest.approx(1 + 20 * 4 / 360)


def test_what_came_before_a_segment_is_not_asked_in_it() -> None:
    """From 42 to 48 s a clip is in view that came in before, and nothing happens."""
    plan = FocusPlan(per_video=200, times=40, track="segment", segment_s=6)
    built = ask_focus([HAND], plan)
    found = Counter[str]()
    for request, reference in zip(built.requests, built.references, strict=True):
        if request.start_time >= 42 and request.end_time <= 48:
            found[reference.rule] += 1
            if reference.rule == "seen":
                assert reference.answer == "no", request.question
    assert "when-seen" not in found
    inside = {"remain", "remain-all", "all-out", "nothing-left", "left-behind", "must-leave"}
    assert not inside & {one.rule for one in built.references}
    assert inside <= set(FOCUS_RULES)


def test_segments_are_cut_where_nothing_comes_or_goes() -> None:
    for start, end in windows_of(HAND, 7, 50, generator(0, "test")):
        for moment in HAND.moments:
            assert min(abs(moment.time - start), abs(moment.time - end)) >= 1
    assert windows_of(HAND, 300, 3, generator(0, "test"))[-1] == (0.0, 100.0), "no longer than the video"


@pytest.mark.parametrize(
    ("track", "seconds", "message"),
    [("film", 60, "track: found 'film', expected one of frame"), ("segment", 301, "segment_s: found 301")],
)
def test_plans_out_of_range(track: str, seconds: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        FocusPlan(track=track, segment_s=seconds)
