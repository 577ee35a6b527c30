"""A review's folder: `review.yaml` with the studies, their items and plans, and the database."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, ValidationError, field_validator, model_validator
from sqlalchemy import Engine

from proctor.core import FrozenModel, InputError, ProblemsError, one_of, problem_texts, read_yaml
from proctor_web.accounts import AccountsLocation, account_name
from proctor_web.forms import FORMS, RatedDimension
from proctor_web.schema import Role
from proctor_web.site_tables import prepare
from proctor_web.stores import SiteStore, site_store

REVIEW_FILE = "review.yaml"
STORE_FILE = "review.sqlite"
READING_ROLES: tuple[Role, ...] = ("organiser", "reviewer", "annotator", "adjudicator")
"""The roles of accounts that may have work."""

FROM_RUNS = ("rating", "pairwise")
"""The forms whose items can be answers of stored runs."""

OF_PROJECTS = ("question", "rationale", "presence", "choice")
"""The forms whose items can be records of a construction project."""

_ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?")


def is_address(text: str) -> bool:
    """Whether a text is the address of a server: scheme, host, and a port where it has one.

    >>> is_address("http://localhost:8451"), is_address("localhost")
    (True, False)
    """
    return _ADDRESS.fullmatch(text) is not None


StudyId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.-]{0,79}$")]


def _account(name: str) -> str:
    try:
        return account_name(name)
    except InputError as error:
        raise ValueError(str(error)) from error


Person = Annotated[str, AfterValidator(_account)]
"""The name of an account, as it is stored."""


class StudyPlan(FrozenModel):
    """Who reads what. A share `overlap` of the items is read by `readings` of the `readers`, the others by one. One of
    the `adjudicators` settles readings that differ. `gold` is a file of items with known readings, which are a share
    `gold_share` of each reader's work. All draws come from `seed`."""

    readings: int = Field(default=2, ge=1, le=20)
    readers: tuple[Person, ...] = Field(default=(), max_length=500)
    adjudicators: tuple[Person, ...] = Field(default=(), max_length=100)
    overlap: float = Field(default=1.0, ge=0, le=1)
    seed: int = 0
    gold: str = ""
    gold_share: float = Field(default=0.1, ge=0, le=0.5)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for names in (self.readers, self.adjudicators):
            twice = [name for name, times in Counter(names).items() if times > 1]
            if twice:
                raise ValueError(f"each person once, not {twice[0]!r} twice, is expected")
        both = [name for name in self.readers if name in self.adjudicators]
        if both:
            raise ValueError(f"adjudicators who do not read themselves, unlike {both[0]!r}, are expected")
        if self.readers and self.readings > len(self.readers):
            raise ValueError(f"at most as many readings as readers ({len(self.readers)}) are expected")
        return self


class StudySettings(FrozenModel):
    """One study: items to be read with one form and one plan. The items come from a file (`items`), a construction
    project (`project`, of which `stage` names the one that waits where several do), or answers of stored runs to a benchmark (`benchmark`, rated blind): of the named `systems` or
    all, under one `condition`, of these `groups` or all. At most `most` items are drawn, by the plan's seed. Readers see `title` and `intro`, a text in
    paragraphs."""

    name: StudyId
    title: str = Field(default="", max_length=200)
    intro: str = Field(default="", max_length=10_000)
    form: str
    items: str = ""
    project: str = ""
    stage: str = ""
    benchmark: str = ""
    systems: tuple[str, ...] = ()
    condition: str = ""
    groups: tuple[str, ...] = ()
    most: int | None = Field(default=None, ge=1)
    dimensions: tuple[RatedDimension, ...] = ()
    plan: StudyPlan = StudyPlan()

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.form not in FORMS:
            raise ValueError(f"found the form {self.form!r}, expected {one_of(list(FORMS), self.form)}")
        named = [name for name in ("items", "project", "benchmark") if getattr(self, name)]
        if len(named) != 1:
            raise ValueError(f"one of items, project and benchmark is expected, not {' and '.join(named) or 'none'}")
        if self.benchmark and self.form not in FROM_RUNS:
            raise ValueError(f"the form {' or '.join(FROM_RUNS)} is expected for answers to a benchmark")
        if self.project and self.form not in OF_PROJECTS:
            raise ValueError(
                f"found the form {self.form!r}, expected {one_of(list(OF_PROJECTS), self.form)} for a project"
            )
        if self.groups and not self.benchmark:
            raise ValueError("a benchmark is expected with groups")
        if self.groups and self.most is not None:
            raise ValueError("all answers of the groups are expected: no most with groups")
        if self.stage and not self.project:
            raise ValueError("a project is expected with a stage")
        return self


class ReviewSettings(FrozenModel):
    """All of `review.yaml`. `media` is the folder of the items' media, `address` the public URL of the review, such as
    `https://review.hospital.org`, and `store` its database: a file in the folder, or an SQLAlchemy URL."""

    title: str = Field(default="", max_length=200)
    address: str = Field(default="", max_length=200)
    media: str = "."
    store: str = Field(default=STORE_FILE, min_length=1, max_length=1000)
    studies: tuple[StudySettings, ...] = Field(default=(), max_length=200)

    @field_validator("address")
    @classmethod
    def _is_address(cls, address: str) -> str:
        if address and not is_address(address):
            raise ValueError(f"found {address!r}, expected an address such as https://review.hospital.org")
        return address.casefold()

    def study(self, name: str) -> StudySettings:
        """The study with this name. Raises `InputError` with all names."""
        found = next((study for study in self.studies if study.name == name), None)
        if found is None:
            names = [study.name for study in self.studies]
            raise InputError(REVIEW_FILE, "study", found=repr(name)[:80], expected=one_of(names, name))
        return found


def read_review(folder: Path, accounts: Mapping[str, str] | None = None) -> ReviewSettings:
    """The settings of a review folder. Raises `ProblemsError` for invalid fields, duplicate names and missing files;
    with `accounts` (role by name), also for people without an account, or with a role that may not read."""
    file = folder / REVIEW_FILE
    try:
        settings = ReviewSettings.model_validate(read_yaml(file, "a review (its review.yaml)"))
    except ValidationError as error:
        raise ProblemsError(file, problem_texts(error, ReviewSettings)) from error
    problems = [*_duplicates(settings), *_missing_files(folder, settings)]
    problems += _invalid_people(settings, accounts) if accounts is not None else []
    if problems:
        raise ProblemsError(file, problems)
    return settings


def review_store(folder: Path, store: str | None = None) -> SiteStore:
    """The database of a review: the named one, or as `review.yaml` says. Raises `InputError` for a folder without a
    review."""
    return site_store("review", folder, REVIEW_FILE, read_review(folder).store, store)


def open_store(location: SiteStore, *, create: bool = True) -> Engine:
    """A review's database with the tables of this version. Raises as `SiteStore.opened`."""
    engine = location.opened(create=create)
    prepare(engine)
    return engine


def review_accounts(folder: Path, store: str | None = None) -> AccountsLocation:
    """The accounts of a review. Raises `InputError` for a folder without one, and creates no store there."""
    location = review_store(folder, store)
    return AccountsLocation(
        location, lambda create: open_store(location, create=create), read_review(folder).address, REVIEW_FILE
    )


def _duplicates(settings: ReviewSettings) -> Iterator[str]:
    names = [study_settings.name.casefold() for study_settings in settings.studies]
    for number, study in enumerate(settings.studies, start=1):
        if study.name.casefold() in names[: number - 1]:
            yield f"studies {number}, name: found {study.name!r} twice, expected each name once"


def _missing_files(folder: Path, settings: ReviewSettings) -> Iterator[str]:
    if not (folder / settings.media).is_dir():
        yield f"media: found no folder {settings.media!r}, expected the folder with the videos"
    for number, study in enumerate(settings.studies, start=1):
        files = {"items": study.items, "plan, gold": study.plan.gold}
        for field, named in files.items():
            if named and not (folder / named).is_file():
                yield f"studies {number} ({study.name}), {field}: found no file {named!r}, expected one in the folder"
        if study.project and not (folder / study.project / "project.yaml").is_file():
            where = f"studies {number} ({study.name}), project"
            yield f"{where}: found no project.yaml in {study.project!r}, expected a project folder"


def _invalid_people(settings: ReviewSettings, accounts: Mapping[str, str]) -> Iterator[str]:
    for number, study in enumerate(settings.studies, start=1):
        for field, names in (("readers", study.plan.readers), ("adjudicators", study.plan.adjudicators)):
            for name in names:
                where = f"studies {number} ({study.name}), plan, {field}"
                if name not in accounts:
                    yield f"{where}: found {name!r}, expected an account (proctor serve users add DIR {name})"
                elif accounts[name] not in READING_ROLES:
                    expected = f"one who is {', '.join(READING_ROLES[:-1])} or {READING_ROLES[-1]}"
                    yield f"{where}: found {name!r}, a {accounts[name]}, expected {expected}"
