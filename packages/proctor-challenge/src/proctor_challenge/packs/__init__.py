"""A challenge as other platforms host it: what they upload, and a check that runs it as they would."""
