"""What an audit's report is made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proctor.audits import ALL, AuditReport, MetricRanking, RatingsTable
from proctor.core import Image, Item, Judgement, Reliability, Scan


@dataclass(frozen=True, slots=True)
class Reference:
    """What a good answer says. `frequency` and `completeness` as the data give them, None where they don't."""

    text: str
    frequency: float | None = None
    completeness: float | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked: its text, references, most reliable first, the names of its images, and how medical ones are
    shown."""

    text: str
    references: tuple[Reference, ...] = ()
    images: tuple[str, ...] = ()
    scans: tuple[Scan | None, ...] = ()


def asked(items: Iterable[Item]) -> dict[str, Question]:
    """The questions of a benchmark by item, with the reference answers that are texts, most reliable first (see
    `Reliability`), and the names of their images."""
    found = {}
    for item in items:
        given = item.reference
        texts = [] if given is None else [given.answer, *given.accepted]
        known = given.reliability if given and given.reliability else [Reliability()] * len(texts)
        references = [
            Reference(text, about.frequency, about.completeness)
            for text, about in zip(texts, known, strict=True)
            if isinstance(text, str)
        ]
        references.sort(key=lambda one: (_rank(one.frequency), _rank(one.completeness)))
        images = tuple(one.source for one in item.media if isinstance(one, Image))
        scans = tuple(one.scan for one in item.media if isinstance(one, Image))
        found[item.id] = Question(item.question, tuple(references), images, scans)
    return found


def _rank(value: float | None) -> tuple[bool, float]:
    return (value is None, -(value or 0.0))


@dataclass(frozen=True)
class AuditSource:
    """Several metrics compared with one table of ratings; `questions` by item, none where no texts are at hand;
    `judgements` by item and system, what judges among the metrics said of an answer;
    `image_root` is the folder of their images, None where they are not at hand. `raters` says in a word or two
    who rated."""

    title: str
    found: AuditReport
    questions: Mapping[str, Question] = field(default_factory=dict)
    image_root: Path | None = None
    raters: str = "the raters"
    judgements: Mapping[tuple[str, str], Sequence[Judgement]] = field(default_factory=dict)

    @property
    def table(self) -> RatingsTable:
        """The ratings."""
        return self.found.table

    @property
    def languages(self) -> list[str]:
        """The languages, in order; '' where none are named."""
        return list(dict.fromkeys(language for language, _ in self.table.dimensions))

    @property
    def datasets(self) -> list[str]:
        """All together, then each where there are several."""
        several = self.table.datasets
        return [ALL, *(several if len(several) > 1 else ())]

    @property
    def level(self) -> str:
        """The level of the intervals."""
        return f"{100 * self.found.settings.level:g} %"

    def dimensions(self, language: str) -> list[str]:
        """A language's dimensions, in order."""
        return [dimension for one, dimension in self.table.dimensions if one == language]

    def board(self, language: str, dimension: str = "") -> MetricRanking:
        """The metrics ranked on a dimension, or on the mean over a language's dimensions."""
        return next(one for one in self.found.boards if (one.language, one.dimension) == (language, dimension))

    def main_board(self, language: str) -> MetricRanking:
        """The board of a language over its dimensions; of its one dimension where it has no other."""
        dimensions = self.dimensions(language)
        return self.board(language, dimensions[0] if len(dimensions) == 1 else "")

    def ranked(self, language: str) -> list[str]:
        """The metrics' names, best first on a language's main board."""
        return [place.metric for place in self.main_board(language).metrics]
