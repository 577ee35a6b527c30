"""The writer sees the whole log and chooses type and events, or says that none fits; letters are dealt at once."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from proctor.core import InputError
from proctor_build.pipeline import DraftQuestion, ProcedureEvent, Project, run_stages
from proctor_build.pipeline.questions import dealt, preferred
from tests.construction.pipeline.test_questions import choice, records
from tests.support.faulty_server import FaultyServer, Request
from tests.support.scribe import chosen, scribe

EVENTS = 6


def drafted(folder: Path, **questions: Any) -> list[dict[str, Any]]:
    file = folder / "project.yaml"
    settings = yaml.safe_load(file.read_text())
    settings["stages"]["questions"] |= questions
    file.write_text(yaml.safe_dump(settings))
    asyncio.run(run_stages(Project(folder), until="questions"))
    return records(folder, "questions")


def told(server: FaultyServer, change: Callable[[dict[str, Any], str], dict[str, Any]]) -> None:
    """The writer's replies, changed."""

    def reply(request: Request) -> str:
        said = scribe(request)
        writes = "You write items" in request.text or "Q&A items" in request.text
        return json.dumps(change(json.loads(said), request.text)) if writes else said

    server._reply = reply


def test_the_whole_log_is_shown_and_the_choice_stands(one_source: Path, server: FaultyServer) -> None:
    def late(said: dict[str, Any], _: str) -> dict[str, Any]:
        return said | {"type": 3, "events": [5, 6], "groundtruth": "What is done."}

    told(server, late)
    (one, *_) = drafted(one_source, tries=1)
    assert one["type"].startswith("Type3")
    assert one["made_from"] == ["a-e005", "a-e006"]
    (request, *_) = [each for each in server.requests if "You write items" in each.text]
    assert all(re.search(rf"^{number}\. \[", request.text, re.MULTILINE) for number in range(1, EVENTS + 1))
    assert all(f"{number}. " in request.text for number in (1, 2, 3))


def test_events_that_fit_no_type_are_named_with_the_reason_and_others_are_asked(
    one_source: Path, server: FaultyServer
) -> None:
    """Each event is declined once, whatever forms and slots there are."""

    def only_two(said: dict[str, Any], text: str) -> dict[str, Any]:
        number = int(re.findall(r"the first of them most: (\d+)", text)[0])
        if number % 2:
            return {"fits": False, "why": "nothing is done"}
        return said | {"type": 1, "events": [number], "groundtruth": "What is done at this point."}

    told(server, only_two)
    made = drafted(one_source)
    about = Counter(name for one in made for name in one["made_from"])
    assert set(about) == {"a-e002", "a-e004", "a-e006"}
    refused = [one for one in records(one_source, "questions", "refused") if one["kind"] == "no fit"]
    assert {(*one["made_from"], one["reason"]) for one in refused} == {
        (f"a-e00{number}", "nothing is done") for number in (1, 3, 5)
    }
    assert len(refused) == 3
    assert all(one["calls"] for one in refused)
    assert "no type of question fits 3 of 6 events, by the writer" in map(
        str, records(one_source, "questions", "notes")
    )


def test_a_log_without_anything_to_ask_ends(one_source: Path, server: FaultyServer) -> None:
    told(server, lambda said, _: {"fits": False, "events": [1, 2, 3, 4, 5, 6], "why": "a lecture"})
    assert drafted(one_source) == []
    assert [one["kind"] for one in records(one_source, "questions", "refused")] == ["no fit"]


@pytest.mark.parametrize(
    ("choice_of", "reason"),
    [
        ({"type": 4}, "type: a number from 1 to 3 is expected"),
        ({"type": 1, "events": [1, 3]}, "events: adjacent ones"),
        ({"type": 1, "events": [7]}, "events: numbers of the log, 1 to 6"),
        ({"type": 1, "events": []}, "events: numbers of the log"),
        ({"type": 3, "events": [2]}, "events: 2 or more for a question of type 3"),
    ],
)
def test_a_choice_that_does_not_fit_is_told_and_asked_again(
    one_source: Path, server: FaultyServer, choice_of: dict[str, Any], reason: str
) -> None:
    told(server, lambda said, text: said if reason in text else said | choice_of)
    assert drafted(one_source, per_event=0.2)
    assert any(reason in request.text for request in server.requests)


def test_letters_are_even_whatever_position_the_writer_prefers(one_source: Path, server: FaultyServer) -> None:
    def first(said: dict[str, Any], _: str) -> dict[str, Any]:
        right = said["options"][said["key"] - 1]
        return said | {"options": [right, *(one for one in said["options"] if one != right)], "key": 1}

    told(server, first)
    made = drafted(one_source, per_event=2)
    assert len(made) >= 8
    whole = Counter(one["key"] for one in made[: len(made) // 4 * 4])
    assert len(whole) == 4
    assert len(set(whole.values())) == 1
    assert all("we " in one["options"][one["key"]] for one in made)


def test_options_of_another_number_are_left_to_the_rule() -> None:
    assert dealt(("a", "b"), 1, (1, 2, 0, 3)) == (("a", "b"), 1)
    assert dealt(("a", "b", "c"), 2, (0, 2, 1)) == (("c", "b", "a"), 0)


def test_events_without_a_question_come_first_the_farthest_of_them_most() -> None:
    events = [
        ProcedureEvent(id=f"e{number}", source="v", start=number, end=number + 0.5, action="slide")
        for number in range(1, 8)
    ]
    asked = DraftQuestion.model_validate(choice().model_dump() | {"made_from": ("e2",)})
    assert preferred(events, [], ()) == (1, 2, 3, 4, 5, 6, 7)
    assert preferred(events, [asked], (4,)) == (7, 6, 5, 1, 3, 2)
    assert preferred(events, [asked], (4,), {7: 1})[0] == 6


def test_the_papers_prompts_are_chosen_by_name(one_source: Path, server: FaultyServer) -> None:
    """For questions, and for wrong options; a template in the project folder will do, too."""

    def reply(request: Request) -> str:
        if "You are generating Q&A items for a benchmark" not in request.text:
            return scribe(request)
        number = int(re.findall(r"the first of them most: (\d+)", request.text)[0])
        wrong = ["wait for the light", "wash the field", "clean the lens"]
        key = "we do it at this point" if "MCQ with 4 options" in request.text else ""
        return json.dumps(
            {"type": 1, "events": [number], "question": f"Based on the clip, what is done ({number})?", "key": 1,
             "options": [key, *wrong], "groundtruth": "It is done for the view."}
        )  # fmt: skip

    server._reply = reply
    made = drafted(one_source, prompt="paper", per_event=0.5)
    assert made
    assert {call["prompt_sha256"] for one in made for call in one["calls"]} == {_sha("project_question.paper.txt.j2")}
    own = one_source / "mine.txt.j2"
    own.write_text(
        "You are generating Q&A items for a benchmark. MCQ with 4 options. the first of them most: {{ free[0] }}"
    )
    assert drafted(one_source, prompt="mine.txt.j2")
    with pytest.raises(InputError, match="field 'prompt': found 'papers', expected paper, or a template file inside"):
        drafted(one_source, prompt="papers")
    with pytest.raises(InputError, match="a path inside the project folder"):
        drafted(one_source, prompt="../mine.txt.j2")


def test_the_papers_prompts_have_the_papers_words_and_fill_in() -> None:
    from proctor.models import load_prompt
    from proctor_build.rexsonovqa import project

    folder = Path(project.__file__).parent
    event = ProcedureEvent(id="e1", source="v", start=1, end=2, action="slide", intent="to see")
    values = {"types": project.TYPES, "events": (event,), "free": (1,), "unfit": {}, "options": 4, "refused": ""}
    for kind in ("mcq", "free"):
        for fixed in (True, False):
            system, user = load_prompt(folder / "project_question.paper.txt.j2").render(
                **values, kind=kind, fixed=fixed
            )
            assert "THE MOST CRITICAL QUESTION CONSTRUCTION RULE" in system
            assert ('"key"' in system) is (kind == "mcq")
            assert "action: slide; interpretation: to see" in user
    options = load_prompt(folder / "project_distractors.paper.txt.j2")
    system, user = options.render(question="What?", right="It", candidates=["That"], wanted=3, refused="")
    assert system.startswith("You are a medical MCQ editor. Improve distractors")
    assert "correct_option: It" in user


def _sha(name: str) -> str:
    from proctor.models import load_prompt
    from proctor_build.rexsonovqa import project

    return load_prompt(Path(project.__file__).with_name(name)).sha256


def test_the_scripted_writer_reads_the_prompt() -> None:
    text = "What happens in the video (0.0 to 9.0 s):\n1. [0.0 s] we slide (what for: to see)\n2. [4.0 s] we wait\n"
    about, happens = chosen(f"{text}\nPrefer the events, the first of them most: 2, 1.\n")
    assert about["events"] in ([2], [1, 2])
    assert "we wait" in happens
