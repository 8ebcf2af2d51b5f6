#!/usr/bin/env python3
"""Tests of bench/peers/installed_size: packages of an apt that only pretends, a made-up virtual environment."""
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("installed_size", str(ROOT / "bench/peers/installed_size"))
sizes = importlib.util.module_from_spec(importlib.util.spec_from_loader("installed_size", LOADER))
LOADER.exec_module(sizes)

LISTS = """Package: base
Essential: yes
Installed-Size: 7
Size: 1

Package: libc
Priority: required
Installed-Size: 9
Size: 2
Description: a library
 that goes on: and on

Package: compiler
Installed-Size: 300
Size: 50

Package: apt
Installed-Size: 1
Size: 1
"""
APT_GET = """#!/bin/sh
case "$*" in
  *compiler*) printf 'NOTE\\nInst base (1)\\nInst libc:amd64 (2 Debian)\\nInst apt (3)\\nInst compiler (4)\\nConf libc (2)\\n' ;;
  *) printf 'Inst base (1)\\nInst libc:amd64 (2 Debian)\\nInst apt (3)\\n' ;;
esac
"""


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)


class PackagesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        path = pathlib.Path(self.folder.name)
        (path / "lists").write_text(LISTS)
        executable(path / "apt-cache", f"#!/bin/sh\ncat {path}/lists\n")
        executable(path / "apt-get", APT_GET)
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{path}:{before}"
        self.addCleanup(os.environ.__setitem__, "PATH", before)
        self.apt = sizes.Apt("/dev/null")

    def test_what_a_minimal_system_has_does_not_count(self):
        self.assertEqual(self.apt.added(["compiler"]), {"compiler"})
        self.assertEqual(self.apt.installed_bytes("compiler"), 300 * 1024)
        self.assertEqual(self.apt.download_bytes("compiler"), 50)

    def test_what_apt_refuses_is_told(self):
        executable(pathlib.Path(self.folder.name) / "apt-get", "#!/bin/sh\necho 'E: no such package' >&2\nexit 100\n")
        with self.assertRaisesRegex(SystemExit, "E: no such package"):
            self.apt.added(["compilre"])

    def test_the_packages_are_those_of_setup(self):
        listed = subprocess.run([ROOT / "tools/setup.sh", "--list"], capture_output=True, text=True, check=True).stdout
        self.assertLessEqual({"build-essential", "libfmt-dev", "llvm-19-dev"}, set(listed.split()))
        self.assertNotIn("", listed.splitlines())


class EnvironmentTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.site = pathlib.Path(self.folder.name) / "lib/python3.11/site-packages"
        self.put("torch", 1000, ['nvidia-x==1; platform_system == "Linux"', "toolkit[fft,blas]", 'extra-thing; extra == "all"',
                                 "not_there"])
        self.put("nvidia_x", 70, [])
        self.put("toolkit", 5, ['fft_lib; extra == "fft"', 'other-lib; extra == "other"'])
        self.put("fft.lib", 30, ["torch"])  # a circle
        for name in ("other_lib", "extra_thing", "jax"):
            self.put(name, 10000, [])

    def put(self, name, count, requires):
        info = self.site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (self.site / f"{name}.bin").write_bytes(bytes(count))
        lines = "".join(f"Requires-Dist: {each}\n" for each in requires)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{lines}")
        (info / "RECORD").write_text(f"{name}.bin,,\ngone.bin,,\n")

    def test_only_what_torch_requires_counts(self):
        found = importlib.metadata.distributions(path=[str(self.site)])
        distributions = {sizes.name_of(each.metadata["Name"]): each for each in found}
        needed = sizes.needed_by("torch", distributions)
        self.assertEqual(needed, {"torch", "nvidia-x", "toolkit", "fft-lib"})
        self.assertEqual(sum(sizes.recorded_bytes(distributions[name]) for name in needed), 1105)

    def test_an_environment_without_torch_is_told(self):
        with self.assertRaisesRegex(SystemExit, "no PyTorch in .*; a comparison with peers makes"):
            sizes.report_torch(pathlib.Path(self.folder.name) / "elsewhere")

    def test_a_file_with_two_names_counts_once(self):
        folder = pathlib.Path(self.folder.name) / "build"
        folder.mkdir()
        empty = sizes.folder_bytes(folder)
        (folder / "a").write_bytes(bytes([1]) * 40960)
        once = sizes.folder_bytes(folder)
        os.link(folder / "a", folder / "b")
        self.assertGreater(once, empty)
        self.assertEqual(sizes.folder_bytes(folder), once)


if __name__ == "__main__":
    unittest.main()
