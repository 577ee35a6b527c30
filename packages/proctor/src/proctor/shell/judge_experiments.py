"""Experiments with judges: combinations of settings (`judge_grid`) and changed answers (`perturb`)."""

# No `from __future__ import annotations`: the command line reads these annotations.

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack, cast

from proctor.core import (
    DASH,
    Cell,
    InputError,
    Option,
    Row,
    Scorer,
    Table,
    UsageError,
    columns,
    count_of,
    number,
    p_value,
)
from proctor.reports import FrameLike, Record
from proctor.shell.model_options import ModelOptions, ScoreOptions
from proctor.shell.option_values import perturbation_names, texts
from proctor.shell.options import (
    AllItems,
    Concurrency,
    Draws,
    MediaFolder,
    OnChange,
    PromptChoice,
    Seed,
    Stop,
    filled,
    listed,
)
from proctor.shell.scorers import PreparedScorer, Scored, prepare_alone, prepare_scorers, rating_judge_of
from proctor.shell.stores import StoredRuns, stored, sync_twin

if TYPE_CHECKING:
    from proctor.audits import LeadRow, Sensitivity
    from proctor.core import Usage
    from proctor.judges import JudgeFunction
    from proctor.models import ModelSpec
    from proctor.runs import JudgeTally, Probe, Store

    _Models = str | ModelSpec | Sequence[str | ModelSpec] | None
    _Scorers = str | Scorer | JudgeFunction | Sequence[str | Scorer | JudgeFunction]
else:
    _Models = _Scorers = Any

Switch = Literal["on", "off", "both"]

_SWITCHES = ("references", "reason", "images")

_RETRIEVAL = "retrieval-judge"

_MAX_CELLS = 64


class GridOptions(ModelOptions, total=False):
    """The factors of the grid: `prompts` (task, general, or a folder with rating.txt.j2); `references`, a `reason` and
    `images`, each on, off or both; and `documents` (a folder), with and without passages of them. At most `limit`
    answers are judged in each cell."""

    model: Annotated[str, Option("The model that judges.", default="")]
    prompts: Annotated[
        str | Sequence[str],
        Option(
            "task (the benchmark's), general, or a folder with rating.txt.j2; may be repeated.",
            "--prompt",
            ("task",),
            shell=list[str],
        ),
    ]
    references: Annotated[Switch, Option("Show the reference answers: on, off or both.", default="on")]
    reason: Annotated[Switch, Option("Ask for a reason before the scores: on, off or both.", default="on")]
    images: Annotated[Switch, Option("Show the images: on, off or both.", default="on")]
    documents: Annotated[str | Path | None, Option("Also judge with passages retrieved from this folder.", shell=Path)]
    media: MediaFolder
    limit: Annotated[int | None, Option("Only the first answers, for a trial.", low=1)]
    concurrency: Concurrency
    draws: Draws
    seed: Seed
    on_change: OnChange
    stop: Stop


@dataclass(frozen=True)
class GridCell:
    """One combination of levels: the judge's name in the store, the levels, and the cost of its new judgements."""

    scorer: str
    factors: Mapping[str, str]
    judgements: int
    usage: "Usage"


@dataclass(frozen=True)
class JudgeGrid:
    """The agreement of all combinations with people's ratings, and their leads over the first combination (`rows`); and
    the mean over all combinations with the same level of a factor ("reason=on"), with its lead over the factor's first
    level (`effects`)."""

    cells: tuple[GridCell, ...]
    rows: "tuple[LeadRow, ...]"
    effects: "tuple[LeadRow, ...]"

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """For each language a table of the combinations and one of the factors' effects."""
        from proctor.reports import spoken_language

        made = []
        for language in dict.fromkeys(row.language for row in self.rows):
            by_name = {row.metric: row for row in _means(self.rows, language)}
            names = [name for name, level in self.cells[0].factors.items() if self._varies(name, level)]
            title = f"{spoken_language(language)}: one judge under {len(self.cells)} combinations, leads over the first"
            heads = columns(*names, ">Mean", ">95 % CI", ">Lead", ">95 % CI", ">p (Holm)")
            found: list[Row] = []
            for cell in self.cells:
                row = by_name[cell.scorer]
                levels = (cell.factors[name] for name in names)
                found.append((*levels, *_figure_cells(row)))
            fixed = (f"{name}={level}" for name, level in self.cells[0].factors.items() if name not in names)
            caption = f"{title}, mean over the dimensions. In all: {', '.join(fixed)}."
            made.append(Table(caption, heads, tuple(found), title=title))
            effects = [(Cell(row.metric), *_figure_cells(row)) for row in _means(self.effects, language) if row.leads]
            if effects:
                title = f"{spoken_language(language)}: what each factor is worth, leads over its first level"
                heads = columns("Level", ">Mean", ">95 % CI", ">Lead", ">95 % CI", ">p (Holm)")
                caption = f"{title}, averaged over the other factors."
                made.append(Table(caption, heads, tuple(effects), title=title))
        return tuple(made)

    def _varies(self, factor: str, level: str) -> bool:
        return any(cell.factors[factor] != level for cell in self.cells)


async def judge_grid_async(
    source: "StoredRuns | Store | str | Path | None" = None, benchmark: str = "", **options: Unpack[GridOptions]
) -> JudgeGrid:
    """Judge stored answers under every combination of settings, and compare all with people's ratings.

    Each combination is a scorer of its own in the store, so a second call repeats no request, and `proctor audit` reads
    them like any other. Raises `InputError` for fewer than 2 or more than 64 combinations, and if an answer has no
    scores under one of them. The command is `proctor judge compare --model`.
    """
    given = filled("judge_grid", GridOptions, options)
    where = stored(source, benchmark)
    wanted, judge = _combinations(given), rating_judge_of(where.store.card(where.benchmark).read_by)
    cells = []
    for factors in wanted:
        (prepared,) = await prepare_scorers(where.store, where.benchmark, _scored_as(given, factors, judge))
        if not isinstance(prepared, PreparedScorer):
            raise UsageError("--model is missing. Give a model that judges: --model PROVIDER:NAME")
        done = await prepared.ask(given["stop"], given["on_change"])
        _refuse_gaps(prepared.scorer.name, done, given["limit"])
        cells.append(GridCell(prepared.scorer.name, factors, *_cost(done)))
    return _compared(where.store, where.benchmark, cells, given)


judge_grid = sync_twin(judge_grid_async)


def _combinations(given: GridOptions) -> list[dict[str, str]]:
    """Every combination of levels, the first level of each factor first."""
    prompts = tuple(listed(given["prompts"]))
    every: dict[str, Any] = {**given}
    switches = {name: every[name] for name in _SWITCHES}
    levels = {"prompt": prompts} | {
        name: ("on", "off") if value == "both" else (value,) for name, value in switches.items()
    }
    if switches["images"] == "both" and given["media"] is None:
        raise UsageError("--images both needs the folder of the images: --media FOLDER")
    levels["documents"] = ("off", "on") if given["documents"] is not None else ("off",)
    found = [dict(zip(levels, each, strict=True)) for each in product(*levels.values())]
    if not 2 <= len(found) <= _MAX_CELLS or len(set(prompts)) < len(prompts):
        raise InputError(
            "grid", found=count_of(len(found), "combination"), expected=f"2 to {_MAX_CELLS}, each prompt once"
        )
    return found


def _scored_as(given: GridOptions, factors: Mapping[str, str], judge: str) -> Any:
    """The options of `proctor score` for one combination."""
    from proctor.shell.model_options import ScoreOptions

    own: dict[str, Any] = {name: factors[name] for name in ("prompt", *_SWITCHES)}
    retrieval = factors["documents"] == "on"
    if retrieval:
        own |= {"documents": str(given["documents"]), "rerank": "none"}
    every: dict[str, Any] = {**given}
    same = {name: every[name] for name in (*ModelOptions.__annotations__, "model", "media", "limit", "concurrency")}
    wanted: Any = {**same, "judge": _RETRIEVAL if retrieval else judge, "options": own}
    return filled("judge_grid", ScoreOptions, wanted)


def _refuse_gaps(scorer: str, done: Scored, limit: int | None) -> None:
    """Raises `InputError` if answers have no scores: combinations are compared on the same answers."""
    tally = done.tally
    gaps = 0 if tally is None else tally.left if limit is None else tally.unscored + tally.awaiting
    if tally is not None and gaps:
        found = f"{count_of(gaps, 'answer')} without scores ({tally.last_reason or 'stopped'})"
        raise InputError(scorer, found=found, expected="scores of all: the same call asks again for these alone")


def _cost(done: Scored) -> "tuple[int, Usage]":
    from proctor.core import Usage

    return (0, Usage()) if done.paid is None else (done.paid.count, done.paid.usage)


def _compared(store: "Store", benchmark: str, cells: Sequence[GridCell], given: GridOptions) -> JudgeGrid:
    from proctor.audits import CorrelationSettings, leads
    from proctor.results import compared

    table, scores = compared(
        store, benchmark, [cell.scorer for cell in cells], allow_missing=given["limit"] is not None
    )
    by_name = {score.name: score for score in scores}
    settings = CorrelationSettings(draws=given["draws"], seed=given["seed"])
    rows = leads(table, {cell.scorer: [by_name[cell.scorer]] for cell in cells}, [cells[0].scorer], settings)
    effects: list[LeadRow] = []
    for factor in cells[0].factors:
        levels = list(dict.fromkeys(cell.factors[factor] for cell in cells))
        if len(levels) > 1:
            each = {
                f"{factor}={level}": [by_name[cell.scorer] for cell in cells if cell.factors[factor] == level]
                for level in levels
            }
            effects += leads(table, each, [f"{factor}={levels[0]}"], settings)
    return JudgeGrid(tuple(cells), rows, tuple(effects))


def _means(rows: "Sequence[LeadRow]", language: str) -> "list[LeadRow]":
    return [row for row in rows if (row.language, row.dimension, row.part) == (language, "", "all")]


def _figure_cells(row: "LeadRow") -> tuple[Cell | str, ...]:
    """The cells of agreement and lead with their intervals; dashes for the reference combination."""
    from proctor.reports import contrast_cells, ends_of

    shown = (Cell(number(row.figure.value), raw=row.figure.value), ends_of(row.figure))
    if not row.leads:
        return (*shown, DASH, DASH, DASH)
    return (*shown, *contrast_cells(row.leads[0].difference), p_value(row.leads[0].p_holm))


class PerturbOptions(ModelOptions, total=False):
    """Which answers are changed, how, by which `scorer` (names or scorers) they are scored, with the folder of `media`
    that it sees, and the options of judges among the scorers (as in `ScoreOptions`)."""

    scorer: Annotated[
        _Scorers, Option("The judge or metric that scores; may be repeated.", "--scorer --judge", (), shell=list[str])
    ]
    perturbations: Annotated[
        str | Sequence[str],
        Option(
            "Only this change; may be repeated. [default: all]",
            "--perturbation",
            (),
            shell=list[str],
            names=perturbation_names,
        ),
    ]
    answers: Annotated[int, Option("Answers that are changed, in each language; 0: all.", default=60, low=0)]
    model: Annotated[
        _Models,
        Option(
            "The model that a judge asks, provider:name.", "", (), shell=list[str], metavar="NAME [KEY=VALUE …]",
        ),
    ]  # fmt: skip
    options: Annotated[
        Mapping[str, Any], Option("The judge's own.", "--option", {}, shell=list[str], read=texts, metavar="KEY=VALUE")
    ]
    media: Annotated[str | Path | None, Option("The folder of frames or images that the judge sees.", shell=Path)]
    all_items: AllItems
    prompt: PromptChoice
    concurrency: Concurrency
    draws: Annotated[int, Option("Bootstrap draws behind each interval; 0 for none.", default=2000, low=0)]
    level: Annotated[float, Option(default=0.95)]
    seed: Seed
    on_change: OnChange
    stop: Stop


@dataclass(frozen=True, repr=False)
class PerturbationTable(FrameLike):
    """A row for each scorer, language, perturbation and dimension ("": the mean over all): the shift of the scores in
    standard deviations, positive for better. `data` are the scorers (see `proctor.audits.Sensitivity`)."""

    data: "tuple[Sensitivity, ...]"

    @cached_property
    def rows(self) -> list[Record]:
        """The fields of `proctor.audits.Shift`, with the limits of intervals."""
        found = []
        for one in (shift for each in self.data for shift in each.shifts):
            row: Record = {
                name: getattr(one, name)
                for name in ("scorer", "language", "perturbation", "expected", "dimension", "answers", "groups")
            }
            for name in ("shift", "moved", "fell"):
                figure = getattr(one, name)
                row |= {name: figure.value, f"{name}_low": figure.ci_low, f"{name}_high": figure.ci_high}
            found.append({**row, "missing": one.missing, "finding": one.finding, "reason": one.reason})
        return found

    @property
    def title(self) -> str:
        """The names of the scorers."""
        return f"{', '.join(sensitivity.scorer for sensitivity in self.data)}: changed answers"

    @property
    def tables(self) -> "Sequence[Table]":
        """Those of `proctor judge perturb`."""
        from proctor.reports import perturbation_tables

        return [table for sensitivity in self.data for table in perturbation_tables(sensitivity)]

    @property
    def notes(self) -> tuple[str, ...]:
        """What each scorer fails at, and what is missing."""
        from proctor.reports import perturbation_notes

        return tuple(line for sensitivity in self.data for line in perturbation_notes(sensitivity))


@dataclass(frozen=True)
class PreparedProbes:
    """Scorers, with the original and changed answers that they are to score."""

    scorers: tuple[tuple[PreparedScorer, PreparedScorer], ...]
    probes: "tuple[Probe, ...]"
    options: PerturbOptions
    names: tuple[str, ...]

    @property
    def asked(self) -> int:
        """The number of texts for each scorer, with those that it scored before."""
        return len(self.probes)

    async def ask(self, stop: asyncio.Event | None, on_change: "Callable[[JudgeTally], None]") -> PerturbationTable:
        """Score the texts, and close the connections to models."""
        from proctor.audits import Sensitivity
        from proctor.runs import JudgeLimits, probe
        from proctor.stats import Resampling

        given, found = self.options, []
        plan = Resampling(draws=given["draws"], level=given["level"], seed=given["seed"])
        limits = JudgeLimits(given["concurrency"])
        try:
            for first, second in self.scorers:
                both = first.asked, second.asked
                probed = await probe(*both, self.probes, limits, stop=stop, on_change=on_change)
                if not any(probed_answer.original for probed_answer in probed):
                    why = next(
                        (reason for probed_answer in probed for reason in probed_answer.missing.values()),
                        "it applies to none",
                    )
                    raise InputError(f"scorer {first.scorer.name}", found="no score", expected=f"some ({why})")
                found.append(Sensitivity(first.scorer.name, tuple(probed), self.names, plan))
        finally:
            for prepared_scorer in {id(each): each for pair in self.scorers for each in pair}.values():
                for model in prepared_scorer.models:
                    await model.aclose()
        return PerturbationTable(tuple(found))


async def prepare_probes(
    source: "StoredRuns | Store | str | Path | None", benchmark: str, given: PerturbOptions
) -> PreparedProbes:
    """The first step of `perturb_async`: check everything before a call is paid."""
    from proctor.audits import PERTURBATIONS
    from proctor.core import one_of
    from proctor.runs import BASELINES, AnswersOf, SecondJudgements, chosen_runs

    given = filled("perturb", PerturbOptions, given)
    scorers, names = listed(given["scorer"]), listed(given["perturbations"]) or list(PERTURBATIONS)
    if not scorers:
        raise UsageError(
            "--scorer is missing. Give a judge or metric that scores changed answers, such as --scorer rouge-1-mean."
        )
    for name in names:
        if name not in PERTURBATIONS:
            raise UsageError(f"--perturbation {name!r} is unknown: choose {one_of(list(PERTURBATIONS), name)}")
    where = stored(source, benchmark)
    runs = [run for run in chosen_runs(where.store, where.benchmark) if run.system not in BASELINES]
    answers = AnswersOf(where.store, runs, all_items=given["all_items"])
    drawn = answers.draw(given["answers"], given["seed"])
    if not drawn:
        raise InputError(where.store.shown, where.benchmark, found="no answers in free text", expected="some")
    both: list[tuple[PreparedScorer, PreparedScorer]] = []
    for scorer in scorers:
        how = _as_scored(given, scorer)
        first = second = await prepare_alone(where, scorer, how, where.store)
        if given["model"]:
            second = await prepare_alone(where, scorer, how, SecondJudgements(where.store))
        both += zip(first, second, strict=True)
    return PreparedProbes(tuple(both), tuple(answers.probes(drawn, names, given["seed"])), given, tuple(names))


def _as_scored(given: PerturbOptions, scorer: "str | Scorer | JudgeFunction") -> ScoreOptions:
    """The options for `proctor score`."""
    names = (*ModelOptions.__annotations__, "model", "options", "prompt", "media", "all_items", "concurrency")
    known: dict[str, Any] = {name: one for name, one in given.items() if name in names}
    judge = scorer if isinstance(scorer, str) else ""
    return filled("score", ScoreOptions, cast("ScoreOptions", {**known, "judge": judge}))


async def perturb_async(
    source: "StoredRuns | Store | str | Path | None" = None, benchmark: str = "", **options: Unpack[PerturbOptions]
) -> PerturbationTable:
    """Measure how scores shift when answers are changed: negated, with a wrong diagnosis or dose, padded, doubled, in
    another language, replaced by that of another case or by a reference, with an instruction to the judge, with the
    references in another order or number, and scored once more.

    `scorer` names judges and metrics that can score new text, or holds scorers. At most `answers` answers in each
    language are changed, spread over the groups. Shifts are in standard deviations of the scorer's own scores;
    intervals resample groups. Replies of models are cached, so a second call asks none. Raises `InputError` if nothing
    can be scored. The command is `proctor judge perturb`.
    """
    given = filled("perturb", PerturbOptions, options)
    prepared = await prepare_probes(source, benchmark, given)
    return await prepared.ask(given["stop"], given["on_change"])


perturb = sync_twin(perturb_async)
