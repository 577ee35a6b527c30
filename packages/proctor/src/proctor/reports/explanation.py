"""An explained gap: as tables, in words, and as one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.core import (
    DASH,
    Cell,
    FailedPolicy,
    Row,
    Table,
    columns,
    count_of,
    difference,
    dollars,
    head,
    interval,
    percent,
    plain_table,
    points,
    thousands,
    value,
)
from proctor.reports.blocks import Answer, Block, Figure, Prose, Section, Story
from proctor.reports.figures import Dot, Panel, signed_axis
from proctor.reports.frames import FrameLike, Record
from proctor.reports.subgroups import rows_figure
from proctor.results import ASKED_KINDS, ExplainedScore, Explanation, GapPart, RunDifference

if TYPE_CHECKING:
    from proctor.reports.report import ReportSummary

_LABELS = {
    "items": "Items asked of one side alone",
    "missing": "Treatment of missing answers",
    "reader": "Reader of replies",
    "judge": "Judge",
    "model": "Model",
    "condition": "Condition",
    "frames": "Frames",
    "options": "Order of the options",
    "prompt": "Prompt",
    "sampling": "Settings of the model",
    "other": "Other settings",
    "asked": "What was asked, and chance",
}
_SWAPPED = ("items", "missing", "reader", "judge")
_POLICIES = {FailedPolicy.WRONG.value: "wrong", FailedPolicy.EXCLUDE.value: "left out"}


@dataclass(frozen=True, repr=False)
class ExplanationTable(FrameLike):
    """A row for each part of the gap; the parts add up to it. `data` is the complete explanation, `read` are notes on how
    logs were read."""

    data: Explanation
    read: tuple[str, ...] = ()

    @cached_property
    def rows(self) -> list[Record]:
        """The parts: as `proctor explain --format csv`."""
        return [part.to_json() for part in self.data.parts]

    @property
    def title(self) -> str:
        """The benchmark and the two sides."""
        found = self.data
        return f"{found.benchmark}, {found.metric.label}: {found.first.name} minus {found.second.name}"

    @property
    def tables(self) -> Sequence[Table]:
        """The scores, the parts of the gap, the differences, and what can't be swapped."""
        found = [self.scores, self.parts]
        found += [self.differences] if self.data.differences else []
        found += [self.runs] if self.data.runs else []
        if self.data.fixed:
            rows = [(_LABELS.get(what, what), why) for what, why in self.data.fixed]
            found.append(plain_table("Cannot be swapped", ("Difference", "Why"), rows))
        return found

    @property
    def runs(self) -> Table:
        """The runs that tell apart what was asked, and what is left to ask."""
        heads = ("Run", "Condition", ">There", ">To ask", ">Pictures", ">Input tokens", ">Input", "Unknown since")
        rows = [
            (
                *(one.name, one.condition),
                *(one.there, one.left),
                DASH if one.pictures is None else thousands(one.pictures),
                DASH if one.tokens is None else thousands(one.tokens),
                DASH if one.input_usd is None else dollars(one.input_usd),
                one.why,
            )
            for one in self.data.runs
        ]
        left = sum(one.left for one in self.data.runs)
        title = f"To tell apart what was asked (--ask): {count_of(left, 'answer')} left to ask"
        return plain_table(title if left else "Runs between the two sides", heads, rows)

    @property
    def scores(self) -> Table:
        """Both sides."""
        heads = (
            *columns("Side", "Scored by", "Missing count as", ">Items", ">Missing"),
            head("value"),
            head("ci", self.data.level),
            head("groups"),
        )
        rows = tuple(self._score(one) for one in (self.data.first, self.data.second))
        return Table(self.title, heads, rows, title=self.title)

    def _score(self, one: ExplainedScore) -> Row:
        metric, found = self.data.metric, one.estimate
        scorer = f"{one.scorer} ({one.form})" if one.form else one.scorer
        return (
            *(one.name, scorer, _POLICIES[one.policy], one.items, one.missing),
            Cell(value(metric, found.value), raw=found.value),
            interval(metric, found.ci_low, found.ci_high),
            found.groups,
        )

    @property
    def parts(self) -> Table:
        """The parts of the gap, and their sum."""
        found = self.data
        heads = (*columns("Difference", ">Part"), head("ci", found.level), *columns(">Share", ">Items", "No interval"))
        rows: list[Row] = [self._part(part) for part in found.parts]
        gap = found.gap
        rows.append(
            (
                Cell("All: the gap", strong=True),
                Cell(difference(found.metric, gap.value), strong=True, raw=gap.value),
                interval(found.metric, gap.ci_low, gap.ci_high),
                *(percent(1.0) if gap.value else DASH, found.common, ""),
            )
        )
        title = f"Parts of the gap, on {count_of(found.common, 'common item')} in {count_of(found.groups, 'group')}"
        return Table(title, heads, tuple(rows), title=title)

    def _part(self, part: GapPart) -> Row:
        metric, one = self.data.metric, part.estimate
        return (
            _LABELS[part.player],
            Cell(difference(metric, one.value), raw=one.value),
            interval(metric, one.ci_low, one.ci_high),
            Cell(DASH if part.share is None else percent(part.share), raw=part.share),
            *(part.changed, part.why),
        )

    @property
    def differences(self) -> Table:
        """All that differs."""
        found = self.data
        heads = ("Kind", "What", "First", "Second", ">Items", "Swapped")
        rows = [_difference(one) for one in found.differences]
        return plain_table("What differs", heads, rows)

    @property
    def notes(self) -> tuple[str, ...]:
        """How the parts were computed, and what they don't say."""
        found = self.data
        how = (
            f"Parts: Shapley values, so that they do not depend on an order; intervals {100 * found.level:g} %, paired, "
            f"over groups ({found.draws} draws, seed {found.seed})."
        )
        return (how, *self._of_what_was_asked(), *found.notes, *self.read)

    def _of_what_was_asked(self) -> list[str]:
        """What the part of what was asked holds."""
        kinds = dict.fromkeys(one.kind for one in self.data.differences if one.kind not in _SWAPPED)
        if not any(part.player == "asked" for part in self.data.parts):
            return []
        if not kinds:
            return ["Nothing that is recorded of what was asked differs: that part is chance, or not recorded."]
        named = ", ".join(_LABELS[kind].lower() for kind in kinds)
        split = [_LABELS[part.player].lower() for part in self.data.parts if part.player in ASKED_KINDS]
        if split:
            told = f"What was asked differs in: {named}. Told apart by runs: {', '.join(split)}."
            return [f"{told} Each of these parts holds chance, too, unless the runs have repetitions (--repeats)."]
        return [f"What was asked differs in: {named}. Only further runs tell these apart."]

    def write(self, out: str | Path) -> ReportSummary:
        """Write the explanation as one HTML page that opens offline. Raises `InputError` if the file can't be written, or
        would replace anything but an earlier page."""
        from proctor.reports.report import write_sections

        found = self.data
        part = Section("parts", "Parts of the gap", "", [self.figure(), *map(_note, self.notes)], opened=True)
        sections = [Section("scores", "Scores", "", [self.scores], opened=True), part]
        blocks: list[Block | str] = [self.differences] if found.differences else [Prose("Nothing differs.")]
        for one in found.differences:
            if one.lines:
                blocks += [f"{_LABELS[one.kind]}: {one.what}", Prose("", one.lines)]
        sections.append(Section("differences", "What differs", "", blocks, opened=True))
        more = self.tables[3 if found.differences else 2 :]
        sections += [Section("further", "Further runs", "", more, opened=True)] if more else []
        return write_sections(Path(out), self.story(), sections, title=self.title)

    def figure(self) -> Figure:
        """The parts of the gap with their intervals."""
        found = self.data
        dots = [
            Dot(one.value, one.ci_low, one.ci_high) for one in (*(part.estimate for part in found.parts), found.gap)
        ]
        ends = [end for dot in dots for end in dot.ends]
        axis = signed_axis(found.metric, min([0.0, *ends]), max([0.0, *ends]))
        names = [*(_LABELS[part.player] for part in found.parts), "All: the gap"]
        title = f"Parts of the gap in {found.metric.label}"
        return rows_figure("gap", title, names, [Panel("", dots, (0.0, "no difference"))], axis, numbers=self.parts)

    def story(self) -> Story:
        """The explanation in sentences."""
        found = self.data
        gap = points(found.metric, found.gap.value, found.gap.ci_low, found.gap.ci_high)
        ordered = sorted(found.parts, key=lambda part: -abs(part.estimate.value or 0.0))
        told = [
            f"{_LABELS[part.player]}: {points(found.metric, part.estimate.value, part.estimate.ci_low, part.estimate.ci_high)}"
            for part in ordered
        ]
        answers = (
            Answer("How large is the gap?", f"{found.first.name} minus {found.second.name}: {gap}."),
            Answer("What explains it?", "; ".join(told) + "."),
            Answer("What differs?", _named(found.differences)),
        )
        size = f"{count_of(found.common, 'common item')} in {count_of(found.groups, 'group')}"
        return Story(f"{found.benchmark}, {found.metric.label}, {size}.", answers, headline=f"{told[0]} of {gap}.")


def _note(text: str) -> Prose:
    return Prose(text, quiet=True)


def _named(differences: Sequence[RunDifference]) -> str:
    kinds = list(dict.fromkeys(_LABELS[one.kind] for one in differences))
    return f"{', '.join(kinds)}." if kinds else "Nothing that is recorded."


def _difference(one: RunDifference) -> tuple[str, ...]:
    items = "" if one.items is None else f"{one.items} of {one.of}"
    return (_LABELS[one.kind], one.what, one.first, one.second, items, "yes" if one.kind in _SWAPPED else "no")
