#!/usr/bin/env python3
"""Installs the build into an empty prefix, builds the programs of examples/ against it as a stranger would, and runs them.

usage: installed_example.py BUILD_FOLDER
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def check(condition, message):
    if not condition:
        sys.exit(message)


def built(prefix, folder, example):
    """The program of an example, as the package has it."""
    build = folder / example
    run("cmake", "-S", prefix / "share/fullbore/examples" / example, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", build)
    return build / example


def own_workload(prefix, folder):
    """examples/spring: keys, training, checkpoints and resuming of a workload that the tree does not know."""
    spring = built(prefix, folder, "spring")
    build = spring.parent
    there = {"cwd": build, "env": {**os.environ, "FULLBORE_CACHE": str(folder / "cache")}}
    check("how fast the spring comes to rest" in run(spring, "config", "spring.damping", **there), "config spring.damping")
    (build / "spring.yaml").write_text("model: {name: spring, channels: 16}\nspring: {damping: 0.2}\ntrain: {batch_size: 64}\n"
                                       "optim: {learning_rate: 0.01, minimum_learning_rate: 0.001}\n", encoding="utf-8")
    run(spring, "train", "spring.yaml", "run.dir=run", "train.steps=300", **there)
    run(spring, "train", "run", "--resume", "train.steps=400", **there)
    summary = json.loads((build / "run" / "summary.json").read_text(encoding="utf-8"))
    check(summary["steps"] == 400 and summary["final_validation_loss"] < 0.1, str(summary))
    check("damping: 0.2" in (build / "run" / "config.resolved.yaml").read_text(encoding="utf-8"), "config.resolved.yaml")
    check("spring" in run(spring, "plan", "spring.yaml", **there), "plan")
    for words, reason in [(["train", "spring.yaml", "spring.dampin=1"], "Did you mean 'spring.damping'?"),
                          (["train", "spring.yaml", "spring.damping=11"], "a number in [0, 10]"),
                          (["train", "spring.yaml", "model.name=other"], "model.name is 'other'"),
                          (["no-such-command"], "no-such-command")]:
        done = subprocess.run([str(spring), *words], capture_output=True, text=True, check=False, **there)
        check(done.returncode == 2 and reason in done.stderr, f"{words}: {done.returncode}: {done.stderr}")


def own_models(prefix, folder):
    """The programs of one model are made of installed headers alone; own_model_guide.py does more with examples/points, and
    test_examples with the others."""
    for example in ["points", "cnn", "graph_network", "adaptive_gru", "autoencoder", "table"]:
        program = built(prefix, folder, example)
        there = {"cwd": program.parent, "env": {**os.environ, "FULLBORE_CACHE": str(folder / "cache")}}
        check("parameters" in run(program, "plan", **there), f"{example} plan")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        prefix = folder / "prefix"
        run("cmake", "--install", build, "--prefix", prefix)

        # The prefix is moved: nothing may remember where it was.
        moved = folder / "moved"
        prefix.rename(moved)
        version = run(moved / "bin/fullbore", "--version")
        check(version.startswith("fullbore "), version)
        for page in ["man/man1/fullbore.1", "bash-completion/completions/fullbore",
                     "zsh/vendor-completions/_fullbore", "fish/vendor_completions.d/fullbore.fish",
                     *(f"fullbore/configs/{path.name}" for path in ROOT.glob("workloads/*/configs/*.yaml"))]:
            check((moved / "share" / page).stat().st_size > 0, page)

        environment = {**os.environ, "FULLBORE_CACHE": str(folder / "cache")}
        for example in ["spiral", "own_kernel"]:
            built(moved, folder, example)
        text = run(folder / "own_kernel/own_kernel", env=environment)
        check("largest error" in text, text)
        text = run(folder / "spiral/spiral", "300", env=environment)
        right = re.search(r"([\d.]+) % of new points are right", text)
        check(right and float(right[1]) > 97, text)

        # A workload of the program's own has the commands, and the installed workloads are none of its business.
        own_workload(moved, folder)
        own_models(moved, folder)

        configured = next(moved.glob("lib/**/pkgconfig"))
        flags = run("pkg-config", "--cflags", "--libs", "fullbore",
                    env={**os.environ, "PKG_CONFIG_PATH": str(configured)})
        check("-lfullbore" in flags and "-lfmt" in flags, flags)
        include = re.search(r"-I(\S+)", flags)[1]
        check((pathlib.Path(include) / "fullbore/runtime/program.h").exists(), flags)


main()
