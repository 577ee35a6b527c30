"""The stage `events`: what the operator does and why, at the times of the words that say so; or as written by a
person."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from proctor.core import InputError, RefusalError, cell_number, count_of, read_json, read_table, validated
from proctor_build.pipeline.records import Call, ProcedureEvent, Refused, Sentence
from proctor_build.pipeline.speech import video_seconds
from proctor_build.pipeline.stage import PROMPTS, Made, Stage, StageSettings, Work
from proctor_build.pipeline.subtitles import spoken_words

_EDGE_S = 0.5


class EventsSettings(StageSettings):
    """`at_once` is the number of sentences in one prompt, `overlap_s` how far two events may overlap, `confidence` the
    least at which a word's times are used."""

    at_once: int = Field(default=60, ge=1, le=400)
    overlap_s: float = Field(default=0.0, ge=0)
    confidence: float = Field(default=0.5, ge=0, le=1)


class _Draft(BaseModel):
    sentences: list[int] = Field(max_length=50)
    quote: str = Field(max_length=2000)
    action: str = Field(max_length=500)
    intent: str = Field(default="", max_length=500)


class _Drafts(BaseModel):
    events: list[_Draft] = Field(max_length=400)


class EventsStage(Stage[ProcedureEvent]):
    """The event log of a source. A model names the sentences that tell an event and quotes them; the event has the
    times of the quoted words. Quotes must be exact; events are in order and overlap by at most `overlap_s`."""

    name = "events"
    summary = "What is done and what for"
    after = ("normalise",)
    record = ProcedureEvent
    settings = EventsSettings
    roles = ("writer",)
    prompts = (PROMPTS / "events.txt.j2",)

    def reads(self, work: Work) -> Sequence[Path]:
        return [work.project.path(work.source, one) for one in ("video", "events") if getattr(work.source, one)]

    async def make(self, work: Work) -> Made[ProcedureEvent]:
        settings, sentences = work.settings(EventsSettings), work.records("normalise", Sentence)
        if work.source.events:
            file = work.project.path(work.source, "events")
            return Made(_written(work.unit, file, video_seconds(self.reads(work)[0]), settings.overlap_s))
        drafts: list[tuple[_Draft, Call, Sequence[Sentence]]] = []
        refused: list[Refused] = []
        asker = work.asker("writer", self.prompts[0])
        for part in in_parts(sentences, settings.at_once):
            try:
                values = {"procedure": work.source.procedure, "sentences": part}
                reply, call = await asker.ask(_Drafts, part[0].id, values)
            except RefusalError as error:
                ids = tuple(sentence.id for sentence in part)
                refused.append(Refused.of(part[0].id, "no draft", "a list of events", error, ids))
                continue
            drafts += [(one, call, part) for one in reply.events]
        made: list[ProcedureEvent] = []
        for number, (draft, call, part) in enumerate(drafts, start=1):
            name = f"{work.unit}-e{number:03d}"
            event = _anchored(name, draft, call, part, settings.confidence)
            event = _in_order(event, made, settings.overlap_s) if isinstance(event, ProcedureEvent) else event
            (refused if isinstance(event, Refused) else made).append(event)  # type: ignore[arg-type]
        return Made(made, refused, [coverage(made, sentences)])


def in_parts(sentences: Sequence[Sentence], at_once: int) -> list[Sequence[Sentence]]:
    """Splits sentences into parts of at most `at_once`, at the longest pause in the last third of each.

    >>> def said(number: int, start: float) -> Sentence:
    ...     return Sentence(id=str(number), source="v", start=start, end=start + 1, text="so")
    >>> some = [said(n, t) for n, t in enumerate((0, 1, 2, 9, 10, 11))]
    >>> [[one.id for one in part] for part in in_parts(some, 4)]
    [['0', '1', '2'], ['3', '4', '5']]
    """
    parts: list[Sequence[Sentence]] = []
    rest = list(sentences)
    while len(rest) > at_once:
        rows = range(max(1, at_once - at_once // 3), at_once + 1)
        cut = max(rows, key=lambda row: (rest[row].start - rest[row - 1].end, row))
        parts.append(rest[:cut])
        rest = rest[cut:]
    return [*parts, rest] if rest else parts


def _anchored(
    name: str, draft: _Draft, call: Call, part: Sequence[Sentence], confidence: float
) -> ProcedureEvent | Refused:
    """The event of a draft, from its first to its last quoted word."""
    ids = tuple(part[number - 1].id for number in draft.sentences if 0 < number <= len(part))

    def refused(kind: str, reason: str, found: object) -> Refused:
        return Refused.of(name, kind, reason, found, ids, (call,))

    numbers = draft.sentences
    if not numbers or len(ids) < len(numbers):
        return refused("sentences", f"numbers of sentences, 1 to {len(part)}", numbers)
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return refused("sentences", "sentences on end, in their order", numbers)
    if not draft.action.strip():
        return refused("action", "what is done", repr(draft.action))
    cited = part[numbers[0] - 1 : numbers[-1]]
    quoted, spoken = spoken_words(draft.quote), [spoken_words(sentence.text) for sentence in cited]
    row = _found(quoted, [word for one in spoken for word in one])
    if row is None:
        return refused("quote", "words of the sentences that it names", draft.quote)
    lengths = [len(one) for one in spoken]
    if row >= lengths[0] or row + len(quoted) <= sum(lengths[:-1]):
        return refused("sentences", "the sentences that hold the quote", numbers)
    start = _edge(cited[0], quoted, confidence, last=False) if row else cited[0].start
    ends = row + len(quoted) == sum(lengths)
    end = cited[-1].end if ends else _edge(cited[-1], quoted, confidence, last=True)
    start, end = (start, end) if end > start else (cited[0].start, cited[-1].end)
    flags = tuple(dict.fromkeys(flag for sentence in cited for flag in sentence.flags))
    action, intent = " ".join(draft.action.split()), " ".join(draft.intent.split())
    fields: dict[str, Any] = {"action": action, "intent": intent, "quote": " ".join(draft.quote.split())}
    source = cited[0].source
    return ProcedureEvent(
        id=name, source=source, start=start, end=end, made_from=ids, calls=(call,), flags=flags, **fields
    )


def _edge(sentence: Sentence, quoted: Sequence[str], confidence: float, *, last: bool) -> float:
    """When the quoted words of a sentence begin, or end with `last`: the time of the outer of two neighbouring words
    with reliable times, else the sentence's own. One word's time alone is not trusted."""
    own = sentence.end if last else sentence.start
    words = [word for word in sentence.words if spoken_words(word.text)]
    order = list(quoted)
    if last:  # from the end backwards
        words.reverse()
        order.reverse()
    for first, second in pairwise(words):
        gap = first.start - second.end if last else second.start - first.end
        sure = all(word.confidence is None or word.confidence >= confidence for word in (first, second))
        said = [token for word in (first, second) for token in _tokens_from(word.text, last)]
        if said == order[: len(said)] and abs(gap) <= _EDGE_S and sure:
            time = first.end if last else first.start
            return time if sentence.start <= time <= sentence.end else own
    return own


def _tokens_from(text: str, last: bool) -> list[str]:
    """The tokens of a word, backwards with `last`: a word may be several (any in Chinese; "don't" in English)."""
    return spoken_words(text)[::-1] if last else spoken_words(text)


def _in_order(event: ProcedureEvent, made: Sequence[ProcedureEvent], overlap_s: float) -> ProcedureEvent | Refused:
    if made and event.start < made[-1].end - overlap_s:
        reason = f"an event that starts after {made[-1].id} ends ({made[-1].end:g} s)"
        return Refused.of(event.id, "order", reason, f"{event.start:g} s", event.made_from, event.calls)
    return event


def coverage(events: Sequence[ProcedureEvent], sentences: Sequence[Sentence]) -> str:
    """The share of the narration that the events cover."""
    covered = {name for event in events for name in event.made_from}
    seconds = sum(sentence.end - sentence.start for sentence in sentences)
    inside = sum(sentence.end - sentence.start for sentence in sentences if sentence.id in covered)
    share = inside / seconds if seconds else 0.0
    spoken = count_of(len(sentences), "sentence")
    return f"{count_of(len(events), 'event')} from {len(covered)} of {spoken}, {share:.0%} of the speech"


def _found(quoted: Sequence[str], spoken: Sequence[str]) -> int | None:
    """The position of the quoted words, all in a row; None without one."""
    if not quoted:
        return None
    size = len(quoted)
    return next((n for n in range(len(spoken) - size + 1) if list(spoken[n : n + size]) == list(quoted)), None)


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    start: float = Field(ge=0)
    end: float
    action: str = Field(min_length=1)
    intent: str = ""


def _written(source: str, file: Path, seconds: float, overlap_s: float) -> list[ProcedureEvent]:
    """The events of a CSV file (start, end, action, intent) or a JSON list of such objects. Raises `InputError` with
    the row of an invalid one."""
    made: list[ProcedureEvent] = []
    for number, (location, entry) in enumerate(_entries(file), start=1):
        if not entry.start < entry.end <= seconds + _EDGE_S:
            found = f"{entry.start:g} to {entry.end:g} s"
            raise InputError(
                file, location, found=found, expected=f"a start before an end inside the video ({seconds:g} s)"
            )
        if made and entry.start < made[-1].end - overlap_s:
            expected = f"at or after the end of the one before ({made[-1].end:g} s); overlap_s allows more"
            raise InputError(file, f"{location}, field 'start'", found=f"{entry.start:g} s", expected=expected)
        fields = entry.model_dump()
        made.append(ProcedureEvent(id=f"{source}-e{number:03d}", source=source, **fields))
    if not made:
        raise InputError(file, found="no events", expected="at least one")
    return made


def _entries(file: Path) -> list[tuple[str, _Entry]]:
    if file.suffix.lower() == ".json":
        content = read_json(file, "a list of events")
        listed = content.get("events") if isinstance(content, dict) else content
        if not isinstance(listed, list):
            raise InputError(file, found=type(content).__name__, expected='a list of events, or {"events": […]}')
        indices = [(f"event {number}", entry) for number, entry in enumerate(listed, start=1)]
        return [(location, validated(_Entry, entry, file, location)) for location, entry in indices]
    rows = read_table(file, ("start", "end", "action")).checked(file)
    entries = []
    for row in rows:
        location = f"row {row.number}"
        fields: dict[str, Any] = {"action": row.cells["action"], "intent": row.cells.get("intent", "")}
        for name in ("start", "end"):
            number = cell_number(row.cells[name])
            if number is None:
                expected = "seconds, such as 12.5"
                raise InputError(
                    file, f"{location}, column {name!r}", found=repr(row.cells[name])[:60], expected=expected
                )
            fields[name] = number
        entries.append((location, validated(_Entry, fields, file, location)))
    return entries
