"""DBOS for the comparison: a workflow that does nothing, from a queue; a step in it would be recorded as well and cost more.
Each process has its own executor id and takes so many at a time (its documentation, "Queues"); it polls, and is told to do so
more often than by default."""
import json
import os
import subprocess
import sys
import threading
import time

from dbos import DBOS, DBOSClient

# Workflows of one process at the same time.
CONCURRENCY = 50
POLLING_SECONDS = 0.02
# Connections of one process; sixteen of them have to fit into one server.
CONNECTIONS = 4

verb, url = sys.argv[1:3]
late = []


def launch(name):
    DBOS(config={
        "name": "bench",
        "system_database_url": url,
        "executor_id": name,
        "application_version": "1",
        "sys_db_pool_size": CONNECTIONS,
        "log_level": "ERROR",
        "console_log_level": "ERROR",
    })
    DBOS.launch()
    DBOS.register_queue("work", worker_concurrency=CONCURRENCY, polling_interval_sec=POLLING_SECONDS)


@DBOS.workflow()
def one(sent, kind="nothing"):
    if sent:
        late.append(time.time() - sent)
    if kind == "process":
        subprocess.run(["/bin/true"], check=True)


def enqueue(client, sent, kind="nothing"):
    options = {"queue_name": "work", "workflow_name": "one", "app_version": "1", "application_name": "bench"}
    client.enqueue(options, sent, kind)


def submit(count, kind):
    """It has no call for several at once: several threads share the work."""
    client = DBOSClient(system_database_url=url)
    turns = [threading.Thread(target=lambda: [enqueue(client, None, kind) for _ in range(count // 4)]) for _ in range(4)]
    [turn.start() for turn in turns]
    [turn.join() for turn in turns]


def trickle(rate, seconds):
    client = DBOSClient(system_database_url=url)
    begin, sent = time.time(), 0
    while time.time() - begin < seconds:
        due = int((time.time() - begin) * rate) + 1 - sent
        for _ in range(due):
            enqueue(client, time.time())
        sent += due
        time.sleep(max(1 / rate, 0.01))
    print(sent)


def work(name):
    launch(name)
    print("ready", flush=True)
    sys.stdin.read()
    print(json.dumps(late), flush=True)
    os._exit(0)


if verb == "setup":
    launch("setup")
    os._exit(0)
elif verb == "submit":
    submit(int(sys.argv[3]), sys.argv[4])
elif verb == "trickle":
    trickle(float(sys.argv[3]), float(sys.argv[4]))
elif verb == "work":
    work(sys.argv[3])
