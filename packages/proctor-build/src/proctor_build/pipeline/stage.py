"""Stages: each makes records of one kind from those of the stages before it, one unit at a time."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from proctor.core import (
    Frame,
    FrozenModel,
    InputError,
    NoVerdictError,
    ProctorError,
    RefusalError,
    Usage,
    content_hash,
    generator,
    refusal,
)
from proctor.judges import CachedModel, StoredReply, as_said, as_text
from proctor.media import Sound
from proctor.models import load_prompt
from proctor_build.pipeline.project import Project, SourceVideo, check_inside
from proctor_build.pipeline.records import Call, Record, Refused, UnitFile

if TYPE_CHECKING:
    import numpy as np

    from proctor.tracks import Annotation

R = TypeVar("R", bound=Record)
S = TypeVar("S", bound=FrozenModel)
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
U = TypeVar("U")

PROMPTS = Path(__file__).with_name("prompts")

ALL = "all"
"""The unit of a stage that takes all sources together."""


class StageSettings(FrozenModel):
    """The settings of a stage, in `project.yaml` under its name; all have defaults."""


class WaitingError(ProctorError):
    """A stage needs input from a person first; the message says what."""


@dataclass(frozen=True)
class Work:
    """One unit of a stage: a source, or all of them. `before` are the records of earlier stages, by stage; `attempts`
    counts how often the unit ("") or one of its records was redone."""

    project: Project
    stage: str
    unit: str
    sources: tuple[SourceVideo, ...]
    before: Mapping[str, Sequence[Record]]
    attempts: Mapping[str, int] = field(default_factory=dict)

    @property
    def source(self) -> SourceVideo:
        """The one source of the unit."""
        return self.sources[0]

    def records(self, stage: str, kind: type[R]) -> list[R]:
        """The records of an earlier stage."""
        return [record for record in self.before[stage] if isinstance(record, kind)]

    def attempt(self, item: str = "") -> int:
        """How often the unit, and this record of it, were redone."""
        return self.attempts.get("", 0) + (self.attempts.get(item, 0) if item else 0)

    def settings(self, kind: type[S]) -> S:
        """The stage's settings. Raises `InputError` for an unknown one."""
        return stage_settings(self.project, self.stage, kind)

    def generator(self, *names: str) -> np.random.Generator:
        """A generator for one purpose, from the project's seed."""
        return generator(self.project.settings.seed, self.stage, self.unit, str(self.attempt()), *names)

    def asker(self, role: str, prompt: Path | None = None) -> Asker:
        """Access to the first model of a role, with a prompt (none for a speech recogniser)."""
        return Asker(self, role, prompt)


class Asker:
    """Asks a model for replies of a given form. Replies are cached in the project's journal by model, prompt file,
    prompt values and attempt."""

    def __init__(self, work: Work, role: str, prompt: Path | None = None, number: int = 0) -> None:
        self._work = work
        self._client = work.project.clients(role)[number]
        self._prompt = load_prompt(prompt) if prompt is not None else None
        self.model = self._client.name
        self._cached = CachedModel(f"build.{work.stage}", self._client, work.project.store)

    async def ask(
        self, form: type[M], item: str, values: Mapping[str, object], *, pictures: Sequence[Frame] = (), draw: int = 0
    ) -> tuple[M, Call]:
        """The model's reply about `item` to the prompt with `values`, followed by `pictures`. Another `draw` is another
        reply to the same prompt.

        Raises `RefusalError` if the model declines or its reply does not fit the form, and `InfrastructureError` if no
        reply arrives.
        """
        return await self._asked(as_said(form), item, values, pictures, draw)

    async def words(self, item: str, values: Mapping[str, object], *, draw: int = 0) -> tuple[str, Call]:
        """The model's reply in its own words, for an answer format to read. Raises as `ask`."""
        return await self._asked(as_text(), item, values, (), draw)

    async def _asked(
        self, stored: StoredReply[T], item: str, values: Mapping[str, object], pictures: Sequence[Frame], draw: int
    ) -> tuple[T, Call]:
        if self._prompt is None:
            raise ValueError("no prompt to ask with")
        system, user = self._prompt.render(**values)
        content: dict[str, JsonValue] = {
            "prompt": self._prompt.sha256,
            "system": system,
            "user": user,
            **({"pictures": [hashlib.sha256(picture.jpeg).hexdigest() for picture in pictures]} if pictures else {}),
            "seed": self._work.project.settings.seed,
            **({"draw": draw} if draw else {}),
        }
        return await self._kept(stored, [user, *pictures], content, item, system)

    async def first_valid(
        self,
        form: type[M],
        values: Mapping[str, object],
        draws: range,
        failed: Refused,
        check: Callable[[M, tuple[Call, ...]], R | Refused | str],
        *,
        pictures: Sequence[Frame] = (),
        shown: Callable[[M], str] = BaseModel.model_dump_json,
    ) -> R | Refused:
        """Asks for a record, once for each of `draws`, until `check` returns one, or a refusal, instead of the rule that a
        reply breaks; the next prompt names that rule. Otherwise returns the last reply as `shown`, with that rule; or `failed`, if the
        model declines. `failed.calls` are the calls behind former versions."""
        reason, found, calls = "", "", failed.calls
        for draw in draws:
            try:
                reply, call = await self.ask(
                    form, failed.id, {**values, "refused": reason}, pictures=pictures, draw=draw
                )
            except RefusalError as error:
                return Refused.of(failed.id, failed.kind, failed.reason, error, failed.made_from, calls)
            calls = (*calls, call)
            made = check(reply, calls)
            if not isinstance(made, str):
                return made
            reason, found = made, shown(reply)
        return Refused.of(failed.id, reason.partition(":")[0], reason, found, failed.made_from, calls)

    async def hear(self, form: type[M], item: str, sound: Sound) -> tuple[M, Call]:
        """The transcript of a sound. The cache key is the samples alone, not the file, the stretch or the project's
        seed. Raises as `ask`."""
        content: dict[str, JsonValue] = {"sound": hashlib.sha256(sound.wav).hexdigest()}
        return await self._kept(as_said(form), [sound], content, item, "")

    async def _kept(
        self,
        stored: StoredReply[T],
        parts: Sequence[str | Frame | Sound],
        content: dict[str, JsonValue],
        item: str,
        system: str,
    ) -> tuple[T, Call]:
        attempt = self._work.attempt(item)
        content |= {"kind": f"build.{self._work.stage}", "attempt": attempt}
        try:
            value, judgement = await self._cached.ask(stored, parts, content=content, item_id=item, system=system)
        except NoVerdictError as error:
            raise RefusalError(str(error).replace("no verdict", "no draft")).after(error.usage or Usage()) from error
        prompt = self._prompt.sha256 if self._prompt is not None else ""
        return value, Call(key=judgement.key, model=self._client.name, prompt_sha256=prompt, attempt=attempt)


@dataclass(frozen=True)
class Made(Generic[R]):
    """The result of a stage for one unit: records in order, what it rejected, and notes for the funnel."""

    records: Sequence[R]
    refused: Sequence[Refused] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class StageTable:
    """A table that people fill in: CSV, its number of rows, and what a row is."""

    text: str
    rows: int
    what: str


class Stage(ABC, Generic[R]):
    """A stage of a project.

    `after` are the stages whose records it reads, `also_after` those that it reads if the project has them. A `whole`
    stage takes all sources together, others one at a time. An `optional` stage belongs to a project if `project.yaml`
    names it or it was run by name. `makes` names the records if they are not what earlier stages count ("files").
    `states` are the fields of `project.yaml` that its files state ("title"). `has_table` says that it has a `table` for
    people, and `tracks_as` is the usual format of its `tracks` ("": it has none).
    Units are made again when `version` or the content of a prompt (`prompts_of`) changes.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    after: ClassVar[tuple[str, ...]] = ()
    also_after: ClassVar[tuple[str, ...]] = ()
    whole: ClassVar[bool] = False
    makes: ClassVar[str] = ""
    states: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[bool] = False
    version: ClassVar[int] = 1
    has_table: ClassVar[bool] = False
    tracks_as: ClassVar[Literal["", "cvat", "coco", "json"]] = ""
    record: type[R]
    settings: type[StageSettings] = StageSettings
    roles: ClassVar[tuple[str, ...]] = ()
    prompts: tuple[Path, ...] = ()

    def prompts_of(self, project: Project) -> Sequence[Path]:
        """The prompts of a project, which its settings may choose. Raises `InputError` for one that is not there."""
        del project
        return self.prompts

    def reads(self, work: Work) -> Sequence[Path]:
        """The files that the unit depends on besides records. Raises `InputError` for a missing one."""
        del work
        return ()

    def stands(self, project: Project, made: UnitFile) -> bool:
        """Whether what was made besides records still exists."""
        del project, made
        return True

    def table(self, project: Project) -> StageTable:
        """The table for the next step of people, from the records on disk."""
        raise NotImplementedError(f"the stage {self.name} has no table: {project.folder}")

    def tracks(self, project: Project) -> Sequence[Annotation]:
        """The tracks for an annotation program, from the records on disk."""
        raise NotImplementedError(f"the stage {self.name} has no tracks: {project.folder}")

    @abstractmethod
    async def make(self, work: Work) -> Made[R]:
        """The records of a unit; the same input, journal and attempts give identical records.

        Raises `WaitingError` if a person must act first, `InfrastructureError` if a model can't be reached (earlier
        replies are cached), and `InputError` for a file that can't be used.
        """


def stage_settings(project: Project, stage: str, kind: type[S]) -> S:
    """A stage's settings. Raises `InputError` with the field for an invalid one."""
    try:
        return kind.model_validate(project.settings.stages.get(stage, {}))
    except ValidationError as error:
        raise refusal(project.file, f"stages: {stage}", error, kind) from error


def chosen_template(project: Project, stage: str, choice: str, usual: Path, named: Mapping[str, Path]) -> Path:
    """The prompt file of a stage that its setting `prompt` chooses: the usual one (""), one by name, or a template inside
    the project folder. Raises `InputError` that lists the names."""
    if not choice or choice in named:
        return named[choice] if choice else usual
    check_inside(project.file, f"stages: {stage}", "prompt", choice)
    file = project.folder / choice
    if not file.is_file():
        names = "".join(f"{name}, or " for name in named)
        expected = f"{names}a template file inside the project folder"
        raise InputError(project.file, f"stages: {stage}, field 'prompt'", found=repr(choice)[:80], expected=expected)
    return file


def made_from(stage: Stage[Any], work: Work, identities: Mapping[str, str]) -> str:
    """The hash of all inputs of a unit; `identities` are the hashes of files by path."""
    models: dict[str, JsonValue] = {role: _models(work.project, role) for role in stage.roles}
    stated: dict[str, JsonValue] = {name: str(getattr(work.project.settings, name)) for name in stage.states}
    return content_hash(
        {
            "stage": stage.name,
            "version": stage.version,
            "seed": work.project.settings.seed,
            "language": work.project.settings.language,
            "settings": stage_settings(work.project, stage.name, stage.settings).model_dump(mode="json"),
            "models": models,
            "prompts": [load_prompt(prompt).sha256 for prompt in stage.prompts_of(work.project)],
            "files": dict(identities),
            "sources": [
                source.model_dump(mode="json", exclude={"tags"}) for source in work.sources
            ],  # only splits use tags
            "attempts": {name: count for name, count in sorted(work.attempts.items()) if count},
            "before": {name: [record.model_dump(mode="json") for record in some] for name, some in work.before.items()},
            **({"states": stated} if stated else {}),
        }
    )


def _models(project: Project, role: str) -> list[Any]:
    """What changes the replies of a role's models: not their addresses."""
    return [[spec.name, dict(spec.settings), spec.structured] for spec in project.settings.specs(role)]
