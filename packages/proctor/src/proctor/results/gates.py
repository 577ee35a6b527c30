"""Gates of comparisons: one statement about two runs, for scripts that go on or stop."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from proctor.core import Metric, UsageError, count_of

if TYPE_CHECKING:
    from proctor.results.comparison import Comparison

Verdict = Literal["holds", "does not hold", "undecided"]

EXIT_CODES: dict[Verdict, int] = {"holds": 0, "does not hold": 1, "undecided": 2}
"""What `proctor compare --gate` ends with."""

_FORMS = re.compile(r"(?P<kind>not worse than|better than|better)(?: (?P<points>\d{1,4}(?:\.\d{1,6})?))?", re.ASCII)


@dataclass(frozen=True)
class Gate:
    """A statement about the difference of first minus second, turned so that more is better for the first: it is above
    `least`, in points for percentages and in the metric's unit otherwise. `margin` is the accepted loss of "not worse than",
    0 for the other statements.

    The statement holds if the whole two-sided interval at 1 − 2α (95 %: α = 0.025) lies above `least`, and does not if the
    whole interval lies below. With a true difference of exactly `least` it holds with a probability of at most α.
    """

    text: str
    least: float
    margin: float = 0.0

    def judged(self, one: Comparison) -> Verdict:
        """What a comparison says of the statement. "not worse than" is what `compare --margin` finds."""
        if self.margin:
            finding = "undecided" if one.margin is None else one.margin.finding
            return "holds" if finding == "not worse" else "does not hold" if finding == "worse" else "undecided"
        low, high = one.difference.ci_low, one.difference.ci_high
        if low is None or high is None:
            return "undecided"
        if not one.declared.higher_is_better:
            low, high = -high, -low
        least = self._in_unit(one.declared)
        return "holds" if low > least else "does not hold" if high < least else "undecided"

    def _in_unit(self, metric: Metric) -> float:
        """`least` in the unit of a metric's scores. Raises `UsageError` for one that no score can reach."""
        least = self.least / 100 if metric.percent else self.least
        if least >= metric.high - metric.low:
            limit = (metric.high - metric.low) * (100 if metric.percent else 1)
            raise UsageError(f"--gate {self.text!r} can never hold: give less than {limit:g}.")
        return least


@dataclass(frozen=True)
class GateResult:
    """What comparisons say of a gate together: it holds if it holds in each, and does not if it does not in one. Since all
    must hold, none is adjusted for the others. `findings` has a line for each that does not hold or is undecided."""

    gate: Gate
    verdict: Verdict
    alpha: float
    comparisons: int
    findings: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0: it holds, 1: it does not, 2: it is undecided."""
        return EXIT_CODES[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "gate": self.gate.text,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "alpha": self.alpha,
            "comparisons": self.comparisons,
            "findings": list(self.findings),
        }

    def __str__(self) -> str:
        of = f" in {count_of(self.comparisons, 'comparison')}" if self.comparisons != 1 else ""
        why = f": {'; '.join(self.findings)}" if self.findings else ""
        return f"Gate “{self.gate.text}”: {self.verdict}{of}, one-sided at {self.alpha:g}{why}."


def read_gate(text: str) -> Gate | None:
    """The gate that is written as "not worse than 2", "better" or "better than 1"; None for "". Raises `UsageError` for any
    other text.

    >>> read_gate("not worse than 2")
    Gate(text='not worse than 2', least=-2.0, margin=2.0)
    >>> read_gate("better than 0.5").least, read_gate("better").least, read_gate("")
    (0.5, 0.0, None)
    """
    if not text:
        return None
    found = _FORMS.fullmatch(" ".join(text.split()))
    kind = "" if found is None else found["kind"]
    points = None if found is None or found["points"] is None else float(found["points"])
    if not kind or (kind == "better") != (points is None) or points == 0:
        raise UsageError(
            f"--gate {text[:80]!r} can't be used: write 'not worse than POINTS', 'better', or 'better than POINTS', "
            "with points above 0."
        )
    if kind == "not worse than":
        return Gate(f"{kind} {points:g}", -(points or 0.0), points or 0.0)
    return Gate(kind if points is None else f"{kind} {points:g}", points or 0.0)


def gate_result(gate: Gate, compared: Sequence[Comparison]) -> GateResult:
    """What the comparisons say together. Without any it is undecided."""
    verdicts = [gate.judged(one) for one in compared]
    both = zip(compared, verdicts, strict=True)
    findings = [f"{_named(one)}: {verdict}{_few(one)}" for one, verdict in both if verdict != "holds"]
    every: Verdict = "holds" if verdicts and set(verdicts) == {"holds"} else "undecided"
    verdict: Verdict = "does not hold" if "does not hold" in verdicts else every
    level = compared[0].level if compared else 0.95
    return GateResult(gate, verdict, round((1 - level) / 2, 12), len(compared), tuple(findings))


def _named(one: Comparison) -> str:
    parts = f" ({', '.join(one.facets.values())})" if one.facets else ""
    return f"{one.declared.label}, {one.first} against {one.second}{parts}"


def _few(one: Comparison) -> str:
    return "" if one.decides else f" ({count_of(one.difference.groups, 'group')} decide nothing)"
