"""Ordinary differential equations and the physics of particles."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

import numpy as np

from tests.users.corpus import use


def lorenz(t, y, sigma=10.0, rho=28.0, beta=8 / 3):
    x, v, z = y
    return np.array([sigma * (v - x), x * (rho - z) - v, x * v - beta * z])


def rk4_step(f, t, y, h):
    k1 = f(t, y)
    k2 = f(t + h / 2, y + h / 2 * k1)
    k3 = f(t + h / 2, y + h / 2 * k2)
    k4 = f(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@use((np.array([1.0, 1.0, 1.0]), 0.01, 10), wrt=(0, 1), long=True)
def lorenz_by_rk4(y, h, steps):
    trajectory = np.empty((steps + 1, 3))
    trajectory[0] = y
    for i in range(steps):
        trajectory[i + 1] = rk4_step(lorenz, i * h, trajectory[i], h)
    return trajectory


@use((1.0, 0.3, 40), wrt=(0, 1), slow=True)
def euler_decay(y0, k, n):
    y, t, h = y0, 0.0, 1.0 / n
    for _ in range(n):
        y += h * (-k * y + np.sin(t))
        t += h
    return y


@use((2.0, 0.0, 1.0), wrt=(0, 1), slow=True)
def runge_kutta_fehlberg(x, v, mu):
    """Van der Pol's oscillator with steps that adapt."""

    def f(x, v):
        return v, mu * (1 - x * x) * v - x

    t, h, tol = 0.0, 0.1, 1e-6
    accepted = rejected = 0
    while t < 2.0:
        if t + h > 2.0:
            h = 2.0 - t
        k1x, k1v = f(x, v)
        k2x, k2v = f(x + h * k1x / 2, v + h * k1v / 2)
        k3x, k3v = f(x + h * 3 * k2x / 4, v + h * 3 * k2v / 4)
        nx = x + h * (2 * k1x + 3 * k2x + 4 * k3x) / 9
        nv = v + h * (2 * k1v + 3 * k2v + 4 * k3v) / 9
        k4x, k4v = f(nx, nv)
        ex = h * (-5 * k1x / 72 + k2x / 12 + k3x / 9 - k4x / 8)
        ev = h * (-5 * k1v / 72 + k2v / 12 + k3v / 9 - k4v / 8)
        err = max(abs(ex), abs(ev))
        if err < tol:
            t, x, v = t + h, nx, nv
            accepted += 1
        else:
            rejected += 1
        if h < 0.01:
            h = 0.01
            tol = 1e-5
        elif err > tol:
            h = h / 2
        elif err < tol / 20:
            h = h * 1.5
    return x, v, accepted, rejected


State = namedtuple("State", ["position", "velocity"])


@use((np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.05, 12), wrt=(0, 1), long=True)
def velocity_verlet(q, v, dt, n):
    def acceleration(q):
        r2 = q @ q
        return -q / (r2 * np.sqrt(r2))

    state = State(q, v)
    a = acceleration(q)
    energies = np.zeros(n)
    for i in range(n):
        half = state.velocity + 0.5 * dt * a
        position = state.position + dt * half
        a = acceleration(position)
        state = state._replace(position=position, velocity=half + 0.5 * dt * a)
        energies[i] = 0.5 * np.dot(state.velocity, state.velocity) - 1.0 / np.linalg.norm(
            state.position
        )
    return state, energies


@use((np.array([[0.0, 0.1], [1.0, 0.0], [0.3, 0.8]]), np.array([1.0, 2.0, 0.5])),
     wrt=(0, 1), long=True)
def nbody_by_loops(pos, mass):
    n, d = pos.shape
    acc = np.zeros_like(pos)
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            diff = np.zeros(d)
            dist2 = 0.01
            for k in range(d):
                diff[k] = pos[j, k] - pos[i, k]
                dist2 += diff[k] ** 2
            acc[i] += mass[j] * diff / dist2**1.5
    return acc


@use((np.array([[0.0, 0.1, 0.2], [1.0, 0.0, 0.3], [0.3, 0.8, -0.4]]), np.ones(3)), wrt=(0, 1),
    long=True)
def nbody_by_broadcasting(pos, mass):
    diff = pos[None, :, :] - pos[:, None, :]
    dist2 = (diff**2).sum(axis=-1) + 0.01
    inv = dist2**-1.5
    return (diff * (mass[None, :] * inv)[:, :, np.newaxis]).sum(1)


@use((np.linspace(0.0, 1.0, 6) ** 2, np.zeros(6), 3.0, 5), wrt=(0, 1, 2), slow=True)
def spring_chain(x, v, k, steps):
    n = len(x)
    for _ in range(steps):
        force = np.zeros(n)
        for i in range(n - 1):
            stretch = x[i + 1] - x[i] - 0.2
            force[i] += k * stretch
            force[i + 1] -= k * stretch
        v += 0.1 * force
        x += 0.1 * v
    return 0.5 * np.sum(v**2)


@use((np.array([[1, -1, 1], [1, 1, -1], [-1, -1, 1]]), 0.5), long=True)
def ising_energy(spins, field):
    rows, cols = spins.shape
    energy = 0
    for i in range(rows):
        for j in range(cols):
            energy -= spins[i, j] * (spins[(i + 1) % rows, j] + spins[i, (j + 1) % cols])
    return energy - field * np.sum(spins), spins.mean()


@use((np.array([[1, -1, 1], [1, 1, -1], [-1, -1, 1]]), np.array([0.1, 0.9, 0.5, 0.01]), 0.7),
    long=True)
def metropolis(spins, draws, beta):
    """Random numbers passed in, as a test of a simulation does."""
    n = spins.shape[0]
    flips = 0
    for step, u in enumerate(draws):
        i, j = step % n, (2 * step) % n
        around = (
            spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % n] + spins[i, j - 1]
        )
        delta = 2 * spins[i, j] * around
        if delta <= 0 or u < np.exp(-beta * delta):
            spins[i, j] = -spins[i, j]
            flips += 1
    return flips


@dataclass
class Ball:
    """Something that falls and bounces."""

    height: float
    speed: float = 0.0

    def step(self, dt):
        """Half-implicit Euler."""
        self.speed -= 9.81 * dt
        self.height += self.speed * dt
        if self.height < 0:
            self.height = -self.height
            self.speed = -0.8 * self.speed


@use((1.0, 60), wrt=(0,), slow=True)
def bouncing_ball(height, steps):
    ball = Ball(height)
    bounces = 0
    for _ in range(steps):
        before = ball.speed
        ball.step(0.02)
        bounces += ball.speed > before
    return ball.height, bounces


@use((np.array([0.0, 0.0, -5.0]), np.array([0.1, 0.05, 1.0]), np.zeros(3), 1.0), (
    np.array([0.0, 3.0, -5.0]), np.array([0.0, 0.0, 1.0]), np.zeros(3), 1.0), wrt=(0, 1), long=True)
def ray_sphere(origin, direction, center, radius):
    d = direction / np.linalg.norm(direction)
    oc = origin - center
    b = np.dot(oc, d)
    c = np.dot(oc, oc) - radius**2
    disc = b * b - c
    if disc < 0:
        return -1.0
    t = -b - np.sqrt(disc)
    return float(t) if t > 0 else float(-b + np.sqrt(disc))


@use((np.array([0.0, 4.0, 4.0, 0.0]), np.array([0.0, 0.0, 3.0, 3.0])), wrt=(0, 1), slow=True)
def polygon_area(x, y):
    area = 0.0
    j = len(x) - 1
    for i in range(len(x)):
        area += (x[j] + x[i]) * (y[j] - y[i])
        j = i
    shoelace = 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))
    return abs(area) / 2, shoelace


@use((1.0, 1.0), (5.0, 1.0), long=True)
def point_in_polygon(px, py):
    polygon = [(0.0, 0.0), (4.0, 0.0), (4.0, 3.0), (0.0, 3.0)]
    inside = False
    n = len(polygon)
    for i in range(n):
        x1, y1 = polygon[i]
        x2, y2 = polygon[(i + 1) % n]
        if (y1 > py) != (y2 > py) and px < (x2 - x1) * (py - y1) / (y2 - y1) + x1:
            inside = not inside
    return inside


@use((7, 5, 30), long=True)
def mandelbrot(width, height, maxiter):
    image = np.zeros((height, width), dtype=np.int32)
    for row in range(height):
        for col in range(width):
            c = complex(-2 + 3 * col / width, -1 + 2 * row / height)
            z = 0j
            for it in range(maxiter):
                if abs(z) > 2:
                    image[row, col] = it
                    break
                z = z * z + c
    return image


@use((np.linspace(-1.5, 1.5, 6)[None, :] + 1j * np.linspace(-1, 1, 4)[:, None], -0.4 + 0.6j))
def julia_by_masks(z, c):
    count = np.zeros(z.shape, dtype=int)
    for _ in range(12):
        alive = np.abs(z) <= 2
        z = np.where(alive, z * z + c, z)
        count += alive
    return count


@use((np.array([3.0, 1.0, 2.0]), 0.5), wrt=(0, 1), long=True)
def rotation_about_z(v, angle):
    c, s = np.cos(angle), np.sin(angle)
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return R @ v, np.cross(v, np.array([0.0, 0.0, 1.0]))


@use((0.3, np.array([1.0, 2.0, 3.0])), wrt=(0, 1), long=True)
def quaternion_rotation(angle, v):
    def multiply(p, q):
        a, b, c, d = p
        e, f, g, h = q
        return (
            a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e,
        )

    q = (np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0)
    conj = (q[0], -q[1], -q[2], -q[3])
    _, x, y, z = multiply(multiply(q, (0.0, *v)), conj)
    return np.array([x, y, z])


@use((np.linspace(0, 1, 5), np.array([0.0, 1.0, 0.5, 0.2, 0.9]), 0.33), (
    np.linspace(0, 1, 5), np.array([0.0, 1.0, 0.5, 0.2, 0.9]), 1.5), wrt=(1, 2), slow=True)
def linear_interpolation(xs, ys, x):
    if x <= xs[0]:
        return ys[0]
    if x >= xs[-1]:
        return ys[-1]
    i = 0
    while xs[i + 1] < x:
        i += 1
    t = (x - xs[i]) / (xs[i + 1] - xs[i])
    return (1 - t) * ys[i] + t * ys[i + 1]


@use((np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 3.0], [4.0, 0.0]]), 0.4), wrt=(0, 1), long=True)
def bezier_by_de_casteljau(points, t):
    pts = points.copy()
    n = len(pts)
    for r in range(1, n):
        for i in range(n - r):
            pts[i] = (1 - t) * pts[i] + t * pts[i + 1]
    return pts[0]
