"""The specification of a model: its name, servers, settings, time-outs and retries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, JsonValue, ValidationInfo, field_validator

from proctor.core import (
    RETRIES,
    TIMEOUT_S,
    ConfigurationError,
    FrozenModel,
    InputError,
    Usage,
    UsageError,
    looks_secret,
)

TRANSCRIPTION, WHISPER = "openai-transcription:", "faster-whisper:"
"""Prefixes of the names of speech recognisers."""

RESERVED = {
    "timeout": "the time-out of the specification",
    "request_timeout": "the time-out of the specification",
    "max_retries": "the retries of the specification",
    "extra_headers": "the provider's environment variables, since headers may hold keys",
}
"""Settings of the library that are not passed through, and their replacements."""


_MILLION = 1_000_000


class ModelSpec(FrozenModel):
    """A model and how to call it: plain JSON, without secrets (those come from the environment).

    `name` is `provider:model` (`openai:…`, `anthropic:…`, `google:…` and every other provider of pydantic-ai), or
    `transformers:PATH_OR_ID` for weights that run in this process; a speech recogniser is
    `openai-transcription:MODEL` (a server that speaks OpenAI's transcription protocol) or `faster-whisper:PATH`.
    `base_url` is the address of an OpenAI-compatible server (vLLM, SGLang, Ollama), where `name` may be the bare name
    of a model; `replicas` are further servers with the same model, among which calls are spread. `settings` are passed
    to the provider (temperature, max_tokens …).

    `timeout_s` limits one attempt, from connecting to the last byte. An infrastructure error is followed by up to
    `retries` attempts, after waiting `backoff_s` · 2ⁿ with full jitter drawn from `seed`, at most `max_wait_s`.
    `structured` is how a reply of a given form is requested: by the provider's JSON schema mode (`native`), by a tool
    call, or in words (`prompted`); `auto` takes the first that the model supports. `price` is that of a million input
    and a million output tokens in US dollars, for a model that the price list lacks; it changes no reply.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    name: str = Field(min_length=1)
    base_url: str | None = None
    replicas: tuple[str, ...] = ()
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    timeout_s: float = Field(default=TIMEOUT_S, gt=0)
    retries: int = Field(default=RETRIES, ge=0)
    backoff_s: float = Field(default=1.0, ge=0)
    max_wait_s: float = Field(default=60.0, ge=0)
    seed: int = 0
    structured: Literal["auto", "native", "tool", "prompted"] = "auto"
    price: tuple[float, float] | None = None

    def priced(self, usage: Usage) -> Usage:
        """The usage with its cost by `price`, if none is known; without tokens the cost stays unknown.

        >>> spec = ModelSpec(name="local", price=(0.5, 2.0))
        >>> spec.priced(Usage(requests=1, input_tokens=1_000_000, output_tokens=250_000)).cost_usd
        1.0
        >>> spec.priced(Usage(requests=1)).cost_usd is None
        True
        """
        if self.price is None or usage.cost_usd is not None or not usage.input_tokens + usage.output_tokens:
            return usage
        cost = (self.price[0] * usage.input_tokens + self.price[1] * usage.output_tokens) / _MILLION
        return usage.model_copy(update={"cost_usd": cost})

    @property
    def is_local(self) -> bool:
        """Whether the model runs in this process."""
        return self.name.startswith(("transformers:", WHISPER))

    @property
    def hears(self) -> bool:
        """Whether it is a speech recogniser: it takes one sound, and returns words with times."""
        return self.name.startswith((TRANSCRIPTION, WHISPER))

    @property
    def servers(self) -> tuple[str, ...]:
        """The address of each server; empty for the provider's own.

        >>> ModelSpec(name="m", base_url="http://a/v1", replicas=("http://b/v1/",)).servers
        ('http://a/v1', 'http://b/v1')
        """
        return () if self.base_url is None else (self.base_url, *self.replicas)

    def served_by(self, urls: Sequence[str]) -> ModelSpec:
        """The same model with further servers. Raises `ConfigurationError` for an invalid or repeated address."""
        return self if not urls else ModelSpec(**{**dict(self), "replicas": (*self.replicas, *urls)})

    @field_validator("replicas")
    @classmethod
    def _all_without_credentials(cls, urls: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        plain = tuple(str(cls._without_credentials(url)) for url in urls)
        known = [info.data.get("base_url"), *plain]
        if plain and (known[0] is None or len(set(known)) < len(known)):
            raise ConfigurationError(f"several servers are expected to be different ones, found {', '.join(plain)}")
        return plain

    @field_validator("base_url")
    @classmethod
    def _without_credentials(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            plain = "://" not in url and "@" not in url and "?" not in url  # it may hold a secret else
            meant = f": did you mean http://{url.lstrip('/')}?" if plain and url.strip("/") else ""
            raise ConfigurationError(f"a base URL is expected to start with http:// or https:// and a host{meant}")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ConfigurationError("a base URL holds no credentials and no query: put the key into the environment")
        return url.rstrip("/")

    @field_validator("price")
    @classmethod
    def _no_negative_price(cls, price: tuple[float, float] | None) -> tuple[float, float] | None:
        if price is not None and min(price) < 0:
            raise ConfigurationError(f"a price is expected to be 0 or more dollars, found {min(price):g}")
        return price

    @field_validator("settings")
    @classmethod
    def _without_secrets(cls, settings: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for key in _keys(settings):
            if key in RESERVED:
                raise ConfigurationError(f"the model setting {key!r} is not passed through: use {RESERVED[key]}")
            if looks_secret(key):
                raise ConfigurationError(f"the model setting {key!r} looks like a secret: put it into the environment")
        return settings


def parse_price(text: str) -> tuple[float, float]:
    """Dollars for a million input and a million output tokens, from INPUT/OUTPUT. Raises `UsageError`.

    >>> parse_price("0.15/0.60")
    (0.15, 0.6)
    """
    found = re.fullmatch(r"\s*\$?(\d{1,9}(?:\.\d+)?)\s*/\s*\$?(\d{1,9}(?:\.\d+)?)\s*", text, re.ASCII)
    if found is None:
        expected = "INPUT/OUTPUT in dollars for a million tokens, such as 0.15/0.60"
        raise UsageError(f"--price {repr(text)[:80]} can't be used: give {expected}.")
    return float(found[1]), float(found[2])


def parse_settings(pairs: Iterable[str], what: str = "model settings") -> dict[str, JsonValue]:
    """Settings from `key=value` texts (`what` names them in errors); a value is JSON if it is valid, else the text.

    Raises `InputError` for a text without `=`, and for a key that comes twice.

    >>> parse_settings(["temperature=0", "max_tokens=512", "service_tier=flex", 'stop_sequences=["END"]'])
    {'temperature': 0, 'max_tokens': 512, 'service_tier': 'flex', 'stop_sequences': ['END']}
    """
    settings: dict[str, JsonValue] = {}
    for pair in pairs:
        key, found, text = pair.partition("=")
        key = key.strip()
        if not found or not key:
            raise InputError(what, found=repr(key or pair), expected="key=value")
        if key in settings:
            raise InputError(what, found=f"{key!r} twice", expected="each key once")
        try:
            settings[key] = json.loads(text)
        except ValueError:
            settings[key] = text
    return settings


def _keys(value: JsonValue) -> Iterable[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)
