"""Options for asking models: `run`, `score`, `choose` and fine-tuning."""

# No `from __future__ import annotations`: the command line reads these annotations.

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from proctor.core import FPS, GIVE_UP_AFTER, MAX_FRAMES, RETRIES, TIMEOUT_S, Option
from proctor.shell.option_values import condition_names, judge_names, settings_pairs, texts
from proctor.shell.options import (
    _LIMITS,
    _MEDIA,
    _MODEL,
    AllItems,
    Cache,
    Columns,
    Concurrency,
    Files,
    MaxSide,
    MediaAs,
    MediaFolder,
    OnChange,
    Overlay,
    PromptChoice,
    Seed,
    Selection,
    Stop,
    StoreUrl,
    _many,
    _Names,
)

if TYPE_CHECKING:
    from proctor.core import Scorer
    from proctor.judges import JudgeFunction
    from proctor.models import ModelSpec
    from proctor.runs import Store

    _Models = str | ModelSpec | Sequence[str | ModelSpec] | None
    _Store = Store | str | Path | None
else:
    _Models = _Store = Any

_Json = Mapping[str, Any]


def _own(text: str, read: Callable[[Any], Any]) -> Option:
    """Options of a method or a judge, KEY=VALUE."""
    return Option(text, "--option", {}, shell=list[str], read=read, metavar="KEY=VALUE")


class ModelOptions(TypedDict, total=False):
    """How models are asked (see `ModelSpec`)."""

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
        float, Option("Seconds after which a call is aborted and retried.", "--timeout", TIMEOUT_S, 0.1, group=_MODEL)
    ]
    retries: Annotated[int, Option("Retries after an infrastructure error.", default=RETRIES, low=0, group=_MODEL)]
    price: Annotated[
        str | Sequence[str] | None,
        _many(
            "Dollars per million tokens, if not known: 0.15/0.60. One for all models, or one for each.",
            group=_MODEL,
            metavar="INPUT/OUTPUT",
        ),
    ]
    structured: Annotated[
        Literal["auto", "native", "tool", "prompted"],
        Option("How structured replies are requested.", default="auto", group=_MODEL),
    ]


class ShownOptions(Files, total=False):
    """How items are shown to a model. For your own questions, `columns` maps fields to columns."""

    columns: Columns
    media: MediaFolder
    all_items: AllItems
    seed: Seed
    prompt: PromptChoice
    media_as: MediaAs
    fps: Annotated[float, Option("Frames per second that a model gets.", default=FPS, low=0.001, group=_MEDIA)]
    max_frames: Annotated[int, Option("At most this many frames.", default=MAX_FRAMES, low=1, group=_MEDIA)]
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
            "Largest size of the cache of frames (20GB, 500MB); the least recently read are removed.",
            shell=str,
            group=_MEDIA,
            metavar="SIZE",
        ),
    ]


class AskOptions(ShownOptions, ModelOptions, total=False):
    """Which models are asked. `model` is one or several of `provider:name` (keys come from the environment), or names
    at the server `base_url`. `orders` says how orders are requested. `on_change` is called with the tally after every
    answer. Once `stop` is set, running requests are completed and no more are sent."""

    model: Annotated[
        _Models,
        _many("A model, provider:name, with settings of its own; may be repeated.", metavar="NAME [KEY=VALUE …]"),
    ]
    orders: Annotated[
        Literal["schema", "text"] | None,
        Option("Request orders by a JSON schema, or as text. [default: schema; with --prompt text]", group=_MODEL),
    ]
    concurrency: Concurrency
    budget_s: Annotated[
        float | None,
        Option(
            "Seconds of model time per question; later answers are wrong. [default: the benchmark's, if any]",
            "--budget",
            low=0.001,
            group=_LIMITS,
        ),
    ]
    give_up_after: Annotated[
        int, Option("Stop after this many failures in a row.", default=GIVE_UP_AFTER, low=1, group=_LIMITS)
    ]
    on_change: OnChange
    stop: Stop


class RunOptions(AskOptions, total=False):
    """Options of a run. `name` stores the answers under another name. `store` is a path or a URL, by default
    `proctor.db` in the working folder (or `PROCTOR_STORE`), so that paid answers are not lost; ":memory:" is a
    temporary store. `baselines` False runs no baselines. With `batch`, a folder, models are asked through batch files.
    With `share`, other processes may work on the same run, on any machine that reaches the store. Each item is asked
    `repeats` times, with another seed each time where the model takes one; the first repetition of all items comes first,
    and a later call may ask for more. Once the answers of this call have cost `max_cost` dollars, or after `max_time`
    (seconds, or "2h"), no more are sent, as by `stop`. With `abstain` "allow" the prompt of models says in which form to
    abstain, with "forbid" that abstaining is wrong; a benchmark may fix it. `confidence` is asked from 0 to 100
    ("stated"), or taken from the probabilities of the options' tokens where the server gives them ("tokens"). Both are
    part of what a run is."""

    options: Annotated[
        _Json, _own("An option of the system; may be repeated (proctor list methods).", settings_pairs("--option"))
    ]
    store: StoreUrl
    name: Annotated[str, Option("Store the answers under this name.", default="")]
    conditions: Annotated[
        _Names,
        _many(
            "What systems may see; may be repeated. [default: video]",
            "--condition",
            default="video",
            names=condition_names,
        ),
    ]
    skip_broken: Annotated[bool, Option("Leave out items with broken media.", default=False, group=_MEDIA)]
    limit: Annotated[int | None, Option("Only the first items.", low=1, group=_LIMITS)]
    repeats: Annotated[
        int, Option("Answers to each item; may be raised later.", default=1, low=1, high=1000, group=_LIMITS)
    ]
    max_cost: Annotated[
        float | None, Option("Stop once the answers have cost this.", low=0.0001, group=_LIMITS, metavar="DOLLARS")
    ]
    max_time: Annotated[
        str | float | None, Option("Stop after this time, such as 45m or 2h.", shell=str, group=_LIMITS, metavar="TIME")
    ]
    abstain: Annotated[
        Literal["allow", "forbid"] | None,
        Option("Let models abstain, or call it wrong. [default: the benchmark's]", group=_MODEL),
    ]
    confidence: Annotated[
        Literal["stated", "tokens"] | None, Option("Ask for a confidence, or take token probabilities.", group=_MODEL)
    ]
    baselines: Annotated[bool, Option(default=True)]
    batch: Annotated[
        str | Path | None,
        Option("Folder for batch requests and replies (OpenAI, vllm run-batch).", shell=Path, group=_LIMITS),
    ]
    share: Annotated[
        bool,
        Option("Share the questions with other processes that run the same command.", default=False, group=_LIMITS),
    ]


class ScoreOptions(Selection, ModelOptions, total=False):
    """Which scorers score which answers.

    For a judge: `model` (several form a panel), `fallback` models for what the others leave unresolved, and the judge's
    own `options`. `dimensions` is a file (YAML) of dimensions to rate, `rated` the store with rated answers for
    few-shot examples, `media` the folder of frames or images that a judge sees, and `prompt` another template, by name
    or file. Each answer is judged `repeats` times, and its score is the mean of these. At most `limit` answers are judged, none more are sent once the judgements of this call have cost `max_cost` dollars, and with `shard` only one part of the items. `on_change` is called with
    the tally. Once `stop` is set, no more requests are sent."""

    judge: Annotated[
        "str | JudgeFunction",
        Option(
            "A judge (proctor list judges), file.py:function, or bertscore: rationales compared with the references', "
            "without a model. "
            "[default: the benchmark's own]",
            default="",
            shell=str,
            names=judge_names,
        ),
    ]
    metrics: Annotated[
        "str | Scorer | Sequence[str | Scorer]",
        _many("A metric on text (all: every one), of a package, or file.py:function; may be repeated.", "--metric"),
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
    media: Annotated[str | Path | None, Option("The folder of frames or images that the judge sees.", shell=Path)]
    all_items: AllItems
    prompt: PromptChoice
    media_as: MediaAs
    concurrency: Concurrency
    limit: Annotated[int | None, Option("Only the first answers, for a trial.", low=1, group=_LIMITS)]
    max_cost: Annotated[
        float | None, Option("Stop once the judgements have cost this.", low=0.0001, group=_LIMITS, metavar="DOLLARS")
    ]
    repeats: Annotated[
        int, Option("Judgements of each answer; its score is their mean.", default=1, low=1, high=100, group=_LIMITS)
    ]
    shard: Annotated[
        str | None,
        Option("Judge only part K of N, for N processes or machines on one store.", metavar="K/N", group=_LIMITS),
    ]
    on_change: OnChange
    stop: Stop


_TRAINING = "Training"


class LoraOptions(TypedDict, total=False):
    """How weights are fine-tuned (see `proctor_train.LoraSettings`)."""

    rank: Annotated[int, Option("The adapter's rank; 0 trains all weights.", default=16, low=0, group=_TRAINING)]
    alpha: Annotated[int, Option("The adapter's scale is alpha over rank.", default=32, low=1, group=_TRAINING)]
    dropout: Annotated[float, Option("Dropout in the adapter.", default=0.0, low=0, high=1, group=_TRAINING)]
    vision: Annotated[bool, Option("Adapt the image encoder, too.", default=False, group=_TRAINING)]
    learning_rate: Annotated[float, Option("Peak learning rate.", default=2e-4, group=_TRAINING)]
    epochs: Annotated[int, Option("Passes over the examples.", default=3, low=1, group=_TRAINING)]
    batch: Annotated[int, Option("Examples per batch.", default=4, low=1, group=_TRAINING)]
    accumulate: Annotated[int, Option("Batches per step.", default=1, low=1, group=_TRAINING)]
    evaluate_every: Annotated[
        int, Option("Steps between evaluations. [default: an epoch]", default=0, low=0, group=_TRAINING)
    ]
    checkpointing: Annotated[bool, Option("Save memory at the cost of time.", default=False, group=_TRAINING)]
    device: Annotated[str, Option("cpu, cuda, or a GPU where there is one.", default="auto", group=_TRAINING)]
    dtype: Annotated[str, Option("float32, bfloat16, or the weights' own.", default="auto", group=_TRAINING)]
