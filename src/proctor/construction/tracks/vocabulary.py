"""What FOCUS calls things: its classes, what stays in the body, what arises there, and how questions say it."""

from __future__ import annotations

from proctor.tasks.focus import OBJECTS

ARISING = frozenset({"Specimen", "Gallstone"})
"""Classes that come from the body itself, so that nobody inserts them."""

STAYING = frozenset({"Clip", "Mesh", "External Drain", "Absorbable Hemostatic Agent"})
"""Classes that may stay when the operation ends, so that nothing is wrong where they are not retrieved."""

_KNOWN = {name.casefold(): name for name in OBJECTS}


def official_name(name: str) -> str | None:
    """The class as FOCUS writes it, whatever the case and the white space; None for a class of one's own.

    >>> official_name("specimen  bag"), official_name("anvil")
    ('Specimen Bag', None)
    """
    return _KNOWN.get(" ".join(name.replace("_", " ").split()).casefold())


def plural(phrase: str) -> str:
    """More than one of something.

    >>> plural("mesh"), plural("white gauze sponge")
    ('meshes', 'white gauze sponges')
    """
    return phrase + ("es" if phrase.endswith(("sh", "ch", "s", "x")) else "s")


def with_article(phrase: str) -> str:
    """One of something.

    >>> with_article("external drain"), with_article("needle")
    ('an external drain', 'a needle')
    """
    return f"{'an' if phrase[0].casefold() in 'aeiou' else 'a'} {phrase}"
