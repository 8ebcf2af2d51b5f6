"""The code of docs/guide/own-model.md is that of the examples, which installed_example.py builds and runs."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Tutorial(unittest.TestCase):
    def test_every_block_is_in_the_example(self):
        source = "".join((ROOT / f"examples/{name}/{name}.cpp").read_text() for name in ("spiral", "points", "own_kernel", "table"))
        regions = dict(re.findall(r"// \[(\w+)\]\n(.*?)// \[end\]", source, re.S))
        text = (ROOT / "docs/guide/own-model.md").read_text()
        blocks = re.findall(r"```cpp\n(.*?)```", text, re.S)
        self.assertTrue(regions)
        for block in blocks:
            self.assertIn(block, regions.values())
        self.assertEqual(len(blocks), len(regions), "regions that the page leaves out")


if __name__ == "__main__":
    unittest.main()
