"""A small program that holds functions in every way that programs do."""

from __future__ import annotations

import functools

import cv2
import numpy as np
from cv2 import resize
from cv2 import resize as shrink


def by_attribute(image):
    return cv2.resize(image, (20, 10))


def by_name(image):
    return resize(image, (20, 10))


def by_alias(image):
    return shrink(image, (20, 10))


def by_default(image, function=cv2.resize):
    return function(image, (20, 10))


def by_keyword_default(image, *, function=cv2.resize):
    return function(image, (20, 10))


half = functools.partial(cv2.resize, dsize=(20, 10))
table = {"resize": cv2.resize, "nested": [("gray", cv2.cvtColor), ("resize", cv2.resize)]}


def by_partial(image):
    return half(image)


def by_table(image):
    return table["resize"](image, (20, 10))


def by_nested_table(image):
    return dict(table["nested"])["resize"](image, (20, 10))


def make_closure():
    function = cv2.resize

    def inner(image):
        return function(image, (20, 10))

    return inner


by_closure = make_closure()


class Steps:
    scale = staticmethod(cv2.resize)
    steps = (cv2.resize,)

    def __init__(self):
        self.function = cv2.resize
        self.functions = [cv2.resize]

    def by_static(self, image):
        return self.scale(image, (20, 10))

    def by_instance(self, image):
        return self.function(image, (20, 10))

    def by_list(self, image):
        return self.functions[0](image, (20, 10))

    def by_class_tuple(self, image):
        return self.steps[0](image, (20, 10))


steps = Steps()
WAYS = {
    "attribute": by_attribute,
    "name": by_name,
    "alias": by_alias,
    "default": by_default,
    "keyword default": by_keyword_default,
    "partial": by_partial,
    "table": by_table,
    "nested table": by_nested_table,
    "closure": by_closure,
    "static method": steps.by_static,
    "instance": steps.by_instance,
    "list of an instance": steps.by_list,
    "tuple of a class": steps.by_class_tuple,
}


def everything_held():
    """Every object that holds the function, for a comparison before and after."""
    return (
        cv2.resize, resize, shrink, by_default.__defaults__, dict(by_keyword_default.__kwdefaults__),
        half.func, half.args, dict(half.keywords), dict(table), list(table["nested"]),
        by_closure.__closure__[0].cell_contents, vars(Steps)["scale"], Steps.steps,
        steps.function, list(steps.functions),
    )  # fmt: skip


def an_image():
    return np.random.default_rng(0).integers(0, 256, (33, 47, 3), np.uint8)
