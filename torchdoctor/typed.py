"""What a person is to type: into a shell or into Python."""

from __future__ import annotations

_PYTHON = ("print(", "torch.", "import ", "from ", "assert ", "with ")


def is_python(command: str) -> bool:
    """Whether a command of a rule is a line of Python; else it is one for the shell."""
    return command.lstrip().startswith(_PYTHON)


def prompt(command: str) -> str:
    """What stands before it, for a person to know where to type it."""
    return ">>> " if is_python(command) else "$ "
