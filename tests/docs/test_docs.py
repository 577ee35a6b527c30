"""The documentation says everything public, says nothing that the program does not know, and leads nowhere
that is not there."""

from __future__ import annotations

import importlib
import inspect
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from proctor.cli.main import DEFAULTS
from proctor.cli.main import commands as program
from proctor.cli.tree import spread_settings
from proctor.core import Status
from proctor.results import FAILED_POLICIES, Result
from proctor.results.export import COLUMNS
from tests.support.markdown import anchors, blocks, commands, links
from tools.docs import BLOCKS, ROOT, pages, rendered

PAGES = pages()
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def command_tree() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words that call it."""

    def below(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
        inner = getattr(command, "commands", None)
        if inner is None:
            yield path, command
        for name, one in (inner or {}).items():
            yield from below((*path, name), one)

    return below((), root())


@cache
def root() -> Any:
    """The whole program."""
    return typer.main.get_command(program())


def whole(line: str) -> str:
    """A command line with the name of the command that `proctor serve DIR` and `proctor audit BENCHMARK` leave out."""
    _, group, *rest = (*line.split(" "), "")
    default = DEFAULTS.get(group, "")
    if not default or rest[0] in {"", *root().commands[group].commands}:
        return line
    return line.replace(f"proctor {group} ", f"proctor {group} {default} ", 1)


def parsed(line: str) -> None:
    """Reads a command line as the program would, without running it; raises what the program would say."""
    words = spread_settings(shlex.split(whole(line))[1:])
    command = root()
    while hasattr(command, "commands"):
        if words[0].startswith("-"):
            break
        default = getattr(command, "default", "")
        command = command.commands[default if default and words[0] not in command.commands else words.pop(0)]
    with command.make_context("proctor", words):
        pass


def documented() -> Iterator[tuple[str, str]]:
    """(page, command line) of every `proctor` command in a console block."""
    for page, name in zip(PAGES, NAMES, strict=True):
        for block in blocks(page):
            if block.info.startswith("console"):
                for command in commands(block):
                    if command.line.startswith("proctor "):
                        yield f"{name}:{block.line}", command.line


def examples() -> Iterator[tuple[str, str]]:
    """(command, example) of every `Example:` in a help text."""
    for path, command in command_tree():
        example = re.search(r"Example: (proctor .*)", " ".join(command.help.split()))
        yield " ".join(path), example[1] if example else ""


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_generated_parts_are_current(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert rendered(text) == text, f"{page.name} is stale: make docs"


def test_everything_that_can_be_generated_stands_in_a_page() -> None:
    named = {
        name for page in PAGES for name in re.findall(r"<!-- generated: ([\w-]+) -->", page.read_text("utf-8"))
    } - {"…"}
    assert named == set(BLOCKS)


def test_a_stale_part_is_written_anew_and_the_rest_is_left() -> None:
    text = "mine\n<!-- generated: metrics -->\nold\n<!-- end -->\nmine too\n"
    new = rendered(text)
    assert new.startswith("mine\n<!-- generated: metrics -->\n\n| Metric |")
    assert new.endswith("|\n\n<!-- end -->\nmine too\n")
    assert "old" not in new
    assert rendered(new) == new


@pytest.mark.parametrize("kind", [dict, tuple, str, list, set, frozenset, int, float])
def test_no_page_says_of_a_constant_what_python_says_of_its_type(kind: type) -> None:
    first = str(inspect.getdoc(kind)).partition("\n")[0]
    assert [name for page, name in zip(PAGES, NAMES, strict=True) if first in page.read_text(encoding="utf-8")] == []


def test_every_constant_of_the_statistics_has_a_text_of_its_own() -> None:
    page = (ROOT / "docs" / "reference" / "statistics.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^### `(\w+)`\n\n(.*?)(?=\n### |\n<!-- end)", page, re.DOTALL | re.MULTILINE))
    assert parts["RANK_RULES"].strip() == "The rules that use only the table of ranks, by name."
    assert parts["Rule"].strip().endswith("One of `copeland`, `borda`, `mean`.")
    for name, text in parts.items():
        assert re.sub(r"One of `.*", "", text).strip(), name
        assert "numpy." not in text or "```" in text, name  # no type as Python prints it


@pytest.mark.parametrize(
    ("path", "command"), list(command_tree()), ids=lambda one: " ".join(one) if isinstance(one, tuple) else ""
)
def test_every_command_is_shown_in_use(path: tuple[str, ...], command: Any) -> None:
    words = " ".join(("proctor", *path))
    assert any(whole(line).startswith(words) for _, line in documented()), f"no page shows {words}"
    for one in command.params:
        assert one.help, f"{words}: {one.name} has no help"


@pytest.mark.parametrize(("location", "line"), list(documented()))
def test_commands_in_pages_are_understood(location: str, line: str) -> None:
    parsed(line)


@pytest.mark.parametrize(("path", "line"), list(examples()))
def test_every_help_has_an_example_that_is_understood(path: str, line: str) -> None:
    assert whole(line).startswith(f"proctor {path} ")
    parsed(line)


def test_a_command_that_does_not_exist_is_noticed() -> None:
    with pytest.raises(Exception, match="--no-such"):
        parsed("proctor results rexsonovqa --no-such")
    with pytest.raises(KeyError):
        parsed("proctor certify rexsonovqa")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_file(), f"{link}: no such file"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        targets = [(page.parent / link.partition("#")[0]).resolve() for link in links(page) if "://" not in link]
        waiting += [target for target in targets if target.suffix in {".md", ".txt"}]
    assert [str(page) for page in PAGES if page not in seen] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_pages_name_no_path_of_one_machine(page: Path) -> None:
    assert not re.search(r"(?<![\w.~])/(?:home|root|tmp|work|Users|mnt)/", page.read_text("utf-8"))


def test_results_as_json_names_every_field() -> None:
    page = (ROOT / "docs/reference/results-json.md").read_text("utf-8")
    assert [one.name for one in fields(Result) if f"`{one.name}`" not in page] == []


def test_reading_results_explains_every_policy_and_count() -> None:
    page = (ROOT / "docs/tasks/read-results.md").read_text("utf-8")
    assert [policy for policy in FAILED_POLICIES if f"`{policy}`" not in page] == []
    counts = ("timed out", "refused", "unreadable", "unscored", "missing", "answered", "failed", "groups")
    assert [count for count in counts if f"| {count} |" not in page] == []


def test_the_store_page_explains_every_status() -> None:
    page = (ROOT / "docs/reference/store.md").read_text("utf-8")
    assert [status.value for status in Status if f"| `{status.value}` |" not in page] == []


def test_export_names_every_column() -> None:
    page = (ROOT / "docs/tasks/export.md").read_text("utf-8")
    assert [column for column in (*COLUMNS, "scorer") if f"`{column}`" not in page] == []


@pytest.mark.parametrize("room", ["core", "core.formats", "stats", "metrics"])
def test_everything_public_has_a_docstring_and_a_doctest(room: str) -> None:
    module = importlib.import_module(f"proctor.{room}")
    things = {name: getattr(module, name) for name in module.__all__}
    defined = {name: thing for name, thing in things.items() if inspect.isclass(thing) or inspect.isfunction(thing)}
    assert [name for name, thing in defined.items() if not inspect.getdoc(thing)] == []
    assert [name for name, thing in defined.items() if _does_something(thing) and not _has_doctest(thing)] == []


def _does_something(thing: Any) -> bool:
    """Protocols and abstract roots can't be run, and an error that adds nothing to its root needs no proof."""
    if getattr(thing, "_is_protocol", False) or inspect.isabstract(thing):
        return False
    return not (isinstance(thing, type) and issubclass(thing, Exception) and "__init__" not in vars(thing))


def _has_doctest(thing: Any) -> bool:
    own = [thing, *vars(thing).values()] if isinstance(thing, type) else [thing]
    return any(">>> " in (getattr(one, "__doc__", None) or "") for one in own)
