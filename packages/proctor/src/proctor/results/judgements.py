"""Judgements of answers, one by one and in summary; the agreement of judges; and the history of an item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from proctor.core import Answer, Item, Judgement, Metric, Score, Status
from proctor.judges import JUDGE_FLAGS, SINGLE_JUDGE
from proctor.results.arrays import ItemTable, load_items, load_raw_series
from proctor.runs import Run, Store, answer_from_row, chosen_runs, known_items, schema
from proctor.stats import Estimate, Resampling, krippendorff_alpha, mean_interval


@dataclass(frozen=True)
class DimensionJudgement:
    """One scorer's judgement of one answer: its scores by dimension, the flags of a judge's reply, and the reply as plain
    JSON (reasons, broken rules, missing scores …; empty if none is stored)."""

    item: str
    system: str
    condition: str
    scorer: str
    values: Mapping[str, float]
    flags: tuple[str, ...]
    reply: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """One flat object."""
        return asdict(self) | {"flags": list(self.flags)}

    @property
    def breaks(self) -> tuple[str, ...]:
        """The rules between dimensions that the scores break."""
        return tuple(self.reply.get("breaks", ()))


@dataclass(frozen=True, slots=True)
class RatingSummary:
    """One dimension over all answers in one language. `disagreement` is the mean over the members of an ensemble."""

    language: str
    dimension: str
    scores: int
    missing: int
    mean: float | None
    disagreement: float | None


def judgements_of(store: Store, benchmark: str, runs: Sequence[Run], scorer: str) -> list[DimensionJudgement]:
    """A scorer's judgements of the answers of these runs, by run and in the benchmark's order: its scores on the
    benchmark's dimensions, or all its scores if it has none on them."""
    order = {item.id: position for position, item in enumerate(store.items(benchmark))}
    metrics = {metric.name for metric in _dimensions(store, benchmark)}
    found: list[DimensionJudgement] = []
    for run in runs:
        every = store.score_rows(run, scorer=scorer)
        rows = [row for row in every if row.metric in metrics] or every
        judgements = store.judgements(row.judgement_key for row in rows if row.judgement_key)
        values: dict[str, dict[str, float]] = {}
        behind: dict[str, str] = {}
        for row in rows:
            values.setdefault(row.item_id, {})[row.metric] = float(row.value)
            behind[row.item_id] = row.judgement_key
        for item in sorted(values, key=lambda name: order[name]):
            judgement = judgements.get(behind[item])
            flags, reply = (judgement.flags, judgement.reply) if judgement else ((), {})
            found.append(DimensionJudgement(item, run.system, run.condition, scorer, values[item], flags, reply))
    return found


def rating_summary(
    store: Store, benchmark: str, runs: Sequence[Run], scorer: str
) -> tuple[list[RatingSummary], Counter[str], Counter[str]]:
    """A summary of a scorer's scores by language and dimension, and the numbers of answers that break each rule and that
    have each flag. Missing scores are counted over the runs' answers, without failed ones."""
    items = {item.id: item for item in store.items(benchmark)}
    answered = [
        items[name] for run in runs for name, answer in store.answers(run).items() if answer.status is not Status.FAILED
    ]
    judgements = judgements_of(store, benchmark, runs, scorer)
    rows = []
    for language in dict.fromkeys(_language(item) for item in items.values()):
        inside = [judgement for judgement in judgements if _language(items[judgement.item]) == language]
        kinds = [item.answer.kind for item in answered if _language(item) == language]
        for metric in _dimensions(store, benchmark):
            wanted = sum(metric.scores(kind, language) for kind in kinds)
            if wanted:
                rows.append(_summary(language, metric.name, wanted, inside))
    breaks = Counter(name for judgement in judgements for name in judgement.breaks)
    flags = Counter(name for judgement in judgements for name in judgement.flags if name not in judgement.breaks)
    return rows, breaks, flags


def _summary(language: str, name: str, wanted: int, judgements: Sequence[DimensionJudgement]) -> RatingSummary:
    """The summary of one dimension, on which this many answers should have a score."""
    values = [judgement.values[name] for judgement in judgements if name in judgement.values]
    apart = [judgement.reply.get("disagreement", {}) for judgement in judgements]
    disagreement = [float(one[name]) for one in apart if name in one]
    return RatingSummary(language, name, len(values), wanted - len(values), _mean(values), _mean(disagreement))


def _dimensions(store: Store, benchmark: str) -> Sequence[Metric]:
    scheme = store.card(benchmark).rating
    return scheme.metrics if scheme else ()


def _language(item: Item) -> str:
    return str(item.tags.get("language", ""))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


@dataclass(frozen=True)
class JudgePair:
    """Two judges: the numbers of answers that both judged, on which they agree, and that each of them calls right; and the
    interval of the share on which they agree, over `groups` (95 %; None where there is none)."""

    first: str
    second: str
    n: int
    agreeing: int
    right_by_first: int
    right_by_second: int
    groups: int = 0
    ci_low: float | None = None
    ci_high: float | None = None

    @property
    def share(self) -> float | None:
        """The share of answers on which they agree; None without answers."""
        return self.agreeing / self.n if self.n else None


@dataclass(frozen=True)
class JudgeAgreement:
    """All pairs, and Krippendorff's alpha over all judgements (nominal, with an interval over groups): 1 is full agreement, 0
    the chance level. None if no answer has two judgements, or all judgements are equal."""

    judges: tuple[str, ...]
    pairs: tuple[JudgePair, ...]
    alpha: Estimate

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data."""
        return {
            "judges": list(self.judges),
            "pairs": [asdict(pair) | {"share": pair.share} for pair in self.pairs],
            "alpha": {
                "value": self.alpha.value,
                "ci_low": self.alpha.ci_low,
                "ci_high": self.alpha.ci_high,
                "answers": self.alpha.n,
                "groups": self.alpha.groups,
            },
        }


def judge_agreement(
    store: Store,
    benchmark: str,
    runs: Sequence[Run],
    judges: Sequence[str],
    *,
    metric: Metric = SINGLE_JUDGE,
    all_items: bool = False,
    draws: int = 2000,
    seed: int = 0,
) -> JudgeAgreement:
    """The agreement of these judges (scorer names) on the answers of these runs.

    A pair leaves out answers without a judgement of both. Answers that need no judgement (late, missing, too long) are left out.
    """
    items = load_items(store, store.card(benchmark), all_items=all_items)
    judgements: dict[str, dict[tuple[int, int], float]] = {judge: {} for judge in judges}
    for run in runs:
        for series in load_raw_series(store, run, items):
            if series.metric == metric.name and series.scorer in judgements:
                judgements[series.scorer].update(
                    {
                        (run.id, position): float(series.values[position])
                        for position in series.scored.nonzero()[0].tolist()
                    }
                )
    plan = Resampling(draws=draws, seed=seed)
    flat = [(judgement, *key) for by_answer in judgements.values() for key, judgement in by_answer.items()]
    alpha = krippendorff_alpha(
        [judgement for judgement, _, _ in flat],
        [(run, position) for _, run, position in flat],
        [items.groups[items.group[position]] for _, _, position in flat],
        "nominal",
        plan=plan,
    )
    pairs = (_pair(first, second, judgements, items, plan) for first, second in combinations(judges, 2))
    return JudgeAgreement(tuple(judges), tuple(pairs), alpha)


def _pair(
    first: str, second: str, judgements: dict[str, dict[tuple[int, int], float]], items: ItemTable, plan: Resampling
) -> JudgePair:
    one, other = judgements[first], judgements[second]
    both = sorted(one.keys() & other.keys())
    equal = np.array([one[key] == other[key] for key in both], dtype=np.float64)
    groups = items.group[[position for _, position in both]] if both else np.zeros(0, dtype=np.int64)
    share = mean_interval(equal, groups, replace(plan, bounds=(0.0, 1.0), shares=True))
    return JudgePair(
        first=first,
        second=second,
        n=len(both),
        agreeing=int(equal.sum()),
        right_by_first=sum(one[key] == 1 for key in both),
        right_by_second=sum(other[key] == 1 for key in both),
        groups=share.groups,
        ci_low=share.ci_low,
        ci_high=share.ci_high,
    )


@dataclass(frozen=True)
class ScorerSummary:
    """What one scorer gave by one metric: of how many answers, their mean value, and how many of its judgements have each
    flag."""

    metric: Metric
    scorer: str
    n: int
    mean: float | None
    flags: Mapping[str, int]


def scorer_summaries(store: Store, benchmark: str, runs: Sequence[Run]) -> list[ScorerSummary]:
    """All scorers of these runs' first answers, by metric in the benchmark's order. Flags of judges are no metrics of
    their own."""
    card = store.card(benchmark)
    items = load_items(store, card, all_items=True)
    values: dict[tuple[str, str], list[float]] = {}
    flags: dict[str, Counter[str]] = {}
    for run in runs:
        for series in load_raw_series(store, run, items):
            scored = series.values[series.scored].tolist()
            if series.metric in JUDGE_FLAGS:
                flags.setdefault(series.scorer, Counter())[series.metric] += sum(value == 1 for value in scored)
            else:
                values.setdefault((series.metric, series.scorer), []).extend(scored)
    order = {metric.name: row for row, metric in enumerate(card.metrics)}
    keys = sorted(values, key=lambda key: (order.get(key[0], len(order)), key))
    return [
        ScorerSummary(
            card.metric(metric),
            scorer,
            len(values[metric, scorer]),
            _mean(values[metric, scorer]),
            flags.get(scorer, {}),
        )
        for metric, scorer in keys
    ]


@dataclass(frozen=True)
class FlaggedJudgement:
    """One flagged judgement on an answer of a run: the judge's reply, and the text of the answer."""

    system: str
    condition: str
    item: str
    judge: str
    flags: tuple[str, ...]
    reply: dict[str, Any]
    text: str

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data."""
        return asdict(self) | {"flags": list(self.flags)}


def flagged_judgements(
    store: Store, benchmark: str, systems: Sequence[str] = (), conditions: Sequence[str] = ()
) -> list[FlaggedJudgement]:
    """All flagged judgements of the chosen runs' scores, by run, item (in the benchmark's order) and judge.

    Raises `InputError` for an unknown system or condition.
    """
    order = {item.id: position for position, item in enumerate(store.items(benchmark))}
    found = []
    for run in chosen_runs(store, benchmark, systems, conditions):
        behind = {(row.item_id, row.judgement_key) for row in store.score_rows(run, judged=True)}
        judgements = {
            key: judgement for key, judgement in store.judgements(key for _, key in behind).items() if judgement.flags
        }
        if not judgements:
            continue
        answers = store.answers(run)
        found += [
            FlaggedJudgement(
                run.system,
                run.condition,
                item,
                judgements[key].judge,
                judgements[key].flags,
                dict(judgements[key].reply),
                answers[item].text,
            )
            for item, key in sorted(behind, key=lambda one: (order[one[0]], one[1]))
            if key in judgements
        ]
    return sorted(
        found,
        key=lambda flagged_judgement: (
            flagged_judgement.system,
            flagged_judgement.condition,
            order[flagged_judgement.item],
            flagged_judgement.judge,
        ),
    )


@dataclass(frozen=True)
class GivenAnswer:
    """One run's answer to an item (None: not asked), with its scores and judgements."""

    run: Run
    answer: Answer | None
    scores: tuple[Score, ...]
    judgements: tuple[Judgement, ...]

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data."""
        return {
            "system": self.run.system,
            "condition": self.run.condition,
            "answer": None if self.answer is None else self.answer.model_dump(mode="json"),
            "scores": [score.model_dump(mode="json") for score in self.scores],
            "judgements": [judgement.model_dump(mode="json") for judgement in self.judgements],
        }


@dataclass(frozen=True)
class ItemHistory:
    """An item and each run's answer to it, by system and condition."""

    item: Item
    given: tuple[GivenAnswer, ...]

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data."""
        return {
            "item": self.item.model_dump(mode="json"),
            "runs": [given_answer.to_json() for given_answer in self.given],
        }


def item_history(
    store: Store, benchmark: str, item_id: str, systems: Sequence[str] = (), conditions: Sequence[str] = ()
) -> ItemHistory:
    """The history of an item. Raises `InputError`, with the nearest id, for an unknown item, system or condition."""
    items = known_items(store, benchmark, [item_id])
    runs = chosen_runs(store, benchmark, systems, conditions)
    return ItemHistory(items[item_id], tuple(given_answer(store, run, item_id) for run in runs))


def given_answer(
    store: Store, run: Run, item_id: str, repetition: int = 0, keys: Sequence[tuple[str, str]] | None = None
) -> GivenAnswer:
    """One run's answer to an item, with its scores and the judgements behind them. `keys` are the metrics and scorers that
    may have scored it; by default those of the run are looked up. Raises `KeyError` for an unknown item."""
    answers, number = schema.answers, store.item_number(run.benchmark, item_id)
    with store.reading() as connection:
        own = select(answers).where(schema.repetition_of(answers, run.id, repetition), answers.c.item == number)
        row = connection.execute(own).mappings().first()
        answer = None if row is None else answer_from_row(item_id, row)
        found = _scores(connection, run, item_id, number, repetition, keys)
    judgements = store.judgements(score.judgement_key for score in found if score.judgement_key)
    while former := {str(judgement.reply.get("replaces") or "") for judgement in judgements.values()} - {
        "",
        *judgements,
    }:
        more = store.judgements(former)  # replaced decisions of people
        if not more:
            break
        judgements |= more
    return GivenAnswer(run, answer, found, tuple(judgements[key] for key in sorted(judgements)))


def _scores(
    connection: Connection, run: Run, item_id: str, number: int, repetition: int, keys: Sequence[tuple[str, str]] | None
) -> tuple[Score, ...]:
    """The scores of one answer, by scorer and metric: a look-up by the whole key for each, however many answers there
    are."""
    table = schema.scores
    if keys is None:
        query = select(table.c.metric, table.c.scorer).where(table.c.run == run.id).distinct()
        keys = [(row.metric, row.scorer) for row in connection.execute(query)]
    names = ("metric", "value", "scorer", "label", "judgement_key")
    found = []
    for metric, scorer in sorted(keys, key=lambda key: (key[1], key[0])):
        own = schema.repetition_of(table, run.id, repetition), table.c.metric == metric, table.c.scorer == scorer
        row = connection.execute(select(*(table.c[name] for name in names)).where(*own, table.c.item == number)).first()
        if row is not None:
            found.append(Score(item_id=item_id, repetition=repetition, **row._asdict()))
    return tuple(found)
