"""`python -m twinsieve COMMAND`: the command line, as the program `twinsieve`."""

import sys

from twinsieve.pipeline.cli import main

sys.exit(main())
