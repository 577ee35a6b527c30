"""An export is read back by its benchmark's reader before it is published: what differs is not written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from proctor.core import (
    ABOUT,
    BENCHMARKS,
    AboutFiles,
    Benchmark,
    InputError,
    Item,
    ProctorError,
    TagValue,
    VideoClip,
    collapse_spaces,
    count_of,
    read_json,
    reader_at,
    write_whole,
)
from proctor.tracks import simulated_there
from proctor_build.pipeline.project import Project, SourceVideo

DATASHEET = "DATASHEET.md"
_ROUNDED_S = 0.01


@dataclass(frozen=True)
class ExportedItem:
    """An item as the project holds it. `key` is the right answer: a letter, an order, or the text of an answer, which the
    item's format reads. An empty field is not compared; of the tags, those given are."""

    id: str
    key: JsonValue
    group: str = ""
    question: str = ""
    options: tuple[str, ...] = ()
    rationale: str = ""
    span: tuple[float, float] | None = None
    tags: Mapping[str, TagValue] = field(default_factory=dict)


@dataclass(frozen=True)
class ExportedBenchmark:
    """A benchmark in an export: its items in any order, its `folder` below the export's, its part of a split and its track
    ("" without one), and the sources behind it."""

    items: Sequence[ExportedItem]
    sources: Sequence[SourceVideo]
    folder: str = ""
    part: str = ""
    track: str = ""


def about_export(project: Project, reader: str, exported: ExportedBenchmark) -> AboutFiles:
    """What an exported benchmark says of itself: the project's name (that of its folder by default), title and licence."""
    settings = project.settings
    name = settings.name or project_name(project.folder)
    title = settings.title or f"Benchmark of the project {name}"
    made = f"Made from {count_of(len(exported.sources), 'video')} with Proctor; {DATASHEET} says how."
    return AboutFiles(
        name=f"{name[: 79 - len(exported.part)]}-{exported.part}" if exported.part else name,
        reader=reader,
        track=exported.track,
        title=f"{title[:150]} ({exported.part})"[:200] if exported.part else title[:200],
        licence=settings.licence[:2000],
        origin=made,
        simulated=settings.simulated or any(is_simulated(project, source) for source in exported.sources),
        seed=settings.seed,
    )


def project_name(folder: Path) -> str:
    """A name for stores and commands from that of a project's folder; never that of an installed benchmark."""
    name = re.sub(r"[^\w.]+", "-", folder.resolve().name).strip("-.")[:70] or "project"
    return f"{name}-own" if name in BENCHMARKS.names() else name


def is_simulated(project: Project, source: SourceVideo) -> bool:
    """Whether a source says that it is simulated, or its video lies where the simulator wrote it."""
    if source.provenance.casefold().startswith("simulated"):
        return True
    return simulated_there((project.folder / source.video).resolve().parent)


def write_about(about: AboutFiles, folder: Path) -> None:
    """Writes `about.json`, with the fields that the export has put there for the record."""
    file = folder / ABOUT
    more = read_json(file) if file.is_file() else {}
    known: dict[str, Any] = about.model_dump(mode="json") | (more if isinstance(more, dict) else {})
    known |= about.model_dump(mode="json")
    write_whole(file, json.dumps(known, ensure_ascii=False, indent=1) + "\n")


def check_read_back(exported: ExportedBenchmark, about: AboutFiles, folder: Path, shown: Path) -> None:
    """Raises `InputError` with the first difference unless the files in `folder` are read as what was exported; `shown` is
    where they would be published."""
    location = shown / exported.folder

    def differs(item: str, what: str, found: object, expected: object) -> InputError:
        where = f"item {item!r}, read back, {what}" if item else f"read back, {what}"
        wanted = f"{_short(expected)}, as in the project; nothing was written"
        return InputError(location, where, found=_short(found), expected=wanted)

    try:
        read = reader_at(folder).load(folder)
    except (ProctorError, ValidationError) as error:
        told = collapse_spaces(str(error).replace(str(folder), str(location)))
        raise InputError(
            location,
            "read back",
            found=f"files that can't be read: {told}",
            expected="a benchmark; nothing was written",
        ) from error
    for what, found, expected in _differences(read, about):
        raise differs("", what, found, expected)
    items, wanted = {item.id: item for item in read.items}, {item.id: item for item in exported.items}
    if items.keys() != wanted.keys() or len(wanted) != len(exported.items):
        lost, new = sorted(wanted.keys() - items.keys()), sorted(items.keys() - wanted.keys())
        raise differs(
            next(iter([*lost, *new]), ""), "the items", f"{len(items)} of them", f"{len(exported.items)} of them"
        )
    counted = {item.id for item in read.counted()}
    for name, expected_item in wanted.items():
        if name not in counted:
            raise differs(name, "whether it counts", "left out", "counted")
        for what, found, expected in _item_differences(items[name], expected_item):
            raise differs(name, what, found, expected)


_Difference = tuple[str, object, object]


def _differences(read: Benchmark, about: AboutFiles) -> Iterator[_Difference]:
    compared: list[_Difference] = [
        ("the name", read.name, about.name),
        ("the title", read.title, about.title),
        ("simulated", read.simulated, about.simulated),
        ("published figures", read.published is not None, False),
        ("the licence", any(about.licence in note for note in read.notes), bool(about.licence or read.notes)),
    ]
    yield from (one for one in compared if one[1] != one[2])


def _item_differences(item: Item, expected: ExportedItem) -> Iterator[_Difference]:
    """Each field that differs: what it is, the one read, the one expected."""
    key = None if item.reference is None else item.reference.answer
    wanted = expected.key
    if isinstance(wanted, str) and key != wanted:
        try:
            wanted = item.answer.parse(wanted, item.options)
        except ProctorError as error:
            yield "the key", str(error), expected.key
    if key != wanted:
        yield "the key", key, wanted
    compared: list[_Difference] = [
        ("the options", item.options, expected.options),
        ("the question", item.question, expected.question),
        ("the group", item.group, expected.group),
        ("the rationale", "" if item.reference is None else item.reference.rationale, expected.rationale),
    ]
    yield from (one for one in compared if one[2] and one[1] != one[2])
    clip = next((medium for medium in item.media if isinstance(medium, VideoClip)), None)
    if expected.span is not None:
        start, end = expected.span
        if clip is None or clip.end is None:
            yield "the clip", clip, expected.span
        elif max(abs(clip.start - start), abs(clip.end - end)) > _ROUNDED_S:
            yield "the clip", (clip.start, clip.end), expected.span
    for tag, value in expected.tags.items():
        if item.tags.get(tag) != value:
            yield f"the tag {tag!r}", item.tags.get(tag), value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST else f"{text[:_MOST]} …"


_MOST = 120
