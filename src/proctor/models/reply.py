"""From a response of the model library to a reply: text, a value of the form asked for, usage."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from proctor.core import JsonError, Usage, first_problem, unique_keys

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ToolCallPart

V_co = TypeVar("V_co", bound=BaseModel | None, covariant=True)
T = TypeVar("T", bound=BaseModel)

_AROUND = " \n\t`.*"
_MOST_OBJECTS = 50
_MOST_CHARS = 100_000
"""How many braces of a text are tried for a value of the form, and how long such a value may be."""

_MOST_TOKENS = 10**9
_ROUNDED = 1e-3


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a reply, and what could have stood in its place with which probability, itself included:
    those that the server lists, so that they need not add up to 1."""

    text: bytes
    chances: Mapping[bytes, float]


@dataclass(frozen=True)
class Reply(Generic[V_co]):
    """One reply. `value` is of the form that was asked for (None where none was), `usage` is what all
    requests for it consumed, `model` is what the server says it is.

    `finish_reason` is "stop", "length" (cut off: the text is what came until then), another word of the
    library's, or None where the server gave none. `tokens` make up the text where their probabilities
    were asked for by a setting (`openai_logprobs`) and the server gives them; else there are none. `not_reused` says why
    local weights can't take up what they computed of the pictures for another question.
    """

    text: str
    value: V_co
    usage: Usage
    finish_reason: str | None
    model: str
    tokens: tuple[Token, ...] = ()
    not_reused: str = ""

    @property
    def cut_off(self) -> bool:
        """Whether the limit of tokens ended it."""
        return self.finish_reason == "length"


class UnreadableReplyError(Exception):
    """The model's words are not of the form asked for; says in one line why."""


def read_value(response: ModelResponse, schema: type[T], asked: Sequence[str] = ()) -> T:
    """The value that a reply states, in a tool call or as its text.

    The text is JSON, at most inside one code fence; or it begins or ends with one JSON value of the form and holds no
    other, with words or a second fence beside it. Such a value is not taken where it stands in what was `asked`
    already: then it is a quotation, perhaps of the very answer that is judged. Raises `UnreadableReplyError`.
    """
    from pydantic_ai.messages import ToolCallPart

    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    if len(calls) > 1:
        raise UnreadableReplyError(f"{len(calls)} tool calls instead of one")
    if calls:
        return read_arguments(calls[0], schema)
    text = _unfenced(response.text or "")
    try:
        return _validated(text, schema)
    except ValidationError as error:
        problem = str(first_problem(error))
    if (value := _value_within(text, schema, asked)) is not None:
        return value
    raise UnreadableReplyError(problem)


def read_arguments(call: ToolCallPart, schema: type[T]) -> T:
    """The arguments of a tool call as a value of the form, read as they came: the library would keep the last of a key
    that stands there twice. Raises `UnreadableReplyError`."""
    try:
        return _validated(arguments_text(call), schema)
    except ValidationError as error:
        problem = str(first_problem(error))
    raise UnreadableReplyError(problem)


def arguments_text(call: ToolCallPart) -> str:
    """The arguments of a tool call as they came, JSON or not."""
    return call.args if isinstance(call.args, str) else json.dumps(call.args or {}, ensure_ascii=False)


def _validated(text: str, schema: type[T]) -> T:
    """The value of a text that is JSON and nothing else. A key given twice is an `UnreadableReplyError`: which of the
    two values is meant, nobody can say."""
    value = schema.model_validate_json(text)
    try:
        json.loads(text, object_pairs_hook=unique_keys)
    except JsonError as error:
        raise UnreadableReplyError(f"found {error.found}, expected each key once") from None
    except (ValueError, RecursionError):  # what pydantic reads and Python does not: nothing to object to
        pass
    return value


def _value_within(text: str, schema: type[T], asked: Sequence[str]) -> T | None:
    """The one value of the form with which a text begins or ends; None where there is none, where there are several
    that differ, or where what was asked holds the same one: then it is quoted from there."""
    found = _values_within(text, schema)
    if not found or any(value != found[0][2] for _, _, value in found):
        return None
    before, after = text[: found[0][0]].strip(_AROUND), text[found[-1][1] :].strip(_AROUND)
    if before not in {"", "json"} and after:
        return None
    value = found[0][2]
    return None if any(one == value for part in asked for _, _, one in _values_within(part, schema)) else value


def _values_within(text: str, schema: type[T]) -> list[tuple[int, int, T]]:
    """All values of a form that stand in a text, each with its start and end, as far as it is looked through."""
    found: list[tuple[int, int, T]] = []
    decoder, place = json.JSONDecoder(), -1
    for _ in range(_MOST_OBJECTS):
        place = text.find("{", place + 1)
        if place < 0:
            break
        try:
            end = place + decoder.raw_decode(text[place : place + _MOST_CHARS])[1]
            found.append((place, end, _validated(text[place:end], schema)))
        except (ValueError, RecursionError, UnreadableReplyError):
            continue
        place = end - 1
    return found


def read_usage(response: ModelResponse, unpriced: set[str]) -> Usage:
    """Tokens and price of one request; a price that the library's own (offline) list lacks is None.

    `unpriced` are the models that were looked for in vain before: the search costs more than the rest.
    """
    usage, model, cost = response.usage, response.model_name or "", None
    if model not in unpriced:
        try:
            cost = float(response.cost().total_price) if model else None
        except LookupError:
            unpriced.add(model)
        except (ValueError, ArithmeticError):  # usage that came incomplete, or that no price fits
            cost = None
    told = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
    if not all(0 <= count <= _MOST_TOKENS for count in told):  # no such request was made: nothing is known of it
        return Usage(requests=1)
    return Usage(
        requests=1,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        cost_usd=cost if cost is not None and math.isfinite(cost) else None,
    )


def read_tokens(response: ModelResponse) -> tuple[Token, ...]:
    """The tokens of a reply with their probabilities, as OpenAI's protocols give them; none where they did not come.
    Raises `UnreadableReplyError` where they came in another form, or with what is no probability."""
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
    others = {_bytes(one): _chance(one) for one in said["top_logprobs"] or ()}
    return Token(_bytes(said), {_bytes(said): _chance(said)} | others)


def _chance(said: Mapping[str, Any]) -> float:
    """A probability of 0 to 1; servers round, and may so be a little above."""
    logprob = float(said["logprob"])
    if not logprob <= _ROUNDED:
        raise ValueError("not the logarithm of a probability")
    return min(1.0, math.exp(logprob))


def _bytes(said: Mapping[str, Any]) -> bytes:
    """A token may end within a character; servers that list no bytes give its text."""
    return bytes(said["bytes"]) if said["bytes"] is not None else str(said["token"]).encode()


def _unfenced(text: str) -> str:
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        return text[3:-3].removeprefix("json").strip()
    return text
