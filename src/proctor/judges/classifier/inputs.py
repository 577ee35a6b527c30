"""What a classifier reads of a case, as tokens: picture caption, question, answer, and references where it learned with
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from proctor.judges.dimensions import Case

CUT_RULE = (
    "An input that is longer than the limit loses tokens at the end of its parts: of the references first, then of the "
    "caption, of the question and last of the answer; no part is cut below an equal share of the room."
)

PartName = Literal["caption", "question", "answer", "references"]
_CUT_ORDER: tuple[PartName, ...] = ("references", "caption", "question", "answer")
_READ_ORDER: tuple[PartName, ...] = ("caption", "question", "answer", "references")


@dataclass(frozen=True, slots=True)
class TokenizedCase:
    """The texts of a case as tokens, each with the part that it is of, and the names of the parts that were cut."""

    texts: tuple[tuple[PartName, tuple[int, ...]], ...]
    cut: tuple[PartName, ...] = ()


def kept_lengths(lengths: dict[PartName, int], room: int) -> dict[PartName, int]:
    """How many tokens of each part are read, by `CUT_RULE`.

    >>> kept_lengths({"question": 50, "answer": 30, "references": 90}, 120)
    {'question': 50, 'answer': 30, 'references': 40}
    >>> kept_lengths({"question": 100, "answer": 90, "references": 5}, 60)
    {'question': 20, 'answer': 35, 'references': 5}
    """
    kept, share = dict(lengths), room // max(1, len(lengths))
    for name in _CUT_ORDER:
        excess = sum(kept.values()) - room
        if name in kept and excess > 0:
            kept[name] -= min(excess, max(0, kept[name] - share))
    return kept


def tokenized(case: Case, caption: str, tokenizer: Any, limit: int, *, references: bool) -> TokenizedCase:
    """A case as tokens, `limit` at most, those counted that an encoder wants around each text. References stand in the
    order of `Case.sorted_references`. An empty answer is read as such; other parts that are empty are left out."""
    texts: dict[PartName, list[str]] = {"caption": [caption], "question": [case.query], "answer": [case.candidate]}
    texts["references"] = [one.text for one in case.sorted_references] if references else []
    found: dict[PartName, list[list[int]]] = {}
    for name, some in texts.items():
        ids = [list(tokenizer(text, verbose=False).input_ids) for text in some if text.strip() or name == "answer"]
        if ids:
            found[name] = ids
    lengths: dict[PartName, int] = {name: sum(map(len, ids)) for name, ids in found.items()}
    kept = kept_lengths(lengths, limit)
    read: list[tuple[PartName, tuple[int, ...]]] = []
    for name in _READ_ORDER:
        room = kept.get(name, 0)
        for text in found.get(name, ()):
            if room:
                read.append((name, tuple(text[:room])))
                room -= len(read[-1][1])
    return TokenizedCase(tuple(read), tuple(name for name in _READ_ORDER if kept.get(name, 0) < lengths.get(name, 0)))


def cut_counts(cases: Iterable[TokenizedCase]) -> dict[str, int]:
    """How many inputs lost something of each part.

    >>> cut_counts([TokenizedCase((), ("references",)), TokenizedCase(())])
    {'references': 1}
    """
    return dict(Counter(name for one in cases for name in one.cut))
