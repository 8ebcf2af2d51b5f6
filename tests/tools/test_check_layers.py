"""tools/check_layers must reject what LAYERS forbids: each case is a small tree with one include in it."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import tool

check_layers = tool.load("check_layers")

LAYERS = """
0  base          # comment
1  ir
3  passes device device/kernel_ir
4  plan device/cpu device/null
7  train
8  /workloads/*
only  device/cpu  llvm/* dnnl*
"""
FILES = [
    "fullbore/base/text.h", "fullbore/ir/graph.h", "fullbore/passes/fusion/fuse.h", "fullbore/device/device.h",
    "fullbore/device/cpu/jit.h", "fullbore/device/null/null.h", "fullbore/device/kernel_ir/ir.h", "fullbore/plan/plan.h",
    "fullbore/train/loop.h", "workloads/one/model.h", "workloads/other/model.h",
]


class CheckLayers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for name in FILES:
            self.write(name, "#pragma once\n")
        self.write("fullbore/LAYERS", LAYERS)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def violations(self, name, line):
        self.write(name, "#pragma once\n" + line + "\n")
        return check_layers.check(self.root)[0]

    def test_a_clean_tree_has_no_violation(self):
        self.assertEqual(check_layers.check(self.root), ([], len(FILES)))

    def test_allowed(self):
        for name, line in [
            ("fullbore/ir/a.h", '#include "fullbore/ir/graph.h"'),                   # its own files
            ("fullbore/plan/a.h", '#include "fullbore/device/device.h"'),          # a lower floor
            ("fullbore/device/cpu/a.h", '#include "fullbore/device/device.h"'),    # the room around it
            ("fullbore/device/cpu/a.h", '#include "fullbore/device/kernel_ir/ir.h"'),  # beside it, on a lower floor
            ("fullbore/device/cpu/a.cpp", '#include "llvm/IR/IRBuilder.h"'),
            ("fullbore/device/cpu/a.cpp", "#include <dnnl.hpp>"),
            ("workloads/one/a.cpp", '#include "fullbore/ir/graph.h"'),
            ("workloads/one/inner/a.cpp", '#include "workloads/one/model.h"'),
            ("workloads/one/tests/a.cpp", '#include "fullbore/device/cpu/jit.h"'),      # tests see anything
            ("fullbore/base/a.cpp", "#include <vector>"),
            ("fullbore/base/a.cpp", '// #include "fullbore/ir/graph.h"'),
        ]:
            with self.subTest(line=line, file=name):
                self.assertEqual(self.violations(name, line), [])

    def test_forbidden(self):
        for name, line, reason in [
            ("fullbore/base/a.h", '#include "fullbore/ir/graph.h"', "above it on floor 1"),
            ("fullbore/base/a.h", '  #  include <fullbore/ir/graph.h>', "above it on floor 1"),
            ("fullbore/passes/a.h", '#include "fullbore/device/device.h"', "neighbours on floor 3"),
            ("fullbore/train/a.h", '#include "workloads/one/model.h"', "above it on floor 8"),
            ("workloads/one/a.h", '#include "workloads/other/model.h"', "neighbours on floor 8"),
            ("fullbore/device/null/a.h", '#include "fullbore/device/cpu/jit.h"', "neighbours on floor 4"),
            ("fullbore/device/kernel_ir/a.h", '#include "fullbore/device/cpu/jit.h"', "above it on floor 4"),
            ("fullbore/plan/a.h", '#include "fullbore/device/kernel_ir/ir.h"', "private to its own files"),
            ("fullbore/plan/a.h", '#include "fullbore/device/cpu/jit.h"', "private to its own files"),
            ("fullbore/device/a.h", '#include "fullbore/device/cpu/jit.h"', "private to its own files"),
            ("fullbore/plan/a.cpp", "#include <llvm/IR/IRBuilder.h>", "for fullbore/device/cpu alone"),
            ("fullbore/device/a.cpp", '#include "dnnl.hpp"', "for fullbore/device/cpu alone"),
            ("fullbore/ir/a.cpp", '#include "graph.h"', "from the repository root"),
            ("fullbore/ir/a.cpp", '#include "../base/text.h"', "from the repository root"),
            ("fullbore/ir/a.cpp", '#include "fullbore/ir/../plan/plan.h"', 'climbs with ".."'),
            ("fullbore/ir/a.cpp", '#include "fullbore/ir/missing.h"', "does not exist"),
            ("fullbore/garage/a.cpp", "", "no floor"),
        ]:
            with self.subTest(line=line, file=name):
                found = self.violations(name, line)
                (self.root / name).unlink()
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(name + ":"), found[0])
                self.assertIn(reason, found[0])

    def test_the_line_is_named(self):
        self.assertRegex(self.violations("fullbore/base/a.h", '#include "fullbore/ir/graph.h"')[0],
                         r"^fullbore/base/a\.h:2: ")

    def test_malformed_layers(self):
        for text, reason in [("zero base", "LAYERS:1"), ("0 base\n1 base", "floor already"), ("7", "LAYERS:1"),
                             ("0 base\nonly ir llvm/*", "has no floor")]:
            with self.subTest(text=text):
                with self.assertRaisesRegex(check_layers.LayersError, reason):
                    check_layers.Layers(text)

    def test_exit_codes(self):
        def run():
            command = [sys.executable, str(tool.ROOT / "tools" / "check_layers"), str(self.root)]
            return subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(run().returncode, 0)
        self.write("fullbore/base/a.h", '#include "fullbore/ir/graph.h"\n')
        result = run()
        self.assertEqual(result.returncode, 1)
        self.assertIn("fullbore/base/a.h:1:", result.stdout)
        self.write("fullbore/LAYERS", "nonsense")
        self.assertEqual(run().returncode, 2)


if __name__ == "__main__":
    unittest.main()
