"""Floats and attribute access: planets that attract each other."""

from math import sqrt


class Body:
    def __init__(self, x, y, z, vx, vy, vz, mass):
        self.x, self.y, self.z, self.vx, self.vy, self.vz, self.mass = x, y, z, vx, vy, vz, mass


def step(bodies, dt):
    for i, a in enumerate(bodies):
        for b in bodies[i + 1 :]:
            dx, dy, dz = a.x - b.x, a.y - b.y, a.z - b.z
            d2 = dx * dx + dy * dy + dz * dz + 0.01
            pull = dt / (d2 * sqrt(d2))
            a.vx -= dx * b.mass * pull
            a.vy -= dy * b.mass * pull
            a.vz -= dz * b.mass * pull
            b.vx += dx * a.mass * pull
            b.vy += dy * a.mass * pull
            b.vz += dz * a.mass * pull
    for body in bodies:
        body.x += dt * body.vx
        body.y += dt * body.vy
        body.z += dt * body.vz


def main():
    bodies = [Body(i, -i, i * 0.5, 0.1 * i, 0.2, -0.1 * i, 1 + i) for i in range(6)]
    for _ in range(15_000):
        step(bodies, 0.001)
    return sum(b.x + b.y + b.z for b in bodies)


print(f"{main():.6f}")
