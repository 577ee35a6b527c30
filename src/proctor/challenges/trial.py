"""A participant's image on a participant's machine: asked the public questions exactly as a challenge asks the hidden
ones, with everything shown."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from pydantic import JsonValue

from proctor.api import load
from proctor.challenges.settings import CHALLENGE_FILE, Budget, Phase, Resources, read_challenge
from proctor.containers import BoxedSystem, BoxError, BoxReport, Executor, examine
from proctor.core import Answer, Benchmark, PluginReport, Status, UsageError, clean, count_of, seconds
from proctor.media import Excerpts, MediaLibrary
from proctor.metrics import code_scorers
from proctor.runs import Limits, PlanOptions, Run, Store, Tally, execute, plan

ALL_GPUS = "nvidia.com/gpu=all"
"""By the container device interface, all that a machine has."""

_LOG_LINES = 20
_EXAMPLES = 3


@dataclass(frozen=True)
class Trial:
    """What to try: the public questions of a `phase` (the first that has some) of the challenge in `folder`; where that
    has no challenge.yaml, the files of a `benchmark` there, with `media`. `limit` asks the first questions alone."""

    folder: Path
    phase: str = ""
    benchmark: str = ""
    track: str = ""
    media: Path | None = None
    limit: int | None = None
    seed: int = 0
    gpu: str | None = None

    def read(self) -> tuple[Benchmark, Phase, Resources]:
        """The questions, and how they are asked. Raises `UsageError` where the folder says too little."""
        if not (self.folder / CHALLENGE_FILE).is_file():
            if not self.benchmark:
                raise UsageError("--benchmark", f"that of the files in {self.folder}, which holds no {CHALLENGE_FILE}")
            found = load(self.benchmark, self.folder, self.media, track=self.track)
            phase = Phase(name="try", questions=str(self.folder), condition=found.conditions[0], budget=_budget(found))
            return found, phase, Resources(gpu=self.gpu is not None)
        settings = read_challenge(self.folder)
        public = {one.name: one for one in settings.phases if one.questions}
        name = self.phase or next(iter(public), "")
        if name not in public:
            raise UsageError(
                "--phase", f"one with public questions: {', '.join(public) or 'there is none'}", found=name
            )
        phase = public[name]
        where = self.folder / phase.questions
        media = self.media or (self.folder / phase.media if phase.media else where)
        return load(settings.benchmark, where, media, track=settings.track), phase, settings.resources


def _budget(benchmark: Benchmark) -> Budget:
    return Budget() if benchmark.budget_s is None else Budget(question_s=benchmark.budget_s)


async def examine_machine(executor: Executor, folder: Path | None, gpu: str | None = None) -> PluginReport:
    """Whether this machine can hold the containers of the challenge in a folder (None: with the usual limits)."""
    resources = Resources(gpu=bool(gpu)) if folder is None else read_challenge(folder).resources
    found = await examine(executor, resources.limits(gpu or ALL_GPUS))
    failed = [one for one in found if one.ok is False]
    ended = f"{count_of(len(failed), 'check')} failed." if failed else "Containers run here, and are held."
    return PluginReport([asdict(one) for one in found], (*(one.line for one in found), ended), ok=not failed)


async def try_image(
    trial: Trial, executor: Executor, image: str, *, on_change: Callable[[Tally], None] = lambda _: None
) -> PluginReport:
    """Asks an image: its name or digest, an archive of it, or a program for the executor `process`. `ok` is False where
    it crashed, was not ready, or was late or in error on a question. Raises `ConfigurationError` where the image is not
    there."""
    asked = trial.read()
    if executor.name == "process" or not await asyncio.to_thread(Path(image).is_file):
        return await _asked(trial, asked, executor, image, on_change)
    image = await executor.load(Path(image))
    try:
        return await _asked(trial, asked, executor, image, on_change)
    finally:
        await executor.unload(image)


async def _asked(
    trial: Trial,
    asked: tuple[Benchmark, Phase, Resources],
    executor: Executor,
    image: str,
    on_change: Callable[[Tally], None],
) -> PluginReport:
    benchmark, phase, resources = asked
    system = BoxedSystem(
        "image", executor, image, resources.limits(trial.gpu or ALL_GPUS),
        question_s=phase.budget.question_s, startup_s=phase.budget.startup_s, seed=trial.seed,
        label=f"proctor-try/{os.getpid()}",
    )  # fmt: skip
    ended = ""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "answers.sqlite")
        library = MediaLibrary(benchmark.media_root, excerpts=Excerpts(benchmark.excerpts))
        options = PlanOptions(limit=trial.limit, order_seed=trial.seed)
        planned = plan(
            store, benchmark, [system], [phase.condition], library, scorers=code_scorers(benchmark), options=options
        )
        try:
            async with system:
                await execute(store, planned, Limits(concurrency=1, give_up_after=10**9), on_change=on_change)
        except BoxError as error:
            ended = str(error)
        report = _Told(benchmark, phase, system.report(public=True), ended).report(planned.runs[0], store)
        store.close()
    return report


@dataclass(frozen=True)
class _Told:
    """What became of it, in words."""

    benchmark: Benchmark
    phase: Phase
    box: BoxReport
    ended: str

    def report(self, run: Run, store: Store) -> PluginReport:
        answers = store.answers(run)
        headline = store.score_rows(run, metric=self.benchmark.headline)
        score = sum(row.value for row in headline) / len(headline) if headline else None
        late, wrong = self.box.counts.get(Status.TIMED_OUT, 0), self.box.counts.get(Status.ERROR, 0)
        lines = [f"{self.phase.name}: {count_of(len(answers), 'question')} under {self.phase.condition}"]
        lines += [f"{status.value}: {count}" for status, count in sorted(self.box.counts.items())]
        lines += [f"unreadable: {line}" for line in _unreadable(answers)]
        lines += self._resources(answers)
        if score is not None:
            lines.append(f"{self.benchmark.headline}: {score:.3f} of {count_of(len(headline), 'marked answer')}")
        lines += [f"error: {name}, {count_of(times, 'time')}" for name, times in self.box.errors.items()]
        lines += [self.ended] if self.ended else []
        lines += (
            [f"| {line}" for line in clean(self.box.log).splitlines()[-_LOG_LINES:]]
            if late or wrong or self.ended
            else []
        )
        json: dict[str, JsonValue] = {
            "phase": self.phase.name,
            "questions": len(answers),
            "ended": self.ended,
            self.benchmark.headline: score,
            "container": self.box.model_dump(mode="json"),
        }
        return PluginReport(json, tuple(lines), ok=not (late or wrong or self.ended))

    def _resources(self, answers: Mapping[str, Answer]) -> list[str]:
        times = sorted(one.timing.model_s for one in answers.values() if one.timing is not None)
        lines = (
            [f"ready after {self.box.startup_s} s of {self.phase.budget.startup_s:g} s"]
            if self.box.startup_s is not None
            else []
        )
        if times:
            half, most = seconds(median(times)), seconds(times[-1])
            lines.append(f"a question: {half} s (median), {most} s (most) of {self.phase.budget.question_s:g} s")
        if self.box.peak_memory is not None:
            lines.append(f"memory: {self.box.peak_memory / 2**20:.0f} MB at most")
        return lines


def _unreadable(answers: Mapping[str, Answer]) -> list[str]:
    """How many answers can't be read, with examples of what is wrong."""
    found = [one.problem for _, one in sorted(answers.items()) if one.status is Status.ANSWERED and one.parsed is None]
    return [f"{count_of(len(found), 'answer')}, such as: {line}" for line in found[:_EXAMPLES]]
