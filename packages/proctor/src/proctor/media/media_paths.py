"""Media files: found by name, never outside the media folder, and identified by a hash of their content."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from proctor.core import (
    Image,
    InputError,
    Media,
    ParseError,
    VideoClip,
    content_hash,
    count_of,
    load_json,
    read_arrays,
    read_bytes,
    replacing,
    write_arrays,
)
from proctor.core.formats import option_letters
from proctor.media.objects import RemoteFolder, RemoteObject, remote_at, unwritable, url_of
from proctor.media.scans import cine_index, scan_kind

if TYPE_CHECKING:
    from proctor.media.shared_frames import SharedFrames
    from proctor.media.video import VideoInfo
    from proctor.media.video_clock import FrameIndex

T = TypeVar("T")

VIDEO_EXTENSIONS = (".mp4", ".mkv", ".webm", ".mov", ".avi", ".m4v", ".mpg", ".mpeg", ".ts", ".wmv", ".flv")
IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif")
SCAN_EXTENSIONS = (".dcm", ".dicom", ".ima", ".nii", ".nii.gz")
AUDIO_EXTENSIONS = (".wav", ".mp3", ".m4a", ".flac", ".ogg", ".opus")
EXTENSIONS = VIDEO_EXTENSIONS + IMAGE_EXTENSIONS + SCAN_EXTENSIONS + AUDIO_EXTENSIONS
"""The extensions that are tried, in this order, after a name that is no file itself."""
_USUAL = (".mp4", ".mkv", ".webm", ".mov", ".avi", ".jpg", ".jpeg", ".png", ".dcm")  # each try is a request


def labels_of(pictures: int) -> list[str]:
    """The labels of several pictures: letters, or numbers where there are more than 26.

    >>> labels_of(3)
    ['A', 'B', 'C']
    """
    return option_letters(pictures) if pictures <= 26 else [str(number) for number in range(1, pictures + 1)]


def plain_media(sources: Sequence[str], start: float | None = None, end: float | None = None) -> tuple[Media, ...]:
    """Media by their file names: a video's extension makes a clip, every other an image, with a letter if there are
    several. Raises `ParseError` for times without exactly one video.

    >>> [one.source for one in plain_media(["liver.mp4"], 12.5, 20.0)]
    ['liver.mp4']
    """
    videos = [PurePosixPath(source).suffix.lower() in VIDEO_EXTENSIONS for source in sources]
    if (start is not None or end is not None) and (not any(videos) or len(sources) != 1):
        raise ParseError(expected="start and end with one video alone", found=count_of(len(sources), "file"))
    labels = iter([""] if len(sources) == 1 else labels_of(videos.count(False)))
    return tuple(
        VideoClip(source=source, start=start or 0.0, end=end) if video else Image(source=source, label=next(labels))
        for source, video in zip(sources, videos, strict=True)
    )


def locate(root: Path | None, source: str) -> Path:
    """The file of this name below `root`, with or without its extension. Where `root` stands for a folder in object
    storage, the file is fetched into the media cache first (see `objects`).

    Raises `InputError` where there is no media folder, no such file, or the name leads out of it
    (`..`, an absolute path, a symbolic link).
    """
    if root is None:
        raise InputError(source, found="no media folder", expected="the folder that holds this file")
    found = find(root, source)
    if found is None:
        what = "a folder" if _or_none((root / source).is_dir) else "no such file"
        raise InputError(source, f"below {shown_location(root)}", found=what, expected="a video or image of this name")
    return found


def find(root: Path, source: str) -> Path | None:
    """As `locate`, but None where there is no such file."""
    pure, remote = _named(source), remote_at(root)
    if remote is not None:
        there = _object(remote, pure)
        return None if there is None else _fetched(remote, there)
    candidates = _or_none(lambda: _candidates(root, pure)) or ()
    found = _or_none(lambda: next((candidate for candidate in candidates if candidate.is_file()), None))
    if found is not None and not found.resolve().is_relative_to(root.resolve()):
        raise InputError(source, found="a link that leads out of the media folder")
    return found


def is_there(root: Path, source: str) -> bool:
    """Whether `find` would find it; nothing is fetched."""
    remote = remote_at(root)
    return find(root, source) is not None if remote is None else _object(remote, _named(source)) is not None


def shown_location(root: Path) -> str:
    """A media folder for display: its path, or the URL that it stands for."""
    remote = remote_at(root)
    return str(root) if remote is None else remote.url


def _named(source: str) -> PurePosixPath:
    pure = PurePosixPath(source)
    if not source or pure.is_absolute() or ".." in pure.parts or "\0" in source or "\\" in source:
        raise InputError(repr(source), found="a name that leads out of the media folder")
    return pure


def remote_object(root: Path, source: str) -> tuple[RemoteFolder, RemoteObject] | None:
    """The object of this name and the folder in object storage that `root` stands for; None where `root` stands for
    none, or there is no such object."""
    remote = remote_at(root)
    there = None if remote is None else _object(remote, _named(source))
    return None if remote is None or there is None else (remote, there)


def _object(remote: RemoteFolder, name: PurePosixPath) -> RemoteObject | None:
    usual = () if name.suffix.lower() in EXTENSIONS else _USUAL
    return remote.look([str(name), *(f"{name}{extension}" for extension in usual)])


def _fetched(remote: RemoteFolder, there: RemoteObject) -> Path:
    """The object's copy; its hash is noted on arrival, so that the copy is not read again for it."""
    try:
        copy, sha256 = remote.fetch(there)
    except OSError as error:
        raise unwritable(remote.cache, error) from error
    if sha256:
        _note(remote.cache, copy, sha256)
    return copy


def _or_none(look: Callable[[], T]) -> T | None:
    """The result of `look`; None for a name that is too long for a file."""
    try:
        return look()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return None


def _candidates(root: Path, name: PurePosixPath) -> list[Path]:
    exact = root / name
    if not name.name or not exact.parent.is_dir():
        return [exact]
    beside = [exact.with_name(name.name + extension) for extension in EXTENSIONS]
    shouted = [exact.with_name(name.name + extension.upper()) for extension in EXTENSIONS]
    return [exact, *beside, *shouted]


_INDEX_VERSION = 4  # of how timestamps are read
_SHA256 = re.compile("[0-9a-f]{64}")


def cache_folder(location: str | Path | None = None) -> Path:
    """Where this machine keeps its media cache: the first of `location` and `PROCTOR_CACHE` that is no URL, else the user's
    cache folder."""
    told = next((one for one in (location, os.environ.get("PROCTOR_CACHE")) if one and url_of(one) is None), None)
    if told:
        return Path(told)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "proctor"


def shared_frames(location: str | Path | None) -> SharedFrames | None:
    """The frames in object storage where the folder (None: `PROCTOR_CACHE`) is a URL."""
    told = location or os.environ.get("PROCTOR_CACHE")
    url = url_of(told) if told else None
    if url is None:
        return None
    from proctor.media.shared_frames import shared_at

    return shared_at(url)


class Catalogue:
    """Identities and timestamps of media files, kept in the cache.

    A file's identity is the SHA-256 of its content, so that equal files share frames under any name, and a changed file
    is a new one. The hash is kept with the file's size and time of change, and computed again when these change.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._identities: dict[Path, str] = {}
        self._indexes: dict[str, FrameIndex] = {}

    def identity(self, path: Path) -> str:
        """The hash of the file's content, remembered for this process's life. Raises `InputError` where the
        file can't be read."""
        with self._lock:
            if path in self._identities:
                return self._identities[path]
        try:
            known = self._identity(path.resolve())
        except OSError as error:
            raise InputError(path, found=f"an unreadable file ({error.strerror or error})") from error
        with self._lock:
            return self._identities.setdefault(path, known)

    def _identity(self, path: Path) -> str:
        known = noted_identity(self._folder, path)
        if known is None:
            state = path.stat()
            with path.open("rb") as file:
                known = hashlib.file_digest(file, "sha256").hexdigest()
            _note(self._folder, path, known, state)
        return known

    def take(self, path: Path, sha256: str, index: tuple[str, bytes]) -> bool:
        """Adopts what another machine has stored of a video: the hash of its content, and its timestamps. Returns
        whether this version of Proctor can read them."""
        name, data = index
        if name != _index_name(sha256) or not _SHA256.fullmatch(sha256):
            return False
        note = self._folder / "indexes" / name
        if not note.exists():
            _keep(note, lambda out: out.write_bytes(data))
        if _load_index(note) is None:
            return False
        with self._lock:
            self._identities[path] = sha256
        return True

    def check(self, path: Path) -> None:
        """Raises `InputError` where a fetched file is not the one that was described."""
        if self.identity(path) != self._identity(path.resolve()):
            raise InputError(path, found="another content than its frames are of", expected="the same file")

    def kept_index(self, path: Path) -> tuple[str, bytes]:
        """Name and content of the file with a video's timestamps. Raises `InputError` as `index`."""
        self.index(path)
        name = _index_name(self.identity(path))
        return name, (self._folder / "indexes" / name).read_bytes()

    def index(self, path: Path) -> FrameIndex:
        """The timestamps of a video's pictures. Raises `InputError` where it can't be read."""
        from proctor.media.video_clock import read_index

        identity = self.identity(path)
        with self._lock:
            if identity in self._indexes:
                return self._indexes[identity]
        note = self._folder / "indexes" / _index_name(identity)
        index = _load_index(note)
        if index is None:
            index = made = read_index(path) if scan_kind(path) is None else cine_index(path)
            _keep(note, lambda out: _save_index(out, made))
        with self._lock:
            return self._indexes.setdefault(identity, index)


def _keep(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file atomically. Raises `ConfigurationError` where the cache can't be written to."""
    try:
        with replacing(path) as draft:
            write(draft)
    except OSError as error:
        raise unwritable(path.parent, error) from error


def noted_identity(cache: Path, path: Path) -> str | None:
    """The hash of a file's content as a cache has noted it; None where it hasn't, or the file has changed since."""
    try:
        state, known = path.stat(), load_json(read_bytes(_note_of(cache, path)))
        sha256 = known["sha256"]
        same = known["seen"] == [state.st_size, state.st_mtime_ns]
        return sha256 if same and _SHA256.fullmatch(sha256) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # nothing usable: the hash is computed again


def _note_of(cache: Path, path: Path) -> Path:
    return cache / "files" / f"{content_hash(str(path))}.json"


def _note(cache: Path, path: Path, sha256: str, state: os.stat_result | None = None) -> None:
    """Notes the hash of a file that was in this state (None: as it is now) when it was read."""
    seen = state or path.stat()
    text = json.dumps({"path": str(path), "seen": [seen.st_size, seen.st_mtime_ns], "sha256": sha256})
    _keep(_note_of(cache, path), lambda out: out.write_text(text))


def _index_name(sha256: str) -> str:
    return f"{sha256}-{_INDEX_VERSION}.npz"


def _save_index(out: Path, index: FrameIndex) -> None:
    facts = [index.time_base.numerator, index.time_base.denominator, index.zero, int(index.stamped)]
    write_arrays(out, {"pts": index.pts, "keys": index.keys, "facts": np.array(facts, dtype=np.int64)})


def _load_index(note: Path) -> FrameIndex | None:
    """The stored index; None where there is none, or an invalid one."""
    from proctor.media.video_clock import FrameIndex

    try:
        kept = read_arrays(note, "timestamps", "the timestamps of a video")
        top, bottom, zero, stamped = (int(fact) for fact in kept["facts"])
        index = FrameIndex(Fraction(top, bottom), zero, kept["pts"], kept["keys"], bool(stamped))
    except (InputError, ValueError, KeyError, ZeroDivisionError):
        return None
    whole = all(one.dtype == np.int64 and one.ndim == 1 and len(one) for one in (index.pts, index.keys))
    if not whole or index.time_base <= 0 or np.any(np.diff(index.pts) <= 0) or np.any(np.diff(index.keys) < 0):
        return None
    return index


class LocatedFiles:
    """The files of one library below `root` (None: no media).

    A file that is not there under its name is looked for under `also`, another name of it. With frames in object storage
    (`SharedFrames`), a video in object storage is fetched only when it is opened: what is
    needed before, another machine has stored there, and `infos` holds it by path. `hold` keeps a folder of the cache
    from being removed.
    """

    def __init__(
        self,
        root: Path | None,
        catalogue: Catalogue,
        shared: SharedFrames | None,
        hold: Callable[[Path], None],
        also: Mapping[str, str],
    ) -> None:
        self._root = root
        self._catalogue = catalogue
        self._shared = shared
        self._hold = hold
        self._also = also
        self._lock = threading.Lock()
        self._located: dict[str, Path] = {}
        self._unfetched: dict[str, Path | None] = {}
        self._kept: set[str] = set()
        self.infos: dict[Path, VideoInfo] = {}

    def locate(self, source: str) -> Path:
        """The file of this name, fetched if necessary. Raises `InputError` where there is none, the name leads out of
        the root, or the file is not the one that was described."""
        path = self._located.get(source) or self._located.setdefault(source, locate(self._root, self._named(source)))
        if self._root is not None and remote_at(self._root) is not None:
            self._hold(path.parent)
            if not path.is_file():  # removed to make room
                path = locate(self._root, self._named(source))
            if self._unfetched.get(source) is not None:
                self._catalogue.check(path)
        return path

    def is_there(self, source: str) -> bool:
        """Whether there is a file of this name; nothing is fetched."""
        return self._root is not None and is_there(self._root, self._named(source))

    def _named(self, source: str) -> str:
        """The name under which the file is there; the first where it is under none."""
        also, root = self._also.get(source), self._root
        return also if also and root is not None and not is_there(root, source) and is_there(root, also) else source

    def known(self, source: str) -> Path:
        """The path by which the catalogue and `infos` know a file, fetched or not. Raises `InputError` as `locate`."""
        if self._shared is None or self._root is None:
            return self.locate(source)
        if source not in self._unfetched:
            found = self._stand_in(self._shared, self._root, self._named(source))
            with self._lock:
                self._unfetched.setdefault(source, found)
        return self._unfetched[source] or self.locate(source)

    def keep(self, source: str, info: VideoInfo) -> None:
        """Stores the facts of a video in object storage for other machines, once."""
        if self._shared is None or self._root is None or not self._shared.writable or self._unfetched.get(source):
            return
        with self._lock:
            if source in self._kept:
                return
            self._kept.add(source)
        found = remote_object(self._root, self._named(source))
        if found is not None:
            from proctor.media.shared_frames import PreparedVideo

            path = self.locate(source)
            video = PreparedVideo(self._catalogue.identity(path), info, self._catalogue.kept_index(path))
            self._shared.prepare(found[0].address_of(found[1]), video)

    def _stand_in(self, shared: SharedFrames, root: Path, source: str) -> Path | None:
        """The path of a copy that need not be fetched; None where the file itself is needed."""
        found = remote_object(root, source)
        if found is None or found[0].copy_of(found[1]).is_file():
            return None
        path, video = found[0].copy_of(found[1]), shared.prepared(found[0].address_of(found[1]))
        if video is None or not self._catalogue.take(path, video.sha256, video.index):
            return None
        self.infos[path] = video.info
        return path
