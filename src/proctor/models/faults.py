"""What went wrong with one attempt: whether another try may help, how long to wait, what to say."""

from __future__ import annotations

from dataclasses import dataclass

from proctor.core import ConfigurationError, MachineryError, ProctorError, RefusalError
from proctor.models.body_limit import BodyError
from proctor.models.redact import one_line

__all__ = ["Fault", "understand"]

_TRY_AGAIN = {408, 409, 425, 429}


@dataclass(frozen=True)
class Fault:
    """A failed attempt. `error` is raised where no further one follows; `wait_s` is what the server asked
    for, None where it asked for nothing."""

    error: ProctorError
    again: bool
    wait_s: float | None = None


def understand(error: Exception) -> Fault:
    """Says what an exception of the model library means for the item that was asked.

    Access denied or no such model can't get better (`ConfigurationError`); a request that the provider
    rejects is this item's own trouble (`MachineryError`, no second try); a filter that stopped the answer
    is the model's refusal; everything else is the machinery's, and another try may get over it.
    """
    from pydantic_ai.exceptions import (
        ContentFilterError,
        ModelAPIError,
        ModelAuthenticationError,
        ModelNotFoundError,
        ModelQuotaExceededError,
        ModelRequestRejectedError,
        UserError,
    )

    if (too_large := _of_body(error)) is not None:
        return Fault(MachineryError(str(too_large)), again=False)
    if isinstance(error, TimeoutError):
        return Fault(MachineryError("the request timed out"), again=True)
    said = one_line(_words(error))
    if isinstance(error, ContentFilterError):
        return Fault(RefusalError(f"the provider's filter stopped the answer: {said}"), again=False)
    if isinstance(error, ModelAuthenticationError | ModelNotFoundError | UserError):
        return Fault(ConfigurationError(said), again=False)
    if isinstance(error, ModelAPIError):
        status = getattr(error, "status_code", None)
        final = isinstance(error, ModelRequestRejectedError) or (
            status is not None
            and 400 <= status < 500
            and status not in _TRY_AGAIN
            and not isinstance(error, ModelQuotaExceededError)
        )
        return Fault(MachineryError(said), again=not final, wait_s=error.retry_after)
    return Fault(MachineryError(f"a reply that can't be read: {said}"), again=True)


def _of_body(error: BaseException) -> BodyError | None:
    """The body's fault that led to an error of the libraries above."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, BodyError):
        cause = cause.__cause__ or cause.__context__
    return cause


def _words(error: Exception) -> str:
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UserError
    from pydantic_core import ValidationError

    if isinstance(error, ModelHTTPError):
        return f"HTTP {error.status_code}: {_message(error.body) or 'no reason given'}"
    wrong = error if isinstance(error, ValidationError) else error.__cause__
    if isinstance(wrong, ValidationError):
        first = wrong.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, UnexpectedModelBehavior | ModelAPIError | UserError):
        return error.message.rstrip(".")
    return f"{type(error).__name__}: {error}"


def _message(body: object) -> str:
    """The provider's own words in an error body, whichever of the usual forms it has."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        for holder in (inner, body):
            if isinstance(holder, dict):
                for key in ("message", "detail", "code"):
                    if holder.get(key):
                        return str(holder[key])
        return str(inner)
    return "" if body is None else str(body)
