"""What campaigns that compare two builds, and tests, share: the jobs, one for each file in configs/, small enough to repeat."""

import os
import pathlib
import random
import subprocess
import sys
import tempfile

import gathered


def collected(name):
    """What workloads/*/tests/parts/two_builds.py say of their configurations:

    SMALLER   settings of those that are large: the same on both sides, in keys that no version has renamed
    MADE_UP   those whose examples are made up: they read no text
    NO_TEXT   those whose models continue no text
    """
    return [getattr(part, name) for part in gathered.parts("two_builds").values() if hasattr(part, name)]


SMALLER = {config: settings for each in collected("SMALLER") for config, settings in each.items()}
MADE_UP = {config for each in collected("MADE_UP") for config in each}
NO_TEXT = {config for each in collected("NO_TEXT") for config in each}


def write_text(path):
    """A novel of 200 KB with characters enough for every configuration; the same one each time."""
    draws = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    words = ["".join(draws.choice(letters) for _ in range(draws.randint(1, 9))) for _ in range(400)]
    lines = [" ".join(draws.choice(words) for _ in range(9)) + ".\n" for _ in range(4000)]
    path.write_text("".join(lines))


class Build:
    """A binary, BUILD/bin/fullbore, and the configurations of the tree in which it was built: each version reads its own."""

    def __init__(self, context, name, folder):
        given = context.setting(name, "")
        self.name = name
        self.binary = pathlib.Path(given).resolve() if given else context.build / "bin" / "fullbore"
        if not self.binary.is_file():
            raise context.skip(f"{name}={self.binary} is no binary")
        configs = context.setting(f"{name}_configs", "")
        # TREE/build/PRESET/bin/fullbore
        self.configs = pathlib.Path(configs) if configs else self.binary.parents[3] / "configs"
        self.folder = folder / name
        self.folder.mkdir()
        self.environment = dict(os.environ, FULLBORE_CACHE=str(self.folder / "cache"))

    def version(self):
        return self.run("--version").strip()

    def run(self, *arguments):
        return self.output(self.start(*arguments))

    def start(self, *arguments):
        """A process. What it writes goes to files, `written`: it waits for no reader."""
        written = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        process = subprocess.Popen([self.binary, *arguments], cwd=self.folder, env=self.environment, stdout=written[0],
                                   stderr=written[1])
        process.written = written
        return process

    def output(self, process):
        """What it wrote, once it has ended."""
        process.wait()
        for file in process.written:
            file.seek(0)
        output, errors = (file.read() for file in process.written)
        for file in process.written:
            file.close()
        if process.returncode != 0:
            raise RuntimeError(f"{self.name}: {' '.join(map(str, process.args[1:]))}: exit code {process.returncode}: "
                               f"{errors.strip()[-400:]}")
        return output

    def job(self, name, text):
        """Arguments behind the command's name."""
        config = self.configs / f"{name}.yaml"
        arguments = [config, *SMALLER.get(name, [])]
        if name not in MADE_UP:
            arguments.append(f"data.path={text}")
        return arguments


def configurations(context, *builds):
    """Names of those that every build has, or those that the setting `configs` names."""
    asked = context.setting("configs", "")
    if asked:
        return asked.split(",")
    return sorted(set.intersection(*({path.stem for path in build.configs.glob("*.yaml")} for build in builds)))
