"""How many pages an upload has, found out in a process of its own: a file that crashes, hangs or swells the reader of
its format does it there.

Run as `python -m hsdkit.service.probe`: a JSON object on stdin, one on stdout.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

from hsdkit.service.refusal import Refusal

#: Address space in bytes and CPU seconds of the process, and wall seconds until it is ended.
MEMORY, CPU, WALL = 2 << 30, 20, 60.0


async def count_pages(path: Path, password: str | None, wall: float = WALL) -> int:
    """Raises `Refusal` (422) with hsdkit's one-line error for a file that cannot be opened."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, stdin=-1, stdout=-1, stderr=asyncio.subprocess.DEVNULL
    )  # fmt: skip
    asked = json.dumps({"path": str(path), "password": password}).encode()
    try:
        out, _ = await asyncio.wait_for(process.communicate(asked), wall)
    except TimeoutError:
        raise Refusal(422, f"{path.name}: opening it took longer than {wall:g} s", "document") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        answer = json.loads(out)
    except ValueError:
        raise Refusal(422, f"{path.name}: cannot be opened: {_death(process.returncode)}", "document") from None
    if error := answer.get("error"):
        raise Refusal(422, str(error), "document")
    return int(answer["pages"])


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        return f"reading it ended with {signal.Signals(-code).name}"
    return f"reading it ended with exit code {code}"


def main() -> None:
    _limit()
    from hsdkit.documents import open_document
    from hsdkit.errors import HsdkitError

    asked = json.load(sys.stdin)
    try:
        with open_document(asked["path"], password=asked["password"]) as document:
            answer: dict[str, object] = {"pages": document.count}
    except HsdkitError as e:
        answer = {"error": str(e)}
    except MemoryError:
        answer = {"error": f"{Path(asked['path']).name}: opening it takes more than {MEMORY >> 30} GiB of memory"}
    except Exception as e:  # of a library, on a file made to break it
        answer = {"error": f"{Path(asked['path']).name}: cannot be opened: {type(e).__name__}: {e}"}
    print(json.dumps(answer))


def _limit() -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits; the wall time holds there
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
