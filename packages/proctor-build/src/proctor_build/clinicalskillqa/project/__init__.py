"""`proctor build new --kind clinicalskillqa`: from videos to key frames with an order and a rationale that two physicians
reviewed."""
