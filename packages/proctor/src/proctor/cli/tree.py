"""Commands made from functions and their declared options, and the commands that tasks bring."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import takewhile, zip_longest
from types import MappingProxyType
from typing import Annotated, Any, get_origin, is_typeddict

import typer
from pydantic import JsonValue
from typer.core import TyperCommand, TyperGroup

from proctor.cli.output import (
    Output,
    OutputFormat,
    print_blocks,
    print_json,
    print_line,
    print_note,
    print_records,
    show_steps,
)
from proctor.core import (
    COMMANDS,
    COMMANDS_ELSEWHERE,
    Option,
    PluginReport,
    ProctorError,
    Table,
    UsageError,
    is_own,
    missing_package,
)
from proctor.shell import declared

Version = Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)]
"""The only option of the program itself; it is read before a command."""

PARTIAL_EXIT = 3
"""The exit code of a command that is done, and in which something counts as wrong."""

_PROGRAM = "proctor"

_REFUSED = tuple(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")
"""The library's exception for wrong arguments, which it does not export."""


class Command(TyperCommand):
    """A command whose help lists its options by group."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List arguments, options without a group, and then each group."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is None:
                continue
            name, about = record[0].replace("list[", "").replace("]>", ">"), record[1]
            if param.param_type_name == "argument":
                sections["Arguments"].append((name.partition(" <")[0], about))
            elif (panel := getattr(param, "rich_help_panel", None)) is not None:
                sections.setdefault(panel, []).append((name, about))
            else:
                sections["Options"].append((name, about))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Raises `UsageError` for wrong ones."""
        given = list(args)
        if apart := _apart(self, given):
            raise UsageError(f"A name and its settings stand in quotes: {apart}")
        try:
            return list(super().parse_args(ctx, args))
        except typer.Exit:
            raise
        except Exception as error:
            if ctx.resilient_parsing or not _of_usage(error):
                raise
            from proctor.cli.usage import wrong_usage

            raise wrong_usage(error, _path(ctx), self, _named_options(self)) from error


def _of_usage(error: Exception) -> bool:
    """Whether the library refuses arguments, and does not ask for the help."""
    return isinstance(error, _REFUSED) and type(error).__name__ != "NoArgsIsHelpError"


def _apart(command: Any, given: Sequence[str]) -> str:
    """The corrected form of `--model m temperature=0`, with quotes; "" if nothing is wrong."""
    known = {name for param in command.params if "[KEY=VALUE" in (param.metavar or "") for name in param.opts}
    for row, word in enumerate(given):
        name, *rest = given[row + 1 :] or [""]
        settings = list(takewhile(_is_setting, rest))
        if word in known and settings and "=" not in name:
            return f'{word} "{" ".join([name, *settings])}"'
    return ""


def _named_options(command: Any) -> str:
    """A hint that an extra argument may need the name of an option."""
    known = {name for param in command.params for name in param.opts}
    name = next((one for one in ("--system", "--condition", "--model") if one in known), "")
    return f" Options have names, such as {name} NAME." if name else ""


class Group(TyperGroup):
    """A group of commands that suggests similar ones for an unknown name. With a `default`, words that are no command are
    the arguments of that one."""

    default = ""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One uncut line for each command, below the heading of its panel."""
        for title, records in self.panels(ctx).items():
            with formatter.section(title):
                formatter.write_dl(records)

    def panels(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """The names, padded, and first lines of the commands that are shown, by the heading of their panel."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None) or "Commands"
                sections.setdefault(panel, []).append((name, _first_line(command)))
        width = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        return {title: [(name.ljust(width), line) for name, line in rows] for title, rows in sections.items()}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command. Raises `UsageError` for wrong ones."""
        if self.default and args and args[0].startswith("-") and args[0] != "--help":
            args = [self.default, *args]
        try:
            return list(super().parse_args(ctx, args))
        except Exception as error:
            if ctx.resilient_parsing or not _of_usage(error):
                raise
            from proctor.cli.usage import wrong_usage

            raise wrong_usage(error, _path(ctx), self) from error

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command with the first name (`help NAME` is `NAME --help`). Raises `UsageError` for an unknown one."""
        name = args[0] if args else ""
        known = self.list_commands(ctx)
        if ctx.resilient_parsing and name not in known:
            return None, None, args  # a shell that completes a word shows no error
        if name == "help":
            args = [*args[1:], "--help"]
            if len(args) == 1:
                typer.echo(ctx.get_help())
                raise typer.Exit
            name = args[0]
        if name.startswith("-") or name in known:
            return super().resolve_command(ctx, args)
        if self.default:
            return super().resolve_command(ctx, [self.default, *args])
        below = [f"{one} {name}" for one in known if name in getattr(self.get_command(ctx, one), "commands", {})]
        raise UsageError(_unknown(_path(ctx), name, known, below))


class Program(Group):
    """The whole program, whose help fits one screen of 40 lines: no blank lines, and the options in one line. Its `heads`
    are the headings of the help, in their order."""

    heads: tuple[str, ...] = ()

    def panels(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """The commands by heading (see `Group.panels`), in the order of the `heads`."""
        found = super().panels(ctx)
        return {head: found[head] for head in self.heads if head in found}

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """What the program does, below its usage."""
        del ctx
        formatter.write(f"{self.help}\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The commands by panel, and the names of the options."""
        for title, records in self.panels(ctx).items():
            formatter.write(f"{title}:\n")
            formatter.indent()
            formatter.write_dl(records)
            formatter.dedent()
        names = ", ".join(param.opts[0] for param in self.get_params(ctx) if param.param_type_name == "option")
        formatter.write(f"Options: {names}\n")


def new_group(summary: str, default: str = "") -> typer.Typer:
    """A group of commands with a common first word; `default` is the one that is called without its name."""
    kind = type("DefaultingGroup", (Group,), {"default": default}) if default else Group
    group = typer.Typer(cls=kind, no_args_is_help=True, help=summary)

    def called() -> None: ...

    called.__doc__ = summary
    group.callback()(called)
    return group


def add(
    group: typer.Typer, name: str, function: Callable[..., None], panel: str | None = None, *, hidden: bool = False
) -> None:
    """Add a command. Its parameters are declared by `Option`; a `TypedDict` declares several options."""
    signature = inspect.signature(function, eval_str=True)
    bundles = {
        parameter.name: parameter.annotation
        for parameter in signature.parameters.values()
        if is_typeddict(parameter.annotation)
    }

    def command(**given: Any) -> None:
        for row, kind in bundles.items():
            chosen = {key: option for key, (_, option) in declared(kind).items() if option.help}
            given[row] = {key: _read(option, given.pop(key)) for key, option in chosen.items()}
        function(**given)

    parameters = [parameter for each in signature.parameters.values() for parameter in _parameters(each)]
    command.__doc__ = function.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    settings = vars(function).get("context_settings")
    group.command(name, cls=Command, rich_help_panel=panel, context_settings=settings, hidden=hidden)(command)


def add_line(group: typer.Typer, name: str, function: Callable[..., None], panel: str | None = None) -> None:
    """Add a command that is only listed, without reading its parameters."""

    def command() -> None: ...

    command.__doc__ = function.__doc__
    group.command(name, cls=Command, rich_help_panel=panel)(command)


def _parameters(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """A parameter as Typer takes it; a `TypedDict` gives one for each option."""
    if is_typeddict(parameter.annotation):
        for name, (kind, option) in declared(parameter.annotation).items():
            if option.help:
                yield _parameter(name, kind, option, option.default)
    elif get_origin(parameter.annotation) is Annotated and isinstance(parameter.annotation.__metadata__[0], Option):
        option = parameter.annotation.__metadata__[0]
        yield _parameter(parameter.name, parameter.annotation.__origin__, option, parameter.default)
    else:
        yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _parameter(name: str, kind: Any, option: Option, default: Any) -> inspect.Parameter:
    """A Typer parameter. Empty defaults are not shown."""
    kind, empty = option.shell or kind, inspect.Parameter.empty
    if default is not empty and (get_origin(kind) is list or default in (None, (), {})):
        kind, default = kind | None, None
    more: dict[str, Any] = {"metavar": option.metavar, "min": option.low, "max": option.high, "hidden": option.hidden}
    more |= {"help": option.help, "autocompletion": option.names, "envvar": option.env, "rich_help_panel": option.group}
    more["show_default"] = not (default is None or default is empty or default is False or default == "")
    spelling = option.name.split() or [f"--{name.replace('_', '-')}"]
    info = typer.Argument(**more) if option.argument else typer.Option(*spelling, **more)
    only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, only, default=default, annotation=Annotated[kind, info])


def _read(option: Option, value: Any) -> Any:
    """The value for the function."""
    if value is None:
        return option.default
    return option.read(value) if option.read else value


def _unknown(path: str, name: str, known: Sequence[str], below: Sequence[str]) -> str:
    """The error for an unknown command. It suggests the command for a synonym, a command of that name in a group, or a
    similar name; a similar name never suggests a command that deletes."""
    from proctor.cli.usage import DELETING, SIMILAR

    others = {} if path else SIMILAR
    alike = [*known, *(word for word, line in others.items() if line != DELETING)]
    near = [others.get(match, match) for match in get_close_matches(name, alike, n=1)]
    near = near or [word for word in known if name in word.split("-")]
    meant = [others[name]] if name in others else list(below) or near
    lines = [f"'{' '.join(word for word in (_PROGRAM, path, one) if word)}'" for one in meant]
    if lines:
        return f"No such command {name!r}. Did you mean {' or '.join(lines)}?"
    return f"No such command {name!r}. Choose one of {', '.join(known)}"


def _path(ctx: Any) -> str:
    """The words that lead to a command, without the program's name."""
    words: list[str] = []
    while ctx.parent is not None:
        words.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(words)


def _first_line(command: Any) -> str:
    return inspect.cleandoc(command.help or "").split("\n", 1)[0].rstrip(".")


def spread_settings(arguments: Sequence[str]) -> list[str]:
    """The arguments with `--settings a=1 b=2` written out as `--settings a=1 --settings b=2`.

    Raises `UsageError` where a setting has no value.

    >>> spread_settings(["run", "--settings", "a=1", "b=2", "--seed", "3"])
    ['run', '--settings', 'a=1', '--settings', 'b=2', '--seed', '3']
    """
    spread: list[str] = []
    inside = False
    for argument, value in zip_longest(arguments, arguments[1:], fillvalue=""):
        if spread and spread[-1] == "--settings" and _is_word(argument):
            example = f"{argument}={value}" if _is_word(value) else f"{argument}=VALUE"
            raise UsageError(f"--settings {argument} has no value. Write --settings {example}")
        if inside and _is_setting(argument) and spread[-1] != "--settings":
            spread.append("--settings")
        elif argument.startswith("-") or "=" not in argument:
            inside = argument == "--settings"
        spread.append(argument)
    return spread


def _is_setting(argument: str) -> bool:
    return "=" in argument and not argument.startswith("-")


def _is_word(argument: str) -> bool:
    return bool(argument) and "=" not in argument and not argument.startswith("-")


def add_plugins(group: typer.Typer, name: str, workflows: Mapping[str, Sequence[str]]) -> None:
    """Add all plugin commands of a group, those of its `workflows` first and under their headings. One that can't be
    loaded raises when it is called."""
    panels = {command: panel for panel, commands in workflows.items() for command in commands}
    order = list(panels) or [
        words.partition(" ")[2]
        for some in COMMANDS_ELSEWHERE.values()
        for words in some
        if words.startswith(f"{name} ")
    ]
    for command in sorted(plugin_names(name), key=lambda one: order.index(one) if one in order else len(order)):
        add(group, command, _command(f"{name}.{command}"), panels.get(command))


def plugin_names(group: str) -> list[str]:
    """The names in a group of the commands that packages bring, sorted."""
    return [
        command
        for where, _, command in (full.partition(".") for full in COMMANDS.names())
        if where == group and command
    ]


def add_missing(group: typer.Typer, name: str, words: str, package: str) -> None:
    """Add a command that is not installed: called, it raises `ConfigurationError`, which says what to install."""
    add(group, name, _broken(words, missing_package(package, f"proctor {words}")), hidden=True)


def add_top_commands(
    program: typer.Typer,
    taken: Collection[str],
    panel: str,
    make: Callable[..., None],
    panels: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add the plugin commands without a group by `make`, under their heading in `panels` or else under `panel`. Names of
    built-in commands (`taken`) are skipped."""
    for name in COMMANDS.names():
        if "." not in name and name not in taken:
            make(program, name, _command(name), panels.get(name, panel))


def show_plugin_report(report: PluginReport, output: OutputFormat) -> None:
    """Print a report; exit with code 1 if it is not ok, with 3 if it is partial. Texts may be hostile."""
    if output is OutputFormat.JSON:
        print_json(report.json)
    elif output is OutputFormat.CSV:
        if rows := _csv_rows(report):
            print_records(rows)
    else:
        for one in report.shown:
            if isinstance(one, str):
                print_line(" ".join(one.split()))
            elif one.rows:
                print_blocks(one)
        print_note(*report.notes)
    if not report.ok:
        raise typer.Exit(1)
    if getattr(report, "partial", False):  # a package's own report may know nothing of it
        raise typer.Exit(PARTIAL_EXIT)


def _csv_rows(report: PluginReport) -> list[dict[str, JsonValue]]:
    """The rows of a report: its JSON if that is a list of rows, else its only table, else the only list of rows in its
    JSON. Raises `UsageError` for several."""
    if rows := _flat(report.json):
        return rows
    tables = [one for one in report.shown if isinstance(one, Table) and one.rows]
    if len(tables) == 1:
        return list(tables[0].records)
    only = None if tables else _only_rows(report.json)
    if only is None:
        raise UsageError(f"{len(tables)} tables don't fit one CSV. Give --format json.")
    return only


def _only_rows(json: JsonValue) -> list[dict[str, JsonValue]] | None:
    """The only list of rows in an object, or a flat object as one row; None for any other value.

    >>> _only_rows({"items": 2, "faults": [{"row": 3}]}), _only_rows({"items": 2, "faults": []}), _only_rows({"items": 2})
    ([{'row': 3}], [], [{'items': 2}])
    """
    if not isinstance(json, dict):
        return None
    lists = [one for one in json.values() if isinstance(one, list) and not any(isinstance(row, str) for row in one)]
    if not lists:
        return _flat([json]) or None
    return (_flat(lists[0]) or (None if lists[0] else [])) if len(lists) == 1 else None


def _flat(json: JsonValue) -> list[dict[str, JsonValue]]:
    """The rows of a list of flat objects; none for any other value."""
    rows = [row for row in json if isinstance(row, dict)] if isinstance(json, list) else []
    return [] if any(isinstance(cell, list | dict) for row in rows for cell in row.values()) else rows


def _command(full: str) -> Callable[..., None]:
    try:
        function = COMMANDS.get(full)
        command: Callable[..., None] = COMMANDS.make(full, lambda: _tried(full, function))
    except ProctorError as error:
        return _broken(full, error)
    return command


def _tried(full: str, function: Callable[..., Any]) -> Callable[..., None]:
    """A plugin's function as a command. One of another package is tried as a program of its own: a command whose
    parameters can't be read would break its whole group."""
    if is_own(function.__module__) and function.__annotations__.get("return") in {None, "None"}:
        return function  # it prints by itself
    command = _with_output(full, function)
    if not is_own(function.__module__):
        alone = typer.Typer()
        add(alone, "alone", command)
        typer.main.get_command(alone)
    return command


def _with_output(full: str, function: Callable[..., Any]) -> Callable[..., None]:
    signature = inspect.signature(function, eval_str=True)
    own = [parameter for parameter in signature.parameters.values() if parameter.name != "steps"]
    wants_steps = "steps" in signature.parameters

    def command(output: OutputFormat, **given: Any) -> None:
        report = function(**given, **({"steps": show_steps} if wants_steps else {}))
        if not isinstance(report, PluginReport):
            raise ProctorError(f"the command {full!r}: it returned {type(report).__name__}, expected a PluginReport")
        show_plugin_report(report, output)

    extra = inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, default=OutputFormat.TABLE, annotation=Output)
    command.__doc__ = function.__doc__
    own = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    command.__signature__ = inspect.Signature([*own, extra])  # type: ignore[attr-defined]
    return command


def _broken(full: str, error: ProctorError) -> Callable[..., None]:
    def command(_rest: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
        raise error

    command.__doc__ = f"Can't be loaded: {full}."
    vars(command)["context_settings"] = {"ignore_unknown_options": True}
    return command
