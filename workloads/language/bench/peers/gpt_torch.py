#!/usr/bin/env python3
"""A GPT job in PyTorch, as fast as PyTorch documents how to do it.

Usage: gpt_torch.py TEXT|- [key=value ...]        keys and defaults: DEFAULTS below and in gpt_job.py

The same step as workloads/language/gpt.cpp: pre-layer-norm GPT, learned positions, GELU, mean cross-entropy, clipping of the
global norm, AdamW on fused kernels with decay of matrices only, warm-up and half cosine. Fresh random windows
of the first 90 % of the text (`-`: random tokens, or those of share=FILE) for every step, made inside the
measured time. precision=bf16 is torch.autocast with fp32 parameters.

Obeys the protocol of bench/peers/README.md: a JSON line when ready, then for each line `N` read from
standard input N training steps and one JSON line about them; ends at the end of input. The line
`evaluate` is answered with the mean loss over the held-out tenth of the text, in windows side by side:
    { echo 1999; echo evaluate; } | workloads/language/bench/peers/gpt_torch.py play.txt seed=1
"""
import math
import os

import gpt_job  # finds what all peers share
import peer_job
import text_job

DEFAULTS = {
    **peer_job.TORCH_DEFAULTS,  # compiled are forward and loss, and so their gradients
    "cpp_wrapper": 0,  # 1: Inductor's C++ wrapper around its kernels, instead of Python's
}
TEXT, OPTIONS = gpt_job.options(__doc__, DEFAULTS, {"mode": ("eager", "compile")})
os.environ.setdefault("OMP_NUM_THREADS", str(OPTIONS["threads"]))  # read when torch is loaded

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch._inductor import config as inductor  # noqa: E402

import peer_torch  # noqa: E402


class Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        width, bias = o["width"], bool(o["bias"])
        self.heads = o["heads"]
        self.approximate = "tanh" if o["activation"] == "gelu_tanh" else "none"
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
        return x + self.down(F.gelu(self.up(self.mlp_norm(x)), approximate=self.approximate))


class Gpt(nn.Module):
    def __init__(self, vocabulary, o):
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, o["width"])
        self.position_embedding = nn.Embedding(o["context"], o["width"])
        self.layers = nn.ModuleList(Block(o) for _ in range(o["layers"]))
        self.final_norm = nn.LayerNorm(o["width"], bias=bool(o["bias"]))
        self.head = None if o["tie_head"] else nn.Linear(o["width"], vocabulary, bias=False)
        residual = 0.02 / math.sqrt(2 * o["layers"])
        for name, parameter in self.named_parameters():
            if parameter.dim() >= 2:
                branch_end = name.endswith(("projection.weight", "down.weight"))
                nn.init.normal_(parameter, std=residual if branch_end else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def fill(self, shared):
        """Parameters by Fullbore's names; it groups a block's layers by attention and mlp."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                for layer, group in (("qkv", "attention"), ("projection", "attention"), ("up", "mlp"), ("down", "mlp")):
                    name = name.replace(f".{layer}.", f".{group}.{layer}.")
                parameter.copy_(torch.from_numpy(shared[name].copy()))

    def forward(self, tokens, targets):  # i64 [B,T] both -> mean loss
        x = self.token_embedding(tokens) + self.position_embedding.weight[:tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        head = self.token_embedding.weight if self.head is None else self.head.weight
        logits = F.linear(self.final_norm(x), head)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


class Job(peer_torch.Steps):
    def __init__(self, text, o):
        shared = peer_job.read_shared(o["share"])
        self.data = text_job.Data(text, shared, o)
        self.model = Gpt(self.data.vocabulary, o)
        if shared:
            self.model.fill(shared)
        self.model.to(o["device"])
        parameters = list(self.model.parameters())
        inductor.cpp_wrapper = bool(o["cpp_wrapper"])
        forward = torch.compile(self.model, **peer_torch.compile_settings(o)) if o["mode"] == "compile" else self.model

        def loss(inputs, targets):
            with peer_torch.autocast(o):
                return forward(inputs, targets)

        super().__init__(o, loss, parameters, peer_torch.optimiser(parameters, o), self.data.next)

    @torch.no_grad()
    def evaluate(self):
        windows = torch.from_numpy(self.data.held_out_windows()).to(self.o["device"])
        total = sum(self.model(part[:, :-1], part[:, 1:]).item() * len(part) for part in windows.split(64))
        return total / len(windows)


def main():
    peer_torch.prepare(OPTIONS)
    job = Job(TEXT, OPTIONS)
    flags = ["scaled_dot_product_attention", "fused AdamW", "foreach clipping", *peer_torch.flags(OPTIONS)]
    if OPTIONS["precision"] == "bf16":
        flags.append("autocast(bfloat16)")
    if OPTIONS["mode"] == "compile":
        flags.append(f"torch.compile(mode={OPTIONS['compile_mode']}, dynamic=False, fullgraph=True)")
        if OPTIONS["cpp_wrapper"]:
            flags.append("inductor cpp_wrapper")
    peer_job.serve(job, {"side": "torch-" + OPTIONS["mode"],
                         "versions": peer_torch.versions(OPTIONS),
                         "flags": flags, "threads": torch.get_num_threads(),
                         "parameters": sum(p.numel() for p in job.parameters)},
                   counted=OPTIONS["batch"] * OPTIONS["context"])


if __name__ == "__main__":
    main()
