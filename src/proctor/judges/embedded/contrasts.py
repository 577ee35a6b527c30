"""Changed answers to learn from: what denies an answer is worth less, what only pads it is worth the same.

Clinicians rate few answers that say "none of this is true", so ratings alone teach no judge to notice it. Each wording in
`contrasts.yaml` is put around some training answers; the mean of what changes is one more row to learn from, with the
change in the rating that it should bring (after the tangent vectors of Simard et al. 1992, NIPS 4:895).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proctor.core import generator, read_yaml
from proctor.judges.dimensions import Case
from proctor.judges.embedded.answers import Answers

Rows = NDArray[np.int64]

EXPECTED = {"denied": -1.0, "padded": 0.0}
"""What each kind of change does to a rating, in standard deviations of the ratings."""

_EACH = 12  # answers that each wording is put around


@dataclass(frozen=True)
class Contrasts:
    """Answers as they were changed, each among the other answers to its question as they stand. Row `changed[k]` of
    `answers` was made from row `origin[k]` of the answers learned from, by the wording `wording[k]` ("denied/0")."""

    answers: Answers
    changed: Rows
    origin: Rows
    wording: tuple[str, ...]

    def part(self, rows: Rows) -> Contrasts:
        """What was made from some rows of the answers learned from, counted from 0."""
        place = {row: k for k, row in enumerate(rows.tolist())}
        kept = [k for k, row in enumerate(self.origin.tolist()) if row in place]
        origin = np.array([place[int(self.origin[k])] for k in kept], dtype=np.int64)
        return Contrasts(self.answers, self.changed[kept], origin, tuple(self.wording[k] for k in kept))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The wordings, each once."""
        return tuple(dict.fromkeys(self.wording))

    @property
    def expected(self) -> NDArray[np.float64]:
        """What each wording does to a rating."""
        return np.array([EXPECTED[one.partition("/")[0]] for one in self.kinds])

    def differences(self, changed: NDArray[np.float64], own: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean change by wording, of a block of columns: wordings × columns. `changed` are the rows of these
        answers, `own` those of the answers learned from."""
        apart = changed[self.changed] - own[self.origin]
        code = np.array([self.kinds.index(one) for one in self.wording], dtype=np.int64)
        sums = np.zeros((len(self.kinds), apart.shape[1]))
        np.add.at(sums, code, apart)
        return np.asarray(sums / np.bincount(code)[:, None], dtype=np.float64)


@cache
def _wordings() -> dict[str, dict[str, list[str]]]:
    return read_yaml(Path(__file__).with_name("contrasts.yaml"))


def changed_cases(cases: Sequence[Case], seed: int) -> tuple[list[Case], list[int], list[int], list[str]]:
    """Cases of one language in which an answer was changed, each with the other answers to its question under an id of
    their own; the places of the changed ones among them, what they were made from, and by which wording."""
    made: list[Case] = []
    changed: list[int] = []
    origin: list[int] = []
    names: list[str] = []
    by_question: dict[str, list[int]] = {}
    for place, case in enumerate(cases):
        by_question.setdefault(case.id, []).append(place)
    given = [place for place, case in enumerate(cases) if case.candidate.strip()]
    given.sort(key=lambda place: (cases[place].id, cases[place].candidate))
    for kind, wordings in _wordings().get(cases[0].language, {}).items():
        for number, wording in enumerate(wordings):
            name = f"{kind}/{number}"
            rng = generator(seed, "embedded-judge", "contrasts", cases[0].language, name)
            for drawn in rng.permutation(len(given))[:_EACH]:
                place = given[drawn]
                own = cases[place]
                text = wording.replace("{text}", own.candidate.strip())
                changed.append(len(made))
                origin.append(place)
                names.append(name)
                others = [cases[k] for k in by_question[own.id] if k != place]
                made += [replace(one, id=f"{own.id}#{name}#{place}") for one in (replace(own, candidate=text), *others)]
    return made, changed, origin, names
