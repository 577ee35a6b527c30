"""FOCUS's rules one by one, on tracks made by hand."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from proctor.tracks import AnnotatedMoment, Annotation, Timeline
from proctor_build.files import read_annotations, write_folder
from proctor_build.focus.builder import ask_focus
from proctor_build.focus.plan import FocusPlan, focus_templates
from proctor_build.focus.rules import ATTRIBUTE_RULES, FOCUS_RULES, known_attributes
from tests.support.hand_tracks import HAND, VIDEO, track
from tests.support.log_reading import CLOCK, seconds_of


def offered(rule: str, end: float = 100.0) -> dict[str, object]:
    say = focus_templates(HAND.classes)
    return {one.question: one.answer for one in FOCUS_RULES[rule](Timeline(HAND, end), say)}


def test_rules_by_hand() -> None:
    assert offered("remain") == {
        "How many clips are still inside the patient?": 1,
        "How many needles are still inside the patient?": 1,
        "How many specimens are still inside the patient?": 0,
    }
    assert list(offered("remain-all").values()) == [2]
    assert list(offered("remain-all", 45.0).values()) == [1]
    assert list(offered("remain-all", 65.0).values()) == [3], "the specimen came loose"
    assert list(offered("out-share").values()) == [67.0], "one of two needles and the specimen; a clip may stay"
    assert list(offered("nothing-left").values()) == [False]
    assert list(offered("nothing-left", 45.0).values()) == [True], "a clip may stay"
    assert offered("all-out") == {
        "Have all needles that were in the patient been taken out?": False,
        "Have all specimens that were in the patient been taken out?": True,
    }, "nobody takes clips out"
    assert offered("when-nth") == {"When was a needle brought into the patient for the second time?": [50.0]}
    assert offered("last-seen")["When was a needle last in view?"] == [69.0]
    assert offered("last-seen", 45.0)["When was a needle last in view?"] == [39.0]
    assert offered("stay", 45.0) == {"How long did the needle stay in the patient, as hh:mm:ss?": [31.0]}
    assert offered("stay") == {}, "two needles: which of them"
    assert [answer for text, answer in offered("which-first-out").items() if "needle" in text] == [1]
    at = {text: answer for text, answer in offered("which-at").items() if "00:00:55" in text}
    assert list(at.values()) == [2]
    same = offered("same")
    assert same["Is the needle in view at 00:00:15 the same one as the needle in view at 00:00:30?"] is True
    assert same["Is the needle in view at 00:00:30 the same one as the needle in view at 00:00:55?"] is False
    assert [answer for text, answer in offered("cell").items() if "needle at 00:00:55" in text] == ["3/2"]
    assert offered("view-share")["In what percentage of the video so far is at least one needle in view?"] == 50.0
    assert list(offered("kinds-left", 45.0).values()) == [["Clip"]]


def renamed(annotation: Annotation, old: str, new: str) -> Annotation:
    return Annotation.model_validate_json(annotation.model_dump_json().replace(f'"{old}"', f'"{new}"'))


@pytest.mark.parametrize("name", ["Clip", "Mesh", "External Drain", "Absorbable Hemostatic Agent"])
def test_what_may_stay_is_not_asked_for_retrieval(name: str) -> None:
    """Only the needle must leave; of the other nobody is asked whether all "have been taken out again"."""
    there = renamed(HAND, "Clip", name)
    say, line = focus_templates(there.classes), Timeline(there)
    asked = {one.question: one.answer for one in FOCUS_RULES["all-out"](line, say)}
    assert [text for text in asked if name.casefold() in text] == []
    assert len(asked) == 2
    for rule, answer in (("out-share", 67.0), ("must-leave", ["Needle"]), ("left-behind", 1), ("nothing-left", False)):
        assert [one.answer for one in FOCUS_RULES[rule](line, say)] == [answer], rule


@pytest.mark.parametrize(
    ("seconds", "answers"), [(3, []), (5, []), (6, [6.0]), (50, [50.0]), (94, [94.0]), (95, []), (100, [])]
)
def test_a_share_of_view_is_asked_where_never_and_always_are_wrong(seconds: int, answers: list[float]) -> None:
    """With a tolerance of five points "0" was right for a needle in view for 4 % of the video."""
    shown = HAND.model_copy(update={"sightings": tuple(track("n1", "Needle", 0, seconds)), "moments": HAND.moments[:1]})
    line = Timeline(shown.model_copy(update={"video": VIDEO.model_copy(update={"seconds": 99.0})}))
    assert [one.answer for one in FOCUS_RULES["view-share"](line, focus_templates(["Needle"]))] == answers


def test_clips_are_not_numbered() -> None:
    """They look alike: a number of one is a count of events in disguise. Needles are few, and are numbered."""
    clips = renamed(renamed(HAND, "Clip", "Sponge"), "Needle", "Clip")
    for rule in ("which-first-out", "which-at", "same"):
        assert offered(rule) != {}
        assert list(FOCUS_RULES[rule](Timeline(clips), focus_templates(clips.classes))) == []


def test_what_arises_in_the_body_is_not_asked_about_as_if_it_were_inserted() -> None:
    built = ask_focus([HAND], FocusPlan(per_video=300))
    about = [request.question for request in built.requests if "specimen" in request.question]
    assert any("taken out of the patient" in text or "in view" in text for text in about)
    assert not [text for text in about if "a specimen been brought" in text or "specimens that were brought" in text]


STONE = Annotation(
    video=VIDEO,
    sightings=(
        *track("c1", "Clip", 10, 100, x=70),
        *track("g1", "Gallstone", 30, 60),
        *track("g2", "Gallstone", 40, 70, y=40),
    ),
    moments=(
        AnnotatedMoment(kind="insertion", instance="c1", class_name="Clip", time=9.5),
        AnnotatedMoment(kind="retrieval", instance="g1", class_name="Gallstone", time=60.4),
    ),
)


def test_a_lost_stone_is_left_behind() -> None:
    """Nobody inserts a gallstone, and one that is never retrieved stays: not everything is out."""

    def answers(rule: str, end: float) -> dict[str, object]:
        say = focus_templates(STONE.classes, {"Gallstone"})
        return {one.question: one.answer for one in FOCUS_RULES[rule](Timeline(STONE, end), say)}

    bagged = " (What lies in a specimen bag counts as taken out.)"
    assert list(answers("nothing-left", 100.0).values()) == [False]
    assert answers("nothing-left", 20.0) == {}, "only a clip was there, which may stay"
    assert answers("remain", 100.0)[f"How many gallstones are still inside the patient?{bagged}"] == 1
    assert answers("remain", 50.0)[f"How many gallstones are still inside the patient?{bagged}"] == 2
    assert answers("all-out", 100.0) == {f"Have all gallstones that were in the patient been taken out?{bagged}": False}
    assert answers("out", 50.0) == {
        "Has a clip been taken out of the patient so far?": False,
        f"Has a gallstone been taken out of the patient so far?{bagged}": False,
    }
    assert list(answers("kinds-left", 100.0).values()) == [["Clip", "Gallstone"]]
    assert list(answers("out-share", 100.0).values()) == [50.0]
    built = ask_focus([STONE], FocusPlan(per_video=300))
    rules = {
        reference.rule
        for request, reference in zip(built.requests, built.references, strict=True)
        if "gallstone" in request.question.casefold()
    }
    assert {"remain", "out"} <= rules


TWICE = Annotation(
    video=VIDEO.model_copy(update={"seconds": 700.0}),
    sightings=(*track("s1", "Sponge", 60, 100), *track("n1", "Needle", 400, 600, x=60)),
    moments=(
        AnnotatedMoment(kind="insertion", instance="s1", class_name="Sponge", time=60.0),
        AnnotatedMoment(kind="retrieval", instance="s1", class_name="Sponge", time=100.0),
        AnnotatedMoment(kind="insertion", instance="s1", class_name="Sponge", time=300.0),
        AnnotatedMoment(kind="retrieval", instance="s1", class_name="Sponge", time=360.0),
        AnnotatedMoment(kind="insertion", instance="n1", class_name="Needle", time=400.0),
    ),
)


@pytest.mark.parametrize(
    ("end", "out", "inside", "share"),
    [(200.0, [1], 0, [100.0]), (350.0, [], 1, []), (380.0, [1], 0, [100.0]), (700.0, [1], 1, [50.0])],
)
def test_an_object_that_goes_in_and_out_twice_is_one_object(
    end: float, out: list[int], inside: int, share: list[float]
) -> None:
    """At 350 s it was taken out and is inside again: how many "have been taken out" is no clear question then."""
    say = focus_templates(TWICE.classes)
    line = Timeline(TWICE, end)

    def answers(rule: str) -> list[object]:
        return [one.answer for one in FOCUS_RULES[rule](line, say)]

    assert answers("how-many-out") == out
    assert answers("remain-all") == [inside]
    assert answers("out-share") == share


def test_nothing_is_asked_before_there_is_anything() -> None:
    """The first object arrives at 60 s of 700; all times of asking lie after it, whatever the seed."""
    for seed in range(5):
        built = ask_focus([TWICE], FocusPlan(per_video=60, times=6, seed=seed))
        assert min(request.end_time for request in built.requests) >= 60
        assert len({request.end_time for request in built.requests}) == 7
    empty = TWICE.model_copy(update={"moments": ()})
    assert {one.end_time for one in ask_focus([empty], FocusPlan(per_video=60)).requests} == {700.0}


def test_half_hidden_objects_are_not_asked_about() -> None:
    partly = [one.model_copy(update={"occluded": 30 <= one.second <= 35}) for one in HAND.sightings]
    line = Timeline(HAND.model_copy(update={"sightings": tuple(partly)}))
    assert not {29, 30, 33, 35, 36} & set(line.quiet())
    assert {25, 28, 37} <= set(line.quiet())
    assert not {9, 10, 40, 41} & set(line.quiet()), "something comes or goes"


def test_class_names_are_written_as_the_challenge_does() -> None:
    lower = json.loads(HAND.model_dump_json().replace('"Needle"', '"needle"').replace('"Clip"', '"my clip"'))
    built = ask_focus([Annotation.model_validate(lower)], FocusPlan(per_video=300))
    sets = [one.answer for one in built.references if one.format == "fo_class"]
    assert any("Needle" in one for one in sets)
    assert not any("needle" in one for one in sets)
    assert any("my clip" in one for one in sets)


# One instance, and what it is like


def test_rules_on_one_instance_by_hand() -> None:
    the_first = "the needle that was brought into the patient at 00:00:10"
    assert offered("one-out")[f"Has {the_first} been taken out so far?"] is True
    assert offered("one-out", 35.0)[f"Has {the_first} been taken out so far?"] is False
    assert offered("one-when-out") == {f"When was {the_first} taken out?": [40.0]}
    assert offered("one-stay") == {f"How long did {the_first} stay inside, as hh:mm:ss?": [31.0]}
    where = offered("one-where")
    assert where[f"In which part of the picture, at 00:00:30, is {the_first}?"] == "upper left"
    assert not [text for text in where if "clip" in text], "there is one clip: no time needs to single it out"
    row = "A needle is still inside the patient and out of view. In which part of the picture was it last seen?"
    assert offered("last-location") == {}, "its middle lies on the line between left and right"
    moved = HAND.model_copy(
        update={"sightings": tuple(track("n1", "Needle", 10, 40) + track("n2", "Needle", 50, 70, x=60, y=70))}
    )
    say = focus_templates(HAND.classes)
    assert [one.answer for one in FOCUS_RULES["last-location"](Timeline(moved), say)] == ["lower right"]
    assert [one.question for one in FOCUS_RULES["last-location"](Timeline(moved), say)] == [row]
    assert list(FOCUS_RULES["last-location"](Timeline(moved, 71.0), say)) == [], "it may be in view yet"
    happens = {text: answer for text, answer in offered("happens").items() if "needles" in text}
    assert happens["What happens to needles at 00:00:10?"] == "one is brought into the patient"
    assert happens["What happens to needles at 00:00:40?"] == "one is taken out of the patient"
    assert str(happens["What happens to needles at 00:00:28?"]).startswith("at least one is in view, and none")
    assert str(happens["What happens to needles at 00:01:28?"]).startswith("none is in view, and none")
    assert "What happens to needles at 00:00:43?" not in happens, "one left three seconds before"
    assert list(offered("must-leave").values()) == [["Needle"]]
    assert list(offered("left-behind").values()) == [1]
    assert list(offered("left-behind", 65.0).values()) == [2], "a needle and the specimen"


def test_two_insertions_close_together_are_not_told_apart_by_their_time() -> None:
    close = HAND.model_copy(
        update={
            "moments": (
                AnnotatedMoment(kind="insertion", instance="n1", class_name="Needle", time=9.6),
                AnnotatedMoment(kind="insertion", instance="n2", class_name="Needle", time=13.0),
            )
        }
    )
    say = focus_templates(HAND.classes)
    for rule in ("one-out", "one-when-out", "one-stay", "one-where"):
        assert list(FOCUS_RULES[rule](Timeline(close), say)) == []


def coloured(video: str, colour: str, file_location: str, soaked: str) -> Annotation:
    """A sponge whose attributes change at 50 s, and a second one that goes in at 60 s and stays."""
    before = {
        "colour": "white",
        "location": file_location,
        "soaked": "false",
        "purpose": "drying",
        "held_by": "grasper",
    }
    after = {"colour": colour, "location": "liver bed", "soaked": soaked, "purpose": "pressing", "held_by": "nothing"}
    first = [
        one.model_copy(update={"attributes": before if one.second < 50 else after})
        for one in track("s1", "Sponge", 10, 58)
    ]
    second = [one.model_copy(update={"attributes": after}) for one in track("s2", "Sponge", 62, 80, x=60, y=70)]
    return Annotation(
        video=VIDEO.model_copy(update={"id": video, "file": f"{video}.mp4"}),
        sightings=(*first, *second),
        moments=(
            AnnotatedMoment(kind="insertion", instance="s1", class_name="Sponge", time=9.6),
            AnnotatedMoment(kind="retrieval", instance="s1", class_name="Sponge", time=58.4),
            AnnotatedMoment(kind="insertion", instance="s2", class_name="Sponge", time=61.5),
        ),
    )


ATTRIBUTED = [
    coloured("a", "red", "pelvis", "true"),
    coloured("b", "brown", "spleen", "false"),
    coloured("c", "pink", "stomach", "true"),
]

ASKED_OF = {
    "property": (rf"What is the colour of the sponge at {CLOCK}\?", "colour"),
    "is-property": (rf"Is the sponge soaked at {CLOCK}\?", "soaked"),
    "site": (rf"Where in the body is the sponge at {CLOCK}\?", "location"),
    "use": (rf"What is the sponge used for at {CLOCK}\?", "purpose"),
    "holder": (rf"What holds the sponge at {CLOCK}\?", "held_by"),
}


def test_attributes_are_asked_and_read_again_from_the_boxes(tmp_path: Path) -> None:
    """Through CVAT and back; each reference is compared with the box of the second that the question names."""
    write_folder(ATTRIBUTED, "cvat", tmp_path / "cvat")
    again = read_annotations([tmp_path / "cvat"])
    assert again == ATTRIBUTED
    built = ask_focus(again, FocusPlan(per_video=100, even_capabilities=False))
    boxes = {(one.video.file, seen.second): seen for one in again for seen in one.sightings}
    read = Counter[str]()
    for request, reference in zip(built.requests, built.references, strict=True):
        if reference.rule not in ASKED_OF:
            continue
        text, attribute = ASKED_OF[reference.rule]
        match = re.match(text, request.question)
        assert match, request.question
        value = boxes[request.videoID, int(seconds_of(match[1]))].attributes[attribute]
        if reference.rule == "is-property":
            assert reference.answer == {"true": "yes", "false": "no"}[value]
        else:
            assert dict(re.findall(r"([A-D])\) ([^;.]+)", request.question))[reference.answer] == value
        read[reference.rule] += 1
    assert set(read) == set(ASKED_OF)
    leaves = {one.primary for one in built.references}
    assert {"object_attributes", "spatial_localization_situs", "fo_usage_purpose"} <= leaves


def test_where_in_the_body_an_object_was_last_seen() -> None:
    say = focus_templates(["Sponge"], (), known_attributes(ATTRIBUTED))
    line = Timeline(ATTRIBUTED[0])

    def answers(rule: str) -> dict[str, Any]:
        return {one.question: one.answer for one in FOCUS_RULES[rule](line, say)}

    one = "Where in the body was the sponge that was brought into the patient at {} last seen?"
    assert answers("one-site") == {one.format("00:00:10"): "liver bed", one.format("00:01:02"): "liver bed"}
    assert list(answers("last-site").values()) == ["liver bed"]
    early = {one.answer for one in FOCUS_RULES["one-site"](Timeline(ATTRIBUTED[0], 30.0), say)}
    assert early == {"pelvis"}
    changing = {text for text in answers("property") if "00:00:49" in text or "00:00:50" in text}
    assert changing == set(), "just then it changes"


def test_without_attributes_nothing_is_asked_of_them() -> None:
    say = focus_templates(HAND.classes)
    for rule in ATTRIBUTE_RULES:
        assert list(FOCUS_RULES[rule](Timeline(HAND), say)) == []
