"""The field's own words in what a browser gets: scripts, styles, templates, and the texts of pages.

Everything in these files is read: names, keys, classes, attributes, comments and sentences. `frame` is the index of a
picture; a message to a person has the key `message`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.paths import SOURCES, source_name

PLACE = "rank, row, slot, position, location, or the index of a frame"
BETTER = {
    "place": PLACE,
    "places": PLACE,
    "placed": PLACE,
    "unplaced": PLACE,
    "told": "message, reply, response, reported",
    "steering": "prompt injection",
    "unmarked": "unscored",
}
"""Words that don't say what is meant, each with better ones."""

PHRASES = re.compile(
    r"\bplace-(?:content|items|self)\b"  # properties of CSS
    r"|\bin place of\b|\bin (?:the|its|their) place\b|\btakes? (?:the )?place\b"
    r"|\b(?:are|be|been|had|has|have|they|was|we|were|who|you) told\b",
    re.IGNORECASE,
)
"""What other standards or plain sentences say."""

FOREIGN = {"proctor_web/static/htmx.js"}
"""Copies of other projects' files."""

RUN = re.compile(r"[^\W\d_]+")
PART = re.compile(r"[^\W\d_a-zß-ÿ]+(?![a-zß-ÿ])|[^\W\d_a-zß-ÿ]?[a-zß-ÿ]+")


def files() -> dict[str, Path]:
    """By their names in messages."""
    found = [file for source in SOURCES.values() for file in sorted(source.rglob("*")) if file.is_file()]
    return {
        source_name(file): file
        for file in found
        if file.suffix in {".js", ".css", ".html"}
        or file.name.endswith(".html.j2")
        or (file.suffix == ".yaml" and file.parent.name in {"strings", "texts"})
    }


def words_at(text: str) -> list[tuple[int, str]]:
    """Each word of BETTER with its line; names are split at capitals, and at what is no letter."""
    plain = PHRASES.sub(lambda hit: " " * len(hit[0]), text)
    return [
        (number, word)
        for number, line in enumerate(plain.split("\n"), 1)
        for run in RUN.findall(line)
        for part in PART.findall(run)
        if (word := part.lower()) in BETTER
    ]


def test_pages_use_the_words_of_the_field() -> None:
    found = files()
    kinds = {file.suffix for file in found.values()}
    assert kinds == {".js", ".css", ".html", ".j2", ".yaml"}
    assert len(found) > 80
    assert found.keys() >= FOREIGN
    hits = [
        f"{name}:{line}: {word}: better {BETTER[word]}"
        for name, file in found.items()
        if name not in FOREIGN
        for line, word in words_at(file.read_text(encoding="utf-8"))
    ]
    assert not hits, "\n".join(hits)


@pytest.mark.parametrize(
    "fault",
    [
        "const place = 1;",
        "times.placeOf(pts)",
        "isPlaced",
        "PLACE_MS",
        "html5Place",
        "a.b.place_low",
        ".told thead { }",
        '<div data-place="1">',
        '<p class="wide told">',
        '{{ t("organise.told") }}',
        "  told: The version was not stored.",
        "  open: To place",
        "/* The hash of the picture at a place. */",
        "reply.told",
        "this.told(frame, true);",
        "for (const key in place) f(key);",
        ".dots .unmarked { }",
        "{# the last places #}",
        "<!-- steering -->",
    ],
)
def test_a_word_that_does_not_say_what_is_meant_is_seen(fault: str) -> None:
    assert [line for line, _ in words_at(f"one\n{fault}\ntwo")] == [2]


@pytest.mark.parametrize(
    "text",
    [
        "input::placeholder { }",
        "list.replaceChildren(); text.replace(a, b)",
        "display: grid; place-items: center;",
        "The judge stands in place of a rater.",
        "Its team takes the place of another.",
        "What systems were told apart by.",
        "Ein Platz, erzählt",
        "unmarkedly",
    ],
)
def test_other_words_and_plain_sentences_are_not(text: str) -> None:
    assert words_at(text) == []
