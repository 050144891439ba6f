"""The licence: the whole text in a file, and its name in the metadata of the package."""

import tomllib

from tests.test_architecture import ROOT


def test_the_project_is_under_the_apache_licence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [file] = project["license-files"]
    text = (ROOT / file).read_text()

    assert project["license"] == "Apache-2.0"
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert "END OF TERMS AND CONDITIONS" in text
    assert text.rstrip().endswith("limitations under the License.")
