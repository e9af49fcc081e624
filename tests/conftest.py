"""What every test shares: how hard Hypothesis tries."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from plaita.settings import Settings, use_settings
from tests.servers import redis_of_session, redis_url
from tests.support.order import long_first

__all__ = ["redis_of_session", "redis_url"]

# A red build points at the change, so the short form draws the same examples each time; the long form explores.
settings.register_profile(
    "short", max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("short")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that are given much time come first, in whatever order the rest is."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))  # noqa: TID251 - how tests are shared out
    items[:] = long_first(items, seconds_of, processes)


def seconds_of(item: pytest.Item) -> float:
    """How much time a test is given, if that is said of it."""
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark is not None and mark.args else 0.0


@pytest.fixture
def default_settings() -> Iterator[None]:
    """Node code sees the defaults, whatever the environment says."""
    use_settings(Settings())
    yield
    use_settings(None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests measured: the number of values, their median and their maximum."""
    found: dict[str, list[float]] = {}
    for report in terminalreporter.stats.get("passed", []):
        for name, value in getattr(report, "user_properties", ()):
            found.setdefault(name, []).append(float(value))
    for name, values in sorted(found.items()):
        values.sort()
        middle, p95, most = values[len(values) // 2], values[int(len(values) * 0.95)], values[-1]
        text = f"measured {name}: n {len(values)}, median {middle:.1f}, p95 {p95:.1f}, max {most:.1f}"
        terminalreporter.write_line(text)
