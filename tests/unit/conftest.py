"""How Hypothesis draws here: without a deadline, as a busy machine is no fault in the code."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("unit", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("unit")
