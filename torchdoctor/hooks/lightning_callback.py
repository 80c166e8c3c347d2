"""The callback for Lightning: ``Trainer(callbacks=[TorchdoctorCallback()])``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or ("pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules):
    from pytorch_lightning.callbacks import Callback
else:
    from lightning.pytorch.callbacks import Callback


class TorchdoctorCallback(Callback):  # type: ignore[misc]
    """Writes the note on an exception to standard error when Lightning meets it, before it rises further."""

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Called by the trainer."""
        from torchdoctor.hooks.telling import tell

        try:
            if isinstance(exception, Exception):
                tell(exception)
        except Exception:
            return  # the exception rises as it would have
