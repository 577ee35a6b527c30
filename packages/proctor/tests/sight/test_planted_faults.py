"""Servers with one planted fault each, which really receive less than was sent: each is named, within 64 calls."""

from __future__ import annotations

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
    "shrunk to 224": (served.Sighted(fault=served.shrinks(224)), "shrunk", "shrunk to about 179 to 307"),
    "shrunk to 112": (served.Sighted(fault=served.shrinks(112)), "shrunk", "shrunk to about 100 to 171"),
    "times invented": (served.Sighted(fault=served.invents_times), "times", "Times are invented"),
    "video part ignored": (served.Sighted(fault=served.ignores_video), "video", "The video file is ignored"),
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


def test_a_tone_that_is_not_heard() -> None:
    """Sound is tested where it is asked for by name."""
    deaf = served.Sighted(fault=lambda parts, _: [part for part in parts if part.kind != "sound"])
    result, calls = tried(deaf, routes=("frames", "sound"))
    assert [finding.text for finding in result.findings] == ["The sound is ignored: tones in it are not heard."]
    assert calls <= 64
    result, _ = tried(served.Sighted(), routes=("sound",))
    assert result.routes["sound"].state == "sees"


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
