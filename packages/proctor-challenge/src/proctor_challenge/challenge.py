"""An open challenge: its folder, settings, database and clock, and its sealed part, which only the scorer's user opens:
questions with their references, the stores of answers and scores, and secrets."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from proctor.api import load
from proctor.core import Benchmark, ConfigurationError, InputError, content_hash, input_bytes, read_bytes
from proctor.runs import Store, StoredTables, away, database_clock, lease_time, machine_time, reading
from proctor_challenge.schema import CHALLENGE_VERSION, metadata
from proctor_challenge.settings import CHALLENGE_FILE, SEALED, ChallengeSettings, Phase, read_challenge
from proctor_web import SiteStore, prepare_accounts, site_store

Access = Literal["web", "worker", "organiser"]
"""Who opens a challenge. Only workers and organisers may open its sealed part."""

UPLOADS = "uploads"
_LASTING = ("events", "openings", "results", "receipts")
TABLES = StoredTables(
    "a challenge",
    "challenge_version",
    CHALLENGE_VERSION,
    tuple(metadata.tables.values()),
    tuple((name, "") for name in _LASTING),
)
"""The tables of a challenge, beside those of accounts."""

_SEEDS = 2**31
SECRET_BYTES = 32


@dataclass(frozen=True)
class SealedPart:
    """The sealed part of the challenge in `folder` with these `settings`. The web process can't open it. Raises
    `InputError` when it can't be opened."""

    folder: Path
    settings: ChallengeSettings
    _benchmarks: dict[str, Benchmark] = field(default_factory=dict, repr=False, compare=False)

    @property
    def sealed_folder(self) -> Path:
        """The folder that only the scorer's user may open."""
        return self.folder / SEALED

    def benchmark(self, phase: str) -> Benchmark:
        """The questions of a phase with their references and the phase's time budget, read once."""
        if phase not in self._benchmarks:
            rules = self.settings.phase(phase)
            self._benchmarks[phase] = self._read(rules, rules.sealed or rules.questions)
        return self._benchmarks[phase]

    def handed_out(self, phase: str) -> Benchmark | None:
        """The questions of a phase as participants have them; None when they get none."""
        rules = self.settings.phase(phase)
        return self._read(rules, rules.questions) if rules.questions else None

    def _read(self, rules: Phase, data: str) -> Benchmark:
        media = self.folder / (rules.media or data)
        found = load(self.settings.benchmark, self.folder / data, media, track=self.settings.track)
        return replace(found, budget_s=rules.budget.question_s)

    def store_at(self, phase: str) -> str | Path:
        """The path or URL of the store with a phase's answers and scores."""
        location = self.settings.answers.replace("{phase}", phase)
        return location if "://" in location else self.folder / location

    @contextmanager
    def store(self, phase: str) -> Iterator[Store]:
        """That store, opened."""
        with closing(Store(self.store_at(phase))) as opened:
            yield opened

    def answer_file(self, baseline: str, phase: str) -> Path | None:
        """The file with a baseline's answers to a phase's questions; None without one."""
        file = next(
            (
                baseline_entry.answers.get(phase)
                for baseline_entry in self.settings.baselines
                if baseline_entry.name == baseline
            ),
            None,
        )
        return None if file is None else self.folder / file

    def secret(self, name: str) -> bytes:
        """A secret of this challenge, created on first use and readable by its owner only."""
        path = self.sealed_folder / name
        try:
            self.sealed_folder.mkdir(mode=0o700, exist_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(SECRET_BYTES))
        except FileExistsError:
            pass
        except OSError as error:
            raise InputError(
                path, found=error.strerror or "an error", expected="a writable path for a secret"
            ) from error
        found = read_bytes(path)
        if len(found) != SECRET_BYTES:
            raise InputError(path, found=f"{len(found)} bytes", expected=f"{SECRET_BYTES}; restore the file")
        return found

    @property
    def commitment_key(self) -> Path:
        """The file with the key of commitments."""
        return self.sealed_folder / "commitment.key"

    def commitment(self, phase: str) -> str:
        """A keyed hash that commits a phase to its questions, references and rules (condition, budget, gate, which
        results count and are shown). Without the key it reveals nothing; a bare hash would let others guess the
        references of a few questions. Anybody who gets the key later can check it. Dates and quotas, which may have to
        change, are not covered."""
        rules: Any = {"condition": True, "budget": True, "counts": True, "gate": True, "results": {"rule"}}
        return self._keyed(phase, self.settings.phase(phase).model_dump(mode="json", include=rules))

    def scoring_hash(self, phase: str) -> str:
        """A keyed hash of what the figures of a phase depend on besides code and judge: questions, references,
        condition, budget, the rule by which results are shown, and the names of baselines."""
        baselines = sorted(baseline.name for baseline in self.settings.baselines if phase in baseline.answers)
        included: Any = {"condition": True, "budget": True, "results": {"rule"}}
        rules = self.settings.phase(phase).model_dump(mode="json", include=included)
        return self._keyed(phase, rules | {"baselines": baselines})

    def _keyed(self, phase: str, rules: JsonValue) -> str:
        task = f"{self.settings.benchmark}/{self.settings.track}"
        known: JsonValue = {"task": task, "rules": rules, "items": self.benchmark(phase).fingerprint}
        return hmac.new(self.secret(self.commitment_key.name), content_hash(known).encode(), hashlib.sha256).hexdigest()


def _drawn_seed() -> int:
    return secrets.randbelow(_SEEDS)


@dataclass(frozen=True)
class Challenge:
    """An open challenge. `engine` is the database of submissions. `now` is the clock of that database, the same for all
    machines, for what people are shown; leases and deadlines ask it within their transaction (`clock`). `draw` gives the
    seeds of submissions. Tests set both. Close it after use."""

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
        create: bool = True,
    ) -> Challenge:
        """Reads `challenge.yaml` and opens its database (see `challenge_store`); with `create`, one that is missing is
        made, and so are missing tables.

        Raises `InputError` for invalid settings, when there is no database, and when `access` is "web" and this process
        could open the sealed part, unless `same_user`; `StoreAwayError` (also an `InputError`) for a database that can't
        be used for now. An organiser need not be able to open it: see `sealed`.
        """
        reached = _may_open(folder / SEALED)
        settings = read_challenge(folder, sealed=access == "worker" or (access == "organiser" and reached))
        if access == "web" and not same_user and reached and (folder / SEALED).exists():
            expected = "a folder of another user that this one can't open, or --same-user to try things out"
            raise InputError(folder / SEALED, found="a folder that the web server could open", expected=expected)
        location = challenge_store(folder, settings, store)
        engine = location.opened(create=create)
        try:
            prepare_accounts(engine)
            TABLES.prepare(engine)
            return cls(folder, settings, engine, access, now or DatabaseClock(engine))
        except (InputError, DBAPIError) as error:
            engine.dispose()
            if isinstance(error, InputError):
                raise
            found = " ".join(str(error.orig).split())[:200]
            fault = InputError(location.shown, found=found, expected="a database that answers")
            raise away(location.shown, error, engine.dialect.name) or fault from error

    def close(self) -> None:
        """Closes all connections."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading, which sees one state and blocks nobody."""
        with reading(self.engine) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction for writing: committed when the block ends, rolled back when it raises. Keep it short, since in
        SQLite others wait."""
        with self.engine.begin() as connection:
            yield connection

    def clock(self, connection: Connection) -> datetime:
        """The time by the database, by which leases end and uploads are in time."""
        return self.now.at(connection) if isinstance(self.now, DatabaseClock) else self.now()

    @property
    def name(self) -> str:
        """The name in receipts: that of its folder."""
        return self.folder.resolve().name

    @property
    def label(self) -> str:
        """The label of its containers on this machine, unique also when two folders have the same name."""
        return f"{self.name}-{hashlib.sha256(str(self.folder.resolve()).encode()).hexdigest()[:12]}"

    @property
    def uploads(self) -> Path:
        """The folder of uploads. The name of each file is the SHA-256 of its bytes."""
        return self.folder / UPLOADS

    @property
    def terms(self) -> str:
        """The SHA-256 of the terms that teams agree to (of no bytes without terms)."""
        raw = input_bytes(self.folder / self.settings.terms, "the terms") if self.settings.terms else b""
        return hashlib.sha256(raw).hexdigest()

    def phase(self, name: str) -> Phase:
        """A phase by name. Raises `InputError` for an unknown name."""
        try:
            return self.settings.phase(name)
        except KeyError as error:
            known = ", ".join(phase.name for phase in self.settings.phases)
            raise InputError("phase", found=repr(name[:80]), expected=f"one of {known}") from error

    @cached_property
    def sealed(self) -> SealedPart:
        """The sealed part. Raises `ConfigurationError` in the web process, and `InputError` for a user who can't open
        it."""
        if self.access == "web":
            raise ConfigurationError("the web server opens nothing of the sealed part")
        check_reach(self.folder)
        return SealedPart(self.folder, self.settings)


def challenge_store(folder: Path, settings: ChallengeSettings, store: str | None = None) -> SiteStore:
    """The database of a challenge: the named one, or as `challenge.yaml` says."""
    return site_store("challenge", folder, CHALLENGE_FILE, settings.store, store)


def check_reach(folder: Path) -> None:
    """Raises `InputError` if the user of this process can't open the sealed part of the challenge in `folder`."""
    sealed = folder / SEALED
    if sealed.exists() and not _may_open(sealed):
        expected = f"the account that owns it ({owner_of(sealed)}): run this command as that one"
        raise InputError(sealed, found="a folder that this user may not open", expected=expected)


def _may_open(folder: Path) -> bool:
    """Whether this process can list a folder or open files in it, or could if there were one."""
    return not folder.exists() or os.access(folder, os.R_OK) or os.access(folder, os.X_OK)


def owner_of(path: Path) -> str:
    """The name of a file's owner, or the number of one without a name."""
    try:
        return path.owner()
    except KeyError:
        return str(path.stat().st_uid)


class DatabaseClock:
    """The clock of a challenge's database: that of its PostgreSQL server, or of the machine. Without a connection it tells
    the server's time at the last look and what has passed since, whatever becomes of this machine's clock."""

    def __init__(self, engine: Engine) -> None:
        self._known: tuple[float, float] | None = None
        if engine.dialect.name == "postgresql":
            with engine.begin() as connection:
                self.at(connection)

    def __call__(self) -> datetime:
        """The time, without a look at the database."""
        known = self._known
        return _utc(machine_time() if known is None else known[0] + lease_time() - known[1])

    def at(self, connection: Connection) -> datetime:
        """The time by the database."""
        now = database_clock(connection)
        if connection.dialect.name == "postgresql":
            self._known = now, lease_time()
        return _utc(now)


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
