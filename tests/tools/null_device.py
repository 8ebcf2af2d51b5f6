#!/usr/bin/env python3
"""Whole training steps of every configuration on the device `null`, whose addresses fault when they are followed: whoever
touches a device's memory from outside ends with a signal.

usage: null_device.py FULLBORE
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "support"))
import gathered
import two_builds


def arguments(config):
    kinds = [] if config.stem in two_builds.MADE_UP else ["--vocabulary", "65"]
    return [config, *two_builds.SMALLER.get(config.stem, []), *kinds]


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    failed = []
    absent = gathered.absent_workloads()
    configs = [path for path in sorted((ROOT / "configs").glob("*.yaml")) if not gathered.leads_to_absent(path)]
    with tempfile.TemporaryDirectory() as folder:
        figures = pathlib.Path(folder) / "figures.json"
        environment = {**os.environ, "FULLBORE_CACHE": str(pathlib.Path(folder) / "cache")}
        for config in configs:
            done = subprocess.run([binary, "bench", *arguments(config), "engine.device=null", "--no-start", "--rounds", "3",
                                   "--steps", "1", "--warm-up", "1", "--json", figures],
                                  env=environment, capture_output=True, text=True)
            if done.returncode == 2 and absent:
                print(f"{config.name} needs {', '.join(absent)}: {done.stderr.strip()}")
            elif done.returncode != 0:
                failed.append(f"{config.name}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
            elif json.loads(figures.read_text())["contenders"][0]["launches"] < 10:
                failed.append(f"{config.name}: hardly a step")
    if failed or not configs:
        sys.exit("\n".join(failed) or "no configurations")


main()
