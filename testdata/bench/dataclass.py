"""Classes, properties, generators and match statements: a small interpreter."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class Operation:
    sign: str
    left: object
    right: object


def tree(depth):
    if depth == 0:
        return Number(depth + 1)
    return Operation("+-*"[depth % 3], tree(depth - 1), Number(depth))


def evaluate(node):
    match node:
        case Number(value):
            return value
        case Operation("+", left, right):
            return evaluate(left) + evaluate(right)
        case Operation("-", left, right):
            return evaluate(left) - evaluate(right)
        case Operation("*", left, right):
            return evaluate(left) * evaluate(right) % 1_000_003


expression = tree(60)
print(sum(evaluate(expression) for _ in range(3000)))
