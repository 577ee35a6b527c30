"""How far judges agree with each other and with people, and the judgements that a person should look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from sqlalchemy import select

from proctor.core import Judgement, Metric
from proctor.judges import JUDGE_VOTE
from proctor.runs import schema
from proctor.runs.results import chosen_runs
from proctor.runs.store import Run, Store
from proctor.runs.table import load_items, load_raw_series
from proctor.stats import Estimate, Resampling, krippendorff_alpha


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
                    {(run.id, place): float(one.values[place]) for place in one.marked.nonzero()[0].tolist()}
                )
    flat = [(vote, *key) for by_answer in votes.values() for key, vote in by_answer.items()]
    alpha = krippendorff_alpha(
        [vote for vote, _, _ in flat],
        [(run, place) for _, run, place in flat],
        [items.groups[items.group[place]] for _, _, place in flat],
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
    """All flagged votes behind the scores of the chosen runs, by run, item (in the benchmark's order) and judge.

    Raises `InputError` for an unknown system or condition.
    """
    order = {item.id: place for place, item in enumerate(store.items(benchmark))}
    found = []
    for run in chosen_runs(store, benchmark, systems, conditions):
        behind = _votes(store, run)
        votes = {key: vote for key, vote in store.votes(key for _, key in behind).items() if vote.flags}
        if not votes:
            continue
        answers = store.answers(run)
        found += [
            _flagged(run, item, votes[key], answers[item].text)
            for item, key in sorted(behind, key=lambda one: (order[one[0]], one[1]))
            if key in votes
        ]
    return sorted(found, key=lambda one: (one.system, one.condition, order[one.item], one.judge))


def _votes(store: Store, run: Run) -> set[tuple[str, str]]:
    """Each item with the keys of the votes behind its scores."""
    scores, items = schema.scores, schema.items
    query = (
        select(items.c.item, scores.c.vote_key)
        .join(items, items.c.id == scores.c.item)
        .where(scores.c.run == run.id, scores.c.vote_key != "")
        .distinct()
    )
    with store.reading() as connection:
        return {(row.item, row.vote_key) for row in connection.execute(query)}


def _flagged(run: Run, item: str, vote: Judgement, text: str) -> FlaggedVote:
    return FlaggedVote(run.system, run.condition, item, vote.judge, vote.flags, dict(vote.reply), text)
