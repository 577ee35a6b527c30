"""A program of its own: fills in a template by an unknown author once, within bounds of time and memory.

What the template does with made-up values is of no interest, nor whether it fails on
them: only that it ends. Killed by its bounds, it ends with a signal or the code 3.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from proctor.core import limit_resources

MOST_SECONDS = 4
MOST_BYTES = 2**30


def main() -> None:
    """Reads the template from standard input."""
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Anything(jinja2.ChainableUndefined):
        """Stands for every value: a short text, and a list of two."""

        def __iter__(self) -> Iterator[object]:
            yield from ("a", "b")

        def __str__(self) -> str:
            return "text"

        def __len__(self) -> int:
            return 2

        def __call__(self, *_: object, **__: object) -> Any:
            return self

    environment = ImmutableSandboxedEnvironment(
        undefined=Anything, trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    text = sys.stdin.buffer.read().decode()
    limit_resources(seconds=MOST_SECONDS, memory=MOST_BYTES, final=True)
    try:
        template = environment.from_string(text)
        messages = [{"role": "user", "content": [{"type": "text", "text": "text"}, {"type": "image"}]}]
        for block in template.blocks.values() or [template.root_render_func]:
            for _ in block(template.new_context({"messages": messages})):
                pass
    except MemoryError:
        sys.exit(3)
    except (jinja2.TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError):
        pass


if __name__ == "__main__":
    main()
