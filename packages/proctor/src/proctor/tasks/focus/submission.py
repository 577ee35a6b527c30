"""Submissions: the answers of a run written to a file, and a file validated before it is submitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import JsonValue, ValidationError

from proctor import core
from proctor.core.formats import FreeTextFormat
from proctor.judges import suspicion
from proctor.tasks.focus.native import (
    NativeResponse,
    Repeated,
    check_names,
    entries,
    read_responses,
    write_answer,
    write_native,
)
from proctor.tasks.focus.vocabulary import UNKNOWN

SUBMISSIONS = ("answer", "responses")


def write_submission(form: str, answers: Sequence[core.Answer], file: Path) -> int:
    """Writes `answer.json` ("answer": contents only) or `responses.json` ("responses": with measured latencies), in the
    order of the answers, and returns their number.

    The content is the system's text, unchanged. Failed and missing answers are left out. Raises `InputError` where the
    file can't be written.
    """
    given = [
        NativeResponse(qID=answer.item_id, content=answer.text, latency=answer.timing.model_s)
        if answer.timing
        else NativeResponse(qID=answer.item_id, content=answer.text)
        for answer in answers
        if answer.status is not core.Status.FAILED and answer.reason != core.NO_ANSWER
    ]
    try:
        if form == "answer":
            write_answer(file, given)
        else:
            write_native(file, given)
    except OSError as error:
        raise core.InputError(file, found=error.strerror or str(error), expected="a writable path") from error
    return len(given)


class FocusWriter:
    """Writes files for submission (see `proctor.core.SubmissionWriter`)."""

    formats = SUBMISSIONS

    def write_submission(self, form: str, answers: Sequence[core.Answer], file: Path) -> int:
        return write_submission(form, answers, file)


WRITER = FocusWriter()


def read_recorded(path: Path, benchmark: core.Benchmark) -> core.RecordedAnswers:
    """One answer to every question of the benchmark, in its order.

    An answer slower than the track's budget is `timed_out`. One that is missing or `null` has no text and the reason
    `NO_ANSWER`. One that is not in its format has a `problem`. Raises `InputError` for two answers to one question, for
    an answer to an unknown question, for latencies in milliseconds, and for a file without any answer.
    """
    responses = {response.qID: response for response in read_responses(path)}
    if not responses:
        raise core.InputError(path, found=_NOTHING, expected=_SOMETHING)
    seconds = [response.latency for response in responses.values() if response.latency is not None]
    core.check_seconds(path, seconds, benchmark.budget_s)
    unknown = sorted(responses.keys() - {item.id for item in benchmark.items})
    if unknown:
        raise core.InputError(
            path, found=f"an answer to {unknown[0]}", expected="answers to the benchmark's questions alone"
        )
    answers = tuple(
        _recorded_answer(item, responses.get(item.id), benchmark.budget_s or float("inf")) for item in benchmark.items
    )
    return core.RecordedAnswers(
        answers=answers,
        settings={"recorded": "FOCUS responses", "budget_s": benchmark.budget_s},
        notes=_notes(benchmark.items, answers, responses),
    )


def _recorded_answer(item: core.Item, response: NativeResponse | None, budget_s: float) -> core.Answer:
    if response is None or response.content is None:
        return core.Answer(item_id=item.id, reason=core.NO_ANSWER, problem=core.NO_ANSWER)
    timing = None if response.latency is None else core.Timing(model_s=response.latency)
    answer = core.Answer(item_id=item.id, text=response.content, timing=timing)
    if response.latency is not None and response.latency > budget_s:
        late = f"took {response.latency:.1f} s of {budget_s:g} s"
        return answer.model_copy(update={"status": core.Status.TIMED_OUT, "reason": late})
    try:
        return answer.model_copy(update={"parsed": item.answer.parse(response.content, item.options)})
    except core.ParseError as error:
        return answer.model_copy(update={"problem": str(error)})


def _notes(
    items: tuple[core.Item, ...], answers: tuple[core.Answer, ...], responses: dict[str, NativeResponse]
) -> tuple[str, ...]:
    late = [answer.item_id for answer in answers if answer.status is core.Status.TIMED_OUT]
    missing = [answer.item_id for answer in answers if answer.reason == core.NO_ANSWER]
    unreadable = [answer.item_id for answer in answers if answer.problem and answer.reason != core.NO_ANSWER]
    judged = [item.id for item in items if isinstance(item.answer, FreeTextFormat)]
    unmeasured = [response.qID for response in responses.values() if response.latency is None]
    lines = (
        ("came late and are wrong", late),
        ("have no answer and are wrong", missing),
        ("can't be read and are wrong", unreadable),
        ("have no latency, so it is unknown whether they came in time", unmeasured),
        ("are free text, which no code scores", judged),
    )
    return tuple(f"{len(ids)} of {len(items)} questions {text}" for text, ids in lines if ids)


_NOTHING, _SOMETHING = "no answer", "answers to the benchmark's questions"

_MAX_ENTRIES, _MAX_ENTRIES_A_QUESTION = 10_000, 10
"""A file with more entries (the larger of both limits) is refused: a finding for each would take minutes."""


def validate_submission(
    file: Path, benchmark: core.Benchmark, latency: Literal["required", "optional"] | None = None
) -> core.FileCheck:
    """Checks `responses.json` or `answer.json` against a benchmark, entry by entry.

    Errors, for which `read_recorded` refuses the file: `entry` (an invalid entry), `duplicate`, `unknown`. Counted as
    wrong: `missing`, `format` (not in the question's format), `too-long` (free text above 300 characters, or above the
    question's limit), `late` (above the time limit), `no-latency` (by the rule `latency`: if "required"; None: while
    other answers have one). Warnings: `no-latency` by another rule, once for a file without any, and `suspicious` (text
    that addresses its judge, or hides characters). Where a question has no reference and its request names no format,
    only the length is checked (`unchecked` says so). Raises `InputError` where the file is no list of entries, or empty.
    """
    items = {item.id: item for item in benchmark.items}
    raw = entries(file)
    if not raw:
        raise core.InputError(file, found=_NOTHING, expected=_SOMETHING)
    if len(raw) > max(_MAX_ENTRIES, _MAX_ENTRIES_A_QUESTION * len(items)):
        questions = core.count_of(len(items), "question")
        raise core.InputError(file, found=f"{len(raw):,} entries", expected=f"an answer to each of {questions}")
    check_entries(file, raw, benchmark.budget_s)
    seen: dict[str, int] = {}
    findings: list[core.Finding] = []
    timed: dict[str, bool] = {}
    for number, entry in enumerate(raw, start=1):
        try:
            response = NativeResponse.model_validate(entry)
        except ValidationError as error:
            broken = _broken(number, entry, error)
            findings.append(broken)
            seen.setdefault(broken.location, number)
            continue
        name = response.qID
        if name in seen:
            once = f"one answer; the first is entry {seen[name]}"
            findings.append(core.Finding("duplicate", name, f"entry {number} again", once))
            continue
        seen[name] = number
        if name not in items:
            findings.append(core.Finding("unknown", name, f"entry {number}", "a question of the benchmark"))
            continue
        if response.content is None:
            findings.append(core.Finding("missing", name, f"None as 'content' (entry {number})", "a text", "wrong"))
            continue
        timed[name] = response.latency is not None
        findings.extend(_answer(items[name], response, benchmark.budget_s))
    findings.extend(_untimed(timed, benchmark.budget_s, latency))
    findings.extend(
        core.Finding("missing", name, "no answer", "an answer to every question", "wrong")
        for name in items
        if name not in seen
    )
    sizes = {"answer": len(raw), "question": len(items)}
    return core.FileCheck(file, tuple(findings), sizes, _unchecked(benchmark))


def check_entries(file: Path, raw: Sequence[object], budget_s: float | None) -> None:
    """Raises one `InputError` for a mistake that all entries share: other names of fields, or latencies in
    milliseconds."""
    check_names(file, raw)
    times = [entry.get("latency") for entry in raw if isinstance(entry, dict)]
    seconds = [float(one) for one in times if isinstance(one, int | float) and not isinstance(one, bool)]
    core.check_seconds(file, seconds, budget_s)


def _untimed(
    timed: dict[str, bool], budget_s: float | None, rule: Literal["required", "optional"] | None
) -> Iterator[core.Finding]:
    """Answers without a latency where there is a time limit. A container's file has none at all: a single warning,
    unless a latency is required."""
    if budget_s is None or all(timed.values()):
        return
    alone = not any(timed.values())
    if alone and rule != "required":
        found = (
            f"no latency in any of {core.count_of(len(timed), 'answer')}, so it is unknown whether they came in time"
        )
        yield core.Finding("no-latency", "", found, f"seconds, at most {budget_s:g}", severity="warning")
        return
    severity: Literal["wrong", "warning"] = "warning" if rule == "optional" else "wrong"
    expected = f"seconds, at most {budget_s:g}" if alone else "seconds, as the other answers have"
    for name, measured in timed.items():
        if not measured:
            yield core.Finding("no-latency", name, "no latency", expected, severity)


def _unchecked(benchmark: core.Benchmark) -> tuple[str, ...]:
    """What can't be checked without references or formats."""
    blind = sum(item.reference is None for item in benchmark.items)
    unknown = sum(_of_unknown_form(item) for item in benchmark.items)
    lines = []
    if blind:
        lines.append(f"whether answers are right: no reference for {core.count_of(blind, 'question')}")
    if unknown:
        questions = core.count_of(unknown, "question")
        lines.append(f"the format of the answers to {questions}: not named in the request (answer_format)")
    return tuple(lines)


def _of_unknown_form(item: core.Item) -> bool:
    return item.reference is None and item.tags.get("answer_format") == UNKNOWN


def _broken(number: int, entry: object, error: ValidationError) -> core.Finding:
    fault = error.errors(include_url=False)[0]
    field, value = ".".join(str(part) for part in fault["loc"]), _shown(fault["input"])
    expected = _EXPECTED.get(fault["type"]) or core.expected_words(fault)
    named = dict(entry) if isinstance(entry, Repeated) else entry
    name = named.get("qID") if isinstance(named, dict) else None
    if isinstance(entry, Repeated):
        found, expected = f"the field {_shown(entry.key)} twice", "each field once"
    elif fault["type"] == "missing":
        found = f"no field {field!r}"
    else:
        found = f"{value} as {field!r}" if field else value
    known = isinstance(name, str) and fault["type"] != "string_unicode"
    return core.Finding("entry", str(name) if known else "", f"{found} (entry {number})", expected)


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
"""What was expected, by pydantic's kind of error."""


def _answer(item: core.Item, response: NativeResponse, budget_s: float | None) -> Iterator[core.Finding]:
    text = response.content or ""
    if response.latency is not None and budget_s is not None and response.latency > budget_s:
        yield core.Finding(
            "late", item.id, f"{_above(response.latency, budget_s)} s", f"at most {budget_s:g} s", "wrong"
        )
    most = item.answer.max_chars if isinstance(item.answer, FreeTextFormat) else None
    if most is not None and len(text.strip()) > most:
        sure = not _of_unknown_form(item)
        expected = f"at most {most} characters" + ("" if sure else " if it is free text")
        yield core.Finding(
            "too-long", item.id, f"{len(text.strip())} characters", expected, severity="wrong" if sure else "warning"
        )
    else:
        try:
            item.answer.parse(text, item.options)
        except core.ParseError as error:
            yield core.Finding("format", item.id, _shown(text), error.expected, "wrong")
    if found := suspicion(text):
        yield core.Finding("suspicious", item.id, found, "an answer to the question alone", severity="warning")


def _above(seconds: float, limit: float) -> str:
    """The time with three digits, or with as many as show that it is above the limit."""
    short = f"{seconds:.3f}"
    return short if float(short) > limit else repr(seconds)


def _shown(value: object) -> str:
    text = repr(value[:81] if isinstance(value, str) else value)
    quote = text[-1] if isinstance(value, str) else ""
    return text if len(text) <= 82 else text[:78] + "..." + quote


def validate(file: Path, request: core.ValidationRequest) -> core.PluginReport:
    """Repeated and unknown questions; answers that are missing, late, too long or not in their format; odd texts."""
    request.known_options()
    data = request.needed_data("the folder with requests.json")
    benchmark = core.reader_of("focus", request.track).load(data)
    if request.budget_s is not None:
        benchmark = replace(benchmark, budget_s=request.budget_s)
    found = validate_submission(file, benchmark, request.latency)
    rules = ", ".join(f"{rule} {count}" for rule, count in found.by_rule.items())
    findings: list[JsonValue] = [
        {
            "rule": finding.rule,
            "question": finding.location,
            "found": finding.found,
            "expected": finding.expected,
            "severity": finding.severity,
            "error": finding.severity == "error",
        }
        for finding in found.findings
    ]
    json: dict[str, JsonValue] = {
        "by_rule": {**found.by_rule},
        "findings": findings,
        "unchecked": list(found.unchecked),
    }
    return found.report(json, every=request.every, ending=f" ({rules})" if rules else "")
