"""Containers by podman: started, asked, restarted, removed; uploaded images; how they end."""

from __future__ import annotations

import asyncio
import json
import subprocess
import uuid
from pathlib import Path

import pytest

from proctor.core import ConfigurationError, InfrastructureError, InputError, Status
from proctor_challenge.containers import BoxError, PodmanExecutor
from proctor_challenge.containers.images import succeeded
from tests.support.boxes import HOSTILE, SMALL, image_of, podman
from tests.support.doubles_of_boxes import LABEL, TEMPLATE, answers, boxed, question

pytestmark = pytest.mark.podman


def asks(*attack: str) -> str:
    return json.dumps(attack)


def containers() -> list[str]:
    listed = subprocess.run(
        ["podman", "ps", "--all", "--quiet", f"--filter=label=proctor.box={LABEL}"], capture_output=True, check=True
    )
    return listed.stdout.decode().split()


def test_the_template_answers_in_a_container_and_nothing_is_left() -> None:
    async def ask() -> None:
        async with (system := boxed(image, executor=executor, limits=SMALL)):
            found = await answers(system, [question("q1"), question("q2")], b"pixels")
            assert len(containers()) == 1
        assert [one.text for one in found] == ["yes", "yes"]
        report = system.report()
        assert report.counts == {Status.ANSWERED: 2}
        assert report.peak_memory is not None
        assert 0 < report.peak_memory <= SMALL.memory

    executor = podman()
    image = image_of(TEMPLATE)
    asyncio.run(ask())
    assert containers() == []


def test_a_container_that_ends_is_started_again_once_and_says_how_it_ended() -> None:
    async def ask() -> None:
        async with (system := boxed(image, executor=executor, limits=SMALL)):
            ends = question("q1", asks("end", "7"))
            first, second, third = await answers(system, [ends, question("q2", asks("nothing")), ends])
            assert (first.status, second.text, third.status) == (Status.ERROR, "yes", Status.ERROR)
            with pytest.raises(BoxError, match="the container ended a second time"):
                await answers(system, [ends])
        report = system.report()
        assert (report.exit_code, report.signal, report.restarts) == (7, None, 1)

    executor = podman()
    image = image_of(HOSTILE)
    asyncio.run(ask())
    assert containers() == []


def test_what_a_dead_worker_left_is_removed_by_its_label() -> None:
    async def start() -> None:
        left = [
            await executor.start(image, SMALL, label=label)
            for label in (f"{LABEL}/2/1", f"{LABEL}/2/2", f"{LABEL}/22/1")
        ]
        assert await executor.remove_left(f"{LABEL}/2") == 2
        assert [await one.ended() for one in left] == [True, True, False]
        assert [one.media.exists() for one in left] == [False, False, True]
        assert await executor.remove_left(f"{LABEL}/22/1") == 1
        for one in left:
            await one.stop()

    executor = podman()
    image = image_of(HOSTILE)
    asyncio.run(start())


@pytest.mark.parametrize("image", ["--privileged", "-v/:/host", "a b", "", "no-such-image-here:1"])
def test_an_image_that_is_none_is_refused_and_is_no_option(image: str) -> None:
    with pytest.raises(ConfigurationError):
        asyncio.run(podman().start(image, SMALL, label="test/3/1"))


def test_a_machine_at_fault_is_not_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    podman()
    image = image_of(HOSTILE)
    with pytest.raises(InfrastructureError, match=r"podman run: "):
        asyncio.run(PodmanExecutor(arguments=["--runtime=no-such-runtime"]).start(image, SMALL, label="test/4/1"))


def saved(image: str, archive: Path, name: str) -> None:
    subprocess.run(["podman", "tag", image, name], check=True, capture_output=True)
    subprocess.run(["podman", "save", "--quiet", "--output", str(archive), name], check=True, capture_output=True)
    subprocess.run(["podman", "untag", image, name], check=True, capture_output=True)


def there(image: str) -> bool:
    return subprocess.run(["podman", "image", "exists", image], check=False).returncode == 0


def built() -> str:
    """An image that nobody else has."""
    made = subprocess.run(["podman", "create", image_of(TEMPLATE)], capture_output=True, text=True, check=True)
    label = f"LABEL test={uuid.uuid4()}"
    commit = ["podman", "commit", "--quiet", "--change", label, made.stdout.strip()]
    digest = subprocess.run(commit, capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(["podman", "rm", made.stdout.strip()], capture_output=True, check=True)
    return f"sha256:{digest}"


def test_an_uploaded_image_is_known_by_its_digest_and_goes_with_the_last_who_needs_it(tmp_path: Path) -> None:
    async def load() -> None:
        first, second = podman(), podman()
        assert [await one.load(archive) for one in (first, second)] == [image, image]
        assert not there("localhost/another-team:latest")
        await first.unload(image)
        await first.unload(image)  # it gives back what it has
        assert there(image)
        await second.unload(image)
        assert not there(image)

    podman()
    image, archive = built(), tmp_path / "image.tar"
    saved(image, archive, "localhost/another-team:latest")
    subprocess.run(["podman", "rmi", image], check=True, capture_output=True)
    asyncio.run(load())


def test_names_that_a_dead_worker_left_are_in_nobody_s_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended after its archive was loaded: another team's archive has the same name."""

    async def load() -> None:
        monkeypatch.setattr("proctor_challenge.containers.images.succeeded", dies)
        with pytest.raises(KeyboardInterrupt):
            await podman().load(archives[0])
        monkeypatch.undo()
        assert there("localhost/my-algorithm:latest")
        executor = podman()
        assert await executor.load(archives[1]) == images[1]
        assert not there("localhost/my-algorithm:latest")
        await executor.unload(images[1])

    async def dies(command: str, *arguments: str, **given: float) -> str:
        if arguments[0] == "tag":
            raise KeyboardInterrupt
        return await succeeded(command, *arguments, **given)

    podman()
    images, archives = [built(), built()], [tmp_path / "1.tar", tmp_path / "2.tar"]
    for image, archive in zip(images, archives, strict=True):
        saved(image, archive, "localhost/my-algorithm:latest")
        subprocess.run(["podman", "rmi", image], check=True, capture_output=True)
    asyncio.run(load())


def test_an_uploaded_image_can_not_take_the_name_of_another(tmp_path: Path) -> None:
    executor = podman()
    archive, name = tmp_path / "image.tar", "localhost/test-baseline:1"
    saved(image_of(TEMPLATE), archive, name)
    subprocess.run(["podman", "tag", image_of(HOSTILE), name], check=True)
    try:
        with pytest.raises(InputError, match=r"found the name 'localhost/test-baseline:1', which another image has"):
            asyncio.run(executor.load(archive))
    finally:
        subprocess.run(["podman", "untag", image_of(HOSTILE), name], check=True)


ASK = """
import json, pathlib, time, urllib.request
def asked(path, data=None):
    for _ in range(600):
        try:
            with urllib.request.urlopen("http://127.0.0.1:4743" + path, data=data) as reply:
                return reply.status
        except OSError:
            time.sleep(0.1)
print(asked("/health"), asked("/invoke", b""), pathlib.Path("/output/answer.json").read_text())
"""


def test_the_template_answers_grand_challenge_s_invoke(tmp_path: Path) -> None:
    """The same image, without our variable: on a port, with files for input and output, asked from inside as nothing
    else can."""
    executor = podman()
    given, out = tmp_path / "input", tmp_path / "output"
    given.mkdir()
    out.mkdir()
    out.chmod(0o777)
    sockets = [{"socket": {"relative_path": name}} for name in ("question.json", "clip.mp4")]
    (given / "inputs.json").write_text(json.dumps(sockets))
    (given / "question.json").write_text(json.dumps({"question": "Which one?", "options": ["B", "C"]}))
    (given / "clip.mp4").write_bytes(b"pixels")
    mounts = [f"--volume={given}:/input:ro", f"--volume={out}:/output"]
    run = ["podman", "run", "--detach", "--network=none", *executor.arguments, *mounts, image_of(TEMPLATE)]
    name = subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()
    try:
        inside = ["podman", "exec", name, "/usr/bin/python3", "-S", "-c", ASK]
        said = subprocess.run(inside, capture_output=True, text=True, check=True).stdout
    finally:
        subprocess.run(["podman", "rm", "--force", name], capture_output=True, check=True)
    assert said == '200 201 {"answer": "B"}\n'
