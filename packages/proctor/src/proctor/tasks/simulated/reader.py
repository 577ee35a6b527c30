"""The reader of `simulated`: rendered procedures, with questions that their pixels answer.

A unit test for models, not a clinical benchmark: its folder holds `manifest.json`, `questions.json`,
`videos/`, and the ground truth (`events/`, `tracks/`), which systems don't see.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from proctor import core
from proctor.core.formats import MOST_OPTIONS, AnswerFormat, ChoiceFormat, OrderingFormat, option_letters
from proctor.metrics.ordering import NEIGHBOURS, RUN_METRICS
from proctor.tasks.simulated import READER_SUMMARY
from proctor.tracks import deal_options

FORMAT_VERSION = 1
"""The version of the folder's format."""

_EDGE_S = 0.05  # a clip may end this much later than its video, since durations are rounded to frames


class _Strict(core.FrozenModel):
    model_config = ConfigDict(strict=True)


class SimulatedVideo(_Strict):
    """One video: its id, its file below the folder and its duration."""

    id: str = Field(min_length=1)
    file: str = Field(min_length=1)
    seconds: float = Field(gt=0)


class SimulatedManifest(_Strict):
    """`manifest.json`: the videos, the simulator and its seed."""

    kind: Literal["simulated procedures"]
    format_version: int = Field(ge=1)
    simulated: Literal[True]
    simulator_version: str
    seed: int
    fps: int = Field(gt=0)
    width: int = Field(gt=0)
    height: int = Field(gt=0)
    note: str
    videos: tuple[SimulatedVideo, ...] = Field(min_length=1)


class SimulatedQuestion(_Strict):
    """One entry of `questions.json`; only `start` to `end` and `region` of the video are shown."""

    id: str = Field(min_length=1)
    video: str
    question: str = Field(min_length=1)
    format: AnswerFormat
    options: tuple[str, ...] = Field(default=(), max_length=MOST_OPTIONS)
    answer: JsonValue
    question_type: str = Field(min_length=1)
    rule: str = Field(min_length=1)
    objects: int = Field(ge=0)
    start: float = Field(default=0.0, ge=0)
    end: float | None = None
    region: core.Region | None = None
    evidence: core.Evidence | None = Field(default=None, exclude_if=lambda evidence: evidence is None)


class QuestionFile(_Strict):
    """The content of `questions.json`; entries are validated one by one, so that an error names its item."""

    questions: list[JsonValue] = Field(min_length=1)


class _Reader(core.BenchmarkReader):
    name = "simulated"
    summary = READER_SUMMARY
    sources = Path(__file__).parents[1] / "sources.yaml"

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> core.Benchmark:
        """Reads `manifest.json` and `questions.json`; options are shuffled by `seed`."""
        manifest = _read_manifest(data / "manifest.json")
        path = data / "questions.json"
        videos = {video.id: video for video in manifest.videos}
        questions = _read_questions(path, videos)
        dealt = _deal(questions, core.generator(seed, "simulated", str(manifest.seed), "options"))
        items = tuple(_item(question, videos[question.video], dealt) for question in questions)
        return core.Benchmark(
            name=self.name,
            title="Simulated procedures (rendered, not real)",
            items=items,
            metrics=(core.ACCURACY, *RUN_METRICS),
            headline=core.ACCURACY.name,
            facets=("format", "question_type", "objects", "duration"),
            buckets=("question_type",),
            conditions=("video", "text-only", "black", "shuffled"),
            media_root=media or data,
            seeds={"simulation": manifest.seed, "options": seed},
            notes=(f"Simulated, not real: {manifest.note}",),
            simulated=True,
        )

    def media_help(self, data: Path, missing: Sequence[str]) -> str:
        """How to get missing videos: they belong to the folder, which can be simulated again."""
        manifest = _read_manifest(data / "manifest.json")
        return (
            f"Not below {data}: {len(missing)} of {core.count_of(len(manifest.videos), 'video')}. Videos are written together "
            f"with the questions; simulate the folder again with seed {manifest.seed} (proctor.tasks.simulated)."
        )


READER: core.BenchmarkReader = _Reader()

_FOLDER = "a folder of simulated procedures"


def _read_manifest(path: Path) -> SimulatedManifest:
    version = core.read_model(path, _Versioned, _FOLDER).format_version
    if version > FORMAT_VERSION:
        found = f"{version}, written by a newer version of Proctor"
        raise core.InputError(path, "field 'format_version'", found=found, expected=f"at most {FORMAT_VERSION}")
    manifest = core.read_model(path, SimulatedManifest, _FOLDER)
    for field, values in (
        ("id", [video.id for video in manifest.videos]),
        ("file", [video.file for video in manifest.videos]),
    ):
        twice = [value for value, times in Counter(values).items() if times > 1]
        if twice:
            raise core.InputError(path, f"videos, field {field!r}", found=f"{twice[0]!r} twice", expected="each once")
    for video in manifest.videos:
        file = PurePosixPath(video.file)
        if file.is_absolute() or ".." in file.parts:
            location = core.FileLocation(path, f"video {video.id!r}")
            raise location.error(repr(video.file), "a file below the folder", field="file")
    return manifest


class _Versioned(BaseModel):
    format_version: int = FORMAT_VERSION


def _read_questions(path: Path, videos: dict[str, SimulatedVideo]) -> list[SimulatedQuestion]:
    questions: list[SimulatedQuestion] = []
    known: set[str] = set()
    for number, raw in enumerate(core.read_model(path, QuestionFile, _FOLDER).questions, start=1):
        given = raw.get("id") if isinstance(raw, dict) else None
        location = f"item {given!r}" if isinstance(given, str) else f"item number {number}"
        try:
            question = SimulatedQuestion.model_validate_json(json.dumps(raw))
        except ValidationError as error:
            raise core.refusal(path, location, error) from error
        if question.id in known:
            raise core.InputError(path, f"{location}, field 'id'", found="it twice", expected="each id once")
        known.add(question.id)
        _check_question(core.FileLocation(path, location), question, videos)
        questions.append(question)
    return questions


def _check_question(
    location: core.FileLocation, question: SimulatedQuestion, videos: dict[str, SimulatedVideo]
) -> None:
    video = videos.get(question.video)
    if video is None:
        raise location.error(repr(question.video), f"one of {', '.join(videos)}", field="video")
    end = video.seconds if question.end is None else question.end
    if end > video.seconds + _EDGE_S:
        raise location.error(f"{end:g} s", f"at most the video's {video.seconds:g} s", field="end")
    if question.start >= end:
        raise location.error(f"{question.start:g} s", f"before the end at {end:g} s", field="start")
    if question.evidence is not None and (fault := question.evidence.fault(_media(question, video))):
        raise location.error("evidence of other media", fault, field="evidence")
    try:
        answer = question.format.check(question.answer, question.options)
    except core.ParseError as error:
        raise location.error(repr(error.found), error.expected, field="answer") from error
    if isinstance(question.format, ChoiceFormat) and len(set(question.options)) != len(question.options):
        raise location.error("an option twice", "each option once", field="options")
    if question.format.kind == "timestamps" and isinstance(answer, list):
        late = [time for time in answer if isinstance(time, float) and not question.start <= time <= end]
        if late:
            expected = f"times within the clip, {question.start:g} to {end:g} s"
            raise location.error(f"{late[0]:g} s", expected, field="answer")


def _deal(questions: list[SimulatedQuestion], rng: np.random.Generator) -> dict[str, tuple[list[str], str]]:
    choices = [question for question in questions if isinstance(question.format, ChoiceFormat)]
    letters = option_letters(MOST_OPTIONS)
    right = [letters.index(str(question.answer)) for question in choices]
    dealt = deal_options([question.options for question in choices], right, rng)
    return {question.id: deal for question, deal in zip(choices, dealt, strict=True)}


def _item(question: SimulatedQuestion, video: SimulatedVideo, dealt: dict[str, tuple[list[str], str]]) -> core.Item:
    end = video.seconds if question.end is None else question.end
    options, answer = dealt.get(question.id, (list(question.options), question.answer))
    tags: dict[str, core.TagValue] = {
        "format": question.format.kind,
        "question_type": question.question_type,
        "rule": question.rule,
        "objects": _count_bin(question.objects),
        "duration": _duration_bin(end - question.start),
    }
    if isinstance(question.format, OrderingFormat):
        tags[NEIGHBOURS] = len(question.format.labels) - 1
    return core.Item(
        id=question.id,
        group=question.video,
        question=question.question,
        answer=question.format,
        media=_media(question, video),
        options=tuple(options),
        reference=core.Reference(answer=question.format.check(answer, options)),
        tags=tags,
        evidence=question.evidence,
    )


def _media(question: SimulatedQuestion, video: SimulatedVideo) -> tuple[core.Media, ...]:
    return (core.VideoClip(source=video.file, start=question.start, end=question.end, region=question.region),)


def _count_bin(objects: int) -> str:
    return "up to 4" if objects <= 4 else "5 or 6" if objects <= 6 else "7 and more"


def _duration_bin(seconds: float) -> str:
    bounds = (15, 30, 60)
    low = max((bound for bound in bounds if seconds > bound), default=0)
    high = min((bound for bound in bounds if seconds <= bound), default=None)
    return f"over {low} s" if high is None else f"{low}–{high} s"
