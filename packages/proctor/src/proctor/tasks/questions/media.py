"""The media of a question by their paths: videos, images, recordings, folders of frames, and pictures in the table itself."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from proctor import core
from proctor.media import (
    AUDIO_EXTENSIONS,
    IMAGE_EXTENSIONS,
    VIDEO_EXTENSIONS,
    cache_folder,
    dicom_facts,
    find,
    in_order,
    is_there,
    labels_of,
    nifti_facts,
    parse_scan,
    scan_kind,
    shown_location,
)
from proctor.tasks.questions.cells import path_of, seconds_of, texts_of, undirected
from proctor.tasks.questions.folder import MEDIA, Settings

_FILE = "a video, an image, a DICOM or NIfTI file, or a folder of images or of a DICOM series"
_HEADS = ((b"\x89PNG", ".png"), (b"\xff\xd8\xff", ".jpg"), (b"GIF8", ".gif"), (b"RIFF", ".webp"), (b"BM", ".bmp"))
_USUAL = (*VIDEO_EXTENSIONS, *IMAGE_EXTENSIONS, *AUDIO_EXTENSIONS)
_MOST_FRAMES = 2_000
_MOST_FOLDERS = 20
_HOW = re.compile(r"#(?=(?:window|frame|axial|coronal|sagittal|volume)=)")
Window = tuple[float, float]
_T = TypeVar("_T")


@dataclass(frozen=True)
class _ShownFile:
    """A file to show: how, for a medical one, and whether as a clip."""

    source: str
    scan: core.Scan | None
    clip: bool


class MediaFolder:
    """The folder of the media: `named`, else the folder of the questions or one in it (`media` first), whichever holds
    most of the paths. The settings' `window` is the default for medical files, and their `audio` says whether the sound
    of videos belongs to the questions. `frame_folders` maps frames to their folder of frames or series; `embedded` are
    images from the table itself, by the names under which `write_embedded` writes them."""

    def __init__(self, folder: Path, named: Path | None, paths: Iterable[str], settings: Settings) -> None:
        self.embedded: dict[str, bytes] = {}
        self.frame_folders: dict[str, str] = {}
        self._found: dict[str, Path | None] = {}
        self._kinds: dict[str, str] = {}
        self._window, self._audio = settings.window, settings.audio
        self.root = named or _best(_positions(folder), sorted({_file_of(path) for path in paths}))

    def sources(self, cells: Iterable[Any]) -> list[str]:
        """The names of one question's media. Raises `ParseError` for a path outside the folder."""
        found: list[str] = []
        for cell in (one for given in cells for one in (given if isinstance(given, list) else [given])):
            content = _picture(cell)
            if content is None:
                paths = cell.get("path") if isinstance(cell, dict) else cell
                found += [path_of(text) for text in texts_of(undirected(paths))]
            else:
                name = f"{hashlib.sha256(content).hexdigest()}{_extension(content)}"
                self.embedded[name] = content
                found.append(name)
        return found

    def media(
        self, sources: Sequence[str], span: Times, window: Window | None = None, *, audio: bool | None = None
    ) -> tuple[core.Media, ...]:
        """The media of one question, recordings last; `window` is the default for its medical files, `audio` says
        whether the sound of its video belongs to it. Raises `ParseError` for a missing file, times without a video or
        recording, a window without a medical file, and sound without a video."""
        played = [self._recording(source) for source in sources if is_recording(_file_of(source))]
        files = [
            shown_file
            for source in sources
            if not is_recording(_file_of(source))
            for shown_file in self._shown(source, window)
        ]
        videos = sum(file.clip for file in files)
        heard = recordings(played, span, videos=videos)
        if audio and not any(_is_video(file.source) for file in files):
            raise core.ParseError(expected="a video, whose sound belongs to the question", found="yes")
        sounding = self._audio if audio is None else audio
        shown = self._pictured(files, (None, None) if heard and not videos else span, window, audio=sounding)
        return (*shown, *heard)

    def _pictured(
        self, files: Sequence[_ShownFile], span: Times, window: Window | None, *, audio: bool
    ) -> tuple[core.Media, ...]:
        clips = [file for file in files if file.clip]
        if window is not None and files and all(file.scan is None for file in files):
            raise core.ParseError(
                expected="a window with DICOM or NIfTI files alone", found=f"{window[0]:g}/{window[1]:g}"
            )
        start, end = span
        timed = start is not None or end is not None
        if timed and (len(clips) != 1 or len(files) > 1):
            raise core.ParseError(
                expected="start and end with one video alone", found=core.count_of(len(files), "file")
            )
        labels = [""] if len(files) == 1 else labels_of(len(files) - len(clips))
        made: list[core.Media] = []
        for file in files:
            if file.clip:
                sound = audio and _is_video(file.source)
                made.append(
                    core.VideoClip(source=file.source, start=start or 0.0, end=end, scan=file.scan, audio=sound)
                )
            else:
                made.append(core.Image(source=file.source, label=labels.pop(0), scan=file.scan))
        return tuple(made)

    def holds_scans(self, sources: Iterable[str]) -> bool:
        """Whether any path is a DICOM or NIfTI file, or a folder with one."""
        for path in {_file_of(source).strip() for source in sources}:
            folder = self.root / path
            inside = [one.name for one in folder.iterdir()] if _is_there(self.root, path) and folder.is_dir() else []
            for name in [f"{path}/{one}" for one in inside] or [path]:
                try:
                    if self._kind(name):
                        return True
                except core.ParseError:
                    continue
        return False

    def _recording(self, source: str) -> tuple[str, Times | None]:
        file, times = split_times(source)
        return self._files(file)[0], times

    def _shown(self, source: str, window: Window | None) -> list[_ShownFile]:
        path, *how = _HOW.split(source)
        scan = parse_scan(how[0]) if how else core.Scan()
        if scan.window is None:
            scan = scan.model_copy(update={"window": window or self._window})
        found: list[_ShownFile] = []
        for file in self._files(path):
            kind = self._kind(file)
            if not kind:
                if how:
                    raise core.ParseError(expected="a DICOM or NIfTI file for it", found=source)
                found.append(_ShownFile(file, None, _is_video(file)))
                continue
            try:
                shown = self._slices(file, scan) if kind == "nifti" else self._frames_of(file, scan)
            except core.InputError as error:
                raise _as_fault(error, file) from error
            found += shown
        return found

    def _frames_of(self, file: str, scan: core.Scan) -> list[_ShownFile]:
        """A DICOM file: one image, a clip if its frames have times, else all its frames."""
        facts = dicom_facts(self._find(file) or self.root / file)
        if scan.axis is not None:
            raise core.ParseError(expected="a window or a frame of a DICOM file", found=file)
        if scan.frame is not None and scan.frame > facts.frames:
            raise core.ParseError(expected=f"1 to {facts.frames}", found=f"frame {scan.frame} ({file})")
        if scan.frame is not None or facts.frames == 1:
            return [_ShownFile(file, scan, clip=False)]
        if facts.ends is not None:
            return [_ShownFile(file, scan if scan.window else None, clip=True)]
        if facts.frames > _MOST_FRAMES:
            raise core.ParseError(expected=f"at most {_MOST_FRAMES:,} frames, or one (#frame=1)", found=file)
        frames = (scan.model_copy(update={"frame": number}) for number in range(1, facts.frames + 1))
        return [_ShownFile(file, frame, clip=False) for frame in frames]

    def _slices(self, file: str, scan: core.Scan) -> list[_ShownFile]:
        counts = nifti_facts(self._find(file) or self.root / file).slices
        if scan.axis is not None and scan.slice is not None and scan.slice >= counts[scan.axis]:
            raise core.ParseError(
                expected=f"0 to {counts[scan.axis] - 1}", found=f"{scan.axis} slice {scan.slice} ({file})"
            )
        if scan.axis is None:
            ranges = ", ".join(f"#{axis}=0 to {axis}={count - 1}" for axis, count in sorted(counts.items()))
            raise core.ParseError(expected=f"a slice: {ranges}", found=file)
        return [_ShownFile(file, scan, clip=False)]

    def _kind(self, file: str) -> str:
        usual = PurePosixPath(file).suffix.lower() in _USUAL
        if file in self.embedded or usual:
            return ""
        if file not in self._kinds:
            found = self._find(file)
            self._kinds[file] = "" if found is None else scan_kind(found) or ""
        return self._kinds[file]

    def missing(self, media: Iterable[core.Media]) -> list[str]:
        """The names of missing files."""
        names = dict.fromkeys(medium.source for medium in media)
        return [name for name in names if name not in self.embedded and not self._is_there(name)]

    def write_embedded(self) -> Path:
        """Writes the images of the table into the cache, named by hash; returns the media's folder."""
        if not self.embedded:
            return self.root
        folder = cache_folder() / "embedded"
        for name, content in self.embedded.items():
            if not (folder / name).exists():
                with core.replacing(folder / name) as draft:
                    draft.write_bytes(content)
        return folder

    def _files(self, source: str) -> list[str]:
        """The file at a path, or the images of a folder in natural order."""
        if source in self.embedded or PurePosixPath(source).suffix.lower() in _USUAL:
            self._is_there(source)  # raises for a link that leads out
            return [source]
        folder = self.root / source
        if folder.is_dir():
            return self._frames(folder, source)
        found = self._find(source)
        if found is None:
            raise core.ParseError(expected=f"{_FILE} below {shown_location(self.root)}", found=source)
        if found.suffix.lower() not in _USUAL and scan_kind(found) is None:
            raise core.ParseError(expected=_FILE, found=source)
        return [source + found.name.removeprefix(PurePosixPath(source).name)]

    def _frames(self, folder: Path, source: str) -> list[str]:
        if not folder.resolve().is_relative_to(self.root.resolve()):
            raise core.ParseError(
                expected=f"{_FILE} below {shown_location(self.root)}", found=f"{source}, a link that leads out of it"
            )
        names = sorted(
            (path.name for path in folder.iterdir() if path.suffix.lower() in IMAGE_EXTENSIONS), key=core.natural
        )
        if not names and (series := self._series(folder, source)):
            return series
        if not 0 < len(names) <= _MOST_FRAMES:
            raise core.ParseError(
                expected=f"a folder with 1 to {_MOST_FRAMES:,} images", found=f"{source} with {len(names):,}"
            )
        frames = [f"{source}/{name}" for name in names]
        for frame in frames:
            self._find(frame)
            self.frame_folders[frame] = source
        return frames

    def _series(self, folder: Path, source: str) -> list[str]:
        """The DICOM files of a folder, in order of their positions."""
        names = [path.name for path in folder.iterdir() if path.name != "DICOMDIR" and not path.name.startswith(".")]
        if len(names) > _MOST_FRAMES:
            raise core.ParseError(
                expected=f"a folder with at most {_MOST_FRAMES:,} files", found=f"{source}: {len(names):,}"
            )
        files = [f"{source}/{name}" for name in sorted(names, key=core.natural)]
        found = [(file, self.root / file) for file in files if self._kind(file) == "dicom"]
        self.frame_folders |= {file: source for file, _ in found}
        try:
            return in_order(found) if found else []
        except core.InputError as error:
            raise _as_fault(error, source) from error

    def _is_there(self, source: str) -> bool:
        """Whether a file exists, without fetching it from object storage."""
        return self._looked(source, lambda: is_there(self.root, source))

    def _find(self, source: str) -> Path | None:
        if source not in self._found:
            self._found[source] = self._looked(source, lambda: find(self.root, source))
        return self._found[source]

    def _looked(self, source: str, look: Callable[[], _T]) -> _T:
        try:
            return look()
        except core.InputError as error:
            raise core.ParseError(
                expected=f"{_FILE} below {shown_location(self.root)}", found=f"{source}, {_reason(error)}"
            ) from error


def _file_of(source: str) -> str:
    """The path without times or settings after it."""
    file = source.partition("#t=")[0]
    return file if is_recording(file) else _HOW.split(source)[0]


def _positions(folder: Path) -> list[Path]:
    """The folder, `media` in it, and the first of its other folders that are no links."""
    try:
        inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError:
        inside = []
    return [folder, folder / MEDIA, *(path for path in inside[:_MOST_FOLDERS] if path.name != MEDIA)]


def _best(folders: Sequence[Path], paths: Sequence[str]) -> Path:
    """The folder with most of the paths; the first of equals."""
    there = [folder for folder in folders if folder.is_dir()]
    if not there:
        return folders[0]
    return max(there, key=lambda folder: sum(_is_there(folder, path) for path in paths))


def _is_there(folder: Path, path: str) -> bool:
    try:
        return (folder / path).is_dir() or find(folder, path) is not None
    except (core.InputError, OSError):
        return False


def _picture(cell: Any) -> bytes | None:
    """The content of an image in a cell, as in Hugging Face's tables; None for a path."""
    content = cell.get("bytes") if isinstance(cell, dict) else cell
    return content if isinstance(content, bytes) and content else None


def _extension(content: bytes) -> str:
    found = audio_extension(content) or next((ending for head, ending in _HEADS if content.startswith(head)), "")
    if not found:
        raise core.ParseError(
            expected="a PNG, JPEG, GIF, WebP or BMP image", found=f"{len(content):,} bytes of something else"
        )
    return found


def _is_video(source: str) -> bool:
    return PurePosixPath(source).suffix.lower() in VIDEO_EXTENSIONS


def _as_fault(error: core.InputError, source: str) -> core.ParseError:
    """An error in a medical file, or a folder of them, as a fault of the cell that names it."""
    reason, _, expected = _reason(error).partition(", expected ")
    return core.ParseError(expected=expected or "a file that can be read", found=f"{reason} ({source})")


def _reason(error: core.InputError) -> str:
    return str(error).rpartition("found ")[2]


_ENDINGS = "|".join(ending.removeprefix(".") for ending in AUDIO_EXTENSIONS)
_TIMED = re.compile(rf"(?P<file>.+\.(?:{_ENDINGS}))#t=(?P<times>.*)", re.IGNORECASE)
_EXPECTED = "times after a recording's name, as in talk.wav#t=0:10,0:25"
Times = tuple[float | None, float | None]


def split_times(source: str) -> tuple[str, Times | None]:
    """The file of a recording, and the times after its name (W3C media fragments) or None. Raises `ParseError` for
    invalid times.

    >>> split_times("talk.wav#t=0:10,12.5"), split_times("talk.wav"), split_times("ct.dcm#frame=3")
    (('talk.wav', (10.0, 12.5)), ('talk.wav', None), ('ct.dcm#frame=3', None))
    """
    hit = _TIMED.fullmatch(source)
    if hit is None:
        return source, None
    start, _, end = hit["times"].partition(",")
    try:
        times = (
            seconds_of(start.strip() or None, decimal_comma=False),
            seconds_of(end.strip() or None, decimal_comma=False),
        )
    except core.ParseError as error:
        raise core.ParseError(expected=_EXPECTED, found=source) from error
    if times == (None, None) or (times[1] is not None and times[1] <= (times[0] or 0.0)):
        raise core.ParseError(expected=f"{_EXPECTED}, the end after the start", found=source)
    return hit["file"], times


def is_recording(source: str) -> bool:
    """Whether a path names an audio file."""
    return PurePosixPath(source).suffix.lower() in AUDIO_EXTENSIONS


def audio_extension(content: bytes) -> str:
    """The suffix of an audio file by its first bytes; empty for other content.

    >>> audio_extension(b"RIFF....WAVEfmt "), audio_extension(b"RIFF....WEBP")
    ('.wav', '')
    """
    if content[:4] == b"RIFF":
        return ".wav" if content[8:12] == b"WAVE" else ""
    heads = ((b"fLaC", ".flac"), (b"OggS", ".ogg"), (b"ID3", ".mp3"), (b"\xff\xfb", ".mp3"), (b"\xff\xf3", ".mp3"))
    return next((ending for head, ending in heads if content.startswith(head)), "")


def names_recordings(cell: Any) -> bool:
    """Whether a cell holds only names of audio files, or audio files themselves."""
    for one in cell if isinstance(cell, list) else [cell]:
        content = one.get("bytes") if isinstance(one, dict) else one
        if isinstance(content, bytes) and content:
            if not audio_extension(content):
                return False
            continue
        names = texts_of(undirected(one.get("path") if isinstance(one, dict) else one))
        if not names or not all(_TIMED.fullmatch(name) or is_recording(name) for name in names):
            return False
    return True


def sound_of_video(cell: Any) -> bool | None:
    """Whether the video's sound belongs to a question, by a cell with yes or no; None for an empty cell or recordings.
    Raises `ParseError` for other content."""
    if core.is_empty(cell) or names_recordings(cell):
        return None
    if isinstance(cell, bool):
        return cell
    from proctor.core.formats import BinaryFormat

    try:
        return bool(BinaryFormat().from_cell(core.cell_text(undirected(cell))))
    except core.ParseError as error:
        expected = (
            f"an audio file ({', '.join(AUDIO_EXTENSIONS)}), or yes or no: whether the video's sound belongs to it"
        )
        raise core.ParseError(expected=expected, found=error.found) from error


def recordings(files: Sequence[tuple[str, Times | None]], span: Times, *, videos: int) -> list[core.AudioClip]:
    """The recordings of a row; `span` are the row's start and end. Raises `ParseError` if they are ambiguous: next to
    a video they are the video's, and with several recordings they belong to none."""
    timed = span != (None, None)
    if timed and any(times is None for _, times in files) and (videos or len(files) > 1):
        expected = "the times of each recording after its name (talk.wav#t=0:10,0:25)"
        raise core.ParseError(
            expected=expected,
            found=f"start and end with {core.count_of(videos, 'video')} and {core.count_of(len(files), 'recording')}",
        )
    if timed and not videos and any(times is not None for _, times in files):
        raise core.ParseError(expected="start and end, or times after a recording's name", found="both")
    own = [times or (span if not videos else (None, None)) for _, times in files]
    return [
        core.AudioClip(source=source, start=start or 0.0, end=end)
        for (source, _), (start, end) in zip(files, own, strict=True)
    ]


def sound_line(items: Iterable[core.Item]) -> str:
    """A note on the number of questions with sound; empty for none."""
    sounding = [item for item in items if item.sounding]
    videos = sum(any(one.kind == "video" for one in item.sounding) for item in sounding)
    recorded = sum(any(one.kind == "audio" for one in item.sounding) for item in sounding)
    parts = [
        *([f"the video's belongs to {core.count_of(videos, 'question')}"] if videos else []),
        *([f"{core.count_of(recorded, 'question')} with a recording"] if recorded else []),
    ]
    return f"Sound: {', '.join(parts)}" if parts else ""
