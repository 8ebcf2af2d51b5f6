#!/usr/bin/env python3
"""Writes tests/apps/golden/examples.json: the first ten losses of the programs of examples/ as PyTorch has them.

usage: tools/golden/examples.py BIN_FOLDER      the one of the build: it has example_cnn and the others

Both sides begin with the weights that the example itself begins with, which `export` writes by PyTorch's names and layouts,
and see the same batches, which are made here anew from the same draws. Ten steps of AdamW at a constant rate; then the loss
over the held-out batches, which for batch normalisation is that by running statistics. In fp32 as PyTorch computes it, and in
fp64: the tests hold Fullbore's fp32 to the latter. Needs torch and numpy.
"""
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

STEPS = 10
SETTINGS = ["optim.schedule=constant", "optim.warmup_steps=0", f"train.steps={STEPS}"]
RATE, DECAY, CLIP = 0.003, 0.1, 1.0
SEED = 1
HELD_OUT = SEED ^ 0x9E3779B97F4A7C15
M32 = np.uint64(0xFFFFFFFF)


class Draws:
    """PhiloxStream of fullbore/base/philox.h, many draws at once."""

    def __init__(self, key, stream):
        self.key, self.stream, self.position = key, stream, 0

    def bits(self, count):
        counter = np.arange(self.position, self.position + count, dtype=np.uint64)
        self.position += count
        words = [counter & M32, counter >> np.uint64(32), np.full(count, self.stream & 0xFFFFFFFF, np.uint64),
                 np.full(count, self.stream >> 32, np.uint64)]
        low, high = self.key & 0xFFFFFFFF, self.key >> 32
        for _ in range(10):
            first, second = np.uint64(0xD2511F53) * words[0], np.uint64(0xCD9E8D57) * words[2]
            words = [(second >> np.uint64(32)) ^ words[1] ^ np.uint64(low), second & M32,
                     (first >> np.uint64(32)) ^ words[3] ^ np.uint64(high), first & M32]
            low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
        return words[0] | (words[1] << np.uint64(32))

    @staticmethod
    def unit(bits):
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def uniform(self, low, high):
        return low + (high - low) * float(self.unit(self.bits(1))[0])

    def below(self, n):
        return (int(self.bits(1)[0]) * n) >> 64

    def normals(self, count):
        bits = self.bits(2 * count)
        return np.sqrt(-2 * np.log(1 - self.unit(bits[0::2]))) * np.cos(2 * math.pi * self.unit(bits[1::2]))


def linear(p, name, x):
    return F.linear(x, p[name + ".weight"], p[name + ".bias"])


class Cnn:
    name = "cnn"
    state = {f"blocks.{i}.norm.running_{what}": ((16 << i,), first) for i in range(2) for what, first in
             (("mean", 0.0), ("var", 1.0))}

    @staticmethod
    def batch(draws, _):
        images, labels = np.empty((32, 1, 16, 16)), np.empty(32, np.int64)
        row, column = np.mgrid[0:16, 0:16]
        for i in range(32):
            labels[i] = draws.below(4)
            phase = draws.uniform(0, 2 * math.pi)
            angle = math.pi * labels[i] / 4
            along = math.cos(angle) * column + math.sin(angle) * row
            images[i, 0] = np.sin(0.8 * along + phase) + draws.normals(256).reshape(16, 16)
        return {"images": np.float32(images), "labels": labels}

    @staticmethod
    def loss(p, batch, training):
        x = batch["images"]
        for i in range(2):
            block = f"blocks.{i}."
            x = F.conv2d(x, p[block + "conv.weight"], padding=1)
            x = F.batch_norm(x, p[block + "norm.running_mean"], p[block + "norm.running_var"], p[block + "norm.weight"],
                             p[block + "norm.bias"], training)
            x = F.max_pool2d(F.relu(x), 2)
        return F.cross_entropy(linear(p, "classes", x.mean((2, 3))), batch["labels"]), 1


class GraphNetwork:
    name = "graph_network"
    state = {}

    @staticmethod
    def batch(draws, position):
        most = (256, 128, 64)[position % 3]
        count = most - draws.below(most // 4 + 1)
        particles, forces = np.zeros((most, 3), np.float32), np.zeros((most, 2), np.float32)
        particles[:count] = -1 + 2 * draws.unit(draws.bits(3 * count)).reshape(count, 3)
        senders, receivers = np.full(3 * most, most), np.full(3 * most, most)
        for edge in range(3 * count):
            to, sender = edge // 3, draws.below(count)
            senders[edge], receivers[edge] = sender, to
            across, up = particles[to, :2] - particles[sender, :2]
            push = particles[to, 2] * particles[sender, 2] / (np.float32(0.25) + across * across + up * up)
            forces[to] += push * np.array([across, up], np.float32)
        return {"particles": particles, "senders": senders, "receivers": receivers, "forces": forces,
                "present": np.float32(np.arange(most) < count)}

    @staticmethod
    def loss(p, batch, _):
        particles, receivers = batch["particles"], batch["receivers"]
        count = len(particles)
        h = torch.tanh(linear(p, "input", particles))
        for i in range(2):
            round_ = f"rounds.{i}."
            padded = F.pad(h, (0, 0, 0, 1))  # the row that padding edges read and write
            ends = torch.cat([padded[batch["senders"]], padded[receivers]], 1)
            message = linear(p, round_ + "second", F.gelu(linear(p, round_ + "first", ends)))
            received = torch.zeros_like(padded).index_add(0, receivers, message)[:count]
            h = F.layer_norm(h + linear(p, round_ + "update", received), (64,), p[round_ + "norm.weight"],
                             p[round_ + "norm.bias"])
        squares = (linear(p, "force", h) - batch["forces"]).square().mean(1)
        weight = batch["present"].sum()
        return (squares * batch["present"]).sum() / weight, weight


class AdaptiveGru:
    name = "adaptive_gru"
    state = {}
    margin = None  # of the decisions to halt, where it is asked for: rounding must not take another one

    @staticmethod
    def batch(draws, _):
        bits = draws.bits(64 * 6).reshape(64, 6) >> np.uint64(63)
        return {"bits": np.float32(bits) * 2 - 1, "odd": bits.sum(1).astype(np.int64) % 2}

    @classmethod
    def loss(cls, p, batch, _):
        bits = batch["bits"]
        memory = bits.new_zeros(64, 64)
        mean, left, looks = torch.zeros_like(memory), bits.new_ones(64, 1), bits.new_zeros(64, 1)
        weights = [p["cell." + name] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        for _ in range(8):
            memory = torch.gru_cell(bits, memory, *weights)
            halts = torch.sigmoid(linear(p, "halt", memory))
            running, last = left > 0, left - halts < 0.01
            if cls.margin is not None:
                cls.margin = min(cls.margin, ((left - halts - 0.01).abs() + ~running).min().item())
            share = torch.where(last, left, halts)
            mean, looks = mean + share * memory, looks + running + last * left
            left = left - share
            if left.max() <= 0:
                break
        return F.cross_entropy(linear(p, "answer", mean), batch["odd"]) + 0.01 * looks.mean(), 1


class Autoencoder:
    name = "autoencoder"
    state = {}
    settings = ["model.given_noise=true"]

    @staticmethod
    def batch(draws, _):
        y, x = np.mgrid[0:8, 0:8]
        images = np.empty((64, 64))
        for image in images:
            across, down, width = draws.uniform(1, 6), draws.uniform(1, 6), draws.uniform(1, 3)
            image[:] = np.exp(-((x - across) ** 2 + (y - down) ** 2) / (width * width)).reshape(64)
        return {"images": np.float32(images), "noise": np.float32(draws.normals(64 * 4).reshape(64, 4))}

    @staticmethod
    def loss(p, batch, _):
        images = batch["images"]
        seen = F.gelu(linear(p, "encoder.hidden", images))
        mean, log_variance = linear(p, "encoder.mean", seen), linear(p, "encoder.log_variance", seen)
        code = mean + torch.exp(0.5 * log_variance) * batch["noise"]
        logits = linear(p, "decoder.pixels", F.gelu(linear(p, "decoder.hidden", code)))
        reconstruction = F.binary_cross_entropy_with_logits(logits, images, reduction="none").sum(1).mean()
        divergence = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum(1).mean()
        return reconstruction + divergence, 1


EXAMPLES = [Cnn, GraphNetwork, AdaptiveGru, Autoencoder]


def read_weights(path):
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    weights = {}
    for name, tensor in header.items():
        begin, end = (8 + length + offset for offset in tensor["data_offsets"])
        weights[name] = np.frombuffer(data[begin:end], np.float32).reshape(tensor["shape"])
    return weights


def first_weights(example, binaries):
    """What the example begins with: its checkpoint of step 0."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(binaries).resolve() / ("example_" + example.name)
        run = [program, "train", "run.dir=run", "train.steps=1", "train.eval_interval=0"]
        subprocess.run(run, cwd=folder, check=True, capture_output=True)
        subprocess.run([program, "export", "run/checkpoints/step-00000000", "-o", "weights"], cwd=folder, check=True,
                       capture_output=True)
        return read_weights(pathlib.Path(folder) / "weights")


class Training:
    """An example's training step in PyTorch."""

    def __init__(self, example, weights, dtype, compiled=False):
        self.example, self.dtype = example, dtype
        self.parameters = {name: torch.tensor(value, dtype=dtype).requires_grad_()
                           for name, value in weights.items() if name not in example.state}
        self.state = {name: torch.full(shape, first, dtype=dtype) for name, (shape, first) in example.state.items()}
        groups = [{"params": [p for p in self.parameters.values() if p.dim() >= 2], "weight_decay": DECAY},
                  {"params": [p for p in self.parameters.values() if p.dim() < 2], "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.99), eps=1e-8, foreach=True)
        self.loss = torch.compile(example.loss, dynamic=False) if compiled else example.loss

    def tensors(self, position, key=SEED):
        batch = self.example.batch(Draws(key, position), position)
        return {name: torch.from_numpy(value).to(self.dtype if value.dtype == np.float32 else torch.int64)
                for name, value in batch.items()}

    def step(self, batch):
        loss, _ = self.loss({**self.parameters, **self.state}, batch, True)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), CLIP, foreach=True)
        self.optimizer.step()
        return loss

    @torch.no_grad()
    def evaluate(self, batches):
        terms = [self.example.loss({**self.parameters, **self.state}, self.tensors(i, HELD_OUT), False)
                 for i in range(batches)]
        return sum(float(loss) * float(weight) for loss, weight in terms) / sum(float(weight) for _, weight in terms)


def golden(example, binaries):
    weights = first_weights(example, binaries)
    made = {"name": example.name, "settings": SETTINGS + getattr(example, "settings", [])}
    for dtype, word in ((torch.float64, "fp64"), (torch.float32, "fp32")):
        training = Training(example, weights, dtype)
        made[word] = [training.step(training.tensors(step)).item() for step in range(STEPS)]
        made["held_out_" + word] = training.evaluate(8)
    return made


def main():
    AdaptiveGru.margin = math.inf
    made = [golden(example, sys.argv[1]) for example in EXAMPLES]
    if AdaptiveGru.margin < 1e-5:
        sys.exit(f"a decision to halt is within {AdaptiveGru.margin:.1e} of another: choose other data")
    path = pathlib.Path(__file__).parents[2] / "tests/apps/golden/examples.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text("[\n" + ",\n".join(json.dumps(each) for each in made) + "\n]\n", encoding="utf-8")
    for each in made:
        difference = max(abs(a - b) / b for a, b in zip(each["fp32"], each["fp64"]))
        print(f"{each['name']}: {each['fp64'][0]:.6f} to {each['fp64'][-1]:.6f}, held out {each['held_out_fp64']:.6f}; "
              f"PyTorch's fp32 differs by {difference:.1e} of the loss at most")


if __name__ == "__main__":
    main()
