"""A container as a system for the engine: what it is sent, late answers, restarts, and the report of what happened to
it."""

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

from pydantic import Field, JsonValue, model_validator

from proctor.core import Answer, ConfigurationError, FrozenModel, Item, Status, View, aside
from proctor.media import PlaysSounds, ShowsFiles
from proctor_challenge.containers.executors import BoxEnd, BoxError, BoxLimits, Executor, StartedBox
from proctor_challenge.containers.gateway import BoxFaultError, BoxGoneError, answers_still, invoke, wait_until_ready

LATE_IN_A_ROW = 3
"""The number of late answers in a row after which a container is restarted, once."""

LATE_AT_THE_END = 10
"""The number of late answers in a row after which a container is given up."""

MOST_BYTES = 1024
"""The maximum size of a blind log as JSON."""

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
"""The error classes that are reported by name; all others are `other`."""

_MAX_CLASSES = 5
_LAST_LINE = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?::|$)")
_MEMORY_STEP = 2**24
_SUFFIXES = {"video": "mp4", "image": "jpg", "sound": "wav"}


class BoxReport(FrozenModel):
    """The blind log: what happened to a container, without any text of its own. It is typed and of limited size, so
    that what could leak through it is bounded by arithmetic.

    It says how the container ended, what it used (memory in steps of 16 MB, whole seconds), its answers by status, and
    the most frequent error classes of a list. `log` is its output, which stays empty on hidden questions.
    """

    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool = False
    peak_memory: int | None = None
    startup_s: int | None = None
    seconds: int = 0
    restarts: int = 0
    counts: dict[Status, int] = Field(default_factory=dict)
    errors: dict[str, int] = Field(default_factory=dict)
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
        """The same without the container's output."""
        return self.model_copy(update={"log": ""})


def listed(name: str) -> str:
    """The name of an error class as it may be reported.

    >>> listed("torch.cuda.OutOfMemoryError"), listed("TheAnswerIsB")
    ('OutOfMemoryError', 'other')
    """
    last = name.rpartition(".")[2]
    return last if last in ERROR_CLASSES else "other"


def last_error(log: str) -> str:
    """The class of the error that a log ends with, as it may be reported; "" for none.

    >>> last_error("Traceback (most recent call last):\\n  ...\\nValueError: the key is B\\n")
    'ValueError'
    """
    if "Traceback (most recent call last)" not in log:
        return ""
    found = [match[1] for line in log.splitlines() if (match := _LAST_LINE.match(line))]
    return listed(found[-1]) if found else ""


def most_frequent(errors: Counter[str]) -> dict[str, int]:
    """At most five classes with their counts, and the rest as `other`."""
    top = dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))[:_MAX_CLASSES])
    rest = errors.total() - sum(top.values())
    return {**top, "other": top.get("other", 0) + rest} if rest else top


def coarse(peak: int | None) -> int | None:
    """Bytes, rounded up to steps of 16 MB."""
    return None if peak is None else math.ceil(peak / _MEMORY_STEP) * _MEMORY_STEP


class BoxedSystem:
    """A `System` that is an image. Used as an async context manager, it starts a box, waits until the box is ready, and
    kills it at the end. Questions are asked one at a time.

    Each question has `question_s` seconds from when the box gets it. A late answer is `timed_out` and the box keeps
    running; an invalid or incomplete reply is `error`. The box is restarted once, after three late answers in a row or
    when it ended. `BoxError` ends the run when it ends again, or after ten late answers in a row. The ids of questions
    depend on `seed`. Their media are files that exist only during the question, with neutral names and times.
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
        """The image and its limits."""
        return {
            "image": self._image,
            "limits": self._limits.settings,
            "question_s": self._question_s,
            "startup_s": self._startup_s,
            "seed": self._seed,
        }

    def supports(self, item: Item) -> bool:
        """Every format, since the question says how to answer."""
        del item
        return True

    async def __aenter__(self) -> Self:
        """Starts the box and waits until it is ready. Raises `BoxError` when it is not ready in time, and
        `ConfigurationError` and `InfrastructureError` as the executor does."""
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
        """What happened, once the box is gone; with its output if the questions are `public`."""
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
        """Asks the box. Raises `BoxError` when the box is given up, and nothing else for what the box does."""
        with aside("retry"):  # waiting for other questions and for a restart does not count as the box's time
            await self._turn.acquire()
        try:
            with aside("retry"):
                box = await self._living()
            answer = await self._ask(box, item, view)
        finally:
            self._turn.release()
        self._late = self._late + 1 if answer.status is Status.TIMED_OUT else 0
        self._counts[answer.status] += 1
        return answer

    async def _ask(self, box: StartedBox, item: Item, view: View) -> Answer:
        with aside("media"):
            media = await _media_of(view)
        with _kept_rows(media, box) as located:
            question = question_fields(self._opaque(item.id), item, self._question_s) | {"media": located}
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
        """The box, after a restart if that is due."""
        if not self._entered:
            raise ConfigurationError(f"{self.name}: found no started container, expected `async with`")
        if self._box is None:  # an infrastructure error prevented the restart
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
            peaks = [peak for peak in (self._peak, self._end.peak_memory) if peak is not None]
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
    def __init__(self, kind: str, content: bytes, **fields: JsonValue) -> None:
        self.kind = kind
        self.content = content
        self.fields = fields


async def _media_of(view: View) -> list[_Medium]:
    """The media of a view: clips as MP4 or images as JPEG, and sounds as WAV."""
    clips = await view.files() if isinstance(view, ShowsFiles) else []
    found = [_Medium("video", clip.mp4, label=clip.label, start=clip.span[0], end=clip.span[1]) for clip in clips]
    if not clips:
        found += [_Medium("image", frame.jpeg, label=frame.label, time=frame.time) for frame in await view.frames()]
    if isinstance(view, PlaysSounds) and view.sounding:
        for sound in await view.sounds():
            found.append(_Medium("sound", sound.wav, label=sound.label, start=sound.span[0], end=sound.span[1]))
    return found


@contextmanager
def _kept_rows(media: Sequence[_Medium], box: StartedBox) -> Iterator[list[JsonValue]]:
    """The files of one question while it is asked, as its fields. Afterwards they are truncated before they are
    removed, so that a box that keeps one open has only what it read in time."""
    kept_rows: list[JsonValue] = []
    files: list[Path] = []
    try:
        with aside("media"):
            for number, medium in enumerate(media, start=1):
                name = f"{medium.kind}-{number}.{_SUFFIXES[medium.kind]}"
                files.append(box.media / name)
                files[-1].write_bytes(medium.content)
                files[-1].chmod(0o444)
                os.utime(files[-1], (0, 0))
                kept_rows.append({"path": f"{box.media_inside}/{name}", "kind": medium.kind, **medium.fields})
        yield kept_rows
    finally:
        for file in files:
            with suppress(OSError):
                os.truncate(file, 0)
            file.unlink(missing_ok=True)
