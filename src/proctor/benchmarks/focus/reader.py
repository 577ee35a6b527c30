"""From the toolkit's files to a benchmark, and from a submission to recorded answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue, ValidationError

from proctor.benchmarks.focus.forms import ARGUMENTS, FORMATS, Question, lettered
from proctor.benchmarks.focus.native import NativeReference, NativeRequest, read_references, read_requests
from proctor.benchmarks.focus.official import MENDED, figures
from proctor.benchmarks.focus.recorded import read_recorded
from proctor.benchmarks.focus.rows import read_rows
from proctor.benchmarks.focus.submission import SUBMISSIONS, write_submission
from proctor.benchmarks.focus.taxonomy import CAPABILITIES, FOREIGN_OBJECT, GROUP_OF, OBJECTS, leaf_of
from proctor.core import (
    Answer,
    Benchmark,
    BenchmarkReader,
    Briefing,
    FailedPolicy,
    InputError,
    Item,
    OfficialFigure,
    ParseError,
    RecordedAnswers,
    Reference,
    TagValue,
    VideoClip,
)
from proctor.core.formats import AnswerFormat, ChoiceFormat, bare
from proctor.judges import PANEL_ACCURACY

__all__ = ["READER", "TRACKS", "Track"]

_ANY = "Foreign object"
_FRAME_S = 0.04  # a frame is the clip of one picture at 25 frames a second


@dataclass(frozen=True)
class Track:
    """A track: seconds allowed for a question, and where a short, medium and long context part (seconds)."""

    budget_s: float
    medium_from_s: float
    long_from_s: float

    def context(self, duration_s: float) -> str:
        """The length of what is to be watched, in words."""
        if duration_s >= self.long_from_s:
            return "long"
        return "medium" if duration_s >= self.medium_from_s else "short"


TRACKS = {
    "frame": Track(5.0, float("inf"), float("inf")),
    "segment": Track(15.0, 60.0, 180.0),
    "procedure": Track(30.0, 600.0, 1800.0),
}

_NOTES = (
    (
        "Free text is right where most judges of a panel say so (proctor score focus). A tie, or a vote that is missing "
        "and would decide, leaves an answer unresolved: neither right nor wrong, and counted beside the figures. The "
        "challenge's document names the majority and says nothing of either."
    ),
    "A late, missing or unreadable answer is wrong, as the challenge has it; scores carry the cause as their label.",
    (
        "Figures are means over questions with intervals over whole videos. The toolkit's own (mean of the videos' "
        "means, percentile intervals of a two-level bootstrap): proctor results focus --as official."
    ),
    (
        "Answers are read as orena-focus 0.4.0 reads them. Multiple choice with its options in the file and patterns "
        "are marked by code, where the toolkit asks a judge."
    ),
    (
        "The length of the context is short below 10, long from 30 minutes (segments: 1 and 3); the challenge's document "
        "does not say."
    ),
)


class _Reader:
    name = "focus"
    summary = "FOCUS: foreign objects in surgical video, on a frame, a segment or a whole procedure (--track)"

    def __init__(self, track: str = "procedure") -> None:
        self._track = track

    @property
    def tracks(self) -> tuple[str, ...]:
        """The tracks; without a choice it is the last."""
        return tuple(TRACKS)

    def on_track(self, track: str) -> BenchmarkReader:
        """The reader of one track."""
        if track not in TRACKS:
            raise InputError(None, "--track", found=repr(track), expected=f"one of {', '.join(TRACKS)}")
        return _Reader(track)

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        """Reads `requests.json` and `references.json` below `data`, or the published rows there (see `read_rows`);
        videos lie below `media` by their videoID."""
        del seed  # nothing is drawn
        rows = None if (data / "requests.json").exists() else read_rows(data, self._track)
        requests, references = rows or (read_requests(data), read_references(data))
        keys = {reference.qID: reference for reference in references}
        _check_pairs(data, requests, keys)
        classes = _classes(references)
        track = TRACKS[self._track]
        return Benchmark(
            name=self.name,
            title=f"FOCUS, {self._track} track",
            items=tuple(
                _item(request, keys[request.qID], self._track, classes, data) for request in requests
            ),
            metrics=(PANEL_ACCURACY,),
            headline=PANEL_ACCURACY.name,
            facets=(
                "capability",
                "primary",
                "distribution",
                "clinical",
                "answer_format",
                "context",
                "procedure_type",
            ),
            buckets=("capability", "distribution"),
            relevance="clinical",
            media_root=media,
            budget_s=track.budget_s,
            failed=FailedPolicy.WRONG,
            notes=_NOTES,
        )

    def read_recorded(self, path: Path, benchmark: Benchmark) -> RecordedAnswers:
        """Reads `responses.json` or `answer.json`."""
        return read_recorded(path, benchmark)

    @property
    def submission_formats(self) -> tuple[str, ...]:
        """The container's `answer.json`, and the toolkit's `responses.json`, which has latencies."""
        return SUBMISSIONS

    def write_submission(self, form: str, answers: Sequence[Answer], file: Path) -> int:
        """One of the two files; what is read from it again are the same answers."""
        return write_submission(form, answers, file)

    def rubric_judge(self) -> str | None:
        """Up to three models decide by majority; until then free text is unmarked, and shown so."""
        return "panel"

    def briefing(self) -> Briefing:
        """The classes of foreign objects with their definitions; questions name times by the video's own clock."""
        return Briefing({_ANY: FOREIGN_OBJECT, **OBJECTS}, own_clock=True)

    def figures(
        self,
        groups: Sequence[str],
        tags: Sequence[dict[str, JsonValue]],
        right: Sequence[float],
        late: int,
        *,
        official: bool,
        draws: int,
        seed: int,
    ) -> list[OfficialFigure]:
        """The toolkit's summary, as it is or mended."""
        return figures(groups, tags, right, late, official=official, draws=draws, seed=seed)

    def mended(self) -> tuple[str, ...]:
        """What is mended in it."""
        return MENDED

    def media_help(self, data: Path, missing: Sequence[str]) -> str:
        """Where the videos come from."""
        del data
        return (
            f"The videos of FOCUS ({len(missing)} are missing) come from the challenge's organisers after "
            "registration; put them, named by their videoID, into the media folder."
        )


READER = _Reader()


def _check_pairs(data: Path, requests: Sequence[NativeRequest], keys: dict[str, NativeReference]) -> None:
    asked = {request.qID for request in requests}
    if not asked:
        raise InputError(data / "requests.json", found="no question", expected="one or more")
    for file, lonely, other in (
        ("requests.json", asked - keys.keys(), "references.json"),
        ("references.json", keys.keys() - asked, "requests.json"),
    ):
        if lonely:
            raise InputError(data / file, found=min(lonely), expected=f"the same question in {other}")


def _classes(references: Sequence[NativeReference]) -> tuple[str, ...]:
    """The known classes and those that only these references name; of several spellings the first one."""
    known = {name.lower(): name for name in OBJECTS}
    for reference in references:
        if reference.format == "fo_class":
            for part in bare(reference.answer).split(","):
                known.setdefault(part.strip().lower(), part.strip())
    return tuple(sorted(name for folded, name in known.items() if folded not in {"none", ""}))


def _item(
    request: NativeRequest, key: NativeReference, track: str, classes: tuple[str, ...], data: Path
) -> Item:
    place = f"question {request.qID}"
    if request.end_time < request.start_time or (track != "frame" and request.end_time == request.start_time):
        raise InputError(
            data / "requests.json",
            f"{place}, field 'end_time'",
            found=f"{request.end_time:g} s",
            expected=f"a time after start_time {request.start_time:g} s",
        )
    question = Question(key.format_kwargs, key.options, classes)
    form = _form(key, question, data, place)
    options = question.options if isinstance(form, ChoiceFormat) else ()
    text = request.question.removesuffix(lettered(options)).rstrip() if options else request.question
    try:
        answer = form.parse(key.answer, options)
    except ParseError as error:
        raise InputError(
            data / "references.json",
            f"{place}, field 'answer'",
            found=repr(error.found)[:80],
            expected=error.expected,
        ) from error
    return Item(
        id=request.qID,
        group=request.videoID,
        question=f"{text}\n(Procedure: {request.procedure_type}. Asked at {_clock(request.end_time)}.)",
        media=(
            VideoClip(
                source=request.videoID,
                start=request.start_time,
                end=max(request.end_time, request.start_time + _FRAME_S),
            ),
        ),
        options=options,
        answer=form,
        reference=Reference(answer=answer),
        tags=_tags(request, key, track, data, place),
    )


def _form(key: NativeReference, question: Question, data: Path, place: str) -> AnswerFormat:
    if key.format not in FORMATS:
        raise InputError(
            data / "references.json",
            f"{place}, field 'format'",
            found=repr(key.format),
            expected=f"one of {', '.join(FORMATS)}",
        )
    known = ARGUMENTS[key.format]
    try:
        if unknown := sorted(key.format_kwargs.keys() - set(known)):
            raise TypeError(f"unknown: {', '.join(unknown)}")
        return FORMATS[key.format](question)
    except (ValidationError, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            data / "references.json",
            f"{place}, field 'format_kwargs'",
            found=repr(key.format_kwargs)[:80],
            expected=f"the arguments of the format {key.format} ({', '.join(known) or 'none'})",
        ) from error


def _tags(
    request: NativeRequest, key: NativeReference, track: str, data: Path, place: str
) -> dict[str, TagValue]:
    leaves = [leaf_of(label) for label in (key.primary, *key.secondaries)]
    for label, leaf in zip((key.primary, *key.secondaries), leaves, strict=True):
        if leaf is None:
            raise InputError(
                data / "references.json",
                place,
                found=f"the capability {label!r}",
                expected=f"one of {', '.join(CAPABILITIES)}",
            )
    named = [leaf for leaf in leaves if leaf is not None]
    primary, *secondaries = named
    return {
        "track": track,
        "capability": GROUP_OF[primary],
        "primary": primary,
        "secondary": tuple(dict.fromkeys(secondaries)),
        "capabilities": tuple(dict.fromkeys(GROUP_OF[leaf] for leaf in named)),
        "distribution": "out" if key.ood else "in",
        "clinical": key.clinical,
        "answer_format": key.format,
        "context": TRACKS[track].context(request.end_time - request.start_time),
        "procedure_type": request.procedure_type,
    }


def _clock(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02d}:{minute:02d}:{second:02d}"
