"""What must hold of a challenge's database at any moment, computed from its rows and events alone."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import Connection, select

from proctor_challenge.challenge import Challenge
from proctor_challenge.schema import events, quotas, results, submissions

HOLDS = {"queued", "leased", "running", "scoring"}
COSTS = {"running": (1, 0), "scoring": (1, 0), "scored": (1, 1), "timed_out": (1, 0), "crashed": (1, 0)}
ENDS = {"refused", "scored", "timed_out", "crashed", "lost", "scorer_fault", "cancelled"}


def check_counts(challenge: Challenge) -> Counter[str]:
    """The counters of each team are what its submissions add up to, no quota is passed, events follow one another, and
    who has a result has one by each scorer at most; the submissions by state."""
    with challenge.reading() as connection:
        rows = connection.execute(select(submissions)).mappings().all()
        told = connection.execute(select(quotas)).mappings().all()
        scored = Counter(connection.execute(select(results.c.submission)).scalars())
        _check_events(connection, {row["id"]: row["state"] for row in rows})
    for one in told:
        mine = [row for row in rows if (row["team"], row["phase"]) == (one["team"], one["phase"])]
        sums = {
            "submitted": len(mine),
            "holding": sum(row["state"] in HOLDS for row in mine),
            "attempted": sum(row["attempted"] for row in mine),
            "scored": sum(row["scored"] for row in mine),
        }
        assert {name: one[name] for name in sums} == sums
        quota = challenge.phase(one["phase"]).quota
        assert one["holding"] + one["scored"] <= quota.scored
        assert one["attempted"] <= quota.attempted
        assert sorted(row["number"] for row in mine) == list(range(1, len(mine) + 1))
    for row in rows:
        cost = COSTS.get(row["state"], (0, 0))
        assert row["scored"] == cost[1]
        assert row["attempted"] == cost[0] or (row["state"] == "cancelled" and row["attempted"] <= 1)
        assert row["state"] != "scored" or scored[row["id"]] >= 1
        assert (row["lease_until"] is not None) == bool(row["worker"])
        assert row["worker"] == "" or row["state"] in HOLDS - {"queued"}
    return Counter(row["state"] for row in rows)


def _check_events(connection: Connection, states: dict[int, str]) -> None:
    """Each begins where the one before ended, and the last one where the submission is."""
    last, fences = dict[int, str](), Counter[int]()
    for row in connection.execute(select(events).order_by(events.c.id)).mappings():
        assert row["before"] == last.get(row["submission"], "")
        assert row["fence"] >= fences[row["submission"]]
        last[row["submission"]], fences[row["submission"]] = row["after"], row["fence"]
    assert last == states


def times_scored(challenge: Challenge) -> Counter[int]:
    """How often each submission became `scored`."""
    with challenge.reading() as connection:
        return Counter(connection.execute(select(events.c.submission).where(events.c.after == "scored")).scalars())
