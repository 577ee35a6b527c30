"""The tables of a board (ranks, wins, leads), and the choice of the best run by its mean over buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from pydantic import JsonValue

from proctor.core import FailedPolicy, InputError, count_of, percent
from proctor.results.performance import AnalysisRow
from proctor.results.ranking import Board, Contest, rank_runs
from proctor.results.run_scores import Lacking
from proctor.runs import Run, Store
from proctor.stats import (
    RANK_RULES,
    RULES,
    Estimate,
    Floats,
    RankingPlan,
    Resampling,
    Standing,
    bucket_columns,
    bucket_mean_interval,
    competition_ranks,
    holm_known,
    mean_over_buckets,
    paired_difference,
    sums_difference,
)

TOO_FEW = "too few groups"
"""The verdict if no p could be significant, whatever the answers."""

_POSITIONS = (
    *("board", "system", "rank", "score", "mean", "win_rate", "win_rate_tied", "head_to_head", "resampled_rank_low"),
    *(
        "resampled_rank_high",
        "resampled_rank_sd",
        "won",
        "lost",
        "tied",
        "baseline",
        "below_line",
        "tau",
        "rank_by_mean",
        "rank_low",
    ),
    *("rank_high", "first_without"),
)


def ranking_rows(boards: Sequence[Board]) -> list[AnalysisRow]:
    """One row per system and board: its rank with the spread and standard deviation over samples, the score of the rule,
    the mean over the buckets with its rank and the rank's confidence interval, and its pairs won, lost and tied. A
    baseline has only its mean."""
    rows = []
    for board in boards:
        moved = {run.standing.name: run.standing.stability for run in board.runs}
        for row in board_rows(board):
            if row["rank"] is None and not row["baseline"]:
                continue
            spread = moved.get(row["system"])
            more = {"resampled_rank_sd": resampled_rank_sd(spread.chances) if spread else None}
            more["tau"] = None if row["baseline"] else board.standings.tau
            rows.append({name: (row | more)[name] for name in _POSITIONS})
    return rows


def wins_of(standing: Standing) -> tuple[int, int, int]:
    """The numbers of pairs won (ahead in more buckets than behind), lost and tied."""
    leads = [standing.ahead[name] - standing.behind[name] for name in standing.ahead]
    return sum(lead > 0 for lead in leads), sum(lead < 0 for lead in leads), leads.count(0)


def resampled_rank_sd(chances: Sequence[float]) -> float:
    """The standard deviation of a rank, from the share of samples with each rank from 1 on.

    >>> resampled_rank_sd((0.5, 0.5))
    0.5
    """
    rank = np.arange(1, len(chances) + 1)
    mean = np.average(rank, weights=chances)
    return float(np.sqrt(np.average((rank - mean) ** 2, weights=chances)))


def rank_chance_rows(boards: Sequence[Board]) -> list[AnalysisRow]:
    """The chance of every rank in long form, for a blob plot."""
    return [
        {"board": board.name, "system": run.standing.name, "rank": row, "chance": chance}
        for board in boards
        for run in board.runs
        if run.standing.stability is not None
        for row, chance in enumerate(run.standing.stability.chances, start=1)
    ]


def rule_rows(boards: Sequence[Board]) -> list[AnalysisRow]:
    """Each system's score and rank under every rule, from the same ranks in the buckets. Ties are not broken, so that only
    the rules are compared; ranks of "copeland" may therefore be shared that the board splits."""
    rows = []
    for board in boards:
        systems = [run.standing for run in board.runs]
        shape = (len(systems), len(board.standings.buckets))
        ranks = np.array([system.ranks for system in systems], dtype=np.float64).reshape(shape).T
        for rule in RULES:
            means = np.array([system.mean or 0.0 for system in systems])
            scores = RANK_RULES[rule](ranks) if rule in RANK_RULES else means
            rows += [
                {"board": board.name, "system": one.name, "rule": rule, "score": float(score), "rank": int(board_rank)}
                for one, score, board_rank in zip(systems, scores, competition_ranks(scores), strict=True)
            ]
    return rows


def significance_rows(boards: Sequence[Board]) -> list[AnalysisRow]:
    """Every pair in every bucket, for a significance map: the system with the better accuracy, and the adjusted p. `better`
    is empty if p is above the level of the tests, or the bucket is empty."""
    rows = []
    for board in boards:
        systems = [run.standing for run in board.runs]
        for number, (bucket, table) in enumerate(zip(board.standings.buckets, board.standings.p_values, strict=True)):
            for i, first in enumerate(systems):
                for j, second in enumerate(systems[i + 1 :], start=i + 1):
                    rows.append(
                        {
                            "board": board.name,
                            "bucket": bucket,
                            "first": first.name,
                            "second": second.name,
                            "p": float(table[i, j]),
                            "better": _better(first, second, number, float(table[i, j]), board.alpha),
                        }
                    )
    return rows


def _better(first: Standing, second: Standing, bucket: int, p: float, alpha: float) -> str:
    one, other = first.scores[bucket], second.scores[bucket]
    if one is None or other is None or one == other or p > alpha:
        return ""
    return first.name if one > other else second.name


def pairwise_win_rows(boards: Sequence[Board]) -> list[AnalysisRow]:
    """Every pair: the numbers of buckets in which the first has the better, the worse, and the same rank."""
    return [
        {
            "board": board.name,
            "first": one.standing.name,
            "second": name,
            "won": one.standing.ahead[name],
            "lost": one.standing.behind[name],
            "tied": one.standing.tied[name],
        }
        for board in boards
        for row, one in enumerate(board.runs)
        for name in [other.standing.name for other in board.runs[row + 1 :]]
    ]


def tau_rows(boards: Sequence[Board]) -> list[AnalysisRow]:
    """Kendall's τ-b between the published ranking and the rankings of samples of groups: its spread over samples, and its
    mean if all systems were equal (above 0, since samples resemble the data that they are drawn from)."""
    rows: list[AnalysisRow] = []
    for board in boards:
        taus = board.standings.taus
        row: AnalysisRow = {"board": board.name, "samples": len(taus), "mean": board.standings.tau}
        row["mean_if_equal"] = board.standings.tau_equal
        for name, share in (("p2_5", 0.025), ("q1", 0.25), ("median", 0.5), ("q3", 0.75), ("p97_5", 0.975)):
            row[name] = float(np.quantile(taus, share)) if taus else None
        rows.append(row)
    return rows


def lead_rows(
    board: Board, system: str, against: Sequence[str] = (), plan: Resampling = Resampling()
) -> list[AnalysisRow]:
    """The lead of one system over others (default: the baselines; without any, all others) in each bucket and on all
    questions, with interval and p, on the questions that both have a score for.

    `p_adjusted` is adjusted by Holm over the buckets against the same system (unless the board's tests are not adjusted)
    and decides the verdict. The comparison on all questions is not adjusted. A bucket with too few groups for any
    significant p has the verdict `TOO_FEW`. `plan` is that of the intervals; tests always draw whole groups. Raises
    `InputError` for a system that is not on the board, or has no rank there since its run is incomplete.
    """
    ranked = [run.standing.name for run in board.runs]
    open_ones = {unranked_run.name: unranked_run.lacking for unranked_run in board.unranked}
    for name in (system, *against):
        if name in open_ones and (open_ones[name].unscored or not open_ones[name].incomplete):
            shown = f"{name!r}, whose answers wait for a judge"
            raise InputError(f"board {board.name}", found=shown, expected="scores of them (proctor score)")
        if name in open_ones:
            shown = f"{name!r}, whose run is incomplete"
            raise InputError(f"board {board.name}", found=shown, expected="--failed wrong")
        if name not in board.names:
            expected = f"one of {', '.join(board.names)}"
            raise InputError(f"board {board.name}", found=repr(name), expected=expected)
    own = [baseline.name for baseline in board.baselines]
    rows = []
    for other in [name for name in against or own or ranked if name != system]:
        found = [_lead(board, system, other, number, plan) for number in range(-1, len(board.standings.buckets))]
        rows += _judged(board, [row for row in found if row["n"]])
    return rows


def _lead(board: Board, system: str, other: str, number: int, plan: Resampling) -> AnalysisRow:
    """One comparison in one bucket, or on all questions (−1)."""
    scores = board.scores
    first, second = scores.right[system], scores.right[other]
    here = ((scores.bucket == number) | (number < 0)) & ~np.isnan(first) & ~np.isnan(second)
    one = paired_difference(first[here], second[here], scores.group[here], plan.within(0, 1))
    return {
        "board": board.name,
        "system": system,
        "against": other,
        "bucket": ("all", *board.standings.buckets)[number + 1],
        "n": one.n,
        "groups": one.groups,
        "lead": one.value,
        "ci_low": one.ci_low,
        "ci_high": one.ci_high,
        "p": one.p,
        "two_level": plan.two_level,
    }


def _judged(board: Board, rows: list[AnalysisRow]) -> list[AnalysisRow]:
    """The rows against one system with adjusted p and verdict; the first row is on all questions."""
    p = [row["p"] for row in rows]
    adjusts = board.correction != "none"
    adjusted = [*p[:1], *(holm_known(p[1:]) if adjusts else p[1:])]
    tests = sum(value is not None for value in p[1:])
    judged = []
    for number, (row, adjusted_p) in enumerate(zip(rows, adjusted, strict=True)):
        alone = number == 0 or not adjusts
        smallest_p = (1 if alone else tests) * 2.0 ** (1 - row["groups"])
        verdict = TOO_FEW if smallest_p > board.alpha else _verdict(row["lead"], adjusted_p, board.alpha)
        judged.append(row | {"p_adjusted": adjusted_p, "verdict": verdict})
    return judged


def _verdict(lead: float | None, p: float | None, alpha: float) -> str:
    if not lead or p is None or p > alpha:
        return "not shown"
    return "ahead" if lead > 0 else "behind"


def board_rows(board: Board) -> list[dict[str, Any]]:
    """One flat row per system: `mean` is the pre-evaluation score with its rank and the rank's confidence interval, `won`,
    `lost` and `tied` are pairwise wins, losses and ties, `resampled_rank_low` to `resampled_rank_high` the spread of the rank over samples.
    `win_rate` is over all systems, `win_rate_tied` and `head_to_head` are among those that share a rank by the rule;
    `first_without` names who is first if the system is left out (joined by "; " where several share rank 1).
    Baselines and unranked runs have no rank; unranked runs have `mean_if_wrong` and `mean_if_excluded` for a mean."""
    rows = []
    first = {removal.name: "; ".join(removal.first) for removal in board.standings.removals}
    for run in board.runs:
        standing, spread = run.standing, run.standing.stability
        row = _flat(board, standing.name, run.lacking) | {name: getattr(standing, name) for name in _OF_STANDING}
        row |= dict(zip(("won", "lost", "tied"), wins_of(standing), strict=True))
        row |= {"rank_by_mean": standing.mean_rank, "below_line": run.below, "advances": run.advances}
        row |= {"first_without": first.get(standing.name)}
        if spread is not None:
            row |= {
                "resampled_rank_low": spread.resampled_rank_low,
                "resampled_rank_high": spread.resampled_rank_high,
                "p_first": spread.chances[0],
            }
        rows.append(row)
    rows += [
        _flat(board, unranked_run.name, unranked_run.lacking)
        | {"mean_if_wrong": unranked_run.low, "mean_if_excluded": unranked_run.high}
        for unranked_run in board.unranked
    ]
    rows += [_flat(board, base.name, base.lacking) | {"mean": base.mean, "baseline": True} for base in board.baselines]
    return rows


_OF_STANDING = (
    *("rank", "score", "mean", "rank_low", "rank_high", "win_rate", "win_rate_tied", "head_to_head", "tie_broken"),
)
_COLUMNS = (
    *("board", "rank", "system", "score", "won", "lost", "tied", "mean", "rank_by_mean", "rank_low", "rank_high"),
    *(
        "win_rate",
        "win_rate_tied",
        "head_to_head",
        "tie_broken",
        "first_without",
        "resampled_rank_low",
        "resampled_rank_high",
        "p_first",
    ),
    *("baseline", "below_line", "advances", "mean_if_wrong", "mean_if_excluded"),
)


def _flat(board: Board, system: str, lacking: Lacking) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(_COLUMNS)
    return row | {"board": board.name, "system": system, "baseline": False} | asdict(lacking)


def board_json(board: Board) -> dict[str, Any]:
    """One board with all details."""
    standings = board.standings
    details: list[dict[str, Any]] = [
        {
            "ranks": dict(zip(standings.buckets, run.standing.ranks, strict=True)),
            "scores": dict(zip(standings.buckets, run.standing.scores, strict=True)),
            "buckets_ahead": run.standing.ahead,
            "buckets_behind": run.standing.behind,
            "buckets_tied": run.standing.tied,
            "chances": None if run.standing.stability is None else list(run.standing.stability.chances),
        }
        for run in board.runs
    ]
    details += [{} for _ in board.unranked]
    details += [{"scores": dict(zip(standings.buckets, baseline.scores, strict=True))} for baseline in board.baselines]
    return {
        "board": board.name,
        "rule": standings.rule,
        "ties": standings.ties,
        "tie_orders": [asdict(order) | {"differs": order.differs} for order in standings.tie_orders],
        "without": [asdict(removal) for removal in standings.removals],
        "questions": board.items,
        "scored_by": board.judge,
        "failed": [policy.value for policy in board.policies],
        "latency": "required" if board.timed else "optional",
        "left_out": board.left_out,
        "unbucketed": board.unbucketed,
        "groups": standings.groups,
        "empty_buckets": list(standings.empty),
        "bucket_groups": dict(zip(standings.buckets, standings.bucket_groups, strict=True)),
        "smallest_p": dict(zip(standings.buckets, standings.reach, strict=True)),
        "too_few_groups": list(board.powerless),
        "disqualified": [ruling.model_dump(include={"system", "reason", "since"}) for ruling in board.disqualified],
        "tau": standings.tau,
        "tau_low": standings.tau_low,
        "tau_if_equal": standings.tau_equal,
        "rules": [{name: row[name] for name in ("rule", "system", "rank", "score")} for row in rule_rows([board])],
        "systems": [row | more for row, more in zip(board_rows(board), details, strict=True)],
        "p_values": {name: table.tolist() for name, table in zip(standings.buckets, standings.p_values, strict=True)},
    }


CHOICE_RULE = (
    "the highest mean over buckets of the accuracy in each; of equal ones the highest mean over buckets of the share of "
    "samples of groups in which a system is best of these; of those the first by name"
)


@dataclass(frozen=True)
class Candidate:
    """One run that may be chosen. `mean` is over the buckets that have questions, `buckets` the accuracy in each (None: no
    question). Intervals are clustered by group, and None with too few groups. `win_rate` is the share of samples of
    groups in which it is best of all, `win_rate_tied` the same among runs of the same mean, `lead` the chosen run's mean minus its
    own (None for the chosen run)."""

    name: str
    settings: dict[str, JsonValue]
    mean: float
    ci_low: float | None
    ci_high: float | None
    buckets: dict[str, float | None]
    win_rate: float | None
    win_rate_tied: float | None
    rank_low: int | None
    rank_high: int | None
    lead: float | None = None
    lead_low: float | None = None
    lead_high: float | None = None
    lead_p: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class ModelChoice:
    """The candidates, the chosen one first; `by` says what decided: "mean", "win rate" (among equal means) or "name".
    `left_out` questions have no score for any system."""

    benchmark: str
    fingerprint: str
    condition: str
    candidates: tuple[Candidate, ...]
    by: str
    buckets: tuple[str, ...]
    items: int
    groups: int
    left_out: int
    draws: int
    seed: int

    @property
    def chosen(self) -> Candidate:
        """The best candidate."""
        return self.candidates[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on the certainty of the choice."""
        sentences = []
        if self.by != "mean":
            sentences.append(f"{self.chosen.name} has the highest mean with others: its {self.by} decided.")
        for candidate in self.candidates[1:]:
            between = (
                "no interval"
                if candidate.lead_low is None
                else f"{percent(candidate.lead_low)} to {percent(candidate.lead_high)}"
            )
            shown = "" if candidate.lead_p is not None and candidate.lead_p <= 0.05 else ": not shown to be better"
            p = "no p" if candidate.lead_p is None else f"p {candidate.lead_p:.3g}"
            sentences.append(f"Lead over {candidate.name}: {percent(candidate.lead)} ({between}, {p}){shown}.")
        if self.left_out:
            sentences.append(f"Not counted: {count_of(self.left_out, 'question')} that no scorer can score.")
        sentences.append(
            "On these questions the chosen one was lucky, too: its figure on others is expected to be lower."
        )
        return tuple(sentences)

    def to_json(self) -> dict[str, Any]:
        """The whole evidence as plain data."""
        return {"chosen": self.chosen.name, "rule": CHOICE_RULE, "notes": list(self.notes), **asdict(self)}


def choose_run(store: Store, benchmark: str, contest: Contest, plan: RankingPlan) -> ModelChoice:
    """The best run of a contest by `CHOICE_RULE`. Raises `InputError` for a run with failed or unasked items, and for fewer
    than two runs."""
    board = rank_runs(store, benchmark, contest, plan=plan)[0]
    incomplete = [unranked_run.name for unranked_run in board.unranked]
    incomplete += [run.standing.name for run in board.runs if run.lacking.incomplete]
    if incomplete:
        raise InputError(store.shown, found=f"incomplete answers of {incomplete[0]}", expected="all of them")
    if len(board.runs) < 2:
        raise InputError(store.shown, found=f"{len(board.runs)} run", expected="two or more to choose from")
    runs = {run.system: run for run in store.runs(benchmark) if run.condition == contest.condition}
    standings = [run.standing for run in board.runs]
    first, second = standings[0], standings[1]
    by = "mean" if first.score > second.score else "win rate" if first.rank < second.rank else "name"
    return ModelChoice(
        benchmark=benchmark,
        fingerprint=store.fingerprint(benchmark),
        condition=contest.condition,
        candidates=tuple(_candidate(board, standing, first, runs, plan) for standing in standings),
        by=by,
        buckets=board.standings.buckets,
        items=board.items,
        groups=board.standings.groups,
        left_out=board.left_out,
        draws=plan.draws,
        seed=plan.seed,
    )


def bucket_mean(store: Store, benchmark: str, contest: Contest, plan: Resampling = Resampling()) -> Estimate:
    """The mean over buckets of the accuracy of the only system of a contest, with its interval over groups. Lacking items
    are wrong. Raises `InputError` without a run."""
    contest = replace(contest, failed=FailedPolicy.WRONG, baselines=("none",))
    board = rank_runs(store, benchmark, contest, plan=RankingPlan(rule="mean", draws=1))[0]
    return _bucket_mean(board, contest.systems[0], plan.within(0, 1))


def _bucket_mean(board: Board, name: str, plan: Resampling) -> Estimate:
    scores = board.scores
    return bucket_mean_interval(scores.right[name], scores.bucket, scores.group, len(board.standings.buckets), plan)


def _candidate(board: Board, standing: Standing, best: Standing, runs: dict[str, Run], plan: RankingPlan) -> Candidate:
    drawn = Resampling(draws=plan.draws, seed=plan.seed, level=plan.level, bounds=(0, 1))
    found = _bucket_mean(board, standing.name, drawn)
    lead: dict[str, float | None] = {}
    if standing is not best:
        first, second = _columns(board, best.name), _columns(board, standing.name)
        apart = sums_difference(first, second, board.scores.group, mean_over_buckets, plan=drawn)
        lead = {"lead": apart.value, "lead_low": apart.ci_low, "lead_high": apart.ci_high, "lead_p": apart.p}
    return Candidate(
        name=standing.name,
        settings=runs[standing.name].settings,
        mean=standing.mean or 0.0,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        buckets=dict(zip(board.standings.buckets, standing.scores, strict=True)),
        win_rate=standing.win_rate,
        win_rate_tied=standing.win_rate_tied,
        rank_low=standing.rank_low,
        rank_high=standing.rank_high,
        **lead,
    )


def _columns(board: Board, name: str) -> Floats:
    return bucket_columns(board.scores.right[name], board.scores.bucket, len(board.standings.buckets))
