"""Where the database of a site is: one setting for all commands, and no second store beside the first."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from proctor.core import InputError
from proctor.runs import open_engine, shown_url
from proctor_web.site import private_store
from proctor_web.site_tables import ACCOUNT_TABLES

STORE_VARIABLE = "PROCTOR_STORE"


@dataclass(frozen=True)
class SiteStore:
    """The database of the `what` (review, challenge) in a folder: a path or an SQLAlchemy URL. `own` is what the file of
    `settings` says (`store:`), and `named` what was named otherwise ("" for nothing), by `source` (`--store` or a
    variable)."""

    what: str
    folder: Path
    settings: str
    own: str
    named: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        """The path or URL. Paths in the settings are relative to the folder."""
        return self.named or self._own_text

    @property
    def _own_text(self) -> str:
        return self.own if "://" in self.own else str(self.folder / self.own)

    @property
    def shown(self) -> str:
        """The same without a password."""
        return shown_url(self.text)

    @property
    def is_new(self) -> bool:
        """Whether it is a file that does not exist."""
        return "://" not in self.text and not Path(self.text).exists()

    def opened(self, *, create: bool) -> Engine:
        """An engine on it. With `create`, it may be new.

        Raises `InputError` where there is no store, where it can't be opened, and where it holds no site although the
        folder's own store does: two stores of one site are never meant. Without `create`, also where it holds no site.
        """
        if not create:
            return self._known()
        if self._is_second and self.is_new:
            raise self._second()
        engine = open_engine(self.text if "://" in self.text else private_store(Path(self.text)), create=True)
        if self._is_second and not ACCOUNT_TABLES.are_in(engine):
            engine.dispose()
            raise self._second()
        return engine

    def _known(self) -> Engine:
        if self.is_new:
            raise self._second() if self._is_second else self._missing("no such file")
        engine = open_engine(self.text, create=False)
        if ACCOUNT_TABLES.are_in(engine):
            return engine
        engine.dispose()
        raise self._second() if self._is_second else self._missing(f"no {self.what}")

    def _missing(self, found: str) -> InputError:
        made = f"proctor serve and proctor serve users add make it; if it is elsewhere, write store: … into {self.settings}"
        return InputError(self.shown, found=found, expected=f"the store of this {self.what} ({made})")

    @property
    def _is_second(self) -> bool:
        """Whether another store is named than the folder's own, which is there or is a server's."""
        if not self.named or self.named == self._own_text:
            return False
        if "://" in self.own:
            return "://" not in self.named
        own = Path(self._own_text)
        return own.is_file() and ("://" in self.named or Path(self.named).resolve() != own.resolve())

    def _second(self) -> InputError:
        own = shown_url(self._own_text)
        how = "leave out --store" if self.source == "--store" else f"unset {self.source}, or name that one by --store"
        expected = f"the store of this {self.what}, which is {own}: {how}; to start over elsewhere, move that one away"
        return InputError(self.shown, found=f"no {self.what}", expected=expected)


def site_store(what: str, folder: Path, settings: str, own: str, given: str | None) -> SiteStore:
    """The store of a site: what was `given` as an option, else the environment's (`STORE_VARIABLE`), else its
    `own`."""
    if given:
        return SiteStore(what, folder, settings, own, given, "--store")
    return SiteStore(what, folder, settings, own, os.environ.get(STORE_VARIABLE, ""), STORE_VARIABLE)
