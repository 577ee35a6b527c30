"""What a system gets where the evidence is hidden, where as much else is, and where it is cut out or shown alone."""

from __future__ import annotations

import asyncio
import io
from math import ceil, floor
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

from proctor.core import (
    AudioClip,
    ConfigurationError,
    Evidence,
    EvidenceBox,
    EvidenceWindow,
    Frame,
    Image,
    InputError,
    Item,
    Media,
    Region,
    VideoClip,
)
from proctor.core.formats import BinaryFormat
from proctor.media import (
    CONDITIONS,
    ConditionContext,
    MediaLibrary,
    MediaSettings,
    PlaysSounds,
    RecordsShown,
    ShowsFiles,
    ShowsOriginals,
    from_jpegs,
    shown_again,
    view,
)
from tests.support.clock_video import ClockVideo, read_clock, write_clock_video
from tests.support.jpeg_planes import assert_same_but_for, planes_of
from tests.support.sent_pictures import sent_pictures
from tests.support.sounds import heard, sounding, tones, write_sound, write_video

CLOSE = 6
"""Levels of 255 by which black in a JPEG may differ from 0."""

BESIDE_AN_EDGE = 24
"""The same in a block that is black in part: it rings with what is beside the black, see `test_hidden_pixels.py`."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clock of 20 s at ten pictures a second; stills with a coloured pattern; sound from 1 to 9 s."""
    root = tmp_path_factory.mktemp("media")
    write_clock_video(root / "clock.mp4", ClockVideo(times_ms=range(0, 20000, 100), rate=10))
    for name in "AB":
        rng = np.random.default_rng(ord(name))
        pattern = rng.integers(0, 255, (6, 8, 3), dtype=np.uint8).repeat(20, axis=0).repeat(20, axis=1)
        Pillow.fromarray(pattern).save(root / f"still-{name}.png")
    write_video(root / "spoken.mp4", 10.0, tones(10.0, [(1.0, 9.0, 500.0)]))
    write_sound(root / "spoken.wav", tones(10.0, [(1.0, 9.0, 500.0)]))
    return root


@pytest.fixture(scope="module")
def library(root: Path) -> MediaLibrary:
    return MediaLibrary(root, cache_dir=root / "cache")


def item(*media: Media, name: str = "q1", **evidence: Any) -> Item:
    found = Evidence(**evidence) if evidence else None
    return Item(id=name, group="g", question="?", answer=BinaryFormat(), media=media, evidence=found)


CLIP = VideoClip(source="clock.mp4", start=4.0, end=14.0)
BOX: dict[str, Any] = {"x": 0.25, "y": 0.25, "width": 0.25, "height": 0.5}
WINDOWED = item(CLIP, windows=[EvidenceWindow(start=6.0, end=8.0)])
BOXED = item(CLIP, boxes=[EvidenceBox(**BOX, start=6.0, end=8.0)])
BOTH = item(CLIP, windows=[EvidenceWindow(start=10, end=11)], boxes=[EvidenceBox(**BOX, start=6.0, end=8.0)])


def show(library: MediaLibrary, asked: Item, condition: str, seed: int = 0, **request: Any) -> list[Frame]:
    return asyncio.run(view(asked, condition, library, seed=seed).frames(**request))


def times(frames: list[Frame]) -> list[float | None]:
    return [frame.time for frame in frames]


def pixels(jpeg: bytes) -> NDArray[np.int64]:
    with Pillow.open(io.BytesIO(jpeg)) as opened:
        return np.asarray(opened.convert("RGB"), dtype=np.int64)


def is_black(jpeg: bytes) -> bool:
    return int(pixels(jpeg).max()) == 0


def scene(library: MediaLibrary, asked: Item, seed: int = 0) -> ConditionContext:
    return ConditionContext(asked, (), seed, library, whole=True)


def test_a_window_is_black_and_the_rest_is_the_same_to_the_byte(library: MediaLibrary) -> None:
    plain, shown = (show(library, WINDOWED, name, fps=10.0) for name in ("video", "occlude-evidence"))
    assert [(frame.time, frame.label) for frame in shown] == [(frame.time, frame.label) for frame in plain]
    for before, after in zip(plain, shown, strict=True):
        assert before.time is not None
        if 6.0 <= before.time < 8.0:
            assert is_black(after.jpeg)
        else:
            assert after.jpeg == before.jpeg


def test_a_picture_that_is_still_on_display_is_hidden_too(library: MediaLibrary) -> None:
    """Pictures change every tenth: of a window from 6.05 to 6.15 s two are hidden, however a system asks."""
    asked = item(CLIP, windows=[EvidenceWindow(start=6.05, end=6.15)])
    requests: list[dict[str, Any]] = [{"window": (5.9, 6.4), "fps": 100.0}, {"window": (6.0, 6.2), "count": 40}]
    for request in requests:
        shown = show(library, asked, "occlude-evidence", **request)
        black = {round(frame.time or 0, 4) for frame in shown if is_black(frame.jpeg)}
        clear = {read_clock(frame.jpeg) for frame in shown if not is_black(frame.jpeg)}
        assert min(black) >= 6.0 - 1e-6
        assert max(black) < 6.2
        assert not clear & {60, 61}


def test_a_box_is_black_and_the_rest_is_the_same(library: MediaLibrary) -> None:
    plain, shown = (show(library, BOXED, name, fps=10.0) for name in ("video", "occlude-evidence"))
    for before, after in zip(plain, shown, strict=True):
        assert before.time is not None
        if not 6.0 <= before.time < 8.0:
            assert after.jpeg == before.jpeg
            continue
        inside = np.zeros((96, 192), dtype=bool)
        inside[24:72, 48:96] = True
        assert pixels(after.jpeg)[inside].max() <= CLOSE
        assert_same_but_for(inside, before.jpeg, after.jpeg)


def test_what_is_hidden_depends_on_no_request(library: MediaLibrary) -> None:
    """An agent that asks for one moment after the other sees what the whole shows, under each condition and seed."""
    for condition in ("occlude-evidence", "occlude-elsewhere"):
        for seed in (0, 1):
            whole = {frame.time: frame.jpeg for frame in show(library, BOTH, condition, seed, fps=10.0)}
            for time in np.arange(4.0, 14.0, 0.5):
                (frame,) = show(library, BOTH, condition, seed, fps=10.0, window=(float(time), float(time) + 0.1))
                assert frame.jpeg == whole[frame.time]


def test_elsewhere_is_drawn_by_item_and_seed_and_never_is_the_evidence(library: MediaLibrary) -> None:
    def black(name: str, seed: int) -> tuple[float | None, ...]:
        asked = WINDOWED.model_copy(update={"id": name})
        return tuple(
            frame.time for frame in show(library, asked, "occlude-elsewhere", seed, fps=10.0) if is_black(frame.jpeg)
        )

    drawn = {black(name, seed) for name in ("q1", "q2", "q3") for seed in (0, 1, 2)}
    assert len(drawn) > 5
    assert black("q1", 0) == black("q1", 0)
    for found in drawn:
        assert len(found) == 20
        assert not any(time is not None and 6.0 <= time < 8.0 for time in found)


def test_cut_evidence_spreads_frames_over_what_is_left(library: MediaLibrary) -> None:
    shown = show(library, WINDOWED, "cut-evidence", count=4)  # 8 s are left: 1, 3, 5 and 7 s of them
    assert times(shown) == pytest.approx([5.0, 9.0, 11.0, 13.0])
    assert [read_clock(frame.jpeg) for frame in shown] == [50, 90, 110, 130]
    every = show(library, WINDOWED, "cut-evidence", fps=10.0)
    assert [read_clock(frame.jpeg) for frame in every] == [*range(40, 60), *range(80, 140)]
    assert show(library, WINDOWED, "cut-evidence", fps=10.0, window=(6.2, 7.9)) == []
    assert [read_clock(frame.jpeg) for frame in show(library, BOTH, "cut-evidence", fps=10.0)] == [
        *range(40, 60), *range(80, 100), *range(110, 140)
    ]  # fmt: skip


def test_only_evidence_spreads_frames_over_it(library: MediaLibrary) -> None:
    shown = show(library, WINDOWED, "only-evidence", count=4)
    assert times(shown) == pytest.approx([6.25, 6.75, 7.25, 7.75])
    every = show(library, BOTH, "only-evidence", fps=10.0)
    assert [read_clock(frame.jpeg) for frame in every] == [*range(60, 80), *range(100, 110)]
    assert show(library, WINDOWED, "only-evidence", fps=10.0, window=(8.0, 9.0)) == []
    assert len(show(library, WINDOWED, "only-evidence", fps=1.0)) == 2


STILLS = (Image(source="still-A.png", label="A"), Image(source="still-B.png", label="B"))


def test_of_stills_a_box_is_black_or_the_picture_left_out(library: MediaLibrary) -> None:
    asked = item(*STILLS, boxes=[EvidenceBox(**BOX, medium=1)])
    plain, shown = show(library, asked, "video"), show(library, asked, "occlude-evidence")
    assert shown[0].jpeg == plain[0].jpeg
    inside = np.zeros((120, 160), dtype=bool)
    inside[30:90, 40:80] = True
    assert planes_of(shown[1].jpeg)[0][inside].max() <= BESIDE_AN_EDGE
    assert_same_but_for(inside, plain[1].jpeg, shown[1].jpeg)
    assert [frame.label for frame in show(library, asked, "cut-evidence")] == ["A"]
    assert [frame.label for frame in show(library, asked, "only-evidence")] == ["B"]
    other = show(library, asked, "occlude-elsewhere")
    assert other[0].jpeg == plain[0].jpeg
    changed = planes_of(other[1].jpeg)[0] != planes_of(plain[1].jpeg)[0]
    assert not changed[32:88, 40:80].any()  # the blocks within
    assert changed.any()
    cut_to = item(
        Image(source="still-A.png", region=Region(x=0.5, y=0, width=0.5, height=1)), boxes=[EvidenceBox(**BOX)]
    )
    (part,) = show(library, cut_to, "occlude-evidence")
    assert planes_of(part.jpeg)[0][30:90, 20:40].max() <= BESIDE_AN_EDGE  # of what is shown, 80 by 120


def sounds(library: MediaLibrary, asked: Item, condition: str) -> list[tuple[float, float]]:
    shown = view(asked, condition, library)
    assert isinstance(shown, PlaysSounds)
    return [sounding(heard(sound.wav)) for sound in asyncio.run(shown.sounds())]


def test_sound_is_silent_in_hidden_windows(library: MediaLibrary) -> None:
    for medium in (VideoClip(source="spoken.mp4", audio=True), AudioClip(source="spoken.wav")):
        asked = item(medium, windows=[EvidenceWindow(start=0.5, end=4.0)])
        for condition in ("occlude-evidence", "cut-evidence"):
            assert sounds(library, asked, condition) == [pytest.approx((4.0, 9.0), abs=0.05)]
        assert sounds(library, asked, "only-evidence") == [pytest.approx((1.0, 4.0), abs=0.05)]
        shown = view(asked, "occlude-elsewhere", library)
        assert isinstance(shown, PlaysSounds)
        (sound,) = asyncio.run(shown.sounds())
        quiet = np.abs(heard(sound.wav)[16_000 * 4 : 16_000 * 9]).reshape(50, -1).max(axis=1) < 0.01
        assert 25 <= quiet.sum() <= 35  # 3.5 s, of which part is where nothing is heard anyway
        assert np.abs(heard(sound.wav)[16_000 : 16_000 * 4]).reshape(30, -1).max(axis=1).min() > 0.1
    boxed = item(VideoClip(source="spoken.mp4", audio=True), boxes=[EvidenceBox(**BOX, start=1, end=5)])
    assert sounds(library, boxed, "occlude-evidence") == [pytest.approx((1.0, 9.0), abs=0.05)]


def test_items_without_evidence_are_refused_in_one_line(library: MediaLibrary) -> None:
    for condition in ("occlude-evidence", "occlude-elsewhere", "cut-evidence", "only-evidence"):
        assert CONDITIONS.get(condition).unable(scene(library, item(CLIP))) == "no evidence"
        assert CONDITIONS.get(condition).unable(scene(library, WINDOWED)) == ""
        with pytest.raises(
            InputError, match=r"^item 'q1': found no evidence, expected evidence that the condition can use$"
        ):
            show(library, item(CLIP), condition)
        assert "evidence" in CONDITIONS.get(condition).unfit([item(CLIP)])
        assert CONDITIONS.get(condition).unfit([item(CLIP), WINDOWED]) == ""


def test_what_is_not_possible_is_said(library: MediaLibrary) -> None:
    most = item(CLIP, windows=[EvidenceWindow(start=4.0, end=10.0)])
    assert CONDITIONS.get("occlude-elsewhere").unable(scene(library, most)) == "no room for as much elsewhere"
    assert CONDITIONS.get("occlude-evidence").unable(scene(library, most)) == ""
    every = item(CLIP, windows=[EvidenceWindow(start=3.0, end=15.0)])
    assert CONDITIONS.get("cut-evidence").unable(scene(library, every)) == "the evidence is all that is shown"
    with pytest.raises(InputError, match="found no room for as much elsewhere"):
        show(library, most, "occlude-elsewhere")
    late = item(VideoClip(source="clock.mp4"), windows=[EvidenceWindow(start=30.0, end=31.0)])
    for condition in ("occlude-evidence", "occlude-elsewhere", "cut-evidence", "only-evidence"):
        assert CONDITIONS.get(condition).unable(scene(library, late)) == "evidence after the end of the file"


@pytest.mark.parametrize("condition", ["occlude-evidence", "occlude-elsewhere"])
def test_a_video_file_is_black_in_the_same_places(library: MediaLibrary, condition: str) -> None:
    shown = view(WINDOWED, condition, library)
    assert isinstance(shown, ShowsFiles)
    (file,) = asyncio.run(shown.files())
    expected = {
        round(frame.time or 0, 1): is_black(frame.jpeg) for frame in show(library, WINDOWED, condition, fps=10.0)
    }
    with av.open(io.BytesIO(file.mp4), "r") as container:
        found = {
            round(4.0 + float(frame.time or 0), 1): int(frame.to_ndarray(format="gray").max()) < 20
            for frame in container.decode(video=0)
        }
    assert found == expected
    assert sum(found.values()) == 20


def test_boxes_are_black_in_a_video_file_by_item_and_seed(library: MediaLibrary) -> None:
    made = {}
    for condition, seed in (("occlude-evidence", 0), ("occlude-elsewhere", 0), ("occlude-elsewhere", 1)):
        shown = view(BOXED, condition, library, seed=seed)
        assert isinstance(shown, ShowsFiles)
        (file,) = asyncio.run(shown.files())
        made[condition, seed] = file.mp4
    assert len(set(made.values())) == 3  # none comes from another one's cache
    with av.open(io.BytesIO(made["occlude-evidence", 0]), "r") as container:
        for frame in container.decode(video=0):
            grey = frame.to_ndarray(format="gray")[24:72, 48:96]
            hidden = 2.0 <= round(float(frame.time or 0), 3) < 4.0
            assert (int(grey[4:-4, 4:-4].max()) < 40) is hidden


def test_pictures_without_scaling_are_hidden_too(library: MediaLibrary) -> None:
    asked = item(*STILLS, boxes=[EvidenceBox(**BOX, medium=1)])
    small = MediaLibrary(library.root, MediaSettings(max_side=80), library.cache_dir)
    shown = view(asked, "occlude-evidence", small)
    assert isinstance(shown, ShowsOriginals)
    first, second = asyncio.run(shown.originals())
    assert pixels(second.jpeg).shape == (120, 160, 3)
    assert planes_of(second.jpeg)[0][30:90, 40:80].max() <= BESIDE_AN_EDGE
    assert pixels(first.jpeg)[30:90, 40:80].max() > 100
    (_, scaled) = asyncio.run(shown.frames())
    assert planes_of(scaled.jpeg)[0][15:45, 20:40].max() <= BESIDE_AN_EDGE  # of 80 by 60


@pytest.mark.parametrize("condition", ["occlude-evidence", "occlude-elsewhere", "cut-evidence", "only-evidence"])
def test_what_was_shown_is_shown_again(library: MediaLibrary, condition: str, tmp_path: Path) -> None:
    """Another process with an empty cache makes the same bytes from the media, as `proctor reproduce` does."""
    first = view(BOTH, condition, library, seed=3)
    asyncio.run(first.frames(count=9))
    assert isinstance(first, RecordsShown)
    (record,) = first.shown
    fresh = MediaLibrary(library.root, cache_dir=tmp_path)
    _, again = asyncio.run(shown_again(view(BOTH, condition, fresh, seed=3), record))
    assert record.difference(again) == ""


@pytest.mark.parametrize("condition", ["cut-evidence", "only-evidence"])
def test_a_video_file_with_gaps_is_refused(library: MediaLibrary, condition: str) -> None:
    shown = view(WINDOWED, condition, library)
    assert isinstance(shown, ShowsFiles)
    with pytest.raises(ConfigurationError) as caught:
        asyncio.run(shown.files())
    assert str(caught.value) == (
        f"condition {condition}: found a request for video files, expected frames (--video-as frames): "
        "a video file has no gaps"
    )


def write_bright(path: Path) -> Path:
    """207 pictures, ten a second, of bright patches that change from one to the next: nothing in them is dark."""

    def jpeg(number: int) -> bytes:
        rng = np.random.default_rng(number)
        patches = rng.integers(110, 250, (6, 12, 3), dtype=np.uint8).repeat(16, axis=0).repeat(16, axis=1)
        out = io.BytesIO()
        Pillow.fromarray(patches).save(out, "JPEG", quality=95)
        return out.getvalue()

    path.write_bytes(from_jpegs((number / 10, jpeg(number)) for number in range(207)))
    return path


def evidence_mask(number: int) -> NDArray[np.bool_]:
    """Where the evidence is in the picture of this number, by hand: a box that moves to the right, then a window."""
    mask = np.zeros((96, 192), dtype=bool)
    if 20 <= number < 120:
        step = (number - 20) // 5
        mask[24:48, floor((0.1 + 0.02 * step) * 192) : ceil((0.35 + 0.02 * step) * 192)] = True
    if 150 <= number < 165:
        mask[:] = True
    return mask


def test_what_arrives_at_a_server_is_what_the_condition_says(tmp_path: Path) -> None:
    """207 pictures, sample by sample: black where the evidence is (or where as much is elsewhere), and else as under
    `video`, but for blocks that a box touches; the same to the byte where nothing is hidden."""
    write_bright(tmp_path / "bright.mp4")
    boxes = [
        EvidenceBox(x=0.1 + 0.02 * k, y=0.25, width=0.25, height=0.25, start=2 + k / 2, end=2.5 + k / 2)
        for k in range(20)
    ]
    asked = item(VideoClip(source="bright.mp4"), windows=[EvidenceWindow(start=15.0, end=16.5)], boxes=boxes)
    names = ("video", "occlude-evidence", "occlude-elsewhere")
    plain, hidden, other = (sent_pictures(tmp_path, tmp_path / "cache", asked, name) for name in names)
    assert len(plain) == len(hidden) == len(other) == 207
    for number, pictures in enumerate(zip(plain, hidden, other, strict=True)):
        mask = evidence_mask(number)
        assert planes_of(pictures[0])[0].min() > 60
        if not mask.any():
            assert pictures[1] == pictures[0]
        else:
            assert planes_of(pictures[1])[0][mask].max() <= BESIDE_AN_EDGE
            assert_same_but_for(mask, *pictures[:2])
        black = planes_of(pictures[2])[0] <= BESIDE_AN_EDGE
        if 20 <= number < 120:
            rows, columns = np.flatnonzero(black.any(axis=1)), np.flatnonzero(black.any(axis=0))
            sides = len(rows), len(columns)
            assert black.sum() == sides[0] * sides[1]  # one rectangle
            assert 24 <= sides[0] <= 25  # of the same size, but for whole pixels
            assert 48 <= sides[1] <= 49
            assert (black & mask).sum() <= sides[1]  # at most a row that the evidence touches: the picture is small
            assert_same_but_for(black, pictures[0], pictures[2])
        elif not black.any():
            assert pictures[2] == pictures[0]
        else:
            assert is_black(pictures[2])
            assert not mask.any()
    assert sum(map(is_black, other)) == sum(map(is_black, hidden)) == 15
