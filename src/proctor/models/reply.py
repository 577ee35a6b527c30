"""From a response of the model library to a reply: text, a value of the form asked for, usage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from proctor.core import Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

__all__ = ["Reply", "Token", "UnreadableReplyError", "read_tokens", "read_usage", "read_value"]

V_co = TypeVar("V_co", bound=BaseModel | None, covariant=True)
T = TypeVar("T", bound=BaseModel)


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
    were asked for by a setting (`openai_logprobs`) and the server gives them; else there are none.
    """

    text: str
    value: V_co
    usage: Usage
    finish_reason: str | None
    model: str
    tokens: tuple[Token, ...] = ()

    @property
    def cut_off(self) -> bool:
        """Whether the limit of tokens ended it."""
        return self.finish_reason == "length"


class UnreadableReplyError(Exception):
    """The model's words are not of the form asked for; says in one line why."""


def read_value(response: ModelResponse, schema: type[T]) -> T:
    """The value that a reply states, in a tool call or as its whole text.

    The text is JSON and nothing else, at most inside one code fence: a JSON object somewhere in a prose
    text may be a quotation, of the very answer that is judged, and so is never taken for the reply.
    Raises `UnreadableReplyError`.
    """
    from pydantic_ai.messages import ToolCallPart

    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    if len(calls) > 1:
        raise UnreadableReplyError(f"{len(calls)} tool calls instead of one")
    text = calls[0].args_as_json_str() if calls else _unfenced(response.text or "")
    try:
        return schema.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step) for step in first["loc"])
    raise UnreadableReplyError(f"{place}: {first['msg']}" if place else first["msg"])


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
        except ValueError:  # usage that came incomplete, or that no price fits
            cost = None
    return Usage(
        requests=1,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        cost_usd=cost,
    )


def read_tokens(response: ModelResponse) -> tuple[Token, ...]:
    """The tokens of a reply with their probabilities, as OpenAI's protocols give them; none where they came
    in no form or another."""
    from pydantic_ai.messages import TextPart

    texts = [part.provider_details for part in response.parts if isinstance(part, TextPart)]
    for details in (response.provider_details, *texts):
        said = (details or {}).get("logprobs")
        if isinstance(said, list):
            return tuple(_token(one) for one in said)
    return ()


def _token(said: Mapping[str, Any]) -> Token:
    others = {_bytes(one): math.exp(one["logprob"]) for one in said["top_logprobs"]}
    return Token(_bytes(said), {_bytes(said): math.exp(said["logprob"])} | others)


def _bytes(said: Mapping[str, Any]) -> bytes:
    """A token may end within a character; servers that list no bytes give its text."""
    return bytes(said["bytes"]) if said["bytes"] is not None else str(said["token"]).encode()


def _unfenced(text: str) -> str:
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        return text[3:-3].removeprefix("json").strip()
    return text
