"""FOCUS benchmarks from tracks: questions that annotated boxes and moments answer."""
