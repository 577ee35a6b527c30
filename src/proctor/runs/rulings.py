"""Disqualification: a person decides it and may take it back; every decision stays in the store with reason and time."""

from __future__ import annotations

from proctor.core import InputError, one_of
from proctor.runs.cards import BenchmarkCard, Ruling
from proctor.runs.store import Store


def disqualify(store: Store, benchmark: str, system: str, reason: str, *, at: str) -> Ruling:
    """From now on no board ranks the system; its answers and scores stay. `at` is the time in UTC (ISO 8601).

    Raises `InputError` for an unknown system, one that is disqualified already, and an empty reason.
    """
    known = sorted({run.system for run in store.runs(benchmark)})
    if system not in known:
        raise InputError(store.shown, found=f"no run of {system!r}", expected=one_of(known, system))
    ruling = Ruling(system=system, reason=_stated(reason), since=at)

    def ruled(card: BenchmarkCard) -> BenchmarkCard:
        if system in card.disqualified:
            found = f"{card.disqualified[system]}, disqualified already"
            raise InputError(store.shown, found=found, expected="a system that is not")
        return card.model_copy(update={"rulings": (*card.rulings, ruling)})

    store.change_card(benchmark, ruled)
    return ruling


def reinstate(store: Store, benchmark: str, system: str, reason: str, *, at: str) -> Ruling:
    """Takes a disqualification back; what was decided stays on record. Raises `InputError` where the system is not
    disqualified, and for an empty reason."""
    update = {"lifted": at, "lifted_because": _stated(reason)}

    def ruled(card: BenchmarkCard) -> BenchmarkCard:
        if system not in card.disqualified:
            expected = one_of(sorted(card.disqualified), system)
            raise InputError(store.shown, found=f"{system!r}, not disqualified", expected=expected)
        mine = card.disqualified[system]
        rulings = tuple(one.model_copy(update=update) if one is mine else one for one in card.rulings)
        return card.model_copy(update={"rulings": rulings})

    store.change_card(benchmark, ruled)
    return next(one for one in reversed(store.card(benchmark).rulings) if one.system == system)


def _stated(reason: str) -> str:
    plain = " ".join(reason.split())
    if not plain:
        raise InputError(None, "--reason", found="nothing", expected="why, in a sentence")
    return plain
