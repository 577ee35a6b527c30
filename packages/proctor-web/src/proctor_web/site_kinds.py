"""Kinds of folders that `proctor serve` serves beside reviews: other packages bring them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from proctor.core import Registry, missing_package
from proctor_web.accounts import AccountsLocation
from proctor_web.site import Site

_CHALLENGE = "challenge.yaml"


@dataclass
class SiteKind:
    """`open(folder, store, listening, same_user=…)` makes the site of a folder, and `accounts(folder, store)` finds its
    accounts."""

    open: Callable[..., Site]
    accounts: Callable[[Path, str | None], AccountsLocation]


SITE_KINDS: Registry[SiteKind] = Registry(
    "kind of site", group="proctor.site_kinds", fits=lambda thing: isinstance(thing, SiteKind), expected="a SiteKind"
)
"""By the name of the file that makes a folder one of this kind, such as `challenge.yaml`."""


def kind_of(folder: Path) -> SiteKind | None:
    """The kind of a folder; None for the folder of a review. Raises `ConfigurationError` for that of a challenge where
    the package for challenges is not installed."""
    known = SITE_KINDS.names()
    if (folder / _CHALLENGE).is_file() and _CHALLENGE not in known:
        raise missing_package("proctor_challenge", str(folder / _CHALLENGE))
    name = next((name for name in known if (folder / name).is_file()), None)
    return None if name is None else SITE_KINDS.get(name)
