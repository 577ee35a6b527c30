"""From tracks to FOCUS: every reference is read again from the log of events, nothing can be guessed, and the
files are the toolkit's."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.benchmarks.focus import CAPABILITIES, READER, lettered
from proctor.build.audit import audit_items
from proctor.build.simulate import Event, simulate
from proctor.build.tracks import (
    Annotation,
    Box,
    FocusBuilt,
    FocusPlan,
    Moment,
    Offer,
    Sighting,
    Timeline,
    Video,
    ask_focus,
    build_focus,
    complete,
    read_annotations,
    write_folder,
)
from proctor.build.tracks.focus_rules import FOCUS_RULES
from proctor.build.tracks.focus_words import ASKED, focus_words
from proctor.build.tracks.giveaway import foregone, gives_away
from proctor.core import Benchmark, InputError
from proctor.core.formats import (
    AnswerFormat,
    BinaryFormat,
    ChoiceFormat,
    ClassesFormat,
    CountFormat,
    PatternFormat,
    PercentageFormat,
    TimestampsFormat,
)
from tests.support.drawn_tracks import drawn
from tests.support.log_reading import CLOCK, READINGS, disagreements, seconds_of, times


def test_simulated_videos_become_questions_that_the_event_log_confirms(tmp_path: Path) -> None:
    """simulate → tracks → CVAT → back → questions; each reference against the log that nobody in between saw."""
    folder = simulate(
        tmp_path / "sim", videos=3, seconds=40, fps=5, size=(256, 144), questions_per_video=1, seed=2
    )
    tracks = read_annotations([folder / "tracks"])
    write_folder(tracks, "cvat", tmp_path / "cvat")
    again = read_annotations([tmp_path / "cvat"])
    assert again == tracks
    completions = [complete(one) for one in again]
    assert [finding for one in completions for finding in one.open] == []
    built = build_focus(completions, tmp_path / "focus", FocusPlan(per_video=60, seed=1))
    events = {file.stem: json.loads(file.read_text())["events"] for file in (folder / "events").iterdir()}
    wrong, read = disagreements(built, events, {one.video.id: one for one in again})
    assert wrong == []
    assert len(built.requests) >= 3 * 45
    assert len(read) >= 25


@pytest.fixture(scope="module")
def many() -> tuple[list[Annotation], dict[str, list[Event]]]:
    """Forty procedures, drawn without pictures."""
    found = {f"v{number:02d}": drawn(11, f"v{number:02d}", 60.0) for number in range(40)}
    return [annotation for annotation, _ in found.values()], {name: log for name, (_, log) in found.items()}


@pytest.fixture(scope="module")
def built(
    many: tuple[list[Annotation], dict[str, list[Event]]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[FocusBuilt, Benchmark]:
    out = tmp_path_factory.mktemp("built") / "focus"
    asked = build_focus([complete(one) for one in many[0]], out, FocusPlan(per_video=21, seed=4))
    return asked, READER.load(out)


@pytest.fixture(scope="module")
def asked(built: tuple[FocusBuilt, Benchmark]) -> FocusBuilt:
    return built[0]


@pytest.fixture(scope="module")
def benchmark(built: tuple[FocusBuilt, Benchmark]) -> Benchmark:
    return built[1]


def test_every_rule_agrees_with_the_log(
    many: tuple[list[Annotation], dict[str, list[Event]]], asked: FocusBuilt
) -> None:
    events = {name: [event.model_dump(mode="json") for event in log] for name, log in many[1].items()}
    wrong, read = disagreements(asked, events, {one.video.id: one for one in many[0]})
    assert wrong == []
    assert set(read) == set(FOCUS_RULES) == set(ASKED) == {*READINGS, "where", "cell"}


def test_no_constant_answer_wins(asked: FocusBuilt) -> None:
    """Bounds: half of yes and no, a quarter (and one) at each letter, a fifth of any other format's answers."""
    assert {form: number for form, (number, _) in asked.formats.items() if number < 100} == {}
    share = {form: share for form, (_, share) in asked.formats.items()}
    assert set(share) == {"binary", "number", "multiple_choice", "percentage", "fo_class", "time", "matching"}
    assert share.pop("binary") <= 0.5 + 1e-9
    assert share.pop("multiple_choice") <= 0.26
    assert max(share.values()) <= 0.2, share


def test_no_answer_of_a_rule_is_worth_giving_always(asked: FocusBuilt) -> None:
    per_rule: dict[str, Counter[str]] = defaultdict(Counter)
    for request, reference in zip(asked.requests, asked.references, strict=True):
        if reference.format == "binary":
            (rule,) = [name for name, (text, _) in READINGS.items() if re.fullmatch(text, request.question)]
            per_rule[rule][reference.answer] += 1
    for rule, answers in per_rule.items():
        assert max(answers.values()) <= 0.65 * answers.total() + 2, (rule, answers)


def test_the_item_audit_finds_nothing(benchmark: Benchmark) -> None:
    """Over 40 videos the best way to answer without looking is at chance, where there is a chance level, and
    not better than the usual answer elsewhere."""
    audit = audit_items(benchmark.items, draws=200, facets=[])
    assert len(audit.formats) == 7
    for part in audit.formats:
        assert part.selected is not None, part.kind
        reached = part.selected.accuracy
        level = part.chance if part.chance is not None else max(0.25, part.constant_share)
        assert reached.ci_low is not None
        assert reached.ci_low <= level, (part.kind, reached)


def test_the_reader_reads_it_back(benchmark: Benchmark, asked: FocusBuilt) -> None:
    """The same questions; every key parses in its format with what the reader makes of it."""
    assert [item.id for item in benchmark.items] == [request.qID for request in asked.requests]
    for item, request, reference in zip(benchmark.items, asked.requests, asked.references, strict=True):
        assert item.group == request.videoID
        assert item.question.startswith(request.question.removesuffix(lettered(item.options)).rstrip())
        assert not item.options or lettered(item.options) not in item.question  # the prompt lists them once
        assert item.tags["primary"] == reference.primary
        assert item.tags["distribution"] == "out"
        assert item.reference is not None
        again = item.answer.parse(reference.answer, item.options)
        assert item.answer.match(item.reference.answer, again)
    kinds = {item.answer.kind for item in benchmark.items}
    assert kinds == {"binary", "count", "choice", "percentage", "classes", "timestamps", "pattern"}
    groups = {item.tags["capability"] for item in benchmark.items}
    assert len(groups) == 5
    assert 0.2 < sum(bool(item.tags["clinical"]) for item in benchmark.items) / len(benchmark.items) < 0.8


def test_labels_are_of_the_taxonomy() -> None:
    for asked_by in ASKED.values():
        assert {asked_by.primary, *asked_by.secondaries} <= set(CAPABILITIES)
        assert asked_by.primary not in asked_by.secondaries


def test_the_same_seed_builds_the_same_files(
    many: tuple[list[Annotation], dict[str, list[Event]]], tmp_path: Path
) -> None:
    completions = [complete(one) for one in many[0][:4]]
    source = tmp_path / "tracks.json"
    source.write_text("{}")
    contents = []
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        build_focus(completions, tmp_path / name, FocusPlan(per_video=8, seed=seed), sources=[source])
        contents.append({one.name: one.read_bytes() for one in (tmp_path / name).iterdir()})
    assert contents[0] == contents[1]
    assert set(contents[0]) == {"requests.json", "references.json", "build.json"}
    assert contents[0]["requests.json"] != contents[2]["requests.json"]
    record = json.loads(contents[0]["build.json"])
    assert (record["plan"]["seed"], record["builder_version"]) == (1, "2")
    assert record["sources"][0]["file"] == "tracks.json"
    assert len(record["sources"][0]["sha256"]) == 64
    assert [video["id"] for video in record["videos"]] == ["v00", "v01", "v02", "v03"]
    assert sum(part["questions"] for part in record["formats"].values()) == 32


def test_nothing_after_the_time_of_asking_counts() -> None:
    annotation, _ = drawn(11, "v03", 60.0)
    early = ask_focus([annotation], FocusPlan(per_video=60, times=3, seed=0))
    for request, reference in zip(early.requests, early.references, strict=True):
        assert 0 < request.end_time <= 60
        for text in re.findall(CLOCK, request.question):
            assert seconds_of(text) < request.end_time
        if reference.format == "time":
            assert all(time < request.end_time for time in times(reference.answer))
            # the time of asking, which every question shows, is not the answer either
            tolerance = float(str(reference.format_kwargs["threshold_seconds"]))
            assert all(abs(time - request.end_time) > tolerance for time in times(reference.answer))
    assert len({request.end_time for request in early.requests}) == 4


@pytest.mark.parametrize(
    ("procedure", "listed", "out"),
    [
        ("laparoscopic Cholecystectomy", None, False),
        ("Rectal  resection", None, False),
        ("colorectal resection", None, True),
        ("rectosigmoid resection", None, True),
        ("open cholecystectomy", None, True),
        ("appendectomy", None, True),
        ("appendectomy", ("append",), True),
        ("appendectomy", ("Robotic appendectomy",), False),
        ("", None, True),
        ("laparoscopic", ("",), True),
    ],
)
def test_distribution_follows_the_name_of_the_procedure(
    procedure: str, listed: tuple[str, ...] | None, out: bool
) -> None:
    annotation, _ = drawn(11, "v01", 60.0, procedure)
    plan = FocusPlan(per_video=3) if listed is None else FocusPlan(per_video=3, in_distribution=listed)
    built = ask_focus([annotation], plan)
    assert {one.ood for one in built.references} == {out}
    assert {one.procedure_type for one in built.requests} == {procedure or "unknown"}


def test_a_question_of_a_known_procedure_may_be_out_of_distribution(tmp_path: Path) -> None:
    annotation, _ = drawn(11, "v01", 60.0, "sigmoid resection")
    other, _ = drawn(11, "v02", 60.0, "appendectomy")
    plan = FocusPlan(per_video=60, unseen_questions=("remain", "cell"))
    build_focus([complete(annotation), complete(other)], tmp_path / "focus", plan)
    written = json.loads((tmp_path / "focus" / "references.json").read_text())
    for row in written:
        expected = {True: "question", False: "nothing"}[row["rule"] in {"remain", "cell"}]
        if row["qID"].startswith("v02"):
            expected = {"question": "both", "nothing": "procedure"}[expected]
        assert row["unseen"] == expected
        assert row["ood"] == (expected != "nothing")
    assert {row["unseen"] for row in written} == {"nothing", "question", "procedure", "both"}
    assert json.loads((tmp_path / "focus" / "build.json").read_text())["plan"]["unseen_questions"] == [
        "remain",
        "cell",
    ]


# Single rules, by hand

VIDEO = Video(id="v", file="v.mp4", width=90, height=90, seconds=100.0, fps=25)


def track(instance: str, name: str, first: int, last: int, x: float = 10, y: float = 10) -> list[Sighting]:
    box = Box(x=x, y=y, width=10, height=10)
    return [Sighting(second=s, instance=instance, class_name=name, box=box) for s in range(first, last)]


HAND = Annotation(
    video=VIDEO,
    sightings=(
        *track("n1", "Needle", 10, 40),
        *track("n2", "Needle", 50, 70, x=40, y=70),
        *track("c1", "Clip", 20, 100, x=70),
        *track("s1", "Specimen", 60, 80, y=70),
    ),
    moments=(
        Moment(kind="insertion", instance="n1", class_name="Needle", time=9.6),
        Moment(kind="retrieval", instance="n1", class_name="Needle", time=40.2),
        Moment(kind="insertion", instance="c1", class_name="Clip", time=19.5),
        Moment(kind="insertion", instance="n2", class_name="Needle", time=49.7),
        Moment(kind="retrieval", instance="s1", class_name="Specimen", time=80.4),
    ),
)


def offered(rule: str, end: float = 100.0) -> dict[str, object]:
    say = focus_words(HAND.classes)
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
    assert list(offered("out-share").values()) == [67.0], (
        "one of two needles and the specimen; a clip may stay"
    )
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
    assert (
        offered("view-share")["In what percentage of the video so far is at least one needle in view?"]
        == 50.0
    )
    assert list(offered("kinds-left", 45.0).values()) == [["Clip"]]


def test_what_arises_in_the_body_is_not_asked_about_as_if_it_were_inserted() -> None:
    built = ask_focus([HAND], FocusPlan(per_video=300))
    about = [request.question for request in built.requests if "specimen" in request.question]
    assert any("taken out of the patient" in text or "in view" in text for text in about)
    assert not [
        text for text in about if "a specimen been brought" in text or "specimens that were brought" in text
    ]


STONE = Annotation(
    video=VIDEO,
    sightings=(
        *track("c1", "Clip", 10, 100, x=70),
        *track("g1", "Gallstone", 30, 60),
        *track("g2", "Gallstone", 40, 70, y=40),
    ),
    moments=(
        Moment(kind="insertion", instance="c1", class_name="Clip", time=9.5),
        Moment(kind="retrieval", instance="g1", class_name="Gallstone", time=60.4),
    ),
)


def test_a_lost_stone_is_left_behind() -> None:
    """Nobody inserts a gallstone, and one that is never retrieved stays: not everything is out."""

    def answers(rule: str, end: float) -> dict[str, object]:
        say = focus_words(STONE.classes, {"Gallstone"})
        return {one.question: one.answer for one in FOCUS_RULES[rule](Timeline(STONE, end), say)}

    bagged = " (What lies in a specimen bag counts as taken out.)"
    assert list(answers("nothing-left", 100.0).values()) == [False]
    assert answers("nothing-left", 20.0) == {}, "only a clip was there, which may stay"
    assert answers("remain", 100.0)[f"How many gallstones are still inside the patient?{bagged}"] == 1
    assert answers("remain", 50.0)[f"How many gallstones are still inside the patient?{bagged}"] == 2
    assert answers("all-out", 100.0) == {
        f"Have all gallstones that were in the patient been taken out?{bagged}": False
    }
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
        Moment(kind="insertion", instance="s1", class_name="Sponge", time=60.0),
        Moment(kind="retrieval", instance="s1", class_name="Sponge", time=100.0),
        Moment(kind="insertion", instance="s1", class_name="Sponge", time=300.0),
        Moment(kind="retrieval", instance="s1", class_name="Sponge", time=360.0),
        Moment(kind="insertion", instance="n1", class_name="Needle", time=400.0),
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
    say = focus_words(TWICE.classes)
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


# What gives answers away


def offer(question: str, form: AnswerFormat, answer: Any, options: Sequence[str] = ()) -> Offer:
    return Offer(question, form, answer, "key", options=tuple(options))


@pytest.mark.parametrize(
    ("given", "away"),
    [
        (offer("Where is the clip?", ChoiceFormat(), "clip", ("clip", "mesh")), True),
        (offer("Clip or mesh?", ChoiceFormat(), "clip", ("clip", "mesh")), False),
        (offer("Which is it?", ChoiceFormat(), "clip", ("clip", "mesh")), False),
        (offer("What came at 00:00:30?", TimestampsFormat(tolerance=2), [31.0]), True),
        (offer("What came at 00:00:30?", TimestampsFormat(tolerance=2), [40.0]), False),
        (offer("When?", TimestampsFormat(tolerance=2), [99.0]), True),
        (offer("How many of the 3 clips?", CountFormat(), 3), True),
        (offer("How many of the three clips?", CountFormat(), 3), True),
        (offer("How many at 00:00:03?", CountFormat(), 3), False),
        (offer("What percentage, if 40 are out?", PercentageFormat(), 40.0), True),
        (offer("Which row/column, as in 2/3?", PatternFormat(pattern="./."), "2/3"), True),
        (offer("Which row/column?", PatternFormat(pattern="./."), "2/3"), False),
        (offer("Which came with the clip?", ClassesFormat(classes=("Clip",)), ["Clip"]), True),
        (offer("Which came?", ClassesFormat(classes=("Clip",)), ["Clip"]), False),
        (offer("Which came, or none?", ClassesFormat(classes=("Clip",)), []), False),
        (offer("Is it in view?", BinaryFormat(), True), False),
    ],
)  # fmt: skip
def test_a_text_that_names_its_answer(given: Offer, away: bool) -> None:
    assert gives_away(given, 100.0) is away


def test_what_all_videos_answer_alike_is_foregone() -> None:
    say = focus_words(["Clip"])
    always = say.yes_no("Is there a clip?", True, "Clip", ("Clip",))
    never = say.yes_no("Is there a clip?", False, "Clip", ("Clip",))
    assert foregone({"a": [always], "b": [always], "c": [always]}) == {("", ("Clip",))}
    assert foregone({"a": [always], "b": [always], "c": [never]}) == set()
    assert foregone({"a": [always], "b": [always]}) == set()
    about = [say.yes_no("Is it there?", True, name, (name,)) for name in ("Clip", "Mesh", "Needle")]
    alike = {name: [one] for name, one in zip("abc", about, strict=True)}
    assert foregone(alike) == {("", ("Clip",)), ("", ("Mesh",)), ("", ("Needle",))}


def test_an_answer_that_is_too_common_is_thinned_out() -> None:
    """Videos in which nothing is ever taken out: no percentage but 0, no yes."""
    alike = []
    for number in range(3):
        one, _ = drawn(3, f"w{number}", 60.0)
        kept = tuple(moment for moment in one.moments if moment.kind == "insertion")
        alike.append(Annotation(video=one.video, sightings=one.sightings, moments=kept))
    built = ask_focus(alike, FocusPlan(per_video=200, times=1))
    assert built.dropped > 0
    number, share = built.formats["binary"]
    assert number >= 10
    assert share <= 0.5 + 1e-9
    assert not [one for one in built.requests if "Have all" in one.question]


# Nothing half written


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(InputError, match="found something there already, expected a new or an empty folder"):
        build_focus([complete(HAND)], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("there", [True, False])
def test_what_can_not_be_asked_leaves_nothing_behind(tmp_path: Path, there: bool) -> None:
    out = tmp_path / "focus"
    if there:
        out.mkdir()
    short = Video(id="v", file="v.mp4", width=90, height=90, seconds=1.0, fps=25)
    with pytest.raises(InputError, match="found tracks on which nothing can be asked, expected more boxes"):
        build_focus([complete(Annotation(video=short))], out)
    assert out.is_dir() is there
    assert [path for path in tmp_path.rglob("*") if path != out] == []


def test_a_class_that_no_list_could_hold() -> None:
    odd = HAND.model_copy(update={"sightings": tuple(track("x", "clip, lost", 1, 9))})
    with pytest.raises(InputError, match="found the class 'clip, lost', expected a name without a comma"):
        ask_focus([odd])


@pytest.mark.parametrize(
    ("arguments", "error"), [({"per_video": 0}, "per_video: found 0"), ({"times": -1}, "times: f")]
)
def test_plans_out_of_range(arguments: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError, match=error):
        FocusPlan(**arguments)
