"""`proctor media duplicates` names what it leaves out once."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from tests.support.program import proctor


def test_what_is_left_out_of_a_folder_compared_with_itself_is_named_once(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    Image.effect_noise((64, 64), 60).save(folder / "a.png")
    (folder / "empty.mp4").touch()
    done = proctor("media", "duplicates", folder, folder, PROCTOR_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("left out: ") == 1
