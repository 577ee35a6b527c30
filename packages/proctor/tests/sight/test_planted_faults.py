"""Servers with one planted fault each, which really receive less than was sent: each is named, within 64 calls."""

from __future__ import annotations

import re

import pytest

from proctor.media import MediaSettings
from tests.support import sighted_server as served
from tests.support.sight_trial import tried

FAULTS = {
    "nothing arrives": (served.Sighted(fault=served.nothing_arrives), "blind", "No picture arrives"),
    "nothing arrives, and it guesses": (
        served.Sighted(fault=served.nothing_arrives, says_nothing="Answer: 137"),
        "blind",
        "No picture arrives",
    ),
    "the first 16": (served.Sighted(fault=served.only_first(16)), "first", "Only the first 16 of 64 frames arrive."),
    "the first": (served.Sighted(fault=served.only_first(1)), "first", "Only the first of 64 frames arrives."),
    "the last 8": (served.Sighted(fault=served.only_last(8)), "last", "Only the last 8 of 64 frames arrive."),
    "every second": (served.Sighted(fault=served.every_second), "dropped", "only every second of 64 arrives"),
    "backwards": (served.Sighted(fault=served.reordered(served.backwards)), "order", "another order"),
    "sorted by size": (served.Sighted(fault=served.reordered(served.by_size)), "order", "another order"),
    "shrunk to 224": (served.Sighted(fault=served.shrinks(224)), "shrunk", "seen as if shrunk to about"),
    "shrunk to 112": (served.Sighted(fault=served.shrinks(112)), "shrunk", "seen as if shrunk to about"),
    "times invented": (served.Sighted(fault=served.invents_times), "times", "Times are invented"),
    "video part ignored": (served.Sighted(fault=served.ignores_video), "video", "The video file is ignored"),
    "labels one frame later": (
        served.Sighted(fault=served.labels_later(1)),
        "times",
        "Times and frames are out of step",
    ),
    "the first 8 s of a video": (
        served.Sighted(of_video=lambda frames: frames[:16]),
        "first",
        "Only the first 8 s of a video file of 64 s arrive.",
    ),
    "the last 16 s of a video": (
        served.Sighted(of_video=lambda frames: frames[-32:]),
        "last",
        "Only the last 16 s of a video file of 64 s arrive.",
    ),
    "a video backwards": (
        served.Sighted(of_video=served.turned),
        "order",
        "The pictures of a video file arrive in another order",
    ),
    "from another request": (served.Caching(), "cached", "Replies come from a cache"),
    "stripped with tools": (served.Sighted(fault=served.strips_with("tools")), "tools", "when tools are given"),
    "stripped with a schema": (
        served.Sighted(fault=served.strips_with("response_format")),
        "schema",
        "when a structured reply is requested",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(fault: str) -> None:
    model, code, text = FAULTS[fault]
    result, calls = tried(model)
    assert [finding.code for finding in result.findings] == [code]
    assert text in result.findings[0].text
    assert result.state == "fault"
    assert result.exit_code == 1
    assert result.calls == calls <= 64


@pytest.mark.parametrize("side", [112, 160, 224])
def test_the_size_that_arrives_is_told(side: int) -> None:
    """Within its range, and by a step of the ladder (4 : 3) at most."""
    result, _ = tried(served.Sighted(fault=served.shrinks(side)), routes=("frames",))
    about, low, high = map(int, re.findall(r"about (\d+) \((\d+) to (\d+)\)", result.findings[0].text)[0])
    assert low <= side <= high
    assert 3 / 4 <= about / side <= 4 / 3


def test_a_mild_loss_of_detail_is_a_note() -> None:
    """Digits of 11 pixels are read and those of 8 are not, though in small pictures they are: no fault."""
    result, _ = tried(served.Sighted(fault=served.shrinks(384)), routes=("frames",), seed=2)
    assert (result.state, result.digits_px) == ("sees", 11)
    assert "seen as if shrunk" in result.notes[0]
    assert "Digits of 8 pixels are lost, of 11 are read." in result.notes[0]


def test_behind_a_cache_nothing_else_is_told() -> None:
    result, _ = tried(served.Caching())
    others = [one for name, one in result.routes.items() if name != "frames"]
    assert {(one.state, one.note) for one in others} == {
        ("could not check", "nothing else can be decided behind a cache")
    }


def test_none_in_a_black_picture_is_no_number() -> None:
    """The question says "If none can be seen, answer 0"."""
    answers_zero = served.Sighted(manner=lambda text, _: "Answer: 0" if "can't see" in text else text)
    result, _ = tried(answers_zero, routes=("frames",))
    assert (result.state, result.notes) == ("sees", ())
    (black,) = [kind for kind in result.kinds if kind.kind == "black"]
    assert (black.wrong, black.nothing_seen) == (0, 1)


def test_a_tone_that_is_not_heard() -> None:
    """Sound is tested where it is asked for by name."""
    deaf = served.Sighted(fault=lambda parts, _: [part for part in parts if part.kind != "sound"])
    result, calls = tried(deaf, routes=("frames", "sound"))
    assert [finding.text for finding in result.findings] == ["The sound is ignored: tones in it are not heard."]
    assert calls <= 64
    result, _ = tried(served.Sighted(), routes=("sound",))
    assert result.routes["sound"].state == "sees"


def test_a_cut_video_is_never_seen_where_no_calls_are_left() -> None:
    """Frames are cut as well, which takes most calls."""
    cut = served.Sighted(fault=served.only_first(16), of_video=lambda frames: frames[:16])
    result, _ = tried(cut)
    assert result.findings[0].code == "first"
    assert result.routes["video"].state in {"fault", "could not check"}


def test_weak_eyes_do_not_hide_a_fault() -> None:
    """One picture in five is misread, and only the first 16 arrive."""
    result, _ = tried(served.Sighted(fault=served.only_first(16), misses=0.2, seed=3))
    assert [finding.code for finding in result.findings] == ["first"]


@pytest.mark.parametrize(
    "settings", [{"fps": 30.0, "max_frames": 8}, {"max_frames": 1}, {"max_frames": 3}, {"max_side": 64}]
)
def test_settings_at_their_ends_are_no_fault(settings: dict[str, float]) -> None:
    """Frames that share a label were taken for replies from a cache."""
    result, _ = tried(served.Sighted(), routes=("frames",), settings=MediaSettings.model_validate(settings))
    assert result.findings == ()
    assert result.routes["frames"].state == "sees"
    same = "Frames less than 0.1 s apart have the same label: whether all arrive was not checked."
    assert (same in result.notes) == ("fps" in settings)


def test_numbers_that_nobody_can_read_show_no_blindness() -> None:
    result, _ = tried(served.Sighted(), routes=("frames",), settings=MediaSettings(max_side=16))
    assert (result.state, result.findings) == ("could not check", ())
    assert "Numbers in pictures of 16 pixels can't be read: test larger ones." in result.notes
