# SPDX-License-Identifier: MIT
"""Uses CPU time in Python functions of known names, for the tests of CPU samples: sampled.py MODE SECONDS.

split: `three` and `one` use CPU time as 3 to 1. dozen: twelve functions in turn, of which work_N takes N + 3 parts.
churn: frames, generators, threads and code objects come and go. fork: a child by os.fork.
"""
import os, sys, threading, time


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))


def three():
    burn(0.003)


def one():
    burn(0.001)


def split(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        three()
        one()


def dozen(seconds):
    functions = []
    for number in range(12):
        space = {}
        exec("def work_%d():\n    for _ in range(%d):\n        sum(range(50))\n        sorted((3, 1, 2))\n" % (number, 60 * (number + 3)), space)
        functions.append(space["work_%d" % number])
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for function in functions:
            function()


def generator(depth):
    yield depth
    if depth:
        yield from generator(depth - 1)


def nested(depth):
    return nested(depth - 1) if depth else sum(generator(5))


def made(number):
    """Runs a function of a new code object, whose memory is that of one before."""
    space = {}
    exec("def made_%d(n):\n    return n + sum(range(50))\n" % number, space)
    return space["made_%d" % number](number)


def churn(seconds):
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        threads = [threading.Thread(target=nested, args=(20 + i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            made(number)
            number += 1
            nested(number % 60)
        for thread in threads:
            thread.join()


def fork(seconds):
    burn(seconds)
    child = os.fork()
    if not child:
        burn(seconds)
        os._exit(0)
    os.waitpid(child, 0)
    burn(seconds)


if __name__ == "__main__":
    {"split": split, "dozen": dozen, "churn": churn, "fork": fork}[sys.argv[1]](float(sys.argv[2]))
