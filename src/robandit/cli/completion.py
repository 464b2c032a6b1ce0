"""``robandit completion``."""

from __future__ import annotations

from typing import Literal

__all__ = ["completion"]


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the script with which a shell completes commands and options.

    bash: robandit completion bash >> ~/.bashrc

    zsh: robandit completion zsh > ~/.zfunc/_robandit, or any other folder of $fpath

    fish: robandit completion fish > ~/.config/fish/completions/robandit.fish

    The next shell that starts completes.

    Parameters
    ----------
    shell
        The shell that will read it.
    """
    from robandit.cli import application

    print(application().generate_completion(shell=shell), end="")
