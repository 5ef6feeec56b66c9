"""How many inferences a second: several at a time, each by a function that a Python thread of its own calls."""

import threading
import time


def concurrently(calls, seconds):
    """Every call over and over for that long, all at once: how many there were, and the seconds until the last one ended."""
    begin = threading.Barrier(len(calls) + 1)
    counts, failures = [0] * len(calls), []

    def repeat(index):
        try:
            calls[index]()  # untimed
            begin.wait()
            end = time.perf_counter() + seconds
            while counts[index] == 0 or time.perf_counter() < end:
                calls[index]()
                counts[index] += 1
        except Exception as failure:  # the caller's to tell
            failures.append(failure)
            begin.abort()

    threads = [threading.Thread(target=repeat, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    try:
        begin.wait()
    except threading.BrokenBarrierError:
        pass
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(counts), time.perf_counter() - start
