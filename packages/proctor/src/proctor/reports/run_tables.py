"""Tables about runs and their making: what would be asked, what was merged, what a store holds, and how judges agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from proctor.core import DASH, count_of, dollars, number, percent, plain_table, thousands

if TYPE_CHECKING:
    from proctor.core import Table
    from proctor.results import JudgeAgreement
    from proctor.runs import EvaluationContent, MergedRows, RunEstimate


def estimate_table(benchmark: str, found: Sequence[RunEstimate]) -> Table:
    """What would be asked, and its cost; with repetitions also their number, which all counts include."""
    several = any(one.repetitions > 1 for one in found)
    heads = ("System", "Condition", *([">Repetitions"] if several else []))
    heads += (">Already", ">To ask", ">Pictures", ">Input tokens", ">Input cost")
    rows: list[tuple[str | int, ...]] = [
        (
            one.system,
            one.condition,
            *([one.repetitions] if several else []),
            one.already,
            one.items,
            one.pictures,
            one.tokens,
            ("unknown" if one.tokens else DASH) if one.input_usd is None else dollars(one.input_usd),
        )
        for one in found
    ]
    return plain_table(f"{benchmark}: what would be asked", heads, rows)


def merged_table(target: str, found: Sequence[MergedRows]) -> Table:
    """What a store took of others."""
    heads = ("benchmark", "system", "condition", "what", ">taken", ">the same", ">refused")
    rows = [
        (
            *(one.benchmark, one.system, one.condition, one.what),
            *(thousands(one.taken), thousands(one.same), thousands(one.refused)),
        )
        for one in found
    ]
    return plain_table(f"Into {target}", heads, rows)


def content_table(found: EvaluationContent) -> Table:
    """The runs of a benchmark with their hashes."""
    heads = ("system", "condition", ">answers", ">failed", ">scores", "SHA-256")
    rows = [
        (run.system, run.condition, thousands(run.answers), thousands(run.failed), thousands(run.scores), run.sha256)
        for run in found.runs
    ]
    title = f"{found.benchmark}: {count_of(found.items, 'item')}, {count_of(found.judgements, 'judgement')}"
    return plain_table(title, heads, rows)


def scored_table(store: str, scored: Mapping[str, int], there: Mapping[str, int]) -> Table:
    """How many answers each scorer of texts scored, now and before."""
    title = f"Answers scored in {store}"
    if any(there.values()):
        counts = [(name, str(count), str(there.get(name, 0))) for name, count in scored.items()]
        return plain_table(title, ("scorer", ">scored now", ">there already"), counts)
    return plain_table(title, ("scorer", ">answers"), [(name, str(count)) for name, count in scored.items()])


def dimensions_table(judge: str, store: str, rows: Sequence[Any]) -> Table:
    """What a judge of dimensions gave, by language and dimension."""
    heads = ("language", "dimension", ">scores", ">missing", ">mean", ">disagreement between members")
    cells = [
        (
            *(row.language, row.dimension, str(row.scores), str(row.missing)),
            *(number(value) for value in (row.mean, row.disagreement)),
        )
        for row in rows
    ]
    return plain_table(f"Scores by {judge} in {store}", heads, cells)


def judges_table(agreement: JudgeAgreement) -> Table:
    """How far each two judges of a panel agree."""
    heads = ("judge", "and judge", ">both judged", ">agree", ">right by the first", ">by the second")
    rows = [
        (pair.first, pair.second, pair.n, percent(pair.share), pair.right_by_first, pair.right_by_second)
        for pair in agreement.pairs
    ]
    return plain_table("How far the judges agree", heads, rows)


def passages_table(query: str, found: Sequence[Any]) -> Table:
    """The passages that are found for a query."""
    heads = ("source", ">page", ">by words", ">by meaning", "passage")
    rows = [
        (
            match.passage.source,
            *(DASH if each is None else str(each) for each in (match.passage.page, match.by_words, match.by_meaning)),
            " ".join(match.passage.text.split())[:160],
        )
        for match in found
    ]
    return plain_table(f"Found for {query!r}", heads, rows)


def rows_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Records as they are, numbers to the right."""
    first = rows[0] if rows else {}
    heads = [f"{'' if isinstance(value, str) else '>'}{name}" for name, value in first.items()]
    return plain_table(title, heads, [tuple(map(str, row.values())) for row in rows])


def fields_table(title: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    """Some fields of records in words: yes or no, and lists with commas."""
    heads = tuple(name.replace("_", " ") for name in names)
    return plain_table(title, heads, tuple(tuple(_in_words(row[name]) for name in names) for row in rows))


def _in_words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
