"""Where the thoughts of a reply are: one table for all formats, for judges, and for the client of models.

Models think aloud before they answer. Servers put the thoughts into a field of their own, if they are started with
the parser of the model's family; otherwise they stand in the text, in marks that differ between families.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from proctor.core.text import deferred


@dataclass(frozen=True)
class ThoughtMarks:
    """The marks of one `family`, as regular expressions: what opens a thought, and what closes it.

    `lone_close`: a closing mark without an opening one ends a thought that began with the reply, since some servers
    put the opening mark into the prompt. `restarts`: the closing mark begins the answer, whatever came before. A thought
    that is opened and not closed was cut off by the token limit: there is no answer yet.
    """

    family: str
    opens: str
    closes: str
    lone_close: bool = True
    restarts: bool = False


def _tag(names: str, namespace: str = r"(?:[a-z][\w.-]{0,20}:)?", *, lone_close: bool = True) -> ThoughtMarks:
    """Tags of XML in any case, with a namespace and attributes, escaped or not."""
    rest = r"(?:\s[^<>\n]{0,200}?)?"
    return ThoughtMarks(
        names,
        rf"(?:<|&lt;){namespace}(?:{names}){rest}(?<!/)(?:>|&gt;)(?!\s(?:tags?|blocks?|sections?|elements?)\b)",
        rf"(?:<|&lt;)/\s?{namespace}(?:{names})\s?(?:>|&gt;)",
        lone_close,
    )


def _stem(stems: str) -> str:
    """The names of tags in which a word of these stands, alone or beside others ("think", "seed_think", "think_fast")."""
    return rf"(?:[a-z]{{1,20}}[_-]){{0,3}}(?:{stems})(?:[_-][\w-]{{1,60}})?"


_LEFT, _AND, _END = r"<[|｜]", r"[_▁ ]", r"[|｜]>"
_THOUGHT = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?)"
_HEADER = r"\s*(?:to=\S{1,60}\s*)?(?:<\|constrain\|>\s*\w{0,20}\s*|\s\w{1,20}\s*)?<\|message\|>"
_ROLE = r"(?:<\|end\|>\s*)?(?:<\|start\|>\s*assistant\s*)?"
_FORM = r"(?:\s(?:text|json)(?=(?-i:[^a-z\s])))?"
THOUGHT_MARKS = (
    # DeepSeek, Qwen, GLM, Nemotron, Hunyuan, Seed, MiniMax, EXAONE, LongCat; each name by its stem, since they multiply
    _tag(_stem("think(?:ing)?|thoughts?")),
    _tag(_stem("reason(?:ing|s)?")),
    _tag(_stem("reflect(?:ion|ions)?")),
    _tag(_stem("scratch_?pad")),
    _tag("analysis"),
    _tag(_stem("cot|monologue|deliberat(?:e|ion)|planning|ponder(?:ing)?|internal")),
    ThoughtMarks(
        "details",  # Open WebUI, and models that fold their thoughts
        r"<details\b[^<>\n]{0,100}\breasoning\b[^<>\n]{0,100}>|<details\b[^<>\n]{0,100}>\s{0,9}<summary>[^<>\n]{0,40}"
        r"\b(?:think|thought|reason)\w{0,5}\b",
        r"</details>",
        lone_close=False,
    ),
    ThoughtMarks("ollama", r"\A\s*Thinking\.\.\.\s", r"^\.\.\.\s?done thinking\.?", lone_close=False),
    ThoughtMarks("kimi", r"◁think▷", r"◁/think▷"),
    ThoughtMarks("magistral", r"\[THINK\]", r"\[/THINK\]"),
    ThoughtMarks(  # Command A, Sky-T1, OpenThinker, Solar Open, DeepSeek: special tokens of any spelling
        "token",
        rf"{_LEFT}(?:(?:begin|start){_AND}(?:of{_AND})?)?{_THOUGHT}(?:{_AND}(?:begin|start))?{_END}",
        rf"{_LEFT}(?:/{_THOUGHT}|end{_AND}(?:of{_AND})?{_THOUGHT}|{_THOUGHT}{_AND}end){_END}"
        r"|(?:<\|end\|>\s{0,3})?<\|begin\|>\s{0,3}assistant\s{0,3}<\|content\|>",
    ),
    ThoughtMarks("chatml", r"<\|im_start\|>\s{0,3}(?:think|thought|reasoning)\b", r"<\|im_end\|>", lone_close=False),
    ThoughtMarks("apertus", r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),
    ThoughtMarks("medgemma", r"<(?:unused|ctrl)94>(?:thought\b)?", r"<(?:unused|ctrl)95>"),
    ThoughtMarks("gemma-4", r"<\|channel>(?:thought\b)?", r"<channel\|>"),
    ThoughtMarks(
        "gpt-oss",
        rf"{_ROLE}<\|channel\|>\s*(?:analysis|commentary)\b(?:{_HEADER})?",
        rf"{_ROLE}<\|channel\|>\s*final\b{_HEADER}",
        restarts=True,
    ),
    ThoughtMarks(  # behind a server that leaves the special tokens out
        "gpt-oss", r"(?-i:\A\s*analysis(?=[^a-z\s:;,.!?*_)\]}/'-]))", rf"assistantfinal{_FORM}", restarts=True
    ),
    ThoughtMarks(  # or puts blanks for them
        "gpt-oss",
        r"(?-i:\A\s*analysis(?=\s{1,2}[A-Z0-9](?s:.)*assistant\s{0,2}final))",
        rf"assistant\s{{1,2}}final(?:{_FORM}\b|(?=(?-i:[A-Z])))",
        lone_close=False,
    ),
    ThoughtMarks(  # its words are plain ones, so an answer's line ends the thought, too
        "granite",
        r"\A\W{0,4}Here(?: is|'s|\u2019s) my thought process:",
        r"Here(?: is|'s|\u2019s) my response:|^(?=\W{0,4}(?:the )?(?:final )?answer\W{0,3}:)",
        lone_close=False,
    ),
)
"""The table. A closing mark closes a thought of its own family only."""

_ANSWER_MARKS = deferred(  # around the answer, after the thought
    r"<\|begin_of_solution\|>|<\|START_(?:RESPONSE|TEXT)\|>|<(?:conclusion|response|output)>", re.IGNORECASE
)
_ANSWER_ENDS = deferred(
    r"<\|end_of_solution\|>|<\|END_(?:RESPONSE|TEXT)\|>|</(?:conclusion|response|output)>", re.IGNORECASE
)
_NEXT_TURN = deferred(  # a base model writes the user's next message, too
    r"(?:<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>)\s*user\b|<\|user\|>|(?<=\S)\s*\[INST\]", re.IGNORECASE
)
_TOKEN = deferred(
    r"<\|im_start\|>\s*assistant\s|<[|｜][a-zA-Z_▁]{1,40}[|｜]>|</?s>|<think\s?/>|<(?:start|end)_of_turn>|<eos>"
)
_QUOTES = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "「": "」"}


def without_thoughts(text: str) -> str:
    """The reply without thoughts and control tokens, stripped; "" if all of it is a thought, or the thought was cut
    off. Marks in quotes are text.

    >>> without_thoughts("Hm, two or three?</think> Answer: 3<|im_end|>")
    'Answer: 3'
    >>> without_thoughts("analysisTwo, or three.assistantfinal3")
    '3'
    >>> without_thoughts("<unused94>thought Answer: 3? Let me")
    ''
    """
    return _split(text).answer


def has_thoughts(text: str) -> bool:
    """Whether marks of thoughts stand in a reply.

    >>> has_thoughts("<think>Two?</think>3"), has_thoughts("Answer: 3")
    (True, False)
    """
    return _split(text).thought


def is_cut_thought(text: str) -> bool:
    """Whether a reply ends within a thought.

    >>> is_cut_thought("<think>Two, or"), is_cut_thought("<think>Two?</think>3")
    (True, False)
    """
    return _split(text).cut


class _Parts(NamedTuple):
    answer: str
    thought: bool
    cut: bool


@cache
def _marks() -> re.Pattern[str]:
    """All marks in one pattern; the groups o0, c0, o1, … tell which one."""
    return re.compile(
        "|".join(f"(?P<o{row}>{marks.opens})|(?P<c{row}>{marks.closes})" for row, marks in enumerate(THOUGHT_MARKS)),
        re.IGNORECASE | re.MULTILINE,
    )


@lru_cache(maxsize=4)  # a reply is split several times: for JSON, for cues, for the record
def _split(text: str) -> _Parts:
    kept: list[str] = []
    before: list[str] = []  # what stood before a closing mark without an opening one
    family, at, thought, whole = "", 0, False, False
    for hit in _marks().finditer(text) if _MAY_THINK.search(text) else ():
        opens, marks = str(hit.lastgroup)[0] == "o", THOUGHT_MARKS[int(str(hit.lastgroup)[1:])]
        if _is_quoted(text, hit):
            continue
        if opens and not family:
            kept.append(text[at : hit.start()])
            family = marks.family
        elif not opens and family == marks.family:
            kept = [] if marks.restarts else kept
            family, whole = "", True
        elif not opens and not family and marks.lone_close:
            before = [*kept, text[at : hit.start()]]
            kept.clear()
        else:
            continue
        thought, at = True, hit.end()
    if not family:
        kept.append(text[at:])
    answer = _TOKEN.sub(" ", _within("".join(kept))).strip()
    if not answer and whole and not family:  # a second closing mark at the very end
        answer = _TOKEN.sub(" ", _within("".join(before))).strip()
    return _Parts(answer, thought, bool(family))


_MAY_THINK = deferred(r"[<◁\[]|&lt;|assistant|\A\s*thinking\.\.\.|\A\s*analysis|\A\W{0,4}here", re.IGNORECASE)


def _is_quoted(text: str, hit: re.Match[str]) -> bool:
    """Whether a mark stands in quotes: the text speaks of it."""
    opening = text[hit.start() - 1 : hit.start()] if hit.start() else ""
    return opening in _QUOTES and text[hit.end() : hit.end() + 1] == _QUOTES[opening]


def _within(text: str) -> str:
    """The text up to the next turn, in the last marks around an answer; without any, all of it."""
    turn = _NEXT_TURN.search(text)
    text = text[: turn.start()] if turn and text[: turn.start()].strip() else text
    begins = list(_ANSWER_MARKS.finditer(text))
    if not begins:
        return text
    rest = text[begins[-1].end() :]
    end = _ANSWER_ENDS.search(rest)
    inside = rest[: end.start()] if end else rest
    return inside if inside.strip() else text
