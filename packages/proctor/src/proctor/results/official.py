"""Official summaries: a benchmark's own figures of stored runs, and its own files of scores, as the benchmark brings them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from pydantic import JsonValue

from proctor.core import FailedPolicy, OfficialFigure, Parts, PluginReport, Status
from proctor.results.arrays import load_items
from proctor.results.export import ScoredAnswer
from proctor.results.results import Options
from proctor.results.run_scores import load_accuracy, policies
from proctor.runs import Store, chosen_runs


class OfficialProgram(Protocol):
    """A benchmark's own summary of stored runs, for `proctor results --protocol`."""

    @property
    def protocols(self) -> Sequence[str]:
        """The variants: "official", and "corrected" if that differs."""

    def official_summary(self, store: Store, benchmark: str, options: Options, *, corrected: bool) -> PluginReport:
        """The summaries of the runs of `benchmark` that `options` select, exactly as in the official program, or
        `corrected`. The benchmark may have a name of its own."""


OFFICIAL_SUMMARIES: Parts[OfficialProgram] = Parts(
    "official summary", "proctor.official_summaries", "protocols", "official_summary"
)


class ScoreWriter(Protocol):
    """Writes a scorer's scores in the formats of the organisers."""

    @property
    def formats(self) -> Sequence[str]:
        """The names of the formats, as `proctor export --format` takes them."""

    def write_scores(
        self,
        form: str,
        scorer: str,
        scored: Sequence[ScoredAnswer],
        file: Path,
        *,
        template: Path | None,
        allow_missing: bool,
    ) -> int:
        """Write the scores and return the number of rows; a template determines rows and order. Raises `InputError` for
        a missing score unless `allow_missing`, and if the file can't be written."""


SCORE_WRITERS: Parts[ScoreWriter] = Parts("writer of scores", "proctor.score_writers", "formats", "write_scores")


class FigureProgram(Protocol):
    """Computes the official figures of a run."""

    def __call__(
        self,
        groups: Sequence[str],
        tags: Sequence[dict[str, JsonValue]],
        right: Sequence[float],
        late: int,
        *,
        official: bool,
        draws: int,
        seed: int,
    ) -> list[OfficialFigure]:
        """The figures from the group, tags and correctness of each question, and the number of late answers. `official`
        reproduces the official program exactly; otherwise its weaknesses are corrected."""


@dataclass(frozen=True)
class OfficialSummary:
    """One run's official summary under one policy: under "wrong" `lacking` questions (failed, not asked, no verdict) count
    as wrong. `left_out` questions have no score: lacking ones under "exclude", and those that wait for a judge.
    `scored_by` is the judge of the answers that code can't compare, or "code"."""

    system: str
    condition: str
    figures: list[OfficialFigure]
    left_out: int
    scored_by: str
    policy: str = ""
    lacking: int = 0

    def to_json(self) -> list[dict[str, Any]]:
        """One object per figure."""
        run: dict[str, Any] = {"system": self.system, "condition": self.condition}
        run |= {"left_out": self.left_out, "scored_by": self.scored_by}
        run |= {"policy": self.policy, "lacking": self.lacking}
        return [run | asdict(figure) for figure in self.figures]


def official_summaries(
    store: Store, benchmark: str, program: FigureProgram, *, official: bool, options: Options = Options()
) -> list[OfficialSummary]:
    """The summary by a `program` of every chosen run; of an incomplete run without a chosen policy, one under each policy.
    `options` used: systems, conditions, `failed`, draws and seed."""
    card = store.card(benchmark)
    items = load_items(store, card)
    found = []
    runs = chosen_runs(store, benchmark, options.systems, options.conditions)
    accuracy = load_accuracy(store, runs, items, card)
    for run in runs:
        own = accuracy[run.id]
        lacking = int(own.lacking.sum())
        late = own.outcomes.where(Status.TIMED_OUT)
        for policy in policies(options.failed, card) if lacking else (FailedPolicy.EXCLUDE,):
            right = own.values(policy)
            there = np.flatnonzero(~np.isnan(right))
            figures = program(
                [items.groups[items.group[position]] for position in there],
                [items.tags[items.tags_code[position]] for position in there],
                right[there].tolist(),
                int(late.sum()),
                official=official,
                draws=options.draws,
                seed=options.seed,
            )
            found.append(
                OfficialSummary(
                    run.system,
                    run.condition,
                    figures,
                    left_out=len(items) - len(there),
                    scored_by=own.scorer,
                    policy=policy.value if lacking else "",
                    lacking=lacking,
                )
            )
    return found


def summary_title(system: str, condition: str, policy: str) -> str:
    """The title of a run's summary, with the policy if any."""
    counted = {"wrong": ", what it lacks counted as wrong", "exclude": ", what it lacks left out"}
    return f"{system} / {condition}{counted.get(policy, '')}"
