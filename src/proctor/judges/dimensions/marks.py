"""By what an encounter is known again, whatever it is called: its question with its references, and its pictures."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from pydantic import JsonValue

from proctor.core import content_hash
from proctor.judges.dimensions.case import Case

_TELLING = 60  # letters from which on no two patients ask the same
_KEPT = 24


def encounter_marks(case: Case) -> frozenset[str]:
    """The marks of a case's encounter: one of its texts ("text:…") and one of the bytes of each image at hand
    ("image:…"). Two cases that share a mark are of one encounter, or of a copy of it.

    A text counts by its letters and digits alone, without case, width and accents. A short question ("What is this?")
    counts together with its references, since other patients ask it too.

    >>> from proctor.judges.dimensions import Dimension, ReferenceAnswer
    >>> def asked(name: str, query: str) -> Case:
    ...     return Case(name, name, "d", "en", query, (ReferenceAnswer(text="Wart."),), "Eczema.", ())
    >>> encounter_marks(asked("e1", "What is it?")) == encounter_marks(asked("e2", "what is it"))
    True
    >>> encounter_marks(asked("e1", "What is it?")) & encounter_marks(asked("e2", "What is that?"))
    frozenset()
    """
    query = _letters(case.query)
    told: list[JsonValue] = (
        [query] if len(query) >= _TELLING else [query, *sorted(_letters(one.text) for one in case.references)]
    )
    marks = {f"text:{content_hash(told)[:_KEPT]}"}
    if case.image_root is not None:
        files = (case.image_root / name for name in case.images)
        marks |= {f"image:{_digest(file, file.stat().st_mtime_ns)}" for file in files if file.is_file()}
    return frozenset(marks)


def all_marks(cases: Iterable[Case]) -> frozenset[str]:
    """The marks of several cases together, each encounter's read once."""
    known: dict[tuple[str, str], frozenset[str]] = {}
    for case in cases:
        known.setdefault((case.id, case.query), encounter_marks(case))
    return frozenset().union(*known.values())


def _letters(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFKD", text).casefold() if one.isalnum())


@lru_cache(4096)
def _digest(file: Path, changed_ns: int) -> str:
    del changed_ns  # a file that was changed is read again
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:_KEPT]
