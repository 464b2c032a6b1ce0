"""The paper's numbered statements and the steps of our theorem: each has a check, a quick run of it and a negative control."""

import re
from pathlib import Path

from helpers.cases import cases
from robandit.verify import FILES, statements

HERE = Path(__file__).parent
NUMBERED = [
    "table-1",
    *(f"theorem-{n}" for n in range(1, 9)),
    "lemma-2",
    "proposition-9",
    "proposition-10",
    "algorithm-2",
]


def test_every_numbered_statement_has_a_check():
    keys = {key for s in statements() for key in (s.key, *s.aliases)}
    assert keys >= set(NUMBERED)
    assert len(statements()) == len(FILES) == 15


@cases("statement", statements())
def test_a_statement_is_one_sentence(statement):
    assert "\n" not in statement.says
    assert 40 < len(statement.says) < 240
    assert statement.says.endswith(".")


@cases("file", FILES)
def test_every_check_has_a_quick_test_and_a_negative_control(file):
    texts = [path.read_text() for path in HERE.glob("test_*.py") if re.search(rf"\b{file}\b", path.read_text())]
    assert any("checked(" in text or "run(QUICK" in text or "run(Effort(quick=True" in text for text in texts)
    assert any('"fails"' in text for text in texts)
