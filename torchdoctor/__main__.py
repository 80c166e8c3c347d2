"""``python -m torchdoctor``, and the program ``torchdoctor``."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes as long as all that comes before a signal can be dealt with
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; an installation that cannot even be imported ends with 70, never with 1."""
    gate = sys.argv[1:2] == ["gate"]
    try:
        if gate:
            from torchdoctor.gate import ending

            ending.begin(sys.argv)
        from torchdoctor.cli.main import run
    except KeyboardInterrupt:  # the codes of torchdoctor.cli.exit_codes, which may be what is broken
        os._exit(12 if gate else 130)
    except (Exception, SystemExit) as error:  # a missing or broken package raises whatever it likes
        print(f"torchdoctor: its installation is broken: {type(error).__name__}: {error}", file=sys.stderr)
        sys.stderr.flush()
        os._exit(70)
    run()


if __name__ == "__main__":
    main()
