#!/usr/bin/env python3
"""Holds `fullbore chess` to the Python package chess (written with 1.11.2): perft lists and random positions.

    python3 workloads/chess/tests/golden/compare_python_chess.py FULLBORE [--positions N] [--games N] [--seed N]
                                                                 [--perft CHESS_SOURCE] [--most-leaves N]

Random positions are those of games in which either side plays any legal move, from the start or from random endgames,
to the end by the automatic rules: legal moves by their texts, FEN in the three en passant conventions, check, how the
game stands, and both claims must be the same. Half of the games are handed over as their moves, so that repetitions
are seen. With --games as many random games are written as PGN by it, with comments, variations, NAGs and clocks, and read
by `chess games`: tags, moves, their notation and the last position must be the same. With --perft all counts of tricky.perft and random.perft up to --most-leaves are compared, and the published
counts that are too large for test_legal_moves.cpp.
Prints what was compared; exit code 1 with the first differences.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import chess
import chess.pgn

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


def random_game(draw):
    game = chess.pgn.Game()
    game.headers["White"] = draw.choice(["Ann", 'B "C" \\ D', "Zoë"])
    board = game.board()
    if draw.random() < 0.3:
        board = endgame(draw)
        game.setup(board)
    node = game
    while not board.is_game_over() and board.ply() < 160:
        if draw.random() < 0.1:
            aside = node.add_variation(draw.choice(list(board.legal_moves)), comment="aside )( ;")
            if not aside.board().is_game_over():
                aside.add_variation(draw.choice(list(aside.board().legal_moves)))
        node = node.add_main_variation(draw.choice(list(board.legal_moves)))
        board.push(node.move)
        if draw.random() < 0.2:
            node.nags.add(draw.randint(1, 20))
            node.comment = draw.choice(["good", "[%emt 0:00:02] so so", "1. e4 (?!"])
            node.set_clock(draw.randint(0, 7200))
    game.headers["Result"] = board.result()
    return game


def compare_games(binary, count, seed):
    draw, wrong, half_moves = random.Random(seed), [], 0
    games = [random_game(draw) for _ in range(count)]
    with tempfile.NamedTemporaryFile("w", suffix=".pgn", encoding="utf-8") as file:
        file.write("\n\n".join(map(str, games)) + "\n")
        file.flush()
        answers = command(binary, ["games", "--json", file.name], [])
    for game, answer in zip(games, answers, strict=True):
        got, board, san = json.loads(answer), game.board(), []
        start = board.fen(en_passant="legal")
        for move in game.mainline_moves():
            san.append(board.san(move))
            board.push(move)
        want = {"tags": dict(game.headers), "start": start, "san": san, "result": game.headers["Result"],
                "moves": [move.uci() for move in game.mainline_moves()], "end": board.fen(en_passant="legal")}
        half_moves += len(san)
        if {key: got.get(key) for key in want} != want or "problem" in got:
            wrong.append(f"{game}: {got}")
    return wrong, half_moves


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
    parser.add_argument("--games", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--perft", default="")
    parser.add_argument("--most-leaves", type=int, default=5_000_000)
    arguments = parser.parse_args()
    wrong, seen = compare_positions(arguments.binary, arguments.positions, arguments.seed)
    print(f"chess {chess.__version__}: {arguments.positions} random positions, seed {arguments.seed}: "
          f"{len(wrong)} differences; {seen}")
    if arguments.games:
        more, half_moves = compare_games(arguments.binary, arguments.games, arguments.seed)
        print(f"{arguments.games} games of {half_moves} half-moves as PGN: {len(more)} differences")
        wrong += more
    if arguments.perft:
        more, compared, leaves = compare_perft(arguments.binary, arguments.perft, arguments.most_leaves)
        print(f"published counts, tricky.perft, random.perft: {compared} counts, {leaves} leaves: {len(more)} differences")
        wrong += more
    for text in wrong[:10]:
        print(text[:1000])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
