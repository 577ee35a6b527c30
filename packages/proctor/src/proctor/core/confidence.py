"""How sure a system says it is of an answer."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from proctor.core.validation import FrozenModel

CONFIDENCE = "confidence"
"""The key of an answer's `extra` for its `Confidence`."""

ConfidenceSource = Literal["stated", "tokens", "recorded"]
"""Where a confidence is from: a number in the reply, the probabilities of the options' tokens, or a file."""


class Confidence(FrozenModel):
    """The probability, from 0 to 1, that an answer is right, as its system gives it; or why there is none: `missing`. A
    confidence that is missing is no number, also not a low one.

    >>> Confidence(source="stated", value=0.85).value
    0.85
    >>> Confidence(source="stated")
    Traceback (most recent call last):
    pydantic_core._pydantic_core.ValidationError: 1 validation error for Confidence
      Value error, a value, or the reason why there is none ...
    """

    source: ConfidenceSource
    value: float | None = Field(default=None, ge=0, le=1)
    missing: str = Field(default="", max_length=200)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.value is None) != bool(self.missing):
            raise ValueError("a value, or the reason why there is none")
        return self

    @property
    def public(self) -> Confidence:
        """The same without the words of the reply that the reason quotes, if it does: for others' files.

        >>> Confidence(source="stated", missing="no whole number: 'very sure of it'").public.missing
        'no whole number'
        """
        return self if self.value is not None else self.model_copy(update={"missing": self.missing.partition(":")[0]})
