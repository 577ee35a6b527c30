"""A project of annotators from its first vote to the tracks as a third person decided, through the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from proctor.core import InputError, write_whole
from proctor.tracks import OBJECTS, AnnotatedBox, AnnotatedVideo, Annotation, Sighting
from proctor_build import complete
from proctor_build.annotators.pairs import compare_tracks
from proctor_build.files import read_annotations
from proctor_build.focus.builder import ask_focus
from proctor_build.focus.plan import FocusPlan
from proctor_web.forms import ChoiceBody
from proctor_web.sources import items_of_project
from tests.construction.annotators.test_detector import exported
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.program import proctor
from tests.support.reviewers import Rule, annotated

VIDEOS = ("op-0", "op-1", "op-2", "op-3")
SECONDS = 10
CLASSES = tuple(OBJECTS)


def truth(video: str) -> Annotation:
    """A needle in the first five seconds, a clip all the time."""
    known = AnnotatedVideo(id=video, file=f"{video}.mp4", width=320, height=180, seconds=SECONDS, fps=10)
    boxes = [("Needle", "n", 10.0, range(5)), ("Clip", "c", 90.0, range(SECONDS))]
    return Annotation(
        video=known,
        sightings=tuple(
            Sighting(second=s, instance=name, class_name=kind, box=AnnotatedBox(x=x, y=20, width=30, height=30))
            for kind, name, x, seconds in boxes
            for s in seconds
        ),
    )


def written(folder: Path, annotations: list[Annotation]) -> None:
    for one in annotations:
        write_whole(folder / f"{one.video.id}.json", json.dumps(one.model_dump(mode="json")))


def changed(one: Annotation, **names: str) -> Annotation:
    return Annotation(
        video=one.video,
        sightings=tuple(
            each.model_copy(update={"instance": names.get(each.instance, each.instance)}) for each in one.sightings
        ),
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "theatre"
    assert proctor("build", "new", folder, "--kind", "focus").returncode == 0
    sources = [{"id": name, "video": f"sources/{name}.mp4"} for name in VIDEOS]
    for name in VIDEOS:
        video = ClockVideo(times_ms=range(0, 1000 * SECONDS, 500))
        write_clock_video(folder / "sources" / f"{name}.mp4", video)
    stages = {"proposals": {"detections": "sources/detections.csv"}}
    settings = {"kind": "focus", "sources": sources, "stages": stages}
    (folder / "project.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return folder


def corrected_by_cvat(project: Path, tmp_path: Path) -> None:
    """Decides by the files of CVAT in `cvat`, and writes what comes of it into `by-cvat`."""
    before = (project / "project.yaml").read_text()
    settings = yaml.safe_load(before)
    settings["stages"]["corrections"] = {"cvat": "sources/cvat"}
    (project / "project.yaml").write_text(yaml.safe_dump(settings))
    for file in (tmp_path / "cvat").iterdir():
        decided = file.read_text().replace('"decision">open', '"decision">accept').replace('"by">nobody', '"by">Ada')
        write_whole(project / "sources" / "cvat" / file.name, decided)
    assert (
        proctor("build", "table", project, "corrections", "--tracks", tmp_path / "by-cvat", "--to", "json").returncode
        == 0
    )
    (project / "project.yaml").write_text(before)


def test_from_votes_to_adjudicated_tracks(project: Path, tmp_path: Path) -> None:
    sources = project / "sources"
    first = proctor("build", "run", project, "--until", "presence")
    assert first.returncode == 1
    assert "presence waits: sources/presence.jsonl: 8 clips to read (proctor review export REVIEW STUDY" in first.stderr

    def seen(key: str, body: Any) -> dict[str, Any]:
        assert body.classes == CLASSES
        return {"present": ["Clip", "Needle"] if key.endswith("@0") else ["Clip"]}

    assert annotated(project, "presence", "presence", {"anna": seen, "ben": seen, "rita": seen}) == 24
    said = proctor("build", "table", project, "boxes", "--out", tmp_path / "seconds.csv")
    assert "boxes in sources/boxes: 12 clips with a class that is present" in said.stderr
    assert (tmp_path / "seconds.csv").read_text().splitlines()[1] == 'op-0,0,"Clip, Needle"'
    status = proctor("build", "status", project).stdout
    assert "R0: 80 votes, sensitivity 0.9" in status

    # one box is missing, one has another class, one lies beside the thing
    crowd = [truth(video) for video in VIDEOS]
    worse = [one for one in crowd[0].sightings if (one.second, one.instance) != (2, "n")]
    worse = [
        one.model_copy(update={"class_name": "Mesh"}) if (one.second, one.instance) == (3, "c")
        else one.model_copy(update={"box": AnnotatedBox(x=116, y=20, width=30, height=30)})
        if (one.second, one.instance) == (6, "c") else one
        for one in worse
    ]  # fmt: skip
    written(sources / "boxes", [Annotation(video=crowd[0].video, sightings=tuple(worse)), *crowd[1:]])
    found = ["video,second,class,x,y,width,height,score"]
    found += [
        f"{each.video.id},{one.second},{one.class_name},{one.box.x},{one.box.y},{one.box.width},{one.box.height},0.9"
        for each in crowd for one in each.sightings if one.box
    ]  # fmt: skip
    (sources / "detections.csv").write_text("\n".join(found) + "\n", encoding="utf-8")
    said = proctor("build", "table", project, "proposals", "--tracks", tmp_path / "cvat")
    assert said.returncode == 0, said.stderr
    assert f"4 files in {tmp_path / 'cvat'}" in said.stdout
    assert sorted(one.name for one in (tmp_path / "cvat").iterdir()) == [f"{video}.xml" for video in VIDEOS]
    again = proctor("build", "table", project, "proposals", "--tracks", tmp_path / "cvat")
    assert "found something there already" in again.stderr

    waits = proctor("build", "run", project, "--until", "corrections")
    assert waits.returncode == 1
    assert "sources/corrections.jsonl: 3 of 3 proposals to settle (proctor review export" in waits.stderr
    corrected_by_cvat(project, tmp_path)
    accept: dict[str, Rule] = {"anna": lambda *_: {"choice": "accept"}}
    assert annotated(project, "choice", "corrections", accept) == 3
    said = proctor("build", "table", project, "corrections", "--tracks", tmp_path / "corrected", "--to", "json")
    assert said.returncode == 0, said.stderr
    for one, same in zip(read_annotations([tmp_path / "corrected"]), crowd, strict=True):
        assert compare_tracks(one, same).differences == ()

    assert read_annotations([tmp_path / "by-cvat"]) == read_annotations([tmp_path / "corrected"])

    assert "tracks of instances by two annotators" in proctor("build", "run", project, "--until", "tracks").stderr
    written(sources / "tracks-a", crowd)
    other = [changed(one, n="needle", c="clip") for one in crowd]
    other[1] = Annotation(video=other[1].video, sightings=tuple(one for one in other[1].sightings if one.second != 4))
    written(sources / "tracks-b", other)
    assert proctor("build", "run", project, "--until", "tracks").returncode == 0
    assert [one.key for one in items_of_project(project, project, "choice", "adjudication")] == [
        "op-1@4-4:only-a:c|-",
        "op-1@4-4:only-a:n|-",
    ]
    waits = proctor("build", "run", project, "--until", "adjudication")
    assert "sources/adjudication.jsonl: 2 of 2 differences to settle (proctor review export" in waits.stderr
    assert annotated(project, "choice", "adjudication", {"anna": lambda *_: {"choice": "a"}}) == 2
    said = proctor("build", "table", project, "adjudication", "--tracks", tmp_path / "final")
    assert said.returncode == 0, said.stderr
    assert read_annotations([tmp_path / "final"]) == crowd
    status = proctor("build", "status", project).stdout
    assert "3 of 3 proposals accepted" in status
    assert "F1 of boxes 0.98" in status
    asked_as_the_tracks_say(project, crowd)
    states = json.loads(proctor("build", "run", project, "--format", "json").stdout)
    assert {one["state"] for one in states} == {"kept"}


def asked_as_the_tracks_say(project: Path, crowd: list[Annotation]) -> None:
    """The exported questions are those of `proctor build focus` on the same tracks; a system can be asked them."""
    assert (
        "4 findings in the tracks, such as op-0: no insertion"
        in proctor("build", "run", project, "--until", "export").stderr
    )
    content = yaml.safe_load((project / "project.yaml").read_text())
    content["stages"]["questions"] = {"findings": True}
    (project / "project.yaml").write_text(yaml.safe_dump(content))
    said = proctor("build", "run", project, "--until", "export")
    assert said.returncode == 0, said.stderr
    items = project / "items"
    named = [
        one.model_copy(update={"video": one.video.model_copy(update={"file": f"{one.video.id}.mp4"})}) for one in crowd
    ]
    built = ask_focus([complete(one).annotation for one in named], FocusPlan())
    requests, references = (json.loads((items / f"{name}.json").read_text()) for name in ("requests", "references"))
    assert [one["qID"] for one in requests] == [one.qID for one in built.requests]
    assert [one["answer"] for one in references] == [one.answer for one in built.references]
    assert {one["videoID"] for one in requests} <= {one.name for one in (items / "videos").iterdir()}
    sheet = (items / "DATASHEET.md").read_text()
    assert "Two annotators, who differed in 2 cases" in sheet
    assert f"{len(requests)} questions (track procedure)" in sheet
    store = project / "runs.db"
    done = proctor("run", "focus", "--data", items, "--media", items / "videos", "--system", "random", "--store", store)
    assert done.returncode == 0, done.stderr
    asked = len([one for one in references if one["format"] != "matching"])  # nobody guesses a pattern
    assert f"Asked {asked}: {asked} answered" in done.stdout


def clip(name: str, **changes: Any) -> dict[str, Any]:
    """A line of `--what consensus` on a clip, that two readers read."""
    readings = [{"reader": reader, "payload": {"present": ["Clip"]}} for reader in ("R0", "R1")]
    line = {"form": "presence", "item": name, "version": 1, "current": True, "by": "agreed", "readings": readings}
    return line | {"payload": {"present": ["Clip"]}, "body": {"classes": ["Clip"]}} | changes


def clips_read(project: Path, lines: list[dict[str, Any]]) -> None:
    (project / "sources" / "presence.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (clip("other@0"), "presence.jsonl: item: found 'other@0', expected VIDEO@START with the id of a source: op-0"),
        (clip("op-0@1"), "found 'op-0@1', expected a start that is a multiple of 5 s, op-0@5 at most: the video lasts"),
        (clip("op-0@500"), "found 'op-0@500', expected a start"),
        (clip("op-0@05"), "found 'op-0@05', expected a start"),
        (clip("op-0@0", form="boxes"), "line 1, field 'form': found 'boxes', expected 'presence'"),
        (clip("op-0@0", readings=[{"reader": "", "payload": {}}]), "line 1, field 'readings.0.reader'"),
        (clip("op-0@0", body={"classes": []}), "line 1, field 'body.classes'"),
    ],
)
def test_what_people_deliver_is_checked(project: Path, line: dict[str, Any], said: str) -> None:
    clips_read(project, [line])
    ended = proctor("build", "run", project, "--until", "presence")
    assert ended.returncode == 1
    assert said in ended.stderr


@pytest.mark.parametrize(
    ("classes", "said"), [(["Clip", "clip"], "each class once is expected"), ([], "stages: presence, field 'classes'")]
)
def test_classes_that_nobody_can_look_for_are_told(project: Path, classes: list[str], said: str) -> None:
    content = yaml.safe_load((project / "project.yaml").read_text())
    content["stages"]["presence"] = {"classes": classes}
    (project / "project.yaml").write_text(yaml.safe_dump(content))
    assert said in proctor("build", "run", project, "--until", "presence").stderr


def test_a_clip_that_is_in_doubt_is_read_by_one_more(project: Path) -> None:
    content = yaml.safe_load((project / "project.yaml").read_text())
    content["stages"]["presence"] = {"classes": ["Clip"]}
    (project / "project.yaml").write_text(yaml.safe_dump(content))

    def at_first(key: str, _: Any) -> dict[str, Any]:
        return {"present": ["Clip"]} if key.endswith("@0") else {"nothing": True}

    def other(key: str, body: Any) -> dict[str, Any]:
        return {"present": ["Clip"]} if key == "op-1@5" else at_first(key, body)

    two: dict[str, Rule] = {"anna": at_first, "ben": other}
    assert annotated(project, "presence", "presence", two) == 16
    assert proctor("build", "run", project, "--until", "presence").returncode == 0
    assert [one["id"] for one in units(project) if one["flags"]] == ["op-1@5:Clip"]
    assert annotated(project, "presence", "presence", two) == 0  # nobody of the plan is left for it
    three = two | {"rita": at_first}
    assert annotated(project, "presence", "presence", three, 2) == 1
    assert annotated(project, "presence", "presence", three, 2) == 0
    lines = [json.loads(line) for line in (project / "sources" / "presence.jsonl").read_text().splitlines()]
    assert {one["item"]: len(one["readings"]) for one in lines if len(one["readings"]) > 2} == {"op-1@5": 3}
    assert [one["item"] for one in lines if one["payload"] is None] == ["op-1@5"]
    assert proctor("build", "run", project, "--until", "presence").returncode == 0
    assert [one["read_by"] for one in units(project) if one["id"] == "op-1@5:Clip"] == [3]


def units(project: Path) -> list[dict[str, Any]]:
    records = json.loads((project / "work" / "presence" / "all.json").read_text())["records"]
    assert isinstance(records, list)
    return records


def test_what_an_adjudicator_settled_is_decided(project: Path) -> None:
    differ = [{"reader": "R0", "payload": {"present": ["Clip"]}}, {"reader": "R1", "payload": {"nothing": True}}]
    lines = [clip(f"{video}@{start}") for video in VIDEOS for start in (0, 5)]
    open_one = lines[0] | {"by": "", "payload": None, "readings": differ}
    clips_read(project, [open_one, *lines[1:]])
    assert proctor("build", "run", project, "--until", "presence").returncode == 0
    first = units(project)[0]
    assert (first["id"], first["present"], first["flags"], first["read_by"]) == (
        "op-0@0:Clip", None, ["another vote"], 2
    )  # fmt: skip
    clips_read(project, [open_one | {"by": "R3", "payload": {"nothing": True}}, *lines[1:]])
    assert proctor("build", "run", project, "--until", "presence").returncode == 0
    first = units(project)[0]
    assert (first["present"], first["flags"], first["clip"]["probability"]) == (False, [], 0.0)


def test_a_decision_on_another_proposal_does_not_count(project: Path) -> None:
    clips_read(project, [clip(f"{video}@{start}") for video in VIDEOS for start in (0, 5)])
    written(project / "sources" / "boxes", [truth(video) for video in VIDEOS])
    head = "video,second,class,x,y,width,height,score\n"
    boxes = project / "sources" / "detections.csv"
    boxes.write_text(f"{head}op-0,6,Clip,115,20,30,30,0.9\n")
    assert proctor("build", "run", project, "--until", "proposals").returncode == 0
    (item,) = items_of_project(project, project, "choice", "corrections")
    assert (item.key, item.group) == ("op-0@6:c:misplaced", "op-0")
    assert [(box.label, box.x) for box in ChoiceBody.model_validate(item.body).boxes] == [
        ("now: Clip", round(90 / 320, 5)), ("proposed: Clip", round(115 / 320, 5))
    ]  # fmt: skip
    assert annotated(project, "choice", "corrections", {"anna": lambda *_: {"choice": "reject"}}) == 1
    assert proctor("build", "run", project, "--until", "corrections").returncode == 0
    boxes.write_text(f"{head}op-0,6,Clip,116,20,30,30,0.9\n")
    waits = proctor("build", "run", project, "--until", "corrections")
    assert "1 of 1 proposal to settle, 1 of them changed since they were settled" in waits.stderr
    with pytest.raises(InputError, match=r"stage: found no stage, expected .*corrections.*adjudication"):
        items_of_project(project, project, "choice")
    with pytest.raises(InputError, match="expected form: presence or choice, for a project of kind focus"):
        items_of_project(project, project, "question")
    assert items_of_project(project, project, "choice", "adjudication") == []  # the stage was not run


@pytest.mark.parametrize("source", ["network", "training"])
def test_detections_come_from_the_projects_videos(project: Path, source: str) -> None:
    clips_read(project, [clip(f"{video}@{start}") for video in VIDEOS for start in (0, 5)])
    written(project / "sources" / "boxes", [truth(video) for video in VIDEOS])
    settings: dict[str, object] = {"folds": 2, "steps": 1, "batch": 1, "width": 64, "height": 32}
    if source == "network":
        always = {"logits": np.full((1, 1, 2), 3, np.float32), "boxes": np.full((1, 1, 4), 0.5, np.float32)}
        exported(project / "sources" / "d.onnx", always)
        settings = {"network": "sources/d.onnx", "classes": ["Mesh", "Needle"]}
    content = yaml.safe_load((project / "project.yaml").read_text())
    content["stages"]["proposals"] = settings
    (project / "project.yaml").write_text(yaml.safe_dump(content))
    ended = proctor("build", "run", project, "--until", "proposals", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    records = json.loads((project / "work" / "proposals" / "all.json").read_text())
    if source == "network":
        proposed = [one["proposal"] for one in records["records"]]
        assert {(one["kind"], one["class_name"], one["width"]) for one in proposed} == {("missing", "Mesh", 96)}
        assert len(records["records"]) == len(VIDEOS) * SECONDS
