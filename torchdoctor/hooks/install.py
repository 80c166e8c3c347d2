"""``torchdoctor.install``: a note behind the traceback of whatever the program does not catch.

This module is all that is loaded until an exception happens.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

SWITCH = "TORCHDOCTOR_HOOK"  # 0: off for this process


class _Session:
    """One installation: what was replaced by what. Once it is over, what others still call does nothing."""

    def __init__(self) -> None:
        self.active = True
        self.replaced: list[tuple[Any, str, Any, Any]] = []

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        plain = getattr(owner, name)
        ours = make(plain)
        self.replaced.append((owner, name, plain, ours))
        setattr(owner, name, ours)

    def end(self) -> None:
        self.active = False
        for owner, name, plain, ours in self.replaced:
            if getattr(owner, name, None) is ours:
                setattr(owner, name, plain)

    def behind(self, plain: Any, error_of: Callable[..., Any]) -> Any:
        """Call ``plain``, then tell of the exception that ``error_of`` finds in the same arguments."""

        def hook(*args: Any, **named: Any) -> Any:
            try:
                return plain(*args, **named)
            finally:
                if self.active:
                    _tell(error_of, *args, **named)

        return hook


_session: _Session | None = None


def install() -> None:
    """From now on put a note under the traceback of each exception that nothing catches.

    In the main thread, in other threads, in asyncio, and in processes of multiprocessing that are forked (or
    whose program calls this as well). The hooks that were there are called first. Does nothing when it is
    installed already, or when the variable TORCHDOCTOR_HOOK is 0.
    """
    global _session
    if _session is not None or os.environ.get(SWITCH) == "0":
        return
    _session = session = _Session()
    session.replace(sys, "excepthook", lambda plain: session.behind(plain, lambda kind, error, trace: error))
    for name, hook in _LATER.items():
        if name in sys.modules:
            hook(session, sys.modules[name])
    finder: Any = _Finder(session)
    sys.meta_path.insert(0, finder)


def uninstall() -> None:
    """Put back what was there before ``install``."""
    global _session
    if _session is None:
        return
    _session.end()
    _session = None
    sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _Finder)]


def _hook_threading(session: _Session, module: ModuleType) -> None:
    session.replace(module, "excepthook", lambda plain: session.behind(plain, lambda args: args.exc_value))


def _hook_asyncio(session: _Session, module: ModuleType) -> None:
    """What a loop reports of a task that nobody awaits, or of a callback."""
    session.replace(
        module.BaseEventLoop,
        "default_exception_handler",
        lambda plain: session.behind(plain, lambda loop, context: context.get("exception")),
    )


def _hook_multiprocessing(session: _Session, module: ModuleType) -> None:
    """A child prints its traceback itself, with ``traceback.print_exc``: only that one call is followed."""

    def make(plain: Any) -> Any:
        def bootstrap(self: Any, *args: Any, **named: Any) -> Any:
            import traceback

            here = plain.__code__

            def caught(*_: Any, **__: Any) -> BaseException | None:
                # this function, _tell, hook, and whoever called it
                return sys.exc_info()[1] if sys._getframe(3).f_code is here else None

            child = _Session()
            child.active = session.active
            child.replace(traceback, "print_exc", lambda printed: child.behind(printed, caught))
            try:
                return plain(self, *args, **named)
            finally:
                child.end()

        return bootstrap

    session.replace(module.BaseProcess, "_bootstrap", make)


# hooked when the program imports them: importing them ourselves would cost every start
_LATER = {
    "threading": _hook_threading,
    "asyncio.base_events": _hook_asyncio,
    "multiprocessing.process": _hook_multiprocessing,
}


class _Finder:
    """Sees an import of one of the modules above, and hooks it once it is loaded."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _LATER:
            return None
        others: Any = (one for one in sys.meta_path if one is not self and hasattr(one, "find_spec"))
        spec = next((spec for one in others if (spec := one.find_spec(name, path, target))), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, self._session)
        return spec


class _Loader:
    """Loads a module as its own loader does, which is the module's again by then, and hooks it."""

    def __init__(self, loader: Any, session: _Session) -> None:
        self._loader = loader
        self._session = session

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        if self._session.active:
            _LATER[module.__name__](self._session, module)


def _tell(error_of: Callable[..., Any], *args: Any, **named: Any) -> None:
    """Write the note. Never raises: whatever goes wrong here, the program's own traceback has been shown."""
    try:
        error = error_of(*args, **named)
        if isinstance(error, Exception) and not sys.is_finalizing():
            from torchdoctor.hooks.telling import tell

            tell(error)
    except BaseException:
        return
