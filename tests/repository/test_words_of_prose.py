"""Prose says rank, row, slot, position, region or location: "place" is left to the acts of clinicians, and to what others wrote.

An allowance is a phrase of one file, with the reason. Names of code and stored keys: `test_words_of_code.py`.
"""

from __future__ import annotations

import re

import pytest

from tests.support.paths import ROOT
from tests.support.prose import pages, prose_of, text_of

PLACE = re.compile(r"\b(?:un)?plac(?:e|es|ed|ing)\b", re.IGNORECASE)

CORE = "packages/proctor/src/proctor"
METHODS = f"{CORE}/tasks/clinicalskillqa/methods"
ALLOWED = {
    f"{CORE}/core/formats/orders.py": ("|place |", "|place|"),  # words of replies that are read
    f"{CORE}/core/formats/rationales.py": ("the pads are placed",),  # an act
    f"{CORE}/judges/passage_index.py": ("moved into place",),  # an idiom of file systems
    f"{CORE}/media/mp4.py": ("times and places",),  # on earth
    f"{CORE}/tasks/clinicalskillqa/instances.py": ("to another place", "the pads are placed"),  # in rationales
    f"{METHODS}/perceive_and_plan.py": ("One place where", "places it in time"),  # what a model reads
    f"{METHODS}/workflows/aed.yaml": ("the pads in place",),  # steps of procedures
    f"{METHODS}/workflows/bmv.yaml": ("take the place behind the head",),
    f"{METHODS}/workflows/cpr.yaml": ("that the place is safe",),
    f"{CORE}/tasks/simulated/questions.yaml": ("put down at another place",),  # questions that are asked
    "packages/proctor-build/src/proctor_build/checks.py": ("`two-places`",),  # a kind of finding
    "packages/proctor-build/src/proctor_build/focus/rules.py": ("many are placed",),  # an act
    "packages/proctor-train/src/proctor_train/mediqa_eval/embedded/sentences.yaml": ("take the place of a check-up",),
    "docs/tasks/build-from-tracks.md": ("`two-places`",),
    "docs/tasks/compare.md": ("a drain is placed",),
    "docs/tasks/de-identify-videos.md": ("stay in place",),  # do not move
    "docs/tasks/order-key-frames.md": ("the pads are placed",),
    "docs/tasks/text-metrics.md": ("The pads are placed",),
    "docs/tasks/your-own-questions.md": ("stay in place",),
    "bench/report_size.py": ("the instrument is placed",),
    "bench/review_pictures.py": ("put down at another place",),
}
"""Phrases of a file in which a place is meant, by the file."""

FILES = {
    name: file
    for file in pages()
    if (name := file.relative_to(ROOT).as_posix()) != "CHANGELOG.md" and file.suffix != ".js"
}
"""Without the former names, and the code of pages."""


def places_in(name: str, text: str, allowed: tuple[str, ...] = ()) -> list[int]:
    """The lines of a file's prose that say "place" outside allowed phrases."""
    prose = prose_of(name, text)
    for phrase in allowed:
        prose = prose.replace(phrase, "·")
    return [prose.count("\n", 0, hit.start()) + 1 for hit in PLACE.finditer(prose)]


def test_prose_says_rank_row_slot_position_region_or_location() -> None:
    found = {name: places_in(name, text_of(file), ALLOWED.get(name, ())) for name, file in FILES.items()}
    assert len(found) > 700
    assert {name: lines for name, lines in found.items() if lines} == {}, "or: instead of"


@pytest.mark.parametrize("name", ALLOWED)
def test_no_allowance_for_a_place_is_left_over(name: str) -> None:
    prose = prose_of(name, text_of(FILES[name]))
    assert [phrase for phrase in ALLOWED[name] if phrase not in prose or not PLACE.search(phrase)] == []


@pytest.mark.parametrize(
    "fault",
    [
        "# teams that share a place",
        'def f():\n    """The text in place of each picture."""',
        'raise ValueError(f"{name}: found two places")',
        'x = """One line.\n\nPlaced below."""',
    ],
)
def test_a_place_in_the_prose_of_code_is_seen(fault: str) -> None:
    line = next(number for number, one in enumerate(fault.split("\n"), start=1) if PLACE.search(one))
    assert places_in("some.py", fault + "\n") == [line]


def test_a_name_is_no_prose_and_an_allowed_phrase_no_fault() -> None:
    code = "def f(place):\n    return {'place': place.placed}  # the pads are placed\n"
    assert places_in("some.py", code, ("the pads are placed",)) == []
    assert places_in("some.py", code) == [2]


def test_a_place_on_a_page_is_seen_on_its_line() -> None:
    assert places_in("page.md", "The file and\nthe Place, and\n`a placeholder` takes its place.") == [2, 3]
