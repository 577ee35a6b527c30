"""Workers that join open runs: on this machine, on SLURM, or on Ray."""

# No `from __future__ import annotations`: the command line reads these annotations.

import asyncio
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, Unpack

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from proctor.core import (
    Benchmark,
    ConfigurationError,
    InputError,
    Option,
    ProctorError,
    UsageError,
    first_problem,
    is_file_address,
    pip_install,
)
from proctor.shell.benchmarks import media_at
from proctor.shell.model_options import RunOptions
from proctor.shell.options import Cache, Concurrency, MediaFolder, OnChange, Stop, declared, filled, listed
from proctor.shell.orders import OF_THE_MACHINE
from proctor.shell.run_preparation import Arranged, PreparedRun, arrange
from proctor.shell.stores import DEFAULT_STORE, open_store
from proctor.shell.systems import checked

if TYPE_CHECKING:
    from proctor.core import Item
    from proctor.media import MediaLibrary
    from proctor.runs import OpenOrder, Order, Run, Store, Tally

_POSITIONS = ("store", "slurm", "ray")

_POLL_S = 10.0  # between looks for runs that are new


class WorkOptions(TypedDict, total=False):
    """Options of a worker. `base_url` replaces the server of a run; `once` ends the worker when no run is open;
    `report` is called with each line on what it does."""

    store: Annotated[
        "Store | str | Path | None",
        Option(
            "The store with the runs; of a challenge its database. [default: PROCTOR_STORE; of a challenge also as "
            "challenge.yaml says]",
            shell=str,
        ),
    ]
    media: MediaFolder
    cache: Cache
    base_url: Annotated[
        str | Sequence[str] | None, Option("Use this server instead of the run's.", default=(), shell=list[str])
    ]
    concurrency: Concurrency
    once: Annotated[bool, Option("Stop when no work is left.", "--once", default=False)]
    on_change: OnChange
    stop: Stop
    report: Annotated[Callable[[str], None], Option(default=lambda _: None)]


@dataclass
class Worked:
    """What a worker did: the tally of its answers, how often it joined a run, and why it did not join others (by
    order)."""

    tally: "Tally"
    runs: int = 0
    refused: dict[str, str] = field(default_factory=dict)


async def work_async(**options: Unpack[WorkOptions]) -> Worked:
    """Join the open runs of a store (`run` with `share`) and work on them with other workers, until `stop` is set, or
    with `once` until there is nothing left to ask.

    Items, settings, prompts and the hashes of media come from the store; media files and packages must be on this
    machine. Systems that are code are not sent. Missing media are reported once, and their questions are left to other
    workers. Raises `InputError` without a store.
    """
    from proctor.runs import Store

    given = filled("work", WorkOptions, options)
    store = open_store(given["store"], create=False)
    try:
        return await _work(store, given, given["stop"] or asyncio.Event())
    finally:
        if not isinstance(given["store"], Store):
            store.close()


async def _work(store: "Store", given: WorkOptions, stop: asyncio.Event) -> Worked:
    """Join open runs until told to stop."""
    from proctor.runs import Tally, open_orders

    worked, gave_up = Worked(Tally()), set[str]()
    while not stop.is_set():
        for open_order in [order for order in open_orders(store) if order.key not in gave_up]:
            if stop.is_set():
                break
            try:
                stopped = await _join(store, open_order, given, stop, worked)
            except ProctorError as error:
                why = f"not joined: {open_order.order.benchmark} ({', '.join(_names(open_order.runs))}): {error}"
            else:
                why = stopped
                gave_up |= {open_order.key} if stopped else set()
            if why and worked.refused.get(open_order.key) != why:
                worked.refused[open_order.key] = why
                given["report"](why)
        if given["once"]:
            break
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _POLL_S)
    return worked


async def _join(store: "Store", found: "OpenOrder", given: WorkOptions, stop: asyncio.Event, worked: Worked) -> str:
    """Ask the open questions of an order. Returns why it gave up, or ""."""
    from proctor.metrics import code_scorers
    from proctor.runs import ItemClaims, Limits, execute, join

    order = found.order
    arranged, held = _arranged(store, order, given)
    scorers = code_scorers(arranged.benchmark)
    lacking = sorted({*order.scorers} - {(scorer.name, metric.name) for scorer in scorers for metric in scorer.metrics})
    if lacking:
        raise ConfigurationError(
            f"{lacking[0][1]} is scored by code that comes with the files of {order.benchmark}: "
            "use the same command as the others, proctor run … --share"
        )
    planned = join(
        store,
        arranged.benchmark,
        found.runs,
        arranged.systems,
        arranged.library,
        scorers=scorers,
        options=replace(arranged.plan, left_out=frozenset(order.left_out)),
        has=held,
    )
    worked.runs += len(planned.runs)
    given["report"](f"{order.benchmark}: joined {', '.join(_names(planned.runs))}")
    limits = Limits(given["concurrency"], arranged.plan.budget_s, arranged.options["give_up_after"])
    how: dict[str, Any] = {"stop": stop, "on_change": given["on_change"], "claims": ItemClaims(store)}
    async with arranged.access.closing():
        await arranged.access.check_servers()
        tally = (await execute(store, planned, limits, **how)).tally
    for status, count in tally.by_status.items():
        worked.tally.by_status[status] += count
    for line in held.lacking():
        given["report"](line)
    return tally.stopped


def _names(runs: "Sequence[Run]") -> list[str]:
    return [f"{run.system} / {run.condition}" for run in runs]


def _arranged(store: "Store", order: "Order", given: WorkOptions) -> "tuple[Arranged, _Held]":
    """The run of an order, with this machine's media, cache and servers."""
    from proctor.runs import read_parcel

    foreign = next((name for name in order.systems if is_file_address(name)), None)
    if foreign is not None:
        raise ConfigurationError(f"{foreign} is code, which does not travel: use proctor run … --share there")
    benchmark = benchmark_in(store, order.benchmark)
    folder = given["media"] or benchmark.media_root
    own = _asked(order, given)
    own |= {"media": folder, "cache": given["cache"], "store": store}
    own |= {"skip_broken": True, "conditions": "text-only"}  # what is there is looked at video by video
    with _prompt_file(store, order) as prompt:
        arranged = arrange(benchmark, list(order.systems), **own, **prompt)
    known = json.loads(read_parcel(store, order.media)) if order.media else {}
    return arranged, _Held(arranged.library, known if isinstance(known, dict) else {})


def benchmark_in(store: "Store", name: str) -> Benchmark:
    """Rebuild a benchmark from the store."""
    card = store.card(name)
    same = {"name", "title", "metrics", "headline", "facets", "conditions", "only", "budget_s", "seeds", "simulated"}
    same |= {"buckets", "relevance", "excerpts", "rating", "judge"}
    media = media_at(card.folders.get("media"))
    return Benchmark(
        items=tuple(store.items(name)),
        media_root=media if media is not None and media.is_dir() else None,
        **{field: getattr(card, field) for field in same},
    )


@cache
def _options_model() -> type[BaseModel]:
    """A model of the options in an order. It validates them, since a store may come from other people."""
    fields: dict[str, Any] = {"model": (list[str], [])}
    for name, (kind, option) in declared(RunOptions).items():
        if name not in {*OF_THE_MACHINE, "model"}:
            bounds: dict[str, Any] = {} if kind in {bool, str} else {"ge": option.low, "le": option.high}
            fields[name] = (Annotated[kind, Field(**bounds)], option.default)
    return create_model("TravellingOptions", __config__=ConfigDict(extra="forbid"), **fields)


def _asked(order: "Order", given: WorkOptions) -> dict[str, Any]:
    """The options of an order. Raises `InputError` for an invalid one, and `ConfigurationError` if this machine's API
    key would be sent to a server that only the store names."""
    try:
        read = _options_model().model_validate(order.options)
    except ValidationError as error:
        problem = first_problem(error)
        location = f"order of {order.benchmark}, {problem.field}"
        raise InputError(location, found=problem.found, expected=problem.expected) from None
    own = {name: getattr(read, name) for name in order.options}
    servers = listed(own.get("base_url"))
    if servers and given["base_url"]:
        own["base_url"] = given["base_url"]
    elif servers:
        _refuse_keys(listed(own.get("model")), servers[0])
    return own


def _refuse_keys(models: Sequence[str], server: str) -> None:
    """Raises `ConfigurationError` if a key of this machine would go to a server that only the store names."""
    from proctor.models import ModelSpec, is_compatible

    where = f"would go to {server}, which the store names: allow it by --base-url"
    names = [model.split()[0] for model in models if model.strip()]
    other = next((name for name in names if not is_compatible(checked(ModelSpec, name=name, base_url=server))), None)
    if other is not None:
        raise ConfigurationError(f"the key for {other} {where}")
    if os.environ.get("OPENAI_API_KEY"):
        raise ConfigurationError(f"the key in OPENAI_API_KEY {where}, or unset the key")


@contextmanager
def _prompt_file(store: "Store", order: "Order") -> Iterator[dict[str, Any]]:
    """The prompt of an order as a temporary file under its own name."""
    from proctor.runs import read_parcel

    if order.prompt is None:
        yield {}
        return
    name, key = order.prompt
    if not re.fullmatch(r"[\w-][\w.-]{0,150}", name):
        raise InputError(store.shown, "prompt", found=repr(name)[:80], expected="the name of a file")
    with tempfile.TemporaryDirectory(prefix="proctor-") as folder:
        file = Path(folder) / name
        file.write_bytes(read_parcel(store, key).encode())
        yield {"prompt": str(file)}


class _Held:
    """Checks by hash whether this machine has the media of items."""

    def __init__(self, library: "MediaLibrary", known: dict[str, str]) -> None:
        self._library = library
        self._known = known
        self._found = dict[str, str]()

    def __call__(self, items: Sequence["Item"]) -> bool:
        return not any(self._wrong(medium.source) for item in items for medium in item.media)

    def lacking(self) -> list[str]:
        """A line on missing media, if there are any."""
        wrong = [f"{name} ({why})" for name, why in sorted(self._found.items()) if why]
        if not wrong:
            return []
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        return [f"{len(wrong)} media lacking here, their questions were left to others: {', '.join(wrong[:3])}{more}"]

    def _wrong(self, source: str) -> str:
        if source not in self._found:
            try:
                same = self._library.identity(source) == self._known.get(source)
            except ProctorError:
                self._found[source] = "not found"
            else:
                self._found[source] = "" if same else "another content"
        return self._found[source]


def check_location(location: str, address: str) -> None:
    """Raises `UsageError` for an unknown location of workers."""
    if location not in _POSITIONS or (address and location != "ray"):
        found = f"{location}:{address}" if address else location
        raise UsageError(f"--on {found!r} is unknown: choose store, slurm, ray or ray:ADDRESS.")


def check_travels(prepared: PreparedRun, *, local: bool = False) -> None:
    """Raises `ConfigurationError` for a run with a system that can't be sent to workers, and `UsageError` for a store
    that other machines can't reach, unless all workers are `local`."""
    foreign = [str(one) for one in prepared.arranged.named if not isinstance(one, str) or is_file_address(one)]
    if foreign:
        raise ConfigurationError(f"{foreign[0]} is code, which does not travel: use --share there")
    if prepared.store.dialect == "sqlite" and not local:
        raise UsageError(
            f"Workers on other machines can't reach the file {prepared.store.shown}. Give a PostgreSQL URL: --store postgresql://…"
        )


def worker_options(prepared: PreparedRun) -> dict[str, Any]:
    """The options for workers of this run, on machines with the same folders."""
    from proctor.media import location_of

    given, folder = prepared.arranged.options, prepared.arranged.library.root
    store = str(given["store"] or os.environ.get("PROCTOR_STORE") or DEFAULT_STORE)
    return {
        "store": store if "://" in store else str(Path(store).resolve()),
        "media": None if folder is None else location_of(folder),
        "cache": None if given["cache"] is None else location_of(given["cache"]),
        "base_url": given["base_url"],
        "concurrency": given["concurrency"],
    }


def slurm_job(prepared: PreparedRun, count: int) -> str:
    """A SLURM script with an array job of workers. The store and keys come from the environment."""
    given = worker_options(prepared)
    words = [("--media", given["media"]), ("--cache", given["cache"]), ("--concurrency", given["concurrency"])]
    words += [("--base-url", one) for one in listed(given["base_url"])]
    options = [str(part) for name, one in words if one is not None for part in (name, one)]
    return slurm_script(prepared.arranged.benchmark.name, count, options, gpu=prepared.arranged.needs_gpu)


_SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=1-{count}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
{gpu}#SBATCH --time=24:00:00
#SBATCH --output=proctor-%A-%a.log
#SBATCH --requeue
#SBATCH --signal=B:TERM@120
# Each task is a worker; any number may run, start late, or be killed. Two minutes before its time is over it lets the
# answers under way come in. The store's address and the keys of models come from the environment of sbatch.
: "${{PROCTOR_STORE:?the address of the store is expected: export it before sbatch}}"
exec {command}
"""


def slurm_script(benchmark: str, count: int, options: Sequence[str], *, gpu: bool = False) -> str:
    """A SLURM script with `count` workers, each with these options of `proctor worker`, and a GPU if needed.

    >>> print(slurm_script("focus", 8, ["--media", "/data/my videos"]).splitlines()[2])
    #SBATCH --array=1-8
    """
    name = "proctor-" + (re.sub(r"[^\w.-]+", "-", benchmark) or "run")
    command = shlex.join([str(Path(sys.executable)), "-m", "proctor", "worker", "--once", *options])
    return _SCRIPT.format(name=name, count=count, gpu="#SBATCH --gpus-per-task=1\n" if gpu else "", command=command)


_RAY_POLL_S = 0.5

_REPLACED = 3  # times as many as there are workers


class RayWorker:
    """A Ray actor that works on open runs."""

    def __init__(self) -> None:
        self._stop = asyncio.Event()

    async def work(self, options: dict[str, Any]) -> list[str]:
        """Join the open runs. Returns the lines that it reported."""
        lines: list[str] = []
        await work_async(**options, once=True, stop=self._stop, report=lines.append)
        return lines

    async def stop(self) -> None:
        """Stop after the running requests."""
        self._stop.set()


class RayWorkers:
    """`count` workers on the Ray cluster at `address`, or ("") on a local one. `options` are those of `work_async`. The
    store is the only record, so nothing depends on Ray's memory. Raises `ConfigurationError` without Ray or the
    cluster."""

    def __init__(self, count: int, address: str, options: dict[str, Any], *, gpu: bool = False) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing phones home
        try:
            import ray
        except ImportError as error:
            raise ConfigurationError(f"--on ray needs ray: {pip_install('ray')}") from error
        self._ray: Any = ray
        own: dict[str, Any] = {} if address else {"include_dashboard": False, "configure_logging": False}
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **own)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ConfigurationError(f"no Ray cluster at {address or 'this machine'}: {error}"[:300]) from error
        gpus = 1 if gpu and ray.cluster_resources().get("GPU", 0) else 0
        self._actor = ray.remote(num_cpus=1, num_gpus=gpus)(RayWorker)
        self._options = options
        self._left = _REPLACED * count
        self.lost = 0
        self.reports: list[str] = []
        self._running: dict[Any, Any] = {}
        for _ in range(count):
            self._start()

    async def wait(self, settled: Callable[[], bool], stop: asyncio.Event) -> None:
        """Wait until all workers have ended, or all is settled; lost workers are replaced. Once `stop` is set, wait for
        the running requests. Raises what a worker raised, unless its machine was lost."""
        stopping = False
        while self._running and not settled():
            if stop.is_set() and not stopping:
                stopping = True
                for actor in self._running.values():
                    actor.stop.remote()
            done, _ = await asyncio.to_thread(self._ray.wait, [*self._running], timeout=_RAY_POLL_S)
            for one in done:
                actor = self._running.pop(one)
                try:
                    self.reports += self._ray.get(one)
                except self._ray.exceptions.RayActorError:
                    self.lost += 1
                    if self._left and not stopping:
                        self._left -= 1
                        self._start()
                self._ray.kill(actor)

    def close(self) -> None:
        """End workers that still wait for resources, and leave the cluster."""
        self._ray.shutdown()

    def _start(self) -> None:
        actor = self._actor.remote()
        self._running[actor.work.remote(self._options)] = actor
