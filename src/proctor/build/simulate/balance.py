"""Which questions are asked: a seeded choice among the offers, balanced so that the text alone gives nothing away."""

from __future__ import annotations

from collections import Counter

import numpy as np

from proctor.build.simulate.offers import Offer

__all__ = ["FORMATS", "choose"]

FORMATS = ("choice", "count", "binary", "classes", "timestamps", "ordering")
"""The formats, in the order in which they take turns."""


def choose(pool: dict[str, list[Offer]], per_video: int, rng: np.random.Generator) -> dict[str, list[Offer]]:
    """`per_video` questions of each video, the formats taking turns; fewer where there are not so many offers.

    Where a format has nothing (more) to ask of a video, its turn goes to the next format. Among the offers
    of a format the one is taken that disturbs these balances least, ties by lot: answers within a rule and
    within a format, answers given what the text tells, rules, and within a video how often each class is
    named in questions and offered as an option (a class that is asked about more often would be suspected
    of being there).
    """
    chosen: dict[str, list[Offer]] = {video: [] for video in pool}
    ledger = _Ledger()
    for turn in range(per_video):
        formats = [FORMATS[(turn + step) % len(FORMATS)] for step in range(len(FORMATS))]
        for video, offers in pool.items():
            taken = {_text(offer) for offer in chosen[video]}
            open_offers = [offer for offer in offers if _text(offer) not in taken]
            best = _best(open_offers, formats, ledger, video, rng)
            if best is not None:
                ledger.add(best, video)
                chosen[video].append(best)
    return chosen


def _text(offer: Offer) -> tuple[str, frozenset[str]]:
    """What makes two questions of one video the same; of two choices with one stem only one is asked."""
    return offer.question, frozenset(getattr(offer.format, "labels", ()))


def _best(
    offers: list[Offer], formats: list[str], ledger: _Ledger, video: str, rng: np.random.Generator
) -> Offer | None:
    for form in formats:
        asked = [offer for offer in offers if offer.format.kind == form]
        if asked:
            lots = rng.random(len(asked))
            costs = [ledger.cost(offer, video) + lot for offer, lot in zip(asked, lots, strict=True)]
            return asked[int(np.argmin(costs))]
    return None


class _Ledger:
    """What was taken so far, and what one more offer would cost."""

    def __init__(self) -> None:
        self._used: Counter[tuple[str, ...]] = Counter()

    def add(self, offer: Offer, video: str) -> None:
        self._used.update(self._weights(offer, video).keys())

    def cost(self, offer: Offer, video: str) -> float:
        return sum(weight * self._used[entry] for entry, weight in self._weights(offer, video).items())

    @staticmethod
    def _weights(offer: Offer, video: str) -> dict[tuple[str, ...], float]:
        """What an offer is an instance of, and how much it matters that none of these is used more than others."""
        form = offer.format.kind
        weights: dict[tuple[str, ...], float] = {
            ("answer", form, offer.key): 4.0,
            ("answer to rule", offer.rule, offer.key): 3.0,
            ("answer to cue", form, offer.cue, offer.key): 2.0,
            ("rule", offer.rule): 1.5,
            ("rule in video", video, offer.rule): 8.0,
        }
        weights |= {("named", video, name): 2.0 for name in offer.mentions}
        weights |= {("offered", video, name): 1.0 for name in offer.choices}
        return weights
