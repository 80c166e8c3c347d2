"""The doctor for PyTorch environments and failures."""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """``watch_globals`` and ``ddp``, imported when they are asked for: start-up pays for neither."""
    if name not in ("watch_globals", "ddp"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name == "ddp":
        return import_module("torchdoctor.ddp")
    found: object = import_module("torchdoctor.watch").watch_globals
    return found
