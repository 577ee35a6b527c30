"""What became of a project: the funnel of its stages, and the history of one record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import JsonValue

from proctor.construction.pipeline.project import Project
from proctor.construction.pipeline.records import Refused, UnitFile
from proctor.construction.pipeline.runner import Folder, reads_from, stages_of, units_of
from proctor.construction.pipeline.stage import ALL
from proctor.core import InputError, Noted, Usage, by_cause


@dataclass(frozen=True)
class FunnelRow:
    """One stage: of how many `units` it is done, how many records came `into` it and `out` of it (files, where `makes`
    says so), how many of these have a flag, how many drafts were refused; what was asked for it and not before, and
    its price in US dollars (None: not known)."""

    stage: str
    summary: str
    done: int
    units: int
    into: int | None
    out: int
    flagged: int
    refused: int
    calls: int
    tokens: int
    cost_usd: float | None
    reasons: tuple[str, ...]
    flags: dict[str, int]
    notes: tuple[str, ...]
    makes: str = ""

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return asdict(self) | {"reasons": list(self.reasons), "notes": list(self.notes)}


def funnel(project: Project) -> list[FunnelRow]:
    """The stages in their order, from what is on disk; nothing is asked."""
    out: dict[str, int] = {}
    rows, counted = [], set[str]()  # records keep the calls of those that they were made from
    journal = (project.work / "journal.sqlite").is_file()
    stages = stages_of(project)
    for stage in stages:
        folder, before = Folder(project, stage), reads_from(stage, stages)
        units = units_of(project, stage)
        made = [one for unit in units if (one := folder.read(unit))]
        out[stage.name] = sum(len(one.records) for one in made)
        refused = [(one.unit, entry) for one in made for entry in one.refused]
        flags = Counter(str(flag) for one in made for record in one.records for flag in _flags(record))
        keys = {str(call["key"]) for one in made for record in one.records for call in _calls(record)}
        keys |= {call.key for _, entry in refused for call in entry.calls}
        keys, counted, usage = keys - counted, counted | keys, Usage()
        if keys and journal:
            for vote in project.store.votes(keys).values():
                usage += vote.usage
        noted = [Noted(one.kind, one.id, one.found or "it", one.reason, _line(one)) for _, one in refused]
        rows.append(
            FunnelRow(
                stage.name,
                stage.summary,
                len(made),
                len(units),
                out[before[-1]] if before else None,
                out[stage.name],
                sum(bool(_flags(record)) for one in made for record in one.records),
                len(refused),
                usage.requests,
                usage.input_tokens + usage.output_tokens,
                usage.cost_usd,
                tuple(by_cause(noted)),
                dict(flags.most_common()),
                tuple(note if one.unit == ALL else f"{one.unit}: {note}" for one in made for note in one.notes),
                stage.makes,
            )
        )
    return rows


@dataclass(frozen=True)
class HistoryStep:
    """One record in the history of another: what it was made from comes before it, what was made of it after. `version`
    counts the former versions of its unit (0: it stands today); `replies` are what models said."""

    stage: str
    unit: str
    version: int
    record: dict[str, JsonValue]
    refused: bool
    replies: tuple[dict[str, JsonValue], ...]


def history(project: Project, item: str) -> list[HistoryStep]:
    """The whole history of a record: all that led to it, stage by stage, its versions, and what was made of it. Raises
    `InputError` for an id that no stage knows; the nearest one is named."""
    entries = list(_entries(project))
    known = {str(record["id"]) for _, _, _, record, _ in entries}
    if item not in known:
        near = get_close_matches(item, sorted(known), n=3) or sorted(known)[:3]
        raise InputError(project.folder, "item", found=repr(item), expected=f"an id such as {', '.join(near)}")
    wanted = _before(entries, item) | _after(entries, item)
    steps = []
    with closing(project.store):
        for stage, unit, version, record, refused in entries:
            if record["id"] in wanted:
                votes = project.store.votes([str(call["key"]) for call in _calls(record)])
                replies: tuple[dict[str, JsonValue], ...] = tuple(
                    {"judge": vote.judge, "reply": dict(vote.reply)} for vote in votes.values()
                )
                steps.append(HistoryStep(stage, unit, version, record, refused, replies))
    return steps


def _line(one: Refused) -> str:
    """What was refused, and why: the reason says what was expected, or what is wrong."""
    return f"{one.id}: {one.reason}" if one.reason.startswith(one.kind) else f"{one.id}: {one.kind}: {one.reason}"


Entry = tuple[str, str, int, dict[str, JsonValue], bool]


def _entries(project: Project) -> Iterator[Entry]:
    """(stage, unit, version, record, refused) of all records, the oldest version first."""
    for stage in stages_of(project):
        folder = Folder(project, stage)
        for unit in units_of(project, stage):
            now = folder.read(unit)
            former: list[UnitFile] = folder.history(unit)
            versions = [*((number, one) for number, one in enumerate(former, start=1)), *([(0, now)] if now else [])]
            for version, made in versions:
                for record in made.records:
                    yield stage.name, unit, version, record, False
                for one in made.refused:
                    yield stage.name, unit, version, one.model_dump(mode="json"), True


def _before(entries: list[Entry], item: str) -> set[str]:
    parents: dict[str, set[str]] = {}
    for _, _, _, record, _ in entries:
        parents.setdefault(str(record["id"]), set()).update(_parents(record))
    return _reached(parents, item)


def _after(entries: list[Entry], item: str) -> set[str]:
    children: dict[str, set[str]] = {}
    for _, _, _, record, _ in entries:
        for parent in _parents(record):
            children.setdefault(parent, set()).add(str(record["id"]))
    return _reached(children, item)


def _reached(links: dict[str, set[str]], start: str) -> set[str]:
    found, ahead = {start}, [start]
    while ahead:
        new = links.get(ahead.pop(), set()) - found
        found |= new
        ahead += new
    return found


def _parents(record: dict[str, JsonValue]) -> list[str]:
    given = record.get("made_from")
    return [str(one) for one in given] if isinstance(given, list) else []


def _flags(record: dict[str, JsonValue]) -> list[str]:
    given = record.get("flags")
    return [str(one) for one in given] if isinstance(given, list) else []


def _calls(record: dict[str, JsonValue]) -> list[dict[str, JsonValue]]:
    """The calls behind a record, with those of the screening that it holds."""
    held = record.get("screening")
    given = [record.get("calls"), held.get("calls") if isinstance(held, dict) else None]
    return [one for some in given if isinstance(some, list) for one in some if isinstance(one, dict)]
