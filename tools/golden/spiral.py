#!/usr/bin/env python3
"""Writes tests/apps/golden/spiral.json: the first ten losses of examples/spiral as PyTorch has them.

The example is run by hand, without commands, so its first weights cannot be asked for: both sides begin with those that
first_value() makes. Batches are made here anew from the same draws. In fp32 as PyTorch computes it, and in fp64, to which
the test holds Fullbore's fp32. Needs torch and numpy.
"""
import json
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from examples import Draws

STEPS, ROWS, WIDTH, BLOCKS, SEED = 10, 256, 64, 3, 7
RATE, WARMUP, DECAY, CLIP = 3e-3, 20, 0.01, 1.0


def shapes():
    made = {"input.weight": (WIDTH, 2), "input.bias": (WIDTH,)}
    for block in range(BLOCKS):
        made |= {f"blocks.{block}.norm.weight": (WIDTH,), f"blocks.{block}.norm.bias": (WIDTH,),
                 f"blocks.{block}.up.weight": (2 * WIDTH, WIDTH), f"blocks.{block}.up.bias": (2 * WIDTH,),
                 f"blocks.{block}.down.weight": (WIDTH, 2 * WIDTH), f"blocks.{block}.down.bias": (WIDTH,)}
    return made | {"final_norm.weight": (WIDTH,), "final_norm.bias": (WIDTH,), "output.weight": (2, WIDTH), "output.bias": (2,)}


def first_value(name, shape):
    """Between -1/8 and 1/8, spread by a multiplicative hash; gains of norms are 1 more."""
    index = np.arange(math.prod(shape), dtype=np.uint64)
    spread = ((index + np.uint64(1)) * np.uint64(2654435761) + np.uint64(sum(name.encode()) * 40503)) & np.uint64(0xFFFFFFFF)
    value = (spread.astype(np.float64) / 2**31 - 1) / 8 + (1 if name.endswith("norm.weight") else 0)
    return value.astype(np.float32).reshape(shape)


def batch(position):
    draws = Draws(SEED, position)
    points, labels = np.empty((ROWS, 2), np.float32), np.empty(ROWS, np.int64)
    for i in range(ROWS):
        labels[i] = draws.below(2)
        radius = draws.uniform(0.1, 1)
        angle = 3 * math.pi * radius + math.pi * labels[i]
        noise = draws.normals(2)
        points[i] = radius * math.cos(angle) + 0.02 * noise[0], radius * math.sin(angle) + 0.02 * noise[1]
    return points, labels


def loss(p, points, labels):
    def linear(name, x):
        return F.linear(x, p[name + ".weight"], p[name + ".bias"])

    def norm(name, x):
        return F.layer_norm(x, (WIDTH,), p[name + ".weight"], p[name + ".bias"], 1e-5)

    x = linear("input", points)
    for block in range(BLOCKS):
        scope = f"blocks.{block}."
        x = x + linear(scope + "down", F.gelu(linear(scope + "up", norm(scope + "norm", x))))
    return F.cross_entropy(linear("output", norm("final_norm", x)), labels)


def losses(dtype):
    p = {name: torch.tensor(first_value(name, shape), dtype=dtype).requires_grad_() for name, shape in shapes().items()}
    groups = [{"params": [x for x in p.values() if x.dim() >= 2], "weight_decay": DECAY},
              {"params": [x for x in p.values() if x.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-8)
    made = []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = RATE * (step + 1) / (WARMUP + 1)
        points, labels = batch(step)
        value = loss(p, torch.tensor(points, dtype=dtype), torch.tensor(labels))
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        torch.nn.utils.clip_grad_norm_(p.values(), CLIP)
        optimizer.step()
        made.append(value.item())
    return made


def main():
    made = {"fp64": losses(torch.float64), "fp32": losses(torch.float32)}
    path = pathlib.Path(__file__).parents[2] / "tests/apps/golden/spiral.json"
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    difference = max(abs(a - b) / b for a, b in zip(made["fp32"], made["fp64"]))
    print(f"{made['fp64'][0]:.6f} to {made['fp64'][-1]:.6f}; PyTorch's fp32 differs by {difference:.1e} of the loss at most")


if __name__ == "__main__":
    main()
