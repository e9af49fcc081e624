"""``plaita``: the command line. Commands import what they need when they run, so that ``--help`` is quick."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType, TracebackType
from typing import Annotated, Any, Final

import typer
import typer.core

from plaita.base.errors import PlaitaError
from plaita.cli import (
    adopt,
    approve,
    backup,
    cancel,
    dlq,
    doctor,
    event,
    explain,
    graph,
    inbox,
    inspect,
    logs,
    prune,
    ps,
    publish,
    resume,
    run,
    start,
    test,
    validate,
    wait,
    worker,
    workers,
)
from plaita.cli import build as build_command
from plaita.cli.failing import FAILED, INTERRUPTED, USAGE, complain, report, report_usage
from plaita.cli.screen import note
from plaita.cli.streams import open_streams

COMMANDS: Final[tuple[tuple[Callable[..., None], str], ...]] = (
    (run.run, "plaita run order.yaml -i amount=120"),
    (validate.validate, "plaita validate --strict order.yaml"),
    (build_command.build, "plaita build order.py --check"),
    (test.test, "plaita test order.yaml -k refund"),
    (publish.publish, "plaita publish order.yaml"),
    (publish.flows, "plaita flows"),
    (publish.flow, "plaita flow order"),
    (graph.graph, "plaita graph order.yaml --format svg -o order.svg"),
    (start.start, "plaita start order -i amount=120 --id order-17"),
    (ps.ps, "plaita ps --status waiting"),
    (inspect.inspect, "plaita inspect kwn9bqbqyzt3efwj7cmr --history"),
    (explain.explain, "plaita explain kwn9bqbqyzt3efwj7cmr"),
    (logs.logs, "plaita logs kwn9bqbqyzt3efwj7cmr --follow"),
    (wait.wait, "plaita wait kwn9bqbqyzt3efwj7cmr --timeout 30"),
    (resume.resume, """plaita resume kwn9bqbqyzt3efwj7cmr --wait paid --data '{"ok": true}'"""),
    (cancel.cancel, "plaita cancel kwn9bqbqyzt3efwj7cmr"),
    (cancel.retry, "plaita retry kwn9bqbqyzt3efwj7cmr"),
    (cancel.delete, "plaita delete kwn9bqbqyzt3efwj7cmr"),
    (inbox.inbox, "plaita inbox --by ann"),
    (approve.approve, "plaita approve nec502nhwn --by ann -m fine"),
    (approve.reject, """plaita reject nec502nhwn --by ann -m "no receipt" """.rstrip()),
    (worker.worker, "plaita worker --concurrency 20 --queues default,slow"),
    (workers.workers, "plaita workers"),
    (doctor.doctor, "plaita doctor"),
    (adopt.adopt, "plaita adopt --dry-run"),
    (prune.prune, "plaita prune --older-than 30"),
    (backup.backup, "plaita backup monday.db"),
)
"""Every command, with an example for its help."""

EVENT_COMMANDS: Final[tuple[tuple[Callable[..., None], str], ...]] = (
    (event.publish, """plaita event publish paid --key order-17 --data '{"amount": 120}'"""),
)
LETTER_COMMANDS: Final[tuple[tuple[Callable[..., None], str], ...]] = (
    (dlq.ls, "plaita dlq ls"),
    (dlq.show, "plaita dlq show 1796075103249-0"),
    (dlq.replay, "plaita dlq replay 1796075103249-0 --by ann"),
    (dlq.discard, "plaita dlq discard 1796075103249-0"),
)
WORDS_MAX: Final = 1_000
Complaint: Final[type[Exception]] = typer.BadParameter.__mro__[2]
"""The base of everything the parser complains about."""


class Command(typer.core.TyperCommand):
    """A command whose help names no Python types: the name of a parameter says what it is."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, those of the parser itself among them."""
        return _untyped(super().get_params(ctx))

    def get_short_help_str(self, limit: int = WORDS_MAX) -> str:
        """Its first sentence for a list of commands, which is folded and not cut."""
        return super().get_short_help_str(WORDS_MAX)


class Group(typer.core.TyperGroup):
    """As ``Command``, for what has commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, those of the parser itself among them."""
        return _untyped(super().get_params(ctx))

    def get_short_help_str(self, limit: int = WORDS_MAX) -> str:
        """Its first sentence for a list of commands, which is folded and not cut."""
        return super().get_short_help_str(WORDS_MAX)


def _untyped(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if parameter.param_type_name == "argument" or parameter.is_flag:
            parameter.display_type_rich = _no_type
    return parameters


def _no_type(ctx: object) -> None:
    """No type is shown."""


BOXED_MIN: Final = 110
"""How wide a terminal is whose boxes cut no name of an option."""
_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))
"""What a disk says that takes no more."""


def build(*, rich: bool = False, only: str | None = None) -> typer.Typer:
    """The application; ``rich`` draws the help with boxes and colours. ``only`` the command of that name is in it."""
    mode: str | None = "rich" if rich else None
    app = typer.Typer(
        name="plaita",
        cls=Group,
        help="Flows that survive: run, watch and answer durable executions.",
        rich_markup_mode=mode,  # type: ignore[arg-type]
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for function, example in COMMANDS:
        if only in (None, function.__name__):
            app.command(cls=Command, epilog=f"Example: {example}")(function)
    if only is None:
        _add_groups(app, mode)
    return app


def _add_groups(app: typer.Typer, mode: str | None) -> None:
    """The commands that have commands."""
    events = typer.Typer(cls=Group, help="Events from outside.", rich_markup_mode=mode)  # type: ignore[arg-type]
    events.callback()(_nothing)
    for function, example in EVENT_COMMANDS:
        events.command(cls=Command, epilog=f"Example: {example}")(function)
    app.add_typer(events, name="event")
    about = "Messages that could not be carried out."
    letters = typer.Typer(cls=Group, help=about, rich_markup_mode=mode)  # type: ignore[arg-type]
    letters.callback()(_letters)
    for function, example in LETTER_COMMANDS:
        letters.command(cls=Command, epilog=f"Example: {example}")(function)
    app.add_typer(letters, name="dlq")


def _version(asked: bool) -> None:
    if asked:
        from plaita import __version__

        typer.echo(f"plaita {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Flows that survive: run, watch and answer durable executions."""


def _nothing() -> None:
    """Events from outside."""


def _letters() -> None:
    """Messages that could not be carried out."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: runs a command and exits with its code."""
    open_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _options_of(given)
    if "--debug" not in options:
        sys.excepthook = partial(_unexpected, "--json" in options)
    sys.exit(answer(given))


def answer(arguments: Sequence[str]) -> int:
    """Run a command and answer its exit code."""
    if sys.platform == "win32":
        complain("plaita runs on Linux and macOS, not on Windows", "use WSL 2")
        return USAGE
    options = _options_of(arguments)
    try:
        here = os.getcwd()  # noqa: PTH109
        if here not in sys.path:
            sys.path.append(here)
    except FileNotFoundError:
        complain("the current directory does not exist any more", "cd to another one")
        return USAGE
    return _run(list(arguments) or ["--help"], as_json="--json" in options, debug="--debug" in options)


def _options_of(given: Sequence[str]) -> Sequence[str]:
    return given[: given.index("--")] if "--" in given else given


def _run(arguments: list[str], *, as_json: bool, debug: bool) -> int:
    wide = sys.stdout.isatty() and shutil.get_terminal_size().columns >= BOXED_MIN
    # Making the parsers of all commands takes longer than most of them need to run.
    named = next((function.__name__ for function, _ in COMMANDS if function.__name__ == arguments[0]), None)
    command = typer.main.get_command(build(rich=wide, only=named))
    try:
        code = command.main(arguments, prog_name="plaita", standalone_mode=False)
    except PlaitaError as e:
        return report(e, as_json=as_json, debug=debug)
    except Complaint as e:
        context = getattr(e, "ctx", None)
        path = getattr(context, "command_path", "plaita")
        return report_usage(e.format_message(), path, as_json=as_json)  # type: ignore[attr-defined]
    except typer.Exit as e:
        return e.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return FAILED
    except OSError as e:
        if e.errno not in _FULL:
            raise
        _drop_output()
        complain(
            f"{e.filename or 'the output'} cannot be written: {e.strerror}", "what was asked for may have been done"
        )
        return FAILED
    return code if isinstance(code, int) else 0


def _drop_output() -> None:
    """Nobody takes the output any more; the interpreter must not try to flush into it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unexpected(as_json: bool, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """An error nobody raised on purpose, in two lines, or as JSON like every other."""
    at = traceback.extract_tb(trace)[-1] if trace is not None else None
    where = f" ({at.filename}:{at.lineno})" if at is not None else ""
    message, hint = f"unexpected {kind.__name__}: {error}{where}", "this is a bug; --debug shows how it came to it"
    if as_json:
        shape = {"code": "unexpected", "kind": "unexpected", "message": message, "hint": hint}
        note(json.dumps({"error": shape}, ensure_ascii=False))
    else:
        complain(message, hint)


class _Callable(ModuleType):
    """``from plaita.cli import main`` gives this module, and programs call it: it answers the exit code."""

    def __call__(self, argv: Sequence[str] | None = None) -> int:
        return answer(list(sys.argv[1:] if argv is None else argv))


sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    main()
