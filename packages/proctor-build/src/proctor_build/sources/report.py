"""`proctor build table DIR sources`: its report, and a page that shows each proposal in its frames."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.core import DASH, PluginReport, Region, Steps, clock_text, count_of, plain_table, shell_word, write_whole
from proctor.media import MediaLibrary, MediaSettings, Picture
from proctor_build.pipeline import Project, records_of, run_stages
from proctor_build.sources.copies import COPIES, MANIFEST, DeidentifiedVideo, deidentify
from proctor_build.sources.outside import OutsideFinder
from proctor_build.sources.proposals import Decision, merged, read_decisions, write_decisions
from proctor_build.sources.stage import DECISIONS, SourceRecord, SourcesStage, finder_line, finder_of, seen_videos

_SHEET = "work/sources/proposals.html"


def check_sources(folder: Path, steps: Steps, *, apply: bool) -> PluginReport:
    """Runs the stage `sources`, updates the table of decisions and the page, and writes copies with `apply`."""
    project = Project(folder)
    asyncio.run(run_stages(project, until=SourcesStage.name, steps=steps))
    records = records_of(project, SourcesStage())
    finder = finder_of(project, seen_videos(project))  # the one of the stage, from the cache
    file = folder / DECISIONS
    there = read_decisions(file, [record.id for record in records])
    decisions = merged(there, {record.id: record.proposals for record in records})
    if decisions != there:
        write_decisions(file, decisions)
    with steps("showing proposals", 1) as progress:
        write_sheet(project, records, decisions, finder_line(finder), folder / _SHEET)
        progress(1, 1)
    if not apply:
        return _report(folder, records, decisions, finder)
    with steps("writing copies", len(records)) as progress:
        done = deidentify(project, records, decisions, finder, progress)
    return _applied(folder, done)


def _report(
    folder: Path, records: Sequence[SourceRecord], decisions: Sequence[Decision], finder: OutsideFinder | None
) -> PluginReport:
    open_ = [decision for decision in decisions if not decision.decision]
    rows = tuple(
        (
            record.id,
            f"{record.duration_s:.1f} s",
            f"{record.width} × {record.height}",
            f"{record.fps:.2f}{' variable' if record.variable_rate else ''}",
            *(str(sum(proposal.kind == kind for proposal in record.proposals) or DASH) for kind in ("outside", "text")),
            str(sum(each.source == record.id for each in open_) or DASH),
            ", ".join(flag for flag in record.flags if flag not in {"text", "outside", "variable frame rate"}),
        )
        for record in records
    )
    heads = ("source", ">length", ">size", ">rate", ">outside", ">text", ">open", "flags")
    table = plain_table("Sources", heads, rows, wrapped=("flags",))
    json: dict[str, Any] = {
        "sources": [record.model_dump(mode="json") for record in records],
        "open": len(open_),
        "finder": None if finder is None else finder.model_dump(mode="json"),
    }
    notes = [f"{_SHEET}: every proposal in its frames", finder_line(finder)]
    notes.append(
        f"{DECISIONS}: {count_of(len(open_), 'row')} to decide (accept or reject, and by whom)"
        if open_
        else f"Next: proctor build table {shell_word(folder)} sources --apply"
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
            ", ".join(sorted({decision.by for decision in one.decisions if decision.decision == "accept"})) or DASH,
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


_TEMPLATE = Path(__file__).parent / "sheet.html.j2"
_SETTINGS = MediaSettings(max_side=320, quality=72)
_SHOTS, _OVERVIEW = 4, 8
_MOST = 300
_SAID = {"": "undecided", "accept": "accepted", "reject": "rejected"}


@dataclass(frozen=True)
class _Frames:
    library: MediaLibrary
    name: str
    end: float

    def shots(self, start: float, end: float, count: int) -> list[dict[str, str]]:
        """Evenly spaced frames with their times; the first and last lie just inside."""
        edge = min(0.1, (end - start) / 4)
        step = (end - start - 2 * edge) / (count - 1)
        times = [min(start + edge + k * step, max(0.0, self.end - 1e-3)) for k in range(count)]
        jpegs = self.library.jpegs([Picture(self.name, time) for time in times])
        return [
            {"time": f"{time:.1f} s", "jpeg": base64.b64encode(jpeg).decode("ascii")}
            for time, jpeg in zip(times, jpegs, strict=True)
        ]


def write_sheet(
    project: Project, records: Sequence[SourceRecord], decisions: Sequence[Decision], finder: str, out: Path
) -> None:
    """Writes a self-contained page: each source with its facts, its proposals (300 in all) in four frames with the
    decision, and eight frames of the whole. Raises `InputError` if a frame can't be decoded or the page can't be
    written."""
    from jinja2 import Environment, StrictUndefined

    left = _MOST
    sources: list[Mapping[str, Any]] = []
    for record in records:
        path = project.path(
            next(source for source in project.settings.sources if source.id == record.id), "video"
        ).resolve()
        frames = _Frames(MediaLibrary(path.parent, _SETTINGS), path.name, record.duration_s)
        mine = [decision for decision in decisions if decision.source == record.id]
        shown = mine[:left]
        left -= len(shown)
        sources.append(
            {
                "name": record.id,
                "facts": _facts(record),
                "flags": _flags(record),
                "proposals": [_proposal(decision, frames) for decision in shown],
                "overview": frames.shots(0.0, record.duration_s, _OVERVIEW),
            }
        )
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    page = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        title=f"{project.settings.title or project.folder.name}: {count_of(len(decisions), 'proposal')} to hide",
        finder=f"{finder[:1].upper()}{finder[1:]}.",
        sources=sources,
        left_out=max(0, len(decisions) - _MOST),
    )
    write_whole(out, page)


def _proposal(decision: Decision, frames: _Frames) -> Mapping[str, Any]:
    what = decision.what
    return {
        "state": _SAID[decision.decision]
        + (f" by {decision.by} ({decision.how})" if decision.decision == "accept" else ""),
        "kind": what.kind,
        "span": f"{clock_text(what.start)} to {clock_text(what.end)} ({what.start:.1f} to {what.end:.1f} s)",
        "score": "" if what.score is None else f"{what.score:.2f}",
        "location": "" if what.region is None else _style(what.region),
        "shots": frames.shots(min(what.start, frames.end), min(what.end, frames.end), _SHOTS),
    }


def _style(region: Region) -> str:
    parts = {"left": region.x, "top": region.y, "width": region.width, "height": region.height}
    return ";".join(f"{name}:{100 * share:.2f}%" for name, share in parts.items())


def _facts(record: SourceRecord) -> str:
    rate = f"{record.fps:.2f} pictures a second{', variable' if record.variable_rate else ''}"
    return f"{record.codec}, {record.width} × {record.height}, {record.duration_s:.1f} s, {rate}"


def _flags(record: SourceRecord) -> list[str]:
    beside = [flag.removeprefix("no ") for flag in record.flags if flag.startswith("no ")]
    found = [f"Missing in project.yaml: {', '.join(beside)}."] if beside else []
    found += [f"A copy will not have: {', '.join(record.holds)}."] if record.holds else []
    return found + ([f"Shows the same as: {', '.join(record.like)}."] if record.like else [])
