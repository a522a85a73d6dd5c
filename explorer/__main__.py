"""``python -m explorer``: the same as the command ``kernel-explorer``."""

import sys

from explorer.cli import main

if __name__ == "__main__":
    sys.exit(main())
