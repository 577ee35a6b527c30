"""Archives of images that somebody uploads: what is no image is refused before an engine sees it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.core import InputError
from proctor_challenge.containers import images
from proctor_challenge.containers.images import image_digest, last_line

CONFIG = b'{"architecture": "amd64", "os": "linux"}'
DIGEST = hashlib.sha256(CONFIG).hexdigest()
LISTED = {"Config": f"{DIGEST}.json", "RepoTags": ["localhost/mine:1"], "Layers": ["layer.tar"]}

Change = Callable[[tarfile.TarFile], None]


def add(archive: tarfile.TarFile, name: str, content: bytes = b"", **fields: object) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for field, value in fields.items():
        setattr(member, field, value)
    archive.addfile(member, io.BytesIO(content))


def image(archive: tarfile.TarFile, listed: object = (LISTED,)) -> None:
    add(archive, f"{DIGEST}.json", CONFIG)
    add(archive, "layer.tar", b"\0" * 1024)
    add(archive, "manifest.json", json.dumps(listed).encode())


def written(file: Path, *changes: Change) -> Path:
    with tarfile.open(file, "w") as archive:
        for change in changes:
            change(archive)
    return file


def test_the_digest_is_that_of_the_configuration(tmp_path: Path) -> None:
    found = image_digest(written(tmp_path / "a.tar", image))
    assert (found.digest, found.names) == (f"sha256:{DIGEST}", ("localhost/mine:1",))
    packed = tmp_path / "a.tar.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.tar").read_bytes()))
    assert image_digest(packed) == found


def test_an_archive_of_oci_is_known_by_the_same_digest(tmp_path: Path) -> None:
    def blob(content: bytes) -> dict[str, str]:
        return {"digest": f"sha256:{hashlib.sha256(content).hexdigest()}"}

    def oci(archive: tarfile.TarFile) -> None:
        manifest = json.dumps({"config": blob(CONFIG)}).encode()
        for content in (CONFIG, manifest):
            add(archive, f"blobs/sha256/{hashlib.sha256(content).hexdigest()}", content)
        add(archive, "index.json", json.dumps({"manifests": [blob(manifest)]}).encode())

    assert image_digest(written(tmp_path / "a.tar", oci)).digest == f"sha256:{DIGEST}"


HOSTILE: dict[str, tuple[Change, str]] = {
    "name of the root": (lambda one: add(one, "/etc/passwd"), "a name outside the archive"),
    "name above": (lambda one: add(one, "a/../../b"), "a name outside the archive"),
    "link of the root": (
        lambda one: add(one, "a", type=tarfile.SYMTYPE, linkname="/etc/shadow"),
        "a name outside the archive",
    ),
    "link above": (lambda one: add(one, "a/b", type=tarfile.SYMTYPE, linkname="../../x"), "a name outside the archive"),
    "hard link above": (lambda one: add(one, "a", type=tarfile.LNKTYPE, linkname="../x"), "a link out of the archive"),
    "device": (lambda one: add(one, "disk", type=tarfile.BLKTYPE, devmajor=8), "a device or a pipe"),
    "pipe": (lambda one: add(one, "pipe", type=tarfile.FIFOTYPE), "a device or a pipe"),
    "name twice": (lambda one: add(one, "manifest.json", b"[]"), "the name twice"),
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_what_leads_out_of_an_archive_is_refused(tmp_path: Path, attack: str) -> None:
    change, found = HOSTILE[attack]
    with pytest.raises(InputError, match=found):
        image_digest(written(tmp_path / "a.tar", image, change))


def test_links_inside_an_archive_are_docker_s_own(tmp_path: Path) -> None:
    linked = written(
        tmp_path / "a.tar", image, lambda one: add(one, "b/c.tar", type=tarfile.SYMTYPE, linkname="../layer.tar")
    )
    assert image_digest(linked).digest == f"sha256:{DIGEST}"


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ([LISTED, LISTED], "found 2 images, expected one image"),
        ([], "found 0 images, expected one image"),
        ([{"Config": "../../etc/passwd"}], "found no such file"),
        ([{"Config": None}], "found no such file"),
        ({"a": 1}, "found 0 images"),
        (["a"], "found no such file"),
    ],
)
def test_one_image_is_expected(tmp_path: Path, listed: object, found: str) -> None:
    with pytest.raises(InputError, match=found):
        image_digest(written(tmp_path / "a.tar", lambda one: image(one, listed)))


def test_names_that_are_no_list_are_none(tmp_path: Path) -> None:
    named = written(tmp_path / "a.tar", lambda one: image(one, [LISTED | {"RepoTags": 5}]))
    assert image_digest(named).names == ()


def test_an_archive_of_oci_whose_manifest_is_no_object_is_refused(tmp_path: Path) -> None:
    content = b"[]"
    name = hashlib.sha256(content).hexdigest()

    def oci(archive: tarfile.TarFile) -> None:
        add(archive, f"blobs/sha256/{name}", content)
        add(archive, "index.json", json.dumps({"manifests": [{"digest": f"sha256:{name}"}]}).encode())

    with pytest.raises(InputError, match="no digest"):
        image_digest(written(tmp_path / "a.tar", oci))


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = tmp_path / "a.tar.gz"
    with tarfile.open(bomb, "w:gz") as archive:
        add(archive, "layer.tar", b"\0" * 2**22)
    assert bomb.stat().st_size < 2**14
    monkeypatch.setattr(images, "MOST_BYTES", 2**21)
    with pytest.raises(InputError, match="found a larger archive"):
        image_digest(bomb)


def test_an_archive_of_very_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "_MOST_MEMBERS", 3)
    with pytest.raises(InputError, match="found a larger archive"):
        image_digest(written(tmp_path / "a.tar", image, lambda one: add(one, "one-more")))


@pytest.mark.parametrize("content", [b"", b"PK\3\4", b"\x1f\x8b\x08\0", b"x" * 10_000])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(InputError, match="found no whole tar archive"):
        image_digest(tmp_path / "a.tar")


def test_an_archive_that_is_cut_is_refused(tmp_path: Path) -> None:
    whole = written(tmp_path / "a.tar", image).read_bytes()
    for size in range(600, 2600, 300):
        (tmp_path / "cut.tar").write_bytes(whole[:size])
        with pytest.raises(InputError):
            image_digest(tmp_path / "cut.tar")


def test_the_engines_error_is_told_and_not_its_pointer_to_help() -> None:
    assert last_line("Error: unknown flag: --x\nSee 'podman run --help'\n") == "Error: unknown flag: --x"
    assert last_line("") == "it said nothing"
