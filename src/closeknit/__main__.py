"""`python -m closeknit`: the command line."""

from closeknit.cli.commands import main

if __name__ == "__main__":
    main()
