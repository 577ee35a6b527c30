"""What a report shows, to the letter: every table, sentence and drawing of one made-up store and of one audit.

The numbers are held elsewhere (`tests/runs/*_recomputed.py`); here no heading, order, sign or caption changes unseen.
Of a drawing its words are kept, and a checksum of its shapes. After a change that is meant, look at the difference:
`PROCTOR_UPDATE_SNAPSHOTS=1 pytest tests/reports/test_sections_are_kept.py; git diff tests/reports/snapshots`.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path

import pytest

from proctor.audits import AuditReport, CorrelationSettings, read_metrics, read_ratings
from proctor.core import Cell, Column, FailedPolicy, Table
from proctor.reports import AuditSource, Source
from proctor.reports.analysis import analysis_section
from proctor.reports.blocks import Block, Figure, Folded, Prose, Section
from proctor.reports.charts import LeaderboardChart
from proctor.reports.comparisons import conditions_section, crossings_section, gains_section
from proctor.reports.completion import consumption_section, statuses_section
from proctor.reports.headline import headline_section
from proctor.reports.leaderboard import published_section
from proctor.reports.metric_agreement import (
    agreement_section,
    audit_tables,
    counts_section,
    raters_section,
    systems_section,
)
from proctor.reports.metric_profile import bias_section, calibration_section
from proctor.reports.metric_ranking import metric_pairs_section, metrics_section
from proctor.reports.ranking import ranking_section
from proctor.reports.subgroups import facets_section, orders_section
from proctor.results import Options
from tests.reports.test_report_orders import ordered
from tests.support.fuzzed_store import NAME, fuzzed
from tests.support.many_systems import BASE, many_systems
from tests.support.snapshot import assert_frozen

SECTIONS = (
    *(headline_section, published_section, ranking_section, facets_section, analysis_section, conditions_section),
    *(gains_section, crossings_section, consumption_section, statuses_section),
)
HERE = Path(__file__).parent / "snapshots"


def of_cell(cell: Cell | Column | str | int) -> str:
    if isinstance(cell, Column):
        return f"{cell.label}{' >' if cell.numeric else ''}{' |' if cell.drawn else ''}{f' [{cell.name}]' if cell.name else ''}"
    if isinstance(cell, str | int):
        return str(cell)
    ends = [cell.span.low, cell.span.value, cell.span.high, cell.span.mark] if cell.span else []
    drawn = " ".join("–" if one is None else f"{one:.3f}" for one in ends)
    more = [
        cell.badge and f"({cell.badge})",
        cell.below and f"/ {cell.below}",
        drawn and f"[{drawn}]",
        "*" if cell.strong else "",
    ]
    return " ".join(part for part in (cell.text, *more) if part)


def of_block(block: Block | str) -> Iterator[str]:
    """A block as lines."""
    if isinstance(block, str):
        yield f"## {block}"
    elif isinstance(block, Prose):
        yield from (f"{'(' if block.quiet else ''}{block.text}", *(f"- {one}" for one in block.points))
    elif isinstance(block, Folded):
        yield f"> {block.title}"
        for one in block.blocks:
            yield from (f"  {line}" for line in of_block(one))
    elif isinstance(block, Table):
        yield f"Table {block.title!r}: {block.caption}"
        lines: list[Sequence[Cell | Column | str | int]] = [block.columns, *block.rows, block.foot]
        yield from (" ; ".join(map(of_cell, line)) for line in lines if line)
    elif isinstance(block, LeaderboardChart):
        yield from of_chart(block)
    else:
        yield from of_figure(block)


def of_chart(chart: LeaderboardChart) -> Iterator[str]:
    lines = ", ".join(f"{label} at {at:.3f}" for at, label in chart.lines)
    yield f"Chart: {chart.caption} Axis {' '.join(chart.axis.labels)}; lines: {lines}"
    for row in chart.rows:
        badges = "".join(f" ({badge})" for badge in row.badges)
        yield f"  {row.rank} [{row.rank_ends}] {row.name}{badges}{' hollow' if row.is_baseline else ''}: {row.below}"
        for lane in row.lanes:
            drawn = " ".join("–" if one is None else f"{one:.3f}" for one in (lane.low, lane.value, lane.high))
            state = " open" if lane.is_open else ""
            yield f"    {lane.mark} {lane.name}: {lane.score} ; {lane.ends} ; {lane.beside} [{drawn}]{state}"
    if chart.numbers is not None:
        yield from (f"  {line}" for line in of_block(chart.numbers))


def of_figure(one: Figure) -> Iterator[str]:
    yield f"Figure {one.title!r} {one.name} {one.facet}: {one.caption}"
    for svg in filter(None, (one.svg, one.narrow)):
        words = [unescape(word) for word in re.findall(r">([^<>]+)<", svg) if word.strip()]
        shapes = re.sub(r">[^<>]*<", "><", svg)
        yield f"  drawn ({zlib.crc32(shapes.encode()):08x}): {' ; '.join(words)}"
    if one.csv:
        yield from (f"  {line}" for line in one.csv.splitlines()[:8])
    if one.numbers is not None:
        yield from (f"  {line}" for line in of_block(one.numbers))


def text_of(sections: list[Section]) -> str:
    lines = []
    for one in sections:
        lines += [
            f"# {one.title} ({one.key}{', open' if one.opened else ''})",
            one.lead,
            f"-> {one.finding} | {one.count}",
        ]
        lines += [line for block in one.blocks for line in of_block(block)]
        lines.append("")
    return "\n".join(line.rstrip() for line in lines)


@pytest.mark.parametrize("policy", [None, FailedPolicy.WRONG])
def test_sections_of_a_benchmark(tmp_path: Path, policy: FailedPolicy | None) -> None:
    made = fuzzed(tmp_path, 51, items=60, waits=0.0)
    source = Source(made.store, NAME, Options(draws=100, failed=policy, all_items=policy is None), ("delta",))
    sections = [one(source) for one in SECTIONS]
    assert_frozen(
        text_of([one for one in sections if one is not None]),
        HERE / f"sections_{policy.value if policy else 'both'}.txt",
    )


@pytest.mark.parametrize("systems", [3, 10])
def test_sections_of_a_challenge(tmp_path: Path, systems: int) -> None:
    """Questions with several labels each, in four formats, under names that are hostile and long."""
    store = many_systems(tmp_path, systems, questions=240, videos=12)
    source = Source(store, "focus", Options(draws=100), BASE[:1])
    made = [one(source) for one in (headline_section, ranking_section, facets_section, analysis_section)]
    assert_frozen(text_of([*filter(None, made)]), HERE / f"sections_challenge_{systems}.txt")


def test_the_section_of_orders(tmp_path: Path) -> None:
    made = orders_section(Source(ordered(tmp_path), "frames", Options(draws=100)))
    assert made is not None
    assert_frozen(text_of([made]), HERE / "sections_orders.txt")


def audited(folder: Path, metrics: int, *, parts: bool) -> AuditSource:
    """Answers of three systems rated by two or three people, and metrics each noisier than the one before; in `parts`:
    two dimensions, datasets and languages."""
    rng = random.Random(0)
    ratings = ["item,system,rater,value,candidate,dimension,lower_is_better,dataset,language,group"]
    scores = [",".join(["item,system,dimension", *(f"m{number}" for number in range(1, metrics + 1))])]
    for number in range(72):
        item, system = f"q{number // 3}", "abc"[number % 3]
        candidate = " ".join(["so"] * (1 + rng.randrange(12)))
        dataset, language = ("clinic", "ward")[parts and number // 3 % 2], ("en", "de")[parts and number // 3 % 5 == 0]
        row = f"{dataset},{language},g{number // 6}"
        for dimension, lower in (("tone", "no"), ("harm", "yes"))[: 1 + parts]:
            base = rng.random()
            for who in "xyz"[: 2 + number % 2]:
                value = round(4 * min(1.0, base + 0.3 * rng.random())) / 4
                ratings.append(f"{item},{system},{who},{value},{candidate},{dimension},{lower},{row}")
            noises = (2**row for row in range(metrics))
            given = (f"{base + 0.5 * noise * rng.random() + 0.01 * len(candidate):.3f}" for noise in noises)
            scores.append(",".join([item, system, dimension, *given]))
    for name, lines in (("ratings", ratings), ("scores", scores)):
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    table = read_ratings(folder / "ratings.csv")
    found = AuditReport(table, read_metrics(folder / "scores.csv", table), CorrelationSettings(draws=100))
    return AuditSource("Made up", found)


def test_sections_of_an_audit(tmp_path: Path) -> None:
    source = audited(tmp_path, 3, parts=True)
    made = [metrics_section(source), metric_pairs_section(source), agreement_section(source), raters_section(source)]
    made += [systems_section(source), calibration_section(source), bias_section(source), counts_section(source)]
    tables = Section("one", "One metric", "", audit_tables(source.found.each[0]))
    assert_frozen(text_of([*filter(None, made), tables]), HERE / "sections_audit.txt")


@pytest.mark.parametrize("metrics", [6, 10])
def test_sections_of_an_audit_of_many_metrics(tmp_path: Path, metrics: int) -> None:
    """Six metrics make fifteen pairs, which are just few enough to be drawn; of ten some things are drawn in part."""
    source = audited(tmp_path, metrics, parts=metrics == 6)
    made = [metrics_section(source), metric_pairs_section(source), bias_section(source)]
    assert_frozen(text_of([*filter(None, made)]), HERE / f"sections_audit_{metrics}.txt")
