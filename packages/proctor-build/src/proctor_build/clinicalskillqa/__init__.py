"""ClinicalSkillQA benchmarks from videos: key frames to be put in order, with a rationale that physicians reviewed."""
