"""`proctor choose`: the best of several models."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from proctor.cli.output import Output, OutputFormat, print_line, print_note, show, show_asking, watched
from proctor.core import Option
from proctor.shell import BenchmarkSource, ChooseOptions

if TYPE_CHECKING:
    from proctor.shell import ChosenModel


def choose(
    benchmark: BenchmarkSource,
    options: ChooseOptions,
    out: Annotated[Path, Option("The folder of the evidence: choice.json, answers.db.")],
    output: Output = OutputFormat.TABLE,
) -> None:
    """Choose the best of several models.

    Each model is asked the validation part, zero-shot. The highest mean accuracy over the benchmark's buckets wins;
    ties are broken by how often each is best in bootstrap samples of videos. This is FOCUS's first baseline. Run the
    same command again to continue where it stopped.

    Example: proctor choose focus --data validation --media videos --model openai:gpt-5.2 --model google:gemini-3-pro
    --out baseline
    """
    from proctor import shell

    arranged, given = shell.arrange_choice(benchmark, out, **options)

    async def choosing() -> ChosenModel:
        prepared = shell.PreparedChoice(await arranged.prepare(), out, given)
        print_note(*prepared.run.notes)
        return await watched(prepared.ask, show_asking(prepared.run.plan.to_ask))

    made = asyncio.run(choosing())
    show(output, made.rows, *made.tables)
    print_note(*made.notes)
    if output is OutputFormat.TABLE:
        print_line(f"Chosen: {made.data.chosen.name}; the evidence is in {made.out}")
