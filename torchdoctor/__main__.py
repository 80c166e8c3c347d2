"""``python -m torchdoctor``."""

from torchdoctor.cli.main import run

run()
