"""``python -m torchdoctor``, and the program ``torchdoctor``."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes as long as all that comes before a signal can be dealt with
    from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; an installation that cannot even be imported ends with 70, never with 1."""
    _leave_current_folder()
    gate = sys.argv[1:2] == ["gate"]
    try:
        if gate:
            from torchdoctor.gate import ending

            ending.begin(sys.argv)
        from torchdoctor.cli.main import run
    except KeyboardInterrupt:  # the codes of torchdoctor.cli.exit_codes, which may be what is broken
        os._exit(12 if gate else 130)
    except (Exception, SystemExit) as error:  # a missing or broken package raises whatever it likes
        why = f"its installation is broken: {type(error).__name__}: {error}"
        if sys.version_info < (3, 10):  # noqa: UP036  # no index checked it for a zipapp
            why = f"it needs Python 3.10 or newer; this is {sys.version.split()[0]}"
        print(f"torchdoctor: {why}", file=sys.stderr)
        sys.stderr.flush()
        os._exit(70)
    run()


def _leave_current_folder() -> None:
    """Let nothing that is imported from here on come from the current folder: it may hold a stranger's files.

    ``python -m torchdoctor`` and a PYTHONPATH with an empty entry put it on the path. Folders that belong to
    the interpreter's installation stay, wherever we are.
    """
    try:
        here = os.getcwd()
    except OSError:
        here = ""
    # Python has made relative entries absolute by now
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    relative = {os.path.normpath(os.path.join(here, entry)) for entry in given if not os.path.isabs(entry)}
    library = os.path.dirname(os.__file__)
    installed = (library, os.path.join(library, "lib-dynload"))
    sys.path[:] = [
        entry
        for entry in sys.path
        if entry in installed
        or os.path.basename(entry) in ("site-packages", "dist-packages")
        or (os.path.isabs(entry) and os.path.normpath(entry) not in {here, *relative})
    ]


if __name__ == "__main__":
    main()
