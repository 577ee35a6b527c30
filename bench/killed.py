"""What is lost when the processes of a challenge are killed (SIGKILL) at drawn moments, while submissions come in, images
are asked and answers marked: workers, containers, scorers, the process that takes submissions in, the database.

python bench/killed.py                # 60 kills, on SQLite
python bench/killed.py --postgres     # 60 kills, and the database is restarted 10 times at once with them

Two workers, each with a scorer's process; images are programs of ten questions (a question takes 10 ms, marking 30 ms);
leases last a second. In the end nothing may be stuck, each team's counters must be what its submissions add up to, and
each result must have come once; else this program ends with an error.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from proctor.core import generator
from tests.support.hosted_work import asked_folder
from tests.support.killed_workers import TARGETS, Storm
from tests.support.postgres import binaries, restartable_postgres


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL, which is restarted, too")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    targets = [TARGETS[number % len(TARGETS)] for number in range(options.kills)]
    with ExitStack() as stack:
        folder = asked_folder(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "trays")
        storm = Storm(folder, None, seed=options.seed, team_count=40)
        if options.postgres:
            programs = binaries()
            if programs is None:
                sys.exit("no PostgreSQL server here (Debian: apt-get install postgresql)")
            url, storm.restart = stack.enter_context(restartable_postgres(programs))
            storm.store = f"{url}/postgres"
            targets += ["database"] * 10
        storm.rage([targets[one] for one in generator(options.seed, "targets").permutation(len(targets))])
        storm.check()
        storm.challenge.close()
    print(f"{storm.killed.total()} kills in {storm.seconds:.0f} s on {'PostgreSQL' if options.postgres else 'SQLite'}")
    print(f"  killed: {', '.join(f'{name} {count}' for name, count in sorted(storm.killed.items()))}")
    print(f"  submissions: {', '.join(f'{name} {count}' for name, count in sorted(storm.states.items()))}")
    print(
        f"  {len(storm.acknowledged)} acknowledged, 0 of them lost; leases that ended without a result: {storm.lost_once}"
    )
    print(f"  questions asked again: {storm.asked_again}; 0 stuck, 0 quota lost, 0 marked twice")


if __name__ == "__main__":
    main()
