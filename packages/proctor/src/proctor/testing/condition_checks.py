"""Checks of conditions: what they show is a JPEG, always the same, and no window reveals what the whole hides."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import SkipTest

from proctor.core import AudioClip, Evidence, EvidenceBox, EvidenceWindow, Frame, Image, Item, Reference, VideoClip
from proctor.media import CONDITIONS, Condition, MediaLibrary, view
from proctor.testing.checks import Check, CheckReport, Faults, awaited, expecting, run_checks
from proctor.testing.fakes import example_items, picture, tiny_clip

_SECONDS = 4.0
_PARTS = 8


def check_condition(condition: str | Condition, *, expected_failures: Mapping[str, str] | None = None) -> CheckReport:
    """Run `condition_checks`. Raises `CheckFailedError` with all faults.

    >>> check_condition("black").passed[0]
    'condition black: summary_is_one_line'
    """
    return run_checks(condition_checks(condition, expected_failures=expected_failures))


def condition_checks(condition: str | Condition, *, expected_failures: Mapping[str, str] | None = None) -> list[Check]:
    """The checks of a condition, by its registered name or itself: its summary; that it paints a JPEG of the same size,
    the same each time; that frames are the same for the same seed, and don't depend on references and tags; that
    no windows of a clip together show what the whole clip hides; that it opens no file if it sees nothing; and that
    `unfit` says a text of any items. It is shown short videos and pictures. `expected_failures` are reasons by the names of checks.
    """
    made = CONDITIONS.get(condition) if isinstance(condition, str) else condition
    tried = _Tried(made)
    checks = {
        "summary_is_one_line": tried.summary_is_one_line,
        "paint_gives_a_jpeg": tried.paint_gives_a_jpeg,
        "frames_are_always_the_same": tried.frames_are_always_the_same,
        "times_and_labels_are_of_the_clip": tried.times_and_labels_are_of_the_clip,
        "frames_do_not_depend_on_the_reference": tried.frames_do_not_depend_on_the_reference,
        "windows_hide_what_the_whole_hides": tried.windows_hide_what_the_whole_hides,
        "blind_opens_no_file": tried.blind_opens_no_file,
        "unfit_says_a_text": tried.unfit_says_a_text,
    }
    called = condition if isinstance(condition, str) else type(condition).__name__
    return expecting((Check(f"condition {called}", name, find) for name, find in checks.items()), expected_failures)


@dataclass(frozen=True)
class _Scene:
    """Items with media in a folder: two with videos, two with pictures."""

    condition: Condition
    items: list[Item]
    folder: Path

    def frames(
        self, item: Item, condition: Condition | None = None, *, seed: int = 0, cached: bool = True
    ) -> list[Frame]:
        seen = view(item, condition or self.condition, self.library(cached), seed=seed, others=self.items)
        return awaited(seen.frames(count=_PARTS))

    def windows(self, item: Item, condition: Condition) -> list[Frame]:
        """The frame of each small window of the clip, one after the other."""
        seen = view(item, condition, self.library(), others=self.items)
        edges = [(row * _SECONDS / _PARTS, (row + 1) * _SECONDS / _PARTS) for row in range(_PARTS)]
        return [frame for edge in edges for frame in awaited(seen.frames(count=1, window=edge))]

    def library(self, cached: bool = True) -> MediaLibrary:
        return MediaLibrary(self.folder, cache_dir=self.folder / ("cache" if cached else "other-cache"))


@dataclass(frozen=True)
class _Tried:
    """A condition that is checked."""

    condition: Condition

    @contextmanager
    def scene(self) -> Iterator[_Scene]:
        """Items that the condition fits. Raises `SkipTest` if it fits none of them."""
        with TemporaryDirectory(prefix="proctor-check-") as named:
            folder = Path(named)
            items = list(_items(folder))
            sounding = [_with_sound(item) for item in items[:2]]
            evident = [_with_evidence(item) for item in items]
            tried = (items, items[:2], sounding, evident)
            fit = next((some for some in tried if not self.condition.unfit(some)), None)
            if fit is None:
                raise SkipTest(f"it fits none of the items: {self.condition.unfit(items)}")
            yield _Scene(self.condition, fit, folder)

    def summary_is_one_line(self) -> Faults:
        summary = self.condition.summary
        if not isinstance(summary, str) or not summary.strip() or "\n" in summary:
            yield f"`summary`: found {summary!r}, expected one line for `proctor list conditions`"

    def paint_gives_a_jpeg(self) -> Faults:
        for step in range(2):
            given = picture(step)
            painted: object = self.condition.paint(given)
            size = _jpeg_size(painted)
            if size is None:
                what = (
                    f"{len(painted)} bytes that are no JPEG" if isinstance(painted, bytes) else type(painted).__name__
                )
                yield f"`paint` returned {what}, expected a JPEG: save(out, 'JPEG')"
                return
            if size != _jpeg_size(given):
                yield f"`paint` returned a picture of {size}, expected the same size: {_jpeg_size(given)}"
            if self.condition.paint(given) != painted:
                yield "`paint` returned other bytes for the same picture, expected the same: stored frames are made again"

    def frames_are_always_the_same(self) -> Faults:
        with self.scene() as scene:
            for item in scene.items:
                if scene.frames(item) != scene.frames(item, cached=False):
                    yield f"item {item.id!r}: found other frames when asked again, expected the same for the same seed"

    def times_and_labels_are_of_the_clip(self) -> Faults:
        with self.scene() as scene:
            for item in scene.items:
                shown = scene.frames(item)
                limit = len(scene.frames(item, CONDITIONS.get("video")))
                if len(shown) > limit:
                    yield f"item {item.id!r}: found {len(shown)} frames, expected at most {limit}, as there are without it"
                for frame in shown:
                    if frame.time is not None and not 0 <= frame.time <= _SECONDS:
                        found = f"a frame at {frame.time:g} s"
                        yield f"item {item.id!r}: found {found}, expected a time from 0 to {_SECONDS:g} s of the clip"

    def frames_do_not_depend_on_the_reference(self) -> Faults:
        with self.scene() as scene:
            for item in scene.items:
                other = item.model_copy(update={"reference": Reference(answer=False), "tags": {"phase": "suturing"}})
                if scene.frames(item) != scene.frames(other):
                    yield f"item {item.id!r}: found other frames for another reference, expected the same"

    def windows_hide_what_the_whole_hides(self) -> Faults:
        with self.scene() as scene:
            clip, usual = scene.items[0], CONDITIONS.get("video")
            whole, plain = _pixels(scene.frames(clip)), _pixels(scene.frames(clip, usual))
            if whole == plain or not whole:
                raise SkipTest("it shows the whole clip, or nothing")
            if _pixels(scene.windows(clip, self.condition)) == _pixels(scene.windows(clip, usual)):
                yield (
                    "found the clip's own frames in small windows, expected that they are hidden as in the whole clip: "
                    "see `ConditionContext.whole`"
                )

    def blind_opens_no_file(self) -> Faults:
        if self.condition.sees:
            raise SkipTest("it sees media")
        with self.scene() as scene:
            for item in scene.items:
                gone = item.model_copy(update={"media": (Image(source="no-such-file.png"),)})
                if shown := scene.frames(gone):
                    yield f"item {item.id!r}: found {len(shown)} frames, expected none: it states sees=False"

    def unfit_says_a_text(self) -> Faults:
        with TemporaryDirectory(prefix="proctor-check-") as named:
            sets: Sequence[list[Item]] = ([], example_items(), list(_items(Path(named))), [_sound()])
            for items in sets:
                said: object = self.condition.unfit(items)
                if not isinstance(said, str):
                    yield f"`unfit` returned {type(said).__name__} for {len(items)} items, expected a text ('': it fits)"


def _items(folder: Path) -> Iterator[Item]:
    (plain,) = example_items(["binary"])
    for row in range(2):
        clip = tiny_clip(folder / f"clip-{row}.mp4", seconds=_SECONDS, fps=_PARTS / _SECONDS, first=3 * row)
        yield plain.model_copy(update={"id": f"clip-{row}", "group": f"group-{row}", "media": (clip,)})
    for row in range(2):
        names = [f"still-{row}-{label}.jpg" for label in "AB"]
        for step, name in enumerate(names):
            (folder / name).write_bytes(picture(2 * row + step))
        media = tuple(Image(source=name, label=name[-5]) for name in names)
        yield plain.model_copy(update={"id": f"stills-{row}", "group": f"group-{row}", "media": media})


def _with_sound(item: Item) -> Item:
    """The item, to whose question the sound of its clips belongs."""
    clips = [medium.model_copy(update={"audio": True}) for medium in item.media if isinstance(medium, VideoClip)]
    return item.model_copy(update={"media": tuple(clips)})


def _with_evidence(item: Item) -> Item:
    """The item, whose answer is visible for a second of its clip, or in a part of its first picture."""
    if isinstance(item.media[0], VideoClip):
        evidence = Evidence(
            windows=(EvidenceWindow(start=1.0, end=2.0),),
            boxes=(EvidenceBox(x=0.1, y=0.1, width=0.3, height=0.3, start=2.5, end=3.5),),
        )
    else:
        evidence = Evidence(boxes=(EvidenceBox(x=0.1, y=0.1, width=0.3, height=0.3),))
    return item.model_copy(update={"evidence": evidence})


def _sound() -> Item:
    (plain,) = example_items(["binary"])
    return plain.model_copy(update={"media": (AudioClip(source="handover.wav"),)})


def _jpeg_size(jpeg: object) -> tuple[int, int] | None:
    """Width and height; None for what is no JPEG."""
    from PIL import Image as Pictures

    if not isinstance(jpeg, bytes):
        return None
    try:
        with Pictures.open(io.BytesIO(jpeg)) as opened:
            opened.load()
            return opened.size if opened.format == "JPEG" else None
    except (OSError, SyntaxError, ValueError):
        return None


def _pixels(frames: Sequence[Frame]) -> list[bytes]:
    return [frame.jpeg for frame in frames]
