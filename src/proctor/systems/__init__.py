"""Systems: whatever answers items, one module per method. Built-in ones are found by entry point."""

from proctor.systems.methods import METHODS, BuildMethod, method_options, only_client
from proctor.systems.registry import SYSTEMS
from proctor.systems.renamed import Renamed
from proctor.systems.wording import reply, say

__all__ = ["METHODS", "SYSTEMS", "BuildMethod", "Renamed", "method_options", "only_client", "reply", "say"]
