"""Choose the best of several models on a validation part: `choose_model`."""

# No `from __future__ import annotations`: the command line reads these annotations.

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from proctor.core import (
    DASH,
    Benchmark,
    InputError,
    Item,
    Option,
    UsageError,
    count_of,
    percent,
    plain_table,
    write_whole,
)
from proctor.reports import FrameLike, Record
from proctor.shell.benchmarks import library_as, loaded_as
from proctor.shell.model_options import AskOptions
from proctor.shell.option_values import condition_names
from proctor.shell.options import Draws, filled, listed
from proctor.shell.run_preparation import Arranged, PreparedRun, arrange
from proctor.shell.stores import sync_twin

if TYPE_CHECKING:
    from proctor.core import Table
    from proctor.media import MediaLibrary
    from proctor.results import ModelChoice
    from proctor.runs import Tally

TRAINING, VALIDATION = "training", "validation"


def parts_of(benchmark: Benchmark, library: "MediaLibrary", share: float, seed: int) -> tuple[Benchmark, Benchmark]:
    """Split a benchmark into its training part and its validation part, which is about `share` of the items.

    Items that share a group, an option pool or a medium, directly or through others, are in the same part. Media are
    compared by content, so a video under two names counts once. Raises `InputError` for a share outside (0, 1), and if
    all items are linked.
    """
    from proctor.audits import split_items

    if not 0 < share < 1:
        raise InputError("share", found=f"{share:g}", expected="a share between 0 and 1")
    known = [_by_content(item, library) for item in benchmark.items]
    part = split_items(known, {TRAINING: 1 - share, VALIDATION: share}, seed=seed)
    training, validation = (
        replace(benchmark, items=tuple(item for item in benchmark.items if part[item.id] == name))
        for name in (TRAINING, VALIDATION)
    )
    return training, validation


def _by_content(item: Item, library: "MediaLibrary") -> Item:
    """The item with the hashes of its media as their names, if the files are there."""
    if not item.media or library.missing([item]):
        return item
    media = tuple(medium.model_copy(update={"source": library.identity(medium.source)}) for medium in item.media)
    return item.model_copy(update={"media": media})


CHOICE, ANSWERS = "choice.json", "answers.db"
"""The files that `choose` writes."""


class ChooseOptions(AskOptions, total=False):
    """How models are compared. The validation part is this `share` of the benchmark's items, drawn by `seed`, as for
    `train answerer`; by default it is the whole benchmark. `draws` are those of intervals and win rates."""

    share: Annotated[
        float | None, Option("Take this share as the validation part. [default: all is validation]", low=0, high=1)
    ]
    condition: Annotated[str, Option("What models may see.", default="video", names=condition_names)]
    draws: Draws


@dataclass(frozen=True)
class ChosenModel(FrameLike):
    """A row for each model, the chosen one first. `out` is the file with the evidence."""

    data: "ModelChoice"
    benchmark: str
    out: Path

    @property
    def rows(self) -> list[Record]:
        """The model, its mean accuracy over the buckets with its interval, its win rate, and its lead over the next."""
        return [candidate.to_json() for candidate in self.data.candidates]

    @property
    def title(self) -> str:
        """The benchmark and its size."""
        data = self.data
        return f"{self.benchmark}: chosen on {count_of(data.items, 'question')} in {count_of(data.groups, 'group')}"

    @property
    def notes(self) -> tuple[str, ...]:
        """How certain the choice is."""
        return self.data.notes

    @property
    def tables(self) -> "list[Table]":
        """The models, best first."""
        heads = (
            "model",
            ">mean over buckets",
            ">interval",
            ">win rate",
            ">rank",
            *(f">{b}" for b in self.data.buckets),
        )
        return [plain_table(self.title, heads, [_candidate_cells(candidate) for candidate in self.data.candidates])]


def _candidate_cells(one: Any) -> tuple[str, ...]:
    low, high = one.ci_low, one.ci_high
    between = DASH if low is None else f"{percent(low)} to {percent(high)}"
    ranks = DASH if one.rank_low is None else f"{one.rank_low} to {one.rank_high}"
    return one.name, percent(one.mean), between, percent(one.win_rate), ranks, *map(percent, one.buckets.values())


@dataclass(frozen=True)
class PreparedChoice:
    """A choice that is ready to start."""

    run: PreparedRun
    out: Path
    given: ChooseOptions

    async def ask(self, stop: asyncio.Event | None, on_change: "Callable[[Tally], None]") -> ChosenModel:
        """Ask what is not answered yet, and choose. Raises `InputError` if an answer is missing, since an
        infrastructure error must not decide."""
        from proctor.results import Contest, choose_run
        from proctor.stats import RankingPlan

        made, given = await self.run.ask(stop, on_change), self.given
        if made.outcome is not None and (made.outcome.failed or made.outcome.remaining):
            found = f"answers: {made.outcome.failed} failed, {made.outcome.remaining} not asked for"
            raise InputError(self.out, found=found, expected="all answers of all models: run the same command again")
        contest = Contest(condition=given["condition"], systems=made.systems, all_items=given["all_items"])
        plan = RankingPlan(rule="mean", draws=given["draws"], seed=given["seed"])
        chosen = choose_run(made.store, made.benchmark, contest, plan)
        evidence = chosen.to_json() | {"part": _part(self.run.arranged.benchmark, given)}
        write_whole(self.out / CHOICE, json.dumps(evidence, indent=1, ensure_ascii=False) + "\n")
        return ChosenModel(chosen, made.benchmark, self.out / CHOICE)


def _part(benchmark: Benchmark, given: ChooseOptions) -> dict[str, Any]:
    return {
        "share": given["share"],
        "seed": given["seed"],
        "items": [item.id for item in benchmark.counted(all_items=given["all_items"])],
    }


def arrange_choice(
    benchmark: str | Path | Benchmark, out: str | Path, **options: Unpack[ChooseOptions]
) -> tuple[Arranged, ChooseOptions]:
    """The first step of `choose_model`: check everything before a call is paid."""
    given = filled("choose_model", ChooseOptions, options)
    models = [one if isinstance(one, str) else one.name for one in listed(given["model"])]
    if len(models) < 2:
        raise UsageError(
            f"{', '.join(models) or 'No model'}: there is nothing to choose from. Give two models or more by --model."
        )
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / ANSWERS
    loaded = loaded_as(benchmark, {**given, "store": store})
    if given["share"] is not None:
        loaded = parts_of(loaded, library_as(loaded, given), given["share"], given["seed"])[1]
    own = {"share", "condition", "draws", "data", "track", "columns", "media"}
    passed: Any = {name: value for name, value in given.items() if name not in own}
    arranged = arrange(loaded, None, **passed, store=store, conditions=given["condition"], baselines=False)
    return arranged, given


async def choose_model_async(
    benchmark: str | Path | Benchmark, out: str | Path, **options: Unpack[ChooseOptions]
) -> ChosenModel:
    """Choose the best of several models on a benchmark's validation part, asked zero-shot with the benchmark's prompt.

    The model with the highest mean accuracy over the buckets wins. Ties are broken by how often each is best in
    bootstrap samples of groups, averaged over the buckets. The evidence is written to `out`/choice.json, the answers to
    `out`/answers.db. Call it again to continue where it stopped.

    Raises `InputError` before anything is asked if input does not fit, and at the end if answers are missing. The
    command is `proctor choose`.
    """
    arranged, given = arrange_choice(benchmark, out, **options)
    prepared = PreparedChoice(await arranged.prepare(), Path(out), given)
    return await prepared.ask(given["stop"], given["on_change"])


choose_model = sync_twin(choose_model_async)
