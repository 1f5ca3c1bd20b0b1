"""One framework in several settings: what is told beside the medians."""

from benchmarks.driver import Measurement
from benchmarks.variants import fastest
from benchmarks.workloads import WORKLOADS


def test_how_much_faster_threads_are_is_told_by_the_shortest_rounds_too() -> None:
    rounds = {"1 thread": [3.0, 2.0, 4.0], "2 threads": [2.0, 2.5, 1.0]}
    assert fastest(Measurement(WORKLOADS[0], rounds), "1 thread", "2 threads") == "2.00"


def test_where_a_setting_failed_nothing_is_told() -> None:
    assert fastest(Measurement(WORKLOADS[0], {"1 thread": [3.0]}), "1 thread", "2 threads") == ""
