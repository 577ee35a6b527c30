"""`proctor new`: examples that run as they are: questions of one's own, simulated videos, a package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import JsonValue

from proctor.cli.output import Output, OutputFormat, show_steps
from proctor.cli.tree import show_plugin_report
from proctor.cli.usage import refuse_options
from proctor.core import EXTENSIONS, Option, PluginReport, UsageError, extension, one_of, shell_word
from proctor.shell import Seed

_PACKAGE, _QUESTIONS, _SIMULATED = "package", "questions", "simulated"


def _kinds() -> list[str]:
    tasks = (name.removeprefix("new.") for name in EXTENSIONS.names() if name.startswith("new."))
    return sorted({_PACKAGE, *tasks})


def new(
    kind: Annotated[
        str,
        Option(
            "questions (also if only DIR is given), simulated, or package.", metavar="KIND", names=_kinds, argument=True
        ),
    ],
    folder: Annotated[
        str,
        Option(
            "A new folder; of a package its last part is the name, such as lap-kit.", metavar="[DIR]", argument=True
        ),
    ] = "",
    videos: Annotated[int | None, Option("simulated: how many videos. [default: 12]", low=1)] = None,
    seconds: Annotated[float | None, Option("simulated: how long each of them is. [default: 24]", low=8)] = None,
    questions: Annotated[int | None, Option("simulated: questions per video. [default: 12]", low=1)] = None,
    narrated: Annotated[bool, Option("simulated: with subtitles of what a narrator would say.")] = False,
    seed: Seed = 0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Write an example: questions, videos, package.

    It runs as it is; replace its content.

    questions: a table of questions in every common answer format, two short videos, three images, and a benchmark.yaml
    that explains every setting.

    simulated: rendered videos of procedures with questions, whose ground truth is exact: a unit test for models that
    watch videos.

    package: a package that extends Proctor, with a benchmark, a system, a judge, a metric and a condition, prompts, an
    example, and tests.

    Example: proctor new questions my-questions
    """
    if not folder:
        if kind in _kinds():
            raise UsageError(f"DIR is missing. Give a new folder: proctor new {kind} DIR")
        kind, folder = _QUESTIONS, kind
    given = {"videos": videos, "seconds": seconds, "questions": questions, "narrated": narrated, "seed": seed}
    if kind != _SIMULATED:
        named = {f"--{name}": value for name, value in (given | {"seed": seed or None}).items()}
        refuse_options(named, "it goes with proctor new simulated DIR")
    if kind == _PACKAGE:
        report = _new_package(Path(folder))
    elif kind == _SIMULATED:
        chosen = {name: value for name, value in given.items() if value is not None}
        report = extension("new.simulated", "proctor", "proctor new")(Path(folder), show_steps, **chosen)
    elif kind == _QUESTIONS:
        report = extension("new.questions", "proctor", "proctor new")(Path(folder))
    else:
        raise UsageError(f"KIND {kind!r} is unknown: choose {one_of(_kinds(), kind)}")
    show_plugin_report(report, output)


def _new_package(out: Path) -> PluginReport:
    from proctor.testing import new_package

    folder = new_package(out.name, out)
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    notes = (f"Next: pip install -e {shell_word(folder)}", f"      pytest {shell_word(folder)}")
    json: JsonValue = {"name": folder.name, "folder": str(folder), "files": [*files]}
    return PluginReport(json, (f"{len(files)} files in {folder}",), notes)
