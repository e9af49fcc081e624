"""The logger that everything of the package reports to or below of: ``plaita``."""

from __future__ import annotations

import logging

logger = logging.getLogger("plaita")
