# SPDX-License-Identifier: MIT
"""A program like a training loop without ranges: its loader works in Python, and a thread with a metric sleeps while it holds the lock that each
step takes. It sleeps three times as long as the last step worked, on a slow machine too, so that the steps wait for the lock most of the time.

Usage: sampled_loader.py STEPS
"""
import sys, threading, time

TEXT = "the quick brown fox jumps over the lazy dog " * 5000
lock = threading.Lock()
running = True
worked = 0.02 # seconds of the last step


def tokenise(text):
    words = []
    for word in text.split():
        words.append(sum(ord(letter) for letter in word) % 1000) # the line that works
    return words


def metric():
    while running:
        with lock:
            time.sleep(3 * worked) # the line that holds the lock
        time.sleep(0.001)


thread = threading.Thread(target=metric)
thread.start()
total = 0
for step in range(int(sys.argv[1])):
    begun = time.monotonic()
    total += len(tokenise(TEXT))
    worked = time.monotonic() - begun
    with lock: # the line that waits
        total %= 1000003
running = False
thread.join()
