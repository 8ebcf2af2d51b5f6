"""Damages the text files of runs, and counts the commands that do not tell.

A run of a tiny language model, the same run as a crash would have left it half way, one whose batch memory has settled,
and what workloads/*/tests/parts/damaged_text.py add are made. Each try copies one of them, damages one text file in one place, and
runs a command that reads it. It fails where the command neither refuses nor says that something is wrong with the file,
where it crashes, where a refusal changes a checkpoint, and where a run that goes on ends otherwise than the undamaged.

settings: tries=240 (a multiple of the files is best), keep=FOLDER (of what failed)
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import gathered

JOB = """run: {name: tiny, seed: 7}
data: {validation_fraction: 0.2}
model: {name: tiny, layers: 1, heads: 2, width: 16, context: 8, dropout: 0.1}
optim: {learning_rate: 0.01, warmup_steps: 3}
train: {steps: 24, batch_size: 4, eval_interval: 6, eval_batches: 3, checkpoint_interval: 6, sample_characters: 0,
  keep_checkpoints: 0}
engine: {threads: 1}
log: {interval: 2}
"""


def read_json(path):
    return json.loads(path.read_text())


class Runs:
    """What is damaged, and the command that runs on each copy."""

    def __init__(self, folder, binary):
        self.folder = folder
        self.binary = str(binary)
        self.environment = {"HOME": str(folder), "FULLBORE_CACHE": str(folder / "cache"), "LC_ALL": "C",
                            "PATH": os.environ["PATH"]}
        draws = random.Random(3)
        words = ["the", "sea", "is", "calm", "tonight"]
        (folder / "text.txt").write_text(
            "".join(" ".join(draws.choices(words, k=5)) + ".\n" for _ in range(160)))
        (folder / "job.yaml").write_text(JOB)

        self.must("train", "job.yaml", "data.path=text.txt", "run.dir=whole")
        self.must("train", "job.yaml", "data.path=text.txt", "run.dir=settled", "train.batch_size=auto",
                  "engine.memory_budget=0.5GiB", "train.steps=6")
        self.cut_back("whole", "half", 12)
        self.parts = gathered.parts("damaged_text").values()  # FILES by name, COMMANDS that make what CASES damage
        for part in self.parts:
            for file, text in part.FILES.items():
                (folder / file).write_text(text)
            for command in part.COMMANDS:
                self.must(*command)

    def run(self, *arguments):
        done = subprocess.run([self.binary, *arguments], cwd=self.folder, env=self.environment, capture_output=True,
                              timeout=900)
        return done.returncode, done.stdout.decode("utf-8", "replace") + done.stderr.decode("utf-8", "replace")

    def must(self, *arguments):
        code, output = self.run(*arguments)
        if code != 0:
            raise RuntimeError(f"{' '.join(arguments)}: exit code {code}: {output}")

    def cut_back(self, run, copy, step):
        """What a power cut behind the checkpoint of `step` would have left."""
        shutil.copytree(self.folder / run, self.folder / copy, symlinks=True)
        store = self.folder / copy / "checkpoints"
        kept = f"step-{step:08}"
        for checkpoint in store.glob("step-*"):
            if checkpoint.name > kept:
                shutil.rmtree(checkpoint)
        for link in ("last", "best"):
            (store / link).unlink()
            (store / link).symlink_to(kept)

    def cases(self):
        """(what is copied, the file in it, the command on the copy)."""
        resume = lambda copy: ("train", copy, "--resume")
        cases = [("half", "config.resolved.yaml", resume),
                 ("settled", "config.given.yaml", lambda copy: ("train", copy, "--resume", "train.steps=8")),
                 ("settled", "config.resolved.yaml",
                  lambda copy: ("train", "job.yaml", "data.path=text.txt", f"run.dir={copy}", "train.steps=8",
                                "train.batch_size=auto", "engine.memory_budget=0.5GiB", "--resume")),
                 ("whole", "metrics.jsonl", lambda copy: ("metrics", copy)),
                 ("whole", "metrics.jsonl", resume),
                 ("whole", "summary.json", resume),
                 ("whole", "summary.json", lambda copy: ("record", copy)),
                 ("whole", "log.txt", resume),
                 ("half", "log.txt", resume)]
        for part in self.parts:
            cases += part.CASES
        for name in ("manifest.json", "config.json", "position.json", "metrics.json", "tokenizer.json"):
            cases.append(("whole", f"checkpoints/step-00000024/{name}", lambda copy: ("eval", copy + "/checkpoints/last")))
        return cases


def damage(data, draws):
    """One place of it changed; and how, in words."""
    lines = data.splitlines(keepends=True)
    at = draws.randrange(len(data))
    line = draws.randrange(len(lines))
    kind = draws.choice(["cut off", "cut off at a line", "bit flipped", "character changed", "line dropped",
                         "line repeated", "line inserted", "bytes inserted", "bytes dropped", "zeros"])
    if kind == "cut off":
        return data[:at], f"{kind} at byte {at}"
    if kind == "cut off at a line":
        return b"".join(lines[:line]), f"{kind} {line}"
    if kind == "bit flipped":
        return data[:at] + bytes([data[at] ^ 1 << draws.randrange(8)]) + data[at + 1:], f"{kind} in byte {at}"
    if kind == "character changed":
        return data[:at] + draws.choice("0123456789az ,").encode() + data[at + 1:], f"{kind}: byte {at}"
    if kind == "line dropped":
        return b"".join(lines[:line] + lines[line + 1:]), f"{kind}: {line + 1}"
    if kind == "line repeated":
        return b"".join(lines[:line + 1] + lines[line:]), f"{kind}: {line + 1}"
    if kind == "line inserted":
        text = draws.choice([b"\n", b"# a comment\n", b"train: {steps: 9}\n", b"{}\n", lines[0]])
        return b"".join(lines[:line] + [text] + lines[line:]), f"{kind} before {line + 1}: {text!r}"
    if kind == "bytes inserted":
        return data[:at] + draws.randbytes(3) + data[at:], f"{kind} at {at}"
    if kind == "bytes dropped":
        return data[:at] + data[at + draws.randint(1, 40):], f"{kind} at {at}"
    return data[:at] + bytes(min(32, len(data) - at)) + data[at + 32:], f"{kind} from byte {at}"


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.is_symlink()} if folder.is_dir() else {}


def verdict(code, output, file, baseline, runs, copy, before):
    """What is wrong with how the command took it; "" if nothing is."""
    if code < 0 or code == 1:
        return f"crashed: exit code {code}"
    name = pathlib.PurePath(file or copy.name).name
    told = [line for line in output.splitlines() if name in line or pathlib.PurePath(file).parent.name in line]
    if code != 0:
        after = contents(copy / "checkpoints")
        if {key: value for key, value in after.items() if key in before} != before:
            return "refused, and checkpoints have changed"
        return "" if name in output or "checkpoint" in output else f"refused without naming the file: {output[-200:]}"
    if not [line for line in told if line not in baseline]:
        return "silent"
    if "config" in file and copy.is_dir() and (copy / "summary.json").is_file():
        if read_json(copy / "summary.json")["steps"] not in (8, 24):
            return "went on to another step"
    return ""


def run(context):
    binary = context.build / "bin" / "fullbore_tiny"
    if not binary.is_file():
        raise context.skip(f"there is no {binary}")
    tries = context.setting("tries", 240)
    keep = context.setting("keep", "")
    draws = random.Random(context.seed)
    failures, told, refused = [], 0, 0
    by_file = {}
    with tempfile.TemporaryDirectory(prefix="fullbore_damaged_text_") as name:
        folder = pathlib.Path(name)
        runs = Runs(folder, binary)
        baselines = {}
        for number in range(tries):
            case = number % len(runs.cases())
            source, file, command = runs.cases()[case]
            copy = folder / ("copy" + pathlib.PurePath(source).suffix)

            def prepare():
                if (folder / source).is_dir():
                    shutil.rmtree(copy, ignore_errors=True)
                    shutil.copytree(folder / source, copy, symlinks=True)
                else:
                    shutil.copyfile(folder / source, copy)

            if case not in baselines:
                prepare()
                code, output = runs.run(*command(copy.name))
                if code not in (0, 3):
                    raise RuntimeError(f"{command(copy.name)}: exit code {code}: {output}")
                baselines[case] = set(output.splitlines())
            prepare()
            path = copy / file if file else copy
            data = path.read_bytes()
            damaged, how = damage(data, draws)
            while damaged == data:
                damaged, how = damage(data, draws)
            path.write_bytes(damaged)
            before = contents(copy / "checkpoints")
            code, output = runs.run(*command(copy.name))
            wrong = verdict(code, output, file, baselines[case], runs, copy, before)
            what = f"{source}/{file}: {how}: {' '.join(command(copy.name))}"
            key = f"{file or source}: {command('RUN')[0]}"
            by_file[key] = by_file.get(key, 0) + 1
            refused += code != 0
            told += code == 0
            if wrong:
                failures.append(f"{what}: {wrong}")
                if keep:
                    shutil.copytree(copy, pathlib.Path(keep) / str(number), symlinks=True) if copy.is_dir() else \
                        shutil.copyfile(copy, pathlib.Path(keep) / str(number))
            if number % 20 == 19:
                context.progress(f"{number + 1} of {tries}, {len(failures)} failures")
    return {"tries": tries, "refused": refused, "told_and_went_on": told, "by_file_and_command": by_file,
            "failures": failures}
