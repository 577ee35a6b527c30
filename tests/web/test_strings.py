"""Texts of pages: every language has all of them, with the same {names}, and no page asks for one that is not there."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

from proctor.web import strings

ROOM = Path(strings.__file__).parent


def texts(language: str) -> dict[str, str]:
    return strings._texts(language)


def names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", strings.languages())
def test_every_language_says_everything(language: str) -> None:
    english = texts("en")
    assert texts(language).keys() == english.keys()
    assert {key: names(text) for key, text in texts(language).items()} == {
        key: names(text) for key, text in english.items()
    }


def test_no_text_is_in_the_other_language_by_mistake() -> None:
    same = [key for key, text in texts("de").items() if text == texts("en")[key] and len(text.split()) > 2]
    assert same == []


def sources() -> dict[Path, str]:
    files = [*ROOM.rglob("*.html"), *ROOM.rglob("*.py"), *ROOM.rglob("*.js")]
    return {file: file.read_text(encoding="utf-8") for file in files}


def test_every_text_that_a_template_names_is_there() -> None:
    known = set(texts("en")) | {key.rpartition(".")[0] for key in texts("en") if key.endswith((".one", ".other"))}
    for file, source in sources().items():
        if file.suffix == ".html":
            missing = set(re.findall(r"\bt\(\s*\"([\w.]+)\"\s*[,)]", source)) - known
            assert missing == set(), file


def test_no_text_is_left_that_nobody_says() -> None:
    """A key is named whole, or its beginning is (`"error.e" ~ code`)."""
    said = "\n".join(sources().values())
    quoted = set(re.findall(r"[\"']([a-z]\w*(?:\.\w*)+)[\"']", said)) | {"language"}
    unsaid = [
        key
        for key in texts("en")
        if key not in quoted
        and re.sub(r"\.(one|other)$", "", key) not in quoted
        and not any(key.startswith(start) and start.count(".") for start in quoted)
    ]
    assert unsaid == []
