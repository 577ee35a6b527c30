"""Keys, passwords and tokens of this process, hidden in texts that come from outside: one scrubber, for everything that is
stored, printed or exported.

A server may repeat the key that it was sent: in an answer, in its name for the model, in an error. What is published
later must not hold it in any form that somebody could turn back into the key.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import TypeVar, cast
from urllib.parse import quote, urlsplit

HIDDEN = "***"
"""What is written instead of a secret."""

_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|_PASS$|CREDENTIAL", re.IGNORECASE)
_ADDRESS = re.compile(r"(URL|URI|DSN|PROXY|ENDPOINT|STORE|DATABASE)$", re.IGNORECASE)
_NO_SECRET = re.compile(r"(PATH|FILE|DIR|FOLDER|HOME|HOST|SOCK|PARALLELISM)$", re.IGNORECASE)
_SHAPE = re.compile(
    r"(?i:bearer\s+)\S+"  # a whole header
    r"|\b(?:sk|pk|rk|key|gsk|xai|hf)[-_][A-Za-z0-9_*\-]{6,}"  # prefixes that providers use
    r"|\bAIza[A-Za-z0-9_\-]{10,}"
    r"|(?<=://)[^/\s@]+@"  # user:password@host
)
_BESIDE = re.compile(r"[\W_]+")
"""What may stand between the letters of a secret, and is left out before one is searched for."""

_SHORTEST_TOLD = 6
_SHORTEST = 8
_PIECE = 12
"""Letters and digits: of the shortest secret that is looked for in messages and in all texts, and of the shortest piece
of one that is hidden."""
_WORDS = 16
"""Words without digits in one case are a secret only from this length on: `not-needed`, for a server that needs no key,
may stand in any answer."""
_ASCII = dict.fromkeys(code for code in range(128) if not chr(code).isalnum())
_WRITTEN = ("{:02x}", "x{:02x}", "0x{:02x}", "u{:04x}", "{:d}", "{:03d}", "{:03o}")
"""Bytes in hexadecimal (also percent-encoded), as entities, in escapes of programming languages, and as numbers."""

T = TypeVar("T")


class Scrubber:
    """Hides secrets in texts: as they are, in other case, with anything but letters and digits between their letters,
    reversed, in hexadecimal, base64 (also as a part of a longer text), percent-encoded, as HTML entities or escapes, and
    pieces of 12 letters or digits of any of these.

    Not looked for, since other texts may hold them: secrets of fewer than 8 letters and digits, of fewer than 12 digits
    alone, and words of fewer than 16 letters in one case.

    >>> hide = Scrubber(["sk-proj-7hQ2mZ9xLw41"])
    >>> hide.text("your key is SK-PROJ-7HQ2MZ9XLW41."), hide.text("encoded: c2stcHJvai03aFEybVo5eEx3NDE=")
    ('your key is ***.', 'encoded: ***E=')
    >>> hide.text("Answer: A")
    'Answer: A'
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        wanted = sorted({(form, least) for secret in secrets for form, least in _forms(secret)})
        self._shortest = min((least for _, least in wanted), default=0)
        self._seeds: dict[str, list[tuple[str, int, int]]] = {}
        for form, least in wanted:
            # A piece of `least` characters, wherever it begins, holds one of these whole.
            size = (least + 1) // 2
            for start in range(0, len(form) - size + 1, size):
                self._seeds.setdefault(form[start : start + size], []).append((form, start, least))

    def text(self, text: str) -> str:
        """The text without secrets; the same object if it holds none."""
        if not self._seeds or len(text) < self._shortest:
            return text
        plain = _plain(text)
        if len(plain) < self._shortest:
            return text
        found = [seed for seed in self._seeds if seed in plain]
        spans = sorted({span for seed in found for span in self._spans(plain, seed)})
        return _without(text, spans) if spans else text

    def value(self, value: T) -> T:
        """A JSON value without secrets in its texts and keys."""
        if not self._seeds:
            return value
        return cast("T", self._value(value))

    def _value(self, value: object) -> object:
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(key): self._value(part) for key, part in value.items()}
            case list():
                return [self._value(part) for part in value]
        return value

    def _spans(self, plain: str, seed: str) -> Iterator[tuple[int, int]]:
        """Where pieces of secrets stand that hold a seed."""
        for form, start, least in self._seeds[seed]:
            position = plain.find(seed)
            while position >= 0:
                before = after = 0
                while before < min(start, position) and plain[position - before - 1] == form[start - before - 1]:
                    before += 1
                end, last = position + len(seed), start + len(seed)
                while (
                    end + after < len(plain) and last + after < len(form) and plain[end + after] == form[last + after]
                ):
                    after += 1
                if before + len(seed) + after >= least:
                    yield position - before, end + after
                position = plain.find(seed, position + 1)


def _plain(text: str) -> str:
    """The letters and digits of a text, in one case."""
    return (text.translate(_ASCII) if text.isascii() else _BESIDE.sub("", text)).casefold()


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """The text without what stands at these positions of its letters and digits."""
    positions = [
        position for position, letter in enumerate(text) if not _BESIDE.match(letter) for _ in letter.casefold()
    ]
    parts: list[str] = []
    done = 0
    for start, end in spans:
        first, last = positions[start], positions[end - 1] + 1
        if last > done:
            parts += [text[done:first], HIDDEN] if first >= done and (first > done or not parts) else []
            done = last
    return "".join([*parts, text[done:]])


def _forms(secret: str) -> Iterator[tuple[str, int]]:
    """The forms of a secret, letters and digits alone, each with the length of the shortest piece to hide."""
    plain, raw = _plain(secret), secret.encode(errors="surrogatepass")
    words = plain.isalpha() and (secret.islower() or secret.isupper() or secret.istitle())
    if len(plain) < (_WORDS if words else _PIECE if plain.isdecimal() else _SHORTEST):
        return
    whole = words or plain.isdecimal() or (plain.isalpha() and len(plain) < _WORDS)
    least = len(plain) if whole else min(_PIECE, max(_SHORTEST, len(plain) - 4))
    for form in (plain, plain[::-1], _plain(quote(secret, safe="")), _plain(escape(secret))):
        yield form, least
    count = min(len(raw), least)
    for write in _WRITTEN:
        yield "".join(map(write.format, raw)), sum(len(write.format(byte)) for byte in raw[:count])
        yield _plain("".join(one if one.isalnum() else write.format(ord(one)) for one in secret)), least
    for offset in range(3):
        encoded = b64encode(bytes(offset) + raw).decode().rstrip("=")
        # The first and last characters depend on what stands beside the secret, too.
        form = _plain(encoded[(0, 2, 3)[offset] : len(encoded) - ((offset + len(raw)) % 3 > 0)])
        yield form, min(len(form), count * 4 // 3)


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables that are named like a secret, and passwords in the addresses of others. Paths are none.

    >>> secrets_in({"OPENAI_API_KEY": "abc123def456", "PATH": "/bin", "PROXY": "http://me:pa55word@host"})
    ('abc123def456', 'pa55word')
    """
    found = []
    for name in environment:
        if _ADDRESS.search(name):
            found.append(_password(environment[name]))
        elif _NAME.search(name) and not _NO_SECRET.search(name) and not _is_path(environment[name]):
            found.append(environment[name])
    return tuple(filter(None, found))


def _is_path(value: str) -> bool:
    return value.startswith(("/", "~", "./")) and os.path.exists(value)  # noqa: PTH110 (a value may be no path at all)


def _password(address: str) -> str:
    try:
        return urlsplit(address).password or ""
    except ValueError:
        return ""


@lru_cache(maxsize=8)
def _scrubber(secrets: tuple[str, ...]) -> Scrubber:
    return Scrubber(secrets)


def environment_scrubber() -> Scrubber:
    """The scrubber for the secrets in the environment of this process, as it is now. Take it once for many texts.

    >>> environment_scrubber().text("Answer: A")
    'Answer: A'
    """
    return _scrubber(secrets_in(os.environ))


def without_keys(text: str) -> str:
    """The text without the environment's secrets (whole ones of 6 characters or more, also words), and without anything
    in the form of a provider's key: for messages, of which nothing but words is lost.

    >>> without_keys("Incorrect API key provided: sk-abcdef1234567890.")
    'Incorrect API key provided: ***.'
    """
    for secret in secrets_in(os.environ):
        text = text.replace(secret, HIDDEN) if len(secret) >= _SHORTEST_TOLD else text
    return _SHAPE.sub(HIDDEN, environment_scrubber().text(text))
