"""`proctor build new`, `run`, `table`, `status` and `redo`: a project, stage by stage."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import JsonValue

from proctor import core
from proctor_build import pipeline

if TYPE_CHECKING:
    from proctor_build.pipeline import HistoryStep, UnitState
    from proctor_build.pipeline.status import FunnelRow

_SOURCES = "sources"

Folder = Annotated[Path, core.Option("The project folder.", metavar="DIR", argument=True)]
StageName = Annotated[str, core.Option("The stage (proctor build status lists them).", metavar="STAGE", argument=True)]


def _kinds() -> list[str]:
    return pipeline.PROJECT_KINDS.names()


def new(
    folder: Annotated[Path, core.Option("A new folder.", metavar="DIR", argument=True)],
    kind: Annotated[str, core.Option("What it is to become.", names=_kinds)],
) -> core.PluginReport:
    """Start a project: a benchmark from videos.

    Writes a commented project.yaml, and a folder for sources.

    Example: proctor build new abdomen --kind rexsonovqa
    """
    pipeline.new_project(folder, kind)
    lines = (f"{folder}/{pipeline.SETTINGS_FILE}: say there which videos and models",)
    notes = (f"Then: proctor build run {core.shell_word(folder)}",)
    return core.PluginReport({"folder": str(folder), "kind": kind}, lines, notes)


def run(
    folder: Folder,
    steps: core.Steps,
    until: Annotated[str, core.Option("The last stage to run (proctor build status lists them).")] = "",
    source: Annotated[list[str] | None, core.Option("Only this source; may be repeated.")] = None,
    redo: Annotated[str, core.Option("Make this stage again first.", metavar="STAGE")] = "",
    item: Annotated[str, core.Option("--redo: of this source or record alone.", metavar="ID")] = "",
    undo: Annotated[bool, core.Option("--redo: restore the version before the last one instead.")] = False,
) -> core.PluginReport:
    """Run all stages of a project that are due.

    With --until, those that a stage needs, and the stage itself. Finished work is kept, and no model is asked the same
    thing twice. Stop at any time, and run it again. With --redo a stage, a source or a record of it is made again; former
    versions are kept, and --undo restores the last one without asking a model.

    Example: proctor build run abdomen --redo questions --item liver-q003
    """
    project = pipeline.Project(folder)
    if until:
        pipeline.kind_of(project).stage(until)
    if not redo and (item or undo):
        raise core.UsageError(f"--{'item' if item else 'undo'} belongs to --redo. Add --redo STAGE")
    again = _again(project, redo, item, undo=undo) if redo else ()
    report = run_report(folder, steps, until, source or ())
    return replace(report, shown=(*again, *report.shown))


def _again(project: pipeline.Project, stage: str, item: str, *, undo: bool) -> tuple[str, ...]:
    """Marks a stage, a source or a record to be made again, and says which attempt it is."""
    number = pipeline.redo_record(project, stage, item, undo=undo)
    return (f"{stage} of {item}: attempt {number + 1}" if item else f"{stage}: attempt {number + 1}",)


def run_report(folder: Path, steps: core.Steps, until: str, only: Sequence[str]) -> core.PluginReport:
    """Runs a project up to a stage, and reports the states of all units."""
    project = pipeline.Project(folder)
    states = asyncio.run(pipeline.run_stages(project, until=until, only=only, steps=steps))
    by_stage: dict[str, list[UnitState]] = {}
    for state in states:
        by_stage.setdefault(state.stage, []).append(state)
    rows = tuple(
        (
            name,
            *(
                str(sum(unit_state.state == state for unit_state in some) or core.DASH)
                for state in ("made", "kept", "waiting")
            ),
        )
        for name, some in by_stage.items()
    )
    waiting = [state for state in states if state.state == "waiting"]
    first = [unit_state for unit_state in waiting if not unit_state.why.startswith("for ")]
    table = core.plain_table(_title(project), ("stage", ">done now", ">unchanged", ">waiting"), rows)
    notes = [
        f"{unit_state.stage}{'' if unit_state.unit == pipeline.ALL else f' of {unit_state.unit}'} waits: {unit_state.why}"
        for unit_state in first[:8]
    ]
    notes += [f"{state.stage}: made again: {state.why}" for state in states if state.state == "made" and state.why]
    notes += [f"… and {len(first) - 8} more (--format json)"] if len(first) > 8 else []
    notes += pipeline.first_causes(project)
    notes.append(f"Next: proctor build status {core.shell_word(folder)}")
    return core.PluginReport([asdict(state) for state in states], (table,), tuple(notes), ok=not waiting)


def table(
    folder: Folder,
    stage: StageName,
    steps: core.Steps,
    out: Annotated[Path | None, core.Option("A new CSV file for the next step.")] = None,
    tracks: Annotated[Path | None, core.Option("A new folder for the boxes.")] = None,
    to: Annotated[
        Literal["cvat", "coco", "json"] | None,
        core.Option("The format of the tracks. [default: cvat; of adjudication json]"),
    ] = None,
    apply: Annotated[bool, core.Option("Of sources: write copies, as was decided.", "--apply")] = False,
) -> core.PluginReport:
    """Write what people need for the next step.

    Runs the project up to the stage, and writes its table: of boxes the seconds at which boxes are needed. --tracks
    writes the boxes of boxes, proposals (each as a track of its own), corrections and adjudication. What people vote on
    and decide is read in a review (proctor review).

    Of sources, lists what each video is and holds, and proposes stretches outside the body and text overlays to hide.
    People decide in sources/decisions.csv; --apply then writes copies without sound and metadata, and checks them.
    Originals stay.

    Example: proctor build table theatre boxes --out seconds.csv
    """
    if stage == _SOURCES:
        if out is not None or tracks is not None or to is not None:
            raise core.UsageError("The table of sources is sources/decisions.csv. Leave --out, --tracks and --to out.")
        from proctor_build.sources.report import check_sources

        return check_sources(folder, steps, apply=apply)
    if apply:
        raise core.UsageError("--apply writes copies of sources. Leave it out.")
    if out is None and tracks is None:
        raise core.UsageError("Nothing to write. Give --out FILE for a table, --tracks FOLDER for boxes, or both.")
    chosen = pipeline.kind_of(pipeline.Project(folder)).stage(stage)
    files = pipeline.StageFiles(out, tracks, to)
    files.check(chosen)
    report = run_report(folder, steps, stage, ())
    lines = files.write(pipeline.Project(folder), chosen)
    return core.PluginReport(report.json, (*report.shown, *lines), report.notes, report.ok)


def status(
    folder: Folder,
    item: Annotated[
        str, core.Option("A record of any stage: where it comes from instead.", metavar="[ITEM]", argument=True)
    ] = "",
) -> core.PluginReport:
    """Show a project's funnel or an item's history.

    Of each stage what went in, what came out, why not, and the cost. With ITEM, from the spoken words to the current
    question, with all its versions. Reads only: asks no model and writes nothing.

    Example: proctor build status abdomen
    """
    project = pipeline.Project(folder)
    if item:
        return _history(project, item)
    rows = pipeline.funnel(project)
    heads = ("stage", ">done", ">in", ">out", ">flagged", ">refused", ">calls", ">tokens", ">cost")
    total = ("total", *[""] * 4, str(sum(row.refused for row in rows) or core.DASH), *_spent(rows))
    cells = (*map(_funnel_cells, rows), total)
    open_ = [row.stage for row in rows if row.done < row.units]
    notes = [_advice(folder, rows, open_)] if open_ else []
    if any(row.calls and row.cost_usd is None for row in rows):
        notes.append("Cost unknown: no price is known for these models.")
    table = core.plain_table(_title(project), heads, cells)
    return core.PluginReport([asdict(row) for row in rows], (table, *_remarks(rows)), tuple(notes))


def _funnel_cells(row: FunnelRow) -> tuple[str, ...]:
    return (
        row.stage,
        f"{row.done}/{row.units}",
        core.DASH if row.into is None else core.thousands(row.into),
        f"{core.thousands(row.out)} {row.makes}".strip(),
        str(row.flagged or core.DASH),
        str(row.refused or core.DASH),
        *_spent([row]),
    )


def _remarks(rows: Sequence[FunnelRow]) -> list[str]:
    """Flags, reasons to refuse, notes and failed calls of all stages, one in a line."""
    lines = [f"{row.stage}: flagged: {flag} ({count})" for row in rows for flag, count in row.flags.items()]
    lines += [f"{row.stage}: refused: {reason}" for row in rows for reason in row.reasons]
    lines += [f"{row.stage}: {note}" for row in rows for note in row.notes]
    failed = [(row.stage, core.count_of(row.failed_calls, "call")) for row in rows if row.failed_calls]
    return lines + [f"{stage}: {calls} without a readable reply" for stage, calls in failed]


def _advice(folder: Path, rows: Sequence[FunnelRow], open_: Sequence[str]) -> str:
    """What to do about stages that are not done: to run them does nothing where a stage before them kept nothing."""
    location, names = core.shell_word(folder), ", ".join(open_)
    empty = next((row.stage for row in rows if row.units and row.done == row.units and not row.out), "")
    if empty:
        again = f"proctor build run {location} --redo {empty}"
        return f"Nothing is left after {empty}, so that {names} can't be done. Change what the lines above name. Next: {again}"
    return f"Not done: {names}. Next: proctor build run {location}"


def _spent(rows: Sequence[FunnelRow]) -> tuple[str, str, str]:
    """Calls, tokens and cost of stages; the cost is unknown if that of one stage is."""
    calls, tokens = (sum(getattr(row, name) for row in rows) for name in ("calls", "tokens"))
    costs = [row.cost_usd for row in rows if row.calls]
    known = [one for one in costs if one is not None]
    cost = "unknown" if len(known) < len(costs) else core.dollars(sum(known)) if known else core.DASH
    return str(calls or core.DASH), core.thousands(tokens) if tokens else core.DASH, cost


def _history(project: pipeline.Project, item: str) -> core.PluginReport:
    found = pipeline.history(project, item)
    rows = tuple(
        (_where(history_step), str(history_step.record["id"]), _content(history_step)) for history_step in found
    )
    json: list[JsonValue] = [asdict(history_step) | {"replies": [*history_step.replies]} for history_step in found]
    return core.PluginReport(json, (core.plain_table(item, ("stage", "id", "content"), rows, wrapped=("content",)),))


def _title(project: pipeline.Project) -> str:
    return f"{project.settings.title or project.folder.name}: {core.count_of(len(project.settings.sources), 'source')}"


def _where(step: HistoryStep) -> str:
    version = f", version {step.version}" if step.version else ""
    return step.stage + version + (" (refused)" if step.refused else "")


_NOT_SHOWN = {
    "id", "source", "start", "end", "made_from", "calls", "flags", "kind", "words", "judgements", "former", "screening",
    "options", "key", "question", "version", "groundtruth", "original",
}  # fmt: skip


def _plain(value: JsonValue) -> str:
    """A field's value as text, without empty values, ids and hashes."""
    if isinstance(value, list):
        return (", " if all(isinstance(one, str) for one in value) else "; ").join(map(_plain, value))
    if isinstance(value, dict):
        shown = [
            one for name, one in value.items() if name not in {"id", "sha256", "version"} and one not in ("", [], None)
        ]
        return " ".join(f"[{_plain(one)}]" if isinstance(one, list | dict) else _plain(one) for one in shown)
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _content(step: HistoryStep) -> str:
    """A record in short: its times, fields, options with the right one marked, flags, and the model behind it."""
    from proctor.core.formats import option_letters

    record = step.record
    parts = [f"{record['start']:.1f}–{record['end']:.1f} s"] if "start" in record else []
    fields = {
        name: value for name, value in record.items() if name not in _NOT_SHOWN and value not in ("", [], None, 0)
    }
    parts += [f"{name}: {_plain(value)}" for name, value in fields.items()]
    options = record.get("options")
    if isinstance(options, list):
        letters = option_letters(len(options))
        right = [" (right)" if row == record.get("key") else "" for row in range(len(options))]
        parts += [f"{letter}. {one}{mark}" for letter, one, mark in zip(letters, options, right, strict=True)]
    changes = record.get("version")
    parts += [core.count_of(changes, "change")] if isinstance(changes, int) and changes else []
    flags, calls = record.get("flags"), record.get("calls")
    parts += [f"flags: {', '.join(map(str, flags))}"] if isinstance(flags, list) and flags else []
    if isinstance(calls, list) and calls and isinstance(last := calls[-1], dict):
        prompt = f", prompt {str(last['prompt_sha256'])[:8]}" if last["prompt_sha256"] else ""
        parts.append(f"by {last['model']}{prompt}, attempt {int(str(last['attempt'])) + 1}")
    return core.shorten("; ".join(parts), 2000)
