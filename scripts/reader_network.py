"""The network of the reader in torch, and how it is fine-tuned and rounded to 8 bits."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from train_reader import BATCH, RATE, SEED, TRAINED, WARM, Pair

from models.folder import EMBEDDED, PACKED, embedded_folder
from models.packed_weights import PackedWeights

NEVER = -1e4  # logit of what cannot be chosen
POOL = 24  # batches that are cut from pairs sorted by length
DECAY, BETAS, CLIP = 0.01, (0.9, 0.98), 1.0
TOLD, KEPT = 50, 400  # steps between two lines, and between two copies of the weights


class EncoderLayer(nn.Module):
    """Hold one layer of the encoder."""

    def __init__(self, weights: PackedWeights, number: int) -> None:
        super().__init__()
        self.heads, name = weights.heads, f"l{number}."
        width = weights.width
        inner = len(weights.vector(f"{name}fi.b"))
        for part in ("q", "k", "v", "ao", "fi"):
            setattr(self, part, _linear(weights, f"{name}{part}", width))
        self.fo = _linear(weights, f"{name}fo", inner)
        for part in ("aln", "oln"):
            norm = nn.LayerNorm(width, eps=weights.epsilon)
            norm.weight.data = torch.tensor(weights.vector(f"{name}{part}.w"))
            norm.bias.data = torch.tensor(weights.vector(f"{name}{part}.b"))
            setattr(self, part, norm)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the next states of x, shape (batch, tokens, width)."""
        batch, tokens, width = x.shape

        def split(part: nn.Module) -> Tensor:
            shaped: Tensor = part(x).view(batch, tokens, self.heads, -1)
            return shaped.transpose(1, 2)

        # Written out, for the fused one's way back takes a third of a step on a processor.
        odds = split(self.q) @ split(self.k).transpose(2, 3) * (width // self.heads) ** -0.5
        seen = odds.masked_fill(~mask, NEVER).softmax(-1).to(x.dtype) @ split(self.v)
        x = self.aln(x + self.ao(seen.transpose(1, 2).reshape(batch, tokens, width)))
        y: Tensor = self.oln(x + self.fo(functional.gelu(self.fi(x))))
        return y


class ReaderNetwork(nn.Module):
    """Give each token logits of being an answer's start and end, each text one of having none."""

    def __init__(self, weights: PackedWeights) -> None:
        super().__init__()
        width = weights.width
        self.epsilon = weights.epsilon
        kinds = weights.vector("emb.type")[:width]
        places = weights.vector("emb.pos").reshape(-1, width) + kinds
        self.register_buffer("words", torch.tensor(weights.matrix("emb.word", width).values()))
        self.register_buffer("places", torch.tensor(places))
        for part in "wb":
            norm = torch.tensor(weights.vector(f"emb.ln.{part}"))
            self.register_buffer(f"norm_{part}", norm)
        self.layers = nn.ModuleList(EncoderLayer(weights, n) for n in range(weights.layers))
        self.frozen = weights.layers - TRAINED
        self.layers[: self.frozen].requires_grad_(False)
        self.spans, self.null = nn.Linear(width, 2), nn.Linear(width, 1)
        for head in (self.spans, self.null):
            nn.init.normal_(head.weight, std=0.02)
            nn.init.zeros_(head.bias)

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits of shape (batch, tokens, 2) and (batch,)."""
        x = functional.embedding(ids, self.words) + self.places[: ids.shape[1]]
        x = functional.layer_norm(x, x.shape[-1:], self.norm_w, self.norm_b, eps=self.epsilon)
        for number, layer in enumerate(self.layers):
            with torch.set_grad_enabled(number >= self.frozen and torch.is_grad_enabled()):
                x = layer(x, mask[:, None, None, :])
        return self.spans(x), self.null(x[:, 0]).squeeze(-1)


def _linear(weights: PackedWeights, name: str, columns: int) -> nn.Linear:
    matrix = torch.tensor(weights.matrix(f"{name}.w", columns).values())
    made = nn.Linear(columns, len(matrix))
    made.weight.data, made.bias.data = matrix, torch.tensor(weights.vector(f"{name}.b"))
    return made


def loss_of(network: ReaderNetwork, pairs: list[Pair]) -> Tensor:
    """Return the mean of -log P(start) and -log P(end); all answers count, or none does."""
    tokens = max(len(one.ids) for one in pairs)
    ids = torch.ones(len(pairs), tokens, dtype=torch.long)  # 1 is the pad
    mask, allowed = torch.zeros(2, len(pairs), tokens, dtype=torch.bool)
    right = torch.zeros(2, len(pairs), tokens + 1, dtype=torch.bool)
    for row, pair in enumerate(pairs):
        ids[row, : len(pair.ids)] = torch.tensor(pair.ids)
        mask[row, : len(pair.ids)] = True
        allowed[row, pair.base : len(pair.ids) - 1] = True
        for start, end in pair.spans:
            inside = (slice(start, end),) * 2 if pair.whole else (start, end - 1)
            right[0, row, inside[0]] = right[1, row, inside[1]] = True
        right[:, row, tokens] = not pair.spans
    device = network.places.device
    ids, mask, allowed, right = (one.to(device) for one in (ids, mask, allowed, right))
    logits, null = network(ids, mask)
    total = torch.zeros((), device=device)
    for end in (0, 1):
        choices = torch.cat([logits[..., end].masked_fill(~allowed, NEVER), null[:, None]], 1)
        odds = functional.log_softmax(choices, 1).masked_fill(~right[end], NEVER)
        total = total - torch.logsumexp(odds, 1).mean() / 2
    return total


def batches(pairs: list[Pair]) -> list[list[Pair]]:
    """Return all pairs in batches of about the same length, in random order."""
    random.shuffle(pairs)
    pools = [
        sorted(pairs[at : at + BATCH * POOL], key=lambda one: len(one.ids))
        for at in range(0, len(pairs), BATCH * POOL)
    ]
    made = [pool[at : at + BATCH] for pool in pools for at in range(0, len(pool), BATCH)]
    random.shuffle(made)
    return made


def train(
    pairs: list[Pair], target: Path, minutes: float, began: float, earlier: Path | None
) -> None:
    """Fine-tune for a time, whose share that is over lowers the rate, and write the weights.

    It begins with the encoder, or goes on from the weights of an earlier training.
    """
    random.seed(SEED)
    torch.manual_seed(SEED)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = ReaderNetwork(PackedWeights(embedded_folder(EMBEDDED).path / PACKED))
    if earlier is not None:
        load(network, earlier)
    network.to(device)
    given = [one for one in pairs if not one.left_out]
    trained = [one for one in network.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=DECAY, betas=BETAS)
    step, share, seen = 0, 0.0, 0
    losses: list[float] = []
    while share < 1:
        for batch in batches(given):
            share = (time.monotonic() - began) / (minutes * 60)
            if share >= 1:
                break
            for group in optimizer.param_groups:
                group["lr"] = RATE * min(1, step / WARM) * max(0.02, 1 - share)
            with torch.autocast(device, torch.bfloat16):  # 1.4 times as fast, where it is built in
                loss = loss_of(network, batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(trained, CLIP)
            optimizer.step()
            step, seen = step + 1, seen + len(batch)
            losses.append(loss.item())
            if step % TOLD == 0:
                told, losses = f"loss {sum(losses) / len(losses):.3f}", []
                sys.stderr.write(f"{share:.0%}: {seen} pairs, {told}\n")
            if step % KEPT == 0:
                save(network, target)
    save(network, target)


def load(network: ReaderNetwork, path: Path) -> None:
    """Take the trained layers from a file that `save` wrote."""
    with np.load(path) as held:
        for number, layer in enumerate(network.layers):
            if number < network.frozen:
                continue
            for part in ("q", "k", "v", "ao", "fi", "fo"):
                name, linear = f"l{number}.{part}", getattr(layer, part)
                scales = held[f"{name}.w.scales"].astype(np.float32)
                linear.weight.data = torch.tensor(held[f"{name}.w"] * scales[:, None])
                linear.bias.data = torch.tensor(held[f"{name}.b"])
            for part in ("aln", "oln"):
                norm = getattr(layer, part)
                norm.weight.data = torch.tensor(held[f"l{number}.{part}.w"])
                norm.bias.data = torch.tensor(held[f"l{number}.{part}.b"])
        for name in ("spans", "null"):
            head = getattr(network, name)
            head.weight.data = torch.tensor(held[f"{name}.w"].reshape(-1, len(head.weight)).T)
            head.bias.data = torch.tensor(held[f"{name}.b"])


def mix(earlier: Path, later: Path, share: float, target: Path) -> None:
    """Write the mean of two trainings' weights, `share` of the later (arXiv 2109.01903)."""
    network = ReaderNetwork(PackedWeights(embedded_folder(EMBEDDED).path / PACKED))
    load(network, earlier)
    first = {name: one.clone() for name, one in network.state_dict().items()}
    load(network, later)
    second = network.state_dict()
    network.load_state_dict({name: one.lerp(second[name], share) for name, one in first.items()})
    save(network, target)


def save(network: ReaderNetwork, target: Path) -> None:
    """Write the trained layers, matrices at 8 bits with a scale for each row."""
    written: dict[str, Any] = {}
    for number, layer in enumerate(network.layers):
        if number < network.frozen:
            continue
        for part in ("q", "k", "v", "ao", "fi", "fo"):
            name, linear = f"l{number}.{part}", getattr(layer, part)
            matrix = linear.weight.detach().cpu().numpy()
            scales = (np.abs(matrix).max(axis=1) / 127).astype(np.float16)
            rounded = np.rint(matrix / scales.astype(np.float32)[:, None])
            written[f"{name}.w"] = np.clip(rounded, -127, 127).astype(np.int8)
            written[f"{name}.w.scales"] = scales
            written[f"{name}.b"] = linear.bias.detach().cpu().numpy()
        for part in ("aln", "oln"):
            norm = getattr(layer, part)
            written[f"l{number}.{part}.w"] = norm.weight.detach().cpu().numpy()
            written[f"l{number}.{part}.b"] = norm.bias.detach().cpu().numpy()
    for name in ("spans", "null"):
        head = getattr(network, name)
        written[f"{name}.w"] = head.weight.detach().cpu().numpy().T.reshape(-1)
        written[f"{name}.b"] = head.bias.detach().cpu().numpy()
    np.savez(target, **written)
