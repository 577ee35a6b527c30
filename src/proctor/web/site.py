"""A site that is open: its database, its key, its clock, under which names it is served, and what its pages are.

A kind of site is a class: the review is one (`ReviewSite`). All have the entrance, accounts and the trail; `mount` adds
their own routes, `templates` and `texts` are folders beside this room's: a template there stands before one of the same
name here, and a `nav.html` is what the bar at the top holds.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from re import Pattern
from typing import TYPE_CHECKING, ClassVar

from sqlalchemy import Connection, Engine

from proctor.core import InputError, input_text
from proctor.runs import reading
from proctor.web.schema import ROLES, Role, new_token

if TYPE_CHECKING:
    from fastapi import FastAPI

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Site(ABC):
    """What pages are made from. `key` signs cookies; `address` is where browsers find it, `hosts` are the names under
    which it answers, `tls` says whether they reach it by https.

    `roles` are those that an organiser may give, `newcomer` is the one that is offered first.
    `slow_modules` are loaded while the server starts, so that the first visitor who needs one does not wait for it.
    """

    templates: ClassVar[Path | None] = None
    texts: ClassVar[Path | None] = None
    roles: ClassVar[tuple[Role, ...]] = ROLES
    newcomer: ClassVar[Role] = "reviewer"
    slow_modules: ClassVar[tuple[str, ...]] = ()

    folder: Path
    title: str
    engine: Engine
    key: str
    address: str = ""
    hosts: tuple[str, ...] = LOCAL_NAMES
    tls: bool = False
    now: Callable[[], datetime] = _utc_now

    @abstractmethod
    def mount(self, app: FastAPI) -> None:
        """Adds the site's own routes, and what they share, to its application."""

    @property
    def open_registration(self) -> bool:
        """Whether anybody may make an account, as a `newcomer`."""
        return False

    @property
    def uploads(self) -> Mapping[Pattern[str], int]:
        """The addresses that take files, with the most bytes of a body. Their routes read the form themselves, as it
        comes (`receive_upload`)."""
        return {}

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading, which sees one state and holds up nobody."""
        with reading(self.engine) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction for writing: kept on disk when the block ends, undone where it raises. Keep it short: in
        SQLite the others wait."""
        with self.engine.begin() as connection:
            yield connection


def upload_limit(site: Site, path: str) -> int | None:
    """The most bytes of a body at this address; None where it takes no files."""
    return next((most for pattern, most in site.uploads.items() if pattern.fullmatch(path)), None)


def signing_key(path: Path) -> str:
    """The key in a file, made at the first call, readable by its owner alone. Who deletes the file logs everybody
    out."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(new_token())
    except FileExistsError:
        pass
    except OSError as error:
        raise InputError(path, found=error.strerror or "an error", expected="a place for the key") from error
    key = input_text(path, "the key that signs cookies").strip()
    if len(key) < 32:
        raise InputError(path, found=f"{len(key)} characters", expected="a key of 32 or more; delete the file for one")
    return key
