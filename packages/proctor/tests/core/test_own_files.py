"""`about.json`: whose files these are, who reads them, and what other files of that name are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.core import ABOUT, InputError, PathReader, UnknownNameError, read_about, reader_at


def about(folder: Path, **fields: object) -> Path:
    (folder / ABOUT).write_text(json.dumps(fields))
    return folder


def test_files_name_their_reader_and_track(tmp_path: Path) -> None:
    assert reader_at(about(tmp_path, reader="rexsonovqa", name="mine")).name == "rexsonovqa"
    assert getattr(reader_at(about(tmp_path, reader="focus", track="frame", name="mine")), "_track", "") == "frame"


@pytest.mark.parametrize("content", ["[]", "{}", '{"title": "my site"}', "not JSON", '{"simulated": true}'])
def test_another_file_of_that_name_changes_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / ABOUT).write_text(content)
    assert isinstance(reader_at(tmp_path), PathReader)


def test_a_name_is_its_own_and_a_reader_is_installed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"field 'name': found 'focus', the name of an installed benchmark"):
        read_about(about(tmp_path, reader="rexsonovqa", name="focus"))
    with pytest.raises(InputError, match="name"):
        read_about(about(tmp_path, reader="rexsonovqa", name="../x"))
    with pytest.raises(UnknownNameError):
        reader_at(about(tmp_path, reader="nobody", name="mine"))
    assert read_about(tmp_path / "nothing") is None
