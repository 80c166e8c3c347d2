"""What a person is to type: into a shell, into Python, or into a cell of a notebook."""

from __future__ import annotations

_PYTHON = ("print(", "torch.", "import ", "from ", "assert ", "with ")


def is_python(command: str) -> bool:
    """Whether a command of a rule is a line of Python; else it is one for the shell."""
    return command.lstrip().startswith(_PYTHON)


def is_cell(command: str) -> bool:
    """Whether it is a line for a cell of a notebook: a magic, or a shell behind a bang."""
    return command.startswith(("%", "!"))


def is_instruction(command: str) -> bool:
    """Whether it is a line of a Dockerfile, which no shell takes."""
    return command.startswith(("ENV ", "RUN ", "FROM "))


def prompt(command: str) -> str:
    """What stands before it, for a person to know where to type it."""
    if is_cell(command) or is_instruction(command):
        return "  "
    return ">>> " if is_python(command) else "$ "
