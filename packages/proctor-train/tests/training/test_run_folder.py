"""The folder of a training: one process, the same settings, and no half line after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core import InputError
from proctor_train import RunFolder


def test_a_second_start_goes_on_and_other_settings_are_named(tmp_path: Path) -> None:
    where = tmp_path / "run"
    with RunFolder.opened(where, {"seed": 1, "lora": {"rank": 16}}) as folder:
        folder.note(step=1, loss=0.5)
        folder.note(step=2, loss=0.4)
        folder.note(evaluated=0.3)
    with (where / "steps.jsonl").open("a") as file:
        file.write('{"step": 3, "lo')
    with RunFolder.opened(where, {"seed": 1, "lora": {"rank": 16}}) as folder:
        assert [one.get("step") for one in folder.steps] == [1, 2, None]
        folder.forget_from(2)
        assert folder.steps == [{"step": 1, "loss": 0.5}, {"evaluated": 0.3}]
        assert not (where / "finished.json").exists()
        folder.finish({"steps": 1})
        assert folder.finished == {"steps": 1}
    with (
        pytest.raises(InputError, match=r"other lora\.rank"),
        RunFolder.opened(where, {"seed": 1, "lora": {"rank": 8}}),
    ):
        pass


def test_two_at_once_and_a_folder_of_something_else_are_refused(tmp_path: Path) -> None:
    with RunFolder.opened(tmp_path / "run", {"seed": 1}), pytest.raises(InputError, match="another process"):
        RunFolder.opened(tmp_path / "run", {"seed": 1}).__enter__()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.docx").write_bytes(b"")
    with pytest.raises(InputError, match=r"thesis\.docx"):
        RunFolder.opened(tmp_path / "other", {}).__enter__()


def test_a_run_that_is_refused_before_its_first_step_leaves_nothing_behind(tmp_path: Path) -> None:
    """`settings.json` was left, and the corrected call was refused for "other learning_rate" though nothing was trained."""

    def refused(where: Path) -> None:
        with RunFolder.opened(where, {"rate": 1}) as folder:
            (folder.path / "parity.json").write_text("{}")
            with RunFolder.opened(folder.path / "first", {"rate": 1}):
                raise InputError("examples", found="16 that are too long", expected="4096 tokens at most")

    with pytest.raises(InputError, match="too long"):
        refused(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="too long"):
        refused(tmp_path / "there")
    assert list((tmp_path / "there").iterdir()) == []
    with RunFolder.opened(tmp_path / "there", {"rate": 2}) as folder:
        assert folder.steps == []


def test_steps_are_never_removed_by_a_refusal(tmp_path: Path) -> None:
    """Neither those of the run nor those of a training within it."""

    def refused(where: Path, *, inner: bool) -> None:
        with RunFolder.opened(where, {}) as folder, RunFolder.opened(where / "first", {}) as first:
            (first if inner else folder).note(step=1)
            raise InputError("examples", found="16 that are too long", expected="4096 tokens at most")

    for inner in (False, True):
        where = tmp_path / f"run-{inner}"
        with pytest.raises(InputError, match="too long"):
            refused(where, inner=inner)
        assert (where / "settings.json").exists()
        assert (where / "first" / "settings.json").exists() or not inner
