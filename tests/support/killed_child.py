"""Work in a process that is killed in the middle of it: a fork of this one, so that nothing is imported again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def killed(work: Callable[[], object]) -> None:
    """Does it in a process that has to end by `SIGKILL`, sent by the work itself."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
