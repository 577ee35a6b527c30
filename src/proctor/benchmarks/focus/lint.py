"""Everything that is wrong with a submission, in one list, before it is spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.benchmarks.files import validated
from proctor.benchmarks.focus.forms import MAX_CHARS
from proctor.benchmarks.focus.native import NativeResponse, entries
from proctor.core import Benchmark, InputError, Item, ParseError
from proctor.core.formats import FreeTextFormat
from proctor.judges.hostile import neutral, steers

__all__ = ["Finding", "Lint", "lint_submission"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: the rule, the question (empty where an entry has none), what was found and what
    was expected. An `error` breaks a rule and costs the answer; what is none is for a person to look at."""

    rule: str
    question: str
    found: str
    expected: str
    error: bool = True

    def __str__(self) -> str:
        level = "error" if self.error else "look at"
        parts = (f"{level}: {self.rule}", self.question, f"found {self.found}, expected {self.expected}")
        return ": ".join(part for part in parts if part)


@dataclass(frozen=True)
class Lint:
    """All findings on a file, in the order of its entries, missing ones last."""

    file: Path
    answers: int
    questions: int
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        """How many break a rule."""
        return sum(one.error for one in self.findings)

    def by_rule(self) -> dict[str, int]:
        """How many findings of each rule."""
        return dict(sorted(Counter(one.rule for one in self.findings).items()))


def lint_submission(file: Path, benchmark: Benchmark) -> Lint:
    """Checks `responses.json` or `answer.json` against a benchmark, entry by entry.

    Rules: `entry` (not as the format has it), `duplicate`, `unknown`, `missing`, `format` (can't be read, with
    the text), `too-long` (free text above 300 characters), `late` (above the track's budget); and, no error,
    `suspicious`: text that speaks to its judge, or hides characters. Raises `InputError` where the file is no
    list of entries at all.
    """
    items = {item.id: item for item in benchmark.items}
    raw = entries(file)
    seen: dict[str, int] = {}
    findings: list[Finding] = []
    for number, entry in enumerate(raw, start=1):
        try:
            response = validated(NativeResponse, entry, file, f"entry {number}")
        except InputError as error:
            findings.append(_broken(number, entry, error, file))
            name = entry.get("qID") if isinstance(entry, dict) else None
            seen.setdefault(str(name), number)
            continue
        name = response.qID
        if name in seen:
            once = f"one answer; the first is entry {seen[name]}"
            findings.append(Finding("duplicate", name, f"entry {number} again", once))
            continue
        seen[name] = number
        if name not in items:
            findings.append(Finding("unknown", name, f"entry {number}", "a question of the benchmark"))
            continue
        findings.extend(_answer(items[name], response, benchmark.budget_s))
    findings.extend(
        Finding("missing", name, "no answer", "an answer to every question")
        for name in items
        if name not in seen
    )
    return Lint(file, len(raw), len(items), tuple(findings))


def _broken(number: int, entry: object, error: InputError, file: Path) -> Finding:
    name = entry.get("qID") if isinstance(entry, dict) else None
    said = str(error).removeprefix(f"{file}: entry {number}").lstrip(":, ")
    found, _, expected = said.partition(", expected ")
    return Finding(
        "entry",
        name if isinstance(name, str) else "",
        f"entry {number}: {found.replace('found ', '')}",
        expected,
    )


def _answer(item: Item, response: NativeResponse, budget_s: float | None) -> Iterator[Finding]:
    text = response.content
    if response.latency is not None and budget_s is not None and response.latency > budget_s:
        yield Finding("late", item.id, f"{response.latency:.3f} s", f"at most {budget_s:g} s")
    if isinstance(item.answer, FreeTextFormat) and len(text.strip()) > MAX_CHARS:
        found = f"{len(text.strip())} characters"
        yield Finding("too-long", item.id, found, f"at most {MAX_CHARS} characters")
    else:
        try:
            item.answer.parse(text, item.options)
        except ParseError as error:
            yield Finding("format", item.id, _shown(text), error.expected)
    for found in _suspicions(text):
        yield Finding("suspicious", item.id, found, "an answer to the question alone", error=False)


def _suspicions(text: str) -> Sequence[str]:
    found = [f"text that speaks to its judge: {_shown(text)}"] if steers(text) else []
    hidden = len(text) - len(neutral(text))
    if hidden and not found:
        found.append(f"{hidden} hidden characters: {_shown(text)}")
    return found


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
