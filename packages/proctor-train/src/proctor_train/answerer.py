"""Fine-tuning of a model that answers a benchmark's questions: FOCUS's second baseline.

The examples are exactly what `proctor run` would show and ask the model, and the engine of `proctor run` evaluates its
checkpoints.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import overload

from pydantic import JsonValue

from proctor.core import (
    Benchmark,
    Frame,
    InputError,
    Item,
    NeedsReferences,
    ParseError,
    VideoClip,
    View,
    content_hash,
    count_of,
    generator,
    percent,
)
from proctor.media import CONDITIONS, MediaLibrary, find_leaks, look_at_items, pictures_at, view
from proctor.metrics import code_scorers
from proctor.models import SEEN, ModelClient, ModelSpec, SeenMedia, Weights
from proctor.results import Contest, bucket_mean
from proctor.runs import (
    BASELINES,
    Limits,
    Outcome,
    PlanOptions,
    Store,
    add_baselines,
    delete_runs,
    execute,
    plan,
    run_settings,
)
from proctor.stats import Estimate, Resampling
from proctor.systems import ModelSystem, Renamed, build_system, format_value
from proctor_train.fine_tuning import (
    ChatExample,
    LoraSettings,
    fine_tune,
    footprint,
    measure,
    trained_name,
    with_adapter,
)
from proctor_train.run_folder import CheckpointEvaluation, RunFolder

_KEPT_BYTES = 2**28
"""The bytes of pictures that are kept in memory."""


@dataclass(frozen=True)
class Lesson:
    """An item with the reply to learn. In `turn` 0 it is shown as in a run; in each further turn a long clip is shown at
    other moments."""

    item: Item
    reply: str
    turn: int = 0


def reply_to(item: Item) -> str | None:
    """The reference answer in the form that the prompt asks for; None if there is none, or if the item's format does not
    parse it as right."""
    if item.reference is None or item.reference.answer is None:
        return None
    text = format_value(item.answer, item.reference.answer)
    try:
        return text if item.answer.match(item.reference.answer, item.answer.parse(text, item.options)) else None
    except ParseError:
        return None


def lessons(items: Sequence[Item], library: MediaLibrary, *, windows: int = 1) -> list[Lesson]:
    """The lessons of items, in their order, without items that have no reply. A clip that is longer than the maximal frames
    at their rate gives `windows` lessons: each divides it into as many equal windows as there are frames and shows a
    random moment of each window (Wang et al. 2016, Temporal Segment Networks, ECCV). Under other conditions than `video`
    all of them are shown as in a run."""
    found = []
    for item in items:
        reply = reply_to(item)
        if reply is not None:
            turns = windows if windows > 1 and _is_long(item, library) else 1
            found += [Lesson(item, reply, turn) for turn in range(turns)]
    return found


def _is_long(item: Item, library: MediaLibrary) -> bool:
    if len(item.pictured) != 1 or not isinstance(clip := item.pictured[0], VideoClip):
        return False
    start, end = library.span(clip)
    return (end - start) * library.settings.fps > library.settings.max_frames


class ItemExamples(Sequence[ChatExample]):
    """The examples of lessons, each made on access, with pictures from the frame store. `view` gives the view of a run under
    a condition."""

    def __init__(
        self,
        given: Sequence[Lesson],
        system: ModelSystem,
        view: Callable[[Item], View],
        library: MediaLibrary,
        seed: int = 0,
    ) -> None:
        self._lessons, self._system, self._view, self._library, self._seed = given, system, view, library, seed
        self._kept: dict[int, ChatExample] = {}
        self._left = _KEPT_BYTES

    def __len__(self) -> int:
        return len(self._lessons)

    @overload
    def __getitem__(self, row: int) -> ChatExample: ...
    @overload
    def __getitem__(self, row: slice) -> list[ChatExample]: ...
    def __getitem__(self, row: int | slice) -> ChatExample | list[ChatExample]:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        if row in self._kept:
            return self._kept[row]
        made = asyncio.run(self._made(self._lessons[row]))
        size = sum(len(picture) for picture in made.query.pictures)
        if size <= self._left:
            self._kept[row] = made
            self._left -= size
        return made

    async def _made(self, lesson: Lesson) -> ChatExample:
        item = lesson.item
        view = self._view(item)
        shown = view if lesson.turn == 0 else DrawnMoments(view, lesson, self._library, self._seed)
        return ChatExample(await self._system.query(item.as_asked(), shown), lesson.reply, item.group)


class DrawnMoments:
    """A view of one clip at random moments, one in each of as many equal windows as the view has frames."""

    def __init__(self, view: View, lesson: Lesson, library: MediaLibrary, seed: int) -> None:
        self._view, self._lesson, self._library, self._seed = view, lesson, library, seed

    @property
    def condition(self) -> str:
        """The condition's name."""
        return self._view.condition

    @property
    def span(self) -> tuple[float, float] | None:
        """Start and end of the clip."""
        return self._view.span

    async def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[Frame]:
        """As many frames as the view gives, each at its own time."""
        usual = await self._view.frames(count=count, fps=fps, window=window)
        span, lesson = self._view.span, self._lesson
        if span is None or window is not None or not CONDITIONS.get(self.condition).unchanged:
            return usual
        start, end = span
        drawn = generator(self._seed, "windows", lesson.item.id, str(lesson.turn)).uniform(size=len(usual))
        times = [start + (end - start) * (row + share) / len(usual) for row, share in enumerate(drawn.tolist())]
        return await asyncio.to_thread(pictures_at, lesson.item, self.condition, self._library, times, seed=self._seed)


EVALUATIONS, CARD = "evaluations.db", "README.md"
"""The store with each checkpoint's answers, in the folder of a training; the model card beside trained weights."""
_MIN_REPLY, _MAX_REPLY = 16, 512  # tokens


@dataclass(frozen=True)
class AnswererTraining:
    """A training: the base, the parts for training and validation, and the settings. `system` makes the system that is
    trained and evaluated from a model client and a name; both parts are asked under `condition`. For `windows` see
    `lessons`; `draws` are the bootstrap samples of intervals.

    Raises `InputError` if the parts share a group or a medium (by its content), and if there is nothing to learn.
    """

    base: Path
    training: Benchmark
    validation: Benchmark
    library: MediaLibrary
    system: Callable[[ModelClient, str], ModelSystem]
    condition: str = "video"
    lora: LoraSettings = field(default_factory=LoraSettings)
    windows: int = 1
    draws: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        refuse_shared(self.training.counted(), self.validation.counted(), self.library)
        if not self.lessons:
            expected = "reference answers that the questions' formats read back as right"
            raise InputError(self.training.name, found="nothing to learn from", expected=expected)

    @cached_property
    def lessons(self) -> list[Lesson]:
        """The lessons, in the benchmark's order."""
        return lessons(self.training.counted(), self.library, windows=self.windows)

    @property
    def left_out(self) -> int:
        """The number of training items without a reply to learn."""
        return len(self.training.counted()) - len({lesson.item.id for lesson in self.lessons})

    def examples(self, client: ModelClient) -> ItemExamples:
        """The examples, with the questions as the model is asked them."""
        items = self.training.counted()

        def shown(item: Item) -> View:
            return view(item, self.condition, self.library, seed=self.seed, others=items)

        return ItemExamples(self.lessons, self.system(client, ""), shown, self.library, self.seed)

    def client(self, trained: str = "") -> ModelClient:
        """The client of the base, or with `trained` ("+" and a folder) of the base with an adapter."""
        longest = max(len(lesson.reply) for lesson in self.lessons)  # in characters; a token has at least one
        settings: dict[str, JsonValue] = {
            "max_tokens": min(_MAX_REPLY, _MIN_REPLY + longest),
            "device": self.lora.device,
            "dtype": self.lora.dtype,
            "batch_size": self.lora.batch,
        }
        return ModelClient(ModelSpec(name=f"transformers:{self.base}{trained}", settings=settings))

    def settings(self, client: ModelClient) -> dict[str, JsonValue]:
        """Everything that changes the result, for the run folder."""
        asked = run_settings(self.system(client, ""), self.library, self.condition, seed=self.seed)
        seen = [*_identities(self.training, self.library), *_identities(self.validation, self.library)]
        return {
            "trainer": "answerer",
            "asked": asked,
            "condition": self.condition,
            "training": self.training.fingerprint,
            "validation": self.validation.fingerprint,
            "media_sha256": content_hash([*sorted(seen)]),
            "windows": self.windows,
            "lora": self.lora.model_dump(),
        }


def refuse_shared(training: list[Item], validation: list[Item], library: MediaLibrary) -> None:
    """Raises `InputError` if two parts share a group, or a medium under any name."""
    for what, of in (("group", lambda item, _: {item.group}), ("medium", _contents)):
        known = {one: item.id for item in training for one in of(item, library)}
        for item in validation:
            shared = sorted(of(item, library) & known.keys())
            if shared:
                found = f"the same {what} in {known[shared[0]]!r} and {item.id!r}"
                raise InputError("training and validation", found=found, expected="parts that share none")


def _contents(item: Item, library: MediaLibrary) -> set[str]:
    """The hashes of an item's media, or their names if the files are missing."""
    missing = set(library.missing([item]))
    return {medium.source if medium.source in missing else library.identity(medium.source) for medium in item.media}


def _identities(benchmark: Benchmark, library: MediaLibrary) -> frozenset[str]:
    return frozenset(one for item in benchmark.counted() for one in _contents(item, library))


@dataclass(frozen=True)
class ExaminedCheckpoint:
    """A checkpoint's mean accuracy over the buckets of the validation part, with its interval over groups; `chosen` scores
    the best one."""

    step: int
    accuracy: Estimate
    chosen: bool


@dataclass(frozen=True)
class TrainedAnswerer:
    """The result of a training. `weights` is the folder of the adapter (or of all weights, at rank 0), `model` its name for
    `proctor run --model`. `baselines` are the means of reference systems on the validation part, by name."""

    folder: Path
    weights: Path
    model: str
    checkpoints: tuple[ExaminedCheckpoint, ...]
    baselines: dict[str, float]
    lengths: str


def fine_tune_answerer(what: AnswererTraining, out: Path) -> TrainedAnswerer:
    """Trains in the folder `out`, or continues there.

    The engine of `proctor run` evaluates every checkpoint on the validation part; its answers are in the store
    `evaluations.db`, one system for each checkpoint. The checkpoint with the highest mean over buckets is kept. Finally
    the adapter is loaded as by `proctor run`, which refuses an adapter without effect.
    """
    client = what.client()
    try:
        with RunFolder.opened(out, what.settings(client)) as folder:
            store = Store(out / EVALUATIONS)
            store.add_benchmark(what.validation)
            asyncio.run(add_baselines(store, what.validation, code_scorers(what.validation), seed=what.seed))

            def evaluate(weights: Weights) -> CheckpointEvaluation:
                return _evaluated(what, weights, store, folder)

            made = fine_tune(what.base, what.examples(client), what.lora, folder, evaluate)
            with_adapter(what.base, made, device=what.lora.device, dtype=what.lora.dtype)
            return _result(what, folder, made, store)
    finally:
        asyncio.run(client.aclose())


def _evaluated(what: AnswererTraining, weights: Weights, store: Store, folder: RunFolder) -> CheckpointEvaluation:
    step = max((int(str(one["step"])) for one in folder.steps if "step" in one), default=0)
    name, benchmark = _name(step), what.validation
    interrupted = [run for run in store.runs(benchmark.name) if run.system == name]
    delete_runs(store, interrupted)

    async def ask() -> Outcome:
        client = what.client()
        client.use(weights)
        try:
            planned = plan(
                store,
                benchmark,
                [what.system(client, name)],
                [what.condition],
                what.library,
                scorers=code_scorers(benchmark),
                options=PlanOptions(seed=what.seed),
            )
            return await execute(store, planned, Limits(concurrency=2 * what.lora.batch))
        finally:
            await client.aclose()

    outcome = asyncio.run(ask())
    tally, failed = outcome.tally, outcome.failed
    if failed:
        return CheckpointEvaluation(None, {"failed": failed}, _beside(what, step, None))
    found = _accuracy(what, store, name)
    log: dict[str, JsonValue] = {"ci_low": found.ci_low, "ci_high": found.ci_high, "questions": found.n}
    none = tally.total > 0 and tally.unreadable == tally.total
    unusable = f"no reply of a checkpoint can be read as an answer ({tally.unreadable_example})" if none else ""
    return CheckpointEvaluation(found.value, log, _beside(what, step, found), unusable)


def _name(step: int) -> str:
    return f"step-{step:06d}"


def _accuracy(what: AnswererTraining, store: Store, system: str) -> Estimate:
    drawn = Resampling(draws=what.draws, seed=what.seed)
    return bucket_mean(store, what.validation.name, Contest(what.condition, (system,)), drawn)


def _beside(what: AnswererTraining, step: int, accuracy: Estimate | None) -> dict[str, str]:
    seen = SeenMedia(
        trained=_identities(what.training, what.library), chosen=_identities(what.validation, what.library)
    )
    return {SEEN: seen.model_dump_json(indent=1) + "\n", CARD: _card(what, step, accuracy)}


def _card(what: AnswererTraining, step: int, accuracy: Estimate | None) -> str:
    """The model card as Markdown with a YAML head, in the form of the Hugging Face Hub."""
    training, validation = (len({item.group for item in part.counted()}) for part in (what.training, what.validation))
    low, high = (None, None) if accuracy is None else (accuracy.ci_low, accuracy.ci_high)
    interval = "no interval" if low is None else f"95 % interval {percent(low)} to {percent(high)}"
    value = percent(None if accuracy is None else accuracy.value)
    kind = f"LoRA of rank {what.lora.rank}" if what.lora.rank else "all weights"
    learned = (
        f"Fine-tuned ({kind}) on {count_of(len(what.lessons), 'example')} from {count_of(training, 'group')}, "
        f"under the condition {what.condition}; chosen at step {step} on {count_of(validation, 'other group')}."
    )
    lines = [
        *("---", "library_name: " + ("peft" if what.lora.rank else "transformers"), "license: other", "---", ""),
        f"# An answerer of {what.training.title}",
        "",
        learned,
        "",
        f"- Mean accuracy over the buckets of that part: {value} ({interval} over groups); as it chose, it flatters.",
        f"- Training items: {what.training.fingerprint}",
        f"- Validation items: {what.validation.fingerprint}",
        f"- Which media were seen: `{SEEN}`, by hash. Base weights and chat template: `proctor.json`.",
        "- Licence: that of the base and of the data.",
    ]
    return "\n".join(lines) + "\n"


def _result(what: AnswererTraining, folder: RunFolder, made: Path, store: Store) -> TrainedAnswerer:
    end = folder.finished or {}
    best = end.get("best")
    chosen = best.get("step") if isinstance(best, dict) else None
    steps = [int(str(step["step"])) for step in folder.steps if "evaluation" in step]
    runs = {run.system for run in store.runs(what.validation.name)}
    return TrainedAnswerer(
        folder=folder.path,
        weights=made,
        model=f"transformers:{trained_name(what.base, made)}",
        checkpoints=tuple(
            ExaminedCheckpoint(step, _accuracy(what, store, _name(step)), step == chosen) for step in steps
        ),
        baselines={name: _baseline(what, store, name) for name in BASELINES if name in runs},
        lengths=str(end.get("lengths", "")),
    )


def _baseline(what: AnswererTraining, store: Store, name: str) -> float:
    found = bucket_mean(store, what.validation.name, Contest("text-only", (name,)), Resampling(draws=100))
    return found.value or 0.0


COMMONEST = "commonest-in-training"
"""The baseline of the most common answers in the training part, by format, without pictures."""
PICTURES = 16
"""The number of pictures of each video that are compared across the parts."""


@dataclass(frozen=True)
class AnswererRehearsal:
    """What a training would take: the `lengths` of the examples and the `memory`, in words. `baselines` are the means over
    buckets of systems without pictures, on the validation part, by name. `alike` are pairs of media, one of each part,
    that look the same."""

    lengths: str
    memory: str
    baselines: dict[str, Estimate]
    alike: tuple[tuple[str, str], ...]


def rehearse_answerer(what: AnswererTraining) -> AnswererRehearsal:
    """Estimates what a training would take, without loading weights. Raises `InputError` for examples longer than the
    base's limit."""
    client = what.client()
    weights = Weights(client.name, str(what.base), what.lora.device, what.lora.dtype)
    try:
        weights.load(empty=True)
        lengths = measure(weights, what.examples(client))
    finally:
        asyncio.run(client.aclose())
    memory = footprint(weights, lengths, what.lora).summary()
    return AnswererRehearsal(lengths.summary(), memory, _without_looking(what), alike_across(what))


def alike_across(what: AnswererTraining) -> tuple[tuple[str, str], ...]:
    """The pairs of media (training, validation) that look the same, the most certain first. Identical files are refused
    elsewhere; media that are cropped or begin at another time may be missed."""
    training, validation = (
        look_at_items(part.counted(), what.library, PICTURES)[0] for part in (what.training, what.validation)
    )
    return tuple((leak.first.source, leak.second.source) for leak in find_leaks(training, validation))


def _without_looking(what: AnswererTraining) -> dict[str, Estimate]:
    benchmark = what.validation
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "baselines.db")
        try:
            store.add_benchmark(benchmark)
            asyncio.run(_answered(what, store))
            known = {run.system for run in store.runs(benchmark.name)}
            drawn = Resampling(draws=what.draws, seed=what.seed)
            return {
                name: bucket_mean(store, benchmark.name, Contest("text-only", (name,)), drawn)
                for name in (COMMONEST, *BASELINES)
                if name in known
            }
        finally:
            store.close()


async def _answered(what: AnswererTraining, store: Store) -> None:
    benchmark, commonest = what.validation, build_system("majority")
    scorers = code_scorers(benchmark)
    await add_baselines(store, benchmark, scorers, seed=what.seed)
    if isinstance(commonest, NeedsReferences):
        commonest.learn(what.training.counted())
    if any(commonest.supports(item) for item in benchmark.counted()):
        asked = [Renamed(commonest, COMMONEST)]
        options = PlanOptions(seed=what.seed)
        planned = plan(store, benchmark, asked, ["text-only"], what.library, scorers=scorers, options=options)
        await execute(store, planned, Limits())
