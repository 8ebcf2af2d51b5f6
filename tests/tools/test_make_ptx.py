"""The ready PTX of the hand-written kernels must be what tools/make_ptx makes, and the tool must see where it is not."""

import concurrent.futures
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tool

make_ptx = tool.load("make_ptx")


class MakePtx(unittest.TestCase):
    def test_the_tree_is_fresh(self):
        version = make_ptx.version_of("clang++-14")
        kernels = sorted((make_ptx.FOLDER / "kernels").glob("*.cpp"))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:  # each kernel is compiled, a minute for all of them
            faults = pool.map(lambda kernel: make_ptx.fault_of(kernel, "clang++-14", version), kernels)
            for kernel, fault in zip(kernels, faults, strict=True):
                with self.subTest(kernel=kernel.stem):
                    self.assertIsNone(fault)

    def test_other_sources_are_seen(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "kernels").mkdir()
            (folder / "ptx").mkdir()
            self.addCleanup(setattr, make_ptx, "FOLDER", make_ptx.FOLDER)
            self.addCleanup(setattr, make_ptx, "FLAGS", make_ptx.FLAGS)
            make_ptx.FOLDER, make_ptx.FLAGS = folder, folder / "kernels" / "clang.flags"
            make_ptx.FLAGS.write_text("-O3")
            kernel = folder / "kernels" / "copy.cpp"
            kernel.write_text("// a kernel\n")
            self.assertEqual(make_ptx.fault_of(kernel, "none", None), "there is none")
            ready = folder / "ptx" / "copy.ptx"
            ready.write_text(f"// tools/make_ptx: clang 1.2, sources {make_ptx.digest_of(kernel)}\n.version 7.2\n")
            self.assertIsNone(make_ptx.fault_of(kernel, "none", None))
            for changed, text in ((kernel, "// another\n"), (folder / "kernels" / "gpu.h", "int x;\n"),
                                  (make_ptx.FLAGS, "-O2")):
                before = changed.read_text() if changed.exists() else None
                changed.write_text(text)
                self.assertEqual(make_ptx.fault_of(kernel, "none", None), "it was made from other sources")
                changed.unlink() if before is None else changed.write_text(before)


if __name__ == "__main__":
    unittest.main()
