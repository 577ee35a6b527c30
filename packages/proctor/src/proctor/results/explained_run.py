"""One side of an explained gap: a run of a store or another program's log, with every way in which its answers are scored.

A side has its `own` scores (as the store or the log has them), those of its answers `reread` by Proctor's reader as it is
now, and those that other judges gave. All are arrays of repetitions × items of the benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import (
    ACCURACY,
    Answer,
    FailedPolicy,
    InputError,
    Item,
    Metric,
    RecordedAnswers,
    Score,
    Status,
    UsageError,
    one_of,
    read_answer,
)
from proctor.results.arrays import ItemTable, Mask
from proctor.results.run_scores import RunScores, load_run_scores
from proctor.runs import CODE, BenchmarkCard, Run, Store, recorded

Floats = NDArray[np.float64]

_RECORDED = "recorded"
_OPTIONS_SHOWN = "options_shown"
_READ = (Status.ANSWERED, Status.ABSTAINED)  # what a text is read as


@dataclass(frozen=True, eq=False)
class Scoring:
    """The scores of a side's answers by one scorer: repetitions × items, NaN without one. `lacking` answers have no score
    and count by a policy (an infrastructure error, no verdict); what has neither is in no figure."""

    scores: Floats
    lacking: Mask

    def values(self, policy: FailedPolicy, worst: float) -> Floats:
        """The mean of each item over its repetitions, where lacking ones are `worst` or left out; NaN for none."""
        filled = np.where(self.lacking, worst if policy is FailedPolicy.WRONG else np.nan, self.scores)
        known = ~np.isnan(filled)
        count = known.sum(axis=0)
        total = np.where(known, filled, 0.0).sum(axis=0)
        means: Floats = np.divide(total, count, out=np.full(filled.shape[1], np.nan), where=count > 0)
        return means

    @property
    def counted(self) -> Mask:
        """The items with a score, or with an answer that lacks one."""
        found: Mask = np.any(~np.isnan(self.scores) | self.lacking, axis=0)
        return found

    @property
    def missing(self) -> Mask:
        """The items with an answer that lacks a score."""
        found: Mask = np.any(self.lacking, axis=0)
        return found

    def among(self, kept: Mask) -> Scoring:
        """The same with the items outside of a mask in no figure."""
        return Scoring(np.where(kept, self.scores, np.nan), self.lacking & kept)

    @classmethod
    def joined(cls, kept: Mask, inside: Scoring, outside: Scoring) -> Scoring:
        """One scoring of the items in a mask, and another one of the rest."""
        return cls(np.where(kept, inside.scores, outside.scores), np.where(kept, inside.lacking, outside.lacking))


@dataclass(frozen=True, eq=False)
class ExplainedItems:
    """What both sides share: the items of all arrays, and the metric of the gap."""

    store: Store
    card: BenchmarkCard
    table: ItemTable
    metric: Metric

    @cached_property
    def listed(self) -> list[Item]:
        """The items in the order of the table."""
        known = {item.id: item for item in self.store.items(self.card.name)}
        return [known[name] for name in self.table.ids]

    @cached_property
    def by_code(self) -> Mask:
        """The items whose answers are scored by comparison with a reference."""
        from proctor.metrics import AccuracyScorer

        if self.metric.name != ACCURACY.name:
            return np.zeros(len(self.table), dtype=np.bool_)
        scorer = AccuracyScorer()
        return np.array([scorer.applies(item) for item in self.listed], dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class ExplainedRun:
    """One side. `name` is what it is called, `scorer` who gave its own scores (CODE: Proctor's, by comparison), `form` the
    other program's format ("" for a run of a store), `policy` how its missing answers count. `answers` are those of each
    repetition by item, `prompts` the prompts that a log states. `judged` are the scores by other scorers, `reread` is
    None where the answers can't be read again, and equals `own` where nothing is read otherwise."""

    shared: ExplainedItems
    name: str
    condition: str
    scorer: str
    policy: FailedPolicy
    settings: Mapping[str, Any]
    answers: Sequence[Mapping[str, Answer]]
    own: Scoring
    reread: Scoring
    judged: Mapping[str, Scoring] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    form: str = ""
    run: Run | None = None

    @property
    def metric(self) -> Metric:
        """The metric of the gap."""
        return self.shared.metric

    @property
    def by_code(self) -> Mask:
        """See `ExplainedItems.by_code`."""
        return self.shared.by_code

    @cached_property
    def items(self) -> Mask:
        """The items that its own score counts under either policy."""
        return self.own.counted

    @property
    def asked_here(self) -> bool:
        """Whether the answers are replies of a model that Proctor asked and read: what was imported was read by what its
        file shows, which is not stored."""
        system = self.settings.get("system")
        return isinstance(system, dict) and "model" in system and _RECORDED not in self.settings

    def prompt_hash(self, item: Item) -> str:
        """The hash of the messages that were sent with an item; "" without a record."""
        from proctor.systems import MESSAGES

        answer = self.answers[0].get(item.id)
        return "" if answer is None else str(answer.extra.get(MESSAGES, ""))

    def prompt_of(self, item: Item, *, whole: bool = True) -> str:
        """The prompt of an item: as the log states it; of Proctor's own run the user's message (`whole`: after that of the
        system), rebuilt. "" where it is not recorded, or can't be rebuilt."""
        from proctor.systems import prompt_as_sent

        answer = self.answers[0].get(item.id)
        if answer is None or not self.asked_here:
            return self.prompts.get(item.id, "")
        sent = prompt_as_sent(
            self.shared.card.name, item, answer, self.settings["system"], recorded(answer), self.condition
        )
        return "" if sent is None else "\n\n".join(sent if whole else sent[1:]).strip()

    @property
    def reader(self) -> str:
        """Which program read its replies."""
        return f"{self.form}'s own score" if self.form and self.scorer != CODE else "Proctor"

    @cached_property
    def read_otherwise(self) -> Mask:
        """The items that code can compare and whose own score differs from that of the answer as it is read now."""
        own, now = (one.values(FailedPolicy.WRONG, self.metric.worst) for one in (self.own, self.reread))
        both = ~np.isnan(own) & ~np.isnan(now) & self.by_code
        found: Mask = both & (own != now)
        return found

    def values(self, scoring: Scoring, policy: FailedPolicy) -> Floats:
        """The values of the items that count, by a scoring and a policy."""
        return scoring.values(policy, self.metric.worst)


def run_to_explain(
    shared: ExplainedItems, run: Run, *, scorer: str = "", policy: FailedPolicy = FailedPolicy.WRONG
) -> ExplainedRun:
    """A run of a store as a side. `scorer` chooses whose scores are its own, if there are several; of an imported run also
    the name of a score that its file stated.

    Raises `UsageError` for an unknown scorer, or several and none chosen, and `InputError` for a run without scores of the
    metric by item.
    """
    store, metric = shared.store, shared.metric
    every = load_run_scores(store, run, shared.table, shared.card)
    scored = {one.scorer: one for one in every if one.metric.name == metric.name}
    form = str(run.settings.get("format", "")) if _RECORDED in run.settings else ""
    stated = {one.metric.name: one for one in every if form and one.scorer == form}
    name = f"{run.system} / {run.condition}"
    chosen = _chosen(name, metric, sorted(scored), "" if scorer in stated else scorer, (*stated,))
    answers = [store.answers(run, number) for number in store.repetitions(run)] or [{}]
    of_program = scorer in stated
    own = _of_scores(stated[scorer] if of_program else scored[chosen])
    if of_program:
        _refuse_out_of_range(name, scorer, metric, own.scores)
    judged = {one: _of_scores(part) for one, part in scored.items() if of_program or one != chosen}
    side = ExplainedRun(
        shared,
        name,
        run.condition,
        scorer if of_program else chosen,
        policy,
        run.settings,
        answers,
        own,
        own,
        judged=judged,
        form=form if of_program else "",
        run=run,
    )
    return replace(side, reread=_read_by_proctor(side))


def _read_by_proctor(side: ExplainedRun) -> Scoring:
    """The scores of a stored run by Proctor's reader: of an imported run as it read the file, of replies of a model that it
    asked as it reads them now, else the run's own."""
    by_code, own = side.by_code, side.own
    if side.form and CODE in side.judged:
        return Scoring.joined(by_code, side.judged[CODE], own).among(own.counted)
    if not (by_code.any() and side.asked_here):
        return own
    listed = side.shared.listed
    now = [_read_again(listed, by_item) for by_item in side.answers]
    return Scoring.joined(by_code, _by_comparison(listed, now, by_code), own).among(own.counted)


def log_to_explain(
    shared: ExplainedItems,
    log: RecordedAnswers,
    *,
    name: str,
    form: str,
    scorer: str = "",
    policy: FailedPolicy = FailedPolicy.WRONG,
) -> ExplainedRun:
    """Another program's log of the benchmark's items as a side. Nothing is stored.

    Its own scores are those that the log states (named by `scorer`, if there are several; CODE takes Proctor's own
    reading), else Proctor's. An answer that the log does not score is in no figure; one that failed is missing. Raises `UsageError` for
    an unknown score, or several and none chosen, and `InputError` for a log without an answer that can be scored, or a
    score out of the metric's range.
    """
    items, metric, by_code = shared.listed, shared.metric, shared.by_code
    rows = {one: number for number, one in enumerate(shared.table.ids)}
    count = 1 + max((answer.repetition for answer in log.answers), default=0)
    answers: list[dict[str, Answer]] = [{} for _ in range(count)]
    for answer in log.answers:
        if answer.item_id in rows:
            answers[answer.repetition][answer.item_id] = answer
    own = reread = _by_comparison(items, answers, by_code)
    stated = _stated(log, rows, count)
    chosen = _chosen(name, metric, [*sorted(stated), *([CODE] if by_code.any() else [])], scorer)
    if chosen != CODE:
        failed = np.array([[_failed(by_item.get(one)) for one in rows] for by_item in answers], dtype=np.bool_)
        own = Scoring(np.where(failed, np.nan, stated[chosen]), failed)
        _refuse_out_of_range(name, chosen, metric, own.scores)
        reread = Scoring.joined(by_code, reread, own)
    return ExplainedRun(
        shared, name, log.condition, chosen, policy, log.settings, answers, own, reread, prompts=log.prompts, form=form
    )


def _chosen(name: str, metric: Metric, known: Sequence[str], scorer: str, more: Sequence[str] = ()) -> str:
    """Whose scores are a side's own; `more` could be chosen as well. A judge's scores of accuracy hold those by comparison,
    too."""
    if scorer:
        if scorer not in known:
            choices = one_of([*known, *more], scorer)
            each = "Given twice, --scorer is one for each side."
            raise UsageError(f"--scorer {scorer!r} has not scored {name}: choose {choices}. {each}")
        return scorer
    judges = [one for one in known if one != CODE]
    if not known:
        raise InputError(name, found=f"no score of {metric.label} by item", expected="one: proctor score, or --metric")
    if len(judges) > 1:
        raise UsageError(f"{name} has several scores of {metric.label}: choose --scorer {one_of(known)}")
    return judges[0] if judges else CODE


def _read_again(items: Sequence[Item], answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """The answers of one repetition, read from their texts once more."""
    found = {}
    for item in items:
        answer = answers.get(item.id)
        if answer is None:
            continue
        readable = answer.status in _READ and answer.text.strip() and _OPTIONS_SHOWN not in answer.extra
        unread = {"status": Status.ANSWERED, "parsed": None, "problem": ""}
        found[item.id] = read_answer(item, answer.model_copy(update=unread)) if readable else answer
    return found


def _by_comparison(items: Sequence[Item], answers: Sequence[Mapping[str, Answer]], by_code: Mask) -> Scoring:
    """The answers scored by comparison with the references."""
    from proctor.metrics import AccuracyScorer

    scorer = AccuracyScorer()
    scores = np.full((len(answers), len(items)), np.nan)
    lacking = np.zeros(scores.shape, dtype=np.bool_)
    for row, by_item in enumerate(answers):
        for column in np.flatnonzero(by_code).tolist():
            item = items[column]
            answer = by_item.get(item.id)
            if answer is None:
                continue
            if answer.status is Status.FAILED:
                lacking[row, column] = True
            else:
                scores[row, column] = scorer.compute(item, answer).value
    return Scoring(scores, lacking)


def _of_scores(scored: RunScores) -> Scoring:
    """The scores of a run by one scorer. Items that were not asked are in no figure: they are a difference of the items."""
    parts = scored.repeated or (scored,)
    scores = np.stack([np.where(one.scorable, one.scores, np.nan) for one in parts])
    lacking = np.stack([one.lacking & one.outcomes.asked for one in parts])
    return Scoring(np.where(lacking, np.nan, scores), lacking)


def _failed(answer: Answer | None) -> bool:
    return answer is not None and answer.status is Status.FAILED


def _stated(log: RecordedAnswers, rows: Mapping[str, int], count: int) -> dict[str, Floats]:
    """The scores that a log states, by their names."""
    found: dict[str, Floats] = {}
    scores: Sequence[Score] = (*log.scores, *log.compared)
    for score in scores:
        if score.item_id in rows:
            table = found.setdefault(score.metric, np.full((count, len(rows)), np.nan))
            table[score.repetition, rows[score.item_id]] = score.value
    return found


def _refuse_out_of_range(name: str, scorer: str, metric: Metric, scores: Floats) -> None:
    known = scores[~np.isnan(scores)]
    outside = known[(known < metric.low) | (known > metric.high)]
    if outside.size:
        expected = f"a number from {metric.low:g} to {metric.high:g}, or another --scorer"
        raise InputError(name, f"score {scorer}", found=f"{outside[0]:g}", expected=expected)
