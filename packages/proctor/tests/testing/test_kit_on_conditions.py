"""The checks of conditions: every fault that they are for is found, and every condition of ours passes them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from PIL import Image, ImageFilter, ImageOps

from proctor import Item
from proctor.media import CONDITIONS, Condition
from proctor.testing import Check, check_condition, condition_checks
from tests.support.kit import finds, passes


def changed(jpeg: bytes, change: Any, form: str = "JPEG") -> bytes:
    out = BytesIO()
    with Image.open(BytesIO(jpeg)) as picture:
        change(picture).save(out, form)
    return out.getvalue()


class Mirrored(Condition):
    """A condition without faults."""

    summary = "the same pictures, mirrored"

    def paint(self, jpeg: bytes) -> bytes:
        return changed(jpeg, ImageOps.mirror)


class Nameless(Mirrored):
    summary = ""


class AsPng(Mirrored):
    def paint(self, jpeg: bytes) -> bytes:
        return changed(jpeg, ImageOps.mirror, "PNG")


class Smaller(Mirrored):
    def paint(self, jpeg: bytes) -> bytes:
        return changed(jpeg, lambda picture: picture.resize((8, 8)))


class Noisy(Mirrored):
    def paint(self, jpeg: bytes) -> bytes:
        noise = Image.frombytes("L", (64, 48), os.urandom(64 * 48)).convert("RGB")
        return changed(jpeg, lambda picture: Image.blend(picture, noise.resize(picture.size), 0.5))


class More(Mirrored):
    def arrange(self, slots: list[Any], scene: Any) -> list[Any]:
        return [*slots, *slots]


class Late(Mirrored):
    def arrange(self, slots: list[Any], scene: Any) -> list[Any]:
        return [slot if slot.time is None else replace(slot, time=slot.time + 100) for slot in slots]


class KnowsTheAnswer(Mirrored):
    def arrange(self, slots: list[Any], scene: Any) -> list[Any]:
        return slots if scene.item.reference.answer else slots[:1]


class ReversedAsAWhole(Condition):
    """It forgets that a system may ask for small windows."""

    summary = "the same pictures from last to first"

    def arrange(self, slots: list[Any], scene: Any) -> list[Any]:
        return [replace(slot, picture=other.picture) for slot, other in zip(slots, slots[::-1], strict=True)]


class FitsPerhaps(Mirrored):
    def unfit(self, items: Sequence[Item]) -> Any:
        return None if items else ""


FAULTS: list[tuple[type[Condition], str, str]] = [
    (Nameless, "summary_is_one_line", "`summary`: found '', expected one line"),
    (AsPng, "paint_gives_a_jpeg", "bytes that are no JPEG, expected a JPEG: save(out, 'JPEG')"),
    (Smaller, "paint_gives_a_jpeg", "returned a picture of (8, 8), expected the same size: (64, 48)"),
    (Noisy, "paint_gives_a_jpeg", "returned other bytes for the same picture"),
    (Noisy, "frames_are_always_the_same", "found other frames when asked again"),
    (More, "times_and_labels_are_of_the_clip", "found 16 frames, expected at most 8"),
    (Late, "times_and_labels_are_of_the_clip", "expected a time from 0 to 4 s of the clip"),
    (KnowsTheAnswer, "frames_do_not_depend_on_the_reference", "found other frames for another reference"),
    (ReversedAsAWhole, "windows_hide_what_the_whole_hides", "found the clip's own frames in small windows"),
    (FitsPerhaps, "unfit_says_a_text", "`unfit` returned NoneType for 18 items, expected a text"),
]


@pytest.mark.parametrize(("condition", "name", "told"), FAULTS, ids=lambda one: getattr(one, "__name__", None))
def test_a_fault_is_found_by_its_check(condition: type[Condition], name: str, told: str) -> None:
    (check,) = [check for check in condition_checks(condition()) if check.name == name]
    finds(check, told)


def test_a_condition_without_faults_passes() -> None:
    class Blurred(Mirrored):
        def paint(self, jpeg: bytes) -> bytes:
            return changed(jpeg, lambda picture: picture.filter(ImageFilter.GaussianBlur(8)))

    for condition in (Mirrored(), Blurred()):
        report = check_condition(condition)
        assert list(report.skipped.values()) == ["it sees media"]


def test_a_blind_condition_must_open_no_file() -> None:
    class Blind(Mirrored):
        sees = shows = hears = False

    report = check_condition(Blind())
    assert list(report.skipped.values()) == ["it shows the whole clip, or nothing"]


@pytest.mark.parametrize("check", [check for name in CONDITIONS.names() for check in condition_checks(name)], ids=str)
def test_ours_pass(check: Check) -> None:
    passes(check, "it sees media", "it shows the whole clip, or nothing")
