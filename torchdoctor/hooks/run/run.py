"""``torchdoctor run``: the command first, whatever becomes of us; then, when it failed, the report."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING

from torchdoctor import catalog
from torchdoctor.hooks.run import places
from torchdoctor.hooks.run.child import StartError
from torchdoctor.intake.live import Output
from torchdoctor.model import TorchdoctorError

if TYPE_CHECKING:
    from torchdoctor.hooks.run.stops import Stop
    from torchdoctor.hooks.run.wish import Ran, Wish
    from torchdoctor.model import Report

BEFORE_START = 125  # a usage error, or a fault of ours
KILLED = 128 + 9
_SIGPIPE = 13


def run(wish: Wish) -> int:
    """Run the command; its exit code, 128 + n for a signal. A later fault of ours never changes that."""
    output = Output(lambda: catalog.load_with_packs()[0].literals())
    try:
        places.check(wish.file, wish.folder)
        session = _session(wish, output)
    except StartError as error:
        return _refuse(str(error), error.code)
    except (TorchdoctorError, OSError) as error:
        return _refuse(str(error), BEFORE_START)
    except Exception as error:  # the command has not begun
        return _refuse(f"internal error: {type(error).__name__}: {error}", BEFORE_START)
    try:
        session.run()
    except Exception as error:
        _fault(wish, error)
    ended = session.code  # waits for it, whatever broke
    code = KILLED if session.killed else ended if ended >= 0 else 128 - ended
    for text in () if wish.quiet else session.lost:
        session.say(f"torchdoctor: {text}\n")
    wanted = not wish.quiet or wish.file is not None or wish.folder is not None
    if code != 0 and wanted and not (session.readers_gone and ended == -_SIGPIPE):
        _explain(session)
    return code


def _session(wish: Wish, output: Output) -> Ran:
    if sys.platform == "win32":
        from torchdoctor.hooks.run.plain import Plain

        return Plain(wish, output)
    from torchdoctor.hooks.run.session import Session

    return Session(wish, output, _tell_stall)


def _refuse(text: str, code: int) -> int:
    print(f"torchdoctor: {text}", file=sys.stderr)
    return code


def _fault(wish: Wish, error: Exception) -> None:
    if wish.quiet:
        return
    with contextlib.suppress(OSError):
        print(
            f"torchdoctor: internal error, the command's exit code is kept: {type(error).__name__}: {error}",
            file=sys.stderr,
        )


def _explain(session: Ran) -> None:
    """The report on a command that has ended; a person who does not want to wait for it presses Ctrl-C."""
    from torchdoctor.probes.interrupts import ended_by_signals

    try:
        with ended_by_signals():
            _report(session)
    except KeyboardInterrupt:
        pass
    except Exception as error:
        _fault(session.wish, error)


def _report(session: Ran) -> None:
    from torchdoctor.hooks.run import answer

    wish = session.wish
    session.output.finish(answer.closing_words(session.code))
    machine = None if wish.offline else answer.local(session.python)
    report = answer.of_run(session.output, session.logs(), machine, session.stops, stopped=session.stopped)
    readable = _readable(report, wish)
    _show(session, readable)
    if wish.file is not None:
        try:
            with open(wish.file, "w", encoding="utf-8") as stream:
                stream.write(answer.written(readable, wish.form))
        except OSError as error:
            session.say(f"torchdoctor: {wish.file}: {error.strerror}\n")
    if wish.folder is not None:
        _save(session, report, wish.folder)


def _show(session: Ran, report: Report) -> None:
    from torchdoctor.hooks.run.answer import written

    if session.wish.quiet:
        return
    session.say("\n" * (1 + session.output.open_line) + written(report, session.wish.form, 2))


def _readable(report: Report, wish: Wish) -> Report:
    """The report as it is shown; Markdown is for others to read, so it has no names and no secrets."""
    if wish.form != "markdown":
        return report
    from torchdoctor.share.publish import published

    return published(report, here=True)


def _save(session: Ran, report: Report, folder: str) -> None:
    from torchdoctor.hooks.run import answer, bundle
    from torchdoctor.share.publish import published

    machine = None if session.wish.offline else answer.local(session.python)
    try:
        bundle.save(folder, published(report, here=True), session.output, machine)
        text = f"saved in {folder}; read it before you share it"
    except OSError as error:
        text = f"--save {folder}: {error.strerror}"
    if not session.wish.quiet:
        session.say(f"torchdoctor: {text}\n")


def _tell_stall(session: Ran, stop: Stop) -> None:
    """While the command goes on: in a thread, by what it printed and what was seen, without programs."""

    def tell() -> None:
        from torchdoctor.hooks.run import answer

        try:
            report = answer.of_run(session.output, session.logs(), None, [stop], stopped=True)
            _show(session, _readable(report, session.wish))
        except Exception as error:
            _fault(session.wish, error)

    threading.Thread(target=tell, daemon=True).start()
