"""`vars(x)` and `x.__dict__`: the attributes of an object as a dict."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import refuse, use


class Net:
    def __init__(self, **sizes):
        self.__dict__.update(sizes)
        self.w = np.ones((3, 2)) * 0.5
        self.b = np.zeros(2)

    def parameters(self):
        return [p for p in self.__dict__.values() if isinstance(p, np.ndarray)]

    def copy(self):
        made = Net.__new__(Net)
        made.__dict__.update(self.__dict__)
        return made


X = np.array([[0.5, -1.0, 2.0]])


@use((X,), wrt=(0,))
def parameters_of_a_net(x):
    net = Net(scale=2)
    for p in net.parameters():
        p += 0.25
    other = net.copy()
    other.b = other.b + 1
    return x @ net.w * net.scale + net.b, [p.sum() for p in other.parameters()], list(vars(net))


@use((Net(rate=0.5), 2.0))
def fields_of_an_argument(net, f):
    for name, value in vars(net).items():
        setattr(net, name, value * f)
    net.__dict__["rate"] += 1
    return len(vars(net)), "b" in vars(net), vars(net).get("c", 3), {**vars(net), "w": 1}


class Node:
    def __init__(self, key):
        self.key = key
        self.left = None
        self.right = None


@use((3,))
def attributes_of_nodes(n):
    root = Node(n)
    for k in range(n):
        above = Node(k)
        above.left = root
        root = above
    vars(root)["key"] = 7
    return list(vars(root)), root.key, vars(root)["right"] is None


@use((1.0,))
def is_the_object_itself(x):
    point = Point(x)
    attributes = vars(point)
    point.x = 5.0
    attributes["y"] = 2.0
    same = attributes == vars(point), attributes == {"x": 5.0}
    return attributes["x"], point.y, isinstance(attributes, dict), same


@use((1,), (2,))
def key_that_is_no_attribute(n):
    try:
        return vars(Node(n))["keys"]
    except KeyError:
        return -1


class Slots:
    __slots__ = ("x",)


@use((1,))
def slots_have_no_dict(n):
    try:
        return len(vars(Slots()))
    except TypeError as error:
        return str(error)


class Point:
    def __init__(self, x):
        self.x = x


@use((1.0,), (-1.0,))
def attribute_on_some_paths(x):
    point = Point(x)
    if x > 0:
        point.seen = True
    return list(vars(point))


@refuse((1.0,), "loses an attribute", "assign None")
def attribute_taken_away(x):
    node = Node(x)
    return node.__dict__.pop("key")


@refuse((1.0,), "gets another __dict__", "update(...)")
def another_dict(x):
    node = Node(x)
    node.__dict__ = {"key": 1}
    return node.key


@refuse((1.0,), "vars() of a list is not compiled", "your classes")
def vars_of_a_list(x):
    return vars([x])


@refuse((2.0,), "object.__new__(Node) is not compiled", "Node(...)")
def node_without_init(x):
    root = Node(x)
    while x > 0.1:
        x *= 0.5
        above = object.__new__(Node)
        above.left = root
        root = above
    return root.left is None
