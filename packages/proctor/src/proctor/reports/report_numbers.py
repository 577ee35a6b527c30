"""The numbers behind a report, computed once: of a store (`Source`), or of an audit of metrics (`AuditSource`).

Sections read nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

from proctor import runs
from proctor.audits import ALL, Audit, AuditReport, MetricProfile, MetricRanking, RatingsTable
from proctor.core import (
    ACCURACY,
    Answer,
    FailedPolicy,
    Image,
    InputError,
    Item,
    Judgement,
    Metric,
    Reliability,
    Scan,
    Score,
    natural,
)
from proctor.judges import JUDGE_FLAGS
from proctor.metrics import chance_level
from proctor.reports.figures import condition_numbers
from proctor.results import (
    Analysis,
    Comparison,
    ConfidenceResults,
    Consumption,
    Contest,
    ItemTable,
    Leaderboard,
    NothingScoredError,
    Options,
    OrderedRun,
    Reliance,
    Result,
    Results,
    analyse,
    chosen_baselines,
    compare_runs,
    confidence_results,
    leaderboard,
    load_answers,
    load_consumption,
    load_items,
    load_orders,
    load_scores,
    newest_run,
    policies,
    reliances,
    results,
    status_counts,
)
from proctor.stats import Resampling

BASELINE = "text-only"
"""The condition that others are compared with: without the media, what is left is guessing."""

_STABILITY = 500  # samples of the groups behind the stability of a ranking

_FEW_SYSTEMS = 4  # are compared pair by pair

_MAX_VALUES = 24  # a tag with more values than this is a name, not a facet


@dataclass(frozen=True, order=True)
class Key:
    """A metric with the scorer that gave it."""

    metric: str
    scorer: str


@dataclass(frozen=True)
class Paired:
    """Every system's runs compared with its run under `baseline`. `without` names runs without a common metric."""

    baseline: str
    comparisons: list[Comparison]
    without: list[str]

    def of(self, key: Key) -> list[Comparison]:
        """The comparisons of one metric."""
        return [
            comparison
            for comparison in self.comparisons
            if (comparison.metric, comparison.scorer) == (key.metric, key.scorer)
        ]


class Source:
    """The results of one benchmark in one store. `baselines` are shown and not ranked (see `rank_runs`)."""

    def __init__(self, store: runs.Store, benchmark: str, options: Options, baselines: Sequence[str] = ()) -> None:
        self.baselines = tuple(baselines)
        self._store = store
        self.benchmark = benchmark
        self.options = options
        self.card: runs.BenchmarkCard = store.card(benchmark)
        self.runs: list[runs.Run] = runs.chosen_runs(store, benchmark, options.systems, options.conditions)
        self.table: ItemTable = load_items(store, self.card, all_items=options.all_items)
        self._boards: dict[tuple[Key, str], Leaderboard] = {}

    def check(self) -> None:
        """Raises `InputError` if there is no run."""
        if not self.runs:
            expected = "at least one"
            raise InputError(self._store.shown, f"benchmark {self.card.name}", found="no run", expected=expected)

    @cached_property
    def policies(self) -> tuple[FailedPolicy, ...]:
        """The policies for items without a score: one, or both if none is chosen."""
        return policies(self.options.failed, self.card)

    @cached_property
    def items(self) -> list[Item]:
        """The items that count, in the benchmark's order."""
        by_id = {item.id: item for item in self.everything}
        return [by_id[name] for name in self.table.ids]

    @cached_property
    def everything(self) -> list[Item]:
        """All items of the benchmark, with those that do not count."""
        return self._store.items(self.benchmark)

    @cached_property
    def results(self) -> Results:
        """All results, not split by facets."""
        return results(self._store, self.benchmark, replace(self.options, by=()))

    @property
    def overall(self) -> list[Result]:
        """The rows of all results, not split by facets."""
        return self.results.rows

    @cached_property
    def served(self) -> tuple[str, ...]:
        """Where a model of another name answered than the one asked for, what sight tests found, and where a person had
        answers asked again."""
        return (*runs.model_notes(self.runs), *runs.requeued_notes(self._store, self.runs))

    @cached_property
    def conditions(self) -> list[str]:
        """The conditions that were run, in the benchmark's order."""
        there = {run.condition for run in self.runs}
        known = [name for name in self.card.conditions if name in there]
        return known + sorted(there - set(known))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each condition, from which its colour and shape follow."""
        return condition_numbers(self.conditions)

    @cached_property
    def systems(self) -> list[str]:
        """The systems, best first by the headline under the first condition."""
        metric = self.metric(self.card.headline)
        found = {
            row.system: row.drawn
            for row in reversed(self.overall)
            if row.metric == metric.name and row.condition == self.conditions[0] and row.drawn is not None
        }
        sign = -1.0 if metric.higher_is_better else 1.0
        there = {run.system for run in self.runs}
        return sorted(there, key=lambda name: (name not in found, sign * found.get(name, 0.0), name))

    @cached_property
    def keys(self) -> list[Key]:
        """Metrics with the scorers that gave them, in the benchmark's order, the headline first. Flags of judges are no
        metrics, and what waits for a judge has no values (see `flags`, `unscored`)."""
        return [key for key in self._all_keys if key.scorer and key.metric not in JUDGE_FLAGS]

    @property
    def flags(self) -> list[Key]:
        """The flags of judges' replies."""
        return [key for key in self._all_keys if key.scorer and key.metric in JUDGE_FLAGS]

    @property
    def unscored(self) -> list[Key]:
        """The metrics that wait for a judge."""
        return [key for key in self._all_keys if not key.scorer]

    @cached_property
    def _all_keys(self) -> list[Key]:
        order = {metric.name: index for index, metric in enumerate(self.card.metrics)}
        there = {Key(row.metric, row.scorer) for row in self.overall}
        return sorted(there, key=lambda key: (key.metric != self.card.headline, order.get(key.metric, len(order)), key))

    @cached_property
    def leading(self) -> list[Key]:
        """The metrics that are drawn: the headline, and for each answer format that it does not score, the first metric
        that does. The others are shown in tables."""
        formats = {item.answer.kind for item in self.items}
        chosen: list[str] = []
        for key in self.keys:
            covered = {kind for kind in formats for name in chosen if self.metric(name).scores(kind)}
            if key.metric not in chosen and any(self.metric(key.metric).scores(kind) for kind in formats - covered):
                chosen.append(key.metric)
        return [key for key in self.keys if key.metric in chosen]

    @cached_property
    def facets(self) -> list[str]:
        """The facets that scores are split by: the benchmark's own, derived flags, and the answer format."""
        names = dict.fromkeys((*self.card.facets, *self.table.flags))
        if len(set(self.table.formats)) > 1:
            names["format"] = None
        known = set(self.table.facet_names())
        return [name for name in names if name in known and 2 <= len(self.values(name)) <= _MAX_VALUES]

    def values(self, facet: str) -> list[str]:
        """A facet's values in their natural order."""
        return sorted({value for values in self.table.facet(facet) for value in values}, key=natural)

    def by(self, facet: str) -> list[Result]:
        """All results, split by one facet."""
        return results(self._store, self.benchmark, replace(self.options, by=(facet,))).rows

    def metric(self, name: str) -> Metric:
        """A metric's declaration."""
        return self.card.metric(name)

    def label(self, key: Key) -> str:
        """A metric's label, with the scorer if there are several."""
        label = self.metric(key.metric).label
        several = sum(other.metric == key.metric and bool(other.scorer) for other in self._all_keys) > 1
        return f"{label}, scored by {key.scorer}" if several else label

    def chance(self, key: Key, facet: str = "", value: str = "") -> float | None:
        """The chance level on all items, or on those with one value of a facet."""
        items = self.items
        if facet:
            items = [item for item, values in zip(items, self.table.facet(facet), strict=True) if value in values]
        by_code = key == Key(ACCURACY.name, runs.CODE)  # of the formats that code compares, free text is none
        return chance_level(ACCURACY if by_code else self.metric(key.metric), items)

    def accuracy_chance(self, facet: str, value: str) -> float | None:
        """The chance level of the accuracy by code (see `chance`)."""
        return self.chance(Key(ACCURACY.name, runs.CODE), facet, value)

    def axis(self, key: Key) -> tuple[float, float]:
        """The range of a metric's axis: its bounds, extended to all values."""
        metric = self.metric(key.metric)
        shown = [
            number
            for row in self.overall
            if Key(row.metric, row.scorer) == key
            for number in (row.drawn, row.ci_low, row.ci_high)
            if number is not None
        ]
        return min([metric.low, *shown]), max([metric.high, *shown])

    @property
    def ordered_runs(self) -> list[runs.Run]:
        """The runs in the order of systems and conditions."""
        return sorted(self.runs, key=lambda run: (self.systems.index(run.system), self.conditions.index(run.condition)))

    def is_baseline(self, system: str) -> bool:
        """Whether a system is a baseline, which is not ranked."""
        return system in runs.BASELINES or system in self.baselines or system in self._oracles

    @cached_property
    def _oracles(self) -> set[str]:
        return {run.system for run in self.runs if run.settings.get(runs.ORACLE, False)}

    def board(self, key: Key, condition: str) -> Leaderboard:
        """The leaderboard of one metric under one condition."""
        if (key, condition) not in self._boards:
            how = {"condition": condition, "metric": key.metric, "scorer": key.scorer}
            self._boards[key, condition] = leaderboard(self._store, self.benchmark, **how, options=self.options)
        return self._boards[key, condition]

    def results_of(self, key: Key, condition: str) -> dict[str, Result]:
        """The numbers of one metric under one condition, by system."""
        return {
            row.system: row
            for row in self.overall
            if (row.metric, row.scorer, row.condition) == (key.metric, key.scorer, condition)
        }

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], runs.Run]:
        return {(run.system, run.condition): run for run in self.runs}

    @cached_property
    def _scored(self) -> dict[tuple[str, str], set[Key]]:
        """The metrics and scorers of each run."""
        found: dict[tuple[str, str], set[Key]] = {}
        for row in self.overall:
            if row.if_excluded is not None:
                found.setdefault((row.system, row.condition), set()).add(Key(row.metric, row.scorer))
        return found

    def _share_a_metric(self, first: runs.Run, second: runs.Run) -> bool:
        a, b = (self._scored.get((run.system, run.condition), set()) for run in (first, second))
        return not a.isdisjoint(b)

    @cached_property
    def paired(self) -> Paired | None:
        """All conditions compared with text-only (or with the first condition, if text-only was not run). None if no
        system was run under two conditions."""
        if len(self.conditions) < 2:
            return None
        baseline = BASELINE if BASELINE in self.conditions else self.conditions[0]
        both = [
            (run, self._by_name[run.system, baseline])
            for run in self.ordered_runs
            if run.condition != baseline and (run.system, baseline) in self._by_name
        ]
        pairs = [pair for pair in both if self._share_a_metric(*pair)]
        without = [f"{run.system} / {run.condition}" for run, other in both if (run, other) not in pairs]
        if not pairs:
            return None
        return Paired(baseline, compare_runs(self._store, self.benchmark, pairs, self.options), without)

    @cached_property
    def reliance(self) -> tuple[Reliance, ...]:
        """What systems lose when the evidence is hidden; empty where no system has both conditions."""
        return reliances(self._store, self.benchmark, self.ordered_runs, self.options)

    def gains(self, facet: str) -> list[Comparison]:
        """The first condition compared with the baseline of `paired`, split by a facet."""
        if self.paired is None or self.conditions[0] == self.paired.baseline:
            return []
        by_name, first, second = self._by_name, self.conditions[0], self.paired.baseline
        both = [
            (by_name[system, first], by_name[system, second])
            for system in self.systems
            if (system, first) in by_name and (system, second) in by_name
        ]
        return compare_runs(self._store, self.benchmark, both, replace(self.options, by=(facet,)))

    @cached_property
    def crossed(self) -> list[Comparison]:
        """The comparisons of `paired`; with a single condition, all pairs of systems, if these are few."""
        if self.paired is not None:
            return self.paired.comparisons
        chosen = [run for name in self.systems for run in self.runs if run.system == name]
        if not 2 <= len(chosen) <= _FEW_SYSTEMS or len({run.condition for run in chosen}) > 1:
            return []
        pairs = [pair for pair in combinations(chosen, 2) if self._share_a_metric(*pair)]
        return compare_runs(self._store, self.benchmark, pairs, self.options)

    def compared(self, first: tuple[str, str], second: tuple[str, str], key: Key) -> Comparison | None:
        """Compare two runs, each (system, condition), by one metric. None if they have no item in common."""
        by_name = self._by_name
        if first not in by_name or second not in by_name:
            return None
        if not all(key in self._scored.get(run, ()) for run in (first, second)):
            return None
        pair = [(by_name[first], by_name[second])]
        options = replace(self.options, by=())
        comparisons = compare_runs(self._store, self.benchmark, pair, options, metrics=(key.metric,))
        return next(
            (
                comparison
                for comparison in comparisons
                if (comparison.metric, comparison.scorer) == (key.metric, key.scorer)
            ),
            None,
        )

    @cached_property
    def analysis(self) -> Analysis | str | None:
        """The analysis under the first condition, or a sentence on why it is impossible. None if accuracy is not
        scored, there are neither buckets nor facets, or only baselines were run."""
        condition = self.conditions[0]
        asked = {run.system for run in self.runs if run.condition == condition}
        scored = any(metric.name == ACCURACY.name for metric in self.card.metrics)
        known = set(self.table.facet_names())
        split = self.card.buckets or any(facet in known for facet in self.card.facets)
        asked -= self.card.disqualified.keys()
        if not scored or not split or not asked - set(chosen_baselines(self.runs, self.baselines)):
            return None
        try:
            return analyse(
                self._store,
                self.benchmark,
                Contest(
                    condition=condition,
                    systems=tuple(sorted(asked)),
                    baselines=self.baselines,
                    all_items=self.options.all_items,
                    failed=self.options.failed,
                ),
                stability=_STABILITY,
                plan=Resampling(draws=self.options.draws, seed=self.options.seed),
            )
        except NothingScoredError:
            return f"Under {condition} no question has a score, so that systems can't be compared."

    @cached_property
    def orders(self) -> list[OrderedRun]:
        """Answers to ordering items under the first policy; empty without such items."""
        known = {item.id: item for item in self.items}
        if all(item.answer.kind != "ordering" for item in known.values()):
            return []
        return load_orders(self._store, self.runs, self.table, known, self.policies[0])

    @cached_property
    def confidence(self) -> ConfidenceResults | None:
        """What confidences and abstentions are worth; None where no run has either."""
        try:
            return confidence_results(self._store, self.benchmark, replace(self.options, by=(), metrics=()))
        except InputError:
            return None

    def statuses(self, run: runs.Run) -> dict[str, int]:
        """How the answers of a run ended, of all repetitions."""
        return status_counts(self._store, run, self.table)

    def consumption(self, run: runs.Run) -> Consumption:
        """Time, tokens and money of a run."""
        return load_consumption(self._store, run, self.table)

    def answers(self, run: runs.Run, rows: range) -> dict[int, Answer]:
        """A run's answers to the items at these positions, by position."""
        return load_answers(self._store, run, self.table, rows)

    def scores(self, run: runs.Run, rows: range) -> dict[int, list[Score]]:
        """A run's scores of the items at these positions, by position."""
        return load_scores(self._store, run, self.table, rows)

    def judgements(self, keys: Iterable[str]) -> dict[str, Judgement]:
        """Judgements by key."""
        return self._store.judgements(keys)

    @cached_property
    def newest(self) -> str:
        """When the newest run was begun."""
        created = newest_run(self._store, self.benchmark) or "none"
        return created.replace("T", " ").replace("+00:00", " UTC")

    @cached_property
    def studies(self) -> list[str]:
        """The study files that runs were made by: name and hash."""
        return [f"{one.name}, sha256 {one.sha256}" for one in runs.studies_of(self._store, self.benchmark)]

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the benchmark's items."""
        return self._store.fingerprint(self.benchmark)


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference answer, with its `frequency` and `completeness` if they are known."""

    text: str
    frequency: float | None = None
    completeness: float | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question: its text, references (most reliable first), images, and how medical images are shown."""

    text: str
    references: tuple[Reference, ...] = ()
    images: tuple[str, ...] = ()
    scans: tuple[Scan | None, ...] = ()


def asked(items: Iterable[Item]) -> dict[str, Question]:
    """The questions of a benchmark by item. References that are texts are sorted by `Reliability`, best first."""
    questions = {}
    for item in items:
        given = item.reference
        texts = [] if given is None else [given.answer, *given.accepted]
        known = given.reliability if given and given.reliability else [Reliability()] * len(texts)
        references = [
            Reference(text, about.frequency, about.completeness)
            for text, about in zip(texts, known, strict=True)
            if isinstance(text, str)
        ]
        references.sort(key=lambda reference: (_rank(reference.frequency), _rank(reference.completeness)))
        images = [medium for medium in item.media if isinstance(medium, Image)]
        names, scans = tuple(image.source for image in images), tuple(image.scan for image in images)
        questions[item.id] = Question(item.question, tuple(references), names, scans)
    return questions


def _rank(value: float | None) -> tuple[bool, float]:
    return (value is None, -(value or 0.0))


@dataclass(frozen=True)
class AuditSource:
    """An audit of metrics, for a report. `questions` are by item (empty without texts), `judgements` of judges by item
    and system. `image_root` is the folder of images, if there is one. `raters` names who rated."""

    title: str
    found: AuditReport
    questions: Mapping[str, Question] = field(default_factory=dict)
    image_root: Path | None = None
    raters: str = "the raters"
    judgements: Mapping[tuple[str, str], Sequence[Judgement]] = field(default_factory=dict)

    @property
    def table(self) -> RatingsTable:
        """The ratings."""
        return self.found.table

    @property
    def languages(self) -> list[str]:
        """The languages, in order; '' if none is named."""
        return list(dict.fromkeys(language for language, _ in self.table.dimensions))

    @property
    def datasets(self) -> list[str]:
        """All datasets together, then each if there are several."""
        several = self.table.datasets
        return [ALL, *(several if len(several) > 1 else ())]

    @property
    def level(self) -> str:
        """The level of the intervals."""
        return f"{100 * self.found.settings.level:g} %"

    def dimensions(self, language: str) -> list[str]:
        """A language's dimensions, in order."""
        return [dimension for one, dimension in self.table.dimensions if one == language]

    def board(self, language: str, dimension: str = "") -> MetricRanking:
        """The ranking on a dimension, or on the mean over a language's dimensions."""
        return next(board for board in self.found.boards if (board.language, board.dimension) == (language, dimension))

    def main_board(self, language: str) -> MetricRanking:
        """The ranking of a language over all its dimensions."""
        dimensions = self.dimensions(language)
        return self.board(language, dimensions[0] if len(dimensions) == 1 else "")

    def ranked(self, language: str) -> list[str]:
        """The metrics' names, best first on a language's main board."""
        return [row.metric for row in self.main_board(language).metrics]

    def audits(self, language: str) -> list[Audit]:
        """The audit of each metric, best first."""
        by_name = {audit.metric: audit for audit in self.found.each}
        return [by_name[name] for name in self.ranked(language)]

    def profiles(self, language: str) -> list[MetricProfile]:
        """The profile of each metric, best first."""
        by_name = {profile.metric: profile for profile in self.found.profiles}
        return [by_name[name] for name in self.ranked(language)]
