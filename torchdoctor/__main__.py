"""``python -m torchdoctor``, and the program ``torchdoctor``."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; an installation that cannot even be imported ends with 70, never with 1."""
    try:
        from torchdoctor.cli.main import run
    except Exception as error:  # a missing or broken package raises whatever it likes
        print(f"torchdoctor: its installation is broken: {type(error).__name__}: {error}", file=sys.stderr)
        sys.stderr.flush()
        os._exit(70)  # OUR_FAULT of torchdoctor.cli.exit_codes, which may be what is broken
    run()


if __name__ == "__main__":
    main()
