"""The options that Python and the shell share: each one is declared once, with its default and its line of help."""

# No `from __future__ import annotations`: the command line reads these annotations.

import asyncio
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, TypeVar, cast

from proctor.api.option_names import benchmark_names, condition_names, judge_names, system_names
from proctor.api.option_texts import columns_of, facets_of, settings_pairs, texts
from proctor.core import FailedPolicy, Option

if TYPE_CHECKING:
    from proctor.core import Scorer
    from proctor.judges import JudgeFunction
    from proctor.models import ModelSpec
    from proctor.runs import Store

    _Models = str | ModelSpec | Sequence[str | ModelSpec] | None
    _Store = Store | str | Path | None
else:
    _Models = _Store = Any

Given = TypeVar("Given", bound=Mapping[str, Any])

_MODEL, _MEDIA, _LIMITS = "Model", "Media", "Limits"


def filled(function: str, kind: type[Given], given: Given) -> Given:
    """The options with their defaults. Raises `TypeError` for one that the function does not have, as Python does for
    a parameter."""
    known = {name: option.default for name, (_, option) in declared(kind).items()}
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{meant}")
    return cast("Given", {**known, **given})


def declared(kind: Any) -> dict[str, tuple[Any, Option]]:
    """The type and the declaration of each option."""
    return {name: (one.__origin__, one.__metadata__[0]) for name, one in kind.__annotations__.items()}


def listed(given: Any) -> list[Any]:
    """One thing or several, as a list; None is none.

    >>> listed("a"), listed(["a", "b"]), listed(None)
    (['a'], ['a', 'b'], [])
    """
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple | set | frozenset) else [given]


_Names = str | Sequence[str]
_Json = Mapping[str, Any]


def _many(text: str, name: str = "", **more: Any) -> Option:
    """An option that may be repeated."""
    return Option(text, name, **{"default": (), "shell": list[str], **more})


def _own(text: str, read: Callable[[Any], Any]) -> Option:
    """Options of a method or a judge, KEY=VALUE."""
    return Option(text, "--option", {}, shell=list[str], read=read, metavar="KEY=VALUE")


def _by(text: str) -> Option:
    return Option(text, "--by", (), shell=str, read=facets_of, metavar="FACET[,FACET]")


_TWO_LEVEL = "Intervals draw groups, and then questions within each: wider than whole groups need."

AllItems = Annotated[bool, Option("Also the items that the benchmark does not count.", default=False)]
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
    str | Path | None,
    Option("Where frames are kept: a folder or a URL.", env="PROCTOR_CACHE", group=_MEDIA, shell=Path),
]
Columns = Annotated[
    Mapping[str, str | Sequence[str]],
    Option(
        "Your own questions: the column of a field, such as question=Frage; may be repeated.",
        "--map",
        {},
        shell=list[str],
        read=columns_of,
        metavar="FIELD=COLUMN",
    ),
]
Concurrency = Annotated[int, Option("Questions or answers under way at once.", default=8, low=1, group=_LIMITS)]
Draws = Annotated[int, Option("Bootstrap draws behind each interval.", default=2000, low=100)]
MaxSide = Annotated[int, Option("Longest side of a frame in pixels.", default=512, low=16, group=_MEDIA)]
MediaAs = Annotated[
    Literal["full", "trimmed", "cropped"] | None, Option("Videos: whole, cut to length, or cropped too.", group=_MEDIA)
]
MediaFolder = Annotated[str | Path | None, Option("The folder with its videos or images.", shell=Path)]
Metrics = Annotated[_Names, _many("Only this metric; may be repeated.", "--metric")]
OnChange = Annotated[Callable[[Any], None], Option(default=lambda _: None)]
Overlay = Annotated[
    Literal["none", "absolute", "clip"],
    Option("Burn the elapsed time into each frame: the video's, or the clip's.", default="none", group=_MEDIA),
]
PromptChoice = Annotated[
    str, Option("Another prompt: paper, where there is one, or a file.", "", "", group=_MODEL, metavar="NAME|FILE")
]
Seed = Annotated[int, Option("The seed of every draw; recorded.", default=0)]
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
    """Where a benchmark's own files lie (a store remembers it), and its track where it comes in several."""

    data: Annotated[
        str | Path | None, Option("The folder with the benchmark's own files; the store remembers it.", shell=Path)
    ]
    track: Track


class Selection(TypedDict, total=False):
    """Which runs are meant: systems and conditions by name (all, where none are named)."""

    systems: Systems
    conditions: Annotated[_Names, _many("Only this condition; may be repeated.", "--condition", names=condition_names)]


class Counting(TypedDict, total=False):
    """`failed` says how items count that a run lacks a score for: "wrong", "exclude", or the benchmark's own rule (a
    range, where it has none); `all_items` takes also those that the benchmark does not count. `draws` and `seed` are
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
    """How `results` are chosen and computed: `by` splits by facets, on these `metrics`; `level` is that of the
    intervals; with `two_level` groups are drawn, and then questions within each."""

    by: Annotated[_Names, _by("Split by these facets.")]
    metrics: Metrics
    level: Annotated[float, Option(default=0.95)]
    two_level: Annotated[bool, Option(_TWO_LEVEL, default=False)]


class CompareOptions(Selection, Counting, total=False):
    """What is compared with what: every run with one (`against`), on these `metrics`; `by` splits by facets."""

    by: Annotated[_Names, _by("Split by these facets.")]
    against: Annotated[
        str | tuple[str, str], Option("Set every run against this one.", "", "", shell=str, metavar="SYSTEM/CONDITION")
    ]
    metrics: Metrics


class ContestOptions(Counting, total=False):
    """Who is ranked or analyzed: what was answered under a `condition` (`video`, or the first one of an evaluation) by
    these `systems`; `baselines` are shown and not ranked ("none": there is none). `latency` "required" counts an answer
    without one as late; `stability` samples of videos are ranked again."""

    condition: Annotated[str, Option("What was answered under it. [default: video]", default="", names=condition_names)]
    systems: Systems
    baselines: Baselines
    latency: Annotated[
        Literal["required", "optional"] | None,
        Option("Answers without a latency: late, or in time. [default: late, where others have one]"),
    ]
    stability: Annotated[int, Option("Samples of videos on which all is done again.", default=1000, low=0)]


class AnalyzeOptions(ContestOptions, total=False):
    """What is analyzed; with `two_level` intervals draw groups, and then questions within each."""

    two_level: Annotated[bool, Option(_TWO_LEVEL, default=False)]


class RankOptions(ContestOptions, total=False):
    """How systems are ranked: `by` are the facets that make the buckets (the benchmark's own, where none are named),
    `rule` makes one order of the ranks in them; the others are those of `proctor.stats.rank_buckets`."""

    by: Annotated[_Names, _by("Other buckets than the benchmark's own.")]
    rule: Annotated[
        Literal["copeland", "borda", "mean"],
        Option("What makes one order of the ranks in the buckets.", "", "copeland"),
    ]
    alpha: Annotated[float, Option("The level of the tests in the buckets.", default=0.05)]
    correction: Annotated[
        Literal["holm", "holm-board", "none"], Option("For many tests: per bucket or board.", "", "holm")
    ]


class LeaderboardOptions(Counting, total=False):
    """Who is ranked by a metric: what was answered under a `condition` (`video`, or the first one of an evaluation) by
    these `systems`; `scorer` is the judge whose scores are meant, where several gave the metric."""

    condition: Annotated[str, Option(default="")]
    systems: Systems
    scorer: Annotated[str, Option(default="")]


class ReportOptions(Counting, total=False):
    """What a report shows. `media` is the folder of the benchmark's videos or images, for the item browser, `media_as`
    what these files are, `max_side` how large its frames are; `publish` leaves out all that must stay secret,
    `pseudonyms` (system to shown name, or True: numbers) replaces names in it."""

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
    """Whose pictures are made again: of these `items` (all, where none are named), the first `limit` answers of each
    run. `media` is the folder of the videos or images (the store remembers it), `media_as` what these files are."""

    media: MediaFolder
    media_as: MediaAs
    items: Annotated[_Names, _many("Only this item; may be repeated.", "--item")]
    limit: Annotated[int | None, Option("Only the first answers of each run.", low=1)]
    on_change: Annotated[Callable[[int, int], None], Option(default=lambda _done, _of: None)]


class AuditOptions(TypedDict, total=False):
    """Which scorers are compared with which: those of `scorer` (none named: all) with those of `against` (none named:
    all people). `allow_missing` leaves out rated answers that a scorer has not scored. `lead_over` names those whose
    leads are shown; `power` simulates how many groups, and second ratings where raters agree by `rater_agreement`, tell
    two scorers apart. Without `draws` there are no intervals."""

    scorer: Annotated[_Names, _many("Only this judge or metric; may be repeated. [default: all]", "--scorer --judge")]
    against: Annotated[_Names, _many("The scorer that stands for the raters. [default: all people]")]
    all_items: AllItems
    allow_missing: Annotated[bool, Option("Leave out rated answers that a scorer has not scored.", default=False)]
    lead_over: Annotated[_Names, _many("Also show how far all are ahead of this one; may be repeated.")]
    power: Annotated[bool, Option("Also show how many groups tell two scorers apart.", default=False)]
    rater_agreement: Annotated[
        float | None, Option("--power: Pearson's r of two raters. [default: as in the ratings]", low=0.0, high=1.0)
    ]
    draws: Annotated[int, Option("Bootstrap draws behind each interval; 0 for none.", default=2000, low=0)]
    level: Annotated[float, Option(default=0.95)]
    seed: Seed


class ModelOptions(TypedDict, total=False):
    """How models are asked, whichever they are (see `ModelSpec`)."""

    base_url: Annotated[
        str | Sequence[str] | None,
        _many(
            "An OpenAI-compatible server (vLLM, SGLang, Ollama): one for all models, one for each, or several for one.",
            group=_MODEL,
        ),
    ]
    settings: Annotated[
        _Json,
        Option(
            "Passed to the model: temperature=0 max_tokens=512.",
            default={},
            shell=list[str],
            read=settings_pairs("model settings"),
            group=_MODEL,
            metavar="KEY=VALUE …",
        ),
    ]
    timeout_s: Annotated[
        float, Option("Seconds until one call counts as hanging; it is retried.", "--timeout", 180.0, 0.1, group=_MODEL)
    ]
    retries: Annotated[int, Option("Retries after an infrastructure error.", default=6, low=0, group=_MODEL)]
    price: Annotated[
        str | Sequence[str] | None,
        _many(
            "Dollars for a million tokens, if the price is not known: 0.15/0.60. One for all models, or one for each.",
            group=_MODEL,
            metavar="INPUT/OUTPUT",
        ),
    ]
    structured: Annotated[
        Literal["auto", "native", "tool", "prompted"],
        Option("How a structured reply is asked for.", default="auto", group=_MODEL),
    ]


class ShownOptions(Files, total=False):
    """What a model is shown of a benchmark's items. For your own questions `columns` says by field which column holds
    it."""

    columns: Columns
    media: MediaFolder
    all_items: AllItems
    seed: Seed
    prompt: PromptChoice
    media_as: MediaAs
    fps: Annotated[float, Option("Frames a second that a model gets.", default=1.0, low=0.001, group=_MEDIA)]
    max_frames: Annotated[int, Option("At most this many frames.", default=64, low=1, group=_MEDIA)]
    max_side: MaxSide
    overlay: Overlay
    video_as: Annotated[
        Literal["frames", "file"],
        Option("Send frames, or the clip as a video file (not every model).", default="frames", group=_MEDIA),
    ]
    cache: Cache
    cache_size: Annotated[
        str | int | None,
        Option(
            "Keep the frames below this (20GB, 500MB): what was read longest ago goes first.",
            shell=str,
            group=_MEDIA,
            metavar="SIZE",
        ),
    ]


class AskOptions(ShownOptions, ModelOptions, total=False):
    """What is asked of a benchmark's items. `model` is one or several of `provider:name` (keys come from the
    environment), or names at the server `base_url`. `on_change` is called with the tally after every answer; `stop`,
    once set, lets the answers under way come in and asks no more."""

    model: Annotated[
        _Models,
        _many("A model, provider:name, with settings of its own; may be repeated.", metavar="NAME [KEY=VALUE …]"),
    ]
    concurrency: Concurrency
    budget_s: Annotated[
        float | None,
        Option(
            "Seconds of model time a question; later is wrong. [default: the benchmark's, if any]",
            "--budget",
            low=0.001,
            group=_LIMITS,
        ),
    ]
    give_up_after: Annotated[int, Option("Stop after this many failures in a row.", default=50, low=1, group=_LIMITS)]
    on_change: OnChange
    stop: Stop


class RunOptions(AskOptions, total=False):
    """What is asked of whom. `name` keeps the answers under another name. `store` is a path or a URL; by default
    `proctor.db` in the working folder (or `PROCTOR_STORE`), since an answer that was paid must not be lost; ":memory:"
    keeps nothing. `baselines` False: not asked beside. With `batch`, a folder, models are asked by files. With `share` other processes may ask the same at the same
    time, on any machine that reaches the store."""

    options: Annotated[
        _Json, _own("An option of the system; may be repeated (proctor list methods).", settings_pairs("--option"))
    ]
    store: StoreUrl
    name: Annotated[str, Option("Keep the results under this name.", default="")]
    conditions: Annotated[
        _Names,
        _many(
            "What may be seen; may be repeated. [default: video]", "--condition", default="video", names=condition_names
        ),
    ]
    skip_broken: Annotated[bool, Option("Leave out the items whose media are broken.", default=False, group=_MEDIA)]
    limit: Annotated[int | None, Option("Only the first items.", low=1, group=_LIMITS)]
    baselines: Annotated[bool, Option(default=True)]
    batch: Annotated[
        str | Path | None,
        Option(
            "Write requests there for a batch (OpenAI's, vllm run-batch), read its replies.", shell=Path, group=_LIMITS
        ),
    ]
    share: Annotated[
        bool,
        Option(
            "Ask beside others that run the same command: each takes what nobody has.", default=False, group=_LIMITS
        ),
    ]


class ScoreOptions(Selection, ModelOptions, total=False):
    """What scores which answers. Of a judge: `model`, of which several make a panel, and `fallback` models, which judge
    what the others leave unresolved; `options` are the judge's own, `dimensions` a file (YAML) of those to rate,
    `rated` the store with rated answers for few-shot examples; `media` is the folder of what a judge is to see;
    `prompt` another template, by name or file; `limit` answers at most are judged, and with `shard` only those to one
    part of the items. `on_change` is called with the tally; `stop`, once set, asks no more."""

    judge: Annotated[
        "str | JudgeFunction",
        Option(
            "A judge (proctor list judges), or bertscore: rationales compared with the references', without a model. "
            "[default: the benchmark's own]",
            default="",
            shell=str,
            names=judge_names,
        ),
    ]
    metrics: Annotated[
        "str | Scorer | Sequence[str | Scorer]",
        _many("Score by this metric on text (all: every one), or of a package; may be repeated.", "--metric"),
    ]
    model: Annotated[
        _Models,
        _many(
            "The model that judges, provider:name, with settings of its own; several make a panel.",
            metavar="NAME [KEY=VALUE …]",
        ),
    ]
    fallback: Annotated[
        _Models, _many("Judges what the others leave unresolved.", "--fallback-model", metavar="NAME [KEY=VALUE …]")
    ]
    options: Annotated[
        _Json,
        _own(
            "The judge's own: quorum=2, documents=FOLDER, calibration=FILE; encoder, layer and rescale of bertscore.",
            texts,
        ),
    ]
    dimensions: Annotated[
        str | Path | None, Option("A file (YAML) of dimensions to rate. [default: the benchmark's]", shell=Path)
    ]
    rated: Annotated[
        _Store,
        Option(
            "The store with rated answers to show as few-shot examples. [default for few-shot-judge: --store]",
            shell=str,
        ),
    ]
    media: Annotated[str | Path | None, Option("Where the frames or images lie that a judge is to see.", shell=Path)]
    all_items: AllItems
    prompt: PromptChoice
    media_as: MediaAs
    concurrency: Concurrency
    limit: Annotated[int | None, Option("Only the first answers, for a trial.", low=1, group=_LIMITS)]
    shard: Annotated[
        str | None,
        Option("Judge only part K of N, for N processes or machines on one store.", metavar="K/N", group=_LIMITS),
    ]
    on_change: OnChange
    stop: Stop
