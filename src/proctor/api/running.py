"""Asking systems: `load`, and `run` with its async twin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from proctor.api.access import ModelAccess, SystemLike, build_systems, checked, listed
from proctor.api.folders import Folders, existing_store, recalled, remember
from proctor.api.loop import wait_for
from proctor.api.sources import Evaluation, check_options, open_store
from proctor.core import BENCHMARKS, Benchmark, InputError, reader_of

if TYPE_CHECKING:
    from pydantic import JsonValue

    from proctor.core import Item, System
    from proctor.media import MediaLibrary
    from proctor.models import ModelSpec
    from proctor.runs import Limits, Plan, PlanOptions, RunEstimate, Store, Tally

BLIND = "text-only"


class RunOptions(TypedDict, total=False):
    """What `run` takes beside what is asked of whom; the defaults are those of `proctor run`.

    Items: `track`, `limit` (the first items only), `all_items`, `seed` (of every draw). Asking: `budget_s` (seconds of
    model time an item), `concurrency`, `give_up_after`, `baselines` (False: not asked beside). Models: `base_url`,
    `settings`, `timeout_s`, `retries`, `structured`, `prompt`; `options` of a method. Media: `fps`, `max_frames`,
    `max_side`, `overlay`, `video_as`, `media_as`, `cache`, `cache_bytes`, `skip_broken`. `on_change` is called with the
    tally after every answer; `stop`, once set, lets the answers under way come in and asks no more.
    """

    track: str
    limit: int | None
    all_items: bool
    seed: int
    budget_s: float | None
    concurrency: int
    give_up_after: int
    baselines: bool
    base_url: str | None
    settings: Mapping[str, JsonValue]
    timeout_s: float
    retries: int
    structured: Literal["auto", "native", "tool", "prompted"]
    prompt: str
    options: Mapping[str, JsonValue]
    fps: float
    max_frames: int
    max_side: int
    overlay: Literal["none", "absolute", "clip"]
    video_as: Literal["frames", "file"]
    media_as: Literal["full", "trimmed", "cropped"] | None
    cache: Path | None
    cache_bytes: int | None
    skip_broken: bool
    on_change: Callable[[Tally], None]
    stop: asyncio.Event | None


@dataclass(frozen=True)
class PreparedRun:
    """A run of which all is checked that can be checked before the first call is paid. `notes` say what is left out."""

    benchmark: Benchmark
    store: Store
    plan: Plan
    limits: Limits
    access: ModelAccess
    notes: tuple[str, ...]

    async def ask(
        self, *, stop: asyncio.Event | None = None, on_change: Callable[[Tally], None] = lambda _: None
    ) -> Evaluation:
        """Asks what is left to ask, and closes the connections to models."""
        from proctor.runs import execute

        async with self.access.closing():
            outcome = await execute(self.store, self.plan, self.limits, stop=stop, on_change=on_change)
        counts = [f"{count} {status.value}" for status, count in outcome.tally.by_status.items() if count]
        asked = f"Asked {outcome.tally.done}: {', '.join(counts) or 'nothing left to ask'}; in {self.store.shown}"
        runs = tuple(self.plan.runs)
        return Evaluation(self.store, self.benchmark.name, runs, outcome, self.notes, (asked,))


def load(
    benchmark: str, data: str | Path, media: str | Path | None = None, *, track: str = "", seed: int = 0
) -> Benchmark:
    """A benchmark's items from the folder with its own files; `media` is the folder of its videos or images.

    Raises `InputError` that names the file and the place, and `UnknownNameError` that lists the benchmarks.
    """
    return reader_of(benchmark, track).load(Path(data), None if media is None else Path(media), seed=seed)


@dataclass(frozen=True)
class _Arranged:
    """Who is asked what, read and checked; nothing is written yet."""

    benchmark: Benchmark
    systems: list[System]
    conditions: tuple[str, ...]
    library: MediaLibrary
    chosen: PlanOptions
    access: ModelAccess
    folders: Folders


def _arranged(
    benchmark: str | Benchmark,
    systems: Sequence[SystemLike],
    models: Sequence[str | ModelSpec],
    conditions: str | Sequence[str],
    folders: Folders,
    options: RunOptions,
    *,
    name: str,
    store: Store | str | Path | None,
) -> _Arranged:
    from proctor.runs import PlanOptions, chosen_items

    check_options("run", dict(options), RunOptions)
    seed = options.get("seed", 0)
    access = _access(options)
    built = build_systems(
        systems,
        models,
        access,
        benchmark=benchmark if isinstance(benchmark, str) else benchmark.name,
        name=name,
        prompt=options.get("prompt", ""),
        seed=seed,
        video_as=options.get("video_as", "frames"),
        options=options.get("options", {}),
    )
    if isinstance(benchmark, str):
        folders = recalled(benchmark, folders, store)
    loaded = loaded_from(benchmark, folders.data, folders.media, track=folders.track, seed=seed)
    budget_s = options.get("budget_s")
    chosen = PlanOptions(
        seed=seed,
        all_items=options.get("all_items", False),
        limit=options.get("limit"),
        budget_s=loaded.budget_s if budget_s is None else budget_s,
        skip_broken=options.get("skip_broken", False),
    )
    library, under = _library(loaded, options), tuple(listed(conditions))
    if not chosen.skip_broken:
        _need_media(loaded, chosen_items(loaded, chosen), library, under, folders.data)
    return _Arranged(loaded, built, under, library, chosen, access, folders)


async def prepare_run(
    benchmark: str | Benchmark,
    system: SystemLike | Sequence[SystemLike] | None = None,
    *,
    model: str | ModelSpec | Sequence[str | ModelSpec] | None = None,
    conditions: str | Sequence[str] = "video",
    name: str = "",
    data: str | Path | None = None,
    media: str | Path | None = None,
    store: Store | str | Path | None = None,
    **options: Unpack[RunOptions],
) -> PreparedRun:
    """The first half of `run_async`: everything but asking. `proctor run` shows its notes before it goes on."""
    from proctor.metrics import code_scorers
    from proctor.runs import Limits, add_baselines, plan

    folders = Folders(data, media, options.get("track", ""))
    made = _arranged(benchmark, listed(system), listed(model), conditions, folders, options, name=name, store=store)
    await made.access.check_servers()
    loaded, opened = made.benchmark, open_store(store)
    scorers = code_scorers(loaded)
    planned = plan(opened, loaded, made.systems, made.conditions, made.library, scorers=scorers, options=made.chosen)
    remember(opened, loaded.name, made.folders)
    if options.get("baselines", True):
        await add_baselines(opened, loaded, scorers, seed=made.chosen.seed)
    limits = Limits(options.get("concurrency", 8), made.chosen.budget_s, options.get("give_up_after", 50))
    return PreparedRun(loaded, opened, planned, limits, made.access, (*plan_notes(planned), *skipped_baselines(loaded)))


async def estimate_run(
    benchmark: str | Benchmark,
    system: SystemLike | Sequence[SystemLike] | None = None,
    *,
    model: str | ModelSpec | Sequence[str | ModelSpec] | None = None,
    conditions: str | Sequence[str] = "video",
    name: str = "",
    data: str | Path | None = None,
    media: str | Path | None = None,
    store: Store | str | Path | None = None,
    **options: Unpack[RunOptions],
) -> list[RunEstimate]:
    """What `run_async` would ask and send (see `RunEstimate`); nothing is asked, and nothing written."""
    from proctor.runs import estimate_runs

    folders = Folders(data, media, options.get("track", ""))
    made = _arranged(benchmark, listed(system), listed(model), conditions, folders, options, name=name, store=store)
    async with made.access.closing():
        return estimate_runs(
            existing_store(store), made.benchmark, made.systems, made.conditions, made.library, made.chosen
        )


async def run_async(
    benchmark: str | Benchmark,
    system: SystemLike | Sequence[SystemLike] | None = None,
    *,
    model: str | ModelSpec | Sequence[str | ModelSpec] | None = None,
    conditions: str | Sequence[str] = "video",
    name: str = "",
    data: str | Path | None = None,
    media: str | Path | None = None,
    store: Store | str | Path | None = None,
    **options: Unpack[RunOptions],
) -> Evaluation:
    """The async twin of `run`."""
    prepared = await prepare_run(
        benchmark, system, model=model, conditions=conditions, name=name, data=data, media=media, store=store, **options
    )
    return await prepared.ask(stop=options.get("stop"), on_change=options.get("on_change", lambda _: None))


def run(
    benchmark: str | Benchmark,
    system: SystemLike | Sequence[SystemLike] | None = None,
    *,
    model: str | ModelSpec | Sequence[str | ModelSpec] | None = None,
    conditions: str | Sequence[str] = "video",
    name: str = "",
    data: str | Path | None = None,
    media: str | Path | None = None,
    store: Store | str | Path | None = None,
    **options: Unpack[RunOptions],
) -> Evaluation:
    """Asks a benchmark's items of systems and models under conditions; call it again to go on where it stopped.

    `benchmark` is what `load` returned, or a name with its `data` and `media` folders. `system` is one or several of: a
    function (see `proctor.system`), `path/to/file.py:function`, the name of a built-in system or a method, a `System`.
    `model` is one or several of `provider:name` (keys come from the environment), or names at the server `base_url`.
    `name` keeps the answers under another name. `store` is a path or a URL; by default `proctor.db` in the working
    folder (or `PROCTOR_STORE`), as in the shell, since an answer that was paid must not be lost; ":memory:" keeps
    nothing. For further options see `RunOptions`. Baselines that need no media are asked beside.

    Raises `InputError` before anything is asked where something is missing or does not fit, and `ConfigurationError`
    for a model that can't be asked. The command is `proctor run`. Works in a notebook; in async code await `run_async`.
    """
    return wait_for(
        lambda: run_async(
            benchmark,
            system,
            model=model,
            conditions=conditions,
            name=name,
            data=data,
            media=media,
            store=store,
            **options,
        )
    )


def _access(options: RunOptions) -> ModelAccess:
    return ModelAccess(
        base_url=options.get("base_url"),
        settings=options.get("settings", {}),
        timeout_s=options.get("timeout_s", 180.0),
        retries=options.get("retries", 6),
        structured=options.get("structured", "auto"),
    )


def loaded_from(
    benchmark: str | Benchmark,
    data: str | Path | None,
    media: str | Path | None = None,
    *,
    track: str = "",
    seed: int = 0,
) -> Benchmark:
    """A benchmark as it is, or read from its files. Raises `InputError` where these are not named."""
    if isinstance(benchmark, Benchmark):
        return benchmark if media is None else replace(benchmark, media_root=Path(media))
    if data is None:
        raise InputError(None, "data", found="none", expected=f"the folder with the files of {benchmark}")
    return load(benchmark, data, media, track=track, seed=seed)


def _library(benchmark: Benchmark, options: RunOptions) -> MediaLibrary:
    from proctor.media import Excerpts, MediaAs, MediaLibrary, MediaSettings

    settings = checked(
        MediaSettings,
        fps=options.get("fps", 1.0),
        max_frames=options.get("max_frames", 64),
        max_side=options.get("max_side", 512),
        overlay=options.get("overlay", "none"),
    )
    media_as = options.get("media_as")
    if media_as is not None and not benchmark.excerpts:
        raise InputError(None, "media_as", found=media_as, expected="none: these videos are no parts of others")
    return MediaLibrary(
        benchmark.media_root,
        settings,
        options.get("cache"),
        cache_bytes=options.get("cache_bytes"),
        excerpts=Excerpts(benchmark.excerpts, None if media_as is None else MediaAs(media_as)),
    )


def _need_media(
    benchmark: Benchmark,
    items: Sequence[Item],
    library: MediaLibrary,
    conditions: Sequence[str],
    data: str | Path | None,
) -> None:
    """Raises `InputError` that says which media are missing, with a note on how to get them, before anything is asked."""
    from proctor.media import CONDITIONS

    if not any(CONDITIONS.get(condition).sees for condition in conditions):
        return
    missing = library.missing(items)
    if not missing:
        return
    needed = {medium.source for item in items for medium in item.media}
    some = f"{', '.join(missing[:3])}{' …' if len(missing) > 3 else ''}"
    error = InputError(
        library.root or "--media",
        found=f"{len(needed) - len(missing)} of {len(needed)} media files, missing {some}",
        expected=f"all of them, or --condition {BLIND}",
    )
    if data is not None and benchmark.name in BENCHMARKS.names():
        error.add_note(BENCHMARKS.get(benchmark.name).media_help(Path(data), missing))
    raise error


def plan_notes(planned: Plan) -> tuple[str, ...]:
    """What a person should know before the first item is asked."""
    notes = [str(problem) for problem in planned.problems]
    if planned.left_out:
        notes.append(f"{planned.left_out} items are left out: their media are broken or missing.")
    for system, count in planned.unsupported.items():
        notes.append(f"{system} skipped {count} items: unsupported answer format.")
    if planned.settled:
        notes.append(f"{planned.settled} answers are there already; {planned.to_ask} to ask.")
    return tuple(notes)


def skipped_baselines(benchmark: Benchmark) -> tuple[str, ...]:
    """Which baselines do not stand in the tables, and why."""
    from proctor.runs import skipped_baselines

    skipped = skipped_baselines(benchmark)
    named = ", ".join(f"{name} ({reason})" for name, reason in skipped.items())
    return (f"Baselines skipped: {named}.",) if skipped else ()
