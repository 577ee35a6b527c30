"""Decoding and encoding what is wanted of a video: from several keyframes at once where that is faster.

A decoder's own threads keep a few cores busy with decoding alone, while one thread encodes. Where many
pictures are wanted, each core rather takes a part of the video by itself, decodes and encodes it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from proctor.core import Region
from proctor.media.decode import Source, decode_at
from proctor.media.entries import Made, key_of
from proctor.media.index import FrameIndex
from proctor.media.pictures import FrameEncoder
from proctor.media.settings import MediaSettings

__all__ = ["Decoding", "Texts"]

_MOST_AT_ONCE = 8
_LOT = 32  # pictures of one part at most, if a keyframe allows: all of a part are in memory
_LARGEST_LOT = 256
Texts = Mapping[int, Collection[str]]
"""Of each wanted timestamp the texts to be painted on it, each on a picture of its own; "" for none."""


class Decoding:
    """The decoders of one library: at most as many at work as there are cores (8 at most), and as many files
    kept open, since opening one costs as much as decoding a second of it."""

    def __init__(self, cores: int | None = None) -> None:
        self.cores = cores or min(_MOST_AT_ONCE, os.cpu_count() or 1)
        self._turn = threading.BoundedSemaphore(self.cores)
        self._guard = threading.Lock()
        self._idle: deque[Source] = deque()

    def pictures(
        self,
        path: Path,
        index: FrameIndex,
        texts: Texts,
        region: Region | None,
        settings: MediaSettings,
    ) -> Iterator[Made]:
        """JPEGs of these timestamps, ascending. Raises `InputError` where the file can't be
        decoded. A caller that stops early ends what is under way after the current part."""
        wanted = sorted(texts)
        lots = _lots(index, wanted, -(-len(wanted) // (2 * self.cores)))
        if self._worth_parting(path, index, lots):
            yield from self._in_parts(path, lots, _Finish(index, texts, region, settings))
            return
        with self._turn, self._lent(path, threads=True) as source:
            yield from _Finish(index, texts, region, settings).encoded(source, wanted)

    def _worth_parting(self, path: Path, index: FrameIndex, lots: Sequence[Sequence[int]]) -> bool:
        if self.cores < 2 or len(lots) < self.cores or not index.stamped:
            return False
        if max(map(len, lots)) > _LARGEST_LOT:
            return False
        with self._lent(path, threads=False) as source:
            return source.seeks_well

    def _in_parts(self, path: Path, lots: Sequence[Sequence[int]], finish: _Finish) -> Iterator[Made]:
        def part(lot: Sequence[int]) -> list[Made]:
            with self._turn, self._lent(path, threads=False) as source:
                return list(finish.encoded(source, lot))

        pool = _threads(os.getpid())
        waiting = iter(lots)
        under_way = deque(pool.submit(part, lot) for lot in islice(waiting, self.cores + 1))
        try:
            while under_way:
                done = under_way.popleft().result()
                under_way.extend(pool.submit(part, lot) for lot in islice(waiting, 1))
                yield from done
        finally:
            _give_up(under_way)

    @contextmanager
    def _lent(self, path: Path, *, threads: bool) -> Iterator[Source]:
        with self._guard:
            fitting = [one for one in self._idle if (one.path, one.threads) == (path, threads)]
            if fitting:
                self._idle.remove(fitting[0])
        source = fitting[0] if fitting else Source(path, threads=threads)
        try:
            yield source
        except BaseException:
            source.close()
            raise
        with self._guard:
            self._idle.append(source)
            surplus = [self._idle.popleft() for _ in range(len(self._idle) - self.cores)]
        for one in surplus:
            one.close()


@dataclass(frozen=True)
class _Finish:
    """What becomes of the decoded pictures."""

    index: FrameIndex
    texts: Texts
    region: Region | None
    settings: MediaSettings

    def encoded(self, source: Source, wanted: Sequence[int]) -> Iterator[Made]:
        encoder = FrameEncoder(self.region, self.settings)
        for pts, frame, aspect in decode_at(source, self.index, wanted):
            for text in self.texts[pts]:
                jpeg = encoder.jpeg(frame, aspect, text)
                yield Made(key_of(pts, text), self.index.seconds(pts), jpeg)


def _lots(index: FrameIndex, wanted: Sequence[int], size: int) -> list[list[int]]:
    """Cuts the wanted timestamps at keyframes into parts of about this size."""
    lots: list[list[int]] = []
    last_key = None
    for pts in wanted:
        key = index.key_before(pts)
        if not lots or (key != last_key and len(lots[-1]) >= min(size, _LOT)):
            lots.append([])
        lots[-1].append(pts)
        last_key = key
    return lots


def _give_up(under_way: Sequence[Future[list[Made]]]) -> None:
    for future in under_way:
        future.cancel()


@lru_cache(maxsize=1)
def _threads(_process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="decode")
