"""deploy/: the files parse, agree with each other and with the code, and the programs that read them accept them, where installed.

No container, no cluster and no Grafana runs here.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from itertools import combinations
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
import yaml

from helpers.postgres import binaries
from helpers.serving import Local
from robandit import __version__
from robandit.cli import application
from robandit.decisions import base, settings
from robandit.service import server
from robandit.service.routes import ROUTES
from robandit.storage import open_store

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
KUBERNETES = ("namespace", "deployment", "service", "poddisruptionbudget", "networkpolicy")
LABELS = {"app.kubernetes.io/name": "robandit"}
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
DASHBOARD = json.loads((DEPLOY / "grafana" / "robandit.json").read_text())
ALERTS = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())
REPLICAS = ("robandit-1", "robandit-2")


def has(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"needs {program}")


def ran(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, **options)


def manifest(name):
    return yaml.safe_load((DEPLOY / "kubernetes" / f"{name}.yaml").read_text())


POD = manifest("deployment")["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]


def test_every_file_is_of_a_kind_that_is_checked():
    kinds = {path.suffix or path.name for path in DEPLOY.rglob("*") if path.is_file() and "secrets" not in path.parts}
    assert kinds == {".yaml", ".json", ".service", ".timer", ".env", ".sql", ".conf", "Dockerfile", "Caddyfile"}
    for path in DEPLOY.rglob("*.yaml"):
        assert yaml.safe_load(path.read_text()), path


def test_the_files_are_in_the_source_distribution():
    include = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"][
        "include"
    ]
    assert {"/deploy", "/.dockerignore"} <= set(include)


# --- commands ---------------------------------------------------------------------------------------------------------


def exec_form(instruction):
    return json.loads(re.search(rf"^{instruction} (\[.*\])$", DOCKERFILE, re.MULTILINE)[1])


def commands():
    """Every command of ours in the files, without its first word."""
    assert exec_form("ENTRYPOINT") == ["robandit"]
    yield exec_form("CMD")
    yield CONTAINER["args"]
    texts = [
        path.read_text().replace("%i", "8000") for path in DEPLOY.rglob("*") if path.suffix in (".service", ".yaml")
    ]
    for text in [DOCKERFILE, *texts]:
        for found in re.findall(
            r"(?:^|&& |# +|exec |=)(?:/opt/robandit/bin/)?robandit ((?:serve|precompile|keys|backup) .*)", text, re.M
        ):
            yield shlex.split(found.rstrip("\\' "))


def test_the_command_line_accepts_every_command():
    app, seen = application(), []
    for words in commands():
        app.parse_args(words, exit_on_error=False, print_error=False)
        seen.append(words[0])
    assert {name: seen.count(name) for name in set(seen)} == {"serve": 5, "precompile": 1, "keys": 1, "backup": 1}


def test_health_checks_ask_for_paths_that_exist():
    known = {route.path for route in ROUTES}
    texts = [path.read_text() for path in DEPLOY.rglob("*") if path.is_file()]
    asked = {word for text in texts for word in re.findall(r"(?<=[ 0])/(?:healthz|readyz|metrics)\b", text)}
    assert asked == {"/healthz", "/readyz", "/metrics"}
    assert asked <= known


# --- the image --------------------------------------------------------------------------------------------------------


def test_the_image_is_made_of_what_exists_and_is_not_ignored():
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [words.split()[:-1] for words in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)]
    assert sorted(name for names in copied for name in names) == sorted(kept)
    assert all((ROOT / name).exists() for name in kept)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert re.findall(r'"\.\[(\w+)\]"', DOCKERFILE) == ["serve"]
    assert "serve" in extras
    assert "--constraint constraints.txt" in DOCKERFILE


def test_the_labels_of_the_image_are_true():
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="(.*)"', DOCKERFILE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(labels) == {"title", "description", "licenses", "version"}
    assert (labels["licenses"], labels["version"]) == (project["license"], __version__)


def test_the_stages_of_the_image_agree():
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(bases) == 2
    assert len(set(bases)) == 1  # another version of Python would not use the compiled code
    build, final = DOCKERFILE.split("\nFROM ")[1:]
    assert "NUMBA_CPU_NAME=generic" in build
    assert "NUMBA_CPU_NAME=generic" in final  # otherwise, the processor of the machine is part of the name of the code
    folder = re.search(r"precompile --into (\S+)", build)[1]
    assert f"ROBANDIT_CACHE_DIR={folder}" in final
    assert f"COPY --from=build {Path(folder).parent} {Path(folder).parent}" in final


def test_the_image_does_not_run_as_root():
    [uid] = re.findall(r"^USER (\d+):\1$", DOCKERFILE, re.MULTILINE)
    assert int(uid) >= 10_000
    assert DOCKERFILE.count(f"--uid {uid} ") == DOCKERFILE.count(f"--owner={uid} ") == 1
    assert POD["securityContext"]["runAsUser"] == POD["securityContext"]["runAsGroup"] == int(uid)


@has("hadolint")
def test_hadolint_accepts_the_dockerfile():
    done = ran("hadolint", DEPLOY / "Dockerfile")
    assert done.returncode == 0, done.stdout


@has("docker")
def test_docker_accepts_the_dockerfile():
    if ran("docker", "info").returncode or ran("docker", "buildx", "version").returncode:
        pytest.skip("needs a Docker engine with buildx")
    done = ran("docker", "build", "--check", "--file", DEPLOY / "Dockerfile", ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


# --- compose ----------------------------------------------------------------------------------------------------------


def test_every_container_of_compose_is_confined():
    assert set(COMPOSE["services"]) == {"postgres", "balancer", *REPLICAS}
    for name, service in COMPOSE["services"].items():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "balancer" else [])
        assert "/tmp" in service["tmpfs"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert COMPOSE["networks"]["data"] == {"internal": True}
    assert "data" not in COMPOSE["services"]["balancer"]["networks"]


def test_compose_names_files_that_exist_and_secrets_that_git_ignores():
    for service in COMPOSE["services"].values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source in COMPOSE["volumes"] or (DEPLOY / source).is_file()
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
    for name in REPLICAS:
        build = COMPOSE["services"][name]["build"]
        assert (DEPLOY / build["context"] / build["dockerfile"]).samefile(DEPLOY / "Dockerfile")
    assert all(each["file"].startswith("./secrets/") for each in COMPOSE["secrets"].values())
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    assert "PASSWORD:" not in (DEPLOY / "compose.yaml").read_text()


def test_replicas_of_compose_read_the_password_from_their_secret(tmp_path):
    service = COMPOSE["services"]["robandit-1"]
    assert service == COMPOSE["services"]["robandit-2"]
    assert service["secrets"] == ["robandit-password"]
    secret, program = tmp_path / "secret", tmp_path / "robandit"
    secret.write_text('it\'s "odd" $HOME\n')
    program.write_text('#!/bin/sh\nprintf "%s|" "$PGPASSWORD" "$@"\n')
    program.chmod(0o755)
    words = [
        word.replace("$$", "$").replace("/run/secrets/robandit-password", str(secret)) for word in service["entrypoint"]
    ]
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = ran(*words, env={"PATH": path})
    assert done.stdout == 'it\'s "odd" $HOME|serve|--host|0.0.0.0|--port|8000|', done.stderr
    secret.unlink()
    assert ran(*words, env={"PATH": path}).returncode == 1  # not a server without a password


def test_the_balancer_knows_all_replicas():
    text = (DEPLOY / "Caddyfile").read_text()
    upstreams = re.findall(r"reverse_proxy (?:@\w+ )?(.*?)(?: \{)?$", text, re.MULTILINE)
    assert upstreams == ["robandit-1:8000 robandit-2:8000"] * 2
    assert "health_uri /readyz" in text
    assert COMPOSE["services"]["balancer"]["ports"] == ["127.0.0.1:8000:8000"]
    for service in COMPOSE["services"].values():
        if "depends_on" in service:
            assert set(service["depends_on"]) <= set(COMPOSE["services"])


@has("caddy")
def test_caddy_accepts_its_configuration():
    done = ran("caddy", "adapt", "--config", DEPLOY / "Caddyfile", "--adapter", "caddyfile", "--validate")
    assert done.returncode == 0, done.stderr


# --- Kubernetes -------------------------------------------------------------------------------------------------------


def test_the_pods_satisfy_the_restricted_profile():
    assert manifest("namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert POD["automountServiceAccountToken"] is False
    assert POD["enableServiceLinks"] is False
    assert len(POD["containers"]) == 1
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(POD)
    assert all(set(volume) <= {"name", "emptyDir", "configMap"} for volume in POD["volumes"])
    mounted = {mount["name"]: mount for mount in CONTAINER["volumeMounts"]}
    assert mounted["tmp"]["mountPath"] == "/tmp"
    assert set(mounted) == {volume["name"] for volume in POD["volumes"]}


def test_pods_are_asked_start_drain_and_end_in_order():
    paths = {name: CONTAINER[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {each["port"] for each in paths.values()} == {"http"}
    assert [each["path"] for each in paths.values()] == ["/healthz", "/healthz", "/readyz"]
    pause = CONTAINER["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pause > CONTAINER["readinessProbe"]["periodSeconds"]
    assert POD["terminationGracePeriodSeconds"] > pause + server.GRACE
    assert COMPOSE["services"]["robandit-1"]["stop_grace_period"] == "90s"
    assert server.GRACE < 90


def test_two_pods_stay_apart_and_one_stays_up():
    spec = manifest("deployment")["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert manifest("poddisruptionbudget")["spec"]["minAvailable"] == 1
    keys = [each["topologyKey"] for each in POD["topologySpreadConstraints"]]
    assert keys == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    assert {"requests", "limits"} <= set(CONTAINER["resources"])
    assert "memory" in CONTAINER["resources"]["limits"]


def test_the_manifests_mean_the_same_pods():
    spec = manifest("deployment")["spec"]
    selectors = [
        spec["selector"]["matchLabels"],
        spec["template"]["metadata"]["labels"],
        manifest("service")["spec"]["selector"],
        manifest("poddisruptionbudget")["spec"]["selector"]["matchLabels"],
        manifest("networkpolicy")["spec"]["podSelector"]["matchLabels"],
        *(each["labelSelector"]["matchLabels"] for each in POD["topologySpreadConstraints"]),
    ]
    assert all(each == LABELS for each in selectors)
    [port] = CONTAINER["ports"]
    assert manifest("service")["spec"]["ports"][0]["targetPort"] == port["name"]
    assert str(port["containerPort"]) == CONTAINER["args"][CONTAINER["args"].index("--port") + 1]
    assert manifest("networkpolicy")["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_the_address_of_the_store_is_in_a_secret():
    environment = {each["name"]: each for each in CONTAINER["env"]}
    assert environment["ROBANDIT_STORE"]["valueFrom"]["secretKeyRef"] == {"name": "robandit-store", "key": "url"}
    mount = next(each for each in CONTAINER["volumeMounts"] if each["name"] == "database-ca")
    assert environment["PGSSLROOTCERT"]["value"] == f"{mount['mountPath']}/ca.crt"


def test_kustomize_has_all_manifests():
    custom = manifest("kustomization")
    assert custom["resources"] == [f"{name}.yaml" for name in KUBERNETES]
    assert {path.stem for path in (DEPLOY / "kubernetes").iterdir()} == {*KUBERNETES, "kustomization"}
    assert custom["namespace"] == manifest("namespace")["metadata"]["name"]
    assert [each["name"] for each in custom["images"]] == [CONTAINER["image"]]


@has("kubectl")
def test_kubectl_renders_the_manifests():
    done = ran("kubectl", "kustomize", DEPLOY / "kubernetes")
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    assert len(made) == len(KUBERNETES)
    [image] = [
        each["spec"]["template"]["spec"]["containers"][0]["image"] for each in made if each["kind"] == "Deployment"
    ]
    assert image.startswith("registry.example.org/robandit:")


# --- systemd ----------------------------------------------------------------------------------------------------------


def unit(name):
    return (DEPLOY / "systemd" / name).read_text()


def test_both_units_are_confined_in_the_same_way():
    def confined(name):
        lines = unit(name).partition("# MemoryDenyWriteExecute=")[2].splitlines()
        return [line for line in lines if not line.startswith(("#", "IPAddressAllow="))]

    assert len(confined("robandit.service")) > 25
    assert confined("robandit.service") == confined("robandit@.service")
    for name in ("robandit.service", "robandit@.service"):
        assert int(re.search(r"^TimeoutStopSec=(\d+)$", unit(name), re.MULTILINE)[1]) > server.GRACE


def test_a_replica_gets_its_store_from_a_file_that_others_cannot_read():
    assert "EnvironmentFile=/etc/robandit/robandit.env" in unit("robandit@.service")
    assert "mode 600" in unit("robandit.env")
    values = dict(line.split("=", 1) for line in unit("robandit.env").splitlines() if not line.startswith("#"))
    assert set(values) == {"ROBANDIT_STORE", "PGPASSWORD", "PGSSLROOTCERT"}
    assert values["ROBANDIT_STORE"].endswith("?sslmode=verify-full")
    assert re.search(r"^IPAddressAllow=localhost \S+$", unit("robandit@.service"), re.MULTILINE)  # and the database


@has("systemd-analyze")
def test_systemd_accepts_the_units(tmp_path):
    units = {path.name.replace("@.", "@8000."): path.read_text() for path in (DEPLOY / "systemd").glob("*.[st]*r*")}
    assert len(units) == 4
    for name, text in units.items():
        (tmp_path / name).write_text(text.replace("/opt/robandit/bin/robandit", sys.executable))
    done = ran("systemd-analyze", "verify", *(tmp_path / name for name in units))
    ours = [line for line in done.stderr.splitlines() if "robandit" in line]
    assert not ours, ours


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


@pytest.fixture
def without_role(postgres):
    """The URL of a superuser. The role and the database of the script are removed at the end."""
    import psycopg

    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        if connection.execute("SELECT FROM pg_roles WHERE rolname = 'robandit'").fetchone():
            pytest.skip("the server of ROBANDIT_TEST_POSTGRES has a role robandit")
        yield postgres.url()
        connection.execute("DROP DATABASE IF EXISTS robandit WITH (FORCE)")
        connection.execute("DROP ROLE IF EXISTS robandit")


@pytest.mark.xdist_group("postgres")
def test_the_role_of_the_script_can_serve_and_nothing_else(without_role, tmp_path):
    import psycopg

    password = tmp_path / "password"
    script = [shutil.which("psql") or binaries() / "psql", "--no-psqlrc", "--file", DEPLOY / "postgresql" / "roles.sql"]
    environment = os.environ | {"ROBANDIT_PASSWORD_FILE": str(password)}
    missing = ran(*script, without_role, env=environment)
    assert missing.returncode == 3
    assert "must name a file with a password" in missing.stderr
    password.write_text("it's odd\n")
    done = ran(*script, without_role, env=environment)
    assert done.returncode == 0, done.stderr
    url = urlsplit(without_role)._replace(path="/robandit").geturl()
    with psycopg.connect(url) as connection:
        kinds = "rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls, rolpassword LIKE 'SCRAM-SHA-256$%'"
        role = connection.execute(f"SELECT {kinds} FROM pg_authid WHERE rolname = 'robandit'").fetchone()
        assert role == (False, False, False, False, False, True)
        public = connection.execute("SELECT has_database_privilege('pg_monitor', 'robandit', 'CONNECT')").fetchone()
        assert public == (False,)
    address = urlsplit(url)
    place = f"robandit:{quote(password.read_text().strip())}@{address.hostname}:{address.port}"
    open_store(address._replace(netloc=place).geturl()).close()  # makes the tables


# --- Prometheus and Grafana -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exposed(tmp_path_factory):
    """The series of /metrics: name -> labels."""
    found = {}
    with Local(tmp_path_factory.mktemp("metrics") / "robandit.db") as local:
        local.call("PUT", "/v1/experiments/p", {"arms": ["a"]})
        text = local.call("GET", "/metrics").body.decode()
    for name in re.findall(r"^# TYPE (\w+) gauge", text, re.MULTILINE):
        found[name] = {"experiment"} if name == "robandit_tail_index" else set()  # it has no values yet
    for name, labels in re.findall(r"^(\w+)\{(.*)\} ", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


def rules():
    return [rule for group in ALERTS["groups"] for rule in group["rules"]]


def expressions():
    yield from (target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])
    yield from (variable["definition"] for variable in DASHBOARD["templating"]["list"] if variable["type"] == "query")
    yield from (rule["expr"] for rule in rules())


def test_expressions_use_metrics_and_labels_that_the_service_has(exposed):
    used = set()
    for expression in expressions():
        assert expression.count("(") == expression.count(")")
        series = re.findall(r"\b(robandit_\w+|up)\b(?:\{(.*?)\})?", expression)
        assert series, expression
        known = {"instance", "job"}
        for name, matchers in series:
            assert name == "up" or name in exposed, expression
            known |= exposed.get(name, set())
            assert set(re.findall(r"(\w+)(?:=~|!=|=)", matchers)) <= {"instance", "job"} | exposed.get(name, set())
            used.add(re.sub(r"_(bucket|sum|count)$", "", name))
        for grouped in re.findall(r"by \((.*?)\)", expression):
            assert set(grouped.split(", ")) <= known, expression
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exposed}
    assert used - {"up"} == families, "every metric is on the dashboard or in an alert"


def test_the_dashboard_is_complete():
    assert [each["name"] for each in DASHBOARD["templating"]["list"]] == ["datasource", "instance", "experiment"]
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels) == 14
    for panel in panels:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["description"].endswith(".")
        for target in panel["targets"]:
            expression = target["expr"]
            assert set(re.findall(r"\$(\w+)", expression)) <= {"instance", "experiment", "__rate_interval"}
            assert expression.count('instance=~"$instance"') == len(re.findall(r"\brobandit_\w+", expression))
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        assert (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


def test_alerts_name_the_limits_of_the_code():
    found = {rule["alert"]: rule for rule in rules()}
    assert len(found) == len(rules()) == 11
    assert f"> {settings.DEFAULT_OPEN * 80 // 100}" in found["RobanditManyOpen"]["expr"]
    assert f"{base.MOST_WAITING:,}" in found["RobanditWaiting"]["annotations"]["summary"]
    tests = yaml.safe_load((DEPLOY / "prometheus" / "alerts.test.yaml").read_text())["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert fired == set(found)


@has("promtool")
@pytest.mark.parametrize(
    "words", ["check rules alerts.yaml", "test rules alerts.test.yaml", "check config --syntax-only scrape.yaml"]
)
def test_promtool_accepts_the_rules(words):
    done = ran("promtool", *words.split(), cwd=DEPLOY / "prometheus")
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_finds_the_pods_of_the_manifests():
    [job] = yaml.safe_load((DEPLOY / "prometheus" / "scrape-kubernetes.yaml").read_text())["scrape_configs"]
    [keep] = [rule for rule in job["relabel_configs"] if rule.get("action") == "keep"]
    values = {
        "__meta_kubernetes_pod_label_app_kubernetes_io_name": LABELS["app.kubernetes.io/name"],
        "__meta_kubernetes_pod_container_port_name": CONTAINER["ports"][0]["name"],
    }
    assert keep["regex"] == ";".join(values[name] for name in keep["source_labels"])
    assert job["kubernetes_sd_configs"][0]["namespaces"]["names"] == [manifest("kustomization")["namespace"]]
    [other] = yaml.safe_load((DEPLOY / "prometheus" / "scrape.yaml").read_text())["scrape_configs"]
    assert job["job_name"] == other["job_name"] == "robandit"
    named = [expression for expression in expressions() if re.search(r"\bup\b", expression)]
    assert len(named) == 2
    assert all(f'up{{job="{job["job_name"]}"}}' in expression for expression in named)
