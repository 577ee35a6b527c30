"""Writes the generated parts of the documentation again from the live program: `make docs`.

A page marks such a part by two comments, `<!-- generated: NAME -->` and `<!-- end -->`; what stands
between them belongs to this script, everything else to people. `tests/docs` says when a part is stale.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ROOT / "packages"
SOURCE = PACKAGES / "proctor" / "src" / "proctor"

_BLOCK = re.compile(r"(?P<head><!-- generated: (?P<name>[\w-]+) -->\n).*?(?P<tail><!-- end -->)", re.DOTALL)
_HELP_WIDTH = 80


def pages() -> list[Path]:
    """All pages of the documentation, the ones at the root first."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), SOURCE / "agents" / "llms.txt"]


def rendered(text: str) -> str:
    """A page's text with its generated parts made again."""
    return _BLOCK.sub(lambda block: f"{block['head']}\n{BLOCKS[block['name']]()}\n\n{block['tail']}", text)


def _cli() -> str:
    import typer
    from typer.testing import CliRunner

    from proctor.cli.main import commands

    def helped(*path: str) -> str:
        said = CliRunner().invoke(commands(), [*path, "--help"], prog_name="proctor", terminal_width=_HELP_WIDTH)
        return f"## `{' '.join(('proctor', *path))}`\n\n{_fenced(said.output.strip(), 'text')}"

    def below(group: Any, path: tuple[str, ...]) -> Iterable[str]:
        yield helped(*path)
        for name, command in getattr(group, "commands", {}).items():
            yield from below(command, (*path, name))

    return "\n\n".join(below(typer.main.get_command(commands()), ()))


def _commands() -> str:
    """Each command with its summary, one a line."""
    import typer

    from proctor.cli.main import commands

    def below(group: Any, path: tuple[str, ...]) -> Iterable[str]:
        for name, command in getattr(group, "commands", {}).items():
            if hasattr(command, "commands"):
                yield from below(command, (*path, name))
            elif not command.hidden:
                summary = inspect.cleandoc(command.help or "").partition("\n")[0]
                yield f"- `{' '.join(('proctor', *path, name))}`: {summary}"

    return "\n".join(below(typer.main.get_command(commands()), ()))


def _who() -> str:
    from proctor.cli.main import WHO

    rows = [
        [who, ", ".join(f"[`{words}`](#proctor-{words.replace(' ', '-')})" for words in some)]
        for who, some in WHO.items()
    ]
    return _table(["Who", "Types"], rows)


def _formats() -> str:
    from proctor.core.formats import EVERY_KIND, format_of_kind
    from tools.format_examples import CELLS, EXAMPLES, TEXTS

    parts = []
    for kind in map(format_of_kind, EVERY_KIND):
        form, options = EXAMPLES[kind.model_fields["kind"].default](kind)
        settings = [
            [f"`{name}`", "needed" if field.is_required() else f"`{field.default}`"]
            for name, field in kind.model_fields.items()
            if name != "kind"
        ]
        distance = "None: the format knows no distance."
        if "distance" in vars(kind):
            distance = _one_line(inspect.getdoc(kind.distance) or "")
        parts += [
            f"## `{form.kind}`",
            _prose(kind),
            *([_table(["Setting", "Default"], settings)] if settings else []),
            f"What the model is told: *{form.instruction(options)}*",
            f"Distance: {distance}",
            f"Chance level: {_one_line(inspect.getdoc(kind.chance) or '')}",
            f"In a cell: {_one_line(inspect.getdoc(kind.from_cell) or '')}",
            _table(["Cell", "JSON"], [_referred(form, options, text) for text in CELLS[form.kind]]),
            _table(["The model's text", "What is read"], [_reading(form, options, text) for text in TEXTS[form.kind]]),
        ]
    return "\n\n".join(parts)


def _reading(form: Any, options: Sequence[str], text: str) -> list[str]:
    from proctor.core import ParseError

    shown = f"`{' ⏎ '.join(text.splitlines())}`" if text.strip() else ""
    try:
        return [shown, f"`{form.parse(text, options)!r}`"]
    except ParseError as error:
        return [shown, f"unreadable: {error}"]


def _referred(form: Any, options: Sequence[str], text: str) -> list[str]:
    """The reference that a cell states, as JSON; further accepted answers after it."""
    shown = f"`{' ⏎ '.join(text.splitlines())}`".replace("|", "\\|")
    answer, *accepted = (json.dumps(one) for one in form.read_reference(text, options))
    also = f", accepted: {', '.join(f'`{one}`' for one in accepted)}" if accepted else ""
    return [shown, f"`{answer}`{also}"]


def _metrics() -> str:
    from proctor.core import ACCURACY
    from proctor.judges import CRITERIA_SCORE, RATIONALE_METRICS, SINGLE_JUDGE, UNRESOLVED, VERDICT_METRICS
    from proctor.metrics import CORPUS_METRICS, GRADED_METRICS
    from proctor.metrics.ordering import RUN_METRICS
    from proctor.metrics.text import RATIONALE_F1

    known = (
        ACCURACY,
        *RUN_METRICS,
        *GRADED_METRICS,
        *CORPUS_METRICS,
        RATIONALE_F1,
        *RATIONALE_METRICS,
        *VERDICT_METRICS,
        CRITERIA_SCORE,
        UNRESOLVED,
        SINGLE_JUDGE,
    )
    rows = [
        [
            f"`{metric.name}`",
            metric.label,
            f"{metric.low:g} to {metric.high:g}",
            "up" if metric.higher_is_better else "down",
            "per cent" if metric.percent else "as it is",
            ", ".join(f"`{name}`" for name in metric.formats),
            "; ".join(metric.levels) or "–",
        ]
        for metric in known
    ]
    heads = ["Metric", "Label", "One item", "Better", "Shown", "Answer formats", "Levels"]
    return _table(heads, rows)


def _conditions() -> str:
    from proctor.media import CONDITIONS

    parts = []
    for name in CONDITIONS.names():
        condition = CONDITIONS.get(name)
        sees = "" if condition.sees else " No media file is needed or opened."
        parts.append(f"## `{name}`\n\n{_sentence(condition.summary)}{sees}")
        about = _prose(type(condition))
        if name != "video":
            parts.append(about)
    return "\n\n".join(parts)


def _names() -> str:
    from proctor.core import BENCHMARKS
    from proctor.judges import JUDGES
    from proctor.systems import SYSTEMS

    benchmarks = [[f"`{name}`", BENCHMARKS.get(name).summary] for name in BENCHMARKS.names()]
    parts = [f"## Benchmarks\n\n{_table(['Name', 'What it is'], benchmarks)}"]
    for title, registry in (("Systems", SYSTEMS), ("Judges", JUDGES)):
        known: Any = registry
        told = {name: inspect.getdoc(known.get(name)) or "" for name in known.names()}
        if registry is SYSTEMS:
            told = {name: text.partition("\n\n")[0] for name, text in told.items()}
        rows = [[f"`{name}`", _one_line(text)] for name, text in told.items()]
        parts.append(f"## {title}\n\n{_table(['Name', 'What it does'], rows)}")
    return "\n\n".join(parts)


def _tables() -> str:
    from proctor.runs import schema

    parts = [f"The version of these tables is {schema.VERSION}."]
    for table in schema.metadata.sorted_tables:
        rows = []
        for column in table.columns:
            keys = ["key"] if column.primary_key else []
            keys += [f"to `{key.column.table.name}`" for key in column.foreign_keys]
            kind = str(column.type).lower()
            rows.append([f"`{column.name}`", kind, ", ".join(keys) or "–", "yes" if column.nullable else "no"])
        parts.append(f"### `{table.name}`\n\n{_table(['Column', 'Type', 'Key', 'May be empty'], rows)}")
    return "\n\n".join(parts)


def _settings() -> str:
    from proctor.media import MediaSettings

    rows = [[f"`{name}`", f"`{field.default}`"] for name, field in MediaSettings.model_fields.items()]
    return f"{_prose(MediaSettings, examples=False)}\n\n{_table(['Setting', 'Default'], rows)}"


def _statistics() -> str:
    import proctor.stats

    beneath = texts_beneath(Path(str(proctor.stats.__file__)).parent)
    parts = []
    for name in proctor.stats.__all__:
        thing: Any = getattr(proctor.stats, name)
        parts.append(f"### `{name}`")
        if inspect.isfunction(thing) or is_dataclass(thing):
            parts.append(_fenced(f"{name}({_arguments(thing)})", "python"))
        if inspect.isfunction(thing) or inspect.isclass(thing):
            parts.append(_prose(thing))
            continue
        # A constant or the name of a type: the docstring of its value is Python's own.
        values = thing if isinstance(thing, tuple) else get_args(thing) if get_origin(thing) is Literal else ()
        listed = f"One of {', '.join(f'`{one}`' for one in values)}." if values else ""
        parts.append(" ".join(text for text in (_one_line(beneath.get(name, "")), listed) if text))
    return "\n\n".join(parts)


def texts_beneath(folder: Path) -> dict[str, str]:
    """The texts that stand beneath assignments in a folder's modules, by the name that is assigned."""
    found = {}
    for file in sorted(folder.glob("*.py")):
        lines = ast.parse(file.read_text(encoding="utf-8")).body
        for one, after in pairwise(lines):
            target = (
                one.targets[0] if isinstance(one, ast.Assign) else one.target if isinstance(one, ast.AnnAssign) else 0
            )
            said = after.value if isinstance(after, ast.Expr) else None
            if isinstance(target, ast.Name) and isinstance(said, ast.Constant) and isinstance(said.value, str):
                found[target.id] = said.value
    return found


TRAINING = (
    "check_parity",
    "fit_judge",
    "judge_agreement",
    "train_answerer",
    "train_classifier_judge",
    "train_generative_judge",
)
"""What `import proctor_train` offers beside what its own modules need."""


def _python() -> str:
    import proctor
    import proctor_train

    named = {name: getattr(proctor, name) for name in proctor.__all__}
    named |= {f"proctor_train.{name}": getattr(proctor_train, name) for name in TRAINING}
    parts = []
    for name, found in named.items():
        thing: Any = found
        if inspect.isfunction(thing) and not name.endswith("_async"):
            parts += [f"## `{name}`", _fenced(f"{name}({_arguments(thing)})", "python"), _prose(thing)]
            options = _options(thing)
            if options is not None:
                parts.append(f"Options: {_one_line(inspect.getdoc(options) or '')}")
                parts += _declared(options)
    return "\n\n".join(parts)


def _testing() -> str:
    from proctor import testing

    parts = []
    for name in testing.__all__:
        thing: Any = getattr(testing, name)
        shown = f"{name}({_arguments(thing)})" if inspect.isfunction(thing) else f"class {name}"
        parts += [f"## `{name}`", _fenced(shown, "python"), _prose(thing, examples=False)]
    return "\n\n".join(parts)


def _checks() -> str:
    from proctor.core import reader_of
    from proctor.metrics import CORPUS_METRICS
    from proctor.testing import (
        benchmark_checks,
        condition_checks,
        judge_checks,
        metric_checks,
        package_checks,
        system_checks,
    )

    class OverItems:
        metric, sums = CORPUS_METRICS[0], None

    package = [check for check in package_checks("proctor-eval") if check.subject == "package proctor-eval"]
    kinds = {
        "package": package,
        "benchmark": benchmark_checks(reader_of("focus"), "nowhere"),
        "system": system_checks("random"),
        "judge": judge_checks("three-level"),
        "metric": metric_checks("accuracy"),
        "metric over items": metric_checks(OverItems()),  # type: ignore[arg-type]
        "condition": condition_checks("black"),
    }
    return _table(
        ["Of a", "Checks"],
        [[kind, "; ".join(check.name.replace("_", " ") for check in checks)] for kind, checks in kinds.items()],
    )


def _declared(options: Any) -> list[str]:
    """A table of the options that Python and the shell share."""
    from proctor.core import Option

    rows = []
    for name, kind in options.__annotations__.items():
        said = getattr(kind, "__metadata__", (None,))[0]
        if isinstance(said, Option) and said.help:
            about = re.sub(r" \[default: [^]]*\]", "", said.help)
            shell = said.name or f"--{name.replace('_', '-')}"
            rows.append([f"`{name}`", f"`{shell}`", f"`{said.default!r}`", about])
    return [_table(["Option", "In the shell", "Default", "What it is"], rows)] if rows else []


def _options(function: Any) -> Any:
    """The TypedDict of a function's further keyword arguments, where it has one."""
    module = inspect.getmodule(function)
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.VAR_KEYWORD:
            found = re.fullmatch(r"Unpack\[(\w+)\]", str(one.annotation))
            return getattr(module, found[1]) if found else None
    return None


def _arguments(thing: Any) -> str:
    """The arguments with their defaults; the types stand in the code."""
    given, keywords_only = [], False
    for one in inspect.signature(thing).parameters.values():
        if one.kind is one.KEYWORD_ONLY and not keywords_only:
            given.append("*")
            keywords_only = True
        stars = "**" if one.kind is one.VAR_KEYWORD else ""
        default = "" if one.default is one.empty else f"={one.default!r}"
        given.append(f"{stars}{one.name}{default}")
    return ", ".join(given)


def _prose(thing: Any, *, examples: bool = True) -> str:
    """A docstring as Markdown: its doctests become code."""
    parts = []
    for paragraph in re.split(r"\n\n+", inspect.getdoc(thing) or ""):
        if not paragraph.startswith(">>>"):
            parts.append(_one_line(paragraph))
        elif examples:
            parts.append(_fenced(paragraph, "pycon"))
    return "\n\n".join(parts)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") or "(nothing)" for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _agreement() -> str:
    """The tables that `bench/agreement.py` wrote."""
    told = json.loads((ROOT / "docs" / "figures" / "what-agrees-with-clinicians.json").read_text(encoding="utf-8"))
    return "\n\n".join(f"### {one['title']}\n\n{_table(one['heads'], one['rows'])}" for one in told["tables"])


def _corrected() -> str:
    """The table that `bench/corrected.py --ratings` wrote."""
    told = json.loads((ROOT / "docs" / "figures" / "corrected-scores.json").read_text(encoding="utf-8"))
    rows = [
        (
            row["cell"],
            f"{row['truth']:.3f}",
            f"{row['judge'][0]:.3f} [{row['judge'][1]:.3f}, {row['judge'][2]:.3f}]",
            "covers" if row["judge_covers"] else "misses",
            f"{100 * row['covers']:.1f} %",
            f"{100 * row['labels_cover']:.1f} %",
            f"{row['width']:.2f} ×",
        )
        for row in told["rows"]
    ]
    heads = (
        "Language, dimension",
        "Raters' mean",
        "Judge alone",
        "It",
        "Corrected covers",
        "Labels alone cover",
        "Width",
    )
    return _table(heads, rows)


def _own_columns() -> str:
    from proctor.tasks.questions import FIELDS, MEANING

    rows = [(f"`{name}`", MEANING[name], ", ".join(words[:6])) for name, words in FIELDS.items()]
    return _table(("Field", "What it is", "Recognised by, among others"), rows)


def _own_settings() -> str:
    from proctor.tasks.questions import Settings

    fields = Settings.model_fields.items()
    return _table(("Field", "What it says"), [(f"`{name}`", _sentence(one.description or "")) for name, one in fields])


def _perturbations() -> str:
    from proctor.audits import PERTURBATIONS

    rows = [(f"`{one.name}`", one.does, one.expected) for one in PERTURBATIONS.values()]
    return _table(("Change", "What is done", "A sound score is then"), rows)


def _sources() -> str:
    from proctor.core import BENCHMARKS

    rows, confirmed = [], []
    for name in BENCHMARKS.names():
        source = BENCHMARKS.get(name).source()
        if source is not None:
            how = f"`proctor fetch {name}`" if source.download is not None else source.ask
            page = f"<{source.page}>" if source.page.startswith("http") else source.page
            rows.append((f"`{name}`", f"{source.owner}; {page}", how, source.licence, source.holds))
            if source.confirmed:
                confirmed.append(f"- `{name}`: {'; '.join(source.confirmed)}")
    heads = ("Benchmark", "Whose", "How to get them", "Licence", "What the folder holds")
    return f"{_table(heads, rows)}\n\nThe addresses are those of:\n\n" + "\n".join(confirmed)


CORE = {
    "core/item.py": "an item, its media, its reference, a benchmark",
    "core/records.py": "an answer, its status, a score, a judgement",
    "core/protocols.py": "view, system, scorer, reader, cache of judgements: what plug-ins keep",
    "core/metric.py": "a metric: name, range, direction, levels",
    "core/formats/base.py": "an answer format: instruct, parse, check, match",
    "media/conditions.py": "what a condition does to what is shown",
    "media/views.py": "what a system can ask for of an item's media",
    "media/library.py": "pictures and sound of files: decoded once, kept",
    "models/client.py": "one client for all models: retries, forms, usage",
    "systems/model_system.py": "the system that puts one question to a model",
    "runs/plan.py": "what is left to ask, and what it costs",
    "runs/engine.py": "asks, times, stops, resumes",
    "runs/store.py": "items, runs, answers, scores and judgements on disk",
    "runs/schema.py": "the tables of a store",
    "runs/scoring.py": "stored answers to scores, by code or by a judge",
    "judges/cached_model.py": "a judge's call, asked once and kept",
    "judges/verdict_judges.py": "judges that give one verdict",
    "judges/panel.py": "the majority of several judges",
    "metrics/accuracy.py": "right or wrong, by code",
    "results/arrays.py": "a store's content as arrays",
    "results/run_scores.py": "the scores of a run, what it lacks, its value under a policy",
    "results/results.py": "every metric of every run, with interval and denominator",
    "results/comparison.py": "two runs on the same items",
    "stats/clusters.py": "sums by group",
    "stats/bootstrap.py": "draws of groups",
    "stats/means.py": "a mean with its interval",
    "stats/paired.py": "a paired difference with interval and test",
    "shell/run_preparation.py": "a run, from options to answers",
    "api/evaluation.py": "an evaluation: what `import proctor` begins with",
}
"""The files that one has to know, in reading order, below `packages/proctor/src/proctor`."""


def _core() -> str:
    counted = {file: len((SOURCE / file).read_text(encoding="utf-8").splitlines()) for file in CORE}
    rows = [(f"`{file}`", what, f"{round(counted[file], -1)}") for file, what in CORE.items()]
    rows.append((f"{len(rows)} files", "", f"{round(sum(counted.values()), -2)}"))
    return _table(("File", "Holds", "Lines"), rows)


ROOMS = {
    "core": ("items, answer formats, records, protocols, reading files", "item.py"),
    "stats": ("intervals, tests, ranks: arrays in, numbers out", "means.py"),
    "metrics": ("scorers without a model", "accuracy.py"),
    "audits": ("scorers compared with ratings; item analysis (`audits/items`)", "agreement.py"),
    "media": ("frames, sound, conditions", "views.py"),
    "models": ("access to models", "client.py"),
    "judges": ("scorers that ask a model", "verdict_judges.py"),
    "systems": ("baselines, the model system, seriation", "model_system.py"),
    "sight": ("the sight test: whether pictures, clips and sound reach a served model", "examination.py"),
    "runs": ("what asks and writes: plan, engine, store, leases, scoring, merging", "engine.py"),
    "results": ("what reads: arrays, scores, comparisons, rankings, analysis", "results.py"),
    "tracks": ("annotated videos, and the questions that their tracks answer", "annotation.py"),
    "reports": ("tables, figures, the HTML report", "blocks.py"),
    "interchange": ("files of other programs, read and written; downloads", "formats.py"),
    "tasks": ("one package per benchmark: reader, prompts, official summary, published methods", "questions/reader.py"),
    "shell": (
        "what commands and `api` share: tables of options, stores, models connected, runs and scorers arranged by steps",
        "run_preparation.py",
    ),
    "api": ("what `import proctor` offers, and nothing else", "evaluation.py"),
    "testing": ("checks for packages that extend Proctor, doubles for their tests, the template of one", "checks.py"),
    "agents": ("what coding agents get: the tools of an MCP server, a skill, `llms.txt`", "store_tools.py"),
    "cli": ("parse, call, print", "tree.py"),
}
"""Of each room of the core what it holds, and the file to open first."""

OTHERS = {
    "proctor_build": (
        "from tracks and recordings to items: projects, annotators, screening, repair",
        "pipeline/stage.py",
    ),
    "proctor_train": ("judges and answerers that learn; MEDIQA-EVAL's published judges", "run_folder.py"),
    "proctor_web": ("sites in the browser: accounts, sessions, the trail; the review", "review.py"),
    "proctor_challenge": (
        "phases, teams, submissions, queue, containers, scoring, boards, receipts, pages, packs",
        "submissions.py",
    ),
}
"""Of each other package the same, lowest first."""


def _rooms() -> str:
    """The rooms of the core, lowest first, in the order of the layers, and the other packages."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = [one["layers"] for one in contracts if one["type"] == "layers" and "proctor.core" in one["layers"]]
    rooms = [layer.removeprefix("proctor.") for layer in reversed(layers)]
    rows = [(f"`{room}`", *_size(SOURCE / room, *ROOMS[room], room)) for room in rooms]
    rows.append(("the core", "", _lines(SOURCE), ""))
    for name, (holds, first) in OTHERS.items():
        (folder,) = PACKAGES.glob(f"*/src/{name}")
        rows.append((f"`{name}`", *_size(folder, holds, first, name)))
    return _table(("Room or package", "Holds", "Lines", "Open first"), rows)


def _files() -> str:
    """Every file of every package by its folder: what it is for, and the public names that it defines."""
    parts = []
    for package in (SOURCE, *(folder for name in OTHERS for folder in PACKAGES.glob(f"*/src/{name}"))):
        for folder in sorted({file.parent for file in package.rglob("*.py")}):
            rows = [_file(file) for file in sorted(folder.glob("*.py"))]
            title = folder.relative_to(package.parent).as_posix()
            parts.append(f"## `{title}`\n\n{_table(('File', 'For', 'Names'), rows)}")
    return "\n\n".join(parts)


def _file(file: Path) -> tuple[str, str, str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    said = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    names = [node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
    return f"`{file.name}`", said, ", ".join(f"`{name}`" for name in names) or "–"


def _size(folder: Path, holds: str, first: str, name: str) -> tuple[str, str, str]:
    return holds, _lines(folder), f"`{name}/{first}`"


def _lines(folder: Path) -> str:
    count = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in folder.rglob("*.py"))
    return f"{round(count, -2):,}".replace(",", " ")


BLOCKS: dict[str, Callable[[], str]] = {
    "agreement": _agreement,
    "checks": _checks,
    "corrected": _corrected,
    "cli": _cli,
    "commands": _commands,
    "who": _who,
    "conditions": _conditions,
    "core": _core,
    "files": _files,
    "formats": _formats,
    "media-settings": _settings,
    "metrics": _metrics,
    "names": _names,
    "perturbations": _perturbations,
    "python": _python,
    "rooms": _rooms,
    "sources": _sources,
    "statistics": _statistics,
    "tables": _tables,
    "testing": _testing,
    "own-columns": _own_columns,
    "own-settings": _own_settings,
}
"""What can be generated, by the name that a page calls it by."""


def main() -> None:
    """Rewrites every page whose generated parts have changed."""
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = rendered(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"{page.relative_to(ROOT)} written")


if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # so that this folder is a package, as it is for the tests
    main()
