"""Replies: text, value, usage and token probabilities of a response of the model library."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from proctor.core import JsonError, Usage, first_problem, unique_keys
from proctor.core.formats import has_thoughts, without_thoughts
from proctor.models.endings import Ending, read_ending

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ToolCallPart

V_co = TypeVar("V_co", bound=BaseModel | None, covariant=True)
T = TypeVar("T", bound=BaseModel)

_AROUND = " \n\t`.*"
_MAX_OBJECTS = 50
_MAX_CHARS = 100_000
"""The number of braces that are tried for a value of the form, and the longest value."""

_MAX_TOKENS = 10**9
_ROUNDED = 1e-3


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a reply, and the probabilities of the listed alternatives, itself included; they need not add up to
    1."""

    text: bytes
    chances: Mapping[bytes, float]


@dataclass(frozen=True)
class Reply(Generic[V_co]):
    """One reply. `value` is of the requested form (None without one), `usage` is that of all requests for it, `model` is
    the name that the server gives.

    `finish_reason` is the server's own word for how it ended, or None without one. `tokens` make up
    the text where a setting (`openai_logprobs`) requests their probabilities and the server gives them; else there are
    none. `not_reused` is the reason why local weights can't reuse their computations of the pictures. `thinks_aloud`:
    thoughts came in the content, not in a field of their own.
    """

    text: str
    value: V_co
    usage: Usage
    finish_reason: str | None
    model: str
    tokens: tuple[Token, ...] = ()
    not_reused: str = ""
    thinks_aloud: bool = False

    @property
    def cut_off(self) -> bool:
        """Whether the token limit ended it."""
        return read_ending(self.finish_reason or "") is Ending.CUT_OFF


class UnreadableReplyError(Exception):
    """The reply is not of the requested form; the message is a one-line reason."""


def thinks_aloud(response: ModelResponse) -> bool:
    """Whether thoughts came in the content of a reply, in any of the marks that are known."""
    from pydantic_ai.messages import ThinkingPart

    split_off = any(isinstance(part, ThinkingPart) and part.id == "content" for part in response.parts)
    return split_off or has_thoughts(response.text or "")


def read_value(response: ModelResponse, schema: type[T], asked: Sequence[str] = ()) -> T:
    """The value of a reply, from a tool call or its text.

    The text is, after thoughts, JSON, possibly inside one code fence; or it begins or ends with the only JSON value of the form, with
    words or a second fence beside it. Such a value is refused if the texts `asked` contain it: then it may be a
    quotation of the very answer that is judged. Raises `UnreadableReplyError`.
    """
    from pydantic_ai.messages import ToolCallPart

    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    if len(calls) > 1:
        raise UnreadableReplyError(f"{len(calls)} tool calls instead of one")
    if calls:
        return read_arguments(calls[0], schema)
    text = _unfenced(without_thoughts(response.text or ""))
    try:
        return _validated(text, schema)
    except ValidationError as error:
        problem = str(first_problem(error))
    if (value := _value_within(text, schema, asked)) is not None:
        return value
    raise UnreadableReplyError(problem)


def read_arguments(call: ToolCallPart, schema: type[T]) -> T:
    """The arguments of a tool call as a value of the form, from their raw text: the library would accept repeated keys.
    Raises `UnreadableReplyError`."""
    try:
        return _validated(arguments_text(call), schema)
    except ValidationError as error:
        problem = str(first_problem(error))
    raise UnreadableReplyError(problem)


def text_with_calls(response: ModelResponse) -> str:
    """The text of a reply, followed by the arguments of its tool calls."""
    from pydantic_ai.messages import ToolCallPart

    calls = [arguments_text(part) for part in response.parts if isinstance(part, ToolCallPart)]
    return "\n".join(filter(None, [response.text or "", *calls])) if calls else response.text or ""


def arguments_text(call: ToolCallPart) -> str:
    """The raw arguments of a tool call, JSON or not."""
    return call.args if isinstance(call.args, str) else json.dumps(call.args or {}, ensure_ascii=False)


def _validated(text: str, schema: type[T]) -> T:
    """The value of a text that is JSON and nothing else. A repeated key is ambiguous: an `UnreadableReplyError`."""
    value = schema.model_validate_json(text)
    try:
        json.loads(text, object_pairs_hook=unique_keys)
    except JsonError as error:
        raise UnreadableReplyError(f"found {error.found}, expected each key once") from None
    except (ValueError, RecursionError):  # pydantic reads some texts that Python does not
        pass
    return value


def _value_within(text: str, schema: type[T], asked: Sequence[str]) -> T | None:
    """The only value of the form in a text, at its beginning or end; None without one, with several that differ, or if
    the question holds the same one (a quotation)."""
    found = _values_within(text, schema)
    if not found or any(value != found[0][2] for _, _, value in found):
        return None
    before, after = text[: found[0][0]].strip(_AROUND), text[found[-1][1] :].strip(_AROUND)
    if before not in {"", "json"} and after:
        return None
    value = found[0][2]
    return None if any(one == value for part in asked for _, _, one in _values_within(part, schema)) else value


def _values_within(text: str, schema: type[T]) -> list[tuple[int, int, T]]:
    """The values of a form in a text, each with its start and end; at most 50 braces are tried."""
    found: list[tuple[int, int, T]] = []
    decoder, position = json.JSONDecoder(), -1
    for _ in range(_MAX_OBJECTS):
        position = text.find("{", position + 1)
        if position < 0:
            break
        try:
            end = position + decoder.raw_decode(text[position : position + _MAX_CHARS])[1]
            found.append((position, end, _validated(text[position:end], schema)))
        except (ValueError, RecursionError, UnreadableReplyError):
            continue
        position = end - 1
    return found


def read_count(told: object) -> int | None:
    """A server's count of tokens: a whole number, also as a float or a text. None where it is none.

    >>> read_count(5), read_count(5.0), read_count("5"), read_count(-1), read_count(None)
    (5, 5, 5, None, None)
    """
    if isinstance(told, str) and told.isascii() and told.isdecimal():
        told = int(told[:12])
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told <= _MAX_TOKENS:
        return None
    return int(told) if told == int(told) else None


def is_measured(response: ModelResponse) -> bool:
    """Whether the counts of a response can be true. A server that counts nothing says 0: every request has tokens, and so
    has every reply that says something."""
    used = response.usage
    told = (used.input_tokens, used.output_tokens, used.cache_read_tokens)
    possible = all(0 <= count <= _MAX_TOKENS for count in told) and not used.unmeasured_requests
    return possible and used.input_tokens > 0 and (used.output_tokens > 0 or not response.parts)


def read_usage(
    response: ModelResponse, unpriced: set[str], priced: Callable[[Usage], Usage] = lambda one: one
) -> Usage:
    """Tokens and price of one request. The price is that of the library's (offline) list, else by `priced`; it is None
    where neither has one, and where a count is missing.

    `unpriced` collects models without a price, since the search for one is slow.
    """
    usage, model, cost = response.usage, response.model_name or "", None
    counts = [read_count(count) or 0 for count in (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)]
    told = Usage(requests=1, input_tokens=counts[0], output_tokens=counts[1], cached_tokens=counts[2])
    if not is_measured(response):
        return told
    if model and model not in unpriced:
        try:
            cost = float(response.cost().total_price)
        except LookupError:
            unpriced.add(model)
        except (ValueError, ArithmeticError):  # usage that no price fits
            cost = None
    known = cost is not None and math.isfinite(cost)
    return priced(told.model_copy(update={"cost_usd": cost if known else None}))


def read_tokens(response: ModelResponse) -> tuple[Token, ...]:
    """The tokens of a reply with their probabilities, in the form of OpenAI's protocols; empty without them. Raises
    `UnreadableReplyError` for another form, and for invalid probabilities."""
    from pydantic_ai.messages import TextPart

    texts = [part.provider_details for part in response.parts if isinstance(part, TextPart)]
    for details in (response.provider_details, *texts):
        said = (details or {}).get("logprobs")
        if isinstance(said, list):
            try:
                return tuple(_token(one) for one in said)
            except (ValueError, TypeError, LookupError, AttributeError):
                break
    else:
        return ()
    raise UnreadableReplyError("token probabilities that are none")


def _token(said: Mapping[str, Any]) -> Token:
    others = {_bytes(one): _chance(one) for one in said.get("top_logprobs") or ()}
    return Token(_bytes(said), {_bytes(said): _chance(said)} | others)


def _chance(said: Mapping[str, Any]) -> float:
    """A probability from 0 to 1; by rounding, servers may send one slightly above."""
    logprob = float(said["logprob"])
    if not logprob <= _ROUNDED:
        raise ValueError("not the logarithm of a probability")
    return min(1.0, math.exp(logprob))


def _bytes(said: Mapping[str, Any]) -> bytes:
    """The bytes of a token, which may end within a character; its text if the server lists no bytes."""
    told = said.get("bytes")
    return bytes(told) if told is not None else str(said["token"]).encode()


def _unfenced(text: str) -> str:
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        return text[3:-3].removeprefix("json").strip()
    return text
