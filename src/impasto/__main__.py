"""``python -m impasto``."""

import sys

from impasto.cli import main

sys.exit(main())
