"""``robandit precompile``."""

from __future__ import annotations

from pathlib import Path


def precompile(*policy: str, into: Path | None = None) -> None:
    """Compile policies ahead of time, so that later runs start at once. All policies take a minute or two on two cores.

    For example, when an image is built: `robandit precompile AdaKLUCB --into /opt/robandit`. Later processes use that folder if
    ROBANDIT_CACHE_DIR is its path. It may then be read-only.

    Parameters
    ----------
    policy
        Policies, such as AdaKLUCB; `robandit policies` lists the names. By default all.
    into
        The folder for the compiled code; by default the cache folder of this user.
    """
    from robandit.cli.terminal.guard import write_line
    from robandit.cli.terminal.progress import steps
    from robandit.experiments.compare_plan import named_policies
    from robandit.policies import all_policies
    from robandit.precompile import SHARED
    from robandit.precompile import precompile as compile_now

    policies = named_policies(policy) if policy else all_policies()
    with steps("compiling", len(policies) + len(SHARED)) as advance:
        folder = compile_now(policies, into=into, done=advance)
    write_line(f"compiled code is in {folder}")
