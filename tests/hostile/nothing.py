"""No kernel here."""


def add(a, b):
    return a + b
