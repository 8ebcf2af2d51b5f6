#!/usr/bin/env python3
"""The tables of fullbore/device/codegen/vector_math_erf.cpp: erf((i + f) / 4) for 0 <= f < 1 and i = 0 to 15 as polynomials
of degree 5 in f, and erf((i + f) / 2) for i = 0 to 7 of degree 7.

Each is fitted for its relative error (least squares, reweighted towards the largest errors). Coefficients are rounded to
f32 one by one, from the constant one on, and those after it fitted anew to what is left, so that roundings of the first do
not stay. Prints the rows c0, c1, ... as C++, and the largest error in units of the last place of an evaluation in f32 with
fused multiply-adds: c1 f + (f^2 (c2 + f (c3 + ...)) + c0).

    python3 tools/golden/erf_table.py        # needs numpy
"""
import math

import numpy as np

erf = np.vectorize(math.erf)


def fit(piece, scale, degree):
    f = (1 - np.cos(np.pi * (np.arange(400) + 0.5) / 400)) / 2
    exact = erf((piece + f) / scale)
    relative = 1 / exact
    coefficients = [] if piece else [0.0]
    rest = exact.copy()
    for k in range(len(coefficients), degree + 1):
        powers = np.stack([f**j for j in range(k, degree + 1)], axis=1)
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


def evaluate(table, scale, x):
    largest = np.nextafter(np.float32(len(table)), np.float32(0))
    t = np.minimum(x * np.float32(scale), largest)
    piece = np.floor(t).astype(int)
    f = (t - np.floor(t)).astype(np.float32)
    c = table[piece]
    high = c[:, -1]
    for k in range(c.shape[1] - 2, 1, -1):
        high = fma(high, f, c[:, k])
    return fma(c[:, 1], f, fma(f * f, high, c[:, 0]))


def main():
    x = np.concatenate([np.linspace(0, 4.5, 1500001)[1:], 10 ** np.random.default_rng(0).uniform(-6, 0, 500000)])
    x = x.astype(np.float32)
    exact = erf(x.astype(np.float64))
    for pieces, degree in ((16, 5), (8, 7)):
        scale = pieces // 4
        table = np.array([fit(piece, scale, degree) for piece in range(pieces)], dtype=np.float32)
        for row in table.T:
            print("{" + ", ".join(f"{value:.9g}F" for value in row) + "},")
        error = np.abs(evaluate(table, scale, x) - exact) / np.spacing(exact.astype(np.float32))
        print(f"largest error {error.max():.2f} ulps at {x[error.argmax()]:.9g}")


if __name__ == "__main__":
    main()
