"""Judges as experiments: one judge under every combination of prompt, references, reason, images and documents, and what
each of them is worth."""

# No `from __future__ import annotations`: the command line reads these annotations.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

from proctor.api.options import Concurrency, Draws, MediaFolder, ModelOptions, OnChange, Seed, Stop, filled, listed
from proctor.api.scores import PreparedScorer, Scored, prepare_scorers, rating_judge_of
from proctor.api.sources import Evaluation, stored, sync_twin
from proctor.core import DASH, Cell, InputError, Option, Row, Table, UsageError, columns, count_of, number, p_value

if TYPE_CHECKING:
    from proctor.audits import LeadRow
    from proctor.core import Usage
    from proctor.runs import Store

Switch = Literal["on", "off", "both"]
_SWITCHES = ("references", "reason", "images")
_RETRIEVAL = "retrieval-judge"
_MOST_CELLS = 64


class GridOptions(ModelOptions, total=False):
    """What is tried: each of `prompts` (task, general, or a folder with rating.txt.j2), with `references`, a `reason`
    and `images` on, off or both; with `documents` (a folder) the same beside passages of them. `limit` answers at most
    are judged in each cell."""

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
    documents: Annotated[str | Path | None, Option("Judge beside passages of this folder, too.", shell=Path)]
    media: MediaFolder
    limit: Annotated[int | None, Option("Only the first answers, for a trial.", low=1)]
    concurrency: Concurrency
    draws: Draws
    seed: Seed
    on_change: OnChange
    stop: Stop


@dataclass(frozen=True)
class GridCell:
    """One combination: the judge's name in the store, its settings, and what its new judgements cost."""

    scorer: str
    factors: Mapping[str, str]
    judgements: int
    usage: "Usage"


@dataclass(frozen=True)
class JudgeGrid:
    """All combinations beside people's ratings: `rows` are their figures and leads over the first of them, `effects` the
    mean figures of all combinations that share a level of a factor ("reason=on") and their leads over its first level,
    the other factors being the same on both sides."""

    cells: tuple[GridCell, ...]
    rows: "tuple[LeadRow, ...]"
    effects: "tuple[LeadRow, ...]"

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Of each language the combinations, and what each factor is worth."""
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
                found.append((*levels, *_figures(row)))
            fixed = (f"{name}={level}" for name, level in self.cells[0].factors.items() if name not in names)
            caption = f"{title}, mean over the dimensions. In all: {', '.join(fixed)}."
            made.append(Table(caption, heads, tuple(found), title=title))
            effects = [(Cell(row.metric), *_figures(row)) for row in _means(self.effects, language) if row.leads]
            if effects:
                title = f"{spoken_language(language)}: what each factor is worth, leads over its first level"
                heads = columns("Level", ">Mean", ">95 % CI", ">Lead", ">95 % CI", ">p (Holm)")
                caption = f"{title}, averaged over the other factors."
                made.append(Table(caption, heads, tuple(effects), title=title))
        return tuple(made)

    def _varies(self, factor: str, level: str) -> bool:
        return any(one.factors[factor] != level for one in self.cells)


async def judge_grid_async(
    source: "Evaluation | Store | str | Path | None" = None, benchmark: str = "", **options: Unpack[GridOptions]
) -> JudgeGrid:
    """Judges stored answers under every combination, and compares all with people's ratings.

    Each combination is a scorer of its own in the store, so a second call asks nothing that was asked before, and
    `proctor audit` reads them like any other. Raises `InputError` for one combination alone, for more than 64, and where
    an answer got no scores under one of them. The command is `proctor judge grid`.
    """
    given = filled("judge_grid", GridOptions, options)
    where = stored(source, benchmark)
    wanted, judge = _combinations(given), rating_judge_of(where.benchmark)
    cells = []
    for factors in wanted:
        (prepared,) = await prepare_scorers(where.store, where.benchmark, _scored_as(given, factors, judge))
        if not isinstance(prepared, PreparedScorer):
            raise UsageError("--model", "a model that judges")
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
        raise UsageError("--images both", "--media with it: the folder of the images")
    levels["documents"] = ("off", "on") if given["documents"] is not None else ("off",)
    found = [dict(zip(levels, each, strict=True)) for each in product(*levels.values())]
    if not 2 <= len(found) <= _MOST_CELLS or len(set(prompts)) < len(prompts):
        raise InputError(
            "grid", found=count_of(len(found), "combination"), expected=f"2 to {_MOST_CELLS}, each prompt once"
        )
    return found


def _scored_as(given: GridOptions, factors: Mapping[str, str], judge: str) -> Any:
    """The options of `proctor score` for one combination."""
    from proctor.api.options import ScoreOptions

    own: dict[str, Any] = {name: factors[name] for name in ("prompt", *_SWITCHES)}
    retrieval = factors["documents"] == "on"
    if retrieval:
        own |= {"documents": str(given["documents"]), "rerank": "none"}
    every: dict[str, Any] = {**given}
    same = {name: every[name] for name in (*ModelOptions.__annotations__, "model", "media", "limit", "concurrency")}
    wanted: Any = {**same, "judge": _RETRIEVAL if retrieval else judge, "options": own}
    return filled("judge_grid", ScoreOptions, wanted)


def _refuse_gaps(scorer: str, done: Scored, limit: int | None) -> None:
    """Combinations are compared on the same answers."""
    tally = done.tally
    gaps = 0 if tally is None else tally.left if limit is None else tally.unmarked + tally.awaiting
    if tally is not None and gaps:
        found = f"{count_of(gaps, 'answer')} without scores ({tally.last_reason or 'stopped'})"
        raise InputError(scorer, found=found, expected="scores of all: the same call asks again for these alone")


def _cost(done: Scored) -> "tuple[int, Usage]":
    from proctor.core import Usage

    return (0, Usage()) if done.paid is None else (done.paid.count, done.paid.usage)


def _compared(store: "Store", benchmark: str, cells: Sequence[GridCell], given: GridOptions) -> JudgeGrid:
    from proctor.audits import CorrelationSettings, leads
    from proctor.runs import compared

    table, scores = compared(store, benchmark, [one.scorer for one in cells], allow_missing=given["limit"] is not None)
    by_name = {one.name: one for one in scores}
    settings = CorrelationSettings(draws=given["draws"], seed=given["seed"])
    rows = leads(table, {one.scorer: [by_name[one.scorer]] for one in cells}, [cells[0].scorer], settings)
    effects: list[LeadRow] = []
    for factor in cells[0].factors:
        levels = list(dict.fromkeys(one.factors[factor] for one in cells))
        if len(levels) > 1:
            each = {
                f"{factor}={level}": [by_name[one.scorer] for one in cells if one.factors[factor] == level]
                for level in levels
            }
            effects += leads(table, each, [f"{factor}={levels[0]}"], settings)
    return JudgeGrid(tuple(cells), rows, tuple(effects))


def _means(rows: "Sequence[LeadRow]", language: str) -> "list[LeadRow]":
    return [row for row in rows if (row.language, row.dimension, row.part) == (language, "", "all")]


def _figures(row: "LeadRow") -> tuple[Cell | str, ...]:
    """Figure and lead with their intervals; a dash for what the others are compared with."""
    from proctor.reports import contrast_cells, ends_of

    shown = (Cell(number(row.figure.value), raw=row.figure.value), ends_of(row.figure))
    if not row.leads:
        return (*shown, DASH, DASH, DASH)
    return (*shown, *contrast_cells(row.leads[0].difference), p_value(row.leads[0].p_holm))
