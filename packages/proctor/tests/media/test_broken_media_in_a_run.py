"""Broken media and a run: one line before anything is asked, or left out and counted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import av
import pytest
from PIL import Image as Pillow
from pydantic import JsonValue

from proctor.core import (
    Answer,
    Benchmark,
    ConfigurationError,
    Image,
    InputError,
    Item,
    Media,
    Reference,
    VideoClip,
    View,
)
from proctor.core.formats import BinaryFormat
from proctor.media import MediaLibrary
from proctor.metrics import AccuracyScorer
from proctor.runs import Limits, Plan, PlanOptions, Store, execute, plan
from tests.support.clock_video import ClockVideo, write_clock_video


class Looker:
    """Says yes, after it has looked."""

    name = "looker"

    def __init__(self) -> None:
        self.saw: dict[str, int] = {}
        self.settings: dict[str, JsonValue] = {}

    def supports(self, item: Item) -> bool:
        return True

    async def answer(self, item: Item, view: View) -> Answer:
        self.saw[item.id] = len(await view.frames(count=2))
        return Answer(item_id=item.id, text="yes")


def question(item_id: str, *media: Media) -> Item:
    return Item(
        id=item_id, group=item_id, question="?", answer=BinaryFormat(), media=media, reference=Reference(answer=True)
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """One sound video, and every way of being broken."""
    good = write_clock_video(tmp_path / "good.mp4", ClockVideo(times_ms=range(0, 4000, 100), rate=10))
    write_clock_video(tmp_path / "fine.webm", ClockVideo(times_ms=range(0, 3000, 100), codec="libvpx-vp9"))
    (tmp_path / "cut.mp4").write_bytes(good.read_bytes()[:3000])
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "folder.mp4").mkdir()
    Pillow.new("RGB", (20, 20)).save(tmp_path / "still.png")
    (tmp_path / "still.png").rename(tmp_path / "named.mp4")
    with av.open(str(tmp_path / "sound.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=16000)
        assert isinstance(stream, av.AudioStream)
        frame = av.AudioFrame(format="fltp", layout="mono", samples=1024)
        frame.sample_rate = 16000
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    unknown = good.read_bytes().replace(b"avc1", b"zzzz")
    (tmp_path / "codec.mp4").write_bytes(unknown)
    (tmp_path / "denied.mp4").write_bytes(good.read_bytes())
    return tmp_path


BROKEN = {
    "cut": "cut.mp4: found an unreadable video (Invalid data found when processing input)",
    "empty": "empty.mp4: found an unreadable video (Invalid data found when processing input)",
    "folder": "folder: below {root}: found no such file, expected a video or image of this name",
    "folder.mp4": "folder.mp4: below {root}: found a folder, expected a video or image of this name",
    "named": "named.mp4: found a still image, expected a video",
    "sound": "sound.mp4: found no video stream, expected a video",
    "codec": "codec.mp4: found an unknown video codec",
    "denied": "denied.mp4: found an unreadable video (Permission denied)",
    "gone": "gone: below {root}: found no such file, expected a video or image of this name",
}


@pytest.fixture
def denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file `denied.mp4` may not be read, also where the tests run as root."""
    really = av.open

    def refuse(file: str, *given: object, **more: object) -> object:
        if str(file).endswith("denied.mp4"):
            raise av.error.PermissionError(13, "Permission denied", str(file))
        return really(file, *given, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(av, "open", refuse)


def the_plan(
    root: Path, items: list[Item], looker: Looker, *, skip: bool, condition: str = "video", limit: int | None = None
) -> tuple[Store, Plan]:
    benchmark = Benchmark("toy", "Toy", tuple(items), AccuracyScorer().metrics, "accuracy", media_root=root)
    store = Store(str(root / "runs.db"))
    library = MediaLibrary(root, cache_dir=root / "cache")
    options = PlanOptions(skip_broken=skip, limit=limit)
    return store, plan(store, benchmark, [looker], [condition], library, scorers=[], options=options)


def some_of(root: Path, *sources: str) -> list[Item]:
    return [question(f"q-{source}", VideoClip(source=source)) for source in sources]


@pytest.mark.parametrize("source", BROKEN)
def test_each_kind_of_broken_file_is_one_line_before_anything_is_asked(root: Path, denied: None, source: str) -> None:
    looker = Looker()
    with pytest.raises(InputError) as caught:
        the_plan(root, some_of(root, "good", source), looker, skip=False)
    told = str(caught.value).replace(f"{root}/", "")
    assert told == f"{BROKEN[source].format(root=root)} (needed by item 'q-{source}')"
    assert looker.saw == {}


def test_a_video_shorter_than_its_items_say(root: Path) -> None:
    items = [question("q", VideoClip(source="good", start=1.0, end=9.0))]
    with pytest.raises(InputError) as caught:
        the_plan(root, items, Looker(), skip=False)
    assert str(caught.value) == (
        "good: the clip's end: found 9 s, expected a time within the video's 4.00 s (needed by item 'q')"
    )


def test_a_wrong_extension_is_no_matter(root: Path) -> None:
    (root / "fine.webm").rename(root / "fine.mp4")
    looker = Looker()
    store, planned = the_plan(root, some_of(root, "fine"), looker, skip=False)
    asyncio.run(execute(store, planned, Limits()))
    assert looker.saw == {"q-fine": 2}


def test_the_others_go_on_and_the_left_out_are_counted(root: Path, denied: None) -> None:
    items = [*some_of(root, "good", *BROKEN, "fine"), question("both", *some_media("good", "cut"))]
    looker = Looker()
    store, planned = the_plan(root, items, looker, skip=True)
    outcome = asyncio.run(execute(store, planned, Limits()))
    assert looker.saw == {"q-good": 2, "q-fine": 2}
    assert (outcome.tally.done, outcome.failed, outcome.remaining) == (2, 0, 0)
    assert planned.left_out == len(BROKEN) + 1
    assert {problem.source for problem in planned.problems} == set(BROKEN)
    cut = next(problem for problem in planned.problems if problem.source == "cut")
    assert cut.item_ids == ("q-cut", "both")


def some_media(*sources: str) -> list[VideoClip]:
    return [VideoClip(source=source) for source in sources]


def test_where_nothing_is_left_it_is_an_error_all_the_same(root: Path) -> None:
    with pytest.raises(InputError) as caught:
        the_plan(root, some_of(root, "empty", "cut"), Looker(), skip=True)
    assert str(caught.value).replace(f"{root}/", "") == (
        "toy: found no item whose media can be read; the first: cut.mp4: found an unreadable video (Invalid "
        "data found when processing input) (needed by item 'q-cut'), expected at least one"
    )


def test_text_only_needs_no_sound_media(root: Path) -> None:
    looker = Looker()
    store, planned = the_plan(root, some_of(root, "good", "empty"), looker, skip=False, condition="text-only")
    asyncio.run(execute(store, planned, Limits()))
    assert looker.saw == {"q-good": 0, "q-empty": 0}


def test_other_items_are_lent_only_if_they_are_sound(root: Path) -> None:
    """One item is asked; what it is shown comes from beyond the limit, and never from a broken file."""
    items = some_of(root, "fine", "empty", "good")
    looker = Looker()
    store, planned = the_plan(root, items, looker, skip=True, condition="other-video", limit=2)
    asyncio.run(execute(store, planned, Limits()))
    assert looker.saw == {"q-fine": 2}
    assert planned.left_out == 1
    with pytest.raises(InputError, match=r"empty\.mp4: found an unreadable video"):
        the_plan(root, items[::2] + items[1:2], Looker(), skip=False, condition="other-video", limit=1)


def test_a_condition_that_borrows_is_refused_before_anything_is_asked_where_nothing_can_be_lent(root: Path) -> None:
    for name in ("a", "b", "c"):
        Pillow.new("RGB", (20, 20)).save(root / f"{name}.png")
    video = some_of(root, "fine", "good")
    items = [
        *video,
        question("alone", *(Image(source=f"{name}.png") for name in "abc")),
        question("not", *video[0].media),
    ]
    why = "no other item has other media of the same kind as item 'alone'$"
    with pytest.raises(ConfigurationError, match=f"^condition 'other-video' makes no sense for .*: {why}"):
        the_plan(root, items, Looker(), skip=False, condition="other-video")
    the_plan(root, [*items[:2], items[3]], Looker(), skip=False, condition="other-video")


def test_broken_images_are_left_out_as_well(root: Path) -> None:
    Pillow.new("RGB", (20, 20)).save(root / "whole.png")
    (root / "half.png").write_bytes((root / "whole.png").read_bytes()[:30])
    items = [question("a", Image(source="whole")), question("b", Image(source="half"))]
    looker = Looker()
    store, planned = the_plan(root, items, looker, skip=True)
    asyncio.run(execute(store, planned, Limits()))
    assert (looker.saw, planned.left_out) == ({"a": 1}, 1)
