"""The protocols between rooms: view, system, scorer and benchmark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from pydantic import JsonValue

from proctor.core.errors import InputError
from proctor.core.formatting import count_of
from proctor.core.metric import Metric, PublishedTable, RatingScheme
from proctor.core.records import Answer, FailedPolicy, Judgement, Score
from proctor.core.validation import FrozenModel

if TYPE_CHECKING:
    from proctor.core.item import Item
    from proctor.core.sources import DataSource


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


class Excerpt(FrozenModel):
    """The part of a longer video from which a benchmark's video was made: `start` to `end` in seconds of the longer
    video, which is at `url` if that is known. Second 0 of the clip is its second `start`. `start` may be slightly
    negative as a result of alignment. `also` is another published name of the video, by which its file may be found.
    With `whole` the file is known to be the longer video.

    >>> Excerpt(start=18.25, end=131.25, url="https://example.org/v").seconds
    113.0
    """

    start: float
    end: float
    url: str = ""
    also: str = ""
    whole: bool = False

    @property
    def seconds(self) -> float:
        """The duration."""
        return self.end - self.start


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
    have none. abstain: whether its paper lets models abstain ("allow"), or says that this is wrong ("forbid"); "" leaves it
    to the run. A benchmark that says "forbid" has a prompt that says so.

    >>> from proctor.core import ACCURACY, Item
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
    abstain: Literal["", "allow", "forbid"] = ""

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
        from proctor.core.hashes import fingerprint

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
    and `repeated` the items with the same answer in several records, of which one was taken. `compared` are scores that the
    file states and that are only compared with ours, and `prompts` its prompts by item: neither is stored.

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
    compared: tuple[Score, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)


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


class BenchmarkReader(ABC):
    """The reader of a benchmark, found by the entry point group `proctor.benchmarks`.

    A subclass needs a `name` (as on the command line), a `summary` (one line for `proctor list`) and `load`. The other
    attributes say what prompts, judges and downloads of the benchmark use. What else a benchmark may bring is registered
    beside the reader (see `proctor.core.benchmark_parts`).
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
    sources: Path | None = None
    """The YAML file with the source of the data, under the benchmark's name (see `read_source`)."""

    @abstractmethod
    def load(self, data: Path, media: Path | None = None, *, seed: int = 0) -> Benchmark:
        """Read the native files. Raises `InputError` for invalid files."""

    def on_track(self, track: str) -> BenchmarkReader:
        """The reader of a track. Raises `InputError` with the choices for an unknown track."""
        raise InputError("--track", found=repr(track), expected=f"no track, {self.name} has none")

    def read_recorded(self, path: Path, benchmark: Benchmark) -> RecordedAnswers:
        """Read answers in the benchmark's native format. Raises `InputError` by default: there is no such format."""
        raise InputError(
            path,
            f"benchmark {benchmark.name!r}",
            found="recorded answers",
            expected="a run: it has no native format for recorded answers",
        )

    def source(self) -> DataSource | None:
        """The source, owner and licence of the data, or None."""
        from proctor.core.sources import read_source

        return None if self.sources is None else read_source(self.sources, self.name)

    def media_help(self, data: Path, missing: Sequence[str]) -> str:
        """Instructions for getting the missing media files."""
        files = count_of(len(missing), "media file")
        return f"{files} missing: copy from where {data.name} came from into the media folder."
