"""A project's videos are checked, what to hide is proposed, de-identified copies are written: with the report of
each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proctor.construction.pipeline import Project, run_stages
from proctor.construction.pipeline.running import Folder
from proctor.construction.pipeline.stage import ALL
from proctor.construction.sources.applying import COPIES, MANIFEST, DeidentifiedVideo, deidentify
from proctor.construction.sources.looking import seen_video
from proctor.construction.sources.outside import OutsideFinder
from proctor.construction.sources.proposals import Decision, merged, read_decisions, write_decisions
from proctor.construction.sources.sheet import write_sheet
from proctor.construction.sources.stage import (
    DECISIONS,
    SourceRecord,
    SourceSettings,
    SourcesStage,
    finder_of,
    seen_folder,
    told,
)
from proctor.core import DASH, PluginReport, Steps, count_of, plain_table
from proctor.media import Catalogue, cache_folder

_SHEET = "work/sources/proposals.html"


def check_sources(folder: Path, steps: Steps, *, apply: bool) -> PluginReport:
    """What `proctor build sources` does and says."""
    project = Project(folder)
    asyncio.run(run_stages(project, until=SourcesStage.name, steps=steps))
    records = _records(project)
    finder = _finder(project)
    file = folder / DECISIONS
    there = read_decisions(file, [one.id for one in records])
    decisions = merged(there, {one.id: one.proposals for one in records})
    if decisions != there:
        write_decisions(file, decisions)
    with steps("showing proposals", 1) as progress:
        write_sheet(project, records, decisions, told(finder), folder / _SHEET)
        progress(1, 1)
    if not apply:
        return _report(folder, records, decisions, finder)
    with steps("writing copies", len(records)) as progress:
        done = deidentify(project, records, decisions, finder, progress)
    return _applied(folder, done)


def _records(project: Project) -> list[SourceRecord]:
    held: Folder[SourceRecord] = Folder(project, SourcesStage())
    made = held.read(ALL)
    return held.records(made) if made is not None else []


def _finder(project: Project) -> OutsideFinder | None:
    """The finder that the stage fitted: the same labels and looks give the same one."""
    settings = SourceSettings.model_validate(project.settings.stages.get("sources", {}))
    files = Catalogue(cache_folder())
    seen = {}
    for one in project.settings.sources:
        video = project.path(one, "video")
        seen[one.id] = seen_video(
            video, files.identity(video), seen_folder(project), fps=settings.fps, text_score=settings.text_score
        )
    return finder_of(project, seen)


def _report(
    folder: Path, records: Sequence[SourceRecord], decisions: Sequence[Decision], finder: OutsideFinder | None
) -> PluginReport:
    open_ = [one for one in decisions if not one.decision]
    rows = tuple(
        (
            one.id,
            f"{one.duration_s:.1f} s",
            f"{one.width} × {one.height}",
            f"{one.fps:.2f}{' variable' if one.variable_rate else ''}",
            *(str(sum(each.kind == kind for each in one.proposals) or DASH) for kind in ("outside", "text")),
            str(sum(each.source == one.id for each in open_) or DASH),
            ", ".join(flag for flag in one.flags if flag not in {"text", "outside", "variable frame rate"}),
        )
        for one in records
    )
    heads = ("source", ">length", ">size", ">rate", ">outside", ">text", ">open", "flags")
    table = plain_table("Sources", heads, rows, wrapped=("flags",))
    json: dict[str, Any] = {
        "sources": [one.model_dump(mode="json") for one in records],
        "open": len(open_),
        "finder": None if finder is None else finder.model_dump(mode="json"),
    }
    notes = [f"{_SHEET}: every proposal in its frames", told(finder)]
    notes.append(
        f"{DECISIONS}: {count_of(len(open_), 'row')} to decide (accept or reject, and by whom)"
        if open_
        else f"Next: proctor build sources {folder} --apply"
    )
    return PluginReport(json, (table,), tuple(notes), ok=not open_)


def _applied(folder: Path, done: Sequence[tuple[DeidentifiedVideo, bool]]) -> PluginReport:
    rows = tuple(
        (
            one.source,
            one.result.how if fresh else f"{one.result.how} before",
            f"{one.result.check.hidden}/{one.result.check.pictures}",
            DASH if one.result.check.worst_psnr is None else f"{one.result.check.worst_psnr:.1f} dB",
            DASH if one.result.check.detail_left is None else f"{100 * one.result.check.detail_left:.2f} %",
            ", ".join(sorted({each.by for each in one.decisions if each.decision == "accept"})) or DASH,
        )
        for one, fresh in done
    )
    heads = ("source", "how", ">hidden", ">elsewhere", ">detail left", "accepted by")
    json: list[Any] = [one.model_dump(mode="json") for one, _ in done]
    notes = (
        f"{folder / COPIES}: the copies; name them in project.yaml (video: {COPIES}/ID.mp4) to go on with them",
        f"{folder / MANIFEST}: what was done, with the originals' names: not to be given away",
    )
    return PluginReport(json, (plain_table("De-identified copies", heads, rows),), notes)
