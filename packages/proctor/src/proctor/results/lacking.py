"""What a run or a board lacks: how many items are without a score, by reason (failed, not asked, no verdict)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lacking:
    """The numbers of questions of a board without a score. The run's file has no answer to `missing` ones, which are wrong;
    `failed` ones ended with an infrastructure error; `unresolved` ones have no verdict by the judge, `unscored` ones wait
    for it; `unsupported` ones are not supported by the system; `untimed` answers have no latency, where it
    counts."""

    missing: int = 0
    not_asked: int = 0
    failed: int = 0
    unresolved: int = 0
    unscored: int = 0
    unsupported: int = 0
    untimed: int = 0

    @property
    def incomplete(self) -> bool:
        """Whether its score depends on the policy."""
        return bool(self.not_asked or self.failed or self.unresolved)
