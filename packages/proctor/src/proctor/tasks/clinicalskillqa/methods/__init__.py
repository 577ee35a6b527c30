"""Published methods that put key frames in order; each is a system of many steps with prompts of its own."""
