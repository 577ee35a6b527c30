"""`proctor judge examples`: which few-shot examples serve a judge best, tried on held-out answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.models import BaseUrl, ModelOptions, Retries, Settings, Structured, Timeout
from proctor.cli.options import BenchmarkName, Seed, StoreUrl
from proctor.cli.output import console, note, print_table
from proctor.cli.progress import cost_of, show_trials, stopping
from proctor.cli.rating import judge_prompts_of, ratings_in, refuse_unwritable
from proctor.cli.results import DEFAULT_STORE
from proctor.core import write_whole

if TYPE_CHECKING:
    from proctor.judges.dimensions import DimensionJudge
    from proctor.judges.dimensions.few_shot import ExampleSearch, FewShotExamples


def examples(
    benchmark: BenchmarkName,
    model: Annotated[str, typer.Option("--model", help="The model that judges.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="The result to be written (JSON).", show_default=False)],
    store: StoreUrl = DEFAULT_STORE,
    sets: Annotated[int, typer.Option("--sets", min=2, max=200, help="Sets of examples to try.")] = 8,
    shots: Annotated[int, typer.Option("--shots", min=1, max=24, help="Examples in each set.")] = 4,
    held_out: Annotated[
        int, typer.Option("--held-out", min=4, help="Groups that each set is tried on, an answer of each.")
    ] = 20,
    seed: Seed = 0,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Leave answers that lack a score out, for all sets.")
    ] = False,
    base_url: BaseUrl = None,
    settings: Settings = None,
    timeout: Timeout = 180.0,
    retries: Retries = 6,
    structured: Structured = "auto",
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Answers judged at once.")] = 8,
) -> None:
    """Try rated answers as few-shot examples.

    The result is for few-shot-judge with examples=FILE. The model is asked sets × held-out times in each language, said before it starts. The file keeps all that
    was seen: an encounter that took part is judged with a set without it, chosen by other encounters.

    Example: proctor judge examples mediqa-eval --model openai:gpt-5.2 --store runs.db --out examples.json
    """
    from proctor.judges.dimensions import ClientPool
    from proctor.judges.dimensions.few_shot import RatedPool, SearchPlan, draw, few_shot_judge, search_examples
    from proctor.runs import PaidVotes, Store

    refuse_unwritable(out)
    opened = Store(store, create=False)
    pool = RatedPool(list(ratings_in(opened, benchmark)[1].values()))
    options = ModelOptions(None, tuple(settings or ()), timeout, retries, structured)
    clients = ClientPool(options.specs([model], [base_url] if base_url else []))
    client = clients.client(clients.specs[0], {"temperature": 0.0})
    plan = SearchPlan(sets=sets, shots=shots, held_out=held_out, seed=seed)
    drawn = draw(pool, plan)
    calls = sum(one.calls for one in drawn.values())
    parts = ", ".join(f"{len(one.sets)} × {len(one.held_out)} in {name}" for name, one in drawn.items())
    note(f"at most {calls} answers to rate ({parts}); those that {opened.shown} has are not asked for again")
    paid, prompts = PaidVotes(opened), judge_prompts_of(benchmark)

    def make(chosen: FewShotExamples) -> DimensionJudge:
        return few_shot_judge(client, paid, chosen, prompts)

    async def searching() -> ExampleSearch:
        try:
            with stopping() as stop, show_trials(calls, paid) as update:
                return await search_examples(
                    pool, plan, make, allow_missing=allow_missing, concurrency=concurrency, stop=stop, on_change=update
                )
        finally:
            await clients.aclose()

    found = asyncio.run(searching())
    write_whole(out, found.model_dump_json(indent=1) + "\n")
    _tell(found, out)
    if paid.count:
        note(f"{paid.count} new votes, {cost_of(paid.usage)}, kept in {opened.shown}")


def _tell(found: ExampleSearch, out: Path) -> None:
    rows = []
    for language, tried in found.languages.items():
        merits = [tried.merit(number) for number in range(len(tried.sets))]
        best = max(range(len(merits)), key=lambda number: merits[number])
        rows.append(
            [
                language,
                str(len(tried.held_out)),
                f"{min(merits):.3f}",
                f"{sum(merits) / len(merits):.3f}",
                f"{merits[best]:.3f}",
                str(best + 1),
            ]
        )
    print_table(
        "Agreement on held-out answers (the best of several: it flatters)",
        ["language", ">answers", ">worst set", ">mean", ">best set", ">number"],
        rows,
    )
    console.print(f"{out}", markup=False, highlight=False)
