"""Archives of images, as `docker save` and `podman save` write them: checked before an engine sees them."""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from proctor.core import InputError, parse_json

MOST_BYTES = 64 * 2**30
"""Of an image, unpacked from its archive."""

_MOST_MEMBERS = 10_000
_MOST_JSON = 4 * 2**20
_BLOB = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class ImageArchive:
    """The digest of an archive's one image, and the names that the archive gives it."""

    digest: str
    names: tuple[str, ...] = ()


def image_digest(archive: Path) -> ImageArchive:
    """The one image of an archive (docker's or OCI's, also gzipped): its digest is that of its configuration, computed
    here. Raises `InputError` for what is no archive of one image, for names that lead out of it, for anything but
    files, folders and links, and where it unpacks to more than 64 GB."""
    try:
        with tarfile.open(archive, "r:*") as opened:
            members = _members(archive, opened)
            if "manifest.json" in members:
                return _of_docker(archive, opened, members)
            return _of_oci(archive, opened, members)
    except (tarfile.TarError, EOFError, OSError, UnicodeError, ValueError) as error:
        raise InputError(archive, found="no whole tar archive", expected="an image by podman save") from error


def _members(archive: Path, opened: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    found: dict[str, tarfile.TarInfo] = {}
    size = 0
    for member in opened:
        name = member.name.removeprefix("./")
        size += max(0, member.size)
        if len(found) >= _MOST_MEMBERS or size > MOST_BYTES:
            at_most = f"at most {_MOST_MEMBERS:,} files of {MOST_BYTES // 2**30} GB"
            raise InputError(archive, found="a larger archive", expected=at_most)
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            raise InputError(archive, repr(name[:80]), found="a device or a pipe", expected="files")
        if not _inside(name) or (member.issym() and not _inside(member.linkname, PurePosixPath(name).parent)):
            raise InputError(archive, repr(name[:80]), found="a name outside the archive", expected="one inside")
        if member.islnk() and not _inside(member.linkname):
            raise InputError(archive, repr(name[:80]), found="a link out of the archive", expected="one inside")
        if name in found and not member.isdir():
            raise InputError(archive, repr(name[:80]), found="the name twice", expected="each name once")
        found[name] = member
    return found


def _inside(name: str, folder: PurePosixPath | None = None) -> bool:
    depth = len(folder.parts) if folder else 0
    if name.startswith("/") or "\0" in name:
        return False
    for part in PurePosixPath(name).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True


def _of_docker(archive: Path, opened: tarfile.TarFile, members: Mapping[str, tarfile.TarInfo]) -> ImageArchive:
    listed = _json(archive, opened, members, "manifest.json")
    if not isinstance(listed, list) or len(listed) != 1 or not isinstance(listed[0], dict):
        count = len(listed) if isinstance(listed, list) else 0
        raise InputError(archive, "manifest.json", found=f"{count} images", expected="one image")
    names = listed[0].get("RepoTags") or []
    config = _bytes(archive, opened, members, str(listed[0].get("Config")))
    return ImageArchive(f"sha256:{hashlib.sha256(config).hexdigest()}", tuple(map(str, names)))


def _of_oci(archive: Path, opened: tarfile.TarFile, members: Mapping[str, tarfile.TarInfo]) -> ImageArchive:
    index = _json(archive, opened, members, "index.json")
    manifests = index.get("manifests") if isinstance(index, dict) else None
    if not isinstance(manifests, list) or len(manifests) != 1:
        count = len(manifests) if isinstance(manifests, list) else 0
        raise InputError(archive, "index.json", found=f"{count} images", expected="one image")
    manifest = _json(archive, opened, members, _blob(archive, manifests[0]))
    config = _bytes(archive, opened, members, _blob(archive, manifest.get("config")))
    return ImageArchive(f"sha256:{hashlib.sha256(config).hexdigest()}")


def _blob(archive: Path, told: Any) -> str:
    digest = told.get("digest") if isinstance(told, dict) else None
    match = _BLOB.fullmatch(digest) if isinstance(digest, str) else None
    if match is None:
        raise InputError(archive, found="no digest (SHA-256)", expected="an image by podman save")
    return f"blobs/sha256/{match[1]}"


def _json(archive: Path, opened: tarfile.TarFile, members: Mapping[str, tarfile.TarInfo], name: str) -> Any:
    return parse_json(archive, _bytes(archive, opened, members, name), name)


def _bytes(archive: Path, opened: tarfile.TarFile, members: Mapping[str, tarfile.TarInfo], name: str) -> bytes:
    member = members.get(name)
    if member is None or not member.isreg() or member.size > _MOST_JSON:
        raise InputError(archive, repr(name[:80]), found="no such file", expected="an image by podman save")
    source = opened.extractfile(member)
    return b"" if source is None else source.read(_MOST_JSON)
