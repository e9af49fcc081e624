"""What a stranger does: clone, run the README's first command, give the approvals, run its second command.

    python -m tools.fresh_clone [--only-first]

Everything happens in a temporary folder with an empty HOME and a fresh virtual environment; the commands are taken from
the README's own text.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
WAITING = 3


def commands(readme: str, name: str) -> str:
    """The block of the README that is marked with this name."""
    found = re.search(rf"<!-- commands: {name} -->\n```sh\n(.*?)```", readme, re.S)
    if found is None:
        raise SystemExit(f"README has no block marked {name!r}")
    return found.group(1).strip()


def run(script: str, clone: Path, home: Path) -> tuple[int, str]:
    """Run a script in the clone as a newcomer would; its exit code and output, which is shown as well."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TERM", "CI") or k.startswith("PIP_")}
    print(f"$ {script}", flush=True)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=clone,
        env={**kept, "HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(done.stdout, flush=True)
    return done.returncode, done.stdout


def main() -> None:
    """Play the story; raises ``SystemExit`` at the first surprise."""
    with tempfile.TemporaryDirectory() as folder:
        clone, home = Path(folder) / "plaita", Path(folder) / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        readme = (clone / "README.md").read_text()
        code, out = run(commands(readme, "setup"), clone, home)
        if code != WAITING:
            raise SystemExit(f"the first command ended with {code}, not {WAITING} (waiting)")
        task = re.search(r"plaita approve (\w+) --by ann", out)
        if task is None:
            raise SystemExit("the first command names no task to approve")
        story = commands(readme, "story").replace("TASK", task.group(1))
        code, out = run(f"set -e; . .venv/bin/activate; {story}", clone, home)
        if code or "completed" not in out:
            raise SystemExit(f"the approvals ended with {code}")
        if "--only-first" in sys.argv:
            return
        code, _ = run("rm -rf .venv; " + commands(readme, "checks"), clone, home)
        if code:
            raise SystemExit(f"the second command ended with {code}")


if __name__ == "__main__":
    main()
