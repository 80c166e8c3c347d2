"""Where the commands write: standard output and error, with whatever terminal, pipe or encoding they are."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO, cast

from torchdoctor.model import TorchdoctorError
from torchdoctor.number import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import click

PIPE_WIDTH = 100
_TERMINAL = (80, 24)
_WIDEST = 10_000


def prepare() -> None:
    """Make every character writable (what the encoding lacks becomes ``\\uXXXX``), and closed streams safe.

    A closed standard output is one that cannot be written to; what a closed standard error would be told
    goes nowhere. No file that is opened later takes the place of either.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = cast(TextIO, _Closed())
    if sys.stderr is None:
        sys.stderr = _nowhere()
    reconfigure: Callable[..., None] | None = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def write(text: str) -> None:
    """Write whole lines to standard output. Raises OSError (BrokenPipeError when the reader has gone).

    Names and texts in it are data: what is no printable character goes. JSON has none.
    """
    _put(text.removesuffix("\n").split("\n"))


def write_lines(lines: Iterable[str]) -> None:
    """Write each text as one line: a line end in a name begins no line of its own. Raises OSError."""
    _put(line.replace("\n", " ") for line in lines)


def _put(lines: Iterable[str]) -> None:
    sys.stdout.write("".join(f"{_clean(line)}\n" for line in lines))
    sys.stdout.flush()


def _is_plain(line: str) -> bool:
    return line.isascii() and line.isprintable()


def _clean(text: str) -> str:
    if _is_plain(text):
        return text
    from torchdoctor.render.clean import clean

    return clean(text)


def write_page(text: str) -> None:
    """Write HTML, which says of itself that it is UTF-8, to standard output of any encoding."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    write(text if encoding == "utf8" else text.encode("ascii", "xmlcharrefreplace").decode("ascii"))


@contextlib.contextmanager
def into(path: str) -> Iterator[None]:
    """Let a file have what is written to standard output, whole: it is put there once all is written.

    While nothing is written, a file that was there stays. A pipe or a device is written to as it is, and
    "-" is standard output itself. Raises TorchdoctorError.
    """
    if path == "-":
        yield
        return
    place = os.path.realpath(path) if os.path.isfile(path) else path
    whole = os.path.isfile(place) or not os.path.exists(place)
    draft = f"{place}.{os.getpid()}.part" if whole else place
    try:
        if os.path.isdir(path):
            raise OSError(errno.EISDIR, "this is a folder; name a file")
        flags = os.O_WRONLY | (os.O_CREAT | os.O_EXCL if whole else 0)
        number = os.open(draft, flags, 0o666)
    except OSError as error:
        raise _unwritable(path, error) from error
    interrupted: KeyboardInterrupt | None = None
    try:
        with (
            open(number, "w", encoding="utf-8", errors="backslashreplace") as file,
            contextlib.redirect_stdout(file),
        ):
            try:
                yield
            except KeyboardInterrupt as error:  # what was told until then is kept
                interrupted = error
        if whole and os.path.getsize(draft):
            os.replace(draft, place)
    except OSError as error:
        if error.filename not in (None, draft):
            raise  # of what the command reads
        raise _unwritable(path, error) from error
    finally:
        if whole:
            with contextlib.suppress(OSError):
                os.unlink(draft)
    if interrupted is not None:
        raise interrupted


def _unwritable(path: str, error: OSError) -> TorchdoctorError:
    return TorchdoctorError(f"--output {path}: cannot be written: {error.strerror or error}")


def step_summary(text: str) -> None:
    """Add Markdown to the summary of a step of GitHub Actions, where there is one (GITHUB_STEP_SUMMARY)."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        complain(f"GITHUB_STEP_SUMMARY {path}: cannot be written: {error.strerror}")


@contextlib.contextmanager
def shown() -> Iterator[None]:
    """For what has an exit code to give: a reader that leaves early (``head -1``) does not change it."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        abandon(sys.stdout)


def is_closed() -> bool:
    """Was standard output closed before the program began?"""
    return isinstance(sys.stdout, _Closed)


def complain(*lines: str) -> None:
    """Say something on standard error, each text as one line; names and texts in it are data."""
    _tell("torchdoctor: " + "\n".join(map(_clean, lines)))


def refuse(error: click.ClickException) -> None:
    """Say what is wrong with the call, as click does, with what was given as data."""
    shown = io.StringIO()
    error.show(shown)
    about, said, _ = shown.getvalue().partition("Error: ")
    if not said:  # the help itself, for a group without a command
        _tell(about.rstrip("\n"))
        return
    _tell("\n".join([*map(_clean, about.splitlines()), f"Error: {_clean(error.format_message())}"]))


def _tell(text: str) -> None:
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody is left to be told


def abandon(stream: TextIO) -> None:
    """Let nothing more be written to a stream whose reader has gone, not even by the interpreter's exit."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def screen() -> tuple[int, int]:
    """Width and height of the output in cells; COLUMNS and LINES come first.

    A pipe is a little wider than a terminal, and as high as can be.
    """
    width, height = (_number(name) for name in ("COLUMNS", "LINES"))
    if not width or not height:
        try:
            size = os.get_terminal_size(sys.stdout.fileno())
            known = (size.columns or _TERMINAL[0], size.lines or _TERMINAL[1])
        except (OSError, ValueError, AttributeError):
            known = (PIPE_WIDTH, _WIDEST)
        width, height = width or known[0], height or known[1]
    return width, height


def color_wanted() -> bool:
    """Colour goes to terminals that can show it, unless NO_COLOR is set; FORCE_COLOR asks elsewhere."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _number(name: str) -> int:
    return min(count(os.environ.get(name)) or 0, _WIDEST)


class _Closed(io.TextIOBase):
    """Standard output that was closed by who called: nothing can be written."""

    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")
