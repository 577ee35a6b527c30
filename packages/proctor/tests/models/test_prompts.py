"""Prompt files: read, hashed, rendered in a sandbox, and named when they are wrong."""

import hashlib
from pathlib import Path

import pytest

from proctor.core import InputError
from proctor.models import load_prompt


def written(folder: Path, text: str) -> Path:
    file = folder / "mine.txt.j2"
    file.write_bytes(text.encode())
    return file


def test_a_file_is_the_users_message(tmp_path: Path) -> None:
    file = written(tmp_path, "Look.\n\n{{ question }} <&>\n")
    prompt = load_prompt(file)
    assert prompt.render(question="Is it 5 > 3?") == ("", "Look.\n\nIs it 5 > 3? <&>")
    assert (prompt.name, prompt.sha256) == ("mine.txt.j2", hashlib.sha256(file.read_bytes()).hexdigest())


def test_two_blocks_are_two_messages(tmp_path: Path) -> None:
    text = (
        "For us only.\n{% block system %}\nYou are {{ who }}.\n{% endblock %}\n"
        "{% block user %}\n{% for o in options %}\n{{ o }}\n{% endfor %}\n{% endblock %}"
    )
    prompt = load_prompt(written(tmp_path, text))
    assert prompt.render(who="brief", options=["one", "two"]) == ("You are brief.", "one\ntwo")


def test_a_value_is_text_and_never_a_template(tmp_path: Path) -> None:
    prompt = load_prompt(written(tmp_path, "{{ question }}"))
    assert prompt.render(question="{{ 7 * 7 }}{% raw %}") == ("", "{{ 7 * 7 }}{% raw %}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mine.txt.j2: prompt: found nothing, expected a template"),
        (" \n", "mine.txt.j2: prompt: found nothing, expected a template"),
        ("a\n{% if %}", "mine.txt.j2: line 2: found Expected an expression, got 'end of statement block'"),
        ("{% block system %}{% endblock %}", "prompt: found the blocks system, expected the blocks system and"),
        ("{% block usr %}{% endblock %}", "prompt: found the blocks usr, expected the blocks system and user"),
    ],
)
def test_a_file_that_is_no_prompt(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_prompt(written(tmp_path, text))
    assert message in str(caught.value)


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.j2: prompt: found No such file or directory"):
        load_prompt(tmp_path / "gone.j2")
    (tmp_path / "b.j2").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"b\.j2: prompt: found bytes that are not UTF-8"):
        load_prompt(tmp_path / "b.j2")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{{ anser }}", "'anser' is undefined"),
        ("{{ question.nothing }}", "'str object' has no attribute 'nothing'"),
        ("{{ question.__class__.__mro__ }}", "access to attribute '__class__' of 'str' object is unsafe."),
        ("{{ 1 / 0 }}", "division by zero"),
    ],
)
def test_a_prompt_that_cannot_be_filled_in(tmp_path: Path, text: str, found: str) -> None:
    prompt = load_prompt(written(tmp_path, text))
    with pytest.raises(InputError) as caught:
        prompt.render(question="Why?")
    assert str(caught.value) == f"mine.txt.j2: prompt: found {found}, expected a template that can be filled in"


@pytest.mark.parametrize(
    "text",
    [
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% "
            "endfor %}"
        ),
        "{% block user %}{{ '%99999999999d' % 1 }}{% endblock %}",
        "{{ '{:>99999999999}'.format('x') }}",
        "{{ ('x' * 99999999) * 9999 }}",
        "{% for o in options %}{{ o.center(99999999999) }}{% endfor %}",
    ],
    ids=["loops", "percent", "format", "times", "center"],
)
def test_a_template_that_does_not_end_or_fills_the_memory_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="prompt: found a template that does not come to an end"):
        load_prompt(written(tmp_path, text))
