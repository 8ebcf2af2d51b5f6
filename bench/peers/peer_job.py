"""What all peers' scripts share: their options, shared tensors, schedule and the protocol of bench/peers/README.md."""
import json
import math
import os
import resource
import struct
import sys
import time

import numpy

# Of jobs in PyTorch: where they run, and how it is told to be fast there.
TORCH_DEFAULTS = {
    "device": "cpu",  # or cuda
    "mode": "eager",  # or compile: torch.compile
    "compile_mode": "default",  # torch.compile's mode: default, reduce-overhead, max-autotune-no-cudagraphs, ...
    "capture": 0,  # 1: on a card, whole steps with their update as one CUDA graph
}
NUMPY_TYPES = {"F32": numpy.float32, "I32": numpy.int32, "BOOL": numpy.bool_}


def parse(arguments, defaults, choices, may_drop=False):
    """`key=value` words over the defaults, in the types of these; ends the program where one is wrong. `may_drop`: has
    the job dropout?"""
    result = dict(defaults)
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or key not in defaults:
            sys.exit(f"unknown argument '{argument}'; keys: {', '.join(defaults)}")
        result[key] = type(defaults[key])(value)
    for key, allowed in choices.items():
        if result[key] not in allowed:
            sys.exit(f"{key} '{result[key]}' is none of {', '.join(allowed)}")
    if result["dropout"] != 0 and not may_drop:
        sys.exit("dropout must be 0: this job has none")
    return result


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


def learning_rate(o, step):
    """Linear warm-up, then half a cosine."""
    if step < o["warmup"]:
        return o["rate"] * (step + 1) / (o["warmup"] + 1)
    progress = min(1.0, (step - o["warmup"]) / max(1, o["steps"] - o["warmup"]))
    return o["minimum_rate"] + 0.5 * (o["rate"] - o["minimum_rate"]) * (1 + math.cos(math.pi * progress))


def say(record):
    print(json.dumps(record), flush=True)


def run_one_by_one(count, train):
    """Losses of so many steps, and the seconds of the shortest."""
    losses, least = [], math.inf
    for _ in range(count):
        start = time.perf_counter()
        losses.append(train())
        least = min(least, time.perf_counter() - start)
    return losses, least


def run(count, job, counted):
    """`counted`: tokens, or whatever the job counts, of a step."""
    start, cpu_start = time.perf_counter(), time.process_time()
    losses, least = job.run(count) if hasattr(job, "run") else run_one_by_one(count, job.train)
    seconds = (time.perf_counter() - start) / count
    return {"steps": count, "seconds_per_step": seconds, "least_seconds_per_step": least,
            "cpu_seconds_per_step": (time.process_time() - cpu_start) / count,
            "tokens_per_second": counted / seconds, "loss": sum(losses) / count,
            "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            **(job.memory() if hasattr(job, "memory") else {})}


def serve(job, ready, counted):
    """Makes the first step, says that the side is ready, and does what standard input asks for.
    `job` has o, step, train() -> loss and, where that is asked for, evaluate() -> loss. It may have run(N) -> (losses, least
    seconds), memory() and notes(), each a dictionary, of every block and of the start. `counted`: see run()."""
    start = time.perf_counter()
    first_loss = run(1, job, counted)["loss"]
    started = os.environ.get("BENCH_STARTED")  # of the process, by the clock of time.monotonic()
    say({"ready": True, **ready, "precision": job.o["precision"], "dropout": job.o["dropout"], "first_loss": first_loss,
         "first_step_seconds": time.perf_counter() - start,
         "start_seconds": time.monotonic() - float(started) if started else None,
         **(job.notes() if hasattr(job, "notes") else {})})
    for line in sys.stdin:
        if line.strip() == "evaluate":
            say({"step": job.step, "validation_loss": job.evaluate()})
            continue
        say({**run(int(line), job, counted), "step": job.step})
