"""How replies end: one table of the words by which servers say it, for every protocol.

Every path that asks a model or reads recorded replies looks here: answers, judges, agents, builds, batch files and
imports. The table is closed: a word that is not in it is a fault (asked again, then `failed`), never an answer. A server
that invents a word for a reply that broke off must not get half a text counted; a new word for a whole reply costs an
entry here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

FINISH_REASON = "finish_reason"
"""The key of a server's own word: in replies, in the library's details of a response, and in an answer's `extra`."""
FAULT = "fault"
"""The key, in the library's details of a response, of what a server says of a fault beside its word."""

CUT_OFF = "the reply was cut off by the model's token limit (--settings max_tokens=…)"


class Ending(StrEnum):
    """What the end of a reply means."""

    FINISHED = "finished"
    CUT_OFF = "cut off"
    """By a limit on its length: the model's own end, and the same if asked again."""
    REFUSED = "refused"
    """By the model, or by a filter."""
    BROKEN = "broken"
    """By the server. What came is not the model's answer."""


_WORDS: dict[Ending, tuple[str, ...]] = {
    Ending.FINISHED: (
        "stop tool_call tool_calls function_call",  # OpenAI's chat, and all who speak it
        "completed",  # OpenAI's Responses
        "end_turn stop_sequence tool_use",  # Anthropic, Bedrock
        "complete",  # Cohere
        "eos eos_token stop_token end_of_text end_of_turn eot word",  # TGI, Together, AI21, llama.cpp
        "eos_found stop_string_found stop_string",  # LM Studio
        "end_id stop_words",  # TensorRT-LLM
        "finish finished done normal end",  # Titan, Ernie, gateways
    ),
    Ending.CUT_OFF: (
        "length max_tokens",  # OpenAI's chat, Anthropic, Google, Bedrock, Cohere
        "max_output_tokens max_completion_tokens max_new_tokens max_length",  # OpenAI's Responses, gateways
        "max_len max_context",  # xAI
        "model_context_window_exceeded context_window_exceeded",  # Anthropic, Bedrock, z.AI
        "model_length context_length context_length_exceeded",  # Mistral
        "limit token_limit token_limit_reached continuation",  # llama.cpp, watsonx, Google
        "max_predicted_tokens_reached context_length_reached",  # LM Studio
        "repetition repetition_truncation",  # vLLM, DeepSeek: a text that only repeated itself
    ),
    Ending.REFUSED: (
        "content_filter content_filtered guardrail_intervened",  # OpenAI, Azure, Bedrock
        "refusal refused",  # Anthropic
        "safety recitation blocklist prohibited_content spii language",  # Google
        "image_safety image_prohibited_content image_recitation model_armor blocked",  # Google
        "sensitive moderation content_policy content_policy_violation policy_violation",  # z.AI, Hunyuan, gateways
        "error_toxic toxic flagged",  # Cohere, gateways
    ),
    Ending.BROKEN: (
        "error abort aborted",  # OpenRouter, Mistral, Cohere, koboldcpp, vLLM, SGLang
        "network_error insufficient_system_resource engine_overloaded overloaded",  # z.AI, DeepSeek, Moonshot
        "server_error internal_error error_limit rate_limit",  # Cohere, gateways
        "timeout timed_out time_limit",  # TensorRT-LLM, watsonx, xAI
        "cancel cancelled canceled user_cancel interrupted disconnect",  # Responses, Cohere, gateways
        "failed incomplete in_progress queued not_finished steered max_messages",  # Responses, watsonx
        "pause_turn compaction",  # Anthropic: it expects to be asked to go on
        "load unload user_stopped model_unloaded",  # Ollama, LM Studio
        "malformed_function_call malformed_response unexpected_tool_call too_many_tool_calls",  # Google
        "missing_thought_signature no_image image_other",  # Google
        "malformed_model_output malformed_tool_use",  # Bedrock
        "other unknown unspecified invalid",  # Google, xAI, Vercel: these say nothing
    ),
}

_WHOSE = re.compile(r"^(finish|stop)?reason(?=.)")
_NONE = {"", "null", "none"}
"""Words that say nothing. A whole JSON reply with one of these counts as finished: several local servers never send a
reason, and a reply that broke off is no whole JSON. A stream without one broke off."""


def _plain(word: str) -> str:
    """A word without case, hyphens, and the name of its enumeration (`FinishReason.STOP`, `REASON_MAX_LEN`)."""
    return _WHOSE.sub("", re.sub(r"[\W_]+", "", word.rpartition(".")[2]).casefold())


_KNOWN = {_plain(word): ending for ending, lines in _WORDS.items() for line in lines for word in line.split()}


@lru_cache(maxsize=1024)
def read_ending(word: str) -> Ending | None:
    """What a word means; None for one that the table does not know.

    >>> read_ending("FinishReason.MAX_TOKENS"), read_ending("end-turn"), read_ending("nap") is None
    (<Ending.CUT_OFF: 'cut off'>, <Ending.FINISHED: 'finished'>, True)
    """
    return _KNOWN.get(_plain(word))


def said_word(told: object) -> str:
    """A server's word, "" where it says nothing. Raises `ValueError` for what is no word at all."""
    if told is None or (isinstance(told, str) and told.strip().casefold() in _NONE):
        return ""
    if not isinstance(told, str):
        raise ValueError(f"finish_reason: found {str(told)[:60]!r}, expected a word")
    return told.strip()


@dataclass(frozen=True, slots=True)
class End:
    """How one reply ended: the `ending` (None: by an unknown word), the server's `word` ("" without one), and
    what it `told` about an error."""

    ending: Ending | None
    word: str = ""
    told: str = ""

    @property
    def fault(self) -> str:
        """Why the reply is no answer, in one line; "" for one that is."""
        if self.ending not in {Ending.BROKEN, None}:
            return ""
        shown = repr(self.word[:60]) if self.word else ""
        beside = ": ".join(part for part in (shown, self.told) if part)
        what = "the reply broke off" if self.ending else "the reply ended for an unknown reason"
        return what + (f" ({beside})" if beside else "")


def end_of(response: ModelResponse) -> End:
    """How a response of the model library ended. The server's own word decides; the library's where the table does not
    know it. Without any, the reply broke off."""
    details = response.provider_details or {}
    word, ours = str(details.get(FINISH_REASON) or ""), response.finish_reason or ""
    known, mapped = read_ending(word), read_ending(ours)
    if told := details.get(FAULT):
        return End(Ending.BROKEN, word, str(told))
    if known not in {None, Ending.FINISHED}:
        return End(known, word)
    if mapped is not None:
        # A word beside the key is the server's, also "" for none; without the key, only the library's is known.
        return End(mapped, word if FINISH_REASON in details and (known or not word) else ours)
    return End(known, word) if word else End(Ending.BROKEN)


def end_of_body(body: Mapping[str, Any]) -> End:
    """How a reply ended that is recorded as JSON, by OpenAI's chat or Responses protocol. Raises `ValueError` where it
    says so by something that is no word."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    if choice is None:
        why = body.get("incomplete_details")
        word = said_word(why.get("reason") if isinstance(why, dict) and why.get("reason") else body.get("status"))
        error = None
    else:
        word, error = choice_word(choice), choice.get("error")
    if error := error or body.get("error"):
        told = error.get("message") or error.get("code") or error if isinstance(error, dict) else error
        return End(Ending.BROKEN, word, str(told))
    return End(read_ending(word) if word else Ending.FINISHED, word)


def choice_word(choice: Mapping[str, Any]) -> str:
    """The word of a choice of OpenAI's chat protocol. Gateways translate the word of the server behind them, often to
    "stop", and keep its own: where that one means that the reply is not whole, it counts. Raises `ValueError`."""
    word = said_word(choice.get(FINISH_REASON))
    for native in _native_words(choice):
        if read_ending(native) not in {None, Ending.FINISHED} and read_ending(word) in {None, Ending.FINISHED}:
            return native
    return word


def _native_words(choice: Mapping[str, Any]) -> Iterator[str]:
    beside = choice.get("provider_specific_fields")
    for holder in (choice, beside if isinstance(beside, dict) else {}):
        if isinstance(native := holder.get("native_finish_reason"), str):
            yield native
