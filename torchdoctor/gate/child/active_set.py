"""Starts the active set: that of the torchdoctor which this file belongs to, whatever else has the name.

Called as ``python active_set.py WISH FILE`` (see ``torchdoctor.gate.active``). Nothing is taken from the
current folder or from this file's, and no installed package comes before the standard library.
"""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(os.path.dirname(HERE))


def main() -> None:
    sys.path[:] = [entry for entry in sys.path if os.path.isabs(entry) and os.path.normpath(entry) != HERE]
    spec = spec_from_file_location(
        "torchdoctor", os.path.join(PACKAGE, "__init__.py"), submodule_search_locations=[PACKAGE]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["torchdoctor"] = package = module_from_spec(spec)
    spec.loader.exec_module(package)
    from torchdoctor.gate import active

    active.main()


if __name__ == "__main__":
    main()
