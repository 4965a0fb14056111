"""Prints the command block of README.md that follows `<!-- command: NAME -->`, so that CI runs what users read."""

import re
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def command(name: str) -> str:
    found = re.findall(
        rf"<!-- command: {re.escape(name)} -->\n```bash\n(.*?)\n```\n", README.read_text("utf-8"), re.DOTALL
    )
    if len(found) != 1:
        raise SystemExit(f"README.md: {len(found)} commands named {name!r}, not one")
    return str(found[0])


if __name__ == "__main__":
    print(command(sys.argv[1]))
