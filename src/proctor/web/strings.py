"""The texts of pages in each language: `strings/LANGUAGE.yaml`. A language is added by a file.

A site may have a folder of further texts, with a file for each language: one of the same key stands before one here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from proctor.core import read_yaml

FOLDER = Path(__file__).parent / "strings"
DEFAULT = "en"


def languages() -> list[str]:
    """The languages that there are."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


def text(language: str, key: str, more: Path | None = None, **values: object) -> str:
    """The text of a key such as `login.title`, with values for its {names}; `more` is a site's folder of further texts.
    Of a text with `one` and `other` the value `count` chooses. Raises `KeyError` where there is none: texts are as
    complete as code is.

    >>> text("en", "home.to_settle", count=1)
    '1 item on which readings differ waits for you'
    """
    texts = _texts(language, more)
    found = texts[key] if key in texts else texts[_form(key, values["count"])]
    return found.format(**values) if values else found


def preferred(accepted: str) -> str:
    """The language for a browser's `Accept-Language`.

    >>> preferred("fr;q=0.9, de-AT, en;q=0.8"), preferred("")
    ('de', 'en')
    """
    known = languages()
    wanted = [part.partition(";")[0].strip().lower()[:2] for part in accepted[:200].split(",")]
    return next((one for one in wanted if one in known), DEFAULT)


def _form(key: str, count: object) -> str:
    return f"{key}.{'one' if count == 1 else 'other'}"


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
