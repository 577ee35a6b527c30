"""Errors of one attempt: whether to retry, how long to wait, and the message."""

from __future__ import annotations

import re
from dataclasses import dataclass

from proctor.core import (
    ConfigurationError,
    InfrastructureError,
    ProctorError,
    RefusalError,
    SystemFaultError,
    without_keys,
)
from proctor.models.connections import BodyError

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
_TOO_LARGE = 413
_POLICY = re.compile(
    r"content.?(policy|filter|management)|responsible.?ai|safety (system|polic|filter)|usage polic"
    r"|data_?inspection|inappropriate content|flagged|moderation",
    re.IGNORECASE,
)
_SETTING = re.compile(
    r"(?<!contains an )(unsupported|unknown|unrecognized|unexpected|invalid)[ _](parameter|argument|keyword|request argument"
    r"|setting)\b(?!_error)"
    r"|unsupported_value|extra (inputs|fields)|unknown part type|at most 0 (image|video|audio)|not a multimodal model"
    r"|does not support|is not supported with this model|modality is not enabled|location is not supported",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"\b(temperature|top_p|top_k|max_(completion_|output_)?tokens|budget(_tokens)?|thinking)\b.{0,60}(cannot|may only"
    r"|must be|deprecated|is not supported|is invalid|too large|greater than|less than|maximum allowed)",
    re.IGNORECASE,
)
"""What is said of a setting's value, which is the same for every item."""

_WINDOW = re.compile(r"context.?(length|window|limit)", re.IGNORECASE)
_CONTENT = re.compile(
    rf"{_WINDOW.pattern}|too many tokens|token count|tokens? .*exceed|exceed.* tokens?"
    r"|\btoo (long|short|large|small|big)\b|dimensions?.{0,20}exceed|(payload|image|video|file).{0,20}exceeds (\d|the limit)"
    r"|(image|video|frame|clip|media|audio).{0,60}(corrupt|invalid|unreadable"
    r"|can.?not be|could not be)"
    r"|(invalid|corrupt|could not process|cannot process|unable to process|failed to (decode|process)).{0,40}(image"
    r"|video|frame|clip|media|audio)",
    re.IGNORECASE,
)


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

    Access denied and no such model are final (`ConfigurationError`); a filter that stopped the answer is a refusal; a
    context too long is the system's own fault; other rejections are classified by `rejection`; everything else is an
    infrastructure error, which is retried.
    """
    from pydantic_ai.exceptions import (
        ContentFilterError,
        ModelAPIError,
        ModelAuthenticationError,
        ModelContextWindowExceededError,
        ModelNotFoundError,
        ModelQuotaExceededError,
        ModelRequestRejectedError,
        UserError,
    )

    if (too_large := _of_body(error)) is not None:
        return Fault(InfrastructureError(str(too_large)), again=False)
    if isinstance(error, TimeoutError):
        return Fault(InfrastructureError("the request timed out"), again=True, timed_out=True)
    said = one_line(_words(error))
    if isinstance(error, ContentFilterError):
        return Fault(RefusalError(f"the provider's filter stopped the answer: {said}"), again=False)
    if isinstance(error, ModelAuthenticationError | ModelNotFoundError | UserError):
        return Fault(ConfigurationError(said), again=False)
    if isinstance(error, ModelAPIError):
        status = getattr(error, "status_code", None)
        if isinstance(error, ModelContextWindowExceededError) or status == _TOO_LARGE:
            return Fault(SystemFaultError(said), again=False)
        final = isinstance(error, ModelRequestRejectedError) or (
            status is not None
            and 400 <= status < 500
            and status not in _TRY_AGAIN
            and not isinstance(error, ModelQuotaExceededError)
        )
        if final:
            code = _code(getattr(error, "body", None))
            return Fault(rejection(said, code), again=False)
        return Fault(InfrastructureError(said), again=True, wait_s=error.retry_after)
    return Fault(InfrastructureError(f"a reply that can't be read: {said}"), again=True)


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
    incomplete.

    >>> type(rejection("Invalid prompt: flagged by our content policy")).__name__
    'RefusalError'
    >>> type(rejection("The video file is too short")).__name__
    'SystemFaultError'
    >>> type(rejection("Unknown parameter: 'top_k'")).__name__, type(rejection("bad request")).__name__
    ('ConfigurationError', 'InfrastructureError')
    """
    words = f"{code} {said}"
    if _POLICY.search(words):
        return RefusalError(said)
    if _SETTING.search(words) or (_VALUE.search(words) and not _WINDOW.search(words)):
        return ConfigurationError(said)
    return SystemFaultError(said) if _CONTENT.search(words) else InfrastructureError(said)


def _code(body: object) -> str:
    """The provider's code of an error body."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    return str(inner.get("code") or "") if isinstance(inner, dict) else ""


def _words(error: Exception) -> str:
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UserError
    from pydantic_core import ValidationError

    if isinstance(error, ModelHTTPError):
        return f"HTTP {error.status_code}: {told_in(error.body) or 'no reason given'}"
    wrong = error if isinstance(error, ValidationError) else error.__cause__
    if isinstance(wrong, ValidationError):
        first = wrong.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, UnexpectedModelBehavior | ModelAPIError | UserError):
        return error.message.rstrip(".")
    return f"{type(error).__name__}: {error}"


def told_in(body: object) -> str:
    """The provider's message in an error body, in any of the usual forms."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        for holder in (inner, body):
            if isinstance(holder, dict):
                for key in ("message", "detail", "code"):
                    if holder.get(key):
                        return str(holder[key])
        return str(inner)
    return "" if body is None else str(body)
