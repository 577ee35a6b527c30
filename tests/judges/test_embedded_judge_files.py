"""A learned judge on disk: complete or not there, and nothing in it is ever run."""

from __future__ import annotations

import json
import pickle
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.linear_model import Ridge

from proctor.core import InputError
from proctor.judges.dimensions import DIMENSION_JUDGES, ClientPool, Materials
from proctor.judges.embedded import EmbeddedJudge, Recipe, read_rated
from tests.support.dimension_cases import Votes
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
    assert sorted(one.name for one in saved.iterdir()) == ["manifest.json", "weights.skops"]


def test_the_manifest_says_where_it_comes_from_and_names_nobody(judge: EmbeddedJudge, saved: Path) -> None:
    text = (saved / "manifest.json").read_text(encoding="utf-8")
    said = json.loads(text)
    assert said["recipe"] == {
        "seed": 0, "folds": 3, "designs": 4, "kept": 2, "alone": False, "grouped": True,
    }  # fmt: skip
    assert said["languages"]["en"]["answers"] == 36
    assert said["languages"]["en"]["encounters"] == 12
    assert len(said["languages"]["en"]["designs"]) == 2
    assert set(said["versions"]) >= {"numpy", "scikit-learn", "skops"}
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
    def full(_value: object, file: Path) -> None:
        file.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(skops.io, "dump", full)
    with pytest.raises(
        InputError, match="judge: found No space left on device, expected a folder that can be"
    ):
        judge.save(tmp_path / "judge")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("thing", "named"),
    [
        (Ridge(), "sklearn.linear_model._ridge.Ridge"),
        (partial(print, "run"), "functools.partial"),
        (np.random.default_rng(0), "numpy.random."),
        (np.sum, "numpy.sum"),
        ({"deep": [{"deeper": (Ridge(),)}]}, "builtins.tuple"),
    ],
)
def test_other_types_are_refused_before_anything_is_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, thing: object, named: str
) -> None:
    skops.io.dump({"en": thing}, folder / "weights.skops")

    def never(*_: object, **__: object) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr(skops.io, "load", never)
    said = fault(folder)
    assert said.startswith("weights.skops: found the type ")
    assert named in said
    assert said.endswith(
        "expected only builtins.dict, builtins.float, builtins.int, builtins.list, builtins.str, numpy.ndarray"
    )


class Trap:
    """What runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return Path.touch, (Path("trapped"),)  # type: ignore[return-value]


def test_a_pickle_is_no_file_of_weights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "weights.skops").write_bytes(pickle.dumps(Trap()))
    assert (
        fault(folder) == "weights.skops: found no readable file of weights, expected a file written by skops"
    )
    with zipfile.ZipFile(folder / "weights.skops", "w") as archive:
        archive.writestr("schema.json", "[" * 5)
    assert (
        fault(folder) == "weights.skops: found no readable file of weights, expected a file written by skops"
    )
    assert not (folder / "trapped").exists()


def test_other_weights_than_the_manifest_names(folder: Path) -> None:
    plain = skops.io.load(folder / "weights.skops", trusted=[])
    plain["en"]["offset"] = plain["en"]["offset"] + 1
    skops.io.dump(plain, folder / "weights.skops")
    assert fault(folder) == "weights.skops: found other weights, expected those that the manifest names"


def test_files_that_are_not_there_or_odd(folder: Path, tmp_path: Path) -> None:
    expected = "expected a learned judge (proctor train embedded-judge)"
    assert fault(tmp_path / "none") == f"manifest.json: found No such file or directory, {expected}"
    manifest = folder / "manifest.json"
    whole = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text("{", encoding="utf-8")
    assert fault(folder).startswith("manifest.json: expected Invalid JSON")
    manifest.write_text(json.dumps(whole | {"format": 1}), encoding="utf-8")
    assert fault(folder) == "manifest.json: field 'format': expected Input should be 2"
    manifest.write_text(json.dumps(whole | {"more": 1}), encoding="utf-8")
    assert fault(folder) == "manifest.json: field 'more': expected Extra inputs are not permitted"
    manifest.write_text(json.dumps(whole), encoding="utf-8")
    (folder / "weights.skops").unlink()
    assert fault(folder).startswith("weights.skops: found no readable file of weights")


def test_it_is_made_by_name(saved: Path) -> None:
    def made(**options: str) -> object:
        return DIMENSION_JUDGES.get("embedded")(Materials(ClientPool([]), Votes(), options))

    assert isinstance(made(folder=str(saved)), EmbeddedJudge)
    with pytest.raises(InputError, match="embedded: option 'folder': found nothing"):
        made()
