"""German pages say nothing in English: no text of the other language, no name of code, no words outside the texts."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from sqlalchemy import update

from proctor.core import VideoClip
from proctor_web import schema, strings
from proctor_web.review import ReviewSite
from proctor_web.strings import languages
from tests.pages.test_strings import in_each_room
from tests.support.web_site import browser, csrf_of, join, log_in
from tests.web.test_pages_are_readable import PEOPLE, studies_of_all_forms

_SPOKEN = (
    "aria-label",
    "title",
    "alt",
    "placeholder",
    "data-need",
    "data-needs",
    "data-position",
    "data-cite",
    "data-sentence",
    "data-remove",
)
_ABOUT_CODE = {"code", "pre", "kbd", "script", "style", "q", "blockquote"}
_OF_ITEMS = {"correct"}  # what items of these tests say themselves
_VOID = {"input", "img", "br", "meta", "link"}


class Said(HTMLParser):
    """All that a page says to its reader: texts and spoken attributes, but what is marked as English, code or a quotation."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._open: list[bool] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        quiet = tag in _ABOUT_CODE or given.get("lang") == "en" or any(self._open)
        if not quiet:
            self.parts += [given[name] or "" for name in _SPOKEN if name in given]
            if words := given.get("data-words"):
                self.parts += [str(text) for text in json.loads(words).values()]
        if tag not in _VOID:
            self._open.append(quiet)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID and self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not any(self._open) and (text := " ".join(data.split())):
            self.parts.append(text)


@cache
def pattern(language: str) -> re.Pattern[str]:
    """What the texts of a language may become."""
    found = []
    for key, text in strings._texts(language).items():
        if key == "language":  # each language by its own name
            continue
        parts = re.split(r"\{\w+\}", text)
        if any(re.search(r"\w", part) for part in parts):
            found.append(r"\S+".join(map(re.escape, parts)))
    return re.compile("|".join(sorted(found, key=len, reverse=True)))


@cache
def is_english(part: str) -> bool:
    """Whether a part of a German page is a text in English, or a name of the code."""
    if part in _OF_ITEMS or pattern("de").fullmatch(part):
        return False
    return bool(pattern("en").fullmatch(part) or re.search(r"[a-z]_[a-z]", part))


def in_english(page: str) -> list[str]:
    """What a German page says in English, or by a name of the code."""
    return [part for part in Said(page).parts if is_english(part)]


def test_the_check_finds_english() -> None:
    page = "<p>Saved.</p><p lang=en>Saved.</p><p>3 of 4 submitted</p><button aria-label='Later'>x</button><td>new_version: 2</td>"
    assert in_english(page) == ["Saved.", "3 of 4 submitted", "Later", "new_version: 2"]
    assert in_english("<p>Gespeichert.</p><p>Name</p><code>proctor build</code>") == []


@pytest.fixture
def pages(review: ReviewSite) -> dict[str, str]:
    """The pages of a review in which everybody reads German, by path and reader."""
    for name, role in PEOPLE.items():
        join(review, name, role, "de")
    first = studies_of_all_forms(review)
    with review.writing() as connection:
        clip = VideoClip(source="clip.mp4").model_dump(mode="json")
        connection.execute(update(schema.study_items).values(media=[clip]))  # so that there is a player
    found: dict[str, str] = {}
    for name in ("anna", "cleo", "olga"):
        client = browser(review)
        log_in(client, name)
        paths = ["/", "/none", *(f"/item/{item}" for item in first.values())]
        if name == "anna":
            paths += [f"/item/{item + 1}" for item in first.values()] + [f"/item/{first['question'] + 1}/new"]
        if name == "olga":
            paths = ["/", "/organise/", "/organise/people", "/organise/trail", "/organise/trail?drafts=true"]
            paths += [f"/organise/study/{form}" for form in first] + [
                f"/organise/item/{item}" for item in first.values()
            ]
            csrf = csrf_of(client.get("/"))
            number = join(review, "rosa", language="de")
            asked = client.post(f"/organise/people/{number}/disable", data={"csrf": csrf})
            found["disable"] = asked.text
        found |= {f"{name} {path}": client.get(path).text for path in paths}
    stranger = browser(review)
    stranger.headers["accept-language"] = "de"
    found |= {path: stranger.get(path).text for path in ("/login", "/invitation/none")}
    return found


def test_no_german_page_says_anything_in_english(pages: dict[str, str]) -> None:
    assert len(pages) > 40
    assert all('lang="de"' in page for page in pages.values())
    assert {path: said for path, page in pages.items() if (said := in_english(page))} == {}


_BLOCKS = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_TAGS = re.compile(r"<(code|kbd)\b.*?</\1>|<[^>]+>", re.DOTALL)
_LITERAL = re.compile(r"\s(?:aria-label|title|alt|placeholder)=\"[^\"{]*[A-Za-z]{3}")
_NAMES = {"SHA", "UTC", "KiB", "MiB", "GiB"}


@in_each_room
def test_no_template_speaks_past_the_texts(room: Path) -> None:
    assert set(languages()) == {"de", "en"}
    for file in (room / "templates").rglob("*.html"):
        source = file.read_text(encoding="utf-8")
        words = set(re.findall(r"[A-Za-z]{3,}", _TAGS.sub(" ", _BLOCKS.sub(" ", source)))) - _NAMES
        assert words == set(), file
        assert _LITERAL.findall(source) == [], file
