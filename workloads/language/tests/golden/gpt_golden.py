#!/usr/bin/env python3
"""Writes workloads/language/tests/golden/gpt.json: ten training steps of workloads/language/gpt in PyTorch.

Needs torch and numpy; neither the build nor the tests do. Weights and tokens come from SplitMix64,
so that both sides make them from a formula (see workloads/language/tests/gpt_test.cpp). Usage:

    python3 workloads/language/tests/golden/gpt_golden.py > workloads/language/tests/golden/gpt.json
"""
import json
import math
import sys

import numpy as np
import torch
import torch.nn.functional as F

LAYERS, HEADS, WIDTH, CONTEXT, VOCABULARY, BATCH, STEPS = 4, 4, 128, 64, 65, 12, 10
RATE, MINIMUM_RATE, WARMUP, TOTAL = 1e-3, 1e-4, 4, 20
BETA1, BETA2, EPSILON, DECAY, CLIP = 0.9, 0.99, 1e-8, 0.1, 1.0
MASK = (1 << 64) - 1


def splitmix(state):
    """Output of SplitMix64 for each 64-bit state. Steele, Lea, Flood 2014."""
    with np.errstate(over="ignore"):
        z = state + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def weights(ordinal, shape, deviation, mean=0.0):
    """Uniform values with the given standard deviation; tensor number `ordinal`."""
    index = np.arange(math.prod(shape), dtype=np.uint64) + np.uint64(ordinal << 32)
    uniform = (splitmix(index) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    values = mean + deviation * math.sqrt(3.0) * (2 * uniform - 1)
    return torch.tensor(values.reshape(shape), dtype=torch.float32)


def batch(step):
    """Token sequences x' = (5 x + row) mod V from a random start: learnable in a few steps."""
    state = np.arange(BATCH, dtype=np.uint64) + np.uint64((1000 + step) << 32)
    tokens = [splitmix(state) % np.uint64(VOCABULARY)]
    rows = np.arange(BATCH, dtype=np.uint64)
    for _ in range(CONTEXT):
        tokens.append((tokens[-1] * np.uint64(5) + rows) % np.uint64(VOCABULARY))
    tokens = torch.tensor(np.stack(tokens, axis=1).astype(np.int64))
    return tokens[:, :-1], tokens[:, 1:]


def parameters(bias, modern):
    """Name -> tensor in the order in which workloads/language/gpt declares them. `modern`: RMS norms, rotary positions."""
    shapes = [("token_embedding.weight", (VOCABULARY, WIDTH), 0.02, 0)]
    if not modern:
        shapes.append(("position_embedding.weight", (CONTEXT, WIDTH), 0.02, 0))

    def norm(name):
        shapes.append((name + ".weight", (WIDTH,), 0.1, 1))
        if bias and not modern:
            shapes.append((name + ".bias", (WIDTH,), 0.1, 0))

    def linear(name, outputs, inputs):
        shapes.append((name + ".weight", (outputs, inputs), 0.05, 0))
        if bias:
            shapes.append((name + ".bias", (outputs,), 0.02, 0))

    for layer in range(LAYERS):
        prefix = f"layers.{layer}."
        norm(prefix + "attention_norm")
        if modern:
            for part in ("query", "key", "value"):
                linear(prefix + "attention." + part, WIDTH, WIDTH)
        else:
            linear(prefix + "attention.qkv", 3 * WIDTH, WIDTH)
        linear(prefix + "attention.projection", WIDTH, WIDTH)
        norm(prefix + "mlp_norm")
        linear(prefix + "mlp.up", 4 * WIDTH, WIDTH)
        linear(prefix + "mlp.down", WIDTH, 4 * WIDTH)
    norm("final_norm")
    return {name: weights(i, shape, deviation, mean)
            for i, (name, shape, deviation, mean) in enumerate(shapes)}


def rotate(x):
    """Su et al. 2021, equation 34, with the pairs (i, i + D / 2). x [B,H,T,D]."""
    half = x.shape[-1] // 2
    frequency = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(CONTEXT, dtype=torch.float64)[:, None] * frequency
    cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine), dim=-1)


def forward(p, tokens, targets, modern):
    def norm(name, x):
        if modern:
            return F.rms_norm(x, (WIDTH,), p[name + ".weight"], 1e-5)
        return F.layer_norm(x, (WIDTH,), p[name + ".weight"], p.get(name + ".bias"), 1e-5)

    def linear(name, x):
        return F.linear(x, p[name + ".weight"], p.get(name + ".bias"))

    x = p["token_embedding.weight"][tokens]
    if not modern:
        x = x + p["position_embedding.weight"][:CONTEXT]
    for layer in range(LAYERS):
        prefix = f"layers.{layer}."
        h = norm(prefix + "attention_norm", x)
        parts = ([linear(prefix + "attention." + part, h) for part in ("query", "key", "value")]
                 if modern else linear(prefix + "attention.qkv", h).split(WIDTH, dim=2))
        q, k, v = (part.view(BATCH, CONTEXT, HEADS, WIDTH // HEADS).transpose(1, 2)
                   for part in parts)
        if modern:
            q, k = rotate(q), rotate(k)
        scores = q @ k.transpose(-2, -1) / math.sqrt(WIDTH // HEADS)
        visible = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).tril()
        mixed = scores.masked_fill(~visible, -math.inf).softmax(-1) @ v
        mixed = mixed.transpose(1, 2).reshape(BATCH, CONTEXT, WIDTH)
        x = x + linear(prefix + "attention.projection", mixed)
        x = x + linear(prefix + "mlp.down", F.gelu(linear(prefix + "mlp.up",
                                                         norm(prefix + "mlp_norm", x))))
    logits = norm("final_norm", x) @ p["token_embedding.weight"].T
    return F.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1))


def learning_rate(step):
    if step < WARMUP:
        return RATE * (step + 1) / (WARMUP + 1)
    progress = min(1.0, (step - WARMUP) / (TOTAL - WARMUP))
    return MINIMUM_RATE + 0.5 * (RATE - MINIMUM_RATE) * (1 + math.cos(math.pi * progress))


def train(bias, dtype, modern=False):
    p = {name: torch.nn.Parameter(value.to(dtype))
         for name, value in parameters(bias, modern).items()}
    groups = [{"params": [v for v in p.values() if v.dim() >= 2], "weight_decay": DECAY},
              {"params": [v for v in p.values() if v.dim() < 2], "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=RATE, betas=(BETA1, BETA2), eps=EPSILON)
    losses, norms = [], []
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step)
        loss = forward(p, *batch(step), modern)
        optimiser.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(p.values(), CLIP).item())
        optimiser.step()
        losses.append(loss.item())
    return {"losses": losses, "gradient_norms": norms}


def main():
    torch.manual_seed(0)
    result = {"torch": torch.__version__.split("+")[0]}
    for bias in (True, False):
        key = "bias" if bias else "no_bias"
        result[key] = {"f32": train(bias, torch.float32), "f64": train(bias, torch.float64)}
    result["rms_rotary"] = {"f32": train(True, torch.float32, True),
                            "f64": train(True, torch.float64, True)}
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
