"""The protocols between rooms: view, system, scorer and benchmark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pydantic import JsonValue

from proctor.core.errors import InputError
from proctor.core.formatting import count_of
from proctor.core.hashes import fingerprint
from proctor.core.item import Excerpt, Item
from proctor.core.metric import Metric, PublishedTable, RatingScheme, VerifiedFigure
from proctor.core.records import Answer, FailedPolicy, Judgement, Score
from proctor.core.sources import DataSource, read_source

if TYPE_CHECKING:
    from proctor.core.registry import PluginReport


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture for a system: JPEG bytes, time in seconds of the video (None for still images), and label ("A",
    "t = 3.0 s").

    >>> Frame(jpeg=b"...", time=3.0, label="t = 3.0 s").time
    3.0
    """

    jpeg: bytes
    time: float | None
    label: str


class View(Protocol):
    """The media of an item under a condition, decoded on demand. Systems get pictures only through a view."""

    @property
    def condition(self) -> str:
        """The name of the condition."""

    @property
    def span(self) -> tuple[float, float] | None:
        """Start and end of the clip in seconds of its video; None if no video is shown."""

    async def frames(
        self, *, count: int | None = None, fps: float | None = None, window: tuple[float, float] | None = None
    ) -> list[Frame]:
        """The frames in the order to be shown.

        For a video: `count` evenly spaced frames, or `fps` frames per second; `window` (in seconds of the video) is
        clipped to the clip. For images: all images in order. Empty if the condition shows nothing. Raises `InputError`
        if a file can't be read.
        """


class System(Protocol):
    """A system that answers items."""

    @property
    def name(self) -> str:
        """The name under which results are stored and shown."""

    @property
    def settings(self) -> dict[str, JsonValue]:
        """All settings that affect the answers (model, prompt hash, seed …); recorded with the run."""

    def supports(self, item: Item) -> bool:
        """Whether the system can answer this format; other items are skipped."""

    async def answer(self, item: Item, view: View) -> Answer:
        """Answer one item, which has no reference, tags or media.

        Raises `InfrastructureError` or `OSError` (recorded as `failed`), `RefusalError` (`refused`), `SystemFaultError`
        or any other exception (`error`), and `ConfigurationError`, which stops the run.
        """


@runtime_checkable
class NeedsReferences(Protocol):
    """An oracle baseline (such as `majority`), which uses the reference answers. It is marked as such and never
    ranked."""

    def learn(self, items: Sequence[Item]) -> None:
        """Called once with all items of the benchmark and their references, before the first question."""


class Scorer(Protocol):
    """Scores answers. A judge is a scorer that asks a model."""

    @property
    def name(self) -> str:
        """The name: "code", or that of the judge and its model."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of its scores."""

    def applies(self, item: Item) -> bool:
        """Whether it scores answers to this item."""

    async def score(self, item: Item, answer: Answer) -> list[Score]:
        """Score one answer, which is never a `failed` one. Raises `InfrastructureError` if a judge gets no verdict; the
        answer then remains unscored and is counted as such."""


class JudgementCache(Protocol):
    """A persistent cache of judgements."""

    def get(self, key: str) -> Judgement | None:
        """The judgement with this key, or None."""

    def put(self, judgement: Judgement) -> None:
        """Store a judgement; it is on disk on return. Existing keys are not overwritten."""


@dataclass(frozen=True)
class FilesOrigin:
    """The location of a benchmark's files and how to read them, which a store remembers for later commands. `columns`
    maps fields to column names.

    >>> FilesOrigin(Path("my-questions")).track
    ''
    """

    data: Path
    track: str = ""
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Benchmark:
    """Items, their media and the evaluation protocol.

    items, metrics: the questions, and the metrics of their scores. headline: the metric by which systems are ranked.
    facets: tags by which results can be split. conditions: the offered conditions, the default first. only: tag values
    that an item must have to be counted by default. media_root: the media folder on this machine. budget_s: time budget
    per item in seconds. seeds: seeds of draws in the items (such as the order of options). notes: remarks on the
    numbers. simulated: whether items are simulated, which is shown with the name. buckets: tags whose combinations are
    the buckets of the ranking. relevance: the tag of the items of a second ranking. published: published figures to
    compare with. failed: the treatment of missing scores by the benchmark's rules (None: not specified). excerpts: the
    longer videos from which videos were cut. rating: the dimensions on which people and judges rate answers. scorers:
    additional scorers. prompt: a template for models. judge: the default judge. reading: how the files were
    interpreted. origin: the location of the files. reader: the installed benchmark in whose form the files are, where
    they have a name of their own. numbered: whether the ids are numbers of rows that the reader made up, since the files
    have none.

    >>> from proctor.core import ACCURACY
    >>> from proctor.core.formats import BinaryFormat
    >>> items = tuple(Item(id=name, group="v1", question="Is a clip visible?", answer=BinaryFormat(),
    ...                    tags={"keep": name != "q3"}) for name in ("q1", "q2", "q3"))
    >>> mine = Benchmark("mine", "Mine", items, (ACCURACY,), "accuracy", only={"keep": True})
    >>> [item.id for item in mine.counted()], len(mine.counted(all_items=True))
    (['q1', 'q2'], 3)
    >>> mine
    Benchmark('mine', 'Mine', 3 items, headline='accuracy', conditions=('video', 'text-only'))
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
    reader: str = ""
    numbered: bool = False

    @property
    def read_by(self) -> str:
        """The name of its reader."""
        return self.reader or self.name

    def __repr__(self) -> str:
        """The name, the title and the number of items: items may be thousands."""
        shown = f"{count_of(len(self.items), 'item')}, headline={self.headline!r}, conditions={self.conditions!r}"
        return f"Benchmark({self.name!r}, {self.title!r}, {shown})"

    @property
    def fingerprint(self) -> str:
        """The hash of all items, including those that are not counted."""
        return fingerprint(self.items)

    def counted(self, *, all_items: bool = False) -> list[Item]:
        """The items that are counted, in order."""
        return [
            item
            for item in self.items
            if all_items or all(item.tags.get(tag) == value for tag, value in self.only.items())
        ]


@dataclass(frozen=True)
class RecordedAnswers:
    """Answers recorded elsewhere, with their judgements and scores.

    `settings` describes their origin; `notes` are remarks of the reader for the user. `condition` and `system` are
    those stated by the files ("" if not stated). `unknown` are the ids of records without an item, which were left out,
    and `repeated` the items with the same answer in several records, of which one was taken.

    >>> from proctor.core import Answer
    >>> RecordedAnswers(answers=(Answer(item_id="q1", text="no", parsed=False),)).judgements
    ()
    """

    answers: tuple[Answer, ...]
    judgements: tuple[Judgement, ...] = ()
    scores: tuple[Score, ...] = ()
    settings: dict[str, JsonValue] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    condition: str = ""
    system: str = ""
    unknown: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordedScores:
    """Scores recorded elsewhere, by item, system and dimension; None for deliberate omissions. `notes` are remarks of
    the reader for the user.

    >>> RecordedScores({("e1", "s1", "overall"): 0.5}).notes
    ()
    """

    scores: Mapping[tuple[str, str, str], float | None]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Briefing:
    """Information for models and judges that applies to all questions of a benchmark.

    `definitions` are terms with their meaning. `own_clock` is true if times in questions refer to the whole video, also
    if only a part of it is shown.

    >>> Briefing({"Clip": "A small clamp."}).own_clock
    False
    """

    definitions: Mapping[str, str] = field(default_factory=dict)
    own_clock: bool = False


@dataclass(frozen=True)
class OfficialFigure:
    """A number of a benchmark's official summary; `level` and `name` as in the official program.

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
    "prediction_weights": ("prediction_report",),
    "corrections": ("figures",),
    "protocols": ("official_summary",),
    "audit_figures": ("official_audit",),
    "verified_files": ("verify",),
    "reads_paths": ("check",),
}
"""The attributes of a reader, and the methods that each of them requires."""


class BenchmarkReader(ABC):
    """The reader of a benchmark, found by the entry point group `proctor.benchmarks`.

    A subclass needs a `name` (as on the command line), a `summary` (one line for `proctor list`) and `load`. Optional
    features are declared by the other attributes, and implemented by overriding the methods that belong to them.
    """

    name: str
    summary: str
    tracks: tuple[str, ...] = ()
    """The tracks, which differ in media and budget (see `on_track`); the last one is the default."""
    prompts: Path | None = None
    """The folder of prompts for models: NAME.txt.j2, and named variants as NAME.paper.txt.j2."""
    judge_prompts: Path | None = None
    """The folder of prompts for judges of dimensions: KIND_LANGUAGE.txt.j2, and KIND.txt.j2 for other languages."""
    briefing: Briefing | None = None
    """Information for models and judges, which must not reveal anything about single items."""
    rubric_judge: str | None = None
    """The registry name of the judge intended for its free-text answers."""
    recorded_in_folders: bool = False
    """Whether `read_recorded` reads folders only, so that a single file is another program's table."""
    ratings: bool = False
    """Whether recorded files have answers of several systems with human ratings (`read_ratings`), and scores of them
    (`read_scores`)."""
    submission_formats: tuple[str, ...] = ()
    """The formats that `write_submission` writes."""
    score_formats: tuple[str, ...] = ()
    """The formats that `write_scores` writes."""
    prediction_weights: Mapping[str, float] = MappingProxyType({})
    """The default weights of the overall score, if predictions can be scored from two files (`prediction_report`)."""
    corrections: tuple[str, ...] = ()
    """The corrections to the official program's summary (`figures`), in sentences."""
    protocols: tuple[str, ...] = ()
    """The variants of the official summary (`official_summary`): "official", and "corrected" if that differs."""
    audit_figures: bool = False
    """Whether the organisers publish an audit with their own keys (`official_audit`)."""
    exchange_within: tuple[str, ...] = ()
    """If wrong options can be replaced (`write_choices`): the tags that two items must share for the right answer of
    one to serve as a wrong option of the other, such as question type and organ."""
    reads_paths: bool = False
    """Whether it reads any folder or file of questions, so that a path can be given as benchmark."""

    sources: Path | None = None
    """The YAML file with the source of the data, under the benchmark's name (see `read_source`)."""

    verified_files: tuple[str, ...] | None = None
    """If published figures can be recomputed (`verify`): the files in the folder of recorded answers; () if no files
    are needed."""

    def __init_subclass__(cls) -> None:
        """Raise `TypeError` if a reader sets an attribute to another value than the default, but lacks a method that
        the attribute requires."""
        super().__init_subclass__()
        for attribute, methods in _METHODS.items():
            states = getattr(cls, attribute) != getattr(BenchmarkReader, attribute)
            for method in methods:
                if states and getattr(cls, method) is getattr(BenchmarkReader, method):
                    raise TypeError(f"{cls.__name__} states `{attribute}` and has no method `{method}`")

    def called(self, name: str) -> BenchmarkReader:
        """The reader for a benchmark of another name that has its form."""
        other = copy(self)
        other.name = name
        return other

    def _without(self, attribute: str) -> str:
        return f"{type(self).__name__} does not state `{attribute}`"

    @abstractmethod
    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        """Read the native files. Raises `InputError` for invalid files."""

    def on_track(self, track: str) -> BenchmarkReader:
        """The reader of a track. Raises `InputError` with the choices for an unknown track."""
        raise InputError("--track", found=repr(track), expected=f"no track, {self.name} has none")

    def with_columns(self, columns: Mapping[str, Sequence[str]]) -> BenchmarkReader:
        """The reader of files with these columns for these fields. Raises `InputError` if the files have a fixed
        form."""
        raise InputError(
            "--map", found=", ".join(columns), expected=f"none: the files of {self.name} have a fixed form"
        )

    def read_recorded(self, path: Path, benchmark: Benchmark) -> RecordedAnswers:
        """Read answers in the benchmark's native format. Raises `InputError` by default: there is no such format."""
        raise InputError(
            path,
            f"benchmark {benchmark.name!r}",
            found="recorded answers",
            expected="a run: it has no native format for recorded answers",
        )

    def read_ratings(
        self, path: Path, benchmark: Benchmark, *, answers_only: bool = False
    ) -> tuple[RecordedAnswers, ...]:
        """Read the answers of each system in a file, with human ratings as scores by `human(rater)`; `answers_only`
        ignores ratings. Raises `InputError` with the row."""
        raise NotImplementedError(self._without("ratings"))

    def read_scores(self, path: Path, rated: Mapping[tuple[str, str, str], str]) -> RecordedScores:
        """Read scores. `rated` has the answers' texts by item, system and dimension, each of which needs a score.
        Raises `InputError` with the row."""
        raise NotImplementedError(self._without("ratings"))

    def write_choices(self, data: Path, out: Path, items: Mapping[str, Item | None]) -> None:
        """Write the benchmark's files at `data` to the folder `out`, with the options, answers and option pools of
        these choice items (by id, in this order). Items that are None are kept, but not counted. `load` reads the
        result. Raises `InputError` by default: not supported."""
        del out, items
        raise InputError(
            data,
            f"benchmark {self.name!r}",
            found="options to replace",
            expected="a benchmark that can be written again (`write_choices` of its reader)",
        )

    def write_questions(self, data: Path, out: Path, items: Collection[str], *, references: bool) -> None:
        """Write the benchmark's files at `data` to the folder `out`, restricted to these items. Without `references`
        the files do not reveal the answers, and `load` reads the same questions with options in the same order. Raises
        `InputError` by default: not supported."""
        del out, items, references
        found = "questions to hand out"
        expected = "files written by hand, or a benchmark that can write them (`write_questions` of its reader)"
        raise InputError(data, f"benchmark {self.name!r}", found=found, expected=expected)

    def write_submission(self, form: str, answers: Sequence[Answer], file: Path) -> int:
        """Write the answers in the organisers' format and return their number; failed and missing answers are omitted.
        Raises `InputError` if the file can't be written."""
        raise NotImplementedError(self._without("submission_formats"))

    def write_scores(
        self, form: str, scorer: str, scored: Sequence[Any], file: Path, *, template: Path | None, allow_missing: bool
    ) -> int:
        """Write a scorer's scores (`proctor.results.ScoredAnswer`) and return the number of rows; a template determines
        rows and order. Raises `InputError` for a missing score unless `allow_missing`, and if the file can't be
        written."""
        raise NotImplementedError(self._without("score_formats"))

    def prediction_report(
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
        """Score a file of predictions; missing `weights` have their defaults. Invalid or missing answers count as
        wrong, or raise `InputError` with `strict`. Raises `InputError` for unreadable files and unknown weights. Of
        `more`, `similarity` is the text similarity, and `invalid` is whether invalid answers are "wrong" in every
        figure or get "partial" credit."""
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
        """The official summary of a run, from the group, tags and correctness of each question. `official` reproduces
        the official program exactly; otherwise its weaknesses are corrected."""
        raise NotImplementedError(self._without("corrections"))

    def official_summary(self, store: Any, options: Any, *, corrected: bool) -> PluginReport:
        """The official summaries of the runs in a `Store` selected by `Options`, exactly as in the official program, or
        `corrected`."""
        raise NotImplementedError(self._without("protocols"))

    def official_audit(self, audit: Any) -> dict[str, float | None]:
        """The figures of one metric in an `Audit` by the organisers' keys; None for undefined correlations."""
        raise NotImplementedError(self._without("audit_figures"))

    def check(self, data: Path, media: Path | None, out: Path | None, *, every: bool = False) -> PluginReport:
        """Check the questions at a path. The report lists all faults by cause, or `every` fault, and as "faults" in its
        `json`. If there are none, a preview page is written to `out`, if given. Raises `InputError` if nothing exists
        at the path."""
        raise NotImplementedError(self._without("reads_paths"))

    def question_files(self, data: Path) -> Sequence[Path]:
        """The files with the questions at a path, which outputs must not overwrite."""
        return (data,)

    async def verify(self, data: Path) -> Sequence[VerifiedFigure]:
        """The published figures and ours, recomputed from the recorded answers in a folder with `verified_files`.
        Raises `InputError` for unreadable files."""
        raise NotImplementedError(self._without("verified_files"))

    def source(self) -> DataSource | None:
        """The source, owner and licence of the data, or None."""
        return None if self.sources is None else read_source(self.sources, self.name)

    def media_help(self, data: Path, missing: Sequence[str]) -> str:
        """Instructions for getting the missing media files."""
        files = count_of(len(missing), "media file")
        return f"{files} missing: copy from where {data.name} came from into the media folder."
