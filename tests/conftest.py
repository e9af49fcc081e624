"""What every test shares: how hard Hypothesis tries."""

from hypothesis import HealthCheck, settings

# A red build points at the change, so the short form draws the same examples each time; the long form explores.
settings.register_profile(
    "short", max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("short")
