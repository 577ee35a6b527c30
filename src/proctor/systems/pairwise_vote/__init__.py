"""`pairwise-vote`: key frames in the order that most votes on pairs agree with."""

from proctor.systems.pairwise_vote.system import Options, PairwiseVote, build
from proctor.systems.pairwise_vote.votes import Ballot, Tally, read_choice

__all__ = ["Ballot", "Options", "PairwiseVote", "Tally", "build", "read_choice"]
