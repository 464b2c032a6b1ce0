"""The OpenAPI document: a snapshot of it, its form, and what it says about the routes."""

import importlib.util
import json
import re
from pathlib import Path

import jsonschema
import pytest
import schemathesis

from helpers.cases import cases
from helpers.serving import Local
from robandit import __version__
from robandit.service.openapi import contents, document
from robandit.service.problems import TITLES
from robandit.service.routes import ROUTES

GOLDEN = Path(__file__).parent.parent / "golden"
METHODS = {"get", "put", "post", "delete", "patch"}


@pytest.fixture(scope="module")
def golden():
    spec = importlib.util.spec_from_file_location("golden_make", GOLDEN / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def operations():
    for path, methods in contents()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_the_interface_is_the_released_one(golden):
    """If the change is meant: remove tests/golden/openapi.v1.json, and run python tests/golden/make.py."""
    known = json.loads((GOLDEN / "openapi.v1.json").read_text())
    assert golden.interface() == known


def test_the_document_is_valid():
    """schemathesis has the schema of OpenAPI 3.1, and uses it without the network."""
    schemathesis.openapi.from_dict(contents()).validate()
    broken = contents()
    del broken["info"]["title"]
    with pytest.raises(Exception, match="title"):
        schemathesis.openapi.from_dict(broken).validate()


def test_every_schema_is_valid_and_every_reference_leads_somewhere():
    known = contents()
    assert known["openapi"].startswith("3.1.")
    for schema in known["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    references = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(known)))
    assert references == {f"#/components/schemas/{name}" for name in known["components"]["schemas"]}


def test_every_route_is_documented():
    documented = {(method.upper(), path) for path, method, _ in operations()}
    assert documented == {(route.method, route.path) for route in ROUTES}
    ids = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(ids)) == len(ids)
    assert {method for _, method, _ in operations()} <= METHODS


@cases(("path", "method", "operation"), list(operations()))
def test_an_operation(path, method, operation):
    assert operation["summary"]
    assert not operation["summary"].endswith(".")
    named = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"]
    assert named == re.findall(r"\{(\w+)\}", path)
    for parameter in operation.get("parameters", ()):
        assert parameter["required"] == (parameter["in"] == "path")
        assert parameter["description"].endswith(".")
        jsonschema.Draft202012Validator.check_schema(parameter["schema"])
    answers = operation["responses"]
    assert any(status.startswith("2") for status in answers)
    needs_key = operation["security"] == [{"key": []}]
    assert needs_key == (path not in ("/healthz", "/readyz"))
    if needs_key:
        assert {"401", "403", "429", "503"} <= set(answers)
        assert re.search(r"Needs the scope (decide|reward|read|admin)\.$", operation["description"])
    assert ("requestBody" in operation) == (method in ("put", "patch") or (method == "post" and "413" in answers))
    for status, answer in answers.items():
        assert answer["description"].endswith(".")
        if status.startswith("4"):
            assert set(answer["content"]) == {"application/problem+json"}
            assert int(status) in TITLES


def test_the_document_is_served(tmp_path):
    with Local(tmp_path / "robandit.db", authenticate=True) as local:
        answer = local.call("GET", "/openapi.json", key="")
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        assert answer.body == document()
        assert answer.json == contents()
        assert answer.json["info"]["version"] == __version__
