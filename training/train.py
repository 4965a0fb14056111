"""Trains the embedded model from nothing, and goes on where it stopped.

    python -m training.train all RUN            every phase in order, each resumed if its checkpoint exists
    python -m training.train phase RUN NAME     one phase

Phases `vision` and `oracle` are independent and run side by side; `align` joins them; the joint phases follow.
"""

import argparse
import dataclasses
import math
import multiprocessing as mp
import os
import random
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tokenizers import Tokenizer
from torch import nn

from training.align import align
from training.forward import dense_loss, make_plan, read, see, token_loss
from training.model import DenseHead, OracleEmbedding, make_model, parameter_count
from training.pages import PageSpec
from training.phases import JOINT, ORACLE, PHASES, VISION, Phase
from training.samples import Batch, make_batch
from training.tokenizer import load_tokenizer

WARM_UP = 30  # steps
CHECKPOINT_SECONDS = 120


class Learner(nn.Module):
    """The model with the heads that only training needs."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.model = make_model(tokenizer)
        width = self.model.config.text_config.hidden_size
        self.dense = DenseHead(width)
        self.oracle = OracleEmbedding(width)

    def losses(self, batch: Batch, phase: Phase) -> dict[str, torch.Tensor]:
        """The loss of a batch under "loss", its parts beside it."""
        plan = make_plan(self.model, batch.width, batch.height)
        dense = torch.from_numpy(batch.dense)
        if phase.name == "oracle":
            cells = self.oracle(dense, noise=0.15, wrong=0.01)
            cells = cells.to(torch.bfloat16)
        else:
            cells = see(self.model, torch.from_numpy(batch.patches).float(), plan)
        parts: dict[str, torch.Tensor] = {}
        parts["dense"], parts["glyphs"] = dense_loss(self.dense, cells, dense)
        loss = phase.dense * parts["dense"]
        if phase.name != "vision":
            ids, first, last, lengths = map(torch.from_numpy, (batch.ids, batch.first, batch.last, batch.lengths))
            reading = read(self.model, cells, ids, first, last, lengths, plan)
            parts["token"], parts["tokens"] = token_loss(self.model, reading.hidden, ids, lengths)
            parts["pointer"] = reading.pointer
            loss = loss + parts["token"] + phase.pointer * reading.pointer
        parts["loss"] = loss
        return parts

    def trained(self, phase: Phase) -> dict[str, nn.Parameter]:
        """The parameters a phase changes."""
        skip = {"vision": ("language_model", "oracle", "lm_head"), "oracle": ("visual",)}.get(phase.name, ("oracle",))
        return {n: p for n, p in self.named_parameters() if not any(s in n for s in skip)}


def optimizers(parameters: dict[str, nn.Parameter]) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the blocks, AdamW for the rest."""
    matrices = [p for n, p in parameters.items() if p.ndim == 2 and ("blocks." in n or "layers." in n)]
    chosen = set(map(id, matrices))
    rest = [p for p in parameters.values() if id(p) not in chosen]
    return [
        torch.optim.Muon(matrices, lr=0.0, weight_decay=0.02, ns_steps=4, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, lr=0.0, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0),
    ]


def rate(phase: Phase, step: int, progress: float) -> float:
    """Learning rate at a step and a share of the phase's time."""
    warm = min(1.0, (step + 1) / WARM_UP)
    fall = 1.0 if progress < 1 - phase.decay else max(0.02, (1 - progress) / phase.decay)
    return phase.rate * warm * fall


def specs(phase: Phase, seed: int, rank: int, start: int, tokenizer_path: Path, queue: "mp.Queue[Batch]") -> None:
    """Draws batches for ever. Every rank draws the same sizes in the same order, with different pages."""
    torch.set_num_threads(1)
    tokenizer = load_tokenizer(tokenizer_path)
    sizes, pages = random.Random(f"{seed}-{start}"), random.Random(f"{seed}-{start}-{rank}-pages")
    weights = [s.weight for s in phase.sizes]
    while True:
        size = sizes.choices(phase.sizes, weights)[0]

        def spec(rng: random.Random, size: Any = size) -> PageSpec:
            crop = None if size.height < 128 or rng.random() < 0.85 else True
            kinds = None if rng.random() < 0.7 else ("paragraph", "heading")
            return PageSpec(size.width, size.height, kinds=kinds, crop=crop)

        queue.put(make_batch(spec, size.batch, pages, tokenizer))


def run_phase(
    run: Path, phase: Phase, start_from: Path | None, rank: int = 0, ranks: int = 1, seed: int = 1, threads: int = 1
) -> None:
    """Trains one phase to its end and writes RUN/NAME.pt on the way; resumes from that file if it exists."""
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    tokenizer = load_tokenizer(run / "tokenizer.json")
    learner = Learner(tokenizer)
    parameters = learner.trained(phase)
    optimizer_list = optimizers(parameters)
    checkpoint, elapsed, step = run / f"{phase.name}.pt", 0.0, 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        learner.load_state_dict(state["learner"])
        for optimizer, saved in zip(optimizer_list, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        elapsed, step = state["elapsed"], state["step"]
    elif start_from is not None:
        learner.load_state_dict(torch.load(start_from, weights_only=True)["learner"])
    if rank == 0:
        count = parameter_count(learner.model)
        print(f"{phase.name}: {count:.2f}M parameters, {elapsed / 60:.1f} of {phase.minutes} min")

    queue: mp.Queue[Batch] = mp.Queue(6)
    worker = mp.Process(target=specs, args=(phase, seed, rank, step, run / "tokenizer.json", queue), daemon=True)
    worker.start()
    budget, last_time = phase.minutes * 60, time.time()
    saved_at, shown_at, history, pages, tokens = elapsed, elapsed, defaultdict(list), 0, 0
    while elapsed < budget:
        batch = queue.get()
        with torch.autocast("cpu", torch.bfloat16):
            parts = learner.losses(batch, phase)
        parts["loss"].backward()
        now = time.time()
        # A stopped process (SIGSTOP) must not eat the schedule, so one step counts for at most a minute.
        elapsed, last_time = elapsed + min(60.0, now - last_time), now
        if ranks > 1:
            elapsed = _average(list(parameters.values()), elapsed, ranks)
        for optimizer in optimizer_list:
            for group in optimizer.param_groups:
                group["lr"] = rate(phase, step, elapsed / budget)
        norm = torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0)
        for optimizer in optimizer_list:
            if math.isfinite(norm):
                optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step, pages, tokens = step + 1, pages + ranks * len(batch.ids), tokens + ranks * int(batch.lengths.sum())
        for name, value in parts.items():
            history[name].append(float(value.detach()))
        if rank == 0 and elapsed - shown_at > 20:
            means = " ".join(f"{n} {sum(v) / len(v):.3f}" for n, v in history.items())
            lr, seconds = rate(phase, step, elapsed / budget), elapsed - shown_at
            print(
                f"{time.strftime('%H:%M:%S')} {elapsed / 60:.1f}m step {step} rate {lr:.1e} {means} "
                f"norm {float(norm):.2f} pages/s {pages / seconds:.1f} tokens/s {tokens / seconds:.0f}",
                flush=True,
            )
            shown_at, history, pages, tokens = elapsed, defaultdict(list), 0, 0
        if rank == 0 and (elapsed - saved_at > CHECKPOINT_SECONDS or elapsed >= budget):
            _save(checkpoint, learner, optimizer_list, elapsed, step)
            saved_at = elapsed
    worker.terminate()


def _average(parameters: list[nn.Parameter], elapsed: float, ranks: int) -> float:
    """Averages gradients over the ranks, in place, and the elapsed time with them, so that all ranks agree on it."""
    for p in parameters:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    flat = torch.cat([*(p.grad.flatten() for p in parameters), torch.tensor([elapsed])])
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


def _rank(rank: int, ranks: int, port: int, run: Path, phase: Phase, start_from: Path | None) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    if ranks > 1:
        dist.init_process_group("gloo", rank=rank, world_size=ranks)
    run_phase(run, phase, start_from, rank, ranks)


def _start(ranks: int, run: Path, phase: Phase, start_from: Path | None) -> list[Any]:
    """Starts one process a rank, one thread each: on shared cores faster than one process with more threads."""
    context = mp.get_context("spawn")
    port = random.Random(f"{os.getpid()}-{phase.name}").randint(20000, 40000)
    processes = [context.Process(target=_rank, args=(r, ranks, port, run, phase, start_from)) for r in range(ranks)]
    for process in processes:
        process.start()
    return processes


def _wait(processes: list[Any]) -> None:
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit("a training process failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["all", "phase", "align"])
    parser.add_argument("run", type=Path, help="folder of checkpoints and the tokenizer")
    parser.add_argument("name", nargs="?", choices=list(PHASES))
    parser.add_argument("--start", type=Path, help="checkpoint to take weights from")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--decay", type=float)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--as-name", help="name of the checkpoint, if not the phase's")
    options = parser.parse_args()
    run: Path = options.run
    load_tokenizer(run / "tokenizer.json")
    if options.what == "align":
        align(run)
        return
    if options.what == "phase":
        phase = PHASES[options.name]
        given = {"minutes": options.minutes, "decay": options.decay, "rate": options.rate, "name": options.as_name}
        phase = dataclasses.replace(phase, **{k: v for k, v in given.items() if v is not None})
        _wait(_start(options.ranks, run, phase, options.start))
        return
    _wait(_start(1, run, VISION, None) + _start(1, run, ORACLE, None))
    if not (run / "aligned.pt").exists():
        align(run)
    previous = run / "aligned.pt"
    for phase in JOINT:
        _wait(_start(options.ranks, run, phase, previous))
        previous = run / f"{phase.name}.pt"


if __name__ == "__main__":
    main()
