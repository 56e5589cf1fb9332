"""What is made once stays, whichever threads ask for it at the same time."""

import os
import threading
import time

import pytest

from phintys.backends.once import once


def test_threads_that_miss_at_once_get_the_same_object():
    made = []

    @once
    def make(x):
        time.sleep(0.02)
        made.append(x)
        return object()

    barrier, results = threading.Barrier(8), []

    def ask():
        barrier.wait()
        results.append(make(1))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
    assert len(results) == 8
    assert len(set(map(id, results))) == 1


def test_functions_that_call_each_other_do_not_wait_for_each_other():
    barrier = threading.Barrier(2)

    @once
    def first():
        return 1

    @once
    def second():
        return first() + 1

    @once
    def third():
        return second() + first()

    def ask(function):
        barrier.wait()
        function()

    threads = [threading.Thread(target=ask, args=[f]) for f in (first, third)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert not any(thread.is_alive() for thread in threads)
    assert third() == 3


def test_what_raises_is_tried_again():
    answers = iter([ValueError("no"), 5])

    @once
    def make():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(ValueError, match="no"):
        make()
    assert make() == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded")
# the child does nothing that threads of other libraries in the process could hold up
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning", "ignore:.*fork:DeprecationWarning")
def test_a_child_does_not_wait_for_a_thread_of_its_parent():
    inside, leave = threading.Event(), threading.Event()

    @once
    def make():
        inside.set()
        leave.wait(1)
        return 1

    @once
    def other():
        return 2

    thread = threading.Thread(target=make)
    thread.start()
    inside.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(other())
    limit = time.monotonic() + 10
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid or time.monotonic() > limit:
            break
        time.sleep(0.01)
    if not pid:
        os.kill(child, 9)
        os.waitpid(child, 0)
    leave.set()
    thread.join()
    assert pid
    assert os.waitstatus_to_exitcode(status) == 2
