"""Media in object storage: the same bytes as from the disk, or a clear error, and never half a file."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import proctor
from proctor.core import ConfigurationError, Frame, InputError
from proctor.media import MediaLibrary, damaged, drop, kept, location_of, media_folder, prune
from proctor.media import objects as storage
from tests.support.clock_video import ClockVideo, write_clock_video
from tests.support.medical_files import dicom, nifti
from tests.support.object_server import ObjectFault, ObjectServer, moto_bucket, object_server
from tests.support.program import proctor as program

BODY = hashlib.shake_256(b"a video").digest(3 * 1000 + 11)
LARGE = BODY * 20


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """Small parts, and no waiting between tries."""
    monkeypatch.setattr(storage, "_PART", 1000)
    monkeypatch.setitem(
        storage._RETRIES,
        "backoff",
        {
            **storage._RETRIES["backoff"],
            "init_backoff": timedelta(milliseconds=1),
            "max_backoff": timedelta(milliseconds=1),
        },
    )
    storage.remote_at.cache_clear()
    with object_server({"videos/a b/case 1.mp4": BODY, "bucket/videos/c.mp4": BODY}) as served:
        yield served


@pytest.fixture
def s3(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> ObjectServer:
    """The same, spoken to as S3."""
    told = {"ENDPOINT_URL": server.url, "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1"}
    for name, value in told.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    return server


def library(location: str, cache: Path) -> MediaLibrary:
    return MediaLibrary(media_folder(location, cache), cache_dir=cache)


def test_an_object_is_the_same_file(server: ObjectServer, tmp_path: Path) -> None:
    found = library(f"{server.url}/videos", tmp_path)
    path = found.locate("a b/case 1")  # as on the disk, the extension may be left out
    assert (path.name, path.read_bytes()) == ("case 1.mp4", BODY)
    assert found.identity("a b/case 1.mp4") == hashlib.sha256(BODY).hexdigest()
    assert found.missing([]) == []
    heads = [one for one in server.asked if one[0] == "HEAD"]
    ranges = sorted(one[2] for one in server.asked if one[0] == "GET")
    assert ranges == ["bytes=0-999", "bytes=1000-1999", "bytes=2000-2999", "bytes=3000-3010"]
    before = len(server.asked)
    assert found.locate("a b/case 1") == path
    assert len(server.asked) == before
    assert len(heads) == 2
    with pytest.raises(InputError, match=rf"below {server.url}/videos: found no such file"):
        found.locate("b.mp4")


def test_a_second_process_looks_whether_it_is_the_same_version(s3: ObjectServer, tmp_path: Path) -> None:
    for version, gets in ((1, 4), (1, 4), (2, 8)):
        s3.versions = version
        storage.remote_at.cache_clear()  # as a process that begins
        assert library("s3://bucket/videos", tmp_path).locate("c.mp4").read_bytes() == BODY
        assert sum(method == "GET" for method, *_ in s3.asked) == gets
    assert len(kept(tmp_path)) == 2


@pytest.mark.parametrize(
    "faults",
    [["503", "503", None], ["dropped", None], ["cut", None], ["short", None], ["cut", "503", "dropped", "short", None]],
)
def test_what_passes_is_tried_again(s3: ObjectServer, faults: list[ObjectFault | None], tmp_path: Path) -> None:
    s3.faults = faults
    assert library("s3://bucket/videos", tmp_path).locate("c.mp4").read_bytes() == BODY


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        (["503"], "503"),
        (["403"], "403"),
        (["dropped"], "no reply that can be used"),
        (["cut"], "no reply that can be used"),
        (["short"], "got 0..993"),
        (["whole"], "no reply that can be used"),
        ([None, "replaced", None], "replaced while it is read"),
    ],
)
def test_what_stays_wrong_is_an_error_and_no_file(
    s3: ObjectServer, faults: list[ObjectFault | None], said: str, tmp_path: Path
) -> None:
    s3.faults = faults
    with pytest.raises(InputError, match=said) as raised:
        library("s3://bucket/videos", tmp_path).locate("c.mp4")
    assert str(raised.value).startswith("s3://bucket/videos/c.mp4: ")
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400
    assert kept(tmp_path) == []
    assert [one for one in (tmp_path / "objects").rglob("*") if one.is_file()] == []


def test_copies_are_kept_as_frames_are(s3: ObjectServer, tmp_path: Path) -> None:
    s3.objects |= {f"bucket/videos/{k}.mp4": bytes([k]) * 5000 for k in range(3)}
    found = library("s3://bucket/videos", tmp_path)
    paths = [found.locate(f"{k}.mp4") for k in range(3)]
    assert [(one.source(), one.size) for one in kept(tmp_path)] == [(f"{k}.mp4", 5000) for k in range(3)]
    assert damaged(tmp_path) == []
    assert prune(tmp_path, 0) == []  # in use
    paths[1].write_bytes(b"x" * 5000)
    (broken,) = damaged(tmp_path)
    drop(broken.path)
    assert found.locate("1.mp4").read_bytes() == b"\1" * 5000
    del found
    assert len(prune(tmp_path, 6000)) == 2


@pytest.mark.parametrize("location", ["s3://key:secret@bucket/videos", "https://h.org/v?token=secret"])
def test_an_address_carries_no_credentials(location: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="belong into the environment") as raised:
        media_folder(location, tmp_path)
    assert "secret" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("location", ["ftp://host/videos", "gcs://bucket/videos", "abfs:/container/videos"])
def test_another_kind_of_address_is_no_folder(location: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"found another kind of URL, expected s3://, gs://, az://, https://"):
        media_folder(Path(location), tmp_path)
    with pytest.raises(InputError, match="another kind of URL"):
        MediaLibrary(tmp_path, cache_dir=location)


def test_names_stay_below_the_folder(s3: ObjectServer, tmp_path: Path) -> None:
    for name in ("../c.mp4", "/c.mp4", "a\\b"):
        with pytest.raises(InputError, match="leads out"):
            library("s3://bucket/videos", tmp_path).locate(name)
    assert s3.asked == []


def test_a_path_lost_a_slash_and_a_folder_is_itself(tmp_path: Path) -> None:
    folder = media_folder(Path("s3://bucket/videos/"), tmp_path)
    assert folder == media_folder("s3://bucket/videos", tmp_path)
    assert (location_of(folder), location_of(tmp_path)) == ("s3://bucket/videos", str(tmp_path.resolve()))
    assert location_of(Path("s3://bucket/videos/")) == "s3://bucket/videos"
    assert media_folder(tmp_path / "x", tmp_path) == tmp_path / "x"


def test_without_the_library_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.remote_at.cache_clear()
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'proctor-eval\[cloud\]'"):
        library("gs://bucket/videos", tmp_path).locate("c.mp4")


def test_a_run_from_a_bucket_shows_the_same_frames(s3: ObjectServer, tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    video = write_clock_video(tmp_path / "videos" / "v.mp4", ClockVideo(range(0, 3000, 40)))
    s3.objects = {"bucket/videos/v.mp4": video.read_bytes()}
    questions = tmp_path / "asked" / "questions.csv"
    questions.parent.mkdir()
    questions.write_text("id,question,answer,video,start,end\n1,Is it on?,yes,v.mp4,,\n2,Is it off?,no,v.mp4,1,2\n")
    seen: list[list[bytes]] = []

    def looks(frames: list[Frame]) -> str:
        seen.append([frame.jpeg for frame in frames])
        return "yes"

    store = tmp_path / "runs.db"
    found: list[list[list[bytes]]] = []
    for media in (tmp_path / "videos", "s3://bucket/videos", None):  # the store remembers the last location
        cache = tmp_path / str(len(found))
        made = proctor.run(
            questions, looks, media=media, store=store, cache=cache, name=f"r{len(found)}", conditions="video"
        )
        found.append(sorted(seen[-2:]))
        assert len(made.store.answers(made.runs[-1])) == 2
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) + len(found[0][1]) > 2
    assert (tmp_path / "2" / "objects").is_dir()


def test_moto_which_stands_for_s3_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.remote_at.cache_clear()
    with moto_bucket(monkeypatch) as client:
        client.put_object(Bucket="bucket", Key="some/ä %20/v.mp4", Body=LARGE)
        monkeypatch.setattr(storage, "_PART", 20_000)
        found = library("s3://bucket/some", tmp_path)
        assert found.locate("ä %20/v").read_bytes() == LARGE
        assert found.identity("ä %20/v.mp4") == hashlib.sha256(LARGE).hexdigest()


def test_your_own_questions_are_checked_and_read_from_a_bucket(
    s3: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    dicom(tmp_path / "ct.dcm", np.arange(64, dtype=np.uint16).reshape(8, 8))
    nifti(tmp_path / "brain.nii", np.arange(64, dtype=np.int16).reshape(4, 4, 4))
    s3.objects = {f"bucket/scans/{name}": (tmp_path / name).read_bytes() for name in ("ct.dcm", "brain.nii")}
    Path("asked").mkdir()
    rows = ["id,question,answer,image", "1,Is it on?,yes,ct.dcm", "2,Is it off?,no,brain.nii#axial=1"]
    (tmp_path / "asked" / "questions.csv").write_text("\n".join(rows))
    done = program("check", "asked", "--media", "s3://bucket/scans")
    assert (done.returncode, done.stdout) == (0, "2 questions in 2 groups, no faults; 2 of them in preview.html\n")
    away = program("check", "asked", "--media", "s3://bucket/other")
    assert away.returncode == 1
    assert "below s3://bucket/other" in away.stdout


def test_a_medical_file_that_can_not_be_read_is_said_once(tmp_path: Path) -> None:
    dicom(tmp_path / "ct.dcm", np.arange(64, dtype=np.uint16).reshape(8, 8))
    whole = (tmp_path / "ct.dcm").read_bytes()
    (tmp_path / "ct.dcm").write_bytes(whole[:140])
    (tmp_path / "questions.csv").write_text("id,question,answer,image\n1,Is it on?,yes,ct.dcm\n")
    (fault,) = proctor.check(tmp_path / "questions.csv").rows
    assert str(fault["expected"]) not in str(fault["found"])
