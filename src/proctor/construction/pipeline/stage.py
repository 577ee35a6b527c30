"""What a stage is: it makes records of one kind from those of the stages before it, a unit at a time."""

from __future__ import annotations

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from proctor.construction.pipeline.project import Project, SourceVideo
from proctor.construction.pipeline.records import Call, Frozen, Record, Refused, UnitFile
from proctor.core import Frame, NoVerdictError, ProctorError, RefusalError, content_hash, generator, refusal
from proctor.judges import CachedModel, as_said
from proctor.media import Sound
from proctor.models import load_prompt

if TYPE_CHECKING:
    import numpy as np

R = TypeVar("R", bound=Record)
S = TypeVar("S", bound=Frozen)
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
U = TypeVar("U")

ALL = "all"
"""The unit of a stage that takes all sources together."""


class StageSettings(Frozen):
    """The settings of a stage, in `project.yaml` under its name; every one has a default."""


class WaitingError(ProctorError):
    """A stage can't go on before a person has done something; says what."""


@dataclass(frozen=True)
class Work:
    """One unit of a stage: a source, or all of them. `before` are the records of the stages that it comes after, by
    stage; `attempts` counts how often the unit ("") or one of its records was asked to be made again."""

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
        return [one for one in self.before[stage] if isinstance(one, kind)]

    def attempt(self, item: str = "") -> int:
        """How often it was asked to be made again."""
        return self.attempts.get("", 0) + (self.attempts.get(item, 0) if item else 0)

    def settings(self, kind: type[S]) -> S:
        """The stage's settings. Raises `InputError` for one that it does not have."""
        return stage_settings(self.project, self.stage, kind)

    def generator(self, *names: str) -> np.random.Generator:
        """Draws of its own for one purpose, from the project's seed."""
        return generator(self.project.settings.seed, self.stage, self.unit, str(self.attempt()), *names)

    def asker(self, role: str, prompt: Path | None = None) -> Asker:
        """Asks the first model of a role, with a prompt (a recogniser of speech has none)."""
        return Asker(self, role, prompt)


class Asker:
    """Asks a model for drafts of a given form. Each reply is kept in the project's journal under all that led to it
    (the model, the prompt's file, what it was filled with, the attempt), and is asked for once."""

    def __init__(self, work: Work, role: str, prompt: Path | None = None, number: int = 0) -> None:
        self._work = work
        self._client = work.project.clients(role)[number]
        self._prompt = load_prompt(prompt) if prompt is not None else None
        self.model = self._client.name
        self._cached = CachedModel(f"build.{work.stage}", self._client, work.project.store)

    async def ask(
        self, form: type[M], item: str, values: Mapping[str, object], *, pictures: Sequence[Frame] = (), draw: int = 0
    ) -> tuple[M, Call]:
        """What the model says of `item`, the prompt being filled with `values`, and the pictures after it. Another
        `draw` is another reply to the same words.

        Raises `RefusalError` where it declines or gives nothing of the form, and `InfrastructureError` where no reply
        comes.
        """
        if self._prompt is None:
            raise ValueError("an asker without a prompt only hears")
        system, user = self._prompt.render(**values)
        content: dict[str, JsonValue] = {
            "prompt": self._prompt.sha256,
            "system": system,
            "user": user,
            **({"pictures": [hashlib.sha256(one.jpeg).hexdigest() for one in pictures]} if pictures else {}),
            "seed": self._work.project.settings.seed,
            **({"draw": draw} if draw else {}),
        }
        return await self._kept(form, [user, *pictures], content, item, system)

    async def hear(self, form: type[M], item: str, sound: Sound) -> tuple[M, Call]:
        """What a recogniser of speech hears. The same samples are heard once, whatever the file, the stretch or the
        project's seed. Raises as `ask`."""
        content: dict[str, JsonValue] = {"sound": hashlib.sha256(sound.wav).hexdigest()}
        return await self._kept(form, [sound], content, item, "")

    async def _kept(
        self, form: type[M], parts: Sequence[str | Frame | Sound], content: dict[str, JsonValue], item: str, system: str
    ) -> tuple[M, Call]:
        attempt = self._work.attempt(item)
        content |= {"kind": f"build.{self._work.stage}", "attempt": attempt}
        try:
            value, vote = await self._cached.ask(as_said(form), parts, content=content, item_id=item, system=system)
        except NoVerdictError as error:
            raise RefusalError(str(error).replace("no verdict", "no draft")) from error
        prompt = self._prompt.sha256 if self._prompt is not None else ""
        return value, Call(key=vote.key, model=self._client.name, prompt_sha256=prompt, attempt=attempt)


async def several(make: Callable[[T], Awaitable[U]], items: Iterable[T], at_once: int = 4) -> list[U]:
    """What `make` gives for each item, in their order, a few at a time: for stages that ask models of many items. After
    a `ProctorError` nothing further is begun, what is under way ends and is kept, and then it is raised."""
    gate, faults = asyncio.Semaphore(at_once), list[ProctorError]()

    async def one(item: T) -> list[U]:
        async with gate:
            try:
                return [] if faults else [await make(item)]
            except ProctorError as error:
                faults.append(error)
                return []

    found = await asyncio.gather(*(one(item) for item in items))
    if faults:
        raise faults[0]
    return [each for some in found for each in some]


@dataclass(frozen=True)
class Made(Generic[R]):
    """What a stage made of a unit: records in their order, what it refused, and notes for the funnel."""

    records: Sequence[R]
    refused: Sequence[Refused] = ()
    notes: Sequence[str] = ()


class Stage(ABC, Generic[R]):
    """A stage. `after` are the stages whose records it reads; a `whole` one takes all sources together, another one
    source at a time. An `optional` one is part of a project where `project.yaml` names it, or once it was run by name;
    a stage reads its records only by `also_after`: where the project has it. `makes` says what its records are, where
    they count something else than those before ("files"). `version` changes when the same input makes other records;
    `prompts` are the files whose content does, too."""

    name: ClassVar[str]
    summary: ClassVar[str]
    after: ClassVar[tuple[str, ...]] = ()
    also_after: ClassVar[tuple[str, ...]] = ()
    whole: ClassVar[bool] = False
    makes: ClassVar[str] = ""
    optional: ClassVar[bool] = False
    version: ClassVar[int] = 1
    record: type[R]
    settings: type[StageSettings] = StageSettings
    roles: ClassVar[tuple[str, ...]] = ()
    prompts: tuple[Path, ...] = ()

    def reads(self, work: Work) -> Sequence[Path]:
        """The files beside the records that it reads; a change of one makes the unit due. Raises `InputError` where one
        is not there."""
        del work
        return ()

    def stands(self, project: Project, made: UnitFile) -> bool:
        """Whether what was made is still there, where a stage writes more than records."""
        del project, made
        return True

    @abstractmethod
    async def make(self, work: Work) -> Made[R]:
        """The records of a unit. The same input, journal and attempts give the same ones, to the byte.

        Raises `WaitingError` where a person must act first, `InfrastructureError` where a model can't be reached
        (what was replied is kept), and `InputError` for a file that can't be used.
        """


def stage_settings(project: Project, stage: str, kind: type[S]) -> S:
    """A stage's settings. Raises `InputError` with the field for what does not fit."""
    try:
        return kind.model_validate(project.settings.stages.get(stage, {}))
    except ValidationError as error:
        raise refusal(project.file, f"stages: {stage}", error) from error


def made_from(stage: Stage[Any], work: Work, identities: Mapping[str, str]) -> str:
    """The hash of everything that a unit's records follow from; `identities` are the files' by path."""
    models: dict[str, JsonValue] = {role: _models(work.project, role) for role in stage.roles}
    return content_hash(
        {
            "stage": stage.name,
            "version": stage.version,
            "seed": work.project.settings.seed,
            "language": work.project.settings.language,
            "settings": stage_settings(work.project, stage.name, stage.settings).model_dump(mode="json"),
            "models": models,
            "prompts": [load_prompt(one).sha256 for one in stage.prompts],
            "files": dict(identities),
            "sources": [one.model_dump(mode="json") for one in work.sources],
            "attempts": {name: count for name, count in sorted(work.attempts.items()) if count},
            "before": {name: [one.model_dump(mode="json") for one in some] for name, some in work.before.items()},
        }
    )


def _models(project: Project, role: str) -> list[Any]:
    """What changes the replies of a role's models; where they are asked does not."""
    named = project.settings.models.get(role, [])
    specs = named if isinstance(named, list) else [named]
    return [[one.name, dict(one.settings), one.structured] for one in specs]
