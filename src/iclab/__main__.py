"""`python -m iclab`: the command line."""

from iclab.cli import main

if __name__ == "__main__":
    main()
