"""Score stored answers by judges (also the benchmark's own) or metrics, and score files of predictions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from proctor.core import (
    BENCHMARKS,
    FrozenModel,
    InputError,
    Item,
    Scorer,
    UsageError,
    count_of,
    is_file_address,
    reader_or_default,
)
from proctor.shell.benchmarks import excerpts_as, media_at
from proctor.shell.model_options import ScoreOptions
from proctor.shell.option_values import shard_of
from proctor.shell.options import filled, listed
from proctor.shell.stores import Stored, StoredRuns, open_store, stored, sync_twin
from proctor.shell.systems import ModelAccess, checked

if TYPE_CHECKING:
    from proctor.core import Frame, JudgementCache, PluginReport, RatingScheme
    from proctor.judges import FramesOf, JudgeFunction
    from proctor.judges.dimensions import ClientPool, RatedCase, RatesDimensions
    from proctor.media import Excerpts
    from proctor.metrics.text import BertScoreSettings
    from proctor.models import ModelClient
    from proctor.runs import JudgeTally, PaidJudgements, Run, Store

BERTSCORE = "bertscore"
"""Given as `judge`, compares rationales with those of the references, without a model."""

ALL_METRICS = "all"
"""All metrics on text whose extras are installed."""

_FEW_SHOT = "few-shot-judge"


@dataclass(frozen=True)
class Scored:
    """The result of scoring: the number of answers `by` scorer; for a judge also its tally, and the cost of its new
    judgements. `there` counts the answers that each scorer of texts had scored before. `notes` say whose answers were
    left out."""

    by: dict[str, int]
    tally: JudgeTally | None = None
    paid: PaidJudgements | None = None
    notes: tuple[str, ...] = field(default=())
    there: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PreparedScorer:
    """A scorer that is ready to score the answers of `runs`.

    `scorer` gives the scores their name; `asked` is the scorer that is called, which may have fallbacks. `dimensions`
    says whether it rates several dimensions; `scheme` declares them if they come from a file. An `optional` one is left
    out if it needs an extra that is not installed. `notes` say whose answers are left out."""

    where: Stored
    runs: tuple[Run, ...]
    scorer: Scorer
    asked: Scorer
    paid: PaidJudgements
    options: ScoreOptions
    models: Sequence[ModelClient | ClientPool] = ()
    dimensions: bool = False
    notes: tuple[str, ...] = ()
    scheme: RatingScheme | None = None
    optional: bool = False

    async def ask(self, stop: asyncio.Event | None, on_change: Callable[[JudgeTally], None]) -> Scored:
        """Score the answers without a score, and close the connections to models. Raises as `declare_scorer` does,
        before a model is asked."""
        from proctor.metrics.text import MissingExtraError
        from proctor.runs import JudgeLimits, declare_scorer, judge_all, over_limit

        given, store = self.options, self.where.store
        there = {self.scorer.name: sum(store.count_scored(run, self.scorer.name) for run in self.runs)}
        limits = JudgeLimits(given["concurrency"], most=given["limit"], shard=shard_of(given["shard"]))
        stop, over = stop or asyncio.Event(), list[str]()

        def changed(tally: JudgeTally) -> None:
            if not over and (why := over_limit(self.paid.usage, given["max_cost"])):
                over.append(why)
                tally.last_reason = tally.last_reason or why
                stop.set()
            on_change(tally)

        try:
            declare_scorer(store, self.where.benchmark, self.scorer, self.scheme, repeats=given["repeats"])
            tally = await judge_all(
                store,
                self.runs,
                self.asked,
                limits,
                all_items=given["all_items"],
                stop=stop,
                on_change=changed,
                repeats=given["repeats"],
            )
        except MissingExtraError as error:
            if not self.optional:
                raise
            return Scored({}, notes=(f"Left out: {self.scorer.name}. {error}",))
        finally:
            for model in self.models:
                await model.aclose()
        unscored = f"{count_of(tally.left, 'answer')} without a verdict: call again to ask again."
        left = (unscored,) if tally.left else ()
        notes = (*self.notes, *self._repeat_notes(), *over, *left)
        return Scored({self.scorer.name: tally.scored}, tally, self.paid, notes, there)

    def _repeat_notes(self) -> list[str]:
        """What repetitions measure of models that draw no tokens, and whether there are more than were asked for."""
        repeats, name = self.options["repeats"], self.scorer.name
        card = self.where.store.card(self.where.benchmark)
        there = card.scorers.get(name, {}).get("repeats")
        notes = (
            [f"{name} has judged answers up to {there} times: these judgements stay."]
            if isinstance(there, int) and there > repeats
            else []
        )
        clients = [one for pool in self.models for one in getattr(pool, "opened", [pool])]
        cold = sorted({client.name for client in clients if client.temperature == 0}) if repeats > 1 else []
        return notes + [
            f"{client}: temperature 0: repetitions measure the noise of the provider or the machine alone, not the spread of "
            "its judgements (--settings temperature=1)."
            for client in cold
        ]


async def score_async(
    source: StoredRuns | Store | str | Path | None = None, benchmark: str = "", **options: Unpack[ScoreOptions]
) -> Scored:
    """Score stored answers by `metrics` (functions decorated by `proctor.metric`, functions in a file by
    `path/to/file.py:function`, names of installed ones, metrics on text, scorers), or by a judge that asks a `model`.

    `judge` is a name (see `proctor list judges`), a function decorated by `proctor.judge`, or a function in a file by
    `path/to/file.py:function`; by default it is the benchmark's own. Several models form a panel. A judge of dimensions rates those that the benchmark, or a file, declares.
    Judgements are cached, so no call is repeated; the next call asks again only for answers without a verdict.
    Baselines are judged only if they are named. Raises `InputError` if nothing can be scored. The command is
    `proctor score`.
    """
    given = filled("score", ScoreOptions, options)
    found = [
        await scorer.ask(given["stop"], given["on_change"]) if isinstance(scorer, PreparedScorer) else scorer
        for scorer in await prepare_scorers(source, benchmark, given)
    ]
    if len(found) == 1:
        return found[0]
    by = {name: count for scored in found for name, count in scored.by.items()}
    there = {name: count for scored in found for name, count in scored.there.items()}
    return Scored(by, notes=tuple(note for scored in found for note in scored.notes), there=there)


score = sync_twin(score_async)


async def prepare_scorers(
    source: StoredRuns | Store | str | Path | None, benchmark: str, given: ScoreOptions
) -> list[PreparedScorer | Scored]:
    """The first step of `score_async`: check everything before a call is paid. Metrics without a model score here."""
    metrics, judge, models = listed(given["metrics"]), given["judge"], listed(given["model"])
    if bool(metrics) == bool(judge or models):
        raise UsageError(
            "Metrics and a judge score one after the other. Leave out --metric, or --judge and --model."
            if metrics
            else "Nothing to score with. Give --metric (rouge-l; all), --judge (bertscore) or --model (openai:gpt-5.2)."
        )
    if shard_of(given["shard"]) and metrics:
        raise UsageError(f"--shard {given['shard']} is for judges. Leave it out.")
    if given["repeats"] > 1 and (metrics or judge == BERTSCORE):
        raise UsageError(f"--repeats {given['repeats']} is for judges that ask a model. Leave it out.")
    where = stored(source, benchmark, given["systems"], given["conditions"])
    if metrics:
        return await _by_metrics(where, metrics, given)
    if isinstance(judge, str) and judge == BERTSCORE:
        return [_by_bertscore(where, given)]
    return [await _judging(where, judge or _own_judge(where) if isinstance(judge, str) else judge, given)]


async def prepare_alone(
    where: Stored, scorer: str | Scorer | JudgeFunction, given: ScoreOptions, judgements: JudgementCache
) -> list[PreparedScorer]:
    """A judge or metrics to score texts that are no stored answers. Models' replies are cached in `judgements`; nothing else
    is stored."""
    from proctor.judges import JUDGES, JudgeFunction
    from proctor.metrics import SCORERS
    from proctor.metrics.text import SimilarityScorer, text_metrics
    from proctor.runs import PaidJudgements

    judging = isinstance(scorer, str) and scorer.partition(":")[0] in JUDGES.names()
    in_file = isinstance(scorer, str) and is_file_address(scorer)
    asks = isinstance(scorer, JudgeFunction) or judging or (in_file and bool(listed(given["model"])))
    if isinstance(scorer, str | JudgeFunction) and asks:
        return [await _judging(where, scorer, given, judgements)]
    by: list[Any] = [scorer]
    if isinstance(scorer, str):
        rating = where.store.card(where.benchmark).rating
        known = in_file or scorer in SCORERS.names()
        by = [_named(scorer)] if known else [SimilarityScorer(metric, rating) for metric in text_metrics([scorer])]
    return [PreparedScorer(where, (), one, one, PaidJudgements(judgements), given) for one in by]


async def _judging(
    where: Stored, named: str | JudgeFunction, given: ScoreOptions, judgements: JudgementCache | None = None
) -> PreparedScorer:
    """A judge whose judgements are cached in the store, or in `judgements` for texts that are no stored answers."""
    from proctor.judges import judge_in_file, rates_dimensions
    from proctor.judges.dimensions import RatesDimensions

    judge = judge_in_file(named) if isinstance(named, str) and is_file_address(named) else named
    if isinstance(judge, RatesDimensions) or (isinstance(judge, str) and rates_dimensions(judge.partition(":")[0])):
        return await _by_dimensions(where, judge, given, judgements)
    refused = next((one for one in ("options", "dimensions", "rated") if given[one]), None)
    if refused is not None:
        raise UsageError(
            f"--{'option' if refused == 'options' else refused} is for judges of dimensions (proctor list judges). Leave it out, or name one by --judge."
        )
    if isinstance(judge, str) and not listed(given["model"]):
        raise UsageError("This judge asks a model. Give one: --model PROVIDER:NAME")
    if not isinstance(judge, str) and not listed(given["model"]):
        raise UsageError(
            f"{judge.address or judge.name} asks a model. Give one: --model PROVIDER:NAME. A function that asks none is a "
            "metric: --metric"
        )
    return await _by_judge(where, judge, given, judgements)


async def _by_metrics(where: Stored, metrics: Sequence[Any], given: ScoreOptions) -> list[PreparedScorer | Scored]:
    from proctor.metrics import SCORERS, refuse_over_items
    from proctor.metrics.text import SimilarityScorer, text_metrics
    from proctor.runs import PaidJudgements, score_answers

    made: list[PreparedScorer | Scored] = []
    runs, paid = _runs(where), PaidJudgements(where.store)
    for one in metrics:
        if isinstance(one, str) and not is_file_address(one) and one not in SCORERS.names():
            for metric in text_metrics([one]):
                scorer = SimilarityScorer(metric, where.store.card(where.benchmark).rating)
                prepared = PreparedScorer(where, runs, scorer, scorer, paid, given)
                made.append(replace(prepared, optional=one == ALL_METRICS))
            continue
        by = _named(one) if isinstance(one, str) else one
        refuse_over_items(by, by.name)
        everybody = _runs(where, baselines=True)
        made.append(Scored({by.name: await score_answers(where.store, everybody, by, all_items=given["all_items"])}))
    return made


def _named(metric: str) -> Scorer:
    """The scorer of that name, or at `path/to/file.py:name`."""
    from proctor.metrics import build_scorer, scorer_in_file

    return scorer_in_file(metric) if is_file_address(metric) else build_scorer(metric)


def _by_bertscore(where: Stored, given: ScoreOptions) -> PreparedScorer:
    from proctor.metrics.text import RationaleScorer, load_bertscore
    from proctor.runs import PaidJudgements

    if given["prompt"]:
        raise UsageError(f"BERTScore asks no model. Leave --prompt {given['prompt']} out.")
    scorer = RationaleScorer(load_bertscore(checked(SimilarityChoice, **given["options"]).settings()))
    items = [item for item in where.store.items(where.benchmark) if scorer.applies(item)]
    if not items:
        location = f"benchmark {where.benchmark}"
        raise InputError(where.store.shown, location, found="no reference with a rationale", expected="some")
    runs, notes = _with_rationales(where.store, _runs(where, baselines=True))
    for run in runs:
        answers = where.store.answers(run)
        scorer.prepare([(item, answers[item.id]) for item in items if item.id in answers])
    return PreparedScorer(where, runs, scorer, scorer, PaidJudgements(where.store), given, notes=notes)


async def _by_judge(
    where: Stored, judge: str | JudgeFunction, given: ScoreOptions, judgements: JudgementCache | None
) -> PreparedScorer:
    from proctor.judges import RATIONALE_METRICS, WithFallback, build_judge, judge_prompt
    from proctor.runs import PaidJudgements

    paid, media, access = PaidJudgements(judgements or where.store), given["media"], ModelAccess(given)
    excerpts = excerpts_as(where.store.card(where.benchmark).excerpts, given["media_as"])
    frames = None if media is None else frames_of(media, excerpts)
    prompt = judge_prompt(judge, given["prompt"]) if given["prompt"] else None

    def made(clients: Sequence[ModelClient]) -> Scorer:
        if isinstance(judge, str):
            briefing = reader_or_default(where.store.card(where.benchmark).read_by).briefing
            return build_judge(judge, clients, paid, prompt=prompt, briefing=briefing, frames=frames)
        if len(clients) != 1:
            found = ", ".join(client.name for client in clients) or "no model"
            raise InputError(f"judge {judge.name}", found=found, expected="one model")
        return judge(clients[0], paid, prompt=prompt)

    models = listed(given["model"])
    clients = access.clients([*models, *listed(given["fallback"])])
    scorer = asked = made(clients[: len(models)])
    if clients[len(models) :]:
        asked = WithFallback(scorer, made(clients[len(models) :]))
    runs, notes = _runs(where), tuple[str, ...]()
    if set(scorer.metrics) <= set(RATIONALE_METRICS):
        runs, notes = _with_rationales(where.store, runs)
    await access.check_servers()
    return PreparedScorer(where, runs, scorer, asked, paid, given, clients, notes=notes)


async def _by_dimensions(
    where: Stored, judge: str | RatesDimensions, given: ScoreOptions, judgements: JudgementCache | None
) -> PreparedScorer:
    from proctor.judges import build_dimension_judge
    from proctor.judges.dimensions import ClientPool, JudgeSetup
    from proctor.models import reachable
    from proctor.results import scored_cases
    from proctor.runs import NoJudgements, PaidJudgements

    if given["fallback"]:
        raise UsageError("A judge of dimensions has no fallback. Leave --fallback-model out.")
    store, benchmark = where.store, where.benchmark
    scheme, prompts = _scheme(where, given["dimensions"])
    paid, pool = PaidJudgements(judgements or store), ClientPool(ModelAccess(given).specs(listed(given["model"])))
    name, _, folder = judge.partition(":") if isinstance(judge, str) else ("", "", "")
    images = media_at(given["media"])
    rated = open_store(given["rated"], create=False) if given["rated"] else store
    setup = JudgeSetup(
        pool,
        paid,
        _judge_options(given, folder),
        rated=list(ratings_in(rated, benchmark, images, scheme if rated is store else None)[1].values())
        if given["rated"] or name == _FEW_SHOT
        else (),
        recorded=None
        if scheme is None
        else lambda scorer: scored_cases(store, benchmark, scheme, scorer, images=images),
        prompts=prompts,
        own=rating_judge_of(store.card(benchmark).read_by),
    )
    if images is not None and not images.is_dir():
        raise InputError(images, found="no such folder", expected="the folder of images")
    book = store if judgements is None else NoJudgements()
    scorer = build_dimension_judge(name or judge, setup, scheme, book, images)
    await reachable(url for client in pool.opened for url in client.servers)
    of_file = scheme if given["dimensions"] else None
    return PreparedScorer(where, _runs(where), scorer, scorer, paid, given, [pool], dimensions=True, scheme=of_file)


def _judge_options(given: ScoreOptions, folder: str) -> dict[str, str]:
    """The options of a judge of dimensions as text; its prompt is one of them."""
    options = {key: str(value) for key, value in given["options"].items()}
    if given["prompt"]:
        if "prompt" in options:
            raise UsageError("--prompt and --option prompt=… say the same. Leave one of them out.")
        options["prompt"] = given["prompt"]
    return {"folder": folder, **options} if folder else options


def ratings_in(
    store: Store, benchmark: str, images: Path | None = None, scheme: RatingScheme | None = None
) -> tuple[RatingScheme, dict[tuple[str, str], RatedCase]]:
    """The rating scheme (`scheme`, else the benchmark's) and the answers that people rated. Raises `InputError` if
    there are none."""
    from proctor.results import no_ratings, rated_cases

    scheme = scheme or store.card(benchmark).rating
    found = {} if scheme is None else rated_cases(store, benchmark, scheme, images=images)
    if scheme is None or not found:
        raise no_ratings(store, benchmark)
    return scheme, found


def refuse_in_sample(store: Store, benchmark: str, scorers: Sequence[str]) -> None:
    """Raises `InputError` for a judge that learned from ratings of these encounters: its scores of them are too
    good."""
    from proctor.judges.dimensions import TRAINED_ON
    from proctor.results import judgements_behind

    for name in scorers:
        said = judgements_behind(store, benchmark, [name])
        if any(TRAINED_ON in judgement.flags for some in said.values() for judgement in some):
            found = "scores of encounters that it has learned from"
            raise InputError(
                store.shown, f"judge {name}", found=found, expected="scores out of fold, or of other encounters"
            )


def judge_prompts_of(reader: str) -> Path | None:
    """The folder with the prompts for judges of the benchmark that this reader reads, or None."""
    return reader_or_default(reader).judge_prompts


def frames_of(media: str | Path, excerpts: Excerpts) -> FramesOf:
    """A function that returns an item's frames, as a system gets them under the condition `video`, for a judge."""
    from proctor.media import MediaLibrary, view

    library = MediaLibrary(media_at(media), excerpts=excerpts)

    async def frames(item: Item) -> Sequence[Frame]:
        return await view(item, "video", library).frames()

    return frames


class SimilarityChoice(FrozenModel):
    """Settings of BERTScore. An empty `encoder` is the embedded one."""

    encoder: str = ""
    layer: int | None = None
    rescale: str = ""

    def settings(self) -> BertScoreSettings:
        """The settings as `proctor.metrics.text` takes them."""
        from proctor.metrics.text import EMBEDDED_ENCODER, BertScoreSettings, EncoderSettings

        return BertScoreSettings(EncoderSettings(self.encoder or EMBEDDED_ENCODER, self.layer), rescale=self.rescale)


class FileScoring(SimilarityChoice):
    """How a file of predictions is scored. `strict` raises for a missing or invalid answer; `invalid` says how invalid
    orders count otherwise."""

    strict: bool = False
    invalid: Literal["wrong", "partial"] = "wrong"


def score_predictions(
    benchmark: str,
    predictions: str | Path,
    references: str | Path | None,
    *,
    options: Mapping[str, Any] | None = None,
    draws: int = 2000,
    seed: int = 0,
) -> PluginReport:
    """Score a file of predictions against a file of references, without a store or a model. `options` are those of
    `FileScoring` and the benchmark's own weights. Raises `InputError` for a benchmark that takes no files of
    predictions. The command is `proctor score BENCHMARK PREDICTIONS`."""
    from proctor.metrics import PREDICTION_REPORTS

    BENCHMARKS.get(benchmark)
    scorer = PREDICTION_REPORTS.of(benchmark)
    if scorer is None:
        expected = "no file: import it (proctor import) and score the store"
        raise InputError(predictions, f"benchmark {benchmark!r}", found="a file of predictions", expected=expected)
    if references is None:
        raise UsageError("A file of predictions needs its references. Give their file: --references FILE")
    given = dict(options or {})
    weights = {name: float(given.pop(name)) for name in scorer.weights if name in given}
    how = checked(FileScoring, **given)
    return scorer.prediction_report(
        Path(predictions),
        Path(references),
        weights=weights,
        draws=draws,
        seed=seed,
        strict=how.strict,
        similarity=how.settings(),
        invalid=how.invalid,
    )


def _runs(where: Stored, *, baselines: bool = False) -> tuple[Run, ...]:
    """The chosen runs. Baselines only if they are named, since judging them costs money."""
    from proctor.runs import BASELINES, chosen_runs

    runs = chosen_runs(where.store, where.benchmark, where.systems, where.conditions)
    return tuple(run for run in runs if baselines or where.systems or run.system not in BASELINES)


def _with_rationales(store: Store, runs: Sequence[Run]) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """The runs with rationales to score, and a note on those without."""
    from proctor.metrics.text import gives_rationales

    kept = tuple(run for run in runs if gives_rationales(store.answers(run).values()))
    without = [f"{run.system} / {run.condition}" for run in runs if run not in kept]
    return kept, (f"No score for {', '.join(without)}: no rationale was asked for or kept.",) if without else ()


def _own_judge(where: Stored) -> str:
    card = where.store.card(where.benchmark)
    own = card.judge or reader_or_default(card.read_by).rubric_judge
    if own is None:
        raise UsageError(
            f"{where.benchmark} has no judge of its own. Name one, such as --judge three-level (proctor list judges)."
        )
    return own


def rating_judge_of(reader: str) -> str:
    """The name of the judge of dimensions of the benchmark that this reader reads."""
    from proctor.judges import rates_dimensions

    name = reader_or_default(reader).rubric_judge
    return name if name and rates_dimensions(name) else "rating-judge"


def _scheme(where: Stored, file: str | Path | None) -> tuple[RatingScheme | None, Path | None]:
    """The rating scheme, from a file or from the store, and the folder with the prompts for it."""
    from proctor.judges.dimensions import read_scheme

    store, benchmark = where.store, where.benchmark
    if file is None:
        card = store.card(benchmark)
        return card.rating, judge_prompts_of(card.read_by)
    scheme, prompts = read_scheme(Path(file)), Path(file).parent / "prompts"
    return scheme, prompts if prompts.is_dir() else None
