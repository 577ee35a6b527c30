"""Errors of one attempt: whether to retry, how long to wait, and the message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proctor.core import (
    ConfigurationError,
    InfrastructureError,
    JsonError,
    ProctorError,
    RefusalError,
    SystemFaultError,
    first_problem,
    load_json,
    without_keys,
)
from proctor.models.connections import BodyError
from proctor.models.rejections import Meaning, Under, meaning_of

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelAPIError

_DATA_URI = re.compile(r"data:[\w/+.-]+;base64,[A-Za-z0-9+/=]*")
_MAX_CHARS = 240
_READ_CHARS = 100_000  # a body of megabytes says no more in its one line than its beginning


def one_line(text: str) -> str:
    """The text in one line of at most 240 characters, without secrets and pictures.

    Secrets are those of `without_keys`.

    >>> one_line("Incorrect API key provided: sk-abcdef1234567890.")
    'Incorrect API key provided: ***.'
    """
    text = without_keys(_DATA_URI.sub("(a picture)", text[:_READ_CHARS]))
    text = " ".join(text.split())
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"


_TRY_AGAIN = {408, 409, 425, 429}
_REJECTED, _FORBIDDEN, _TOO_LARGE, _SERVER_ERROR, _NOT_IMPLEMENTED = 400, 403, 413, 500, 501
_NO_ACCESS = {401, 402, 403, 404, 405, 407, 410, 415, 426}
"""Statuses that say that no request will do, unless a policy stopped this one."""

_MEDIA_TYPE = 415
_MEDIA = re.compile(r"\b(?:image|video|audio)s?\b", re.IGNORECASE)
_TOO_MUCH = "fewer or smaller frames (--max-frames, --max-side)"


@dataclass(frozen=True)
class Fault:
    """A failed attempt. `error` is raised if no further attempt follows; `wait_s` is the wait that the server requested
    (None: none). `elsewhere`: another server can be called at once."""

    error: ProctorError
    again: bool
    wait_s: float | None = None
    elsewhere: bool = False
    timed_out: bool = False


def understand(error: Exception) -> Fault:
    """Maps an exception of the model library to a fault.

    No access, no money and no such model are final (`ConfigurationError`); a filter that stopped the answer is a
    refusal; a context too long is the system's own fault; other statuses are classified by their words (see
    `meaning_of`), also those of a server that fails; everything else is an infrastructure error, which is retried.
    """
    from pydantic_ai.exceptions import ContentFilterError, ModelAPIError, UnexpectedModelBehavior, UserError

    if (too_large := _of_body(error)) is not None:
        return Fault(InfrastructureError(str(too_large)), again=False)
    if isinstance(error, TimeoutError):
        return Fault(InfrastructureError("the request timed out"), again=True, timed_out=True)
    said = one_line(_words(error))
    if isinstance(error, ContentFilterError):
        return Fault(RefusalError(f"the provider's filter stopped the answer: {said}"), again=False)
    if isinstance(error, UserError):
        return Fault(_rejected(said, Meaning(ConfigurationError, rejects="request")), again=False)
    if isinstance(error, ModelAPIError):
        return _of_status(error, said)
    if isinstance(error, UnexpectedModelBehavior) and (meaning := _under_success(error.message)) is not None:
        return Fault(_rejected(said, meaning), again=False)
    return Fault(InfrastructureError(f"a reply that can't be read: {said}"), again=True)


def _of_status(error: ModelAPIError, said: str) -> Fault:
    """The fault of a reply with an error's status."""
    from pydantic_ai.exceptions import (
        ModelAuthenticationError,
        ModelContextWindowExceededError,
        ModelNotFoundError,
        ModelQuotaExceededError,
        ModelRequestRejectedError,
    )

    status, told = getattr(error, "status_code", None), message_in(error.body) or error.message
    meaning = _meaning_in(error, status, told)
    kind = None if meaning is None else meaning.kind
    if status == _TOO_LARGE:
        return Fault(_rejected(said, Meaning(SystemFaultError, _TOO_MUCH)), again=False)
    if isinstance(error, ModelContextWindowExceededError):
        return Fault(_rejected(said, _of_kind(meaning, Meaning(SystemFaultError, _TOO_MUCH))), again=False)
    by_media = status == _MEDIA_TYPE and kind is SystemFaultError and _MEDIA.search(told) is not None
    by_policy = status == _FORBIDDEN and kind is RefusalError
    unnamed = isinstance(error, ModelAuthenticationError | ModelNotFoundError)
    no_access = (unnamed or (status in _NO_ACCESS and not by_media)) and not by_policy
    if no_access or isinstance(error, ModelQuotaExceededError):
        return Fault(_rejected(said, _of_kind(meaning, Meaning(ConfigurationError))), again=False)
    if meaning is not None and kind is not InfrastructureError:
        return Fault(_rejected(said, meaning), again=False)
    if isinstance(error, ModelRequestRejectedError) or (status is not None and _under(status) == "rejected"):
        return Fault(_rejected(said, Meaning(InfrastructureError, rejects="request")), again=False)
    return Fault(InfrastructureError(said), again=True, wait_s=error.retry_after)


def _meaning_in(error: ModelAPIError, status: int | None, told: str) -> Meaning | None:
    """What the words of an error mean; None without a status, and where a busy server says when to come again."""
    if status is None or (_under(status) == "busy" and error.retry_after is not None):
        return None
    return meaning_of(told, _codes(error.body), _under(status))


def _of_kind(meaning: Meaning | None, usual: Meaning) -> Meaning:
    """What the words mean, if that is of the kind that such an error usually is."""
    return meaning if meaning is not None and meaning.kind is usual.kind else usual


def _under(status: int) -> Under:
    if status in _TRY_AGAIN:
        return "busy"
    return "rejected" if _REJECTED <= status < _SERVER_ERROR or status == _NOT_IMPLEMENTED else "server"


def _under_success(message: str) -> Meaning | None:
    """The meaning of an error that came under a status of success."""
    _, found, told = message.partition("an error under status")
    meaning = meaning_of(told, under="server") or meaning_of(told, under="busy") if found else None
    return None if meaning is None or meaning.kind is InfrastructureError else meaning


def _rejected(said: str, meaning: Meaning) -> ProctorError:
    """The error of a rejected request, with the remedy."""
    error = meaning.kind(f"{said.rstrip('. ')}; {meaning.cure}" if meaning.cure else said)
    error.rejected = meaning.rejects
    return error


def _of_body(error: BaseException) -> BodyError | None:
    """The `BodyError` that caused an error of the libraries."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, BodyError):
        cause = cause.__cause__ or cause.__context__
    return cause


def rejection(said: str, code: str = "") -> ProctorError:
    """Classifies a provider's rejection of a request (HTTP 400, 422) by its message and code.

    A content policy: `RefusalError`. Too long, too large, or unusable media: `SystemFaultError`, the system's own
    fault. An unknown setting, or pictures for a model without vision, which would reject every item:
    `ConfigurationError`. Any other reason: `InfrastructureError`, so that another pass tries again and the run stays
    incomplete. The message has the remedy where one is known.

    >>> type(rejection("Invalid prompt: flagged by our content policy")).__name__
    'RefusalError'
    >>> print(rejection("At most 4 image(s) may be provided in one prompt.").args[0].partition(",")[0])
    At most 4 image(s) may be provided in one prompt; this server takes 4 images a request: --max-frames 4
    >>> type(rejection("Unknown parameter: 'top_k'")).__name__, type(rejection("bad request")).__name__
    ('ConfigurationError', 'InfrastructureError')
    """
    return _rejected(said, meaning_of(said, code) or Meaning(InfrastructureError, rejects="request"))


def _codes(body: object) -> str:
    """The provider's codes in an error body."""
    known = []
    for held in (body, _behind(body)):
        inner = held.get("error", held) if isinstance(held, dict) else None
        known += [inner.get(name) for name in ("code", "type", "param", "status")] if isinstance(inner, dict) else []
    return ",".join(str(code) for code in known if isinstance(code, str | int))


def _words(error: Exception) -> str:
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UserError
    from pydantic_core import ValidationError

    if isinstance(error, ModelHTTPError):
        return f"HTTP {error.status_code}: {message_in(error.body) or 'no reason given'}"
    wrong = error if isinstance(error, ValidationError) else error.__cause__
    if isinstance(wrong, ValidationError):
        return str(first_problem(wrong))
    if isinstance(error, UnexpectedModelBehavior | ModelAPIError | UserError):
        return error.message.rstrip(".")
    return f"{type(error).__name__}: {error}"


def message_in(body: object) -> str:
    """The provider's message in an error body, in any of the usual forms; behind a gateway that keeps the provider's
    own body (OpenRouter's `metadata.raw`), both messages."""
    told = _message_in(body)
    if (behind := _behind(body)) is not None and (more := _message_in(behind)) and more not in told:
        return f"{told.rstrip('. ')}: {more}" if told else more
    return told


def _behind(body: object) -> object:
    """The body of the provider behind a gateway, parsed where it is JSON; None without one."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    metadata = inner.get("metadata") if isinstance(inner, dict) else None
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str):
        return raw if isinstance(raw, dict) else None
    try:
        return load_json(raw)
    except JsonError:
        return raw


def _message_in(body: object) -> str:
    body = body[0] if isinstance(body, list) and body else body
    if isinstance(body, dict):
        inner = body.get("error", body)
        for holder in (inner, body):
            if isinstance(holder, dict):
                for key in ("message", "detail", "code"):
                    if holder.get(key):
                        return str(holder[key])
        return str(inner)
    return "" if body is None else str(body)
