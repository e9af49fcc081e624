"""A task that adds one, for workers of Huey."""

import os

from huey import RedisHuey

app = RedisHuey("bench", url=os.environ["BENCH_REDIS"], results=True)


@app.task()
def add_one(x: int) -> int:
    return x + 1
