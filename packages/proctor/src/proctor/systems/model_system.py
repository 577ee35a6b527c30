"""A model with a prompt: one call per item, with all frames and sounds of the view, in order and with their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, Final, Literal, cast

from pydantic import BaseModel, JsonValue

from proctor.core import (
    CONFIDENCE,
    Answer,
    Briefing,
    ConfigurationError,
    Frame,
    InputError,
    Item,
    ParseError,
    ProctorError,
    SystemFaultError,
    Usage,
    View,
    content_hash,
    reader_or_default,
)
from proctor.core.formats import (
    FreeTextFormat,
    IntervalsFormat,
    OrderingFormat,
    RatingsFormat,
    TimestampsFormat,
    declared_answers,
    json_values,
    rationale_in,
    read_confidence,
    token_confidence,
    without_thoughts,
)
from proctor.media import CONDITIONS, ClipFile, PlaysSounds, ShownRecord, ShowsFiles
from proctor.models import FINISH_REASON, NOT_REUSED, Footage, ModelClient, Part, Prompt, Query, Reply, load_prompt
from proctor.systems.labels import CLIP, with_caption, with_start, with_time
from proctor.systems.question_prompt import (
    GENERAL,
    NOTHING_MORE,
    ReplyRequest,
    Sent,
    instruction_of,
    prompt_for_benchmark,
    prompt_text,
)
from proctor.systems.replies import Rationale, asks_for_rationale, order_form

MESSAGES = "messages_sha256"
"""The key of an answer's `extra` for the hash of the prompt as sent."""
AskedBy = Literal["schema", "text"]
ASKED_BY: Final = "asked_by"
"""The key of an answer's `extra` for how an order was requested: by a JSON schema, or as text."""
SCHEMA: Final = "schema"
TEXT: Final = "text"
SCHEMA_REJECTED: Final = "schema_rejected"
"""The key of an answer's `extra` for the reason why an order was requested again, as text."""

_FEW = 3  # forms


@dataclass(frozen=True)
class Sampling:
    """Which frames of a video are sent: `count` evenly spaced ones, or `fps` per second (at most `count` where both are
    given); by default at the view's own rate. With `video_as="file"` the clip itself is sent (to local weights its
    frames as one video, each with its time), and frames only for items with images."""

    count: int | None = None
    fps: float | None = None
    video_as: Literal["frames", "file"] = "frames"


def prompt_as_sent(
    benchmark: str,
    item: Item,
    answer: Answer,
    settings: Mapping[str, Any],
    shown: Sequence[ShownRecord],
    condition: str,
) -> tuple[str, str] | None:
    """The system message and the user message behind a stored answer of a `ModelSystem`, rebuilt from its run's
    `settings` and from what was shown.

    None where that fails: the answer has no hash of them (`MESSAGES`), or the rebuilt ones have another hash (another
    prompt file, another version of the benchmark's prompt).
    """
    briefing = reader_or_default(benchmark).briefing if "briefing_sha256" in settings else None
    pictures = sum(len(shown_record.prefixes) for shown_record in shown if shown_record.asked_as != "sounds")
    played = [len(shown_record.prefixes) for shown_record in shown if shown_record.asked_as == "sounds"]
    timed = any(
        time is not None for shown_record in shown if shown_record.asked_as == "frames" for time in shown_record.times
    )
    blind, as_json = _is_blind(condition, pictures, played), answer.extra.get(ASKED_BY) == SCHEMA
    for choice, video in product(("", "paper", str(settings.get("prompt", ""))), (False, True)):
        with suppress(InputError):  # a file that is not here, or a benchmark without a prompt of that name
            prompt = prompt_for_benchmark(benchmark, choice, sounding=bool(played))
            sent = Sent(pictures, timed=timed, video=video, blind=blind, sounds=sum(played))
            found = prompt_text(prompt, item, briefing, sent, as_json=as_json, request=ReplyRequest.of(settings))
            if answer.extra.get(MESSAGES) == content_hash([*found]):
                return found
    return None


def _is_blind(condition: str, pictures: int, played: Sequence[int]) -> bool:
    """Whether a condition shows nothing of an item: by definition, or because none of its sounds is `played`."""
    return not CONDITIONS.get(condition).sees or (bool(played) and not pictures and not any(played))


@dataclass(frozen=True)
class _Shown:
    """What a view shows, as it is sent, and its record for the answer's `extra`."""

    parts: tuple[Part, ...]
    sent: Sent
    extra: dict[str, JsonValue]


@dataclass(frozen=True)
class _Request:
    """One question as it is sent, and its record for the answer's `extra`. An order has a `shape` if it is requested by a
    schema."""

    parts: tuple[Part, ...]
    system: str
    extra: dict[str, JsonValue]
    rationale: Rationale = ""
    shape: type[BaseModel] | None = None


async def frames_as_sent(
    item: Item, view: View, prompt: Prompt, briefing: Briefing | None = None
) -> tuple[str, list[Frame], str]:
    """The system message, the frames with their labels, and the user message of a question, as a `ModelSystem` without
    settings of its own sends them. Raises what the view raises."""
    frames = await view.frames()
    timed = any(frame.time is not None for frame in frames)
    sent = Sent(len(frames), timed=timed, blind=_is_blind(view.condition, len(frames), []))
    system, user = prompt_text(prompt, item, briefing, sent)
    own_clock = _uses_own_clock(item, briefing)
    return system, [with_time(frame, view.span, own_clock) for frame in frames], user


def _uses_own_clock(item: Item, briefing: Briefing | None) -> bool:
    """Whether a model must know the clock of the whole video: the question or its answer has times of it."""
    by_briefing = briefing is not None and briefing.own_clock
    return by_briefing or isinstance(item.answer, TimestampsFormat | IntervalsFormat)


class ModelSystem:
    """Asks a model each question once, with what the view shows.

    The prompt is the same under every condition, except that it says so where nothing is shown. `briefing` are the
    benchmark's definitions and its clock. Raises `ConfigurationError` for video files and a model that takes none.

    With `orders="schema"` an order is requested by a JSON schema, if the model's protocol has one, and as text where the
    server rejects it. Either way the reply, whatever it is, is read by the answer format. Without `orders` they are
    requested as text, and the settings do not say so: for items without orders. A model that may abstain is asked for
    orders as text, since a schema of an order leaves no other reply.

    `request` is what the prompt asks for beside the answer. The confidence of each answer is kept in its `extra`
    (`CONFIDENCE`), or why it is missing.
    """

    def __init__(
        self,
        client: ModelClient,
        prompt: Prompt | None = None,
        name: str | None = None,
        sampling: Sampling = Sampling(),
        briefing: Briefing | None = None,
        orders: AskedBy | None = None,
        request: ReplyRequest = NOTHING_MORE,
    ) -> None:
        if sampling.video_as == "file" and not (client.takes_video or client.takes_footage):
            raise ConfigurationError(
                f"{client.name}: this model takes no video files: use --video-as frames, or a provider that takes "
                "them (google:…, openrouter:…, bedrock:…, an OpenAI-compatible server with --base-url)"
            )
        self._client = client
        self._prompt = prompt or load_prompt(GENERAL)
        self._name = name or client.name
        self._sampling = sampling
        self._briefing = briefing
        self._orders = orders
        self._also = request
        self._taken: set[type[BaseModel]] = set()
        self._rejected: dict[type[BaseModel], str] = {}

    @property
    def name(self) -> str:
        """The given name, else the model's."""
        return self._name

    @property
    def prompt(self) -> Prompt:
        return self._prompt

    @property
    def price(self) -> tuple[float, float] | None:
        """The price of a million input and of a million output tokens in US dollars, if it was given."""
        return self._client.spec.price

    @property
    def takes_sound(self) -> bool:
        """Whether the model accepts sound."""
        return self._client.takes_audio

    @property
    def orders(self) -> AskedBy:
        """How orders are requested: as text also of a model that is known to take no schema, or may abstain."""
        by_schema = self._orders == SCHEMA and self._client.takes_schema and self._also.abstain != "allow"
        return "schema" if by_schema else "text"

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The model and its settings, the prompt by name and hash, the sampling, the briefing's hash, and how orders are
        requested."""
        sampling: dict[str, JsonValue] = {**asdict(self._sampling)}
        briefing = self._briefing
        return {
            **self._client.settings,
            "prompt": self._prompt.name,
            "prompt_sha256": self._prompt.sha256,
            "sampling": sampling,
            **({} if briefing is None else {"briefing_sha256": content_hash(asdict(briefing))}),
            **({} if self._orders is None else {"orders": self.orders}),
            **self._also.settings,
        }

    def supports(self, item: Item) -> bool:
        del item
        return True

    async def answer(self, item: Item, view: View) -> Answer:
        """The model's reply as it is. `extra` has the server's word for its end (`finish_reason`), whether the token limit
        cut it off, whether it has thoughts in its text (`thoughts_in_text`), and whether a later declared answer
        corrects an earlier one (`corrected`); for an ordering it says how it was requested (`ASKED_BY`), why as text
        where the server rejected the schema (`SCHEMA_REJECTED`), and has the rationale ("" where one was asked for and
        none came); for local weights it says (`NOT_REUSED`) why the same pictures are computed again for each question, if
        they are. A confidence that was asked for is under `CONFIDENCE`."""
        request, reply = await self._ask(item, await self._shown(item, view))
        return Answer(
            item_id=item.id,
            text=reply.text,
            usage=reply.usage,
            extra={
                "model": reply.model,
                FINISH_REASON: reply.finish_reason,
                "cut_off": reply.cut_off,
                **({NOT_REUSED: reply.not_reused} if reply.not_reused else {}),
                **({"thoughts_in_text": True} if reply.thinks_aloud else {}),
                **({"corrected": True} if _corrects_itself(item, reply.text) else {}),
                **request.extra,
                **_rationale(item, request, reply.text),
                **self._confidence(item, reply),
            },
        )

    def _confidence(self, item: Item, reply: Reply[None]) -> dict[str, JsonValue]:
        """How sure the model is, for the answer's `extra`; nothing if it was not asked."""
        match self._also.confidence:
            case "stated":
                found = read_confidence(reply.text)
            case "tokens":
                tokens = [(token.text, token.chances) for token in reply.tokens]
                found = token_confidence(reply.text, tokens, item.answer, item.options)
            case _:
                return {}
        return {CONFIDENCE: found.model_dump(mode="json", exclude_defaults=True)}

    async def query(self, item: Item, view: View) -> Query:
        """The query that `answer` sends to local weights. Raises `ConfigurationError` for a remote model."""
        request = self._request(item, await self._shown(item, view), TEXT)
        return self._client.query(request.parts, system=request.system)

    async def _ask(self, item: Item, shown: _Shown) -> tuple[_Request, Reply[None]]:
        """The reply to a question, and the request that brought it. An order is requested by a schema first, and as text
        where the server rejects it or sends nothing back."""
        if self.orders != SCHEMA or not isinstance(item.answer, OrderingFormat):
            request = self._request(item, shown, TEXT)
            return request, await self._client.ask(request.parts, system=request.system)
        request, spent, lasting = self._request(item, shown, SCHEMA), Usage(), True
        shape = cast("type[BaseModel]", request.shape)
        if not (why := self._rejection_of(shape)):
            try:
                reply = await self._client.ask(request.parts, system=request.system, shape=shape)
            except ProctorError as error:
                if not _rejects_form(error):
                    raise
                why, spent = str(error), error.usage or spent
                lasting = not isinstance(error, SystemFaultError)  # else one reply had another form
            else:
                if reply.text.strip() or reply.cut_off:
                    self._taken.add(shape)
                    return request, reply
                why, spent = f"{self._client.name}: an empty reply", reply.usage
        request = self._request(item, shown, TEXT)
        request.extra[SCHEMA_REJECTED] = why
        try:
            reply = await self._client.ask(request.parts, system=request.system)
        except ProctorError as error:
            error.after(spent)
            raise
        if lasting and reply.text.strip() and shape not in self._taken:
            self._rejected[shape] = why
        return request, replace(reply, usage=spent + reply.usage)

    def _rejection_of(self, shape: type[BaseModel]) -> str:
        """Why a form is not requested any more; "" if it is. Once a few forms were rejected and none taken, no other one
        is tried: a server without schemas is not asked twice for each item."""
        if len(self._rejected) >= _FEW and not self._taken:
            return next(iter(self._rejected.values()))
        return self._rejected.get(shape, "")

    def _request(self, item: Item, shown: _Shown, asked_by: AskedBy) -> _Request:
        as_json = asked_by == SCHEMA
        more = self._also
        system, user = prompt_text(self._prompt, item, self._briefing, shown.sent, as_json=as_json, request=more)
        parts, extra = (*shown.parts, user), {**shown.extra, MESSAGES: content_hash([system, user])}
        if not isinstance(item.answer, OrderingFormat):
            return _Request(parts, system, extra)
        rationale = asks_for_rationale(user, instruction_of(item, as_json))
        stated = more.confidence == "stated"
        shape = order_form(item.answer.labels, rationale, confidence=stated) if as_json else None
        return _Request(parts, system, {**extra, ASKED_BY: asked_by}, rationale, shape)

    async def _shown(self, item: Item, view: View) -> _Shown:
        files = await self._files(view)
        frames = [] if files else await view.frames(count=self._sampling.count, fps=self._sampling.fps)
        footage = self._as_footage(frames)
        sounding = bool(
            getattr(view, "sounding", False)
        )  # as in `PlaysSounds`; an isinstance check of the protocol is slower
        sounds = await cast("PlaysSounds", view).sounds() if sounding else []
        sent = Sent(
            pictures=len(files) or len(frames),
            timed=any(frame.time is not None for frame in frames),
            video=bool(files) or footage,
            blind=_is_blind(view.condition, len(files) or len(frames), [len(sounds)] if sounding else []),
            sounds=len(sounds),
        )
        span, by_own_clock = view.span, _uses_own_clock(item, self._briefing)
        parts: list[Part] = [with_time(frame, span, by_own_clock) for frame in frames]
        if footage:
            parts = [Footage(tuple(with_time(frame, span, by_own_clock) for frame in frames))]
        parts += [with_start(file) if by_own_clock else file for file in files]
        parts += [with_caption(sound, by_own_clock) for sound in sounds]
        extra: dict[str, JsonValue] = {"frames": len(frames)}
        extra |= {"video_bytes": sum(len(file.mp4) for file in files)} if files else {}
        extra |= {"sounds": len(sounds)} if sounding else {}
        return _Shown(tuple(parts), sent, extra)

    def _as_footage(self, frames: Sequence[Frame]) -> bool:
        """Whether to send frames as one video: frames of a single clip, to local weights."""
        return (
            self._sampling.video_as == "file"
            and self._client.takes_footage
            and bool(frames)
            and all(frame.time is not None and not CLIP.match(frame.label) for frame in frames)
        )

    async def _files(self, view: View) -> list[ClipFile]:
        if self._sampling.video_as == "frames" or not self._client.takes_video:
            return []
        if not isinstance(view, ShowsFiles):
            return []
        return await view.files()


def _corrects_itself(item: Item, reply: str) -> bool:
    """Whether a reply declares two answers or more that are read differently. In JSON the field is the answer."""
    if isinstance(item.answer, FreeTextFormat | RatingsFormat):
        return False
    if any(isinstance(value, dict) for value in json_values(without_thoughts(reply))):
        return False
    declared = declared_answers(reply)
    read: list[JsonValue] = []
    for text in declared if len(declared) > 1 else ():
        with suppress(ParseError):
            read.append(item.answer.parse(f"Answer: {text}", item.options))
    return any(value != read[0] for value in read)


def _rejects_form(error: ProctorError) -> bool:
    """Whether a rejection may be one of the form of the reply: by the server's words, or for no reason in the item."""
    return error.rejected == "form" or (error.rejected == "request" and not isinstance(error, SystemFaultError))


def _rationale(item: Item, request: _Request, reply: str) -> dict[str, JsonValue]:
    if not isinstance(item.answer, OrderingFormat):
        return {}
    found = rationale_in(reply)
    return {"rationale": found} if found or request.rationale else {}
