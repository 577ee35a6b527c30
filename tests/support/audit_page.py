"""An audit's report to look at: planted metrics in it, and what a page says in tables and data."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from proctor.audits import AuditReport, CorrelationSettings
from proctor.core import number
from proctor.reports import AuditSource, Question, ReportSummary
from proctor.reports import Reference as Said
from tests.support.browser_items import data_of
from tests.support.planted_metrics import planted

FEW = CorrelationSettings(draws=200)


def planted_source(*names: str) -> AuditSource:
    table, metrics = planted(5)
    questions = {
        item: Question(f"Question of {item}", (Said("Usual.", 3, 0.5), Said("Rare.")))
        for item in dict.fromkeys(one.item for one in table.ratings)
    }
    return AuditSource("Planted", AuditReport(table, [metrics[name] for name in names], FEW), questions)


class Tables(HTMLParser):
    """A page: every table's rows as texts, under its section, and `data`, the JSON that its browser shows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sections: dict[str, list[list[list[str]]]] = {}
        self.texts: dict[str, str] = {}
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._section = ""
        self._cell: list[str] | None = None
        self._quiet = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.elements.append((tag, known))
        if tag == "section":
            self._section = known["id"] or ""
        elif tag == "table":
            self.sections.setdefault(self._section, []).append([])
        elif tag == "tr":
            self.sections[self._section][-1].append([])
        elif tag in {"td", "th"}:
            self._cell = []
        elif tag in {"script", "style"}:
            self._quiet += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"} and self._cell is not None:
            self.sections[self._section][-1][-1].append("".join(self._cell))
            self._cell = None
        elif tag in {"script", "style"}:
            self._quiet -= 1

    def handle_data(self, data: str) -> None:
        if self._quiet:
            return
        self.texts[self._section] = self.texts.get(self._section, "") + data
        if self._cell is not None:
            self._cell.append(data)

    def rows(self, section: str) -> list[list[str]]:
        return [row for table in self.sections[section] for row in table]


def read(summary: ReportSummary) -> Tables:
    return Tables(summary.path.read_text(encoding="utf-8"))


def embedded(summary: ReportSummary) -> Any:
    return data_of(summary.path.read_text(encoding="utf-8"))


def ends(one: dict[str, Any]) -> list[str]:
    low, high = one["ci_low"], one["ci_high"]
    return [number(one["value"]), "–" if low is None else f"{number(low)} to {number(high)}"]


def signed(one: dict[str, Any]) -> list[str]:
    shown, spread = ends(one)
    return [f"+{shown}" if (one["value"] or 0) >= 0.0005 else shown, spread]
