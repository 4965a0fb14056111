"""What is trained: the model, the heads only training needs, the losses, the optimizers."""

import torch
from tokenizers import Tokenizer
from torch import nn

from training.forward import glyph_loss, make_plan, read, see, slot_loss, token_loss
from training.model import GlyphHead, OracleEmbedding, Spelling, TokenHead, make_model
from training.phases import Phase
from training.samples import Batch
from training.symbols import PAD


class Learner(nn.Module):
    """The model with the heads that only training needs."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.model = make_model(tokenizer)
        width = self.model.config.text_config.hidden_size
        self.pad: int = tokenizer.token_to_id(PAD)
        self.glyphs = GlyphHead(width)
        self.slots = TokenHead(width)
        self.oracle = OracleEmbedding(width, self.pad)
        self.spelling = Spelling(tokenizer, width)

    def table(self) -> torch.Tensor:
        """Token embeddings (V, D), spelling included."""
        return self.model.get_input_embeddings().weight + self.spelling()

    def losses(self, batch: Batch, phase: Phase, device: str = "cpu") -> dict[str, torch.Tensor]:
        """The loss of a batch under "loss", its parts beside it."""
        plan = make_plan(self.model, batch.width, batch.height)
        tokens, table = torch.from_numpy(batch.tokens).to(device), self.table()
        parts: dict[str, torch.Tensor] = {}
        loss = torch.zeros(())
        if phase.half == "oracle":
            cells = self.oracle(tokens, table, noise=0.15, wrong=0.01).to(torch.bfloat16)
        else:
            cells = see(self.model, torch.from_numpy(batch.patches).to(device).float(), plan)
            glyphs = torch.from_numpy(batch.glyphs).to(device)
            parts["dense"], parts["glyphs"] = glyph_loss(self.glyphs, cells, glyphs)
            loss = loss + phase.dense * parts["dense"]
        parts["slot"], parts["slots"] = slot_loss(self.slots, cells, tokens, table, self.pad)
        loss = loss + phase.dense * parts["slot"]
        if phase.half != "vision":
            arrays = (batch.ids, batch.places, batch.lengths, batch.taught)
            ids, places, lengths, taught = (torch.from_numpy(x).to(device) for x in arrays)
            reading = read(self.model, cells, with_slips(ids, lengths), places, lengths, taught, plan, table)
            parts["token"], parts["tokens"] = token_loss(reading.hidden, table, ids, taught)
            parts["pointer"] = reading.pointer
            loss = loss + parts["token"] + phase.pointer * reading.pointer
        parts["loss"] = loss
        return parts

    def trained(self, phase: Phase) -> dict[str, nn.Parameter]:
        """The parameters a phase changes."""
        skip = {
            "vision": ("language_model.layers", "language_model.norm", "oracle"),
            "oracle": ("visual", "glyphs"),
            "both": ("oracle",),
        }[phase.half]
        return {n: p for n, p in self.named_parameters() if not any(s in n for s in skip)}


def with_slips(ids: torch.Tensor, lengths: torch.Tensor, share: float = 0.06) -> torch.Tensor:
    """Texts (B, T) to read on from: in half of them a share of the tokens is another one of the same page.

    At work the model reads on from its own mistakes, so it must trust the page and its place more than the last words.
    """
    others = ids.gather(1, (torch.rand(ids.shape) * lengths[:, None]).long())
    wrong = (torch.rand(ids.shape) < share) & (torch.rand(len(ids), 1) < 0.5)
    return torch.where(wrong, others, ids)


def optimizers(parameters: dict[str, nn.Parameter]) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the blocks, AdamW for the rest."""
    matrices = [p for n, p in parameters.items() if p.ndim == 2 and ("blocks." in n or "layers." in n)]
    chosen = set(map(id, matrices))
    rest = [p for p in parameters.values() if id(p) not in chosen]
    return [
        torch.optim.Muon(matrices, lr=0.0, weight_decay=0.02, ns_steps=4, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, lr=0.0, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0),
    ]


def load_matching(learner: Learner, weights: dict[str, torch.Tensor]) -> None:
    """Loads the weights whose name and shape match, names the rest."""
    own = learner.state_dict()
    fit = {name: w for name, w in weights.items() if name in own and own[name].shape == w.shape}
    learner.load_state_dict(fit, strict=False)
    missing = [name for name in own if name not in fit]
    if missing:
        print(f"{len(missing)} tensors start fresh: {', '.join(missing[:4])} ...")
