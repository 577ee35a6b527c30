"""What FOCUS asks about: the capability taxonomy and the foreign objects, both kept as data."""

from __future__ import annotations

import json
from importlib.resources import files
from types import MappingProxyType
from typing import TypedDict


class CapabilityGroup(TypedDict):
    """One of the five groups: its title, what it asks, and its leaves with what each means."""

    title: str
    asks: str
    leaves: dict[str, str]


def _groups() -> dict[str, CapabilityGroup]:
    found: dict[str, CapabilityGroup] = json.loads(
        files(__package__).joinpath("taxonomy.json").read_text(encoding="utf-8")
    )
    return found


GROUPS = MappingProxyType(_groups())
"""The five groups by their name in the files."""

GROUP_OF = MappingProxyType({leaf: name for name, group in GROUPS.items() for leaf in group["leaves"]})
"""Each of the fifteen leaves with its group."""

CAPABILITIES = tuple(GROUP_OF)
"""The fifteen leaves, in the order of the taxonomy."""

_CODES = MappingProxyType(
    {
        f"{number}{chr(ord('a') + place)}": leaf
        for number, group in enumerate(GROUPS.values(), start=1)
        for place, leaf in enumerate(group["leaves"])
    }
)


def leaf_of(label: str) -> str | None:
    """A leaf by its name in any case, with hyphens or spaces for underscores, or by its code; None for what is no leaf.

    >>> leaf_of("1a"), leaf_of("Temporal-Ordering"), leaf_of("aggregation")
    ('object_identification', 'temporal_ordering', None)
    """
    said = label.strip().lower()
    name = said.replace("-", "_").replace(" ", "_")
    return _CODES.get(said.replace(" ", ""), name if name in GROUP_OF else None)


FOREIGN_OBJECT = (
    "Anything that is brought wholly into the body cavity during the procedure and has to be retrieved or accounted "
    "for, and tissue or a stone that has come loose in it and has to be taken out. Not meant are instruments that "
    "stay connected to the outside (graspers, scissors, trocars, staplers, cameras) and parts that come off an "
    "instrument, such as the anvil of a stapler."
)
"""What all classes have in common, in our own words."""
