"""Any order of what teams, workers, organisers and the clock do: the database and a model of a few lines agree."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from sqlalchemy import select

from proctor_challenge.boards import Figures
from proctor_challenge.queue import RECEIVED_S, Leased, advance, beat, claim, expire, give_back
from proctor_challenge.schema import submissions
from proctor_challenge.scoring import keep_result, rerun_all
from proctor_challenge.states import SubmissionState as State
from proctor_challenge.submissions import HandInError, StaleError, cancel, settle
from tests.support.challenge_counts import COSTS, HOLDS, check_counts
from tests.support.hosted import StandingClock, challenge_folder, handed_in, opened, team

QUOTA = {"scored": 2, "attempted": 4}  # as `tests.support.hosted` has it
LEASE_S = 60.0
NOTHING = Figures(boards=(), statuses={})
LIVING = {"leased", "running", "scoring"}


class Submissions(RuleBasedStateMachine):
    """Two teams, one phase, any number of workers that may be slow, die, or come back."""

    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = StandingClock()
        self.challenge = opened(challenge_folder(Path(self.folder.name)), now=self.clock)
        self.teams = [team(self.challenge, name) for name in ("A", "B")]
        self.known: dict[int, dict[str, Any]] = {}
        self.scorer = "f" * 64

    def teardown(self) -> None:
        self.challenge.close()
        self.folder.cleanup()

    # -- the model

    def mine(self, of: int) -> list[dict[str, Any]]:
        return [one for one in self.known.values() if one["team"] == of]

    def full(self, of: int) -> bool:
        results = sum(one["state"] in HOLDS | {"scored"} for one in self.mine(of))
        attempts = sum(one["attempted"] or one["state"] in {"queued", "leased"} for one in self.mine(of))
        return results >= QUOTA["scored"] or attempts >= QUOTA["attempted"]

    def to(self, one: dict[str, Any], state: str) -> None:
        kept = one["attempted"] if state == "cancelled" else COSTS.get(state, (0, 0))[0]
        one.update(state=state, attempted=kept)
        if state not in LIVING:
            one["until"] = None

    def ended(self, one: dict[str, Any], *, counted: bool = True) -> None:
        one["lost"] += counted
        if one["state"] == "scoring":
            one["until"] = None
            if one["lost"] > 1:
                self.to(one, "scorer_fault")
        else:
            self.to(one, "queued" if one["lost"] <= 1 else "lost")

    def holds(self, leased: Leased) -> bool:
        one = self.known[leased.submission]
        return one["fence"] == leased.fence and one["state"] in LIVING

    # -- what teams and organisers do

    @rule(which=st.integers(0, 1))
    def hand_in(self, which: int) -> None:
        of = self.teams[which]
        try:
            made = handed_in(self.challenge, of)
        except HandInError:
            assert self.full(of)
            return
        assert not self.full(of)
        self.known[made] = {"team": of, "state": "received", "attempted": 0, "lost": 0, "fence": 0, "until": None}
        self.known[made]["since"] = self.clock.at.timestamp()

    @rule(which=st.integers(0, 1))
    def hand_in_what_fits(self, which: int) -> None:
        before = len(self.known)
        self.hand_in(which)
        if len(self.known) > before:
            with self.challenge.writing() as connection:
                assert settle(connection, self.challenge, max(self.known)) == ""
            self.to(self.known[max(self.known)], "queued")

    @rule(data=st.data(), fits=st.booleans())
    def check(self, data: st.DataObject, fits: bool) -> None:
        waiting = [name for name, one in self.known.items() if one["state"] == "received"]
        if waiting:
            chosen = data.draw(st.sampled_from(waiting))
            one = self.known[chosen]
            good = fits and not self.full(one["team"])
            with self.challenge.writing() as connection:
                assert (settle(connection, self.challenge, chosen, () if fits else ("q1",)) == "") == good
            self.to(one, "queued" if good else "refused")

    @rule(data=st.data())
    def cancel_one(self, data: st.DataObject) -> None:
        if self.known:
            chosen = data.draw(st.sampled_from(sorted(self.known)))
            possible = self.known[chosen]["state"] in {"received", "queued", "leased", "running"}
            with self.challenge.writing() as connection:
                assert _done(lambda: cancel(connection, self.challenge, chosen)) == possible
            if possible:
                self.to(self.known[chosen], "cancelled")

    @rule(new=st.booleans())
    def score_all_again(self, new: bool) -> None:
        self.scorer = f"{int(self.scorer, 16) - new:064x}"
        with self.challenge.writing() as connection:
            rerun_all(connection, self.scorer, "", self.clock())
        for one in self.known.values():
            if one["state"] == "scorer_fault" or (one["state"] == "scored" and one["scorer"] != self.scorer):
                self.to(one, "scoring")
                one.update(until=None, lost=0)

    # -- what workers do

    @rule(target=leases)
    def lease(self) -> Leased | None:
        with self.challenge.writing() as connection:
            found = claim(connection, "w", self.clock(), LEASE_S)
        free = [
            n
            for n, one in self.known.items()
            if one["state"] == "queued" or (one["state"] == "scoring" and one["until"] is None)
        ]
        assert (None if found is None else found.submission) == min(free, default=None)
        if found is not None:
            one = self.known[found.submission]
            assert found.scoring == (one["state"] == "scoring")
            one.update(fence=found.fence, until=self.clock.at.timestamp() + LEASE_S)
            self.to(one, "scoring" if found.scoring else "leased")
        return found

    @rule(leased=leases, data=st.data())
    def step(self, leased: Leased | None, data: st.DataObject) -> None:
        if leased is None:
            return
        one = self.known[leased.submission]
        follows = {"leased": ["running", "scoring"], "running": ["scoring", "crashed", "timed_out"]}
        likely = [*follows.get(one["state"], []), "scorer_fault"]
        after = data.draw(st.sampled_from([*likely, *likely, "running", "crashed"]))
        follows["scoring"] = ["scorer_fault"]
        mine = one["fence"] == leased.fence
        possible = mine and (after in follows.get(one["state"], ()) or after == one["state"])
        with self.challenge.writing() as connection:
            assert _done(lambda: advance(connection, leased, State(after), self.clock())) == possible
        if possible and one["state"] != after:
            self.to(one, after)
            one["lost"] = 0 if after == "scoring" else one["lost"]

    @rule(leased=leases)
    def result(self, leased: Leased | None) -> None:
        if leased is None:
            return
        one = self.known[leased.submission]
        mine = one["fence"] == leased.fence
        possible = mine and one["state"] in {"scoring", "scored"}
        with self.challenge.writing() as connection:
            assert _done(lambda: keep_result(connection, leased, NOTHING, self.scorer, self.clock())) == possible
        if possible and one["state"] == "scoring":
            self.to(one, "scored")
            one["scorer"] = self.scorer

    @rule(leased=leases)
    def beats(self, leased: Leased | None) -> None:
        if leased is None:
            return
        possible = self.holds(leased) and self.known[leased.submission]["until"] is not None
        with self.challenge.writing() as connection:
            assert _done(lambda: beat(connection, leased, self.clock(), LEASE_S)) == possible
        if possible:
            self.known[leased.submission]["until"] = self.clock.at.timestamp() + LEASE_S

    @rule(leased=consumes(leases), counted=st.booleans())
    def gives_back(self, leased: Leased | None, counted: bool) -> None:
        if leased is None:
            return
        possible = self.holds(leased) and self.known[leased.submission]["until"] is not None
        with self.challenge.writing() as connection:
            assert _done(lambda: give_back(connection, leased, self.clock(), counted=counted)) == possible
        if possible:
            self.ended(self.known[leased.submission], counted=counted)

    @rule(seconds=st.sampled_from([20, 61, 61, 1000]))
    def time_passes(self, seconds: int) -> None:
        self.clock.pass_by(seconds=seconds)
        now = self.clock.at.timestamp()
        with self.challenge.writing() as connection:
            expire(connection, self.clock())
        for one in self.known.values():
            if one["until"] is not None and one["until"] < now:
                self.ended(one)
            elif one["state"] == "received" and now - one["since"] > RECEIVED_S:
                self.to(one, "cancelled")

    # -- what always holds

    @invariant()
    def the_database_and_the_model_agree(self) -> None:
        check_counts(self.challenge)
        with self.challenge.reading() as connection:
            rows = connection.execute(select(submissions)).mappings().all()
        found = {row["id"]: (row["state"], row["attempted"], row["fence"]) for row in rows}
        assert found == {n: (one["state"], one["attempted"], one["fence"]) for n, one in self.known.items()}


def _done(action: Any) -> bool:
    try:
        action()
    except StaleError:
        return False
    return True


Submissions.TestCase.settings = settings(
    max_examples=20, stateful_step_count=30, phases=(Phase.explicit, Phase.generate)
)
TestSubmissions = Submissions.TestCase
