"""What an audit of items finds: plain data, from which others make tables and pictures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import JsonValue

from proctor.stats import Estimate


@dataclass(frozen=True)
class Histogram:
    """How often the right option stood at each of `options` places; `p` against all places alike.

    `test` says which test gave it: "chi-square", or "simulated chi-square" where fewer than five are
    expected at a place.
    """

    options: int
    counts: tuple[int, ...]
    p: float
    test: str


@dataclass(frozen=True)
class OptionContrast:
    """One feature of options: its mean over the right ones and over the wrong ones (each item counts
    once), the difference within items with its clustered interval, and the two-sided p (None with one
    group), as it is and by Holm over all features."""

    feature: str
    label: str
    right: float
    wrong: float
    difference: Estimate
    p: float | None
    p_holm: float | None


@dataclass(frozen=True)
class Repeats:
    """In how many other items of its group an item's right answer (the right option, or the reference of
    a free text) occurs again, in the same words: as the right answer, as a wrong option, inside the
    question (two words at least). Only items with at least one are listed."""

    item_id: str
    as_right: int
    as_wrong: int
    in_question: int


@dataclass(frozen=True)
class GuesserResult:
    """One way to answer without looking.

    `accuracy` of a "rule" is over all items; of a "learned" guesser it is out of fold: every item was
    guessed by a fit that saw no item of its group. `chance` is what random guessing reaches (None where
    the format has no such number), `p` is one-sided against it, `p_holm` by Holm over the format's
    guessers; both None where there is no chance level or only one group.
    """

    name: str
    label: str
    kind: Literal["rule", "learned"]
    accuracy: Estimate
    chance: float | None
    p: float | None
    p_holm: float | None


@dataclass(frozen=True)
class FacetAccuracy:
    """The selected guessers' accuracy on the items that have one value of one tag."""

    facet: str
    value: str
    accuracy: Estimate
    chance: float | None


@dataclass(frozen=True)
class SelectedGuesser:
    """The best text-only accuracy, without flattery.

    For each fold of groups the guesser is chosen on the other folds alone (learned ones by an inner
    cross-validation) and then tried on this one; where none beats chance there, this one is answered
    at random ("by-lot"). `chosen` says for how many items each was chosen; `covers_chance` whether the
    interval holds the chance level: then the audit has found nothing. An artefact that is too weak to be
    sure of (on 250 items of four options: a rule that is right in a third of them) may go unselected;
    the guessers' own p values show it.
    """

    accuracy: Estimate
    chance: float | None
    covers_chance: bool | None
    chosen: dict[str, int]
    folds: int
    facets: tuple[FacetAccuracy, ...]


@dataclass(frozen=True)
class OptionAudit:
    """What the options give away. `key_positions` and `length_ranks` (1 = shortest) hold one histogram
    for each number of options; `strictly_shortest` and `strictly_longest` count the items whose right
    option is shorter (longer) than every other."""

    key_positions: tuple[Histogram, ...]
    length_ranks: tuple[Histogram, ...]
    strictly_shortest: int
    strictly_longest: int
    contrasts: tuple[OptionContrast, ...]


@dataclass(frozen=True)
class FormatAudit:
    """The items of one answer format. `constant_share` is what the best constant answer scores in
    sample (the baseline `majority`); `guessers` come best first; `selected` is None, with the reason in
    `unselected`, where there are too few groups to choose on some and try on others."""

    kind: str
    n: int
    groups: int
    chance: float | None
    constant_share: float
    guessers: tuple[GuesserResult, ...]
    selected: SelectedGuesser | None
    unselected: str
    options: OptionAudit | None

    @property
    def best_rule(self) -> GuesserResult | None:
        """The fixed rule with the highest accuracy over all items (chosen in sample: see its p)."""
        return next((guesser for guesser in self.guessers if guesser.kind == "rule"), None)


@dataclass(frozen=True)
class ItemAudit:
    """The whole audit.

    `guessable` holds every item that could be tried: whether the guesser that was selected on other
    groups, fitted on other groups, answers it. Of these a share of about `chance` is luck. Where no
    guesser beat chance on the other groups no item is guessable. Items of a format with too few groups to
    select are missing. `left_out` says which items were not audited, by answer format, and
    why.
    """

    n: int
    groups: int
    seed: int
    draws: int
    formats: tuple[FormatAudit, ...]
    repeats: tuple[Repeats, ...]
    guessable: dict[str, bool]
    left_out: dict[str, str]

    def format(self, kind: str) -> FormatAudit | None:
        """The audit of one answer format; None where the benchmark has no such items."""
        return next((audit for audit in self.formats if audit.kind == kind), None)


def to_json(audit: ItemAudit) -> JsonValue:
    """The audit as plain JSON data, field by field under the same names."""
    return _plain(asdict(audit))


def _plain(value: Any) -> JsonValue:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"an audit holds plain data, not {type(value).__name__}")
