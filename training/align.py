"""Joins the vision tower and the language model: fits the merger's last layer so that it writes oracle embeddings."""

import random
from pathlib import Path

import torch

from training.forward import make_plan, see
from training.learner import Learner
from training.pages import PageSpec
from training.samples import make_batch
from training.tokenizer import load_tokenizer


@torch.no_grad()
def align(run: Path, batches: int = 60) -> None:
    """Reads RUN/vision.pt and RUN/oracle.pt, writes RUN/aligned.pt. A ridge regression in closed form, seconds.

    Gradient descent on the same target failed: the two spaces differ in scale.
    """
    tokenizer = load_tokenizer(run / "tokenizer.json")
    learner = Learner(tokenizer)
    oracle = torch.load(run / "oracle.pt", weights_only=True, map_location="cpu")["learner"]
    vision = torch.load(run / "vision.pt", weights_only=True, map_location="cpu")["learner"]
    learner.load_state_dict({**oracle, **{k: v for k, v in vision.items() if ".visual." in k}})
    table = learner.table()
    merger = learner.model.model.visual.merger
    features: list[torch.Tensor] = []
    hook = merger.mlp[1].register_forward_hook(lambda _module, _inputs, output: features.append(output.flatten(0, 1)))
    rng = random.Random(123)
    xs, ys = [], []
    for i in range(batches):
        width, height = [(192, 96), (256, 64), (128, 128), (320, 160)][i % 4]
        batch = make_batch(lambda r, w=width, h=height: PageSpec(w, h, as_read=True), 6, rng, tokenizer)
        features.clear()
        plan = make_plan(learner.model, width, height)
        see(learner.model, torch.from_numpy(batch.patches).float(), plan)
        tokens = torch.from_numpy(batch.tokens)[:, plan.order]  # the merger works in window order
        used = (tokens != learner.pad).any(-1).flatten()
        keep = used | (torch.rand(used.shape) < 0.4)
        xs.append(features[0][keep])
        ys.append(learner.oracle(tokens, table).flatten(0, 1)[keep])
    hook.remove()
    x, y = torch.cat(xs).double(), torch.cat(ys).double()
    x = torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], 1)
    fit = int(len(x) * 0.9)
    gram = x[:fit].T @ x[:fit] + 1e-5 * fit * x.var() * torch.eye(x.shape[1], dtype=x.dtype)
    solution = torch.linalg.solve(gram, x[:fit].T @ y[:fit])
    error = ((x[fit:] @ solution - y[fit:]) ** 2).mean() / y[fit:].var()
    print(f"align: {len(x)} cells, unexplained variance on unseen cells {float(error):.3f}")
    merger.mlp[2].weight.copy_(solution[:-1].T)
    merger.mlp[2].bias.copy_(solution[-1])
    torch.save({"learner": learner.state_dict()}, run / "aligned.pt")
