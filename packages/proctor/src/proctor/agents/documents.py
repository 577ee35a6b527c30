"""Documents for agents, in the package: the skill and `llms.txt`."""

from __future__ import annotations

from importlib.resources import files

from proctor.core import UsageError, one_of

_DOCUMENTS = {"skill": "SKILL.md", "llms": "llms.txt"}


def document_names() -> list[str]:
    """The documents that the package has.

    >>> document_names()
    ['skill', 'llms']
    """
    return [*_DOCUMENTS]


def document(name: str) -> str:
    """A document by its name: "skill" (SKILL.md) or "llms" (llms.txt). Raises `UsageError` for another name.

    >>> document("skill").splitlines()[1]
    'name: proctor'
    """
    if name not in _DOCUMENTS:
        raise UsageError(f"There is no document {name!r}: choose {one_of(document_names(), name)}")
    return files("proctor.agents").joinpath(_DOCUMENTS[name]).read_text(encoding="utf-8")
