"""Work in a fork of this process, so that nothing is imported again, which may be killed in the middle of it."""

from __future__ import annotations

import gc
import os
import signal
import time
import traceback
from collections.abc import Callable

_HANGS_S = 600.0  # a guard, no property of the work
_RAISED = 7


def in_a_fork(work: Callable[[], object]) -> int:
    """The exit code of a fork of this process that does the work: 0 or the number that it returned, 7 where it raised,
    negative for a signal. Raises `TimeoutError` where it does not end.

    The threads of this process are not in the fork. So what a search for cycles would free is freed here beforehand,
    and nothing is searched there: a decoder waits for its threads before it goes, forever where there are none.
    """
    gc.collect()
    child = os.fork()
    if child == 0:
        gc.disable()
        code = _RAISED
        try:
            found = work()
            code = found if isinstance(found, int) else 0
        except BaseException:  # noqa: BLE001  (the process ends here, whatever happened)
            traceback.print_exc()
        finally:
            os._exit(code)
    ends = time.monotonic() + _HANGS_S
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > ends:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise TimeoutError(f"a fork of the tests did not end within {_HANGS_S:g} s")
        time.sleep(0.005)


def killed(work: Callable[[], object]) -> None:
    """Does it in a process that has to end by `SIGKILL`, sent by the work itself."""
    assert in_a_fork(work) == -signal.SIGKILL
