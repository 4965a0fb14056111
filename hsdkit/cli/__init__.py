"""The command line: one small file a command. Nothing heavy is imported before a command needs it."""


def main() -> None:
    from hsdkit.cli.app import app

    app()
