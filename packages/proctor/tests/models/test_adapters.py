"""An adapter on local weights: it counts exactly as merged weights do, or it is refused."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from proctor.core import ConfigurationError, Frame, InputError
from proctor.models import ModelClient, ModelSpec, SeenMedia, base_and_adapter, read_record, seen_media, weights_hash
from proctor.models.adapters import AdapterRecord
from tests.support.tiny_adapter import make_adapter
from tests.support.tiny_vlm import make_tiny_vlm

pytestmark = [
    pytest.mark.training,
    pytest.mark.xdist_group("training-peft"),
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),  # between two libraries
]


@pytest.fixture(scope="module", autouse=True)
def offline() -> Iterator[None]:
    import torch

    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


def write_record(adapter: Path, base: Path) -> None:
    record = AdapterRecord(base_sha256=weights_hash(base))
    (adapter / "proctor.json").write_text(record.model_dump_json())


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_vlm(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def made(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    adapter = make_adapter(base, tmp_path_factory.mktemp("adapter"))
    write_record(adapter, base)
    return adapter


@pytest.fixture
def adapter(made: Path, tmp_path: Path) -> Path:
    """One that a test may spoil."""
    return Path(shutil.copytree(made, tmp_path / "adapter"))


def noise() -> bytes:
    pixels = np.random.default_rng(0).integers(0, 255, (48, 64, 3), dtype=np.uint8)
    out = io.BytesIO()
    Pillow.fromarray(pixels).save(out, "JPEG")
    return out.getvalue()


PICTURE = noise()


def client(where: str | Path) -> ModelClient:
    return ModelClient(ModelSpec(name=f"transformers:{where}", settings={"max_tokens": 12}))


def said(where: str | Path) -> str:
    async def run() -> str:
        model = client(where)
        try:
            return (await model.ask([Frame(PICTURE, None, ""), "What?"])).text
        finally:
            await model.aclose()

    return asyncio.run(run())


def merged(base: Path, adapter: Path, folder: Path) -> Path:
    """W + (alpha / r) · B · A by hand."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(base, folder)
    weights, tuned = load_file(base / "model.safetensors"), load_file(adapter / "adapter_model.safetensors")
    for name in [one for one in tuned if one.endswith("lora_A.weight")]:
        position = name.removeprefix("base_model.model.model.").replace("lora_A.", "")
        position = position.replace("language_model.", "language_model.model.")  # as files call it
        weights[position] += 8 / 4 * tuned[name.replace("lora_A", "lora_B")] @ tuned[name]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_an_adapter_counts_as_merged_weights_do_and_is_on_record(base: Path, made: Path, tmp_path: Path) -> None:
    alone, tuned = said(base), said(f"{base}+{made}")
    assert tuned != alone
    assert tuned == said(merged(base, made, tmp_path / "merged"))
    settings = client(f"{base}+{made}").settings
    assert settings["weights_sha256"] == client(base).settings["weights_sha256"]
    assert len(str(settings["adapter_sha256"])) == 64
    assert "adapter_sha256" not in client(base).settings


def test_an_adapter_that_does_nothing_is_refused(base: Path, tmp_path: Path) -> None:
    inert = make_adapter(base, tmp_path / "inert", std=0.0)
    write_record(inert, base)
    with pytest.raises(
        ConfigurationError, match=r"found an adapter that changes no logit \(inert\), expected one that"
    ):
        said(f"{base}+{inert}")


def test_tensors_without_a_place_are_refused(base: Path, adapter: Path) -> None:
    from safetensors.torch import load_file, save_file

    file = adapter / "adapter_model.safetensors"
    tensors = {name.replace("language_model", "text_model"): value for name, value in load_file(file).items()}
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(
        ConfigurationError, match=r"found 56 tensors without a counterpart in the model, such as model\.language_model"
    ):
        said(f"{base}+{adapter}")


def test_an_adapter_of_other_weights_is_refused_by_their_hash(base: Path, made: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(base, tmp_path / "moved"))
    client(f"{moved}+{made}")  # the same weights elsewhere
    config = json.loads((moved / "config.json").read_text())
    (moved / "config.json").write_text(json.dumps(config | {"note": "another"}))
    record = read_record(made)
    assert record is not None
    with pytest.raises(ConfigurationError) as caught:
        client(f"{moved}+{made}")
    assert f"found an adapter of weights {record.base_sha256[:12]}, expected one of " in str(caught.value)


def test_without_a_record_the_base_that_the_adapter_names_decides(base: Path, adapter: Path, tmp_path: Path) -> None:
    (adapter / "proctor.json").unlink()
    client(f"{base}+{adapter}")
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text("{}")
    with pytest.raises(ConfigurationError) as caught:
        client(f"{other}+{adapter}")
    assert str(caught.value) == f"transformers:{other}+{adapter}: found an adapter of {base}, expected one of {other}"


def change_config(**changed: object) -> Callable[[Path], None]:
    def change(adapter: Path) -> None:
        file = adapter / "adapter_config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changed))

    return change


def as_pickle(adapter: Path) -> None:
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")


def no_record(adapter: Path) -> None:
    (adapter / "proctor.json").write_text('{"base_sha256": 5}')


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (change_config(peft_type="PREFIX_TUNING"), "found an adapter of type 'PREFIX_TUNING', expected 'LORA'"),
        (
            change_config(target_modules="(a+)+b"),
            "found no list of target_modules in adapter_config.json, expected one",
        ),
        (as_pickle, "found no adapter_model.safetensors in"),
        (no_record, "proctor.json: field 'base_sha256': found"),
        (lambda adapter: (adapter / "adapter_config.json").write_text("[]"), "found an adapter of type None"),
        (lambda adapter: (adapter / "adapter_config.json").write_text("{"), "adapter_config.json: "),
        (shutil.rmtree, "adapter_config.json: "),
    ],
)
def test_what_is_no_adapter_is_refused_before_anything_is_loaded(
    base: Path, adapter: Path, spoil: Callable[[Path], object], message: str
) -> None:
    spoil(adapter)
    with pytest.raises(ConfigurationError) as caught:
        client(f"{base}+{adapter}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_may_have_a_plus_in_its_name(tmp_path: Path) -> None:
    both, tuned = tmp_path / "a+b", tmp_path / "c+d"
    both.mkdir()
    tuned.mkdir()
    assert base_and_adapter(str(both)) == (str(both), None)
    (tuned / "adapter_config.json").write_text("{}")
    assert base_and_adapter(f"{both}+{tuned}") == (str(both), tuned)


def test_what_base_and_adapter_have_seen_is_told_together(base: Path, adapter: Path) -> None:
    where = f"{base}+{adapter}"
    assert seen_media(where) == SeenMedia()
    (adapter / "seen.json").write_text(SeenMedia(trained=frozenset({"a"}), chosen=frozenset({"b"})).model_dump_json())
    assert seen_media(where) == seen_media(str(adapter)) == SeenMedia(trained=frozenset({"a"}), chosen=frozenset({"b"}))
    (adapter / "seen.json").write_text("[]")
    with pytest.raises(InputError, match=r"seen\.json"):
        seen_media(where)
