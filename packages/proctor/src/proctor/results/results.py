"""Results: every metric of every run, with its interval, its denominator and what is missing; official summaries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import FailedPolicy, InputError, Metric, Status, one_of
from proctor.judges import UNRESOLVED, is_decided
from proctor.results.arrays import ItemTable, judged_repeatedly, load_items, load_labels
from proctor.results.costs import RunCost, run_costs
from proctor.results.facets import FacetSlices, facet_cells, facets_meant
from proctor.results.run_scores import (
    BOTH,
    RunScores,
    both_ends,
    load_run_scores,
    policies,
    policy_of,
    read_ahead,
    repeated_answers,
)
from proctor.results.run_sums import corpus_names, load_run_sums
from proctor.runs import BenchmarkCard, Run, Store, chosen_runs, model_notes, repeats_of, requeued_notes
from proctor.stats import Estimate, Resampling, prepare_intervals

if TYPE_CHECKING:
    from proctor.audits.items import ItemAudit
    from proctor.core import Item
    from proctor.metrics.text import Encoder
    from proctor.results.consistency import Consistency
    from proctor.results.judge_consistency import JudgeConsistency
    from proctor.results.reliance import Reliance

Mask = NDArray[np.bool_]

CONTROL, HIDDEN = "occlude-elsewhere", "occlude-evidence"
"""The two conditions of `results.reliance`."""


@dataclass(frozen=True)
class Options:
    """How results are computed. `by` splits by all combinations of these facets' values; `failed` None means the
    benchmark's policy, or both where it has none (see `policies`). No `metrics` means all."""

    by: tuple[str, ...] = ()
    failed: FailedPolicy | None = None
    all_items: bool = False
    draws: int = 2000
    level: float = 0.95
    seed: int = 0
    two_level: bool = False
    systems: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", tuple(dict.fromkeys(self.by)))

    def plan(self, metric: Metric) -> Resampling:
        """The resampling plan of a metric: whole groups."""
        return Resampling(self.draws, self.level, self.seed, bounds=(metric.low, metric.high))


@dataclass(frozen=True)
class Result:
    """One number. `n` is its denominator (items, or the metric's units: see `Metric.per`), `groups` the number of clusters;
    `answered` and `failed` count answers to the items that the metric applies to. So do all counts below: of a run with
    several `repetitions`, there are as many answers to each item, and all of them are counted.

    Answered items include the system's own failures: `timed_out`, `refused`, `error`, `unreadable` and `not_submitted` (a
    file of answers lacks it); of the unreadable ones, `cut_off` were ended by the model's token limit. `abstained` ones say
    that the question can't be answered: right where it is `unanswerable`, wrong elsewhere. Answered items without a score are `unresolved` (no verdict by the judge) or `unscored`
    (waiting for the judge). `decided` ones were unresolved until a person decided: they have a score. `missing` items
    were not asked; `unsupported` ones are not supported by the system. `levels` counts scores by label,
    where the metric has named levels.

    A run that lacks scores (failed, missing, unresolved) is incomplete. `policy` says how these count: "wrong",
    "exclude", or "both" where no policy is chosen: then there is no `value` but the range from `if_wrong` to
    `if_excluded`; `n` counts all items, and the interval covers those of both. It is empty where nothing is lacking: then
    all three values are equal."""

    system: str
    condition: str
    metric: str
    scorer: str
    facets: dict[str, str]
    n: int
    answered: int
    failed: int
    timed_out: int
    refused: int
    error: int
    abstained: int
    unreadable: int
    cut_off: int
    not_submitted: int
    unresolved: int
    decided: int
    unscored: int
    missing: int
    unsupported: int
    groups: int
    value: float | None
    ci_low: float | None
    ci_high: float | None
    policy: str
    if_wrong: float | None
    if_excluded: float | None
    levels: dict[str, int] = field(default_factory=dict)
    repetitions: int = 1

    @property
    def drawn(self) -> float | None:
        """The value for a chart; of a range the end at which lacking items are wrong."""
        return self.if_wrong if self.policy == BOTH else self.value

    def to_json(self) -> dict[str, Any]:
        """The row as plain data; `repetitions` where there are several."""
        return {name: kept for name, kept in self.__dict__.items() if name != "repetitions" or kept > 1}


@dataclass(frozen=True)
class Results:
    """The rows, and the card and options that they were computed with. `outside` items are in no row: they have no value
    of a facet that the results are split by."""

    card: BenchmarkCard
    options: Options
    rows: list[Result] = field(default_factory=list)
    outside: int = 0
    served: tuple[str, ...] = ()
    """Where a model of another name answered than the one asked for, what its sight test found (`model_notes`), and where a
    person had answers asked again (`requeued_notes`)."""
    costs: tuple[RunCost, ...] = ()
    """What each run with requests to models cost (`run_costs`)."""
    consistency: tuple[Consistency, ...] = ()
    """How the repetitions of each run agree, where items were answered several times (`results.consistency`)."""
    judged: tuple[JudgeConsistency, ...] = ()
    """How the judgements of each answer agree, where a judge was asked several times (`results.judge_consistency`)."""
    over_items: tuple[str, ...] = ()
    """The metrics over many items that are shown: they rest on the first repetition."""
    reliance: tuple[Reliance, ...] = ()
    """What systems lose when the evidence is hidden (`results.reliance`)."""

    @property
    def has_both_occlusions(self) -> bool:
        """Whether there are rows of both conditions that reliance compares."""
        return {CONTROL, HIDDEN} <= {row.condition for row in self.rows}

    def to_json(self) -> list[dict[str, Any]]:
        """The rows as plain data; one over all items has its run's `consistency` and its judge's (`judgements`), if there
        are, and that of accuracy under `occlude-evidence` its system's `reliance`."""
        more: dict[tuple[str, str, str, str], dict[str, Any]] = {}
        for name, found in (("consistency", self.consistency), ("judgements", self.judged)):
            for one in found:
                more.setdefault((one.system, one.condition, one.metric, one.scorer), {})[name] = one.to_json()
        rows = []
        for row in self.rows:
            own = {} if row.facets else more.get((row.system, row.condition, row.metric, row.scorer), {})
            lost = _reliance_of(row, self.reliance)
            rows.append(row.to_json() | own | ({} if lost is None else {"reliance": lost.to_json()}))
        return rows


def _reliance_of(row: Result, found: Sequence[Reliance]) -> Reliance | None:
    key = (row.system, row.condition, row.metric, row.scorer)
    sides = (((one.comparison.second, one.comparison.metric, one.scorer), one) for one in found if not row.facets)
    return next((one for (side, *rest), one in sides if (side.system, side.condition, *rest) == key), None)


def results(store: Store, benchmark: str, options: Options = Options()) -> Results:
    """All results of a benchmark in a store.

    The facet `guessable` is computed by an item audit if the store has none; nothing is written. Raises `InputError` for
    an unknown facet, system, condition or metric.
    """
    card = store.card(benchmark)
    prepare_intervals()
    items = load_items(store, card, all_items=options.all_items)
    options = replace(options, by=facets_meant([*items.facet_names(), GUESSABLE], options.by))
    if GUESSABLE in options.by and GUESSABLE not in items.flags:
        derive_guessable(store, benchmark, audit_stored(store, benchmark, all_items=options.all_items))
        items = load_items(store, card, all_items=options.all_items)
    facets = FacetSlices.of(items, options.by, store.shown)
    rows: list[Result] = []
    known: set[str] = set()
    over: dict[str, Metric] = {}
    declared = {metric.name: position for position, metric in enumerate(card.metrics)}
    runs = chosen_runs(store, benchmark, options.systems, options.conditions)
    twice = judged_repeatedly(store)
    alike: list[Consistency] = []
    judged: list[JudgeConsistency] = []

    def read(run: Run) -> tuple[list[RunScores], NDArray[np.int64] | None]:
        parts = load_run_scores(store, run, items, card, unscored=True)
        return parts, repeated_answers(store, run, items, parts)

    for run, (parts, answers) in read_ahead(runs, read):
        known.update(run_scores.metric.name for run_scores in parts)
        many = load_run_sums(store, [run], items, card, options.metrics)[run.id]
        over |= {run_sums.metric.name: run_sums.metric for run_sums in many}
        shown = [
            run_scores for run_scores in parts if not options.metrics or run_scores.metric.name in options.metrics
        ] + many
        alike += _alike(run, shown, answers, items, options)
        judged += _judged(store, run, shown, items, options) if run.id in twice else []
        labels = {(one.metric.name, one.scorer): _labels(store, run, items, one) for one in shown}
        for part in sorted(shown, key=lambda run_scores: declared.get(run_scores.metric.name, len(declared))):
            decided = [
                _decided(how, len(items)) for how in labels.get((UNRESOLVED.name, part.scorer), ())[: part.times]
            ]
            own = labels[part.metric.name, part.scorer] if part.metric.levels else ()
            levels = _count_levels(own, len(items), facets)
            rows.extend(
                PartResults(part, items, decided, facets, policies(options.failed, card), options).rows(run, levels)
            )
    check_metrics(store, options.metrics, known, items, over)
    return Results(
        card.with_metrics(list(over.values())),
        options,
        rows,
        facets.outside(len(items)),
        (*model_notes(runs), *requeued_notes(store, runs)),
        run_costs(store, runs, items),
        tuple(alike),
        tuple(judged),
        tuple(over) if alike else (),
    )


def _labels(store: Store, run: Run, items: ItemTable, part: RunScores) -> list[dict[int, str]]:
    """The labels of each repetition of a metric that has levels, or says what has no verdict; none of another."""
    metric = part.metric
    if not metric.levels and metric.name != UNRESOLVED.name:
        return []
    return [load_labels(store, run, items, metric.name, part.scorer, number) for number in range(part.times)]


def _decided(labels: Mapping[int, str], n_items: int) -> Mask:
    """The items whose answer a person decided."""
    found = np.zeros(n_items, dtype=np.bool_)
    found[[number for number, label in labels.items() if is_decided(label)]] = True
    return found


def _alike(
    run: Run, shown: Sequence[RunScores], answers: NDArray[np.int64] | None, items: ItemTable, options: Options
) -> list[Consistency]:
    if answers is None:
        return []
    from proctor.results.consistency import consistency

    return consistency(run, shown, answers, items, options)


def _judged(
    store: Store, run: Run, shown: Sequence[RunScores], items: ItemTable, options: Options
) -> list[JudgeConsistency]:
    from proctor.results.judge_consistency import judge_consistency

    return judge_consistency(store, run, items, [one.metric for one in shown], options)


def check_metrics(
    store: Store, metrics: Sequence[str], known: Collection[str], items: ItemTable, over: Collection[str]
) -> None:
    """Raises `InputError`, with the choices, for the first of these metrics that no run has. `known` are metrics of single
    items, `over` names of (parts of) metrics over many items."""
    every = {*known, *over, *(name.partition(":")[0] for name in over)}
    for name in metrics:
        if name not in every:
            choices = sorted(every | set(corpus_names(items)))
            raise InputError(store.shown, found=f"no metric {name!r}", expected=one_of(choices, name))


def composition(
    store: Store, benchmark: str, by: Sequence[str] = (), *, all_items: bool = False
) -> list[dict[str, Any]]:
    """The numbers of items and groups of a benchmark, by each combination of these facets' values; without facets in
    total, by format and by each of its own facets. Raises `InputError` for an unknown facet."""
    card = store.card(benchmark)
    items = load_items(store, card, all_items=all_items)

    def counted(mask: Mask) -> dict[str, Any]:
        return {"items": int(mask.sum()), "groups": len(np.unique(items.group[mask]))}

    if by:
        return [{**facets, **counted(mask)} for facets, mask in facet_cells(items, by, store.shown)]
    rows = [{"facet": "all", "value": "", **counted(np.ones(len(items), dtype=np.bool_))}]
    for name in dict.fromkeys(("format", *(name for name in card.facets if name in items.facet_names()))):
        cells = facet_cells(items, (name,), store.shown)
        rows += [{"facet": name, "value": facets[name], **counted(mask)} for facets, mask in cells]
    return rows


def items_outside(store: Store, benchmark: str, by: Sequence[str], *, all_items: bool = False) -> int:
    """How many items have no value of one of these facets, so that no row of a table by them has them."""
    if not by:
        return 0
    items = load_items(store, store.card(benchmark), all_items=all_items)
    return FacetSlices.of(items, by, store.shown).outside(len(items))


@dataclass(frozen=True)
class PartResults:
    """The results of one metric by one scorer in one run, split by facets. `decided` are the answers of each repetition
    that a person decided; none by default."""

    part: RunScores
    items: ItemTable
    decided: Sequence[Mask]
    slices: FacetSlices
    policies: tuple[FailedPolicy, ...]
    options: Options

    def rows(self, run: Run, levels: Sequence[dict[str, int]] = ()) -> list[Result]:
        """One row for each slice that has an answer; `levels` counts labels by slice."""
        counts, unscored = self._counts(repeats_of(run.settings)), not self.part.scorer
        lacking = self.slices.count(self.part.lacking & (not unscored))
        excluded_ones = self._estimates(FailedPolicy.EXCLUDE)
        # Before a judge is asked there is no number under any policy, not even for wrong answers.
        wrong_ones = self._estimates(FailedPolicy.WRONG) if lacking.any() else excluded_ones
        found = []
        asked = counts["answered"] + counts["failed"]
        for code, facets in enumerate(self.slices.facets):
            if not asked[code] and not (asked.any() and counts["missing"][code]):
                continue
            wrong, excluded = wrong_ones[code], excluded_ones[code]
            policy = policy_of(lacking[code] > 0, self.policies)
            shown = wrong if policy == FailedPolicy.WRONG else excluded
            if policy == BOTH:
                low, high = both_ends(wrong.ci_low, wrong.ci_high, excluded.ci_low, excluded.ci_high)
                shown = Estimate(None, low, high, wrong.n, wrong.groups)
            found.append(
                Result(
                    system=run.system,
                    condition=run.condition,
                    metric=self.part.metric.name,
                    scorer=self.part.scorer,
                    facets=facets,
                    n=shown.n,
                    groups=shown.groups,
                    value=shown.value,
                    ci_low=shown.ci_low,
                    ci_high=shown.ci_high,
                    policy=policy,
                    if_wrong=wrong.value,
                    if_excluded=excluded.value,
                    levels=levels[code] if levels else {},
                    repetitions=self.part.times,
                    **{name: int(count[code]) for name, count in counts.items()},
                )
            )
        return found

    def _counts(self, asked: int) -> dict[str, NDArray[np.int64]]:
        """The numbers of answers in each slice, of all repetitions; what was not asked, of those that were `asked` for."""
        total: dict[str, NDArray[np.int64]] = {}
        for number, part in enumerate(self.part.repeated or (self.part,)):
            masks = self._masks(part, self.decided[number] if number < len(self.decided) else None)
            if number >= max(1, asked):
                masks |= {name: np.zeros_like(part.scorable) for name in ("missing", "unsupported")}
            for name, mask in masks.items():
                total[name] = total.get(name, 0) + self.slices.count(mask & self.part.scorable)
        return total

    @staticmethod
    def _masks(part: RunScores, decided: Mask | None) -> dict[str, Mask]:
        """How the answers of one repetition ended."""
        outcomes = part.outcomes
        unread = outcomes.where(Status.ANSWERED) & ~outcomes.readable
        return {
            "answered": outcomes.answered,
            **{status.value: outcomes.where(status) for status in Status if status is not Status.ANSWERED},
            "unreadable": unread & outcomes.submitted,
            "cut_off": unread & outcomes.cut_off,
            "not_submitted": unread & ~outcomes.submitted,
            "unresolved": part.unresolved,
            "decided": np.zeros_like(part.scorable) if decided is None else decided,
            "unscored": part.waiting,
            "missing": part.not_asked | (~outcomes.asked & ~outcomes.unsupported),
            "unsupported": part.unsupported,
        }

    def _estimates(self, policy: FailedPolicy) -> list[Estimate]:
        plan = replace(self.options.plan(self.part.metric), two_level=self.options.two_level)
        return self.part.estimates(policy, self.items, self.slices, plan)


def _count_levels(repetitions: Sequence[Mapping[int, str]], n_items: int, slices: FacetSlices) -> list[dict[str, int]]:
    """The numbers of answers with each label in each slice, of all repetitions."""
    counts: list[dict[str, int]] = [{} for _ in slices.facets]
    for labels in repetitions:
        for name in dict.fromkeys(labels.values()):
            labelled = np.zeros(n_items, dtype=np.bool_)
            labelled[[number for number, label in labels.items() if label == name]] = True
            for code in np.flatnonzero(found := slices.count(labelled)):
                counts[code][name] = counts[code].get(name, 0) + int(found[code])
    return counts


GUESSABLE = "guessable"


def audit_stored(
    store: Store,
    benchmark: str,
    *,
    all_items: bool = False,
    seed: int = 0,
    draws: int = 2000,
    encode: Encoder | None = None,
) -> ItemAudit:
    """Audits the items of a benchmark in a store (see `audit_items`)."""
    from proctor.audits.items import audit_items

    return audit_items(items_to_audit(store, benchmark, all_items=all_items), seed=seed, draws=draws, encode=encode)


def items_to_audit(store: Store, benchmark: str, *, all_items: bool = False) -> list[Item]:
    """The items of a benchmark in a store that count, or all of them."""
    card = store.card(benchmark)
    return [item for item in store.items(benchmark) if all_items or card.counts(item)]


def derive_guessable(store: Store, benchmark: str, audit: ItemAudit) -> None:
    """Sets the facet `guessable` by an audit while this store is open; nothing is written."""
    store.derived[benchmark, GUESSABLE] = guessable_flags(audit)


def guessable_flags(audit: ItemAudit) -> dict[str, str]:
    """The facet `guessable` of each item: yes or no."""
    return {item: "yes" if flag else "no" for item, flag in audit.guessable.items()}
