"""Keeps secrets out of every text that leaves this room: messages, records, logs.

A server may repeat the key that it was sent, so its words are cleaned before they become ours.
"""

from __future__ import annotations

import os
import re

__all__ = ["looks_secret", "one_line"]

_SECRET_NAME = re.compile(r"(api[_-]?key|secret|passw|authorization|credential|bearer)", re.IGNORECASE)
_SECRET_VARIABLE = re.compile(r"(KEY|TOKEN|SECRET|PASSW|CREDENTIAL)", re.IGNORECASE)
_SECRET_SHAPE = re.compile(
    r"(?i:bearer\s+)\S+"  # a whole header
    r"|\b(?:sk|pk|rk|key|gsk|xai|hf)[-_][A-Za-z0-9_*\-]{6,}"  # prefixes that providers use
    r"|\bAIza[A-Za-z0-9_\-]{10,}"
    r"|(?<=://)[^/\s@]+@"  # user:password@host
)
_DATA_URI = re.compile(r"data:[\w/+.-]+;base64,[A-Za-z0-9+/=]*")
_MAX_CHARS = 240
_READ_CHARS = 100_000  # a body of megabytes says no more in its one line than its beginning


def looks_secret(name: str) -> bool:
    """Whether a setting of this name would hold a secret.

    >>> looks_secret("api_key"), looks_secret("max_tokens")
    (True, False)
    """
    return bool(_SECRET_NAME.search(name))


def one_line(text: str) -> str:
    """The text in one line of at most 240 characters, without secrets and without pictures.

    What counts as a secret: the value of every environment variable that is named like one, and what has
    the shape of a provider's key.

    >>> one_line("Incorrect API key provided: sk-abcdef1234567890.")
    'Incorrect API key provided: ***.'
    """
    for name, value in os.environ.items():
        if len(value) >= 6 and _SECRET_VARIABLE.search(name):
            text = text.replace(value, "***")
    text = text[:_READ_CHARS]
    text = _SECRET_SHAPE.sub("***", _DATA_URI.sub("(a picture)", text))
    text = " ".join(text.split())
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"
