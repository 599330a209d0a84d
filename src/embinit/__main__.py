"""`embinit` and `python -m embinit`."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C while its modules are imported is one word, as later."""
    try:
        from embinit.cli import main as run

        run()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
