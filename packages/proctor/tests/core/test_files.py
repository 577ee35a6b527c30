"""Files that people give: regular ones up to a size, and JSON whose every fault has a location."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core import JsonError, load_json, read_bytes, read_text


def refusal(file: Path) -> str:
    with pytest.raises(OSError) as caught:  # noqa: PT011 - its text is compared
        read_bytes(file)
    return str(caught.value.strerror or caught.value)


def test_a_pipe_a_device_and_a_folder_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "no regular file"
    assert refusal(Path("/dev/zero")) == "no regular file"
    (tmp_path / "link").symlink_to("/dev/zero")
    assert refusal(tmp_path / "link") == "no regular file"
    assert refusal(tmp_path) == "Is a directory"
    assert refusal(tmp_path / "none") == "No such file or directory"
    assert refusal(tmp_path / ("x" * 300)) == "File name too long"
    assert refusal(tmp_path / "a\x00b") == "a name that no file can have"
    assert refusal(tmp_path / "a\ud800b") == "a name that no file can have"


def test_a_file_is_read_up_to_a_size_that_can_be_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "large"
    with file.open("wb") as out:
        out.truncate(2**20 + 1)  # a hole: no disk is needed
    assert len(read_bytes(file)) == 2**20 + 1
    monkeypatch.setenv("PROCTOR_MAX_FILE_MB", "1")
    assert refusal(file) == "1,048,577 bytes, more than the 1,048,576 that PROCTOR_MAX_FILE_MB allows"
    with file.open("wb") as out:
        out.truncate(2**20)
    assert len(read_text(file)) == 2**20


FAULTS = {
    "": ("line 1, column 1", "nothing"),
    "[1,\n2": ("line 2, column 2", "the end of the file: it is cut off"),
    '["a", "b': ("line 1, column 7", "a text without an end: the file is cut off"),
    '["a" "b"]': ("line 1, column 6", "no comma"),
    "{'a': 1}": ("line 1, column 2", "no name in double quotes"),
    "[1] 2": ("line 1, column 5", "more after the value"),
    "[" * 100_000: ("", "lists or objects nested too deep"),
    "[" + "9" * 5_000 + "]": ("", "a number of thousands of digits"),
    '{"a":\n "\\ud800"}': ("line 2, column 3", "half a character (a lone surrogate)"),
    '["\\udc00\\ud800"]': ("line 1, column 3", "half a character (a lone surrogate)"),
    '["\\ud83d x"]': ("line 1, column 3", "half a character (a lone surrogate)"),
    '["\ud800"]': ("line 1, column 3", "half a character (a lone surrogate)"),
}


def test_a_small_file_takes_no_buffer_of_the_largest(tmp_path: Path) -> None:
    file = tmp_path / "small"
    file.write_bytes(b"x" * 1000)
    tracemalloc.start()
    try:
        assert len(read_bytes(file, 500)) == 1000
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_file_that_does_not_know_its_size_is_read() -> None:
    assert read_bytes(Path("/proc/self/status")).startswith(b"Name:")


@pytest.mark.parametrize(("text", "fault"), FAULTS.items(), ids=lambda one: repr(one)[:24])
def test_a_fault_of_json_has_a_place(text: str, fault: tuple[str, str]) -> None:
    with pytest.raises(JsonError) as caught:
        load_json(text)
    assert (caught.value.location, caught.value.found) == fault


def test_halves_are_taken_where_they_are_asked_for() -> None:
    assert load_json('["\\ud800"]', halves=True) == ["\ud800"]
    assert load_json(b'\xef\xbb\xbf["a"]') == ["a"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet=st.sampled_from('ab\\u"😀é\n')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.booleans())
def test_whole_characters_are_never_taken_for_halves(value: object, ascii_only: bool) -> None:
    assert load_json(json.dumps(value, ensure_ascii=ascii_only)) == value


@given(st.text(alphabet=st.sampled_from('\\u"dDcC8b0 ud83dde00'), max_size=40))
def test_what_is_read_has_no_half_in_it(inside: str) -> None:
    try:
        value = load_json(f'["{inside}"]')
    except JsonError:
        return
    json.dumps(value, ensure_ascii=False).encode()
