"""The analysis: where systems are good, how sure that is, and what they would be worth together."""

from __future__ import annotations

from proctor.core import ACCURACY
from proctor.reports.blocks import Block, Prose, Section
from proctor.reports.pictures import performance_pictures, podium_picture, together_pictures
from proctor.reports.source import Source
from proctor.runs import Analysis, analyse
from proctor.runs.analysis import NothingMarkedError
from proctor.runs.ranking import chosen_baselines

__all__ = ["analysis_of", "analysis_section"]

_STABILITY = 500


def analysis_of(source: Source) -> Analysis | str | None:
    """The analysis under the first condition; a sentence where it can't be made, None where there is nothing to
    make: accuracy is not marked, there is neither bucket nor facet, or nobody but baselines was asked."""
    condition = source.conditions[0]
    asked = {run.system for run in source.runs if run.condition == condition}
    marked = any(metric.name == ACCURACY.name for metric in source.card.metrics)
    known = set(source.table.facet_names())
    split = source.card.buckets or any(facet in known for facet in source.card.facets)
    asked -= source.card.disqualified.keys()
    if not marked or not split or not asked - set(chosen_baselines(source.runs, source.baselines)):
        return None
    try:
        return analyse(
            source.store,
            source.benchmark,
            condition=condition,
            systems=tuple(sorted(asked)),
            baselines=source.baselines,
            all_items=source.options.all_items,
            draws=source.options.draws,
            stability=_STABILITY,
            seed=source.options.seed,
            failed=source.options.failed,
        )
    except NothingMarkedError:
        return f"Under {condition} no question has a mark, so that systems can't be compared."


def analysis_section(source: Source, analysis: Analysis | str | None) -> Section | None:
    """All pictures but those of the ranking, with their numbers."""
    if analysis is None:
        return None
    blocks: list[Block | str] = []
    if isinstance(analysis, str):
        blocks.append(Prose(analysis))
    else:
        podium = podium_picture(analysis) if source.card.buckets else None
        pictures = [*performance_pictures(analysis, source.accuracy_by_lot), *([podium] if podium else [])]
        for one in [*pictures, *together_pictures(analysis)]:
            blocks += [one.title, one.figure]
    return Section(
        key="analysis",
        title="Analysis",
        lead=f"Right or wrong under {source.conditions[0]}, looked at from several sides. Intervals are 95 %, over samples of "
        "whole groups (videos). Systems stand in the order of the ranking. The numbers of a drawing are folded under it, a broken line is what guessing by lot reaches; "
        "proctor analyse --out writes all of them as files.",
        blocks=tuple(blocks),
    )
