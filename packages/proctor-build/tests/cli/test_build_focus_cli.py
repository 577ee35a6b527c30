"""From tracks to a FOCUS benchmark on the command line: what is printed, what is written, how it ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from proctor.cli.main import main
from proctor.tracks import Annotation
from proctor_build import complete
from proctor_build.files import read_annotations, write_folder
from tests.support.drawn_tracks import drawn
from tests.support.program import proctor


class Done(NamedTuple):
    """How the program ended."""

    returncode: int
    stdout: str
    stderr: str


Program = Callable[..., Done]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    """The program in this process: starting one for every line takes seconds."""

    def run(*arguments: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["proctor", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        said = capsys.readouterr()
        return Done(int(str(code or 0)), said.out, said.err)

    return run


@pytest.fixture
def tracks(tmp_path: Path) -> Path:
    """Three procedures as CVAT has them."""
    three = [drawn(2, f"case-{number}", 40.0)[0] for number in range(3)]
    write_folder(three, "cvat", tmp_path / "tracks")
    return tmp_path / "tracks"


@pytest.fixture
def doubtful(tracks: Path) -> Path:
    """One of them has lost its moments and three boxes on end."""
    one = read_annotations([tracks / "case-1.xml"])[0]
    name, mine = max(one.by_instance().items(), key=lambda pair: len(pair[1]))
    lost = {mine[len(mine) // 2 + step].second for step in range(3)}
    kept = tuple(seen for seen in one.sightings if seen.instance != name or seen.second not in lost)
    (tracks / "case-1.xml").unlink()
    write_folder([Annotation(video=one.video, sightings=kept)], "json", tracks.parent / "one")
    (tracks.parent / "one" / "case-1.json").rename(tracks / "case-1.json")
    return tracks


def test_from_tracks_to_results(tracks: Path, tmp_path: Path) -> None:
    out, store = tmp_path / "focus", tmp_path / "runs.db"
    done = proctor("build", "focus", tracks, "--out", out, "--questions", "21", "--procedure", "rectal resection")
    assert done.returncode == 0, done.stderr
    assert "3 videos; 0 open findings; 0 gaps filled" in done.stdout
    assert f"63 questions in {out}" in done.stdout
    assert f"Next: proctor audit items focus --data {out}" in done.stderr
    assert {one.name for one in out.iterdir()} == {"requests.json", "references.json", "build.json"}
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []
    done = proctor(
        *("run", "focus", "--data", out, "--system", "majority", "--condition", "text-only", "--store", store)
    )
    assert done.returncode == 0, done.stderr
    done = proctor("results", "focus", "--store", store, "--format", "json", "--draws", "100")
    rows = {row["system"]: row for row in json.loads(done.stdout)}
    assert (rows["majority"]["n"], rows["majority"]["groups"]) == (63, 3)
    assert rows["majority"]["value"] < 0.45


def test_a_finding_that_needs_a_person_stops_it(here: Program, doubtful: Path, tmp_path: Path) -> None:
    out = tmp_path / "focus"
    done = here("build", "focus", doubtful, "--out", out)
    assert done.returncode == 1
    assert "To be decided by a person" in done.stdout
    assert "no-moments" in done.stdout
    assert "Nothing was written" in done.stderr
    assert not out.exists()
    done = here("build", "focus", doubtful, "--out", out, "--allow-findings", "--questions", "7")
    assert done.returncode == 0, done.stderr
    record = json.loads((out / "build.json").read_text())
    assert "no-moments" in {finding["kind"] for finding in record["findings"]}
    assert {source["file"] for source in record["sources"]} == {"case-0.xml", "case-1.json", "case-2.xml"}


def test_checking_writes_nothing_and_can_be_read_by_programs(here: Program, doubtful: Path) -> None:
    done = here("build", "focus", doubtful, "--check-only", "--fill", "0", "--format", "json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["videos"] == 3
    assert found["questions"] is None
    undecided = [one for one in found["findings"] if one["needs_person"]]
    assert found["undecided"] == len(undecided) > 0
    assert {"kind", "video", "instance", "time", "detail", "needs_person"} == set(undecided[0])
    filled = here("build", "focus", doubtful, "--check-only", "--fill", "5", "--format", "json")
    assert [one["video"] for one in json.loads(filled.stdout)["filled"]] == ["case-1"]
    (doubtful / "case-1.json").unlink()
    clean = here("build", "focus", doubtful, "--check-only")
    assert (clean.returncode, clean.stdout) == (0, "2 videos; 0 open findings; 0 gaps filled; noted: outside-frame 1\n")


def test_tracks_go_from_tool_to_tool(here: Program, tracks: Path, tmp_path: Path) -> None:
    before = read_annotations([tracks])
    for to, files in (("coco", 1), ("json", 3), ("cvat", 3)):
        out = tmp_path / to
        done = here("build", "convert", tracks, "--to", to, "--out", out)
        assert done.returncode == 0, done.stderr
        assert f"3 videos in {files} file{'s' if files > 1 else ''} in {out}" in done.stdout
        assert read_annotations([out]) == before
    done = here("build", "convert", tracks, "--to", "coco", "--out", tmp_path / "coco")
    assert (done.returncode, "found something there already" in done.stderr) == (1, True)


def test_filling_is_told_and_scored(here: Program, doubtful: Path, tmp_path: Path) -> None:
    done = here("build", "convert", doubtful, "--to", "json", "--out", tmp_path / "out", "--fill", "5")
    assert "; 1 gap filled" in done.stdout
    one = read_annotations([tmp_path / "out" / "case-1.json"])[0]
    assert sum(seen.filled for seen in one.sightings) == 3
    assert complete(one, 5).filled == ()


def test_what_is_missing_is_asked_for(here: Program, tracks: Path, tmp_path: Path) -> None:
    done = here("build", "focus", tracks)
    assert done.returncode == 2
    assert "--check-only" in done.stderr
    text = (tracks / "case-0.xml").read_text()
    (tmp_path / "plain.xml").write_text(text.replace("<fps>25.0</fps>", ""))
    done = here("build", "focus", tmp_path / "plain.xml", "--out", tmp_path / "o")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"proctor: {tmp_path}/plain.xml: <meta>: found no frame rate, CVAT keeps none, expected --fps"
    )
    done = here("build", "focus", tmp_path / "plain.xml", "--out", tmp_path / "o", "--fps", "25")
    assert done.returncode == 0, done.stderr


def test_frames_are_built_audited_and_run_on_their_track(here: Program, tracks: Path, tmp_path: Path) -> None:
    out = tmp_path / "frames"
    done = here("build", "focus", tracks, "--out", out, "--questions", "12", "--track", "frame")
    assert done.returncode == 0, done.stderr
    assert f"Next: proctor audit items focus --data {out} --track frame" in done.stderr
    done = here("audit", "items", "focus", "--data", out, "--track", "frame", "--draws", "100", "--top", "1")
    assert done.returncode == 0, done.stderr
    done = here(
        *("run", "focus", "--data", out, "--track", "frame", "--system", "majority"),
        *("--condition", "text-only", "--store", tmp_path / "runs.db"),
    )
    assert done.returncode == 0, done.stderr
    assert here("run", "focus", "--data", out, "--system", "random", "--store", tmp_path / "x.db").returncode == 1
