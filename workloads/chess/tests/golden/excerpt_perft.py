#!/usr/bin/env python3
"""Writes perft.txt: positions and their numbers of leaves, "FEN;depth count;depth count...".

    python3 workloads/chess/tests/golden/excerpt_perft.py CHESS_SOURCE > workloads/chess/tests/golden/perft.txt

CHESS_SOURCE: the unpacked source of the Python package chess (`pip download --no-binary :all: --no-deps chess`), whose
examples/perft/ has tricky.perft, of which all positions are taken, and random.perft, of which every 250th is. Counts
above a million leaves are left out: compare_python_chess.py compares all of both lists. Both leave out positions whose
castling rights are those of Chess960, kings or rooks not at home.
"""
import pathlib
import sys


def at_home(fen):
    """Do the castling rights belong to kings and rooks on their squares?"""
    board, _, rights = fen.split()[:3]
    ranks = ["".join("." * int(c) if c.isdigit() else c for c in rank) for rank in board.split("/")]
    home = {"K": (7, 7, "R"), "Q": (7, 0, "R"), "k": (0, 7, "r"), "q": (0, 0, "r")}
    return all(ranks[home[right][0]][4] == "Kk"[right.islower()] and ranks[home[right][0]][home[right][1]] == home[right][2]
               for right in rights if right != "-")


def positions(path):
    """(FEN with six fields, {depth: count}) of a .perft file."""
    found = []
    for line in path.read_text().splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "epd":
            found.append((rest.strip() + " 0 1" * (len(rest.split()) == 4), {}))
        elif word == "perft":
            depth, count = rest.split()
            found[-1][1][int(depth)] = int(count)
    return [each for each in found if at_home(each[0])]


def main():
    folder = pathlib.Path(sys.argv[1]) / "examples" / "perft"
    chosen = positions(folder / "tricky.perft") + positions(folder / "random.perft")[::250]
    for fen, counts in chosen:
        small = [f"{depth} {count}" for depth, count in sorted(counts.items()) if count <= 1_000_000]
        print(";".join([fen, *small]))


if __name__ == "__main__":
    main()
