"""A full disk, a read-only one, names that no file can have, pictures that no memory holds: one line, and nothing half
written."""

from __future__ import annotations

import errno
import json
import os
import resource
import sqlite3
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from proctor.cli.main import _end, _is_of_the_database, _location
from proctor.cli.output import print_note
from proctor.core import BENCHMARKS, Benchmark, BenchmarkReader, InputError, Item, UsageError, VideoClip, whole_folder
from proctor.core.formats import BinaryFormat, ChoiceFormat
from proctor.media import MediaLibrary, open_picture, read_image
from proctor_build.files import write_folder
from tests.support.drawn_tracks import drawn
from tests.support.program import proctor, within

LONG = "x" * 300


def test_a_file_is_named_as_it_can_be_printed() -> None:
    assert _location(OSError(errno.EROFS, "Read-only", "a\x1b[31m\nb é.db")) == "a\ufffd[31m\ufffdb é.db: "
    assert _location(OSError(errno.EROFS, "Read-only")) == ""


@contextmanager
def full_disk(most_bytes: int) -> Iterator[None]:
    """No file grows over so many bytes: writing fails as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def tracks(tmp_path: Path) -> Path:
    write_folder([drawn(2, "case", 40.0)[0]], "json", tmp_path / "tracks")
    return tmp_path / "tracks"


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("most_bytes", [0, 3_000, 60_000])
def test_simulating_on_a_full_disk(tmp_path: Path, there: bool, most_bytes: int) -> None:
    out = tmp_path / "out"
    if there:
        out.mkdir()
    with full_disk(most_bytes):
        done = proctor("new", "simulated", out, "--videos", "1", "--seconds", "8")
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert line == f"proctor: {out}: found file too large, expected a folder to write to, with room in it"
    assert "Traceback" not in done.stderr
    assert list(tmp_path.rglob("*")) == ([out] if there else [])


@pytest.mark.parametrize("kind", ["cvat", "coco", "json"])
def test_converting_on_a_full_disk(tracks: Path, tmp_path: Path, kind: str) -> None:
    with full_disk(100):
        done = proctor("build", "convert", tracks, "--to", kind, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"proctor: {tmp_path / 'out'}: found file too large")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tracks"]


def test_a_read_only_disk(tracks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: object) -> str:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(tmp_path))

    monkeypatch.setattr(tempfile, "mkdtemp", refused)
    out = tmp_path / "out"
    for command in (
        ("new", "simulated", out, "--videos", "1"),
        ("build", "convert", tracks, "--to", "cvat", "--out", out),
        ("build", "focus", tracks, "--out", out),
    ):
        done = proctor(*command)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            f"proctor: {out}: found read-only file system, expected a folder to write to, with room in it"
        )
    assert not out.exists()


def test_an_empty_folder_that_is_there_is_filled_and_stays_the_same(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    before = out.stat().st_ino
    with whole_folder(out) as half:
        (half / "a").write_text("a")
        (half / "b").mkdir()
        assert not (out / "a").exists()
    assert sorted(path.name for path in out.iterdir()) == ["a", "b"]
    assert out.stat().st_ino == before
    with pytest.raises(InputError, match="something there already"), whole_folder(out):
        raise AssertionError("not reached")


@pytest.mark.parametrize(
    "arguments",
    [
        ("new", "simulated"),
        ("build", "convert", "--to", "cvat", "--out", "out"),
        ("run", "clinicalskillqa", "--system", "random", "--data"),
        ("run", "focus", "--system", "random", "--data"),
        ("check", "store", "--store"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_name_that_is_too_long(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = proctor(*arguments, tmp_path / LONG)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("proctor: ")
    assert "file name too long" in line.lower()


def test_media_with_a_name_that_is_too_long_is_missing(tmp_path: Path) -> None:
    library = MediaLibrary(tmp_path, cache_dir=tmp_path / "cache")
    for name in (LONG, "x" * 253, "/".join(["x" * 200] * 30)):
        item = Item(id="q", group="g", question="?", answer=BinaryFormat(), media=(VideoClip(source=name),))
        assert library.missing([item]) == [name]
        with pytest.raises(InputError, match="found no such file, expected a video or image of this name"):
            library.locate(name)


def test_tracks_with_a_name_that_is_too_long(tmp_path: Path) -> None:
    one = drawn(2, "case", 40.0)[0]
    video = one.video.model_copy(update={"id": "x" * 200 + "é" * 100})
    with pytest.raises(InputError, match=r"found file name too long, expected a folder to write to"):
        write_folder([one.model_copy(update={"video": video})], "json", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def large_picture(file: Path, side: int) -> Path:
    """A PNG that says to be side × side pixels; of so many it needs no more than a line."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b""))
    return file


def test_a_picture_of_900_megapixels(tmp_path: Path) -> None:
    picture = large_picture(tmp_path / "A.png", 30_000)
    found = "an unreadable image (DecompressionBombError)"
    readers: list[Callable[[], object]] = [lambda: read_image(picture), lambda: open_picture(picture.read_bytes(), "A")]
    for read in readers:
        with pytest.raises(InputError) as caught:
            read()
        assert found in str(caught.value)


class _Careless(BenchmarkReader):
    """A reader of another package, which leaves checks to the items."""

    name = "wards"
    summary = "Options line by line"

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        options = tuple((data / "options.txt").read_text().split())
        Item(id="q7", group="g", question="Which?", answer=ChoiceFormat(), options=options)
        raise AssertionError("not reached")


@pytest.mark.parametrize(
    "command", [("run", "--system", "random"), ("import", "x.json", "--name", "x"), ("check", "x.json")]
)
def test_an_item_of_another_package_that_can_not_be_is_one_line(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BENCHMARKS._known, "wards", _Careless())
    (tmp_path / "options.txt").write_text(" ".join(f"o{number}" for number in range(27)))
    name, *rest = command
    code, said = within(name, "wards", *rest, "--data", tmp_path, "--store", tmp_path / "runs.db")
    expected = "expected at most 26 options, a letter for each (item 'q7' has 27)"
    assert (code, said) == (
        1,
        f"proctor: {tmp_path} (read by test_machine_faults.py): field 'options': found a list, {expected}\n",
    )
    code, said = within("audit", "items", "wards", "--data", tmp_path)
    assert (code, said.count("\n")) == (1, 1)


PIPED = {
    "run": ("run", "focus", "--data", "{folder}", "--system", "random"),
    "import": ("import", "focus", "{pipe}", "--data", "{good}", "--name", "x"),
    "import mediqa-eval": ("import", "mediqa-eval", "{pipe}", "--data", "{folder}"),
    "check focus": ("check", "focus", "{pipe}", "--data", "{good}"),
    "check mediqa-eval": ("check", "mediqa-eval", "{good}/requests.json", "--ratings", "{pipe}"),
    "check workflow": ("check", "workflow", "{pipe}"),
    "score": ("score", "clinicalskillqa", "{good}/requests.json", "--references", "{pipe}"),
    "weights": ("media", "pose", "{good}/A.png", "--weights", "{pipe}.onnx"),
    "keypoints": ("media", "pose", "{good}/A.png", "--keypoints", "{pipe}.json"),
    "pictures": ("run", "clinicalskillqa", "--data", "{pictures}", "--system", "as-given"),
    "tracks": ("build", "focus", "{pipe}", "--out", "{good}/out"),
}
"""Commands with a file of each kind that people give: a pipe and an endless device instead."""


@pytest.mark.parametrize("device", [False, True], ids=["pipe", "device"])
@pytest.mark.parametrize("name", PIPED)
def test_no_command_waits_for_a_pipe_or_reads_a_device(name: str, device: bool, tmp_path: Path) -> None:
    folders = {one: tmp_path / one for one in ("folder", "good", "pictures")}
    for one in folders.values():
        one.mkdir()

    def put(file: Path) -> None:
        if device:
            file.symlink_to("/dev/zero")
        else:
            os.mkfifo(file)

    request = {"qID": "q1", "videoID": "v.mp4", "start_time": 0.0, "end_time": 9.0, "procedure_type": "x"}
    (folders["good"] / "requests.json").write_text(json.dumps([request | {"question": "Which?"}]))
    large_picture(folders["good"] / "A.png", 9)
    for file in ("requests.json", "encounters.jsonl"):
        put(folders["folder"] / file)
    (folders["pictures"] / "i0").mkdir()
    order: list[dict[str, object]] = [{"id": "i0", "order": ["A", "B"], "video": "v", "scenario": "CPR"}]
    (folders["pictures"] / "references.json").write_text(json.dumps(order))
    for label in "AB":
        put(folders["pictures"] / "i0" / f"{label}.jpg")
    for file in ("pipe", "pipe.onnx", "pipe.json"):
        put(tmp_path / file)
    paths = {one: str(where) for one, where in folders.items()} | {"pipe": str(tmp_path / "pipe")}
    words = [word.format(**paths) for word in PIPED[name]]
    code, said = within(*words, *(() if words[0] in {"check", "media", "build"} else ("--store", tmp_path / "s.db")))
    assert code == 1, said
    assert "Traceback" not in said
    others = {"tracks": "found no such file or folder", "pictures": "found a name that leads out of the folder"}
    assert "found no regular file" in said or others.get(name, "-") in said, said
    assert len([line for line in said.splitlines() if "found" in line]) == 1


@pytest.mark.parametrize(
    ("name", "away", "told"),
    [
        ("SQLITE_BUSY_SNAPSHOT", False, True),
        ("SQLITE_FULL", False, True),
        ("SQLITE_ERROR", False, False),
        ("SQLITE_CONSTRAINT_UNIQUE", False, False),
        ("", False, False),
        ("", True, True),
    ],
)
def test_of_a_databases_errors_only_those_of_the_machine_are_one_line(name: str, away: bool, told: bool) -> None:
    reason = sqlite3.OperationalError("a reason")
    if name:
        reason.sqlite_errorname = name
    assert _is_of_the_database(OperationalError("select 1", {}, reason, connection_invalidated=away)) is told
    assert not _is_of_the_database(ValueError("a fault of the program"))


def test_names_in_files_send_no_control_characters_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A column is named in an error, an item in a note: whoever wrote the file would write on the terminal."""
    with pytest.raises(SystemExit):
        _end(UsageError("Which column? --id-column '\x1b[31mred'"))
    print_note("no item '\x1b]0;title\x07', \u202eexe.")
    assert capsys.readouterr().err == (
        "proctor: Which column? --id-column '\ufffd[31mred'\nno item '\ufffd]0;title\ufffd', \ufffdexe.\n"
    )
