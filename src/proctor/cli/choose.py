"""`proctor choose`: of several models the best one on a validation part."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from proctor.api import BenchmarkSource, ChooseOptions
from proctor.cli.output import Output, OutputFormat, note, say, show
from proctor.cli.progress import show_asking
from proctor.cli.run import watched
from proctor.core import Option

if TYPE_CHECKING:
    from proctor.api import ChosenModel


def choose(
    benchmark: BenchmarkSource,
    options: ChooseOptions,
    out: Annotated[Path, Option("The folder of the evidence: choice.json, answers.db.")],
    output: Output = OutputFormat.TABLE,
) -> None:
    """Choose the best of several models.

    Each is asked the validation part, zero-shot; the highest mean accuracy over the benchmark's buckets wins, equal
    ones by how often each is best in samples of videos. FOCUS's first baseline is chosen so. Run the same command again
    to continue where it stopped.

    Example: proctor choose focus --data validation --media videos --model openai:gpt-5.2 --model google:gemini-3-pro
    --out baseline
    """
    from proctor import api

    arranged, given = api.arrange_choice(benchmark, out, **options)

    async def choosing() -> ChosenModel:
        prepared = api.PreparedChoice(await arranged.prepare(), out, given)
        note(*prepared.run.notes)
        return await watched(prepared.ask, show_asking(prepared.run.plan.to_ask))

    made = asyncio.run(choosing())
    show(output, made.rows, *made.tables)
    note(*made.notes)
    if output is OutputFormat.TABLE:
        say(f"Chosen: {made.data.chosen.name}; the evidence is in {made.out}")
