"""The texts of pages in each language, from `strings/LANGUAGE.yaml`; a new file adds a language.

A site may have a folder of its own texts, with a file for each language, which replace texts of the same key here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from proctor.core import read_yaml

FOLDER = Path(__file__).parent / "strings"
DEFAULT = "en"


@cache
def languages() -> tuple[str, ...]:
    """The languages of the texts here."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.yaml")))


def text(language: str, key: str, more: Path | None = None, **values: object) -> str:
    """The text of a key such as `login.title`, with values for its {names}. `more` is a site's folder of its own texts.
    The value `count` chooses between a text's `one` and `other`. Raises `KeyError` for an unknown key.

    >>> text("en", "home.to_settle", count=1)
    '1 item on which readings differ waits for you'
    """
    texts = _texts(language, more)
    found = texts[key] if key in texts else texts[f"{key}.{'one' if values['count'] == 1 else 'other'}"]
    return found.format(**values) if values else found


def text_or(language: str, key: str, otherwise: str, more: Path | None = None) -> str:
    """The text of a key, or `otherwise` where there is none: for names that others may add, such as actions of the
    trail.

    >>> text_or("de", "role.reviewer", "reviewer"), text_or("de", "role.guest", "guest")
    ('Begutachtung', 'guest')
    """
    return _texts(language, more).get(key, otherwise)


def preferred(accepted: str) -> str:
    """The language to use for a browser's `Accept-Language`.

    >>> preferred("fr;q=0.9, de-AT, en;q=0.8"), preferred("")
    ('de', 'en')
    """
    known = languages()
    wanted = [part.partition(";")[0].strip().lower()[:2] for part in accepted[:200].split(",")]
    return next((one for one in wanted if one in known), DEFAULT)


@cache
def _texts(language: str, more: Path | None = None) -> dict[str, str]:
    """All texts of a language by dotted key."""
    folders = (FOLDER,) if more is None else (FOLDER, more)
    return {key: text for folder in folders for key, text in _flat(read_yaml(folder / f"{language}.yaml"))}


def _flat(texts: dict[str, object], prefix: str = "") -> list[tuple[str, str]]:
    flat: list[tuple[str, str]] = []
    for name, value in texts.items():
        flat += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(f"{prefix}{name}", str(value))]
    return flat
