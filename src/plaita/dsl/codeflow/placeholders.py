"""Names for the bodies of flows. They are compiled, not executed: using one outside of a flow says so."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from plaita.base.errors import NotSupported

NAMES: Final = (
    "INPUT", "NODE", "GLOBAL", "PARENT", "ENV", "STATE", "F", "HTTP", "CODE", "EVENT", "MAP", "FILTER", "FIND", "LOOP",
    "REDUCE", "WHILE", "CHILD", "REFERENCE", "PARALLEL", "ASSIGN", "MOCK", "DELAY", "APPROVAL", "SWITCH", "CASE", "IF",
)  # fmt: skip


class Placeholder:
    """A name that means something inside of a flow only."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def _refuse(self) -> NoReturn:
        hint = "decorate the function with @flow(…) or @childflow"
        raise NotSupported(f"{self.__name__} is a placeholder: it stands for a part of a flow", hint)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse()

    def __getitem__(self, key: Any) -> Any:
        self._refuse()

    def __bool__(self) -> bool:
        self._refuse()

    def __iter__(self) -> Any:
        self._refuse()

    def __repr__(self) -> str:
        return f"<placeholder {self.__name__}>"


class ErrorHandler:
    """What a node does about its failure: ``HTTP(url, on_error=ErrorHandler("continue", retry_times=2))``."""

    def __init__(
        self,
        strategy: str = "abort",
        retry_times: int | None = None,
        default_value: Any = None,
        error_code: int | str | None = None,
        error_message: str | None = None,
    ) -> None:
        self.strategy, self.retry_times, self.default_value = strategy, retry_times, default_value
        self.error_code, self.error_message = error_code, error_message


def end(output: Any = None, *, result_type: str = "success", error: Any = None, id: str | None = None) -> Any:
    """The end of a flow, as ``return``, with what ``return`` cannot say. Only inside of a flow."""
    Placeholder("end")._refuse()
