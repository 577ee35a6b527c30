"""The field's own words, one per thing, in names of code and in what is stored.

A judge's cached reply is a judgement (votes are those of people or of an ensemble of systems), what a scorer gives is a
score (a mark is drawn, or stands in a text), and a store's keys say so. A name says rank, row, slot, position or location.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from proctor.runs import store_tables
from proctor_challenge import schema as challenges
from proctor_web import schema as web
from tests.support.paths import PACKAGES, ROOT, modules, source_file, source_name

OLD = {
    "vote": "judgement",
    "votes": "judgements",
    "mark": "score",
    "marks": "scores",
    "marked": "scored",
    "unmarked": "unscored",
    "marking": "scoring",
    "steering": "prompt_injection",
    "told": "oracle_baseline",
}
"""Words of names and keys, each with the one that is used."""

ROOMS = (
    "agents", "api", "audits", "cli", "judges", "metrics", "results", "runs", "shell", "sight", "testing", "tracks",
    "proctor_challenge", "proctor_train",
)  # fmt: skip
"""The rooms in which a mark is a score and a vote a judgement."""

OWN = {
    "proctor_challenge/teams.py": {"marks"},  # of a name: punctuation
    "proctor_train/mediqa_eval/embedded/measures.py": {"mark"},  # of punctuation
    "judges/documents.py": {"mark"},  # where a passage stands
    "judges/passage_index.py": {"mark"},  # of an index: what it was made of
    "judges/prompt_injection.py": {"mark", "marks"},  # words of attacks, and signs in a text
    "metrics/ordering/consensus.py": {"votes"},  # on pairs of frames
    "results/performance.py": {"vote"},  # of an ensemble of systems
}
"""Where a word is meant as everybody means it."""


def names_in(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def words_in(name: str) -> set[str]:
    return set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))


@pytest.mark.parametrize("room", ROOMS)
def test_names_of_code_use_the_words_of_the_field(room: str) -> None:
    found = set()
    files = {source_name(file): file for file in modules().values()}
    for name_of_file, file in files.items():
        if not name_of_file.startswith(f"{room}/"):
            continue
        own = set().union(*(words for where, words in OWN.items() if name_of_file == where))
        found |= {
            f"{name_of_file}: {name}" for name in names_in(file) if words_in(name) & (OLD.keys() - own - {"told"})
        }
    assert sorted(found) == [], f"better: {OLD}"


def test_no_name_of_any_room_says_unmarked_or_steering() -> None:
    found = {source_name(file): {*names_in(file), *texts_in(file)} for file in modules().values()}
    said = {
        file: [name for name in names if words_in(name) & {"unmarked", "steering"}] for file, names in found.items()
    }
    assert {file: names for file, names in said.items() if names} == {}


@pytest.mark.parametrize("name", OWN)
def test_no_allowance_is_left_over(name: str) -> None:
    used = set().union(*map(words_in, names_in(source_file(name))))
    assert OWN[name] - used == set()


def test_an_old_word_in_a_name_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text("def put_votes(unmarkedItems): ...\n")
    assert [words_in(name) & OLD.keys() for name in names_in(file)] == [{"votes"}, {"unmarked"}]


PLACE = {"place", "places", "placed", "unplaced"}
"""Words that don't say what is meant: a rank (of a system), a row, a slot (to fill), a position (in an order or a picture), or
a location (of a file, or in one)."""
OTHERS = {"decimal_max_places", "score_decimal_places"}
"""Keys of pydantic's errors and of Grand Challenge's settings."""
KEY_NAMED_PLACE = re.compile(r"place[sd]?|(\w+_)?place[sd]?(_\w+)?")


def texts_in(file: Path) -> Iterator[str]:
    """The keys of dictionaries, and what is taken by a key."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        keys: list[ast.expr | None] = [*node.keys] if isinstance(node, ast.Dict) else []
        keys += [node.slice] if isinstance(node, ast.Subscript) else []
        yield from (key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))


def all_names_in(file: Path) -> Iterator[str]:
    yield from names_in(file)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg


def named_place(file: Path) -> list[str]:
    keys = [text for text in texts_in(file) if KEY_NAMED_PLACE.fullmatch(text)]
    names = {*all_names_in(file), *keys} - OTHERS
    return sorted(name for name in names if words_in(name) & PLACE)


def test_a_name_or_key_says_rank_row_slot_position_or_location() -> None:
    found = {source_name(file): named_place(file) for file in modules().values()}
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "fault",
    [
        "def f(place): ...",
        "_places = 1",
        "class PlacedBox: ...",
        "f(place_low=1)",
        "x.place",
        "{'place': 1}",
        "row['place_low']",
    ],
)
def test_a_name_or_key_with_place_is_seen(tmp_path: Path, fault: str) -> None:
    file = tmp_path / "some.py"
    file.write_text(fault + "\nreplace(placeholder={'replaced': 1})\n")
    assert len(named_place(file)) == 1


def texts_shown(file: Path) -> Iterator[str]:
    """The texts of a module that are no docstrings and have a blank: titles, heads, sentences."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docs
            and " " in node.value
        ):
            yield node.value


CLASS_NAME = re.compile(r"\b[A-Z][a-z]+[A-Z]\w+")
OF_TYPES = {"Prose | Table | Figure | LeaderboardChart | Folded", "AnalysisTables: "}
"""A type in a cast, and the beginning of a `repr`."""


def test_no_table_is_headed_by_the_name_of_a_class() -> None:
    """A name that was changed by a search for a word, also where people read it."""
    files = {source_name(file): file for file in modules().values()}
    classes = {
        node.name
        for file in files.values()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    shown = {name: set(texts_shown(file)) - OF_TYPES for name, file in files.items() if name.startswith("reports/")}
    found = {name: [text for text in texts if classes & set(CLASS_NAME.findall(text))] for name, texts in shown.items()}
    assert len(shown) > 40
    assert {name: texts for name, texts in found.items() if texts} == {}


TAG = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)
QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")


def names_in_template(text: str) -> set[str]:
    """The names in the tags of a template, without its texts."""
    return {name for tag in TAG.findall(text) for name in re.findall(r"[A-Za-z_]\w*", QUOTED.sub("", tag))}


def test_a_template_asks_for_no_name_that_code_no_longer_has() -> None:
    """A name that was changed in code alone is undefined in a template."""
    found = {
        file.relative_to(ROOT).as_posix(): sorted(name for name in names_in_template(text) if words_in(name) & PLACE)
        for folder in PACKAGES
        for file in sorted((ROOT / "packages" / folder / "src").rglob("*"))
        if file.suffix in {".html", ".j2"} and (text := file.read_text(encoding="utf-8"))
    }
    assert len(found) > 50
    assert {file: names for file, names in found.items() if names} == {}


def test_a_name_with_place_in_a_template_is_seen() -> None:
    text = "{% if one.place %}a place{% endif %}{{ t('place') }}{# place #}"
    assert sorted(name for name in names_in_template(text) if words_in(name) & PLACE) == ["place"]
    assert not {"a", "t('place')"} & names_in_template("{{ t('place') }}a place")


@pytest.mark.parametrize(
    "tables", [store_tables, web.metadata, challenges.metadata], ids=["store", "web", "challenges"]
)
def test_stored_keys_use_the_words_of_the_field(tables: sa.MetaData) -> None:
    keys = {f"{table.name}.{column.name}" for table in tables.tables.values() for column in table.columns}
    assert len(keys) > 20
    assert sorted(key for key in keys if words_in(key.replace(".", "_")) & (OLD.keys() | PLACE)) == []
