"""The command line; see ``rerank --help``."""

import signal


def main() -> None:
    """Run the command line; an interrupt while its modules are loaded ends the process without a word."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from rerank.cli.application import main as command_line

    command_line()
