"""Files of answers that are only read: VLMEvalKit's predictions, any table of ids and answers (CSV, JSON, JSON Lines,
Parquet, Excel, also the rows of `proctor export`), and output of OpenAI's batch API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from proctor import core
from proctor.interchange.recorded import (
    POSITION,
    RecordedAnswer,
    RecordedFile,
    as_list,
    as_object,
    fault,
    kept_value,
    outcome_of,
    share,
    token_count,
)
from proctor.interchange.repetitions import COLUMNS, numbered
from proctor.interchange.shown_options import options_in_fields
from proctor.models import end_of_body, rejection
from proctor.results import EXPORT_COLUMNS

_IDS = (
    "item", "item_id", "id", "question_id", "qid", "sample_id", "custom_id", "index", "question_no", "nr", "nr.", "nummer",
    "frage_id", "fragen_id", "fragennummer", "identifiant", "n°", "编号", "序号", "题号",
)  # fmt: skip
_TEXTS = (
    "text", "prediction", "response", "output", "completion", "reply", "model_answer", "generated_answer", "answer", "antwort",
    "réponse", "respuesta", "回答", "答案",
)  # fmt: skip
_SYSTEMS = ("system", "model", "model_name")
_QUESTIONS = ("question", "prompt", "input")
_SCORES = {"hit", "score", "correct", "is_correct", "accuracy", "acc", "right", "exact_match", "match", "richtig"}
_TARGETS = ("reference", "target", "gold", "ground_truth", "answer_key", "key", "correct_answer", "answer")
_FAILED = "Failed to obtain answer"  # VLMEvalKit's INFER_FAIL_MSG; its API models write it with a reason behind


def read_vlmevalkit(file: Path, id_column: str = "") -> RecordedFile:
    """Reads VLMEvalKit's predictions: the columns index, prediction, those of the options (A, B, C …), answer and, in a
    scored file, hit or score; also `repetition` or `epoch`. A prediction that states a failed call is `failed`."""
    sheet = core.read_sheet(file)
    column = id_column if id_column not in {"", POSITION} else "index"
    answers, faults = list[RecordedAnswer](), _sheet_faults(sheet, (column, "prediction"))
    repetitions: list[int | None] = []
    if not faults:
        _, repetitions, _, faults = _repetitions(sheet, sheet.rows, 0, own=False)
    counts = Counter[int | None]()
    for row, repetition in zip(sheet.rows if not faults else (), repetitions if not faults else (), strict=True):
        key = str(counts[repetition]) if id_column == POSITION else core.cell_text(row.cells.get(column))
        counts[repetition] += 1
        text = core.cell_text(row.cells.get("prediction"))
        status, reason = core.Status.ANSWERED, ""
        lost = core.lost_text(row.cells.get("prediction"))
        if lost or not text or _FAILED in text:
            status, reason, text = core.Status.FAILED, lost or text or "an empty prediction", ""
        shares = {name: _share(row.cells.get(name)) for name in ("hit", "score")}
        scores = {
            name: value for name, value in shares.items() if value is not None and status is not core.Status.FAILED
        }
        prompt = core.cell_text(row.cells.get("question"))
        answers.append(
            RecordedAnswer(
                f"row {row.number}",
                key,
                text,
                status,
                reason,
                prompt=prompt,
                options=options_in_fields(row.cells),
                scores=scores,
                targets=_targets(row, ("answer",)),
                repetition=repetition,
            )
        )
    return RecordedFile(answers, faults=tuple(faults))


def read_table_of_answers(
    file: Path, id_column: str = "", answer_column: str = "", name: str = "", epoch: int = 0
) -> RecordedFile:
    """Reads a table with a column of ids and one of answers; the columns `status` (Proctor's words), `reason`,
    `latency_s`, `system`, `condition`, `confidence` (0 to 1, or 0 to 100 if one is above 1), `repetition` or `epoch` (from 0 or 1: each row is one of several answers to
    the item), of options (`options_in_fields`), of a score and of the reference answer are optional. An empty answer without a status is `failed`, because its reason is unknown. `name` chooses one of
    several systems, `epoch` one repetition alone, as the file numbers it.

    Raises `UsageError` for an ambiguous column, and `InputError` for several systems or conditions.
    """
    sheet = core.read_sheet(file)
    if sheet.faults:
        return RecordedFile((), faults=tuple(_sheet_faults(sheet, ())))
    ids = "" if id_column == POSITION else _column(sheet, id_column, _IDS, "--id-column")
    texts = _column(sheet, answer_column, [one for one in _TEXTS if one != ids], "--answer-column")
    own = set(EXPORT_COLUMNS[:6]) <= set(sheet.columns)
    rows = list(map(_without_apostrophes, sheet.rows)) if own and file.suffix.lower() == ".csv" else sheet.rows
    systems = next((one for one in _SYSTEMS if one in sheet.columns), "")
    system = _only(sheet, rows, systems, name)
    rows = [row for row in rows if not name or not systems or core.cell_text(row.cells.get(systems)) == system]
    condition = _only(sheet, rows, "condition", "")
    rows, repetitions, notes, faults = _repetitions(sheet, rows, epoch, own=own)
    sure, told, wrong = ([], [], []) if own else _confidences(rows)
    if faults := [*faults, *wrong]:
        return RecordedFile((), system, condition, faults=tuple(faults))
    notes = [*notes, *told]
    counts = Counter[int | None]()
    answers = []
    for number, (row, repetition) in enumerate(zip(rows, repetitions, strict=True)):
        key = str(counts[repetition]) if id_column == POSITION else core.cell_text(row.cells.get(ids))
        counts[repetition] += 1
        read = _answer(row, key, texts, own=own)
        if isinstance(read, core.Finding):
            faults.append(read)
        else:
            more = {core.CONFIDENCE: sure[number].model_dump(mode="json", exclude_defaults=True)} if sure else {}
            answers.append(replace(read, repetition=repetition, extra={**read.extra, **more}))
    return RecordedFile(answers, system, condition, tuple(notes), tuple(faults), own_order=own)


def _answer(row: core.SheetRow, key: str, texts: str, *, own: bool) -> RecordedAnswer | core.Finding:
    """The answer in a row, whose text is in the column `texts`, or what is wrong with it. `own`: Proctor exported it, so
    that its score and parsed answer are known, and its options and reference are not read."""
    cell = row.cells.get(texts)
    text = cell if isinstance(cell, str) else core.cell_text(cell)
    found = _status(row, text, core.lost_text(cell))
    if isinstance(found, core.Finding):
        return found
    prompt = next((core.cell_text(row.cells.get(name)) for name in _QUESTIONS if name in row.cells), "")
    kept = "" if found[0] is core.Status.FAILED else text
    seconds = _number(row.cells.get("latency_s"))
    answer = RecordedAnswer(f"row {row.number}", key, kept, *found, prompt=prompt, model_s=seconds)
    if own:
        parsed, extra = kept_value(row.cells.get("parsed")), as_object(kept_value(row.cells.get("extra")))
        return replace(answer, compared=_own_score(row), parsed=parsed, extra=extra)
    targets = _targets(row, [one for one in _TARGETS if one != texts])
    return replace(answer, options=options_in_fields(row.cells), compared=_scores(row, texts), targets=targets)


def _repetitions(
    sheet: core.Sheet, rows: Sequence[core.SheetRow], epoch: int, *, own: bool
) -> tuple[list[core.SheetRow], list[int | None], list[str], list[core.Finding]]:
    """The rows with the repetition of each (None without a column of them), notes on the table, and faults. With `epoch`
    only its rows, as the only answers. Raises `UsageError` for an epoch that the table does not have."""
    column = next((name for name in COLUMNS if name in sheet.columns), "")
    numbers = [core.cell_text(row.cells.get(column)) for row in rows] if column else []
    known = sorted(set(numbers), key=lambda name: (len(name), name))
    if epoch and str(epoch) not in known:
        expected = f"choose {core.one_of(known)}" if known else f"no column is called {' or '.join(COLUMNS)}"
        raise core.UsageError(f"--epoch {epoch} is not there: {expected}.")
    if epoch:
        kept = [row for row, name in zip(rows, numbers, strict=True) if name == str(epoch)]
        others = f"{len(known)} repetitions: {epoch} alone is read (--epoch)"
        return kept, [None] * len(kept), [*sheet.notes, others] if len(known) > 1 else list(sheet.notes), []
    if not column:
        return list(rows), [None] * len(rows), list(sheet.notes), []
    cells = [(f"row {row.number}", row.cells.get(column)) for row in rows]
    found, faults = numbered(cells, column=column, first=0 if own else None)
    note = f"{len(known)} repetitions of each item, by the column {column!r}"
    return list(rows), [*found], [*sheet.notes, note] if len(known) > 1 else list(sheet.notes), faults


def _confidences(rows: Sequence[core.SheetRow]) -> tuple[list[core.Confidence], list[str], list[core.Finding]]:
    """The confidence of each row, notes, and faults; nothing without the column `confidence`. All of a column have one scale:
    0 to 1, or 0 to 100 if one is above 1."""
    if not any("confidence" in row.cells for row in rows):
        return [], [], []
    cells = [row.cells.get("confidence") for row in rows]
    numbers = [
        None if core.is_empty(cell) else _number(cell.strip() if isinstance(cell, str) else cell) for cell in cells
    ]
    scale = 100.0 if any(one is not None and one > 1 for one in numbers) else 1.0
    found, faults = list[core.Confidence](), list[core.Finding]()
    for row, cell, number in zip(rows, cells, numbers, strict=True):
        if not core.is_empty(cell) and (number is None or number > scale):
            shown = repr(core.cell_text(cell))[:60]
            faults.append(fault(f"row {row.number}, column 'confidence'", shown, f"a number from 0 to {scale:g}"))
        elif number is None:
            found.append(core.Confidence(source="recorded", missing="an empty cell"))
        else:
            found.append(core.Confidence(source="recorded", value=number / scale))
    return found, [f"Confidences from 0 to {scale:g}, by the column 'confidence'"], faults


def _scores(row: core.SheetRow, texts: str) -> dict[str, float]:
    """The scores in a row of another program."""
    shares = {name: _share(cell) for name, cell in row.cells.items() if name.casefold() in _SCORES and name != texts}
    return {name: value for name, value in shares.items() if value is not None}


def _own_score(row: core.SheetRow) -> dict[str, float]:
    """The accuracy in a row that Proctor exported."""
    value = _share(row.cells.get("value")) if row.cells.get("metric") == core.ACCURACY.name else None
    return {} if value is None else {core.ACCURACY.name: value}


def _targets(row: core.SheetRow, columns: Sequence[str]) -> tuple[str, ...]:
    """The reference answer in a row; empty without one."""
    cells = {name.strip().casefold().replace(" ", "_"): cell for name, cell in row.cells.items()}
    found = next((core.cell_text(cells[name]) for name in columns if not core.is_empty(cells.get(name))), "")
    return (found,) if found else ()


def _without_apostrophes(row: core.SheetRow) -> core.SheetRow:
    """The row before `proctor export` made it safe for spreadsheets."""
    return core.SheetRow(row.number, {name: core.read_safe_cell(cell) for name, cell in row.cells.items()})


def _sheet_faults(sheet: core.Sheet, needed: Sequence[str]) -> list[core.Finding]:
    found = [
        fault(table_fault.location or "the file", table_fault.found, table_fault.expected)
        for table_fault in sheet.faults
    ]
    absent = [name for name in needed if name not in sheet.columns]
    return found or [fault("row 1", f"no column {name!r}", f"the columns {', '.join(needed)}") for name in absent]


def _column(sheet: core.Sheet, named: str, known: Sequence[str], option: str) -> str:
    """The name of a column: `named`, or else the first of the known names."""
    if named:
        if named not in sheet.columns:
            raise core.UsageError(f"{option} {named!r} is no column: choose {core.one_of(sheet.columns, named)}")
        return named
    plain = {name.strip().casefold().replace(" ", "_").replace("-", "_"): name for name in reversed(sheet.columns)}
    found = next((plain[name] for name in known if name in plain), None)
    if found is None:
        what = "the question ids" if option == "--id-column" else "the system's answers"
        columns = " or ".join(core.shell_word(name) for name in sheet.columns)
        rows = f" (or {POSITION}, where the rows stand as the questions do)" if option == "--id-column" else ""
        raise core.UsageError(f"Which column holds {what}? Choose one: {option} {columns}{rows}")
    return found


def _only(sheet: core.Sheet, rows: Sequence[core.SheetRow], column: str, wanted: str) -> str:
    """The only value of a column, or the wanted one of several; "" without the column."""
    if column not in sheet.columns:
        return ""
    values = sorted({core.cell_text(row.cells.get(column)) for row in rows} - {""})
    if wanted in values or len(values) < 2:
        return wanted if wanted in values else "".join(values)
    option = "--name" if column in _SYSTEMS else "a file with"
    raise core.InputError(
        sheet.file, f"column {column!r}", found=", ".join(values[:5]), expected=f"one, or {option} one of them"
    )


def _status(row: core.SheetRow, text: str, lost: str) -> tuple[core.Status, str] | core.Finding:
    """The status and reason in a row, whose answer a spreadsheet may have `lost`."""
    cell, reason = row.cells.get("status"), core.cell_text(row.cells.get("reason"))
    if core.is_empty(cell) and lost:
        return core.Status.FAILED, lost
    if core.is_empty(cell):
        return (core.Status.ANSWERED, reason) if text.strip() else (core.Status.FAILED, reason or "an empty cell")
    if core.cell_text(cell) not in set(core.Status):
        return fault(
            f"row {row.number}, column 'status'", repr(core.cell_text(cell))[:60], core.one_of(list(core.Status))
        )
    status = core.Status(core.cell_text(cell))
    if lost and status is core.Status.ANSWERED:
        return core.Status.FAILED, lost
    return status, reason or ("" if status is core.Status.ANSWERED else "as the file says")


def _share(cell: Any) -> float | None:
    return share(core.cell_number(cell) if isinstance(cell, str) else cell)


def _number(cell: Any) -> float | None:
    if isinstance(cell, str):
        cell = core.cell_number(cell)
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) and cell >= 0 else None


_CONTENT = ("content_filter", "content_policy_violation", "invalid_prompt")


def read_openai_batch(file: Path, id_column: str = "") -> RecordedFile:
    """Reads the file of results, or the file of errors. A `custom_id` is an item's id, with "#" or "-r" and the
    number of the repetition (from 0 or 1) behind it where there are several answers to an item. The status is `failed` for a request that expired, was
    cancelled, or met a rate limit or a server error, `refused` for refused content, and `error` for a request that
    could not be answered (a context too long). A reply that broke off is `failed`, and one that a filter stopped
    `refused`, by the words of `proctor.models.read_ending`. A line may also hold its request, whose message lists the
    options. Raises `InputError` for invalid JSON Lines."""
    del id_column  # each line has a custom_id
    answers: list[RecordedAnswer] = []
    faults: list[core.Finding] = []
    models: set[str] = set()
    for location, line in core.read_jsonl(file):
        key = line.get("custom_id") if isinstance(line, dict) else None
        if not isinstance(key, str):
            faults.append(fault(location, "no custom_id", "a line of batch output"))
            continue
        response = as_object(line.get("response"))
        body = as_object(response.get("body"))
        if isinstance(body.get("model"), str):
            models.add(body["model"])
        status, reason, extra = _outcome(line, response, body)
        text = "" if status is core.Status.FAILED else _text(body)
        prompt = _asked(line) or _asked(as_object(line.get("request"))) or _asked(body)
        usage = _usage(body)
        answers.append(RecordedAnswer(location, key, text, status, reason, prompt=prompt, usage=usage, extra=extra))
    system = models.pop() if len(models) == 1 else ""
    return RecordedFile(answers, system=system, faults=tuple(faults), in_ids=True)


_Outcome = tuple[core.Status, str, dict[str, JsonValue]]


def _outcome(line: dict[str, Any], response: dict[str, Any], body: dict[str, Any]) -> _Outcome:
    """The status of a line, its reason, and how the reply ended if there is one."""
    error = as_object(line.get("error")) or as_object(body.get("error"))
    code, message = str(error.get("code") or ""), str(error.get("message") or "")
    http = response.get("status_code")
    if code in _CONTENT:
        return core.Status.REFUSED, message or code, {}
    if not response or line.get("error"):
        return core.Status.FAILED, f"{code}: {message}".strip(": ") or "no response", {}
    if http != 200:
        own = isinstance(http, int) and 400 <= http < 500 and http not in {401, 403, 404, 408, 409, 429}
        status = _KINDS.get(type(rejection(message, code)), core.Status.FAILED) if own else core.Status.FAILED
        return status, f"HTTP {http}: {message or code}", {}
    return _ended(body)


_KINDS = {core.SystemFaultError: core.Status.ERROR, core.RefusalError: core.Status.REFUSED}
"""A rejected request by its words, as `proctor.models.rejection` tells them apart; the others are `failed`."""


def _ended(body: dict[str, Any]) -> _Outcome:
    refusal = as_object(_first(body.get("choices")).get("message")).get("refusal")
    refusal = refusal or next((part.get("refusal") for part in _parts(body) if part.get("type") == "refusal"), None)
    try:
        end = end_of_body(body)
    except ValueError as error:
        return core.Status.FAILED, str(error), {}
    status, reason, extra = outcome_of(end, _text(body))
    return (core.Status.REFUSED, str(refusal), extra) if refusal else (status, reason, extra)


def _text(body: dict[str, Any]) -> str:
    content = as_object(_first(body.get("choices")).get("message")).get("content")
    if isinstance(content, str):
        return content
    parts = _parts(body)
    return "".join(str(part.get("text", "")) for part in parts if part.get("type") == "output_text")


def _asked(request: dict[str, Any]) -> str:
    """The text of the last user message of a request that was recorded beside its response; "" if there is none."""
    request = as_object(request.get("body")) or request
    sent = request.get("messages", request.get("input"))
    if isinstance(sent, str):
        return sent
    texts = [message.get("content") for message in map(as_object, as_list(sent)) if message.get("role") == "user"]
    parts = [{"text": texts[-1]}] if texts and isinstance(texts[-1], str) else as_list(texts[-1] if texts else None)
    return "\n".join(str(part["text"]) for part in map(as_object, parts) if isinstance(part.get("text"), str))


def _usage(body: dict[str, Any]) -> core.Usage:
    used = as_object(body.get("usage"))
    if not used:
        return core.Usage()
    details = as_object(used.get("prompt_tokens_details")) or as_object(used.get("input_tokens_details"))
    return core.Usage(
        requests=1,
        input_tokens=token_count(used.get("prompt_tokens", used.get("input_tokens"))),
        output_tokens=token_count(used.get("completion_tokens", used.get("output_tokens"))),
        cached_tokens=token_count(details.get("cached_tokens")),
    )


def _parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a reply of the responses API."""
    return [as_object(part) for one in as_list(body.get("output")) for part in as_list(as_object(one).get("content"))]


def _first(value: Any) -> dict[str, Any]:
    return as_object(next(iter(as_list(value)), None))
