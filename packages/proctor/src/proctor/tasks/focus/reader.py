"""FOCUS as a benchmark: the tracks, and the toolkit's files as items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from proctor import core
from proctor.core.formats import MOST_OPTIONS, AnswerFormat, ChoiceFormat, bare
from proctor.judges import PANEL_ACCURACY
from proctor.tasks.focus import READER_SUMMARY
from proctor.tasks.focus.native import (
    NativeReference,
    NativeRequest,
    format_named,
    further_fields,
    read_references,
    read_requests,
    read_rows,
    without_reference,
)
from proctor.tasks.focus.submission import read_recorded
from proctor.tasks.focus.vocabulary import (
    CAPABILITIES,
    FOREIGN_OBJECT,
    FORMATS,
    GROUP_OF,
    FormQuestion,
    leaf_of,
    lettered,
)
from proctor.tracks import OBJECTS

_ANY = "Foreign object"
_ROUNDING_S = 1e-6
_FRAME_S = 0.04  # a frame is the clip of one picture at 25 frames a second


@dataclass(frozen=True)
class Track:
    """A track: the budget in seconds for a question, the limits of medium and long contexts in seconds, the maximum length
    of what is shown, and whether that starts with the video."""

    budget_s: float
    medium_from_s: float
    long_from_s: float
    most_s: float = float("inf")
    from_start: bool = False

    def context(self, duration_s: float) -> str:
        """ "short", "medium" or "long"."""
        if duration_s >= self.long_from_s:
            return "long"
        return "medium" if duration_s >= self.medium_from_s else "short"


TRACKS = {
    "frame": Track(5.0, float("inf"), float("inf"), most_s=_FRAME_S),
    "segment": Track(15.0, 60.0, 180.0, most_s=300.0),
    "procedure": Track(30.0, 600.0, 1800.0, from_start=True),
}

_NOTES = (
    (
        "Free text is right where most judges of a panel say so (proctor score {benchmark}). A tie, or a judgement that "
        "is missing and would decide, leaves an answer unresolved: neither right nor wrong, and counted beside the figures. The "
        "challenge's document names the majority and says nothing of either."
    ),
    "A late, missing or unreadable answer is wrong, as in the challenge; scores carry the cause as their label.",
    (
        "Figures are means over questions with intervals over whole videos. The toolkit's own (mean of the videos' "
        "means, percentile intervals of a two-level bootstrap): proctor results {benchmark} --protocol official."
    ),
    (
        "Answers are read as orena-focus 0.4.0 reads them. Multiple choice with its options in the file and patterns "
        "are scored by code, where the toolkit asks a judge."
    ),
    (
        "The length of the context is short below 10, long from 30 minutes (segments: 1 and 3); the challenge's document "
        "does not say."
    ),
)


_BLIND_NOTES = (
    "There are no references: nothing is scored, and capabilities are unknown. Answers can be collected, checked and exported.",
    "Answer formats are those that the requests name (answer_format); all others are asked for as free text.",
)
_FACETS = ("capability", "primary", "distribution", "clinical", "answer_format", "context", "procedure_type")
_BLIND_FACETS = ("answer_format", "context", "procedure_type")
_KNOWN_TAGS = {*_FACETS, "track", "secondary", "capabilities"}
_MAX_VALUES = 24  # a field with more values identifies questions rather than groups them


class _Reader(core.BenchmarkReader):
    name = "focus"
    summary = READER_SUMMARY
    sources = Path(__file__).parents[1] / "sources.yaml"
    prompts = Path(__file__).parent / "prompts"
    tracks = tuple(TRACKS)
    briefing = core.Briefing({_ANY: FOREIGN_OBJECT, **OBJECTS}, own_clock=True)
    rubric_judge = "panel"  # up to three models decide by majority; until then free text is unscored, and shown so

    def __init__(self, track: str = "procedure") -> None:
        self._track = track

    def on_track(self, track: str) -> core.BenchmarkReader:
        if track not in TRACKS:
            raise core.InputError("--track", found=repr(track), expected=f"one of {', '.join(TRACKS)}")
        return _Reader(track)

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> core.Benchmark:
        """Reads `requests.json` and `references.json` below `data`, or the published rows there (see `read_rows`).

        Without references nothing can be scored, and formats are known only where requests name them. Further fields of
        both files (a centre, a decision's impact) become tags. The length of what is shown must fit the track. Videos
        are below `media` under their videoID.
        """
        del seed  # nothing is random
        requests, references = read_folder(data, self._track)
        keys = {reference.qID: reference for reference in references}
        if keys:
            _check_pairs(data, requests, keys)
        classes = _classes(references)
        about, track = core.read_about(data), TRACKS[self._track]
        items = tuple(_item(request, keys.get(request.qID), self._track, classes, data) for request in requests)
        benchmark = core.Benchmark(
            name=self.name,
            title=f"FOCUS, {self._track} track",
            items=items,
            metrics=(PANEL_ACCURACY,),
            headline=PANEL_ACCURACY.name,
            facets=(*(_FACETS if keys else _BLIND_FACETS), *_further(items)),
            buckets=("capability", "distribution") if keys else (),
            relevance="clinical" if keys else "",
            media_root=media,
            budget_s=track.budget_s,
            failed=core.FailedPolicy.WRONG,
            abstain="forbid",
            notes=(*_notes(about), *_unknown_labels(references)) if keys else _BLIND_NOTES,
        )
        return core.own_benchmark(benchmark, about, data)

    def read_recorded(self, path: Path, benchmark: core.Benchmark) -> core.RecordedAnswers:
        return read_recorded(path, benchmark)

    def media_help(self, data: Path, missing: Sequence[str]) -> str:
        del data
        return (
            f"The videos of FOCUS ({len(missing)} are missing) come from the challenge's organisers after "
            "registration; put them, named by their videoID, into the media folder."
        )


READER = _Reader()


def read_folder(data: Path, track: str) -> tuple[Sequence[NativeRequest], Sequence[NativeReference]]:
    """Requests and references; no references where the folder has none, as for participants."""
    if not (data / "requests.json").exists():
        rows = read_rows(data, track)
        if rows is not None:
            return rows
    requests = read_requests(data)
    if not requests:
        raise core.InputError(data / "requests.json", found="no question", expected="one or more")
    if not (data / "references.json").exists():
        return requests, ()
    references = read_references(data)
    if not references:
        raise core.InputError(data / "references.json", found="no reference", expected="one for each question")
    return requests, references


def _notes(about: core.AboutFiles | None) -> tuple[str, ...]:
    """The notes, with the commands for the benchmark's name."""
    name = about.name if about is not None and about.name else _Reader.name
    return tuple(note.replace("{benchmark}", name) for note in _NOTES)


def _check_pairs(data: Path, requests: Sequence[NativeRequest], keys: dict[str, NativeReference]) -> None:
    asked = {request.qID for request in requests}
    for file, lonely, other in (
        ("requests.json", asked - keys.keys(), "references.json"),
        ("references.json", keys.keys() - asked, "requests.json"),
    ):
        if lonely:
            raise core.InputError(data / file, found=min(lonely), expected=f"the same question in {other}")


def _classes(references: Sequence[NativeReference]) -> tuple[str, ...]:
    """The known classes and those in the references; of several spellings the first one."""
    known = {name.lower(): name for name in OBJECTS}
    for reference in references:
        if reference.format == "fo_class":
            for part in bare(reference.answer).split(","):
                known.setdefault(part.strip().lower(), part.strip())
    return tuple(sorted(name for folded, name in known.items() if folded not in {"none", ""}))


def _unknown_labels(references: Sequence[NativeReference]) -> tuple[str, ...]:
    """A note on secondary labels that are no capability. Like the toolkit, the reader leaves them out."""
    unknown = [(key.qID, label) for key in references for label in key.secondaries if leaf_of(label or "") is None]
    if not unknown:
        return ()
    names = list(dict.fromkeys(repr(label) if label is not None else "null" for _, label in unknown))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    questions = core.count_of(len({name for name, _ in unknown}), "question")
    return (f"Left out: unknown secondary capabilities of {questions} ({', '.join(names[:3])}{more}).",)


def _item(
    request: NativeRequest, key: NativeReference | None, track: str, classes: tuple[str, ...], data: Path
) -> core.Item:
    file_location = f"question {request.qID}"
    _check_shown(request, track, core.FileLocation(data / "requests.json", file_location))
    location = core.FileLocation(data / ("requests.json" if key is None else "references.json"), file_location)
    named = key or without_reference(request)
    question = FormQuestion(named.format_kwargs, named.options, classes)
    form = _form(named, question, location)
    options = question.options if isinstance(form, ChoiceFormat) else ()
    text = request.question.removesuffix(lettered(options)).rstrip() if options else request.question
    end = max(request.end_time, request.start_time + _FRAME_S)
    media = (core.VideoClip(source=request.videoID, start=request.start_time, end=end),)
    evidence = None if key is None else key.evidence
    if evidence is not None and (fault := evidence.fault(media)):
        raise location.error("evidence of something else", fault, field="evidence")
    return core.Item(
        id=request.qID,
        group=request.videoID,
        question=f"{text}\n(Procedure: {request.procedure_type}. Asked at {core.clock_text(request.end_time)}.)",
        media=media,
        options=options,
        answer=form,
        reference=None if key is None else _key(form, key, options, location),
        tags=further_fields(request) | _tags(request, key, track, location),
        evidence=evidence,
    )


def _check_shown(request: NativeRequest, track: str, location: core.FileLocation) -> None:
    """Raises `InputError` unless the track allows what is shown: one frame, a segment, or the procedure from its start."""
    shown, rules = request.end_time - request.start_time, TRACKS[track]
    field, found, expected = "end_time", f"{request.end_time:g} s", ""
    if shown < 0 or (track != "frame" and shown == 0):
        expected = f"a time after start_time {request.start_time:g} s"
    elif shown > rules.most_s + _ROUNDING_S:
        found = f"{shown:g} s after start_time"
        expected = "one frame" if track == "frame" else f"at most {rules.most_s:g} s"
    elif rules.from_start and request.start_time > 0:
        field, found, expected = "start_time", f"{request.start_time:g} s", "0, the start of the video"
    if expected:
        raise location.error(found, f"{expected} (track {track})", field=field)


def _key(
    form: AnswerFormat, key: NativeReference, options: tuple[str, ...], location: core.FileLocation
) -> core.Reference:
    try:
        return core.Reference(answer=form.parse(key.answer, options))
    except core.ParseError as error:
        raise location.error(repr(error.found)[:80], error.expected, field="answer") from error


def _form(key: NativeReference, question: FormQuestion, location: core.FileLocation) -> AnswerFormat:
    if key.format not in FORMATS:
        raise location.error(repr(key.format), f"one of {', '.join(FORMATS)}", field="format")
    known, make = FORMATS[key.format]
    try:
        if unknown := sorted(key.format_kwargs.keys() - set(known)):
            raise TypeError(f"unknown: {', '.join(unknown)}")
        form = make(question)
    except (ValidationError, TypeError, ValueError, OverflowError) as error:
        expected = f"the arguments of the format {key.format} ({', '.join(known) or 'none'})"
        raise location.error(repr(key.format_kwargs)[:80], expected, field="format_kwargs") from error
    if isinstance(form, ChoiceFormat) and len(question.options) > MOST_OPTIONS:
        expected = f"at most {MOST_OPTIONS}, a letter for each"
        raise location.error(f"{len(question.options)} options", expected, field="options")
    return form


def _tags(
    request: NativeRequest, key: NativeReference | None, track: str, location: core.FileLocation
) -> dict[str, core.TagValue]:
    asked: dict[str, core.TagValue] = {
        "track": track,
        "context": TRACKS[track].context(request.end_time - request.start_time),
        "procedure_type": request.procedure_type,
    }
    if key is None:
        return asked | {"answer_format": format_named(request)}
    primary = leaf_of(key.primary)
    if primary is None:
        raise location.error(f"the capability {key.primary!r}", f"one of {', '.join(CAPABILITIES)}")
    secondaries = [leaf for label in key.secondaries if (leaf := leaf_of(label or "")) is not None]
    return (
        further_fields(key)
        | asked
        | {
            "capability": GROUP_OF[primary],
            "primary": primary,
            "secondary": tuple(dict.fromkeys(secondaries)),
            "capabilities": tuple(dict.fromkeys(GROUP_OF[leaf] for leaf in (primary, *secondaries))),
            "distribution": "out" if key.ood else "in",
            "clinical": key.clinical,
            "answer_format": key.format,
        }
    )


def _further(items: Sequence[core.Item]) -> tuple[str, ...]:
    """The further fields with few values, by which figures can be split."""
    values: dict[str, set[core.TagValue]] = {}
    for item in items:
        for name in item.tags.keys() - _KNOWN_TAGS:
            values.setdefault(name, set()).add(item.tags[name])
    return tuple(sorted(name for name, some in values.items() if 2 <= len(some) <= _MAX_VALUES))
