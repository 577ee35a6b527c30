"""Answer formats for sets of options, and for short texts with several accepted wordings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, alone, listed, plain_words
from proctor.core.formats.choice import (
    calls_right,
    calls_wrong,
    cell_letter,
    is_article,
    letter_span,
    listed_options,
    named_by_text,
    option_letters,
)
from proctor.core.formats.declarations import first_sentence
from proctor.core.formats.reply import Statement, gives_up, read_reply
from proctor.core.formats.thoughts import without_thoughts
from proctor.core.text import deferred
from proctor.core.tokenizer import tokens, without_joiners

_NAME = (
    r"(?i:(?:(?:the\s)?(?:correct\s|right\s)?(?:options?|choices?|letters?|answers?|statements?|both|all of|only"
    r"|选项?|選項?)\b(?:\s(?:are|is)\b)?[ \t]?:?[ \t]{0,2}){0,2})"
)
_OPEN = r"[ \t*_`(\[{\"'<#:]{0,6}"
_CLOSE = r"[)\]}>*\"'.]{0,4}"
_JOINT = r"(?:,[ \t]?(?:and[ \t]|&[ \t]?)?|;|/|\+|&|\b(?:and|und|et|y|e)\b|\bas well as\b|\bplus\b|[ \t]|和|与|及|以及|と|,){1,2}"
_FIRST = deferred(
    rf"{_OPEN}(?i:(?:i (?:think|believe)|it(?:'s| is)|they are|these are|those are|probably|likely|is|are"
    rf"|be)\b[\s,:]{{0,3}}){{0,3}}{_OPEN}{_NAME}{_OPEN}"
    rf"(?P<letter>[A-Z])(?P<more>(?:{_CLOSE}[ \t]{{0,2}}{_JOINT}[ "
    rf"\t]{{0,2}}{_NAME}{_OPEN}(?:[A-Z])(?![A-Za-z0-9'_-])){{0,25}})"
    rf"{_CLOSE}(?![A-Za-z0-9'_]|-[a-z])"
)
_LETTERS = deferred(r"(?<![A-Za-z])[A-Z](?![A-Za-z])")
_JOINED = deferred(r"[\s*(\[\"']{0,4}(?P<letters>[A-Z]{2,26})[\s*)\]\"'.]{0,4}(?=$|[\s,;:])")
_OR = deferred(r"[)\]}>*.\"'\s]{0,4},?\s?(?:\bor\b|\band/or\b|或者?|\boder\b)", re.IGNORECASE)
_EXCEPT = deferred(
    r"\W*(?i:everything|all(?: of)?(?: them| the options| options| the above)?) (?i:except|but)(?i: for)? "
    r"(?P<letters>[A-Z](?:(?:,| and|, and) ?[A-Z])*)\W*"
)
_MAYBE = deferred(r"[\s,;(]{0,4}\b(?:maybe|perhaps|possibly|and maybe|and possibly)\b", re.IGNORECASE)
_WRONG = deferred(
    r"\s?(?:is|are|can be|were|was)(?:n't|\s(?:\w+\s)?(?:not|wrong|incorrect|false|ruled|excluded|eliminated"
    r"|unlikely))\b",
    re.IGNORECASE,
)
_NOT_BEFORE = deferred(r"\b(?:not|except|all but|excluding|neither|nor|none of)\b", re.IGNORECASE)
_LINE = deferred(r"^\W{0,4}(?:\d{1,2}[.)]\s{1,3})?(?:option\s)?(?P<letter>[A-Z])(?:[.):]|\s?-|$)", re.MULTILINE)
_ALL = deferred(
    r"\W*(?:all(?: of)?(?: the| these| them)?(?: above| options| choices| answers| statements| of the above)?|全部"
    r"|以上都是|都对)(?: (?:are|apply|is)(?: (?:correct|right|true))?)?\W*",
    re.IGNORECASE,
)
_KEYS = ("letters", "choices", "options", "selected_options", "selected", "selection", "labels", "answers", "correct_options", "letter", "choice", "option")  # fmt: skip


def _all_but(text: str, known: Sequence[str]) -> list[str]:
    """The letters that "all except B" leaves; none if it says no such thing, or excepts no letter or all."""
    rest = _EXCEPT.fullmatch(first_sentence(text))
    left = [letter for letter in known if rest and letter not in rest["letters"]]
    return left if len(left) < len(known) else []


class ChoicesFormat(StrictFormat):
    """The set of all right options (at least one), by letters in the order of the item's options.

    Right if the sets are equal. If any one of several options is right, use `choice` with several accepted answers
    instead. "A or C" is invalid. Strict: only the letters or the options' texts, separated by commas.

    >>> four = ["liver", "spleen", "left kidney", "aorta"]
    >>> ChoicesFormat().parse("Answer: A and C, since both are seen", four)
    ['A', 'C']
    >>> ChoicesFormat().parse("The liver and the aorta.", four)
    ['A', 'D']
    """

    kind: Literal["choices"] = "choices"

    def instruction(self, options: Sequence[str] = ()) -> str:
        span = letter_span(options)
        if self.strict:
            return f"Reply with the letters of all right options ({span}), separated by commas, and nothing else."
        return f'Start your reply with "Answer: " and the letters of all right options ({span}), separated by commas.'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        if self.strict:
            return self.from_cell(alone(text), options)
        known = option_letters(len(options))
        plain = without_thoughts(text)
        lines = self._lines(plain, known, only=True)
        judged = any(calls_right(part) or calls_wrong(part) for part in listed_options(plain, options))
        if len(lines) > 1 and not judged:
            return self.check(lines, options)
        letters = ", ".join(known)
        return read_reply(
            text, partial(self._read, options=options), expected=f"some of the letters {letters}", keys=_KEYS
        )

    def _read(self, statement: Statement, options: Sequence[str]) -> JsonValue:
        if isinstance(statement.value, list):
            return self._of_list(statement.value, options)
        if isinstance(statement.value, dict):
            return None
        text = statement.text
        known = option_letters(len(options))
        if _ALL.fullmatch(first_sentence(text)):
            return [*known]
        if parts := listed_options(text, options):
            right = [letter for letter, part in zip(known, parts, strict=True) if calls_right(part)]
            told = len(right) + sum(map(calls_wrong, parts)) == len(parts)
            return self.check([*right], options) if right and told else None
        if left := _all_but(text, known):
            return [*left]
        for found in (self._head(text, options), self._lines(text, known)):
            if found:
                return self.check(found, options)
        part = first_sentence(text) if statement.sure else text
        if _OR.search(part) and not any(_OR.search(option) for option in options):
            raise ParseError(expected="options without alternatives", found=text)
        named = named_by_text(statement, options)
        return self.check([*sorted(named)], options) if named else None

    def _of_list(self, value: list[JsonValue], options: Sequence[str]) -> JsonValue:
        try:
            return self.check([*sorted({cell_letter(str(one), options) for one in value})], options)
        except ParseError:
            return None

    def _head(self, text: str, options: Sequence[str]) -> list[JsonValue]:
        """The letters at the start of a statement. Raises `ParseError` for alternatives and unknown letters."""
        known = option_letters(len(options))
        joined = _JOINED.match(text)
        if (
            joined
            and set(joined["letters"]) <= set(known)
            and list(joined["letters"]) == sorted(set(joined["letters"]))
        ):
            return [*joined["letters"]]
        hit = _FIRST.match(text)
        if hit is None:
            return []
        letters = [hit["letter"], *_LETTERS.findall(hit["more"])]
        rest = text[hit.end() :]
        if is_article(letters[-1], rest, options) and not re.match(r"\s(?:are|both|show)\b", rest):
            letters = letters[:-1]  # "A transverse sweep"
        elif len(letters) == 1 and named_by_text(Statement(f"{letters[0]}{rest}"), options) > {letters[0]}:
            return []  # "A liver and a spleen": options by their texts
        if _WRONG.match(rest):  # "A, C; B and D are wrong"
            before = re.split(r"[;(]", text, maxsplit=1)[0]
            return self._head(before, options) if len(before) < len(text) else []
        if (_OR.match(text, hit.end()) or _MAYBE.match(rest)) and letters:
            raise ParseError(expected="options without alternatives", found=text)
        if len(letters) == 1 and self._lines(text, known)[1:]:
            return []  # a list of lines, see `_lines`
        return [*sorted(set(letters))] if set(letters) <= set(known) else []

    def _lines(self, text: str, known: Sequence[str], *, only: bool = False) -> list[JsonValue]:
        """The letters at the start of the lines of a list; `only`: of all lines of a text."""
        block = text.split("\n\n", 1)[0]
        lines = [line for line in block.split("\n") if line.strip()]
        hits = [_LINE.match(line) for line in lines]
        letters = [hit["letter"] for hit in takewhile(bool, hits) if hit]
        ends = len(letters) == len(lines) or (not only and len(letters) > 1 and not any(hits[len(letters) :]))
        whole = ends and set(letters) <= set(known) and not _NOT_BEFORE.search(block)
        return [*sorted(set(letters))] if whole else []

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        letters = option_letters(len(options))
        given = value if isinstance(value, list) else []
        if given and all(isinstance(one, str) and one in letters for one in given):
            return [str(one) for one in sorted({str(one) for one in given})]
        raise ParseError(expected=f"a list of some of {', '.join(letters)}", found=str(value))

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse the letters or texts of all right options, separated by commas or semicolons."""
        letters = plain_words(text).upper()
        parts = [*letters] if set(letters) <= set(option_letters(len(options))) else listed(text)
        try:
            return self.check([*sorted({cell_letter(part, options) for part in parts})], options)
        except ParseError:
            return self.check([cell_letter(text, options)], options)  # one option whose text has a comma

    def write(self, value: JsonValue) -> str:
        """The letters, separated by commas."""
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """The Jaccard distance, 0 to 1."""
        return 1 - jaccard(reference, prediction)

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """The number of right sets divided by that of nonempty sets, 2ⁿ − 1 for n options."""
        right = {tuple(map(str, one)) for one in accepted if isinstance(one, list)}
        return len(right) / (2 ** len(options) - 1) if right and options else None


def jaccard(reference: JsonValue, prediction: JsonValue) -> float:
    """The Jaccard index of two lists; 1 if both are empty.

    >>> jaccard(["A", "C"], ["A", "B"])
    0.3333333333333333
    """
    a = set(map(str, reference)) if isinstance(reference, list) else set()
    b = set(map(str, prediction)) if isinstance(prediction, list) else set()
    return len(a & b) / len(a | b) if a | b else 1.0


_REASON = deferred(
    r",?\s(?:because|since|as (?:it|the|there|this|seen|shown)|due to|given that|based on|which|visible (?:in|at|as)"
    r"|seen (?:in|at|as))\b|\s[-(]\s?(?=[a-z])|\s\("
)
_LEAD = deferred(
    r"(?:(?:(?:it|this|that|these|those|they)(?:'s|\s(?:is|are|was|were|looks like|appears to be|seems to be|would be"
    r"|must be))|(?:i (?:think|believe|see)(?: (?:it is|it's|that it is|this is))?)"
    r"|(?:the )?(?:structure|organ|instrument|name|object|vessel|device)(?: shown| seen| visible)? is|most likely"
    r"|probably|likely|definitely|clearly)\s(?:called |named )?)+",
    re.IGNORECASE,
)
_UNSURE = deferred(r"\b(?:or|either|maybe|perhaps|possibly|might be|could be|not)\b|\?|或", re.IGNORECASE)
_GIVES_UP = deferred(
    r"(?:unknown|unclear|unsure|no idea|undetermined|indeterminate|not sure|未知|不知道)", re.IGNORECASE
)
_NOT_APPLICABLE = deferred(r"n/a", re.IGNORECASE)
_ARTICLES = deferred(r"\b(?:a|an|the)\b")
_EDGES = " \t\n.,;:!?()[]{}\"'*`“”"
_MOST_WORDS = 12  # of a reply without a cue that is the whole answer


class ShortTextFormat(StrictFormat):
    """A name or a few words, right if it equals an accepted text up to case, punctuation, articles and whitespace (the
    normalisation of SQuAD: Rajpurkar et al. 2016, EMNLP, 2383). Use `free_text` with a judge if other wordings may be
    right. Alternatives ("liver or spleen") and more than `max_chars` characters are invalid. Strict: the whole text,
    without normalisation.

    >>> ShortTextFormat().parse("It is the left kidney, because of its thin cortex.")
    'the left kidney'
    >>> ShortTextFormat().match("Left kidney", "the left kidney")
    True
    """

    kind: Literal["short_text"] = "short_text"
    max_chars: int = Field(default=80, gt=0, le=1000)

    def instruction(self, options: Sequence[str] = ()) -> str:
        del options
        if self.strict:
            return f"Reply with a name or a few words (at most {self.max_chars} characters) and nothing else."
        return f'Start your reply with "Answer: " and a name or a few words (at most {self.max_chars} characters).'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        if self.strict:
            return self.check(alone(text), options)
        return read_reply(
            text, self._read, expected="a name or a few words", keys=("name", "text", "term", "label"), any_text=True
        )

    def _read(self, statement: Statement) -> JsonValue:
        if isinstance(statement.value, dict) or (isinstance(statement.value, list) and len(statement.value) != 1):
            return None
        line = first_sentence(statement.text)
        if not statement.sure and (
            len(line.split()) > _MOST_WORDS or statement.text.strip().rstrip(".") != line.strip().rstrip(".")
        ):
            return None
        said = _LEAD.sub("", line.strip(_EDGES), count=1) if _LEAD.match(line.strip(_EDGES)) else line
        cut = _REASON.search(said)
        said = (said[: cut.start()] if cut else said).strip(_EDGES)
        if _NOT_APPLICABLE.fullmatch(said):
            return said  # the only answer where nothing applies
        if not said or _GIVES_UP.fullmatch(said) or gives_up(said) or line.rstrip().endswith(":"):
            return None
        if _UNSURE.search(said) or len(said) > self.max_chars or not normalised(said):
            raise ParseError(expected="one name or a few words", found=statement.text)
        return said

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        del options
        if isinstance(value, str) and normalised(value) and len(value.strip()) <= self.max_chars:
            return value.strip()
        raise ParseError(expected=f"a text of 1 to {self.max_chars} characters", found=str(value))

    any_text: ClassVar[bool] = True

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """The text; accepted wordings are separated by bars."""
        return self.check(text, options)

    def match(self, reference: JsonValue, prediction: JsonValue) -> bool:
        if self.strict:
            return reference == prediction
        return normalised(str(reference)) == normalised(str(prediction))

    def distance(self, reference: JsonValue, prediction: JsonValue) -> float | None:
        """1 − the F1 of common words (SQuAD); Chinese, Japanese, Thai, Lao, Burmese and Khmer by character (as MLQA)."""
        return 1 - word_f1(str(reference), str(prediction))

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """None: texts can't be drawn at random."""
        del accepted, options
        return None


def normalised(text: str) -> str:
    """Text normalised for case, punctuation, articles and whitespace.

    >>> normalised(" The left-kidney.")
    'left kidney'
    """
    plain = without_joiners(unicodedata.normalize("NFKC", text).casefold())
    plain = "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in plain)
    short = " ".join(_ARTICLES.sub(" ", plain).split())
    return short or " ".join(plain.split())


def word_f1(reference: str, prediction: str) -> float:
    """The F1 of common words, counted with multiplicity, after `normalised` (SQuAD). Scripts without spaces between
    words are read by character, as in CMRC 2018 and MLQA (Chinese) and JaQuAD (Japanese).

    >>> word_f1("the left kidney", "kidney"), word_f1("左侧肾脏", "左肾")
    (0.6666666666666666, 0.6666666666666666)
    """
    from collections import Counter

    keys, words = Counter(tokens(normalised(reference))), Counter(tokens(normalised(prediction)))
    both = sum((keys & words).values())
    return 2 * both / (keys.total() + words.total()) if both else 0.0
