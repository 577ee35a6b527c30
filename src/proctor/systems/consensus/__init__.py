"""`consensus`: key frames in the order that several systems, models or samples agree on most."""

from proctor.systems.consensus.members import PLAIN, Options, members
from proctor.systems.consensus.system import ConsensusOfSystems, build

__all__ = ["PLAIN", "ConsensusOfSystems", "Options", "build", "members"]
