"""Drafts of questions: what passes, what is refused, what can be answered blind, and what becomes of that."""

from __future__ import annotations

import asyncio
import json
import random
import re
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.stats import binom

from proctor.core import Item, Reference
from proctor.core.formats import ChoiceFormat
from proctor_build.pipeline import (
    DraftQuestion,
    ProcedureEvent,
    Project,
    as_item,
    flagged_by_chance,
    funnel,
    run_stages,
)
from proctor_build.pipeline.draft_options import candidates, too_like
from proctor_build.pipeline.finish import guessed_by_rules
from proctor_build.pipeline.questions import QuestionsSettings, broken_rule, how_many, stands_out
from tests.support.faulty_server import FaultyServer, Request
from tests.support.scribe import scribe

EVENT = ProcedureEvent(
    id="v-e001",
    source="v",
    start=2.0,
    end=6.0,
    action="slide the transducer to the left",
    intent="to find the liver edge",
)


def choice(text: str = "Based on the clip, what is done and why?", key: int = 0, **fields: Any) -> DraftQuestion:
    options = (
        "Slide across to reach a border",
        "Tilt up to reach a vessel",
        "Press to move gas",
        "Turn to see along it",
    )
    given = {"options": options, "groundtruth": "The transducer is slid to the left to find the liver edge."} | fields
    return DraftQuestion(id="v-q001", source="v", start=2, end=6, type="Type1", kind="mcq", text=text, key=key, **given)


@pytest.mark.parametrize(
    ("draft", "rule"),
    [
        (choice(), ""),
        (choice("What does the narrator explain here, and why?"), "sound"),
        (choice("Which on-screen caption is shown, and why?"), "on-screen text"),
        (choice("What is measured at 104 mm, and why is it?"), "exact readout"),
        (choice("What happens at 1:23 of the clip, and why?"), "time in the video"),
        (choice("Why does the operator slide across to reach this border?"), "the answer in the stem"),
        (choice(options=("One way", "Another way", "A third way")), "options: 3 instead of 4"),
        (choice(options=("Slide it", "slide it.", "Press", "Turn")), "options: one of them twice"),
        (choice(options=("Slide it", "All of the above", "Press", "Turn")), "two options in one"),
        (
            choice(groundtruth="The transducer is slid to the right to find the liver edge."),
            "not in the events: 'right'",
        ),
        (choice(groundtruth="The transducer is turned by 90 degrees to find the edge."), "not in the events: '90'"),
    ],
)
def test_rules_of_drafts(draft: DraftQuestion, rule: str) -> None:
    broken = broken_rule(draft, [EVENT], QuestionsSettings())
    assert str(broken).startswith(rule) if rule else broken is None


@pytest.mark.parametrize(
    ("lengths", "flagged"),
    [((4, 4, 4, 7), True), ((4, 4, 4, 6), False), ((4, 4, 400, 14), False), ((5, 14, 3, 14), False), ((2, 9), True)],
)
def test_only_the_longest_key_stands_out(lengths: tuple[int, ...], flagged: bool) -> None:
    options = tuple("x" * length for length in lengths)
    assert stands_out(options, len(options) - 1) is flagged


def test_the_same_stem_is_not_asked_twice_of_one_stretch() -> None:
    other = choice().model_copy(update={"id": "v-q000"})
    assert str(broken_rule(choice(), [EVENT], QuestionsSettings(), [other])).startswith("asked already")
    elsewhere = other.model_copy(update={"start": 20.0, "end": 26.0})
    assert broken_rule(choice(), [EVENT], QuestionsSettings(), [elsewhere]) is None


def test_the_number_grows_with_events_and_duration() -> None:
    def log(count: int, seconds: float) -> list[ProcedureEvent]:
        return [EVENT.model_copy(update={"start": n * seconds, "end": (n + 1) * seconds}) for n in range(count)]

    settings = QuestionsSettings(per_event=0.5, per_minute=1.0, most=20)
    assert [how_many(log(count, 6.0), settings) for count in (0, 1, 10, 20, 100)] == [0, 1, 6, 12, 20]
    assert how_many(log(10, 30.0), settings) == 10


def test_candidates_are_right_elsewhere_and_alike() -> None:
    one = choice()
    near = choice(options=("Slide along to reach a vessel", "a b c", "d e f", "g h i")).model_copy(
        update={"id": "w-q001", "source": "w"}
    )
    far = choice(options=("Wait", "a b c", "d e f", "g h i")).model_copy(update={"id": "w-q002", "source": "w"})
    same = choice(options=("Slide over it", "a b c", "d e f", "g h i")).model_copy(update={"id": "v-q009"})
    other_type = near.model_copy(update={"type": "Type2"})
    assert candidates(one, [one, far, near, same, other_type], 5) == ["Slide along to reach a vessel", "Wait"]
    assert too_like("Slide to the liver edge", ["Slide to the edge of a liver"], 0.8)
    assert not too_like("Slide to the liver edge", ["Rotate to the long axis"], 0.8)


_THINGS = (
    ("probe", "scope", "swab", "clip", "bag", "hook"),
    ("drain", "needle", "mesh", "stapler", "trocar", "clamp"),
    ("suture", "sponge", "loop", "tube", "wire", "balloon"),
)


def events_csv(count: int, video: int = 0) -> str:
    """The log of the first events of a video; three videos (0 to 2) have nothing but their verbs in common."""
    rows = [
        f"{n * 4}.0,{n * 4 + 3}.5,we {verb} the {thing} gently at step {word},to {goal} the {thing}"
        for n, (verb, thing, goal, word) in enumerate(
            zip(
                ("bring", "move", "slide", "take", "bring", "move"),
                _THINGS[video],
                ("open", "clear", "free", "close", "reach", "leave"),
                ("one", "two", "three", "four", "five", "six"),
                strict=True,
            )
        )
    ][:count]
    return "\n".join(["start,end,action,intent", *rows]) + "\n"


@pytest.fixture
def folder(tmp_path: Path, film: Path, server: FaultyServer) -> Path:
    root = tmp_path / "p"
    (root / "sources").mkdir(parents=True)
    words = "WEBVTT\n\n00:00.000 --> 00:03.000\nWe begin.\n"
    sources = []
    for video, name in enumerate(("a", "b", "c")):
        (root / "sources" / f"{name}.mp4").symlink_to(film / "videos" / "sim-000.mp4")
        (root / "sources" / f"{name}.vtt").write_text(words)
        (root / "sources" / f"{name}.csv").write_text(events_csv(6, video))
        paths = {"video": f"sources/{name}.mp4", "transcript": f"sources/{name}.vtt", "events": f"sources/{name}.csv"}
        sources.append({"id": name, **paths})
    model = {"name": "openai:m", "base_url": server.url, "retries": 0, "structured": "prompted"}
    stages = {"questions": {"free_share": 0.0, "per_event": 1.0}, "screen": {"seeds": 1}}
    settings = {
        "kind": "rexsonovqa",
        "models": {"writer": model, "screen": [{**model, "name": f"openai:m{n}"} for n in (1, 2, 3)]},
        "sources": sources,
        "stages": stages,
    }
    (root / "project.yaml").write_text(yaml.safe_dump(settings))
    return root


def records(folder: Path, stage: str, what: str = "records") -> list[dict[str, Any]]:
    files = sorted((folder / "work" / stage).glob("[a-z]*.json"))
    return [one for file in files for one in json.loads(file.read_text()).get(what, [])]


def ran(folder: Path, until: str) -> set[str]:
    return {one.state for one in asyncio.run(run_stages(Project(folder), until=until))}


def test_drafts_pass_and_point_to_their_events(folder: Path, server: FaultyServer) -> None:
    assert ran(folder, "questions") == {"made"}
    drafts = [DraftQuestion.model_validate(one) for one in records(folder, "questions")]
    assert len(drafts) >= 15
    logged = {one["id"]: one for one in records(folder, "events")}
    for one in drafts:
        about = [logged[name] for name in one.made_from]
        assert (one.start, one.end) == (about[0]["start"], about[-1]["end"])
        assert len(about) == (2 if one.type.startswith("Type3") else 1)
        assert one.calls[0].model == "openai:m"
    asked = server.count
    assert ran(folder, "questions") == {"kept"}
    assert server.count == asked


def test_what_a_blind_model_finds_is_flagged_and_repaired(folder: Path) -> None:
    """The drafts' keys are the longest options; the model that sees nothing takes the longest one."""
    assert ran(folder, "screen") == {"made"}
    screened = records(folder, "screen")
    drafts = {one["id"]: one for one in records(folder, "questions")}
    for one in screened:
        options = drafts[one["question"]]["options"]
        longest = max(options, key=lambda text: (len(text), text)) == options[drafts[one["question"]]["key"]]
        assert one["asked"] == 3
        assert one["solved"] == (3 if longest else 0)
        assert ("answered without the video" in one["flags"]) == longest
    assert sum("answered without the video" in one["flags"] for one in screened) >= 10

    assert ran(folder, "repair") <= {"made", "kept"}
    stays = records(folder, "repair")
    assert stays
    assert not any("answered without the video" in one["screening"]["flags"] for one in stays)
    for one in stays:
        first = drafts[one["id"]]
        if one["former"] and one["version"] == 1:  # stem and key word for word, the wrong options new
            assert (one["text"], one["options"][one["key"]]) == (first["text"], first["options"][first["key"]])
            assert set(one["options"]) & set(first["options"]) == {one["options"][one["key"]]}
            assert any("confirmed by a clinician" in flag for flag in one["flags"])
    removed = [one for one in records(folder, "repair", "refused") if one["kind"] == "removed"]
    assert len(stays) + len({one["id"] for one in removed}) == len(drafts)


def test_blind_answers_are_read_by_the_format_of_choices(folder: Path, server: FaultyServer) -> None:
    """The same letter in other words is the same answer; "I do not know" is none, and no wrong one."""
    wordings = ("Answer: {}", "Option {}", "({}) is the most plausible.", "I do not know.", "Cannot be determined.")
    turns = count()

    def worded(request: Request) -> str:
        blind = re.search("^A\\. ", request.text, re.MULTILINE) and "You edit" not in request.text
        if not blind:
            return scribe(request)
        return wordings[next(turns) % 5].format(scribe(request).removeprefix("Answer: "))

    server._reply = worded
    ran(folder, "screen")
    drafts = {one["id"]: one for one in records(folder, "questions")}
    judgements = 0
    for one in records(folder, "screen"):
        options = drafts[one["question"]]["options"]
        longest = max(options, key=lambda text: (len(text), text)) == options[drafts[one["question"]]["key"]]
        for judgement in one["judgements"]:
            silent = judgement["said"] in wordings
            assert judgement["right"] is (None if silent else longest), judgement
            judgements += 1
        assert one["missing"] == sum(judgement["said"] in wordings for judgement in one["judgements"])
        assert one["solved"] == (one["asked"] if longest else 0)
    assert judgements >= 45


def test_a_model_that_declines_to_guess_has_screened_nothing(folder: Path, server: FaultyServer) -> None:
    def declines(request: Request) -> str:
        blind = re.search("^A\\. ", request.text, re.MULTILINE) and "You edit" not in request.text
        return "I can't answer without seeing the clip." * 2 if blind else scribe(request)

    server._reply = declines
    ran(folder, "export")
    screened = records(folder, "screen")
    assert {(one["asked"], one["solved"], one["missing"], one["rate"], one["p"]) for one in screened} == {
        (0, 0, 3, None, None)
    }
    unscreened = "not screened: no blind answer that counts"
    assert all(unscreened in one["flags"] for one in (*screened, *records(folder, "split")))
    drafts, stays = len(screened), len(records(folder, "split"))
    said = f"mcq: 0 of 0 blind answers right; {3 * drafts} more declined, unreadable or not judged"
    assert said in map(str, records(folder, "screen", "notes"))
    datasheet = (folder / "items" / "DATASHEET.md").read_text()
    published = f"as published: 0 of 0 answers right; {3 * stays} more declined, unreadable or not judged."
    assert published in datasheet
    assert f"- {unscreened}: {stays} questions" in datasheet


def test_every_kept_reply_is_counted_and_an_answer_is_judged_once(folder: Path, server: FaultyServer) -> None:
    """Those of judges, and those behind versions and screenings that others replaced, too."""
    verdicts = 0

    def counting(request: Request) -> str:
        nonlocal verdicts
        verdicts += "error_type" in request.text
        return scribe(request)

    server._reply = counting
    settings = yaml.safe_load((folder / "project.yaml").read_text())
    settings["models"]["judge"] = {**settings["models"]["writer"]}
    settings["stages"]["questions"]["free_share"] = 0.5
    (folder / "project.yaml").write_text(yaml.safe_dump(settings))
    ran(folder, "export")
    project = Project(folder)
    with closing(project.store):
        calls = sum(one.calls for one in funnel(project))
    assert records(folder, "repair", "refused")  # some changed twice, and removed
    with closing(sqlite3.connect(folder / "work" / "journal.sqlite")) as journal:
        kept = [judge for (judge,) in journal.execute("select judge from judgements")]
    judged = [one for one in kept if one.startswith("three-level")]
    assert calls == len(kept)
    assert len(judged) == verdicts >= 3


def test_another_licence_is_published(folder: Path, server: FaultyServer) -> None:
    def export(**fields: str) -> str:
        settings = yaml.safe_load((folder / "project.yaml").read_text())
        (folder / "project.yaml").write_text(yaml.safe_dump(settings | fields))
        ran(folder, "export")
        return (folder / "items" / "DATASHEET.md").read_text()

    assert "Licence: CC0." in export(title="Liver", licence="CC0")
    asked = server.count
    again = export(title="Livers", licence="CC BY-NC 4.0")
    assert again.startswith("# Livers\n")
    assert "Licence: CC BY-NC 4.0." in again
    assert server.count == asked


def test_a_judgement_that_cannot_flag_is_said(folder: Path) -> None:
    settings = yaml.safe_load((folder / "project.yaml").read_text())
    settings["stages"]["screen"] = {"seeds": 3}
    settings["models"]["screen"] = settings["models"]["screen"][:1]
    (folder / "project.yaml").write_text(yaml.safe_dump(settings))
    ran(folder, "screen")
    notes = records(folder, "screen", "notes")
    assert any(
        re.search(r"1 model can't flag a choice at 0\.05: all right by chance has p 0\.250", str(one)) for one in notes
    )
    screened = records(folder, "screen")
    assert {(one["asked"], one["models"]) for one in screened} == {(3, 1)}
    assert {one["p"] for one in screened if one["models_right"]} == {0.25}  # three equal answers of one model
    flags = {flag for one in screened for flag in one["flags"]}
    assert "answered without the video" not in flags
    assert "answered without the video each time, by too few models to exclude chance" in flags


def test_drafts_that_break_rules_are_listed_and_nothing_is_lost(folder: Path, server: FaultyServer) -> None:
    def bad(request: Request) -> str:
        if "You write items" not in request.text:
            return scribe(request)
        said = json.loads(scribe(request))
        return json.dumps(said | {"question": "What does the narrator say about this step of it?"})

    server._reply = bad
    assert ran(folder, "questions") == {"made"}
    assert records(folder, "questions") == []
    refused = records(folder, "questions", "refused")
    assert {one["kind"] for one in refused} == {"sound"}
    assert all(len(one["calls"]) == 3 and "narrator" in one["found"] for one in refused)
    assert len(refused) >= 15
    project = Project(folder)
    with closing(project.store):
        (line,) = next(one.reasons for one in funnel(project) if one.stage == "questions")
    named = ", ".join(one["id"] for one in refused[:3])
    assert line == f"{len(refused)} times: sound: 'does the narrator say' ({named} and {len(refused) - 3} more)"


def test_an_item_is_what_the_draft_says() -> None:
    item = as_item(choice(key=2), {"v": "patient-1"})
    assert item.group == "patient-1"
    assert item.reference is not None
    assert item.reference.answer == "C"


@pytest.mark.parametrize("options", [2, 3, 4, 5])
def test_chance_alone_is_flagged_at_most_as_often_as_stated(options: int) -> None:
    """Exactly, over all numbers of right answers that chance can give."""
    for asked in range(1, 16):
        right = np.arange(asked + 1)
        flagged = [flagged_by_chance(int(one), asked, 1 / options, 0.05) for one in right]
        assert float(binom.pmf(right, asked, 1 / options)[flagged].sum()) <= 0.05 + 1e-12
        assert flagged == sorted(flagged)  # more right answers are never flagged less
        assert flagged[-1] == ((1 / options) ** asked <= 0.05)


def choices(n: int, groups: int, *, longest: bool) -> list[Item]:
    """Choices of four options, equally long, or the right one the longest, with random keys."""
    rng, items = random.Random(3), []
    for number in range(n):
        key = rng.randrange(4)
        options = [f"We move the {side} part {number}" for side in ("left", "right", "upper", "lower")]
        options[key] += " to see the duct better" if longest else ""
        reference = Reference(answer="ABCD"[key])
        item = Item(
            id=f"q{number}", question="What is done?", options=tuple(options), answer=ChoiceFormat(),
            reference=reference, group=f"g{number % groups}",
        )  # fmt: skip
        items.append(item)
    return items


def test_a_datasheet_says_how_much_of_the_best_rule_is_luck() -> None:
    """Of 44 rules on random keys one is far above chance; what was chosen on other groups is not."""
    found = guessed_by_rules(choices(48, 8, longest=True), 1)
    assert found == (
        "the best of 44 rules (most: characters) answers 100.0 % [63.1 %, 100.0 %] of 48 choices (p above chance < 0.001, "
        "adjusted for all baselines); chance is 25.0 %. What was chosen on other groups answers 100.0 % [63.1 %, 100.0 %]."
    )
    lucky = guessed_by_rules(choices(48, 8, longest=False), 1)
    assert re.search(r"answers 3\d\.\d % .* \(p above chance 1\.00, .*on other groups answers 2\d\.\d % ", lucky)
    single = guessed_by_rules(choices(12, 1, longest=False), 1)
    assert single.endswith("not excluded: too few groups to choose on some and try on others.")
    assert guessed_by_rules([], 1) == "no rule could be tried."
