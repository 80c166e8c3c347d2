"""Where torchdoctor meets the program that fails: around a command, and inside of other tools."""
