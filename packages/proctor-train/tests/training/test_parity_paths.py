"""A trained judge along all its paths: the same scores where nothing is wrong, and each planted fault is caught."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from proctor.core import ConfigurationError, InputError
from proctor.models import ModelSpec, Weights, WeightsServer
from proctor_train.fine_tuning import merge
from proctor_train.parity import check_run, require_parity
from tests.support.ordinal_task import OrdinalJudge

pytestmark = [pytest.mark.training, pytest.mark.xdist_group("training-peft")]


@pytest.fixture
def run(ordinal_judge: OrdinalJudge, tmp_path: Path) -> Path:
    """A run's folder of its own, merged."""
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copytree(ordinal_judge.adapter, folder / "adapter")
    shutil.copy2(ordinal_judge.adapter.parent / "parity_items.json", folder)
    merge(ordinal_judge.base, folder / "adapter", folder / "merged")
    return folder


def faults(run: Path, server: ModelSpec | None = None) -> list[str]:
    """What is found, without the figures."""
    return sorted({one.split(" (")[0] for one in check_run(run, server=server, device="cpu").faults})


def test_all_paths_of_a_judge_agree_and_export_is_allowed(run: Path) -> None:
    report = check_run(run, device="cpu")
    assert report.faults == ()
    assert [(one.path, one.items, one.flips) for one in report.rows] == [
        (path, 9, 0) for path in ("memory", "reloaded", "merged", "served")
    ]
    assert max(one.worst for one in report.rows) < 1e-5
    assert min(one.from_base for one in report.rows) > 0.1
    require_parity(run)


def test_weights_that_were_not_compared_are_not_exported(run: Path) -> None:
    with pytest.raises(InputError, match="expected a run whose paths were compared"):
        require_parity(run)
    check_run(run, device="cpu")
    (run / "merged" / "config.json").write_text((run / "merged" / "config.json").read_text() + " ")
    with pytest.raises(InputError, match="run: found other weights than those that were compared"):
        require_parity(run)


def test_an_adapter_that_is_not_loaded_is_caught(run: Path, ordinal_judge: OrdinalJudge) -> None:
    weights = Weights("base", str(ordinal_judge.base), "cpu")
    weights.load()
    with WeightsServer(weights, "judge") as server:
        found = faults(run, ModelSpec(name="judge", base_url=server.url))
    assert [one.split(":")[0] for one in found] == ["served", "served"]
    assert found[0].startswith("served: a score is off by ")
    assert "inert" in found[1]
    with pytest.raises(InputError, match=r"^parity: found served: a score is off by"):
        require_parity(run)


def test_an_adapter_without_effect_is_caught(run: Path) -> None:
    from safetensors.torch import load_file, save_file

    file = run / "adapter" / "adapter_model.safetensors"
    save_file({name: tensor * 0 for name, tensor in load_file(file).items()}, file)
    with pytest.raises(ConfigurationError, match=r"changes no logit \(inert\)"):
        check_run(run, device="cpu")


def test_another_template_is_caught(run: Path) -> None:
    file = run / "merged" / "chat_template.jinja"
    file.write_text(file.read_text().replace("ASSISTANT:", "JUDGE:"))
    found = faults(run)
    assert "merged: another chat template" in found
    assert "merged: prompts of other tokens than in training: 9" in found
    assert any(one.startswith("served: ") for one in found)


@pytest.mark.parametrize("hidden", [False, True], ids=["as-it-is", "stored-as-float32"])
def test_merging_in_lower_precision_is_caught(run: Path, ordinal_judge: OrdinalJudge, *, hidden: bool) -> None:
    from safetensors.torch import load_file, save_file

    shutil.rmtree(run / "merged")
    merged = merge(ordinal_judge.base, run / "adapter", run / "merged", dtype="bfloat16")
    if hidden:
        file, config = merged / "model.safetensors", merged / "config.json"
        save_file({name: one.float() for name, one in load_file(file).items()}, file, metadata={"format": "pt"})
        config.write_text(config.read_text().replace("bfloat16", "float32"))
    assert "merged: weights in bfloat16, trained in float32" in faults(run)


def test_another_tokenizer_is_caught(run: Path) -> None:
    file = run / "merged" / "tokenizer.json"
    told = json.loads(file.read_text())
    vocabulary = told["model"]["vocab"]
    vocabulary["a"], vocabulary["i"] = vocabulary["i"], vocabulary["a"]
    file.write_text(json.dumps(told))
    found = faults(run)
    assert "merged: another tokenizer" in found
    assert any(one.startswith("merged: prompts of other tokens") for one in found)


def test_weights_that_were_trained_as_a_whole_have_a_path_less(ordinal_judge: OrdinalJudge, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(merge(ordinal_judge.base, ordinal_judge.adapter, tmp_path / "merged"), run / "weights")
    for name in ("parity_memory.json", "proctor.json"):
        shutil.copy2(ordinal_judge.adapter / name, run / "weights")
    shutil.copy2(ordinal_judge.adapter.parent / "parity_items.json", run)
    report = check_run(run, device="cpu")
    assert report.faults == ()
    assert [one.path for one in report.rows] == ["memory", "reloaded", "served"]
