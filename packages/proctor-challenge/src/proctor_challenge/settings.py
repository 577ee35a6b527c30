"""The settings of a challenge, `challenge.yaml`, with defaults: quotas, time budgets, resources, results, prizes. All
problems are reported at once, each with its location."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from proctor.core import FrozenModel, ProblemsError, problem_texts, read_yaml
from proctor_challenge.containers import BoxLimits

CHALLENGE_FILE = "challenge.yaml"
SEALED = "sealed"
"""The folder of a challenge that only the scorer may open."""

Kind = Literal["file", "image"]
Audience = Literal["public", "participants", "organisers"]
ChallengeName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.-]{0,79}$")]

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def _size(text: str) -> str:
    if _SIZE.fullmatch(text) is None:
        raise ValueError(f"found {text[:40]!r}, expected a size such as 512m or 16g")
    return text


Size = Annotated[str, AfterValidator(_size)]
"""A size in bytes as text: 512m, 16g (units of 1024)."""


def size_of(text: str) -> int:
    """A size in bytes.

    >>> size_of("512m"), size_of("1.5g")
    (536870912, 1610612736)
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return int(float(found[1]) * _UNITS[found[2].lower()])


class Quota(FrozenModel):
    """The limits of a team in a phase: `scored` results, `attempted` submissions that started to run, and `per_day`
    attempts in 24 hours (None: unlimited)."""

    scored: int = Field(default=10, ge=1, le=1000)
    attempted: int = Field(default=30, ge=1, le=10_000)
    per_day: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.attempted < self.scored:
            raise ValueError(f"at least as many attempts as results ({self.scored}) are expected")
        return self


class Gate(FrozenModel):
    """Only teams that beat every baseline of `phase` by their mean over the buckets, on at least one board, may
    submit."""

    phase: ChallengeName
    beats: Literal["baselines"] = "baselines"


class Budget(FrozenModel):
    """Time limits in seconds: for each question, and until a container is ready. Answer files report their own latency:
    if `latency` is "required", an answer without one counts as late."""

    question_s: float = Field(default=30.0, gt=0, le=3600)
    latency: Literal["required", "optional"] = "optional"
    startup_s: float = Field(default=900.0, gt=0, le=7200)


class Resources(FrozenModel):
    """The resources of a container. `log` limits its output, `scratch` its `/tmp`."""

    memory: Size = "16g"
    cpus: float = Field(default=4.0, gt=0)
    processes: int = Field(default=256, ge=8)
    shared_memory: Size = "2g"
    scratch: Size = "4g"
    log: Size = "1m"
    gpu: bool = False

    def limits(self, device: str | None = None) -> BoxLimits:
        """The limits in bytes. `device` (CDI) is the GPU, if the challenge provides one."""
        return BoxLimits(
            memory=size_of(self.memory),
            cpus=self.cpus,
            processes=self.processes,
            shared_memory=size_of(self.shared_memory),
            scratch=size_of(self.scratch),
            log=size_of(self.log),
            gpu=device if self.gpu else None,
        )


class ResultsPolicy(FrozenModel):
    """Who sees a phase's boards, and from when on (`shown_from`; before that only organisers), the digits of scores,
    and the rule by which a team sees a new score: "all", or the "ladder" (only scores that exceed its best by more than
    the interval)."""

    boards: Audience = "public"
    shown_from: AwareDatetime | None = None
    digits: int = Field(default=3, ge=1, le=6)
    rule: Literal["all", "ladder"] = "all"


class RankingChoice(FrozenModel):
    """The options of `proctor rank` for boards: bootstrap draws for win rates and intervals, samples for the
    probabilities of ranks (`stability`), the level of the tests, whose win rate breaks ties (`ties`), and the seed."""

    draws: int = Field(default=10_000, ge=100, le=100_000)
    stability: int = Field(default=500, ge=0, le=10_000)
    alpha: float = Field(default=0.05, gt=0, lt=1)
    ties: Literal["all", "tied"] = "tied"
    seed: int = Field(default=0, ge=0)


class JudgeChoice(FrozenModel):
    """The judge of answers that code can't score (`proctor list judges`; "" is the benchmark's own) and its models,
    optionally at a server's `base_url`. API keys come from the scorer's environment."""

    name: str = ""
    models: tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...] = Field(min_length=1)
    base_url: str = ""


class DescriptionRule(FrozenModel):
    """What a team's description of its method is required for: "nothing", its share of the "prizes", or a rank in the
    "ranking" (then no board shows a result without one). It counts if it arrives before `due`, and the requirement holds
    from then on (None: always)."""

    required_for: Literal["nothing", "prizes", "ranking"] = "nothing"
    due: AwareDatetime | None = None

    def holds(self, now: datetime) -> bool:
        """Whether something is withheld from who has none."""
        return self.required_for != "nothing" and (self.due is None or self.due <= now)


class Prizes(FrozenModel):
    """The prizes of a phase. The `amount` (None: shares only) in `currency` is divided among the `boards` (by default in
    equal parts), and the part of a board by `split`, in percent, among its first teams that beat every baseline, are
    eligible for awards, and have the description that the phase requires. Teams that share a rank share the sum of the
    percentages of the ranks that they take up.

    Of all teams that beat every baseline of a board, the first `announced` are announced, at the time `at` (None: not
    yet); until then only organisers see the table. Who beats every baseline of at least one board may name `coauthors`.
    """

    amount: float | None = Field(default=None, gt=0)
    currency: str = Field(default="", max_length=10)
    split: tuple[Annotated[float, Field(gt=0, le=100)], ...] = Field(default=(50, 30, 20), min_length=1, max_length=20)
    boards: dict[ChallengeName, Annotated[float, Field(gt=0, le=100)]] = Field(default_factory=dict)
    announced: int = Field(default=3, ge=1, le=20)
    coauthors: int = Field(default=3, ge=0, le=100)
    at: AwareDatetime | None = None

    @model_validator(mode="after")
    def _at_most_all(self) -> Self:
        for name, parts in (("split", self.split), ("boards", tuple(self.boards.values()))):
            if sum(parts) > 100 + 1e-9:
                raise ValueError(f"{name}: found {sum(parts):g} % in all, at most 100 % is expected")
        return self


class Phase(FrozenModel):
    """One phase. `questions` is the folder that participants get; if it holds references, the whole phase is public.
    `sealed` is the folder of the same questions with references, inside the sealed part; `media` is the folder of
    their media (by default that of the questions).

    `condition` is what systems are shown; `quota` holds for each team; `counts` says which result of a team is on the
    boards: its `last`, or its `best` by the mean over the buckets.
    """

    name: ChallengeName
    title: str = Field(default="", max_length=200)
    opens: AwareDatetime | None = None
    closes: AwareDatetime | None = None
    questions: str = ""
    sealed: str = ""
    media: str = ""
    condition: str = "video"
    accepts: tuple[Kind, ...] = ("file", "image")
    quota: Quota = Quota()
    counts: Literal["last", "best"] = "best"
    gate: Gate | None = None
    budget: Budget = Budget()
    results: ResultsPolicy = ResultsPolicy()
    description: DescriptionRule = DescriptionRule()
    prizes: Prizes | None = None

    @property
    def hidden(self) -> bool:
        """Whether the references are hidden from participants."""
        return bool(self.sealed)

    def is_open(self, now: datetime) -> bool:
        """Whether the dates allow submissions."""
        return (self.opens is None or self.opens <= now) and (self.closes is None or now < self.closes)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if not (self.questions or self.sealed):
            raise ValueError("questions, sealed or both are expected")
        if self.opens and self.closes and self.closes <= self.opens:
            raise ValueError(f"an end after the beginning ({self.opens.astimezone(UTC):%Y-%m-%d %H:%M}) is expected")
        if "file" in self.accepts and not self.questions:
            raise ValueError("the questions are expected where answer files are accepted: who answers must have them")
        if self.sealed and Path(self.sealed).parts[0] != SEALED:
            raise ValueError(f"found {self.sealed!r}, expected a folder inside {SEALED}/")
        if self.results.rule == "ladder" and self.counts == "last":
            raise ValueError("counts: best is expected where results are shown by the ladder: it shows only the best")
        return self


class BaselineEntry(FrozenModel):
    """A reference system with its answer files by phase, inside the sealed part. Boards list it without a rank."""

    name: ChallengeName
    answers: dict[ChallengeName, str] = Field(default_factory=dict)


class TeamRules(FrozenModel):
    """`members` is the maximum size of a team. `registration` is "open" to all or by "invitation" only, from `opens` until
    `closes`; organisers may register teams at any time. Teams from `excluded_countries` (ISO 3166, two letters) may not
    take part."""

    members: int = Field(default=10, ge=1, le=100)
    registration: Literal["open", "invitation"] = "open"
    opens: AwareDatetime | None = None
    closes: AwareDatetime | None = None
    excluded_countries: tuple[Annotated[str, StringConstraints(pattern="^[A-Z]{2}$")], ...] = ()

    def registers(self, now: datetime) -> bool:
        """Whether the dates allow a team to register."""
        return (self.opens is None or self.opens <= now) and (self.closes is None or now < self.closes)


class UploadSizes(FrozenModel):
    """The maximum sizes of uploads: a `file` of answers (None: by the size of the phase's questions), the archive of an
    `image`, and the `description` of a method."""

    file: Size | None = None
    image: Size = "20g"
    description: Size = "10m"


class ChallengeSettings(FrozenModel):
    """All of `challenge.yaml`. `benchmark` reads and scores the questions (`proctor list benchmarks`); `judge` scores
    answers that code can't. `terms` is a file that each team agrees to. `store` is the database of submissions, and
    `answers` are those of answers and scores, one per phase (`{phase}` is its name), which only the scorer opens. Both
    are an SQLAlchemy URL or a file in the folder. `address` is the URL of the site."""

    title: str = Field(default="", max_length=200)
    benchmark: str
    track: str = ""
    judge: JudgeChoice | None = None
    address: str = Field(default="", max_length=200)
    terms: str = ""
    contact: str = Field(default="", max_length=200)
    store: str = "challenge.sqlite"
    answers: str = f"{SEALED}/{{phase}}.sqlite"
    phases: tuple[Phase, ...] = Field(min_length=1, max_length=20)
    baselines: tuple[BaselineEntry, ...] = ()
    ranking: RankingChoice = RankingChoice()
    teams: TeamRules = TeamRules()
    resources: Resources = Resources()
    uploads: UploadSizes = UploadSizes()

    @field_validator("phases")
    @classmethod
    def _names_once(cls, phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
        seen: set[str] = set()
        for phase in phases:
            if phase.name in seen:
                raise ValueError(f"found the phase {phase.name!r} twice, expected each name once")
            if phase.gate is not None and phase.gate.phase not in seen:
                raise ValueError(f"{phase.name}, gate: found {phase.gate.phase!r}, expected a phase before it")
            seen.add(phase.name)
        return phases

    @field_validator("answers")
    @classmethod
    def _one_a_phase(cls, answers: str) -> str:
        if "{phase}" not in answers:
            raise ValueError(f"found {answers!r}, expected {{phase}} in it: each phase has a store of its own")
        if "://" not in answers and Path(answers).parts[0] != SEALED:
            raise ValueError(f"found {answers!r}, expected a file inside {SEALED}/ or an SQLAlchemy URL")
        return answers

    def phase(self, name: str) -> Phase:
        """A phase by name. Raises `KeyError` for an unknown name."""
        return {phase.name: phase for phase in self.phases}[name]


def read_challenge(folder: Path, *, sealed: bool = False, unwritten: str = "") -> ChallengeSettings:
    """The settings of a challenge's folder. Raises `ProblemsError` for invalid fields and missing files; those of the
    sealed part are checked only with `sealed`, since only the scorer can see them. The public questions of the phase
    `unwritten` need not be there yet."""
    file = folder / CHALLENGE_FILE
    try:
        settings = ChallengeSettings.model_validate(read_yaml(file, "a challenge (its challenge.yaml)"))
    except ValidationError as error:
        raise ProblemsError(file, problem_texts(error, ChallengeSettings)) from error
    if problems := list(_absent_parts(folder, settings, sealed=sealed, unwritten=unwritten)):
        raise ProblemsError(file, problems)
    return settings


def _absent_parts(folder: Path, settings: ChallengeSettings, *, sealed: bool, unwritten: str) -> Iterator[str]:
    if settings.terms and not (folder / settings.terms).is_file():
        yield f"terms: found no file {settings.terms!r}, expected the terms that teams agree to"
    for number, phase in enumerate(settings.phases, start=1):
        named = {"sealed": phase.sealed, "media": phase.media}
        named |= {} if phase.name == unwritten else {"questions": phase.questions}
        for field, path in named.items():
            inside = bool(path) and Path(path).parts[0] == SEALED
            if path and (sealed or not inside) and not (folder / path).exists():
                yield f"phases {number} ({phase.name}), {field}: found nothing at {path!r}, expected a folder"
    for number, baseline in enumerate(settings.baselines, start=1):
        for name, path in baseline.answers.items():
            where = f"baselines {number} ({baseline.name}), answers, {name}"
            if name not in {phase.name for phase in settings.phases}:
                yield f"{where}: found no phase of this name"
            elif sealed and not (folder / path).is_file():
                yield f"{where}: found no file {path!r}"
