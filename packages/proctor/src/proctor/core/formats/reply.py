"""Finding the answer in a reply, for all formats: thoughts and markup are removed, and candidate statements extracted.

Candidates in order of reliability: a JSON field, an `<answer>` tag or a LaTeX box; of several declared answers the last
one; "final answer"; "Answer:" at the start, as models are asked to write; a later line that begins with it; any other
cue ("the answer is", "I would choose", "答案"); the whole text. Of several cues of one kind the last one is used. A
format parses each candidate in turn; the first value is taken, and an ambiguous candidate ends the search. A next
question with an answer of its own is not part of the reply, and what a reply takes back later does not stand
(`declarations`). All of it takes linear time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import JsonValue

from proctor.core.errors import ParseError
from proctor.core.formats.cut_json import cut_object
from proctor.core.formats.declarations import (
    DENIED_CUE,
    LONGEST,
    OTHERS,
    UNSPACED,
    after,
    declared_in,
    first_sentence,
    retractions_in,
)
from proctor.core.formats.markup import PLAIN, without_markup
from proctor.core.formats.thoughts import without_thoughts
from proctor.core.text import deferred

MAX_ANSWER_CHARS = 20_000
"""The maximum number of characters parsed after removing thoughts; of longer replies, both ends are parsed."""

_MOST_OBJECTS = 8  # positions tried for JSON, from the start and from the end
_MOST_CUES = 4  # cues of one kind, from the end
_DEEPEST = 3  # nesting depth of answer fields


@dataclass(frozen=True)
class Statement:
    """A candidate for the answer: text, or the value of a JSON field. `sure` if it has a cue, `marked` if it stands in
    a field, a tag or a box."""

    text: str
    sure: bool = True
    value: JsonValue = None
    marked: bool = False


def read_reply(
    text: str,
    read: Callable[[Statement], JsonValue],
    *,
    expected: str,
    keys: Sequence[str] = (),
    any_text: bool = False,
) -> JsonValue:
    """The first value that `read` finds in the candidates, in order of reliability, or the one that takes it back
    later. `keys` are names of JSON fields for answers of this format, in addition to "answer" and the like; `any_text`
    if any words are a value. Raises `ParseError` if there is none, if the most reliable candidate gives up ("cannot be
    determined"), or if it is taken back for something unclear."""
    body = _bounded(without_thoughts(text))
    if not body:
        raise ParseError(expected="an answer", found=text)
    for part in dict.fromkeys((_before_next_question(body), body)):
        for statement in _statements(part, keys):
            try:
                value = read(statement)
            except ParseError:
                if statement.marked or (instead := _instead(part, read)) is None:
                    raise
                return instead
            if value is not None:
                return value if statement.marked else _kept(value, part, read, expected=expected, any_text=any_text)
            if statement.sure and _GIVES_UP.search(first_sentence(statement.text)):
                raise ParseError(expected=expected, found=text)
    raise ParseError(expected=expected, found=text)


def _kept(
    value: JsonValue, part: str, read: Callable[[Statement], JsonValue], *, expected: str, any_text: bool
) -> JsonValue:
    """The value, or the one that the reply names instead after its last cue ("Answer: B. Wait, no: C"). Raises
    `ParseError` if it takes the value back in a sentence that says another one, without settling on it."""
    plain = _plain_text(part)
    ends = [one.at for one in declared_in(plain)[-1:]]
    ends += [hit.end() for cue in (_FINAL, _LINE, _ANY) for hit in [*cue.finditer(plain)][-1:]]
    for one in reversed(retractions_in(plain, max(ends, default=0))):
        if one.instead and (instead := _tried(read, one.instead)) is not None:
            return instead
        said = () if any_text else dict.fromkeys((*one.sentences[-1:], *one.sentences[:1]))
        other = next((found for sentence in said if (found := _tried(read, sentence)) is not None), None)
        if one.adds or (other is not None and other != value):
            raise ParseError(expected=expected, found=part)
    return value


def _instead(part: str, read: Callable[[Statement], JsonValue]) -> JsonValue:
    """The value that the last retraction of a reply names, whose other values contradict one another."""
    for one in reversed(retractions_in(_plain_text(part), 0)):
        if one.instead and (instead := _tried(read, one.instead)) is not None:
            return instead
    return None


def _tried(read: Callable[[Statement], JsonValue], text: str) -> JsonValue:
    try:
        return read(Statement(text))
    except ParseError:
        return None


def gives_up(text: str) -> bool:
    """Whether a reply begins by saying that there is no answer.

    >>> gives_up("I can't tell without the video."), gives_up("The probe is tilted; I can't tell how far.")
    (True, False)
    """
    return bool(_GAVE_UP.match(without_thoughts(text)))


def answer_text(text: str) -> str:
    """A reply without thoughts and markup; of a long one, both ends.

    >>> answer_text("<think>Hm.</think>**Answer: B**")
    'Answer: B'
    """
    return _plain_text(_bounded(without_thoughts(text)))


def declared_answers(text: str) -> list[str]:
    """The answers that a reply declares ("Answer: B", "the correct answer is B"), first to last, as sentences, and what it
    names instead ("wait, no: C"). What stands in parentheses or under a condition is no declaration.

    >>> declared_answers("Answer: A. The hilum is on the right. Actually, answer: B")
    ['A', 'B']
    >>> declared_answers("Answer: A. Sorry, I meant B.")
    ['A', 'B']
    >>> declared_answers("Answer: A\\n\\n(If the probe had moved, the correct answer is B.)")
    ['A']
    """
    plain = _plain_text(_before_next_question(_bounded(without_thoughts(text))))
    declared = declared_in(plain)
    instead = [one.instead for one in retractions_in(plain, declared[-1].at if declared else 0) if one.instead]
    first = [first_sentence(plain)] if instead and not declared else []
    return [*first, *(first_sentence(one.text) for one in declared), *instead]


def json_fields(text: str) -> list[JsonValue]:
    """The answer fields of the JSON objects in a reply, and the objects themselves, last object first; then the reply
    itself if it is a list. For formats whose answers are objects or lists of lists."""
    body = _bounded(without_thoughts(text))
    objects = [value for value in reversed(json_values(body)) if isinstance(value, dict)]
    fields: list[JsonValue] = []
    for value in objects:
        named = by_plain_name(value)
        fields += [*(named[key] for key in (*_KEYS, *_LISTS) if key in named), value]
    listed = _whole_list(body)
    return fields if listed is None else [*fields, listed]


def by_plain_name(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The fields of a JSON object by their names in small letters, without spaces; of names that are alike then, the last.

    >>> by_plain_name({" Final Answer": "B"})
    {'final_answer': 'B'}
    """
    return {name.strip().lower().replace(" ", "_"): entry for name, entry in fields.items()}


def _bounded(text: str) -> str:
    half = MAX_ANSWER_CHARS // 2
    return text if len(text) <= MAX_ANSWER_CHARS else f"{text[:half]}\n\n{text[-half:]}"


# -------------------------------------------------------------------------------------------------------- cues

_IS = r"\s{0,3}(?::|[-=]?>|=|-\s|(?:is|are|was|would be|should be|must be|will be|might be|may be)\b\s{0,2}[:=]?)"
_ANSWER = r"(?:final[ _]?|correct[ _]?|predicted[ _]?|my[ _]?|short[ _]?|best[ _]?)?(?:answer|guess|prediction|response|output|verdict)(?:[ _](?:letter|option|choice))?"
_RIGHT = (
    r"(?:(?:die |the |la |le |a |o )?(?:richtige|korrekte|correcta|correcte|correct|correta|corretta|juste|justa|bonne"
    r"|finale?|doğru|правильный|верный|الصحيحة|الصحيح|النهائية|最终|最後|正确|正しい|我的|所以|因此)(?: |的|(?=答)|(?=正)))"
)
_ARE = r"(?:应该是|应该为|应为|应是|是|为|は|が|은|는| ?이|\s(?:ist|lautet|est|es|é|è|jest|är|là|هي|هو|-)(?:\s|(?=:)))?"
_LANGUAGES = (
    rf"{_RIGHT}?(?:(?:{OTHERS})\b(?:\s(?:correcta|correcte|correta|corretta|الصحيحة|الصحيح|النهائية|finale?))?|(?:的)?(?:{UNSPACED}))"
    rf"{_ARE}\s{{0,2}}[:=]?"
)
_CHOOSES = r"\b(?:ich (?:wähle|nehme)|je (?:choisis|dirais)|j'opte pour|c'est|elijo|escojo|scelgo|escolho|eu escolho|выбираю)\b\s?:?"
_FINAL = deferred(
    rf"\bfinal\s?:|\bfinal[ _]?(?:answer|decision|choice|order|count|result)s?\b[\"']?(?:{_IS}|\s{{0,3}}\n|\s{{1,3}})|"
    r"(?:最终答案|最終答案|最後答案)(?:是|为|應該是|应该是)?\s{0,2}[:=]?",
    re.IGNORECASE,
)
_LINE = deferred(
    rf"^[ \t]*(?:\d{{1,2}}[.)][ \t]+)?[{{(\[\"']{{0,3}}(?:the )?(?:(?:{_ANSWER}|final|correct|{OTHERS})\b|{UNSPACED})[\"')\]]{{0,2}}"
    rf"(?:[ \t]?\([^()\n]{{0,30}}\))?(?:{_IS}|[ \t]*\n|\s{{1,2}}(?=(?-i:[(\[\"'A-Z0-9])))|^[ \t]*\b(?:A|Ans|ANS)(?:[.]?\s?:|(?<=ns)\s?[=-]\s"
    rf"|\.\s)(?=\s?\S)",
    re.IGNORECASE | re.MULTILINE,
)
_SO = r"(?:\b(?:so|thus|therefore|hence|overall|in (?:conclusion|summary|short|total))\b,?\s{1,2})"
_ANY = deferred(
    r"\b(?=[abceglimoprs])(?:"
    rf"(?:answer|guess|prediction|best estimate|estimate|conclusion)(?:\s(?:here|to (?:this|the) question|for "
    rf"this(?: \w+)?))?{_IS}|"
    r"(?:correct|right|best|most \w+|appropriate|likely|chosen|selected)\s(?:option|choice|order|ordering|sequence"
    r"|class|classes"
    rf"|arrangement|description|statement|time|timestamp|count|number|value|percentage)(?:\s(?:here|of [a-z "
    rf"]{{1,40}}?))?{_IS}|"
    r"(?:order|sequence)(?: of [A-Za-z0-9, ]{1,60}?)? (?:is|would be|should be)\b\s?:?|"
    r"I(?:'d| would| will|'ll| must| have to)?\s(?:choose|pick|select|go with|say|guess|estimate|opt for|answer"
    r"|conclude)"
    r"(?:\s(?:that|with|it is|it's|option)\b)?:?)|"
    rf"(?=[应故我选])(?:应该|应当|应|故|我)?(?:选择|选)(?:项)?(?:是|为)?\s{{0,2}}:?|"
    rf"(?=[最正我所因的答回解评得정답])(?:{_LANGUAGES})|\b(?=[abcdefijlnorsövđваопاأउ])(?:{_LANGUAGES}|{_CHOOSES})",
    re.IGNORECASE,
)
_BOX = deferred(r"\\(?:boxed|fbox)\s{0,2}\{")
_TAG = deferred(r"<(?:final_?)?answer>", re.IGNORECASE)
_VALUE_TAG = deferred(r"<(?:score|rating|grade|choice|option|order|verdict|label)>", re.IGNORECASE)
_TAG_END = deferred(r"</(?:(?:final_?)?answer|score|rating|grade|choice|option|order|verdict|label)>", re.IGNORECASE)
_MEDIA = (
    r"(?:videos?|video ?clips?|images?|pictures?|frames?|footage|media|files?|attachments?|recording"
    r"|visual (?:content|inputs?|data|information))\b"
)
_SEES_NOTHING = deferred(
    r"\b(?=[cdhinpuw])(?:"
    r"(?:can(?:no|')?t|can not|could(?: not|n't)|unable to|not able to|do(?: not|n't) (?:have|see|currently have)"
    rf"|did(?: not|n't) (?:receive|get|come)|have not (?:received|been))\b[^.!?\n]{{0,60}}?\b{_MEDIA}|"
    rf"no {_MEDIA}(?: \w+)? (?:was|were|is|are|has|have|provided|attached|available|included|supplied|came|here)\b|"
    rf"without (?:the|any|a|access|seeing|being|actual|having|viewing)\b[^.!?\n]{{0,40}}?\b{_MEDIA}|"
    r"(?:can(?:no|')?t|can not|unable to|not able to|impossible to|not possible to|insufficient[^.!?\n]{0,40}to)\b"
    r"[^.!?\n]{0,30}?\b(?:determine|tell|answer|say|decide|judge|assess|identify|know|help|comply|assist|establish"
    r"|be (?:determined|answered|assessed))\b|"
    rf"please (?:share|provide|upload|attach|send)\b[^.!?\n]{{0,40}}\b{_MEDIA})|"
    r"(?:无法|不能|看不到|没有看到|没有提供|未提供)[^.!?\n]{0,12}(?:视频|图像|图片|画面|判断|确定|回答|查看|观看)",
    re.IGNORECASE,
)
_GIVES_UP = deferred(
    r"\b(?:cannot|can't|can not|unable|unknown|unclear|not (?:sure|possible|known|available|applicable|enough)|unsure"
    r"|undetermined"
    r"|indeterminate|insufficient|impossible|don't know|do not know|n/?a|no answer|none of the (?:above|options)"
    r"|depends|refuse)\b"
    r"|^\W*\?+\W*$|无法|不能|不知道|不确定|未知",
    re.IGNORECASE,
)


_GAVE_UP = deferred(
    r"\W*(?:(?:sorry|i(?:'m| am) sorry|unfortunately|answer|but|without (?:the|a|any) \w+)\W{1,3}){0,3}"
    r"(?:(?:i|we) (?:\w+ )?(?:do not|don't|can(?:no|')?t|can not|could not|couldn't|am unable|am not able|have no idea)\b"
    r"(?! (?:think|believe|see (?:any|a)))|(?:it |this |that |the (?:answer|question) )?(?:depends\b|can(?:no|')?t be|can not be"
    r"|could not be|is (?:not possible|impossible|unclear|unknown|undetermined|not (?:clear|known)))\b|unknown\b"
    r"|unclear\b|undetermined\b|cannot (?:determine|tell|say|answer)|n/?a\W*$|null\W*$|please (?:provide|upload|attach|share|send)\b|not (?:sure|possible|enough|known)\b"
    r"|no (?:idea|answer)\b|insufficient\b|\?|无法|不知道|不确定)",
    re.IGNORECASE,
)


def _statements(body: str, keys: Sequence[str]) -> Iterator[Statement]:
    yield from (_field(value) for value in _answers(body, keys))
    listed = _whole_list(body)
    if listed is not None:
        inner = listed[0] if len(listed) == 1 else None
        nested = isinstance(inner, list) and len(inner) == 1 and not isinstance(inner[0], list | dict)
        yield _field(inner if nested else listed)  # [[4]]
        return
    plain = body.translate(PLAIN)
    tags = list(_TAG.finditer(plain)) or list(_VALUE_TAG.finditer(plain))
    if tags:
        rest = plain[tags[-1].end() :]
        end = _TAG_END.search(rest)
        yield Statement(without_markup(rest[: end.start()] if end else rest).strip(), marked=True)
    boxes = list(_BOX.finditer(plain))
    if boxes:
        yield Statement(without_markup(_braced(plain, boxes[-1].end())).strip(), marked=True)
    plain = _plain_text(body)
    if _is_object(body):
        return
    declared = declared_in(plain)
    if len(declared) > 1:  # the last one corrects the others
        yield from (Statement(one.text) for one in reversed(declared))
    yield from _cued(_FINAL, plain)
    lead = _LINE.match(plain)
    if lead and not _is_letter_cue(lead, plain):
        yield Statement(after(plain, lead.end()))
    yield from _cued(_LINE, plain)
    yield from _cued(_ANY, plain)
    if plain and not _SEES_NOTHING.search(plain):
        yield Statement(plain, sure=False)


@lru_cache(maxsize=16)  # a reply is asked several times in a row
def _plain_text(body: str) -> str:
    return without_markup(_BOX.sub(" ", body.translate(PLAIN))).strip()


_NEXT_QUESTION = deferred(
    r"^\W{0,6}(?:question|q|problem|exercise|user|human|问题|题目)(?:\s?\d{1,3})?\W{0,3}[:：]"
    r"|^#{1,6}\s{0,3}question\b[^\n]{0,12}$",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWERED = deferred(
    r"^\W{0,8}(?:(?:the|my|final|correct) )*(?:answer\b|答案)[^\n]{0,8}[:：]\W{0,6}\w", re.IGNORECASE | re.MULTILINE
)
_SHORT = 80  # characters of an answer without a cue


def _before_next_question(body: str) -> str:
    """The reply without a next question and its answer, as base models write on. A question that comes first is an
    echo of what was asked."""
    answered = _ANSWERED.search(body)
    for hit in _NEXT_QUESTION.finditer(body):
        before = body[: hit.start()].strip()
        short = len(before) <= _SHORT and not before.endswith((":", "："))
        if before and (short or (answered and answered.end() <= hit.start())):
            return before
        if answered is None and hit.start() > LONGEST:
            break
    return body


def _cued(cue: re.Pattern[str], plain: str) -> Iterator[Statement]:
    """The text after each cue of one kind, last cue first."""
    for hit in reversed(list(cue.finditer(plain))[-_MOST_CUES:]):
        rest = after(plain, hit.end())
        denied = DENIED_CUE.search(plain, max(0, hit.start() - 12), hit.start())
        if rest and not denied and not _is_letter_cue(hit, plain):
            yield Statement(rest)


_ASKS = deferred(r"^\W{0,4}Q(?:uestion)?\b", re.IGNORECASE | re.MULTILINE)


def _is_letter_cue(hit: re.Match[str], plain: str) -> bool:
    """Whether "A:" or "A." is the letter of an option: no "Q:" comes before."""
    return hit[0].strip(" \t.:") in {"A", "a"} and not _ASKS.search(plain, 0, hit.start())


def _braced(text: str, start: int) -> str:
    """The text from `start` to the matching closing brace."""
    depth = 1
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return text[start:position]
    return text[start:]


# -------------------------------------------------------------------------------------------------------- JSON

_KEYS = (
    "final_answer",
    "finalanswer",
    "final",
    "answer",
    "predicted_answer",
    "correct_answer",
    "prediction",
    "response",
    "result",
    "output",
    "value",
    "answer_letter",
    "selected_answer",
    "ans",
    "答案",
)


def json_values(text: str) -> list[JsonValue]:
    """The outermost JSON objects and lists in a text, found with a bounded number of attempts; of a text that is an object
    and is cut off, what stands in it until there.

    >>> json_values('The order: {"order": ["B", "A"]}')
    [{'order': ['B', 'A']}]
    """
    if (cut := cut_object(text)) is not None:
        return [cut]
    starts = [hit.start() for hit in re.finditer(r"[{\[]", text)]
    if len(starts) > 2 * _MOST_OBJECTS:
        starts = starts[:_MOST_OBJECTS] + starts[-_MOST_OBJECTS:]
    decoder = json.JSONDecoder()
    values: list[JsonValue] = []
    end = 0
    for start in starts:
        if start < end:
            continue
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        values.append(value)
    return values


def _whole_list(text: str) -> list[JsonValue] | None:
    """The list, if the text is one JSON list."""
    bare = text.removeprefix("```json").strip("` \n\t")
    values = json_values(bare) if bare.startswith("[") and bare.endswith("]") else []
    return values[0] if len(values) == 1 and isinstance(values[0], list) else None


def _is_object(text: str) -> bool:
    """Whether the text is one JSON object, whole or cut off; without an answer field it is not an answer."""
    if cut_object(text) is not None:
        return True
    bare = text.removeprefix("```json").strip("` \n\t")
    return bare.startswith("{") and bare.endswith("}") and any(isinstance(value, dict) for value in json_values(bare))


def _answers(text: str, keys: Sequence[str]) -> list[JsonValue]:
    """The answer fields of JSON objects, last object first."""
    answers = (_answer(value, (*_KEYS, *keys)) for value in reversed(json_values(text)) if isinstance(value, dict))
    return [value for value in answers if value is not None]


def _answer(value: JsonValue, keys: Sequence[str], depth: int = 0) -> JsonValue:
    if not isinstance(value, dict):
        return value
    named = by_plain_name(value)
    inner = next((named[key] for key in keys if named.get(key) is not None), None)
    return None if depth == _DEEPEST else _answer(inner, (*keys, *_INNER), depth + 1)


_LISTS = ("intervals", "interval", "segments", "segment", "windows", "spans", "events", "boxes", "box", "bbox", "bboxes", "bounding_box", "bbox_2d", "box_2d", "point", "points", "point_2d", "coordinates")  # fmt: skip
_INNER = ("letter", "label", "option", "choice", "id", "text", "name")


def _field(value: JsonValue) -> Statement:
    if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], list | dict):
        return Statement(without_markup(str(value[0]).translate(PLAIN)), value=value, marked=True)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Statement(without_markup(text.translate(PLAIN)).strip(), value=value, marked=True)
