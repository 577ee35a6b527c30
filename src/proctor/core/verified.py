"""Published figures beside those that are computed again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verified(StrEnum):
    """What became of a published figure: `same` as ours, as exactly as it was published; `explained`: it differs, and
    why is known; `absent`: the recorded answers behind it are not at hand; `different`.

    >>> [one.value for one in Verified]
    ['same', 'explained', 'absent', 'different']
    """

    SAME = "same"
    EXPLAINED = "explained"
    ABSENT = "absent"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class VerifiedFigure:
    """A published figure beside ours, computed from recorded answers (None: these are not at hand). `source` says where
    it stands, `tolerance` what its rounding allows, `explained` why it differs where that is known.

    >>> VerifiedFigure("accuracy", "A paper, table 2", 0.663, 0.66265, 0.0005).state.value
    'same'
    """

    name: str
    source: str
    published: float
    ours: float | None
    tolerance: float = 1e-9
    explained: str = ""

    @property
    def state(self) -> Verified:
        """See `Verified`."""
        if self.ours is None:
            return Verified.ABSENT
        if abs(self.ours - self.published) <= self.tolerance + 1e-12:  # a bound that was rounded itself
            return Verified.SAME
        return Verified.EXPLAINED if self.explained else Verified.DIFFERENT
