"""`robandit diagnose` names the column that it does not use."""

import numpy as np
import pytest

from robandit.cli.diagnose import diagnose


@pytest.mark.parametrize("column", ["propensity", "other"])
def test_propensities_are_reported_not_to_be_used(column, tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [f"{'ab'[i % 2]},{rng.normal()},0.5" for i in range(80)]
    (tmp_path / "log.csv").write_text("\n".join([f"arm,reward,{column}", *rows]))
    diagnose(str(tmp_path / "log.csv"), out=tmp_path / "page.html")
    for text in (capsys.readouterr().out, (tmp_path / "page.html").read_text()):
        assert ("is not used here; robandit replay uses it as weights." in text) == (column == "propensity")
