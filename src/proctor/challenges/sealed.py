"""The sealed part of a challenge: questions with their references, the stores of answers and scores, the secret behind
commitments. Only the scorer's user opens it."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from proctor.api import load
from proctor.challenges.settings import SEALED, ChallengeSettings
from proctor.core import Benchmark, InputError, content_hash, read_bytes
from proctor.runs import Store

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
