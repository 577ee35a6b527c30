"""Fit judges to people's ratings: `fit_judge`."""

# No `from __future__ import annotations`: the command line reads these annotations.

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

from proctor.core import (
    CONCURRENCY,
    DASH,
    HUMAN,
    InputError,
    Option,
    UsageError,
    count_of,
    number,
    number_interval,
    output_file,
    p_value,
    plain_table,
    write_whole,
)
from proctor.shell import (
    Draws,
    ModelAccess,
    ModelOptions,
    OnChange,
    Seed,
    Stop,
    StoredRuns,
    filled,
    judge_prompts_of,
    listed,
    media_at,
    ratings_in,
    refuse_in_sample,
    stored,
    sync_twin,
)

if TYPE_CHECKING:
    from proctor.audits import MetricScores, RatingsTable
    from proctor.core import Table
    from proctor.judges.dimensions import DimensionJudge, FewShotExamples, RatedCase
    from proctor.runs import PaidJudgements, Store
    from proctor_train.mediqa_eval.embedded import TrainingMaterial

FitMethod = Literal["calibration", "choice", "examples", "embedded", "pipeline"]


class FitOptions(ModelOptions, total=False):
    """How a judge is fitted, by method.

    calibration: `scorer` is the judge. choice: `scorer` are those to choose from. Both, and pipeline, use
    cross-validation with `folds` parts of the groups.

    examples: `model` judges with each of `sets` sets of `shots` answers, on `held_out` groups. `allow_missing` leaves
    out answers without a score, for all sets.

    embedded: `alone` never compares an answer with others to the same question. `stack` are judges whose stored scores
    are features; scores by `weak` replace missing ratings.

    embedded, pipeline: `encoder` is the folder of another text encoder. pipeline: `pictures` is the encoder of images,
    `media` their folder."""

    scorer: Annotated[
        str | Sequence[str],
        Option(
            "calibration: the judge; choice: those to choose from. [default: all in the store]",
            "--scorer",
            (),
            shell=list[str],
        ),
    ]
    model: Annotated[str, Option("examples: the model that judges.", default="")]
    sets: Annotated[int, Option("examples: sets to try.", default=8, low=2, high=200)]
    shots: Annotated[int, Option("examples: answers in each set.", default=4, low=1, high=24)]
    held_out: Annotated[int, Option("examples: groups to evaluate each set on, one answer each.", default=20, low=4)]
    allow_missing: Annotated[
        bool, Option("examples: leave answers that lack a score out, for all sets.", default=False)
    ]
    concurrency: Annotated[int, Option("examples: answers judged at once.", default=CONCURRENCY, low=1)]
    alone: Annotated[bool, Option("embedded: do not compare answers to the same question.", default=False)]
    encoder: Annotated[
        str, Option("embedded, pipeline: a folder of sentence-transformers. [default: all-MiniLM-L6-v2]", default="")
    ]
    pictures: Annotated[str, Option("pipeline: a folder with CLIP or the like, to see images.", default="")]
    media: Annotated[str | Path | None, Option("pipeline: the folder of images.", shell=Path)]
    stack: Annotated[
        str | Sequence[str],
        Option("embedded: this judge's stored scores as features; may be repeated.", default=(), shell=list[str]),
    ]
    weak: Annotated[str, Option("embedded: use this judge's scores for answers without ratings.", default="")]
    folds: Annotated[int, Option("calibration, choice, pipeline: folds of cross-validation.", default=5, low=2)]
    draws: Draws
    seed: Seed
    on_change: OnChange
    stop: Stop


@dataclass(frozen=True)
class FittedJudge:
    """A fitted or trained judge: where it was written (`out`), what was `done`, its performance on held-out data
    (`tables`), and `notes`."""

    out: Path
    done: str
    tables: "tuple[Table, ...]" = ()
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class PreparedFit:
    """A fit that is ready to start. `calls` is the largest number of model calls, `paid` counts new judgements and
    their cost (None: no model is asked)."""

    make: Callable[[asyncio.Event | None, Callable[[Any], None]], Awaitable[FittedJudge]]
    notes: tuple[str, ...] = ()
    calls: int = 0
    paid: "PaidJudgements | None" = None


def prepare_fit(
    source: "StoredRuns | Store | str | Path | None",
    benchmark: str,
    method: FitMethod,
    out: str | Path,
    **options: Unpack[FitOptions],
) -> PreparedFit:
    """The first step of `fit_judge_async`: check everything before a call is paid."""
    given, path = filled("fit_judge", FitOptions, options), Path(out)
    where = stored(source, benchmark)
    store, name = where.store, where.benchmark
    if method == "embedded":
        return _at_once(lambda: _embedded(store, name, path, given))
    if method not in {"calibration", "choice", "examples", "pipeline"}:
        raise UsageError(f"--method {method!r} is unknown: choose calibration, choice, examples, embedded or pipeline.")
    where.output(path, (".json",))
    _refuse_unwritable(path)
    if method == "calibration":
        return _at_once(lambda: _calibration(store, name, path, given))
    if method == "choice":
        return _at_once(lambda: _choice(store, name, path, given))
    if method == "pipeline":
        return PreparedFit(lambda _stop, _change: _pipeline(store, name, path, given))
    return _examples(store, name, path, given)


async def fit_judge_async(
    source: "StoredRuns | Store | str | Path | None" = None,
    benchmark: str = "",
    *,
    method: FitMethod,
    out: str | Path,
    **options: Unpack[FitOptions],
) -> FittedJudge:
    """Fit a judge to people's ratings of stored answers, and write it to `out`: "calibration" curves for a judge's
    scores, the "choice" of the best scorer for each dimension, few-shot "examples" for a model, the weights of the
    signals of a "pipeline", or an "embedded" judge, which asks no model (a new folder).

    An encounter that was used for fitting is later judged by what was learned without it. Raises `InputError` before a
    call is paid if there are no ratings, or `out` can't be written. The command is `proctor judge fit`.
    """
    prepared = prepare_fit(source, benchmark, method, out, **options)
    given = filled("fit_judge", FitOptions, options)
    made = await prepared.make(given["stop"], given["on_change"])
    return FittedJudge(made.out, made.done, made.tables, (*prepared.notes, *made.notes))


fit_judge = sync_twin(fit_judge_async)


def _at_once(make: Callable[[], FittedJudge]) -> PreparedFit:
    async def made(stop: asyncio.Event | None, on_change: Callable[[Any], None]) -> FittedJudge:
        del stop, on_change  # nothing is waited for
        return make()

    return PreparedFit(made)


def _refuse_unwritable(out: Path) -> None:
    """Raises `InputError` if the file can't be written, before anything is paid."""
    output_file(out, (".json",))
    if out.is_dir():
        raise InputError(out, found="a folder", expected="a file to write")
    if not out.parent.is_dir():
        raise InputError(out.parent, found="no such folder", expected="a folder to write to")


def _calibration(store: "Store", benchmark: str, out: Path, given: FitOptions) -> FittedJudge:
    from proctor.judges.dimensions import fit_calibration, rated_scores
    from proctor.results import compared

    scorers, folds = tuple(listed(given["scorer"])), given["folds"]
    if len(scorers) != 1:
        raise UsageError(
            f"{', '.join(scorers) or 'No scorer'}: one judge's scores are calibrated. Give it by --scorer NAME."
        )
    table, (one,) = compared(store, benchmark, scorers)
    learned = fit_calibration(rated_scores(one, table), judge=one.name, folds=folds, seed=given["seed"])
    write_whole(out, learned.model_dump_json(indent=1) + "\n")
    curves, seen = count_of(len(learned.curves), "curve"), count_of(len(learned.folds), "encounter")
    done = f"{curves} from {seen} in {folds} folds: {out}"
    return FittedJudge(out, done)


def _choice(store: "Store", benchmark: str, out: Path, given: FitOptions) -> FittedJudge:
    from proctor.audits import CorrelationSettings
    from proctor.judges.dimensions import choose_judges
    from proctor.results import compared

    folds, seed = given["folds"], given["seed"]
    table, scores = compared(store, benchmark, tuple(listed(given["scorer"])))
    settings = CorrelationSettings(draws=given["draws"], seed=seed)
    found = choose_judges(table, scores, folds=folds, seed=seed, settings=settings)
    write_whole(out, found.model_dump_json(indent=1) + "\n")
    shown = plain_table(
        f"Agreement on encounters that the choice was not made on ({folds} folds), and on those it was made on",
        ["language", "dimension", "chosen", ">in folds", ">agreement", ">interval", ">looks like"],
        [
            (
                *(honest_row.language, honest_row.dimension or "ALL", honest_row.chosen or DASH),
                f"{honest_row.same_in_folds} of {folds}" if honest_row.dimension else DASH,
                *(
                    number(honest_row.value),
                    number_interval(honest_row.ci_low, honest_row.ci_high),
                    number(honest_row.apparent),
                ),
            )
            for honest_row in found.honest
        ],
    )
    notes = []
    for honest_row in found.honest:
        where = f"{honest_row.language}, {honest_row.dimension}"
        if honest_row.dimension and honest_row.reason:
            notes.append(f"{where}: no agreement: {honest_row.reason}")
        elif honest_row.dimension and honest_row.folds < folds:
            notes.append(f"{where}: in {folds - honest_row.folds} of {folds} folds all ratings are the same: left out")
    return FittedJudge(out, str(out), (shown,), tuple(notes))


def _examples(store: "Store", benchmark: str, out: Path, given: FitOptions) -> PreparedFit:
    from proctor.judges.dimensions import (
        ClientPool,
        RatedPool,
        SearchPlan,
        draw_examples,
        few_shot_judge,
        search_examples,
    )
    from proctor.runs import PaidJudgements

    pool = RatedPool(list(ratings_in(store, benchmark)[1].values()))
    clients = ClientPool(ModelAccess(given).specs([given["model"]]))
    client = clients.client(clients.specs[0], {"temperature": 0.0})
    plan = SearchPlan(sets=given["sets"], shots=given["shots"], held_out=given["held_out"], seed=given["seed"])
    drawn = draw_examples(pool, plan)
    calls = sum(one.calls for one in drawn.values())
    parts = ", ".join(f"{len(one.sets)} × {len(one.held_out)} in {name}" for name, one in drawn.items())
    before = (
        f"at most {count_of(calls, 'answer')} to rate ({parts}); those that {store.shown} has are not asked for again"
    )
    paid, prompts = PaidJudgements(store), judge_prompts_of(store.card(benchmark).read_by)
    how: Any = {"allow_missing": given["allow_missing"], "concurrency": given["concurrency"]}

    def judge(chosen: "FewShotExamples") -> "DimensionJudge":
        return few_shot_judge(client, paid, chosen, prompts)

    async def make(stop: asyncio.Event | None, on_change: Callable[[Any], None]) -> FittedJudge:
        try:
            found = await search_examples(pool, plan, judge, **how, stop=stop, on_change=on_change)
        finally:
            await clients.aclose()
        write_whole(out, found.model_dump_json(indent=1) + "\n")
        rows = []
        for language, tried in found.languages.items():
            merits = [tried.merit(row) for row in range(len(tried.sets))]
            best = max(range(len(merits)), key=lambda row: merits[row])
            shown = (number(min(merits)), number(sum(merits) / len(merits)), number(merits[best]), str(best + 1))
            rows.append((language, str(len(tried.held_out)), *shown))
        title = "Agreement on held-out answers (the best of several: it flatters)"
        heads = ["language", ">answers", ">worst set", ">mean", ">best set", ">number"]
        return FittedJudge(out, str(out), (plain_table(title, heads, rows),))

    return PreparedFit(make, (before,), calls, paid)


def _embedded(store: "Store", benchmark: str, out: Path, given: FitOptions) -> FittedJudge:
    from proctor.results import people_ratings, similarity_scores
    from proctor_train.mediqa_eval import embedded

    embedded.refuse_taken(out)
    scheme, rated = ratings_in(store, benchmark)
    table = people_ratings(store, benchmark)
    recipe = embedded.Recipe(seed=given["seed"], alone=given["alone"])
    material = _material(store, benchmark, rated, given)
    known = embedded.read_rated(list(rated.values()), material=material)
    held = [(rated_answers, embedded.out_of_fold(rated_answers, recipe)) for rated_answers in known]
    validated = embedded.scores_of("embedded-judge", list(rated), held)
    shown = _beside_best(table, validated, similarity_scores(table, rated, scheme), given, recipe.folds)
    judge = embedded.EmbeddedJudge.train(list(rated.values()), known, recipe, material)
    judge.save(out)
    counted = ", ".join(f"{len(rated_answers.answers)} in {rated_answers.answers.language}" for rated_answers in known)
    return FittedJudge(out, f"{judge.name} learned from {counted}; written to {out}", (shown,))


async def _pipeline(store: "Store", benchmark: str, out: Path, given: FitOptions) -> FittedJudge:
    from proctor.audits import MetricScores
    from proctor.judges.dimensions import look
    from proctor.results import people_ratings, similarity_scores
    from proctor_train.mediqa_eval import SignalReader, fit_pipeline

    media = media_at(given["media"])
    scheme, rated = ratings_in(store, benchmark, media)
    known = list(rated.values())
    reader = SignalReader(given["encoder"], given["pictures"])
    seen = [await look(rated_case.case) for rated_case in known]
    signals = await asyncio.to_thread(reader.read, [rated_case.case for rated_case in known], seen)
    fit = fit_pipeline(known, signals, reader.settings, folds=given["folds"], seed=given["seed"])
    write_whole(out, fit.model_dump_json(indent=1) + "\n")
    held = {
        (*key, name): value
        for (key, one), own in zip(rated.items(), signals, strict=True)
        for name, value in fit.rated(one.case, own.values)[0].items()
    }
    table = people_ratings(store, benchmark)
    judged = MetricScores("local-pipeline", held)
    shown = _beside_best(table, judged, similarity_scores(table, rated, scheme), given, given["folds"])
    blind = (
        sum(bool(rated_case.case.images) for rated_case in known)
        if not reader.sees
        else sum(bool(pictures.flags) for pictures in seen)
    )
    all_answers = count_of(len(known), "answer")
    notes = (f"{blind} of {all_answers} to questions with images that were not seen",) if blind else ()
    functions = f"{count_of(len(fit.ratings), 'function')} of {count_of(len(reader.names), 'signal')}"
    done = f"{functions} from {count_of(len(fit.folds), 'encounter')}: {out}"
    return FittedJudge(out, done, (shown,), notes)


def _beside_best(
    table: "RatingsTable", judge: "MetricScores", texts: "Sequence[MetricScores]", given: FitOptions, folds: int
) -> "Table":
    """Compare a judge's scores of held-out answers with the best metric on text."""
    from proctor.audits import CorrelationSettings
    from proctor_train.mediqa_eval.embedded import beside_best

    settings = CorrelationSettings(draws=given["draws"], seed=given["seed"])
    return plain_table(
        f"Agreement on encounters it did not learn from ({folds} folds, all choices made inside the training folds)",
        ["language", "dimension", ">judge", ">interval", "best on text", ">its", ">difference", ">interval", ">p"],
        [
            (
                *(held.language, held.dimension or "ALL", number(held.judge.value)),
                *(number_interval(held.judge.ci_low, held.judge.ci_high), held.other, number(held.beside.value)),
                *(number(held.difference.value), number_interval(held.difference.ci_low, held.difference.ci_high)),
                p_value(held.difference.p),
            )
            for held in beside_best(table, [judge], texts, settings)
        ],
    )


def _material(
    store: "Store", benchmark: str, rated: "Mapping[tuple[str, str], RatedCase]", given: FitOptions
) -> "TrainingMaterial":
    """The encoder and the scores that an embedded judge learns from besides ratings. Raises `InputError` for scores by
    a judge that itself learned from ratings of these encounters."""
    from proctor.judges.dimensions import RatedCase
    from proctor.results import scored_cases
    from proctor_train.mediqa_eval import embedded

    stack, weak, encoder = tuple(listed(given["stack"])), given["weak"], given["encoder"]
    for name in (*stack, *([weak] if weak else [])):
        if name.startswith(HUMAN):
            raise InputError(f"scores by {name}", found="a person's", expected="a judge's: people's are learned from")
    refuse_in_sample(store, benchmark, (*stack, *([weak] if weak else [])))
    scheme = store.card(benchmark).rating
    if scheme is None:
        return embedded.TrainingMaterial()
    people = {rated_case.case for rated_case in rated.values()}
    scored = scored_cases(store, benchmark, scheme, weak) if weak else {}
    return embedded.TrainingMaterial(
        encoder=Path(encoder) if encoder else None,
        stacked={name: scored_cases(store, benchmark, scheme, name) for name in stack},
        weak=tuple(RatedCase(case, values) for case, values in scored.items() if case not in people),
    )
