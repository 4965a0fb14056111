"""Trains the embedded model from nothing, and goes on where it stopped.

python -m training.train all RUN            every phase in order; finished ones are skipped, a stopped one goes on
python -m training.train phase RUN NAME     one phase, resumed from RUN/NAME.pt if it exists

Phases `vision` and `oracle` are independent and run side by side; `align` joins them; the joint phases follow.
"""

import argparse
import dataclasses
import math
import multiprocessing as mp
import os
import random
import socket
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from training.align import align
from training.learner import Learner, load_matching, optimizers
from training.model import parameter_count
from training.pages import PageSpec
from training.phases import JOINT, ORACLE, PHASES, VISION, Phase, Size
from training.samples import Batch, make_batch
from training.tokenizer import load_tokenizer, loosened

WARM_UP = 30  # steps
CHECKPOINT_SECONDS = 120
# What pages are made of; None is everything. Formulas are few letters of a page and much of what goes wrong on it.
KINDS = (None, ("paragraph", "heading"), ("list", "heading"), ("table",), ("formula",), ("formula", "paragraph"))
KIND_WEIGHTS = (12, 3, 1, 1, 2, 2)


@dataclasses.dataclass(frozen=True)
class Machine:
    """What trains: `ranks` processes of one thread on a CPU, or one process on a GPU.

    workers: processes that draw pages, each rank; batch: factor on the batch sizes of the phases; accumulate: batches
    a step of the optimizer.
    """

    device: str = "cpu"
    ranks: int = 2
    workers: int = 1
    batch: int = 1
    accumulate: int = 1

    def __post_init__(self) -> None:
        if self.ranks > 1 and (self.workers > 1 or self.device != "cpu"):
            raise ValueError("more than one rank needs the CPU and one worker a rank: their page sizes keep in step")


def rate(phase: Phase, step: int, progress: float) -> float:
    """Learning rate at a step and a share of the phase's time."""
    warm = min(1.0, (step + 1) / WARM_UP)
    fall = (1 - progress) / phase.decay if phase.decay > 0 else 1.0
    return phase.rate * warm * min(1.0, max(0.02, fall))


def draw_batches(
    phase: Phase, machine: Machine, seed: str, rank: int, tokenizer: Path, queue: "mp.Queue[Batch]"
) -> None:
    """Draws batches for ever. Every rank draws the same sizes in the same order, with different pages."""
    torch.set_num_threads(1)
    bpe = load_tokenizer(tokenizer)
    loose = loosened(bpe)
    sizes, pages = random.Random(seed), random.Random(f"{seed}-{rank}-pages")
    weights = [s.weight for s in phase.sizes]
    while True:
        size = sizes.choices(phase.sizes, weights)[0]

        def spec(rng: random.Random, size: Size = size) -> PageSpec:
            crop = None if size.height < 128 or rng.random() < 0.85 else True
            kinds = rng.choices(KINDS, KIND_WEIGHTS)[0]
            return PageSpec(size.width, size.height, kinds=kinds, crop=crop, as_read=True)

        queue.put(make_batch(spec, size.batch * machine.batch, pages, bpe, loose))


@contextmanager
def _batches(run: Path, phase: Phase, machine: Machine, rank: int, seed: int, step: int) -> Iterator["mp.Queue[Batch]"]:
    """A queue that worker processes keep filled."""
    queue: mp.Queue[Batch] = mp.Queue(6 * machine.workers)
    workers = [
        mp.Process(
            target=draw_batches,
            args=(phase, machine, f"{seed}-{step}-{w}", rank, run / "tokenizer.json", queue),
            daemon=True,
        )
        for w in range(machine.workers)
    ]
    for worker in workers:
        worker.start()
    try:
        yield queue
    finally:
        for worker in workers:
            worker.terminate()


def run_phase(
    run: Path, phase: Phase, machine: Machine, start_from: Path | None = None, rank: int = 0, seed: int = 1
) -> None:
    """Trains one phase to its end and writes RUN/NAME.pt on the way; resumes from that file if it exists."""
    torch.manual_seed(seed)
    learner = Learner(load_tokenizer(run / "tokenizer.json"))
    learner.to(machine.device)
    parameters = learner.trained(phase)
    optimizer_list = optimizers(parameters)
    checkpoint, elapsed, step, budget = run / f"{phase.name}.pt", 0.0, 0, phase.minutes * 60
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True, map_location=machine.device)
        learner.load_state_dict(state["learner"])
        for optimizer, saved in zip(optimizer_list, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        elapsed, step = state["elapsed"], state["step"]
    elif start_from is not None:
        load_matching(learner, torch.load(start_from, weights_only=True, map_location=machine.device)["learner"])
    log = _Log(phase, elapsed, rank == 0)
    log.say(f"{parameter_count(learner.model):.2f}M parameters, {elapsed / 60:.1f} of {phase.minutes:.1f} min")
    if elapsed >= budget:
        return
    saved_at, last_time = elapsed, time.time()
    with _batches(run, phase, machine, rank, seed, step) as queue:
        while elapsed < budget:
            for _ in range(machine.accumulate):
                batch = queue.get()
                with torch.autocast(machine.device, torch.bfloat16):
                    parts = learner.losses(batch, phase, machine.device)
                (parts["loss"] / machine.accumulate).backward()
                log.add(parts, machine.ranks * len(batch.ids), machine.ranks * int(batch.lengths.sum()))
            now = time.time()
            # A stopped process (SIGSTOP) must not eat the schedule, so one step counts for at most a minute.
            elapsed, last_time = elapsed + min(60.0, now - last_time), now
            if machine.ranks > 1:
                elapsed = _average(list(parameters.values()), elapsed, machine.ranks)
            lr = rate(phase, step, elapsed / budget)
            norm = float(torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0))
            for optimizer in optimizer_list:
                for group in optimizer.param_groups:
                    group["lr"] = lr
                if math.isfinite(norm):
                    optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            step += 1
            log.show(elapsed, step, lr, norm)
            if rank == 0 and (elapsed - saved_at > CHECKPOINT_SECONDS or elapsed >= budget):
                _save(checkpoint, learner, optimizer_list, elapsed, step)
                saved_at = elapsed


class _Log:
    """Means of the losses since the last line, one line every twenty seconds."""

    def __init__(self, phase: Phase, elapsed: float, loud: bool) -> None:
        self.name, self.loud, self.shown_at = phase.name, loud, elapsed
        self._clear()

    def _clear(self) -> None:
        self.values: defaultdict[str, list[torch.Tensor]] = defaultdict(list)
        self.pages = self.tokens = 0

    def say(self, text: str) -> None:
        if self.loud:
            print(f"{time.strftime('%H:%M:%S')} {self.name}: {text}", flush=True)

    def add(self, parts: dict[str, torch.Tensor], pages: int, tokens: int) -> None:
        for name, value in parts.items():
            self.values[name].append(value.detach())
        self.pages, self.tokens = self.pages + pages, self.tokens + tokens

    def show(self, elapsed: float, step: int, lr: float, norm: float) -> None:
        seconds = elapsed - self.shown_at
        if seconds < 20:
            return
        means = " ".join(f"{n} {float(torch.stack(v).mean()):.3f}" for n, v in self.values.items())
        speed = f"pages/s {self.pages / seconds:.1f} tokens/s {self.tokens / seconds:.0f}"
        self.say(f"{elapsed / 60:.1f}m step {step} rate {lr:.1e} {means} norm {norm:.2f} {speed}")
        self.shown_at = elapsed
        self._clear()


def _average(parameters: list[nn.Parameter], elapsed: float, ranks: int) -> float:
    """Averages gradients over the ranks, in place, and the elapsed time with them, so that all ranks agree on it."""
    for p in parameters:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    flat = torch.cat([*(p.grad.flatten() for p in parameters), torch.tensor([elapsed], dtype=torch.float32)])
    dist.all_reduce(flat)
    flat /= ranks
    offset = 0
    for p in parameters:
        p.grad.copy_(flat[offset : offset + p.numel()].view_as(p))
        offset += p.numel()
    return float(flat[-1])


def _save(path: Path, learner: Learner, optimizer_list: list[torch.optim.Optimizer], elapsed: float, step: int) -> None:
    state = {
        "learner": learner.state_dict(),
        "optimizers": [o.state_dict() for o in optimizer_list],
        "elapsed": elapsed,
        "step": step,
    }
    torch.save(state, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


def _rank(rank: int, run: Path, phase: Phase, machine: Machine, port: int, start_from: Path | None) -> None:
    torch.set_default_device(machine.device)
    if machine.device == "cpu":
        torch.set_num_threads(1)
    if machine.ranks > 1:
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
        dist.init_process_group("gloo", rank=rank, world_size=machine.ranks)
    run_phase(run, phase, machine, start_from, rank)


def _start(run: Path, phase: Phase, machine: Machine, start_from: Path | None = None) -> list[Any]:
    """Starts one process a rank, one thread each: on shared cores faster than one process with more threads."""
    context = mp.get_context("spawn")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [
        context.Process(target=_rank, args=(rank, run, phase, machine, port, start_from))
        for rank in range(machine.ranks)
    ]
    for process in processes:
        process.start()
    return processes


def _wait(processes: list[Any]) -> None:
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit("a training process failed")


def train_all(run: Path, machine: Machine, scale: float) -> None:
    """Every phase, its minutes multiplied by `scale`."""
    halves, joint = [
        [dataclasses.replace(phase, minutes=phase.minutes * scale) for phase in phases]
        for phases in ((VISION, ORACLE), JOINT)
    ]
    alone = dataclasses.replace(machine, ranks=1)
    _wait([process for phase in halves for process in _start(run, phase, alone)])
    if not (run / "aligned.pt").exists():
        align(run)
    previous = run / "aligned.pt"
    for phase in joint:
        _wait(_start(run, phase, machine, previous))
        previous = run / f"{phase.name}.pt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["all", "phase", "align"])
    parser.add_argument("run", type=Path, help="folder of checkpoints and the tokenizer")
    parser.add_argument("name", nargs="?", choices=list(PHASES))
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--ranks", type=int, help="training processes; default 2 on a CPU, 1 on a GPU")
    parser.add_argument("--workers", type=int, default=1, help="processes that draw pages, each rank")
    parser.add_argument("--batch", type=int, default=1, help="factor on the batch sizes")
    parser.add_argument("--accumulate", type=int, default=1, help="batches a step: for late, long decays")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the minutes of every phase")
    parser.add_argument("--start", type=Path, help="phase: take the weights that fit from this checkpoint")
    parser.add_argument("--minutes", type=float, help="phase: instead of its own")
    parser.add_argument("--decay", type=float, help="phase: instead of its own")
    parser.add_argument("--rate", type=float, help="phase: instead of its own")
    parser.add_argument("--as-name", help="phase: name of the checkpoint, if not the phase's")
    options = parser.parse_args()
    if options.what == "phase" and options.name is None:
        parser.error(f"which phase? one of {', '.join(PHASES)}")
    run: Path = options.run
    load_tokenizer(run / "tokenizer.json")
    ranks = options.ranks or (2 if options.device == "cpu" else 1)
    machine = Machine(options.device, ranks, options.workers, options.batch, options.accumulate)
    if options.what == "align":
        align(run)
    elif options.what == "all":
        train_all(run, machine, options.scale)
    else:
        given = {"minutes": options.minutes, "decay": options.decay, "rate": options.rate, "name": options.as_name}
        phase = dataclasses.replace(PHASES[options.name], **{k: v for k, v in given.items() if v is not None})
        phase = dataclasses.replace(phase, minutes=phase.minutes * options.scale)
        _wait(_start(run, phase, machine, options.start))


if __name__ == "__main__":
    main()
