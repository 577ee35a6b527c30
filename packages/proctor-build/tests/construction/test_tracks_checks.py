"""Checks of an annotation and its completion: a ledger of faults, each found once, and nothing found where none is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from proctor.tracks import AnnotatedBox, AnnotatedMoment, AnnotatedVideo, Annotation, Sighting
from proctor_build import complete, find
from proctor_build.checks import TrackFinding
from tests.support.drawn_tracks import drawn

VIDEO = AnnotatedVideo(id="case-1", file="case-1.mp4", width=640, height=480, seconds=60.0, fps=25)


def seen(second: int, x: float = 100, y: float = 100, **more: Any) -> Sighting:
    box = AnnotatedBox(x=x, y=y, width=40, height=30)
    return Sighting.model_validate(
        {"second": second, "instance": "sponge-1", "class_name": "Sponge", "box": box, **more}
    )


def moment(kind: str, time: float, **more: Any) -> AnnotatedMoment:
    return AnnotatedMoment.model_validate(
        {"kind": kind, "instance": "sponge-1", "class_name": "Sponge", "time": time, **more}
    )


CLEAN = Annotation(
    video=VIDEO,
    sightings=tuple(seen(second, x=100 + second) for second in range(5, 30)),
    moments=(moment("insertion", 4.5), moment("retrieval", 30.2)),
)


def changed(*sightings: Sighting, without: Callable[[Sighting], bool] = lambda _: False) -> Annotation:
    kept = [one for one in CLEAN.sightings if not without(one)]
    return Annotation(video=VIDEO, sightings=(*kept, *sightings), moments=CLEAN.moments)


def with_moments(*moments: AnnotatedMoment) -> Annotation:
    return Annotation(video=VIDEO, sightings=CLEAN.sightings, moments=moments)


def other(second: int, **more: Any) -> Sighting:
    return seen(second, instance="gallstone-1", class_name="Gallstone", **more)


OTHER_BOX = AnnotatedBox(x=400, y=300, width=40, height=30)
LEDGER: list[tuple[str, Annotation, list[tuple[str, str, float | None, bool]]]] = [
    ("clean", CLEAN, []),
    ("nothing", Annotation(video=VIDEO), [("no-boxes", "", None, True)]),
    ("two positions", changed(seen(9, box=OTHER_BOX)), [
        ("two-places", "sponge-1", 9.0, True)]),
    ("the same box twice", changed(seen(9, x=109)), [("two-places", "sponge-1", 9.0, True)]),
    ("another class for a while", changed(seen(9, x=109, class_name="Needle"), without=lambda s: s.second == 9), [
        ("class-changes", "sponge-1", 9.0, True), ("class-changes", "sponge-1", 10.0, True)]),
    ("the moment's class differs", with_moments(moment("insertion", 4.5, class_name="Mesh"), CLEAN.moments[1]), [
        ("class-changes", "sponge-1", 5.0, True)]),
    ("forgotten boxes", changed(without=lambda s: 10 <= s.second <= 14), [("gap", "sponge-1", 10.0, True)]),
    ("a long way out of sight", changed(*(seen(s, x=500) for s in range(20, 30)),
     without=lambda s: s.second >= 10), [("gap", "sponge-1", 10.0, False)]),
    ("covered, and said so", changed(*(seen(s, box=None) for s in range(10, 15)),
     without=lambda s: 10 <= s.second <= 14), []),
    ("partly outside", changed(seen(9, x=-20), without=lambda s: s.second == 9), [
        ("outside-frame", "sponge-1", 9.0, False)]),
    ("wholly outside", changed(seen(9, x=700), without=lambda s: s.second == 9), [
        ("jump", "sponge-1", 9.0, True), ("outside-frame", "sponge-1", 9.0, True), ("jump", "sponge-1", 10.0, True)]),
    ("a pixel beyond the edge", changed(other(9, x=601, y=450.5)), [("never-inserted", "gallstone-1", 9.0, False)]),
    ("no extent", changed(seen(9, box=AnnotatedBox(x=109, y=100, width=0, height=30)), without=lambda s: s.second == 9), [
        ("degenerate", "sponge-1", 9.0, True)]),
    ("upside down", changed(seen(9, box=AnnotatedBox(x=109, y=130, width=40, height=-30)), without=lambda s: s.second == 9), [
        ("degenerate", "sponge-1", 9.0, True)]),
    ("a jump", changed(*(seen(s, x=560, y=420) for s in range(20, 30)), without=lambda s: s.second >= 20), [
        ("jump", "sponge-1", 20.0, True)]),
    ("a box after the video", changed(other(60)), [
        ("never-inserted", "gallstone-1", 60.0, False), ("outside-video", "gallstone-1", 60.0, True)]),
    ("a moment after the video", with_moments(*CLEAN.moments, moment("insertion", 61.0)), [
        ("moment-without-box", "sponge-1", 61.0, True), ("outside-video", "sponge-1", 61.0, True)]),
    ("an insertion that nobody sees", with_moments(*CLEAN.moments, moment("insertion", 50.0)), [
        ("moment-without-box", "sponge-1", 50.0, True)]),
    ("an instance without any box", with_moments(*CLEAN.moments, moment("insertion", 9.0, instance="clip-1",
     class_name="Clip")), [("moment-without-box", "clip-1", 9.0, True)]),
    ("retrieved before it was inserted", with_moments(moment("retrieval", 4.5), moment("insertion", 30.2)), [
        ("retrieval-before-insertion", "sponge-1", 4.5, True), ("seen-after-retrieval", "sponge-1", 7.0, True)]),
    ("inserted twice", with_moments(CLEAN.moments[0], moment("insertion", 10.0), CLEAN.moments[1]), [
        ("inserted-twice", "sponge-1", 10.0, True)]),
    ("retrieved twice", with_moments(*CLEAN.moments, moment("retrieval", 31.0)), [
        ("retrieved-twice", "sponge-1", 31.0, True)]),
    ("seen long before", with_moments(moment("insertion", 9.0), CLEAN.moments[1]), [
        ("seen-before-insertion", "sponge-1", 5.0, True)]),
    ("seen long after", with_moments(CLEAN.moments[0], moment("retrieval", 26.0)), [
        ("seen-after-retrieval", "sponge-1", 29.0, True)]),
    ("never inserted", with_moments(CLEAN.moments[1]), [
        ("never-inserted", "sponge-1", 5.0, True), ("retrieval-before-insertion", "sponge-1", 30.2, True)]),
    ("no moments at all", with_moments(), [("no-moments", "", None, True)]),
    ("what arises in the body is not inserted", changed(other(9)), [("never-inserted", "gallstone-1", 9.0, False)]),
    ("a class of one's own", changed(seen(9, instance="anvil-1", class_name="Anvil", in_patient=False)), [
        ("unknown-class", "", None, False), ("never-inserted", "anvil-1", 9.0, True)]),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "expected"), [one[1:] for one in LEDGER], ids=[one[0] for one in LEDGER])
def test_each_fault_is_found_with_its_place(
    annotation: Annotation, expected: list[tuple[str, str, float | None, bool]]
) -> None:
    found = find(annotation)
    assert [(one.kind, one.instance, one.time, one.needs_person) for one in found] == expected
    assert all(one.video == "case-1" and one.detail for one in found)


def test_every_kind_of_finding_stands_in_the_ledger() -> None:
    documented = {part.strip("`") for part in (find.__doc__ or "").split() if part.startswith("`")}
    found = {one.kind for _, annotation, _ in LEDGER for one in find(annotation)}
    assert found == {kind.strip("`,.;():") for kind in documented}


def test_a_specimen_may_leave_without_having_come() -> None:
    gone = moment("retrieval", 9.5, instance="gallstone-1", class_name="gallstone")
    annotation = changed(*(other(second) for second in range(6, 10)))
    annotation = Annotation(video=VIDEO, sightings=annotation.sightings, moments=(*CLEAN.moments, gone))
    assert [one.kind for one in find(annotation) if one.needs_person] == []


def test_a_finding_reads_as_one_line() -> None:
    finding = TrackFinding("gap", "case-1", "sponge-1", 10.0, "5 s without a box")
    assert str(finding) == "decide: gap: case-1: sponge-1: 10 s: 5 s without a box"


def test_nothing_is_found_in_what_is_drawn_well() -> None:
    """Objects that are moved, covered, inserted and taken out are no fault."""
    for number in range(20):
        annotation, _ = drawn(5, f"v{number}")
        assert [one for one in find(annotation) if one.needs_person] == []


# Completion


def gap(length: int, **more: Any) -> Annotation:
    """A track that moves by 10 pixels a second, without boxes from second 12 on."""
    kept = [seen(second, x=100 + 10 * second, **more) for second in range(5, 30) if not 12 <= second < 12 + length]
    return Annotation(video=VIDEO, sightings=tuple(kept), moments=CLEAN.moments)


def test_a_short_gap_is_filled_on_the_straight_way() -> None:
    done = complete(gap(2), 2)
    added = [one for one in done.annotation.sightings if one.filled]
    assert [(one.second, one.box and (one.box.x, one.box.width), one.class_name) for one in added] == [
        (12, (220, 40), "Sponge"),
        (13, (230, 40), "Sponge"),
    ]
    assert [(one.instance, one.first, one.last) for one in done.filled] == [("sponge-1", 12, 13)]
    assert done.findings == ()
    assert not any(one.clear for one in added), "no question relies on what nobody drew"
    assert complete(done.annotation, 2).annotation == done.annotation


def test_what_was_there_is_left_as_it_was() -> None:
    before = gap(2)
    after = complete(before, 2).annotation
    assert [one for one in after.sightings if not one.filled] == list(before.sightings)
    assert (after.moments, after.video) == (before.moments, before.video)


@pytest.mark.parametrize(
    "annotation",
    [
        gap(3),
        Annotation(video=VIDEO, sightings=gap(2).sightings, moments=(*CLEAN.moments, moment("retrieval", 12.5))),
        changed(*(seen(s, x=600) for s in (12, 13)), without=lambda s: s.second >= 10),
        changed(*(seen(s, box=None) for s in (10, 11)), without=lambda s: s.second in {10, 11}),
        changed(seen(9, box=OTHER_BOX), without=lambda s: s.second == 10),
        changed(*(seen(s, class_name="Needle") for s in range(12, 30)), without=lambda s: s.second >= 10),
        gap(2, in_patient=False),
        CLEAN,
    ],
    ids=["too long", "taken out in it", "too fast", "covered", "two positions before", "another class after",
         "outside the body", "no gap"],
)  # fmt: skip
def test_what_would_be_a_guess_is_not_filled(annotation: Annotation) -> None:
    done = complete(annotation, 2)
    assert (done.filled, done.annotation) == ((), annotation)


def test_what_remains_open_is_told() -> None:
    done = complete(gap(8).model_copy(update={"sightings": changed(without=lambda s: 12 <= s.second < 17).sightings}))
    assert [(one.kind, one.time, one.needs_person) for one in done.open] == [("gap", 12.0, True)]
    assert complete(gap(2), 0).filled == ()


def test_boxes_taken_away_come_back_where_they_were() -> None:
    """Single boxes are taken out of smooth tracks; the filled ones lie where the drawn ones lay."""
    checked = 0
    for number in range(10):
        whole, _ = drawn(9, f"v{number}")
        by_instance = whole.by_instance()
        taken = {
            (name, seen.second) for name, mine in by_instance.items() for seen in mine[3:-3:6] if seen.box is not None
        }
        kept = [one for one in whole.sightings if (one.instance, one.second) not in taken]
        done = complete(Annotation(video=whole.video, sightings=tuple(kept), moments=whole.moments), 2)
        for one in (one for one in done.annotation.sightings if one.filled):
            (truth,) = [s for s in by_instance[one.instance] if s.second == one.second]
            if truth.box is not None and one.box is not None:
                checked += 1
                apart = max(abs(a - b) for a, b in zip(truth.box.centre, one.box.centre, strict=True))
                assert apart < 0.2 * whole.video.width
    assert checked > 50
