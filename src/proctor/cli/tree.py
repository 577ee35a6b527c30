"""How commands behave whatever they do: help in groups, suggestions for what is misspelt, answers to old spellings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from proctor.cli.former import ALIASES, COMMANDS, MEANT, NO_CHOICE, replaced_command, replaced_option

_PROGRAM = "proctor"
_PREFIX = "Value error, "  # what the library says before the reason


class Command(TyperCommand):
    """A command whose help lists its options by group, and which knows their former names."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, the options of no group, and then group by group."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for one in self.get_params(ctx):
            if (record := one.get_help_record(ctx)) is None:
                continue
            name, about = record[0].replace("list[", "").replace("]>", ">"), record[1]
            if one.param_type_name == "argument":
                sections["Arguments"].append((name.partition(" <")[0], about))
            elif (panel := getattr(one, "rich_help_panel", None)) is not None:
                sections.setdefault(panel, []).append((name, about))
            else:
                sections["Options"].append((name, about))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the arguments; raises `ReplacedError` for an option that has another name now."""
        given = list(args)
        try:
            return list(super().parse_args(ctx, args))
        except typer.Exit:
            raise
        except Exception as error:
            option = getattr(error, "option_name", "")
            former = replaced_option(_path(ctx), option, given) if option else None
            if former is not None:
                raise former from error
            near = getattr(error, "possibilities", None)
            if option and near:
                ctx.fail(f"No such option {option}. Did you mean {' or '.join(sorted(near))}?")
            if option == "" and (message := getattr(error, "message", "")).startswith(_PREFIX):
                error.message = _with_hint(message.removeprefix(_PREFIX))  # type: ignore[attr-defined]
            raise


class Group(TyperGroup):
    """Commands in groups, with what was probably meant where one does not exist."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One line a command, below the heading of its group; never cut."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None) or "Commands"
                sections.setdefault(panel, []).append((name, _first_line(command)))
        width = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, line in rows])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named first (`help NAME` is `NAME --help`); raises `ReplacedError` for an old name."""
        name = args[0] if args else ""
        known = self.list_commands(ctx)
        if name == "help":
            args = [*args[1:], "--help"]
            if len(args) == 1:
                typer.echo(ctx.get_help())
                raise typer.Exit
            name = args[0]
        if name.startswith("-") or name in known:
            return super().resolve_command(ctx, args)
        if not ctx.parent and name in ALIASES:
            return super().resolve_command(ctx, [ALIASES[name], *args[1:]])
        if not ctx.parent:
            for words in (2, 1):
                former = replaced_command(args[:words], args[words:])
                if former is not None:
                    raise former
        former = replaced_command([*_path(ctx).split(), name], args[1:]) if ctx.parent else None
        if former is not None:
            raise former
        return ctx.fail(_unknown(_path(ctx), name, known))


def new_group(summary: str) -> typer.Typer:
    """A group of commands below a common word."""
    group = typer.Typer(cls=Group, no_args_is_help=True, help=summary)

    def called() -> None: ...

    called.__doc__ = summary
    group.callback()(called)
    return group


def add(group: typer.Typer, name: str, function: Any, panel: str | None = None) -> None:
    """Adds a command."""
    group.command(name, cls=Command, rich_help_panel=panel)(function)


def _unknown(path: str, name: str, known: Sequence[str]) -> str:
    others = {} if path else MEANT | COMMANDS
    near = next(iter(get_close_matches(name, [*known, *others], n=1)), "")
    line = " ".join(word for word in (_PROGRAM, path, others.get(near, near)) if word)
    hint = f" Did you mean '{line}'?" if near else ""
    return f"No such command {name!r}.{hint} Commands: {', '.join(known)}"


def _with_hint(message: str) -> str:
    """A complaint that lists the choices in quotes after the wrong value, with the nearest one.

    >>> _with_hint("'runss' is not one of 'metrics', 'runs'.")
    "'runss' is not one of 'metrics', 'runs'. Did you mean 'runs'?"
    """
    found, *choices = re.findall(r"'([^']*)'", message) or [""]
    if found in NO_CHOICE:
        return f"{message} {NO_CHOICE[found]}"
    near = get_close_matches(found, choices, n=1)
    return f"{message} Did you mean {near[0]!r}?" if near else message


def _path(ctx: Any) -> str:
    """The words that lead to a command, without the program's own name, which may be several."""
    words: list[str] = []
    while ctx.parent is not None:
        words.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(words)


def _first_line(command: Any) -> str:
    return inspect.cleandoc(command.help or "").split("\n", 1)[0].rstrip(".")
