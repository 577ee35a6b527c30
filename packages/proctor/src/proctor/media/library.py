"""The media library: files found by name, checked before a run, and served as JPEGs, clips and sounds."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import JsonValue

from proctor.core import AudioClip, InputError, Item, Media, Region, Scan, VideoClip, clock_text, content_hash, count_of
from proctor.media.clip_locations import Excerpts
from proctor.media.frame_archive import EncodedFrame, FrameSet, Key, key_of
from proctor.media.frame_store import FrameStore, Make
from proctor.media.media_paths import IMAGE_EXTENSIONS, Catalogue, LocatedFiles, cache_folder, shared_frames
from proctor.media.pictures import PLAIN, Finish, blackened, encode, read_image, still_facts
from proctor.media.sampling import MediaSettings
from proctor.media.scans import ScanKind, cine_info, dicom_facts, scan_kind, scan_picture
from proctor.media.shown import MAX_SOUND_S

if TYPE_CHECKING:
    from proctor.media.decode import Decoding, Finishes
    from proctor.media.video import VideoInfo
    from proctor.media.video_clock import FrameIndex

K = TypeVar("K")
T = TypeVar("T")
Paint = tuple[Callable[[bytes], bytes], str]

_THREADS = 32  # most of them wait: for a file to be read, or for another one that decodes the same video
_BATCH = 64
_SOUND_VERSION = 2  # of which sound a stretch has
_VIDEO_VERSION = 3  # of which picture of a video a timestamp has, and how it is displayed
_PLAYBACK_VERSION = 3  # of how videos are made playable
_HIDING_VERSION = 1  # of which pixels a hidden region has
_SCAN_VERSION = 1  # of how medical files are shown: pictures that were kept under another are made again
_TOLERANCE_S = 0.5  # a clip may end this much after its video, as times are often rounded


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture to be shown: of a video at a time of its own clock, or a still image (`at` is None).

    `shows` is the elapsed time that is painted on it, in seconds; None paints nothing. `scan` says how a medical file
    is shown. In `hides` it is black, before it is encoded.
    """

    source: str
    at: float | None
    region: Region | None = None
    shows: float | None = None
    scan: Scan | None = None
    hides: tuple[Region, ...] = ()

    @property
    def black(self) -> bool:
        """Whether nothing of it is seen."""
        return any(one.x == one.y == 0 and one.width == one.height == 1 for one in self.hides)


@dataclass(frozen=True, slots=True)
class MediaProblem:
    """What is wrong with a file, and which items need it."""

    source: str
    problem: str
    item_ids: tuple[str, ...]

    def __str__(self) -> str:
        others = f" and {len(self.item_ids) - 1} more" if len(self.item_ids) > 1 else ""
        return f"{self.problem} (needed by item {self.item_ids[0]!r}{others})"


class MediaLibrary:
    """Media files below `root` (None: no media), and the pictures made of them by `settings`.

    Pictures are kept in `cache_dir` (None: see `cache_folder`), at most `cache_bytes` (None: no limit). `excerpts` say
    which part of each file the items refer to; all times are on the items' clock.

    With a URL as `cache_dir`, pictures are kept in object storage as well (see `SharedFrames`), and a video in object
    storage is fetched only for pictures that are not there. An error of the storage is an `InputError`.
    """

    def __init__(
        self,
        root: Path | None,
        settings: MediaSettings | None = None,
        cache_dir: str | Path | None = None,
        *,
        cache_bytes: int | None = None,
        excerpts: Excerpts | None = None,
    ) -> None:
        self.root = root
        self.excerpts = excerpts or Excerpts({})
        self.settings = settings or MediaSettings()
        self._lock, self._making = threading.Lock(), threading.Lock()
        self._decoder: Decoding | None = None
        self._heard: dict[Path, float] = {}
        self._stills: dict[tuple[str, Region | None, Scan | None], FrameSet] = {}
        self._kinds: dict[Path, ScanKind | None] = {}
        self.cache_dir = cache_dir
        self._cache_bytes = cache_bytes
        folder, shared = cache_folder(cache_dir), shared_frames(cache_dir)
        self._catalogue = Catalogue(folder)
        self._store = FrameStore(folder, cache_bytes, shared=shared)
        also = {source: excerpt.also for source, excerpt in self.excerpts.known.items() if excerpt.also}
        self._files = LocatedFiles(root, self._catalogue, shared, self._store.hold, also)
        self._probed = self._files.infos

    def unscaled(self, *, painted: bool = True) -> MediaLibrary:
        """The same library without scaling; without `painted` also without overlay."""
        overlay = self.settings.overlay if painted else "none"
        whole = self.settings.model_copy(update={"max_side": None, "overlay": overlay})
        return MediaLibrary(self.root, whole, self.cache_dir, cache_bytes=self._cache_bytes, excerpts=self.excerpts)

    def locate(self, source: str) -> Path:
        """The file of this name below the root: as it stands, or with a usual extension appended.
        Raises `InputError` where there is none, or the name leads out of the root."""
        return self._files.locate(source)

    def identity(self, source: str) -> str:
        """The hash of the file's content. Raises `InputError` where it can't be read."""
        return self._catalogue.identity(self._files.known(source))

    def missing(self, items: Iterable[Item]) -> list[str]:
        """The names of the items' media files that are not found, sorted."""
        return sorted({one.source for item in items for one in item.media if not self._files.is_there(one.source)})

    @property
    def _decoding(self) -> Decoding:
        """The decoding of videos, one for the library, made for the first of them."""
        from proctor.media.decode import Decoding

        with self._making:
            if self._decoder is None:
                self._decoder = Decoding()
        return self._decoder

    def probe(self, source: str) -> VideoInfo:
        """The facts of a video. Raises `InputError` where it can't be read."""
        from proctor.media.video import probe

        path = self._files.known(source)
        return self._remembered(self._probed, path, lambda path: cine_info(path) if self._kind(path) else probe(path))

    def is_still(self, source: str) -> bool:
        """Whether a file is one image, or several without times. Raises `InputError` for a DICOM file that can't be
        read."""
        path = self._files.known(source)
        kind = self._kind(path)
        if kind == "dicom":
            return dicom_facts(path).ends is None
        return kind == "nifti" or path.suffix.lower() in IMAGE_EXTENSIONS

    def span(self, clip: VideoClip) -> tuple[float, float]:
        """Start and end of the clip in seconds, cut to the video. Raises `InputError` where it starts at or
        ends more than half a second after the video's end, and where the file is not what `excerpts` say."""
        info = self.probe(clip.source)
        located = self.excerpts.locate(clip.source, clip.region, info)
        duration = info.duration_s - located.offset
        _check_times(clip, duration, "video")
        start, known = max(clip.start, -located.offset), min(duration, located.seconds or duration)
        return start, known if clip.end is None else min(clip.end, duration)

    def sound_span(self, medium: VideoClip | AudioClip) -> tuple[float, float]:
        """Start and end of a medium's sound in seconds, cut to its file. Raises `InputError` as `span`."""
        from proctor.media.audio import audio_duration

        if isinstance(medium, VideoClip):
            return self.span(medium)
        duration = self._remembered(self._heard, self.locate(medium.source), audio_duration)
        _check_times(medium, duration, "recording")
        return medium.start, duration if medium.end is None else min(medium.end, duration)

    def sound(
        self, medium: VideoClip | AudioClip, span: tuple[float, float], *, silent: Sequence[tuple[float, float]] = ()
    ) -> bytes:
        """The sound of a medium from the one time to the other as a WAV (see `cut_sound`), made once for this cache, and
        `silent` in some stretches. Blocks. Raises `InputError` as `cut_sound`."""
        from proctor.media.audio import RATE, cut_sound, silenced

        path, offset = self._files.known(medium.source), 0.0
        if isinstance(medium, VideoClip):
            offset = self.excerpts.locate(medium.source, medium.region, self.probe(medium.source)).offset
        within = max(0.0, span[0] + offset), span[1] + offset

        def make() -> bytes:
            return cut_sound(self.locate(medium.source), within, whole=isinstance(medium, AudioClip))

        how: dict[str, JsonValue] = {"as": "wav", "rate": RATE, "span": list(within), "version": _SOUND_VERSION}
        wav = FrameSet(self._catalogue.identity(path), how, name=medium.source, suffix=".wav")
        return silenced(self._store.serve(wav, [0], _single(make))[0], span[0], silent)

    def problems(self, items: Iterable[Item]) -> list[MediaProblem]:
        """All problems that `check` would raise, sorted by file."""
        found: dict[tuple[str, str], list[str]] = {}
        seen: dict[Media, str | None] = {}
        for item in items:
            for medium in dict.fromkeys(item.media):
                if medium not in seen:
                    seen[medium] = self._problem(medium)
                problem = seen[medium]
                if problem is not None:
                    found.setdefault((medium.source, problem), []).append(item.id)
            if len(item.sounding) > 1 and not any(seen[medium] for medium in item.sounding):
                seconds = sum(end - start for start, end in map(self.sound_span, item.sounding))
                if seconds > MAX_SOUND_S:
                    source = item.sounding[0].source
                    error = f"found {seconds:.1f} s of sound in a question, expected at most {MAX_SOUND_S:g} s"
                    found.setdefault((source, f"{source}: {error}"), []).append(item.id)
        return [MediaProblem(source, text, tuple(ids)) for (source, text), ids in sorted(found.items())]

    def warnings(self, items: Iterable[Item]) -> list[str]:
        """What a person should review before files are shown: medical files that declare burned-in text or recognisable
        features, image files with several images, and `ContainerFacts.remarks`. Broken files are skipped."""
        needed = {medium.source: (medium, item.id) for item in reversed(list(items)) for medium in item.media}
        found: dict[tuple[str, str, str], list[str]] = {}
        for source in sorted(needed):
            with suppress(InputError):
                for told in self._remarks(needed[source][0]):
                    found.setdefault(told, []).append(source)
        return [
            f"{count_of(len(files), noun)} with {what} (first {files[0]}, of item {needed[files[0]][1]!r}){advice}"
            for (noun, what, advice), files in sorted(found.items())
        ]

    def _remarks(self, medium: Media) -> Iterator[tuple[str, str, str]]:
        """A noun for the file, what it has, and what to do about it."""
        path = self._files.known(medium.source)
        for name in dicom_facts(path).marked if self._kind(path) == "dicom" else ():
            what = f"{name} YES: the pixels may show who the patient is"
            yield "DICOM file", what, "; look at them before they are sent"
        if path.suffix.lower() in IMAGE_EXTENSIONS and still_facts(path).animated:
            yield "file", "several images, of which the first is shown", ""
        for remark in self.probe(medium.source).remarks if isinstance(medium, VideoClip) else ():
            yield "video", remark, ""

    def check(self, items: Iterable[Item]) -> None:
        """Opens every file that the items need. Raises `InputError` naming the file, the problem and an item:
        missing or unreadable, no video in it, truncated, a clip beyond the video's end."""
        problems = self.problems(items)
        if problems:
            more = f"; media with problems: {len(problems)}" if len(problems) > 1 else ""
            raise InputError(f"{problems[0]}{more}")

    def check_excerpts(self, items: Iterable[Item]) -> None:
        """Raises `InputError` for the first video whose length or picture size does not fit its excerpt. Missing and
        broken files are skipped."""
        clips = (medium for item in items for medium in item.media if isinstance(medium, VideoClip))
        for clip in {clip.source: clip for clip in clips}.values():
            if clip.source not in self.excerpts.known or self.root is None:
                continue
            try:
                info = self.probe(clip.source)
            except InputError:
                continue
            self.excerpts.locate(clip.source, clip.region, info)

    def jpegs(self, pictures: Sequence[Picture]) -> list[bytes]:
        """The encoded pictures, in the order given, each decoded and encoded once for this cache. Blocks: call it
        through `workers()`."""
        return self._jpegs([self._in_file(picture) for picture in pictures])

    def at_hand(self, pictures: Sequence[Picture]) -> list[bytes] | None:
        """The same if all are images that this process has in memory; else None. Never blocks."""
        found = []
        for picture in pictures:
            known = self._stills.get((picture.source, picture.region, picture.scan)) if picture.at is None else None
            jpeg = None if known is None else self._store.at_hand(known, 0)
            if jpeg is None:
                return None
            found.append(jpeg)
        return found

    def _jpegs(self, pictures: Sequence[Picture]) -> list[bytes]:
        """The pictures of each file at once; those of which a part is hidden are kept apart."""
        asked: dict[tuple[str, Region | None, Scan | None, bool, bool], list[int]] = {}
        for position, picture in enumerate(pictures):
            how = picture.source, picture.region, picture.scan, picture.at is None, _partly(picture)
            asked.setdefault(how, []).append(position)
        served: dict[int, bytes] = {}
        for (source, region, scan, still, _), positions in asked.items():
            own = [pictures[position] for position in positions]
            if still:
                shots = [self._still(source, region, scan, _hidden_part(one)) for one in own]
            else:
                shots = self._shots(source, region, own)
            served.update(zip(positions, shots, strict=True))
        return [
            blackened(served[position]) if one.hides and one.black else served[position]
            for position, one in enumerate(pictures)
        ]

    def mp4(self, clip: VideoClip) -> bytes:
        """The clip as a video file, made once for this cache; scaled to the settings' longest side. Blocks."""
        from proctor.media.mp4 import cut

        path, (start, end) = self._files.known(clip.source), self.span(clip)
        if self._kind(path) is not None or clip.scan is not None:
            return self._cine_mp4(path, clip, (start, end))
        located = self.excerpts.locate(clip.source, clip.region, self.probe(clip.source))
        span = start + located.offset, end + located.offset
        region = None if located.cropped else clip.region

        def make() -> bytes:
            index = self._catalogue.index(path)
            return cut(self.locate(clip.source), index, span, region, self.settings.max_side)

        return self._made_file(clip.source, {"span": list(span), "of": _region(region)}, make)

    def _cine_mp4(self, path: Path, clip: VideoClip, span: tuple[float, float]) -> bytes:
        """A clip of a DICOM file: its own frames at their own times."""
        index = self._catalogue.index(path)
        first, end = index.at([span[0]])[0], index.end_tick(span[1])
        stamps = [int(pts) for pts in index.pts if first <= pts < max(end, first + 1)]
        times = [index.seconds(pts) for pts in stamps]
        pictures = [Picture(clip.source, time, clip.region, scan=clip.scan) for time in times]
        return self.mp4_of(pictures, [time - times[0] for time in times], (lambda jpeg: jpeg, "as they are"))

    def index(self, source: str) -> FrameIndex:
        """The timestamps of a video's pictures. Blocks, the first time. Raises `InputError` where it can't be read."""
        return self._catalogue.index(self._files.known(source))

    def playback(self, source: str, region: Region | None = None) -> Path:
        """The whole video as a browser plays it (see `write_playback`), made once for this cache. Blocks, the first
        time: for as long as reading the file takes, or encoding it. Raises `InputError` for a medical file."""
        from proctor.media.mp4 import write_playback

        path = self.locate(source)
        if self._kind(path) is not None:
            raise InputError(source, found="a medical file", expected="a video")
        how: dict[str, JsonValue] = {"as": "playback", "version": _PLAYBACK_VERSION}
        made = FrameSet(self.identity(source), how | ({"region": _region(region)} if region else {}), source, ".mp4")
        return self._store.file(made, lambda draft: write_playback(path, self._catalogue.index(path), draft, region))

    def playback_lead(self, source: str, region: Region | None = None) -> float:
        """The second of `playback` at which the video's first picture is: 0 except for some videos with an edit list."""
        from proctor.media.mp4 import playback_lead

        index = self.index(source)
        return playback_lead(index, self._catalogue.index(self.playback(source, region))) if index.edited else 0.0

    def mp4_of(self, pictures: Sequence[Picture], times: Sequence[float], paint: Paint) -> bytes:
        """A video file of pictures at times in seconds from 0 on, each changed by `paint`, whose name is part of the
        cache key. Blocks."""
        from proctor.media.mp4 import from_jpegs

        change, name = paint
        pictures = [self._in_file(picture) for picture in pictures]
        shown: list[JsonValue] = [
            [self.identity(one.source), one.at, _region(one.region), one.shows, time, *_scan(one.scan), *_hides(one)]
            for one, time in zip(pictures, times, strict=True)
        ]

        how: dict[str, JsonValue] = {"pictures": content_hash(shown), "paint": name}
        return self._made_file(pictures[0].source, how, lambda: from_jpegs(self._changed(pictures, times, change)))

    def _in_file(self, picture: Picture) -> Picture:
        """The picture by the file's own clock, and without the region where the file shows nothing else."""
        if picture.at is None or picture.source not in self.excerpts.known:
            return picture
        located = self.excerpts.locate(picture.source, picture.region, self.probe(picture.source))
        return replace(
            picture, at=max(0.0, picture.at + located.offset), region=None if located.cropped else picture.region
        )

    @staticmethod
    def workers() -> ThreadPoolExecutor:
        """The threads that decode, so that no event loop blocks."""
        return _workers(os.getpid())

    def _problem(self, medium: Media) -> str | None:
        try:
            if isinstance(medium, AudioClip) or (isinstance(medium, VideoClip) and medium.audio):
                self.sound(medium, self.sound_span(medium))
            elif isinstance(medium, VideoClip):
                self.span(medium)
                if medium.scan is not None or self._kind(self._files.known(medium.source)) is not None:
                    self.jpegs([Picture(medium.source, medium.start, medium.region, scan=medium.scan)])
            else:
                self._still(medium.source, medium.region, medium.scan)
        except InputError as error:
            return str(error)
        return None

    def _still(self, source: str, region: Region | None, scan: Scan | None, hides: tuple[Region, ...] = ()) -> bytes:
        def make() -> bytes:
            image = read_image(self.locate(source), scan)
            return encode(image, region, self.settings, finish=Finish(hides=hides))

        if hides:
            hiding = self._frame_set(source, self._files.known(source), region, scan=scan, hides=True)
            key = key_of(0, _name_of(hides))
            return self._store.serve(hiding, [key], _single(make, key), share=False)[key]
        frame_set = self._remembered(
            self._stills,
            (source, region, scan),
            lambda _: self._frame_set(source, self._files.known(source), region, scan=scan),
        )
        # An image is fetched for its hash; its encoding costs less than two more requests.
        return self._store.serve(frame_set, [0], _single(make), share=False)[0]

    def _kind(self, path: Path) -> ScanKind | None:
        return self._remembered(self._kinds, path, scan_kind)

    def _shots(self, source: str, region: Region | None, pictures: Sequence[Picture]) -> list[bytes]:
        path = self._files.known(source)
        index = self._catalogue.index(path)
        times = [picture.at or 0.0 for picture in pictures]
        stamps = index.at(times)
        finishes = [_finish(picture) for picture in pictures]
        keys = [_key(pts, finish) for pts, finish in zip(stamps, finishes, strict=True)]
        kind, scan, hidden = self._kind(path), pictures[0].scan, any(finish.hides for finish in finishes)

        def wanted(missing: Iterable[Key]) -> dict[Key, tuple[int, Finish]]:
            known = {key: (pts, finish) for key, pts, finish in zip(keys, stamps, finishes, strict=True)}
            return {key: known[key] for key in missing}

        def cine(missing: Sequence[Key], _kept: Container[Key]) -> Iterator[EncodedFrame]:
            for pts, own in sorted(_by_timestamp(wanted(missing)).items()):
                frame = (scan or Scan()).model_copy(update={"frame": int(index.pts.searchsorted(pts)) + 1})
                for key, finish in own.items():
                    jpeg = encode(scan_picture(path, "dicom", frame), region, self.settings, finish=finish)
                    yield EncodedFrame(key, index.seconds(pts), jpeg)

        def make(missing: Sequence[Key], kept: Container[Key]) -> Iterator[EncodedFrame]:
            asked = wanted(missing)
            if not hidden and any(key in kept for key in keys):  # a growing window: the next one continues from here
                further = _further(index, pictures, 2 * self._decoding.cores)
                asked |= {key: one for key, one in further.items() if key not in kept}
            yield from self._decoding.pictures(self.locate(source), index, _by_timestamp(asked), region, self.settings)

        if scan is not None and kind is None:
            raise InputError(path, found="a window for a video", expected="a DICOM file for it")
        painted = any(picture.shows is not None for picture in pictures)
        frame_set = self._frame_set(source, path, region, painted=painted, scan=scan, video=kind is None, hides=hidden)
        served = self._store.serve(frame_set, list(dict.fromkeys(keys)), make if kind is None else cine)
        if kind is None:
            self._files.keep(source, self.probe(source))
        return [served[key] for key in keys]

    def _made_file(self, source: str, how: dict[str, JsonValue], make: Callable[[], bytes]) -> bytes:
        path = self._files.known(source)
        frame_set = self._frame_set(source, path, None, video=self._kind(path) is None)
        mp4 = FrameSet(frame_set.content, {**frame_set.how, **how, "as": "mp4"}, name=source, suffix=".mp4")
        return self._store.serve(mp4, [0], _single(make))[0]

    def _changed(
        self, pictures: Sequence[Picture], times: Sequence[float], change: Callable[[bytes], bytes]
    ) -> Iterator[tuple[float, bytes]]:
        """A few at a time, so that a long clip is never in memory."""
        for start in range(0, len(pictures), _BATCH):
            part = slice(start, start + _BATCH)
            for time, jpeg in zip(times[part], self._jpegs(pictures[part]), strict=True):
                yield time, change(jpeg)

    def _frame_set(
        self,
        source: str,
        path: Path,
        region: Region | None,
        *,
        painted: bool = False,
        scan: Scan | None = None,
        video: bool = False,
        hides: bool = False,
    ) -> FrameSet:
        how: dict[str, JsonValue] = {
            "region": _region(region),
            "max_side": self.settings.max_side,
            "quality": self.settings.quality,
        }
        if painted:
            how["overlay"] = "hh:mm:ss"
        if video:
            how["video"] = _VIDEO_VERSION
        if hides:
            how["hides"] = _HIDING_VERSION
        if self._kind(path) is not None or scan is not None:
            how["scan"] = [_SCAN_VERSION, *_scan(scan)]
        elif path.suffix.lower() in IMAGE_EXTENSIONS and still_facts(path).transparent:
            how["behind"] = "white"  # pictures that were kept without it had lost what is transparent
        return FrameSet(self._catalogue.identity(path), how, name=source)

    def _remembered(self, known: dict[K, T], key: K, read: Callable[[K], T]) -> T:
        with self._lock:
            if key in known:
                return known[key]
        value = read(key)
        with self._lock:
            return known.setdefault(key, value)


def _single(make: Callable[[], bytes], key: Key = 0) -> Make:
    """For one picture or file."""

    def made(_missing: Sequence[Key], _kept: Container[Key]) -> Iterator[EncodedFrame]:
        yield EncodedFrame(key, None, make())

    return made


def _check_times(clip: VideoClip | AudioClip, duration: float, what: str) -> None:
    for name, time in (("start", clip.start), ("end", clip.end)):
        if time is not None and (time > duration + _TOLERANCE_S or (name == "start" and time >= duration)):
            raise InputError(
                clip.source,
                f"the clip's {name}",
                found=f"{time:g} s",
                expected=f"a time within the {what}'s {duration:.2f} s",
            )


def _region(region: Region | None) -> JsonValue:
    return None if region is None else region.model_dump(mode="json")


def _scan(scan: Scan | None) -> list[JsonValue]:
    return [] if scan is None else [scan.model_dump(mode="json")]


def _hides(picture: Picture) -> list[JsonValue]:
    if not picture.hides:
        return []
    return [{"hides": [_region(region) for region in picture.hides], "version": _HIDING_VERSION}]


def _hidden_part(picture: Picture) -> tuple[Region, ...]:
    """What is hidden of a picture of which a part is seen."""
    return () if picture.black else picture.hides


def _partly(picture: Picture) -> bool:
    return bool(picture.hides) and not picture.black


def _finish(picture: Picture) -> Finish:
    if picture.shows is None and not picture.hides:  # of nearly all pictures
        return PLAIN
    return Finish("" if picture.shows is None else clock_text(picture.shows), _hidden_part(picture))


def _name_of(hides: Sequence[Region]) -> str:
    """A name of what is hidden, for keys; "" for nothing."""
    return content_hash([_region(one) for one in hides]) if hides else ""


def _key(pts: int, finish: Finish) -> Key:
    return pts if finish is PLAIN else key_of(pts, finish.text, _name_of(finish.hides))


def _further(index: FrameIndex, pictures: Sequence[Picture], groups: int) -> dict[Key, tuple[int, Finish]]:
    """What a window continuing these pictures would need next, enough for every core."""
    first = pictures[0]
    times = index.going_on([picture.at or 0.0 for picture in pictures], groups)
    further = [replace(first, at=time, shows=_later(first, time)) for time in times]
    found = [(pts, _finish(picture)) for pts, picture in zip(index.at(times), further, strict=True)]
    return {_key(*one): one for one in found}


def _later(first: Picture, time: float) -> float | None:
    return None if first.shows is None else first.shows + time - (first.at or 0.0)


def _by_timestamp(wanted: Mapping[Key, tuple[int, Finish]]) -> Finishes:
    found: dict[int, dict[Key, Finish]] = {}
    for key, (pts, finish) in wanted.items():
        found.setdefault(pts, {})[key] = finish
    return found


@lru_cache(maxsize=1)
def _workers(_process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="media")
