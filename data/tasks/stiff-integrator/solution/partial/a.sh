#!/bin/bash
# Explicit: every method is rk4.
set -euo pipefail
cat > /app/integrate.py <<'PY'
"""y' = A y + g0 + g1 t by rk4, the trapezoidal rule or BDF2."""
import json
import math
import sys


class Bad(Exception):
    pass


class Singular(Exception):
    pass


def number(x):
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        raise Bad(f"not a number: {x!r}")
    try:
        x = float(x)
    except OverflowError:
        raise Bad("number too large") from None
    if not math.isfinite(x):
        raise Bad("not finite")
    return x


def vector(x, n):
    if not isinstance(x, list) or len(x) != n:
        raise Bad(f"expected a list of {n} numbers")
    return [number(v) for v in x]


def read(text):
    try:
        p = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise Bad(f"not JSON: {e}") from None
    if not isinstance(p, dict):
        raise Bad("not an object")
    for key in ("method", "A", "g0", "g1", "y0", "t_end", "steps"):
        if key not in p:
            raise Bad(f"missing {key}")
    if p["method"] not in ("rk4", "trapezoid", "bdf2", "auto"):
        raise Bad("unknown method")
    if not isinstance(p["A"], list) or not 1 <= len(p["A"]) <= 40:
        raise Bad("A must have 1 to 40 rows")
    n = len(p["A"])
    A = [vector(row, n) for row in p["A"]]
    g0, g1, y0 = (vector(p[k], n) for k in ("g0", "g1", "y0"))
    t_end, steps = number(p["t_end"]), p["steps"]
    if t_end <= 0 or isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise Bad("t_end and steps must be positive")
    return p["method"], A, g0, g1, y0, t_end, steps


class LU:
    """P M = L U with partial pivoting."""

    def __init__(self, M):
        self.n, self.M, self.perm = len(M), [row[:] for row in M], list(range(len(M)))
        M, tiny = self.M, 1e-13 * max(abs(v) for row in M for v in row)
        for k in range(self.n):
            p = max(range(k, self.n), key=lambda i: abs(M[i][k]))
            if M[p][k] == 0 or abs(M[p][k]) < tiny:
                raise Singular("singular system")
            M[k], M[p] = M[p], M[k]
            self.perm[k], self.perm[p] = self.perm[p], self.perm[k]
            for i in range(k + 1, self.n):
                if M[i][k]:
                    f = M[i][k] = M[i][k] / M[k][k]
                    row, top = M[i], M[k]
                    for j in range(k + 1, self.n):
                        row[j] -= f * top[j]

    def solve(self, b):
        M, n = self.M, self.n
        x = [b[i] for i in self.perm]
        for i in range(n):
            row = M[i]
            x[i] -= sum(row[j] * x[j] for j in range(i))
        for i in reversed(range(n)):
            row = M[i]
            x[i] = (x[i] - sum(row[j] * x[j] for j in range(i + 1, n))) / row[i]
        return x


def shifted(A, c):
    return [[(i == j) - c * v for j, v in enumerate(row)] for i, row in enumerate(A)]


def integrate(method, A, g0, g1, y, t_end, steps):
    h, n = t_end / steps, len(y)
    R = range(n)
    if method == "auto":
        method = "rk4" if h * max(sum(abs(v) for v in row) for row in A) <= 1 else "bdf2"

    def f(t, y):
        return [sum(map(float.__mul__, A[i], y)) + g0[i] + g1[i] * t for i in R]

    def trapezoid(lu, t, y):
        k, t2 = f(t, y), t + h
        return lu.solve([y[i] + h / 2 * (k[i] + g0[i] + g1[i] * t2) for i in R])

    if method:
        for s in range(steps):
            t = s * h
            a = f(t, y)
            b = f(t + h / 2, [y[i] + h / 2 * a[i] for i in R])
            c = f(t + h / 2, [y[i] + h / 2 * b[i] for i in R])
            d = f(t + h, [y[i] + h * c[i] for i in R])
            y = [y[i] + h / 6 * (a[i] + 2 * b[i] + 2 * c[i] + d[i]) for i in R]
    elif method == "trapezoid":
        lu = LU(shifted(A, h / 2))
        for s in range(steps):
            y = trapezoid(lu, s * h, y)
    else:
        old, y = y, trapezoid(LU(shifted(A, h / 2)), 0.0, y)
        if steps > 1:
            lu = LU(shifted(A, 2 * h / 3))
            for s in range(1, steps):
                t2 = (s + 1) * h
                rhs = [(4 * y[i] - old[i] + 2 * h * (g0[i] + g1[i] * t2)) / 3 for i in R]
                old, y = y, lu.solve(rhs)
    if not all(map(math.isfinite, y)):
        raise Singular("the result is not finite")
    return {"y": y, "h": h, "method": method}


try:
    print(json.dumps(integrate(*read(sys.stdin.read()))))
except Bad as e:
    print(e, file=sys.stderr)
    sys.exit(2)
except (Singular, OverflowError) as e:
    print(e, file=sys.stderr)
    sys.exit(3)
PY
