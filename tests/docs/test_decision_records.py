"""Decision records are few and short, the index lists each by its title, and no code and no page names one that is gone.

Their links are tested with those of all pages, in `test_docs`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.docs import ROOT

FOLDER = ROOT / "docs" / "decisions"
INDEX = FOLDER / "README.md"
RECORDS = sorted(page for page in FOLDER.glob("*.md") if page != INDEX)
MOST_RECORDS = 17
MOST_WORDS = 300
PARTS = ("**Decided.**", "**Why.**", "**Turned down.**", "**Costs.**")

_ROW = re.compile(r"^\| \[(?P<title>[^\]]+)\]\((?P<file>[^)]+)\) \| (?P<question>.+) \|$", re.MULTILINE)
_MENTION = re.compile(r"\b[Dd]ecisions? (?P<number>\d{4})\b|decisions/(?P<file>\d{4}[\w-]*\.md)")


def title_of(record: Path) -> str:
    """The heading of a record: its number and what it is about."""
    return record.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def mentions() -> list[tuple[str, str]]:
    """Every record that code, tests or pages mention: the location, and its number or file."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").rglob("*.md")]
    code = [file for room in ("packages", "tests", "tools", "bench") for file in sorted((ROOT / room).rglob("*.py"))]
    return [
        (f"{file.relative_to(ROOT)}:{text.count(chr(10), 0, hit.start()) + 1}", hit["number"] or hit["file"])
        for file in (*pages, *code)
        if file != Path(__file__).resolve()
        for text in [file.read_text("utf-8")]
        for hit in _MENTION.finditer(text)
    ]


def test_there_are_few_records() -> None:
    assert len(RECORDS) <= MOST_RECORDS, "merge two records before a new one is written"
    assert len({record.name[:4] for record in RECORDS}) == len(RECORDS)


@pytest.mark.parametrize("record", RECORDS, ids=[record.name for record in RECORDS])
def test_a_record_is_short_and_complete(record: Path) -> None:
    text = record.read_text("utf-8")
    assert len(text.split()) <= MOST_WORDS
    assert re.fullmatch(r"\d{4} \S.*\S", title_of(record))
    assert title_of(record)[:4] == record.name[:4]
    found = [part for part in PARTS if text.count(part) == 1]
    assert found == sorted(PARTS, key=text.index), "what was decided, why, what was turned down, what it costs"


def test_the_index_lists_each_record_by_its_title_with_a_question() -> None:
    rows = list(_ROW.finditer(INDEX.read_text("utf-8")))
    assert [(row["title"], row["file"]) for row in rows] == [(title_of(record), record.name) for record in RECORDS]
    assert [row["title"] for row in rows if not row["question"].endswith("?")] == []


def test_every_record_that_is_mentioned_is_there() -> None:
    names = {record.name for record in RECORDS} | {record.name[:4] for record in RECORDS}
    assert [f"{location}: decision {name}" for location, name in mentions() if name not in names] == []
