"""Layers of tasks that do nothing, each after three of the layer before: prints the seconds that they took.

    python flow.py LAYERS WIDTH
"""

import sys
import time

from prefect import flow, task


@task
def work():
    return 1


@flow
def layered(layers: int, width: int):
    before = []
    for _ in range(layers):
        before = [work.submit(wait_for=before[:3]) for _ in range(width)]
    for each in before:
        each.wait()


begin = time.monotonic()
layered(int(sys.argv[1]), int(sys.argv[2]))
print(time.monotonic() - begin)
