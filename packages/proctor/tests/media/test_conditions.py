"""What a system gets under each condition: the pixels and the times are what the condition says."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from proctor.core import Frame, Image, InputError, Item, Stopwatch, UnknownNameError, VideoClip
from proctor.core.formats import BinaryFormat
from proctor.media import CONDITIONS, MediaLibrary, view
from tests.support.clock_video import ClockVideo, read_clock, write_clock_video


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> MediaLibrary:
    """Two videos of 20 s and 10 s, ten frames a second; the second one counts from 0 as well."""
    root = tmp_path_factory.mktemp("media")
    write_clock_video(root / "long.mp4", ClockVideo(times_ms=range(0, 20000, 100), rate=10))
    write_clock_video(root / "short.mp4", ClockVideo(times_ms=range(0, 10000, 100), rate=10))
    for number, grey in enumerate((60, 120, 180)):
        Pillow.new("RGB", (40 + number, 20), (grey, grey, grey)).save(root / f"still{number}.png")
    return MediaLibrary(root, cache_dir=root / "cache")


def video_item(item_id: str, source: str, start: float, end: float, group: str = "") -> Item:
    clip = VideoClip(source=source, start=start, end=end)
    return Item(id=item_id, group=group or source, question="?", answer=BinaryFormat(), media=(clip,))


ITEM = video_item("q1", "long", 4.0, 14.0)
OTHER = video_item("q2", "short", 0.0, 5.0)


def show(
    library: MediaLibrary,
    condition: str,
    *,
    item: Item = ITEM,
    seed: int = 0,
    others: tuple[Item, ...] = (ITEM, OTHER),
    count: int | None = None,
    fps: float | None = None,
    window: tuple[float, float] | None = None,
) -> list[Frame]:
    shown = view(item, condition, library, seed=seed, others=others)
    assert shown.condition == condition
    return asyncio.run(shown.frames(count=count, fps=fps, window=window))


def clocks(frames: list[Frame]) -> list[int]:
    return [read_clock(frame.jpeg) for frame in frames]


def times(frames: list[Frame]) -> list[float | None]:
    return [frame.time for frame in frames]


def test_all_conditions_are_listed_with_a_line_each() -> None:
    expected = [
        "black",
        "cut-evidence",
        "muted",
        "occlude-elsewhere",
        "occlude-evidence",
        "only-evidence",
        "other-video",
        "reversed",
        "shuffled",
        "single-frame",
        "speech-only",
        "text-only",
        "video",
    ]
    assert CONDITIONS.names() == expected
    summaries = {CONDITIONS.get(name).summary for name in expected}
    assert len(summaries) == len(expected)


def test_an_unknown_condition_is_refused_at_once(library: MediaLibrary) -> None:
    with pytest.raises(UnknownNameError, match="unknown condition 'blind': expected one of black, "):
        view(ITEM, "blind", library)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("blind", "text-only"),
        ("none", "text-only"),
        ("no-video", "text-only"),
        ("No_Video", "text-only"),
        ("blank", "black"),
        ("backwards", "reversed"),
        ("shufled", "shuffled"),
    ],
)
def test_a_condition_by_another_word_is_told_by_its_name(typed: str, meant: str) -> None:
    listed = (
        "expected one of black, cut-evidence, muted, occlude-elsewhere, occlude-evidence, only-evidence, other-video, "
        "reversed, shuffled, single-frame, speech-only, text-only, video"
    )
    with pytest.raises(UnknownNameError, match=f"unknown condition '{typed}': {listed}; did you mean '{meant}'\\?$"):
        CONDITIONS.get(typed)


def test_text_only_shows_nothing_and_opens_nothing(tmp_path: Path) -> None:
    nowhere = MediaLibrary(None, cache_dir=tmp_path / "never")
    assert view(ITEM, "text-only", nowhere).span is None
    assert show(nowhere, "text-only", fps=1.0) == []
    assert not (tmp_path / "never").exists()


def test_video_shows_the_clip(library: MediaLibrary) -> None:
    frames = show(library, "video", fps=1.0)
    assert times(frames) == [4.0 + k for k in range(10)]
    assert clocks(frames) == [40 + 10 * k for k in range(10)]
    assert view(ITEM, "video", library).span == (4.0, 14.0)


def test_black_keeps_number_sizes_times_and_labels(library: MediaLibrary) -> None:
    plain, black = show(library, "video", count=7), show(library, "black", count=7)
    assert [(f.time, f.label) for f in black] == [(f.time, f.label) for f in plain]
    for before, after in zip(plain, black, strict=True):
        with Pillow.open(io.BytesIO(before.jpeg)) as one, Pillow.open(io.BytesIO(after.jpeg)) as other:
            assert other.size == one.size
            assert np.asarray(other).max() == 0
    assert view(ITEM, "black", library).span == (4.0, 14.0)


def test_shuffled_shows_the_same_frames_while_times_ascend(library: MediaLibrary) -> None:
    plain, shuffled = show(library, "video", fps=1.0), show(library, "shuffled", fps=1.0)
    assert [(f.time, f.label) for f in shuffled] == [(f.time, f.label) for f in plain]
    assert sorted(f.jpeg for f in shuffled) == sorted(f.jpeg for f in plain)
    assert clocks(shuffled) != clocks(plain)


def test_shuffled_is_drawn_by_seed_and_item(library: MediaLibrary) -> None:
    def order(seed: int, item_id: str) -> list[int]:
        item = ITEM.model_copy(update={"id": item_id})
        return clocks(show(library, "shuffled", item=item, seed=seed, fps=1.0))

    assert order(0, "q1") == order(0, "q1")
    assert len({tuple(order(*who)) for who in [(0, "q1"), (1, "q1"), (0, "q2")]}) == 3


def test_two_frames_are_always_exchanged_by_shuffling(library: MediaLibrary) -> None:
    for seed in range(6):
        assert clocks(show(library, "shuffled", seed=seed, count=2)) == [115, 65]
    assert clocks(show(library, "shuffled", count=1)) == [90]


def test_many_small_windows_do_not_give_the_order_away(library: MediaLibrary) -> None:
    found = [read_clock(show(library, "shuffled", count=1, window=(4.0 + k, 5.0 + k))[0].jpeg) for k in range(10)]
    true = [45 + 10 * k for k in range(10)]
    assert all(40 <= number < 140 for number in found)
    assert sum(one == other for one, other in zip(found, true, strict=True)) <= 3
    assert found != sorted(found)


def test_reversed_runs_backwards(library: MediaLibrary) -> None:
    plain, backwards = show(library, "video", fps=1.0), show(library, "reversed", fps=1.0)
    assert times(backwards) == times(plain)
    assert [f.jpeg for f in backwards] == [f.jpeg for f in plain][::-1]
    window = show(library, "reversed", count=1, window=(4.0, 5.0))
    assert (times(window), clocks(window)) == ([4.5], [135])


@pytest.mark.parametrize("wish", [{"count": 8}, {"fps": 2.0}, {"fps": 1.0, "window": (4.0, 5.0)}])
def test_single_frame_is_the_middle_whatever_is_asked(library: MediaLibrary, wish: dict[str, float]) -> None:
    frames = show(library, "single-frame", **wish)  # type: ignore[arg-type]
    assert [(f.time, f.label, read_clock(f.jpeg)) for f in frames] == [(9.0, "t = 9.0 s", 90)]


def test_other_video_keeps_the_items_times(library: MediaLibrary) -> None:
    """Ten seconds from 4 s are shown with the five seconds from 0 s of the other item."""
    frames = show(library, "other-video", count=5)
    assert times(frames) == [5.0, 7.0, 9.0, 11.0, 13.0]
    assert clocks(frames) == [5, 15, 25, 35, 45]
    assert view(ITEM, "other-video", library, others=[OTHER]).span == (4.0, 14.0)


def test_other_video_never_shows_the_items_own(library: MediaLibrary) -> None:
    same_video = video_item("q3", "long", 0.0, 2.0)
    with pytest.raises(InputError) as caught:
        show(library, "other-video", others=(ITEM, same_video), count=2)
    assert str(caught.value) == (
        "item 'q1', condition 'other-video': found no other item with other media of the same kind, "
        "expected at least one"
    )


def test_other_video_is_a_seeded_choice(library: MediaLibrary) -> None:
    candidates = tuple(video_item(f"o{k}", "short", float(k), k + 1.0) for k in range(8))
    seen = {seed: clocks(show(library, "other-video", seed=seed, others=candidates, count=1)) for seed in range(6)}
    assert seen[3] == clocks(show(library, "other-video", seed=3, others=candidates[::-1], count=1))
    assert len({tuple(numbers) for numbers in seen.values()}) > 1


def stills_item() -> Item:
    media = (
        Image(source="still2.png", label="B"),
        Image(source="still0.png", label="A"),
        Image(source="still1", label="C"),
    )
    return Item(id="s", group="s", question="?", answer=BinaryFormat(), media=media)


def test_images_come_in_the_items_order_with_its_labels(library: MediaLibrary) -> None:
    frames = show(library, "video", item=stills_item(), count=2)
    assert [(f.label, f.time) for f in frames] == [("B", None), ("A", None), ("C", None)]
    assert [width(f) for f in frames] == [42, 40, 41]
    assert view(stills_item(), "video", library).span is None


def test_conditions_on_images(library: MediaLibrary) -> None:
    item = stills_item()
    assert [(f.label, width(f)) for f in show(library, "reversed", item=item)] == [("B", 41), ("A", 40), ("C", 42)]
    shuffled = show(library, "shuffled", item=item)
    assert [f.label for f in shuffled] == ["B", "A", "C"]
    assert sorted(width(f) for f in shuffled) == [40, 41, 42]
    assert [width(f) for f in shuffled] != [42, 40, 41]
    assert [(f.label, width(f)) for f in show(library, "single-frame", item=item)] == [("B", 42)]
    assert [width(f) for f in show(library, "black", item=item)] == [42, 40, 41]


def width(frame: Frame) -> int:
    with Pillow.open(io.BytesIO(frame.jpeg)) as opened:
        return opened.size[0]


def test_two_clips_are_told_apart_and_share_the_cap(library: MediaLibrary) -> None:
    item = ITEM.model_copy(update={"media": (*ITEM.media, *OTHER.media)})
    frames = show(library, "video", item=item, count=1)
    assert [(f.label, read_clock(f.jpeg)) for f in frames] == [("clip 1, t = 9.0 s", 90), ("clip 2, t = 2.5 s", 25)]


def test_media_time_is_apart_from_the_models(library: MediaLibrary) -> None:
    async def watched() -> float:
        watch = Stopwatch()
        with watch.running():
            await view(ITEM, "video", library).frames(fps=3.0)
        return watch.timing().media_s or 0.0

    assert asyncio.run(watched()) > 0
