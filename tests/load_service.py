"""Load on the service: many clients with good, huge, broken, slow and impatient uploads for a while.

    python tests/load_service.py [--seconds 120] [--clients 64] [KEY=VALUE ...]

Starts `hsdkit serve` with these options on a free port, and ends it with SIGTERM. Prints status codes, latencies,
memory and open files of the server and its descendants; ends with 1 if any answer was a 5xx, memory or files grew, a
refusal was not prompt, or small files waited too long. Not a test of pytest: it takes minutes. Linux only (/proc).
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict

import httpx
import pypdfium2 as pdfium
from PIL import Image, ImageDraw
from processes import descendants, resident

MAX_MB, MAX_PAGES, QUEUE = 4, 50, 16

#: Seconds within which a refusal must come, and after which a small file must be done, when QUEUE documents are ahead.
PROMPT, BOUND = 5.0, 60.0


class Load:
    def __init__(self, address: str, until: float, server: int) -> None:
        self.address, self.until, self.server = address, until, server
        self.statuses: dict[str, Counter[str]] = defaultdict(Counter)
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.samples: list[tuple[float, int, int, int]] = []
        self.small, self.long = small_image(), blank_pdf(12)
        self.many = blank_pdf(MAX_PAGES + 10)
        self.huge = b"%PDF-1.7\n" + os.urandom((MAX_MB << 20) + 100_000)

    async def run(self, clients: int) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        async with httpx.AsyncClient(base_url=self.address, timeout=BOUND * 4, limits=limits) as client:
            kinds = [self.good] * 5 + [self.watched, self.left] + [self.broken] * 2 + [self.too_large] * 2
            kinds += [self.too_many, self.slow, self.silent]
            tasks = [self.client(client, random.Random(i), kinds) for i in range(clients)]
            await asyncio.gather(self.sample(), self.health(client), *tasks)

    async def client(self, client: httpx.AsyncClient, chance: random.Random, kinds: list) -> None:
        while time.monotonic() < self.until:
            kind = chance.choice(kinds)
            start = time.monotonic()
            try:
                status = await kind(client, chance)
            except httpx.TransportError as e:
                status = type(e).__name__
            self.told(kind.__name__, status, time.monotonic() - start)
            await asyncio.sleep(chance.uniform(0.5, 2.0) if status == "429" else chance.uniform(0, 0.2))

    def told(self, kind: str, status: str, seconds: float) -> None:
        self.statuses[kind][status] += 1
        refused = status == "429" or (kind, status) == ("too_large", "413")
        self.seconds["refused at once" if refused else f"{kind} {status}"].append(seconds)

    async def send(self, client: httpx.AsyncClient, data: bytes, name: str, path: str = "/v1/parse") -> httpx.Response:
        return await client.post(path, files={"file": (name, data)})

    async def good(self, client: httpx.AsyncClient, chance: random.Random) -> str:
        answer = await self.send(client, self.small, "small.png")
        if answer.status_code == 200:
            assert answer.json()["pages"] == 1
        return str(answer.status_code)

    async def watched(self, client: httpx.AsyncClient, chance: random.Random) -> str:
        """A job of several pages, watched to its end or deleted on the way."""
        taken = await self.send(client, self.long, "long.pdf", "/v1/jobs")
        if taken.status_code != 202:
            return str(taken.status_code)
        job = f"/v1/jobs/{taken.json()['id']}"
        async with client.stream("GET", f"{job}/events") as stream:
            async for line in stream.aiter_lines():
                told = json.loads(line)
                if told["event"] == "page" and chance.random() < 0.3:
                    break
        return str((await client.delete(job)).status_code)

    async def left(self, client: httpx.AsyncClient, chance: random.Random) -> str:
        """Goes away while it waits."""
        try:
            answer = await asyncio.wait_for(self.send(client, self.small, "left.png"), chance.uniform(0.05, 2))
        except TimeoutError:
            return "left"
        return str(answer.status_code)

    async def broken(self, client: httpx.AsyncClient, chance: random.Random) -> str:
        data = chance.choice([b"", b"%PDF-1.7\nxref", self.long[: len(self.long) // 2], self.small[:60], b"\0" * 5000])
        return str((await self.send(client, data, "broken.pdf")).status_code)

    async def too_large(self, client: httpx.AsyncClient, chance: random.Random) -> str:
        return str((await self.send(client, self.huge, "huge.pdf")).status_code)

    async def too_many(self, client: httpx.AsyncClient, chance: random.Random) -> str:
        return str((await self.send(client, self.many, "many.pdf")).status_code)

    async def slow(self, client: httpx.AsyncClient, chance: random.Random) -> str:
        """A few bytes a second of a body that never ends."""
        return await self.trickle(
            b"POST /v1/parse HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
        )

    async def silent(self, client: httpx.AsyncClient, chance: random.Random) -> str:
        """Headers that never end."""
        return await self.trickle(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: ")

    async def trickle(self, head: bytes) -> str:
        host, port = self.address.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        answer = asyncio.ensure_future(reader.read(200))
        try:
            writer.write(head)
            while not answer.done() and time.monotonic() < self.until:
                writer.write(b"x")
                await asyncio.wait([answer], timeout=0.5)
            said = answer.result() if answer.done() else b"open"
        except ConnectionError:
            said = b""
        finally:
            answer.cancel()
            writer.close()
        return said[9:12].decode() if said.startswith(b"HTTP") else said.decode() or "closed"

    async def health(self, client: httpx.AsyncClient) -> None:
        while time.monotonic() < self.until:
            start = time.monotonic()
            status = (await client.get("/v1/health")).status_code
            await client.get("/metrics")
            self.told("health", str(status), time.monotonic() - start)
            await asyncio.sleep(0.5)

    async def sample(self) -> None:
        start = time.monotonic()
        while time.monotonic() < self.until:
            self.samples.append((time.monotonic() - start, *resources(self.server)))
            await asyncio.sleep(1)


def resources(pid: int) -> tuple[int, int, int]:
    """MB resident, of its descendants too; open files; descendants."""
    family = [pid, *descendants(pid)]
    return sum(map(resident, family)) >> 20, len(os.listdir(f"/proc/{pid}/fd")), len(family) - 1


def small_image() -> bytes:
    image = Image.new("RGB", (360, 60), "white")
    ImageDraw.Draw(image).text((10, 10), "A small page with one line.", fill="black", font_size=20)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def blank_pdf(pages: int) -> bytes:
    document = pdfium.PdfDocument.new()
    for _ in range(pages):
        document.new_page(200, 60)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def verdict(load: Load) -> list[str]:
    """What is wrong."""
    wrong = [f"{kind}: {n} answers {s}" for kind, c in load.statuses.items() for s, n in c.items() if s.startswith("5")]
    expected = {
        "good": {"200", "429"}, "watched": {"204", "429"}, "left": {"left", "200", "429"}, "broken": {"422", "429"},
        "too_large": {"413", "429"}, "too_many": {"413", "429"}, "slow": {"408", "429", "open"},
        "silent": {"closed", "open"}, "health": {"200"},
    }  # fmt: skip
    for kind, counts in load.statuses.items():
        wrong += [f"{kind}: {n} times {s}" for s, n in counts.items() if s not in expected[kind] and s[:1] != "5"]
    if late := [s for s in load.seconds["refused at once"] if s > PROMPT]:
        wrong.append(f"{len(late)} refusals took more than {PROMPT:g} s, the longest {max(late):.1f} s")
    if (good := load.seconds["good 200"]) and percentile(good, 95) > BOUND:
        wrong.append(f"small files: p95 is {percentile(good, 95):.1f} s, more than {BOUND:g} s")
    if not good:
        wrong.append("not one small file was parsed")
    third = len(load.samples) // 3
    if third >= 5:
        for name, column, slack in (("memory (MB)", 1, 60), ("open files", 2, 40)):
            middle = statistics.median(s[column] for s in load.samples[third : 2 * third])
            last = statistics.median(s[column] for s in load.samples[2 * third :])
            if last > middle * 1.15 + slack:
                wrong.append(f"{name} grew from {middle:.0f} to {last:.0f}")
    return wrong


def percentile(values: list[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def tell(load: Load) -> None:
    for kind, counts in sorted(load.statuses.items()):
        print(f"{kind:10s}", "  ".join(f"{status} x {n}" for status, n in counts.most_common()))
    for name, values in sorted(load.seconds.items()):
        p = [percentile(values, q) for q in (50, 95)]
        print(f"{name:16s} n {len(values):5d}   p50 {p[0]:6.2f} s   p95 {p[1]:6.2f} s   longest {max(values):6.2f} s")
    for at, memory, files, processes in load.samples[:: max(1, len(load.samples) // 12)]:
        print(f"{at:6.0f} s   {memory:5d} MB   {files:4d} open files   {processes} descendants")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=120)
    options.add_argument("--clients", type=int, default=64)
    options.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", "from hsdkit.cli import main; main()", "serve", "--port", "0"]
        command += ["--folder", folder, "--max-mb", str(MAX_MB), "--max-pages", str(MAX_PAGES)]
        command += ["--queue", str(QUEUE), *asked.overrides]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            address = re.search(r"http://\S+?(?=,)", server.stderr.readline())
            assert address is not None, server.stderr.read()
            wait_ready(address[0])
            load = Load(address[0], time.monotonic() + asked.seconds, server.pid)
            asyncio.run(load.run(asked.clients))
            counted = httpx.get(f"{address[0]}/metrics", timeout=30).text
            start = time.monotonic()
            server.send_signal(signal.SIGTERM)
            code = server.wait(60)
            tell(load)
            print(*re.findall(r"^hsdkit_(?:pages|page_seconds_sum|jobs).* [1-9].*", counted, re.MULTILINE), sep="\n")
            print(f"SIGTERM: ended with {code} after {time.monotonic() - start:.1f} s")
            wrong = verdict(load) + ([f"ended with {code}"] if code else [])
            wrong += [f"said: {line}" for line in server.stderr.read().splitlines()[:5]]
        finally:
            server.kill()
            server.wait()
    print("\n".join(f"WRONG: {w}" for w in wrong) or "all as it should be")
    return int(bool(wrong))


def wait_ready(address: str) -> None:
    for _ in range(1200):
        if httpx.get(f"{address}/v1/health").status_code == 200:
            return
        time.sleep(0.1)
    raise SystemExit("the service did not become ready")


if __name__ == "__main__":
    sys.exit(main())
