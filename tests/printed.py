"""Commands that are called in this process, and what they print."""

from __future__ import annotations

import pytest

from torchdoctor.cli.main import main


class Printed:
    """Call it with the words of a command and the exit code that it must end with: what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, args: list[str], code: int | None = 0) -> str:
        return self.both(args, code)[0]

    def errors(self, args: list[str], code: int | None = 0) -> str:
        return self.both(args, code)[1]

    def both(self, args: list[str], code: int | None = 0) -> tuple[str, str]:
        ended = main(args)
        out, err = self._capsys.readouterr()
        assert code in (ended, None), f"ended with {ended}: {err or out}"
        return out, err
