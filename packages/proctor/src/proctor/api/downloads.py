"""Download the public data of a benchmark: `fetch`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import JsonValue

from proctor.core import InputError, ProctorError, count_of, reader_of, shell_word, whole_folder, write_whole

if TYPE_CHECKING:
    from proctor.core import Benchmark, BenchmarkReader, DataSource

_MAX_MB = 4096  # of what a person names

_UNPACKED = 20  # times the size of what is sent, at most

_RECORD, _VIDEOS = "SOURCE.json", "videos.txt"


@dataclass(frozen=True)
class Fetched:
    """A finished download: the folder `out`, its number of `files`, the SHA-256 of the archive (`sent`) and of the
    files in it (`content`, independent of the archive). `done` are sentences on what was done, `notes` what to know."""

    out: Path
    files: int
    sent: str
    content: str
    done: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """The folder, the number of files, their hashes and the notes."""
        told: dict[str, JsonValue] = {"out": str(self.out), "files": self.files, "sha256": self.sent}
        return told | {"content_sha256": self.content, "notes": [*self.notes]}


def fetch(
    benchmark: str, out: str | Path | None = None, *, url: str = "", on_change: Callable[[int, int], None] | None = None
) -> Fetched:
    """Download a benchmark's public data into a new or empty folder `out` (by default one of its name), if the licence
    allows it. Nothing else in Proctor downloads data. `url` is the address of a mirror, or a file that you downloaded.
    `on_change` is called with the megabytes received and the megabytes expected (0: not known).

    A download that broke off is continued by the next call. Raises `ProctorError` that says who owns the data and where
    to ask, if they can't be downloaded; `InputError` if the data are not the expected ones; and `InfrastructureError`
    without a connection. `out` is then left empty. The command is `proctor fetch`.
    """
    reader = reader_of(benchmark)
    source = reader.source()
    if not url and (source is None or source.download is None):
        raise _not_available(benchmark, source)
    folder, told = Path(out or benchmark), on_change
    with whole_folder(folder) as draft:
        location, sent, file, ours = _sent(source, url, told)
        try:
            _take(file, draft, source, location)
            found = _checked(draft, source, location, sent, named=bool(url))
            loaded, note = _loaded(reader, draft, named=bool(url))
            notes = [*found.notes, *note, *_videos(reader, source, loaded, draft)]
        finally:
            if ours:
                _forget(file)
    questions = f"{count_of(len(loaded.items), 'question')}, " if loaded is not None else ""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20
    done = [f"{count_of(found.files, 'file')}, {questions}{size:.1f} MB, in {folder}; from {location}"]
    done += [f"SHA-256 of what was sent: {sent}", f"SHA-256 of the files: {found.content}"]
    if source is not None:
        done.append(f"Data of {source.owner}. Licence: {source.licence}.")
    notes.append(f"Next: proctor run {benchmark} --data {shell_word(folder)} --system random --condition text-only")
    return Fetched(folder, found.files, sent, found.content, tuple(done), tuple(notes))


def _not_available(benchmark: str, source: DataSource | None) -> ProctorError:
    if source is None:
        expected = "--url with an archive, or the files from its authors"
        return InputError(benchmark, found="no source of its data", expected=expected)
    page = f" Page: {source.page}" if source.page.startswith("http") else ""
    told = f"{benchmark}: its data are not fetched. They are those of {source.owner}; licence: {source.licence}."
    return ProctorError(f"{told} {source.ask}{page}")


def _sent(source: DataSource | None, url: str, told: Callable[[int, int], None] | None) -> tuple[str, str, Path, bool]:
    """The address, the SHA-256 and the path of the downloaded file, and whether to remove it afterwards."""
    from proctor.interchange import Downloader, file_hash
    from proctor.media import cache_folder

    known = source.download if source is not None else None
    if url and Path(url).is_file():
        return url, file_hash(Path(url)), Path(url), False
    location = url or (known.url if known is not None else "")
    most = known.most_mb if known is not None else _MAX_MB
    shown = None if told is None else lambda done, of: told(done >> 20, of >> 20)
    loader = Downloader(most * 2**20, known.hosts if known is not None else (), shown)
    file = loader.fetch(location, cache_folder() / "downloads")
    sent = file_hash(file)
    if known is not None and known.sha256 not in {"", sent}:
        _forget(file)
        raise InputError(
            location, found=f"a file with SHA-256 {sent}", expected=f"{known.sha256}: it is another one now"
        )
    return location, sent, file, True


def _forget(file: Path) -> None:
    for path in (file, file.with_suffix(".json")):
        path.unlink(missing_ok=True)


def _take(file: Path, draft: Path, source: DataSource | None, location: str) -> None:
    from proctor.interchange import is_archive, unpack

    known = source.download if source is not None else None
    folders, most = (known.folders, known.most_mb) if known is not None else ({}, _MAX_MB)
    if is_archive(file):
        unpack(file, draft, folders, most * _UNPACKED * 2**20)
    elif folders:
        raise InputError(location, found="no archive (tar or zip)", expected=f"one with {', '.join(folders)}")
    else:
        name = PurePosixPath(urlsplit(location).path).name
        shutil.copyfile(file, draft / (name if name.strip(".") else "data"))


@dataclass(frozen=True)
class _Taken:
    files: int
    content: str
    notes: tuple[str, ...]


def _checked(draft: Path, source: DataSource | None, location: str, sent: str, *, named: bool) -> _Taken:
    """Write a record of the source, and compare the files with the known hash. A difference raises `InputError`, or is
    a note if the user named the source."""
    from proctor.interchange import content_sha256

    files = sum(path.is_file() for path in draft.rglob("*"))
    content, known, notes = content_sha256(draft), source.download if source is not None else None, []
    if known is not None and known.content not in {"", content}:
        if not named:
            raise InputError(location, found=f"files with SHA-256 {content}", expected=f"{known.content}: others now")
        notes.append(f"These are not the files of {known.url}: SHA-256 {content}, there {known.content}.")
    record = {"url": location, "sha256": sent, "content_sha256": content}
    if source is not None:
        record |= {"owner": source.owner, "licence": source.licence, "page": source.page}
    write_whole(draft / _RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    return _Taken(files, content, tuple(notes))


def _loaded(reader: BenchmarkReader, draft: Path, *, named: bool) -> tuple[Benchmark | None, list[str]]:
    """The benchmark loaded from the files. If it can't be loaded, raises `InputError`, or returns a note if the user
    named the source."""
    try:
        return reader.load(draft), []
    except InputError as error:
        if not named:
            raise
        told = str(error).replace(f"{draft}/", "")
        return None, [f"These files are not read as {reader.name}: {told}"]


def _videos(reader: BenchmarkReader, source: DataSource | None, loaded: Benchmark | None, draft: Path) -> list[str]:
    """Write instructions for media that have to be fetched one by one from another platform."""
    said = [source.media] if source is not None and source.media else []
    named = [name for name, one in loaded.excerpts.items() if one.url] if loaded is not None else []
    if named:
        write_whole(draft / _VIDEOS, reader.media_help(draft, named) + "\n")
        said.append(f"{_VIDEOS} has a command for each of the {len(named)}.")
    return [" ".join(said)] if said else []
