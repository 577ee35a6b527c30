"""The commands as a whole: how many there are and for whom, help that fits a terminal, suggestions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from proctor.cli.main import WHO, _wanted, commands
from proctor.cli.tree import _unknown
from proctor.cli.usage import SIMILAR
from tests.support.program import proctor, proctor_process

WIDTH = 80
SUMMARY = 45


def tree() -> Iterator[tuple[str, Any]]:
    """(words, command) of every command and group."""

    def below(path: tuple[str, ...], command: Any) -> Iterator[tuple[str, Any]]:
        yield " ".join(path), command
        for name, one in getattr(command, "commands", {}).items():
            yield from below((*path, name), one)

    return below((), typer.main.get_command(commands()))


TREE = dict(tree())


@pytest.mark.parametrize("words", TREE)
def test_help_fits_eighty_columns(words: str) -> None:
    done = proctor(*words.split(), "--help", COLUMNS=str(WIDTH))
    assert done.returncode == 0
    lines = [line for line in done.stdout.splitlines() if not line.startswith("Usage:")]
    assert [line for line in lines if len(line) > WIDTH] == []
    assert [line for line in lines if line.rstrip().endswith("...")] == []


@pytest.mark.parametrize("words", [words for words in TREE if words])
def test_summaries_are_short(words: str) -> None:
    first = (TREE[words].help or "").strip().splitlines()[0]
    assert first.endswith(".")
    assert first[0].isupper()
    assert len(first) <= SUMMARY, f"{words}: {len(first)} characters"
    parent = words.rpartition(" ")[0]
    listed = [line.split() for line in proctor(*parent.split(), "--help").stdout.splitlines()]
    assert [words.rsplit(maxsplit=1)[-1], *first.rstrip(".").split()] in listed


MOST_LEAVES, MOST_LINES = 60, 40


def leaves() -> list[str]:
    """The commands that do something: what is no group."""
    return [words for words, command in TREE.items() if not hasattr(command, "commands")]


def test_there_are_few_commands() -> None:
    assert len(leaves()) <= MOST_LEAVES


def test_the_help_fits_one_screen() -> None:
    lines = proctor("--help", COLUMNS=str(WIDTH)).stdout.splitlines()
    assert len(lines) <= MOST_LINES
    shown = {line.split()[0] for line in lines if line.startswith("  ")}
    assert shown >= {words for words in TREE if words and " " not in words}


def test_every_command_has_a_row_that_says_who_types_it() -> None:
    """A new command needs a row in WHO."""
    assert sorted(command for named in WHO.values() for command in named) == sorted(leaves())
    assert Counter(command for named in WHO.values() for command in named).most_common(1)[0][1] == 1


def test_a_folder_is_served_without_the_name_of_the_command() -> None:
    assert proctor("serve", "nowhere").stderr == proctor("serve", "site", "nowhere").stderr
    assert "nowhere" in proctor("serve", "--port", "8451", "nowhere").stderr


def test_commands_stand_in_groups() -> None:
    said = proctor("--help").stdout
    heads = ["Run:", "Read results:", "Judges:", "Build, review, host:"]
    assert [line for line in said.splitlines() if line in heads] == heads


@pytest.mark.parametrize("new", [*SIMILAR.values()])
def test_what_is_pointed_to_is_there(new: str) -> None:
    path = [word for word in new.split() if not word.startswith("-")]
    while " ".join(path) not in TREE:  # the last word may be an argument
        path.pop()
        assert path, f"{new} is no command"
    assert len(path) >= len(new.split()) - 1
    for option in (word.partition("=")[0] for word in new.split() if word.startswith("-")):
        assert option in {name for one in TREE[" ".join(path)].params for name in one.opts}


def test_without_arguments_the_commands_are_listed() -> None:
    done = proctor()
    assert done.returncode in {0, 2}
    assert "Traceback" not in done.stderr
    assert "Run:" in done.stdout + done.stderr


@pytest.mark.parametrize("words", ["", "run", "audit items", "media"])
def test_help_is_a_word_too(words: str) -> None:
    done = proctor("help", *words.split())
    assert (done.returncode, done.stdout) == (0, proctor(*words.split(), "--help").stdout)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("leaderboard focus", "proctor results"),
        ("leaderbord", "proctor results"),
        ("reslts", "proctor results"),
        ("evaluate focus", "proctor run"),
        ("media framse", "proctor media frames"),
        ("rum rexsonovqa", "proctor run"),
        ("rn", "proctor run"),
        ("rm", "proctor store change delete"),
        ("lint focus", "proctor check"),
        ("analyse focus", "proctor analyze"),
        ("perturb", "proctor judge perturb"),
        ("items audit focus", "proctor audit items"),
        ("challenge submit sponges", "proctor challenge submission"),
    ],
)
def test_a_misspelt_command_is_told(typed: str, meant: str) -> None:
    done = proctor(*typed.split())
    assert done.returncode == 2
    assert f"Did you mean '{meant}'?" in done.stderr


@pytest.mark.parametrize("typed", ["delet", "deleet", "rmm", "rm -", "rmr", "dlete"])
def test_no_slip_leads_to_what_deletes(typed: str) -> None:
    done = proctor(typed)
    assert done.returncode == 2
    assert "delete" not in done.stderr


def test_a_word_of_several_groups_names_them_all() -> None:
    below = ["build begin", "review begin"]
    assert _unknown("", "begin", ["build", "review"], below).endswith(
        "Did you mean 'proctor build begin' or 'proctor review begin'?"
    )
    assert proctor("submission").stderr.endswith("Did you mean 'proctor challenge submission'?\n")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (
            ("run", "focus", "--data", ".", "--model", "m", "temperature=0", "top_p=1", "--seed", "1"),
            'A name and its settings stand in quotes: --model "m temperature=0 top_p=1"',
        ),
        (
            ("score", "focus", "--judge", "criteria", "--model", "m", "--fallback-model", "n", "temperature=0"),
            'A name and its settings stand in quotes: --fallback-model "n temperature=0"',
        ),
        (("run", "focus", "--data", ".", "--seed", "1", "temperature=0"), "Options have names, such as --system NAME"),
        (("run", "rexsonvqa", "--data", ".", "--system", "random"), "did you mean 'rexsonovqa'?"),
        (("run", "focus", "--data", ".", "--modle", "m"), "Did you mean --model"),
        (("run", "focus", "--data", ".", "--system", "randm"), "did you mean 'random'?"),
        (("list", "model"), "'methods'"),
        (("list", "models"), "A model is named as provider:name"),
        (("list", "condition"), "Did you mean 'conditions'?"),
        (("run", "focus", "--settings", "temperature", "0"), "Write --settings temperature=0"),
        (("run", "focus", "--settings", "temperature", "--seed", "1"), "Write --settings temperature=VALUE"),
        (
            ("run", "rexsonovqa", "--model", "m", "--base-url", "localhost:8000/v1", "--data", "."),
            "did you mean http://localhost:8000/v1?",
        ),
    ],
)
def test_a_misspelt_name_is_told(typed: tuple[str, ...], meant: str) -> None:
    done = proctor(*typed)
    assert done.returncode in {1, 2}
    assert meant in done.stderr


def test_list_without_an_argument_lists_all() -> None:
    said = proctor("list").stdout
    for name in ("rexsonovqa", "random", "evidence-flow-m", "three-level", "mediqa-judge", "text-only"):
        assert f"\n{name} " in said
    rows = proctor("list", "--format", "csv").stdout.splitlines()
    assert rows[0] == "kind,name,summary"
    assert any(row.startswith("conditions,text-only,") for row in rows)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("proctor anal", "analyze"),
        ("proctor run rex", "rexsonovqa"),
        ("proctor results focus --condition shu", "shuffled"),
        ("proctor run focus --system short", "shortest-option"),
        ("proctor list cond", "conditions"),
        ("proctor check foc", "focus"),
        ("proctor check rec", "receipt"),
        ("proctor new sim", "simulated"),
        ("proctor challenge submission ad", "add"),
    ],
)
def test_the_shell_completes_names(words: str, found: str) -> None:
    done = proctor_process(_PROCTOR_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1))
    assert done.stdout.split() == [found]


@pytest.mark.parametrize("words", ["proctor nonsense zz", "proctor analyse zz", "proctor build nonsense zz"])
def test_the_shell_completes_nothing_after_a_word_that_is_no_command(words: str) -> None:
    done = proctor_process(_PROCTOR_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1))
    assert (done.stdout.split(), done.stderr) == ([], "")


def test_the_shell_completes_after_help() -> None:
    done = proctor_process(_PROCTOR_COMPLETE="complete_bash", COMP_WORDS="proctor help resu", COMP_CWORD="2")
    assert (done.stdout.split(), done.stderr) == (["results"], "")


@pytest.mark.parametrize("name", ["", *(words for words in TREE if words and " " not in words)])
def test_a_part_of_the_program_helps_like_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is called is made, and only first lines for the list of commands."""
    part = proctor(*name.split(), "--help", COLUMNS=str(WIDTH))
    monkeypatch.setattr("proctor.cli.main._wanted", lambda arguments: None)
    assert part.stdout == proctor(*name.split(), "--help", COLUMNS=str(WIDTH)).stdout


@pytest.mark.parametrize(
    ("typed", "made"), [("results focus", "results"), ("store show", "store"), ("help run", "run"), ("nonsense", None)]
)
def test_only_what_is_called_is_made(typed: str, made: str | None) -> None:
    assert _wanted(typed.split()) == made
