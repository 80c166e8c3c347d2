"""The checks, each with its texts; a small family shares a file."""
