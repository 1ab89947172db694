import sys

from roomy.cli import main

sys.exit(main(sys.argv[1:]))
