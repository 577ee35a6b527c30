"""`proctor mcp`: a store for coding agents."""

from __future__ import annotations

from typing import Annotated

from proctor.cli.output import print_text
from proctor.core import Option
from proctor.shell import StoreUrl


def _names() -> list[str]:
    from proctor.agents import document_names

    return document_names()


def mcp(
    store: StoreUrl = None,
    contents: Annotated[bool, Option("Also give questions, references, answers, replies.")] = False,
    show: Annotated[
        str, Option("Instead, print a document for agents: skill or llms.", metavar="NAME", names=_names)
    ] = "",
) -> None:
    """Serve a store to a coding agent (MCP).

    Speaks the Model Context Protocol on standard input and output, with read-only tools: runs, results, compare, items, show.
    Nothing is written or asked. Needs the extra mcp.

    Without --contents the tools give names, counts, scores and intervals alone: no word of a question, a reference, an answer
    or a judge's reply, so that hostile text never reaches the agent. No request can change that.

    --show skill prints SKILL.md for an agent's folder of skills, --show llms the overview llms.txt; both are in the package.

    Example: proctor mcp --store runs.db
    """
    from proctor import agents

    if show:
        print_text(agents.document(show))
        return
    agents.serve(store, contents=contents)
