"""The small protocols between the rooms: what a view, a system, a scorer and a benchmark are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pydantic import JsonValue

from proctor.core.errors import InputError
from proctor.core.hashes import fingerprint
from proctor.core.item import Excerpt, Item
from proctor.core.metric import Metric, PublishedTable, RatingScheme, VerifiedFigure
from proctor.core.records import Answer, FailedPolicy, Judgement, Score
from proctor.core.sources import DataSource, read_source
from proctor.core.words import count_of

if TYPE_CHECKING:
    from proctor.core.registry import PluginReport


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture as a system gets it: JPEG bytes, its time in seconds of the video (None for a still
    image) and its label ("A", "t = 3.0 s").

    >>> Frame(jpeg=b"...", time=3.0, label="t = 3.0 s").time
    3.0
    """

    jpeg: bytes
    time: float | None
    label: str


class View(Protocol):
    """An item's media under a condition, on demand. It is the only way to the pixels."""

    @property
    def condition(self) -> str:
        """The condition's name."""

    @property
    def span(self) -> tuple[float, float] | None:
        """Start and end of the clip in seconds of its video; None where there is no video to see."""

    async def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[Frame]:
        """Frames in the order in which they are to be shown.

        Of a video: `count` frames spread evenly, or `fps` frames a second; `window` (seconds of the
        video) is cut to the clip. Of images: all of them, in the item's order. Empty where the
        condition shows nothing. Raises `InputError` where a file can't be read.
        """


class System(Protocol):
    """Whatever answers items."""

    @property
    def name(self) -> str:
        """Under this name its results are kept and shown."""

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Everything that changes its answers (model, prompt hash, seed …); recorded with the run."""

    def supports(self, item: Item) -> bool:
        """Whether it can answer this format at all; an item that it can't is not asked."""

    async def answer(self, item: Item, view: View) -> Answer:
        """Answers one item. The item carries no reference, tags or media. Raises `InfrastructureError` or an `OSError`
        (an infrastructure error: recorded `failed`), `RefusalError` (`refused`), `SystemFaultError` (`error`, as is
        every other exception), `ConfigurationError` (stops the run)."""


@runtime_checkable
class NeedsReferences(Protocol):
    """An oracle baseline (`majority`): it gets the reference answers beforehand, is shown as such and never ranked."""

    def learn(self, items: Sequence[Item]) -> None:
        """Gets all items of the benchmark with their references, once, before the first question."""


class Scorer(Protocol):
    """Turns an answer into scores. A judge is a scorer that asks a model."""

    @property
    def name(self) -> str:
        """ "code", or the judge's name with its model."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What it gives."""

    def applies(self, item: Item) -> bool:
        """Whether it marks answers to this item."""

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """Marks one answer; never called for a `failed` one. A judge that gets no verdict raises
        `InfrastructureError`: the answer stays unmarked, and is counted so."""


class JudgementCache(Protocol):
    """Where judges keep and find their judgements."""

    def get(self, key: str) -> Judgement | None:
        """The judgement under this key, if it was ever made."""

    def put(self, vote: Judgement) -> None:
        """Keeps a judgement permanently, on disk when this returns; a key that is there already stays as it is."""


@dataclass(frozen=True)
class FilesOrigin:
    """Where a benchmark's files lie and how they are read: what a store remembers for the next command. `columns` says
    by field which column holds it.

    >>> FilesOrigin(Path("my-questions")).track
    ''
    """

    data: Path
    track: str = ""
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Benchmark:
    """Items, their media and the protocol.

    `headline` is the metric that ranks, `facets` are the tags that results can be split by, `only` are tag values an
    item must have to count (unless all items are asked for), `buckets` are the tags whose combinations make the buckets
    of the ranking, `relevance` is the tag of the items that a second ranking is made of, `media_root` is where the
    media of this machine lie, `seeds` are the draws already made (the options' order …), `notes` are what a reader of
    the numbers should know, `simulated` is shown wherever the name is, `published` are the figures of others to stand
    beside, `excerpts` say of videos what part of which longer one they are, `failed` is what the benchmark's own rules
    say of items that a run lacks a score for (None: they say nothing), `rating` are the dimensions that people and
    judges rate its answers on, if they do, `scorers` score its answers beside those that score every benchmark's,
    `prompt` is a template of its own for models, `judge` the name of the judge that scores it where none is named,
    `reading` says how its files were understood, `origin` where these lie (see `load`).

    >>> from proctor.core import ACCURACY
    >>> from proctor.core.formats import BinaryFormat
    >>> items = tuple(Item(id=name, group="v1", question="Is a clip visible?", answer=BinaryFormat(),
    ...                    tags={"keep": name != "q3"}) for name in ("q1", "q2", "q3"))
    >>> mine = Benchmark("mine", "Mine", items, (ACCURACY,), "accuracy", only={"keep": True})
    >>> [item.id for item in mine.counted()], len(mine.counted(all_items=True))
    (['q1', 'q2'], 3)
    """

    name: str
    title: str
    items: tuple[Item, ...]
    metrics: tuple[Metric, ...]
    headline: str
    facets: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ("video", "text-only")
    only: dict[str, JsonValue] = field(default_factory=dict)
    media_root: Path | None = None
    budget_s: float | None = None
    seeds: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    simulated: bool = False
    buckets: tuple[str, ...] = ()
    relevance: str = ""
    published: PublishedTable | None = None
    failed: FailedPolicy | None = None
    excerpts: Mapping[str, Excerpt] = field(default_factory=dict)
    rating: RatingScheme | None = None
    scorers: tuple[Scorer, ...] = ()
    prompt: Path | None = None
    judge: str = ""
    reading: tuple[str, ...] = ()
    origin: FilesOrigin | None = None

    @property
    def fingerprint(self) -> str:
        """The hash of all items, also of those that do not count."""
        return fingerprint(self.items)

    def counted(self, *, all_items: bool = False) -> list[Item]:
        """The items that count, in the benchmark's order."""
        return [
            item
            for item in self.items
            if all_items or all(item.tags.get(tag) == value for tag, value in self.only.items())
        ]


@dataclass(frozen=True)
class RecordedAnswers:
    """Answers that were given elsewhere, with the votes and scores that came with them.

    `settings` describes their origin; `notes` is what their reader found and a person should know; `condition` is
    the one under which the files themselves say that they were given, and `system` the name of who gave them ("" where
    they do not say).

    >>> from proctor.core import Answer
    >>> RecordedAnswers(answers=(Answer(item_id="q1", text="no", parsed=False),)).votes
    ()
    """

    answers: tuple[Answer, ...]
    votes: tuple[Judgement, ...] = ()
    scores: tuple[Score, ...] = ()
    settings: dict[str, JsonValue] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    condition: str = ""
    system: str = ""


@dataclass(frozen=True)
class RecordedScores:
    """Scores that a scorer gave elsewhere, by item, system and dimension; None where it left one out on purpose.
    `notes` is what their reader found and a person should know.

    >>> RecordedScores({("e1", "s1", "overall"): 0.5}).notes
    ()
    """

    scores: Mapping[tuple[str, str, str], float | None]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Briefing:
    """What holds for all questions of a benchmark and stands in none of them: for the models that answer, and
    for those that judge.

    `definitions` are words with their meaning there; `own_clock` says that questions name times by the clock
    of the whole video, also where only a part of it is shown.

    >>> Briefing({"Clip": "A small clamp."}).own_clock
    False
    """

    definitions: Mapping[str, str] = field(default_factory=dict)
    own_clock: bool = False


@dataclass(frozen=True)
class OfficialFigure:
    """One number of a benchmark's own summary: `level` and `name` as its own program writes them.

    >>> OfficialFigure("latency", "timed_out", None, None, None, 35).n
    35
    """

    level: str
    name: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int


_METHODS: Mapping[str, tuple[str, ...]] = {
    "ratings": ("read_ratings", "read_scores"),
    "submission_formats": ("write_submission",),
    "score_formats": ("write_scores",),
    "prediction_weights": ("mark_predictions",),
    "corrections": ("figures",),
    "protocols": ("official_summary",),
    "audit_figures": ("official_audit",),
    "verified_files": ("verify",),
    "reads_paths": ("check",),
}
"""What a reader states, and the methods that belong to it."""


class BenchmarkReader(ABC):
    """One benchmark's module, found by the entry point group `proctor.benchmarks`.

    A subclass needs a `name` (as on the command line), a `summary` (one line for `proctor list`) and `load`. The rest
    has defaults: what a benchmark brings beside its items it states by the attributes here, and by overriding the
    methods that belong to them.
    """

    name: str
    summary: str
    tracks: tuple[str, ...] = ()
    """The tracks, which differ in media and budget (see `on_track`); the last one is read where none is chosen."""
    prompts: Path | None = None
    """The folder of its prompts for models that answer: NAME.txt.j2, and named ones as NAME.paper.txt.j2."""
    judge_prompts: Path | None = None
    """The folder of its prompts for judges of dimensions: KIND_LANGUAGE.txt.j2, and KIND.txt.j2 for other languages."""
    briefing: Briefing | None = None
    """What its models and judges are told; the same for all items, and gives away nothing of any."""
    rubric_judge: str | None = None
    """The judge (by registry name) that its free-text answers are made for."""
    ratings: bool = False
    """Whether its recorded files hold several systems' answers and people's ratings (`read_ratings`), and a scorer's
    scores of them (`read_scores`)."""
    submission_formats: tuple[str, ...] = ()
    """The formats that `write_submission` writes."""
    score_formats: tuple[str, ...] = ()
    """The formats that `write_scores` writes."""
    prediction_weights: Mapping[str, float] = MappingProxyType({})
    """Where predictions can be marked from two files alone (`mark_predictions`): the weights of the overall score, with
    their defaults."""
    corrections: tuple[str, ...] = ()
    """Where it has a program of its own with a summary of its own (`figures`): what is corrected in it, in
    sentences."""
    protocols: tuple[str, ...] = ()
    """Where it has a summary of its own (`official_summary`): "official", and "corrected" where that is another one."""
    audit_figures: bool = False
    """Whether its organisers publish an audit under keys of their own (`official_audit`)."""
    exchange_within: tuple[str, ...] = ()
    """Where the wrong options of its choices can be replaced (`write_choices`): the tags that two items must share
    before a right answer of one may serve as a wrong option of the other, such as the type of question and the
    organ."""
    reads_paths: bool = False
    """Whether it reads any folder or file of questions, so that a path stands for a benchmark."""

    sources: Path | None = None
    """The YAML file that says where the data can be had, with an entry of the benchmark's name (see `read_source`)."""

    verified_files: tuple[str, ...] | None = None
    """Where its published figures can be computed again (`verify`): what the folder of recorded answers holds; () where
    no files are needed."""

    def __init_subclass__(cls) -> None:
        """Raises `TypeError` where a reader states something (also nothing, where that is no default) and lacks the
        method that belongs to it."""
        super().__init_subclass__()
        for attribute, methods in _METHODS.items():
            states = getattr(cls, attribute) != getattr(BenchmarkReader, attribute)
            for method in methods:
                if states and getattr(cls, method) is getattr(BenchmarkReader, method):
                    raise TypeError(f"{cls.__name__} states `{attribute}` and has no method `{method}`")

    def _without(self, attribute: str) -> str:
        return f"{type(self).__name__} does not state `{attribute}`"

    @abstractmethod
    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        """Reads the native files. Raises `InputError` before anything is half done."""

    def on_track(self, track: str) -> BenchmarkReader:
        """The reader of one track. Raises `InputError` that lists them for an unknown one."""
        raise InputError("--track", found=repr(track), expected=f"no track, {self.name} has none")

    def with_columns(self, columns: Mapping[str, Sequence[str]]) -> BenchmarkReader:
        """The reader of files in which these columns stand for these fields. Raises `InputError` where its files are of
        a form of their own."""
        raise InputError(
            "--map", found=", ".join(columns), expected=f"none: the files of {self.name} have a fixed form"
        )

    def read_recorded(self, path: Path, benchmark: Benchmark) -> RecordedAnswers:
        """Reads answers in the benchmark's native format for results. By default there is none: `InputError`."""
        raise InputError(
            path,
            f"benchmark {benchmark.name!r}",
            found="recorded answers",
            expected="a run: it has no native format for recorded answers",
        )

    def read_ratings(
        self, path: Path, benchmark: Benchmark, *, answers_only: bool = False
    ) -> tuple[RecordedAnswers, ...]:
        """The answers of each system that the file names, with people's ratings as scores by `human(rater)`; where
        `answers_only`, ratings are not looked at. Raises `InputError`, with the row, for anything else."""
        raise NotImplementedError(self._without("ratings"))

    def read_scores(self, path: Path, rated: Mapping[tuple[str, str, str], str]) -> RecordedScores:
        """The scores in a file. `rated` are the texts of the answers by item, system and dimension, of which each
        must have one. Raises `InputError`, with the row, for anything else."""
        raise NotImplementedError(self._without("ratings"))

    def write_choices(self, data: Path, out: Path, items: Mapping[str, Item | None]) -> None:
        """Writes the benchmark's own files at `data` into the folder `out`, with the options, keys and option pools of
        these choice items, by id, in the order in which these stand; items that are None are kept and not counted.
        `load` reads them back as they are. By default there is no way to: `InputError`."""
        del out, items
        raise InputError(
            data,
            f"benchmark {self.name!r}",
            found="options to replace",
            expected="a benchmark that can be written again",
        )

    def write_questions(self, data: Path, out: Path, items: Collection[str], *, references: bool) -> None:
        """Writes the benchmark's own files at `data` into the folder `out`, of these items alone. Without `references`
        nothing that is written tells what is right, and `load` reads the same questions, options in the same order. By
        default there is no way to: `InputError`."""
        del out, items, references
        found, expected = "questions to hand out", "files written by hand, or a benchmark that can write them"
        raise InputError(data, f"benchmark {self.name!r}", found=found, expected=expected)

    def write_submission(self, form: str, answers: Sequence[Answer], file: Path) -> int:
        """Writes the answers that there are as the organisers take them and returns how many: what failed, or is
        missing, is left out. Raises `InputError` where the file can't be written."""
        raise NotImplementedError(self._without("submission_formats"))

    def write_scores(
        self, form: str, scorer: str, scored: Sequence[Any], file: Path, *, template: Path | None, allow_missing: bool
    ) -> int:
        """Writes a scorer's scores (`proctor.runs.ScoredAnswer`) and returns the number of rows; those of a template,
        where one is given, in its order. Raises `InputError` for a missing score unless `allow_missing`, and where the
        file can't be written."""
        raise NotImplementedError(self._without("score_formats"))

    def mark_predictions(
        self,
        predictions: Path,
        references: Path,
        *,
        weights: Mapping[str, float],
        draws: int,
        seed: int,
        strict: bool = False,
        **more: Any,
    ) -> PluginReport:
        """Marks a file; a weight that is not named has its default. Raises `InputError` for what can't be read, for a
        weight that it does not know, and with `strict` for an answer that is missing or not valid, which
        is else wrong and counted. Of `more`, `similarity` says how texts are compared with texts, and `invalid` whether
        an answer that is not valid is "wrong" in every figure or counts as far as it goes ("partial")."""
        raise NotImplementedError(self._without("prediction_weights"))

    def figures(
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
        """Its own summary of one run, of each question its group, its tags and whether it was answered right.
        `official`: exactly as its own program computes it; else the same figures with its weaknesses corrected."""
        raise NotImplementedError(self._without("corrections"))

    def official_summary(self, store: Any, options: Any, *, corrected: bool) -> PluginReport:
        """Its own summary of every run in a `Store` that the `Options` choose, exactly as its own program computes it,
        or `corrected`."""
        raise NotImplementedError(self._without("protocols"))

    def official_audit(self, audit: Any) -> dict[str, float | None]:
        """One metric's figures (of an `Audit`) under the organisers' keys; None where there is no correlation."""
        raise NotImplementedError(self._without("audit_figures"))

    def check(self, data: Path, media: Path | None, out: Path | None, *, every: bool = False) -> PluginReport:
        """All that is wrong with the questions at a path, at once: "faults" in its `json`, and in lines by cause, or
        `every` one by itself. Where nothing is, `out` is a page with some of them, if one is wanted. Raises
        `InputError` where nothing is there."""
        raise NotImplementedError(self._without("reads_paths"))

    def question_files(self, data: Path) -> Sequence[Path]:
        """The files at a path that hold the questions, which no output replaces."""
        return (data,)

    async def verify(self, data: Path) -> Sequence[VerifiedFigure]:
        """Its published figures beside ours, from the recorded answers in a folder that holds `verified_files`. Raises
        `InputError` for what can't be read."""
        raise NotImplementedError(self._without("verified_files"))

    def source(self) -> DataSource | None:
        """Where its data can be had, whose they are and under which licence; None where it does not say so."""
        return None if self.sources is None else read_source(self.sources, self.name)

    def media_help(self, data: Path, missing: Sequence[str]) -> str:
        """How a person gets the media files that are missing."""
        files = count_of(len(missing), "media file")
        return f"{files} missing: copy from where {data.name} came from into the media folder."
