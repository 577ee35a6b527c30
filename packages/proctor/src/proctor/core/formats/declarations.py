"""Which answers a reply declares ("Answer: B", "the correct answer is B"), and what takes one back ("wait, no: C")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from proctor.core.text import deferred

LONGEST = 2_000
"""The characters that are read after a cue."""

_MOST = 4  # declarations, from the end
OTHERS = (
    r"Antwort|L[öo]sung|r[ée]ponse|respuesta|risposta|resposta|antwoord|svar|cevap|odpowied[źz]|ответ|الإجابة|الاجابة|الجواب"
    r"|उत्तर|đáp án|opci[óo]n correcta|option correcte|opç[ãa]o correta|opzione corretta"
)
"""Words for "answer" in languages that put spaces between words."""
UNSPACED = r"答え|回答|解答|答案|正解|정답|답변|답|评分|得分"
"""Words for "answer" in languages that do not."""
_SENTENCE_END = deferred(
    r"[.!?;](?:(?<![0-9].)(?<!i\.e.)(?<!e\.g.)(?<!pprox.)(?<!\bca.)(?<!\bvs.)(?<![Ff]ig.)\s+(?=[A-Z0-9(\"'])"
    r"|(?<=[0-9][.!?])\s+(?=[A-Z])|(?<=[\u4e00-\u9fff].)\s)"
)
DENIED_CUE = deferred(
    r"\b(?:(?:not|no|isn't|any)\s(?:an?\s|the\s)?|(?:in|un)?(?:correct|wrong|incorrect|unlikely)\s)\Z", re.IGNORECASE
)
"""What turns a cue around, directly before it ("the wrong answer is")."""
_JOINT = deferred(r"\A(?:[\s:=\"']|[-=]{1,2}>)+")


def first_sentence(text: str) -> str:
    """The first sentence of the first nonblank line."""
    line = text.strip().split("\n", 1)[0]
    end = _SENTENCE_END.search(line)
    return line[: end.start()] if end else line


def after(plain: str, end: int) -> str:
    """What follows a cue that ends at `end`."""
    return _JOINT.sub("", plain[end : end + LONGEST], count=1).rstrip()


# ------------------------------------------------------------------------------------------------ declarations

_DECLARES = deferred(
    r"(?P<the>\b(?:the|my|our)\s)?(?P<sure>\b(?:final|correct|right|revised|updated|corrected|new|best|actual|short|predicted"
    rf"|my)[ _]?)?(?:\b(?:answer|{OTHERS})\b|(?:最终|最終|最後|正确)?(?:{UNSPACED})|(?<=final )(?:decision|choice|order|count|result)\b)"
    r"[\"')\]]{0,2}(?:[ \t]?\([^()\n]{0,30}\))?"
    r"(?:\s{0,3}(?::|[-=]>|=(?!=))|(?P<prose>\s(?:is now|is|was|should be|must be)\b\s{0,2}:?|(?<=答案)[是为])"
    r"|(?P<line>[ \t]{0,3}\n))",
    re.IGNORECASE,
)
_LEAD = deferred(
    r"[\W\d]*(?:(?P<lead>so|thus|therefore|hence|actually|wait|no|hold on|sorry|(?:my )?apologies|update|correction|instead|now|in conclusion"
    r"|overall|finally|okay?|re-?\w{4,14}ing|on reflection|on second thoughts?|looking again|after [a-z ]{1,30}"
    r"|upon [a-z ]{1,30}|i (?:think|believe|conclude|correct)(?: that)?|this means|that means|and|but|then|let me correct"
    r"(?: that| myself)?|所以|因此|更正)(?![a-z])[^\w\n]{0,3}){0,4}",
    re.IGNORECASE,
)
_SENTENCE_BEGINS = re.compile(r"[.!?…\n;(]|\s-{1,2}\s")
_CONDITION = deferred(r"[^.\n]{0,40}\b(?:would|could|might|if|unless)\b|[^.!?\n]{0,80}\?", re.IGNORECASE)
_FINALLY = deferred(r"(?:(?:the|my|our)\s)?final\b|最终|最終|最後", re.IGNORECASE)
_LONGEST_LEAD = 60


@dataclass(frozen=True)
class Declared:
    """An answer that a reply declares: what follows the cue, and where the cue ends."""

    text: str
    at: int


@lru_cache(maxsize=16)  # a reply is asked several times in a row
def declared_in(plain: str) -> tuple[Declared, ...]:
    """The answers that a text declares, first to last. What stands in parentheses or under a condition is none."""
    found = []
    for hit in list(_DECLARES.finditer(plain))[-3 * _MOST :]:
        before = plain[max(0, hit.start() - _LONGEST_LEAD) : hit.start()]
        begins = [mark.end() for mark in _SENTENCE_BEGINS.finditer(before)]
        lead = before[begins[-1] :] if begins else before
        aside = begins and before[begins[-1] - 1] == "(" and plain[: hit.start()].strip("(\n ")
        cut = not begins and len(before) == _LONGEST_LEAD
        led = _LEAD.fullmatch(lead)
        loose = cut or led is None or (hit["prose"] and not (hit["sure"] or led["lead"] or hit["the"]))
        if aside or (loose and not _is_final(hit, before)):
            continue
        rest = after(plain, hit.end())
        if rest and not _CONDITION.match(rest) and not (hit["line"] and lead.strip()):
            found.append(Declared(rest, hit.end()))
    return tuple(found[-_MOST:])


def _is_final(hit: re.Match[str], before: str) -> bool:
    """Whether a cue calls its answer final: it counts whatever comes before it, but a denial."""
    return _FINALLY.match(hit[0]) is not None and not hit["prose"] and not DENIED_CUE.search(before)


# ------------------------------------------------------------------------------------------------- retractions

_TAKES_BACK = deferred(
    r"(?:\bbut (?:is|it's|it is) now\b\s|(?:(?<=[.!?…;,\n>-])|(?<=[.!?…;,\n>-] )|(?<=- ))[^\w\n]{0,6}"
    r"(?:(?:and|but|oh|oops|hmm+|okay?|well|um)\b[\s,.…]{1,4}){0,2}"
    r"(?:(?:wait(?! until| for)|hold on|hang on|(?:scratch|strike) that|correction|corrected|(?:edit|update|revision)(?=:)|actually|(?:wait|actually),? no(?=:)|(?P<no>no)(?=[,;!…-]|\.{1,3}[ \t]+\S|\s-|\.?\W*\Z|,? wait)"
    r"|sorry|apologies|oops|on (?:second thoughts?|(?:further |closer )?(?:reflection|inspection|reconsideration|review))"
    r"|(?:my (?:mistake|bad|apologies))|i (?:(?:made|see|have made) (?:a|my|an) (?:mistake|error)|was wrong|misspoke"
    r"|mis-?(?:read|saw|counted)|take (?:that|it) back)[^.:,;\n]{0,30}"
    r"|let me (?:re-?\w+|double[- ]?check|correct|think again|look again|check)[^.,:;\n]{0,30}|looking again|rather(?=,)"
    r"|korrektur|nein(?=,)|tatsächlich|moment|en fait|en realidad|perd[óo]n|更正|不对|等等|等一下|其实|实际上|いや|訂正)"
    r"[\s,.:;!…-]{0,5}(?:that(?:'s|\s(?:is|was)) (?:wrong|incorrect|not (?:right|correct))[\s,.:;!…-]{0,5})?){1,3})",
    re.IGNORECASE,
)
_IT_IS = deferred(
    r"(?:(?:so|then|and|but|that|which means)\b,?\s)?(?:(?:(?:it|that|this|the (?:correct |right |final )?(?:answer|order|option"
    r"|choice|count|one|time))(?:'s|\s(?:is|was|should be|must be|has to be))|i(?:'d|'ll| would| will)?\s(?:change (?:it |that"
    r"|my answer )?to|choose|pick|go with|say|meant?)|make (?:that|it)|should be|(?:change|correct) (?:it |that )?to"
    r"|answer|order|respuesta|antwort|réponse|es ist|c'est|是|应该是)\b\s{0,2}[:=]?\s?)?(?:actually |really |now )?",
    re.IGNORECASE,
)
_BECAUSE = deferred(r",?\s(?:because|since|as|due to|given|which|for)\b|\s[-(]\s?(?=[a-z])|\s\(", re.IGNORECASE)
_SAYS_MORE = deferred(
    r"\b(?:is|are|was|were|isn't|can|could|may|might|would|looks?|seems?|shows?|has|have|lies|also|too|not|if|or|no)\b",
    re.IGNORECASE,
)
_DOUBTS = deferred(r"\b(?:may|might|could|perhaps|maybe|possibly|would|if|unless)\b|\?", re.IGNORECASE)
_ADDS = deferred(r"(?:and\s)?(?:also|additionally|plus)\b", re.IGNORECASE)
_MOST_WORDS = 5
_WORD = re.compile(r"[^\W\d_]{2,}")
_SENTENCES = re.compile(r"(?<=[.!?。])\s+|\n+")


@dataclass(frozen=True)
class Retraction:
    """What a reply says after taking back an answer: the `instead` that it names in a few words ("wait, no: C"), or
    else "", and the sentences that follow, without those that only doubt. `adds` if it only adds to the answer."""

    instead: str
    sentences: tuple[str, ...]
    adds: bool


def retractions_in(plain: str, start: int) -> list[Retraction]:
    """The retractions after `start`, first to last."""
    found = []
    hits = list(_TAKES_BACK.finditer(plain, start))
    if sum(hit["no"] is not None for hit in hits) > 1:  # verdicts, one after another
        hits = [hit for hit in hits if hit["no"] is None]
    for hit in hits[-_MOST:]:
        rest = plain[hit.end() : hit.end() + LONGEST].strip() or hit[0].split()[-1]  # "wait, no."
        said = _IT_IS.sub("", first_sentence(rest), count=1) if rest else ""
        reason = _BECAUSE.search(said)
        said = (said[: reason.start()] if reason else said).strip(" .,:;!")
        few = bool(said) and len(_WORD.findall(said)) <= _MOST_WORDS and not _SAYS_MORE.search(said)
        sentences = tuple(one.strip() for one in _SENTENCES.split(rest) if one.strip() and not _DOUBTS.search(one))
        adds = _ADDS.match(rest) is not None and len(_WORD.findall(first_sentence(rest))) <= _MOST_WORDS
        found.append(Retraction(said if few else "", sentences, adds))
    return found
