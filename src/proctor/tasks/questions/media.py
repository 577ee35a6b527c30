"""The media of a question by their paths: videos, images, folders of frames, and pictures that lie in the table itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from proctor.core import Image, InputError, Media, ParseError, VideoClip, natural, replacing
from proctor.core.formats import option_letters
from proctor.media import IMAGE_EXTENSIONS, VIDEO_EXTENSIONS, cache_folder, find
from proctor.tasks.questions.cells import path_of, texts_of, undirected
from proctor.tasks.questions.layout import MEDIA

_FILE = "a video, an image, or a folder of images"
_HEADS = ((b"\x89PNG", ".png"), (b"\xff\xd8\xff", ".jpg"), (b"GIF8", ".gif"), (b"RIFF", ".webp"), (b"BM", ".bmp"))
_MOST_FRAMES = 2_000


class MediaFolder:
    """Where media are looked for: the folder that is named, else that of the questions or `media` in it, whichever holds
    more of the paths. `frame_folders` says of a frame in which folder of frames it was found. Pictures from the table itself (`embedded`) are kept in the cache until `write_embedded`."""

    def __init__(self, folder: Path, named: Path | None, paths: Iterable[str]) -> None:
        self.embedded: dict[str, bytes] = {}
        self.frame_folders: dict[str, str] = {}
        self._found: dict[str, Path | None] = {}
        self.root = named or _best((folder, folder / MEDIA), sorted(set(paths)))

    def sources(self, cells: Iterable[Any]) -> list[str]:
        """The names of what one question shows. Raises `ParseError` for a path that leads out of the folder."""
        found: list[str] = []
        for cell in (one for given in cells for one in (given if isinstance(given, list) else [given])):
            content = _picture(cell)
            if content is None:
                told = cell.get("path") if isinstance(cell, dict) else cell
                found += [path_of(text) for text in texts_of(undirected(told))]
            else:
                name = f"{hashlib.sha256(content).hexdigest()}{_extension(content)}"
                self.embedded[name] = content
                found.append(name)
        return found

    def media(self, sources: Sequence[str], span: tuple[float | None, float | None]) -> tuple[Media, ...]:
        """The media of one question. Raises `ParseError` where a path leads nowhere, or a time belongs to no video."""
        files = [file for source in sources for file in self._files(source)]
        clips = [file for file in files if _is_video(file)]
        start, end = span
        timed = start is not None or end is not None
        if timed and (len(clips) != 1 or len(files) > 1):
            raise ParseError(expected="start and end with one video alone", found=f"{len(files)} files")
        labels = [""] if len(files) == 1 else labels_of(len(files) - len(clips))
        made: list[Media] = []
        for file in files:
            if file in clips:
                made.append(VideoClip(source=file, start=start or 0.0, end=end))
            else:
                made.append(Image(source=file, label=labels.pop(0)))
        return tuple(made)

    def missing(self, media: Iterable[Media]) -> list[str]:
        """The names of files that are not there."""
        names = dict.fromkeys(one.source for one in media)
        return [name for name in names if name not in self.embedded and self._find(name) is None]

    def write_embedded(self) -> Path:
        """Writes the pictures of the table into the cache, each under its hash, and gives the folder."""
        if not self.embedded:
            return self.root
        folder = cache_folder() / "embedded"
        for name, content in self.embedded.items():
            if not (folder / name).exists():
                with replacing(folder / name) as draft:
                    draft.write_bytes(content)
        return folder

    def _files(self, source: str) -> list[str]:
        """The file that a path names; of a folder its images in natural order."""
        if source in self.embedded or PurePosixPath(source).suffix.lower() in (*VIDEO_EXTENSIONS, *IMAGE_EXTENSIONS):
            self._find(source)  # a link that leads out is refused
            return [source]
        folder = self.root / source
        if folder.is_dir():
            return self._frames(folder, source)
        found = self._find(source)
        if found is None:
            raise ParseError(expected=f"{_FILE} below {self.root}", found=source)
        if found.suffix.lower() not in (*VIDEO_EXTENSIONS, *IMAGE_EXTENSIONS):
            raise ParseError(expected=_FILE, found=source)
        return [source + found.name.removeprefix(PurePosixPath(source).name)]

    def _frames(self, folder: Path, source: str) -> list[str]:
        if not folder.resolve().is_relative_to(self.root.resolve()):
            raise ParseError(expected=f"{_FILE} below {self.root}", found=f"{source}, a link that leads out of it")
        names = sorted((one.name for one in folder.iterdir() if one.suffix.lower() in IMAGE_EXTENSIONS), key=natural)
        if not 0 < len(names) <= _MOST_FRAMES:
            raise ParseError(
                expected=f"a folder with 1 to {_MOST_FRAMES:,} images", found=f"{source} with {len(names):,}"
            )
        frames = [f"{source}/{name}" for name in names]
        for frame in frames:
            self._find(frame)
            self.frame_folders[frame] = source
        return frames

    def _find(self, source: str) -> Path | None:
        try:
            if source not in self._found:
                self._found[source] = find(self.root, source)
            return self._found[source]
        except InputError as error:
            raise ParseError(expected=f"{_FILE} below {self.root}", found=f"{source}, {_reason(error)}") from error


def labels_of(pictures: int) -> list[str]:
    """The labels of several pictures: letters, or numbers where there are more than 26.

    >>> labels_of(3)
    ['A', 'B', 'C']
    """
    return option_letters(pictures) if pictures <= 26 else [str(number) for number in range(1, pictures + 1)]


def _best(folders: Sequence[Path], paths: Sequence[str]) -> Path:
    """The folder in which most of the paths lead somewhere; the first one, where that is none or several."""
    there = [folder for folder in folders if folder.is_dir()]
    if not there:
        return folders[0]
    return max(there, key=lambda folder: sum(_is_there(folder, path) for path in paths))


def _is_there(folder: Path, path: str) -> bool:
    try:
        return (folder / path).is_dir() or find(folder, path) is not None
    except (InputError, OSError):
        return False


def _picture(cell: Any) -> bytes | None:
    """The content of a picture as Hugging Face keeps it in a table; None for a path."""
    content = cell.get("bytes") if isinstance(cell, dict) else cell
    return content if isinstance(content, bytes) and content else None


def _extension(content: bytes) -> str:
    found = next((extension for head, extension in _HEADS if content.startswith(head)), "")
    if not found:
        raise ParseError(
            expected="a PNG, JPEG, GIF, WebP or BMP image", found=f"{len(content):,} bytes of something else"
        )
    return found


def _is_video(source: str) -> bool:
    return PurePosixPath(source).suffix.lower() in VIDEO_EXTENSIONS


def _reason(error: InputError) -> str:
    return str(error).rpartition("found ")[2]
