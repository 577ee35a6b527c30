"""The toolkit's own summary, figure by figure, the same figures corrected, and its published ones computed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from proctor.core import (
    ACCURACY,
    Answer,
    Benchmark,
    FailedPolicy,
    InputError,
    OfficialFigure,
    PluginReport,
    Status,
    VerifiedFigure,
    count_of,
    interval,
    plain_table,
    read_table,
    value,
)
from proctor.metrics import code_scorers
from proctor.stats import Estimate, Resampling, group_mean_slices, mean_interval
from proctor.tasks.focus.reader import READER
from proctor.tasks.focus.vocabulary import GROUPS

if TYPE_CHECKING:
    from proctor.results import Options
    from proctor.runs import Store


CORRECTIONS = (
    (
        "Intervals: expanded BCa over whole videos; the toolkit's percentile interval of a two-level bootstrap counts "
        "the spread within a video twice, and is too narrow for few videos besides."
    ),
    "A figure of a single video has no interval instead of one of no width.",
    (
        "Pre-evaluation score: its interval is given, and a bucket without questions leaves it empty; the toolkit "
        "averages over the buckets that are there, so that one lone question can be worth a whole bucket."
    ),
)

_LEVELS = (("leaf", "primary"), ("group", "capability"), ("answer_format", "answer_format"))

Mask = NDArray[np.bool_]


def figures(
    groups: Sequence[str],
    tags: Sequence[dict[str, JsonValue]],
    right: Sequence[float],
    late: int,
    *,
    official: bool,
    draws: int,
    seed: int,
) -> list[OfficialFigure]:
    """Accuracy per leaf, group, answer format and overall: the mean over videos of each video's accuracy.

    Then the number of late answers, and the pre-evaluation score: the mean of the ten buckets' accuracies (capability ×
    distribution), each over its questions. With `official` the figures equal those of toolkit 0.4.0 to the last bit,
    its random draws included. Questions without a score (free text before a judge) must be left out.
    """
    values = np.asarray(right, dtype=np.float64)
    named = [(level, name, mask) for level, tag in _LEVELS for name, mask in _masks(tags, tag)]
    named.append(("overall", "MEAN", np.ones(len(values), dtype=np.bool_)))
    masks = [mask for _, _, mask in named]
    if official:
        estimates = _as_the_toolkit(values, groups, masks, draws, seed)
    else:
        inside = np.stack(masks, axis=1)
        estimates = group_mean_slices(values, groups, inside, Resampling(draws=draws, seed=seed, bounds=(0, 1)))
    found = [
        OfficialFigure(level, name, one.value, one.ci_low, one.ci_high, one.n)
        for (level, name, _), one in zip(named, estimates, strict=True)
    ]
    found.append(OfficialFigure("latency", "timed_out", None, None, None, late))
    return [*found, _pre_evaluation(values, groups, tags, official=official, draws=draws, seed=seed)]


def _masks(tags: Sequence[dict[str, JsonValue]], tag: str) -> list[tuple[str, Mask]]:
    column = np.array([str(one[tag]) for one in tags])
    return [(str(name), column == name) for name in np.unique(column)]


def _pre_evaluation(
    values: NDArray[np.float64],
    groups: Sequence[str],
    tags: Sequence[dict[str, JsonValue]],
    *,
    official: bool,
    draws: int,
    seed: int,
) -> OfficialFigure:
    capability = np.array([str(tag["capability"]) for tag in tags])
    outside = np.array([tag["distribution"] == "out" for tag in tags], dtype=np.bool_)
    buckets = [(capability == name) & (outside == out) for name in sorted(GROUPS) for out in (False, True)]
    there = [mask for mask in buckets if mask.any()]
    if not there or (len(there) < len(buckets) and not official):
        return OfficialFigure("pre_evaluation", "SCORE", None, None, None, len(there))
    mean = float(np.mean([values[mask].mean() for mask in there]))
    if official:
        return OfficialFigure("pre_evaluation", "SCORE", mean, None, None, len(there))
    # linearised: the influence of each question on the score, whose mean has the variance of the score
    moved = np.full(len(values), mean)
    for mask in there:
        moved[mask] += (values[mask] - values[mask].mean()) * len(values) / (len(there) * mask.sum())
    one = mean_interval(moved, groups, Resampling(draws=draws, seed=seed))
    return OfficialFigure("pre_evaluation", "SCORE", mean, one.ci_low, one.ci_high, len(there))


def _as_the_toolkit(
    values: NDArray[np.float64], groups: Sequence[str], masks: Sequence[Mask], draws: int, seed: int
) -> list[Estimate]:
    """One stream of random numbers for all slices; videos are in the order of their questions.

    The stream is NumPy's own from the bare seed, not one of `proctor.core.generator`: only then are the limits those
    that the toolkit prints.
    """
    stream = _Draws(seed)
    names = np.asarray(groups, dtype=np.str_)
    found = []
    for mask in masks:
        here, right = names[mask], values[mask]
        videos = [right[here == name] for name in dict.fromkeys(here.tolist())]
        value = float(np.mean([video.mean() for video in videos]))
        low, high = _two_levels(videos, draws, stream)
        found.append(Estimate(value, low, high, int(mask.sum()), len(videos)))
    return found


class _Draws:
    """The numbers of successive calls `np.random.default_rng(seed).integers(0, limit, size)`, for many limits at once:
    NumPy takes 32 bits of its stream for each number, by the method of Lemire (2019), and none for a limit of 1."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.default_rng(seed).bit_generator
        self._words = np.empty(0, dtype=np.uint64)

    def below(self, limits: NDArray[np.uint64]) -> NDArray[np.int64]:
        """One number from 0 up to each limit (exclusive), in their order."""
        scaled = self._ahead(len(limits)) * limits
        if ((scaled & _LOW) >= limits).all() and (limits > 1).all():  # the usual case
            self._words = self._words[len(limits) :]
            return (scaled >> _SHIFT).astype(np.int64)
        found = np.zeros(len(limits), dtype=np.int64)
        left = np.flatnonzero(limits > 1)
        while len(left):
            limit = limits[left]
            scaled = self._ahead(len(left)) * limit
            refused = (scaled & _LOW) < limit  # rare; only then compute the exact bound
            refused[refused] = (scaled[refused] & _LOW) < (2**32 - limit[refused]) % limit[refused]
            taken = int(np.argmax(refused)) if refused.any() else len(left)
            found[left[:taken]] = scaled[:taken] >> _SHIFT
            self._words = self._words[taken + (taken < len(left)) :]
            left = left[taken:]
        return found

    def _ahead(self, count: int) -> NDArray[np.uint64]:
        """The next 32-bit numbers of the stream, without consuming them."""
        if len(self._words) < count:
            raw = self._bits.random_raw(count + 50_000).astype("<u8").view("<u4")
            self._words = np.concatenate([self._words, raw.astype(np.uint64)])
        return self._words[:count]


_LOW, _SHIFT = np.uint64(2**32 - 1), np.uint64(32)
_AT_ONCE = 100  # draws whose means are computed together


def _two_levels(videos: Sequence[NDArray[np.float64]], draws: int, stream: _Draws) -> tuple[float, float]:
    """Percentile limits; videos are drawn, then questions within each. Scores are 0 or 1, so sums are exact."""
    scores, sizes = np.concatenate(videos), np.array([len(video) for video in videos], dtype=np.uint64)
    starts = (np.cumsum(sizes) - sizes).astype(np.int64)
    every = np.full(len(videos), len(videos), dtype=np.uint64)
    means = []
    for first in range(0, draws, _AT_ONCE):
        rows, within = [], []
        for _ in range(first, min(first + _AT_ONCE, draws)):
            picked = stream.below(every)
            counts = sizes[picked]
            rows.append(picked)
            within.append(stream.below(np.repeat(counts, counts.astype(np.int64))))
        drawn = np.stack(rows)
        spread = sizes[drawn].astype(np.int64).ravel()
        index = np.repeat(starts[drawn].ravel(), spread) + np.concatenate(within)
        sums = np.add.reduceat(scores[index], np.cumsum(spread) - spread).reshape(drawn.shape)
        means.append(np.mean(sums / sizes[drawn], axis=1))  # row by row as np.mean adds up one row
    low, high = np.percentile(np.concatenate(means), (2.5, 97.5))  # (1 - 0.95) / 2 is not 0.025 to the last bit
    return float(low), float(high)


class FocusSummary:
    """The toolkit's summary of stored runs (see `proctor.results.OfficialProgram`)."""

    protocols = ("official", "corrected")

    def official_summary(self, store: Store, benchmark: str, options: Options, *, corrected: bool) -> PluginReport:
        return summary_report(store, benchmark, options, corrected=corrected)


SUMMARY = FocusSummary()


class FocusFigures:
    """The toolkit's summary of recorded responses, bootstrap included, and ours (see `proctor.core.PublishedFigures`)."""

    files = ("requests.json", "references.json", "responses.json", "expected_summary.csv")

    async def verify(self, data: Path) -> list[VerifiedFigure]:
        benchmark = READER.load(data)
        recorded = READER.read_recorded(data / "responses.json", benchmark)
        answers = {answer.item_id: answer for answer in recorded.answers}
        return await verified_figures(benchmark, answers, data / "expected_summary.csv")


PUBLISHED = FocusFigures()


def summary_report(store: Store, benchmark: str, options: Options, *, corrected: bool) -> PluginReport:
    """The summaries by the benchmark's own program (see `official_summaries`) as tables."""
    from proctor.results import official_summaries, summary_title

    found = official_summaries(store, benchmark, figures, official=not corrected, options=options)
    tables, notes = [], list[str]()
    for official_summary in found:
        title = summary_title(official_summary.system, official_summary.condition, official_summary.policy)
        cells = tuple(
            (
                *(figure.level, figure.name, value(ACCURACY, figure.value)),
                *(interval(ACCURACY, figure.ci_low, figure.ci_high), str(figure.n)),
            )
            for figure in official_summary.figures
        )
        tables.append(plain_table(title, ("level", "name", ">accuracy", ">interval", ">n"), cells))
        who = f"{title}: " if len(found) > 1 else ""
        if official_summary.scored_by != "code":
            notes.append(f"{who}Free text is right or wrong by {official_summary.scored_by}.")
        if official_summary.left_out:
            notes.append(f"{who}Left out: {count_of(official_summary.left_out, 'question')} without a score.")
        if official_summary.lacking and official_summary.policy == FailedPolicy.WRONG:
            lacking = count_of(official_summary.lacking, "question")
            notes.append(f"{who}Failed, not asked or without a verdict, and counted as wrong: {lacking}.")
    rows = [row for official_summary in found for row in official_summary.to_json()]
    return PluginReport([*rows], tuple(tables), (*notes, *(CORRECTIONS if corrected else ())))


_COLUMNS = {"accuracy": "value", "ci_low": "ci_low", "ci_high": "ci_high"}
_DRAWS, _SEED = 2000, 42  # the toolkit's own


async def verified_figures(benchmark: Benchmark, answers: Mapping[str, Answer], summary: Path) -> list[VerifiedFigure]:
    """Every figure of the toolkit's summary (level, name, accuracy, ci_low, ci_high, count) and ours, with its draws.

    Raises `InputError`, with the row, for another file.
    """
    scorers = code_scorers(benchmark)
    right, late = [], 0
    for item in benchmark.items:
        scores = [
            score for scorer in scorers if scorer.applies(item) for score in await scorer.score(item, answers[item.id])
        ]
        right.append(next(score.value for score in scores if score.metric == ACCURACY.name))
        late += answers[item.id].status is Status.TIMED_OUT
    tags: list[dict[str, Any]] = [dict(item.tags) for item in benchmark.items]
    groups = [item.group for item in benchmark.items]
    found = figures(groups, tags, right, late, official=True, draws=_DRAWS, seed=_SEED)
    ours = {(official_figure.level, official_figure.name): official_figure for official_figure in found}
    verified = []
    for row in read_table(summary, ("level", "name", *_COLUMNS, "count")).checked(summary):
        one = ours.get((row.cells["level"], row.cells["name"]))
        for column, field in (*_COLUMNS.items(), ("count", "n")):
            if not row.cells[column]:
                continue
            try:
                published = float(row.cells[column])
            except ValueError as error:
                location = f"row {row.number}, column {column!r}"
                raise InputError(summary, location, found=repr(row.cells[column]), expected="a number") from error
            name = f"{row.cells['level']} {row.cells['name']}: {column}"
            value = None if one is None else getattr(one, field)
            verified.append(VerifiedFigure(name, f"the toolkit 0.4.0 ({summary.name})", published, value))
    return verified
