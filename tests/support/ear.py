"""A scripted recogniser of speech that really listens: every tone in the sound that it is sent is a sentence."""

from __future__ import annotations

import asyncio
import io
import json
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from proctor_build.pipeline import Project, run_stages
from tests.support.faulty_server import Request
from tests.support.sounds import heard

SENTENCES = {
    300: "We bring in a swab to clear the field.",
    400: "We move the swab to the left to see the duct.",
    500: "This is the liver.",
    600: "We take the needle to have a stitch.",
    700: "We slide the probe up to see the hilum.",
}
"""What a tone of so much hertz says."""

Heard = list[tuple[float, float, str]]


def listened(wav: bytes) -> Heard:
    """(start, end, sentence) of each stretch that is louder than a tenth, tones less than 0.2 s apart being one."""
    samples = heard(wav)
    loud = np.flatnonzero(np.abs(samples) > 0.1)
    if not len(loud):
        return []
    breaks = np.flatnonzero(np.diff(loud) > 3200)
    edges = zip(loud[[0, *(breaks + 1)]], loud[[*breaks, -1]] + 1, strict=True)
    return [(float(a) / 16_000, float(b) / 16_000, SENTENCES[_tone(samples[a:b])]) for a, b in edges]


def _tone(samples: NDArray[np.float32]) -> int:
    spectrum = np.abs(np.fft.rfft(samples))
    hertz = float(np.argmax(spectrum)) * 16_000 / len(samples)
    return min(SENTENCES, key=lambda one: abs(one - hertz))


def verbose(said: Heard, *, words: str = "beside", **beside: Any) -> dict[str, Any]:
    """A reply as in the protocol, with words `beside` the segments, `inside` them, or none ("")."""
    segments: list[dict[str, Any]] = []
    loose: list[dict[str, Any]] = []
    for start, end, text in said:
        parts = text.split()
        step = (end - start) / max(1, len(parts))
        spoken = [
            {"word": one, "start": round(start + n * step, 3), "end": round(start + (n + 1) * step, 3)}
            for n, one in enumerate(parts)
        ]
        told = {"avg_logprob": -0.2, "compression_ratio": 1.1, "no_speech_prob": 0.01}
        segments.append({"id": len(segments), "start": start, "end": end, "text": f" {text}", **told, **beside})
        if words == "inside":
            segments[-1]["words"] = [one | {"probability": 0.9} for one in spoken]
        loose += spoken
    return {"task": "transcribe", "segments": segments} | ({"words": loose} if words == "beside" else {})


def ear(request: Request) -> str:
    """The reply to a transcription."""
    return json.dumps(verbose(listened(request.body["file"])))


def frames_of(wavs: Sequence[bytes]) -> bytes:
    """The samples of several WAVs on end."""
    found = b""
    for wav in wavs:
        with wave.open(io.BytesIO(wav)) as file:
            found += file.readframes(file.getnframes())
    return found


def project_of(folder: Path, video: Path, name: str, url: str | None = None, **changes: Any) -> Path:
    """A project with one source, `a`, that has no transcript; `changes` are fields of the source, but for `model`,
    `stages` and `language`."""
    (folder / "sources").mkdir(parents=True)
    (folder / "sources" / f"a{video.suffix}").symlink_to(video)
    model = {"name": name, "retries": 0, "backoff_s": 0, **changes.pop("model", {})} | (
        {"base_url": url} if url else {}
    )
    settings = {"kind": "rexsonovqa", "models": {"speech": model}, "stages": changes.pop("stages", {})}
    settings |= {"language": changes.pop("language", "en")}
    source = {"id": "a", "video": f"sources/a{video.suffix}", "group": "1", **changes}
    (folder / "project.yaml").write_text(yaml.safe_dump(settings | {"sources": [source]}))
    return folder


def transcribed(folder: Path) -> dict[str, Any]:
    """The content of the file of the stage `transcript`, after a run of it."""
    asyncio.run(run_stages(Project(folder), until="transcript"))
    found: dict[str, Any] = json.loads((folder / "work" / "transcript" / "a.json").read_text())
    return found
