"""The command line: parse, call, print."""

STOPPED = "proctor: stopped by Ctrl-C; the same command starts again."
STOPPED_EXIT = 130
"""The exit code of what Ctrl-C ended, as shells say it."""
