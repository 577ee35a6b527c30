"""Options that Python and the shell share. Each is declared once, with its type, default and help line."""

# No `from __future__ import annotations`: the command line reads these annotations.

import asyncio
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, TypeVar, cast

from proctor.core import CONCURRENCY, MAX_SIDE, FailedPolicy, Option
from proctor.shell.option_values import (
    benchmark_names,
    check_number,
    columns_of,
    condition_names,
    facets_of,
    read_formats,
    system_names,
    texts,
)

if TYPE_CHECKING:
    from proctor.metrics import FunctionOverItems
    from proctor.models import ModelSpec
    from proctor.runs import Store

    _Models = str | ModelSpec | Sequence[str | ModelSpec] | None
    _Store = Store | str | Path | None
    _Metrics = str | FunctionOverItems | Sequence[str | FunctionOverItems]
else:
    _Models = _Store = _Metrics = Any

Given = TypeVar("Given", bound=Mapping[str, Any])

_MODEL, _MEDIA, _LIMITS = "Model", "Media", "Limits"


def filled(function: str, kind: type[Given], given: Given) -> Given:
    """The options with their defaults. Raises `TypeError` for an unknown option, as Python does for a parameter, and
    `UsageError` for a number out of its range."""
    known = declared(kind)
    for name, value in given.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{meant}")
        check_number(name, *known[name], value)
    return cast("Given", {**{name: option.default for name, (_, option) in known.items()}, **given})


def declared(kind: Any) -> dict[str, tuple[Any, Option]]:
    """The type and the declaration of each option."""
    return {name: (one.__origin__, one.__metadata__[0]) for name, one in kind.__annotations__.items()}


def listed(given: Any) -> list[Any]:
    """One value or several as a list; None is an empty list.

    >>> listed("a"), listed(["a", "b"]), listed(None)
    (['a'], ['a', 'b'], [])
    """
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple | set | frozenset) else [given]


_Names = str | Sequence[str]


def _many(text: str, name: str = "", **more: Any) -> Option:
    """An option that may be repeated."""
    return Option(text, name, **{"default": (), "shell": list[str], **more})


def _by(text: str) -> Option:
    return Option(text, "--by", (), shell=str, read=facets_of, metavar="FACET[,FACET]")


_TWO_LEVEL = "Resample groups, and then questions within each: wider intervals."

AllItems = Annotated[bool, Option("Include items that the benchmark does not count.", default=False)]

BenchmarkName = Annotated[
    str,
    Option("A benchmark's name (proctor list benchmarks).", metavar="BENCHMARK", names=benchmark_names, argument=True),
]

BenchmarkSource = Annotated[
    str,
    Option(
        "A benchmark's name, or a folder or file of your own questions.",
        metavar="BENCHMARK",
        names=benchmark_names,
        argument=True,
    ),
]

Baselines = Annotated[
    _Names, _many("A reference system, or none; repeatable. [default: random, majority]", "--baseline")
]

Cache = Annotated[
    str | Path | None, Option("The cache of frames: a folder or a URL.", env="PROCTOR_CACHE", group=_MEDIA, shell=Path)
]

LatencyRule = Annotated[
    Literal["required", "optional"] | None,
    Option("Answers without a latency: late, or in time. [default: late, where others have one]"),
]

QuestionSeconds = Annotated[
    float | None, Option("Seconds for a question. [default: the benchmark's own]", "--budget", low=0)
]

Columns = Annotated[
    Mapping[str, str | Sequence[str]],
    Option(
        "The column of a field, such as question=Frage (of ratings: rater=Arzt); may be repeated.",
        "--map",
        {},
        shell=list[str],
        read=columns_of,
        metavar="FIELD=COLUMN",
    ),
]

RatingColumns = Annotated[
    Mapping[str, str | Sequence[str]],
    Option(
        "Of tables: the column of a field, such as rater=Arzt; may be repeated.",
        "--map",
        {},
        shell=list[str],
        read=columns_of,
        metavar="FIELD=COLUMN",
    ),
]

Concurrency = Annotated[
    int, Option("Questions or answers processed at once.", default=CONCURRENCY, low=1, group=_LIMITS)
]

Draws = Annotated[int, Option("Bootstrap draws for each interval.", default=2000, low=100)]

MaxSide = Annotated[int, Option("Longest side of a frame in pixels.", default=MAX_SIDE, low=16, group=_MEDIA)]

MediaAs = Annotated[
    Literal["full", "trimmed", "cropped"] | None, Option("The videos are full, trimmed, or also cropped.", group=_MEDIA)
]

MediaFolder = Annotated[str | Path | None, Option("The folder with its videos or images.", shell=Path)]

Metrics = Annotated[_Metrics, _many("Only this metric; may be repeated.", "--metric")]

OnChange = Annotated[Callable[[Any], None], Option(default=lambda _: None)]

Overlay = Annotated[
    Literal["none", "absolute", "clip"],
    Option("Draw the elapsed time of the video or the clip on each frame.", default="none", group=_MEDIA),
]

PromptChoice = Annotated[
    str, Option("Another prompt: paper, where there is one, or a file.", "", "", group=_MODEL, metavar="NAME|FILE")
]

Seed = Annotated[int, Option("The random seed; it is recorded.", default=0)]

Stop = Annotated[asyncio.Event | None, Option()]

StoreUrl = Annotated[
    _Store,
    Option(
        "The store: a path of an SQLite file, or an SQLAlchemy URL. [default: proctor.db]",
        "--store",
        shell=str,
        env="PROCTOR_STORE",
    ),
]

Systems = Annotated[_Names, _many("Only this system; may be repeated.", "--system", names=system_names)]

Track = Annotated[
    str, Option("The track, where a benchmark comes in several (focus: frame, segment, procedure).", default="")
]


class Files(TypedDict, total=False):
    """The folder with a benchmark's own files (a store remembers it), and the track, if the benchmark has several."""

    data: Annotated[
        str | Path | None, Option("The folder with the benchmark's own files; the store remembers it.", shell=Path)
    ]
    track: Track


class Selection(TypedDict, total=False):
    """The runs to read: systems and conditions by name (by default all)."""

    systems: Systems
    conditions: Annotated[_Names, _many("Only this condition; may be repeated.", "--condition", names=condition_names)]


class Counting(TypedDict, total=False):
    """`failed` says how items without a score count: "wrong", "exclude", or by the benchmark's own rule (if it has
    none, scores are ranges). `all_items` includes the items that the benchmark does not count. `draws` and `seed` are
    those of the bootstrap."""

    failed: Annotated[
        FailedPolicy | str | None,
        Option(
            "Items without a score: wrong, or left out. [default: the benchmark's rule, else both]", shell=FailedPolicy
        ),
    ]
    all_items: AllItems
    draws: Draws
    seed: Seed


class ResultOptions(Selection, Counting, total=False):
    """How `results` are computed: split `by` facets, for these `metrics`, with intervals at this `level`. `two_level`
    resamples groups, and then questions within each."""

    by: Annotated[_Names, _by("Split by these facets.")]
    metrics: Metrics
    level: Annotated[float, Option(default=0.95)]
    two_level: Annotated[bool, Option(_TWO_LEVEL, default=False)]


class CompareOptions(Selection, Counting, total=False):
    """What is compared: every run with the run `against`, on these `metrics`, split `by` facets. With a `margin` in points, the
    first run is tested to be not worse by it (`equivalence`: neither of the two better). `interaction` tests whether the parts
    `by` facets differ. `gate` states what must hold for each pair in the headline metric, or in these `metrics`: "not worse
    than 2", "better" or "better than 1" (points)."""

    by: Annotated[_Names, _by("Split by these facets.")]
    against: Annotated[
        str | tuple[str, str], Option("Compare every run with this one.", "", "", shell=str, metavar="SYSTEM/CONDITION")
    ]
    metrics: Metrics
    margin: Annotated[float | None, Option("Accept this many points worse.", default=None, low=0, metavar="POINTS")]
    equivalence: Annotated[bool, Option("With --margin: test equivalence.", default=False)]
    interaction: Annotated[bool, Option("With --by: test whether the parts differ.", default=False)]
    gate: Annotated[
        str, Option('Exit code by "not worse than 2", "better" or "better than 1".', default="", metavar="STATEMENT")
    ]


class ExplainOptions(TypedDict, total=False):
    """What is explained: the gap in a `metric` (by default the headline). `scorer` and `failed` are given once for both sides,
    or twice: for the first, and for the second. `scorer` says whose scores a side's own are (of a log: the name of its own
    score, or "code" for Proctor's reading), `failed` how a side's missing answers count (by default as the benchmark says,
    else wrong; of another program's log as that program counts them). `form`, `id_column`, `answer_column`, `name` and
    `epoch` say how a log is read, as in `import_answers`.

    With `ask`, runs of the first side's model with settings of the second one are asked, which tell apart what was asked;
    `prompts` are template files to look in for either side's own, `media`, `base_url`, `price` and `concurrency` as in `run`."""

    ask: Annotated[bool, Option("Ask the runs that tell apart what was asked.", default=False)]
    benchmark: Annotated[str, Option("The benchmark, if the store has several.", default="", names=benchmark_names)]
    metric: Annotated[str, Option("The metric. [default: the headline]", default="")]
    scorer: Annotated[_Names, _many("Whose scores; twice: of the first, of the second.", "--scorer --judge")]
    failed: Annotated[
        FailedPolicy | str | Sequence[FailedPolicy | str],
        _many("Missing answers: wrong, exclude; twice: one for each.", "--failed", shell=list[FailedPolicy]),
    ]
    form: Annotated[str, Option("A log's format. [default: as the content says]", "--from", "", names=read_formats)]
    id_column: Annotated[str, Option('A log\'s column with item ids; "position": the row.', default="")]
    answer_column: Annotated[str, Option("A table's column with the answer.", default="")]
    name: Annotated[str, Option("One of a table's systems.", default="")]
    epoch: Annotated[int | None, Option("A log's repetition alone. [default: all]", low=1)]
    store: StoreUrl
    all_items: AllItems
    draws: Draws
    seed: Seed
    prompts: Annotated[
        str | Path | Sequence[str | Path],
        _many("A side's template file; may be repeated.", "--prompt", group=_MODEL, metavar="FILE"),
    ]
    media: MediaFolder
    base_url: Annotated[str | None, Option("An OpenAI-compatible server.", group=_MODEL)]
    price: Annotated[str | None, Option("Dollars per million tokens.", group=_MODEL, metavar="INPUT/OUTPUT")]
    concurrency: Concurrency
    on_change: OnChange
    stop: Stop


class StudyPlanOptions(TypedDict, total=False):
    """What a study should show: a true `difference` in points, or with a `margin` that the first is not worse by it. `questions` per
    group and `repeats` are tried in all combinations. The variances are given as standard deviations in points
    (`sd_group`, `sd_item`, `sd_repetition`), or come from two `systems` of a store; `sd_repetition` is then taken off the items'."""

    difference: Annotated[float, Option("The true difference, in points.", default=0.0)]
    margin: Annotated[
        float | None, Option("The non-inferiority margin, in points.", default=None, low=0, metavar="POINTS")
    ]
    equivalence: Annotated[bool, Option("With --margin: test equivalence.", default=False)]
    questions: Annotated[int | Sequence[int], Option("Questions per group; repeatable.", default=(1,), shell=list[int])]
    repeats: Annotated[int | Sequence[int], Option("Repetitions per question.", default=(1,), shell=list[int])]
    power: Annotated[float, Option("The power to plan for.", default=0.8)]
    alpha: Annotated[float, Option("The two-sided level.", default=0.05)]
    systems: Systems
    condition: Annotated[str, Option("The pilot's condition.", default="video", names=condition_names)]
    metric: Annotated[str, Option("The pilot's metric. [default: the headline]", default="")]
    scorer: Annotated[str, Option("The pilot's judge, of several.", default="")]
    sd_group: Annotated[float | None, Option("Standard deviation between groups.", default=None, low=0)]
    sd_item: Annotated[float | None, Option("Standard deviation between items.", default=None, low=0)]
    sd_repetition: Annotated[float, Option("Standard deviation of repetitions.", default=0.0, low=0)]
    seed: Seed


class ContestOptions(Counting, total=False):
    """What is ranked or analyzed: the answers of these `systems` under a `condition` (`video`, or the first one of an
    evaluation). `baselines` are shown and not ranked ("none" for no baseline). With `latency` "required", an answer
    without a latency is late. The ranking is repeated on `stability` bootstrap samples of the groups."""

    condition: Annotated[str, Option("Rank the answers under it. [default: video]", default="", names=condition_names)]
    systems: Systems
    baselines: Baselines
    latency: LatencyRule
    stability: Annotated[int, Option("Bootstrap samples used to estimate rank stability.", default=1000, low=0)]


class AnalyzeOptions(ContestOptions, total=False):
    """What is analyzed. `two_level` resamples groups, and then questions within each."""

    two_level: Annotated[bool, Option(_TWO_LEVEL, default=False)]


class RankOptions(ContestOptions, total=False):
    """How systems are ranked: `by` are the facets that define the buckets (by default the benchmark's own), and `rule`
    combines the ranks in the buckets. The others are options of `proctor.stats.rank_buckets`."""

    by: Annotated[_Names, _by("Facets that define the buckets.")]
    rule: Annotated[Literal["copeland", "borda", "mean"], Option(default="copeland")]
    alpha: Annotated[float, Option(default=0.05)]
    correction: Annotated[
        Literal["holm", "holm-board", "none"], Option("For many tests: per bucket or board.", "", "holm")
    ]
    ties: Annotated[Literal["all", "tied"], Option("Ties: win rate over tied or over all systems.", "", "tied")]


class LeaderboardOptions(Counting, total=False):
    """What is ranked by a metric: the answers of these `systems` under a `condition` (`video`, or the first one of an
    evaluation). `scorer` chooses a judge if several gave the metric."""

    condition: Annotated[str, Option(default="")]
    systems: Systems
    scorer: Annotated[str, Option(default="")]


class ReportOptions(Counting, total=False):
    """What a report shows. `media` is the folder of the benchmark's videos or images for the item browser, `media_as`
    says how these files were cut, and `max_side` is the size of its frames. `publish` leaves out everything that must
    stay secret; `pseudonyms` then replaces the names of systems (a mapping, or True for numbers)."""

    media: MediaFolder
    media_as: MediaAs
    max_side: Annotated[
        int, Option("Longest side of a frame in the page, in pixels.", default=160, low=16, high=1024, group=_MEDIA)
    ]
    baselines: Baselines
    publish: Annotated[bool, Option("Leave out items, references, answers, judge names.", default=False)]
    pseudonyms: Annotated[
        Mapping[str, str] | bool, Option("With --publish: number the systems.", default=False, shell=bool)
    ]


class ReproduceOptions(Files, Selection, total=False):
    """Which pictures are reproduced: those of these `items` (by default all), for the first `limit` answers of each
    run. `media` is the folder of the videos or images (the store remembers it), `media_as` says how these files were
    cut."""

    media: MediaFolder
    media_as: MediaAs
    items: Annotated[_Names, _many("Only this item; may be repeated.", "--item")]
    limit: Annotated[int | None, Option("Only the first answers of each run.", low=1)]
    on_change: Annotated[Callable[[int, int], None], Option(default=lambda _done, _of: None)]


class AuditOptions(TypedDict, total=False):
    """Which scorers are compared with which: those of `scorer` (by default all) with those of `against` (by default all
    people). `allow_missing` leaves out rated answers that a scorer has not scored. Leads over the scorers `lead_over`
    are shown. `power` simulates how many groups, or second ratings (by raters who agree by `rater_agreement`), are
    needed to tell two scorers apart. 0 `draws` give no intervals. `columns` names columns of tables of ratings and
    scores (item, system, rater, dimension, value, candidate, lower_is_better)."""

    scorer: Annotated[_Names, _many("Only this judge or metric; may be repeated. [default: all]", "--scorer --judge")]
    against: Annotated[_Names, _many("The scorer that stands for the raters. [default: all people]")]
    all_items: AllItems
    allow_missing: Annotated[bool, Option("Leave out rated answers that a scorer has not scored.", default=False)]
    lead_over: Annotated[_Names, _many("Also show leads over this one; may be repeated.")]
    power: Annotated[bool, Option("Also show how many groups can tell two scorers apart.", default=False)]
    rater_agreement: Annotated[
        float | None, Option("--power: Pearson's r of two raters. [default: as in the ratings]", low=0.0, high=1.0)
    ]
    draws: Annotated[int, Option("Bootstrap draws behind each interval; 0 for none.", default=2000, low=0)]
    level: Annotated[float, Option(default=0.95)]
    columns: RatingColumns
    seed: Seed


class ImportOptions(Files, total=False):
    """How answers are imported: under the system `name` and a `condition` (by default that of the files, else `video`),
    with the `track` and `seed` of the questions. `answers_only` ignores people's ratings in the file. `scorer` is the
    automatic scorer whose scores of stored answers the file holds. `form` is the format of another program (by default
    recognised from the content), with `id_column` and `answer_column`; where a system answered each
    item several times, all answers are read as repetitions, or one `epoch` alone. `dimensions` is a file with the dimensions and scales of ratings. `submission` reads the file as a challenge does: an item without an answer has one that is wrong,
    and an answer above the benchmark's time limit is late."""

    name: Annotated[str, Option("The system's name in the store. [default: as the file says]", default="")]
    condition: Annotated[str, Option("What the system saw. [default: as the files say, else video]", default="")]
    answers_only: Annotated[bool, Option("Do not read people's ratings in the file.", default=False)]
    scorer: Annotated[str, Option("The file holds this automatic scorer's scores of answers in the store.", default="")]
    columns: Columns
    store: StoreUrl
    seed: Seed
    form: Annotated[
        str,
        Option(
            "Another program's format (proctor list formats). [default: as the content says]",
            "--from",
            "",
            names=read_formats,
        ),
    ]
    id_column: Annotated[str, Option('The column with item ids; "position": the row number, from 0.', default="")]
    answer_column: Annotated[str, Option("The column with the answer.", default="")]
    epoch: Annotated[int | None, Option("Read this repetition alone. [default: all, as repetitions]", low=1)]
    dimensions: Annotated[
        str | Path | None,
        Option("Ratings: a file (YAML) of their dimensions. [default: with the scale that is seen]", shell=Path),
    ]
    submission: Annotated[bool, Option("Missing answers are wrong, as in a challenge.", default=False)]


class ValidateOptions(Files, total=False):
    """By what a submission is checked: the time limit of a question in seconds (by default the benchmark's own), and
    whether answers without a `latency` are late."""

    budget_s: QuestionSeconds
    latency: LatencyRule


TABLE_FORMATS = ("jsonl", "csv", "parquet", "xlsx")
"""The formats of `export` for one row per item, system, condition and metric."""

JUDGEMENTS, UNRESOLVED, DECIDED, SUMS = "judgements", "unresolved", "decided", "sums"

PLAIN_FORMATS = (*TABLE_FORMATS, JUDGEMENTS, UNRESOLVED, DECIDED, SUMS)
"""The formats of `export` that every benchmark has."""


class ExportOptions(Selection, total=False):
    """What is exported. `format` is one of

    - jsonl, csv or parquet: a row per item, system, condition and metric;
    - judgements: the replies of `scorer`;
    - unresolved: answers that wait for a person's decision (decided: also those with one);
    - sums: sums by group, for `proctor results --pool`;
    - a submission format of the benchmark, of one run or of the scores of `scorer`. Only the rows of `template` are
      written; `allow_missing` leaves out those without a score;
    - a format of another program (`proctor list formats`). `origin` says where data and results come from, `media` is
      the folder of videos or images, copied only with `copy_media`, and `no_references` leaves out the reference
      answers.
    """

    format: Annotated[
        str,
        Option(
            "jsonl, csv, parquet or xlsx; judgements: what a scorer said, as JSON Lines; unresolved: what judges left open "
            "(decided: also what a person decided); sums: of groups alone, for proctor results --pool; one run as a submission: answer or responses (focus), submission "
            "(clinicalskillqa); a scorer's scores: submission (mediqa-eval); another program's format (proctor list "
            "formats). [default: by the file's name]",
            default="",
        ),
    ]
    all_items: AllItems
    scorer: Annotated[str, Option("Whose scores, for judgements and submissions of scores.", default="")]
    template: Annotated[
        str | Path | None, Option("Only the rows of this file, in its order (submissions of scores).", shell=Path)
    ]
    allow_missing: Annotated[bool, Option("Leave rows out that have no score (submissions of scores).", default=False)]
    origin: Annotated[
        Mapping[str, str],
        Option(
            "For other programs' formats, where it comes from: licence, citation, url, creator, dataset, model, "
            "organisation, relationship; may be repeated.",
            "--origin",
            {},
            shell=list[str],
            read=texts,
            metavar="KEY=VALUE",
        ),
    ]
    media: MediaFolder
    copy_media: Annotated[bool, Option("Other programs' formats: copy the media, too.", default=False)]
    no_references: Annotated[bool, Option("Other programs' formats: leave out reference answers.", default=False)]
