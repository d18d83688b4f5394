"""PGQueuer for the comparison: an asynchronous entrypoint, jobs in batches, as its documentation and its own benchmark do. The
log of finished jobs is not aggregated meanwhile, because its rows are what is counted."""
import asyncio
import json
import logging
import sys
import time
from datetime import timedelta

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

logging.disable(logging.INFO)
# Jobs that one process takes at a time, and that it runs at the same time.
BATCH = 50
CONCURRENCY = 100
SUBMITTED_AT_ONCE = 1000

verb, url = sys.argv[1:3]
late = []


async def queries():
    return Queries(AsyncpgDriver(await asyncpg.connect(url)))


async def submit(count, kind):
    queue = await queries()
    for begin in range(0, count, SUBMITTED_AT_ONCE):
        size = min(SUBMITTED_AT_ONCE, count - begin)
        await queue.enqueue([kind] * size, [None] * size, [0] * size)


async def trickle(rate, seconds):
    queue = await queries()
    pause = max(1 / rate, 0.01)
    begin, sent = time.time(), 0
    while time.time() - begin < seconds:
        due = int((time.time() - begin) * rate) + 1 - sent
        if due > 0:
            payload = str(time.time()).encode()
            await queue.enqueue(["nothing"] * due, [payload] * due, [0] * due)
            sent += due
        await asyncio.sleep(pause)
    print(sent)


async def work():
    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(url)))

    @queue.entrypoint("nothing")
    async def nothing(job):
        if job.payload:
            late.append(time.time() - float(job.payload))

    @queue.entrypoint("process")
    async def process(job):
        await (await asyncio.create_subprocess_exec("/bin/true")).wait()

    running = asyncio.create_task(
        queue.run(
            batch_size=BATCH,
            max_concurrent_tasks=CONCURRENCY,
            dequeue_timeout=timedelta(seconds=1),
            log_aggregation_interval=timedelta(hours=1),
        )
    )
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    queue.shutdown.set()
    running.cancel()
    await asyncio.wait([running])
    print(json.dumps(late))


async def setup():
    await (await queries()).install()


if verb == "setup":
    asyncio.run(setup())
elif verb == "submit":
    asyncio.run(submit(int(sys.argv[3]), sys.argv[4]))
elif verb == "trickle":
    asyncio.run(trickle(float(sys.argv[3]), float(sys.argv[4])))
elif verb == "work":
    asyncio.run(work())
