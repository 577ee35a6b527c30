"""Questions to local weights, and their replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Choices:
    """How tokens are chosen: the most likely one at temperature 0, else sampled with a seed."""

    max_tokens: int
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int = 0
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clip:
    """A video as frames (JPEG), each at its time in seconds."""

    jpegs: tuple[bytes, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class FixedForm:
    """A text with slots to fill in, each with one of its options; there is one more of the `texts` than slots.

    >>> FixedForm(('{"overall": ', "}"), (("0", "1", "2"),)).filled(["2"])
    '{"overall": 2}'
    """

    texts: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]

    def filled(self, chosen: Sequence[str]) -> str:
        """The text with an option in each slot."""
        return self.texts[0] + "".join(one + text for one, text in zip(chosen, self.texts[1:], strict=True))


@dataclass(frozen=True)
class Query:
    """One question: the system message, and texts, pictures (JPEG) and clips in order. With a form, the reply is the
    filled form."""

    system: str
    parts: tuple[str | bytes | Clip, ...]
    choices: Choices
    form: FixedForm | None = None

    @property
    def pictures(self) -> list[bytes]:
        return [part for part in self.parts if isinstance(part, bytes)]

    @property
    def clips(self) -> list[Clip]:
        return [part for part in self.parts if isinstance(part, Clip)]


@dataclass(frozen=True)
class GeneratedText:
    """One reply; `cut_off`: the token limit ended it. For a filled form, `chances` are the probabilities of the options
    of each slot (the rest to 1 is on other tokens). `cached_tokens` of the input were computed for another question,
    or none for the reason `not_reused`."""

    text: str
    input_tokens: int
    output_tokens: int
    cut_off: bool
    chances: tuple[Mapping[str, float], ...] = ()
    cached_tokens: int = 0
    not_reused: str = ""
