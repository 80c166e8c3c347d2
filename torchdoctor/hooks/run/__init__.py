"""``torchdoctor run -- CMD…``: a command as without us, and a report behind its output when it fails."""
