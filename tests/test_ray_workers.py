"""How many workers a cluster gets and with what; who waits for whom inside one. No Ray needed."""

from __future__ import annotations

import threading

import pytest

from hsdkit.errors import ConfigError
from hsdkit.ray.gate import Gate
from hsdkit.ray.workers import Workers, plan_workers

CPU_NODE = {"CPU": 16.0}
GPU_NODE = {"CPU": 32.0, "GPU": 4.0}


def test_every_gpu_is_a_worker_that_shares_the_cores_of_its_node():
    assert plan_workers([GPU_NODE, GPU_NODE, CPU_NODE]) == Workers(1, 8, 4.0, 1.0)
    assert plan_workers([{"CPU": 12.0, "GPU": 8.0}]) == Workers(1, 8, 1.0, 1.0)


def test_without_gpus_every_four_cores_are_a_worker_or_all_of_a_small_machine():
    assert plan_workers([CPU_NODE, {"CPU": 6.0}]) == Workers(1, 5, 4.0)
    assert plan_workers([{"CPU": 2.0}]) == Workers(1, 1, 2.0)


def test_what_is_asked_for_is_what_there_is():
    assert plan_workers([{"CPU": 2.0}], count="2", cpus=1) == Workers(2, 2, 1.0)
    assert plan_workers([{"CPU": 2.0}], count="2-64", cpus=8, gpus=1) == Workers(2, 64, 8.0, 1.0)
    assert plan_workers([GPU_NODE], gpus=0.5) == Workers(1, 8, 4.0, 0.5)
    assert plan_workers([GPU_NODE], gpus=0) == Workers(1, 8, 4.0)


def test_a_worker_that_fits_no_node_is_refused_unless_the_cluster_is_said_to_grow():
    with pytest.raises(ConfigError, match="no node of the Ray cluster has 8 CPU cores"):
        plan_workers([{"CPU": 2.0}], cpus=8)


@pytest.mark.parametrize("count", ["0", "3-2", "many", "-1", "1-"])
def test_a_number_of_workers_is_a_number_or_a_range(count: str):
    with pytest.raises(ConfigError, match="is neither a number of workers nor a range"):
        plan_workers([CPU_NODE], count=count)


def test_workers_say_what_they_are():
    assert str(Workers(1, 8, 4.0, 1.0)) == "1 to 8 workers with 4 CPU cores and 1 GPU each"
    assert str(Workers(1, 1, 1.0)) == "1 worker with 1 CPU core each"


def test_who_wants_to_be_alone_waits_for_those_inside_and_keeps_the_next_out():
    gate, log = Gate(), []
    inside, leave = threading.Event(), threading.Event()

    def first() -> None:
        with gate.entered():
            inside.set()
            leave.wait(5)
            log.append("first leaves")

    def second() -> None:
        with gate.entered(alone=True):
            log.append("alone")

    def third() -> None:
        with gate.entered():
            log.append("third")

    threads = [threading.Thread(target=first)]
    threads[0].start()
    assert inside.wait(5)
    threads.append(threading.Thread(target=second))
    threads[1].start()
    while not gate.queued:
        pass
    threads.append(threading.Thread(target=third))
    threads[2].start()
    assert not log
    leave.set()
    for thread in threads:
        thread.join(5)
    assert log == ["first leaves", "alone", "third"]
