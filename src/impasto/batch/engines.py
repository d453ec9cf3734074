"""Who makes the tasks: this process, or the workers of a Ray cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from dataclasses import replace
from typing import Any

from impasto.batch.tasks import Task
from impasto.batch.worker import Order, Outcome, Worker
from impasto.types import ImpastoError

RETRIES = 2  # of a job whose worker died: once may be bad luck, three times is the job
TICK = 0.5  # seconds between two signs of life
STORE = 100_000_000  # bytes of Ray's object store: tasks and outcomes are small


def by_style(tasks: list[Task]) -> list[Task]:
    """The order in which a worker needs few styles and summaries at a time."""
    return sorted(tasks, key=lambda task: (task.style, task.recipe.method, task.name))


def in_process(tasks: list[Task], order: Order) -> Generator[Outcome | None, None, None]:
    """The outcomes of the tasks, made one after another; None is a sign of life."""
    worker = Worker(order)
    for task in by_style(tasks):
        yield from worker.perform(task)


def on_ray(
    tasks: list[Task], order: Order, *, address: str = "", workers: int = 0
) -> Generator[Outcome | None, None, None]:
    """The outcomes of the tasks, made by workers of a cluster; None is a sign of life.

    Without an address the cluster is this machine, for as long as this lasts. A worker has
    ``order.threads`` cores (one where nothing was said) and as large a share of the memory.
    """
    ray = _ray()
    order = replace(order, threads=order.threads or 1)
    _connect(ray, address, cores=order.threads * (workers or max(1, _cores() // order.threads)))
    try:
        count = min(_capacity(ray, order.threads), len(tasks), workers or len(tasks))
        actors = [_actor(ray, order) for _ in range(count)]
        yield from _share_out(ray, actors, by_style(tasks))
    finally:
        ray.shutdown()


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # the ways of its next version
    try:
        import ray
    except ImportError:
        raise ImpastoError("Ray is not here; get it with: pip install impasto[ray]") from None
    return ray


def _connect(ray: Any, address: str, *, cores: int) -> None:
    """Join the cluster of an address, or start one of so many cores on this machine."""
    own = {"num_cpus": cores, "object_store_memory": STORE, "include_dashboard": False}
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level="ERROR",
            **({} if address else own),
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        why = "it wants a token (RAY_AUTH_TOKEN)" if "AuthToken" in str(error.__cause__) else error
        raise ImpastoError(f"no Ray at {address or 'this machine'}: {why}") from error
    signal.signal(signal.SIGTERM, handler)  # Ray's own would leave without a word


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _capacity(ray: Any, threads: int) -> int:
    """How many workers of so many threads the machines of a cluster hold."""
    cores = [node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]]
    capacity = sum(int(each // threads) for each in cores)
    if not capacity:
        raise ImpastoError(f"no machine of the cluster has {threads} cores; choose fewer --threads")
    return capacity


class Remote:
    """A worker in a process of its own, on any machine of the cluster."""

    def __init__(self, order: Order) -> None:
        share = min(1.0, order.threads / _cores())
        self.worker = Worker(replace(order, share=share))

    def ready(self) -> None:
        """Answer, once all is loaded."""

    def perform(self, task: Task) -> Outcome | None:
        """What became of a task."""
        *_, outcome = self.worker.perform(task)
        return outcome


def _actor(ray: Any, order: Order) -> Any:
    """A worker that Ray starts again when it dies, and whose task it then repeats."""
    threads = str(order.threads)
    environment = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    remote = ray.remote(
        num_cpus=order.threads,
        max_restarts=-1,
        max_task_retries=RETRIES,
        runtime_env={"env_vars": environment},  # before torch is loaded, or it counts all cores
    )(Remote)
    return remote.remote(order)


def _share_out(
    ray: Any, actors: list[Any], tasks: list[Task]
) -> Generator[Outcome | None, None, None]:
    """A task for whoever has none, until all are made.

    Whoever is new, or failed, is first asked whether it is ready: the dead get no tasks.
    """
    waiting, left, problem = iter(tasks), len(tasks), ""
    running: dict[Any, tuple[Any, Task | None]] = {}
    running |= {actor.ready.remote(): (actor, None) for actor in actors}
    while left:
        if not running:
            raise ImpastoError(f"no worker is left: {problem}")
        finished, _ = ray.wait(list(running), timeout=TICK)
        yield None
        for reference in finished:
            actor, task = running.pop(reference)
            try:
                outcome = ray.get(reference)
                if (following := next(waiting, None)) is not None:
                    running[actor.perform.remote(following)] = actor, following
            except ray.exceptions.RayError as error:
                problem = str(error).strip().splitlines()[-1].strip()
                if task is None:
                    continue
                reason = f"its worker failed {RETRIES + 1} times: {problem}"
                outcome = Outcome(name=task.name, reason=reason)
                running[actor.ready.remote()] = actor, None
            if task is not None:
                left -= 1
                yield outcome
