#!/usr/bin/env python3
"""The table of fullbore/backend/cpu/vector_math_erf.cpp: erf((i + f) / 4) for 0 <= f < 1 and i = 0 to 15 as polynomials
of degree 5 in f.

Each is fitted for its relative error (least squares, reweighted towards the largest errors). Coefficients are rounded to
f32 one by one, from the constant one on, and those after it fitted anew to what is left, so that roundings of the first do
not stay. Prints the rows c0 to c5 as C++, and the largest error in units of the last place of an evaluation in f32 with
fused multiply-adds: c1 f + (f^2 (c2 + f (c3 + f (c4 + f c5))) + c0).

    python3 tools/golden/erf_table.py        # needs numpy
"""
import math

import numpy as np

PIECES = 16
SCALE = 4
DEGREE = 5
erf = np.vectorize(math.erf)


def fit(piece):
    f = (1 - np.cos(np.pi * (np.arange(400) + 0.5) / 400)) / 2
    exact = erf((piece + f) / SCALE)
    relative = 1 / exact
    coefficients = [] if piece else [0.0]
    rest = exact.copy()
    for k in range(len(coefficients), DEGREE + 1):
        powers = np.stack([f**j for j in range(k, DEGREE + 1)], axis=1)
        weights = relative.copy()
        for _ in range(30):
            c = np.linalg.lstsq(powers * weights[:, None], rest * weights, rcond=None)[0]
            error = np.abs((powers @ c - rest) * relative)
            weights *= np.sqrt(0.5 + error / error.max())
        coefficients.append(float(np.float32(c[0])))
        rest -= coefficients[-1] * f**k
    return coefficients


def fma(a, b, c):
    return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float32)


def evaluate(table, x):
    largest = np.nextafter(np.float32(PIECES), np.float32(0))
    t = np.minimum(x * np.float32(SCALE), largest)
    piece = np.floor(t).astype(int)
    f = (t - np.floor(t)).astype(np.float32)
    c = table[piece]
    high = fma(fma(fma(c[:, 5], f, c[:, 4]), f, c[:, 3]), f, c[:, 2])
    return fma(c[:, 1], f, fma(f * f, high, c[:, 0]))


def main():
    table = np.array([fit(piece) for piece in range(PIECES)], dtype=np.float32)
    for row in table.T:
        print("{" + ", ".join(f"{value:.9g}F" for value in row) + "},")
    x = np.concatenate([np.linspace(0, 4.5, 1500001)[1:], 10 ** np.random.default_rng(0).uniform(-6, 0, 500000)])
    x = x.astype(np.float32)
    exact = erf(x.astype(np.float64))
    error = np.abs(evaluate(table, x) - exact) / np.spacing(exact.astype(np.float32))
    print(f"largest error {error.max():.2f} ulps at {x[error.argmax()]:.9g}")


if __name__ == "__main__":
    main()
