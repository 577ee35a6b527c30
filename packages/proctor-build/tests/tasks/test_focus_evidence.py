"""Evidence in FOCUS benchmarks made from tracks: written beside the reference, read again, and handed out with answers
alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.core import InputError
from proctor.tasks.focus import READER
from proctor.tasks.focus.question_files import write_questions
from proctor.tracks import TRACK_RULES, Timeline, evidence_of, traces_of
from proctor.tracks.evidence import EVIDENCE_OF_RULES
from proctor_build import complete
from proctor_build.focus.builder import build_focus
from proctor_build.focus.plan import FocusPlan, focus_templates
from tests.support.drawn_tracks import drawn


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("focus") / "built"
    annotations = [drawn(seed, f"v{seed}", 60.0)[0] for seed in range(4)]
    build_focus([complete(one) for one in annotations], out, FocusPlan(per_video=40, seed=1))
    return out


def test_the_items_have_the_evidence_of_their_tracks(built: Path) -> None:
    rules = {one["qID"]: one["rule"] for one in json.loads((built / "references.json").read_text())}
    items = READER.load(built).items
    having = [item for item in items if item.evidence is not None]
    assert len(having) >= 30
    assert {rules[item.id] for item in having} <= EVIDENCE_OF_RULES.keys()
    assert all("evidence" not in item.tags for item in items)
    for item in having:
        assert item.evidence is not None
        (clip,) = item.media
        assert clip.kind == "video"
        assert clip.end is not None
        ends = [one.end for one in item.evidence.windows] + [one.end or 0 for one in item.evidence.boxes]
        assert max(ends) <= clip.end + 1e-6  # nothing after the question


def test_a_moment_named_in_the_text_is_the_evidence(built: Path) -> None:
    rules = {one["qID"]: one["rule"] for one in json.loads((built / "references.json").read_text())}
    for item in READER.load(built).items:
        if item.evidence is not None and EVIDENCE_OF_RULES[rules[item.id]] == "moment":
            ((window,),) = [item.evidence.windows]
            hours, minutes, seconds = map(int, item.question.split(" at ")[1][:8].split(":"))
            assert window.start <= 3600 * hours + 60 * minutes + seconds <= window.end
            assert window.end - window.start <= 2.0


def test_without_answers_the_files_have_none(built: Path, tmp_path: Path) -> None:
    items = [item.id for item in READER.load(built).items]
    for name, references in (("with", True), ("without", False)):
        (tmp_path / name).mkdir()
        write_questions(built, tmp_path / name, items, references=references)
        text = "".join(file.read_text() for file in (tmp_path / name).iterdir())
        assert ("evidence" in text) is references
    again = READER.load(tmp_path / "with")
    assert [item.evidence for item in again.items] == [item.evidence for item in READER.load(built).items]
    assert all(item.evidence is None for item in READER.load(tmp_path / "without").items)


def test_evidence_that_is_not_of_the_clip_is_refused(built: Path, tmp_path: Path) -> None:
    for file in ("requests.json", "references.json"):
        (tmp_path / file).write_text((built / file).read_text())
    references = json.loads((tmp_path / "references.json").read_text())
    references[0]["evidence"] = {"windows": [{"start": 5000, "end": 5001}]}
    (tmp_path / "references.json").write_text(json.dumps(references))
    with pytest.raises(InputError) as caught:
        READER.load(tmp_path)
    told = str(caught.value)
    assert (
        f"references.json: question {references[0]['qID']}, field 'evidence': found evidence of something else" in told
    )
    assert "\n" not in told
    references[0]["evidence"] = {"windows": [{"start": 3, "end": 1}]}
    (tmp_path / "references.json").write_text(json.dumps(references))
    with pytest.raises(InputError, match="a window that ends at 1 s, not after its start at 3 s"):
        READER.load(tmp_path)


def test_boxes_are_of_the_classes_that_are_asked_about() -> None:
    """By hand: for each question of a video its boxes contain the annotator's boxes of these classes."""
    annotation, _ = drawn(3, "v", 60.0)
    line = Timeline(annotation)
    traces = traces_of(line)
    say = focus_templates(annotation.classes)
    checked = 0
    for rule in ("when-seen", "out", "before"):
        for candidate in TRACK_RULES[rule](line, say):
            evidence = evidence_of(replace(candidate, rule=rule), line, traces)
            assert evidence is not None
            for seen in annotation.sightings:
                if seen.class_name not in candidate.mentions or seen.box is None:
                    continue
                x, y = seen.box.centre[0] / annotation.video.width, seen.box.centre[1] / annotation.video.height
                assert any(
                    (box.start or 0) <= seen.second + 0.5 < (box.end or 0)
                    and box.x <= x <= box.x + box.width
                    and box.y <= y <= box.y + box.height
                    for box in evidence.boxes
                )
                checked += 1
    assert checked > 100
