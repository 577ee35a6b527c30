"""`proctor judge exemplars`: which rated examples serve a judge best, tried out on held-out encounters."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.judge_work import Book, Files, read_rated, write_whole
from proctor.cli.models import BaseUrl, ModelOptions, Retries, Settings, Structured, Timeout
from proctor.cli.options import Seed
from proctor.cli.output import console, note, print_table
from proctor.cli.progress import cost_of, show_rating, stopping

if TYPE_CHECKING:
    from proctor.judges.dimensions import DimensionJudge
    from proctor.judges.dimensions.exemplars import Exemplars
    from proctor.judges.dimensions.searching import ExemplarSearch

__all__ = ["exemplars"]


def exemplars(
    ratings: Annotated[
        Path, typer.Option("--ratings", help="The rated answers to choose from.", show_default=False)
    ],
    encounters: Annotated[
        Path,
        typer.Option("--encounters", help="Questions and reference answers (JSONL).", show_default=False),
    ],
    model: Annotated[str, typer.Option("--model", help="The model that judges.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="The result to be written (JSON).", show_default=False)],
    sets: Annotated[int, typer.Option("--sets", min=2, max=200, help="Sets of examples to try.")] = 8,
    shots: Annotated[int, typer.Option("--shots", min=1, max=24, help="Examples in each set.")] = 4,
    held_out: Annotated[
        int,
        typer.Option("--held-out", min=4, help="Encounters that each set is tried on, an answer of each."),
    ] = 20,
    seed: Seed = 0,
    votes: Annotated[
        Path | None,
        typer.Option("--votes", help="Where votes are kept. [default: beside --out]", show_default=False),
    ] = None,
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
    """Tries sets of rated examples on held-out encounters, for few-shot-judge with exemplars=FILE.

    The model is asked sets × held-out times in each language, said before it starts. The file keeps all that
    was seen: an encounter that took part is judged with a set without it, chosen by other encounters.

    Example: proctor judge exemplars --model openai:gpt-5.2 --ratings ratings.csv --encounters encounters.jsonl
    --out exemplars.json
    """
    from proctor.judges.dimensions import ClientPool
    from proctor.judges.dimensions.exemplars import RatedPool
    from proctor.judges.dimensions.few_shot import FewShotJudge
    from proctor.judges.dimensions.searching import SearchPlan, draw, search_exemplars
    from proctor.runs import PaidVotes

    files = Files.of(out, votes, (ratings, encounters))
    options = ModelOptions(None, tuple(settings or ()), timeout, retries, structured)
    clients = ClientPool(options.specs([model], [base_url] if base_url else []))
    client = clients.client(clients.specs[0], {"temperature": 0.0})
    pool = RatedPool(read_rated(ratings, encounters))
    plan = SearchPlan(sets=sets, shots=shots, held_out=held_out, seed=seed)
    drawn = draw(pool, plan)
    calls = sum(one.calls for one in drawn.values())
    parts = ", ".join(f"{len(one.sets)} × {len(one.held_out)} in {name}" for name, one in drawn.items())
    note(f"at most {calls} answers to rate ({parts}); those in {files.votes} are not asked for again")
    book = Book(files.votes)
    paid = PaidVotes(book)

    def make(chosen: Exemplars) -> DimensionJudge:
        return FewShotJudge(client, paid, chosen)

    async def searching() -> ExemplarSearch:
        try:
            with stopping() as stop, show_rating(calls, paid) as update:
                return await search_exemplars(
                    pool,
                    plan,
                    make,
                    allow_missing=allow_missing,
                    concurrency=concurrency,
                    stop=stop,
                    on_change=update,
                )
        finally:
            await clients.aclose()
            book.close()

    found = asyncio.run(searching())
    write_whole(out, found.model_dump_json(indent=1) + "\n")
    _tell(found, out)
    if paid.count:
        note(f"{paid.count} new votes, {cost_of(paid.usage)}, kept in {files.votes}")


def _tell(found: ExemplarSearch, out: Path) -> None:
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
