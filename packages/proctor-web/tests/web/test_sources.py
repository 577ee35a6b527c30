"""Where items come from: files with located errors, the records of a project, and answers of runs without their
names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.core import ACCURACY, Answer, Benchmark, InputError, Item, Reference, Status, VideoClip
from proctor.core.formats import ChoiceFormat, FreeTextFormat
from proctor.media import MediaLibrary
from proctor.runs import Store
from proctor_build.pipeline import DraftQuestion, ProcedureEvent
from proctor_web.forms import FORMS
from proctor_web.settings import StudySettings
from proctor_web.sources import items_of_file, items_of_project, items_of_runs
from tests.support.web_study import ACCEPT, QUESTION

LINE: dict[str, Any] = {
    "id": "q1",
    "group": "v1",
    "media": [{"source": "v1.mp4", "start": 1, "end": 3}],
    "body": QUESTION,
}


def lines(folder: Path, *entries: dict[str, Any]) -> Path:
    (folder / "v1.mp4").write_bytes(b"a video")
    file = folder / "items.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in entries))
    return file


def read(folder: Path, *entries: dict[str, Any], gold: bool = False) -> Any:
    return items_of_file(lines(folder, *entries), FORMS["question"], MediaLibrary(folder), gold=gold)


def test_a_file_of_items(tmp_path: Path) -> None:
    one, other = read(tmp_path, LINE, {"id": "q2", "body": QUESTION})
    assert (one.key, one.group, one.media[0].kind, one.body, one.gold) == ("q1", "v1", "video", QUESTION, None)
    assert (other.group, other.media) == ("q2", ())
    (gold,) = read(tmp_path, LINE | {"gold": ACCEPT}, gold=True)
    assert gold.gold == ACCEPT


@pytest.mark.parametrize(
    ("entry", "gold", "said"),
    [
        ({"id": ""}, False, "line 2, field 'id'"),
        ({"id": "q1"}, False, "line 2: found the id 'q1' again, expected each id once"),
        ({"colour": 1}, False, "line 2, field 'colour': found 1, expected no field of this name"),
        ({"grup": "v"}, False, r"\(one of id, group, media, body, gold; did you mean 'group'\?\)"),
        (
            {"media": [{"source": "v1.mp4", "strat": 1}]},
            False,
            r"'media.0.video.strat': found 1, .*did you mean 'start'\?",
        ),
        ({"body": QUESTION | {"stm": "x"}}, False, r"line 2, body, field 'stm': found 'x', .*did you mean 'stem'\?"),
        ({"body": {"stem": "?"}}, False, "line 2, body: .*a stem with two or more different options and a key"),
        ({"body": QUESTION | {"key": 9}}, False, "line 2, body"),
        ({"media": [{"source": "v2.mp4"}]}, False, "line 2, media 1: found v2.mp4: below .*: found no such file"),
        ({"media": [{"source": "../v1.mp4"}]}, False, "leads out of the media folder"),
        ({"media": [{"source": "v1.mp4", "start": 3, "end": 1}]}, False, "line 2, field 'media.0"),
        ({"gold": ACCEPT}, False, "line 2, field 'gold': found a known reading"),
        ({"gold": {"decision": "accept"}}, True, "line 2, field 'gold': found no question.check.pictures"),
        ({"gold": {"decision": "maybe"}}, True, "line 2, field 'gold': found reading, field 'decision'"),
        ({}, True, "line 2, field 'gold': found nothing"),
    ],
)
def test_what_is_wrong_in_a_file_is_located(tmp_path: Path, entry: dict[str, Any], gold: bool, said: str) -> None:
    first = LINE | ({"gold": ACCEPT} if gold else {})
    with pytest.raises(InputError, match=said):
        read(tmp_path, first, LINE | {"id": "q2"} | entry, gold=gold)


def test_frames_of_media_that_an_item_does_not_have_are_refused(tmp_path: Path) -> None:
    body = {"frames": [{"id": "a", "time": 1}, {"id": "b", "media": 1, "time": 2}]}
    file = lines(tmp_path, LINE | {"body": body})
    with pytest.raises(InputError, match="line 1, media: found 1, expected 2, as the body says"):
        items_of_file(file, FORMS["order"], MediaLibrary(tmp_path))


def project(folder: Path, media: str = "sources/v1.mp4") -> Path:
    """A project with an event and two questions about it, one of them repaired."""
    folder.mkdir()
    (folder / "project.yaml").write_text(
        f"kind: rexsonovqa\nsources: [{{id: v1, video: {media}, group: patient 7, region: "
        "{x: 0, y: 0, width: 0.5, height: 1}}]\n"
    )
    event = ProcedureEvent(
        id="v1-e1", source="v1", start=1, end=4, action="Slides the probe", intent="to see", quote="now I slide"
    )
    question = DraftQuestion(
        id="v1-q001",
        made_from=("v1-e1",),
        flags=("guessed",),
        source="v1",
        start=1,
        end=4,
        type="goal",
        kind="mcq",
        text="What for?",
        options=("To see", "To rest"),
        key=0,
        groundtruth="The operator slides to see.",
    )
    for stage, record in (("events", event), ("questions", question)):
        file = folder / "work" / stage / "v1.json"
        file.parent.mkdir(parents=True)
        made = {"stage": stage, "unit": "v1", "made_from": "x", "records": [record.model_dump(mode="json")]}
        file.write_text(json.dumps(made))
    return folder


def test_the_questions_of_a_project_bring_their_events_words_and_flags(tmp_path: Path) -> None:
    (one,) = items_of_project(project(tmp_path / "p"), tmp_path)
    assert (one.key, one.group) == ("v1-q001", "patient 7")
    (clip,) = one.media
    assert isinstance(clip, VideoClip)
    assert (clip.source, clip.region is not None) == ("p/sources/v1.mp4", True)
    body = FORMS["question"].read_body(one.body)
    assert (body.stem, body.options, body.key, body.explanation, body.flags, body.type) == (
        "What for?", ("To see", "To rest"), 0, "The operator slides to see.", ("guessed",), "goal",
    )  # fmt: skip
    assert [(event.text, event.words, event.start) for event in body.events] == [
        ("Slides the probe (to see)", "now I slide", 1)
    ]


def test_a_project_outside_the_media_folder_and_one_without_questions_are_refused(tmp_path: Path) -> None:
    folder = project(tmp_path / "p")
    (tmp_path / "videos").mkdir()
    with pytest.raises(InputError, match=r"source 'v1': found a video at 'sources/v1.mp4', expected the project's vid"):
        items_of_project(folder, tmp_path / "videos")
    (folder / "work" / "questions" / "v1.json").unlink()
    with pytest.raises(InputError, match="found no questions yet"):
        items_of_project(folder, tmp_path)


def stored(folder: Path, texts: dict[str, list[str | None]]) -> Store:
    """A store with two questions and these systems' answers to them; None failed."""
    items = (
        Item(
            id="q1",
            group="v1",
            question="Which?",
            answer=ChoiceFormat(),
            options=("a", "b"),
            reference=Reference(answer="A"),
        ),
        Item(id="q2", group="v2", question="What is it?", answer=FreeTextFormat(), reference=Reference(answer="liver")),
    )
    store = Store(folder / "runs.db")
    store.add_benchmark(Benchmark("b", "B", items, (ACCURACY,), "accuracy"))
    for system, said in texts.items():
        run = store.start_run("b", system, "video", {})
        for item, text in zip(items, said, strict=True):
            status = Status.ANSWERED if text is not None else Status.REFUSED
            store.write(run, [(Answer(item_id=item.id, text=text or "", status=status), [])])
    return store


SECRET: dict[str, list[str | None]] = {
    "secret-one": ["A", "liver"],
    "secret-two": ["B", None],
    "secret-three": ["A", "kidney"],
}
DIMENSION = {"name": "correct", "levels": [0, 1, 2]}


def test_answers_are_rated_without_a_word_of_whose_they_are(tmp_path: Path) -> None:
    store = stored(tmp_path, SECRET)
    study = StudySettings.model_validate({"name": "s", "form": "rating", "benchmark": "b", "dimensions": [DIMENSION]})
    found = items_of_runs(store, study)
    assert len(found) == 5
    assert not any("secret" in str(new) for new, _ in found)
    new, _ = next(one for one in found if one[1].item == "q2" and one[1].runs[0].system == "secret-three")
    assert new.body["answer"] == "kidney"
    assert new.body["reference"] == "liver"
    assert new.group == "v2"
    assert [one.key for one, _ in items_of_runs(store, study)] == [one.key for one, _ in found]
    assert FORMS["rating"].read_body(new.body).question == "What is it?"
    choice = next(one for one, where in found if where.item == "q1")
    assert choice.body["question"] == "Which?\nA. a\nB. b"
    few = study.model_copy(update={"most": 2})
    assert len(items_of_runs(store, few)) == 2
    store.close()


def test_pairs_are_shown_in_an_order_drawn_by_seed(tmp_path: Path) -> None:
    many = Benchmark(
        "b", "B",
        tuple(Item(id=f"q{n:02d}", group="v", question="What?", answer=FreeTextFormat()) for n in range(40)),
        (ACCURACY,), "accuracy",
    )  # fmt: skip
    store = Store(tmp_path / "runs.db")
    store.add_benchmark(many)
    for system in ("one", "two"):
        run = store.start_run("b", system, "video", {})
        texts = {item.id: "the same" if item.id == "q00" else f"by {system}" for item in many.items}
        store.write(run, [(Answer(item_id=name, text=text), []) for name, text in texts.items()])
    found = items_of_runs(store, StudySettings(name="s", form="pairwise", benchmark="b"))
    assert len(found) == 39  # the same text twice is no choice
    firsts = [origin.runs[0].system for _, origin in found]
    assert 8 < firsts.count("one") < 31
    for new, origin in found:
        assert new.body["answers"] == [f"by {run.system}" for run in origin.runs]
    store.close()


def test_nothing_to_rate_is_an_error(tmp_path: Path) -> None:
    store = stored(tmp_path, {"one": [None, None]})
    study = StudySettings(name="s", form="rating", benchmark="b")
    with pytest.raises(InputError, match="found nothing to rate on, expected dimensions:"):
        items_of_runs(store, study)
    study = StudySettings.model_validate(study.model_dump() | {"dimensions": [DIMENSION]})
    with pytest.raises(InputError, match="study s: found none, expected answers to rate"):
        items_of_runs(store, study)
    store.start_run("b", "two", "blind", {})
    with pytest.raises(InputError, match="found runs under blind, video, expected one condition"):
        items_of_runs(store, study)
    store.close()
