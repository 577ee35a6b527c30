"""What was said of answers: judgements one by one and in short, how far judges agree, and all that is known of an
item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from sqlalchemy import select

from proctor.core import Answer, InputError, Item, Judgement, Metric, Score, Status, one_of
from proctor.judges import JUDGE_VOTE
from proctor.runs import schema
from proctor.runs.schema import answer_from_row
from proctor.runs.store import Run, Store
from proctor.runs.table import chosen_runs, load_items, load_raw_series
from proctor.stats import Estimate, Resampling, krippendorff_alpha


@dataclass(frozen=True)
class DimensionJudgement:
    """What one scorer said of one answer: its scores by dimension, the flags of a judge's reply, and the reply itself
    as plain JSON (reasons, broken rules, what is missing and why …; empty where a scorer keeps none)."""

    item: str
    system: str
    condition: str
    scorer: str
    values: Mapping[str, float]
    flags: tuple[str, ...]
    reply: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As programs read it: one flat object."""
        return asdict(self) | {"values": dict(self.values), "flags": list(self.flags), "reply": dict(self.reply)}

    @property
    def breaks(self) -> tuple[str, ...]:
        """The rules between dimensions that its scores break."""
        return tuple(self.reply.get("breaks", ()))


@dataclass(frozen=True, slots=True)
class RatingSummary:
    """One dimension over all answers in one language. `disagreement` is the members' mean one, where the judge is an
    ensemble."""

    language: str
    dimension: str
    scores: int
    missing: int
    mean: float | None
    disagreement: float | None


def judgements_of(store: Store, benchmark: str, runs: Sequence[Run], scorer: str) -> list[DimensionJudgement]:
    """What a scorer said of the answers of these runs, by run and in the benchmark's order: its scores on the
    dimensions of the benchmark, or of a scorer that rates on none of them all its scores."""
    order = {item.id: position for position, item in enumerate(store.items(benchmark))}
    metrics = {metric.name for metric in _dimensions(store, benchmark)}
    found: list[DimensionJudgement] = []
    for run in runs:
        every = store.score_rows(run, scorer=scorer)
        rows = [row for row in every if row.metric in metrics] or every
        votes = store.votes(row.vote_key for row in rows if row.vote_key)
        values: dict[str, dict[str, float]] = {}
        behind: dict[str, str] = {}
        for row in rows:
            values.setdefault(row.item_id, {})[row.metric] = float(row.value)
            behind[row.item_id] = row.vote_key
        for item in sorted(values, key=lambda name: order[name]):
            vote = votes.get(behind[item])
            flags, reply = (vote.flags, vote.reply) if vote else ((), {})
            found.append(DimensionJudgement(item, run.system, run.condition, scorer, values[item], flags, reply))
    return found


def rating_summary(
    store: Store, benchmark: str, runs: Sequence[Run], scorer: str
) -> tuple[list[RatingSummary], Counter[str], Counter[str]]:
    """A scorer's scores in short: by language and dimension, how many answers break each rule, and how many have each
    flag. Missing are the dimensions of answers that the runs have (failed ones left out) and the scorer did not
    score."""
    items = {item.id: item for item in store.items(benchmark)}
    answered = [
        items[name] for run in runs for name, answer in store.answers(run).items() if answer.status is not Status.FAILED
    ]
    said = judgements_of(store, benchmark, runs, scorer)
    rows = []
    for language in dict.fromkeys(_language(item) for item in items.values()):
        for metric in _dimensions(store, benchmark):
            wanted = sum(_language(item) == language and metric.marks(item.answer.kind, language) for item in answered)
            inside = [one for one in said if _language(items[one.item]) == language]
            values = [one.values[metric.name] for one in inside if metric.name in one.values]
            apart = [
                float(one.reply["disagreement"][metric.name])
                for one in inside
                if metric.name in one.reply.get("disagreement", {})
            ]
            if wanted:
                missing = wanted - len(values)
                rows.append(RatingSummary(language, metric.name, len(values), missing, _mean(values), _mean(apart)))
    breaks = Counter(name for one in said for name in one.breaks)
    flags = Counter(name for one in said for name in one.flags if name not in one.breaks)
    return rows, breaks, flags


def _dimensions(store: Store, benchmark: str) -> Sequence[Metric]:
    scheme = store.card(benchmark).rating
    return scheme.metrics if scheme else ()


def _language(item: Item) -> str:
    return str(item.tags.get("language", ""))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


@dataclass(frozen=True)
class JudgePair:
    """Two judges: on how many answers both voted, on how many they agree, and which of the two says "right" of how
    many of these."""

    first: str
    second: str
    n: int
    agreeing: int
    right_by_first: int
    right_by_second: int

    @property
    def share(self) -> float | None:
        """The share of these answers on which they agree; None without any."""
        return self.agreeing / self.n if self.n else None


@dataclass(frozen=True)
class JudgeAgreement:
    """All pairs, and Krippendorff's alpha over all votes (nominal; its interval over groups): 1 is full agreement,
    0 that of chance. None where no answer has two votes, or all votes are the same."""

    judges: tuple[str, ...]
    pairs: tuple[JudgePair, ...]
    alpha: Estimate

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
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
    metric: Metric = JUDGE_VOTE,
    all_items: bool = False,
    draws: int = 2000,
    seed: int = 0,
) -> JudgeAgreement:
    """The agreement of these judges (by the names of their scores) on the answers of these runs.

    An answer that one of two judges has not voted on is left out of that pair. Answers that needed no vote
    (late, missing, too long) are left out: on them nobody can disagree.
    """
    items = load_items(store, store.card(benchmark), all_items=all_items)
    votes: dict[str, dict[tuple[int, int], float]] = {judge: {} for judge in judges}
    for run in runs:
        for one in load_raw_series(store, run, items):
            if one.metric == metric.name and one.scorer in votes:
                votes[one.scorer].update(
                    {(run.id, position): float(one.values[position]) for position in one.marked.nonzero()[0].tolist()}
                )
    flat = [(vote, *key) for by_answer in votes.values() for key, vote in by_answer.items()]
    alpha = krippendorff_alpha(
        [vote for vote, _, _ in flat],
        [(run, position) for _, run, position in flat],
        [items.groups[items.group[position]] for _, _, position in flat],
        "nominal",
        plan=Resampling(draws=draws, seed=seed),
    )
    pairs = (_pair(first, second, votes) for first, second in combinations(judges, 2))
    return JudgeAgreement(tuple(judges), tuple(pairs), alpha)


def _pair(first: str, second: str, votes: dict[str, dict[tuple[int, int], float]]) -> JudgePair:
    one, other = votes[first], votes[second]
    both = sorted(one.keys() & other.keys())
    return JudgePair(
        first=first,
        second=second,
        n=len(both),
        agreeing=sum(one[key] == other[key] for key in both),
        right_by_first=sum(one[key] == 1 for key in both),
        right_by_second=sum(other[key] == 1 for key in both),
    )


@dataclass(frozen=True)
class FlaggedVote:
    """One flagged vote on one answer of a run: what its judge replied, and the answer as it came."""

    system: str
    condition: str
    item: str
    judge: str
    flags: tuple[str, ...]
    reply: dict[str, Any]
    text: str

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return asdict(self) | {"flags": list(self.flags)}


def flagged_votes(
    store: Store, benchmark: str, systems: Sequence[str] = (), conditions: Sequence[str] = ()
) -> list[FlaggedVote]:
    """All flagged judgements behind the scores of the chosen runs, by run, item (in the benchmark's order) and judge.

    Raises `InputError` for an unknown system or condition.
    """
    order = {item.id: position for position, item in enumerate(store.items(benchmark))}
    found = []
    for run in chosen_runs(store, benchmark, systems, conditions):
        behind = {(row.item_id, row.vote_key) for row in store.score_rows(run, judged=True)}
        votes = {key: vote for key, vote in store.votes(key for _, key in behind).items() if vote.flags}
        if not votes:
            continue
        answers = store.answers(run)
        found += [
            FlaggedVote(
                run.system,
                run.condition,
                item,
                votes[key].judge,
                votes[key].flags,
                dict(votes[key].reply),
                answers[item].text,
            )
            for item, key in sorted(behind, key=lambda one: (order[one[0]], one[1]))
            if key in votes
        ]
    return sorted(found, key=lambda one: (one.system, one.condition, order[one.item], one.judge))


_LISTED = 5


@dataclass(frozen=True)
class GivenAnswer:
    """What one run has for an item; `answer` is None where it was not asked."""

    run: Run
    answer: Answer | None
    scores: tuple[Score, ...]
    votes: tuple[Judgement, ...]

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return {
            "system": self.run.system,
            "condition": self.run.condition,
            "answer": None if self.answer is None else self.answer.model_dump(mode="json"),
            "scores": [score.model_dump(mode="json") for score in self.scores],
            "judgements": [vote.model_dump(mode="json") for vote in self.votes],
        }


@dataclass(frozen=True)
class ItemHistory:
    """An item and what each run has for it, by system and condition."""

    item: Item
    given: tuple[GivenAnswer, ...]

    def to_json(self) -> dict[str, Any]:
        """As programs read it."""
        return {"item": self.item.model_dump(mode="json"), "runs": [one.to_json() for one in self.given]}


def item_history(
    store: Store, benchmark: str, item_id: str, systems: Sequence[str] = (), conditions: Sequence[str] = ()
) -> ItemHistory:
    """Raises `InputError` for an unknown item, system or condition; the nearest id is named."""
    items = known_items(store, benchmark, [item_id])
    runs = chosen_runs(store, benchmark, systems, conditions)
    return ItemHistory(items[item_id], tuple(_given(store, run, item_id) for run in runs))


def known_items(store: Store, benchmark: str, needed: Sequence[str] = ()) -> dict[str, Item]:
    """The items of a benchmark by id. Raises `InputError` for a needed one that it does not have; the nearest id is
    named."""
    items = {item.id: item for item in store.items(benchmark)}
    for name in needed:
        if name not in items:
            raise InputError(store.shown, f"item of {benchmark}", found=repr(name), expected=_ids(items, name))
    return items


def _ids(items: dict[str, Item], found: str) -> str:
    """The ids that there are: those that hold what was typed, else the first ones, where there are many."""
    alike = [name for name in items if found and found in name]
    shown = (alike or list(items))[:_LISTED]
    hint = "" if alike else one_of(items, found).partition("; ")[2]
    more = f" … ({len(items)} in all)" if len(items) > len(shown) else ""
    return f"one of {', '.join(shown)}{more}" + (f"; {hint}" if hint else "")


def _given(store: Store, run: Run, item_id: str) -> GivenAnswer:
    answers, items = schema.answers, schema.items
    with store.reading() as connection:
        number = connection.scalar(
            select(items.c.id)
            .join(schema.benchmarks, schema.benchmarks.c.id == items.c.benchmark)
            .where(schema.benchmarks.c.name == run.benchmark, items.c.item == item_id)
        )
        where = (answers.c.run == run.id, answers.c.item == number)
        row = connection.execute(select(answers).where(*where)).mappings().first()
        answer = None if row is None else answer_from_row(item_id, row)
    rows = sorted(store.score_rows(run, item=item_id), key=lambda row: (row.scorer, row.metric))
    found = tuple(Score(**row._asdict()) for row in rows)
    votes = store.votes(score.vote_key for score in found if score.vote_key)
    while former := {str(one.reply.get("replaces") or "") for one in votes.values()} - {"", *votes}:
        more = store.votes(former)  # decisions of people that were replaced
        if not more:
            break
        votes |= more
    return GivenAnswer(run, answer, found, tuple(votes[key] for key in sorted(votes)))
