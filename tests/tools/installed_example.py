#!/usr/bin/env python3
"""Installs the build into an empty prefix, builds the examples against it as a stranger would, and runs them.

usage: installed_example.py BUILD_FOLDER
"""

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
                     "fullbore/configs/default.yaml"]:
            check((moved / "share" / page).stat().st_size > 0, page)

        environment = {**os.environ, "FULLBORE_CACHE": str(folder / "cache")}
        for example in ["spiral", "own_kernel"]:
            run("cmake", "-S", ROOT / "examples" / example, "-B", folder / example, f"-DCMAKE_PREFIX_PATH={moved}",
                "-DCMAKE_BUILD_TYPE=Release")
            run("cmake", "--build", folder / example)
        text = run(folder / "own_kernel/own_kernel", env=environment)
        check("largest error" in text, text)
        text = run(folder / "spiral/spiral", "300", env=environment)
        right = re.search(r"([\d.]+) % of new points are right", text)
        check(right and float(right[1]) > 97, text)

        configured = next(moved.glob("lib/**/pkgconfig"))
        flags = run("pkg-config", "--cflags", "--libs", "fullbore",
                    env={**os.environ, "PKG_CONFIG_PATH": str(configured)})
        check("-lfullbore" in flags and "-lfmt" in flags, flags)
        include = re.search(r"-I(\S+)", flags)[1]
        check((pathlib.Path(include) / "fullbore/runtime/program.h").exists(), flags)


main()
