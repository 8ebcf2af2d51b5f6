"""What the exercises share that add a part to a copy of the repository, count the files that this touches, and use it."""

import difflib
import json
import os
import pathlib
import shutil
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


class Exercise:
    """A copy of the tracked files, `tree`, and the build whose libraries and tests take part, `build`."""

    def __init__(self, build, folder):
        self.build = pathlib.Path(build).resolve()
        self.folder = pathlib.Path(folder)
        self.tree = self.folder / "tree"
        names = run("git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
                    cwd=ROOT).split("\0")
        for name in filter(None, names):
            source, copy = ROOT / name, self.tree / name
            if source.is_symlink() or source.is_file():  # links as links
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy, follow_symlinks=False)
        self.before = self._files()

    def _files(self):
        return {path.relative_to(self.tree).as_posix(): path.read_bytes()
                for path in self.tree.rglob("*") if path.is_file() and not path.is_symlink()}

    def write(self, name, text):
        path = self.tree / name
        check(not path.exists(), f"{name} is there already")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def insert(self, name, before, text):
        """Text ahead of what must be in the file once."""
        path = self.tree / name
        old = path.read_text(encoding="utf-8")
        check(old.count(before) == 1, f"{name} has {old.count(before)} times: {before}")
        path.write_text(old.replace(before, text + before), encoding="utf-8")

    def touched(self):
        """Names of files that are new, or not as they were."""
        after = self._files()
        check(self.before.keys() <= after.keys(), "a file is gone")
        return sorted(name for name, text in after.items() if self.before.get(name) != text)

    def changed_lines(self, name):
        lines = difflib.ndiff(self.before[name].decode().splitlines(), (self.tree / name).read_text().splitlines())
        return sum(line.startswith("+ ") for line in lines)

    def objects(self, *targets):
        """Built in the copy, by the copy's own rules: globs, flags, warnings as errors."""
        copy_build = self.folder / "build"
        if not copy_build.exists():
            run("cmake", "-S", self.tree, "-B", copy_build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DFB_TESTS=OFF",
                "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON")
        run("cmake", "--build", copy_build, "--target", *targets)
        return [copy_build / target for target in targets]

    def library(self, name, objects):
        """A shared library that registers what the objects hold wherever it is loaded."""
        library = self.folder / name
        run("c++", "-shared", "-o", library, *objects, "-L", self.build / "lib", "-lfullbore",
            f"-Wl,-rpath,{self.build / 'lib'}")
        return library

    def program(self, name, source, *libraries):
        """Built as a user of the copy's headers would, with the build's library and others."""
        path, program = self.folder / f"{name}.cpp", self.folder / name
        path.write_text(source, encoding="utf-8")
        run("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-I", self.tree, path, "-o", program, *libraries,
            "-L", self.build / "lib", "-lfullbore", "-lfmt", f"-Wl,-rpath,{self.build / 'lib'}")
        return program

    def there(self, *preloaded):
        """Options of subprocess.run: with these libraries loaded first, and a cache of its own."""
        return {"cwd": self.folder,
                "env": {**os.environ, "LD_PRELOAD": " ".join(map(str, preloaded)), "FULLBORE_CACHE": str(self.folder / "cache"),
                        "FULLBORE_TEST_SOURCES": str(self.tree)}}

    def tests(self, name, pattern, fewest, **options):
        """Runs those of the build's tests that match; there must be that many at least."""
        results = self.folder / "results.json"
        run(self.build / "bin" / name, f"--gtest_filter={pattern}", f"--gtest_output=json:{results}", **options)
        count = json.loads(results.read_text())["tests"]
        check(count >= fewest, f"{name}: {count} tests of {pattern}")
        return count


def exercise(body):
    """main() of an exercise: usage: NAME BUILD_FOLDER."""
    with tempfile.TemporaryDirectory(prefix="fullbore_exercise_") as folder:
        print(body(Exercise(sys.argv[1], folder)))
