"""Fails unless the wheel holds every tracked file of the packages: code, YAML, report template, checkpoint."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Source folder -> package name in the wheel.
PACKAGES = {"hsdkit": "hsdkit", "plugins": "hsdkit_plugins", "conf": "hsdkit_conf"}


def missing(wheel: Path, tracked: list[str]) -> list[str]:
    held = set(zipfile.ZipFile(wheel).namelist())
    expected = [(f, PACKAGES[f.split("/")[0]] + f[f.index("/") :]) for f in tracked]
    return [source for source, packed in expected if packed not in held]


if __name__ == "__main__":
    [wheel] = Path(sys.argv[1]).glob("*.whl")
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", *PACKAGES], check=True, capture_output=True, text=True
    ).stdout
    files = [f for f in listed.split("\0") if f]
    lost = missing(wheel, files)
    print(f"{wheel.name}: {len(files) - len(lost)} of {len(files)} tracked files")
    if lost:
        sys.exit("not in the wheel: " + ", ".join(lost))
