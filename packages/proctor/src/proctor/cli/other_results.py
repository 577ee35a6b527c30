"""Results that are not one store's scores as they are: pooled over sites, or a judge's corrected by people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.cli.output import OutputFormat, at_work, drawn_over, print_json, print_note, print_text, settings_of, show
from proctor.core import InputError, UsageError
from proctor.shell import ResultOptions, metric_names

if TYPE_CHECKING:
    from proctor.runs import Store

_LATEX = "latex"


def show_corrected(
    store: Store, benchmark: str, sample: Path, options: ResultOptions, *, plan: bool, form: str
) -> None:
    """Print corrected scores, or what more labels would give. Raises `InputError` for a sample of another benchmark."""
    from proctor import api
    from proctor.reports import latex

    for name in ("by", "systems", "conditions"):
        if options[name]:
            raise UsageError("The sample says which runs are corrected. Leave --by, --system and --condition out.")
    names = metric_names(options["metrics"])
    with at_work("correcting scores"):
        table = api.corrected(store, sample, dimensions=names, plan=plan)
    if table.data.sample.benchmark != benchmark:
        found = f"a sample of {table.data.sample.benchmark}"
        raise InputError(sample, "field 'benchmark'", found=found, expected=f"one of {benchmark}")
    if form == _LATEX:
        print_text("\n".join(map(latex, table.tables)))
        return
    show(OutputFormat(form), table.rows, *table.tables, apart=True)
    print_note(*table.notes)


def show_confidence(store: Store, benchmark: str, options: ResultOptions, form: str, figure: Path | None) -> None:
    """Print calibration, abstentions and the area under risk–coverage curves, and write the curves."""
    from proctor import api

    with at_work("computing curves"):
        table = api.confidence(store, benchmark, **options)
    if figure is not None:
        written = table.write_figure(figure)
        print_note("no figure: no answer has a confidence" if written is None else f"figure: {written}")
    if form == _LATEX:
        print_text(table.to_latex())
        return
    output = OutputFormat(form)
    rows = (
        [row.to_json() | settings_of(options) for row in table.data.rows] if output is OutputFormat.JSON else table.rows
    )
    show(output, rows, *table.tables, apart=True)
    print_note(*table.notes, drawn_over(options["draws"], options["seed"], two_level=False))


def show_pooled(benchmark: str, files: Sequence[Path], options: ResultOptions, form: str) -> None:
    """Print the results that sites give together."""
    from proctor import shell

    draws, seed = options["draws"], options["seed"]
    if benchmark:
        raise UsageError(f"The sums name their benchmark. Leave {benchmark!r} out.")
    with at_work("computing intervals"):
        table = shell.pool(files, draws=draws, seed=seed)
    if form == _LATEX:
        print_text(table.to_latex())
        return
    output = OutputFormat(form)
    if output is OutputFormat.JSON:
        print_json([metric.to_json() | settings_of({"draws": draws, "seed": seed}) for metric in table.data])
        return
    show(output, table.rows, *table.tables)
    print_note(*table.notes, drawn_over(draws, seed, two_level=False))
