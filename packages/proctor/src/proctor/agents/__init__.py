"""What coding agents get: read-only tools over a store (an MCP server), a skill and `llms.txt`."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.agents.documents import document, document_names
    from proctor.agents.server import serve
    from proctor.agents.store_tools import StoreTools
else:
    export_lazily(__name__)

__all__ = [
    "StoreTools", "document", "document_names", "serve",
]  # fmt: skip
