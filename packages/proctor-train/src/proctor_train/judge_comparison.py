"""Compare all judges and metrics with people's ratings: `judge_agreement`."""

# No `from __future__ import annotations`: the command line reads these annotations.

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack

from proctor.core import (
    DASH,
    Cell,
    Option,
    Table,
    UsageError,
    content_hash,
    number,
    number_interval,
    output_file,
    plain_table,
    safe_cell,
    write_whole,
)
from proctor.shell import Draws, Seed, StoredRuns, filled, listed, ratings_in, refuse_in_sample, stored

if TYPE_CHECKING:
    from pydantic import JsonValue

    from proctor.audits import CorrelationSettings, LeadRow, MetricScores, RatingsTable
    from proctor.core import RatingScheme
    from proctor.judges.dimensions import RatedCase
    from proctor.runs import Store
    from proctor.stats import Estimate, Floats
    from proctor_train.mediqa_eval.embedded import RatedAnswers, Recipe, Split

EMBEDDED = "embedded-judge"

MEAN, STACKED, BEST = "blend-mean", "blend-stacked", "blend-best"

SHARES = (0.125, 0.25, 0.5, 0.75)
"""Fractions of the training encounters on the learning curve; the last point is all of them."""


class AgreementOptions(TypedDict, total=False):
    """What is compared in addition to the metrics on text and the embedded judge: scorers of the store that were not
    trained on these ratings (`scorer`), and trained ones with out-of-fold scores (`learned`). Leads over `lead_over`
    are shown. Folds are drawn `repeats` times. `curve` adds the learning curve of the embedded judge. `quick` leaves
    out mixtures with learned weights. `keep` is a folder that keeps all scores for the next call."""

    scorer: Annotated[
        str | Sequence[str],
        Option("A scorer of the store that was not trained on these ratings.", "--scorer", (), shell=list[str]),
    ]
    learned: Annotated[
        str | Sequence[str],
        Option("A scorer trained on these ratings, with out-of-fold scores.", "--learned", (), shell=list[str]),
    ]
    lead_over: Annotated[
        str | Sequence[str],
        Option(
            "Show leads over this metric; may be repeated. [default: rouge-1-mean, bertscore-mean]",
            "--lead-over",
            (),
            shell=list[str],
        ),
    ]
    repeats: Annotated[int, Option("How often folds are drawn; results are averaged.", default=5, low=1, high=20)]
    curve: Annotated[bool, Option("Add the learning curve of the embedded judge.", default=False)]
    quick: Annotated[bool, Option("Leave out mixtures with learned weights.", default=False)]
    keep: Annotated[str | Path | None, Option("Keep all scores in this folder for the next call.", shell=Path)]
    draws: Draws
    seed: Seed


OVER = ("rouge-1-mean", "bertscore-mean")
"""The metrics that leads are over by default."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The agreement of the embedded judge when it is trained on a `share` of the encounters (`encounters` of them in
    each fold)."""

    language: str
    share: float
    encounters: int
    figure: "Estimate"


@dataclass(frozen=True)
class ComparedJudges:
    """Agreement with people: a row for each metric, dimension and part of the ratings (see `proctor.audits.LeadRow`),
    the same for oracles that use part of the ratings (`bounds`), the learning curve, and the settings. `notes` say what
    was left out."""

    rows: "tuple[LeadRow, ...]"
    bounds: "tuple[LeadRow, ...]"
    curve: tuple[CurvePoint, ...]
    over: tuple[str, ...]
    settings: "Mapping[str, JsonValue]"
    notes: tuple[str, ...] = ()

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Leads by language, part and dimension; the bounds; the learning curve."""
        from proctor.reports import lead_tables

        found = [*lead_tables(self.rows), _bounds_table(self.bounds)]
        return (*found, _curve_table(self.curve)) if self.curve else tuple(found)

    @property
    def ahead(self) -> dict[str, list[str]]:
        """For each metric of `over`, what is significantly ahead of it on the mean of a language, by the adjusted
        test."""
        from proctor.audits import leading

        return {name: leading(self.rows, name) for name in self.over}

    def to_json(self) -> "dict[str, JsonValue]":
        """All results as JSON without NaN, with the tables as they are printed."""
        from proctor.audits import leads_json

        return {
            "settings": dict(self.settings),
            "over": list(self.over),
            "ahead": {name: list(found) for name, found in self.ahead.items()},
            "leads": leads_json(self.rows),
            "bounds": leads_json(self.bounds),
            "curve": [{**asdict(curve_point), "figure": _plain(curve_point.figure)} for curve_point in self.curve],
            "tables": [
                {
                    "title": table.title,
                    "columns": [column.label for column in table.columns],
                    "caption": table.caption,
                    "rows": [list(row) for row in table.texts],
                    "strong": [[isinstance(cell, Cell) and cell.strong for cell in row] for row in table.rows],
                }
                for table in self.tables
            ],
        }

    def write(self, out: str | Path) -> Path:
        """Write `to_json` to a file, which may replace a JSON file."""
        write_whole(
            output_file(out, (".json",)),
            json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        )
        return Path(out)


def judge_agreement(
    source: "StoredRuns | Store | str | Path | None" = None, benchmark: str = "", **options: Unpack[AgreementOptions]
) -> ComparedJudges:
    """Compare all metrics and judges with people's ratings of stored answers: the metrics on text, the embedded judge
    (out of fold), scorers of the store, and mixtures of them. Folds keep encounters together. The command is
    `proctor judge compare`.

    `blend-mean` is the mean of the metrics that leads are over, the embedded judge and the `learned` scorers.
    `blend-stacked` has learned weights for the scorers that were not trained and the embedded judge; `blend-best`
    chooses the best of these for each dimension. Both are learned without the fold that they score. Raises `InputError`
    if there are no ratings, for unknown scorers, and for a judge's scores of encounters that it was trained on.
    """
    from proctor.results import compared, people_ratings
    from proctor_train import RunFolder

    given = filled("judge_agreement", AgreementOptions, options)
    where = stored(source, benchmark)
    scheme, rated = ratings_in(where.store, where.benchmark)
    fixed, learned = tuple(listed(given["scorer"])), tuple(listed(given["learned"]))
    table = people_ratings(where.store, where.benchmark)
    others = compared(where.store, where.benchmark, (*fixed, *learned))[1] if fixed or learned else []
    refuse_in_sample(where.store, where.benchmark, (*fixed, *learned))
    comparison = _Comparison(table, rated, scheme, given)
    if given["keep"] is None:
        return comparison.compare(others[: len(fixed)], others[len(fixed) :])
    with RunFolder.opened(Path(given["keep"]), comparison.settings) as folder:
        return replace(comparison, folder=folder.path).compare(others[: len(fixed)], others[len(fixed) :])


@dataclass(frozen=True)
class _Comparison:
    """Computes the scores of all judges and compares them; `folder` keeps scores for the next call."""

    table: "RatingsTable"
    rated: "Mapping[tuple[str, str], RatedCase]"
    scheme: "RatingScheme"
    given: AgreementOptions
    folder: Path | None = None

    @cached_property
    def recipe(self) -> "Recipe":
        from proctor_train.mediqa_eval.embedded import Recipe

        return Recipe(seed=self.given["seed"])

    @cached_property
    def known(self) -> "tuple[RatedAnswers, ...]":
        """The rated answers. Reading takes minutes, so it is done once, when they are needed."""
        from proctor_train.mediqa_eval.embedded import read_rated

        return read_rated(list(self.rated.values()))

    @cached_property
    def splits(self) -> "dict[str, Split]":
        from proctor_train.mediqa_eval.embedded import splits_of

        return splits_of(list(self.rated.values()))

    @property
    def settings(self) -> "dict[str, JsonValue]":
        """The settings that scores depend on."""
        ratings: list[JsonValue] = [
            [*rating.key, rating.candidate, rating.rater, rating.value] for rating in self.table.ratings
        ]
        return {"ratings_sha256": content_hash(ratings), "recipe": asdict(self.recipe)}

    def _kept(self, name: str, compute: "Callable[[], MetricScores]") -> "MetricScores":
        """Scores as an earlier call wrote them, or computed and written. A table in which a score is missing is not
        written."""
        from proctor.audits import MetricScores, read_scores

        file = None if self.folder is None else self.folder / f"{name}.csv"
        if file is not None and file.exists():
            return read_scores(file, self.table)
        found = MetricScores(name, compute().scores)
        if file is not None and None not in found.scores.values():
            out = io.StringIO()
            rows = csv.writer(out, lineterminator="\n")
            rows.writerow(("item", "system", "dimension", "value"))
            rows.writerows((*map(safe_cell, key), repr(found.scores[key])) for key in self.table.keys)
            write_whole(file, out.getvalue())
        return found

    def compare(self, fixed: "Sequence[MetricScores]", learned: "Sequence[MetricScores]") -> ComparedJudges:
        """Compute all results; `fixed` are scorers of the store that were not trained, `learned` those that were."""
        from proctor.audits import CorrelationSettings, bounds, leads

        over = tuple(listed(self.given["lead_over"])) or OVER
        plain = [*self._texts(), *fixed]
        notes = self._unread()
        held_out = [] if notes else [self._held_out(draw) for draw in range(self.given["repeats"])]
        metrics: dict[str, Sequence[MetricScores]] = {
            metric_scores.name: [metric_scores] for metric_scores in (*plain, *learned)
        }
        if held_out:
            metrics[EMBEDDED] = held_out
            together = [*(metric_scores for metric_scores in plain if metric_scores.name in over), *learned]
            metrics[MEAN] = [self._mean(draw, one, together) for draw, one in enumerate(held_out)]
            metrics |= {} if self.given["quick"] else self._weighted(plain, self._without_each_fold())
        settings = CorrelationSettings(draws=self.given["draws"], seed=self.given["seed"])
        rows = leads(self.table, metrics, over, settings)
        oracles = leads(self.table, bounds(self.table, held_out, seed=self.given["seed"]), (), settings)
        curve = self._curve(held_out[0], settings) if self.given["curve"] else ()
        drawn: dict[str, JsonValue] = {
            "draws": settings.draws,
            "level": settings.level,
            "repeats": self.given["repeats"],
        }
        return ComparedJudges(rows, oracles, curve, over, self.settings | drawn, notes)

    def _unread(self) -> tuple[str, ...]:
        """A note if the embedded judge can't read the answers' language; empty if it can. Raises `UsageError` for its
        learning curve."""
        from proctor_train.mediqa_eval.embedded import LANGUAGES

        languages = sorted({rated_case.case.language for rated_case in self.rated.values()})
        if set(languages) <= set(LANGUAGES):
            return ()
        found = ", ".join(name or "no language" for name in languages if name not in LANGUAGES)
        if self.given["curve"]:
            raise UsageError(
                f"--curve needs answers in {' or '.join(LANGUAGES)} (column 'language'), and finds {found}. Leave it out."
            )
        reads = f"it reads {' and '.join(LANGUAGES)}, by the questions' column 'language'"
        return (f"Left out: the embedded judge and mixtures with it, since {reads}; found {found}",)

    def _texts(self) -> "list[MetricScores]":
        from proctor.metrics.text import text_metrics
        from proctor.results import similarity_scores

        def made(name: str) -> "MetricScores":
            return similarity_scores(self.table, self.rated, self.scheme, [name])[0]

        return [self._kept(name, partial(made, name)) for name in (metric.name for metric in text_metrics(["all"]))]

    def _scores(self, name: str, tables: "Sequence[Floats]") -> "MetricScores":
        from proctor_train.mediqa_eval.embedded import scores_of

        return scores_of(name, list(self.rated), list(zip(self.known, tables, strict=True)))

    def _held_out(self, draw: int) -> "MetricScores":
        """Out-of-fold scores of the embedded judge, for one draw of the folds."""
        from proctor_train.mediqa_eval.embedded import out_of_fold

        def made() -> "MetricScores":
            seed = self.recipe.seed + draw
            return self._scores(
                EMBEDDED, [out_of_fold(rated_answers, self.recipe, folds_seed=seed) for rated_answers in self.known]
            )

        return self._kept(f"{EMBEDDED}.draw{draw + 1}", made)

    def _without_each_fold(self) -> "list[MetricScores]":
        """For each fold of the first draw, the scores of an embedded judge trained without it."""
        from proctor_train.mediqa_eval.embedded import leaving_each_fold

        made: list[list[Floats]] = []

        def fold(number: int) -> "MetricScores":
            if not made:
                made.extend(
                    leaving_each_fold(rated_answers, self.recipe, self.recipe.seed) for rated_answers in self.known
                )
            return self._scores(EMBEDDED, [each[number] for each in made])

        return [
            self._kept(f"{EMBEDDED}.draw1.without{number + 1}", partial(fold, number))
            for number in range(self.recipe.folds)
        ]

    def _folds(self, draw: int) -> dict[tuple[str, str], int]:
        """The fold of each encounter, by language and encounter."""
        from proctor_train.mediqa_eval.embedded import encounter_fold

        return {
            (language, encounter): fold
            for language, split in self.splits.items()
            for encounter, fold in encounter_fold(split, self.recipe, self.recipe.seed + draw).items()
        }

    def _mean(self, draw: int, held_out: "MetricScores", others: "Sequence[MetricScores]") -> "MetricScores":
        """The mean of all. No weight is learned, so out-of-fold scores are enough."""
        from proctor.judges.dimensions import BlendMember, blended, equal_weights

        members = [BlendMember.fixed(metric_scores, self.recipe.folds) for metric_scores in (held_out, *others)]
        return blended(MEAN, self.table, members, self._folds(draw), equal_weights)

    def _weighted(
        self, plain: "Sequence[MetricScores]", leaving: "Sequence[MetricScores]"
    ) -> "dict[str, Sequence[MetricScores]]":
        """Mixtures whose weights are learned from scores that have not seen the ratings of the fold they score."""
        from proctor.judges.dimensions import BlendMember, best_alone, blended, stacked_weights

        members = [
            *(BlendMember.fixed(metric_scores, self.recipe.folds) for metric_scores in plain),
            BlendMember(EMBEDDED, tuple(leaving)),
        ]
        ways = {STACKED: stacked_weights, BEST: best_alone}
        return {name: [blended(name, self.table, members, self._folds(0), way)] for name, way in ways.items()}

    def _curve(self, everything: "MetricScores", settings: "CorrelationSettings") -> tuple[CurvePoint, ...]:
        """The learning curve, on the first draw of the folds."""
        from proctor.audits import leads
        from proctor_train.mediqa_eval.embedded import out_of_fold_from_part

        def part(share: float) -> "MetricScores":
            tables = [
                out_of_fold_from_part(rated_answers, self.recipe, share, self.recipe.seed)
                for rated_answers in self.known
            ]
            return self._scores(EMBEDDED, tables)

        encounters = (
            len({rating.cluster for rating in self.table.ratings}) * (self.recipe.folds - 1) / self.recipe.folds
        )
        shares = {share: self._kept(f"{EMBEDDED}.draw1.share{share:g}", partial(part, share)) for share in SHARES}
        return tuple(
            CurvePoint(row.language, share, round(share * encounters), row.figure)
            for share, scores in {**shares, 1.0: everything}.items()
            for row in leads(self.table, {EMBEDDED: [scores]}, (), settings)
            if (row.dimension, row.part) == ("", "all")
        )


def _plain(one: "Estimate") -> "dict[str, JsonValue]":
    return {"value": one.value, "ci_low": one.ci_low, "ci_high": one.ci_high}


def _figure(one: "Estimate") -> str:
    ends = number_interval(one.ci_low, one.ci_high)
    return number(one.value) + ("" if ends == DASH else f" ({ends})")


def _bounds_table(rows: "Sequence[LeadRow]") -> Table:
    languages = list(dict.fromkeys(row.language for row in rows))
    names = list(dict.fromkeys(row.metric for row in rows))
    figures = {(row.metric, row.language): row.figure for row in rows if (row.dimension, row.part) == ("", "all")}
    shown = [(name, *(_figure(figures[name, language]) for language in languages)) for name in names]
    return plain_table("Oracles: what part of the ratings would tell", ("Oracle", *_heads(languages)), shown)


def _curve_table(points: Sequence[CurvePoint]) -> Table:
    languages = list(dict.fromkeys(point.language for point in points))
    figures = {(point.share, point.language): point for point in points}
    shown = [
        (f"{100 * share:g} %", str(own[0].encounters), *(_figure(curve_point.figure) for curve_point in own))
        for share in dict.fromkeys(point.share for point in points)
        for own in [[figures[share, language] for language in languages]]
    ]
    heads = ("Learned from", ">Encounters", *_heads(languages))
    return plain_table("Learning curve of the embedded judge", heads, shown)


def _heads(languages: Sequence[str]) -> list[str]:
    from proctor.reports import spoken_language

    return [f">{spoken_language(language)}" for language in languages]
