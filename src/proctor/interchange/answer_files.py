"""Recorded answers in tables (VLMEvalKit's predictions, any table of ids and answers) and in output of OpenAI's batch API."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proctor.core import (
    InputError,
    Noted,
    Sheet,
    SheetRow,
    Status,
    Usage,
    UsageError,
    cell_number,
    cell_text,
    is_empty,
    one_of,
    read_jsonl,
    read_sheet,
)
from proctor.interchange.recorded import POSITION, RecordedAnswer, RecordedFile, fault, kept_value, share, whole
from proctor.runs import EXPORT_COLUMNS, read_safe_cell

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
_FAILED = "Failed to obtain answer"  # VLMEvalKit's INFER_FAIL_MSG; its API models write it with a reason behind


def read_vlmevalkit(file: Path, id_column: str = "") -> RecordedFile:
    """Reads VLMEvalKit's predictions: the columns index, prediction and, where it was scored, hit or score. A call that
    failed there, whose prediction says so, is `failed` here."""
    sheet = read_sheet(file)
    column = id_column if id_column not in {"", POSITION} else "index"
    answers, faults = [], _sheet_faults(sheet, (column, "prediction"))
    for number, row in enumerate(sheet.rows if not faults else ()):
        key = str(number) if id_column == POSITION else cell_text(row.cells.get(column))
        text = cell_text(row.cells.get("prediction"))
        status, reason = Status.ANSWERED, ""
        if not text or _FAILED in text:
            status, reason, text = Status.FAILED, text or "an empty prediction", ""
        marks = {name: _share(row.cells.get(name)) for name in ("hit", "score")}
        scores = {name: value for name, value in marks.items() if value is not None and status is not Status.FAILED}
        prompt = cell_text(row.cells.get("question"))
        answers.append(RecordedAnswer(f"row {row.number}", key, text, status, reason, prompt=prompt, scores=scores))
    return RecordedFile(answers, faults=tuple(faults))


def read_table_of_answers(file: Path, id_column: str = "", answer_column: str = "", name: str = "") -> RecordedFile:
    """Reads a table with a column of ids and one of answers; `status` (Proctor's words), `reason`, `latency_s`,
    `system` and `condition` are taken where they are there. An empty answer without a status is `failed`: nobody can
    say why it is missing. Of several systems `name` chooses one.

    Raises `UsageError` where a column can't be told, and where there are several systems or conditions.
    """
    sheet = read_sheet(file)
    if sheet.faults:
        return RecordedFile((), faults=tuple(_sheet_faults(sheet, ())))
    ids = "" if id_column == POSITION else _column(sheet, id_column, _IDS, "--id-column")
    texts = _column(sheet, answer_column, [one for one in _TEXTS if one != ids], "--answer-column")
    own = set(EXPORT_COLUMNS[:6]) <= set(sheet.columns)
    rows = list(map(_without_apostrophes, sheet.rows)) if own and file.suffix.lower() == ".csv" else sheet.rows
    systems = next((one for one in _SYSTEMS if one in sheet.columns), "")
    system = _only(sheet, rows, systems, name)
    rows = [row for row in rows if not name or not systems or cell_text(row.cells.get(systems)) == system]
    condition = _only(sheet, rows, "condition", "")
    answers, faults = [], list[Noted]()
    for number, row in enumerate(rows):
        key = str(number) if id_column == POSITION else cell_text(row.cells.get(ids))
        cell = row.cells.get(texts)
        text = cell if isinstance(cell, str) else cell_text(cell)
        place = f"row {row.number}"
        found = _status(row, text)
        if isinstance(found, Noted):
            faults.append(found)
            continue
        prompt = next((cell_text(row.cells.get(one)) for one in _QUESTIONS if one in row.cells), "")
        seconds = row.cells.get("latency_s")
        answers.append(
            RecordedAnswer(
                place,
                key,
                text,
                *found,
                prompt=prompt,
                model_s=_number(seconds),
                parsed=kept_value(row.cells.get("parsed")) if own else None,
            )
        )
    return RecordedFile(answers, system, condition, tuple(sheet.notes), tuple(faults))


def _without_apostrophes(row: SheetRow) -> SheetRow:
    """A row as it was before `proctor export` wrote it as CSV."""
    return SheetRow(row.number, {name: read_safe_cell(cell) for name, cell in row.cells.items()})


def _sheet_faults(sheet: Sheet, needed: Sequence[str]) -> list[Noted]:
    found = [fault(one.place or "the file", one.found, one.expected) for one in sheet.faults]
    absent = [name for name in needed if name not in sheet.columns]
    return found or [fault("row 1", f"no column {name!r}", f"the columns {', '.join(needed)}") for name in absent]


def _column(sheet: Sheet, named: str, known: Sequence[str], option: str) -> str:
    """The column's name: the one that was named, or the first known one."""
    if named:
        if named not in sheet.columns:
            raise UsageError(option, one_of(sheet.columns, named), found=repr(named))
        return named
    plain = {name.strip().casefold().replace(" ", "_").replace("-", "_"): name for name in reversed(sheet.columns)}
    found = next((plain[name] for name in known if name in plain), None)
    if found is None:
        what = "the ids of the questions" if option == "--id-column" else "the system's answers"
        expected = f"which column holds {what}: {one_of(sheet.columns)}"
        expected += (
            f"; or {option} {POSITION}, where the rows stand as the questions do" if option == "--id-column" else ""
        )
        raise UsageError(option, expected, found=f"no column of {', '.join(known[:6])} or alike")
    return found


def _only(sheet: Sheet, rows: Sequence[SheetRow], column: str, wanted: str) -> str:
    """The one value of a column, or the wanted one of several; "" without the column."""
    if column not in sheet.columns:
        return ""
    values = sorted({cell_text(row.cells.get(column)) for row in rows} - {""})
    if wanted in values or len(values) < 2:
        return wanted if wanted in values else "".join(values)
    option = "--name" if column in _SYSTEMS else "a file with"
    raise InputError(
        sheet.file, f"column {column!r}", found=", ".join(values[:5]), expected=f"one, or {option} one of them"
    )


def _status(row: SheetRow, text: str) -> tuple[Status, str] | Noted:
    said, reason = row.cells.get("status"), cell_text(row.cells.get("reason"))
    if is_empty(said):
        return (Status.ANSWERED, reason) if text.strip() else (Status.FAILED, reason or "an empty cell")
    if cell_text(said) not in set(Status):
        return fault(f"row {row.number}, column 'status'", repr(cell_text(said))[:60], one_of(list(Status)))
    status = Status(cell_text(said))
    return status, reason or ("" if status is Status.ANSWERED else "as the file says")


def _share(cell: Any) -> float | None:
    return share(cell_number(cell) if isinstance(cell, str) else cell)


def _number(cell: Any) -> float | None:
    if isinstance(cell, str):
        cell = cell_number(cell)
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) and cell >= 0 else None


_CONTENT = ("content_filter", "content_policy_violation", "invalid_prompt")


def read_openai_batch(file: Path, id_column: str = "") -> RecordedFile:
    """Reads the file of results, or the file of errors. A request that expired, was cancelled, met a rate limit or a
    server's error `failed`; one that was refused for its content is `refused`; one that could not be answered (a
    context too long) is an `error`. Raises `InputError` for what is no JSON Lines."""
    del id_column  # each line has a custom_id
    answers: list[RecordedAnswer] = []
    faults: list[Noted] = []
    models: set[str] = set()
    for place, line in read_jsonl(file):
        key = line.get("custom_id") if isinstance(line, dict) else None
        if not isinstance(key, str):
            faults.append(fault(place, "no custom_id", "a line of batch output"))
            continue
        response = _object(line.get("response"))
        body = _object(response.get("body"))
        if isinstance(body.get("model"), str):
            models.add(body["model"])
        status, reason = _outcome(line, response, body)
        text = "" if status is Status.FAILED else _text(body)
        if status is Status.ANSWERED and not text:
            status, reason = Status.ERROR, "an empty reply"
        answers.append(RecordedAnswer(place, key, text, status, reason, usage=_usage(body)))
    return RecordedFile(answers, system=models.pop() if len(models) == 1 else "", faults=tuple(faults))


def _outcome(line: dict[str, Any], response: dict[str, Any], body: dict[str, Any]) -> tuple[Status, str]:
    error = _object(line.get("error")) or _object(body.get("error"))
    code, said = str(error.get("code") or ""), str(error.get("message") or "")
    http = response.get("status_code")
    if code in _CONTENT:
        return Status.REFUSED, said or code
    if not response or line.get("error"):
        return Status.FAILED, f"{code}: {said}".strip(": ") or "no response"
    if http != 200:
        own = isinstance(http, int) and 400 <= http < 500 and http not in {401, 403, 404, 408, 409, 429}
        return Status.ERROR if own else Status.FAILED, f"HTTP {http}: {said or code}"
    return _ended(body)


def _ended(body: dict[str, Any]) -> tuple[Status, str]:
    choice = _first(body.get("choices"))
    refusal = _object(choice.get("message")).get("refusal")
    parts = [_object(part) for one in _listed(body.get("output")) for part in _listed(_object(one).get("content"))]
    refusal = refusal or next((part.get("refusal") for part in parts if part.get("type") == "refusal"), None)
    if refusal or choice.get("finish_reason") == "content_filter":
        return Status.REFUSED, str(refusal or "content_filter")
    if body.get("status") in {"failed", "cancelled"}:
        return Status.FAILED, str(_object(body.get("error")).get("message") or body["status"])
    return Status.ANSWERED, ""


def _text(body: dict[str, Any]) -> str:
    said = _object(_first(body.get("choices")).get("message")).get("content")
    if isinstance(said, str):
        return said
    parts = [_object(part) for one in _listed(body.get("output")) for part in _listed(_object(one).get("content"))]
    return "".join(str(part.get("text", "")) for part in parts if part.get("type") == "output_text")


def _usage(body: dict[str, Any]) -> Usage:
    used = _object(body.get("usage"))
    if not used:
        return Usage()
    details = _object(used.get("prompt_tokens_details")) or _object(used.get("input_tokens_details"))
    return Usage(
        requests=1,
        input_tokens=whole(used.get("prompt_tokens", used.get("input_tokens"))),
        output_tokens=whole(used.get("completion_tokens", used.get("output_tokens"))),
        cached_tokens=whole(details.get("cached_tokens")),
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _first(value: Any) -> dict[str, Any]:
    return _object(value[0]) if isinstance(value, list) and value else {}
