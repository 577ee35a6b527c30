"""A program behind the gateway: asked like every system, and nothing that it does ends more than its own answers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from proctor.core import Status
from proctor_challenge.containers import BoxError, BoxLimits, ProcessExecutor
from proctor_challenge.containers.podman import box_arguments
from proctor_challenge.containers.process import ProcessBox, named
from tests.support.doubles_of_boxes import LABEL, TEMPLATE, answers, boxed, program, question

FIVE = [question(f"q{number}") for number in range(5)]


def test_the_template_answers() -> None:
    async def ask() -> None:
        async with (system := boxed(str(TEMPLATE))):
            found = await answers(system, FIVE)
        assert [(one.status, one.text, one.parsed) for one in found] == [(Status.ANSWERED, "yes", True)] * 5
        assert system.report().counts == {Status.ANSWERED: 5}

    asyncio.run(ask())


def test_what_is_told_and_shown_is_the_question_alone(tmp_path: Path) -> None:
    seen = program(
        tmp_path,
        """
        def reply(asked, connection):
            folder = os.path.dirname(asked["media"][0]["path"])
            files = [(name, os.stat(os.path.join(folder, name)).st_mtime, oct(os.stat(os.path.join(folder, name)).st_mode))
                     for name in sorted(os.listdir(folder))]
            content = open(asked["media"][0]["path"], "rb").read().decode()
            return http({"answer": json.dumps([sorted(asked), asked["id"], files, content])})
        Box().serve(reply)
        """,
    )

    async def ask() -> None:
        async with (system := boxed(seen)):
            first, second = [one.text for one in await answers(system, FIVE[:2], b"pixels", b"more")]
        fields = '["deadline_s", "format", "id", "instruction", "media", "options", "question"]'
        files = '[["image-1.jpg", 0.0, "0o100444"], ["image-2.jpg", 0.0, "0o100444"]]'
        assert first.startswith(f'[{fields}, "')
        assert first.endswith(f'", {files}, "pixels"]')
        assert first != second  # another id
        assert "q0" not in first

    asyncio.run(ask())


def test_files_of_a_question_are_gone_with_it(tmp_path: Path) -> None:
    """Nothing is left to be read, not even by a file that was kept open."""
    keeps = program(
        tmp_path,
        """
        kept = []
        def reply(asked, connection):
            before = [os.fstat(one.fileno()).st_size for one in kept]
            folder = os.path.dirname(asked["media"][0]["path"])
            kept.append(open(asked["media"][0]["path"], "rb"))
            return http({"answer": json.dumps([before, len(os.listdir(folder))])})
        Box().serve(reply)
        """,
    )

    async def ask() -> None:
        async with (system := boxed(keeps)):
            assert [one.text for one in await answers(system, FIVE[:3], b"pixels")] == [
                "[[], 1]",
                "[[0], 1]",
                "[[0, 0], 1]",
            ]

    asyncio.run(ask())


def test_a_late_answer_is_timed_out_and_the_program_lives_on(tmp_path: Path) -> None:
    late = program(
        tmp_path,
        """
        box = Box()
        def reply(asked, connection):
            if box.number == 2:
                connection.recv(1)  # until the other side has gone
            return http({"answer": str(box.number)})
        box.serve(reply)
        """,
    )

    async def ask() -> None:
        async with (system := boxed(late, question_s=2)):
            found = await answers(system, FIVE)
        assert (found[1].status, found[1].reason) == (Status.TIMED_OUT, "took longer than 2 s")
        assert found[-1].text == "5"
        assert system.report().restarts == 0

    asyncio.run(ask())


def test_three_late_answers_in_a_row_start_it_again_once_and_ten_end_it(tmp_path: Path) -> None:
    hangs = program(
        tmp_path,
        """
        Box().serve(lambda asked, connection: connection.recv(1))
        """,
    )

    async def ask() -> None:
        async with (system := boxed(hangs, question_s=0.02)):
            for _ in range(3):
                await answers(system, FIVE[:1])
            assert system.report().restarts == 0
            for _ in range(7):
                await answers(system, FIVE[:1])
            assert system.report().restarts == 1
            with pytest.raises(BoxError, match="10 answers in a row were late") as error:
                await answers(system, FIVE[:1])
        assert error.value.late
        assert system.report().counts == {Status.TIMED_OUT: 10}

    asyncio.run(ask())


def test_one_that_ends_is_started_again_once(tmp_path: Path) -> None:
    crashes = program(
        tmp_path,
        """
        box = Box()
        def reply(asked, connection):
            if box.number == 2:
                raise ValueError("the key is B")
            return http({"answer": "yes"})
        box.serve(reply)
        """,
    )

    async def ask() -> None:
        async with (system := boxed(crashes)):
            found = await answers(system, FIVE[:4])
            with pytest.raises(BoxError, match="the container ended a second time"):
                await answers(system, FIVE[4:])
        assert [one.status.value for one in found] == ["answered", "error", "answered", "error"]
        report = system.report()
        assert (report.exit_code, report.restarts, report.errors) == (1, 1, {"ValueError": 1})
        assert "the key is B" not in report.model_dump_json()
        assert "the key is B" in system.report(public=True).log

    asyncio.run(ask())


def test_one_that_never_listens_is_never_ready(tmp_path: Path) -> None:
    silent = tmp_path / "silent.py"
    silent.write_text("import time\nwhile True:\n    time.sleep(60)\n")

    async def start(image: str, startup_s: float) -> None:
        async with boxed(image, startup_s=startup_s):
            pass

    with pytest.raises(BoxError, match=r"not ready after 0\.1 s") as error:
        asyncio.run(start(str(silent), 0.1))
    assert error.value.late
    silent.write_text("raise SystemExit(3)\n")
    with pytest.raises(BoxError, match="ended before it was ready") as error:
        asyncio.run(start(str(silent), 60))
    assert not error.value.late


def test_what_a_dead_worker_left_is_killed_by_its_label(tmp_path: Path) -> None:
    async def ask() -> None:
        executor = ProcessExecutor()
        left = [
            await executor.start(str(TEMPLATE), BoxLimits(), label=label)
            for label in (f"{LABEL}/1/1", f"{LABEL}/1/2", f"{LABEL}/12/1")
        ]
        assert await executor.remove_left(f"{LABEL}/1") == 2
        await asyncio.gather(*(one._process.wait() for one in left[:2] if isinstance(one, ProcessBox)))
        assert [await one.ended() for one in left[:2]] == [True, True]
        assert [one.media.exists() for one in left] == [False, False, True]
        assert not await left[2].ended()
        for one in left:
            await one.stop()

    asyncio.run(ask())


def test_the_template_is_short_and_says_what_it_answers() -> None:
    assert len(TEMPLATE.read_text().splitlines()) <= 60
    assert 'LABEL org.grand-challenge.api-method="invoke"' in (TEMPLATE.parent / "Dockerfile").read_text()


def test_nothing_stays_of_a_worker_that_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program is ended and its media are removed by the next one that starts a box on this machine; a box whose
    worker lives is left alone."""
    worker = tmp_path / "worker.py"
    worker.write_text(
        textwrap.dedent(f"""
        import asyncio, os, signal
        from proctor_challenge.containers import BoxLimits, ProcessExecutor

        async def start():
            box = await ProcessExecutor().start({str(TEMPLATE)!r}, BoxLimits(), label="{LABEL}-killed/1/1")
            (box.media / "image-1.jpg").write_bytes(b"hidden")
            os.kill(os.getpid(), signal.SIGKILL)

        asyncio.run(start())
        """)
    )
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    told = subprocess.run([sys.executable, worker], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False)
    assert told.returncode == -signal.SIGKILL
    hidden = [*tmp_path.glob("proctor-boxes-*/*/input/image-1.jpg")]
    assert [file.read_bytes() for file in hidden] == [b"hidden"]
    assert [one for one in named().values() if one.startswith(f"{LABEL}-killed/")]

    async def start() -> None:
        first, second = ProcessExecutor(), ProcessExecutor()
        boxes = [await one.start(str(TEMPLATE), BoxLimits(), label=f"{LABEL}/1") for one in (first, second)]
        assert [await one.ended() for one in boxes] == [False, False]
        assert [one.media.is_dir() for one in boxes] == [True, True]
        for one in boxes:
            await one.stop()

    asyncio.run(start())
    assert not hidden[0].exists()
    assert not [one for one in named().values() if one.startswith(f"{LABEL}-killed/")]


@pytest.mark.parametrize("command", ["podman", "docker"])
def test_every_limit_is_an_argument(command: str) -> None:
    """Also those that can't be tried on every machine: swap counts as memory, and no engine gets another one's
    options."""
    given = box_arguments(command, BoxLimits(memory=2**30, gpu="nvidia.com/gpu=1"), "a/1/1")
    for one in ("--memory=1073741824b", "--memory-swap=1073741824b", "--network=none", "--device=nvidia.com/gpu=1"):
        assert one in given
    own = {"--http-proxy", "--image-volume", "--no-hosts", "--read-only-tmpfs"}
    assert bool(own & {one.partition("=")[0] for one in given}) == (command == "podman")
    assert all("notmpcopyup" in one for one in given if one.startswith("--tmpfs")) == (command == "podman")
