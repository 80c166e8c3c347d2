"""``python -m torchdoctor``."""

import sys

from torchdoctor.cli.main import main

sys.exit(main())
