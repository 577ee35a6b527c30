"""`proctor pool`: figures over several institutions that keep their cases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from proctor.api import Draws, Seed
from proctor.cli.output import Output, OutputFormat, drawn_over, note, print_json, settings_of, show
from proctor.cli.progress import at_work
from proctor.core import DASH, Option, Table, columns, number, number_interval


def pool(
    files: Annotated[
        list[Path],
        Option("What `proctor export --format sums` wrote, one of each site.", metavar="FILE...", argument=True),
    ],
    draws: Draws = 2000,
    seed: Seed = 0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Join figures of sites that keep their cases.

    Each site sends sums of its groups. Means, intervals, differences and p are those that all items together would give.
    What a run lacks counts as wrong. Metrics and systems that a site lacks are left out and named.

    Example: proctor pool berlin.json oxford.json
    """
    from proctor.runs import pool_sums
    from proctor.stats import Resampling

    with at_work("computing intervals"):
        benchmark, found = pool_sums(files, Resampling(draws=draws, seed=seed))
    if output is OutputFormat.JSON:
        print_json([one.to_json() | settings_of({"draws": draws, "seed": seed}) for one in found])
        return
    apart = [one.title for one in found if one.institutions < len(files)]
    found = [one for one in found if one.institutions == len(files)]
    rows = [
        (
            one.condition,
            one.metric,
            one.scorer,
            system,
            f"{mean.n:,}",
            str(mean.groups),
            number(mean.value),
            number_interval(mean.ci_low, mean.ci_high),
            str(one.lacking[system]),
        )
        for one in found
        for system, mean in zip(one.systems, one.means, strict=True)
    ]
    heads = columns("condition", "metric", "scorer", "system", ">n", ">groups", ">value", ">interval", ">lacking")
    title = f"{benchmark}: {len(files)} sites"
    pairs = [
        (
            one.condition,
            one.metric,
            one.scorer,
            one.systems[pair.first],
            one.systems[pair.second],
            number(pair.difference.value),
            number_interval(pair.difference.ci_low, pair.difference.ci_high),
            DASH if pair.p_holm is None else f"{pair.p_holm:.2g}",
        )
        for one in found
        for pair in one.pairs
    ]
    between = columns("condition", "metric", "scorer", "first", "second", ">difference", ">interval", ">p (Holm)")
    records = [
        {"condition": one.condition, "metric": one.metric, "scorer": one.scorer, **row}
        for one in found
        for row in one.rows()
    ]
    tables = [Table(title, heads, tuple(rows), title=title)]
    tables += [Table("Differences", between, tuple(pairs), title="Differences")] if pairs else []
    show(output, records, *tables)
    out = {f"{name} under {one.condition}" for one in found for name in one.left_out}
    note(*([f"Not in every file, left out: {', '.join(apart)}"] if apart else []))
    note(*([f"Not at every site whole, left out: {', '.join(sorted(out))}"] if out else []))
    note(drawn_over(draws, seed, two_level=False))
