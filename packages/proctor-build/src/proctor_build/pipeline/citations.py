"""What a sentence about labelled frames says of them: which frames it names, and which it puts before which."""

from __future__ import annotations

import re

from proctor_build.pipeline.speech import negations

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
    """The labels in a text, each once: single capital letters, except "A" as an article and "I".

    >>> mentioned("A rescuer kneels in B; frames B and D show the pads.")
    ('B', 'D')
    """
    plain = _ARTICLE.sub("", text)
    return tuple(dict.fromkeys(found[0] for found in _LABEL.finditer(plain) if found[0] != "I"))


def without_labels(text: str) -> str:
    """A text without the labels of frames.

    >>> without_labels("In B, hands rest.")
    'In , hands rest.'
    """
    return _LABEL.sub("", text)


def stated_order(text: str) -> list[tuple[str, str]]:
    """The pairs of labels that a text puts in an order, the earlier first; negated ones are left out.

    >>> stated_order("B comes before D, and A follows frame D. A > C")
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
