"""The entry point: `proctor`, and `python -m proctor` where its script is not on the path.

It imports nothing of weight before Ctrl-C has a handler, so that it ends the program with one sentence from the first
import to the last clean-up.
"""

from __future__ import annotations

import os
import signal
import sys

from proctor.cli import STOPPED, STOPPED_EXIT


def main() -> None:
    """Run the program (see `proctor.cli.main.main`)."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where a shell ignores it
    if ours:
        signal.signal(signal.SIGINT, _stop)  # an import that is interrupted may raise anything, or nothing
    try:
        from proctor.cli.main import main as run

        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    finally:
        if ours:
            signal.signal(signal.SIGINT, _stop)


def _stop(*_signal: object) -> None:
    os.write(2, f"{STOPPED}\n".encode())
    sys.stdout.flush()
    os._exit(STOPPED_EXIT)


if __name__ == "__main__":
    main()
