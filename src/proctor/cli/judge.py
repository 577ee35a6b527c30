"""`proctor judge`: judges of dimensions tuned on rated answers, and documents for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from proctor.api import BenchmarkName, Draws, ModelOptions, Seed, StoreUrl
from proctor.cli.output import note, print_blocks, say
from proctor.cli.progress import at_work, cost_of, show_trials
from proctor.cli.run import watched
from proctor.core import DASH, InputError, Option, UsageError, number, number_interval, write_whole

if TYPE_CHECKING:
    from proctor.judges.dimensions import DimensionJudge, ExampleSearch, FewShotExamples
    from proctor.runs import Store

Method = Literal["calibration", "choice", "examples", "embedded"]


def fit(
    benchmark: BenchmarkName,
    method: Annotated[
        Method,
        Option(
            "calibration: curves for a judge's scores; choice: the best scorer of each dimension; examples: few-shot "
            "examples for a model; embedded: a judge that asks none."
        ),
    ],
    out: Annotated[Path, Option("The result to be written: a JSON file; of embedded a new folder.")],
    options: ModelOptions,
    store: StoreUrl = None,
    scorers: Annotated[
        list[str] | None,
        Option("calibration: the judge; choice: those to choose from. [default: all in the store]", "--scorer"),
    ] = None,
    model: Annotated[str, Option("examples: the model that judges.")] = "",
    sets: Annotated[int, Option("examples: sets to try.", low=2, high=200)] = 8,
    shots: Annotated[int, Option("examples: answers in each set.", low=1, high=24)] = 4,
    held_out: Annotated[int, Option("examples: groups that each set is tried on, an answer of each.", low=4)] = 20,
    allow_missing: Annotated[bool, Option("examples: leave answers that lack a score out, for all sets.")] = False,
    concurrency: Annotated[int, Option("examples: answers judged at once.", low=1)] = 8,
    alone: Annotated[bool, Option("embedded: never compare an answer with others to its question.")] = False,
    folds: Annotated[int, Option("calibration, choice: parts of the groups that are left out in turn.", low=2)] = 5,
    draws: Draws = 2000,
    seed: Seed = 0,
) -> None:
    """Fit a judge to people's ratings.

    The result is for logprob-judge with calibration=FILE, per-dimension with choice=FILE, few-shot-judge with
    examples=FILE, or embedded:FOLDER. An encounter that it was learned from is later judged by what was learned
    without it; how good that is, is stated for encounters that it was not learned from.

    For examples the model is asked sets × held-out times in each language, said before it starts.

    Example: proctor judge fit mediqa-eval --method choice --out choice.json --store runs.db
    """
    from proctor import api

    opened = api.open_store(store, create=False)
    if method == "embedded":
        _embedded(opened, benchmark, out, alone=alone, draws=draws, seed=seed)
        return
    _refuse_unwritable(out)
    if method == "calibration":
        _calibration(opened, benchmark, out, scorers or (), folds=folds, seed=seed)
    elif method == "choice":
        _choice(opened, benchmark, out, scorers or (), folds=folds, draws=draws, seed=seed)
    else:
        plan = {"sets": sets, "shots": shots, "held_out": held_out, "seed": seed}
        _examples(opened, benchmark, out, model, options, plan, (allow_missing, concurrency))


def _refuse_unwritable(out: Path) -> None:
    """Raises where a file could not be written, before anything is paid for."""
    if out.is_dir():
        raise InputError(out, found="a folder", expected="a file to write")
    if not out.parent.is_dir():
        raise InputError(out.parent, found="no such folder", expected="a folder to write to")


def _calibration(store: Store, benchmark: str, out: Path, scorers: Sequence[str], *, folds: int, seed: int) -> None:
    from proctor.judges.dimensions import fit_calibration, rated_scores
    from proctor.runs import compared

    if len(scorers) != 1:
        raise UsageError("--scorer", "one: the judge whose scores are calibrated", found=", ".join(scorers) or "none")
    table, (given,) = compared(store, benchmark, scorers)
    learned = fit_calibration(rated_scores(given, table), judge=given.name, folds=folds, seed=seed)
    write_whole(out, learned.model_dump_json(indent=1) + "\n")
    say(f"{len(learned.curves)} curves from {len(learned.folds)} encounters in {folds} folds: {out}")


def _choice(
    store: Store, benchmark: str, out: Path, scorers: Sequence[str], *, folds: int, draws: int, seed: int
) -> None:
    from proctor.audits import CorrelationSettings
    from proctor.judges.dimensions import choose_judges
    from proctor.runs import compared

    table, given = compared(store, benchmark, tuple(scorers))
    found = choose_judges(table, given, folds=folds, seed=seed, settings=CorrelationSettings(draws=draws, seed=seed))
    write_whole(out, found.model_dump_json(indent=1) + "\n")
    _table(
        f"Agreement on encounters that the choice was not made on ({folds} folds), and on those it was made on",
        ["language", "dimension", "chosen", ">in folds", ">agreement", ">interval", ">looks like"],
        [
            (
                *(one.language, one.dimension or "ALL", one.chosen or DASH),
                f"{one.same_in_folds} of {folds}" if one.dimension else DASH,
                *(number(one.value), number_interval(one.ci_low, one.ci_high), number(one.apparent)),
            )
            for one in found.honest
        ],
    )
    for one in found.honest:
        where = f"{one.language}, {one.dimension}"
        if one.dimension and one.reason:
            note(f"{where}: no agreement: {one.reason}")
        elif one.dimension and one.folds < folds:
            note(f"{where}: in {folds - one.folds} of {folds} folds all ratings are the same: left out")
    say(f"{out}")


def _examples(
    store: Store, benchmark: str, out: Path, model: str, options: ModelOptions, drawing: Any, how: tuple[bool, int]
) -> None:
    from proctor.api import ModelAccess, judge_prompts_of, ratings_in
    from proctor.judges.dimensions import (
        ClientPool,
        RatedPool,
        SearchPlan,
        draw_examples,
        few_shot_judge,
        search_examples,
    )
    from proctor.runs import PaidVotes

    pool = RatedPool(list(ratings_in(store, benchmark)[1].values()))
    clients = ClientPool(ModelAccess(options).specs([model]))
    client = clients.client(clients.specs[0], {"temperature": 0.0})
    plan = SearchPlan(**drawing)
    drawn = draw_examples(pool, plan)
    calls = sum(one.calls for one in drawn.values())
    parts = ", ".join(f"{len(one.sets)} × {len(one.held_out)} in {name}" for name, one in drawn.items())
    note(f"at most {calls} answers to rate ({parts}); those that {store.shown} has are not asked for again")
    paid, prompts, (allow_missing, concurrency) = PaidVotes(store), judge_prompts_of(benchmark), how

    def make(chosen: FewShotExamples) -> DimensionJudge:
        return few_shot_judge(client, paid, chosen, prompts)

    async def searching(stop: asyncio.Event, update: Any) -> ExampleSearch:
        try:
            return await search_examples(
                pool, plan, make, allow_missing=allow_missing, concurrency=concurrency, stop=stop, on_change=update
            )
        finally:
            await clients.aclose()

    found = asyncio.run(watched(searching, show_trials(calls, paid)))
    write_whole(out, found.model_dump_json(indent=1) + "\n")
    rows = []
    for language, tried in found.languages.items():
        merits = [tried.merit(place) for place in range(len(tried.sets))]
        best = max(range(len(merits)), key=lambda place: merits[place])
        shown = (number(min(merits)), number(sum(merits) / len(merits)), number(merits[best]), str(best + 1))
        rows.append((language, str(len(tried.held_out)), *shown))
    title = "Agreement on held-out answers (the best of several: it flatters)"
    _table(title, ["language", ">answers", ">worst set", ">mean", ">best set", ">number"], rows)
    say(f"{out}")
    if paid.count:
        note(f"{paid.count} new judgements, {cost_of(paid.usage)}, kept in {store.shown}")


def _embedded(store: Store, benchmark: str, out: Path, *, alone: bool, draws: int, seed: int) -> None:
    from proctor.api import ratings_in
    from proctor.audits import CorrelationSettings
    from proctor.judges import embedded
    from proctor.runs import people_ratings, similarity_scores

    embedded.refuse_taken(out)
    scheme, rated = ratings_in(store, benchmark)
    table = people_ratings(store, benchmark)
    recipe = embedded.Recipe(seed=seed, alone=alone)
    with at_work("1 of 4: reading the texts"):
        known = embedded.read_rated(list(rated.values()))
    with at_work(f"2 of 4: learning in {recipe.folds} folds, to say how good it is"):
        held = [(one, embedded.out_of_fold(one, recipe)) for one in known]
    with at_work("3 of 4: comparing it with metrics on text"):
        validated = embedded.scores_of("embedded-judge", list(rated), held)
        texts = similarity_scores(table, rated, scheme)
        rows = embedded.beside_best(table, [validated], texts, CorrelationSettings(draws=draws, seed=seed))
    _table(
        f"Agreement on encounters it did not learn from ({recipe.folds} folds, all choices made inside the training folds)",
        ["language", "dimension", ">judge", ">interval", "best on text", ">its", ">difference", ">interval", ">p"],
        [
            (
                *(one.language, one.dimension or "ALL", number(one.judge.value)),
                *(number_interval(one.judge.ci_low, one.judge.ci_high), one.other, number(one.beside.value)),
                *(number(one.difference.value), number_interval(one.difference.ci_low, one.difference.ci_high)),
                DASH if one.difference.p is None else f"{one.difference.p:.2g}",
            )
            for one in rows
        ],
    )
    with at_work("4 of 4: learning from all ratings"):
        judge = embedded.EmbeddedJudge.train(list(rated.values()), known, recipe)
        judge.save(out)
    counted = ", ".join(f"{len(one.answers)} in {one.answers.language}" for one in known)
    say(f"{judge.name} learned from {counted}; written to {out}")


def index(
    documents: Annotated[Path, Option("A folder with text, Markdown and PDF.", metavar="DOCUMENTS", argument=True)],
    out: Annotated[Path | None, Option("Where the index is kept. [default: beside the folder]")] = None,
    encoder: Annotated[
        str, Option("The embedded encoder, or a folder with one of sentence-transformers.")
    ] = "all-MiniLM-L6-v2",
    size: Annotated[int, Option("Words of a passage, at most.", low=8, high=2000)] = 160,
    overlap: Annotated[
        int | None, Option("Words that a passage shares with the one before. [default: a fifth of --size]", low=0)
    ] = None,
    query: Annotated[str, Option("Show which passages are found for it.")] = "",
    top: Annotated[int, Option("How many of them.", low=1)] = 5,
) -> None:
    """Index documents for judges.

    retrieval-judge and evidence-judge look into the index; where it is current, nothing is done. The judges build it
    themselves where it is not there. Built ahead, one sees what can be read, and what is found for a question.

    Example: proctor judge index guidelines --query "Can I put ice on a burn?"
    """
    from proctor.judges import Chunking, IndexSettings, default_folder, open_index

    if overlap is not None and overlap > size // 2:
        raise InputError(None, "--overlap", found=str(overlap), expected=f"at most half of --size, {size // 2}")
    folder = out or default_folder(documents)
    opened = open_index(documents, folder, IndexSettings(chunking=Chunking.of(size, overlap), encoder=encoder))
    state = "built" if opened.built else "current"
    say(f"{len(opened.index.passages)} passages of {len(opened.documents)} documents, {state}: {folder}")
    if query:
        _table(
            f"Found for {query!r}",
            ["source", ">page", ">by words", ">by meaning", "passage"],
            [
                (
                    one.passage.source,
                    *(DASH if each is None else str(each) for each in (one.passage.page, one.by_words, one.by_meaning)),
                    " ".join(one.passage.text.split())[:160],
                )
                for one in opened.index.search([query], top)
            ],
        )


def _table(title: str, heads: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    from proctor.reports import Table, columns

    print_blocks(Table(title, columns(*heads), tuple(rows), title=title))
