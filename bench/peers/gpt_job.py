"""What the peers' scripts share: their options, their data, and the protocol of bench/peers/README.md."""
import json
import math
import os
import resource
import struct
import sys
import time

import numpy

DEFAULTS = {
    "threads": 2, "seed": 1, "precision": "fp32",  # or bf16: products in bf16, parameters and optimiser in fp32
    "batch": 12, "context": 64, "layers": 4, "heads": 4, "width": 128, "bias": 0, "tie_head": 1,
    "activation": "gelu", "vocabulary": 0, "dropout": 0.0,
    "steps": 2000, "warmup": 100, "rate": 1e-3, "minimum_rate": 1e-4,
    "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8, "decay": 0.1, "clip": 1.0,
    "share": "",  # safetensors of initial parameters, first batch and tokens, by bench_gpt_step --share
}
CHOICES = {"precision": ("fp32", "bf16"), "activation": ("gelu", "gelu_tanh")}
NUMPY_TYPES = {"F32": numpy.float32, "I32": numpy.int32}


def options(document, more_defaults=None, more_choices=None):
    """(TEXT or "-", options) of the command line; ends the program with the document where it is wrong."""
    defaults = {**DEFAULTS, **(more_defaults or {})}
    if len(sys.argv) < 2 or "=" in sys.argv[1]:
        sys.exit(document)
    result = dict(defaults)
    for argument in sys.argv[2:]:
        key, equals, value = argument.partition("=")
        if not equals or key not in defaults:
            sys.exit(f"unknown argument '{argument}'; keys: {', '.join(defaults)}")
        result[key] = type(defaults[key])(value)
    for key, allowed in {**CHOICES, **(more_choices or {})}.items():
        if result[key] not in allowed:
            sys.exit(f"{key} '{result[key]}' is none of {', '.join(allowed)}")
    if result["dropout"] != 0:
        sys.exit("dropout must be 0: engines that draw other masks have no losses to compare")
    return sys.argv[1], result


def read_shared(path):
    """Tensors of a safetensors file by name; {} without a path."""
    if not path:
        return {}
    with open(path, "rb") as file:
        data = file.read()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = numpy.frombuffer(data[begin:end], NUMPY_TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


class Data:
    """Windows to train on: of the shared tokens, of a text by its characters, or of random tokens."""

    def __init__(self, text, shared, o):
        self.context, self.batch = o["context"], o["batch"]
        self.draws = numpy.random.default_rng(o["seed"])
        self.tokens = self.held_out = None
        self.vocabulary = o["vocabulary"]
        if "token_embedding.weight" in shared:
            self.vocabulary = len(shared["token_embedding.weight"])
        self.kinds = self.vocabulary
        if "tokens" in shared:
            self.tokens = shared["tokens"].astype(numpy.int64)
        elif text != "-":
            self.read_text(text)
        elif self.vocabulary == 0:
            sys.exit("without a text the vocabulary must be given")
        # The first batch is everybody's, so that the losses of the first steps must agree.
        self.first = (shared["inputs"].astype(numpy.int64), shared["targets"].astype(numpy.int64)) \
            if "inputs" in shared else None

    def read_text(self, path):
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        ids = {character: i for i, character in enumerate(sorted(set(text)))}
        tokens = numpy.array([ids[character] for character in text])
        part = len(tokens) * 9 // 10
        self.tokens, self.held_out = tokens[:part], tokens[part:]
        self.vocabulary = max(self.vocabulary, len(ids))

    def next(self):
        """i64 [B,T] inputs and targets."""
        if self.first is not None:
            first, self.first = self.first, None
            return first
        if self.tokens is None:
            windows = self.draws.integers(self.kinds, size=(self.batch, self.context + 1))
        else:
            starts = self.draws.integers(len(self.tokens) - self.context, size=(self.batch, 1))
            windows = self.tokens[starts + numpy.arange(self.context + 1)]
        return windows[:, :-1], windows[:, 1:]

    def held_out_windows(self):
        """i64 [N,T+1], side by side."""
        if self.held_out is None:
            sys.exit("evaluate needs a text")
        count = (len(self.held_out) - 1) // self.context
        return self.held_out[numpy.arange(count)[:, None] * self.context + numpy.arange(self.context + 1)]


def learning_rate(o, step):
    """Linear warm-up, then half a cosine."""
    if step < o["warmup"]:
        return o["rate"] * (step + 1) / (o["warmup"] + 1)
    progress = min(1.0, (step - o["warmup"]) / max(1, o["steps"] - o["warmup"]))
    return o["minimum_rate"] + 0.5 * (o["rate"] - o["minimum_rate"]) * (1 + math.cos(math.pi * progress))


def say(record):
    print(json.dumps(record), flush=True)


def run(count, train, tokens):
    start, cpu_start = time.perf_counter(), time.process_time()
    losses, least = [], math.inf
    for _ in range(count):
        step_start = time.perf_counter()
        losses.append(train())
        least = min(least, time.perf_counter() - step_start)
    seconds = (time.perf_counter() - start) / count
    return {"steps": count, "seconds_per_step": seconds, "least_seconds_per_step": least,
            "cpu_seconds_per_step": (time.process_time() - cpu_start) / count,
            "tokens_per_second": tokens / seconds, "loss": sum(losses) / count,
            "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def serve(job, ready):
    """Makes the first step, says that the side is ready, and does what standard input asks for.
    `job` has o, step, train() -> loss and evaluate() -> loss."""
    start = time.perf_counter()
    first_loss = job.train()
    started = os.environ.get("BENCH_STARTED")  # of the process, by the clock of time.monotonic()
    say({"ready": True, **ready, "precision": job.o["precision"], "first_loss": first_loss,
         "first_step_seconds": time.perf_counter() - start,
         "start_seconds": time.monotonic() - float(started) if started else None})
    for line in sys.stdin:
        if line.strip() == "evaluate":
            say({"step": job.step, "validation_loss": job.evaluate()})
            continue
        record = run(int(line), job.train, job.o["batch"] * job.o["context"])
        say({**record, "step": job.step})
