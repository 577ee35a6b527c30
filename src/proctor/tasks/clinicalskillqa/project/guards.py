"""What a rationale may not do: cite frames that are not there, tell another order, or speak of what no frame shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from pydantic import Field

from proctor.construction.pipeline import FORBIDDEN, STEERING, Frozen, content_words, negations, sides_and_numbers
from proctor.judges import has_injection


class CitedSentence(Frozen):
    """A sentence of a rationale, and the frames that show what it says, in the order of time."""

    text: str = Field(min_length=1)
    frames: tuple[str, ...]


UNSEEN = {name: FORBIDDEN[name] for name in ("sound", "on-screen text", "exact readout")} | {
    "a voice or an alarm": r"\b(?:shout\w*|call(?:s|ed|ing)? out|beep\w*|alarm\w*|announce\w*|aloud|silen\w*)\b",
    "a clock time": FORBIDDEN["time in the video"] + r"|\b\d+(?:[.,]\d+)?\s*(?:s|secs?|seconds?|mins?|minutes?)\b",
    "a device's setting": r"\b\d+(?:[.,]\d+)?\s*(?:j|joules?|mmhg|l/min|lit(?:re|er)s?|volts?|kpa)\b",
    "what somebody thinks": r"\b(?:intend\w*|want(?:s|ed|ing)?|decid\w*|think\w*|thought|hop(?:es|ed|ing)|realis\w*"
    r"|realiz\w*|remember\w*|believ\w*|worr\w+)\b",
}
"""What no frame shows, by its name."""

_LABEL = re.compile(r"(?<![\w'’-])[A-Z](?![\w'’-])")
_ARTICLE = re.compile(
    r"(?:^|(?<=[.!?:;]\s))A(?=\s+[a-z])(?!\s+(?:shows?|is|comes?|precedes?|follows?|must|and|then|to)\b)"
)
_F = r"(?:frame |picture |image )?([A-Z])(?![\w'’-])"
_LINK = r"(?:[a-z]+ ){0,4}?"
_FIRST = "before|precedes?|preceding|ahead of|earlier than|leads? to|followed by"
_AHEAD = rf"(?=(?<![\w'’-]){_F},? (?:{_LINK}(?:{_FIRST})|then) {_F})"
_FROM = rf"(?=\b[Ff]rom {_F} (?:\w+ )?(?:on )?(?:to|until) {_F})"
_ARROW = rf"(?=(?<![\w'’-]){_F} ?(?:>|→|->) ?{_F})"
_BEHIND = rf"(?=(?<![\w'’-]){_F},? {_LINK}(?:after|follows?|following|later than|behind) {_F})"


def mentioned(text: str) -> tuple[str, ...]:
    """The labels that a text names, each once: capital letters that stand alone, but for "A" as an article and "I".

    >>> mentioned("A rescuer kneels in B; frames B and D show the pads.")
    ('B', 'D')
    """
    plain = _ARTICLE.sub("", text)
    return tuple(dict.fromkeys(found[0] for found in _LABEL.finditer(plain) if found[0] != "I"))


def told_order(text: str) -> list[tuple[str, str]]:
    """The pairs of labels that a text puts in an order, the earlier first; what it negates is left out.

    >>> told_order("B comes before D, and A follows frame D. A > C")
    [('B', 'D'), ('D', 'A'), ('A', 'C')]
    """
    plain = " ".join(text.split())
    found = []
    for pattern, turned in ((_AHEAD, False), (_BEHIND, True), (_ARROW, False), (_FROM, False)):
        for hit in re.finditer(pattern, plain):
            first, last = hit.group(1), hit.group(2)
            if not negations(plain[hit.start(1) : hit.end(2)]):
                found.append((last, first) if turned else (first, last))
    return found


def rationale_fault(sentences: Sequence[CitedSentence], order: Sequence[str]) -> str:
    """The first rule that a rationale breaks, with what breaks it ("" where it breaks none). It must cite frames in
    every sentence, all frames together, those that it names, and take them up in the right order; it may tell no other
    order, speak of nothing that no frame shows, and speak to nobody."""
    place = {label: number for number, label in enumerate(order)}
    for one in sentences:
        fault = sentence_fault(one, place)
        if fault:
            return fault
    first: dict[str, int] = {}
    for number, one in enumerate(sentences):
        for label in one.frames:
            first.setdefault(label, number)
    left_out = [label for label in order if label not in first]
    if left_out:
        return f"frames left out: {', '.join(left_out)}"
    for earlier, later in pairwise(order):
        if first[later] < first[earlier]:
            return f"another order: {later} is taken up before {earlier}"
    return ""


def sentence_fault(one: CitedSentence, place: dict[str, int]) -> str:
    """What is wrong with one sentence; `place` is each label's place in the right order."""
    if not one.frames:
        return f"no frame cited: {one.text!r}"
    strange = [label for label in (*one.frames, *mentioned(one.text)) if label not in place]
    if strange:
        return f"no such frame: {strange[0]!r}"
    uncited = [label for label in mentioned(one.text) if label not in one.frames]
    if uncited:
        return f"named and not cited: {uncited[0]!r} in {one.text!r}"
    wrong = next(((a, b) for a, b in told_order(one.text) if place[a] >= place[b]), None)
    if wrong:
        return f"another order: {wrong[0]} before {wrong[1]}"
    for name, pattern in UNSEEN.items():
        hit = re.search(pattern, one.text, re.IGNORECASE)
        if hit is not None:
            return f"{name}: {hit[0]!r}"
    return f"{STEERING}: {one.text!r}" if has_injection(one.text) else ""


def added(refined: Sequence[CitedSentence], draft: Sequence[CitedSentence], most: int) -> str:
    """What refined sentences claim that the draft does not ("" for nothing). A sentence may use the words of content of
    those of the draft that cite one of its frames, and all sentences together `most` other ones; numbers, sides and
    directions come from the same sentences, and negations neither come nor go.

    >>> was = [CitedSentence(text="Pads lie on the chest.", frames=("B",))]
    >>> was += [CitedSentence(text="Hands are off.", frames=("A",))]
    >>> added([CitedSentence(text="Both hands are clear.", frames=("A",))], was, most=1)
    'not in the draft: both, clear'
    """
    new: list[str] = []
    for one in refined:
        near = " ".join(each.text for each in draft if set(each.frames) & set(one.frames))
        fixed = sides_and_numbers(one.text) - sides_and_numbers(near)
        if fixed:
            return f"not in the draft: {min(fixed)}"
        new += sorted(content_words(_unlabelled(one.text)) - content_words(_unlabelled(near)) - _FRAME_WORDS)
    if len(new) > most:
        return f"not in the draft: {', '.join(dict.fromkeys(new))}"
    was, now = (negations(" ".join(each.text for each in some)) for some in (draft, refined))
    changed = sorted(was ^ now)
    return f"a negation {'lost' if changed[0] in was else 'added'}: {changed[0]}" if changed else ""


_FRAME_WORDS = content_words("frame picture image show before after next first last follow precede")


def _unlabelled(text: str) -> str:
    return _LABEL.sub("", text)
