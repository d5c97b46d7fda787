"""`python -m align_rudder` is the command `align-rudder`."""

import sys

from align_rudder.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
