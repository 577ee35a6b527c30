"""The files of one library: where each lies, and what is known of it before it is opened.

With frames in object storage (`SharedFrames`), a video that lies in object storage itself is fetched only when it is
opened: what has to be known of it before, another machine has kept there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from proctor.media.files import Catalogue, locate, remote_object
from proctor.media.objects import remote_at
from proctor.media.shared_frames import PreparedVideo, SharedFrames
from proctor.media.video import VideoInfo


class LocatedFiles:
    """Files below `root` (None: none at hand); `hold` keeps a folder of the cache from being removed. `infos` is what is
    said of videos that were not opened, by path."""

    def __init__(
        self, root: Path | None, catalogue: Catalogue, shared: SharedFrames | None, hold: Callable[[Path], None]
    ) -> None:
        self._root = root
        self._catalogue = catalogue
        self._shared = shared
        self._hold = hold
        self._lock = threading.Lock()
        self._located: dict[str, Path] = {}
        self._unfetched: dict[str, Path | None] = {}
        self._kept: set[str] = set()
        self.infos: dict[Path, VideoInfo] = {}

    def locate(self, source: str) -> Path:
        """The file of this name, which is there now. Raises `InputError` where there is none, the name leads out of the
        root, or the file is another one than was said of it."""
        path = self._located.get(source) or self._located.setdefault(source, locate(self._root, source))
        if self._root is not None and remote_at(self._root) is not None:
            self._hold(path.parent)
            if not path.is_file():  # the cache was full, and others needed the place
                path = locate(self._root, source)
            if self._unfetched.get(source) is not None:
                self._catalogue.check(path)
        return path

    def known(self, source: str) -> Path:
        """Where the file lies or will lie, for what the catalogue and `infos` know of it. Raises `InputError` as
        `locate`."""
        if self._shared is None or self._root is None:
            return self.locate(source)
        if source not in self._unfetched:
            found = self._stand_in(self._shared, self._root, source)
            with self._lock:
                self._unfetched.setdefault(source, found)
        return self._unfetched[source] or self.locate(source)

    def keep(self, source: str, info: VideoInfo) -> None:
        """Keeps what has to be known of a video in object storage for other machines, once."""
        if self._shared is None or self._root is None or not self._shared.writable or self._unfetched.get(source):
            return
        with self._lock:
            if source in self._kept:
                return
            self._kept.add(source)
        found = remote_object(self._root, source)
        if found is not None:
            path = self.locate(source)
            video = PreparedVideo(self._catalogue.identity(path), info, self._catalogue.kept_index(path))
            self._shared.prepare(found[0].address_of(found[1]), video)

    def _stand_in(self, shared: SharedFrames, root: Path, source: str) -> Path | None:
        """The place of a copy that need not be fetched; None where the file itself is needed."""
        found = remote_object(root, source)
        if found is None or found[0].copy_of(found[1]).is_file():
            return None
        path, video = found[0].copy_of(found[1]), shared.prepared(found[0].address_of(found[1]))
        if video is None or not self._catalogue.take(path, video.sha256, video.index):
            return None
        self.infos[path] = video.info
        return path
