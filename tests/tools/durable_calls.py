"""Watches the system calls of a small training run, and of what workloads/*/tests/parts/durable_calls.py add:
`durable_calls.py BUILD`.

What a power cut must not take is written under a temporary name, synced, renamed, and its folder synced, in this
order. The tests of the rooms look at a model of the disk; this one looks at what the kernel was asked for. Then it
leaves every fsync out of the record in turn: the rules must complain about each. Exit code 77, which ctest lists as
skipped, without strace or where it may not trace.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/support"))
import gathered

CALLS = ("openat,open,creat,write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,rename,renameat,renameat2,unlink,"
         "unlinkat,mkdir,mkdirat,rmdir,symlink,symlinkat,close")
JOB = """run: {name: tiny, seed: 7}
model: {name: tiny, layers: 1, heads: 2, width: 16, context: 8}
train: {steps: 6, batch_size: 4, eval_interval: 3, eval_batches: 2, checkpoint_interval: 1, sample_characters: 0}
engine: {threads: 2}
log: {interval: 1}
"""


class Event:
    def __init__(self, call, paths, begin):
        self.call = call  # write, sync, rename, create, mkdir, symlink, remove
        self.paths = paths
        self.begin = begin  # line where it began: what was written before that is covered by a sync
        self.end = begin


def read_events(trace, folder):
    """The calls that succeeded, in the order in which they ended; writes and names count from their begin."""
    waiting = {}
    events = []
    for number, line in enumerate(trace.splitlines()):
        thread, _, text = line.partition(" ")
        text = text.strip()
        begin = number
        if text.endswith("<unfinished ...>"):
            waiting[thread] = (number, text[:-len("<unfinished ...>")])
            continue
        if resumed := re.match(r"<\.\.\. (\w+) resumed>(.*)", text):
            begin, head = waiting.pop(thread)
            text = head + resumed[2]
        match = re.match(r"(\w+)\((.*)\)\s+= (-?\d+)", text)
        if not match or match[3].startswith("-"):
            continue
        call, arguments = match[1], match[2]
        descriptor = re.match(r"\d+<([^>]*)>", arguments)
        names = [os.path.normpath(folder / name) for name in re.findall(r'"((?:[^"\\]|\\.)*)"', arguments)]
        event = None
        if call in ("fsync", "fdatasync"):
            event = Event("sync", [descriptor[1]], begin)
        elif "write" in call:
            event = Event("write", [descriptor[1]], begin) if descriptor else None
        elif call.startswith("rename"):
            event = Event("rename", names, begin)
        elif call in ("open", "openat", "creat"):
            if "O_CREAT" in arguments or call == "creat":
                event = Event("create", names, begin)
        elif call.startswith("mkdir"):
            event = Event("mkdir", names, begin)
        elif call.startswith("symlink"):
            event = Event("symlink", [names[-1]], begin)
        elif call.startswith("unlink") or call == "rmdir":
            event = Event("remove", names, begin)
        if event is not None and all(path.startswith(str(folder)) for path in event.paths):
            event.end = number
            events.append(event)
    return events


def parent(path):
    return os.path.dirname(path)


def is_temporary(path):
    return any(part.endswith(".tmp") for part in pathlib.PurePath(path).parts)


def is_watched(path):
    """Entries of caches (*.fbo, and *.fbo.N on their way) carry a hash and are made again; log.txt is for people."""
    name = pathlib.PurePath(path).name
    return ".fbo" not in name and name not in ("plans", "kernels", "log.txt", "clear_refs")


class Rules:
    """What holds of a sequence of events; `complaints` says where it does not."""

    def __init__(self):
        self.complaints = []
        self.dirty = {}    # file: where its last unsynced write began
        self.names = {}    # folder: {name that is not synced: where it began}
        self.left = {}     # folder: {new temporary name: where an old name began to go}, not synced
        self.known = set()
        self.metrics = set()  # what was done to metrics.jsonl since the last save began

    def complain(self, *words):
        self.complaints.append(" ".join(words))

    def unsynced_below(self, path):
        inside = path + "/"
        return ([file for file in self.dirty if file == path or file.startswith(inside)]
                + [name for folder, names in self.names.items() if folder == path or folder.startswith(inside)
                   for name in names])

    def add_name(self, path, begin):
        self.names.setdefault(parent(path), {})[path] = begin

    def moved(self, old, new):
        for table in (self.dirty, self.names):
            for key in [key for key in table if key == old or key.startswith(old + "/")]:
                table[new + key[len(old):]] = table.pop(key)
        self.names.get(parent(old), {}).pop(old, None)

    def take(self, event):
        path = event.paths[-1]
        if not is_watched(path) or not is_watched(event.paths[0]):
            return
        if path.endswith("metrics.jsonl"):
            self.metrics.add(event.call)
        if event.call == "mkdir" and os.path.basename(path).startswith(".step-"):
            self.begin_save(path)
        if event.call == "write":
            self.dirty[path] = event.begin
        elif event.call == "sync":
            if self.dirty.get(path, event.begin) <= event.begin:
                self.dirty.pop(path, None)
            for table in (self.names, self.left):
                table[path] = {name: at for name, at in table.get(path, {}).items() if at > event.begin}
        elif event.call in ("create", "mkdir", "symlink"):
            if path not in self.known:
                self.add_name(path, event.begin)
            self.known.add(path)
        elif event.call == "rename":
            self.rename(event.paths[0], path, event.begin)
        elif event.call == "remove":
            if parent(path) in self.left.get(parent(parent(path)), {}):
                self.complain(f"{path} is removed while the checkpoint may still have its old name")
            self.names.get(parent(path), {}).pop(path, None)
            self.dirty.pop(path, None)
            self.known.discard(path)

    def begin_save(self, path):
        if waiting := [name for name in self.names.get(parent(path), {}) if not is_temporary(name)]:
            self.complain(f"{path} is begun before the save before it was synced: {waiting}")
        if "write" in self.metrics and "sync" not in self.metrics:
            self.complain(f"{path} is begun while metrics.jsonl is not synced")
        self.metrics.clear()

    def rename(self, old, new, begin):
        link = os.path.basename(old) in (".last.tmp", ".best.tmp")
        if is_temporary(new):  # a checkpoint goes: what stays must be there for certain
            if waiting := self.names.get(parent(new)):
                self.complain(f"{old} is removed while the folder's names are not synced: {sorted(waiting)}")
            self.left.setdefault(parent(new), {})[new] = begin
        elif link:
            if waiting := [name for name in self.names.get(parent(new), {})
                           if os.path.basename(name).startswith("step-")]:
                self.complain(f"{new} is made to lead to what is not synced: {waiting}")
        else:
            if waiting := self.unsynced_below(old):
                self.complain(f"{new} gets its name before its contents are synced: {waiting}")
        self.moved(old, new)
        self.known.discard(old)
        self.known.add(new)
        if not is_temporary(new):
            self.add_name(new, begin)

    def finish(self):
        for folder, names in self.names.items():
            # A new folder of a cache may be lost with all that is in it.
            lost = [name for name in names if not is_temporary(name) and not name.endswith(("/cache", "/tokens"))]
            if lost:
                self.complain(f"{folder} was not synced after {lost}")
        return self.complaints


def judge(events):
    rules = Rules()
    for event in events:
        rules.take(event)
    return rules.finish()


def kind(path, folder):
    return re.sub(r"\.?\d[\w.]*(\.tmp)?", "#", path[len(str(folder)):])


def trace_of(command, folder, environment):
    record = folder / "calls"
    traced = subprocess.run(["strace", "-f", "-y", "-qq", "-s", "4", "-o", record, "-e", f"trace={CALLS}",
                             *map(str, command)], cwd=folder, env=environment, capture_output=True, text=True,
                            check=False)
    if traced.returncode != 0:
        raise RuntimeError(f"{command}: {traced.returncode}\n{traced.stderr}")
    events = read_events(record.read_text(), folder)
    record.unlink()
    return events


def main():
    binary = pathlib.Path(sys.argv[1]).resolve() / "bin/fullbore_tiny"
    if shutil.which("strace") is None:
        print("not run: no strace")
        return 77
    if subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], check=False).returncode != 0:
        print("not run: strace may not trace here")
        return 77
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        environment = {**os.environ, "FULLBORE_CACHE": f"{folder}/cache",
                       # Leak checking is itself a tracer.
                       "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        (folder / "text.txt").write_text("the sea is calm tonight. " * 100)
        (folder / "job.yaml").write_text(JOB)
        commands = {
            "train": [binary, "train", "job.yaml", "data.path=text.txt", "run.dir=run"],
            "tokenize": [binary, "data", "tokenize", "text.txt", "--out", "text.tokens"],
        }
        # FILES by name, COMMANDS by what they do, and what is to be run before.
        for part in gathered.parts("durable_calls").values():
            for file, text in part.FILES.items():
                (folder / file).write_text(text)
            for words in getattr(part, "BEFORE", []):
                subprocess.run([binary, *words], cwd=folder, env=environment, check=True, capture_output=True)
            commands |= {what: [binary, *words] for what, words in part.COMMANDS.items()}
        for what, command in commands.items():
            events = trace_of(command, folder, environment)
            failures += [f"{what}: {complaint}" for complaint in judge(events)]
            syncs = [i for i, event in enumerate(events) if event.call == "sync" and is_watched(event.paths[0])]
            if not syncs:
                failures.append(f"{what}: nothing was synced")
            # Every sync of a file, and of the folder of checkpoints, is needed; of those of other folders and of
            # metrics.jsonl all together, for a later one does for an earlier.
            groups = {}
            for i in syncs:
                path = events[i].paths[0]
                single = path.endswith("/checkpoints") or not (os.path.isdir(path) or path.endswith("/metrics.jsonl"))
                groups.setdefault(f"{i} {path}" if single else kind(path, folder), set()).add(i)
            for group, members in groups.items():
                if not judge([event for i, event in enumerate(events) if i not in members]):
                    failures.append(f"{what}: without fsync {group} the rules see nothing wrong")
            print(f"{what}: {len(events)} calls, {len(syncs)} syncs in {len(groups)} groups")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
