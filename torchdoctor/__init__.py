"""The doctor for PyTorch environments and failures.

What a program may call is imported when it is asked for: ``import torchdoctor`` alone costs nothing.
PYTEST_DONT_REWRITE: a hook may have imported this before pytest began.
"""

__version__ = "0.2.0"

# name -> the module that holds it, "" for a module of that name; __init__.pyi says it to type checkers
_HOMES = {
    "Report": "hooks.report",
    "ddp": "",
    "explain": "hooks.explain",
    "install": "hooks.install",
    "load_ipython_extension": "hooks.ipython",
    "record": "hooks.elastic",
    "uninstall": "hooks.install",
    "unload_ipython_extension": "hooks.ipython",
    "watch_globals": "watch",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = _HOMES[name]
    if not home:
        return import_module(f"torchdoctor.{name}")
    return getattr(import_module(f"torchdoctor.{home}"), name)
