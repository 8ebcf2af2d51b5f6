#!/usr/bin/env python3
"""Packs the command (tools/pack) and runs it where there is nothing else: in an empty root, by a link, from any folder.

usage: packed_command.py BUILD_FOLDER

Exit code 77, with the reason: this user may not change roots, not even in a namespace of their own.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ["train.steps=4", "train.batch_size=4", "model.layers=1", "model.width=16", "model.heads=2", "model.context=16",
         "train.eval_interval=4", "engine.device=cpu", "engine.threads=2"]
PLACES = "/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": "/nowhere", "FULLBORE_CACHE": "/cache", "HOME": "/home"}


def run(*command, code=0, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != code:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}, not {code}:\n{done.stdout}")
    return done.stdout


def check(condition, message):
    if not condition:
        sys.exit(message)


def way_into(root):
    """The words before a command that is to see `root` as all there is; None if there are none."""
    chroot = shutil.which("chroot", path=PLACES)
    ways = [[chroot, root], [shutil.which("unshare", path=PLACES), "--map-root-user", chroot, root]]
    for way in ways if os.geteuid() == 0 else ways[1:]:
        if subprocess.run([*way, "/fullbore/fullbore", "--version"], capture_output=True, env=ENVIRONMENT).returncode == 0:
            return way
    return None


def in_an_empty_root(folder, root):
    way = way_into(root)
    if way is None:
        # Told apart from a command that does not run.
        run(folder / "fullbore", "--version")
        allowed = subprocess.run(["unshare", "--map-root-user", "true"], capture_output=True).returncode == 0
        check(os.geteuid() != 0 and not allowed, "the packed command does not run in an empty root")
        print("this user may not change roots: the packed command was run outside of one alone")
        sys.exit(77)
    (root / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 400)
    for name in ("home", "cache", "tmp", "dev"):
        (root / name).mkdir()
    said = run(*way, "/fullbore/fullbore", "train", "/fullbore/configs/default.yaml", "data.path=/text.txt", *SMALL, "run.dir=/run",
               env=ENVIRONMENT)
    check("4/4" in said or "step 4" in said, f"it did not train:\n{said}")
    summary = json.loads((root / "run/summary.json").read_text())
    check(summary["status"] == "completed" and "fallbacks" not in summary, f"summary: {summary}")
    said = run(*way, "/fullbore/fullbore", "generate", "/run", "--tokens", "8", env=ENVIRONMENT)
    check(len(said) >= 8, f"it generated '{said}'")
    said = run(*way, "/fullbore/fullbore", "train", "/nowhere.yaml", code=2, env=ENVIRONMENT)
    check("/nowhere.yaml" in said, said)


def elsewhere(folder, scratch):
    """By a link and through PATH; what it starts itself is itself."""
    link = scratch / "programs/fullbore"
    link.parent.mkdir()
    link.symlink_to(folder / "fullbore")
    environment = {"PATH": str(link.parent), "FULLBORE_CACHE": str(scratch / "cache"), "HOME": str(scratch)}
    own = run("/bin/sh", "-c", "fullbore --version", env=environment, cwd=scratch)
    check(own.startswith("fullbore "), own)
    told = subprocess.run(["/bin/sh", "-c", "command -v fullbore >/dev/null && exec fullbore nonsense"], capture_output=True, text=True,
                          env=environment)
    check(told.returncode == 2 and "nonsense" in told.stderr, f"{told}")
    check("lib/loader" not in told.stderr, "it shows people how it was started")
    (scratch / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 400)
    # The start is measured by processes of its own.
    said = run(folder / "fullbore", "bench", folder / "configs/default.yaml", f"data.path={scratch}/text.txt", *SMALL, "--steps", "2",
               env=environment, cwd=scratch)
    check("start" in said, said)


def main():
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        root = scratch / "root"
        root.mkdir()
        # A program of the build beside its command: one that every build has.
        also = shutil.copy2(build / "bin/fullbore", build / "bin/packed_also")
        try:
            run(sys.executable, ROOT / "tools/pack", "--build", build, "--output", "", "--folder", root / "fullbore", "--also",
                "packed_also")
        finally:
            pathlib.Path(also).unlink()
        said = run(root / "fullbore/packed_also", "--version")
        check(said.startswith("fullbore "), said)
        (root / "fullbore/packed_also").unlink()
        said = run(sys.executable, ROOT / "tools/pack", "--build", build, "--output", "", "--folder", root / "other", "--also", "nothing",
                   code=3)
        check("nothing" in said, said)
        said = run(sys.executable, ROOT / "tools/pack", "--build", build, "--output", "", "--folder", root / "fullbore", code=2)
        check("exists" in said, said)
        elsewhere(root / "fullbore", scratch)
        in_an_empty_root(root / "fullbore", root)
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
