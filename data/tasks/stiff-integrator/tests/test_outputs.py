"""Runs /app/integrate.py and measures error, order and stability against closed forms worked out here."""

import json
import math
import os
import subprocess
from fractions import Fraction

ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}


def call(problem, raw=False):
    text = problem if raw else json.dumps(problem)
    return subprocess.run(["python3", "/app/integrate.py"], input=text, text=True, capture_output=True, timeout=20, cwd="/", env=ENV)


def solve(**problem):
    n = len(problem["A"])
    for key in ("g0", "g1"):
        problem.setdefault(key, [0.0] * n)
    done = call(problem)
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    assert set(out) == {"y", "h", "method"}
    assert len(out["y"]) == n
    assert math.isclose(out["h"], problem["t_end"] / problem["steps"], rel_tol=1e-15)
    return out


# y1 = cos w t, y2 = -sin w t forced by a ramp: x' = A x + g0 + g1 t has the particular solution p + q t with
# A q = -g1 and A p = q - g0.
W = 2.0
OSC = {"A": [[0.0, W], [-W, 0.0]], "g0": [0.3, -0.2], "g1": [0.5, 1.0]}


def oscillator(t, y0):
    g0, g1 = OSC["g0"], OSC["g1"]
    q = [g1[1] / W, -g1[0] / W]  # A q = -g1
    p = [-(q[1] - g0[1]) / W, (q[0] - g0[0]) / W]  # A p = q - g0
    u = [y0[0] - p[0], y0[1] - p[1]]
    c, s = math.cos(W * t), math.sin(W * t)
    return [c * u[0] + s * u[1] + p[0] + q[0] * t, -s * u[0] + c * u[1] + p[1] + q[1] * t]


def error(method, steps):
    y = solve(method=method, y0=[1.0, 0.5], t_end=3.0, steps=steps, **OSC)["y"]
    exact = oscillator(3.0, [1.0, 0.5])
    return max(abs(a - b) for a, b in zip(y, exact))


def order(method, steps):
    return math.log2(error(method, steps) / error(method, 2 * steps))


def test_rk4_is_of_order_four():
    assert error("rk4", 160) < 1e-6
    assert 3.8 < order("rk4", 40) < 4.2


def test_trapezoid_is_of_order_two_and_keeps_the_energy():
    assert 1.9 < order("trapezoid", 80) < 2.1
    y = solve(method="trapezoid", A=OSC["A"], y0=[0.6, 0.8], t_end=500.0, steps=2000)["y"]
    assert abs(math.hypot(*y) - 1) < 1e-9


def test_bdf2_is_of_order_two():
    assert 1.85 < order("bdf2", 160) < 2.15
    lam, h = -3.0, 0.25  # two steps by hand
    y1 = (1 + lam * h / 2) / (1 - lam * h / 2)
    y2 = (4 * y1 - 1) / (3 - 2 * h * lam)
    assert math.isclose(solve(method="bdf2", A=[[lam]], y0=[1.0], t_end=2 * h, steps=2)["y"][0], y2, rel_tol=1e-13)


def test_bdf2_damps_what_is_stiff():
    A = [[-1e6, 1e6 - 1], [0.0, -1.0]]  # eigenvalues -1e6 and -1; y = (1, 1) e^-t + (1, 0) e^(-1e6 t)
    y = solve(method="bdf2", A=A, y0=[2.0, 1.0], t_end=5.0, steps=100)["y"]
    assert all(abs(v - math.exp(-5)) < 3e-5 for v in y)


def exact_linear(A, b):
    """Gauss in fractions: no rounding at all."""
    M = [[Fraction(v) for v in row] + [Fraction(c)] for row, c in zip(A, b)]
    n = len(M)
    for k in range(n):
        p = next(i for i in range(k, n) if M[i][k] != 0)
        M[k], M[p] = M[p], M[k]
        M[k] = [v / M[k][k] for v in M[k]]
        for i in range(n):
            if i != k and M[i][k]:
                M[i] = [a - M[i][k] * b for a, b in zip(M[i], M[k])]
    return [row[n] for row in M]


def test_zero_and_tiny_pivots():
    for eps in (0.0, 2.0**-50):
        # 1 - h/2 a11 = eps, and the same for a33
        A = [[2.0 - 2 * eps, -3.0, 1.0, 0.0], [4.0, 1.0, 0.0, 2.0], [0.0, 2.0, 2.0 - 2 * eps, 1.0], [1.0, 0.0, -5.0, 1.5]]
        y0 = [1.0, -2.0, 0.5, 3.0]
        M = [[Fraction(int(i == j)) - Fraction(v) / 2 for j, v in enumerate(row)] for i, row in enumerate(A)]
        b = [Fraction(y) + sum(Fraction(v) * Fraction(z) for v, z in zip(row, y0)) / 2 for y, row in zip(y0, A)]
        want = [float(v) for v in exact_linear(M, b)]
        got = solve(method="trapezoid", A=A, y0=y0, t_end=1.0, steps=1)["y"]
        assert all(math.isclose(g, w, rel_tol=1e-10, abs_tol=1e-10) for g, w in zip(got, want)), (got, want)


def test_auto_chooses_by_the_norm():
    A = [[-3.0, 1.0], [0.5, -0.5]]  # the norm is 4
    for steps, method in ((4, "rk4"), (3, "bdf2")):
        out = solve(method="auto", A=A, y0=[1.0, 1.0], t_end=1.0, steps=steps)
        assert out["method"] == method
        assert out["y"] == solve(method=method, A=A, y0=[1.0, 1.0], t_end=1.0, steps=steps)["y"]


def test_large_problems_in_time():
    n = 40  # heat equation, whose slowest mode is an eigenvector
    A = [[-2.0 * 400 if i == j else 400.0 if abs(i - j) == 1 else 0.0 for j in range(n)] for i in range(n)]
    mode = [math.sin(math.pi * (i + 1) / (n + 1)) for i in range(n)]
    lam = -800 * (1 - math.cos(math.pi / (n + 1)))
    y = solve(method="bdf2", A=A, y0=mode, t_end=0.5, steps=400)["y"]
    assert all(abs(v - m * math.exp(lam / 2)) < 1e-4 for v, m in zip(y, mode))
    A = [[-0.1, 1, 0, 0], [-1, -0.1, 0, 0], [0, 0, -0.2, 3], [0, 0, -3, -0.2]]
    y = solve(method="trapezoid", A=A, y0=[1.0, 0, 1.0, 0], t_end=10.0, steps=20000)["y"]
    want = [math.exp(-1) * math.cos(10), -math.exp(-1) * math.sin(10), math.exp(-2) * math.cos(30), -math.exp(-2) * math.sin(30)]
    assert all(abs(a - b) < 1e-5 for a, b in zip(y, want))


def test_errors_have_their_status():
    good = {"method": "trapezoid", "A": [[0.0]], "g0": [0.0], "g1": [0.0], "y0": [1.0], "t_end": 1.0, "steps": 2}
    assert call(good).returncode == 0
    bad = [
        {"method": "euler"}, {"A": [[0.0, 1.0]]}, {"A": []}, {"y0": [1.0, 2.0]}, {"g1": None}, {"t_end": 0}, {"t_end": -1.0},
        {"steps": 0}, {"steps": 2.5}, {"steps": True}, {"y0": ["1"]}, {"A": [[float("nan")]]}, {"g0": [float("inf")]},
    ]  # fmt: skip
    cases = [({**good, **change}, 2) for change in bad]
    cases.append(({k: v for k, v in good.items() if k != "g0"}, 2))
    cases.append(({**good, "A": [[2.0]], "steps": 1}, 3))  # 1 - h/2 * 2 = 0
    cases.append(({**good, "A": [[1.0, 1.0], [1.0, 1.0]], "g0": [0.0] * 2, "g1": [0.0] * 2, "y0": [1.0, 0.0], "steps": 1}, 3))
    cases.append(({**good, "method": "rk4", "A": [[1e200]], "steps": 3}, 3))
    for problem, status in cases:
        done = call(problem)
        assert (done.returncode, done.stdout) == (status, ""), problem
        assert len(done.stderr.strip().splitlines()) == 1, problem
    for text in ("", "[1]", "{"):
        assert call(text, raw=True).returncode == 2
