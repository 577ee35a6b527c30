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

from proctor.audits.items import audit_items
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
from proctor.tasks.focus import READER
from proctor.tasks.focus.vocabulary import CAPABILITIES, GROUP_OF, lettered
from proctor.tasks.simulated import simulate
from proctor.tasks.simulated.script import Event
from proctor.tracks import AnnotatedVideo, Annotation, CandidateQuestion, constant_answers, leaks_answer
from proctor_build import complete
from proctor_build.files import read_annotations, write_folder
from proctor_build.focus.builder import FocusBuilt, ask_focus, build_focus
from proctor_build.focus.plan import ASKED, FocusPlan, focus_templates
from proctor_build.focus.rules import ATTRIBUTE_RULES, FOCUS_RULES
from tests.support.drawn_tracks import drawn
from tests.support.hand_tracks import HAND, track
from tests.support.log_reading import CLOCK, POSITIONED, READINGS, disagreements, seconds_of, times


def test_simulated_videos_become_questions_that_the_event_log_confirms(tmp_path: Path) -> None:
    """simulate → tracks → CVAT → back → questions; each reference against the log that nobody in between saw."""
    folder = simulate(tmp_path / "sim", videos=3, seconds=40, fps=5, size=(256, 144), questions_per_video=1, seed=2)
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
    asked = build_focus([complete(one) for one in many[0]], out, FocusPlan(per_video=25, seed=4))
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
    assert set(FOCUS_RULES) == set(ASKED)
    assert set(read) == set(FOCUS_RULES) - set(ATTRIBUTE_RULES) == {*READINGS, *POSITIONED}


def test_no_constant_answer_wins(asked: FocusBuilt) -> None:
    """Bounds: half of yes and no, a quarter (and one) at each letter, a fifth of any other format's answers."""
    assert {form: number for form, (number, _) in asked.formats.items() if number < 60} == {}
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
    assert json.loads((tmp_path / "focus" / "build.json").read_text())["plan"]["unseen_questions"] == ["remain", "cell"]


# Capabilities


def test_each_group_of_capabilities_is_asked_equally_often(asked: FocusBuilt) -> None:
    """Each is a fifth of the ranking; before, complex reasoning was 2.5 % of the questions."""
    groups = Counter(GROUP_OF[one.primary] for one in asked.references)
    assert len(groups) == 5
    assert max(groups.values()) - min(groups.values()) <= 0.05 * groups.total()


def test_formats_may_take_turns_instead(many: tuple[list[Annotation], dict[str, list[Event]]]) -> None:
    built = ask_focus(many[0][:8], FocusPlan(per_video=14, even_capabilities=False))
    assert {number for number, _ in built.formats.values()} == {16}


# What gives answers away


def candidate(question: str, form: AnswerFormat, answer: Any, options: Sequence[str] = ()) -> CandidateQuestion:
    return CandidateQuestion(question, form, answer, "key", options=tuple(options))


@pytest.mark.parametrize(
    ("given", "away"),
    [
        (candidate("Where is the clip?", ChoiceFormat(), "clip", ("clip", "mesh")), True),
        (candidate("Clip or mesh?", ChoiceFormat(), "clip", ("clip", "mesh")), False),
        (candidate("Which is it?", ChoiceFormat(), "clip", ("clip", "mesh")), False),
        (candidate("What came at 00:00:30?", TimestampsFormat(tolerance=2), [31.0]), True),
        (candidate("What came at 00:00:30?", TimestampsFormat(tolerance=2), [40.0]), False),
        (candidate("When?", TimestampsFormat(tolerance=2), [99.0]), True),
        (candidate("How many of the 3 clips?", CountFormat(), 3), True),
        (candidate("How many of the three clips?", CountFormat(), 3), True),
        (candidate("How many at 00:00:03?", CountFormat(), 3), False),
        (candidate("What percentage, if 40 are out?", PercentageFormat(), 40.0), True),
        (candidate("Which row/column, as in 2/3?", PatternFormat(pattern="./."), "2/3"), True),
        (candidate("Which row/column?", PatternFormat(pattern="./."), "2/3"), False),
        (candidate("Which came with the clip?", ClassesFormat(classes=("Clip",)), ["Clip"]), True),
        (candidate("Which came?", ClassesFormat(classes=("Clip",)), ["Clip"]), False),
        (candidate("Which came, or none?", ClassesFormat(classes=("Clip",)), []), False),
        (candidate("Is it in view?", BinaryFormat(), True), False),
    ],
)  # fmt: skip
def test_a_text_that_names_its_answer(given: CandidateQuestion, away: bool) -> None:
    assert leaks_answer(given, 100.0) is away


def test_what_all_videos_answer_alike_is_foregone() -> None:
    say = focus_templates(["Clip"])
    always = say.yes_no("Is there a clip?", True, "Clip", ("Clip",))
    never = say.yes_no("Is there a clip?", False, "Clip", ("Clip",))
    assert constant_answers({"a": [always], "b": [always], "c": [always]}) == {("", ("Clip",))}
    assert constant_answers({"a": [always], "b": [always], "c": [never]}) == set()
    assert constant_answers({"a": [always], "b": [always]}) == set()
    about = [say.yes_no("Is it there?", True, name, (name,)) for name in ("Clip", "Mesh", "Needle")]
    alike = {name: [one] for name, one in zip("abc", about, strict=True)}
    assert constant_answers(alike) == {("", ("Clip",)), ("", ("Mesh",)), ("", ("Needle",))}


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
    short = AnnotatedVideo(id="v", file="v.mp4", width=90, height=90, seconds=1.0, fps=25)
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
