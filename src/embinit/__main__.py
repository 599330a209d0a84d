"""`embinit` and `python -m embinit`."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C during the import of its modules prints one word instead of a traceback."""
    try:
        from embinit.cli import main as run

        run()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
