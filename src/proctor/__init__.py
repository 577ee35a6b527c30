"""Proctor examines models that watch clinical procedures."""

__version__ = "0.1.0"
