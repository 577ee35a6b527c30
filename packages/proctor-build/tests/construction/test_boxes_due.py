"""Which seconds are due for boxes, and where boxes and judgements disagree."""

from __future__ import annotations

from proctor.tracks import AnnotatedBox, AnnotatedVideo, Annotation, Sighting
from proctor_build.annotators import due_seconds
from proctor_build.annotators.presence import ClipPresence, check_boxes

VIDEO = AnnotatedVideo(id="v", file="v.mp4", width=90, height=90, seconds=12.4, fps=25)


def clip(start: int, name: str, present: bool | None) -> ClipPresence:
    probability = 0.99 if present else 0.01
    return ClipPresence("v", start, name, 2, 3, True, probability, None, None, 0.1, "a tie" if present is None else "")


def box(second: int, name: str, *, covered: bool = False) -> Sighting:
    drawn = None if covered else AnnotatedBox(x=1, y=1, width=9, height=9)
    return Sighting(second=second, instance=f"{name}-1", class_name=name, box=drawn)


CLIPS = [clip(0, "Clip", True), clip(0, "Needle", True), clip(5, "Clip", False), clip(5, "Needle", None),
         clip(10, "Clip", True)]  # fmt: skip


def test_seconds_of_clips_in_which_something_is_present() -> None:
    due = due_seconds(CLIPS, [VIDEO])
    assert [one.second for one in due] == [0, 1, 2, 3, 4, 10, 11, 12]  # the last clip ends with its video
    assert due[0].classes == ("Clip", "Needle")
    assert due[-1].classes == ("Clip",)
    assert due_seconds(CLIPS, []) == []


def test_boxes_and_judgements_disagree() -> None:
    boxes = (box(0, "clip"), box(3, "Needle", covered=True), box(6, "Clip"), box(7, "Clip"), box(8, "Needle"),
             box(9, "Mesh"))  # fmt: skip
    found = check_boxes(CLIPS, [Annotation(video=VIDEO, sightings=boxes)])
    assert [(one.start, one.class_name, one.kind, one.detail) for one in found] == [
        (5, "Clip", "unexpected-box", "2 boxes, first at 6 s; presence 2 of 3 votes"),
        (5, "Mesh", "outside-clips", "1 box; nobody voted on this clip"),
        (5, "Needle", "outside-clips", "1 box; a tie"),
        (10, "Clip", "no-box", "present with a probability of 0.99, and no box in 5 s"),
    ]
    assert [one.kind for one in check_boxes(CLIPS, [])] == ["no-box"] * 3
