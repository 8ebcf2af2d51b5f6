#!/usr/bin/env python3
"""Holds `fullbore chess` to the Python package chess (written with 1.11.2): perft lists and random positions.

    python3 workloads/chess/tests/golden/compare_python_chess.py FULLBORE [--positions N] [--seed N] [--perft CHESS_SOURCE]
                                                                 [--most-leaves N]

Random positions are those of games in which either side plays any legal move, from the start or from random endgames,
to the end by the automatic rules: legal moves by their texts, FEN in the three en passant conventions, check, how the
game stands, and both claims must be the same. Half of the games are handed over as their moves, so that repetitions
are seen. With --perft all counts of tricky.perft and random.perft up to --most-leaves are compared, and the published
counts that are too large for test_legal_moves.cpp.
Prints what was compared; exit code 1 with the first differences.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys

import chess

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from excerpt_perft import positions

NAMES = {chess.Termination.CHECKMATE: "checkmate", chess.Termination.STALEMATE: "stalemate",
         chess.Termination.INSUFFICIENT_MATERIAL: "insufficient material",
         chess.Termination.SEVENTYFIVE_MOVES: "75 moves",
         chess.Termination.FIVEFOLD_REPETITION: "fivefold repetition"}

PUBLISHED = [("start", 6, 119060324),
             ("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", 5, 193690690),
             ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", 6, 11030083),
             ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", 5, 15833292),
             ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", 5, 89941194),
             ("r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10", 5, 164075551)]


def endgame(draw):
    """A valid position of kings and one to five further pieces, some of them close to the 50- and 75-move rules."""
    while True:
        board = chess.Board(None)
        squares = draw.sample(range(64), 2 + draw.randint(1, 5))
        board.set_piece_at(squares[0], chess.Piece(chess.KING, True))
        board.set_piece_at(squares[1], chess.Piece(chess.KING, False))
        for square in squares[2:]:
            board.set_piece_at(square, chess.Piece(draw.choice([1, 2, 3, 3, 4, 5]), draw.random() < 0.5))
        board.turn = draw.random() < 0.5
        board.halfmove_clock = draw.choice([0, 0, 90, 140])
        board.fullmove_number = 80
        if board.is_valid():
            return board


def expected(board):
    outcome = board.outcome()
    return {"moves": sorted(move.uci() for move in board.legal_moves), "check": board.is_check(),
            "result": NAMES[outcome.termination] if outcome else "ongoing",
            "fifty_moves": board.is_fifty_moves(), "threefold_repetition": board.is_repetition(3)}


def games(count, draw):
    """(line for `chess moves -`, board) of `count` positions."""
    made = 0
    while made < count:
        board = chess.Board() if draw.random() < 0.6 else endgame(draw)
        as_moves = draw.random() < 0.5
        start = board.fen(en_passant="fen")
        shuffling = draw.random() < 0.2  # little but moves to and fro: repetitions
        line = start
        while made < count:
            yield (line if as_moves else board.fen(en_passant="fen")), board, as_moves
            made += 1
            if board.is_game_over() or len(board.move_stack) > 300:
                break
            moves = list(board.legal_moves)
            move = draw.choice(moves)
            if shuffling and len(board.move_stack) > 1 and draw.random() < 0.9:
                back = board.move_stack[-2]
                back = chess.Move(back.to_square, back.from_square)
                move = back if back in moves else move
            board.push(move)
            line += " " + move.uci()


def command(binary, arguments, lines):
    done = subprocess.run([binary, "chess", *arguments], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"{arguments}: exit code {done.returncode}: {done.stderr}")
    return done.stdout.splitlines()


def compare_positions(binary, count, seed):
    """What differs, as texts, and how often each result was seen."""
    draw, wrong, seen = random.Random(seed), [], {}
    done = 0
    while done < count:
        lines, alone, wanted, fens = [], [], [], {"legal": [], "pseudo": [], "always": []}
        for line, board, as_moves in games(min(20_000, count - done), draw):
            lines.append(line)
            want = expected(board if as_moves else chess.Board(board.fen(en_passant="fen")))
            wanted.append(want)
            seen[want["result"]] = seen.get(want["result"], 0) + 1
            for claim in ("fifty_moves", "threefold_repetition"):
                seen[claim] = seen.get(claim, 0) + want[claim]
            alone.append(board.fen(en_passant="fen"))
            for name, python_name in (("legal", "legal"), ("pseudo", "xfen"), ("always", "fen")):
                fens[name].append(board.fen(en_passant=python_name))
        for line, fen, want, answer in zip(lines, fens["legal"], wanted, command(binary, ["moves", "-"], lines), strict=True):
            got = json.loads(answer)
            if got != want | {"fen": fen}:
                wrong.append(f"{line}: {got} in place of {want}")
        for name, texts in fens.items():
            for text, answer in zip(texts, command(binary, ["fen", "--ep", name], alone), strict=True):
                if text != answer:
                    wrong.append(f"--ep {name}: {answer} in place of {text}")
        done += len(lines)
        print(f"{done} positions, {len(wrong)} differences", file=sys.stderr, flush=True)
    return wrong, seen


def compare_perft(binary, source, most):
    folder = pathlib.Path(source) / "examples" / "perft"
    tries = list(PUBLISHED)
    for name in ("tricky.perft", "random.perft"):
        for fen, counts in positions(folder / name):
            tries += [(fen, depth, count) for depth, count in counts.items() if count <= most]
    wrong, leaves = [], 0
    for fen, depth, count in tries:
        done = subprocess.run([binary, "chess", "perft", fen, str(depth), "--json"], capture_output=True, text=True)
        got = json.loads(done.stdout)["nodes"] if done.returncode == 0 else done.stderr
        if got != count:
            wrong.append(f"perft {depth} of {fen}: {got} in place of {count}")
        leaves += count
    return wrong, len(tries), leaves


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--positions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--perft", default="")
    parser.add_argument("--most-leaves", type=int, default=5_000_000)
    arguments = parser.parse_args()
    wrong, seen = compare_positions(arguments.binary, arguments.positions, arguments.seed)
    print(f"chess {chess.__version__}: {arguments.positions} random positions, seed {arguments.seed}: "
          f"{len(wrong)} differences; {seen}")
    if arguments.perft:
        more, compared, leaves = compare_perft(arguments.binary, arguments.perft, arguments.most_leaves)
        print(f"published counts, tricky.perft, random.perft: {compared} counts, {leaves} leaves: {len(more)} differences")
        wrong += more
    for text in wrong[:10]:
        print(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
