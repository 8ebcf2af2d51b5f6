#!/usr/bin/env python3
"""The job of configs/gpt-shakespeare-cpu.yaml in PyTorch, as fast as PyTorch documents how to do it.

Usage: gpt_torch.py TEXT [key=value ...]        keys and defaults: DEFAULTS below

The same step as models/gpt: pre-layer-norm GPT, learned positions, exact GELU, tied head, mean
cross-entropy, clipping of the global norm, AdamW on fused kernels with decay of matrices only, warm-up
and half cosine. Fresh random windows of the first 90 % of the text for every step, made inside the
measured time. fp32 throughout.

Obeys the protocol of bench/peers/README.md: a JSON line when ready, then for each line `N` read from
standard input N training steps and one JSON line about them; ends at the end of input. The line
`evaluate` is answered with the mean loss over the held-out tenth of the text, in windows side by side:
    { echo 1999; echo evaluate; } | bench/peers/gpt_torch.py play.txt seed=1
"""
import json
import math
import os
import platform
import resource
import sys
import time

DEFAULTS = {
    "mode": "eager",  # or compile: torch.compile of forward and loss (and so of their gradients)
    "compile_mode": "default",  # torch.compile's mode: default, max-autotune, ...
    "cpp_wrapper": 0,  # 1: Inductor's C++ wrapper around its kernels, instead of Python's
    "threads": 2, "seed": 1, "batch": 12, "context": 64, "layers": 4, "heads": 4, "width": 128,
    "bias": 0, "steps": 2000, "warmup": 100, "rate": 1e-3, "minimum_rate": 1e-4,
    "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "decay": 0.1, "clip": 1.0,
}


def parse(arguments):
    options = dict(DEFAULTS)
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or key not in options:
            sys.exit(f"unknown argument '{argument}'; keys: {', '.join(options)}")
        options[key] = type(options[key])(value)
    if options["mode"] not in ("eager", "compile"):
        sys.exit(f"mode '{options['mode']}' is neither eager nor compile")
    return options


if len(sys.argv) < 2 or "=" in sys.argv[1]:
    sys.exit(__doc__)
OPTIONS = parse(sys.argv[2:])
os.environ.setdefault("OMP_NUM_THREADS", str(OPTIONS["threads"]))  # read when torch is loaded

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch._inductor import config as inductor  # noqa: E402


class Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        width, bias = o["width"], bool(o["bias"])
        self.heads = o["heads"]
        self.attention_norm = nn.LayerNorm(width, bias=bias)
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.projection = nn.Linear(width, width, bias=bias)
        self.mlp_norm = nn.LayerNorm(width, bias=bias)
        self.up = nn.Linear(width, 4 * width, bias=bias)
        self.down = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x):  # [B,T,C]
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.attention_norm(x)).split(width, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.mlp_norm(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary, o):
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, o["width"])
        self.position_embedding = nn.Embedding(o["context"], o["width"])
        self.blocks = nn.ModuleList(Block(o) for _ in range(o["layers"]))
        self.final_norm = nn.LayerNorm(o["width"], bias=bool(o["bias"]))
        residual = 0.02 / math.sqrt(2 * o["layers"])
        for name, parameter in self.named_parameters():
            if parameter.dim() >= 2:
                branch_end = name.endswith(("projection.weight", "down.weight"))
                nn.init.normal_(parameter, std=residual if branch_end else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens, targets):  # i64 [B,T] both -> mean loss
        x = self.token_embedding(tokens) + self.position_embedding.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.final_norm(x), self.token_embedding.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def read_tokens(path):
    """The text's characters as positions in its sorted alphabet: to train on, held out; the alphabet's size."""
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    ids = {character: i for i, character in enumerate(sorted(set(text)))}
    tokens = torch.tensor([ids[character] for character in text])
    part = len(tokens) * 9 // 10
    return tokens[:part], tokens[part:], len(ids)


class Job:
    def __init__(self, path, o):
        self.o = o
        self.step = 0
        self.tokens, self.held_out, vocabulary = read_tokens(path)
        self.model = Gpt(vocabulary, o)
        self.parameters = list(self.model.parameters())
        groups = [{"params": [p for p in self.parameters if p.dim() >= 2], "weight_decay": o["decay"]},
                  {"params": [p for p in self.parameters if p.dim() < 2], "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=o["rate"], betas=(o["beta1"], o["beta2"]),
                                           eps=o["epsilon"], fused=True)
        self.window = torch.arange(o["context"] + 1)
        self.loss = self.model
        if o["mode"] == "compile":
            if o["cpp_wrapper"]:
                inductor.cpp_wrapper = True
            mode = None if o["compile_mode"] == "default" else o["compile_mode"]
            self.loss = torch.compile(self.model, mode=mode, dynamic=False, fullgraph=True)

    def learning_rate(self):
        o = self.o
        if self.step < o["warmup"]:
            return o["rate"] * (self.step + 1) / (o["warmup"] + 1)
        progress = min(1.0, (self.step - o["warmup"]) / max(1, o["steps"] - o["warmup"]))
        return o["minimum_rate"] + 0.5 * (o["rate"] - o["minimum_rate"]) * (1 + math.cos(math.pi * progress))

    def train(self):
        o = self.o
        starts = torch.randint(len(self.tokens) - o["context"], (o["batch"], 1))
        windows = self.tokens[starts + self.window]
        rate = self.learning_rate()
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        loss = self.loss(windows[:, :-1], windows[:, 1:])
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, o["clip"], foreach=True)
        self.optimiser.step()
        self.step += 1
        return loss.item()

    @torch.no_grad()
    def evaluate(self):
        context = self.o["context"]
        count = (len(self.held_out) - 1) // context
        windows = self.held_out[torch.arange(count).unsqueeze(1) * context + self.window]
        total = sum(self.model(part[:, :-1], part[:, 1:]).item() * len(part) for part in windows.split(64))
        return total / count


def say(record):
    print(json.dumps(record), flush=True)


def main():
    torch.set_num_threads(OPTIONS["threads"])
    torch.set_flush_denormal(True)
    torch.manual_seed(OPTIONS["seed"])
    job = Job(sys.argv[1], OPTIONS)
    start = time.perf_counter()
    job.train()
    flags = ["scaled_dot_product_attention", "fused AdamW", "foreach clipping", "flush_denormal"]
    if OPTIONS["mode"] == "compile":
        flags.append(f"torch.compile(mode={OPTIONS['compile_mode']}, dynamic=False, fullgraph=True)")
        if OPTIONS["cpp_wrapper"]:
            flags.append("inductor cpp_wrapper")
    say({"ready": True, "side": "torch-" + OPTIONS["mode"],
         "versions": {"torch": torch.__version__, "python": platform.python_version(),
                      "cpu_capability": torch.backends.cpu.get_cpu_capability()},
         "flags": flags, "threads": torch.get_num_threads(), "precision": "fp32",
         "parameters": sum(p.numel() for p in job.parameters),
         "first_step_seconds": time.perf_counter() - start})
    tokens = OPTIONS["batch"] * OPTIONS["context"]
    for line in sys.stdin:
        if line.strip() == "evaluate":
            say({"step": job.step, "validation_loss": job.evaluate()})
            continue
        count = int(line)
        start, cpu_start = time.perf_counter(), time.process_time()
        losses, least = [], math.inf
        for _ in range(count):
            step_start = time.perf_counter()
            losses.append(job.train())
            least = min(least, time.perf_counter() - step_start)
        seconds = (time.perf_counter() - start) / count
        say({"steps": count, "step": job.step, "seconds_per_step": seconds,
             "least_seconds_per_step": least,
             "cpu_seconds_per_step": (time.process_time() - cpu_start) / count,
             "tokens_per_second": tokens / seconds, "loss": sum(losses) / count,
             "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024})


if __name__ == "__main__":
    main()
