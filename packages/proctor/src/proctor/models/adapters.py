"""Identity of local weights, and LoRA adapters on them: their folders, their training, and whether they have an effect.

An adapter that loads without effect, or that was trained on other weights, would be evaluated under a wrong name: both
are refused.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from proctor.core import ConfigurationError, InputError, count_of, pip_install, read_json, read_model

ORIGIN = "proctor.json"
"""The file beside trained weights that says what they were trained from."""
SEEN = "seen.json"
"""The file beside trained weights that lists the media of their training (`SeenMedia`)."""
_CONFIG, _TENSORS = "adapter_config.json", "adapter_model.safetensors"


_BLOCK = 2**16
_BLOCKS = 64
_NAMES = ("*.safetensors", "model.bin", "*.json", "*.jinja", "*.txt", "*.model")


def weights_hash(folder: Path) -> str:
    """A hash of a folder's weights, configuration, tokenizer and templates; "" without such a folder (a name of the hub,
    whose files are unknown before they are loaded).

    Of a large file, its size and 64 evenly spread blocks of 64 KB are hashed: training changes all of them, and tens of
    gigabytes need not be read.
    """
    folder = folder.expanduser()
    if not folder.is_dir():
        return ""
    digest = hashlib.sha256()
    for file in sorted({file for name in _NAMES for file in folder.glob(name) if file.is_file()}):
        size = file.stat().st_size
        digest.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as stream:
            if size <= _BLOCK * _BLOCKS:
                digest.update(stream.read())
                continue
            for number in range(_BLOCKS):
                stream.seek(number * (size - _BLOCK) // (_BLOCKS - 1))
                digest.update(stream.read(_BLOCK))
    return digest.hexdigest()


class AdapterRecord(BaseModel):
    """What an adapter was trained from: `base_sha256` is the hash of the base weights (`weights_hash`)."""

    model_config = ConfigDict(frozen=True)

    base_sha256: str = Field(min_length=64, max_length=64)


class SeenMedia(BaseModel):
    """The media of a training, by the hashes of their contents: those that the weights were `trained` on, and those by
    which the checkpoint was `chosen`."""

    model_config = ConfigDict(frozen=True)

    trained: frozenset[str] = frozenset()
    chosen: frozenset[str] = frozenset()


def read_record(adapter: Path) -> AdapterRecord | None:
    """The record of an adapter; None without one (trained elsewhere). Raises `InputError`."""
    file = adapter / ORIGIN
    return read_model(file, AdapterRecord, "what an adapter was trained from") if file.is_file() else None


def seen_media(where: str) -> SeenMedia:
    """The media of the training of BASE or BASE+ADAPTER, as far as their folders list them. Raises `InputError`."""
    base, adapter = base_and_adapter(where)
    files = [folder / SEEN for folder in (Path(base).expanduser(), adapter) if folder is not None]
    found = [read_model(file, SeenMedia, "the media of a training") for file in files if file.is_file()]
    empty: frozenset[str] = frozenset()
    return SeenMedia(
        trained=empty.union(*(media.trained for media in found)), chosen=empty.union(*(media.chosen for media in found))
    )


def base_and_adapter(where: str) -> tuple[str, Path | None]:
    """The base weights and the adapter of BASE+ADAPTER; a name without "+", and a folder with "+" in its own name, are
    the base alone.

    >>> base_and_adapter("weights")
    ('weights', None)
    >>> base, adapter = base_and_adapter("weights+tuned/adapter")
    >>> base, adapter.name
    ('weights', 'adapter')
    """
    if "+" not in where or Path(where).expanduser().is_dir():
        return where, None
    parts = where.split("+")
    pairs = [("+".join(parts[:k]), Path("+".join(parts[k:])).expanduser()) for k in range(1, len(parts))]
    return next(((base, path) for base, path in pairs if (path / _CONFIG).is_file()), pairs[-1])


def local_hashes(where: str) -> dict[str, str]:
    """The hashes of BASE or BASE+ADAPTER, for the record of a run; empty for a name of the hub."""
    base, adapter = base_and_adapter(where)
    found = {"weights_sha256": weights_hash(Path(base))}
    if adapter is not None:
        found["adapter_sha256"] = weights_hash(adapter)
    return {name: value for name, value in found.items() if value}


def check_adapter(name: str, base: str, adapter: Path) -> None:
    """Raises `ConfigurationError` for anything but a LoRA adapter in safetensors for this base: its record must have the
    base's hash, or, without a record, its configuration must name this base.
    """
    if find_spec("peft") is None:
        raise ConfigurationError(f"{name}: peft missing: {pip_install('train')}")
    try:
        config = read_json(adapter / _CONFIG, "the configuration of an adapter")
        record = read_record(adapter)
    except InputError as error:
        raise ConfigurationError(f"{name}: {error}") from error
    kind = config.get("peft_type") if isinstance(config, dict) else None
    if not isinstance(config, dict) or kind != "LORA":
        raise ConfigurationError(f"{name}: found an adapter of type {kind!r}, expected 'LORA'")
    if not isinstance(config.get("target_modules"), list):  # a text is a pattern, which may never end
        raise ConfigurationError(f"{name}: found no list of target_modules in {_CONFIG}, expected one")
    if not (adapter / _TENSORS).is_file():
        raise ConfigurationError(f"{name}: found no {_TENSORS} in {adapter}, expected the adapter's weights")
    own = weights_hash(Path(base))
    if record is None:
        named = str(config.get("base_model_name_or_path"))
        if named != base and not (own and weights_hash(Path(named)) == own):
            raise ConfigurationError(f"{name}: found an adapter of {named}, expected one of {base}")
    elif record.base_sha256 != own:
        found, wanted = record.base_sha256[:12], own[:12] or "unknown"
        raise ConfigurationError(f"{name}: found an adapter of weights {found}, expected one of {wanted} ({base})")


def apply_adapter(name: str, model: Any, adapter: Path, probe: Callable[[], Any]) -> None:
    """Loads the adapter onto the model. `probe` returns the logits of some input, which must differ from those without
    the adapter. Raises `ConfigurationError` for an adapter of another shape, and for an inert one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # what one library still asks of the other
        report = model.load_adapter(str(adapter), adapter_kwargs={"local_files_only": True})
    lost = [*report.unexpected_keys, *report.missing_keys, *report.mismatched_keys, *report.conversion_errors]
    if lost:
        first = min(map(str, lost))
        raise ConfigurationError(
            f"{name}: found {count_of(len(lost), 'tensor')} without a counterpart in the model, such as {first}, expected none"
        )
    model.eval()
    with_it = probe()
    with adapters_off(model):
        without = probe()
    if bool((with_it == without).all()):
        raise ConfigurationError(f"{name}: found an adapter that changes no logit (inert), expected one that does")


@contextmanager
def adapters_off(model: Any) -> Iterator[None]:
    """The base model alone."""
    model.disable_adapters()
    try:
        yield
    finally:
        model.enable_adapters()
