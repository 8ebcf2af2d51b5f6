#!/usr/bin/env python3
"""A GPT job in JAX: the whole step, optimiser included, is one jitted function whose buffers are donated.

Usage: gpt_jax.py TEXT|- [key=value ...]        keys and defaults: DEFAULTS in gpt_job.py

The same step as workloads/language/gpt.cpp and gpt_torch.py. precision=bf16 does the products and activations in bf16; norms,
softmax, loss, parameters and optimiser are in fp32. Obeys the protocol of bench/peers/README.md.
"""
import functools
import math
import os
import platform

import gpt_job  # finds what all peers share
import peer_job
import text_job

TEXT, OPTIONS = gpt_job.options(__doc__)
# XLA takes a thread for each processor it may use.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:OPTIONS["threads"]])
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jaxlib  # noqa: E402
import numpy  # noqa: E402

import peer_jax  # noqa: E402


def initial_parameters(vocabulary, o):
    """By Fullbore's names; matrices [O,I]."""
    draws = numpy.random.default_rng(o["seed"])
    width, residual = o["width"], 0.02 / math.sqrt(2 * o["layers"])
    parameters = {}

    def matrix(name, rows, columns, deviation=0.02):
        parameters[name + ".weight"] = draws.normal(0, deviation, (rows, columns)).astype(numpy.float32)

    def linear(name, rows, columns, deviation=0.02):
        matrix(name, rows, columns, deviation)
        if o["bias"]:
            parameters[name + ".bias"] = numpy.zeros(rows, numpy.float32)

    def norm(name):
        parameters[name + ".weight"] = numpy.ones(width, numpy.float32)
        if o["bias"]:
            parameters[name + ".bias"] = numpy.zeros(width, numpy.float32)

    matrix("token_embedding", vocabulary, width)
    matrix("position_embedding", o["context"], width)
    for i in range(o["layers"]):
        norm(f"layers.{i}.attention_norm")
        linear(f"layers.{i}.attention.qkv", 3 * width, width)
        linear(f"layers.{i}.attention.projection", width, width, residual)
        norm(f"layers.{i}.mlp_norm")
        linear(f"layers.{i}.mlp.up", 4 * width, width)
        linear(f"layers.{i}.mlp.down", width, 4 * width, residual)
    norm("final_norm")
    if not o["tie_head"]:
        matrix("head", vocabulary, width)
    return parameters


def model_loss(parameters, inputs, targets, o):
    """i32 [B,T] both -> mean loss."""
    low = jnp.bfloat16 if o["precision"] == "bf16" else jnp.float32
    batch, length = inputs.shape
    heads, width = o["heads"], o["width"]

    def linear(name, x):
        y = x @ parameters[name + ".weight"].astype(low).T
        return y + parameters[name + ".bias"].astype(low) if name + ".bias" in parameters else y

    def norm(name, x):
        x = x.astype(jnp.float32)
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        y = (x - mean) * jax.lax.rsqrt(variance + 1e-5) * parameters[name + ".weight"]
        return (y + parameters[name + ".bias"] if name + ".bias" in parameters else y).astype(low)

    x = parameters["token_embedding.weight"][inputs] + parameters["position_embedding.weight"][:length]
    for i in range(o["layers"]):
        qkv = linear(f"layers.{i}.attention.qkv", norm(f"layers.{i}.attention_norm", x))
        q, k, v = (part.reshape(batch, length, heads, width // heads) for part in jnp.split(qkv, 3, -1))
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(batch, length, width)
        x = x + linear(f"layers.{i}.attention.projection", mixed)
        hidden = jax.nn.gelu(linear(f"layers.{i}.mlp.up", norm(f"layers.{i}.mlp_norm", x)),
                             approximate=o["activation"] == "gelu_tanh")
        x = x + linear(f"layers.{i}.mlp.down", hidden)
    head = parameters["token_embedding.weight" if o["tie_head"] else "head.weight"].astype(low)
    logits = (norm("final_norm", x) @ head.T).astype(jnp.float32)
    chosen = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
    return (jax.nn.logsumexp(logits, -1) - chosen).mean()


def train_step(o, parameters, first, second, count, rate, inputs, targets):
    """One step. `count` from 1 on."""
    loss, gradients = jax.value_and_grad(model_loss)(parameters, inputs, targets, o)
    moved = peer_jax.adamw(parameters, gradients, first, second, count, rate, o, lambda gradient: gradient.ndim >= 2)
    return (*moved, loss)


class Job:
    def __init__(self, text, o):
        self.o = o
        self.step = 0
        shared = peer_job.read_shared(o["share"])
        self.data = text_job.Data(text, shared, o)
        names = initial_parameters(self.data.vocabulary, o)
        self.parameters = {name: jnp.array(shared.get(name, value)) for name, value in names.items()}
        self.first = {name: jnp.zeros_like(value) for name, value in self.parameters.items()}
        self.second = {name: jnp.zeros_like(value) for name, value in self.parameters.items()}
        self.train_step = jax.jit(functools.partial(train_step, o), donate_argnums=(0, 1, 2))
        self.loss = jax.jit(functools.partial(model_loss, o=o))

    def train(self):
        inputs, targets = (part.astype(numpy.int32) for part in self.data.next())
        rate = peer_job.learning_rate(self.o, self.step)
        self.step += 1
        self.parameters, self.first, self.second, loss = self.train_step(
            self.parameters, self.first, self.second, numpy.float32(self.step), numpy.float32(rate), inputs, targets)
        return float(loss)

    def evaluate(self):
        windows = self.data.held_out_windows().astype(numpy.int32)
        whole = len(windows) // 64 * 64  # one shape, one compilation
        parts = numpy.split(windows[:whole], max(1, whole // 64)) + ([windows[whole:]] if whole < len(windows) else [])
        total = sum(float(self.loss(self.parameters, part[:, :-1], part[:, 1:])) * len(part)
                    for part in parts if len(part))
        return total / len(windows)


def main():
    job = Job(TEXT, OPTIONS)
    flags = ["jit of the whole step", "donated buffers", "dot_product_attention"]
    if OPTIONS["precision"] == "bf16":
        flags.append("bf16 products and activations")
    peer_job.serve(job, {"side": "jax",
                         "versions": {"jax": jax.__version__, "jaxlib": jaxlib.__version__,
                                      "python": platform.python_version()},
                         "flags": flags, "threads": len(os.sched_getaffinity(0)),
                         "parameters": sum(p.size for p in job.parameters.values())},
                   counted=OPTIONS["batch"] * OPTIONS["context"])


if __name__ == "__main__":
    main()
