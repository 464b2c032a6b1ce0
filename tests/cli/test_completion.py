"""What a shell completes once it has read the script; bash itself is asked."""

import shutil
import subprocess

import pytest

from helpers.typed import typed
from robandit.cli.completion import completion

ASK = """
source ./robandit.bash
while IFS=, read -ra COMP_WORDS; do
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    [ "${COMP_WORDS[COMP_CWORD]}" = NOTHING ] && COMP_WORDS[COMP_CWORD]=""
    COMPREPLY=()
    _robandit
    echo "${COMPREPLY[*]}"
done
complete -p robandit
"""

TYPED = {  # commas between words; NOTHING is typed before the tab
    "robandit,com": "compare completion",
    "robandit,spec,NOTHING": "init check",
    "robandit,results,e": "export",
    "robandit,compare,--rep": "--replications",
    "robandit,compare,--suite,he": "heavy",
    "robandit,compare,--seed,7,--hor": "--horizon",
    "robandit,compare,--out,rec": "record.html",
    "robandit,diagnose,rec": "record.html",
    "robandit,replay,rec": "record.html",
    "robandit,replay,--policy,UCB1,rec": "record.html",
    "robandit,run,rec": "record.html",
    "robandit,spec,check,rec": "record.html",
    "robandit,completion,NOTHING": "bash zsh fish",
    "robandit,nonsense,--rep": "",
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
def test_bash_completes_commands_options_choices_and_files(tmp_path, capsys):
    completion("bash")
    (tmp_path / "robandit.bash").write_text(capsys.readouterr().out)
    (tmp_path / "record.html").touch()
    words = "\n".join(TYPED) + "\n"
    command = ["bash", "--norc", "-c", ASK]
    done = subprocess.run(command, input=words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    *completions, bound = done.stdout.splitlines()
    assert dict(zip(TYPED, completions, strict=True)) == TYPED
    assert bound.startswith("complete ")
    assert bound.endswith("-F _robandit robandit")


@pytest.mark.parametrize(
    ("shell", "begins"), [("zsh", "#compdef robandit"), ("fish", "# Fish completion for robandit")]
)
def test_other_shells_are_given_their_script(shell, begins, tmp_path):
    out, err = typed("completion", shell, cwd=tmp_path)
    assert err == ""
    assert out.startswith(begins)
    for word in ("compare", "precompile", "replications", "lower-bound"):
        assert word in out


def test_an_unknown_shell_is_wrong_usage(tmp_path):
    out, err = typed("completion", "tcsh", cwd=tmp_path, code=2)
    assert "tcsh" in out + err
