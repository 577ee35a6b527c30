"""A project of annotators from its first vote to the tracks as a third person decided, through the commands."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from proctor.construction import AnnotatedBox, AnnotatedVideo, Annotation, Sighting, complete
from proctor.construction.annotators.pairs import compare_tracks
from proctor.construction.files import read_annotations
from proctor.core import write_whole
from proctor.tasks.focus.builder import ask_focus
from proctor.tasks.focus.plan import FocusPlan
from tests.construction.annotators.test_detector import exported
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.program import proctor

VIDEOS = ("op-0", "op-1", "op-2", "op-3")
SECONDS = 10


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


def filled_in(table: Path, decision: str) -> None:
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with table.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(row | {"decision": decision, "by": "Dr Ada"} for row in rows)


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
    settings["stages"]["corrections"] = {"decisions": "sources/cvat"}
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
    first = proctor("build", "table", project, "presence", "--out", tmp_path / "clips.csv")
    assert first.returncode == 1
    assert "votes in sources/votes.csv (columns clip, annotator, class, present)" in first.stderr
    assert (tmp_path / "clips.csv").read_text().splitlines()[1:3] == ["op-0@0,,,,", "op-0@5,,,,"]
    rows = [
        f"{video}@{start},{who},{kind},{'yes' if (kind == 'Clip' or start == 0) != (who == 'foe') else 'no'}"
        for video in VIDEOS for start in (0, 5) for kind in ("Clip", "Needle", "Mesh")
        for who in ("ada", "bob", "cyd") if kind != "Mesh"
    ]  # fmt: skip
    rows += [f"{video}@{start},{who},Mesh,no" for video in VIDEOS for start in (0, 5) for who in ("ada", "bob", "cyd")]
    (sources / "votes.csv").write_text("\n".join(["clip,annotator,class,present", *rows]) + "\n", encoding="utf-8")
    said = proctor("build", "table", project, "boxes", "--out", tmp_path / "seconds.csv")
    assert "boxes in sources/boxes: 12 clips with a class that is present" in said.stderr
    assert (tmp_path / "seconds.csv").read_text().splitlines()[1] == 'op-0,0,"Clip, Needle"'
    status = proctor("build", "status", project).stdout
    assert "ada: 24 votes, sensitivity 0.9" in status

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
    table = sources / "proposals.csv"
    said = proctor("build", "table", project, "proposals", "--out", table, "--tracks", tmp_path / "cvat")
    assert said.returncode == 0, said.stderr
    assert f"3 proposals in {table}" in said.stdout
    assert sorted(one.name for one in (tmp_path / "cvat").iterdir()) == [f"{video}.xml" for video in VIDEOS]
    again = proctor("build", "table", project, "proposals", "--out", table)
    assert "found something there already" in again.stderr

    waits = proctor("build", "run", project, "--until", "corrections")
    assert waits.returncode == 1
    assert "3 proposals to decide in sources/proposals.csv (columns id, decision, by)" in waits.stderr
    corrected_by_cvat(project, tmp_path)
    filled_in(table, "accept")
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
    table = sources / "differences.csv"
    said = proctor("build", "table", project, "tracks", "--out", table)
    assert said.returncode == 0, said.stderr
    assert len(table.read_text().splitlines()) == 3
    assert (
        "2 differences to decide in sources/differences.csv"
        in proctor("build", "run", project, "--until", "adjudication").stderr
    )
    filled_in(table, "a")
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
    assert "Two annotators, who differed in 2 places" in sheet
    assert f"{len(requests)} questions (track procedure)" in sheet
    store = project / "runs.db"
    done = proctor("run", "focus", "--data", items, "--media", items / "videos", "--system", "random", "--store", store)
    assert done.returncode == 0, done.stderr
    asked = len([one for one in references if one["format"] != "matching"])  # nobody guesses a pattern
    assert f"Asked {asked}: {asked} answered" in done.stdout


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        (
            "votes.csv",
            "clip,annotator,class,present\nother@0,a,Clip,yes\n",
            "found 'other@0', expected VIDEO@START with",
        ),
        ("votes.csv", "clip,annotator,class,present\nop-0@1,a,Clip,yes\n", "a start that is a multiple of 5 s"),
        (
            "votes.csv",
            "clip,annotator,class,present\nop-0@0,a,Clip,yes\nop-0@500,a,Clip,yes\n",
            "votes.csv: column 'clip': found 'op-0@500', expected op-0@",
        ),
        ("votes.csv", "clip,annotator,class\nop-0@0,a,Clip\n", "no column 'present'"),
    ],
)
def test_what_people_deliver_is_checked(project: Path, file: str, content: str, said: str) -> None:
    (project / "sources" / file).write_text(content, encoding="utf-8")
    ended = proctor("build", "run", project, "--until", "presence")
    assert ended.returncode == 1
    assert said in ended.stderr


@pytest.mark.parametrize("source", ["network", "training"])
def test_detections_come_from_the_projects_videos(project: Path, source: str) -> None:
    rows = [f"{video}@{start},{who},Clip,yes" for video in VIDEOS for start in (0, 5) for who in ("ada", "bob")]
    (project / "sources" / "votes.csv").write_text("\n".join(["clip,annotator,class,present", *rows]) + "\n")
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
