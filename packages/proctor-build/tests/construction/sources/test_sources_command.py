"""`proctor build table DIR sources`: from videos to decisions to copies, through the program."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import av
import numpy as np
import pytest

from proctor.media.video import metadata_of
from tests.support.labelled_pictures import LaidText, Pixels, moving_tissue, with_text
from tests.support.program import proctor

SIZE = (160, 90)


def room(rng: np.random.Generator) -> Pixels:
    """Green drapes and a white wall, unlike any tissue."""
    picture = np.full((SIZE[1], SIZE[0], 3), (60, 130, 110), dtype=float)
    picture[:, : int(rng.integers(20, 90))] = (205, 210, 208)
    return np.asarray(np.clip(picture + rng.normal(0, 5, picture.shape), 0, 255), dtype=np.uint8)


def write(path: Path, pictures: list[Pixels], title: str = "") -> None:
    with av.open(str(path), "w") as container:
        container.metadata.update({"title": title} if title else {})
        stream = container.add_stream("libx264", rate=4, options={"preset": "ultrafast", "crf": "16"})
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        for one in pictures:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(one, format="rgb24")))
        container.mux(stream.encode(None))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five videos of 5 s: a room until 2 s, then tissue; a line of text over all of `v4`; `v0` has a title."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "sources").mkdir()
    lines, labels = ["kind: rexsonovqa", "title: Made", "sources:"], ["source,start,end,shows"]
    for number in range(5):
        rng = np.random.default_rng(number)
        pictures = [room(rng) for _ in range(8)] + moving_tissue(40 + number, 3.0, SIZE, fps=4.0)
        if number == 4:
            pictures, _ = with_text(pictures, LaidText("Smith J", 0.14, 110, (0.5, 0.9), 0.0, 5.0), fps=4.0)
        write(folder / "sources" / f"v{number}.mp4", pictures, "" if number else "Jane Q. Patient")
        lines.append(f"  - {{id: v{number}, video: sources/v{number}.mp4, licence: CC0, provenance: made}}")
        labels += [f"v{number},0,2,outside", f"v{number},2,5,inside"]
    (folder / "project.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "sources" / "labels.csv").write_text("\n".join(labels) + "\n", encoding="utf-8")
    return folder


def hashes(folder: Path) -> dict[str, str]:
    return {
        one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in sorted((folder / "sources").glob("*.mp4"))
    }


def decide(folder: Path, decision: str, by: str = "A. Reviewer") -> list[dict[str, str]]:
    file = folder / "sources" / "decisions.csv"
    with file.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["decision"], row["by"] = decision, by
    with file.open("w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return rows


def test_the_whole_way_from_videos_to_checked_copies(made: Path) -> None:
    before = hashes(made)
    listed = proctor("build", "table", made, "sources", "--format", "json")
    assert listed.returncode == 1, listed.stderr  # a person must decide
    told = json.loads(listed.stdout)
    assert [(one["id"], [flag for flag in one["flags"] if flag != "metadata"]) for one in told["sources"]] == [
        *((f"v{k}", ["outside"]) for k in range(4)),
        ("v4", ["text", "outside"]),
    ]
    assert "tag title" in told["sources"][0]["holds"]
    assert told["finder"]["held_out"]["groups"] == 5
    spans = {one["id"]: [p for p in one["proposals"] if p["kind"] == "outside"] for one in told["sources"]}
    for some in spans.values():
        assert [(one["start"], round(one["end"])) for one in some] in ([(0.0, 2)], [(0.0, 3)])
    page = (made / "work/sources/proposals.html").read_text(encoding="utf-8")
    assert page.count("<article>") == 6 + 5  # each proposal, and an overview of each source
    assert "undecided</span> · text" in page
    text = next(p for one in told["sources"] for p in one["proposals"] if p["kind"] == "text")
    drawn = f'style="left:{100 * text["region"]["x"]:.2f}%;top:{100 * text["region"]["y"]:.2f}%;'
    assert page.count('class="mark"') == page.count(drawn) == 4  # the text's box, in each of its frames

    early = proctor("build", "table", made, "sources", "--apply")
    assert early.returncode != 0
    assert "found 6 rows without a decision (first: v0, outside at 0 s), expected accept or reject" in early.stderr
    assert not (made / "sources" / "deidentified").exists()

    decide(made, "accept")
    applied = proctor("build", "table", made, "sources", "--apply", "--format", "json")
    assert applied.returncode == 0, applied.stderr
    done = json.loads(applied.stdout)
    for one in done:
        copy = made / one["copy_path"]
        assert one["copy_sha256"] == hashlib.sha256(copy.read_bytes()).hexdigest()
        assert one["original_sha256"] == before[f"{one['source']}.mp4"]
        assert one["decisions"][0]["by"] == "A. Reviewer"
        assert one["result"]["check"]["detail_left"] < 0.02
        assert one["result"]["check"]["pictures"] == 20
        assert metadata_of(copy).tags == ()
    assert [one["result"]["check"]["hidden"] for one in done[:4]] == [
        sum(k / 4 < spans[f"v{n}"][0]["end"] for k in range(20)) for n in range(4)
    ]
    assert done[4]["result"]["check"]["hidden"] == 20  # the line of text is there all the time
    assert json.loads((made / "work/sources/manifest.json").read_text())["videos"] == done
    assert hashes(made) == before

    stamps = {one["source"]: (made / one["copy_path"]).stat().st_mtime_ns for one in done}
    again = proctor("build", "table", made, "sources", "--apply")
    assert again.stdout.count("encoded before") == 5
    assert stamps == {name: (made / f"sources/deidentified/{name}.mp4").stat().st_mtime_ns for name in stamps}


def project(folder: Path, *sources: str) -> Path:
    (folder / "sources").mkdir(exist_ok=True)
    (folder / "project.yaml").write_text(
        "kind: rexsonovqa\nsources:\n" + "\n".join(f"  - {{{one}}}" for one in sources) + "\n"
    )
    return folder


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("videos") / "a.mp4"
    write(file, moving_tissue(3, 2.0, SIZE, fps=4.0))
    return file


def test_without_labels_nothing_is_looked_for_outside_and_duplicates_are_told(tmp_path: Path, short: Path) -> None:
    folder = project(
        tmp_path, "id: a, video: sources/a.mp4", "id: b, video: sources/b.mp4, licence: CC0, provenance: x"
    )
    (folder / "sources" / "a.mp4").symlink_to(short)
    (folder / "sources" / "b.mp4").write_bytes(short.read_bytes())
    listed = proctor("build", "table", folder, "sources", "--format", "json")
    assert listed.returncode == 0, listed.stderr
    told = json.loads(listed.stdout)
    assert told["finder"] is None
    first, second = told["sources"]
    assert (first["like"], second["like"]) == (["b"], ["a"])
    assert {"no licence", "no provenance", "shows the same as another"} <= set(first["flags"])
    assert "no licence" not in second["flags"]
    said = proctor("build", "table", folder, "sources").stderr
    assert "no labels: pictures outside the body are not looked for" in said
    assert proctor("build", "table", folder, "sources", "--apply").stdout.count("copied") == 2


@pytest.mark.parametrize(("kind", "until"), [("rexsonovqa", "transcript"), ("focus", "presence")])
def test_sources_are_a_stage_for_those_who_ask(tmp_path: Path, short: Path, kind: str, until: str) -> None:
    """It is run, shown and made again like every other stage; without a word in project.yaml it costs nothing."""
    folder = project(tmp_path, "id: a, video: sources/a.mp4, transcript: sources/a.vtt")
    (folder / "sources" / "a.vtt").write_text("WEBVTT\n\n00:00.000 --> 00:01.500\nwe look around\n")
    settings = (folder / "project.yaml").read_text().replace("rexsonovqa", kind)
    (folder / "project.yaml").write_text(settings)
    (folder / "sources" / "a.mp4").symlink_to(short)

    def ran() -> dict[str, str]:
        states = json.loads(proctor("build", "run", folder, "--until", until, "--format", "json").stdout)
        return {one["stage"]: one["state"] for one in states}

    def shown() -> list[str]:
        return [one["stage"] for one in json.loads(proctor("build", "status", folder, "--format", "json").stdout)]

    assert "sources" not in {*ran(), *shown()}
    (folder / "project.yaml").write_text(settings + "stages: {sources: {near_duplicates: false}}\n")
    assert shown()[0] == "sources"
    assert ran()["sources"] == "made"
    assert ran()["sources"] == "kept"
    assert "sources: flagged: no licence (1)" in proctor("build", "status", folder).stdout
    assert "duration_s: 2" in proctor("build", "status", folder, "a").stdout
    (folder / "project.yaml").write_text(settings)  # what was run once goes on
    assert "sources: attempt 2" in proctor("build", "run", folder, "--redo", "sources", "--until", "sources").stdout
    assert ran()["sources"] == "kept"
    assert shown()[0] == "sources"


@pytest.mark.parametrize(
    ("source", "files", "fault"),
    [
        ("id: a, video: sources/none.mp4", {}, "source 'a', field 'video': found no file 'sources/none.mp4'"),
        ("id: a, video: sources/a.mp4", {"sources/a.mp4": b"no video"}, "a.mp4: found an unreadable video"),
        ("id: a, video: sources/v.mp4, end: 60", {}, "source 'a', field 'end': found 60 s, expected a time within the"),
        ("id: a, video: sources/v.mp4", {"sources/labels.csv": b"source,start\na,1\n"}, "no column 'end'"),
        (
            "id: a, video: sources/v.mp4",
            {"sources/labels.csv": b"source,start,end,shows\na,0,1,outside\na,1,2,inside\n"},
            "labels.csv: found 1 of 1 labelled videos that show outside of the body, expected at least 3",
        ),
        (
            "id: a, video: sources/v.mp4",
            {"sources/labels.csv": b"source,start,end,shows\na,0,1.5,outside\na,1,2,inside\n"},
            "found a stretch of a from 1 s inside one that ends at 1.5 s",
        ),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_copies(
    tmp_path: Path, short: Path, source: str, files: dict[str, bytes], fault: str
) -> None:
    folder = project(tmp_path, source)
    (folder / "sources" / "v.mp4").write_bytes(short.read_bytes())
    for name, content in files.items():
        (folder / name).write_bytes(content)
    said = proctor("build", "table", folder, "sources", "--apply")
    assert said.returncode != 0
    assert fault in said.stderr
    assert "Traceback" not in said.stderr
    assert not (folder / "sources" / "deidentified").exists()
    assert not (folder / "sources" / "decisions.csv").exists()
