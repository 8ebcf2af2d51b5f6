"""Power cuts below the system calls: a FUSE file system drops what was not synced.

Jobs run on tests/power_cut's disk, which remembers every operation: the library's writers (saving, the links, rotation,
appending to metrics.jsonl, replacing a file), the conversion of a text to tokens, a whole `fullbore train`, the start of
one that was cut before, and the conversions that workloads/*/tests/parts/power_cut.py have. For each cut the disk takes a state that
a power cut behind one of the operations may leave: unsynced sectors, sizes and names there or not, each by itself.
Then everything that was promised before the cut must be there and verify, the next start leaves no temporary file,
and a run that is resumed ends with the bits of one never disturbed.

settings: cuts=N (1000)
"""

import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import gathered

JOB = """run: {name: tiny, seed: 7}
model: {name: tiny, layers: 1, heads: 2, width: 16, context: 8}
train: {steps: 8, batch_size: 4, eval_interval: 4, eval_batches: 2, checkpoint_interval: 2, sample_characters: 0}
engine: {threads: 2}
log: {interval: 1}
"""
SHARES = {"store": 0.6, "tokens": 0.1, "train": 0.1, "restart": 0.1}


class Disk:
    """The mounted file system."""

    def __init__(self, context, program, folder):
        self.folder = folder
        if not program.exists():
            raise context.skip(f"there is no {program}: the build found no libfuse3")
        self.process = subprocess.Popen([program, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(100):
            if os.path.ismount(folder):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        said = self.process.stdout.read().decode().strip() if self.process.poll() is not None else "no answer"
        self.process.kill()
        raise context.skip(f"FUSE cannot mount here: {said}")

    def order(self, text):
        with open(self.folder / ".power", "w") as orders:
            orders.write(text + "\n")

    def report(self):
        return (self.folder / ".power").read_text()

    def unmount(self):
        subprocess.run(["fusermount3", "-u", "-z", self.folder], check=False, capture_output=True)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Campaign:
    def __init__(self, context, disk, scratch):
        self.context, self.disk, self.scratch = context, disk, scratch
        self.binary = context.build / "bin" / "fullbore_tiny"
        self.writers = context.build / "bin" / "power_cut_run"
        self.random = random.Random(context.seed)
        self.failures = []
        self.kinds = {}
        self.environment = {**os.environ, "FULLBORE_CACHE": str(scratch / "cache")}
        (scratch / "text.txt").write_text("the sea is calm tonight. " * 400)
        (scratch / "books").mkdir()
        for book in range(4):
            (scratch / "books" / f"{book}.txt").write_text(f"book {book}: the sea is calm tonight. " * 100)
        (scratch / "job.yaml").write_text(JOB)
        self.conversions = {}
        for folder, part in gathered.parts("power_cut").items():
            (scratch / part.SOURCE).write_text(part.TEXT)
            self.conversions[folder] = part

    def call(self, *command):
        return subprocess.run(list(map(str, command)), cwd=self.scratch, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)

    def need(self, *command):
        done = self.call(*command)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout}")
        return done

    def steps_of(self, name):
        """(prepare or None, live, check) of a job: methods of its name, or those of a workload's conversion."""
        if name in self.conversions:
            return (None, lambda folder: self.live_conversion(name, folder),
                    lambda folder, before: self.check_conversion(name, folder, before))
        return getattr(self, f"prepare_{name}", None), getattr(self, f"live_{name}"), getattr(self, f"check_{name}")

    def cut_job(self, name, cuts):
        """Records the job once, then cuts it at random places."""
        prepare, live, check = self.steps_of(name)
        folder = self.disk.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if prepare:
            prepare(folder)
        self.disk.order("begin")
        live(folder)
        self.disk.order("mark done")
        self.disk.order("end")
        report = self.disk.report().splitlines()
        operations = int(report[0].split()[1])
        history = [(int(line.split(" ", 1)[0]), line.split(" ", 1)[1]) for line in report[2:]]
        for i in range(cuts):
            at, seed = self.random.randrange(operations + 1), self.random.getrandbits(32)
            self.disk.order(f"cut {at} {seed}")
            kind = self.disk.report().splitlines()[1].removeprefix("cut ")
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            before = [text for place, text in history if place < at]
            try:
                loss = check(folder, before)
            except (OSError, subprocess.TimeoutExpired) as error:
                loss = str(error)
            if loss:
                self.failures.append(f"{name}: {kind}, behind {at} of {operations}, seed {seed}: {loss.strip()}")
            if (i + 1) % 50 == 0:
                self.context.progress(f"{name}: {i + 1} of {cuts} cuts, {len(self.failures)} failures")
        return {"cuts": cuts, "operations": operations}

    def leftover(self, folder):
        """A temporary file of ours; the folder of checkpoints is tidied at a start, a file's folder at its next
        writing."""
        for path in folder.rglob("*.tmp"):
            return f"{path} is left behind"
        return ""

    # The library's writers.
    def live_store(self, folder):
        self.need(self.writers, "live", folder, self.disk.folder / ".power", 8)

    def check_store(self, folder, before):
        promised = {"step": -1, "best": -1, "version": -1}
        for text in before:
            if match := re.fullmatch(r"mark (step|best|version) (\d+)", text):
                promised[match[1]] = int(match[2])
        if not folder.is_dir():
            return "the folder is gone"
        done = self.call(self.writers, "check", folder, promised["step"], promised["best"], promised["version"])
        return "" if done.returncode == 0 else done.stdout or f"exit code {done.returncode}"

    # A text becomes tokens, in several shards.
    def tokenize(self, folder):
        return self.call(self.binary, "data", "tokenize", "books", "--shard-tokens", "2000", "--force", "--out",
                         folder / "a.tokens")

    def live_tokens(self, folder):
        done = self.tokenize(folder)
        if done.returncode != 0:
            raise RuntimeError(done.stdout)
        self.shards = {path.name: path.read_bytes() for path in folder.glob("*.tokens")}

    def check_tokens(self, folder, before):
        found = {path.name: path.read_bytes() for path in folder.glob("*.tokens")}
        if any(self.shards.get(name) != contents for name, contents in found.items()):
            return "a damaged shard has its name"
        if "mark done" in before and found.keys() != self.shards.keys():
            return f"of {len(self.shards)} shards {len(found)} are left"
        again = self.tokenize(folder)
        return self.leftover(folder) if again.returncode == 0 else again.stdout

    # A file of a workload's becomes another: SOURCE, its TEXT, and CONVERT, the command.
    def convert(self, part, *more):
        return self.call(self.binary, *part.CONVERT, *more)

    def live_conversion(self, name, folder):
        done = self.convert(self.conversions[name], "-o", folder / "converted")
        if done.returncode != 0:
            raise RuntimeError(done.stdout)
        self.converted = (folder / "converted").read_bytes()

    def check_conversion(self, name, folder, before):
        path = folder / "converted"
        if path.exists() and path.read_bytes() != self.converted:
            return "a damaged file has its name"
        if "mark done" in before and not path.exists():
            return "what was converted is gone"
        again = self.convert(self.conversions[name], "--force", "-o", path)
        return self.leftover(folder) if again.returncode == 0 else again.stdout

    # A whole run.
    def train(self, folder, *more):
        return self.call(self.binary, "train", "job.yaml", "data.path=text.txt", f"run.dir={folder}/run", *more)

    def live_train(self, folder):
        done = self.train(folder)
        if done.returncode != 0:
            raise RuntimeError(done.stdout)
        self.weights = (folder / "run/checkpoints/last/weights.safetensors").read_bytes()

    def check_train(self, folder, before):
        # A save is over when the next one begins.
        saved, pending = -1, -1
        for text in before:
            if match := re.search(r"symlink \S*\.last\.tmp step-(\d+)", text):
                pending = int(match[1])
            elif re.search(r"mkdir \S*/\.step-", text) or text == "mark done":
                saved = pending
        done = self.train(folder, "--resume")
        if done.returncode != 0:
            return done.stdout
        resumed = re.search(r"(?:resumed \S+ at|complete at) step (\d+)", done.stdout)
        if saved > (int(resumed[1]) if resumed else 0):
            return f"step {saved} was saved: {done.stdout}"
        if (folder / "run/checkpoints/last/weights.safetensors").read_bytes() != self.weights:
            return "other weights"
        return self.leftover(folder)

    # A run that was cut starts again, and is cut once more.
    def prepare_restart(self, folder):
        self.disk.order("begin")
        self.live_train(folder)
        operations = int(self.disk.report().splitlines()[0].split()[1])
        self.disk.order(f"cut {self.random.randrange(operations // 3, operations)} {self.random.getrandbits(32)}")

    def live_restart(self, folder):
        done = self.train(folder, "--resume")
        if done.returncode != 0:
            raise RuntimeError(done.stdout)

    check_restart = check_train


def run(context):
    cuts = context.setting("cuts", 1000)
    if shutil.which("fusermount3") is None:
        raise context.skip("there is no fusermount3 (Debian: fuse3)")
    with tempfile.TemporaryDirectory() as name:
        mount = pathlib.Path(name) / "disk"
        scratch = pathlib.Path(name) / "scratch"
        mount.mkdir()
        scratch.mkdir()
        disk = Disk(context, context.build / "bin" / "power_cut_disk", mount)
        try:
            campaign = Campaign(context, disk, scratch)
            # What sees no loss on a disk that syncs nothing sees none at all.
            disk.order("careless")
            campaign.cut_job("store", 10)
            disk.order("careful")
            seen, campaign.failures, campaign.kinds = campaign.failures, [], {}
            if not seen:
                campaign.failures.append("on a disk that syncs nothing, 10 cuts lost nothing: the checks are blind")
            jobs = {}
            for job, share in {**SHARES, **dict.fromkeys(campaign.conversions, 0.1)}.items():
                jobs[job] = campaign.cut_job(job, max(1, round(cuts * share)))
        finally:
            disk.unmount()
    return {"losses on a disk that syncs nothing": f"{len(seen)} of 10",
            "tries": sum(each["cuts"] for each in jobs.values()), "failures": campaign.failures,
            "jobs": jobs, "kinds": campaign.kinds}
