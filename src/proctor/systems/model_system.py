"""A model with a prompt: one call per item, all frames and sounds of the view in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import JsonValue

from proctor.core import (
    Answer,
    Briefing,
    ConfigurationError,
    Frame,
    InputError,
    Item,
    View,
    clock_text,
    content_hash,
    reader_or_default,
)
from proctor.core.formats import IntervalsFormat, OrderingFormat, TimestampsFormat, option_letters
from proctor.media import CONDITIONS, ClipFile, PlaysSounds, ShownRecord, ShowsFiles, Sound
from proctor.models import (
    NOT_REUSED,
    Footage,
    ModelClient,
    Part,
    Prompt,
    Query,
    chosen_prompt,
    load_prompt,
    prompt_file,
)
from proctor.systems.replies import asks_for_rationale, rationale_in

_PROMPTS = Path(__file__).parent
_GENERAL = _PROMPTS / "model_answer.txt.j2"
_WITH_SOUND = _PROMPTS / "model_answer_with_sound.txt.j2"
MESSAGES = "messages_sha256"
"""Where an answer's `extra` keeps the hash of the words that the model was asked with."""

_CLIP = re.compile(r"clip (\d+), ")


@dataclass(frozen=True)
class Sampling:
    """Which frames of a video are shown: this many spread evenly, or a number per second (at most `count`
    where both are given); neither is the view's own rate. With `video_as="file"` the clip itself is sent (to local
    weights its frames as one video, each with its time), and frames only for items with images."""

    count: int | None = None
    fps: float | None = None
    video_as: Literal["frames", "file"] = "frames"


def prompt_for_benchmark(name: str, choice: str = "", *, sounding: bool = False) -> Prompt:
    """The prompt that a benchmark brings, else the general one (that for questions with sound where it is `sounding`);
    or another one by choice: the name of one (`paper` is BENCHMARK.paper.txt.j2) or a file. Raises `InputError` for a
    choice that is neither."""
    folder = reader_or_default(name).prompts
    general = _WITH_SOUND if sounding else _GENERAL
    usual = general if folder is None else folder / f"{name}.txt.j2"
    return chosen_prompt(usual, prompt_file(folder or _PROMPTS, name, choice) if choice else None)


def prompt_text(
    prompt: Prompt,
    item: Item,
    briefing: Briefing | None = None,
    *,
    pictures: int,
    timed: bool,
    video: bool = False,
    blind: bool = False,
    sounds: int = 0,
) -> tuple[str, str]:
    """The system's and the user's message for an item, of which `pictures` are shown and `sounds` are played."""
    return prompt.render(
        question=item.question,
        options=list(zip(option_letters(len(item.options)), item.options, strict=True)),
        instruction=item.answer.instruction(item.options),
        pictures=pictures,
        timed=timed,
        video=video,
        blind=blind,
        sounds=sounds,
        definitions=[] if briefing is None else list(briefing.definitions.items()),
    )


def prompt_as_sent(
    benchmark: str,
    item: Item,
    answer: Answer,
    settings: Mapping[str, Any],
    shown: Sequence[ShownRecord],
    condition: str,
) -> tuple[str, str] | None:
    """The system's and the user's message behind a stored answer of a `ModelSystem`, made again from its run's
    `settings` and from what was shown.

    None where they can't be: the answer holds no hash of them (`MESSAGES`), or what is made again has another one
    (another prompt file, another version of the benchmark's own).
    """
    told = reader_or_default(benchmark).briefing if "briefing_sha256" in settings else None
    pictures = sum(len(one.prefixes) for one in shown if one.asked_as != "sounds")
    played = [len(one.prefixes) for one in shown if one.asked_as == "sounds"]
    timed = any(time is not None for one in shown if one.asked_as == "frames" for time in one.times)
    blind = _is_blind(condition, pictures, played)
    for choice, video in product(("", "paper", str(settings.get("prompt", ""))), (False, True)):
        with suppress(InputError):  # a file that is not here, or a benchmark without a prompt of that name
            prompt = prompt_for_benchmark(benchmark, choice, sounding=bool(played))
            sounds = sum(played)
            found = prompt_text(
                prompt, item, told, pictures=pictures, timed=timed, video=video, blind=blind, sounds=sounds
            )
            if answer.extra.get(MESSAGES) == content_hash([*found]):
                return found
    return None


def _is_blind(condition: str, pictures: int, played: Sequence[int]) -> bool:
    """Whether a condition leaves nothing of an item: by its nature, or of what `played` sounds belong to."""
    return not CONDITIONS.get(condition).sees or (bool(played) and not pictures and not any(played))


@dataclass(frozen=True)
class _Request:
    """One question as it is sent, and what an answer's `extra` tells of it."""

    parts: tuple[Part, ...]
    system: str
    user: str
    told: dict[str, JsonValue]


class ModelSystem:
    """Asks a model each question once, with what the view shows.

    The prompt is the same under every condition but one: where nothing may be seen, it says so. `briefing` is what
    the benchmark has its models told: words with their meaning, and by which clock. Raises
    `ConfigurationError` where video files are to be sent to a model that takes none.
    """

    def __init__(
        self,
        client: ModelClient,
        prompt: Prompt | None = None,
        name: str | None = None,
        sampling: Sampling = Sampling(),
        briefing: Briefing | None = None,
    ) -> None:
        if sampling.video_as == "file" and not (client.takes_video or client.takes_footage):
            raise ConfigurationError(
                f"{client.name}: this model takes no video files: use --video-as frames, or a provider that takes "
                "them (google:…, openrouter:…, bedrock:…, an OpenAI-compatible server with --base-url)"
            )
        self._client = client
        self._prompt = prompt or load_prompt(_GENERAL)
        self._name = name or client.name
        self._sampling = sampling
        self._briefing = briefing

    @property
    def name(self) -> str:
        """As given, else the model's name."""
        return self._name

    @property
    def prompt(self) -> Prompt:
        """What it asks with."""
        return self._prompt

    @property
    def takes_sound(self) -> bool:
        """Whether the model can be sent sound."""
        return self._client.takes_audio

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model and its settings, the prompt by name and hash, the sampling, and the briefing's hash."""
        sampling: dict[str, JsonValue] = {**asdict(self._sampling)}
        told = self._briefing
        return {
            **self._client.settings,
            "prompt": self._prompt.name,
            "prompt_sha256": self._prompt.sha256,
            "sampling": sampling,
            **({} if told is None else {"briefing_sha256": content_hash(asdict(told))}),
        }

    def supports(self, item: Item) -> bool:
        del item
        return True

    async def answer(self, item: Item, view: View) -> Answer:
        """The model's words as they came; a reply that the token limit cut says so in `extra`. Of an order its
        rationale stands there, too: "" where one was asked for and none came. Local weights tell there (`NOT_REUSED`)
        why they compute the same pictures again for each question, if they do."""
        asked = await self._asked(item, view)
        reply = await self._client.ask(asked.parts, system=asked.system)
        return Answer(
            item_id=item.id,
            text=reply.text,
            usage=reply.usage,
            extra={
                "model": reply.model,
                "finish_reason": reply.finish_reason,
                "cut_off": reply.cut_off,
                **({NOT_REUSED: reply.not_reused} if reply.not_reused else {}),
                **asked.told,
                **_rationale(item, asked.user, reply.text),
            },
        )

    async def query(self, item: Item, view: View) -> Query:
        """What local weights are asked by `answer`, in the same form. Raises `ConfigurationError` for a model
        elsewhere."""
        asked = await self._asked(item, view)
        return self._client.query(asked.parts, system=asked.system)

    async def _asked(self, item: Item, view: View) -> _Request:
        """What is sent, and what is recorded of it."""
        files = await self._files(view)
        frames = [] if files else await view.frames(count=self._sampling.count, fps=self._sampling.fps)
        footage = self._as_footage(frames)
        sounding = bool(getattr(view, "sounding", False))  # as `PlaysSounds` says; asking for the protocol costs more
        sounds = await cast("PlaysSounds", view).sounds() if sounding else []
        system, user = prompt_text(
            self._prompt,
            item,
            self._briefing,
            pictures=len(files) or len(frames),
            timed=any(frame.time is not None for frame in frames),
            video=bool(files) or footage,
            blind=_is_blind(view.condition, len(files) or len(frames), [len(sounds)] if sounding else []),
            sounds=len(sounds),
        )
        span, by_own_clock = view.span, self._by_ownclock_text(item)
        shown: list[Part] = [_told(frame, span, by_own_clock) for frame in frames]
        if footage:
            shown = [Footage(tuple(_told(frame, span, by_own_clock) for frame in frames))]
        shown += [_named(file) if by_own_clock else file for file in files]
        shown += [_captioned(one, by_own_clock) for one in sounds]
        told: dict[str, JsonValue] = {"frames": len(frames), MESSAGES: content_hash([system, user])}
        told |= {"video_bytes": sum(len(file.mp4) for file in files)} if files else {}
        told |= {"sounds": len(sounds)} if sounding else {}
        return _Request((*shown, user), system, user, told)

    def _by_ownclock_text(self, item: Item) -> bool:
        """Whether the model must know the clock of the whole video: the answer is a time of it, or the question
        names one."""
        told = self._briefing is not None and self._briefing.own_clock
        return told or isinstance(item.answer, TimestampsFormat | IntervalsFormat)

    def _as_footage(self, frames: Sequence[Frame]) -> bool:
        """Whether these frames go as one video: those of one clip, to local weights."""
        return (
            self._sampling.video_as == "file"
            and self._client.takes_footage
            and bool(frames)
            and all(frame.time is not None and not _CLIP.match(frame.label) for frame in frames)
        )

    async def _files(self, view: View) -> list[ClipFile]:
        if self._sampling.video_as == "frames" or not self._client.takes_video:
            return []
        if not isinstance(view, ShowsFiles):
            return []
        return await view.files()


def _rationale(item: Item, prompt: str, said: str) -> dict[str, JsonValue]:
    if not isinstance(item.answer, OrderingFormat):
        return {}
    found = rationale_in(said)
    return {"rationale": found} if found or asks_for_rationale(prompt) else {}


def _named(file: ClipFile) -> ClipFile:
    """The clip with what the model must know of the whole video's clock."""
    if not file.span[0]:
        return file
    begins = f"this video begins at {clock_text(file.span[0])} of the recording"
    return replace(file, label=", ".join(part for part in (file.label, begins) if part))


def _captioned(sound: Sound, by_own_clock: bool) -> Sound:
    """The sound with what the model is told of it: whose it is, and from when to when, as of frames."""
    start, end = sound.span if by_own_clock else (0.0, sound.span[1] - sound.span[0])
    clock = f" ({clock_text(start)} to {clock_text(end)})" if by_own_clock else ""
    whose = sound.label if sound.label.startswith("recording") else f"sound of the {sound.label}"
    return replace(sound, label=f"{whose}, from t = {start:.1f} s to t = {end:.1f} s{clock}")


def _told(frame: Frame, span: tuple[float, float] | None, by_own_clock: bool) -> Frame:
    """The frame with the time that the model is told.

    From the clip's start, since a model can't know where in a recording the clip lies. Where question or
    answer speak of times (`by_own_clock`), or an item has several clips, by the video's own clock.
    """
    if frame.time is None:
        return frame
    clip = _CLIP.match(frame.label)
    start = 0.0 if span is None or by_own_clock or clip else span[0]
    time = max(0.0, frame.time - start)
    label = f"{clip[0] if clip else ''}t = {time:.1f} s"
    if by_own_clock:
        label += f" ({clock_text(time)})"
    return replace(frame, time=time, label=label)
