"""The blind log: what a team learns of a container that answered hidden questions. It is typed, and its size has a
bound, so that what could leak through it is bounded by arithmetic. A container as a system for the engine: started once, asked one question at a time, seen through its answers
alone."""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, JsonValue, model_validator

from proctor.containers.executors import BoxEnd, BoxError, BoxLimits, Executor, StartedBox
from proctor.containers.gateway import BoxFaultError, BoxGoneError, answers_still, invoke, wait_until_ready
from proctor.core import Answer, ConfigurationError, Item, Status, View, aside
from proctor.media import PlaysSounds, ShowsFiles

MOST_BYTES = 1024
"""Of a blind log as JSON."""

ERROR_CLASSES = frozenset(
    {
        "ArithmeticError", "AssertionError", "AttributeError", "ConnectionError", "EOFError", "Exception",
        "FileExistsError", "FileNotFoundError", "FloatingPointError", "ImportError", "IndexError", "IsADirectoryError",
        "JSONDecodeError", "KeyError", "LookupError", "MemoryError", "ModuleNotFoundError", "NameError",
        "NotADirectoryError", "NotImplementedError", "OSError", "OutOfMemoryError", "OverflowError", "PermissionError",
        "RecursionError", "RuntimeError", "SyntaxError", "SystemExit", "TimeoutError", "TypeError", "UnicodeDecodeError",
        "UnicodeEncodeError", "ValidationError", "ValueError", "ZeroDivisionError",
    }
)  # fmt: skip
"""The classes of errors that are told by name; every other one is `other`."""

_MOST_CLASSES = 5
_LAST_LINE = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?::|$)")
_MEGABYTE = 2**20
_COARSE = 16 * _MEGABYTE


class BoxReport(BaseModel):
    """What happened to a container, without a word of its own: how it ended, what it used (memory in steps of 16 MB,
    seconds rounded to whole ones), its answers by status, and the most frequent error classes of a list.

    `log` is what it printed; it stays empty on hidden questions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool = False
    peak_memory: int | None = None
    startup_s: int | None = None
    seconds: int = 0
    restarts: int = 0
    counts: dict[Status, int] = {}
    errors: dict[str, int] = {}
    log: str = ""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if unknown := set(self.errors) - ERROR_CLASSES - {"other"}:
            raise ValueError(f"found {min(unknown)!r}, expected an error class of the list")
        size = len(self.blind().model_dump_json()) if self.log else len(self.model_dump_json())
        if size > MOST_BYTES:
            raise ValueError(f"found {size} bytes, expected at most {MOST_BYTES}")
        return self

    def blind(self) -> BoxReport:
        """The same without what the container printed."""
        return self.model_copy(update={"log": ""})


def listed(name: str) -> str:
    """The name of an error's class as it may be told.

    >>> listed("torch.cuda.OutOfMemoryError"), listed("TheAnswerIsB")
    ('OutOfMemoryError', 'other')
    """
    last = name.rpartition(".")[2]
    return last if last in ERROR_CLASSES else "other"


def last_error(log: str) -> str:
    """The class of the error that a log ends with, as it may be told; empty where it ends with none.

    >>> last_error("Traceback (most recent call last):\\n  ...\\nValueError: the key is B\\n")
    'ValueError'
    """
    if "Traceback (most recent call last)" not in log:
        return ""
    found = [match[1] for line in log.splitlines() if (match := _LAST_LINE.match(line))]
    return listed(found[-1]) if found else ""


def most_frequent(errors: Counter[str]) -> dict[str, int]:
    """At most five classes with their counts, the rest together as `other`."""
    told = dict(sorted(errors.items(), key=lambda one: (-one[1], one[0]))[:_MOST_CLASSES])
    rest = errors.total() - sum(told.values())
    return {**told, "other": told.get("other", 0) + rest} if rest else told


def coarse(peak: int | None) -> int | None:
    """Bytes, rounded up to steps of 16 MB."""
    return None if peak is None else math.ceil(peak / _COARSE) * _COARSE


LATE_IN_A_ROW = 3
"""Late answers, after which a container is started again, once."""

LATE_AT_THE_END = 10
"""Late answers, after which a container that was started again is given up."""


class BoxedSystem:
    """A `System` that is an image. Use it as an async context manager: it starts the box and waits until that is ready,
    and kills it at the end.

    Each question has `question_s` seconds from when the box gets it. A late answer is `timed_out` and the box lives on;
    one that breaks off, or is none, is `error`. After three late ones in a row, or when the box ended, it is started
    again, once; when it ends again, or ten in a row are late, `BoxError` ends the run. Questions have ids of their
    own for each `seed`; their media are files that exist during the question alone, with names and times that say
    nothing.
    """

    takes_sound = True

    def __init__(
        self,
        name: str,
        executor: Executor,
        image: str,
        limits: BoxLimits,
        *,
        question_s: float,
        startup_s: float,
        seed: int,
        label: str,
    ) -> None:
        self.name = name
        self._executor = executor
        self._image = image
        self._limits = limits
        self._question_s = question_s
        self._startup_s = startup_s
        self._seed = seed
        self._label = label
        self._box: StartedBox | None = None
        self._entered = False
        self._gone = False
        self._turn = asyncio.Lock()
        self._late = 0
        self._restarts = 0
        self._counts: Counter[Status] = Counter()
        self._errors: Counter[str] = Counter()
        self._end = BoxEnd()
        self._peak: int | None = None
        self._ready_after: float | None = None
        self._started = time.monotonic()
        self._seconds = 0.0

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The image and what it was allowed."""
        return {
            "image": self._image,
            "limits": self._limits.settings,
            "question_s": self._question_s,
            "startup_s": self._startup_s,
            "seed": self._seed,
        }

    def supports(self, item: Item) -> bool:
        """Every format: the question says how it is to be answered."""
        del item
        return True

    async def __aenter__(self) -> Self:
        """Starts the box and waits until it is ready. Raises `BoxError` where it is not in time, `ConfigurationError`
        and `InfrastructureError` as the executor does."""
        self._entered, self._started = True, time.monotonic()
        try:
            await self._start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Kills the box."""
        self._entered = False
        await self._stop()
        self._seconds = time.monotonic() - self._started

    def report(self, *, public: bool = False) -> BoxReport:
        """What happened, once the box is gone; with what it printed where the questions are `public`."""
        errors = self._errors.copy()
        if not errors and (name := last_error(self._end.log)):
            errors[name] += 1
        return BoxReport(
            exit_code=self._end.exit_code,
            signal=self._end.signal,
            out_of_memory=self._end.out_of_memory,
            peak_memory=coarse(self._peak),
            startup_s=None if self._ready_after is None else round(self._ready_after),
            seconds=round(self._seconds),
            restarts=self._restarts,
            counts=dict(self._counts),
            errors=most_frequent(errors),
            log=self._end.log if public else "",
        )

    async def answer(self, item: Item, view: View) -> Answer:
        """Asks the box. Never raises for what the box does, except `BoxError` when it is given up."""
        with aside("retry"):  # waiting for one's turn, and for a box that is started again
            await self._turn.acquire()
        try:
            with aside("retry"):
                box = await self._living()
            answer = await self._asked(box, item, view)
        finally:
            self._turn.release()
        self._late = self._late + 1 if answer.status is Status.TIMED_OUT else 0
        self._counts[answer.status] += 1
        return answer

    async def _asked(self, box: StartedBox, item: Item, view: View) -> Answer:
        with aside("media"):
            media = await _shown(view)
        with _placed(media, box) as told:
            question = question_fields(self._opaque(item.id), item, self._question_s) | {"media": told}
            try:
                return Answer(item_id=item.id, text=await invoke(box, question, self._question_s))
            except TimeoutError:
                reason = f"took longer than {self._question_s:g} s"
                return Answer(item_id=item.id, status=Status.TIMED_OUT, reason=reason)
            except (BoxFaultError, BoxGoneError) as error:
                self._gone = isinstance(error, BoxGoneError)
                if isinstance(error, BoxFaultError):
                    self._errors[listed(error.error_class)] += 1
                return Answer(item_id=item.id, status=Status.ERROR, reason=str(error))

    def _opaque(self, item_id: str) -> str:
        return hashlib.blake2b(f"{self._seed}/{item_id}".encode(), digest_size=8).hexdigest()

    async def _living(self) -> StartedBox:
        """The box, started again where that is due."""
        if not self._entered:
            raise ConfigurationError(f"{self.name}: found no started container, expected `async with`")
        if self._box is None:  # the machine was at fault when it was to be started again
            return await self._start()
        ended = not await answers_still(self._box) if self._gone else await self._box.ended()
        self._gone = False
        if ended and self._restarts:
            raise BoxError("the container ended a second time", late=False)
        if self._late >= LATE_AT_THE_END:
            raise BoxError(f"{self._late} answers in a row were late", late=True)
        if ended or (self._late >= LATE_IN_A_ROW and not self._restarts):
            self._restarts += 1
            await self._stop()
            return await self._start()
        return self._box

    async def _start(self) -> StartedBox:
        self._box = box = await self._executor.start(self._image, self._limits, label=self._label)
        taken = await wait_until_ready(box, self._startup_s)
        self._ready_after = taken if self._ready_after is None else max(self._ready_after, taken)
        return box

    async def _stop(self) -> None:
        box, self._box = self._box, None
        if box is not None:
            self._end = await box.stop()
            peaks = [one for one in (self._peak, self._end.peak_memory) if one is not None]
            self._peak = max(peaks, default=None)


def question_fields(name: str, item: Item, deadline_s: float) -> dict[str, JsonValue]:
    """A question as a container gets it, without its media; `name` is the id that the container sees."""
    return {
        "id": name,
        "question": item.question,
        "options": list(item.options),
        "format": item.answer.kind,
        "instruction": item.answer.instruction(item.options),
        "deadline_s": deadline_s,
    }


class _Medium:
    def __init__(self, kind: str, content: bytes, **told: JsonValue) -> None:
        self.kind = kind
        self.content = content
        self.told = told


async def _shown(view: View) -> list[_Medium]:
    """What the view shows: clips as MP4, else pictures as JPEG; and what it plays as WAV."""
    clips = await view.files() if isinstance(view, ShowsFiles) else []
    found = [_Medium("video", one.mp4, label=one.label, start=one.span[0], end=one.span[1]) for one in clips]
    if not clips:
        found += [_Medium("image", one.jpeg, label=one.label, time=one.time) for one in await view.frames()]
    if isinstance(view, PlaysSounds) and view.sounding:
        sounds = await view.sounds()
        found += [_Medium("sound", one.wav, label=one.label, start=one.span[0], end=one.span[1]) for one in sounds]
    return found


_SUFFIXES = {"video": "mp4", "image": "jpg", "sound": "wav"}


@contextmanager
def _placed(media: Sequence[_Medium], box: StartedBox) -> Iterator[list[JsonValue]]:
    """The files of one question, while it is asked. Afterwards they are cut to nothing before they are removed, so that
    a box that keeps one open has no more of it than what it read in time."""
    told: list[JsonValue] = []
    files: list[Path] = []
    try:
        with aside("media"):
            for number, one in enumerate(media, start=1):
                name = f"{one.kind}-{number}.{_SUFFIXES[one.kind]}"
                files.append(box.media / name)
                files[-1].write_bytes(one.content)
                files[-1].chmod(0o444)
                os.utime(files[-1], (0, 0))
                told.append({"path": f"{box.media_inside}/{name}", "kind": one.kind, **one.told})
        yield told
    finally:
        for file in files:
            with suppress(OSError):
                os.truncate(file, 0)
            file.unlink(missing_ok=True)
