"""Procrastinate for the comparison: a task without work. Asynchronous, so that one worker runs several at a time (its
documentation, "Launch a job concurrently"); LISTEN/NOTIFY is on by default; jobs are deferred in batches."""
import asyncio
import json
import logging
import sys
import time

from procrastinate import App, PsycopgConnector

logging.disable(logging.INFO)
# Jobs of one process at the same time, and its connections: one more listens.
CONCURRENCY = 5
BATCH = 1000

verb, url = sys.argv[1:3]
app = App(connector=PsycopgConnector(conninfo=url, min_size=1, max_size=CONCURRENCY + 2))
late = []


@app.task(queue="work", name="nothing")
async def nothing(sent, kind="nothing"):
    if sent:
        late.append(time.time() - sent)
    if kind == "process":
        await (await asyncio.create_subprocess_exec("/bin/true")).wait()


async def setup():
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def submit(count, kind):
    async with app.open_async():
        for begin in range(0, count, BATCH):
            jobs = [{"sent": None, "kind": kind}] * min(BATCH, count - begin)
            await nothing.batch_defer_async(*jobs)


async def trickle(rate, seconds):
    """So many jobs a second, each on its own when there are few."""
    pause = max(1 / rate, 0.01)
    async with app.open_async():
        begin, sent = time.time(), 0
        while time.time() - begin < seconds:
            due = int((time.time() - begin) * rate) + 1 - sent
            if due > 0:
                await nothing.batch_defer_async(*[{"sent": time.time()}] * due)
                sent += due
            await asyncio.sleep(pause)
    print(sent)


async def work(name):
    async with app.open_async():
        worker = asyncio.create_task(
            app.run_worker_async(name=name, concurrency=CONCURRENCY, install_signal_handlers=False)
        )
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        worker.cancel()
        await asyncio.wait([worker])
    print(json.dumps(late))


if verb == "setup":
    asyncio.run(setup())
elif verb == "submit":
    asyncio.run(submit(int(sys.argv[3]), sys.argv[4]))
elif verb == "trickle":
    asyncio.run(trickle(float(sys.argv[3]), float(sys.argv[4])))
elif verb == "work":
    asyncio.run(work(sys.argv[3]))
