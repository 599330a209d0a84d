"""`python -m embinit`."""

from embinit.cli import main

if __name__ == "__main__":
    main()
