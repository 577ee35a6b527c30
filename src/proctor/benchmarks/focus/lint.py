"""Everything that is wrong with a submission, in one list, before it is spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from proctor.benchmarks.causes import Noted, by_cause
from proctor.benchmarks.focus.fields import UNKNOWN
from proctor.benchmarks.focus.native import NativeResponse, Repeated, entries
from proctor.core import Benchmark, Item, ParseError
from proctor.core.formats import FreeTextFormat
from proctor.judges.hostile import neutral
from proctor.judges.injection import steers

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

    @property
    def level(self) -> str:
        """In words."""
        return "error" if self.error else "warning"

    def __str__(self) -> str:
        parts = (f"{self.level}: {self.rule}", self.question, f"found {self.found}, expected {self.expected}")
        return ": ".join(part for part in parts if part)


@dataclass(frozen=True)
class Lint:
    """All findings on a file, in the order of its entries, missing ones last; and what could not be checked."""

    file: Path
    answers: int
    questions: int
    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...] = ()

    def causes(self) -> list[str]:
        """The findings by cause, a line each (see `by_cause`)."""
        return by_cause(
            [
                Noted(f"{one.level}: {one.rule}", one.question, one.found, one.expected, str(one))
                for one in self.findings
            ]
        )

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
    the text), `too-long` (free text above 300 characters, or above what the question allows), `late` (above the
    track's budget), `no-latency` (while others have one); and, no error, `no-latency` once for a file without any, and
    `suspicious`: text that speaks to its judge, or hides characters. Where a question has no reference and its request
    names no format, an answer may be of any form up to the length of free text (`unchecked` says so). Raises
    `InputError` where the file is no list of entries at all.
    """
    items = {item.id: item for item in benchmark.items}
    raw = entries(file)
    seen: dict[str, int] = {}
    findings: list[Finding] = []
    timed: dict[str, bool] = {}
    for number, entry in enumerate(raw, start=1):
        try:
            response = NativeResponse.model_validate(entry)
        except ValidationError as error:
            broken = _broken(number, entry, error)
            findings.append(broken)
            seen.setdefault(broken.question, number)
            continue
        name = response.qID
        if response.content is None:
            missing = Finding("entry", name, f"None as 'content' (entry {number})", "a text")
            findings.append(missing)
            seen.setdefault(name, number)
            continue
        if name in seen:
            once = f"one answer; the first is entry {seen[name]}"
            findings.append(Finding("duplicate", name, f"entry {number} again", once))
            continue
        seen[name] = number
        if name not in items:
            findings.append(Finding("unknown", name, f"entry {number}", "a question of the benchmark"))
            continue
        timed[name] = response.latency is not None
        findings.extend(_answer(items[name], response, benchmark.budget_s))
    findings.extend(_untimed(timed, benchmark.budget_s))
    findings.extend(
        Finding("missing", name, "no answer", "an answer to every question")
        for name in items
        if name not in seen
    )
    return Lint(file, len(raw), len(items), tuple(findings), _unchecked(benchmark))


def _untimed(timed: dict[str, bool], budget_s: float | None) -> Iterator[Finding]:
    """Answers without a latency where latency is judged; none at all is how a container leaves its file."""
    if budget_s is None or all(timed.values()):
        return
    if not any(timed.values()):
        found = f"no latency in any of {len(timed)} answers, so that nobody knows whether they came in time"
        yield Finding("no-latency", "", found, f"seconds, at most {budget_s:g}", error=False)
        return
    for name, measured in timed.items():
        if not measured:
            yield Finding("no-latency", name, "no latency", "seconds, as the other answers have")


def _unchecked(benchmark: Benchmark) -> tuple[str, ...]:
    """What nobody can check here, in words."""
    blind = sum(item.reference is None for item in benchmark.items)
    unknown = sum(_of_unknown_form(item) for item in benchmark.items)
    said = []
    if blind:
        said.append(f"whether answers are right: {blind} questions have no reference")
    if unknown:
        said.append(
            f"the format of the answers to {unknown} questions: their requests name none (answer_format)"
        )
    return tuple(said)


def _of_unknown_form(item: Item) -> bool:
    return item.reference is None and item.tags.get("answer_format") == UNKNOWN


def _broken(number: int, entry: object, error: ValidationError) -> Finding:
    fault = error.errors(include_url=False)[0]
    field, value = ".".join(str(part) for part in fault["loc"]), _shown(fault["input"])
    expected = _EXPECTED.get(fault["type"], fault["msg"])
    named = dict(entry) if isinstance(entry, Repeated) else entry
    name = named.get("qID") if isinstance(named, dict) else None
    if isinstance(entry, Repeated):
        found, expected = f"the field {_shown(entry.key)} twice", "each field once"
    elif fault["type"] == "missing":
        found = f"no field {field!r}"
    else:
        found = f"{value} as {field!r}" if field else value
    known = isinstance(name, str) and fault["type"] != "string_unicode"
    return Finding("entry", str(name) if known else "", f"{found} (entry {number})", expected)


_EXPECTED = {
    "missing": "one",
    "model_type": "an object with qID and content",
    "string_type": "a text",
    "string_unicode": "a text that UTF-8 can hold",
    "string_too_short": "a text that is not empty",
    "value_error": "a text that UTF-8 can hold",
    "float_type": "seconds as a number",
    "float_parsing": "seconds as a number",
    "finite_number": "a finite number",
    "greater_than_equal": "0 or more",
}
"""What was expected, by the kind of fault."""


def _answer(item: Item, response: NativeResponse, budget_s: float | None) -> Iterator[Finding]:
    text = response.content or ""
    if response.latency is not None and budget_s is not None and response.latency > budget_s:
        yield Finding("late", item.id, f"{response.latency:.3f} s", f"at most {budget_s:g} s")
    most = item.answer.max_chars if isinstance(item.answer, FreeTextFormat) else None
    if most is not None and len(text.strip()) > most:
        sure = not _of_unknown_form(item)
        expected = f"at most {most} characters" + ("" if sure else " if it is free text")
        yield Finding("too-long", item.id, f"{len(text.strip())} characters", expected, error=sure)
    else:
        try:
            item.answer.parse(text, item.options)
        except ParseError as error:
            yield Finding("format", item.id, _shown(text), error.expected)
    for found in _suspicions(text):
        yield Finding("suspicious", item.id, found, "an answer to the question alone", error=False)


def _suspicions(text: str) -> Sequence[str]:
    found = [f"text that speaks to its judge: {_shown(text)}"] if steers(text) else []
    plain = text.replace("\r\n", "\n")
    hidden = len(plain) - len(neutral(plain))
    if hidden and not found:
        found.append(f"{hidden} hidden characters: {_shown(text)}")
    return found


def _shown(value: object) -> str:
    text = repr(value[:81] if isinstance(value, str) else value)
    quote = text[-1] if isinstance(value, str) else ""
    return text if len(text) <= 82 else text[:78] + "..." + quote
