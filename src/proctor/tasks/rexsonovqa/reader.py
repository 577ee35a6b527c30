"""From ReXSonoVQA's files to a benchmark, with the paper's own figures; and copies of the release with repaired options."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from proctor import core
from proctor.core.formats import ChoiceFormat, FreeTextFormat, option_letters
from proctor.judges import RUBRIC_BY_ERROR_TYPE, RUBRIC_LABELS, VERDICT_METRICS
from proctor.tasks.rexsonovqa import READER_SUMMARY
from proctor.tasks.rexsonovqa.native import (
    KINDS,
    METADATA,
    NativeQuestion,
    NativeVideo,
    item_id,
    kinds_in,
    metadata_for,
    options_at,
    read_metadata,
    read_questions,
    read_recorded,
    split_options,
)

if TYPE_CHECKING:
    from proctor.results import Result

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

    verified_files = ("benchmark_questions", "results")
    exchange_within = ("question_type", "category")

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

    def write_choices(self, data: Path, out: Path, items: Mapping[str, core.Item | None]) -> None:
        write_choices(data, out, items)

    def read_recorded(self, path: Path, benchmark: core.Benchmark) -> core.RecordedAnswers:
        return read_recorded(path, benchmark)

    async def verify(self, data: Path) -> list[core.VerifiedFigure]:
        """For each system in the paper's tables the counts under `video`, and for the first one the subsets in the text,
        from the recorded answers in `results`. The answers of the blind run were not published."""
        from proctor.interchange import results_of_recorded

        folders = {_plain(path.name): path for path in sorted((data / "results").iterdir()) if path.is_dir()}
        benchmark, known = self.load(data), _known()
        at_hand = {name: one for name in _systems(known) if (one := folders.get(_plain(name))) is not None}
        recorded = {name: read_recorded(one, benchmark) for name, one in at_hand.items()}
        facets = dict.fromkeys(one["facet"] for one in known["parts"])
        found = await results_of_recorded(benchmark, recorded, [(), *((facet,) for facet in facets)])
        ours = {(row.system, row.metric, *row.facets.items()): row for row in found}
        figures = []
        for one in known["tables"]:
            metric = one.get("read", one["metric"])  # what the recorded verdicts give the table by
            row = ours.get((one["system"], metric))
            for level, *cells in zip(_LEVELS[one["metric"]], *one["counts"], strict=True):
                name = f"{one['system']}, {metric}: {level}"
                figures.append(core.VerifiedFigure(name, f"table {one['table']}", sum(cells), _count(row, level)))
        for one in known["parts"]:
            row = ours.get((_FIRST, one["metric"], (one["facet"], one["value"])))
            value = row.value if row is not None and one["condition"] == "video" else None
            name = f"{_FIRST}, {one['condition']}, {one['metric']}: {one['value']}"
            rounding = 0.5 * 10.0 ** -len(str(one["number"]).partition(".")[2])
            figures.append(core.VerifiedFigure(name, "section 5", one["number"], value, rounding))
        return figures

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


_FIRST = "Gemini 3 Pro"  # the system of the blind run and of the subsets in the text
_METRICS = {core.ACCURACY.name: core.ACCURACY, RUBRIC_BY_ERROR_TYPE.name: RUBRIC_BY_ERROR_TYPE}
_LEVELS = {core.ACCURACY.name: ("correct", "incorrect"), RUBRIC_BY_ERROR_TYPE.name: RUBRIC_LABELS}
_WORTH = {core.ACCURACY.name: (1, 0), RUBRIC_BY_ERROR_TYPE.name: (2, 1, 1, 0)}


@cache
def published_table() -> core.PublishedTable:
    """The overall scores that follow from tables A1 to A8, the subsets in the text, and the tables.

    >>> [(row.system, round(row.values["accuracy"], 3)) for row in published_table().rows[:2]]
    [('Gemini 3 Pro', 0.663), ('LLaVA-Video-72B', 0.297)]
    """
    known = _known()
    tables = known["tables"]

    def means(system: str, counts: Callable[[Any], Iterable[Any]]) -> dict[str, float]:
        """Mean scores over the columns (video) or the rows (blind) of the tables."""
        return {
            table["metric"]: _mean(table["metric"], [sum(line) for line in counts(table["counts"])])
            for table in tables
            if table["system"] == system
        }

    rows = [
        core.PublishedRow(system, means(system, lambda counts: zip(*counts, strict=True)), "video")
        for system in _systems(known)
    ]
    rows.append(core.PublishedRow(_FIRST, means(_FIRST, iter), "text-only"))
    for one in (*known["parts"], *known["gains"]):
        condition, part = one.get("condition", "video − text-only"), {one["facet"]: one["value"]}
        rows.append(core.PublishedRow(_FIRST, {one["metric"]: one["number"]}, condition, part))
    crossings = tuple(
        core.PublishedCrossing(
            table["table"],
            table["system"],
            table["metric"],
            ("text-only", "video"),
            _LEVELS[table["metric"]],
            tuple(map(tuple, table["counts"])),
        )
        for table in tables
    )
    return core.PublishedTable(known["source"], known["note"], tuple(_METRICS.values()), tuple(rows), crossings)


def _known() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(files(__package__).joinpath("published.json").read_text(encoding="utf-8"))
    return known


def _systems(known: dict[str, Any]) -> list[str]:
    """The systems in the tables' order."""
    return list(dict.fromkeys(one["system"] for one in known["tables"]))


def _plain(name: str) -> str:
    """A system's name without the characters that differ between a table and a folder."""
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def _count(row: Result | None, level: str) -> float | None:
    """The number of answers with this level; for a metric without named levels, of those right or wrong. Failed calls
    count as the lowest level, as in the paper's tables."""
    if row is None or row.value is None:
        return None
    if row.levels:
        lacking = row.failed + row.missing if level == RUBRIC_LABELS[-1] else 0
        return float(row.levels.get(level, 0) + lacking)
    right = round(row.value * row.n)
    return float(right if level == "correct" else row.n - right)


def _mean(metric: str, counts: list[int]) -> float:
    worth = _WORTH[metric]
    return sum(one * count for one, count in zip(worth, counts, strict=True)) / sum(counts)


_BESIDE = (METADATA, "gt_all/*.json")  # not `results`, which are for the published options


def write_choices(data: Path, out: Path, items: Mapping[str, core.Item | None]) -> None:
    """Writes a copy of the release with other options into `out`, without recorded results; items that are None stay,
    with `keep` false. Raises `InputError` for what can't be read."""
    for kind in KINDS:
        for file, video, questions in read_questions(data, kind):
            target = out / file.relative_to(data)
            target.parent.mkdir(parents=True, exist_ok=True)
            known = [item_id(video, kind, number) for number in range(1, len(questions) + 1)]
            if not items.keys() & set(known):
                target.write_bytes(core.input_bytes(file))
                continue
            raw: Any = core.read_json(file)
            entries = [_entry(one, items, name) for one, name in zip(raw, known, strict=True)]
            core.write_whole(target, json.dumps(entries, ensure_ascii=False, indent=2) + "\n")
    about = core.read_about(data)
    if about is not None:
        changed = {
            "name": f"{about.name[:71]}-repaired" if about.name else "",
            "title": f"{about.title[:178]} with repaired options" if about.title else "",
        }
        content = about.model_copy(update=changed).model_dump(mode="json")
        core.write_whole(out / core.ABOUT, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    for pattern in _BESIDE:
        for file in sorted(path for path in data.glob(pattern) if path.is_file() and not path.is_symlink()):
            target = out / file.relative_to(data)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(core.input_bytes(file))


def _entry(raw: dict[str, Any], items: Mapping[str, core.Item | None], name: str) -> dict[str, Any]:
    if name not in items:
        return raw
    item = items[name]
    if item is None or item.reference is None:
        return raw | {"keep": False}
    stem = "\n".join(raw["question"].splitlines()[: options_at(raw["question"])])
    lines = [f"{letter}. {text}" for letter, text in zip(option_letters(len(item.options)), item.options, strict=True)]
    changed = {"question": "\n".join([stem, *lines]), "answer": item.reference.answer}
    return raw | changed | {"option_pool": item.tags[core.OPTION_POOL]}
