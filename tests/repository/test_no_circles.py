"""No module imports, on any way, one that imports it: also not inside a function."""

from __future__ import annotations

import pytest

from tools.circles import circles, imported, package_sources, told

LAZY = "if TYPE_CHECKING:\n    from room.{home} import {name}\nelse:\n    export_lazily(__name__)\n"


def test_the_package_has_no_circle() -> None:
    sources = package_sources()
    assert {"proctor", "proctor.runs.engine", "proctor.tasks.focus"} <= set(sources)
    assert told(sources) == []


@pytest.mark.parametrize(
    ("there", "back"),
    [
        ("import room.b", "import room.a"),
        ("from room.b import two", "def one():\n    from room.a import one"),
        ("def f():\n    import room.b", "class C:\n    def g(self):\n        from room import a"),
        ("if x:\n    from room.b import two", "try:\n    from room.a import one\nexcept ImportError:\n    one = None"),
        ("from room.b import two", "if TYPE_CHECKING:\n    from room.c import x\nelse:\n    from room.a import one"),
    ],
)
def test_a_circle_is_seen(there: str, back: str) -> None:
    sources = {"room": "", "room.a": f"\n{there}\n", "room.b": back, "room.c": "import room.a"}
    assert circles(imported(sources)) == [["room.a", "room.b"]]
    line = next(number for number, text in enumerate(back.splitlines(), start=1) if "a" in text.split() or ".a" in text)
    assert told(sources)[-1] == f"room.b:{line} imports room.a"
    assert len(told(sources)) == 2


def test_a_name_that_a_package_exports_is_one_of_its_module() -> None:
    sources = {"room": LAZY.format(home="a", name="one"), "room.a": "import other", "other": "from room import one"}
    assert told(sources) == ["other:1 imports room.a", "room.a:1 imports other"]
    by_attribute = "import door\n\ndef f():\n    from door import room\n\n    return room.one"
    assert told({**sources, "other": by_attribute, "door": "", "door.room": LAZY.format(home="a", name="one")}) == [
        "other:6 imports room.a",
        "room.a:1 imports other",
    ]


def test_a_longer_way_round_is_a_circle() -> None:
    sources = {"a": "import b", "b": "def f():\n    import c", "c": "import a, d", "d": "import e", "e": ""}
    assert circles(imported(sources)) == [["a", "b", "c"]]


def test_what_only_a_type_checker_imports_is_none() -> None:
    only = "import typing\n\nif typing.TYPE_CHECKING:\n    from room.a import one\n"
    assert told({"room": "", "room.a": "import room.b", "room.b": only}) == []
