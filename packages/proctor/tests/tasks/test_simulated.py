"""The benchmark `simulated`: reads what the simulator writes, and says in one line what is wrong with a folder."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proctor.core import InputError
from proctor.core.formats import ChoiceFormat
from proctor.metrics.ordering import RUN_METRICS
from proctor.tasks.simulated import simulate
from proctor.tasks.simulated.reader import READER
from proctor.tracks import deal_options

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(tmp_path_factory.mktemp("simulated") / "data", videos=2, seconds=14, size=(256, 144), seed=5)


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    """A copy of the two JSON files that a test may spoil."""
    for name in ("manifest.json", "questions.json"):
        shutil.copy(pristine / name, tmp_path / name)
    return tmp_path


def change(path: Path, edit: Edit) -> None:
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def error_of(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        READER.load(folder)
    text = str(caught.value)
    assert "\n" not in text
    return text.removeprefix(f"{folder}/")


def test_loads_what_the_simulator_wrote(pristine: Path) -> None:
    benchmark = READER.load(pristine)
    assert benchmark.name == READER.name == "simulated"
    assert benchmark.simulated
    assert "Simulated" in benchmark.title
    assert "SIMULATED" in READER.summary
    assert "not real" in benchmark.notes[0]
    assert benchmark.headline == "accuracy"
    assert [metric.name for metric in benchmark.metrics] == ["accuracy", *(one.name for one in RUN_METRICS)]
    assert benchmark.conditions == ("video", "text-only", "black", "shuffled")
    assert benchmark.media_root == pristine
    assert benchmark.seeds == {"simulation": 5, "options": 0}
    assert len(benchmark.items) == 24
    assert {item.group for item in benchmark.items} == {"sim-000", "sim-001"}
    for item in benchmark.items:
        assert set(benchmark.facets) <= set(item.tags)
        assert item.tags["duration"] == "0–15 s"
        assert item.reference is not None
        assert item.answer.check(item.reference.answer, item.options) == item.reference.answer
        assert (pristine / item.media[0].source).is_file()


def test_media_may_lie_elsewhere(pristine: Path, tmp_path: Path) -> None:
    assert READER.load(pristine, tmp_path).media_root == tmp_path


def test_options_are_dealt_by_the_seed(pristine: Path) -> None:
    def right(seed: int) -> dict[str, str]:
        items = [item for item in READER.load(pristine, seed=seed).items if item.options]
        texts = {}
        for item in items:
            assert item.reference is not None
            texts[item.id] = item.options["ABCD".index(str(item.reference.answer))]
        return texts

    stored = {
        entry["id"]: entry["options"]["ABCD".index(entry["answer"])]
        for entry in json.loads((pristine / "questions.json").read_text())["questions"]
        if entry["options"]
    }
    assert right(0) == right(1) == stored
    prints = [READER.load(pristine, seed=seed).fingerprint for seed in (0, 0, 1)]
    assert prints[0] == prints[1] != prints[2]


def test_dealing_is_even_and_loses_nothing() -> None:
    options = [["r", "x", "y", "z"]] * 10 + [["r", "x", "y"]] * 9
    dealt = deal_options(options, [0] * 19, np.random.default_rng(0))
    assert all(sorted(mixed) == sorted(some) for (mixed, _), some in zip(dealt, options, strict=True))
    assert all(mixed["ABCD".index(letter)] == "r" for mixed, letter in dealt)
    four, three = Counter(letter for _, letter in dealt[:10]), Counter(letter for _, letter in dealt[10:])
    assert sorted(four.values()) == [2, 2, 3, 3]
    assert set(three.values()) == {3}
    assert len({tuple(mixed) for mixed, _ in dealt[:10]}) > 4


def test_there_are_no_recorded_answers_and_no_judge(pristine: Path) -> None:
    assert READER.rubric_judge is None
    with pytest.raises(InputError, match="no native format for recorded answers"):
        READER.read_recorded(pristine / "answers.json", READER.load(pristine))


def test_what_helps_where_videos_are_missing(pristine: Path) -> None:
    text = READER.media_help(pristine, ["videos/sim-001.mp4"])
    assert text.startswith(f"Not below {pristine}: 1 of 2 videos. ")
    assert "seed 5" in text


def test_an_empty_folder(tmp_path: Path) -> None:
    assert error_of(tmp_path) == "manifest.json: found no such file, expected a folder of simulated procedures"


def test_questions_are_missing(folder: Path) -> None:
    (folder / "questions.json").unlink()
    assert error_of(folder) == "questions.json: found no such file, expected a folder of simulated procedures"


@pytest.mark.parametrize("name", ["manifest.json", "questions.json"])
def test_broken_json(folder: Path, name: str) -> None:
    (folder / name).write_text('{"a": [1, 2')
    assert re.match(rf"{name}: found broken JSON \(.*line 1 column 11\), expected JSON$", error_of(folder))


def test_not_text(folder: Path) -> None:
    (folder / "questions.json").write_bytes(b"\xff\xfe\x00")
    assert "found text in UTF-16" in error_of(folder)


def test_a_newer_version(folder: Path) -> None:
    def newer(manifest: dict[str, Any]) -> None:
        manifest["format_version"] = 2
        manifest["colour"] = "unknown to us"

    change(folder / "manifest.json", newer)
    assert error_of(folder) == (
        "manifest.json: field 'format_version': found 2, written by a newer version of Proctor, expected at most 1"
    )


@pytest.mark.parametrize(
    ("edit", "error"),
    [
        (lambda m: m.update(simulated=False), "manifest.json: field 'simulated': found False, expected "),
        (lambda m: m.update(videos=[]), "manifest.json: field 'videos': found an empty "),
        (lambda m: m.update(fps="10"), "manifest.json: field 'fps': found '10', expected "),
        (lambda m: m.update(extra=1), "manifest.json: field 'extra': found 1, expected no field of this name"),
        (lambda m: m["videos"][1].update(id="sim-000"), "manifest.json: videos, field 'id': found 'sim-000' twice"),
        (
            lambda m: m["videos"][0].update(file="../secret.mp4"),
            "manifest.json: video 'sim-000', field 'file': found '../secret.mp4', expected a file below the folder",
        ),
        (
            lambda m: m["videos"][0].update(file="/secret.mp4"),
            "manifest.json: video 'sim-000', field 'file': found '/secret.mp4', expected a file below the folder",
        ),
    ],
)
def test_bad_manifests(folder: Path, edit: Edit, error: str) -> None:
    change(folder / "manifest.json", edit)
    assert error_of(folder).startswith(error)


def entry(position: int, **values: Any) -> Edit:
    return lambda content: content["questions"][position].update(values)


@pytest.mark.parametrize(
    ("edit", "error"),
    [
        (entry(1, id="sim-000-q01"), "item 'sim-000-q01', field 'id': found it twice, expected each id once"),
        (entry(1, id=""), "item '', field 'id': found '', expected a text that is not empty"),
        (entry(1, id=7), "item number 2, field 'id': found 7, expected a text"),
        (entry(1, video="sim-9"), "item 'sim-000-q02', field 'video': found 'sim-9', expected one of sim-000, sim-001"),
        (entry(1, answer=-2), "item 'sim-000-q02', field 'answer': found '-2', expected a whole number of 0 or more"),
        (entry(1, start=5.0, end=4.0), "item 'sim-000-q02', field 'start': found 5 s, expected before the end at 4 s"),
        (entry(1, end=14.2), "item 'sim-000-q02', field 'end': found 14.2 s, expected at most the video's 14 s"),
        (entry(1, start=-1.0), "item 'sim-000-q02', field 'start': found -1.0, expected "),
        (entry(1, question=""), "item 'sim-000-q02', field 'question': found '', expected "),
        (entry(1, colour="red"), "item 'sim-000-q02', field 'colour': found 'red', expected no field of this name"),
        (entry(1, format={"kind": "essay"}), "item 'sim-000-q02', field 'format': found an object, expected one of"),
        (
            entry(1, region={"x": 0.6, "y": 0.0, "width": 0.5, "height": 1.0}),
            "item 'sim-000-q02', field 'region': found an object, expected a region inside the frame (0 to 1)",
        ),
        (
            entry(1, region={"x": 0.5, "y": 0.0, "width": 1.5, "height": 1.0}),
            "item 'sim-000-q02', field 'region.width': found 1.5, expected ",
        ),
        (lambda content: content.update(questions=[]), "field 'questions': found an empty list, expected "),
        (lambda content: content.update(questions=[7]), "item number 1: found 7, expected "),
        (lambda content: content.pop("questions"), "field 'questions': found nothing, expected a value"),
    ],
)
def test_bad_questions(folder: Path, edit: Edit, error: str) -> None:
    change(folder / "questions.json", edit)
    assert error_of(folder).startswith(f"questions.json: {error}")


def position(folder: Path, kind: str) -> tuple[int, str]:
    questions = json.loads((folder / "questions.json").read_text())["questions"]
    return next((i, q["id"]) for i, q in enumerate(questions) if q["format"]["kind"] == kind)


def test_more_options_than_letters(folder: Path) -> None:
    index, name = position(folder, "choice")
    change(folder / "questions.json", entry(index, options=[f"option {number}" for number in range(27)]))
    assert error_of(folder).startswith(f"questions.json: item '{name}', field 'options': found a ")
    change(folder / "questions.json", entry(index, options=[f"option {number}" for number in range(26)]))
    assert READER.load(folder)


def test_a_key_outside_the_options(folder: Path) -> None:
    index, name = position(folder, "choice")
    change(folder / "questions.json", entry(index, answer="E"))
    assert error_of(folder) == f"questions.json: item '{name}', field 'answer': found 'E', expected one of A, B, C, D"


def test_an_option_twice(folder: Path) -> None:
    index, name = position(folder, "choice")
    change(folder / "questions.json", entry(index, options=["a", "b", "a", "c"]))
    assert error_of(folder).startswith(f"questions.json: item '{name}', field 'options': found an option twice")


def test_a_time_beyond_the_video(folder: Path) -> None:
    index, name = position(folder, "timestamps")
    change(folder / "questions.json", entry(index, answer=[99.0]))
    assert error_of(folder) == (
        f"questions.json: item '{name}', field 'answer': found 99 s, expected times within the clip, 0 to 14 s"
    )


def test_clips_and_regions_reach_the_item(folder: Path) -> None:
    region = {"x": 0.25, "y": 0.0, "width": 0.5, "height": 1.0}
    index, name = position(folder, "count")
    change(folder / "questions.json", entry(index, start=2.0, end=13.5, region=region))
    (item,) = [item for item in READER.load(folder).items if item.id == name]
    assert item.media[0].model_dump() == {
        "kind": "video",
        "source": "videos/sim-000.mp4",
        "start": 2.0,
        "end": 13.5,
        "region": region,
    }
    assert not isinstance(item.answer, ChoiceFormat)
