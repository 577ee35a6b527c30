"""A project folder: `project.yaml`, `sources/`, `work/` (records of the stages, and the journal), `items/`."""

from __future__ import annotations

import fcntl
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError

from proctor.core import BENCHMARKS, ConfigurationError, FrozenModel, InputError, Region, read_yaml, refusal
from proctor.models import ModelClient, ModelSpec
from proctor.runs import Store

SETTINGS_FILE = "project.yaml"
_END_S = 0.5
_TAKEN = frozenset({"all", "attempts"})  # names of files beside those of sources

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.-]{0,79}$")]
"""A valid file name on every system."""


class SourceVideo(FrozenModel):
    """One video of the project. `video`, `transcript` and `events` are paths inside the project folder. Used of it are
    the seconds `start` to `end` and the rectangle `region`; nothing is cut until a benchmark is written. All times in
    the project's records are seconds of the video's own clock. Sources of one `group` (a patient, a teacher) are always
    in the same part of a split; so are, where the split says `together`, those with the same value of one of its `tags`
    (a site, a device)."""

    id: Name
    video: str = Field(min_length=1)
    transcript: str = ""
    events: str = ""
    start: float = Field(default=0.0, ge=0)
    end: float | None = None
    region: Region | None = None
    procedure: str = ""
    category: str = ""
    group: str = ""
    tags: dict[Name, str] = Field(default={})
    licence: str = ""
    provenance: str = ""

    @property
    def patient(self) -> str:
        """Its group; its id without one."""
        return self.group or self.id


class ProjectSettings(FrozenModel):
    """The content of `project.yaml`. `name` is that of the finished benchmark in stores and commands ("": the folder's);
    `simulated` says that its videos are, as is found out where they lie beside the simulator's files. `models` maps roles
    (`writer`, `checker`, `screen`, `speech`) to one model or a list; `language` is the spoken language, for speech
    recognisers ("": detected); `stages` are settings by stage."""

    kind: str = Field(min_length=1)
    name: str = Field(default="", pattern=r"^[\w.-]{0,80}$")
    title: str = ""
    licence: str = ""
    language: str = "en"
    seed: int = 0
    simulated: bool = False
    models: dict[str, ModelSpec | list[ModelSpec]] = Field(default={})
    sources: tuple[SourceVideo, ...] = ()
    stages: dict[str, dict[str, Any]] = Field(default={})

    @property
    def groups(self) -> dict[str, str]:
        """The group of each source."""
        return {source.id: source.patient for source in self.sources}

    @property
    def tags(self) -> dict[str, dict[str, str]]:
        """The tags of each source."""
        return {source.id: source.tags for source in self.sources}

    def specs(self, role: str) -> list[ModelSpec]:
        """The models of a role; none where the project names none."""
        named = self.models.get(role, [])
        return named if isinstance(named, list) else [named]


class Project:
    """An open project folder. Raises `InputError` without a valid `project.yaml`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / SETTINGS_FILE
        if not self.file.is_file():
            raise InputError(folder, found="no project.yaml", expected="a project folder (proctor build new)")
        try:
            self.settings = ProjectSettings.model_validate(read_yaml(self.file))
        except ValidationError as error:
            raise refusal(self.file, "", error, ProjectSettings) from error
        if self.settings.name in BENCHMARKS.names():
            found = f"{self.settings.name!r}, the name of an installed benchmark"
            raise InputError(self.file, "name", found=found, expected="a name of its own")
        self._check_sources()
        self._clients: dict[str, list[ModelClient]] = {}

    def check_trim(self, source: SourceVideo, seconds: float) -> None:
        """Raises `InputError` if a source's start or end is not within its video of `seconds` seconds; an end may be
        half a second later, since times are often rounded."""
        for field, most in (("start", seconds), ("end", seconds + _END_S)):
            time = getattr(source, field)
            if time is not None and time >= most:
                where = f"source {source.id!r}, field {field!r}"
                expected = f"a time within the video's {seconds:.2f} s"
                raise InputError(self.file, where, found=f"{time:g} s", expected=expected)

    @property
    def work(self) -> Path:
        """The folder of the stages' records."""
        return self.folder / "work"

    @property
    def items(self) -> Path:
        """The folder of the finished benchmark."""
        return self.folder / "items"

    @cached_property
    def store(self) -> Store:
        """The journal of all model replies, and the runs of screening: `work/journal.sqlite`."""
        self._make_work()
        file = self.work / "journal.sqlite"
        try:
            return Store(file)
        except InputError as error:
            then = "it holds replies of models; without it, what the stages made stays, and others are asked for again"
            raise InputError(f"{error}; {then}") from error

    def path(self, source: SourceVideo, field: str) -> Path:
        """The file that a source's field names. Raises `InputError` if it is missing."""
        named = str(getattr(source, field))
        path = self.folder / named
        if not path.is_file():
            expected = "a file inside the project folder (a link will do)"
            raise InputError(
                self.file, f"source {source.id!r}, field {field!r}", found=f"no file {named!r}", expected=expected
            )
        return path

    def clients(self, role: str) -> list[ModelClient]:
        """Access to the models of a role. Raises `InputError` if the project names none, and `ConfigurationError` for
        one without a key or with an unknown provider."""
        if role not in self._clients:
            specs = self.settings.specs(role)
            if not specs:
                found = f"models for {', '.join(self.settings.models)}" if self.settings.models else "no models"
                raise InputError(self.file, f"models: {role}", found=found, expected="a model: {name: provider:model}")
            try:
                self._clients[role] = [ModelClient(self._in_language(spec)) for spec in specs]
            except ConfigurationError as error:
                message = str(error).replace("--base-url http", "base_url: http").replace("--base-url", "base_url")
                raise ConfigurationError(f"{self.file}: models: {role}: {message}") from error
        return self._clients[role]

    def _in_language(self, spec: ModelSpec) -> ModelSpec:
        """The model with the project's language, for a speech recogniser whose own settings name none."""
        language = {"language": self.settings.language} if spec.hears and self.settings.language else {}
        return spec.model_copy(update={"settings": language | dict(spec.settings)})

    async def aclose(self) -> None:
        """Closes the connections to models."""
        for clients in self._clients.values():
            for client in clients:
                await client.aclose()
        self._clients.clear()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Locks the project for this process. Raises `InputError` if another one holds the lock."""
        self._make_work()
        with (self.work / "lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                expected = "one at a time: wait for it, or stop it"
                raise InputError(self.folder, found="another process at work on it", expected=expected) from error
            yield

    def _make_work(self) -> None:
        try:
            self.work.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(self.work, found=error.strerror or str(error), expected="a folder to write to") from error

    def _check_sources(self) -> None:
        ids = [
            source_video.id.casefold() for source_video in self.settings.sources
        ]  # some disks take A and a for one name
        twice = next((one.id for row, one in enumerate(self.settings.sources) if ids[row] in ids[:row]), None)
        if twice is not None:
            raise InputError(self.file, "sources", found=f"the id {twice!r} twice", expected="each id once")
        taken = next(
            (source_video.id for source_video in self.settings.sources if source_video.id.casefold() in _TAKEN), None
        )
        if taken is not None:
            expected = f"an id other than {' and '.join(sorted(_TAKEN))}"
            raise InputError(self.file, "sources", found=f"the id {taken!r}", expected=expected)
        for source in self.settings.sources:
            location = f"source {source.id!r}"
            for field in ("video", "transcript", "events"):
                check_inside(self.file, location, field, str(getattr(source, field)))
            if source.end is not None and source.end <= source.start:
                found = f"{source.end:g} s"
                raise InputError(
                    self.file, f"{location}, field 'end'", found=found, expected=f"after start {source.start:g} s"
                )
        stretches = Counter(
            f"{source_video.video} from {source_video.start:g} s" for source_video in self.settings.sources
        )
        double = [name for name, times in stretches.items() if times > 1]
        if double:
            raise InputError(self.file, "sources", found=f"{double[0]} twice", expected="each stretch of a video once")


def check_inside(file: Path, location: str, field: str, named: str) -> None:
    """Raises `InputError` for a path outside the project folder."""
    pure = PurePosixPath(named.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts or (len(named) > 1 and named[1] == ":"):
        expected = "a path inside the project folder (link or copy the file there)"
        raise InputError(file, f"{location}, field {field!r}", found=repr(named)[:80], expected=expected)
