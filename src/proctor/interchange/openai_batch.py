"""Output of OpenAI's batch API: one line a request, by `custom_id`; of chat completions and of responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor.core import Noted, Status, Usage, read_jsonl
from proctor.interchange.recorded import RecordedAnswer, RecordedFile, fault, whole

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
