"""`proctor run` and `proctor score`."""
