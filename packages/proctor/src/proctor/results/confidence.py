"""How well confidences and abstentions tell right answers from wrong ones, for each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core import Answer, Confidence, FailedPolicy, InputError, Item, Status
from proctor.core.formats import declines
from proctor.results.arrays import Ints, ItemTable, load_items
from proctor.results.results import Options
from proctor.results.run_scores import RunScores, load_accuracy
from proctor.runs import BenchmarkCard, Run, Store, chosen_runs
from proctor.stats import (
    CalibrationGap,
    CoveragePoint,
    Estimate,
    Floats,
    Resampling,
    RiskCoverage,
    SureErrors,
    calibration,
    mean_interval,
    risk_coverage,
    sure_errors,
)

UNSEEN = ("black", "text-only")
"""The conditions under which nothing of an item can be seen, so that an answer is made up."""

SURE = 0.9
"""The confidence from which a wrong answer counts among the errors of those who are sure."""

SHOWN_COVERAGES = (0.5, 0.8)
"""The coverages whose accuracy stands in the table."""

_DIGITS = 3  # confidences are compared to a thousandth


@dataclass(frozen=True)
class ConfidenceResult:
    """One run: how its answers ended, and what its confidences are worth.

    `n` items in `groups` are right or wrong; of a run with several `repetitions` each of them is an answer of its own, and
    there are `answers`: else as many as items. `lacking` answers failed, were not asked or have no verdict: they are wrong
    (`policy` "wrong") or left out ("exclude"). Of the `answers`, `with_confidence` have a confidence, and
    `without_confidence` have none; `abstained` ones, and those that never came, have none that counts. `missing` are
    the reasons for confidences that were asked for and are missing, the most frequent first. `declined` counts refusals in
    words other than the declared form, read with the error rates that the documentation states: they are unreadable, or free
    text, and no score depends on this count. `sources` are where the confidences are from, `abstain` what the prompt said.

    `curve` is over all `answers`, where one without a confidence comes last; `calibration` and `sure` are over those with
    one. Both are None where no answer has one. `accuracy` is that of `results`, the mean over items; each answer counts once
    in all else, and every interval resamples groups, so that an item is never taken for several. `made_up` is the share of
    answers that were given although nothing could be
    seen (`UNSEEN`), in runs that were allowed to abstain; None elsewhere. Free text that declines in other words is not
    made up.
    """

    system: str
    condition: str
    abstain: str
    sources: tuple[str, ...]
    n: int
    groups: int
    lacking: int
    policy: str
    with_confidence: int
    without_confidence: int
    abstained: int
    abstained_right: int
    declined: int
    missing: tuple[tuple[str, int], ...]
    accuracy: Estimate
    curve: RiskCoverage | None
    calibration: CalibrationGap | None
    sure: SureErrors | None
    made_up: Estimate | None
    answers: int
    repetitions: int = 1

    def to_json(self) -> dict[str, Any]:
        """The figures as plain data, flat; the points of the curve and the bins as lists. `answers` and `repetitions`
        where there are several repetitions."""
        several = {"answers": self.answers, "repetitions": self.repetitions} if self.repetitions > 1 else {}
        return {
            "system": self.system,
            "condition": self.condition,
            "abstain": self.abstain,
            "sources": list(self.sources),
            **{name: getattr(self, name) for name in _COUNTED},
            **several,
            "policy": self.policy,
            "missing": dict(self.missing),
            **_flat("accuracy", self.accuracy),
            **_of_curve(self.curve),
            **_of_calibration(self.calibration),
            **_of_sure(self.sure),
            **_flat("made_up", self.made_up),
            "made_up_n": None if self.made_up is None else self.made_up.n,
            "curve": [{"coverage": one.coverage, **_flat("risk", one.risk)} for one in self.points],
            "bins": [
                {
                    "low": one.low,
                    "high": one.high,
                    "confidence": one.confidence,
                    "n": one.accuracy.n,
                    **_flat("accuracy", one.accuracy),
                }
                for one in (self.calibration.bins if self.calibration else ())
            ],
        }

    @property
    def points(self) -> tuple[CoveragePoint, ...]:
        """The points of the curve; none without one."""
        return () if self.curve is None else self.curve.points

    def accuracy_at(self, coverage: float) -> Estimate | None:
        """The accuracy of the share `coverage` of the items with the highest confidence: 1 minus the risk of the curve."""
        return _accuracy_at(self.curve, coverage)


_COUNTED = (
    "n",
    "groups",
    "lacking",
    "with_confidence",
    "without_confidence",
    "abstained",
    "abstained_right",
    "declined",
)


def _flat(name: str, found: Estimate | None) -> dict[str, float | None]:
    one = found or Estimate(None, None, None, 0, 0)
    return {name: one.value, f"{name}_ci_low": one.ci_low, f"{name}_ci_high": one.ci_high}


def _of_curve(curve: RiskCoverage | None) -> dict[str, float | None]:
    found = _flat("area", None if curve is None else curve.area)
    found |= (
        {"area_best": None, "covered": None} if curve is None else {"area_best": curve.best, "covered": curve.covered}
    )
    for share in SHOWN_COVERAGES:
        found |= _flat(f"accuracy_at_{share:g}", _accuracy_at(curve, share))
    return found


def _of_calibration(own: CalibrationGap | None) -> dict[str, float | None]:
    names = {"calibration_error": "error", "bias": "bias", "brier": "brier"}
    found: dict[str, float | None] = {"calibration_error_debiased": None if own is None else own.debiased}
    for shown, name in names.items():
        found |= _flat(shown, None if own is None else getattr(own, name))
    return found


def _of_sure(sure: SureErrors | None) -> dict[str, float | None]:
    names = {
        "errors": "sure_errors",
        "n": "sure_n",
        "groups": "sure_groups",
        "share": "sure_wrong",
        "limit": "sure_wrong_limit",
    }
    return {"sure_from": SURE} | {name: None if sure is None else getattr(sure, own) for own, name in names.items()}


def _accuracy_at(curve: RiskCoverage | None, coverage: float) -> Estimate | None:
    risk = next((point.risk for point in curve.points if point.coverage == coverage), None) if curve else None
    if risk is None or risk.value is None:
        return None
    low = None if risk.ci_high is None else 1 - risk.ci_high
    high = None if risk.ci_low is None else 1 - risk.ci_low
    return Estimate(1 - risk.value, low, high, risk.n, risk.groups)


@dataclass(frozen=True)
class ConfidenceResults:
    """The rows, with the card and the options that they were computed with. `repeated`: some run has several
    repetitions."""

    card: BenchmarkCard
    options: Options
    rows: tuple[ConfidenceResult, ...]
    repeated: bool = False


def confidence_results(store: Store, benchmark: str, options: Options = Options()) -> ConfidenceResults:
    """What confidences and abstentions are worth, for each chosen run that has some or was allowed to abstain.

    Right or wrong is accuracy, by code, or by the judge that `leaderboard` takes for free text. An abstention and an answer
    that never came are accepted after every answer with a confidence. Without a policy, items that lack an answer are
    wrong: a missing answer must not make a system look sure. All repetitions count, and intervals resample groups.
    Confidences are compared to a thousandth.

    Raises `InputError` for an unknown system or condition, and where no run has a confidence or was allowed to abstain.
    """
    card = store.card(benchmark)
    items = load_items(store, card, all_items=options.all_items)
    runs = chosen_runs(store, benchmark, options.systems, options.conditions)
    known = {item.id: item for item in store.items(benchmark)}
    scored = load_accuracy(store, runs, items, card) if runs else {}
    rows, asked = [], [known[name] for name in items.ids]
    for run in runs:
        answers = [store.answers(run, number) for number in range(scored[run.id].times)]
        if not (abstain_of(run) == "allow" or any(_tells(answer) for one in answers for answer in one.values())):
            continue
        rows.append(_of_run(run, asked, answers, scored[run.id], items, options))
    if not rows:
        expected = "a run that asked for one: proctor run --confidence stated, or --abstain allow"
        raise InputError(store.shown, found=f"no confidence and no abstention in {len(runs)} runs", expected=expected)
    return ConfidenceResults(card, options, tuple(rows), any(row.repetitions > 1 for row in rows))


def abstain_of(run: Run) -> str:
    """What a run's prompt said of abstaining: "allow", "forbid" or ""."""
    system = run.settings.get("system")
    said = system.get("abstain", "") if isinstance(system, Mapping) else ""
    return str(said)


def _tells(answer: Answer) -> bool:
    return answer.status is Status.ABSTAINED or answer.confidence is not None


def _of_run(
    run: Run,
    asked: Sequence[Item],
    answers: Sequence[Mapping[str, Answer]],
    scored: RunScores,
    items: ItemTable,
    options: Options,
) -> ConfidenceResult:
    """One row. The arrays have an entry for each answer, one repetition of all items after the other."""
    repetitions = scored.repeated or (scored,)
    policy = options.failed or FailedPolicy.WRONG
    values = np.concatenate([one.values(policy) for one in repetitions])
    there = ~np.isnan(values)
    given = [one.get(item.id) for one in answers for item in asked]
    told = [_confidence(one) for one in given]
    sure = np.array([_value_of(one) for one in told])
    group = np.tile(items.group, len(repetitions))
    losses, groups = 1 - values[there], group[there]
    plan = Resampling(options.draws, options.level, options.seed, bounds=(0.0, 1.0))
    pairs = zip([item for _ in answers for item in asked], given, strict=True)
    declined = np.array([_declined(item, answer) for item, answer in pairs], dtype=np.bool_)
    means = scored.values(policy)
    valued = ~np.isnan(means)
    curve, calibrated, errors = _worth(losses, sure[there], groups, plan)
    return ConfidenceResult(
        system=run.system,
        condition=run.condition,
        abstain=abstain_of(run),
        sources=_sources(told),
        n=int(valued.sum()),
        answers=int(there.sum()),
        repetitions=len(repetitions),
        groups=len(np.unique(groups)),
        lacking=sum(int(np.sum(one.lacking & one.scorable)) for one in repetitions),
        policy=policy.value if np.any(scored.lacking) else "",
        **_counts(given, sure, values),
        declined=int(declined.sum()),
        missing=_reasons(told),
        accuracy=mean_interval(means[valued], items.group[valued], replace(plan, shares=scored.shares_of_hits)),
        curve=curve,
        calibration=calibrated,
        sure=errors,
        made_up=_made_up(run, given, declined, group, plan),
    )


def _confidence(answer: Answer | None) -> Confidence | None:
    """The confidence of an answer that counts: an abstention answers nothing to be sure of."""
    return None if answer is None or answer.status is not Status.ANSWERED else answer.confidence


def _value_of(one: Confidence | None) -> float:
    return np.nan if one is None or one.value is None else round(one.value, _DIGITS)


def _sources(told: Sequence[Confidence | None]) -> tuple[str, ...]:
    return tuple(sorted({one.source for one in told if one is not None and one.value is not None}))


def _reasons(told: Sequence[Confidence | None]) -> tuple[tuple[str, int], ...]:
    """Why confidences are missing, without words of the replies, the most frequent reason first."""
    return tuple(Counter(one.public.missing for one in told if one is not None and one.missing).most_common())


def _worth(
    losses: Floats, sure: Floats, groups: Ints, plan: Resampling
) -> tuple[RiskCoverage | None, CalibrationGap | None, SureErrors | None]:
    """What the confidences are worth; nothing without any."""
    if np.isnan(sure).all():
        return None, None, None
    curve, gap = risk_coverage(losses, sure, groups, plan), calibration(losses, sure, groups, plan)
    return curve, gap, sure_errors(losses, sure, groups, least=SURE)


def _counts(given: Sequence[Answer | None], sure: Floats, values: Floats) -> dict[str, int]:
    """How the answers that count ended."""
    there = ~np.isnan(values)
    ended = np.array(["" if one is None else one.status.value for one in given])
    abstained, answered = there & (ended == Status.ABSTAINED.value), there & (ended == Status.ANSWERED.value)
    return {
        "with_confidence": int(np.sum(there & ~np.isnan(sure))),
        "without_confidence": int(np.sum(answered & np.isnan(sure))),
        "abstained": int(abstained.sum()),
        "abstained_right": int(np.sum(abstained & (values == 1))),
    }


def _declined(item: Item, answer: Answer | None) -> bool:
    """Whether an answer without a value, or in free text, declines in words of its own."""
    if answer is None or answer.status is not Status.ANSWERED or not answer.text:
        return False
    unreadable = answer.parsed is None
    return (unreadable or item.answer.any_text) and declines(answer.text, item.answer, item.options)


def _made_up(
    run: Run, given: Sequence[Answer | None], declined: NDArray[np.bool_], group: Ints, plan: Resampling
) -> Estimate | None:
    """The share of answers with a value that does not decline among those that were asked for, where nothing could be seen
    and abstaining was allowed."""
    if run.condition not in UNSEEN or abstain_of(run) != "allow":
        return None
    asked = np.array([one is not None and one.status is not Status.FAILED for one in given], dtype=np.bool_)
    valued = np.array([one is not None and one.parsed is not None for one in given], dtype=np.bool_)
    answered = np.array([one is not None and one.status is Status.ANSWERED for one in given], dtype=np.bool_)
    made_up = (valued & answered & ~declined).astype(np.float64)
    return mean_interval(made_up[asked], group[asked], plan)
