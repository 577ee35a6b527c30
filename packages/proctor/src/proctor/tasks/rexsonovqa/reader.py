"""From ReXSonoVQA's files to a benchmark."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from proctor import core
from proctor.core.formats import ChoiceFormat, FreeTextFormat, option_letters
from proctor.judges import VERDICT_METRICS
from proctor.tasks.rexsonovqa import READER_SUMMARY
from proctor.tasks.rexsonovqa.native import (
    KINDS,
    NativeQuestion,
    NativeVideo,
    item_id,
    kinds_in,
    metadata_for,
    read_metadata,
    read_questions,
    read_recorded,
    split_options,
)
from proctor.tasks.rexsonovqa.published import published_table

QUESTION_TYPES = {
    "Type1_ActionGoalReasoning": "1 action-goal",
    "Type2_ArtifactResolutionOptimization": "2 artifact-optimization",
    "Type3_ProcedureContextPlanning": "3 context-planning",
}
DURATION_BINS = ((5.0, "0-5 s"), (10.0, "5-10 s"), (20.0, "10-20 s"), (float("inf"), ">20 s"))

SPLIT = "split"
"""The tag of the part that a question of an exported project belongs to."""

_TOLERANCE_S = 0.5  # times come from a transcript; two published ones end up to 0.35 s after their video
_NOTES = (
    "Options are shuffled once by the recorded seed, the same for every system (published: key A in 110 of 249).",
    "Published end times up to 0.5 s beyond the video are cut to its end.",
    "The clinical category is assigned by Proctor from the video's title; the release does not state it.",
)
_NOTE_REPAIRED = "Wrong options are right answers of other questions of their pool, to be confirmed by a clinician."
_NOTES_REPAIRED = (_NOTE_REPAIRED, "Published figures are those of other options.", *_NOTES[1:])
_OTHER = "other"


class _Reader(core.BenchmarkReader):
    name = "rexsonovqa"
    summary = READER_SUMMARY
    sources = Path(__file__).parents[1] / "sources.yaml"
    prompts = Path(__file__).parent / "prompts"
    rubric_judge = "three-level"
    recorded_in_folders = True

    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> core.Benchmark:
        """Reads `benchmark_questions/` and `video_metadata_new.json` below `data`; videos are below `media`, named as the
        question files or as in the metadata. A project's export (with `about.json`) is read as it was written: under its own
        name, options in their order, with its categories, groups and parts."""
        metadata, about = read_metadata(data), core.read_about(data)
        own = about is not None
        categories = {} if own else _categories()
        excerpts: dict[str, core.Excerpt] = {}
        items: list[core.Item] = []
        for kind in KINDS:
            for file, video, questions in read_questions(data, kind):
                name, source = metadata_for(video, metadata, file)
                excerpts[video] = core.Excerpt(
                    start=source.start_time,
                    end=source.end_time,
                    url=source.youtube_url,
                    also="" if name == video else name,
                    whole=own,
                )
                seen: dict[tuple[str, float, float], int] = {}
                for number, question in enumerate(questions, start=1):
                    key = (question.question, question.time_start, question.time_end)
                    location = core.FileLocation(file, f"item {number}")
                    if key in seen:
                        raise location.error(f"item {seen[key]} again", "no duplicates")
                    seen[key] = number
                    tags = _tags(question, kind, source.category or categories.get(video, _OTHER), location)
                    asked = item_id(video, kind, number)
                    items.append(_item(asked, video, question, source, tags, None if own else seed, location))
        repaired = any(core.OPTION_POOL in item.tags for item in items)
        parted = any(SPLIT in item.tags for item in items)
        benchmark = core.Benchmark(
            name=self.name,
            title="ReXSonoVQA with repaired options" if repaired else "ReXSonoVQA",
            items=tuple(items),
            metrics=(core.ACCURACY, *VERDICT_METRICS),
            headline=core.ACCURACY.name,
            facets=("question_type", "duration", "category", *([SPLIT] if parted else [])),
            only={"keep": True},
            media_root=media,
            seeds={"options": seed} if about is None or about.seed is None else {"project": about.seed},
            notes=_notes(data, own=own, repaired=repaired),
            excerpts=excerpts,
            published=None if repaired else published_table(),
        )
        return core.own_benchmark(benchmark, about, data)

    def read_recorded(self, path: Path, benchmark: core.Benchmark) -> core.RecordedAnswers:
        return read_recorded(path, benchmark)

    def media_help(self, data: Path, missing: Sequence[str]) -> str:
        """A download command for each missing video."""
        metadata = read_metadata(data)
        lines = [
            "Fetch and trim each video with yt-dlp (pip install yt-dlp; needs ffmpeg), into the media folder",
            "(whole videos will do as well, with --media-as full):",
        ]
        for video in missing:
            _, source = metadata_for(video, metadata, data / "video_metadata_new.json")
            section = f"*{max(0.0, source.start_time):g}-{source.end_time:g}"
            words = ["yt-dlp", "-f", "mp4", "--force-keyframes-at-cuts", "--download-sections", section]
            lines.append(f"  {shlex.join([*words, '-o', f'{video}.mp4', source.youtube_url])}")
        return "\n".join(lines)


READER = _Reader()


def _notes(data: Path, *, own: bool, repaired: bool) -> tuple[str, ...]:
    """What readers of the numbers should know; of the release, also which kind of question it lacks."""
    if own:
        return (_NOTE_REPAIRED,) if repaired else ()
    lacking = [_KIND_NAMES[kind] for kind in KINDS if kind not in kinds_in(data)]
    return (*(_NOTES_REPAIRED if repaired else _NOTES), *(f"There are no {kind} in this folder." for kind in lacking))


_KIND_NAMES = {"mcq": "choices", "free": "free responses"}


def _item(
    name: str,
    video: str,
    question: NativeQuestion,
    source: NativeVideo,
    tags: dict[str, core.TagValue],
    seed: int | None,
    location: core.FileLocation,
) -> core.Item:
    """A question as an item. Options are shuffled by the seed; they stay in their order without one."""
    stem, listed = split_options(question.question)
    reference: str = question.answer
    options: tuple[str, ...] = ()
    if tags["format"] == "choice":
        options, reference = _shuffled(name, question, listed, seed, location)
    return core.Item(
        id=name,
        group=source.group or video,
        question=stem,
        media=(_clip(video, question, source, location),),
        options=options,
        answer=ChoiceFormat() if options else FreeTextFormat(),
        reference=core.Reference(answer=reference, rationale=question.groundtruth),
        tags=tags,
    )


def _shuffled(
    name: str, question: NativeQuestion, listed: list[str], seed: int | None, location: core.FileLocation
) -> tuple[tuple[str, ...], str]:
    letters = option_letters(len(listed))
    if len(listed) < 2 or len(set(listed)) < len(listed):
        found, expected = core.count_of(len(set(listed)), "different option"), "two or more lines 'A. …', all different"
        raise location.error(found, expected, field="question")
    if question.answer not in letters:
        raise location.error(repr(question.answer), f"one of {', '.join(letters)}", field="answer")
    if question.option_pool or seed is None:
        return tuple(listed), question.answer
    # sorted first, so that the order does not depend on the published one, whose keys are unbalanced
    by_text = sorted(listed)
    order = core.generator(seed, "options", name).permutation(len(by_text))
    options = tuple(by_text[index] for index in order)
    return options, letters[options.index(listed[letters.index(question.answer)])]


def _clip(video: str, question: NativeQuestion, source: NativeVideo, location: core.FileLocation) -> core.VideoClip:
    if question.time_end <= question.time_start:
        expected = f"a time after time_start {question.time_start:g} s"
        raise location.error(f"{question.time_end:g} s", expected, field="time_end")
    if question.time_end > source.seconds + _TOLERANCE_S:
        expected = f"a time within the video's {source.seconds:g} s"
        raise location.error(f"{question.time_end:g} s", expected, field="time_end")
    roi = source.roi
    try:
        region = core.Region(x=roi.x_prop, y=roi.y_prop, width=roi.w_prop, height=roi.h_prop)
    except ValidationError as error:
        metadata = core.FileLocation(Path(location.file).parents[2] / "video_metadata_new.json", f"video {video!r}")
        found = f"x {roi.x_prop:g}, y {roi.y_prop:g}, width {roi.w_prop:g}, height {roi.h_prop:g}"
        raise metadata.error(found, "a region inside 0 to 1", field="roi") from error
    return core.VideoClip(
        source=video, start=question.time_start, end=min(question.time_end, source.seconds), region=region
    )


def _tags(question: NativeQuestion, kind: str, category: str, location: core.FileLocation) -> dict[str, core.TagValue]:
    if question.question_type not in QUESTION_TYPES:
        expected = f"one of {', '.join(QUESTION_TYPES)}"
        raise location.error(repr(question.question_type), expected, field="question_type")
    seconds = question.time_end - question.time_start
    return {
        "keep": question.keep,
        "format": "choice" if kind == "mcq" else "free_text",
        "question_type": QUESTION_TYPES[question.question_type],
        "duration": next(name for limit, name in DURATION_BINS if seconds < limit),
        "category": category,
        "time_start": question.time_start,
        "time_end": question.time_end,
        **({core.OPTION_POOL: question.option_pool} if question.option_pool else {}),
        **({SPLIT: question.split} if question.split else {}),
    }


def _categories() -> dict[str, str]:
    text = files(__package__).joinpath("categories.json").read_text(encoding="utf-8")
    return {video: category for category, videos in json.loads(text).items() for video in videos}
