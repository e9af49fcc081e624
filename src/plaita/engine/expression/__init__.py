"""The expression language: compile a field's value once, run it in a scope.

``compile_value`` is the door. ``Scope`` is what the machine's frames provide; ``FunctionTable`` is what ``$F`` knows.
"""

from plaita.engine.expression.compiled import Compiled, Finding, Run
from plaita.engine.expression.compiler import compile_value
from plaita.engine.expression.errors import EvaluationError, ExpressionSyntaxError
from plaita.engine.expression.function import FunctionCategory, FunctionSpec, FunctionTable
from plaita.engine.expression.functions import BUILTIN_FUNCTIONS
from plaita.engine.expression.registry import ExpressionRegistry, get_default_expression_registry
from plaita.engine.expression.scope import ABSENT, Absent, Facts, Names, Scope

__all__ = [
    "ABSENT",
    "Absent",
    "BUILTIN_FUNCTIONS",
    "Compiled",
    "EvaluationError",
    "ExpressionRegistry",
    "ExpressionSyntaxError",
    "Facts",
    "Finding",
    "FunctionCategory",
    "FunctionSpec",
    "FunctionTable",
    "Names",
    "Run",
    "Scope",
    "compile_value",
    "get_default_expression_registry",
]
