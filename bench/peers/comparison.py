"""How a job is run by Fullbore and its peers in turns: what the scripts compare_* of workloads share."""
import argparse
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import environment
import record
from sides import Side, Unavailable, await_silence

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Relative differences of the first losses that rounding explains: sums of products of fp32, and of bf16, whose
# numbers have 8 bits.
TOLERANCE = {"fp32": 1e-4, "bf16": 1e-2}
DROPOUT_TOLERANCE = 0.03  # masks are other ones on every side
# A side whose second step takes longer than so many seconds is warm, and is not asked for losses of further steps.
SLOW_STEP = 8
# How PyTorch is fastest on a card, the best first: each that cannot run gives way to the next.
BEST_ON_CARD = (["mode=compile", "capture=1"], ["mode=compile", "compile_mode=reduce-overhead"], ["mode=compile"],
                ["mode=eager", "capture=1"])
# On a card a side is begun when so many steps more are made: what is captured is captured then.
STEPS_OF_PROOF = 5
# Where time is limited, seconds of it that are left to the last of a peer's commands.
SECONDS_OF_THE_LAST = 20
# What keeps each engine to a level of instructions, as their documentation has it: PyTorch's own kernels and those that
# torch.compile makes, oneDNN, MKL, and XLA. The levels are those of engine.processor.
PROCESSORS = {
    "x86-64-v2": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41",
                  "MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
             "MKL_ENABLE_INSTRUCTIONS": "AVX2", "XLA_FLAGS": "--xla_cpu_max_isa=AVX2"},
    "avx512": {"ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
               "MKL_ENABLE_INSTRUCTIONS": "AVX512", "XLA_FLAGS": "--xla_cpu_max_isa=AVX512"},
}


@dataclasses.dataclass(frozen=True)
class Job:
    """A kind of job that can be compared."""
    what: str  # "name-step"
    folder: pathlib.Path  # of the peers' scripts
    binary: str  # of ours, with --share FILE CONFIG key=value ...
    config: str  # unless another is given
    settings: tuple  # (key, value) pairs unless given
    peers: dict  # command of each by name: script, then what comes before the job's own keys
    title: str  # of a model, for people; the size is added
    work: str  # what a step is made of, for people, with keys of the job in braces
    titles: dict = dataclasses.field(default_factory=dict)  # by configuration, where one has another
    default_peers: str = ""  # comma-separated; empty: all
    # Losses of so many first steps must agree: more than one where all sides train on the same batches.
    checked_steps: int = 1
    # As `peers`, on a card: commands to try in turn. Empty: the job cannot be compared there.
    card_peers: dict = dataclasses.field(default_factory=dict)


def card_peers(*words):
    """Those of a job in PyTorch whose scripts begin with `words`."""
    return {"torch-best": [[*words, *flags] for flags in BEST_ON_CARD],
            "torch-compile": [[*words, "mode=compile"]],
            "torch-graph": [[*words, "mode=compile", "capture=1"]],
            "torch-reduce-overhead": [[*words, "mode=compile", "compile_mode=reduce-overhead"]],
            "torch-max": [[*words, "mode=compile", "compile_mode=max-autotune-no-cudagraphs", "capture=1"]],
            "torch-eager": [[*words, "mode=eager"]]}


def arguments(job, document, words=None):
    """`words`: of the command line, unless others are given."""
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", nargs="*", metavar="CONFIG, key=value")
    parser.add_argument("--peers")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--block-seconds", type=float, default=1)
    parser.add_argument("--warm-up-seconds", type=float, default=3)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--start-limit", type=float, default=1800)
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--passive", action="store_true")
    parser.add_argument("--processor", choices=["auto", *PROCESSORS], default="auto")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--peer-device")
    parser.add_argument("--binary")
    parser.add_argument("--binaries", default=str(ROOT / "build/release/bin"))
    parser.add_argument("--python")
    parser.add_argument("--output")
    options = parser.parse_args(words)
    options.binary = options.binary or str(pathlib.Path(options.binaries) / job.binary)
    if not pathlib.Path(options.binary).exists():
        parser.error(f"there is no {options.binary}; first: cmake --preset release && cmake --build --preset benches")
    if options.rounds < 1 or options.at_once < 0 or options.block_seconds <= 0 or options.warm_up_seconds < 0:
        parser.error("--rounds is at least 1, --at-once and seconds are not negative")
    if options.start_limit <= 0 or (options.time_limit is not None and options.time_limit <= 0):
        parser.error("--start-limit and --time-limit are more than 0 seconds")
    options.peer_device = options.peer_device or options.device
    options.on_card = options.device.partition(":")[0] == "cuda"
    if not options.job or "=" in options.job[0]:
        options.job.insert(0, str(ROOT / job.config))
    for key, value in job.settings:
        if key == "engine.threads" and options.on_card:
            continue
        if not any(word.startswith(key + "=") for word in options.job):
            options.job.append(f"{key}={value}")
    if options.processor != "auto":
        options.job.append(f"engine.processor={options.processor}")
    if options.on_card:
        options.job.append(f"engine.device={options.device}")
    known_peers = commands(job, options.on_card)
    if options.peers is None:
        options.peers = "torch-best" if options.on_card else job.default_peers or ",".join(job.peers)
    options.peers = [] if options.peers == "none" else options.peers.split(",")
    options.precisions = options.precisions.split(",")
    for given, known in ((options.peers, known_peers), (options.precisions, TOLERANCE)):
        for name in given:
            if name not in known:
                parser.error(f"unknown '{name}'; known: {', '.join(known)}")
    return options


def commands(job, on_card):
    """By name of a peer: commands to try in turn."""
    return job.card_peers if on_card else {name: [command] for name, command in job.peers.items()}


class Comparison:
    def __init__(self, job, options, scratch, prefix=""):
        """`prefix`: of what is said on the standard error."""
        self.prefix = prefix
        self.job = job
        self.options = options
        self.scratch = scratch
        self.shared = scratch / "start.safetensors"
        self.sharer = "share"  # whose folder has the machine's peaks
        self.ours, self.measured, self.unavailable = [], [], []
        self.round = 0
        limit = getattr(options, "time_limit", None)
        self.end = time.monotonic() + limit if limit else None
        self.start_end = None  # when sides must have begun, where somebody else says so

    def time_left(self):
        return self.end - time.monotonic() if self.end else float("inf")

    def time_to_start(self):
        """What is left when the rounds of the sides that are there, and of one more, have had theirs."""
        if self.start_end:
            return self.start_end - time.monotonic()
        options = self.options
        each = options.warm_up_seconds + options.rounds * options.block_seconds if self.end else 0
        return self.time_left() - each * (len(self.ours) + 1)

    def share(self):
        """Initial parameters, first batch and tokens, for all; and the machine's peaks."""
        done = subprocess.run([self.options.binary, "--share", str(self.shared), *self.options.job], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, env=self.environment("share"), check=False)
        if done.returncode != 0:
            sys.exit(done.stderr.strip() or f"{self.options.binary} ended with status {done.returncode}")

    def environment(self, name):
        """Caches of its own: what is kept from earlier would hide the time to the first step."""
        folder = self.scratch / name
        folder.mkdir(exist_ok=True)
        for peaks in (self.scratch / self.sharer).glob("machine-*.json"):  # else each of ours would measure them
            if folder.name != self.sharer:
                shutil.copy(peaks, folder)
        variables = {"FULLBORE_CACHE": str(folder), "TORCHINDUCTOR_CACHE_DIR": str(folder)}
        if self.options.passive:
            variables["OMP_WAIT_POLICY"] = "passive"
        variables.update(PROCESSORS.get(self.options.processor, {}))
        return {**os.environ, **variables}

    def start(self, name, command, kept_back=0):
        """One of a side's commands. None where it cannot run. `kept_back`: seconds that are for another."""
        left = self.time_to_start() - kept_back
        if left <= 0:
            return self.give_up(name, "not begun: the time was over")
        print(f"{self.prefix}starting {name}", file=sys.stderr, flush=True)
        side = Side(name, command, self.environment(name))
        try:
            side.await_ready(min(self.options.start_limit, left))
            self.check(side)
            if self.options.on_card:
                side.run(STEPS_OF_PROOF, self.patience())
        except Unavailable as reason:
            return self.give_up(name, str(reason), reason.log)
        return side

    def patience(self):
        """Seconds that a block may take; None: as long as it likes."""
        return max(self.time_left(), 10) if self.end else None

    def give_up(self, name, reason, log=()):
        print("\n".join([f"{self.prefix}{name} is not available: {reason}", *(f"  {line}" for line in log[:-1])]), file=sys.stderr)
        self.unavailable.append((name, reason))

    def check(self, side):
        """Is it the same work?"""
        reference = self.ours[0].ready if self.ours else side.ready
        if side.ready["parameters"] != reference["parameters"]:
            sys.exit(f"{side.name} has {side.ready['parameters']} parameters, "
                     f"{self.ours[0].name} {reference['parameters']}")
        tolerance = max(TOLERANCE[side.ready["precision"]], TOLERANCE[reference["precision"]])
        if side.ready.get("dropout", 0) != 0:
            tolerance = DROPOUT_TOLERANCE
        losses = [side.ready["first_loss"]]
        self.agrees(side, losses, tolerance)
        for _ in range(1, len(reference.get("first_losses", losses)) if self.ours else self.job.checked_steps):
            block = side.run(1)
            losses.append(block["loss"])
            side.ready["first_losses"] = losses
            self.agrees(side, losses, tolerance)
            if block["seconds_per_step"] > SLOW_STEP:
                side.slow = True
                return

    def agrees(self, side, losses, tolerance):
        """Of the first steps, the last of `losses` being the newest."""
        reference = self.ours[0] if self.ours else side
        expected = reference.ready.get("first_losses", [reference.ready["first_loss"]])[len(losses) - 1]
        if not abs(losses[-1] - expected) <= tolerance * abs(expected):
            which = "first loss" if len(losses) == 1 else f"loss of step {len(losses)}"
            sys.exit(f"{side.name}: the {which} is {losses[-1]}, that of {reference.name} {expected}: not the same work")

    def start_ours(self, precision):
        """On a card the first of them shares what all begin with: a start less."""
        sharing = []
        if self.options.on_card and not self.shared.exists():
            self.sharer, sharing = f"fullbore-{precision}", ["--share", self.shared]
        return self.start(f"fullbore-{precision}", [self.options.binary, *sharing, *self.options.job,
                                                    f"engine.precision={precision}"])

    def start_all_of_ours(self):
        self.ours = [side for side in map(self.start_ours, self.options.precisions) if side]
        if not self.ours:
            sys.exit("no side of Fullbore could run")
        self.measured = list(self.ours)

    def start_peer(self, name, precision, python):
        """The first of its commands that runs; the reasons of those before it are kept."""
        ready = self.ours[0].ready
        values = {**ready["job"], "threads": ready["threads"], "precision": precision, "share": self.shared}
        if self.options.on_card:
            values["device"] = self.options.peer_device
        known = commands(self.job, self.options.on_card)[name]
        for script, *settings in known:
            kept_back = SECONDS_OF_THE_LAST if [script, *settings] != known[-1] else 0
            side = self.start(f"{name}-{precision}", [python, self.job.folder / script, *settings,
                                                      *(f"{key}={value}" for key, value in values.items())], kept_back)
            if side or self.time_to_start() <= 0:
                return side
        return None

    def measure(self, group):
        sides = self.ours + group
        steps = {side.name: 1 if side.slow else
                 max(1, round(self.options.block_seconds / side.warm_up(self.options.warm_up_seconds))) for side in sides}
        for count in range(self.options.rounds):
            if count > 0 and self.time_left() <= 0:
                print(f"the time is over after {count} rounds", file=sys.stderr)
                break
            self.round += 1
            for side in list(sides):
                if not await_silence(sides):
                    print("the machine is not silent: somebody's idle threads spin", file=sys.stderr)
                try:
                    block = side.run(steps[side.name], self.patience())
                except Unavailable as reason:
                    if side not in group:
                        raise
                    sides.remove(side)
                    self.give_up(side.name, f"round {self.round}: {reason}", reason.log)
                    continue
                side.blocks.append({**block, "round": self.round})
            print(f"{self.prefix}round {self.round:2}  " + "  ".join(
                f"{side.name} {1e3 * side.blocks[-1]['seconds_per_step']:.2f} ms" for side in sides),
                file=sys.stderr, flush=True)
        group[:] = [side for side in group if side.blocks]

    def measure_one_by_one(self, waiting, python):
        """Sides that do not fit in memory together: each round starts every one anew. The first start is that of record."""
        starts = [lambda own=own: self.start_ours(own) for own in self.options.precisions]
        starts += [lambda own=own: self.start_peer(*own, python) for own in waiting]
        for self.round in range(1, self.options.rounds + 1):
            for start in list(starts):
                side = start()
                if side is None:
                    starts.remove(start)
                    continue
                steps = 1 if side.slow else max(1, round(
                    self.options.block_seconds / side.warm_up(self.options.warm_up_seconds, least=1)))
                block = {**side.run(steps), "round": self.round}
                side.close()
                print(f"round {self.round:2}  {side.name} {1e3 * block['seconds_per_step']:.2f} ms", file=sys.stderr,
                      flush=True)
                first = next((known for known in self.measured if known.name == side.name), side)
                first.blocks.append(block)
                if first is side:
                    self.measured.append(side)
                    self.ours += [side] if side.ready["side"] == "fullbore" else []
            if not self.ours:
                sys.exit("no side of Fullbore could run")

    def run(self):
        python = self.options.python or (environment.python() if self.options.peers else sys.executable)
        if not self.options.on_card:
            self.share()
        waiting = self.all_peers()
        if self.options.at_once == 0:
            self.measure_one_by_one(waiting, python)
            return record.result(self.measured, self.unavailable, self.options, self.job)
        self.start_all_of_ours()
        while True:
            group = []
            while waiting and len(group) < self.options.at_once:
                side = self.start_peer(*waiting.pop(0), python)
                group += [side] if side else []
            if group or not self.ours[0].blocks:
                self.measure(group)
            for side in group:
                side.close()
            self.measured += group
            if not waiting:
                break
        return self.finish()

    def all_peers(self):
        return [(name, precision) for precision in self.options.precisions for name in self.options.peers]

    def finish(self):
        for side in self.ours:
            side.close()
        return record.result(self.measured, self.unavailable, self.options, self.job)


def main(job, document):
    options = arguments(job, document)
    with tempfile.TemporaryDirectory(prefix="compare") as scratch:
        found = Comparison(job, options, pathlib.Path(scratch)).run()
    print(record.markdown(found))
    if options.output == "none":
        return
    default = ROOT / "bench/results" / f"{found['date'][:10]}-{found['config']}"
    path = pathlib.Path(options.output or default)
    write(found, path)
    print(f"written to {path}.json and .md")


def write(found, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(path.name + ".json").write_text(record.to_json(found))
    path.with_name(path.name + ".md").write_text(record.markdown(found))
