"""The source of an export: the chosen runs of one benchmark, their results, items as rows, and media."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import file_digest
from pathlib import Path, PurePosixPath
from typing import Any

from proctor.core import Answer, AudioClip, InputError, Item, Media, Status, UsageError, VideoClip, one_of, read_answer
from proctor.results import Options, Result, results
from proctor.runs import BASELINES, CODE, BenchmarkCard, Run, Store, chosen_runs, other_model, recorded, stored_runs

ORIGIN = {
    "licence": "the licence of the data, by its SPDX name (CC-BY-4.0)",
    "citation": "how the data are cited",
    "url": "where the data or the results are described",
    "creator": "who made the data",
    "dataset": "the data's name on the Hugging Face Hub (owner/name)",
    "model": "the model's name (owner/name), where one system is exported",
    "organisation": "who ran the evaluation",
    "relationship": "first_party, third_party, collaborative or other: who ran it, seen from the model's maker",
}
"""The fields in which a person states where data and results come from, with their meaning."""

_LICENCE = "Licence: "


@dataclass(frozen=True)
class ExportSource:
    """The runs to export (baselines only if they are named), and the options.

    `origin` has fields of `ORIGIN`. `media` is the folder of the benchmark's videos or images, which are copied only
    with `copy_media`. Without `references`, reference answers are left out.
    """

    store: Store
    card: BenchmarkCard
    options: Options
    origin: Mapping[str, str] = field(default_factory=dict)
    media: Path | None = None
    copy_media: bool = False
    references: bool = True

    def __post_init__(self) -> None:
        for name in self.origin:
            if name not in ORIGIN:
                raise UsageError(f"--origin {name!r} is unknown: choose {one_of(ORIGIN, name)}")

    @cached_property
    def items(self) -> list[Item]:
        """The items that count (or all, by `options.all_items`), in order; with reference answers only if
        `references`."""
        every = self.store.items(self.card.name)
        counted = [item for item in every if self.options.all_items or self.card.counts(item)]
        return counted if self.references else [item.without_answer() for item in counted]

    @cached_property
    def runs(self) -> list[Run]:
        """The chosen runs."""
        chosen = chosen_runs(self.store, self.card.name, self.options.systems, self.options.conditions)
        return [run for run in chosen if self.options.systems or run.system not in BASELINES]

    def one_run(self) -> Run:
        """The only run. Raises `UsageError` if there are several, or none."""
        if len(self.runs) != 1:
            found = ", ".join(f"{run.system} / {run.condition}" for run in self.runs) or "no run"
            raise UsageError(
                f"One run is exported, and this is not one: {found}. Choose it by --system and --condition."
            )
        return self.runs[0]

    @cached_property
    def results(self) -> list[Result]:
        """The results of the chosen runs with a score."""
        names = {(run.system, run.condition) for run in self.runs}
        rows = results(self.store, self.card.name, self.options).rows
        return [row for row in rows if (row.system, row.condition) in names and row.scorer]

    def code_scores(self, run: Run) -> dict[str, dict[str, float]]:
        """The scores of a run that need no judge: by item and metric."""
        found: dict[str, dict[str, float]] = {}
        for row in self.store.score_rows(run, scorer=CODE):
            found.setdefault(row.item_id, {})[row.metric] = row.value
        return found

    @cached_property
    def begun(self) -> dict[tuple[str, str], str]:
        """The start of each run (ISO 8601, UTC), by system and condition."""
        rows = [row for row in stored_runs(self.store) if row["benchmark"] == self.card.name]
        return {(row["system"], row["condition"]): str(row["begun"]) for row in rows}

    @property
    def licence(self) -> str:
        """The licence of the data from `origin`, else from the benchmark's notes; "" if it is unknown."""
        noted = [note.removeprefix(_LICENCE) for note in self.card.notes if note.startswith(_LICENCE)]
        return self.origin.get("licence") or next(iter(noted), "")

    @property
    def media_of_items(self) -> list[Media]:
        """Each medium once, by its file."""
        return list({medium.source: medium for item in self.items for medium in item.media}.values())


@dataclass(frozen=True)
class Written:
    """The result of an export: `count` of `what` ("row"), what was `dropped` because the format has no field for it,
    and `notes` for the user."""

    count: int
    what: str
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def model_of(run: Run, origin: Mapping[str, str]) -> str:
    """The model of a run as "owner/name": from `origin`, else the one that answered, else from the run's settings, else the
    system's name.

    >>> served = {"system": {"model": "medical-vlm-72b"}, "answered_by": ["/models/tiny-1b.gguf"]}
    >>> model_of(Run(1, "b", "mine", "video", served), {})
    'unknown/tiny-1b.gguf'
    >>> model_of(Run(1, "b", "gpt", "video", {"system": {"model": "openai:gpt-5.2"}}), {})
    'openai/gpt-5.2'
    >>> model_of(Run(1, "b", "mine", "video", {}), {})
    'unknown/mine'
    """
    system = run.settings.get("system")
    stated = system.get("model") if isinstance(system, dict) else None
    named = (
        origin.get("model") or other_model(run.settings) or (stated if isinstance(stated, str) else "") or run.system
    )
    named = named.replace(":", "/", 1) if "/" not in named else named
    return named if "/" in named else f"unknown/{named}"


def check_origin(source: ExportSource) -> None:
    """Raises `UsageError` if one model's name is given for several systems."""
    systems = sorted({run.system for run in source.runs})
    if source.origin.get("model") and len(systems) > 1:
        raise UsageError(
            f"--origin model=… is one model's, and these are several systems: {', '.join(systems)}. Choose one by --system NAME."
        )


def public_settings(settings: Any) -> Any:
    """The settings of a run without the private addresses of servers.

    >>> public_settings({"system": {"model": "m", "base_url": "http://10.0.0.7/v1"}, "servers": ["http://10.0.0.7/v1"]})
    {'system': {'model': 'm'}}
    """
    if isinstance(settings, Mapping):
        return {name: public_settings(one) for name, one in settings.items() if name not in {"base_url", "servers"}}
    return [public_settings(setting) for setting in settings] if isinstance(settings, list) else settings


def differs(item: Item, answer: Answer) -> bool:
    """Whether the stored value differs from parsing the answer's text again: its options were shown in another order,
    or a person read it.

    >>> from proctor.core.formats import BinaryFormat
    >>> one = Item(id="q1", group="v1", question="Is a clip seen?", answer=BinaryFormat())
    >>> differs(one, Answer(item_id="q1", text="no", parsed=True)), differs(one, Answer(item_id="q1", text="no", parsed=False))
    (True, False)
    """
    if answer.parsed is None:
        return False
    return read_answer(item, answer.model_copy(update={"parsed": None})).parsed != answer.parsed


def kept_fields(item: Item, answer: Answer) -> dict[str, str]:
    """Fields for what another program's record has no field for; `recorded.kept_status`, `kept_value` and
    `kept_confidence` read them."""
    sure = {"proctor_confidence": text} if (text := confidence_text(answer)) else {}
    if answer.status is not Status.ANSWERED:
        return sure | {"proctor_status": answer.status.value, "proctor_reason": answer.reason}
    return sure | ({"proctor_parsed": json.dumps(answer.parsed)} if differs(item, answer) else {})


def confidence_text(answer: Answer) -> str:
    """The confidence of an answer (or why there is none) as JSON, without words of the reply; "" if none was asked for.

    >>> confidence_text(Answer(item_id="q1", extra={"confidence": {"source": "stated", "value": 0.85}}))
    '{"source": "stated", "value": 0.85}'
    """
    sure = answer.confidence
    return "" if sure is None else json.dumps(sure.public.model_dump(mode="json", exclude_defaults=True))


def shown_text(answer: Answer) -> str:
    """The record of what a system was shown (hashes of frames and media, times, the request), as JSON; "" if the answer
    has none.

    >>> shown_text(Answer(item_id="q1"))
    ''
    """
    shown = [
        shown_record.model_dump(mode="json", exclude_defaults=True)
        for shown_record in recorded(answer)
        if shown_record.prefixes  # under `text-only` nothing was shown
    ]
    return json.dumps(shown) if shown else ""


def references_of(item: Item) -> list[str]:
    """The reference answers of an item as text, the main one first."""
    if item.reference is None or item.unanswerable:
        return []
    return [item.answer.write(value) for value in (item.reference.answer, *item.reference.accepted)]


# -- items as rows

COLUMNS = ("id", "group", "question", "options", "format", "answer", "accepted", "rationale", "media", "start", "end")
"""The columns of every benchmark; facets follow."""


def item_rows(source: ExportSource) -> list[dict[str, Any]]:
    """One row per item: values as text, as in a reply, and then the facets, with several values as JSON."""
    facets = facet_names(source)
    return [item_row(item) | {name: _tag(item.tags.get(name)) for name in facets} for item in source.items]


def facet_names(source: ExportSource) -> list[str]:
    """The tags of all items in order of appearance, without those that are columns."""
    names = dict.fromkeys(name for item in source.items for name in item.tags)
    return [name for name in names if name not in COLUMNS]


def item_row(item: Item) -> dict[str, Any]:
    """The row of an item, without facets."""
    right = references_of(item)
    clip = _timed(item)
    return {
        "id": item.id,
        "group": item.group,
        "question": item.question,
        "options": list(item.options) or list(getattr(item.answer, "classes", ())),
        "format": item.answer.kind,
        "answer": right[0] if right else None,
        "accepted": right[1:],
        "rationale": item.reference.rationale if item.reference else "",
        "media": [medium.source for medium in item.media],
        "start": clip.start if clip else None,
        "end": clip.end if clip else None,
    }


def _timed(item: Item) -> VideoClip | AudioClip | None:
    """The medium whose times are in a row: the first video, else the first recording."""
    clips = (medium for medium in item.media if isinstance(medium, VideoClip))
    return next(clips, None) or next(iter(item.sounding), None)


def _tag(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return json.dumps(list(value), ensure_ascii=False)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(int(value)) if float(value).is_integer() else str(value)


def lost_in_rows(source: ExportSource) -> list[str]:
    """What rows have no column for."""
    formats = {
        item.answer.kind for item in source.items if item.answer.model_dump(exclude_defaults=True, exclude={"kind"})
    }
    several = any(len([medium for medium in item.media if isinstance(medium, VideoClip)]) > 1 for item in source.items)
    found = [f"settings of the formats {', '.join(sorted(formats))}: a column holds the kind"] if formats else []
    if several:
        found.append("start and end of further clips: a row has one span")
    if any(one is not _timed(item) or one.kind == "video" for item in source.items for one in item.sounding):
        found.append("times of further recordings, and whether a video's sound belongs to the question")
    if any(one.region is not None for item in source.items for one in item.pictured):
        found.append("regions of media: a column holds the file")
    if not source.references:
        found.append("reference answers: left out on request")
    return found


# -- media


def media_files(source: ExportSource) -> Iterator[tuple[str, Path]]:
    """(name, file) of each medium in the folder of media. Raises `InputError` for a name outside the folder."""
    if source.media is None:
        return
    root = source.media.resolve()
    for medium in source.media_of_items:
        if PurePosixPath(medium.source).is_absolute() or ".." in PurePosixPath(medium.source).parts:
            raise InputError(source.media, found=f"a medium {medium.source!r}", expected="a name below this folder")
        file = (root / medium.source).resolve()
        if not file.is_relative_to(root):
            raise InputError(source.media, found=f"{medium.source!r}, which leads out of it", expected="files inside")
        if file.is_file():
            yield medium.source, file


def copy_media(source: ExportSource, folder: Path) -> int:
    """Copies the media if the export has `copy_media`, and returns their number. Raises `UsageError` if the folder of
    media is unknown, and `InputError` for missing media."""
    if not source.copy_media:
        return 0
    if source.media is None:
        raise UsageError("--media is missing. Give the folder of the benchmark's videos or images: --media FOLDER")
    found = dict(media_files(source))
    missing = [item.source for item in source.media_of_items if item.source not in found]
    if missing:
        expected = f"all media ({len(source.media_of_items)}), to copy them"
        raise InputError(source.media, found=f"no {missing[0]} and {len(missing) - 1} more", expected=expected)
    for name, file in found.items():
        location = folder / name
        location.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, location)
    return len(found)


def file_hash(file: Path) -> str:
    """SHA-256 of a file's content."""
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
