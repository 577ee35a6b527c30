"""ReXSonoVQA benchmarks from narrated ultrasound videos."""
