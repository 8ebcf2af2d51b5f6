"""tools/make_terminal must draw what a screen shows, with its colours, and take the screen of a command that runs."""

import pathlib
import shutil
import tempfile
import unittest

import tool

make_terminal = tool.load("make_terminal")


class MakeTerminal(unittest.TestCase):
    def test_parts_have_their_colours_and_places(self):
        parts = make_terminal.runs("a \x1b[1;32mb\x1b[22m c\x1b[39m\x1b[2md\x1b[0me")
        green, text = make_terminal.COLOURS[32], make_terminal.TEXT
        self.assertEqual(parts, [("a ", text, False, False), ("b", green, True, False), (" c", green, False, False),
                                 ("d", text, False, True), ("e", text, False, False)])
        svg = make_terminal.draw("ab\x1b[31m  <c  d>\x1b[0m\n\n", 10)
        x = make_terminal.MARGIN + 4 * make_terminal.WIDTH
        self.assertIn(f'x="{x:.1f}"', svg)
        self.assertIn(f'fill="{make_terminal.COLOURS[31]}"', svg)
        self.assertIn("&lt;c\u00a0\u00a0d&gt;</text>", svg)

    @unittest.skipUnless(shutil.which("tmux"), "tmux is missing")
    def test_a_command_is_run(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "screen.svg"
            self.assertEqual(make_terminal.main(["-o", str(file), "--lines", "5", "--limit", "30", "echo $((40 + 2)) apples"]), 0)
            self.assertIn("42\u00a0apples</text>", file.read_text())
            self.assertIn("echo", file.read_text())


if __name__ == "__main__":
    unittest.main()
