"""Two annotators of one video: agreement by hand, every kind of difference, and one annotation of both by decisions."""

from __future__ import annotations

import numpy as np
import pytest

from proctor.core import InputError, Region
from proctor.tracks import AnnotatedBox, AnnotatedMoment, Annotation, Sighting
from proctor_build.annotators.pairs import TrackComparison, adjudicated, agreement_of, compare_tracks
from proctor_build.annotators.review import difference_to_review
from proctor_web.forms import ChoiceBody
from tests.support.drawn_tracks import drawn
from tests.support.hand_tracks import HAND, VIDEO, track


def said(comparison: TrackComparison) -> list[tuple[int, int, str, str, str]]:
    return [(one.first, one.last, str(one.kind), one.a, one.b) for one in comparison.differences]


def of(*sightings: Sighting, moments: tuple[AnnotatedMoment, ...] = ()) -> Annotation:
    return Annotation(video=VIDEO, sightings=sightings, moments=moments)


def all_of(comparison: TrackComparison, choice: str) -> dict[str, str]:
    return {one.id: choice for one in comparison.differences}


def test_the_same_tracks_agree_under_other_names() -> None:
    other = Annotation(
        video=HAND.video,
        sightings=tuple(one.model_copy(update={"instance": f"x-{one.instance}"}) for one in HAND.sightings),
        moments=tuple(one.model_copy(update={"instance": f"x-{one.instance}"}) for one in HAND.moments),
    )
    found = compare_tracks(HAND, other)
    assert found.differences == ()
    assert found.partner == {f"x-{name}": name for name in ("n1", "n2", "c1", "s1")}
    agreement = agreement_of([found])
    for one in (agreement.boxes, agreement.classes, agreement.identity, agreement.overlap):
        assert one.value == 1
    assert agreement.boxes.ci_low is None  # one video


def test_agreement_by_hand() -> None:
    a = of(*track("n1", "Needle", 0, 10), *track("c1", "Clip", 0, 10, x=50))
    # needle: 8 of 10 s; clip: called a sponge in 4 of 10 s, two tracks of 6 and 4 s; a box of 5 s that is b's alone
    b = of(
        *track("p", "Needle", 2, 10),
        *track("q", "Clip", 0, 6, x=50),
        *track("r", "Sponge", 6, 10, x=50),
        *track("s", "Mesh", 0, 5, x=20, y=60),
    )
    found = compare_tracks(a, b)
    assert list(found.sums) == [14, 20, 23, 18, 14, 18]
    agreement = agreement_of([found])
    assert agreement.boxes.value == pytest.approx(28 / 43)
    assert agreement.classes.value == pytest.approx(14 / 18)
    assert agreement.identity.value == pytest.approx(28 / 43)
    assert said(found) == [
        (0, 1, "only-a", "n1", ""),
        (0, 4, "only-b", "", "s"),
        (6, 9, "class", "c1", "r"),
        (6, 9, "identity", "c1", "r"),
    ]


def test_every_kind_of_difference_and_what_deciding_for_b_makes_of_it() -> None:
    box = AnnotatedBox(x=10, y=10, width=10, height=10)
    a = of(
        *track("n", "Needle", 0, 10),
        Sighting(second=10, instance="n", class_name="Needle", box=None),
        moments=(AnnotatedMoment(kind="insertion", instance="n", class_name="Needle", time=0.5),),
    )
    b = of(
        *track("m", "Needle", 0, 8),
        *track("m", "Needle", 8, 9, x=17),
        Sighting(second=9, instance="m", class_name="Needle", box=box, occluded=True),
        Sighting(second=10, instance="m", class_name="Needle", box=box),
        moments=(
            AnnotatedMoment(kind="insertion", instance="m", class_name="Needle", time=3),
            AnnotatedMoment(kind="retrieval", instance="m", class_name="Needle", time=11),
        ),
    )
    found = compare_tracks(a, b)
    assert said(found) == [
        (0, 3, "moment", "n", "m"),
        (8, 8, "position", "n", "m"),
        (9, 9, "state", "n", "m"),
        (10, 10, "covered", "n", "m"),
        (11, 11, "moment", "n", "m"),
    ]
    assert found.differences[0].detail == "insertion: 0.5 s | 3 s"
    assert found.differences[4].detail == "retrieval: none | 11 s"
    assert adjudicated(a, b, found, all_of(found, "a")) == (a, [])
    merged, undecided = adjudicated(a, b, found, all_of(found, "b"))
    assert undecided == []
    assert compare_tracks(merged, b).differences == ()
    assert {one.instance for one in merged.sightings} == {"n"}
    one = {found.differences[1].id: "b"}
    merged, undecided = adjudicated(a, b, found, one)
    assert len(undecided) == 4
    assert said(compare_tracks(merged, b)) == [each for each in said(found) if each[2] != "position"]


def test_a_swap_of_identities_needs_both_decisions() -> None:
    def two(swapped: bool) -> Annotation:
        names = ("c2", "c1") if swapped else ("c1", "c2")
        return of(
            *track("c1", "Clip", 0, 10), *track("c2", "Clip", 0, 10, x=60),
            *track(names[0], "Clip", 10, 14), *track(names[1], "Clip", 10, 14, x=60),
        )  # fmt: skip

    a, b = two(swapped=False), two(swapped=True)
    found = compare_tracks(a, b)
    assert [(one.first, one.last, one.kind) for one in found.differences] == [(10, 13, "identity")] * 2
    assert adjudicated(a, b, found, all_of(found, "b")) == (b, [])
    half = dict(list(all_of(found, "b").items())[:1])
    with pytest.raises(InputError, match=r"video 'v', 10 s, instance 'c.': found two positions"):
        adjudicated(a, b, found, half)


def test_what_is_b_s_alone_gets_a_name_that_is_free() -> None:
    a, b = of(*track("c1", "Clip", 0, 3)), of(*track("z", "Clip", 0, 3), *track("c1", "Needle", 5, 7, x=60))
    found = compare_tracks(a, b)
    merged, _ = adjudicated(a, b, found, all_of(found, "b"))
    assert {one.instance: one.class_name for one in merged.sightings} == {"c1": "Clip", "c1-b": "Needle"}


def careless(truth: Annotation, seed: int, share: float) -> Annotation:
    """An annotator who leaves out, mislabels and misplaces boxes, and calls instances by names of their own."""
    rng = np.random.default_rng(seed)
    found = []
    for one in truth.sightings:
        lot = rng.random()
        update: dict[str, object] = {"instance": f"r{seed}-{one.instance}"}
        if one.box is not None and lot < share:
            continue
        if one.box is not None and lot < 2 * share:
            update["box"] = one.box.model_copy(update={"x": one.box.x + 0.9 * one.box.width})
        found.append(one.model_copy(update=update))
    return Annotation(video=truth.video, sightings=tuple(found), moments=truth.moments)


def test_a_surgeon_who_knows_brings_back_the_truth() -> None:
    comparisons = []
    for seed in range(4):
        truth, _ = drawn(seed, f"d{seed}")
        truth = Annotation(video=truth.video, sightings=truth.sightings)
        a = careless(truth, 1, 0.0).model_copy(update={"video": truth.video})
        b = careless(truth, 2 + seed, 0.04)
        found = compare_tracks(b, a)  # the second annotator has it all right
        comparisons.append(found)
        merged, undecided = adjudicated(b, a, found, all_of(found, "b"))
        assert undecided == []
        assert compare_tracks(merged, a).differences == ()
        assert len(merged.sightings) == len(truth.sightings)
    agreement = agreement_of(comparisons)
    boxes = agreement.boxes
    assert boxes.value is not None
    assert boxes.value == pytest.approx(0.94, abs=0.02)  # 4 % left out, 4 % elsewhere
    assert boxes.ci_low is not None
    assert boxes.ci_high is not None
    assert boxes.ci_low < boxes.value < boxes.ci_high
    assert agreement.classes.value == 1


def test_differences_as_items_of_a_review() -> None:
    a, b = of(*track("c1", "Clip", 0, 3)), of(*track("c1", "Needle", 0, 3))
    found = compare_tracks(a, b)
    item = difference_to_review(found.differences[0], a, b, None)
    assert (item.key, item.source, item.start, item.end) == ("v@0-2:class:c1|c1", "v", 0.0, 5.0)
    body = ChoiceBody.model_validate(item.body)
    assert body.question == "class, 0 s to 2 s (a: c1, b: c1): Clip | Needle"
    assert body.options == ("a", "b")
    assert [(box.time, box.label) for box in body.boxes] == [
        (time, label) for time in (0, 1, 2) for label in ("a: Clip", "b: Needle")
    ]
    merged, undecided = adjudicated(a, b, found, {item.key: "b"})
    assert undecided == []
    assert merged.classes == ("Needle",)


def test_boxes_are_drawn_in_the_part_of_the_picture_that_is_shown() -> None:
    wide, high = VIDEO.width, VIDEO.height
    box = AnnotatedBox(x=0.5 * wide, y=0.25 * high, width=0.5 * wide, height=0.25 * high)
    a = of(Sighting(second=1, instance="n", class_name="Needle", box=box))
    (difference,) = compare_tracks(a, of()).differences
    right = Region(x=0.5, y=0.5, width=0.25, height=0.5)
    assert "boxes" not in difference_to_review(difference, a, of(), right).body  # above what is shown
    lower = Region(x=0.25, y=0.25, width=0.5, height=0.5)
    (shown,) = ChoiceBody.model_validate(difference_to_review(difference, a, of(), lower).body).boxes
    assert (shown.x, shown.y, shown.width, shown.height) == (0.5, 0.0, 0.5, 0.5)


def test_two_videos_and_an_instance_in_two_places_are_refused() -> None:
    other = Annotation(video=VIDEO.model_copy(update={"id": "w"}))
    with pytest.raises(InputError, match="video: found 'v' and 'w', expected the same"):
        compare_tracks(HAND, other)
    twice = of(*track("n1", "Needle", 3, 5), *track("n1", "Needle", 4, 6, x=50))
    with pytest.raises(InputError, match="4 s, instance 'n1': found two positions"):
        compare_tracks(HAND, twice)
