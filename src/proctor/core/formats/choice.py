"""One of several options, named by its letter."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import MAX_ANSWER_CHARS, StrictFormat

__all__ = ["ChoiceFormat", "option_letters"]

_LETTER = r"[\s:\-=*_`(\[\"'$]*(?:(?i:option|choice)\s+)?(?:\\boxed\{)?(?P<letter>[A-Z])(?![A-Za-z'’])"
_VERB = r"\W{0,3}(?:\s*\b(?:is|are|would\s+be)\b)?"
_LEAD = re.compile(rf"\A\W*(?i:answer)\b{_VERB}{_LETTER}")
_FINAL = re.compile(rf"\b(?i:final\s+answer|correct\s+answer)\b{_VERB}{_LETTER}")
_ANSWER = re.compile(rf"\b(?i:answer)\b{_VERB}{_LETTER}")
_OPTION = re.compile(rf"\b(?i:option|choice)\b{_VERB}{_LETTER}")
_ALONE = re.compile(r"^[\s*_`(\[\"'$]*(?:\\boxed\{)?(?P<letter>[A-Za-z])(?:[\s.,;):\]}*_`\"'$]|$)")
_SEVERAL = re.compile(r"^[\s*_`(\[\"']*([A-Z])[)*_`.]*\s*(?:or|and|,|/|&)\s*[*_`(]*([A-Z])(?![A-Za-z'’])")
_BARE_ARTICLE = re.compile(r"^[\s*_`(\[\"']*A\s+[a-z]")
_ANYWHERE = re.compile(r"(?<![A-Za-z0-9'’])\(?(?P<letter>[B-Z])[).:]?(?![A-Za-z0-9'’])|\((?P<paren>[A-Z])\)")


def option_letters(count: int) -> list[str]:
    """The letters A, B, C … for `count` options (at most 26).

    >>> option_letters(3)
    ['A', 'B', 'C']
    """
    if not 0 <= count <= 26:
        raise ValueError(f"options have letters, so there can be 0 to 26, not {count}")
    return [chr(ord("A") + index) for index in range(count)]


class ChoiceFormat(StrictFormat):
    """One option by its letter, in the order in which the item lists them.

    Reading goes from the surest sign to the weakest: "Answer: X" at the very start, as the instruction
    asks; a letter after "final answer", after "answer", at the start, after "option"; the whole text of one option; one lone letter anywhere. Two different options named
    with equal right are an error, not a guess. Strict: the letter, or the whole text of an option.

    >>> four = ["liver", "spleen", "left kidney", "aorta"]
    >>> ChoiceFormat().parse("**Answer: (C)** because of the cortex", four)
    'C'
    >>> ChoiceFormat().parse("It is the left kidney.", four)
    'C'
    """

    kind: Literal["choice"] = "choice"

    def instruction(self, options: Sequence[str] = ()) -> str:
        letters = option_letters(len(options))
        span = f"{letters[0]} to {letters[-1]}" if letters else "the options"
        if self.strict:
            return f"Reply with the letter of the right option ({span}) and nothing else."
        return f'Start your reply with "Answer: X", where X is the letter of the right option ({span}).'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        text = text[:MAX_ANSWER_CHARS]
        letters = set(option_letters(len(options)))
        if self.strict:
            return _bare(text, options)
        for reading in (
            _cued(_LEAD),
            _cued(_FINAL),
            _cued(_ANSWER),
            _by_start,
            _cued(_OPTION),
            _by_option_text,
            _by_lone_letter,
        ):
            found = reading(text, letters, options)
            if len(found) == 1:
                return found.pop()
            if len(found) > 1:
                raise ParseError(expected="one option", found=f"{' and '.join(sorted(found))} in {text}")
        raise ParseError(expected=f"one of the letters {', '.join(sorted(letters))}", found=text)

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        letters = option_letters(len(options))
        if isinstance(value, str) and value in letters:
            return value
        raise ParseError(expected=f"one of {', '.join(letters)}", found=str(value))


def _bare(text: str, options: Sequence[str]) -> str:
    said = " ".join(text.split()).casefold().removesuffix(".")
    for letter, option in zip(option_letters(len(options)), options, strict=True):
        whole = " ".join(option.split()).casefold().removesuffix(".")
        if said in {letter.casefold(), f"{letter.casefold()})", whole}:
            return letter
    raise ParseError(expected="one option's letter or text and nothing else", found=text)


def _cued(cue: re.Pattern[str]) -> Callable[[str, set[str], Sequence[str]], set[str]]:
    def reading(text: str, letters: set[str], options: Sequence[str]) -> set[str]:
        del options
        return {match["letter"] for match in cue.finditer(text)} & letters

    return reading


def _by_start(text: str, letters: set[str], options: Sequence[str]) -> set[str]:
    del options
    several = _SEVERAL.match(text)
    if several:
        return {several[1], several[2]} & letters
    if _BARE_ARTICLE.match(text):  # "A transverse sweep …" starts with an article, not with a letter
        return set()
    match = _ALONE.match(text)
    if match is None:
        return set()
    letter = match["letter"]
    whole = text.strip(" \t\n*_`()[]\"'.:$")
    if letter.islower() and len(whole) > 1 and not re.match(r"^[\W_]*[a-z][).:]", text):
        return set()
    return {letter.upper()} & letters


def _by_option_text(text: str, letters: set[str], options: Sequence[str]) -> set[str]:
    said = _plain(text)
    named = {
        letter
        for letter, option in zip(sorted(letters), options, strict=True)
        if _plain(option) and f" {_plain(option)} " in f" {said} "
    }
    # One option's text may contain another's: the longer one is what was said.
    texts = {letter: _plain(options[ord(letter) - ord("A")]) for letter in named}
    return {
        letter
        for letter in named
        if not any(letter != other and f" {texts[letter]} " in f" {texts[other]} " for other in named)
    }


def _by_lone_letter(text: str, letters: set[str], options: Sequence[str]) -> set[str]:
    del options
    return {match["letter"] or match["paren"] for match in _ANYWHERE.finditer(text)} & letters


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))
