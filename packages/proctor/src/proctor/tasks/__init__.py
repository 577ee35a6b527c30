"""One package per benchmark: everything that knows one task. They are plug-ins, found by entry points."""
