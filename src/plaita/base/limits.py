"""The caps every layer agrees on. Units are in the names."""

from typing import Final

DEPTH_MAX: Final = 64
"""Nesting of a stored value."""
STORED_NODES_MAX: Final = 2_000_000
"""Scalars and containers in one stored value."""
STORED_TEXT_MAX: Final = 100_000_000
"""Characters of all texts in one stored value."""
INTEGER_DIGITS_MAX: Final = 4_000
RESULT_SIZE_MAX: Final = 10_000_000
"""Characters or elements a single function or operator may build."""
EXPRESSION_TEXT_MAX: Final = 100_000
EXPRESSION_DEPTH_MAX: Final = 60
"""Nested parentheses, calls and literals in one expression."""
EXPRESSION_CHAIN_MAX: Final = 200
"""Operators in one unparenthesised chain."""
FLOW_TEXT_MAX: Final = 50_000_000
FLOW_DEPTH_MAX: Final = 1_000
"""Nesting of a flow document as text."""
SUBFLOW_DEPTH_MAX: Final = 50
YAML_ALIASES_MAX: Final = 1_000
NODE_TIMEOUT_MS_MAX: Final = 24 * 3_600_000
FUEL: Final = 2_000
"""Rounds and cyclic steps between two chances to commit."""
