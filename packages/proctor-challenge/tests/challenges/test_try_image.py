"""`proctor challenge try` and `doctor`: a participant's image on public questions, and a machine, before they count."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from proctor.core import InfrastructureError, InputError
from proctor_challenge import NewChallenge, Trial, new_challenge
from proctor_challenge.containers import doctor
from proctor_challenge.containers.podman import ARGUMENTS, PodmanExecutor
from tests.support.boxes import image_of, podman
from tests.support.challenge_data import focus_data
from tests.support.doubles_of_boxes import TEMPLATE, program
from tests.support.program import proctor


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A challenge of yes-or-no questions, twenty of them for training."""
    new_challenge(tmp_path / "sponges", NewChallenge("focus", focus_data(tmp_path / "data"), training=1, test=4))
    return tmp_path / "sponges"


def test_a_program_is_tried_on_the_public_questions(folder: Path) -> None:
    done = proctor("challenge", "try", TEMPLATE, folder, "--executor", "process")
    assert done.returncode == 0, done.stderr
    assert "training: 20 questions under text-only" in done.stdout
    assert "answered: 20" in done.stdout
    assert "of 20 scored answers" in done.stdout


def test_a_program_is_found_from_where_one_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TEMPLATE.parent)
    done = proctor("challenge", "try", TEMPLATE.name, folder, "--executor", "process", "--limit", "1")
    assert "answered: 1" in done.stdout, done.stderr


def test_what_it_can_be_asked_is_limited_and_told_to_programs(folder: Path) -> None:
    done = proctor("challenge", "try", TEMPLATE, folder, "--executor", "process", "--limit", "3", "--format", "json")
    said = json.loads(done.stdout)
    assert (said["phase"], said["questions"], said["ended"]) == ("training", 3, "")
    assert said["container"]["counts"] == {"answered": 3}


def test_a_program_that_crashes_shows_what_it_printed(folder: Path, tmp_path: Path) -> None:
    crashes = program(tmp_path, "def reply(asked, connection):\n    raise KeyError('weights')\nBox().serve(reply)\n")
    done = proctor("challenge", "try", crashes, folder, "--executor", "process")
    assert done.returncode == 1
    assert "the container ended a second time" in done.stdout
    assert "KeyError: 'weights'" in done.stdout


def test_answers_that_can_not_be_read_are_shown(folder: Path, tmp_path: Path) -> None:
    odd = program(tmp_path, "Box().serve(lambda asked, connection: http({'answer': 'perhaps'}))\n")
    done = proctor("challenge", "try", odd, folder, "--executor", "process", "--limit", "2")
    assert "unreadable: 2 answers, such as: expected yes or no and nothing else, found 'perhaps'\n" in done.stdout


def test_unreadable_answers_are_counted_once(folder: Path, tmp_path: Path) -> None:
    code = "from itertools import count\nnumber = count()\n"
    code += "Box().serve(lambda asked, connection: http({'answer': f'perhaps {next(number) % 2}'}))\n"
    done = proctor("challenge", "try", program(tmp_path, code), folder, "--executor", "process", "--limit", "3")
    (line,) = [one for one in done.stdout.splitlines() if one.startswith("unreadable")]
    start, _, examples = line.partition(", such as: ")
    assert start == "unreadable: 3 answers"
    assert sorted(examples.split("; ")) == [
        f"expected yes or no and nothing else, found 'perhaps {number}'" for number in (0, 1)
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--phase", "test"), "--phase 'test' has no public questions: choose one with public questions: training"),
        (("--executor", "rocket"), "--executor 'rocket' is unknown: choose one of podman, docker, process"),
    ],
)
def test_what_can_not_be_tried_is_said(folder: Path, arguments: tuple[str, str], said: str) -> None:
    done = proctor("challenge", "try", TEMPLATE, folder, *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_challenge_without_public_questions_says_so(folder: Path) -> None:
    file = folder / "challenge.yaml"
    start, _, rest = file.read_text("utf-8").partition("- name: training")
    file.write_text(f"{start}- name: test{rest.partition('- name: test')[2]}", encoding="utf-8")
    with pytest.raises(InputError, match=r"challenge\.yaml: found no phase with public questions, expected one"):
        Trial(folder).read()


def test_a_folder_without_settings_needs_the_benchmark_s_name(tmp_path: Path) -> None:
    done = proctor("challenge", "try", TEMPLATE, focus_data(tmp_path / "data"), "--executor", "process")
    assert done.returncode == 2
    assert "so that its benchmark must be named: --benchmark" in done.stderr


def test_no_program_is_no_image(folder: Path) -> None:
    done = proctor("challenge", "try", "no-such-file", folder, "--executor", "process")
    assert done.returncode == 1
    assert "no-such-file: found no such program, expected an executable or a Python file" in done.stderr


def test_a_process_has_no_limits_to_check() -> None:
    assert proctor("challenge", "check", "--executor", "process", "--machine").returncode == 2


@pytest.mark.podman
def test_an_image_is_tried_as_the_challenge_runs_it(folder: Path) -> None:
    podman()
    done = proctor("challenge", "try", image_of(TEMPLATE), folder, "--limit", "5")
    assert done.returncode == 0, done.stdout
    assert "answered: 5" in done.stdout
    assert "memory: " in done.stdout


@pytest.mark.podman
def test_a_machine_that_holds_containers_is_told_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    podman()
    monkeypatch.setattr(doctor, "_OVERRUN_S", 60.0)  # how busy this machine is proves nothing
    settings = folder / "challenge.yaml"
    settings.write_text(
        settings.read_text() + "\nresources: {memory: 256m, cpus: 1, scratch: 16m, shared_memory: 16m}\n"
    )
    done = proctor("challenge", "check", folder, "--machine")
    assert done.stdout.endswith("Containers run here, and are held.\n"), done.stdout
    for line in (
        "ok network: lo",
        "ok capabilities: 0x0",
        "ok filter of system calls: on",
        "ok limit of memory: holds",
    ):
        assert line in done.stdout


@pytest.mark.podman
def test_a_machine_that_does_not_hold_them_is_told_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An organiser's own arguments give a right: the doctor finds it from inside."""
    podman()
    monkeypatch.setenv(ARGUMENTS, os.environ.get(ARGUMENTS, "") + " --cap-add=NET_RAW")
    done = proctor("challenge", "check", folder, "--machine")
    assert done.returncode == 1
    assert "FAILED capabilities: 0x" in done.stdout


def test_limits_that_the_engine_may_not_raise_come_with_their_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words of runc in a sandbox that lets nobody raise limits."""
    error = (
        "Error: runc: runc create failed: error setting rlimit type 7: operation not permitted: OCI permission denied"
    )

    async def refuses(*_: object, **__: object) -> tuple[int, str, str]:
        return 126, "", error

    monkeypatch.setattr("proctor_challenge.containers.podman.engine", refuses)
    with pytest.raises(InfrastructureError) as refused:
        asyncio.run(PodmanExecutor(arguments=[])._run_image([], tmp_path))
    cure = "(the engine may not raise its limits here: set PROCTOR_PODMAN_ARGS='--ulimit nofile=1024:1024 --ulimit nproc=1024:1024')"
    assert str(refused.value).endswith(f"operation not permitted: OCI permission denied {cure}")
