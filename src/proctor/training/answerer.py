"""A benchmark's items as examples to learn from: asked just as they are when a model is examined, with the right reply."""

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
from proctor.runs import (
    BASELINES,
    Contest,
    Limits,
    PlanOptions,
    Store,
    add_baselines,
    bucket_mean,
    delete_runs,
    execute,
    plan,
    run_settings,
)
from proctor.stats import Estimate, Resampling
from proctor.systems import ModelSystem, Renamed, build_system, say
from proctor.training.fine_tuning import (
    ChatExample,
    LoraSettings,
    fine_tune,
    footprint,
    measure,
    trained_name,
    with_adapter,
)
from proctor.training.run_folder import CheckpointEvaluation, RunFolder

_KEPT_BYTES = 2**28
"""So much of what was read once is kept in memory."""


@dataclass(frozen=True)
class Lesson:
    """An item with the reply to learn. In `turn` 0 it is shown as in an examination; in each further one a clip that is
    longer than its frames is shown at other moments."""

    item: Item
    reply: str
    turn: int = 0


def reply_to(item: Item) -> str | None:
    """The reference answer in the form that the prompt asks for; None where there is none, or where the item's format
    does not read it back as right."""
    if item.reference is None or item.reference.answer is None:
        return None
    text = say(item.answer, item.reference.answer)
    try:
        return text if item.answer.match(item.reference.answer, item.answer.parse(text, item.options)) else None
    except ParseError:
        return None


def lessons(items: Sequence[Item], library: MediaLibrary, *, windows: int = 1) -> list[Lesson]:
    """What is learned from items, in their order; those without a reply are left out. A clip that is longer than the
    most frames at their rate is shown in `windows` ways: each cuts it into as many equal windows as there are frames
    and shows a moment of each (Wang et al. 2016, Temporal Segment Networks, ECCV). Other conditions than `video` show
    all of these as in an examination."""
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
    """Each example is made when it is read: its pictures stay in the frame store. `view` is that of an examination
    under a condition."""

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
    def __getitem__(self, place: int) -> ChatExample: ...
    @overload
    def __getitem__(self, place: slice) -> list[ChatExample]: ...
    def __getitem__(self, place: int | slice) -> ChatExample | list[ChatExample]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        if place in self._kept:
            return self._kept[place]
        made = asyncio.run(self._made(self._lessons[place]))
        size = sum(len(picture) for picture in made.query.pictures)
        if size <= self._left:
            self._kept[place] = made
            self._left -= size
        return made

    async def _made(self, lesson: Lesson) -> ChatExample:
        item = lesson.item
        view = self._view(item)
        shown = view if lesson.turn == 0 else DrawnMoments(view, lesson, self._library, self._seed)
        return ChatExample(await self._system.query(item.as_asked(), shown), lesson.reply, item.group)


class DrawnMoments:
    """A view of one clip that is shown at a drawn moment of each of as many equal windows as it has frames."""

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
        """As many frames as the view gives, each with its own time."""
        usual = await self._view.frames(count=count, fps=fps, window=window)
        span, lesson = self._view.span, self._lesson
        if span is None or window is not None or not CONDITIONS.get(self.condition).unchanged:
            return usual
        start, end = span
        drawn = generator(self._seed, "windows", lesson.item.id, str(lesson.turn)).uniform(size=len(usual))
        times = [start + (end - start) * (place + share) / len(usual) for place, share in enumerate(drawn.tolist())]
        return await asyncio.to_thread(pictures_at, lesson.item, self.condition, self._library, times, seed=self._seed)


EVALUATIONS, CARD = "evaluations.db", "README.md"
"""In the folder of a training the store with each checkpoint's answers; beside trained weights what they are."""
_LEAST_REPLY, _MOST_REPLY = 16, 512


@dataclass(frozen=True)
class AnswererTraining:
    """What is learned from what. `system` makes the system that is trained and examined, from access to a model and a
    name; both parts are asked under `condition`. `windows`: see `lessons`. `draws` are those of the intervals.

    Raises `InputError` where the parts share a group or a medium (by its content), and where nothing is to be learned.
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
        """What is learned, in the benchmark's order."""
        return lessons(self.training.counted(), self.library, windows=self.windows)

    @property
    def left_out(self) -> int:
        """Training items without a reply to learn."""
        return len(self.training.counted()) - len({one.item.id for one in self.lessons})

    def examples(self, client: ModelClient) -> ItemExamples:
        """What is learned from, as the model is asked it."""
        items = self.training.counted()

        def shown(item: Item) -> View:
            return view(item, self.condition, self.library, seed=self.seed, others=items)

        return ItemExamples(self.lessons, self.system(client, ""), shown, self.library, self.seed)

    def client(self, trained: str = "") -> ModelClient:
        """Access to the base, or with `trained` ("+" and a folder) to the base with an adapter."""
        longest = max(len(one.reply) for one in self.lessons)  # in characters: a token has one at least
        settings: dict[str, JsonValue] = {
            "max_tokens": min(_MOST_REPLY, _LEAST_REPLY + longest),
            "device": self.lora.device,
            "dtype": self.lora.dtype,
            "batch_size": self.lora.batch,
        }
        return ModelClient(ModelSpec(name=f"transformers:{self.base}{trained}", settings=settings))

    def settings(self, client: ModelClient) -> dict[str, JsonValue]:
        """All that changes the result, for the run folder."""
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
    """Raises `InputError` where two parts share a group, or a medium under whatever name."""
    for what, of in (("group", lambda item, _: {item.group}), ("medium", _contents)):
        known = {one: item.id for item in training for one in of(item, library)}
        for item in validation:
            shared = sorted(of(item, library) & known.keys())
            if shared:
                found = f"the same {what} in {known[shared[0]]!r} and {item.id!r}"
                raise InputError("training and validation", found=found, expected="parts that share none")


def _contents(item: Item, library: MediaLibrary) -> set[str]:
    """The hashes of an item's media; their names where the files are not at hand."""
    missing = set(library.missing([item]))
    return {one.source if one.source in missing else library.identity(one.source) for one in item.media}


def _identities(benchmark: Benchmark, library: MediaLibrary) -> frozenset[str]:
    return frozenset(one for item in benchmark.counted() for one in _contents(item, library))


@dataclass(frozen=True)
class ExaminedCheckpoint:
    """A checkpoint's mean accuracy over the buckets of the validation part, with its interval over groups; `chosen` is
    the best one, the first of equals."""

    step: int
    accuracy: Estimate
    chosen: bool


@dataclass(frozen=True)
class TrainedAnswerer:
    """`weights` is the folder of the adapter (or of all weights, at rank 0), `model` how `proctor run --model` names
    it. `baselines` are the means of reference systems on the validation part, by name."""

    folder: Path
    weights: Path
    model: str
    checkpoints: tuple[ExaminedCheckpoint, ...]
    baselines: dict[str, float]
    lengths: str


def train_answerer(what: AnswererTraining, out: Path) -> TrainedAnswerer:
    """Trains in the folder `out`, or goes on there where it was stopped, and gives what it made.

    Every checkpoint is examined on the validation part by the engine of `proctor run`; its answers stay in the store
    `evaluations.db`, one system a checkpoint. The one with the highest mean over buckets is kept. At the end the adapter
    is loaded as `proctor run` loads it, which refuses one without effect.
    """
    client = what.client()
    try:
        with RunFolder.opened(out, what.settings(client)) as folder:
            store = Store(out / EVALUATIONS)
            store.add_benchmark(what.validation)
            asyncio.run(add_baselines(store, what.validation, code_scorers(what.validation), seed=what.seed))

            def examined(weights: Weights) -> CheckpointEvaluation:
                return _examined(what, weights, store, folder)

            made = fine_tune(what.base, what.examples(client), what.lora, folder, examined)
            with_adapter(what.base, made, device=what.lora.device, dtype=what.lora.dtype)
            return _told(what, folder, made, f"transformers:{trained_name(what.base, made)}", store)
    finally:
        asyncio.run(client.aclose())


def _examined(what: AnswererTraining, weights: Weights, store: Store, folder: RunFolder) -> CheckpointEvaluation:
    step = max((int(str(one["step"])) for one in folder.steps if "step" in one), default=0)
    name, benchmark = _name(step), what.validation
    left = [run for run in store.runs(benchmark.name) if run.system == name]  # by an attempt that was killed
    delete_runs(store, left)

    async def ask() -> int:
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
            return (await execute(store, planned, Limits(concurrency=2 * what.lora.batch))).failed
        finally:
            await client.aclose()

    failed = asyncio.run(ask())
    if failed:
        return CheckpointEvaluation(None, {"failed": failed}, _beside(what, step, None))
    found = _accuracy(what, store, name)
    told: dict[str, JsonValue] = {"ci_low": found.ci_low, "ci_high": found.ci_high, "questions": found.n}
    return CheckpointEvaluation(found.value, told, _beside(what, step, found))


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
    """The model card: Markdown with a YAML head, as the Hugging Face Hub reads it."""
    groups = {name: len({item.group for item in one.counted()}) for name, one in _parts(what).items()}
    low, high = (None, None) if accuracy is None else (accuracy.ci_low, accuracy.ci_high)
    interval = "no interval" if low is None else f"95 % interval {percent(low)} to {percent(high)}"
    value = percent(None if accuracy is None else accuracy.value)
    kind = f"LoRA of rank {what.lora.rank}" if what.lora.rank else "all weights"
    learned = (
        f"Fine-tuned ({kind}) on {count_of(len(what.lessons), 'example')} from {count_of(groups['training'], 'group')}, "
        f"under the condition {what.condition}; chosen at step {step} on {count_of(groups['validation'], 'other group')}."
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


def _parts(what: AnswererTraining) -> dict[str, Benchmark]:
    return {"training": what.training, "validation": what.validation}


def _told(what: AnswererTraining, folder: RunFolder, made: Path, model: str, store: Store) -> TrainedAnswerer:
    end = folder.finished or {}
    best = end.get("best")
    chosen = best.get("step") if isinstance(best, dict) else None
    steps = [int(str(one["step"])) for one in folder.steps if "evaluation" in one]
    runs = {run.system for run in store.runs(what.validation.name)}
    return TrainedAnswerer(
        folder=folder.path,
        weights=made,
        model=model,
        checkpoints=tuple(
            ExaminedCheckpoint(step, _accuracy(what, store, _name(step)), step == chosen) for step in steps
        ),
        baselines={name: _guessed(what, store, name) for name in BASELINES if name in runs},
        lengths=str(end.get("lengths", "")),
    )


def _guessed(what: AnswererTraining, store: Store, name: str) -> float:
    found = bucket_mean(store, what.validation.name, Contest("text-only", (name,)), Resampling(draws=100))
    return found.value or 0.0


COMMONEST = "commonest-in-training"
"""The best constant answers of the training part, by format: what learning nothing of pictures earns."""
PICTURES = 16
"""So many pictures of each video are compared across the parts."""


@dataclass(frozen=True)
class AnswererRehearsal:
    """`lengths` of the examples and the `memory`, for people. `baselines` are the means over buckets of systems that
    never look, on the validation part, by name. `alike` are pairs of media, one of each part, that look the same."""

    lengths: str
    memory: str
    baselines: dict[str, Estimate]
    alike: tuple[tuple[str, str], ...]


def rehearse_answerer(what: AnswererTraining) -> AnswererRehearsal:
    """Trains nothing, and loads no weights, only their form. Raises `InputError` for examples that are longer than the
    base reads."""
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
    """The pairs of media that look the same, the surest first: of the training part and of the validation part. Media
    that are the same file are refused elsewhere; what is cut or begins otherwise may be missed."""
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
