"""The answer format for one of several options, named by letter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Literal

from pydantic import JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.base import StrictFormat, bare, plain_words
from proctor.core.formats.declarations import first_sentence
from proctor.core.formats.reply import Statement, gives_up, read_reply
from proctor.core.formats.thoughts import without_thoughts
from proctor.core.text import deferred

_NAME = (
    r"(?:(?:the\s)?(?:options?|choices?|letters?|answers?|statements?|items?|alternatives?)\b\s?(?:number\s|no\.?\s|#)?:?\s{0,2}"
    r"|(?:(?:la|le|el|a|die|der|das)\s)?(?:opci[óo]n|opç[ãa]o|opzione|letra|lettre|lettera|antwort|r[ée]ponse|respuesta|risposta"
    r"|вариант|الخيار)\s|(?:la|le|el|die|der|das)\s(?=[(\[\"']?[A-Z](?![^\W_]))"
    r"|(?:选项?|選項?|選擇|选择|選択肢)\s?:?\s{0,2}|第)?"
)
_OPEN = r"[\s*_`(\[{\"'<#:.]{0,6}"
_HEAD = deferred(
    rf"(?:\d{{1,2}}[.)]\s{{1,3}}(?=[A-Z]\b))?{_OPEN}(?:(?:i (?:think|believe|am (?:fairly |quite )?(?:sure|confident))|creo que|pienso que|je (?:pense|crois) que|ich (?:denke|glaube),?"
    rf"|es ist|es|c'est|it(?:'s| is)|that(?:'s| is)|probably"
    rf"|likely|most likely|maybe"
    rf"|perhaps|definitely|clearly|only|simply|be|is|would be|should be)\b[\s,:]{{0,3}}(?:that\s)?(?:it(?:'s| "
    rf"is)\s)?){{0,4}}"
    rf"(?P<both>(?:either|both|one of|any of|all of|between)\b\s{{0,2}})?{_OPEN}{_NAME}{_OPEN}(?P<letter>[A-Za-z])(?!'?"
    rf"[A-Za-z0-9_À-ɏ]|-[a-z])",
    re.IGNORECASE,
)
_MORE = deferred(
    rf"[)\]}}>*.\"'\s]{{0,4}}(?:,\s{{0,2}})?(?:\b(?:or|and|und|oder|or else|as well as|plus|and/or|versus|vs)\b|-?>"
    rf"|[/&,+|]|:(?=\s?[A-Z]\W*\Z)|或|和|与|か|または|又は)\s?"
    rf"(?:(?:maybe|perhaps|possibly|even)\s)?{_OPEN}{_NAME}{_OPEN}(?P<letter>[A-Z])(?!'?[A-Za-z0-9_À-ɏ]|-[a-z])"
)
_CLOSED = deferred(r"\s{0,2}(?:[.,;:)\]}>!?\"'*-]|$|\n)")
_WORD = deferred(r"[ \t]{1,2}[\"']?[^\W\d_]")
_NO_NOUN = deferred(
    r"\s(?:the|this|that|these|those|it|its|in|at|on|of|to|we|i|you|he|she|they|there|both|no|not|if|but|and|or|my|our"
    r"|because|since|as|with|by|from|for|when|while|where|here|is|was"
    r"|explanation|reason\w*|rationale|confidence|answer|only|alone)\b",
    re.IGNORECASE,
)
_REASON = deferred(
    r"\s(?:is|was|because|since|as|due|for|based|seems?|appears?|would|given|with \d|best|matches|describes|fits|can be"
    r"|looks|corresponds|shows)\b"
)
_OPTION = deferred(
    r"\b(?:option|choice|answer)\s{0,2}[(\[\"']?(?P<letter>[A-Z])(?!'?[A-Za-z0-9_À-ɏ]|-[a-z])"
    r"|(?:选项|選項)\s?(?P<other>[A-Z])(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_LONE = deferred(
    r"(?:\b(?i:is|are|to|be|pick|choose|select|only|with|for|say|matches|thus|so|hence|therefore|but|and|or|between"
    r"|maybe|perhaps|donc|daher|somit|quindi|portanto|est|ist|es)\b[\s,:]{1,2}|(?<=\w)'s\s|,\s{1,3}|[是选]\s?|(?<=[\u4e00-\u9fff]),\s?|\A\W*)"
    r"(?P<letter>[A-Z])(?![A-Za-z0-9'À-ɏ]|[-.][A-Za-z]|\s[a-z]+ing\b)|\((?P<paren>[A-Z])\)"
)
_DENIED = deferred(
    r"\b(?:anything|everything|all) (?:but|except)\b[^.;\n]*|(?:不是|并非|除了)[^.,;\n]*"
    r"|\b(?:not|rather than|instead of|as opposed to|unlike|neither|nor|rul(?:e[sd]?|ing) out|eliminat\w+|exclud\w+"
    r"|except|reject\w*)\b"
    r"(?:(?!\bbut\b|, (?:it|that|this)(?:'s| is)\b)[^.;\n])*",
    re.IGNORECASE,
)
_NOT_APPLICABLE = deferred(r"\bn/a\b", re.IGNORECASE)
_WRONG = deferred(
    r"\b(?:wrong|incorrect|false|unlikely|least likely|ruled out|excluded|(?:is|are|does|do|was|were|did|can|could|ca)n't"
    r"|cannot be|(?:is|are|was|were) not (?:\w+ )?(?:used|shown|seen|visible|present|correct|right|involved|there))\b"
    r"|错|不对|不正确",
    re.IGNORECASE,
)
_REJECTED = deferred(
    r"\W{0,3}\s?(?:is|was|are|looks|seems|can be|would be|does|could be)(?:n't|\s(?:\w+\s)?(?:not|wrong|incorrect|false"
    r"|ruled|excluded|unlikely"
    r"|eliminated|impossible|(?:the )?(?:least|less) (?:likely|plausible|probable)))\b"
    r"|[^.;\n]{0,40}?\bbut (?:it )?(?:is |it's )?(?:wrong|incorrect|false|not)\b|\s?项?是?(?:错|不对|不正确|不是)|ではな|じゃな",
    re.IGNORECASE,
)
_ASKED = deferred(r"\s?\?\s{0,3}(?=\w)")
_LISTED = deferred(r"(?:\A|[\n;,.])[^\w\n]{0,8}(?:option\s)?(?P<letter>[A-Z])(?=[\s.):\]=-]|\Z)")
_BOXED = deferred(r"[☐☑☒□■✓✔✅✗✘❌]|\[[ xX]\]")
_RIGHT = deferred(r"\b(?:yes|correct|true|right)\b|[✓✔✅☑■]|\[[xX]\]|正确|对", re.IGNORECASE)
_FALSE = deferred(r"\b(?:no|not)\b|[✗✘❌☒☐□]|\[ \]", re.IGNORECASE)
_KEYS = (
    "letter",
    "choice",
    "option",
    "selected_option",
    "selected",
    "selection",
    "option_letter",
    "label",
    "correct_option",
    "id",
)


MOST_OPTIONS = 26
"""The maximum number of options, one per letter."""


def option_letters(count: int) -> list[str]:
    """The letters A, B, C … for `count` options (at most 26).

    >>> option_letters(3)
    ['A', 'B', 'C']
    """
    if not 0 <= count <= MOST_OPTIONS:
        raise ValueError(f"options have letters, so there can be 0 to {MOST_OPTIONS}, not {count}")
    return [chr(ord("A") + index) for index in range(count)]


def letter_span(options: Sequence[str]) -> str:
    """The first and last letters of these options, for instructions; "the options" without any.

    >>> letter_span(["liver", "spleen"])
    'A to B'
    """
    letters = option_letters(len(options))
    return f"{letters[0]} to {letters[-1]}" if letters else "the options"


class ChoiceFormat(StrictFormat):
    """One option by its letter, in the order of the item's options.

    Parsed is a letter at the start of the answer ("C", "(c)", "option C: …", "C because …"), or else the whole text of
    an option, or else the only option or letter that is mentioned and not denied ("not B", "B is wrong"). A list of all
    options is read by what it says of each ("A: no, B: yes …"). Several options ("A or B", "both A and C") are invalid.
    Strict: the letter, the whole text of an option, or both.

    >>> four = ["liver", "spleen", "left kidney", "aorta"]
    >>> ChoiceFormat().parse("**Answer: (C)** because of the cortex", four)
    'C'
    >>> ChoiceFormat().parse("It is the left kidney.", four)
    'C'
    """

    kind: Literal["choice"] = "choice"

    def instruction(self, options: Sequence[str] = ()) -> str:
        span = letter_span(options)
        if self.strict:
            return f"Reply with the letter of the right option ({span}) and nothing else."
        return f'Start your reply with "Answer: X", where X is the letter of the right option ({span}).'

    def parse(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        if self.strict:
            return _bare(text, options)
        letters = ", ".join(option_letters(len(options)))
        read = partial(_read, options=options)
        try:
            return read_reply(text, read, expected=f"one of the letters {letters}", keys=_KEYS)
        except ParseError:
            if unanswerable := _says_unanswerable(text, options):
                return unanswerable
            raise

    def check(self, value: JsonValue, options: Sequence[str] = ()) -> JsonValue:
        letters = option_letters(len(options))
        if isinstance(value, str) and value in letters:
            return value
        raise ParseError(expected=f"one of {', '.join(letters)}", found=str(value))

    def from_cell(self, text: str, options: Sequence[str] = ()) -> JsonValue:
        """Parse an option's letter in any case, or its whole text, which takes precedence."""
        return cell_letter(text, options)

    def chance(self, accepted: Sequence[JsonValue], options: Sequence[str] = ()) -> float | None:
        """The number of right options divided by the number of options."""
        return len(set(map(str, accepted))) / len(options) if accepted and options else None


def cell_letter(text: str, options: Sequence[str]) -> str:
    """The letter of the option in a cell, given by letter or whole text.

    >>> cell_letter("b", ["liver", "spleen"]), cell_letter("Liver", ["liver", "spleen"])
    ('B', 'A')
    """
    letters = option_letters(len(options))
    named = [
        letter for letter, option in zip(letters, options, strict=True) if plain_words(option) == plain_words(text)
    ]
    if len(named) == 1:
        return named[0]
    letter = plain_words(text).strip("().").upper()
    if letter in letters:
        return letter
    found = f"{len(named)} options with the text {text}" if named else text
    raise ParseError(expected=f"one of the letters {', '.join(letters)}, or the text of one option", found=found)


def _bare(text: str, options: Sequence[str]) -> str:
    plain = " ".join(bare(text).split()).casefold()
    for letter, option in zip(option_letters(len(options)), options, strict=True):
        whole = " ".join(bare(option).split()).casefold()
        low = letter.casefold()
        if plain in {low, f"{low})", f"({low})", whole} | {f"{low}{mark} {whole}" for mark in (")", ".", ":")}:
            return letter
    raise ParseError(expected="one option's letter or text and nothing else", found=text)


def _read(statement: Statement, options: Sequence[str]) -> str | None:
    for reading in (_whole_option, _verdicts, _head, _option_text, _named):
        letters = reading(statement, options)
        if len(letters) > 1:
            raise ParseError(expected="one option", found=f"{' and '.join(sorted(letters))} in {statement.text}")
        if letters:
            return letters.pop()
    return None


def _whole_option(statement: Statement, options: Sequence[str]) -> set[str]:
    """The option whose text of more than a letter is the whole statement or its first sentence, be it "N/A" or "Not
    visible", which elsewhere say that there is no answer."""
    said = {_exact(statement.text), _exact(first_sentence(statement.text))}
    named = {
        letter
        for letter, option in zip(option_letters(len(options)), options, strict=True)
        if len(_exact(option)) > 1 and _exact(option) in said
    }
    return named if len(named) == 1 else set()


def _says_unanswerable(text: str, options: Sequence[str]) -> str:
    """The letter of the only option that says that there is no answer ("Cannot be determined"), where a reply does so
    in its words; "" otherwise."""
    unclear = [
        (letter, _plain(option))
        for letter, option in zip(option_letters(len(options)), options, strict=True)
        if gives_up(option)
    ]
    said = f" {_plain(without_thoughts(text))} "
    return unclear[0][0] if len(unclear) == 1 and f" {unclear[0][1]} " in said else ""


def _verdicts(statement: Statement, options: Sequence[str]) -> set[str]:
    """The option that a list of all of them calls right, or the only one that it does not call wrong ("A: no, B: yes
    …"). Raises `ParseError` for a list that does neither, since its first letter is no answer."""
    letters, parts = option_letters(len(options)), listed_options(statement.text, options)
    if not parts:
        return set()
    wrong = [calls_wrong(part) for part in parts]
    right = [calls_right(part) for part in parts]
    for marked in (right, [not denied for denied in wrong]):
        if sum(marked) == 1 and sum(wrong) == len(letters) - 1:
            return {letters[marked.index(True)]}
    raise ParseError(expected="one option", found=statement.text)


def listed_options(text: str, options: Sequence[str]) -> list[str]:
    """What a text says of each option, if it begins with a list of all of them in their order; else nothing."""
    letters = option_letters(len(options))
    hits = list(_LISTED.finditer(text))[: len(letters)]
    if len(letters) < 2 or [hit["letter"] for hit in hits] != letters or hits[0].start():
        return []
    ends = [*(hit.start() for hit in hits[1:]), len(text)]
    parts = [text[hit.end() : end].split("\n\n", 1)[0] for hit, end in zip(hits, ends, strict=True)]
    if _BOXED.search(hits[0][0]):  # a box before the letter belongs to it
        parts = [f"{hit[0]}{part}" for hit, part in zip(hits, parts, strict=True)]
    if not any(map(_WORD_OR_NUMBER.search, parts)) and not _BOXED.search(text):
        raise ParseError(expected="one option", found=text)  # "A. B. C. D."
    says = _WORD_OR_NUMBER.search(parts[0]) or _BOXED.search(parts[0])  # not "A, B …", or "A" and a list of reasons
    return parts if says else []


def calls_wrong(said: str) -> bool:
    """Whether what is said of an option in a list denies it."""
    return bool(_WRONG.search(said) or _FALSE.search(said))


def calls_right(said: str) -> bool:
    """Whether what is said of an option in a list affirms it."""
    return bool(_RIGHT.search(said)) and not calls_wrong(said)


_WORD_OR_NUMBER = re.compile(r"\w")


def _exact(text: str) -> str:
    return _plain(_NOT_APPLICABLE.sub("na", text))


def _head(statement: Statement, options: Sequence[str]) -> set[str]:
    """The letters at the start of a statement."""
    text, letters = statement.text, set(option_letters(len(options)))
    hit = _HEAD.match(text)
    if hit is None or _REJECTED.match(text, hit.end()) or _NOT_APPLICABLE.match(text, hit.start("letter")):
        return set()
    if _ASKED.match(text, hit.end()) or _is_denied_text(text[hit.end() :], hit["letter"], options):
        return set()
    if hit["letter"].upper() not in letters or not _is_letter(hit, statement, options):
        return set()
    named, at = {hit["letter"].upper()}, hit.end()
    while more := _MORE.match(text, at):
        if is_article(more["letter"], text[more.end() :], options):
            break  # "C, A view of …"
        named.add(more["letter"])
        at = more.end()
    if len(named) > 1 and _REJECTED.match(text, at):
        return set()  # "A and B are wrong, so C"
    return named & letters if len(named) > 1 or not hit["both"] else set()


def _is_denied_text(rest: str, letter: str, options: Sequence[str]) -> bool:
    """Whether an option's own text follows its letter and is denied ("A Kelly clamp is not used")."""
    position = ord(letter.upper()) - ord("A")
    words = re.findall(r"[^\W_]+", options[position]) if position < len(options) else []
    said = re.match(r"\W+" + r"\W+".join(map(re.escape, words)), rest, re.IGNORECASE) if words else None
    return said is not None and _REJECTED.match(rest, said.end()) is not None


def _is_letter(hit: re.Match[str], statement: Statement, options: Sequence[str]) -> bool:
    """Whether the letter at the start is an option, rather than an article, a pronoun or an abbreviation."""
    text, letter, named = statement.text, hit["letter"], hit.start("letter") > 0 and hit[0][-2:-1] in "([{\"'"
    rest = text[hit.end() :]
    if letter.islower():
        word = re.match(r"[\s(\[\"']*(?:option|choice|letter)\b", hit[0], re.IGNORECASE)
        return bool(named or word or (_CLOSED.match(rest) and (statement.sure or len(text) < 20)))
    if _CLOSED.match(rest) or named or _MORE.match(text, hit.end()):
        return True
    own = options[ord(letter) - ord("A")]
    if _plain(rest).startswith(_plain(own)):
        return not (letter in "AI" and f" {_plain(own)} or " in f" {_plain(first_sentence(rest))} ")  # "A clamp or …"
    if any(_plain(letter + rest).startswith(_plain(option)) for option in options):
        return False
    return not is_article(letter, rest, options)


def is_article(letter: str, rest: str, options: Sequence[str]) -> bool:
    """Whether an "A" or "I" before `rest` is a word of running text, not an option: a word follows that begins neither
    the option's own text nor a reason.

    >>> organs = ["Kelly clamp", "Veress needle"]
    >>> is_article("A", " Veress needle is used", organs), is_article("A", " Kelly clamp", organs)
    (True, False)
    """
    if letter not in {"A", "I"} or not _WORD.match(rest) or _REASON.match(rest) or _MORE.match(rest):
        return False
    position = ord(letter) - ord("A")
    own = _without_article(options[position]) if position < len(options) else ""
    said = _without_article(first_sentence(rest[:_MOST_SAID]))
    if own and (said == own or said.startswith(f"{own} ") or f"{own} ".startswith(f"{said} ")):
        return False
    return not (_NO_NOUN.match(rest) and not any(said.startswith(_without_article(one)) for one in options))


def _option_text(statement: Statement, options: Sequence[str]) -> set[str]:
    """The options whose whole text occurs, except those contained in another option that occurs."""
    for text in (first_sentence(statement.text), statement.text) if statement.sure else (statement.text,):
        whole = f" {_plain(_affirmed(text))} "
        for kind in (_plain, _without_article):  # then "A Veress needle" for the option "The Veress needle"
            said = {letter: kind(option) for letter, option in zip(option_letters(len(options)), options, strict=True)}
            named = {letter for letter, option in said.items() if option and f" {option} " in whole}
            inside = {a for a in named for b in named if a != b and f" {said[a]} " in f" {said[b]} "}
            if named - inside:
                return named - inside
    return set()


def named_by_text(statement: Statement, options: Sequence[str]) -> set[str]:
    """The letters of the options whose whole text occurs in a statement and is not denied."""
    return _option_text(statement, options)


def _named(statement: Statement, options: Sequence[str]) -> set[str]:
    """The letters after "option", or else single letters, unless they are denied."""
    letters = set(option_letters(len(options)))
    text = _affirmed(first_sentence(statement.text) if statement.sure else statement.text)
    for pattern in (_OPTION, _LONE):
        hits = [hit for hit in pattern.finditer(text) if pattern is _OPTION or not _is_article(hit, text, options)]
        named = {next(group for group in hit.groups() if group).upper() for hit in hits}
        if named & letters:
            return named & letters
    return set()


def _is_article(hit: re.Match[str], text: str, options: Sequence[str]) -> bool:
    rest = text[hit.end() : hit.end() + _MOST_SAID]
    return not rest.startswith((" or ", " and ")) and is_article(hit[0][-1:], rest, options)


def _affirmed(text: str) -> str:
    """Text without clauses of denial."""
    said = "".join(part for part in re.split(r"([.;,\n])", _NOT_APPLICABLE.sub(" ", text)) if not _WRONG.search(part))
    clauses = re.split(r"[.;,\n]", _DENIED.sub(" ", said))
    return ", ".join(clause for clause in clauses if not _WRONG.search(clause))


_MOST_SAID = 200  # characters after a letter that are compared with options
_LEADING_ARTICLE = re.compile(r"(?:an?|the) (?=.)")


def _without_article(text: str) -> str:
    plain = _plain(text)
    return _LEADING_ARTICLE.sub("", plain, count=1) if _LEADING_ARTICLE.match(plain) else plain


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))
