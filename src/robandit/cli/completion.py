"""``robandit completion``."""

from __future__ import annotations

from typing import Literal


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script that lets a shell complete commands and options.

    bash: robandit completion bash >> ~/.bashrc

    zsh: robandit completion zsh > ~/.zfunc/_robandit (or any other folder in $fpath)

    fish: robandit completion fish > ~/.config/fish/completions/robandit.fish

    Completion works in shells that you start afterwards.

    Parameters
    ----------
    shell
        The shell that reads the script.
    """
    from robandit.cli import application

    print(application().generate_completion(shell=shell), end="")
