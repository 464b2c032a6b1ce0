"""The README's snippets and the examples run unchanged."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers.amount import amount
from helpers.cases import cases
from helpers.invalid import raises
from robandit import errors
from robandit.errors import InvalidInput
from robandit.experiments.compare_plan import compared
from robandit.policies import all_policies
from robandit.policies.comparison import as_lines, count_algorithms

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_runs(tmp_path):
    snippets = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(snippets) == 2
    script = tmp_path / "readme.py"
    script.write_text("\n".join(snippets).replace("replications=200", "replications=4"))
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "AdaR-UCB" in done.stdout
    assert (tmp_path / "bandit.bin").exists()


def test_the_readmes_figures_are_those_of_their_commands():
    """The picture's figures come from its script, the table of peers from `make bench-peers`."""
    printed = (ROOT / "docs" / "figures" / "worst-seed.txt").read_text()
    (caption,) = re.findall(r"!\[(.*?)\]\(docs/figures/worst-seed.svg\)", README)
    worst = re.findall(r"worst seed +([\d,]+);", printed)
    assert worst == re.findall(r"(?:seed|UCB's) (\d[\d,]*\d)", caption)
    assert re.findall(r"UCB1 .*; (\d+ of 50) runs", printed) == re.findall(r"(\d+ of 50) runs", README)
    table = README[README.index("| UCB1, ") :].split("\n\n")[0]
    assert table in (ROOT / "docs" / "results" / "peers.md").read_text()


def test_the_readmes_table_of_decisions_is_that_of_its_command():
    printed = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "decisions.py"], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    assert printed.strip() in README


def test_the_counts_of_policies_agree():
    """An algorithm is a class. The results list variants of it as policies."""
    algorithms = count_algorithms(all_policies())
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for text in (README, index, as_lines(all_policies())):
        assert re.findall(r"(\d+) algorithms\b", text) == [str(algorithms)]
    demo = (ROOT / "docs" / "results" / "demo.md").read_text(encoding="utf-8")
    assert compared([], None, []).notes[0] in demo
    table = README[README.index("| policy, told nothing |") :].split("\n\n")[0]
    numbers = [{9: "Nine", 10: "Ten"}[table.count("\n") - 1]]
    for name in ("recorded", "heavy"):
        page = (ROOT / "docs" / "results" / f"{name}.md").read_text(encoding="utf-8")
        summary = page[page.index("| policy | regret / AdaKL-UCB's, geometric mean |") :].split("\n\n")[0]
        numbers.append(str(summary.count("\n") - 1))
    sentence = "{} of the {} policies on the recorded sets and {} on the problems, variants included".format(*numbers)
    assert sentence in README


def test_the_page_on_recorded_rewards_runs(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "how-to" / "recorded-rewards.md").read_text()
    (snippet,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(snippet, {})
    printed = capsys.readouterr().out
    assert "NOT significant" in printed
    assert "epsilon-greedy" in printed


def test_the_page_on_logging_runs(capsys):
    text = (ROOT / "docs" / "how-to" / "log-for-reuse.md").read_text(encoding="utf-8")
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(snippet, names)
    printed = capsys.readouterr().out
    means = [float(mean) for mean in re.findall(r"^[abc] \d+ (\S+)$", printed, re.MULTILINE)]
    # At least 400 rewards of each arm with standard deviation 1: 4 standard errors are 0.2.
    np.testing.assert_allclose(means, [-1.0, -1.3, -2.0], atol=0.2)
    assert "UCB1" in printed


def test_the_page_on_logging_names_every_randomised_policy():
    text = (ROOT / "docs" / "how-to" / "log-for-reuse.md").read_text(encoding="utf-8")
    table = text[text.index("## Which policy") : text.index("## Estimate the means")]
    named = set(re.findall(r"`(\w+)`", table.split("| all others")[0]))
    randomised = {type(policy).__name__ for policy in all_policies() if policy.randomised}
    assert randomised == named & {type(policy).__name__ for policy in all_policies()}


@cases("path", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        assert target.startswith("https://") or (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize(
    ("page", "source", "language"),
    [
        ("how-to/add-a-policy.md", "examples/custom_policy.py", "py custom_policy.py"),
        ("explanation/heavy-tails.md", "docs/figures/worst-seed.txt", "text"),
        ("explanation/adar-in-pictures.md", "docs/figures/regret.txt", "text"),
    ],
)
def test_pages_show_files_as_they_are(page, source, language):
    """Pages quote the whole file in a plain block, because they are also read in the repository, where includes do not work."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert f"```{language}\n{(ROOT / source).read_text(encoding='utf-8')}```\n" in text


def test_the_api_page_lists_every_error():
    text = (ROOT / "docs" / "reference" / "api" / "errors.md").read_text(encoding="utf-8")
    assert re.findall(r"^   (\w+)$", text, re.MULTILINE) == sorted(errors.__all__)


def test_the_reference_of_the_service_is_that_of_its_script():
    """`python docs/service_reference.py` writes the page."""
    script = runpy.run_path(str(ROOT / "docs" / "service_reference.py"), run_name="reference")
    assert script["PAGE"].read_text(encoding="utf-8") == script["markdown"]()


def test_links_in_the_reference_of_the_service_lead_to_titles():
    script = runpy.run_path(str(ROOT / "docs" / "service_reference.py"), run_name="reference")
    text = script["markdown"]()
    titles = [script["_anchor"](title) for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    assert len(titles) == len(set(titles))
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= set(titles)


def test_pages_are_plain_markdown():
    """Only hidden lists of pages and API pages may use Sphinx directives, which show as code in the repository."""
    for path in (ROOT / "docs").glob("**/*.md"):
        text = path.read_text(encoding="utf-8")
        if path.name == "index.md":
            text = re.sub(r"\n```\{toctree\}\n:hidden:\n[^`]*```\n\Z", "", text)
        if path.parent.name == "api":
            text = re.sub(r"^```\{eval-rst\}$", "", text, flags=re.MULTILINE)
        directives = re.findall(r"^(?:`{3,}\{.*|:{3,}.*|---)$|\{[\w:]+\}`", text, flags=re.MULTILINE)
        assert not directives, f"{path.relative_to(ROOT)} has {directives}"


EXAMPLES = sorted(set((ROOT / "examples").glob("*.py")) - {ROOT / "examples" / "production.py"})  # it has its own test


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_run(path, tmp_path):
    script = tmp_path / path.name
    text = path.read_text(encoding="utf-8")
    script.write_text(amount(text.replace("EPISODES = 2_000, 10", "EPISODES = 2_000, 1"), text), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_example_policy_is_short_and_keeps_the_contract():
    from robandit.checks import check_policy

    path = ROOT / "examples" / "custom_policy.py"
    policy = re.search(r"class State.*?(?=\n\n\nif __name__)", path.read_text(), re.DOTALL).group()
    assert len([line for line in policy.splitlines() if line.strip()]) <= 25
    check_policy(runpy.run_path(str(path), run_name="custom_policy")["MedianGreedy"]())


def test_the_example_policy_takes_the_median_of_three_means():
    """It also rejects values that are not probabilities. Its functions run as plain Python: nothing is compiled."""
    policy = runpy.run_path(str(ROOT / "examples" / "custom_policy.py"), run_name="custom_policy")["MedianGreedy"]
    state = policy().init(2, None)
    rewards = np.random.default_rng(1).pareto(1.5, 50)
    for count, reward in enumerate(rewards, 1):
        policy.update(policy().params(), state, 1, reward)
        means = [rewards[:count][start::3].mean() for start in range(min(count, 3))]
        assert state.medians[1] == pytest.approx(np.median(means) if count >= 3 else np.inf, rel=1e-12)
    for wrong in (-0.1, 1.1, np.nan):
        with raises(InvalidInput, parameter="epsilon", rule="a finite number >= 0 and <= 1"):
            policy(epsilon=wrong)
