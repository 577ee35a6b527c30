"""Fine-tuning of tiny models: what is killed goes on as if nothing had been, and the best checkpoint is the best."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.core import ConfigurationError
from proctor.models.queries import Choices, FixedForm, Query
from proctor.models.weights import Weights
from proctor_train import RunFolder
from proctor_train.fine_tuning import ChatExample, LoraSettings, data_hash, fine_tune, merge, with_adapter
from proctor_train.run_folder import CheckpointEvaluation, read_origin
from tests.support.killed_child import killed
from tests.support.tiny_vlm import jpeg, make_tiny_lm, make_tiny_vlm

pytestmark = [pytest.mark.training, pytest.mark.xdist_group("training-peft"), pytest.mark.usefixtures("one_thread")]

FORM = FixedForm(('{"overall": ', "}"), (("0", "1", "2"),))


@pytest.fixture(scope="module", params=[make_tiny_lm, make_tiny_vlm], ids=["text", "pictures"])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = request.param(tmp_path_factory.mktemp("base"))
    return folder


def examples(base: Path) -> list[ChatExample]:
    pictures = "vision_config" in (base / "config.json").read_text()
    return [
        ChatExample(
            Query("", ((jpeg(k),) if pictures else ()) + (f"{'good' if k % 2 else 'bad'} {k}",), Choices(16)),
            FORM.filled([str(k % 2 * 2)]),
            f"e{k}",
        )
        for k in range(8)
    ]


SETTINGS = LoraSettings(device="cpu", epochs=3, batch=4, learning_rate=1e-2, dropout=0.1)


def asked(weights: Weights) -> CheckpointEvaluation:
    """Draws a reply, which uses up random numbers, as an evaluation may."""
    (said,) = weights.generate([Query("", ("good",), Choices(4, temperature=1.0, seed=7), FORM)], lambda: False)
    return CheckpointEvaluation(said.chances[0]["2"])


def trained(
    base: Path, folder: Path, evaluate: Callable[[Weights], CheckpointEvaluation] | None = asked, **changes: Any
) -> tuple[Path, list[dict[str, Any]]]:
    settings = LoraSettings.model_validate(SETTINGS.model_dump() | changes)
    some = examples(base)
    with RunFolder.opened(folder, {"data": data_hash(some), **settings.model_dump()}) as opened:
        return fine_tune(base, some, settings, opened, evaluate), list(opened.steps)


@pytest.fixture(scope="module")
def whole(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    return trained(base, tmp_path_factory.mktemp("runs") / "whole")


def dies_at(number: int) -> Callable[[Weights], CheckpointEvaluation]:
    """An evaluation that is killed: the checkpoint is written by then, and not scored as complete."""
    left = iter(range(number))

    def evaluate(weights: Weights) -> CheckpointEvaluation:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return asked(weights)

    return evaluate


@pytest.mark.parametrize("number", [0, 2])
def test_what_was_killed_goes_on_to_the_same_bits(
    base: Path, whole: tuple[Path, list[dict[str, Any]]], tmp_path: Path, number: int
) -> None:
    killed(lambda: trained(base, tmp_path / "run", dies_at(number)))
    adapter, steps = trained(base, tmp_path / "run")
    assert steps == whole[1]  # every loss, bit for bit
    weights = "adapter_model.safetensors"
    assert (adapter / weights).read_bytes() == (whole[0] / weights).read_bytes()


def test_what_is_killed_between_checkpoints_goes_on(
    base: Path, whole: tuple[Path, list[dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = RunFolder.note

    def dies(folder: RunFolder, **told: Any) -> None:
        note(folder, **told)
        if told["step"] == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "note", dies)
        killed(lambda: trained(base, tmp_path / "run"))
    assert trained(base, tmp_path / "run")[1] == whole[1]


def test_evaluation_leaves_training_as_it_is(
    base: Path, whole: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    _, steps = trained(base, tmp_path / "run", None)
    assert [one for one in steps if "loss" in one] == [one for one in whole[1] if "loss" in one]


@pytest.mark.parametrize(("values", "best"), [((0.1, 0.9, 0.9), 4), ((None, None, None), 6), ((0.3, None, 0.2), 2)])
def test_the_best_checkpoint_is_that_of_the_highest_value(
    base: Path, tmp_path: Path, values: Sequence[float | None], best: int
) -> None:
    left = iter(values)
    adapter, _ = trained(base, tmp_path / "run", lambda _: CheckpointEvaluation(next(left)))
    weights = "adapter_model.safetensors"
    kept = tmp_path / "run" / "checkpoints" / f"checkpoint-{best}" / weights
    assert (adapter / weights).read_bytes() == kept.read_bytes()
    assert trained(base, tmp_path / "run", None)[0] == adapter  # done: nothing is trained again


def test_merged_weights_say_what_the_adapter_says(
    base: Path, whole: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    adapter, _ = whole
    query = Query("", ("good",), Choices(4), FORM)
    plain = Weights("base", str(base), "cpu")
    merged = Weights("merged", str(merge(base, adapter, tmp_path / "merged")), "cpu")
    plain.load()
    merged.load()
    tuned = with_adapter(base, adapter, device="cpu")
    said = [one.generate([query], lambda: False)[0].chances[0]["2"] for one in (plain, tuned, merged)]
    assert said[1] == pytest.approx(said[2], abs=1e-6)
    assert abs(said[0] - said[1]) > 5e-5


def test_an_adapter_of_another_base_is_refused(
    base: Path, whole: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    other = make_tiny_lm(tmp_path, std=0.2)
    with pytest.raises(ConfigurationError, match=rf"found an adapter of weights \w+, expected one of \w+ \({other}\)"):
        with_adapter(other, whole[0])
    assert set(read_origin(whole[0])) == {"base", "base_sha256", "template_sha256"}


def test_all_weights_are_trained_at_rank_0(base: Path, tmp_path: Path) -> None:
    out, steps = trained(base, tmp_path / "run", rank=0, dropout=0.0)
    tuned = Weights("tuned", str(out), "cpu")
    tuned.load()
    best = max(one["evaluation"] for one in steps if "evaluation" in one)
    assert asked(tuned).value == pytest.approx(best, abs=1e-6)
