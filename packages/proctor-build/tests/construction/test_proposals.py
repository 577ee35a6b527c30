"""A detector's proposals: hand-made boxes, planted faults, decisions by a table and by CVAT."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from proctor.core import InputError
from proctor.tracks import AnnotatedBox, Annotation, ReadDefaults, Sighting
from proctor_build.annotators import csv_of, with_proposals
from proctor_build.annotators.proposals import (
    ACCEPT,
    REJECT,
    BoxDetection,
    BoxProposal,
    asked_back,
    corrected,
    propose,
    read_detections,
    sure_score,
)
from proctor_build.cvat import read_cvat, to_cvat
from tests.support.drawn_tracks import drawn
from tests.support.hand_tracks import VIDEO
from tests.support.planted_faults import Planted, alike, counted, flags_of, planted

BOX = AnnotatedBox(x=10, y=10, width=20, height=10)


def sighting(second: int, instance: str, name: str, box: AnnotatedBox | None = BOX) -> Sighting:
    return Sighting(second=second, instance=instance, class_name=name, box=box)


def seen(second: int, name: str, x: float = 10, y: float = 10, score: float = 0.9) -> BoxDetection:
    return BoxDetection("v", second, name, AnnotatedBox(x=x, y=y, width=20, height=10), score)


def one_of(boxes: list[Sighting], detections: list[BoxDetection], score: float = 0.5) -> list[BoxProposal]:
    return propose(Annotation(video=VIDEO, sightings=tuple(boxes)), detections, score)


def kinds(boxes: list[Sighting], detections: list[BoxDetection], score: float = 0.5) -> list[tuple[str, str]]:
    return [(one.kind, one.instance) for one in one_of(boxes, detections, score)]


def test_boxes_by_hand() -> None:
    clip = [sighting(1, "c", "Clip")]
    assert kinds(clip, [seen(1, "clip", x=12)]) == []  # overlap 18/22, the same class in another spelling
    assert kinds(clip, [seen(1, "Needle")]) == [("mislabelled", "c")]
    assert kinds(clip, [seen(1, "Needle"), seen(1, "Clip", x=11, score=0.5)]) == []  # both are seen: nothing is certain
    assert kinds(clip, [seen(1, "Needle", score=0.4)]) == []
    assert kinds(clip, [seen(1, "Clip", x=25)]) == [("misplaced", "c")]  # overlap 5/35
    assert kinds(clip, [seen(1, "Needle", x=20)]) == [("missing", "needle-new-1")]  # overlap 10/30 is below 0.4
    assert kinds(clip, [seen(1, "Clip", x=18)]) == []  # overlap 12/28
    twice = [seen(1, "Clip"), seen(1, "Clip", x=20, score=0.8)]
    assert kinds(clip, twice) == []  # 10/30 is above 0.3: the clip once more
    assert kinds(clip, [twice[0], seen(1, "Clip", x=22, score=0.8)]) == [("missing", "clip-new-1")]  # 8/32
    assert kinds(clip, [seen(1, "Clip", x=60)]) == [("missing", "clip-new-1")]  # 50 px is more than 1.5 diagonals
    assert kinds(clip, []) == []  # what is not detected is not wrong
    covered = sighting(1, "c", "Clip", None)
    assert kinds([covered], [seen(1, "Clip"), seen(1, "Needle", x=60)]) == [("missing", "needle-new-1")]
    assert kinds([covered, sighting(4, "c", "Clip")], [seen(1, "Clip")]) == []
    assert kinds([covered, sighting(4, "c", "Clip")], [seen(1, "Clip", x=60)]) == [("missing", "clip-new-1")]


def test_a_missing_box_goes_on_with_the_track_beside_it() -> None:
    track = [sighting(1, "n7", "Needle"), sighting(4, "n7", "Needle")]
    found = one_of(track, [seen(2, "Needle", x=12), seen(3, "Needle", x=13)])
    assert [(one.second, one.instance, one.was, one.class_name) for one in found] == [
        (2, "n7", "", "Needle"), (3, "n7", "", "Needle"),
    ]  # fmt: skip
    assert found[0].box == AnnotatedBox(x=12, y=10, width=20, height=10)
    assert kinds(track, [seen(1, "Needle"), seen(2, "Clip")]) == [("missing", "clip-new-1")]


def test_a_box_has_one_partner() -> None:
    boxes = [sighting(1, "a", "Clip"), sighting(1, "b", "Clip", AnnotatedBox(x=14, y=10, width=20, height=10))]
    assert kinds(boxes, [seen(1, "Clip", x=10), seen(1, "Clip", x=30)]) == [("misplaced", "b")]


def faults_of(seeds: range) -> list[Planted]:
    return [planted(drawn(seed, f"d{seed}")[0], seed) for seed in seeds]


def detector(
    truth: Annotation, seed: int, miss: float = 0.05, false: float = 0.03, beside: float = 1.5
) -> list[BoxDetection]:
    """What a fair detector finds of a video: most boxes, a little beside them; and a few that are not there."""
    rng = np.random.default_rng([seed, 1])
    found = []
    for one in truth.sightings:
        if one.box is not None and rng.random() > miss:
            x, y = (float(value + rng.normal(0, beside)) for value in (one.box.x, one.box.y))
            box = AnnotatedBox(x=x, y=y, width=one.box.width, height=one.box.height)
            found.append(BoxDetection(truth.video.id, one.second, one.class_name, box, float(rng.uniform(0.5, 1))))
        if rng.random() < false:
            box = AnnotatedBox(x=float(rng.uniform(0, 350)), y=float(rng.uniform(0, 190)), width=24, height=24)
            score = float(rng.uniform(0, 0.6))
            found.append(BoxDetection(truth.video.id, one.second, one.class_name, box, score))
    return found


def test_planted_faults_are_found_and_accepting_them_gives_the_truth() -> None:
    some = faults_of(range(6))
    detections = [one for each in some for one in detector(each.truth, 3)]
    score = sure_score([each.crowd for each in some], detections)
    assert 0.3 < score < 0.65
    proposed = {each.truth.video.id: propose(each.crowd, detections, score) for each in some}
    found = [flag for each in some for flag in flags_of(proposed[each.truth.video.id], each.truth)]
    recall, precision = counted(found, frozenset().union(*(each.faults for each in some)))
    assert recall >= 0.85
    assert precision >= 0.85
    for each in some:
        own = proposed[each.truth.video.id]
        right = {one.id for one, flag in zip(own, flags_of(own, each.truth), strict=True) if flag in each.faults}
        decisions = {one.id: ACCEPT if one.id in right else REJECT for one in own}
        assert alike(each.truth, each.crowd) < 0.9
        assert alike(each.truth, corrected(each.crowd, own, decisions)) > 0.97


def test_a_perfect_detector_restores_everything() -> None:
    each = planted(drawn(9, "d9")[0], 9)
    own = propose(each.crowd, detector(each.truth, 0, miss=0, false=0, beside=0), 0.5)
    assert set(flags_of(own, each.truth)) == each.faults
    assert alike(each.truth, corrected(each.crowd, own, dict.fromkeys((one.id for one in own), ACCEPT))) == 1.0


def test_nothing_is_changed_by_itself() -> None:
    each = faults_of(range(1))[0]
    own = propose(each.crowd, detector(each.truth, 1), 0.5)
    assert corrected(each.crowd, own, {}) == each.crowd
    assert corrected(each.crowd, own, dict.fromkeys((one.id for one in own), REJECT)) == each.crowd


def test_an_accepted_proposal_fits_the_box_that_it_was_made_for() -> None:
    own = one_of([sighting(1, "c", "Clip")], [seen(1, "Needle"), seen(2, "Sponge", x=50)])
    before = Annotation(video=VIDEO, sightings=(sighting(1, "c", "Clip"),))
    decisions = {own[0].id: ACCEPT}
    assert corrected(before, own, decisions).sightings == (sighting(1, "c", "Needle"),)
    with pytest.raises(InputError, match="found a box of a Needle, expected the box of a Clip: propose again"):
        corrected(corrected(before, own, decisions), own, decisions)


def test_no_cell_of_a_table_is_a_formula() -> None:
    rows = [("=1+1", "-Clip", -0.5), ("@v", "\tx", None), ("'=a", "it's", 1.0)]
    text = csv_of(("id", "kind", "score"), rows)
    cells = list(csv.reader(text.splitlines()))
    assert cells[1:] == [["'=1+1", "'-Clip", "-0.5"], ["'@v", "'\tx", ""], ["''=a", "it's", "1"]]


def test_cvat_shows_proposals_and_brings_decisions_back() -> None:
    before = Annotation(video=VIDEO, sightings=(sighting(1, "c", "Clip"), sighting(2, "c", "Clip")))
    own = propose(before, [seen(1, "Needle"), seen(2, "Clip"), seen(2, "Sponge", x=50)], 0.5)
    content = to_cvat(with_proposals(before, own))
    again = read_cvat(Path("v.xml"), content, ReadDefaults())
    assert asked_back(again) == (before, {})
    text = content.decode()
    at = text.index(own[1].id)
    changed = text[:at] + text[at:].replace('"decision">open', '"decision">accept', 1).replace(
        '"by">nobody', '"by">Ada', 1
    )
    kept, decisions = asked_back(read_cvat(Path("v.xml"), changed.encode(), ReadDefaults()))
    assert kept == before
    assert decisions == {own[1].id: ACCEPT}
    nobody = read_cvat(Path("v.xml"), text.replace('"decision">open', '"decision">accept', 1).encode(), ReadDefaults())
    with pytest.raises(InputError, match="found decision 'accept' by 'nobody'"):
        asked_back(nobody)


def test_a_table_of_detections(tmp_path: Path) -> None:
    file = tmp_path / "detections.csv"
    file.write_text("video,second,class,x,y,width,height,score\nv,3,Clip,1,2,3,4,0.5\n", encoding="utf-8")
    box = AnnotatedBox(x=1, y=2, width=3, height=4)
    assert read_detections(file) == [BoxDetection("v", 3, "Clip", box, 0.5)]
    file.write_text("video,second,class,x,y,width,height,score\nv,3.5,Clip,1,2,-3,4,1.5\n", encoding="utf-8")
    with pytest.raises(InputError, match="3 faults") as error:
        read_detections(file)
    assert "column 'score': found '1.5', expected a number from 0 to 1" in "\n".join(error.value.__notes__)


def test_the_score_that_agrees_best() -> None:
    crowd = Annotation(video=VIDEO, sightings=tuple(sighting(k, "c", "Clip") for k in range(10)))
    right = [seen(k, "Clip", score=0.3 + k / 100) for k in range(10)]
    wrong = [seen(20 + k, "Clip", score=0.2) for k in range(10)]
    assert sure_score([crowd], right + wrong) == pytest.approx(0.3)
    assert sure_score([crowd], []) == 0.5
