"""Scoring stored answers: by a judge, which asks a model, or by metrics, which do not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from proctor.api.access import ModelAccess, listed
from proctor.api.loop import wait_for
from proctor.api.sources import Evaluation, Stored, check_options, stored
from proctor.core import InputError, Item, Scorer, reader_or_default

if TYPE_CHECKING:
    from pydantic import JsonValue

    from proctor.core import Frame
    from proctor.judges import FramesOf, JudgeFunction
    from proctor.media import Excerpts
    from proctor.models import ModelClient, ModelSpec
    from proctor.runs import JudgeTally, PaidVotes, Run, Store


class JudgeOptions(TypedDict, total=False):
    """How a judge is asked. `fallback` models judge what the others leave unresolved; `media` is the folder of what a
    judge is to see; `prompt` another template, by name or file; `base_url`, `settings`, `timeout_s`, `retries` and
    `structured` are those of `run`; `on_change` is called with the tally; `stop`, once set, asks no more."""

    fallback: str | ModelSpec | Sequence[str | ModelSpec] | None
    media: str | Path | None
    prompt: str
    base_url: str | None
    settings: Mapping[str, JsonValue]
    timeout_s: float
    retries: int
    structured: Literal["auto", "native", "tool", "prompted"]
    concurrency: int
    all_items: bool
    on_change: Callable[[JudgeTally], None]
    stop: asyncio.Event | None


@dataclass(frozen=True)
class Scored:
    """What one call scored: how many answers by which scorer; of a judge also its tally, and what its new judgements
    cost. `notes` say whose answers were left out."""

    by: dict[str, int]
    tally: JudgeTally | None = None
    paid: PaidVotes | None = None
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class PreparedJudge:
    """A judge and the runs whose answers it is to score. `scorer` is asked; `judge` is the one that is named, where
    others stand in for it. `notes` say whose answers are left out."""

    store: Store
    runs: tuple[Run, ...]
    judge: Scorer
    scorer: Scorer
    paid: PaidVotes
    access: ModelAccess
    notes: tuple[str, ...]

    async def ask(
        self,
        *,
        all_items: bool = False,
        concurrency: int = 8,
        stop: asyncio.Event | None = None,
        on_change: Callable[[JudgeTally], None] = lambda _: None,
    ) -> JudgeTally:
        """Judges what is not judged yet, and closes the connections to models."""
        from proctor.runs import JudgeLimits, judge_all

        for benchmark in {run.benchmark for run in self.runs}:
            self.store.declare_metrics(benchmark, self.judge.metrics)
        async with self.access.closing():
            return await judge_all(
                self.store,
                self.runs,
                self.scorer,
                JudgeLimits(concurrency),
                all_items=all_items,
                stop=stop,
                on_change=on_change,
            )


def prepare_judge(
    where: Stored,
    judge: str | JudgeFunction,
    clients: Sequence[ModelClient],
    access: ModelAccess,
    *,
    fallback: Sequence[ModelClient] = (),
    prompt: str = "",
    frames: FramesOf | None = None,
) -> PreparedJudge:
    """The judge of that name (the benchmark's own, where none is named) and the answers that it can score: baselines
    only where they are named. `proctor score` shows its notes before it goes on."""
    from proctor.judges import RATIONALE_METRICS, WithFallback, build_judge, judge_prompt
    from proctor.runs import BASELINES, PaidVotes, chosen_runs

    paid = PaidVotes(where.store)

    def made(asked: Sequence[ModelClient]) -> Scorer:
        if not isinstance(judge, str):
            return judge(_only_one(judge.name, asked), paid)
        name = judge or _own_judge(where.benchmark)
        template = judge_prompt(name, prompt) if prompt else None
        briefing = reader_or_default(where.benchmark).briefing
        return build_judge(name, asked, paid, prompt=template, briefing=briefing, frames=frames)

    scorer = made(clients)
    asked = WithFallback(scorer, made(fallback)) if fallback else scorer
    runs = chosen_runs(where.store, where.benchmark, where.systems, where.conditions)
    if not where.systems:
        runs = [run for run in runs if run.system not in BASELINES]  # nobody pays a judge for baselines unasked
    notes: tuple[str, ...] = ()
    if set(scorer.metrics) <= set(RATIONALE_METRICS):
        runs, notes = with_rationales(where.store, runs)
    return PreparedJudge(where.store, tuple(runs), scorer, asked, paid, access, notes)


async def score_async(
    source: Evaluation | Store | str | Path | None = None,
    benchmark: str = "",
    *,
    metrics: str | Scorer | Sequence[str | Scorer] = (),
    judge: str | JudgeFunction = "",
    model: str | ModelSpec | Sequence[str | ModelSpec] | None = None,
    systems: str | Sequence[str] = (),
    conditions: str | Sequence[str] = (),
    **options: Unpack[JudgeOptions],
) -> Scored:
    """The async twin of `score`."""
    check_options("score", dict(options), JudgeOptions)
    where = stored(source, benchmark, systems, conditions)
    chosen = listed(metrics)
    if bool(chosen) == bool(judge or model):
        raise InputError(None, "metrics and judge", found="both" if chosen else "neither", expected="one of them")
    if chosen:
        return await _by_metrics(where, chosen, all_items=options.get("all_items", False))
    access = ModelAccess(
        options.get("base_url"),
        options.get("settings", {}),
        options.get("timeout_s", 180.0),
        options.get("retries", 6),
        options.get("structured", "auto"),
    )
    media = options.get("media")
    frames = None if media is None else frames_of(Path(media), _excerpts(where))
    prepared = prepare_judge(
        where,
        judge,
        [access.client(one) for one in listed(model)],
        access,
        fallback=[access.client(one) for one in listed(options.get("fallback"))],
        prompt=options.get("prompt", ""),
        frames=frames,
    )
    await access.check_servers()
    tally = await prepared.ask(
        all_items=options.get("all_items", False),
        concurrency=options.get("concurrency", 8),
        stop=options.get("stop"),
        on_change=options.get("on_change", lambda _: None),
    )
    left = (f"{tally.left} answers have no verdict: call again to ask them again.",) if tally.left else ()
    return Scored({prepared.judge.name: tally.marked}, tally, prepared.paid, (*prepared.notes, *left))


def score(
    source: Evaluation | Store | str | Path | None = None,
    benchmark: str = "",
    *,
    metrics: str | Scorer | Sequence[str | Scorer] = (),
    judge: str | JudgeFunction = "",
    model: str | ModelSpec | Sequence[str | ModelSpec] | None = None,
    systems: str | Sequence[str] = (),
    conditions: str | Sequence[str] = (),
    **options: Unpack[JudgeOptions],
) -> Scored:
    """Scores stored answers: by `metrics` (functions decorated by `proctor.metric`, names of installed ones, scorers),
    or by a judge that asks a `model`.

    `judge` is a name (see `proctor list judges`) or a function decorated by `proctor.judge`, by default the benchmark's
    own; several models make a panel.
    Judgements are kept, so no call is repeated; what has no verdict is asked again by the next call. Metrics cost
    nothing and score again. Raises `InputError` where nothing can be scored. The command is `proctor score`.
    """
    return wait_for(
        lambda: score_async(
            source,
            benchmark,
            metrics=metrics,
            judge=judge,
            model=model,
            systems=systems,
            conditions=conditions,
            **options,
        )
    )


def with_rationales(store: Store, runs: Sequence[Run]) -> tuple[list[Run], tuple[str, ...]]:
    """The runs whose rationales can be scored, and which others there are: a score of theirs would be made up."""
    from proctor.metrics.text import gives_rationales

    kept = [run for run in runs if gives_rationales(store.answers(run).values())]
    without = [f"{run.system} / {run.condition}" for run in runs if run not in kept]
    notes = (f"No mark for {', '.join(without)}: no rationale was asked for or kept.",) if without else ()
    return kept, notes


def frames_of(media: Path, excerpts: Excerpts) -> FramesOf:
    """An item's frames as a system gets them under the condition `video`, for a judge that is to see them."""
    from proctor.media import MediaLibrary, view

    library = MediaLibrary(media, excerpts=excerpts)

    async def frames(item: Item) -> Sequence[Frame]:
        return await view(item, "video", library).frames()

    return frames


async def _by_metrics(where: Stored, metrics: Sequence[Any], *, all_items: bool) -> Scored:
    from proctor.metrics import build_scorer
    from proctor.runs import chosen_runs, score_answers

    scorers: list[Scorer] = [build_scorer(one) if isinstance(one, str) else one for one in metrics]
    runs = chosen_runs(where.store, where.benchmark, where.systems, where.conditions)
    by = {one.name: await score_answers(where.store, runs, one, all_items=all_items) for one in scorers}
    return Scored(by)


def _only_one(judge: str, clients: Sequence[ModelClient]) -> ModelClient:
    if len(clients) != 1:
        found = ", ".join(client.name for client in clients) or "no model"
        raise InputError(None, f"judge {judge}", found=found, expected="one model")
    return clients[0]


def _own_judge(benchmark: str) -> str:
    own = reader_or_default(benchmark).rubric_judge
    if own is None:
        raise InputError(None, "judge", found="none", expected=f"a name: {benchmark} has no judge of its own")
    return own


def _excerpts(where: Stored) -> Excerpts:
    from proctor.media import Excerpts

    return Excerpts(where.store.card(where.benchmark).excerpts, None)
