"""A worker script that does what its options say, page by page: `{"do": {"3": "die"}}`. Imports nothing."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

KEPT = []


class Panic(BaseException):
    """As extension modules raise it."""


def write_everywhere(data):
    """Into whatever is open for writing beyond the three standard ones, the protocol's channel among it."""
    for number in range(3, 30):
        with contextlib.suppress(OSError):
            os.write(number, data)


def version():
    return "1.2"


def load(options):
    if count := options.get("count"):  # a letter for each start
        with open(count, "a") as file:
            file.write("s")
    match options.get("load"):
        case "raise":
            raise FileNotFoundError("weights.bin is not there") from OSError("no network")
        case "die":
            print("the last words", file=sys.stderr, flush=True)
            os._exit(3)
        case "hang":
            time.sleep(60)
        case "panic":
            raise Panic("out of bounds")
        case "import":
            import surely_not_installed  # noqa: F401
    print("printed by the library")
    os.write(1, b"written from C\n")
    do = options.get("do", {})

    def read(path):
        number = int(re.search(r"page(\d+)", path)[1])
        what = do.get(str(number), options.get("always", ""))
        print("reading", number, flush=True)
        match what:
            case "die":
                print("about to fall over", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            case "raise":
                raise ValueError("no such\npage")
            case "exit":
                sys.exit("the library gives up")
            case "panic":
                raise Panic("out of bounds")
            case "mute":
                raise type("Mute", (Exception,), {"__str__": lambda self: 1 / 0})()
            case "half":
                write_everywhere(b'{"native": {"te')
                os._exit(0)
            case "garbage":
                write_everywhere(b"5\n")
            case "flood":
                for _ in range(options["megabytes"]):
                    os.write(2, b"x" * 1_000_000)
            case "large":
                return {"pid": os.getpid(), "text": "x" * options["characters"]}
            case "orphan":  # a child keeps the channel open when this process is gone
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                if pids := options.get("pids"):
                    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
                    with open(pids + ".part", "w") as file:
                        file.write(f"{os.getpid()} {child.pid}")
                    os.replace(pids + ".part", pids)
                time.sleep(60)
            case "leak":
                KEPT.append(bytearray(os.urandom(1)) * 2_500_000)
        with open(path, "rb") as file:
            head = file.read(4).decode("latin-1")
        return {"pid": os.getpid(), "text": f"page {number}", "head": head, "options": options}

    return read
