"""The funnel of a project's stages, and the history of one record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches

from pydantic import JsonValue

from proctor.core import InputError, Usage, count_of
from proctor_build.pipeline.project import Project
from proctor_build.pipeline.records import Refused, UnitFile
from proctor_build.pipeline.runner import Folder, reads_from, stages_of, units_of
from proctor_build.pipeline.stage import ALL


@dataclass(frozen=True)
class FunnelRow:
    """One stage: how many of its `units` are done, the records that came `into` it and `out` of it (or what `makes`
    names), how many of these have a flag, how many drafts it refused; model calls that no earlier stage made, how many of
    them gave no readable reply, their tokens, and their cost in US dollars (None: unknown)."""

    stage: str
    summary: str
    done: int
    units: int
    into: int | None
    out: int
    flagged: int
    refused: int
    calls: int
    failed_calls: int
    tokens: int
    cost_usd: float | None
    reasons: tuple[str, ...]
    flags: dict[str, int]
    notes: tuple[str, ...]
    makes: str = ""


def funnel(project: Project) -> list[FunnelRow]:
    """The stages in order, from their files alone."""
    out: dict[str, int] = {}
    rows, counted = [], set[str]()  # records also hold the calls behind earlier records
    stages = stages_of(project)
    for stage in stages:
        folder, before = Folder(project, stage), reads_from(stage, stages)
        units = units_of(project, stage)
        made = [one for unit in units if (one := folder.read(unit))]
        records = [record for unit_file in made for record in unit_file.records]
        refused = [entry for unit_file in made for entry in unit_file.refused]
        out[stage.name] = len(records)
        flags = Counter(flag for record in records for flag in _texts(record, "flags"))
        keys = {str(call["key"]) for record in records for call in _calls(record)}
        keys |= {call.key for entry in refused for call in entry.calls}
        usage, counted = _usage(project, keys - counted), counted | keys
        failed = sum((entry.usage for entry in refused), Usage())
        usage += failed
        rows.append(
            FunnelRow(
                stage.name,
                stage.summary,
                len(made),
                len(units),
                out[before[-1]] if before else None,
                out[stage.name],
                sum(bool(_texts(record, "flags")) for record in records),
                len(refused),
                usage.requests,
                failed.requests,
                usage.input_tokens + usage.output_tokens,
                usage.cost_usd,
                tuple(_reasons(refused)),
                dict(flags.most_common()),
                tuple(note for unit_file in made for note in _notes(unit_file)),
                stage.makes,
            )
        )
    return rows


def _usage(project: Project, keys: set[str]) -> Usage:
    """The usage of the calls with these keys, as the project's journal has it."""
    usage = Usage()
    if keys and (project.work / "journal.sqlite").is_file():
        for judgement in project.store.judgements(keys).values():
            usage += judgement.usage
    return usage


def _notes(made: UnitFile) -> list[str]:
    return [note if made.unit == ALL else f"{made.unit}: {note}" for note in made.notes]


def first_causes(project: Project) -> list[str]:
    """Why a project has nothing to go on with, as a sentence: of the first stage whose calls all failed, or that made
    nothing of what it got. Empty if there is none."""
    for row in funnel(project):
        why = row.reasons[0] if row.reasons else ""
        if row.failed_calls and row.failed_calls == row.calls:
            return [f"{row.stage}: the model gave no readable reply in {count_of(row.calls, 'call')}: {why}"]
        if row.done and not row.out and row.refused:
            given = "" if row.into is None else f" of {count_of(row.into, 'record')}"
            return [f"{row.stage}: nothing was made{given}: {why}"]
    return []


@dataclass(frozen=True)
class HistoryStep:
    """One record in the history of another, in order of stages. `version` is the number of a former version of its unit
    (0: the current one); `replies` are those of models."""

    stage: str
    unit: str
    version: int
    record: dict[str, JsonValue]
    refused: bool
    replies: tuple[dict[str, JsonValue], ...]


def history(project: Project, item: str) -> list[HistoryStep]:
    """The records that led to a record, stage by stage, its versions, and the records made from it. Raises `InputError`
    with similar ids for an unknown one."""
    entries = list(_entries(project))
    known = {str(record["id"]) for _, _, _, record, _ in entries}
    if item not in known:
        near = get_close_matches(item, sorted(known), n=3) or sorted(known)[:3]
        raise InputError(project.folder, "item", found=repr(item), expected=f"an id such as {', '.join(near)}")
    parents: dict[str, set[str]] = {}
    children: dict[str, set[str]] = {}
    for _, _, _, record, _ in entries:
        for parent in _texts(record, "made_from"):
            parents.setdefault(str(record["id"]), set()).add(parent)
            children.setdefault(parent, set()).add(str(record["id"]))
    wanted = _reached(parents, item) | _reached(children, item)
    steps = []
    with closing(project.store):
        for stage, unit, version, record, refused in entries:
            if record["id"] in wanted:
                judgements = project.store.judgements([str(call["key"]) for call in _calls(record)])
                replies: tuple[dict[str, JsonValue], ...] = tuple(
                    {"judge": judgement.judge, "reply": dict(judgement.reply)} for judgement in judgements.values()
                )
                steps.append(HistoryStep(stage, unit, version, record, refused, replies))
    return steps


def _reasons(refused: Sequence[Refused]) -> list[str]:
    """A line for each reason that more than three records share, with three of them, and one for every other record."""
    groups: dict[str, list[Refused]] = {}
    for one in refused:
        groups.setdefault(_why(one), []).append(one)
    lines: list[str] = []
    for why, some in groups.items():
        ids = [one.id for one in some]
        more = f"{', '.join(ids[:_SHOWN])} and {len(ids) - _SHOWN:,} more"
        lines += [f"{len(ids):,} times: {why} ({more})"] if len(ids) > _SHOWN else [f"{one}: {why}" for one in ids]
    return lines


def _why(refused: Refused) -> str:
    """Why a record was refused; where a model gave nothing, what it gave instead."""
    if refused.kind.startswith("no ") and refused.found:
        return f"{refused.kind}: {refused.found}"
    return refused.reason if refused.reason.startswith(refused.kind) else f"{refused.kind}: {refused.reason}"


_SHOWN = 3  # records of one reason

Entry = tuple[str, str, int, dict[str, JsonValue], bool]


def _entries(project: Project) -> Iterator[Entry]:
    """(stage, unit, version, record, refused) of all records, the oldest version first."""
    for stage in stages_of(project):
        folder = Folder(project, stage)
        for unit in units_of(project, stage):
            now = folder.read(unit)
            versions = [*enumerate(folder.history(unit), start=1), *([(0, now)] if now else [])]
            for version, made in versions:
                for record in made.records:
                    yield stage.name, unit, version, record, False
                for refused in made.refused:
                    yield stage.name, unit, version, refused.model_dump(mode="json"), True


def _reached(links: dict[str, set[str]], start: str) -> set[str]:
    found, ahead = {start}, [start]
    while ahead:
        new = links.get(ahead.pop(), set()) - found
        found |= new
        ahead += new
    return found


def _texts(record: dict[str, JsonValue], field: str) -> list[str]:
    given = record.get(field)
    return [str(one) for one in given] if isinstance(given, list) else []


def _calls(record: dict[str, JsonValue]) -> list[dict[str, JsonValue]]:
    """The calls behind a record, with those of its screening."""
    held = record.get("screening")
    given = [record.get("calls"), held.get("calls") if isinstance(held, dict) else None]
    return [one for some in given if isinstance(some, list) for one in some if isinstance(one, dict)]
