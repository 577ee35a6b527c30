"""What is lost when the processes of a challenge are killed (SIGKILL) at drawn moments, while submissions come in,
images are asked and answers scored: workers, containers, scorers, the process that takes submissions in, the database.

python bench/killed.py                # 60 kills, on SQLite
python bench/killed.py --postgres     # 60 kills, and the database is restarted 10 times among them
python bench/killed.py --pages        # the server is proctor serve, to which teams send their images by its form
python bench/killed.py --repeats 5    # a run of 100 questions with five repetitions instead (also with --postgres)

Two workers, each with a scorer's process; images are programs of ten questions (a question takes 10 ms, scoring 30 ms);
leases last a second. In the end nothing may be stuck, each team's counters must be what its submissions add up to, and
each result must have come once; else this program ends with an error.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx2
from itsdangerous import Signer
from sqlalchemy import insert, select

sys.path[0] = str(Path(__file__).resolve().parents[1])  # not this folder, which has a `statistics`
os.environ.setdefault("OMP_NUM_THREADS", "1")

from proctor.core import generator, replacing
from proctor_challenge.pages.site import KEY_FILE
from proctor_challenge.schema import members
from proctor_web import signing_key
from proctor_web.schema import sessions
from proctor_web.sessions import start_session
from tests.support.hosted import account
from tests.support.hosted_work import TrustingExecutor, asked_folder
from tests.support.killed_runs import kill_run
from tests.support.killed_workers import TARGETS, Storm
from tests.support.postgres import binaries, restartable_postgres

PORT = 8765


class UnpackingExecutor(TrustingExecutor):
    """Runs the program that is the one layer of an uploaded archive."""

    async def load(self, archive: Path) -> str:
        program = archive.parent.parent / "programs" / archive.name
        with tarfile.open(archive) as opened:
            layer = opened.extractfile("layer.tar")
            assert layer is not None
            program.parent.mkdir(exist_ok=True)
            with replacing(program) as draft:
                draft.write_bytes(layer.read())
                draft.chmod(0o755)
        return await super().load(program)


class PagesStorm(Storm):
    """A storm over `proctor serve`."""

    executor = UnpackingExecutor

    def _start_server(self) -> None:
        if not hasattr(self, "headers"):
            self.headers = [self._logged_in(team) for team in self.teams]
        store = ["--store", self.store] if self.store else []
        program = [sys.executable, "-c", "from proctor.cli.main import main; main()"]
        serve = [*program, "serve", str(self.folder), "--port", str(PORT), "--same-user", *store]
        self.server = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.server.stdout is not None
        while not self.server.stdout.readline().startswith("Serving"):
            assert self.server.poll() is None

    def _kill_server(self) -> None:
        self.server.kill()
        self.server.communicate()

    def _strike_server(self) -> None:
        """While a team sends an image, or the image is checked."""
        sending = threading.Thread(target=self._send, args=(int(self.draws.integers(1000)),))
        sending.start()
        sending.join(float(self.draws.uniform(0.0, 2.0)))
        self._kill_server()
        sending.join()
        self._start_server()

    def _send(self, number: int) -> None:
        content = self._archive((self.folder / "uploads" / self.images[number % len(self.images)]).read_bytes(), number)
        headers, csrf = self.headers[number % len(self.teams)]
        with suppress(httpx2.TransportError), httpx2.Client(base_url=f"http://127.0.0.1:{PORT}", timeout=120) as client:
            files = {"upload": ("image.tar", content)}
            told = client.post("/phase/test/image", headers=headers, data={"csrf": csrf, "name": "entry"}, files=files)
            assert told.status_code in {303, 409}, told.text
            if told.status_code == 303:
                self.acknowledged.add(int(told.headers["location"].rpartition("/")[2]))

    def _archive(self, program: bytes, number: int) -> bytes:
        """An image as docker save writes it, whose layer is a program."""
        manifest = [{"Config": "config.json", "Layers": ["layer.tar"], "RepoTags": None}]
        parts = {"config.json": json.dumps({"n": number}).encode(), "layer.tar": program}
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for name, content in {"manifest.json": json.dumps(manifest).encode(), **parts}.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return out.getvalue()

    def _logged_in(self, team: int) -> tuple[dict[str, str], str]:
        """The headers of a team's member who is logged in, and the token for forms."""
        person = account(self.challenge, f"person{team}")
        with self.challenge.writing() as connection:
            connection.execute(insert(members).values(account=person, team=team, joined=""))
            token = start_session(connection, person, self.challenge.now())
            csrf = connection.execute(select(sessions.c.csrf).where(sessions.c.account == person)).scalar_one()
        cookie = Signer(signing_key(self.folder / KEY_FILE), salt="session").sign(token).decode()
        return {"cookie": f"proctor={cookie}", "x-csrf-token": csrf}, csrf


def kill_repeats(options: argparse.Namespace) -> None:
    """Kills a run with repetitions, and says what it cost."""
    kills = min(options.kills, 20 * options.repeats)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = str(folder / "runs.db")
        if options.postgres:
            programs = binaries()
            if programs is None:
                sys.exit("no PostgreSQL server here (Debian: apt-get install postgresql)")
            url = f"{stack.enter_context(restartable_postgres(programs))[0]}/postgres"
        found = kill_run(url, folder, items=100, repeats=options.repeats, kills=kills, seed=options.seed)
    print(f"{found.kills} kills in {found.seconds:.0f} s on {'PostgreSQL' if options.postgres else 'SQLite'}")
    print(f"  {found.answers} answers (100 questions, {options.repeats} repetitions): 0 lost, 0 twice in the store")
    print(f"  requests under way at a kill, paid again: {found.again}; recorded answers paid again: 0")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL, which is restarted, too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pages", action="store_true", help="the server is proctor serve")
    parser.add_argument("--repeats", type=int, default=0, help="kill a run of this many repetitions instead")
    options = parser.parse_args()
    if options.repeats:
        kill_repeats(options)
        return
    targets = [TARGETS[number % len(TARGETS)] for number in range(options.kills)]
    with ExitStack() as stack:
        folder = asked_folder(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "trays")
        storm = (PagesStorm if options.pages else Storm)(folder, None, seed=options.seed, team_count=40)
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
    print(f"  questions asked again: {storm.asked_again}; 0 stuck, 0 quota lost, 0 scored twice")


if __name__ == "__main__":
    main()
