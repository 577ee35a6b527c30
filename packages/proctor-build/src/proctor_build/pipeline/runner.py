"""Run the stages of a project that are not up to date.

Workflow engines (Snakemake, Prefect, DVC) know files and not records: one changed item would make a whole stage due.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import JsonValue

from proctor.core import (
    FrozenModel,
    InfrastructureError,
    InputError,
    ProctorError,
    Registry,
    Steps,
    UsageError,
    one_of,
    read_model,
    read_yaml,
    replacing,
    shell_word,
    validated,
    whole_folder,
)
from proctor.media import Catalogue, cache_folder
from proctor.models import RejectionWatch
from proctor_build.pipeline.project import SETTINGS_FILE, Project
from proctor_build.pipeline.records import Record, UnitFile
from proctor_build.pipeline.stage import ALL, Made, Stage, WaitingError, Work, made_from, stage_settings

R = TypeVar("R", bound=Record)

_ATTEMPTS = "attempts.json"
_AT_ONCE = 8  # units of one stage


@dataclass(frozen=True)
class RecordToReview:
    """One record of a project as an item of a review: its `key`, its source and stretch of the video (in seconds), and
    the fields for the review's form. With `read_by` one more person is to read it than these."""

    key: str
    source: str
    start: float
    end: float
    body: Mapping[str, JsonValue]
    read_by: int | None = None


@dataclass(frozen=True)
class ToReview:
    """What of a project people read in a review: its `form`, the records that wait for them now, and the `stage` that
    reads what they settled."""

    form: str
    records: Callable[[Project], Sequence[RecordToReview]]
    stage: str = ""


@dataclass(frozen=True)
class ProjectKind:
    """A kind of project and its stages in order; `example` is the `project.yaml` of a new one. Without `to_review`
    people read its questions, if it has any."""

    name: str
    summary: str
    stages: tuple[Stage[Any], ...]
    example: Path
    to_review: tuple[ToReview, ...] = ()

    def stage(self, name: str) -> Stage[Any]:
        """A stage by name. Raises `InputError` with all names for an unknown one."""
        found = next((stage for stage in self.stages if stage.name == name), None)
        if found is None:
            names = [stage.name for stage in self.stages]
            raise InputError("stage", found=repr(name), expected=one_of(names, name))
        return found


PROJECT_KINDS: Registry[ProjectKind] = Registry(
    "kind of project",
    group="proctor.project_kinds",
    fits=lambda thing: isinstance(thing, ProjectKind),
    expected="a ProjectKind",
)
"""The kinds of `proctor build new --kind`; tasks add them by entry points."""


class DamagedError(InputError):
    """A file that stages wrote can't be read; the message says what to do."""


@dataclass(frozen=True)
class UnitState:
    """The outcome of one unit of a stage: `made` now (`why`: its file was damaged), `kept` from before, or
    `waiting`, and why."""

    stage: str
    unit: str
    state: str
    why: str = ""


class Folder(Generic[R]):
    """The files of one stage in a project."""

    def __init__(self, project: Project, stage: Stage[R]) -> None:
        self.stage = stage
        self.path = project.work / stage.name
        self._file = project.file
        self._folder = project.folder

    def read(self, unit: str) -> UnitFile | None:
        """The file of a unit; None without one. Raises `DamagedError` for a damaged file."""
        file = self.path / f"{unit}.json"
        if not file.is_file():
            return None
        with _told(f"`proctor build run {shell_word(self._folder)}` makes it again"):
            made = read_model(file, UnitFile, "a stage's records")
            self.records(made)
            return made

    def records(self, made: UnitFile) -> list[R]:
        """The records of a unit's file."""
        file = self.path / f"{made.unit}.json"
        return [
            validated(self.stage.record, one, file, f"record {number}")
            for number, one in enumerate(made.records, start=1)
        ]

    def write(self, made: UnitFile) -> None:
        """Writes a unit's file; the former one is moved to the history."""
        file = self.path / f"{made.unit}.json"
        if file.is_file():
            _copy(file, self.path / "history" / f"{made.unit}.{len(self._former(made.unit)) + 1:03d}.json")
        _write_json(file, made.model_dump(mode="json"))

    def set_aside(self, unit: str) -> Path:
        """Moves a unit's damaged file into the history, beside the versions; returns its new path."""
        file, number = self.path / f"{unit}.json", 1
        while (aside := self.path / "history" / f"{unit}.damaged-{number}.json").exists():
            number += 1
        _copy(file, aside)
        file.unlink()
        return aside

    def history(self, unit: str) -> list[UnitFile]:
        """The former versions of a unit, oldest first."""
        with _told("nothing is made from former versions: move it away"):
            return [read_model(path, UnitFile, "a stage's records") for path in self._former(unit)]

    def _former(self, unit: str) -> list[Path]:
        return sorted((self.path / "history").glob(f"{unit}.[0-9][0-9][0-9].json"))

    def attempts(self) -> dict[str, dict[str, int]]:
        """How often units and records were redone: by unit, then by record ("": the whole unit)."""
        file = self.path / _ATTEMPTS
        with _told("without it, the next run restores the first versions: delete it, and redo what you had redone"):
            return read_model(file, _Attempts, "counts of attempts").units if file.is_file() else {}

    def count_attempt(self, unit: str, record: str, change: int) -> int:
        """Adds `change` to a count and returns it. Raises `InputError` if there is nothing to undo."""
        counts = self.attempts()
        mine = counts.setdefault(unit, {})
        count = mine.get(record, 0) + change
        if count < 0:
            where = f"{self.stage.name}: {record or unit}"
            raise InputError(self._file.parent, where, found="the first version", expected="one made again before")
        mine[record] = count
        _write_json(self.path / _ATTEMPTS, {"units": counts})
        return count


class _Attempts(FrozenModel):
    units: dict[str, dict[str, int]]


def new_project(folder: Path, kind: str) -> None:
    """Starts a project: a new folder with a commented project.yaml and a folder for sources. Raises `UsageError` for an
    unknown kind, and `InputError` for a folder that is not empty."""
    if kind not in PROJECT_KINDS.names():
        raise UsageError(f"--kind {kind!r} is unknown: choose {one_of(PROJECT_KINDS.names(), kind)}")
    chosen = PROJECT_KINDS.get(kind)
    named = read_yaml(chosen.example, "a project.yaml").get("kind")
    if named != kind:
        expected = f"{kind!r}, the kind that it is an example of"
        raise InputError(chosen.example, "kind", found=repr(named), expected=expected)
    with whole_folder(folder) as draft:
        (draft / "sources").mkdir()
        shutil.copyfile(chosen.example, draft / SETTINGS_FILE)


def kind_of(project: Project) -> ProjectKind:
    """The kind of a project. Raises `UnknownNameError` with all kinds for an unknown one."""
    return PROJECT_KINDS.get(project.settings.kind)


def stages_of(project: Project, named: str = "") -> list[Stage[Any]]:
    """The stages of a project in order: those of its kind, without optional ones that are neither in `project.yaml`
    nor `named` and were never run. Raises `InputError` for an unknown stage or setting in `project.yaml`."""
    kind = kind_of(project)
    known = [one.name for one in kind.stages]
    for name in project.settings.stages:
        if name not in known:
            raise InputError(project.file, "stages", found=repr(name)[:80], expected=one_of(known, name))
    for stage in kind.stages:
        stage_settings(project, stage.name, stage.settings)
    wanted = {*project.settings.stages, named}
    return [
        one
        for one in kind.stages
        if not one.optional
        or one.name in wanted
        or any((project.work / one.name / f"{unit}.json").is_file() for unit in units_of(project, one))
    ]


def reads_from(stage: Stage[Any], stages: Sequence[Stage[Any]]) -> tuple[str, ...]:
    """The stages whose records a stage reads, with the optional ones among a project's `stages`, in order."""
    there = {one.name for one in stages if one.name in stage.also_after}
    return tuple(one.name for one in stages if one.name in {*stage.after, *there}) if there else stage.after


def units_of(project: Project, stage: Stage[Any]) -> list[str]:
    """The units of a stage: the ids of the sources, or `ALL`."""
    return [ALL] if stage.whole else [source.id for source in project.settings.sources]


def records_of(project: Project, stage: Stage[R]) -> list[R]:
    """The records of a stage on disk, of all its units."""
    stored = Folder(project, stage)
    files = [made for unit in units_of(project, stage) if (made := stored.read(unit))]
    return [record for made in files for record in stored.records(made)]


async def run_stages(
    project: Project, *, until: str = "", only: Sequence[str] = (), steps: Steps | None = None
) -> list[UnitState]:
    """Runs the stages of `stages_of` in order, up to the stage `until`; `only` limits the sources.

    A unit whose inputs have not changed is kept, so a second run asks no model. A unit that can't be made (no model
    replies, a person must act first) is `waiting`, and so are the units that depend on it; the others go on.
    Raises `InputError` for what a person must correct.
    """
    kind, stages = kind_of(project), stages_of(project, until)
    if until:
        kind.stage(until)
    known = [source.id for source in project.settings.sources]
    for name in only:
        if name not in known:
            raise UsageError(f"--source {repr(name)[:80]} is unknown: choose {one_of(known, name)}")
    if not known:
        raise InputError(project.file, "sources", found="none", expected="at least one, with id and video")
    states: list[UnitState] = []
    with project.alone(), closing(project.store):
        try:
            for stage in stages:
                units = [one for one in units_of(project, stage) if not only or one in {ALL, *only}]
                shown = nullcontext(_no_progress) if steps is None else steps(stage.name, len(units))
                with shown as progress:
                    before = [kind.stage(name) for name in reads_from(stage, stages)]
                    states += await _Runner(project, stage, before, states).run(units, progress)
                if stage.name == until:
                    break
        finally:
            await project.aclose()
    return states


def _no_progress(done: int, total: int) -> None:
    del done, total


class _Runner:
    def __init__(
        self, project: Project, stage: Stage[Any], before: Sequence[Stage[Any]], so_far: Sequence[UnitState]
    ) -> None:
        self._project, self._stage = project, stage
        self._folder = Folder(project, stage)
        self._before = {one.name: Folder(project, one) for one in before}
        self._waiting = {(unit_state.stage, unit_state.unit) for unit_state in so_far if unit_state.state == "waiting"}
        self._attempts = self._folder.attempts()
        self._files = Catalogue(cache_folder())
        self._watch, self._rejected = RejectionWatch(), dict[str, ProctorError]()

    async def run(self, units: Sequence[str], progress: Callable[[int, int], None]) -> list[UnitState]:
        done, gate = 0, asyncio.Semaphore(_AT_ONCE)

        async def one(unit: str) -> UnitState:
            nonlocal done
            async with gate:
                state = await self._watched(unit)
            done += 1
            progress(done, len(units))
            return state

        results = await asyncio.gather(*(one(unit) for unit in units), return_exceptions=True)
        faults = [result for result in results if isinstance(result, BaseException)]
        if faults:  # the others have ended by now, and what they made is kept
            for more in dict.fromkeys(str(fault) for fault in faults[1:]):
                if more != str(faults[0]):
                    faults[0].add_note(more)
            raise faults[0]
        return [result for result in results if isinstance(result, UnitState)]

    async def _watched(self, unit: str) -> UnitState:
        """The state of a unit. Raises `ConfigurationError` if a server rejects the first few units alike."""
        await self._watch.begin()
        state = None
        try:
            state = await self._unit(unit)
        finally:
            if (error := self._rejected.get(unit)) is not None:
                self._watch.rejected(unit, unit, kind=error.rejected, reason=str(error))
            elif state is not None and state.state == "made":
                self._watch.answered()
            else:
                self._watch.neither()
        if self._watch.fault is not None:
            raise self._watch.fault
        return state

    async def _unit(self, unit: str) -> UnitState:
        name = self._stage.name
        missing = self._not_there(unit)
        if missing:
            return UnitState(name, unit, "waiting", f"for {missing}")
        work = self._work(unit)
        folder = self._project.folder
        files = {
            str(read.relative_to(folder) if read.is_relative_to(folder) else read): self._files.identity(read)
            for read in self._stage.reads(work)
        }
        key = made_from(self._stage, work, files)
        there, why = self._before_now(unit)
        if there is not None and there.made_from == key and self._stage.stands(self._project, there):
            return UnitState(name, unit, "kept")
        try:
            made: Made[Any] = await self._stage.make(work)
        except (WaitingError, InfrastructureError) as error:
            if error.rejected:
                self._rejected[unit] = error
            return UnitState(name, unit, "waiting", str(error))
        self._check(unit, made)
        self._folder.write(
            UnitFile(
                stage=name,
                unit=unit,
                made_from=key,
                attempts=dict(work.attempts),
                records=tuple(record.model_dump(mode="json") for record in made.records),
                refused=tuple(made.refused),
                notes=tuple(made.notes),
            )
        )
        return UnitState(name, unit, "made", why)

    def _before_now(self, unit: str) -> tuple[UnitFile | None, str]:
        """The unit's file from before. A damaged one is moved away, so that the unit is made again; then also why."""
        try:
            return self._folder.read(unit), ""
        except DamagedError as error:
            aside = self._folder.set_aside(unit)
            return None, f"{str(error).partition('; ')[0]}; kept as {aside}"

    def _work(self, unit: str) -> Work:
        every = self._project.settings.sources
        sources = (
            every if self._stage.whole else tuple(source_video for source_video in every if source_video.id == unit)
        )
        before: dict[str, list[Record]] = {}
        for name, folder in self._before.items():
            units = units_of(self._project, folder.stage) if self._stage.whole else [unit]
            before[name] = [record for one in units if (made := folder.read(one)) for record in folder.records(made)]
        return Work(self._project, self._stage.name, unit, sources, before, self._attempts.get(unit, {}))

    def _not_there(self, unit: str) -> str:
        """What is missing of the stages before."""
        for name, folder in self._before.items():
            needed = units_of(self._project, folder.stage) if self._stage.whole or folder.stage.whole else [unit]
            lacking = [one for one in needed if (name, one) in self._waiting or folder.read(one) is None]
            if lacking:
                return f"{name} of {', '.join(lacking[:3])}" + (" …" if len(lacking) > 3 else "")
        return ""

    def _check(self, unit: str, made: Made[Any]) -> None:
        ids = [record.id for record in made.records]
        twice = next((one for one in ids if ids.count(one) > 1), None)
        if twice is not None:
            location = f"{self._stage.name}: {unit}"
            raise InputError(self._project.folder, location, found=f"the id {twice!r} twice", expected="each once")


def redo_record(project: Project, stage: str, item: str = "", *, undo: bool = False) -> int:
    """Marks a stage (all its units), one unit, or one record of it for the next run to make again. With `undo` the last
    such mark is removed: the former version is restored from the journal, without asking a model. Returns the number of
    the attempt."""
    folder = Folder(project, kind_of(project).stage(stage))
    units = units_of(project, folder.stage)
    with project.alone():
        change = -1 if undo else 1
        if not item or item in units:
            return max(folder.count_attempt(unit, "", change) for unit in ([item] if item else units))
        files = [made for unit in units if (made := folder.read(unit))]
        for made in files:
            if any(record.get("id") == item for record in made.records) or any(
                refused.id == item for refused in made.refused
            ):
                return folder.count_attempt(made.unit, item, change)
    known = [str(record.get("id")) for made in files for record in made.records]
    raise InputError(project.folder, f"{stage}: item", found=repr(item), expected=one_of(known[:8], item))


@contextmanager
def _told(then: str) -> Iterator[None]:
    """Turns faults of a file that stages wrote into a `DamagedError` that says what to do then."""
    try:
        yield
    except InputError as error:
        raise DamagedError(f"{error}; {then}") from error


def _copy(file: Path, to: Path) -> None:
    with replacing(to) as draft:
        draft.write_bytes(file.read_bytes())


def _write_json(file: Path, content: Mapping[str, Any]) -> None:
    try:
        with replacing(file) as draft:
            draft.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(file, found=error.strerror or str(error), expected="a writable path") from error
