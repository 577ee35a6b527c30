"""What holds where nobody says otherwise. Options, settings and limits take their defaults from here, each stated once."""

from __future__ import annotations

TIMEOUT_S = 180.0
"""Seconds after which a call to a model is aborted and retried, a judge's too."""

RETRIES = 6
"""Retries of a call after an infrastructure error."""

CONCURRENCY = 8
"""Questions or answers that are processed at once."""

GIVE_UP_AFTER = 50
"""A run stops after this many failures in a row."""

FPS = 1.0
"""Frames a second that a system gets of a video."""

MAX_FRAMES = 64
"""The most frames that a system gets; a longer video is sampled more thinly."""

MAX_SIDE = 512
"""The longest side of a frame in pixels."""

JPEG_QUALITY = 85
"""The quality of the JPEGs that a system gets."""
