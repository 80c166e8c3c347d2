"""``@torchdoctor.record``: the error file that torchrun collects carries the diagnosis."""

from __future__ import annotations

import functools
import json
import os
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")
_FILE = "TORCHELASTIC_ERROR_FILE"


def record(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Write why ``function`` failed into the error file of torchrun, and raise the exception on.

    Stands above ``@torch.distributed.elastic.multiprocessing.errors.record``, whose file it completes;
    without that it writes the file itself. Does nothing where no launcher asks for the file.
    """

    @functools.wraps(function)
    def recorded(*args: Any, **named: Any) -> _Result:
        try:
            return function(*args, **named)
        except Exception as error:
            if type(error).__name__ != "ChildFailedError":  # its file is the one that the child wrote
                _complete(os.environ.get(_FILE), error)
            raise

    return recorded


def _complete(path: str | None, error: Exception) -> None:
    if not path:
        return
    try:
        from torchdoctor.hooks.explain import of_error
        from torchdoctor.render.note import text

        report = of_error(error)
        data = _read(path) or _as_torch_does(error)
        message = data["message"]
        if not report.diagnoses or not isinstance(message, dict):
            return
        more = message.setdefault("extraInfo", {})
        more["py_callstack"] = f"{more.get('py_callstack', '')}\n{text(report)}"
        more["torchdoctor"] = report.to_dict()["diagnoses"][0]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(data, file)
    except Exception:
        return  # the file stays as torch wrote it


def _read(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            data: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        return None
    return data


def _as_torch_does(error: Exception) -> dict[str, Any]:
    """As torch 1.9 to 2.13 write it (torch/distributed/elastic/multiprocessing/errors/error_handler.py)."""
    import time

    from torchdoctor.hooks.explain import text_of

    told = {"py_callstack": text_of(error), "timestamp": str(int(time.time()))}
    return {"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": told}}
