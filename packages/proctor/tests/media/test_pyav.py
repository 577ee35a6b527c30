"""Files are opened in one function, which works with PyAV 18 and 19 (Python 3.12 and newer get 19)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest

import proctor
from proctor.media.audio import audio_duration
from proctor.media.pyav import exact, readable_tags
from proctor.media.video import probe
from proctor.media.video_clock import read_index
from tests.support.sounds import tones, write_sound, write_video

SOURCES = Path(proctor.__file__).parent


class Ratio:
    """As `av.AVRational` of PyAV 19: never None, false where it is not stated."""

    def __init__(self, top: int, bottom: int) -> None:
        self.numerator, self.denominator = top, bottom

    def __bool__(self) -> bool:
        return self.numerator != 0 and self.denominator != 0


@pytest.fixture
def nineteen(monkeypatch: pytest.MonkeyPatch) -> None:
    """`av.open` as in PyAV 19, which takes nothing that says how tags are read."""
    really: Any = av.open

    def opened(file: Any, mode: str | None = None, **given: Any) -> Any:
        for name in ("metadata_errors", "metadata_encoding", "stream_options"):
            if name in given:
                raise TypeError(f"open() got an unexpected keyword argument {name!r}")
        return really(file, mode, **given)

    monkeypatch.setattr(av, "open", opened)
    monkeypatch.setattr(av, "__version__", "19.0.2")


def test_videos_and_sounds_open_with_the_arguments_of_version_19(nineteen: None, tmp_path: Path) -> None:
    samples = tones(1.0, [(0.2, 0.8, 440.0)])
    video, sound = write_video(tmp_path / "a.mp4", 1.0, samples), write_sound(tmp_path / "a.wav", samples)
    assert probe(video).fps == 10
    assert len(read_index(video).pts) == 10
    assert audio_duration(sound) == pytest.approx(1)


@pytest.mark.parametrize("unset", [None, Ratio(0, 1), Ratio(0, 0), Ratio(1, 0)])
def test_a_ratio_that_no_version_states_is_replaced(unset: Any) -> None:
    assert exact(unset, Fraction(1, 3)) == Fraction(1, 3)


def test_ratios_of_both_versions_are_the_same_fractions() -> None:
    for stated in (Ratio(1001, 30000), Fraction(1001, 30000)):
        found = exact(stated, Fraction(1))  # type: ignore[arg-type]
        assert type(found) is Fraction
        assert found * 30000 == 1001


def test_tags_in_another_encoding_can_be_written_as_utf_8() -> None:
    tags = readable_tags({"title": b"M\xfcller".decode("utf-8", "surrogateescape"), "artist": "Åsa"})
    assert tags == {"title": "M\ufffdller", "artist": "Åsa"}
    assert "".join(tags.values()).encode()


def test_nothing_else_opens_a_file_for_reading() -> None:
    others = [path for path in sorted(SOURCES.rglob("*.py")) if path != SOURCES / "media" / "pyav.py"]
    assert not [f"{path.name}:{call.lineno}" for path in others for call in readings(ast.parse(path.read_text()))]


def readings(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls of `av.open` that do not write."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "av.open":
            modes = [one.value for one in call.args[1:2] if isinstance(one, ast.Constant)]
            if modes != ["w"]:
                yield call
