"""`proctor results`, `compare`, `rank` and `analyze`: scores, comparisons, rankings and analysis of a store."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from proctor.cli.output import (
    Output,
    OutputFormat,
    at_work,
    drawn_over,
    named_in,
    print_blocks,
    print_json,
    print_line,
    print_note,
    print_records,
    print_text,
    settings_of,
    show,
)
from proctor.cli.tree import show_plugin_report
from proctor.core import Option, UsageError, count_of
from proctor.shell import AnalyzeOptions, BenchmarkName, RankOptions, ResultOptions, Selection, StoreUrl, declared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proctor.reports import DrawnTable, ResultsTable
    from proctor.results import Board, Results, RunCost
    from proctor.runs import Store


class TablesFormat(StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    LATEX = "latex"


class RankFormat(StrEnum):
    """How boards are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    TSV = "tsv"
    LATEX = "latex"


Tables = Annotated[TablesFormat, Option("For people, for programs, or for a paper.", "--format")]

FigureFile = Annotated[Path | None, Option("Also draw a figure: a .png, .pdf or .svg file.", "--figure")]


_ALPHA: float = declared(RankOptions)["alpha"][1].default
"""The significance level of the tests in the buckets; only Python chooses another one."""

Publish = Annotated[bool, Option("Leave out the names of judges.")]


def results(
    options: ResultOptions,
    benchmark: BenchmarkName = "",
    pool: Annotated[
        list[Path] | None,
        Option("Instead, pool a site's sums (proctor export --format sums); may be repeated.", metavar="FILE"),
    ] = None,
    store: StoreUrl = None,
    protocol: Annotated[
        str, Option("The summary of the benchmark's own program, as it is or corrected.", metavar="official|corrected")
    ] = "",
    flags: Annotated[bool, Option("Instead, list judgements flagged for review, with the answers.")] = False,
    content_hash: Annotated[
        bool, Option("Instead, print a hash of items, answers, scores and judgements.", "--hash")
    ] = False,
    critical: Annotated[
        str, Option("Instead, errors on these items, with an upper limit.", metavar="FACET[=VALUE]")
    ] = "",
    confidence: Annotated[bool, Option("Instead, evaluate confidences and abstentions.", "--confidence")] = False,
    corrected: Annotated[
        Path | None, Option("Instead, correct a judge by people: a sample (review sample).", metavar="SAMPLE")
    ] = None,
    plan: Annotated[bool, Option("With --corrected: what more labels would give.")] = False,
    figure: FigureFile = None,
    form: Tables = TablesFormat.TABLE,
) -> None:
    """Show scores with confidence intervals.

    Each score is shown with the numbers of items and of missing answers.

    With --corrected, a judge's scores of all answers are corrected by what people gave for the groups of a sealed sample;
    --metric chooses dimensions. Hand-picked labels, and another judge or prompt, are refused.

    With --pool, sites that keep their data are evaluated together: each sends its sums by group. Means, intervals,
    differences and p-values equal those of all items together. Missing answers count as wrong. Metrics and systems that
    a site lacks are left out and named.

    Example: proctor results rexsonovqa --store runs.db --by question_type --format json
    """
    from proctor import api

    if pool:
        from proctor.cli.other_results import show_pooled

        show_pooled(benchmark, pool, options, form.value)
        return
    _refuse_results(benchmark, plan=plan, corrected=corrected, confidence=confidence)
    opened = api.open_store(store, create=False)
    if flags and options["metrics"]:
        raise UsageError("Judgements are of no metric. Leave out --flags or --metric.")
    output = OutputFormat.TABLE if form is TablesFormat.LATEX else OutputFormat(form.value)
    benchmark = named_in(opened, benchmark)
    if corrected is not None:
        from proctor.cli.other_results import show_corrected

        _refuse_drawn(figure, TablesFormat.TABLE)
        show_corrected(opened, benchmark, corrected, options, plan=plan, form=form.value)
    elif confidence:
        from proctor.cli.other_results import show_confidence

        show_confidence(opened, benchmark, options, form.value, figure)
    elif flags or content_hash or protocol or critical:
        _refuse_drawn(figure, form)
        if critical:
            from proctor.cli.margins import show_critical

            show_critical(opened, benchmark, critical, options, output)
        elif flags:
            _show_flags(opened, benchmark, options, output)
        elif content_hash:
            _show_hash(opened, benchmark, options, output)
        else:
            _show_official(opened, benchmark, protocol, options, output)
    else:
        with at_work("computing scores and intervals"):
            table = api.results(opened, benchmark, **options)
        _show_scores(table, options, figure, form, output)


def _refuse_results(benchmark: str, *, plan: bool, corrected: Path | None, confidence: bool) -> None:
    """Raises `UsageError` for options of `results` that do not fit together."""
    if plan and corrected is None:
        raise UsageError("--plan needs --corrected SAMPLE.")
    if confidence and corrected is not None:
        raise UsageError("--confidence and --corrected are two tables. Give one of them.")
    if not benchmark:
        raise UsageError("BENCHMARK is missing. Example: proctor results rexsonovqa --store runs.db")


def _show_official(store: Store, benchmark: str, protocol: str, options: ResultOptions, output: OutputFormat) -> None:
    from proctor import shell

    with at_work("computing the summary"):
        summary = shell.official_summary(store, benchmark, protocol, **options)
    show_plugin_report(summary, output)


def _show_scores(
    table: ResultsTable, options: ResultOptions, figure: Path | None, form: TablesFormat, output: OutputFormat
) -> None:
    found = table.data
    draw_table(table, figure, options["metrics"])
    if form is TablesFormat.LATEX:
        print_text(table.to_latex())
        return
    from proctor.reports import results_tables, scarce_line, scarce_results  # after what may be refused: it takes long

    rows = found.to_json()
    if output is OutputFormat.JSON:
        rows = [row | settings_of(options) for row in rows]
    if output is OutputFormat.CSV:
        rows = [_without(row, "facets", "levels", "consistency", "reliance") | row["facets"] for row in rows]
    few = [] if options["metrics"] else scarce_results(found)
    tables = results_tables(_without_metrics(found, few))
    if found.reliance:
        from proctor.reports import reliance_tables

        tables += reliance_tables(found)
    show(output, rows, *tables, apart=True)
    print_note(*([scarce_line(few)] if few and output is OutputFormat.TABLE else []))
    _result_notes(found, output)


def _refuse_drawn(figure: Path | None, form: TablesFormat) -> None:
    if figure is not None:
        raise UsageError("--figure draws scores. Leave --corrected, --critical, --flags, --hash and --protocol out.")
    if form is TablesFormat.LATEX:
        raise UsageError("--format latex is for scores. Leave --critical, --flags, --hash and --protocol out.")


def draw_table(table: DrawnTable, figure: Path | None, metrics: object = ()) -> None:
    """Write the figure of a table, of the first named metric."""
    if figure is not None:
        first = next(iter(metrics), None) if isinstance(metrics, list | tuple) else None
        which = {} if first is None else {"metric": first if isinstance(first, str) else first.name}
        print_note(f"figure: {table.write_figure(figure, **which)}")


def _result_notes(found: Results, output: OutputFormat) -> None:
    from proctor.reports import DECIDED_LINE, few_groups_line, outside_line, policy_line

    card, options = found.card, found.options
    if card.published is not None and output is OutputFormat.TABLE:
        print_note(f"published: {card.published.source}. {card.published.note}")
    shown = {row.system for row in found.rows}
    out = [str(one) for name, one in card.disqualified.items() if name in shown]
    if out:
        print_note(f"Disqualified: {'; '.join(out)}")
    print_note(*filter(None, [outside_line(found.outside, options.by)]))
    if any(row.policy for row in found.rows):
        print_note(policy_line(options.failed, card))
    if any(row.decided for row in found.rows):
        print_note(DECIDED_LINE)
    print_note(drawn_over(options.draws, options.seed, two_level=options.two_level))
    if found.consistency:
        from proctor.reports import consistency_notes

        print_note(*consistency_notes(found))
    print_note(*found.served, *_cost_notes(found.costs))
    few = few_groups_line(max((row.groups for row in found.rows), default=0), options.level)
    print_note(*([few] if few and not options.by else []))


def _cost_notes(costs: Sequence[RunCost]) -> list[str]:
    """What runs cost, in sentences; nothing is loaded for runs that cost nothing."""
    if not costs:
        return []
    from proctor.reports import cost_lines

    return [*cost_lines(costs)]


def _show_flags(store: Store, benchmark: str, chosen: Selection, output: OutputFormat) -> None:
    from proctor.reports import records_table
    from proctor.results import flagged_judgements

    found = [
        judgement.to_json()
        for judgement in flagged_judgements(store, benchmark, chosen["systems"], chosen["conditions"])
    ]
    names = ("system", "condition", "item", "judge", "flags", "reply", "text")
    shown = ({"flags": ", ".join(row["flags"]), "reply": json.dumps(row["reply"], ensure_ascii=False)} for row in found)
    cells = [{name: str((row | own)[name]) for name in names} for row, own in zip(found, shown, strict=True)]
    if output is OutputFormat.CSV:
        found = cells
    table = records_table(f"{benchmark}: flagged judgements", cells) if cells else f"{benchmark}: no flagged judgement"
    show(output, found, table, names=names)


def _show_hash(store: Store, benchmark: str, chosen: Selection, output: OutputFormat) -> None:
    from proctor.reports import content_table
    from proctor.runs import evaluation_content

    with at_work("reading answers, scores and judgements"):
        found = evaluation_content(store, benchmark, chosen["systems"], chosen["conditions"])
    if output is OutputFormat.JSON:
        print_json(found.to_json())
        return
    records = [asdict(run) | {"sha256_of_all": found.sha256} for run in found.runs]
    show(output, records, content_table(found))
    if output is OutputFormat.TABLE:
        print_line(f"SHA-256 of all: {found.sha256}")


def rank(
    benchmark: BenchmarkName,
    options: RankOptions,
    store: StoreUrl = None,
    mine: Annotated[
        str, Option("Also test this system's lead over the baselines in each bucket.", metavar="SYSTEM")
    ] = "",
    two_level: Annotated[bool, Option("With --mine: resample groups, and then questions within each.")] = False,
    detail: Annotated[bool, Option("Also show each bucket, pairwise wins, and all other rules.")] = False,
    metric: Annotated[str, Option("Rank by this metric, with all questions as one bucket.", metavar="NAME")] = "",
    scorer: Annotated[str, Option("With --metric: the judge whose scores are used.", metavar="NAME")] = "",
    publish: Publish = False,
    figure: FigureFile = None,
    output: Annotated[RankFormat, Option("For people or for programs.", "--format")] = RankFormat.TABLE,
) -> None:
    """Rank systems per bucket of questions.

    Systems that do not differ significantly share a rank.

    With `--mine` and format csv or tsv, the leads are printed instead of the boards. `--two-level` changes only their
    intervals; ranks and tests resample whole groups. `--metric` takes any metric of `proctor results --metric`, also
    one over many items (balanced_accuracy, class_f1:NAME).

    Example: proctor rank focus --store runs.db --baseline frontier --baseline open-weights --mine my-model
    """
    from proctor import api
    from proctor.results import board_json, board_rows, lead_rows, public_copy
    from proctor.stats import Resampling

    opened = api.open_store(store, create=False)
    benchmark = named_in(opened, benchmark)
    if metric or scorer:
        if detail or mine or two_level:
            raise UsageError("--metric ranks without --mine, --two-level and --detail. Leave them out.")
        shown = public_copy(opened, benchmark) if publish else opened
        _rank_by(shown, benchmark, (metric, scorer), options, output, figure)
        return
    with at_work("ranking systems"):
        table = api.rank(public_copy(opened, benchmark) if publish else opened, benchmark, **options)
    boards = table.boards
    draw_table(table, figure)
    if output is RankFormat.LATEX:
        print_text(table.to_latex())
        return
    seed = options["seed"]
    plan = Resampling(draws=options["draws"], seed=seed, two_level=two_level)
    leads = [lead_rows(board, mine, plan=plan) if mine else [] for board in boards]
    both = list(zip(boards, leads, strict=True))
    if output is RankFormat.TABLE:
        _show_boards(both, options, detail=detail)
        if mine:
            print_note(drawn_over(options["draws"], seed, two_level=two_level))
    elif output is RankFormat.JSON:
        names = ("correction", "ties", "draws", "stability", "seed")
        made = {"settings": {"alpha": _ALPHA} | {name: options[name] for name in names}}  # type: ignore[literal-required]
        print_json([board_json(board) | made | ({"leads": own} if mine else {}) for board, own in both])
    else:
        rows = [row for board, own in both for row in (own if mine else board_rows(board))]
        print_records(rows, tabs=output is RankFormat.TSV)


def _rank_by(
    store: Store, benchmark: str, by: tuple[str, str], options: RankOptions, output: RankFormat, figure: Path | None
) -> None:
    """Rank by any metric, with all questions as one bucket. Options about buckets are refused."""
    from proctor import api

    given: Any = dict(options)
    names = ("condition", "systems", "failed", "all_items", "draws", "seed")
    others = [
        name
        for name, (_, one) in declared(RankOptions).items()
        if name not in names and given.get(name, one.default) != one.default
    ]
    if others:
        raise UsageError(f"--metric ranks by all questions. Leave --{others[0].replace('_', '-')} out.")
    with at_work("ranking systems"):
        table = api.leaderboard(store, benchmark, by[0], scorer=by[1], **{name: given[name] for name in names})
    draw_table(table, figure)
    if output is RankFormat.LATEX:
        print_text(table.to_latex())
    elif output is RankFormat.TABLE:
        print_blocks(*table.tables)
        print_note(*table.notes, drawn_over(options["draws"], options["seed"], two_level=False))
    elif output is RankFormat.JSON:
        print_json([row | settings_of({name: given[name] for name in names}) for row in table.rows])
    else:
        print_records(table.rows, tabs=output is RankFormat.TSV)


def _show_boards(both: list[tuple[Board, list[Any]]], options: RankOptions, *, detail: bool) -> None:
    from proctor.reports import leads_tables, who_advances

    for board, leads in both:
        print_board(board, detail=detail)
        print_blocks(*leads_tables(leads))
    if said := who_advances([board for board, _ in both]):
        print_note(said)
    print_note(
        f"Tests at {_ALPHA:g}, adjustment {options['correction']}; {options['draws']} draws for win rates, "
        f"{options['stability']} samples for ranks, seed {options['seed']}. “Rank in 95 % of resamples” is the "
        f"spread of ranks over samples, not a confidence interval. Ties are broken by the win rate ({options['ties']})."
    )


def print_board(board: Board, *, detail: bool = False) -> None:
    """Print a leaderboard: ranked systems, unranked runs, baselines."""
    from proctor.reports import board_notes, board_tables, detail_tables

    print_blocks(*board_tables(board), *(detail_tables(board) if detail else []))
    print_note(*board_notes(board))
    print_blocks("")


def analyze(
    benchmark: BenchmarkName,
    options: AnalyzeOptions,
    store: StoreUrl = None,
    out: Annotated[Path | None, Option("A folder for one CSV file a table, and one file a figure.")] = None,
    pictures: Annotated[Literal["svg", "png", "pdf"], Option("With --out: how figures are drawn.")] = "svg",
    publish: Publish = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Analyze accuracy, pairs and failures.

    By capability, with logistic regression, paired tests, ensembles, causes of failures and further metrics.

    Example: proctor analyze focus --store runs.db --baseline frontier --out analysis
    """
    from proctor import api
    from proctor.reports import analysis_tables, board_notes
    from proctor.results import public_copy

    if output is OutputFormat.CSV and out is None:
        raise UsageError("Several tables don't fit one CSV. Give a folder for them: --out FOLDER")
    opened = api.open_store(store, create=False)
    benchmark = named_in(opened, benchmark)
    with at_work("analyzing"):
        tables = api.analyze(public_copy(opened, benchmark) if publish else opened, benchmark, **options)
    found = tables.data
    if output is OutputFormat.JSON:
        print_json(found.tables)
    elif output is OutputFormat.TABLE:
        print_blocks(*analysis_tables(found), apart=True)
        print_note(
            *board_notes(found.boards[0]), drawn_over(options["draws"], options["seed"], two_level=options["two_level"])
        )
    if out is not None:
        written = len(tables.write(out)), len(tables.write_pictures(out, pictures))
        if output is not OutputFormat.JSON:
            print_line(f"{count_of(written[0], 'table')} and {count_of(written[1], 'picture')} in {out}")


def _without_metrics(found: Results, names: Sequence[str]) -> Results:
    return replace(found, rows=[row for row in found.rows if row.metric not in names])


def _without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
