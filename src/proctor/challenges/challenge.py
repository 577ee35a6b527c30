"""The sealed part of a challenge: questions with their references, the stores of answers and scores, the secret behind
commitments. Only the scorer's user opens it. A challenge that is open: its folder, settings, database, clock and draws, for one of the processes that serve it."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue
from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import DBAPIError

from proctor.api import load
from proctor.challenges.schema import CHALLENGE_VERSION, metadata
from proctor.challenges.settings import SEALED, ChallengeSettings, Phase, read_challenge
from proctor.core import Benchmark, ConfigurationError, InputError, content_hash, input_bytes, read_bytes
from proctor.runs import Store, open_engine, reading, shown_url
from proctor.web import StoredTables, prepare_accounts

SECRET_BYTES = 32


@dataclass(frozen=True)
class SealedPart:
    """What the scorer has and the web process has not; `settings` are those of the challenge in `folder`.

    Raises `InputError` where the sealed part can't be opened.
    """

    folder: Path
    settings: ChallengeSettings
    _benchmarks: dict[str, Benchmark] = field(default_factory=dict, repr=False, compare=False)

    @property
    def place(self) -> Path:
        """The folder that nobody else may open."""
        return self.folder / SEALED

    def benchmark(self, phase: str) -> Benchmark:
        """The questions of a phase as they are marked, read once; the phase's budget is theirs."""
        if phase not in self._benchmarks:
            one = self.settings.phase(phase)
            self._benchmarks[phase] = self._read(one.sealed or one.questions, one.media, one.budget.question_s)
        return self._benchmarks[phase]

    def handed_out(self, phase: str) -> Benchmark | None:
        """The questions of a phase as participants have them; None where they get none."""
        one = self.settings.phase(phase)
        return self._read(one.questions, one.media, one.budget.question_s) if one.questions else None

    def _read(self, data: str, media: str, budget_s: float) -> Benchmark:
        where = self.folder / data
        found = load(self.settings.benchmark, where, self.folder / media if media else where, track=self.settings.track)
        return replace(found, budget_s=budget_s)

    def store_at(self, phase: str) -> str | Path:
        """Path or URL of the store with a phase's answers and scores."""
        named = self.settings.answers.replace("{phase}", phase)
        return named if "://" in named else self.folder / named

    @contextmanager
    def store(self, phase: str) -> Iterator[Store]:
        """The same, opened."""
        opened = Store(self.store_at(phase))
        try:
            yield opened
        finally:
            opened.close()

    def answer_file(self, baseline: str, phase: str) -> Path | None:
        """The recorded answers of a baseline to a phase's questions."""
        named = next((one.answers.get(phase) for one in self.settings.baselines if one.name == baseline), None)
        return None if named is None else self.folder / named

    def secret(self, name: str) -> bytes:
        """A secret of this challenge, made at the first call, readable by its owner alone."""
        path = self.place / name
        try:
            self.place.mkdir(mode=0o700, exist_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(SECRET_BYTES))
        except FileExistsError:
            pass
        except OSError as error:
            raise InputError(path, found=error.strerror or "an error", expected="a place for a secret") from error
        found = read_bytes(path)
        if len(found) != SECRET_BYTES:
            raise InputError(path, found=f"{len(found)} bytes", expected=f"{SECRET_BYTES}; restore the file")
        return found

    @property
    def commitment_key(self) -> Path:
        """The secret behind commitments."""
        return self.place / "commitment.key"

    def commitment(self, phase: str) -> str:
        """A hash that ties a phase to its questions, references and rules (what is shown, budget, gate, which results
        count and are shown) and gives nothing of them away: keyed with a secret, since the references of a few
        questions could be guessed from a bare one. Who is told the secret afterwards can check it. Dates and quotas are
        not in it: they may have to change."""
        named: Any = {"condition": True, "budget": True, "counts": True, "gate": True, "results": {"rule"}}
        return self._keyed(phase, self.settings.phase(phase).model_dump(mode="json", include=named))

    def marking_hash(self, phase: str) -> str:
        """The same of what figures of this phase depend on besides code and judge: its questions and references, what
        systems are shown, the budget, the rule by which results are shown, and which baselines there are."""
        one = self.settings.phase(phase)
        baselines = [each.name for each in self.settings.baselines if phase in each.answers]
        kept = one.model_dump(mode="json", include={"condition": True, "budget": True, "results": {"rule"}})
        return self._keyed(phase, kept | {"baselines": sorted(baselines)})

    def _keyed(self, phase: str, rules: JsonValue) -> str:
        task = f"{self.settings.benchmark}/{self.settings.track}"
        known: JsonValue = {"task": task, "rules": rules, "items": self.benchmark(phase).fingerprint}
        return hmac.new(self.secret(self.commitment_key.name), content_hash(known).encode(), hashlib.sha256).hexdigest()


Access = Literal["web", "worker", "organiser"]
"""Who opens a challenge: only the last two may open its sealed part."""

UPLOADS = "uploads"
_LASTING = ("events", "openings", "results", "receipts")
TABLES = StoredTables(
    "a challenge",
    "challenge_version",
    CHALLENGE_VERSION,
    tuple(metadata.tables.values()),
    tuple((name, "") for name in _LASTING),
)
"""A challenge's own tables, beside those of accounts."""

_SEEDS = 2**31


def _drawn_seed() -> int:
    return secrets.randbelow(_SEEDS)


@dataclass(frozen=True)
class Challenge:
    """`engine` is the database of submissions. `now` is its clock, the same for all machines that share a PostgreSQL
    server; `draw` gives the seeds that submissions keep. Tests set both. Close it when it is done with."""

    folder: Path
    settings: ChallengeSettings
    engine: Engine
    access: Access
    now: Callable[[], datetime]
    draw: Callable[[], int] = _drawn_seed

    @classmethod
    def open(
        cls,
        folder: Path,
        access: Access,
        *,
        store: str | None = None,
        same_user: bool = False,
        now: Callable[[], datetime] | None = None,
    ) -> Challenge:
        """Reads `challenge.yaml` and opens its database, or `store`, whose tables are made where there are none.

        Raises `InputError` for settings that do not fit, and where `access` is "web" and this process could open the
        sealed part, unless `same_user` is said.
        """
        settings = read_challenge(folder, sealed=access != "web")
        if access == "web" and not same_user and _may_open(folder / SEALED):
            expected = "a folder of another user that this one can't open, or --same-user to try things out"
            raise InputError(folder / SEALED, found="a folder that the web server could open", expected=expected)
        known = store or settings.store
        engine = open_engine(known if "://" in known else folder / known, create=True)
        try:
            prepare_accounts(engine)
            TABLES.prepare(engine)
            return cls(folder, settings, engine, access, now or _shared_clock(engine))
        except (InputError, DBAPIError) as error:
            engine.dispose()
            if isinstance(error, InputError):
                raise
            found = " ".join(str(error.orig).split())[:200]
            raise InputError(shown_url(known), found=found, expected="a database that answers") from error

    def close(self) -> None:
        """Gives all connections back."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading, which sees one state and holds up nobody."""
        with reading(self.engine) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction for writing: on disk when the block ends, undone where it raises. Keep it short: in SQLite the
        others wait."""
        with self.engine.begin() as connection:
            yield connection

    @property
    def name(self) -> str:
        """What receipts call it: its folder's name."""
        return self.folder.resolve().name

    @property
    def label(self) -> str:
        """What its containers on this machine are called: two challenges never share it, however their folders are
        named."""
        return f"{self.name}-{hashlib.sha256(str(self.folder.resolve()).encode()).hexdigest()[:12]}"

    @property
    def uploads(self) -> Path:
        """The folder of what teams handed in: each file's name is the SHA-256 of its bytes."""
        return self.folder / UPLOADS

    @property
    def terms(self) -> str:
        """The SHA-256 of the terms that teams agree to; of nothing where there are none."""
        raw = input_bytes(self.folder / self.settings.terms, "the terms") if self.settings.terms else b""
        return hashlib.sha256(raw).hexdigest()

    def phase(self, name: str) -> Phase:
        """A phase by its name. Raises `InputError` for an unknown one."""
        try:
            return self.settings.phase(name)
        except KeyError as error:
            known = ", ".join(one.name for one in self.settings.phases)
            raise InputError("phase", found=repr(name[:80]), expected=f"one of {known}") from error

    @cached_property
    def sealed(self) -> SealedPart:
        """The sealed part. Raises `ConfigurationError` in the web process."""
        if self.access == "web":
            raise ConfigurationError("the web server opens nothing of the sealed part")
        return SealedPart(self.folder, self.settings)


def _may_open(folder: Path) -> bool:
    """Whether this process can list a folder or reach what is in it, root included."""
    return folder.exists() and (os.access(folder, os.R_OK) or os.access(folder, os.X_OK))


def _shared_clock(engine: Engine) -> Callable[[], datetime]:
    """This machine's clock, set by PostgreSQL's where that keeps the submissions: leases end for all at one moment."""
    if engine.dialect.name != "postgresql":
        return lambda: datetime.now(UTC)
    with engine.begin() as connection:
        shift = connection.execute(select(func.clock_timestamp())).scalar_one() - datetime.now(UTC)
    return lambda: datetime.now(UTC) + shift
