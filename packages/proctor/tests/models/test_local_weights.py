"""Local weights: a tiny model that the test makes runs in this process, and behind a real server."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import json
import os
import pickle
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow
from pydantic import BaseModel

from proctor.core import ConfigurationError, Frame, Stopwatch, SystemFaultError, Timing
from proctor.models import ModelClient, ModelSpec, Reply
from proctor.models.local import Batches
from proctor.models.queries import Choices, Query
from proctor.models.weights import Weights
from tests.support.tiny_vlm import make_tiny_vlm
from tests.support.virtual_time import run_in_virtual_time, until

pytestmark = [  # one process loads torch, not all of them
    pytest.mark.xdist_group("weights"),
    pytest.mark.usefixtures("offline"),
]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_vlm(tmp_path_factory.mktemp("weights"))


def picture(seed: int) -> Frame:
    pixels = np.random.default_rng(seed).integers(0, 255, (3, 4, 3), dtype=np.uint8)
    out = io.BytesIO()
    Pillow.fromarray(pixels).resize((64, 48)).save(out, "JPEG")
    return Frame(out.getvalue(), float(seed), f"t = {seed}.0 s")


def client(weights: Path | str, **settings: object) -> ModelClient:
    given = {"max_tokens": 8, "batch_size": 4} | settings
    return ModelClient(ModelSpec.model_validate({"name": f"transformers:{weights}", "settings": given}))


def ask_all(model: ModelClient, questions: Sequence[Sequence[str | Frame]], system: str = "") -> list[Reply[None]]:
    async def run() -> list[Reply[None]]:
        try:
            return await asyncio.gather(*(model.ask(parts, system=system) for parts in questions))
        finally:
            await model.aclose()

    return asyncio.run(run())


def test_several_pictures_are_seen_in_their_order(weights: Path) -> None:
    one, other = picture(1), picture(2)
    questions: list[list[str | Frame]] = [
        [one, other, "Which came first?"],
        [other, one, "Which came first?"],
        [one, "Which came first?"],
        ["Which came first?"],
    ]
    replies = ask_all(client(weights), questions)
    assert len({reply.text for reply in replies}) == 4
    assert [reply.usage.output_tokens for reply in replies] == [8] * 4
    assert [reply.finish_reason for reply in replies] == ["length"] * 4
    tokens = [reply.usage.input_tokens for reply in replies]
    assert tokens[0] - tokens[2] == 16 + len("t = 2.0 s")  # a picture is 16 tokens, a letter one
    assert replies[0].usage.cost_usd is None


def test_a_batch_says_what_each_question_alone_is_told(weights: Path) -> None:
    questions: list[list[str | Frame]] = [[picture(k), picture(k + 1), f"Question {'again ' * k}?"] for k in range(6)]
    together = ask_all(client(weights), questions)
    alone = [ask_all(client(weights, batch_size=1), [parts])[0] for parts in questions]
    assert [reply.text for reply in together] == [reply.text for reply in alone]
    assert [reply.usage for reply in together] == [reply.usage for reply in alone]


def test_the_systems_words_come_first(weights: Path) -> None:
    plain, told = (ask_all(client(weights), [["Now?"]], system=words)[0] for words in ("", "Be brief."))
    assert told.usage.input_tokens - plain.usage.input_tokens == len("SYSTEM: Be brief.")
    assert told.text != plain.text


def test_words_are_drawn_by_seed_or_the_likeliest(weights: Path) -> None:
    def said(**settings: object) -> str:
        return ask_all(client(weights, max_tokens=12, **settings), [[picture(1), "What?"]])[0].text

    assert said() == said() == said(temperature=0, seed=5)
    assert said(temperature=5.0, seed=1) == said(temperature=5.0, seed=1)
    assert said(temperature=5.0, seed=1) != said(temperature=5.0, seed=2)


def test_a_stop_sequence_ends_the_words_and_is_not_said(weights: Path) -> None:
    whole = ask_all(client(weights, max_tokens=8), [["What?"]])[0].text
    stopped = ask_all(client(weights, max_tokens=8, stop_sequences=[whole[3]]), [["What?"]])[0]
    assert stopped.text == whole[: whole.index(whole[3])]
    assert stopped.finish_reason == "stop"


def test_other_settings_are_refused(weights: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        client(weights, presence_penalty=1)
    assert str(caught.value) == (
        f"transformers:{weights}: unknown model setting 'presence_penalty': expected one of batch_size, "
        "device, dtype, fill_form, max_tokens, prefix_cache_gb, seed, stop_sequences, temperature, top_k, top_p "
        "(a server's own settings go into extra_body)"
    )


class Verdict(BaseModel):
    """What is thought of it."""

    score: int


def test_a_form_is_asked_for_in_words(weights: Path) -> None:
    """Random weights never keep to it, and talk up to their limit: that is their own error, never a verdict."""

    async def run() -> None:
        model = client(weights)
        try:
            await model.ask(["Well?"], schema=Verdict)
        finally:
            await model.aclose()

    with pytest.raises(SystemFaultError, match="the reply was cut off by the model's token limit"):
        asyncio.run(run())


def test_waiting_for_weights_and_for_others_is_not_the_models_time() -> None:
    """Loading takes 10 s and each question 2 s, one after the other, by the test's own clock."""

    loading = iter([10.0])

    async def asked() -> list[Timing]:
        loop = asyncio.get_running_loop()

        def run(queries: Sequence[int], _given_up: Callable[[], bool]) -> list[int]:
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()  # who waits knows it is its turn
            time.sleep(2.0 * len(queries))
            return list(queries)

        batches: Batches[int, int] = Batches(lambda: time.sleep(next(loading, 0.0)), run, 1, lambda _: 0)

        async def one(number: int) -> Timing:
            watch = Stopwatch()
            with watch.running():
                assert await batches.ask(number) == number
            return watch.timing()

        return await asyncio.gather(*(one(number) for number in range(6)))

    timings = run_in_virtual_time(asked())
    assert [timing.model_s for timing in timings] == pytest.approx([2.0] * 6)
    waited = [timing.retry_s for timing in timings]
    assert waited == pytest.approx([10 + 2 * number for number in range(6)], abs=0.1)  # 0.1: batches gather


def test_a_question_that_nobody_waits_for_ends(weights: Path) -> None:
    """The weights are asked after every word whether anybody still waits."""
    model = Weights("tiny", str(weights), "cpu", "auto")
    model.load()
    left = iter([False] * 5)
    query = Query("", ("What?",), Choices(4000, 0.0, None, None, 0, ()))
    (said,) = model.generate([query], lambda: next(left, True))
    assert said.output_tokens == 6


def test_who_gives_up_is_no_longer_waited_for() -> None:
    """The first question is given up while it is answered; the next one gets its turn."""
    begun, ended = threading.Event(), []

    def run(queries: Sequence[int], given_up: Callable[[], bool]) -> list[int]:
        begun.set()
        while queries == [1] and not given_up():
            time.sleep(0.001)
        ended.append(queries)
        return list(queries)

    async def asked() -> int:
        batches: Batches[int, int] = Batches(lambda: None, run, 1, lambda _: 0)
        task = asyncio.create_task(batches.ask(1))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return await batches.ask(2)

    assert asyncio.run(asked()) == 2
    assert ended == [[1], [2]]


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("{tmp}", "transformers:{tmp}: found no config.json there, expected a folder with weights"),
        ("./nowhere", "transformers:./nowhere: found no config.json there, expected a folder with weights"),
    ],
)
def test_a_folder_without_weights_is_said_at_once(tmp_path: Path, where: str, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        client(where.format(tmp=tmp_path))
    assert str(caught.value) == text.format(tmp=tmp_path)


def test_an_id_that_is_not_in_the_cache_is_said_with_the_first_question(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^transformers:nobody/nothing: .* couldn't find them"):
        ask_all(client("nobody/nothing"), [["What?"]])


def spoiled(weights: Path, tmp_path: Path, name: str, content: bytes) -> Path:
    folder = tmp_path / "weights"
    shutil.copytree(weights, folder)
    (folder / name).write_bytes(content)
    return folder


HUGE_HEADER = (2**60).to_bytes(8, "little") + b"{}"
SPOILED = {
    "truncated": ("model.safetensors", b"\x00" * 3),
    "a huge header": ("model.safetensors", HUGE_HEADER),
    "rubbish": ("model.safetensors", b"\x10\x00\x00\x00\x00\x00\x00\x00" + b"rubbish" * 9),
    "an endless template": (
        "chat_template.jinja",
        (
            b"{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% "
            b"endfor %}"
        ),
    ),
    "no configuration": ("config.json", b"[]"),
    "a tokenizer that is none": ("tokenizer.json", b"{"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_broken_weights_end_the_question_and_nobody_waits(weights: Path, tmp_path: Path, name: str) -> None:
    folder = spoiled(weights, tmp_path, *SPOILED[name])
    with pytest.raises(ConfigurationError) as caught:
        ask_all(client(folder), [["hi"]])
    assert str(caught.value).startswith(f"transformers:{folder}: ")
    assert "\n" not in str(caught.value)


def test_weights_as_a_pickle_are_not_loaded(weights: Path, tmp_path: Path) -> None:
    folder = spoiled(weights, tmp_path, "pytorch_model.bin", pickle.dumps({"a": 1}))
    (folder / "model.safetensors").unlink()
    with pytest.raises(ConfigurationError, match="safetensors"):
        ask_all(client(folder), [["hi"]])


def test_an_index_that_leads_to_no_weights_ends_the_question(weights: Path, tmp_path: Path) -> None:
    """A process in which one waits for weights that never come does not end."""
    index = {"metadata": {}, "weight_map": {"lm_head.weight": "../gone.safetensors", "model.x": "/etc/hostname"}}
    folder = spoiled(weights, tmp_path, "model.safetensors.index.json", json.dumps(index).encode())
    (folder / "model.safetensors").unlink()
    with pytest.raises(ConfigurationError) as caught:
        ask_all(client(folder), [["hi"], ["and you"]])
    assert str(caught.value).startswith(f"transformers:{folder}: ")
    assert "\n" not in str(caught.value)


def test_a_base_url_makes_no_sense(weights: Path) -> None:
    with pytest.raises(ConfigurationError, match="local weights take no base URL"):
        ModelClient(ModelSpec(name=f"transformers:{weights}", base_url="http://localhost:1"))


def test_missing_packages_are_named(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr("proctor.models.local.find_spec", lambda name: None if name == "torch" else real(name))
    with pytest.raises(ConfigurationError) as caught:
        client(weights)
    hint = "without a GPU first: uv pip install --torch-backend=cpu torch (much smaller)"
    assert str(caught.value) == f"transformers:{weights}: torch missing: pip install 'proctor-eval[local]'; {hint}"
    monkeypatch.setattr("proctor.models.local.find_spec", lambda name: None if name == "transformers" else real(name))
    with pytest.raises(ConfigurationError, match=r"transformers missing: pip install 'proctor-eval\[local\]'$"):
        client(weights)


def test_a_processor_that_needs_torchvision_says_so(tmp_path: Path) -> None:
    """The processor of Qwen's family also reads videos, for which it wants torchvision."""
    from transformers import Qwen2VLConfig

    if importlib.util.find_spec("torchvision") is not None:
        pytest.skip("torchvision is installed here")
    Qwen2VLConfig().save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(
        '{"processor_class": "Qwen2VLProcessor", "image_processor_type": "Qwen2VLImageProcessor"}'
    )
    with pytest.raises(ConfigurationError) as caught:
        ask_all(client(tmp_path), [["What?"]])
    assert str(caught.value).startswith(
        f"transformers:{tmp_path}: its processor needs torchvision, which is not installed: pip install torchvision ("
    )


def test_a_batch_too_large_for_the_memory_is_halved(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from proctor.models.queries import GeneratedText
    from proctor.models.weights import Weights

    sizes: list[int] = []
    real = Weights._generated

    def full(self: Weights, queries: Sequence[Query], given_up: Callable[[], bool]) -> list[GeneratedText]:
        sizes.append(len(queries))
        if len(queries) > 1:
            raise torch.OutOfMemoryError
        return real(self, queries, given_up)

    monkeypatch.setattr(Weights, "_generated", full)
    questions: list[list[str | Frame]] = [[picture(k), "What?"] for k in range(4)]
    replies = ask_all(client(weights), questions)
    assert sizes == [4, 2, 1, 1, 2, 1, 1]
    monkeypatch.setattr(Weights, "_generated", real)
    assert [reply.text for reply in replies] == [reply.text for reply in ask_all(client(weights), questions)]


@pytest.fixture(scope="module")
def served(weights: Path) -> Iterator[str]:
    """The same weights behind the library's own server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = "from transformers.cli.transformers import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "serve", str(weights), "--port", str(port), "--device", "cpu"],
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:

        def healthy() -> bool:
            assert process.poll() is None, "the server ended"
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=60).close()
            except (urllib.error.URLError, OSError):
                return False
            return True

        until(healthy)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def test_a_real_server_says_what_the_same_weights_say_here(weights: Path, served: str) -> None:
    questions: list[list[str | Frame]] = [[picture(1), picture(2), "Which came first?"], ["What is this?"]]
    spec = ModelSpec(name=str(weights), base_url=served, settings={"max_tokens": 8, "temperature": 0})
    remote = ask_all(ModelClient(spec), questions)
    here = ask_all(client(weights), questions)
    assert [reply.text for reply in remote] == [reply.text for reply in here]
    assert [reply.usage.output_tokens for reply in remote] == [8, 8]
    assert [reply.finish_reason for reply in remote] == ["length", "length"]
