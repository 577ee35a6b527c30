"""A learned judge on disk: complete or not there, and nothing in it is ever run."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from proctor.core import InputError
from proctor.judges.dimensions import ClientPool
from proctor_train.mediqa_eval.embedded import Recipe, read_rated
from proctor_train.mediqa_eval.embedded.judge import EmbeddedJudge, hash_of
from tests.support.dimension_cases import built_from, setup
from tests.support.judgements import Judgements
from tests.support.rated_answers import hashed, made_up

SMALL = Recipe(folds=3, designs=4, kept=2)
CASES = [replace(one.case, encounter="new") for one in made_up(2, seed=9)]


@pytest.fixture(scope="module")
def judge() -> EmbeddedJudge:
    rated = made_up(12)
    return EmbeddedJudge.train(rated, read_rated(rated, hashed), SMALL, encoders=hashed)


@pytest.fixture(scope="module")
def saved(judge: EmbeddedJudge, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "judge"
    judge.save(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy that may be spoiled."""
    return Path(shutil.copytree(saved, tmp_path / "judge"))


def fault(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        EmbeddedJudge.load(folder, encoders=hashed)
    said = str(caught.value)
    assert "\n" not in said
    return said.replace(f"{folder}/", "")


def test_what_is_loaded_is_what_was_saved(judge: EmbeddedJudge, saved: Path) -> None:
    loaded = EmbeddedJudge.load(saved, encoders=hashed)
    assert loaded.manifest == judge.manifest
    assert loaded.name == judge.name
    assert loaded.score(CASES) == judge.score(CASES)
    assert sorted(one.name for one in saved.iterdir()) == ["manifest.json", "weights.npz"]


def test_the_manifest_says_where_it_comes_from_and_names_nobody(judge: EmbeddedJudge, saved: Path) -> None:
    text = (saved / "manifest.json").read_text(encoding="utf-8")
    said = json.loads(text)
    assert said["recipe"] == {
        "seed": 0, "folds": 3, "designs": 4, "kept": 2, "alone": False, "grouped": True, "contrast": 3,
    }  # fmt: skip
    assert said["languages"]["en"]["answers"] == 36
    assert said["languages"]["en"]["encounters"] == 12
    assert len(said["languages"]["en"]["designs"]) == 2
    assert set(said["versions"]) >= {"numpy", "scikit-learn"}
    assert len(said["trained_on"]) == 12
    assert "one/1" not in text
    other = made_up(12)
    other[0] = replace(other[0], values={**other[0].values, "overall": 1.0 - other[0].values["overall"]})
    changed = EmbeddedJudge.train(other, read_rated(other, hashed), SMALL, encoders=hashed)
    assert changed.manifest.data_sha256 != judge.manifest.data_sha256


def test_nothing_is_overwritten(judge: EmbeddedJudge, folder: Path) -> None:
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    with pytest.raises(InputError, match=r"judge: found something there already, expected a new folder$"):
        judge.save(folder)
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before
    with pytest.raises(InputError, match=r"expected one that exists$"):
        judge.save(folder / "deep" / "deeper")


def test_a_folder_is_written_whole_or_not_at_all(
    judge: EmbeddedJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: BinaryIO, **_arrays: object) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(InputError, match="judge: found no space left on device, expected a folder to write to"):
        judge.save(tmp_path / "judge")
    assert list(tmp_path.iterdir()) == []


WEIGHTS = "expected the weights of a learned judge (proctor judge fit --method embedded)"
UNREADABLE = f"weights.npz: found no readable file of weights, {WEIGHTS}"


class Trap:
    """What runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return Path.touch, (Path("trapped"),)  # type: ignore[return-value]


def test_a_pickle_is_no_file_of_weights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "weights.npz").write_bytes(pickle.dumps(Trap()))
    assert fault(folder) == UNREADABLE
    np.savez(folder / "weights.npz", trap=np.array([Trap()], dtype=object), allow_pickle=True)
    assert fault(folder) == UNREADABLE
    assert not (folder / "trapped").exists()


def member(header: dict[str, object], content: bytes = b"") -> bytes:
    """An array's file with this header, whatever follows."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, header)
    return out.getvalue() + content


HUGE: dict[str, object] = {"descr": "<f8", "fortran_order": False, "shape": (10**11,)}
MEMBERS: dict[str, bytes] = {
    "an array that says it has 800 GB": member(HUGE),
    "a negative size": member(HUGE | {"shape": (-1,)}, bytes(8)),
    "sizes whose product is past counting": member(HUGE | {"shape": (2**62, 2**62)}),
    "objects": member(HUGE | {"descr": "|O", "shape": (1,)}, bytes(8)),
    "records": member(HUGE | {"descr": [("a", "<f8")], "shape": (1,)}, bytes(8)),
    "too little": member(HUGE | {"shape": (2,)}, bytes(8)),
    "no header": b"\x93NUMPY\x01\x00" + b"\xff\xff" + b"{",
    "code for a header": b"\x93NUMPY\x01\x00" + b"\x20\x00" + b"__import__('os').abort()".ljust(32),
    "nothing": b"",
    "rubbish": b"rubbish" * 40,
}


@pytest.mark.parametrize("content", MEMBERS.values(), ids=MEMBERS.keys())
def test_an_array_that_is_not_what_it_says_is_refused(folder: Path, content: bytes) -> None:
    with zipfile.ZipFile(folder / "weights.npz", "w") as archive:
        archive.writestr("en/offset.npy", content)
    assert fault(folder) == UNREADABLE


def test_an_archive_that_is_none_or_unpacks_to_gigabytes_is_refused(folder: Path) -> None:
    file = folder / "weights.npz"
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("bomb.npy", "w") as out,
    ):
        for _ in range(501):
            out.write(bytes(2**20))
    assert fault(folder) == f"weights.npz: found more than 500 MB of weights, {WEIGHTS}"
    whole = file.read_bytes()
    for content in (b"", whole[: len(whole) // 2], whole.replace(b"PK\x01\x02", b"PK\x01\x03")):
        file.write_bytes(content)
        assert fault(folder) == UNREADABLE
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("en/offset.npy", bytes(5000))
    packed = bytearray(file.read_bytes())
    packed[60:70] = b"\xff" * 10
    file.write_bytes(packed)
    assert fault(folder) == UNREADABLE
    file.unlink()
    file.mkdir()
    assert fault(folder) == f"weights.npz: found Is a directory, {WEIGHTS}"


def test_other_weights_than_the_manifest_names(folder: Path) -> None:
    arrays = dict(np.load(folder / "weights.npz"))
    arrays["en/offset"] = arrays["en/offset"] + 1
    np.savez(folder / "weights.npz", allow_pickle=False, **arrays)
    assert fault(folder) == "weights.npz: found other weights, expected those that the manifest names"


Change = Callable[[dict[str, Any]], object]
MISFITS: dict[str, Change] = {
    "an offset that is no number": lambda a: a["en/offset"].fill(np.nan),
    "another offset": lambda a: a.update({"en/offset": a["en/offset"][1:]}),
    "an empty curve": lambda a: a.update({"en/curve": np.zeros((0, 0))}),
    "columns out of range": lambda a: a.update({"en/columns": a["en/columns"] - 10**6}),
    "columns of texts": lambda a: a.update({"en/columns": a["en/columns"].astype(np.str_)}),
    "no grams": lambda a: a.pop("en/grams/query"),
    "other grams": lambda a: a.update({"en/grams/query": a["en/grams/query"][1:]}),
    "other waves": lambda a: a.update({"en/waves": a["en/waves"].T.copy()}),
    "another dimension": lambda a: a.update({"en/dimensions": np.array(["beauty"] * 6)}),
    "a view that nobody knows": lambda a: a.update({"en/weights/smell": a["en/offset"]}),
    "weights of another size": lambda a: a.update({"en/weights/measures": np.zeros((1, 1))}),
    "no spread": lambda a: a["en/spread"].fill(0.0),
    "another language": lambda a: a.update({"fr/offset": a["en/offset"]}),
    "no means": lambda a: a.pop("en/means/meaning"),
    "a number for a list": lambda a: a.update({"en/chosen": np.array(3)}),
}


@pytest.mark.parametrize("change", MISFITS.values(), ids=MISFITS.keys())
def test_weights_that_do_not_fit_each_other_are_refused_though_the_manifest_names_them(
    folder: Path, change: Change
) -> None:
    arrays = dict(np.load(folder / "weights.npz"))
    change(arrays)
    np.savez(folder / "weights.npz", allow_pickle=False, **arrays)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["weights_sha256"] = hash_of(arrays)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    said = fault(folder)
    assert said.startswith("weights.npz: ")
    assert said.endswith(WEIGHTS)


def test_weights_for_another_encoder_are_refused_when_they_are_used(folder: Path) -> None:
    arrays = dict(np.load(folder / "weights.npz"))
    for name, array in arrays.items():
        if "/means/meaning" in name or "/weights/meaning" in name:
            arrays[name] = array[:-1]
    np.savez(folder / "weights.npz", allow_pickle=False, **arrays)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["weights_sha256"] = hash_of(arrays)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    loaded = EmbeddedJudge.load(folder, encoders=hashed)
    with pytest.raises(InputError, match=r"embedded-judge: found weights for \d+ measures and embeddings of"):
        loaded.score(CASES)


def test_files_that_are_not_there_or_odd(folder: Path, tmp_path: Path) -> None:
    expected = "expected a learned judge (proctor judge fit --method embedded)"
    assert fault(tmp_path / "none") == f"manifest.json: found no such file, {expected}"
    manifest = folder / "manifest.json"
    whole = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text("{", encoding="utf-8")
    assert fault(folder).startswith("manifest.json: found broken JSON")
    again = "fit the judge again (proctor judge fit --method embedded)"
    for number in (4, 5):
        older = {name: value for name, value in whole.items() if name != "sentences_sha256"} | {"format": number}
        manifest.write_text(json.dumps(older), encoding="utf-8")
        assert fault(folder).startswith(f"manifest.json: field 'format': found {number}, expected 6: {again}")
    manifest.write_text(json.dumps(whole | {"sentences_sha256": "0" * 64}), encoding="utf-8")
    kinds = "found other kinds of sentences, expected those of this version"
    assert fault(folder) == f"manifest.json: sentences_sha256: {kinds}: {again}"
    manifest.write_text(json.dumps(whole | {"more": 1}), encoding="utf-8")
    assert fault(folder).startswith(
        "manifest.json: field 'more': found 1, expected no field of this name (one of format,"
    )
    manifest.write_text(json.dumps(whole), encoding="utf-8")
    (folder / "weights.npz").unlink()
    assert fault(folder) == f"weights.npz: found No such file or directory, {WEIGHTS}"


def test_it_is_made_by_name(saved: Path) -> None:
    def made(**options: str) -> object:
        return built_from("embedded", setup(ClientPool([]), Judgements(), options))

    assert isinstance(made(folder=str(saved)), EmbeddedJudge)
    with pytest.raises(InputError, match="embedded: option 'folder': found nothing"):
        made()
