"""Systems: whatever answers items, one module per method. Built-in ones are found by entry point."""

from proctor.systems.registry import SYSTEMS
from proctor.systems.wording import reply, say

__all__ = ["SYSTEMS", "reply", "say"]
