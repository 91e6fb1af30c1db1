"""The chart deploy/helm/voda with the real helm: what it renders, what it refuses, and what a real API server makes of
it, and real kubelets, where Voda schedules as a pod. Also deploy/taints, on DaemonSets there.

    /usr/bin/python3 tests/kubernetes/chart_test.py               everything; a real node takes root and containers
    /usr/bin/python3 tests/kubernetes/chart_test.py -k Rendered   without a cluster
"""
import base64
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import real_nodes  # noqa: E402
from cluster import HERE, ROOT, Cluster  # noqa: E402
from processes import ClusterError, run  # noqa: E402
from voda import job, workers  # noqa: E402

CHART = os.path.join(ROOT, "deploy", "helm", "voda")
BINARY = os.environ.get("VODA_BINARY") or os.path.join(ROOT, "build", "release", "voda")
NAMESPACE = "voda-chart"
VERSION = "1.36.3"
FORBIDDEN = {"hostPath", "hostNetwork", "hostPID", "hostIPC", "hostPort", "privileged", "clusterIP", "clusterIPs",
             "loadBalancerIP", "externalIPs", "nodePort"}
PROFILES = {
    "default": {},
    "namespaces": {"namespaces": ["team-a", "team-b", NAMESPACE]},
    "taints": {"steering": "taints", "tolerations": [{"key": "pool", "operator": "Exists"}]},
    "claim": {"replicas": 1, "data": {"persistent": {"enabled": True, "storageClassName": "fast", "size": "5Gi"}}},
    "claim of others": {"replicas": 1, "data": {"persistent": {"enabled": True, "existingClaim": "mine"}}},
    "own certificate": {"tls": {"secretName": "mine"}, "hosts": ["voda.example.com"]},
    "monitor": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "all": {"serviceMonitor": {"enabled": True, "tokenSecret": {"name": "t"},
                               "tlsConfig": {"insecureSkipVerify": True}},
            "networkPolicy": {"enabled": True, "apiFrom": [{"podSelector": {}}]}, "userRoles": {"create": True},
            "steering": False, "options": {"c": 2.5, "guard": 3000000}, "gpuResources": {"mi300": "amd.com/gpu"},
            "allow": ["hostPath", "tolerations"], "extraArgs": ["--min-runtime=5m"], "podLabels": {"team": "x"},
            "extraVolumes": [{"name": "metrics", "persistentVolumeClaim": {"claimName": "shared"}}],
            "extraVolumeMounts": [{"name": "metrics", "mountPath": "/metrics", "readOnly": True}],
            "extraEnv": [{"name": "TZ", "value": "UTC"}], "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a.b"]}],
            "podAnnotations": {"a": "1"}, "nodeSelector": {"pool": "system"}, "affinity": {"nodeAffinity": {}},
            "priorityClassName": "high", "image": {"digest": "sha256:" + "0" * 64, "pullSecrets": ["pull"]},
            "service": {"type": "LoadBalancer", "annotations": {"a": "b"}}, "fullnameOverride": "gpus"},
    "accounts of others": {"serviceAccount": {"create": False, "name": "mine"}, "rbac": {"create": False}},
}
ASKED = {  # all that `voda up` asks for where jobs are, and of the cluster; `voda release` has the rights of its user
    "mpijobs": {"get", "list", "watch", "create", "patch", "delete"},
    "pytorchjobs": {"get", "list", "watch", "create", "patch", "delete"},
    "mpijobs/status": {"patch"}, "pytorchjobs/status": {"patch"}, "pytorchjobs/scale": {"update"},
    "pods": {"list", "watch", "patch", "delete"}, "pods/log": {"get"}, "nodes": {"list", "watch"},
    "configmaps": {"get"}, "events": {"create", "patch"}, "tokenreviews": {"create"},
    "subjectaccessreviews": {"create"},
}


def programs():
    """The folder with helm."""
    done = subprocess.run([os.path.join(HERE, "build.sh"), "helm"], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise ClusterError("helm could not be built; the lines above say why")
    return done.stdout.strip().splitlines()[-1]


HELM = os.path.join(programs(), "helm")


def helm(*arguments, values=None, check=True, kubeconfig=None):
    """With its folders apart from those of whoever runs this."""
    with tempfile.TemporaryDirectory(prefix="voda-helm-") as folder:
        path = os.path.join(folder, "values.json")
        with open(path, "w") as file:
            json.dump(values or {}, file)
        environment = {"HELM_CACHE_HOME": folder, "HELM_CONFIG_HOME": folder, "HELM_DATA_HOME": folder,
                       "KUBECONFIG": kubeconfig or "/dev/null"}
        return run(HELM, *arguments, "--values", path, check=check, environment=environment)


def template(values=None, release="voda", check=True):
    return helm("template", release, CHART, "--namespace", NAMESPACE, "--kube-version", VERSION, values=values,
                check=check)


def render(values=None, release="voda"):
    """All objects."""
    return [one for one in yaml.safe_load_all(template(values, release).stdout) if one]


def of_kind(objects, kind):
    return [one for one in objects if one["kind"] == kind]


def the(objects, kind, name=None):
    found = [one for one in of_kind(objects, kind) if name in (None, one["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} of kind {kind}"
    return found[0]


def pod(objects):
    return the(objects, "Deployment")["spec"]["template"]["spec"]


def arguments(objects):
    return pod(objects)["containers"][0]["args"]


def rights(role):
    """resource or path -> verbs; a rule for certain names counts as NAME/…"""
    found = {}
    for rule in role["rules"]:
        for resource in rule.get("resources", []) + rule.get("nonResourceURLs", []):
            for name in rule.get("resourceNames", [None]):
                found.setdefault(resource if name is None else f"{resource}:{name}", set()).update(rule["verbs"])
    return found


def groups(role):
    """resource -> API groups"""
    return {resource: rule["apiGroups"] for rule in role["rules"] for resource in rule.get("resources", [])}


def walk(value, path=""):
    """Every key with its value, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner, f"{path}.{key}"
            yield from walk(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from walk(inner, f"{path}[{number}]")


class Rendered(unittest.TestCase):
    def test_helm_has_nothing_to_say(self):
        for name, values in PROFILES.items():
            with self.subTest(name):
                answer = helm("lint", "--strict", "--kube-version", VERSION, CHART, values=values)
                self.assertIn("1 chart(s) linted, 0 chart(s) failed", answer.stdout)
                self.assertNotRegex(answer.stdout, r"\[(WARNING|ERROR)\]")

    def test_nothing_is_privileged_and_nothing_of_the_host_is_used(self):
        for name, values in PROFILES.items():
            with self.subTest(name):
                objects = render(values)
                for key, value, path in walk(objects):
                    self.assertNotIn(key, FORBIDDEN, path)
                    if key in ("verbs", "resources", "apiGroups"):
                        self.assertNotIn("*", value, path)
                    if key == "rules":
                        for rule in value:
                            self.assertFalse({"secrets", "pods/exec"} & set(rule.get("resources", [])), path)
                spec = pod(objects)
                self.assertEqual(spec["securityContext"]["runAsUser"], 65532)
                self.assertIs(spec["securityContext"]["runAsNonRoot"], True)
                self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
                self.assertNotIn("initContainers", spec)
                for container in spec["containers"]:
                    self.assertEqual(container["securityContext"], {
                        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]}})
                    self.assertIn("requests", container["resources"])

    def test_objects_are_labelled_and_in_their_namespace(self):
        for name, values in PROFILES.items():
            with self.subTest(name):
                for one in render(values):
                    labels = one["metadata"]["labels"]
                    self.assertEqual(labels["app.kubernetes.io/instance"], "voda")
                    if one["kind"].startswith("ClusterRole"):
                        self.assertNotIn("namespace", one["metadata"])
                        self.assertIn(NAMESPACE, one["metadata"]["name"])
                    else:
                        self.assertIn(one["metadata"]["namespace"], [NAMESPACE, *(values.get("namespaces") or [])])

    def test_default(self):
        objects = render()
        self.assertEqual(sorted(one["kind"] for one in objects), sorted([
            "ClusterRole", "ClusterRoleBinding", "Deployment", "PodDisruptionBudget", "Role", "RoleBinding", "Secret",
            "Service", "ServiceAccount"]))
        deployment = the(objects, "Deployment")["spec"]
        self.assertEqual(deployment["replicas"], 2)
        labels = deployment["template"]["metadata"]["labels"]
        self.assertLessEqual(deployment["selector"]["matchLabels"].items(), labels.items())
        self.assertEqual(the(objects, "PodDisruptionBudget")["spec"]["selector"], deployment["selector"])
        self.assertNotIn("vodascheduler/role", labels)
        self.assertEqual(the(objects, "Service")["spec"]["selector"],
                         {**deployment["selector"]["matchLabels"], "vodascheduler/role": "leader"})
        ports = {one["name"]: one["port"] for one in the(objects, "Service")["spec"]["ports"]}
        self.assertEqual(ports, {"api": 55587, "scheduler": 55588, "allocator": 55589, "progress": 55590})
        container = pod(objects)["containers"][0]
        self.assertEqual({one["name"]: one["containerPort"] for one in container["ports"]}, ports)
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            self.assertEqual(container[probe]["httpGet"]["scheme"], "HTTPS")
            self.assertEqual(container[probe]["httpGet"]["port"], "api")
        self.assertEqual({one["name"] for one in container["env"]}, {"POD_NAME", "POD_NAMESPACE", "POD_IP"})
        self.assertEqual([one["topologyKey"] for one in pod(objects)["topologySpreadConstraints"]],
                         ["kubernetes.io/hostname"])
        self.assertEqual(list(pod(objects)["affinity"]), ["podAntiAffinity"])
        self.assertEqual(arguments(objects), [
            "up", "--cluster=kubernetes", "--data=/var/lib/voda/data", "--listen=0.0.0.0:55587",
            "--tls-cert=/etc/voda/tls/tls.crt", "--tls-key=/etc/voda/tls/tls.key", "--host=voda",
            f"--host=voda.{NAMESPACE}", f"--host=voda.{NAMESPACE}.svc", f"--host=voda.{NAMESPACE}.svc.cluster.local",
            "--host=$(POD_IP)", "--progress-listen=0.0.0.0:55590", f"--progress-url=http://voda.{NAMESPACE}:55590",
            f"--lease={NAMESPACE}/voda", "--steering=gates", "--mpi-version=v2beta1", "--not-ready-grace=60s",
            "--algorithm=Price", "--placement=cost", "--rate-limit=30s", "--log-format=json", "--log-level=info"])

    def test_every_mount_has_a_volume_and_every_secret_is_there(self):
        for name, values in PROFILES.items():
            with self.subTest(name):
                objects = render(values)
                volumes = {one["name"]: one for one in pod(objects)["volumes"]}
                self.assertEqual({one["name"] for one in pod(objects)["containers"][0]["volumeMounts"]}, set(volumes))
                made = {one["metadata"]["name"] for one in of_kind(objects, "Secret")}
                self.assertIn(volumes["tls"]["secret"]["secretName"], made | {"mine"})
                self.assertEqual(pod(objects)["serviceAccountName"] in
                                 {one["metadata"]["name"] for one in of_kind(objects, "ServiceAccount")},
                                 name != "accounts of others")

    def test_names_follow_the_release(self):
        self.assertEqual(the(render(release="voda-a"), "Deployment")["metadata"]["name"], "voda-a")
        self.assertEqual(the(render(release="gpus"), "Deployment")["metadata"]["name"], "gpus-voda")
        self.assertIn(f"--lease={NAMESPACE}/gpus-voda", arguments(render(release="gpus")))
        long = the(render(release="x" * 53), "Service")["metadata"]["name"]
        self.assertLessEqual(len(long), 50)

    def test_rights_are_those_of_the_tested_role_and_those_that_are_used(self):
        with open(os.path.join(HERE, "manifests", "voda-rbac.yaml")) as file:
            tested = list(yaml.safe_load_all(file))
        objects = render()
        for role in (the(objects, "ClusterRole"), the(tested, "ClusterRole")):
            self.assertEqual(rights(role), ASKED)
        for kind in ("ClusterRole", "Role"):
            self.assertLessEqual(groups(the(tested, kind)).items(), groups(the(objects, kind)).items())
        own = rights(the(objects, "Role"))
        self.assertEqual(own, {
            "leases": {"create"}, "leases:voda": {"get", "update"}, "configmaps": {"create"},
            "configmaps:voda-settings": {"get", "patch"}, "pods": {"patch"}})
        # The tested one names no objects, and has no pod of its own to label.
        self.assertEqual(rights(the(tested, "Role")), {
            resource: own[resource] | own[name] for resource, name in
            (("leases", "leases:voda"), ("configmaps", "configmaps:voda-settings"))})
        taints = rights(the(render(PROFILES["taints"]), "ClusterRole"))
        self.assertEqual(taints, {**ASKED, "nodes": ASKED["nodes"] | {"patch"}})
        self.assertIn("configmaps:gpus-voda-settings", rights(the(render(release="gpus"), "Role")))

    def test_it_does_not_evict_itself(self):
        self.assertNotIn("tolerations", pod(render()))
        self.assertEqual(pod(render(PROFILES["taints"]))["tolerations"], [
            {"key": "pool", "operator": "Exists"}, {"key": "vodascheduler/hostname", "operator": "Exists"}])

    def test_named_namespaces_leave_nothing_of_jobs_to_the_cluster(self):
        every = rights(the(render(), "ClusterRole"))
        objects = render(PROFILES["namespaces"])
        cluster = rights(the(objects, "ClusterRole"))
        self.assertEqual(set(cluster), {"nodes", "tokenreviews", "subjectaccessreviews"})
        roles = {one["metadata"]["namespace"]: rights(one) for one in of_kind(objects, "Role")
                 if one["metadata"]["name"] == "voda-jobs"}
        jobs = {resource: verbs for resource, verbs in every.items() if resource not in cluster}
        self.assertEqual(roles, {namespace: jobs for namespace in ("team-a", "team-b", NAMESPACE)})
        bound = {one["metadata"]["namespace"] for one in of_kind(objects, "RoleBinding")
                 if one["roleRef"]["name"] == "voda-jobs"}
        self.assertEqual(bound, set(roles))
        for one in of_kind(objects, "RoleBinding") + of_kind(objects, "ClusterRoleBinding"):
            self.assertEqual(one["subjects"], [{"kind": "ServiceAccount", "name": "voda", "namespace": NAMESPACE}])
        self.assertIn(f"--namespaces=team-a,team-b,{NAMESPACE}", arguments(objects))

    def test_claims(self):
        objects = render(PROFILES["claim"])
        claim = the(objects, "PersistentVolumeClaim")
        self.assertEqual(claim["spec"], {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
                                         "resources": {"requests": {"storage": "5Gi"}}})
        self.assertEqual(claim["metadata"]["annotations"], {"helm.sh/resource-policy": "keep"})
        self.assertEqual(the(objects, "Deployment")["spec"]["strategy"], {"type": "Recreate"})
        self.assertIn({"name": "data", "persistentVolumeClaim": {"claimName": "voda-data"}}, pod(objects)["volumes"])
        objects = render(PROFILES["claim of others"])
        self.assertEqual(of_kind(objects, "PersistentVolumeClaim"), [])
        self.assertIn({"name": "data", "persistentVolumeClaim": {"claimName": "mine"}}, pod(objects)["volumes"])
        answer = template({"data": {"persistent": {"enabled": True}}}, check=False)
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn("set replicas=1", answer.stderr)

    def test_certificate_is_good_for_every_name_of_the_service(self):
        secret = the(render({"hosts": ["voda.example.com"]}), "Secret")
        with tempfile.TemporaryDirectory(prefix="voda-chart-") as folder:
            for key, value in secret["data"].items():
                with open(os.path.join(folder, key), "wb") as file:
                    file.write(base64.b64decode(value))
            server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            server.load_cert_chain(os.path.join(folder, "tls.crt"), os.path.join(folder, "tls.key"))
            client = ssl.create_default_context(cafile=os.path.join(folder, "ca.crt"))
            for name in ("voda", f"voda.{NAMESPACE}", f"voda.{NAMESPACE}.svc",
                         f"voda.{NAMESPACE}.svc.cluster.local", "voda.example.com", "localhost", "127.0.0.1"):
                self.greet(server, client, name)
            with self.assertRaises(ssl.SSLCertVerificationError):
                self.greet(server, client, "elsewhere")

    @staticmethod
    def greet(server, client, name):
        """A TLS handshake in memory."""
        up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
        sides = [client.wrap_bio(down, up, server_hostname=name), server.wrap_bio(up, down, server_side=True)]
        for _ in range(4):
            for side in list(sides):
                try:
                    side.do_handshake()
                    sides.remove(side)
                except ssl.SSLWantReadError:
                    pass
        assert not sides, f"no handshake with {name}"

    def test_own_certificate(self):
        objects = render(PROFILES["own certificate"])
        self.assertEqual(of_kind(objects, "Secret"), [])
        tls = {one["name"]: one for one in pod(objects)["volumes"]}["tls"]
        self.assertEqual(tls["secret"]["secretName"], "mine")
        self.assertIn("--host=voda.example.com", arguments(objects))

    def test_service_monitor(self):
        objects = render(PROFILES["monitor"])
        monitor = the(objects, "ServiceMonitor")
        self.assertEqual(monitor["metadata"]["labels"]["release"], "prometheus")
        endpoint = monitor["spec"]["endpoints"][0]
        self.assertEqual(endpoint["authorization"]["credentials"], {"name": "voda-metrics-token", "key": "token"})
        self.assertEqual(endpoint["tlsConfig"], {"serverName": f"voda.{NAMESPACE}.svc",
                                                 "ca": {"secret": {"name": "voda-tls", "key": "ca.crt"}}})
        self.assertLessEqual(monitor["spec"]["selector"]["matchLabels"].items(),
                             the(objects, "Service")["metadata"]["labels"].items())
        token = the(objects, "Secret", "voda-metrics-token")
        self.assertEqual(token["metadata"]["annotations"], {"kubernetes.io/service-account.name": "voda-metrics"})
        self.assertEqual(rights(the(objects, "ClusterRole", f"voda-{NAMESPACE}-metrics")), {"/metrics": {"get"}})
        objects = render(PROFILES["all"])
        endpoint = the(objects, "ServiceMonitor")["spec"]["endpoints"][0]
        self.assertEqual(endpoint["authorization"]["credentials"], {"name": "t", "key": "token"})
        self.assertEqual(endpoint["tlsConfig"], {"insecureSkipVerify": True})

    def test_everything_that_can_be_set_arrives(self):
        objects = render(PROFILES["all"])
        for argument in ("--steering=off", "--option=c=2.5", "--option=guard=3000000", "--resource=mi300=amd.com/gpu",
                         "--allow=hostPath,tolerations", "--min-runtime=5m", "--host=gpus"):
            self.assertIn(argument, arguments(objects))
        spec = pod(objects)
        self.assertEqual(spec["containers"][0]["image"], "localhost/voda@sha256:" + "0" * 64)
        self.assertEqual(spec["imagePullSecrets"], [{"name": "pull"}])
        self.assertIn({"name": "TZ", "value": "UTC"}, spec["containers"][0]["env"])
        self.assertEqual(spec["hostAliases"], [{"ip": "10.0.0.1", "hostnames": ["a.b"]}])
        self.assertEqual((spec["nodeSelector"], spec["priorityClassName"]), ({"pool": "system"}, "high"))
        self.assertEqual(set(spec["affinity"]), {"nodeAffinity", "podAntiAffinity"})
        ingress = the(objects, "NetworkPolicy")["spec"]["ingress"]
        self.assertEqual(ingress, [
            {"ports": [{"port": "api"}, {"port": "scheduler"}, {"port": "allocator"}], "from": [{"podSelector": {}}]},
            {"ports": [{"port": "progress"}]}])
        self.assertEqual(the(objects, "Service")["spec"]["type"], "LoadBalancer")
        edit = the(objects, "ClusterRole", f"gpus-{NAMESPACE}-edit")
        self.assertEqual(edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"], "true")
        self.assertEqual(set(rights(edit)), {"mpijobs", "pytorchjobs"})

    def test_wrong_values_are_refused(self):
        for values, field in (
                ({"replica": 3}, "replica"), ({"tls": {"secret": "x"}}, "secret"), ({"replicas": "two"}, "replicas"),
                ({"replicas": 0}, "replicas"), ({"steering": "magnets"}, "steering"),
                ({"mpiVersion": "v1beta1"}, "mpiVersion"),
                ({"namespaces": "team-a"}, "namespaces"), ({"namespaces": ["Team"]}, "namespaces"),
                ({"rateLimit": "soon"}, "rateLimit"), ({"image": {"digest": "latest"}}, "digest"),
                ({"options": {"c": True}}, "options"), ({"hosts": ["a b"]}, "hosts"),
                ({"extraArgs": ["-x"]}, "extraArgs"), ({"data": {"persistent": {"enabled": "yes"}}}, "enabled"),
                ({"serviceMonitor": {"token": "x"}}, "token"), ({"resources": {"request": {}}}, "request"),
                ({"podLabels": {"a": 1}}, "podLabels"), ({"allow": "hostPath"}, "allow"),
                ({"extraEnv": [{"name": "A", "value": 1}]}, "extraEnv"),
                ({"extraVolumeMounts": [{"name": "metrics"}]}, "extraVolumeMounts"),
                ({"hostAliases": [{"ip": "a"}]}, "hostAliases")):
            with self.subTest(json.dumps(values)):
                answer = template(values, check=False)
                self.assertNotEqual(answer.returncode, 0)
                self.assertIn("don't meet the specifications of the schema", answer.stderr)
                self.assertIn(field, answer.stderr)
        template({"global": {"registry": "x"}})  # as part of another chart

    def test_every_value_is_in_the_schema_and_has_a_default(self):
        with open(os.path.join(CHART, "values.schema.json")) as file:
            schema = json.load(file)
        with open(os.path.join(CHART, "values.yaml")) as file:
            values = yaml.safe_load(file)

        def compare(part, value, path):
            properties = part.get("properties")
            if properties is None or path == ".resources":
                return
            self.assertIs(part["additionalProperties"], False, path)
            self.assertEqual(set(properties) - {"global"}, set(value), path)
            for key in value:
                compare(properties[key], value[key], f"{path}.{key}")
        compare(schema, values, "")


class Installed(unittest.TestCase):
    """On a real API server, in a namespace that admits only what satisfies the standard `restricted`."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(kwok_nodes=2, gpus=4)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
        for name in (NAMESPACE, "team-a", "team-b"):
            cls.cluster.api.create("namespaces", {"metadata": {"name": name, "labels": levels}})

    def helm(self, *arguments, values=None):
        return helm(*arguments, "--namespace", NAMESPACE, values=values, kubeconfig=self.cluster.kubeconfig)

    def installed(self, values=None):
        self.helm("install", "voda", CHART, values=values)
        self.addCleanup(run, HELM, "uninstall", "voda", "--namespace", NAMESPACE, "--wait",
                        environment={"KUBECONFIG": self.cluster.kubeconfig})

    def may(self, verb, resource, *flags, namespace=NAMESPACE):
        """RESOURCE, RESOURCE/NAME or RESOURCE:SUBRESOURCE."""
        resource, _, part = resource.partition(":")
        answer = self.cluster.kubectl("auth", "can-i", verb, resource, f"--subresource={part}", *flags, "--namespace",
                                      namespace, "--as", f"system:serviceaccount:{NAMESPACE}:voda", check=False)
        return answer.stdout.strip() == "yes"

    def test_the_server_takes_all_of_it(self):
        for name, values in PROFILES.items():
            with self.subTest(name):
                objects = [one for one in render(values) if one["kind"] != "ServiceMonitor"]  # not known here
                answer = self.cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-",
                                              input=yaml.safe_dump_all(objects))
                self.assertEqual(answer.stderr, "")
                self.assertRegex(answer.stdout, r"deployment.apps/(voda|gpus) created \(server dry run\)")

    def test_pods_are_admitted_and_spread_and_upgrades_keep_the_certificate(self):
        self.installed()

        def pods():
            return [one for one in self.cluster.api.list("pods", NAMESPACE) if one["spec"].get("nodeName")]
        self.cluster.wait_for(lambda: len(pods()) == 2, 60, "both pods to be placed")
        self.assertEqual(len({one["spec"]["nodeName"] for one in pods()}), 2)
        before = self.cluster.api.get("secrets", "voda-tls", NAMESPACE)
        answer = self.helm("upgrade", "voda", CHART, values={"rateLimit": "5s"})
        self.assertIn("port-forward service/voda 55587", answer.stdout)
        self.assertIn("create token", answer.stdout)
        self.assertIn(f"voda release --lease {NAMESPACE}/voda\n", answer.stdout)
        deployment = self.cluster.api.get("deployments", "voda", NAMESPACE)
        self.assertIn("--rate-limit=5s", deployment["spec"]["template"]["spec"]["containers"][0]["args"])
        self.assertEqual(self.cluster.api.get("secrets", "voda-tls", NAMESPACE)["data"], before["data"])

    def test_rights_everywhere(self):
        self.installed()
        for question in (("create", "mpijobs.kubeflow.org"), ("update", "pytorchjobs.kubeflow.org:scale"),
                         ("delete", "pods"), ("get", "pods:log"), ("watch", "nodes"),
                         ("create", "tokenreviews.authentication.k8s.io"),
                         ("create", "subjectaccessreviews.authorization.k8s.io")):
            self.assertTrue(self.may(*question, namespace="team-a"), question)
        for question in (("get", "lease.coordination.k8s.io/voda"), ("update", "lease.coordination.k8s.io/voda"),
                         ("create", "leases.coordination.k8s.io"), ("patch", "configmap/voda-settings"),
                         ("create", "configmaps"), ("patch", "pods")):
            self.assertTrue(self.may(*question), question)
        for question in (("patch", "nodes"), ("get", "secrets"), ("create", "pods"), ("create", "pods:exec"),
                         ("update", "configmap/other"), ("update", "lease.coordination.k8s.io/other"),
                         ("delete", "configmap/voda-settings"), ("update", "mpijobs.kubeflow.org:status"),
                         ("update", "configmap/voda-settings"), ("list", "configmaps"), ("get", "pods"),
                         ("get", "nodes"), ("update", "mpijobs.kubeflow.org"),
                         ("patch", "pytorchjobs.kubeflow.org:scale"),
                         ("create", "clusterrolebindings.rbac.authorization.k8s.io")):
            self.assertFalse(self.may(*question), question)
        self.assertFalse(self.may("patch", "configmap/voda-settings", namespace="team-a"))

    def test_rights_in_named_namespaces_only(self):
        self.installed({"namespaces": ["team-a"], "steering": "taints"})
        self.assertTrue(self.may("create", "mpijobs.kubeflow.org", namespace="team-a"))
        self.assertTrue(self.may("patch", "pods", namespace="team-a"))
        self.assertTrue(self.may("patch", "nodes"))
        for namespace in ("team-b", "default", NAMESPACE):
            self.assertFalse(self.may("create", "mpijobs.kubeflow.org", namespace=namespace))
            self.assertFalse(self.may("list", "pods", namespace=namespace))
        self.assertFalse(self.may("list", "pods", "--all-namespaces"))
        self.assertTrue(self.may("patch", "pods"))  # the label of its own

    def test_daemonsets_learn_to_tolerate_the_taint(self):
        script = os.path.join(ROOT, "deploy", "taints", "tolerate.sh")
        ours = {"key": "vodascheduler/hostname", "operator": "Exists"}
        others = {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}
        before = {"bare": [], "some": [others], "any": [{"operator": "Exists"}],
                  "partly": [{"operator": "Exists", "effect": "NoSchedule"}]}
        for name, tolerations in before.items():
            self.cluster.apply({
                "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "default"},
                "spec": {"selector": {"matchLabels": {"app": name}}, "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "c", "image": "none"}], "tolerations": tolerations}}}})
        environment = {"KUBECONFIG": self.cluster.kubeconfig,
                       "PATH": self.cluster.programs + ":" + os.environ["PATH"]}

        def tolerations(name):
            daemonset = self.cluster.api.ask("GET", f"/apis/apps/v1/namespaces/default/daemonsets/{name}")
            return daemonset["spec"]["template"]["spec"]["tolerations"]
        run(script, "default/some", environment=environment)
        self.assertEqual(tolerations("some"), [others, ours])
        for _ in range(2):
            run(script, environment=environment)
            self.assertEqual({name: tolerations(name) for name in before}, {
                "bare": [ours], "some": [others, ours], "any": before["any"], "partly": before["partly"] + [ours]})
        self.assertIn("write NAMESPACE/NAME", run(script, "some", environment=environment, check=False).stderr)


class Way:
    """To the API server for pods on real nodes: a port of the bridge that leads to its own on loopback."""

    def __init__(self, address, to):
        self._listener = socket.create_server((address, 0))
        self.port = self._listener.getsockname()[1]
        self._to = to
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                one = self._listener.accept()[0]
            except OSError:
                return
            try:
                other = socket.create_connection(self._to, timeout=10)
                other.settimeout(None)
            except OSError:
                one.close()
                continue
            for pair in ((one, other), (other, one)):
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    @staticmethod
    def _copy(source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            for one in (source, target):
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


class Named(http.client.HTTPSConnection):
    """To a pod's address, under a name of the Service: the certificate and the Host are those of the name."""

    def __init__(self, address, name, context):
        super().__init__(name, 55587, context=context, timeout=10)
        self._address, self._tls = address, context

    def connect(self):
        self.sock = self._tls.wrap_socket(socket.create_connection((self._address, self.port), self.timeout),
                                          server_hostname=self.host)


REPORT = """import os, urllib.request
request = urllib.request.Request(os.environ["VODA_PROGRESS_URL"], os.environ["REPORT"].encode(),
    {"Authorization": "Bearer " + os.environ["VODA_PROGRESS_TOKEN"], "Content-Type": "application/json"})
print("answer", urllib.request.urlopen(request, timeout=20).status, flush=True)
"""


class Inside(unittest.TestCase):
    """The chart installed on real nodes, with the real image, under no rights but its own. Voda schedules from there;
    the workers are on nodes that KWOK simulates. Two things of a cluster are missing on real nodes and made up for here:
    a way to the API server, and one from a Service's name to its pod."""

    @classmethod
    def setUpClass(cls):
        reason = real_nodes.why_not()
        if reason:
            raise AssertionError(f"no containers on this machine: {reason}")
        cls.cluster = Cluster(real=2, kwok_nodes=2, gpus=4)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.way = Way(cls.cluster.nodes.gateway, cls.cluster.address)
        cls.addClassCleanup(cls.way.close)
        image = os.path.join(cls.cluster.folder, "voda.tar")
        run(sys.executable, os.path.join(ROOT, "tools", "make_image.py"), "--binary", BINARY, "--name",
            "localhost/voda:test", "--output", image)
        for node in cls.cluster.nodes.names:
            cls.cluster.nodes._ctr(node, "images", "import", image)
            cls.cluster.kubectl("label", "node", node, "vodascheduler/accelerator-")  # not for jobs
        cls.cluster.api.create("namespaces", {"metadata": {"name": NAMESPACE, "labels": {
            "pod-security.kubernetes.io/enforce": "restricted"}}})
        for team in ("team-a", "team-b"):
            cls.cluster.api.create("namespaces", {"metadata": {"name": team}})
            cls.cluster.wait_for(lambda: cls.cluster.api.get("serviceaccounts", "default", team), 30, "its account")
        cls.cluster.apply([
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "jane", "namespace": "team-a"}},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
             "metadata": {"name": "trains", "namespace": "team-a"},
             "rules": [{"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs", "mpijobs"],
                        "verbs": ["get", "list", "create", "patch", "delete"]}]},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
             "metadata": {"name": "jane", "namespace": "team-a"},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "trains"},
             "subjects": [{"kind": "ServiceAccount", "name": "jane", "namespace": "team-a"}]}])

    def setUp(self):
        self.name = "voda"  # of the release's objects

    def values(self, **more):
        return {"image": {"tag": "test", "pullPolicy": "Never"}, "nodeSelector": {"voda.test/node": "real"},
                "extraEnv": [{"name": "KUBERNETES_SERVICE_HOST", "value": "kubernetes.default.svc"},
                             {"name": "KUBERNETES_SERVICE_PORT", "value": str(self.way.port)}],
                "hostAliases": [{"ip": self.cluster.nodes.gateway, "hostnames": ["kubernetes.default.svc"]}],
                "algorithm": "ElasticFIFO", "rateLimit": "1s", **more}

    def helm(self, *arguments, values=None):
        return helm(*arguments, "--namespace", NAMESPACE, values=values, kubeconfig=self.cluster.kubeconfig)

    def install(self, **more):
        self.helm("install", "voda", CHART, values=self.values(**more))
        self.addCleanup(self.remove_jobs)
        self.addCleanup(self.uninstall)
        secret = self.wait(lambda: self.cluster.api.get("secrets", f"{self.name}-tls", NAMESPACE), "the certificate")
        self.authority = base64.b64decode(secret["data"]["ca.crt"]).decode()
        self.client = ssl.create_default_context(cadata=self.authority)
        self.rolled_out()
        self.wait(self.leads, "a leader")

    def uninstall(self):
        run(HELM, "uninstall", "voda", "--namespace", NAMESPACE, "--ignore-not-found",
            environment={"KUBECONFIG": self.cluster.kubeconfig})
        self.wait(lambda: not self.pods(), "Voda's pods to be gone")

    def remove_jobs(self):
        for kind in ("pytorchjobs", "mpijobs"):
            for found in self.cluster.api.list(kind, namespace=None):
                self.cluster.api.delete(kind, found["metadata"]["name"], found["metadata"]["namespace"])

    def rolled_out(self):
        done = self.cluster.kubectl("-n", NAMESPACE, "rollout", "status", f"deployment/{self.name}", "--timeout=120s",
                                    check=False, seconds=150)
        self.assertEqual(done.returncode, 0, f"{done.stderr}{self.state()}")

    def wait(self, condition, what, seconds=60):
        return self.cluster.wait_for(
            condition, seconds, lambda: f"{what() if callable(what) else what}; {self.state()}")

    def state(self):
        pods = [(one["metadata"]["name"], one["spec"].get("nodeName"), self.role(one), one["status"]["phase"],
                 [status["state"] for status in one["status"].get("containerStatuses", [])]) for one in self.pods()]
        return f"pods {json.dumps(pods)}\n{self.log()[-4000:]}"

    def log(self):
        return self.cluster.nodes.logs(NAMESPACE, f"{self.name}-")

    def pods(self):
        return self.cluster.api.list("pods", NAMESPACE)

    @staticmethod
    def role(one):
        return one["metadata"]["labels"].get("vodascheduler/role")

    def leader(self):
        """Name, address: where the Service leads to."""
        slices = self.cluster.api.ask("GET", f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
                                             f"?labelSelector=kubernetes.io%2Fservice-name%3D{self.name}")["items"]
        found = [(end["targetRef"]["name"], end["addresses"][0]) for one in slices
                 for end in one.get("endpoints") or [] if end["conditions"]["ready"]]
        return found[0] if len(found) == 1 else None

    def ask(self, method, path, body=None, token=None, address=None):
        """The leader, unless another pod is named: status, and the answer as text."""
        connection = Named(address or self.leader()[1], f"{self.name}.{NAMESPACE}.svc", self.client)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def leads(self, but=None):
        """The pod that the Service leads to and that schedules, if it is another than `but`."""
        found = self.leader()
        if not found or found[0] == but:
            return None
        try:
            return found[0] if self.ask("GET", "/readyz") == (200, "ok\n") else None
        except OSError:
            return None

    def job(self, name, token):
        status, text = self.ask("GET", f"/api/v1/jobs/{name}", token=token)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def size(self, name, size, token):
        self.wait(lambda: self.job(name, token)["workers"] == size, f"{name} to have {size} workers")

    def uids(self, job, namespace="team-a"):
        return {index: one["metadata"]["uid"] for index, one in workers(self.cluster, job, namespace).items()}

    def nothing_was_forbidden(self):
        status, text = self.ask("GET", "/metrics", token=self.cluster.api.token)
        self.assertEqual(status, 200, text)
        self.assertIn("voda_kube_requests_total", text)
        self.assertNotRegex(text, 'voda_kube_requests_total{[^}]*code="40[13]"')
        self.assertNotRegex(self.log(), r"orbidden|\b403\b|cannot be labelled")

    def released(self, *flags, seconds=0):
        """What `voda release` says, within so many seconds, once nobody leads."""
        def attempt():
            done = run(BINARY, "release", "--kubeconfig", self.cluster.kubeconfig, "--lease",
                       f"{NAMESPACE}/{self.name}", *flags, check=False)
            if done.returncode == 0:
                return done.stdout
            self.assertIn("leads and would set gates again", done.stderr)
            return None
        return self.cluster.wait_for(attempt, seconds, "the lease to end", every=1)

    def report(self, job, epoch, token):
        """From a pod on a real node, with what the job's own pods are told."""
        worker = self.cluster.api.get("pytorchjobs", job, "team-a")["spec"]["pytorchReplicaSpecs"]["Worker"]
        told = [one for one in worker["template"]["spec"]["containers"][0]["env"]
                if one["name"].startswith("VODA_PROGRESS")]
        self.assertEqual({one["name"]: one["value"] for one in told}["VODA_PROGRESS_URL"],
                         f"http://{self.name}.{NAMESPACE}:55590/api/v1/jobs/team-a/{job}/progress")
        told.append({"name": "REPORT", "value": json.dumps({"epoch": epoch, "total_epochs": 10})})
        name = f"reports-{epoch}"
        self.cluster.api.create("pods", {"metadata": {"name": name}, "spec": {
            "restartPolicy": "Never", "nodeSelector": {"voda.test/node": "real"},
            "hostAliases": [{"ip": self.leader()[1], "hostnames": [f"{self.name}.{NAMESPACE}"]}],
            "volumes": [{"name": "usr", "hostPath": {"path": "/usr"}}],
            "containers": [{"name": "c", "image": real_nodes.IMAGE, "imagePullPolicy": "Never", "env": told,
                            "command": ["/usr/bin/python3", "-c", REPORT],
                            "volumeMounts": [{"name": "usr", "mountPath": "/usr", "readOnly": True}]}]}}, "team-a")
        self.wait(lambda: self.cluster.api.get("pods", name, "team-a")["status"]["phase"] in ("Succeeded", "Failed"),
                  "the report")
        self.assertEqual(self.cluster.nodes.logs("team-a", name), "answer 204\n")
        self.wait(lambda: (self.job(f"team-a/{job}", token)["progress"] or {}).get("epoch") == epoch + 1,
                  lambda: f"the progress to be seen: {self.job(f'team-a/{job}', token)}")  # epochs count from 0

    def forwarded(self):
        """As NOTES.txt says: the leader's port, at a port of this machine."""
        log = os.path.join(self.cluster.folder, "forward.log")
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [os.path.join(self.cluster.programs, "kubectl"), "-n", NAMESPACE, "port-forward",
                 f"service/{self.name}", ":55587"], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env={**os.environ, "KUBECONFIG": self.cluster.kubeconfig})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def port():
            with open(log) as file:
                text = file.read()
            self.assertIsNone(process.poll(), text)
            return re.search(r"127\.0\.0\.1:(\d+) ->", text)
        return int(self.wait(port, "kubectl port-forward").group(1))

    def test_schedules_every_namespace_from_inside(self):
        self.install()
        self.wait(lambda: {self.role(one) for one in self.pods()} == {"leader", "standby"}, "both to be labelled")
        placed = {self.role(one): one for one in self.pods()}
        self.assertEqual({one["spec"]["nodeName"] for one in placed.values()}, {"real-0", "real-1"})
        self.assertEqual(placed["leader"]["metadata"]["name"], self.leader()[0])
        self.assertEqual([one["status"]["containerStatuses"][0]["restartCount"] for one in self.pods()], [0, 0])
        standby = placed["standby"]["status"]["podIP"]
        self.assertEqual(self.ask("GET", "/api/v1/jobs", address=standby)[0], 503)
        self.wait(lambda: placed["leader"]["metadata"]["name"] in self.ask("GET", "/api/v1/jobs", address=standby)[1],
                  "the other to say who leads")
        self.assertEqual(self.ask("GET", "/metrics")[0], 401)
        loose = ssl.create_default_context(cadata=self.authority)
        loose.check_hostname = False
        with self.assertRaises(urllib.error.HTTPError) as refused:  # by its address, as Prometheus calls it
            urllib.request.urlopen(f"https://{self.leader()[1]}:55587/metrics", context=loose, timeout=10)
        self.assertEqual(refused.exception.code, 401)
        refused.exception.close()

        # A user of a namespace, with nothing but what NOTES.txt says.
        jane = self.cluster.kubectl("-n", "team-a", "create", "token", "jane").stdout.strip()
        document = json.dumps(job("PyTorchJob", "a", 1, 3, namespace="team-a"))
        for name, text in (("voda-ca.pem", self.authority), ("job.json", document)):
            with open(os.path.join(self.cluster.folder, name), "w") as file:
                file.write(text)
        environment = {"VODA_SERVER": f"https://localhost:{self.forwarded()}", "VODA_TOKEN": jane,
                       "VODA_CA_FILE": os.path.join(self.cluster.folder, "voda-ca.pem")}
        done = run(BINARY, "create", "-f", os.path.join(self.cluster.folder, "job.json"), environment=environment)
        name = re.search(r"team-a/a\S*", done.stdout).group()
        short = name.split("/")[1]
        self.assertIn(short, run(BINARY, "get", "jobs", "-n", "team-a", environment=environment).stdout)
        self.size(name, 3, jane)
        self.assertEqual(self.ask("GET", "/api/v1/jobs?namespace=team-b", token=jane)[0], 403)
        uids = self.uids(short)
        self.assertEqual(len(uids), 3)
        self.report(short, 3, jane)
        self.assertEqual(self.ask("PUT", "/api/v1/settings", '{"rate_limit_seconds": 2}',
                                  token=self.cluster.api.token)[0], 200)
        self.assertIsNotNone(self.cluster.api.get("configmaps", "voda-settings", NAMESPACE))

        # The leader crashes. Its pod is taken away, too, so that it cannot come back and win.
        old = placed["leader"]
        container = old["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
        self.cluster.nodes._ctr(old["spec"]["nodeName"], "tasks", "kill", "--signal", "SIGKILL", container)
        begun = time.monotonic()
        self.taken_over(old["metadata"]["name"], begun, "its container is killed", name, jane,
                        {"gracePeriodSeconds": 0})
        self.assertEqual(self.uids(short), uids)
        self.report(short, 4, jane)  # the job's token is good at the new one
        self.rolled_out()

        # It is told to go.
        old = self.leader()[0]
        self.taken_over(old, time.monotonic(), "its pod is deleted", name, jane, None)
        self.assertEqual(self.uids(short), uids)
        self.rolled_out()
        self.nothing_was_forbidden()

        # An upgrade replaces both.
        before = {one["metadata"]["uid"] for one in self.pods()}
        self.helm("upgrade", "voda", CHART, values=self.values(logLevel="debug"))
        self.rolled_out()
        self.wait(lambda: not before & {one["metadata"]["uid"] for one in self.pods()}, "the old pods to go")
        self.wait(self.leads, "a leader after the upgrade")
        self.size(name, 3, jane)
        self.assertEqual(self.uids(short), uids)
        self.assertEqual(self.ask("PATCH", f"/api/v1/jobs/{name}", '{"max": 4}', token=jane)[0], 200)
        self.size(name, 4, jane)
        self.nothing_was_forbidden()

        # Without Voda the job runs on, and its new pods need no gate opened. With its rights gone, Voda could not give
        # its lease back.
        uids = self.uids(short)
        self.uninstall()
        self.assertIn("released 1 templates, 0 pods and 0 nodes; 0 jobs are suspended",
                      self.released(seconds=30))
        self.assertEqual(self.uids(short), uids)
        self.cluster.kubectl("-n", "team-a", "scale", "pytorchjob", short, "--replicas=5")
        self.wait(lambda: [one["status"]["phase"] for one in workers(self.cluster, short, "team-a").values()] ==
                  ["Running"] * 5, "a worker that Kubernetes places")
        self.assertLessEqual(uids.items(), self.uids(short).items())

    def taken_over(self, old, begun, why, name, token, options):
        self.cluster.api.delete("pods", old, NAMESPACE, options)
        new = self.wait(lambda: self.leads(but=old), f"another leader than {old}")
        seconds = time.monotonic() - begun
        print(f"\n  {why}: another pod leads after {seconds:.1f} s", flush=True)
        self.assertLess(seconds, 20)
        roles = {one["metadata"]["name"]: self.role(one) for one in self.pods()
                 if "deletionTimestamp" not in one["metadata"]}
        self.assertEqual([pod for pod, role in roles.items() if role == "leader"], [new])
        self.assertEqual(self.job(name, token)["workers"], 3)

    def taints(self):
        return {one["metadata"]["name"]: [taint["value"] for taint in one["spec"].get("taints", [])
                                          if taint["key"] == "vodascheduler/hostname"]
                for one in self.cluster.api.list("nodes")}

    def test_schedules_named_namespaces_alone_and_steers_by_taints(self):
        self.name = "gpus"
        self.cluster.kubectl("label", "node", "real-0", "vodascheduler/accelerator=spare")  # Voda's own node
        self.addCleanup(self.cluster.kubectl, "label", "node", "real-0", "vodascheduler/accelerator-")
        self.install(replicas=1, fullnameOverride="gpus", namespaces=["team-a"], steering="taints",
                     nodeSelector={"kubernetes.io/hostname": "real-0"})
        admin = self.cluster.api.token
        [before] = [one["metadata"]["uid"] for one in self.pods()]
        self.wait(lambda: self.taints() == {"kwok-0": ["kwok-0"], "kwok-1": ["kwok-1"], "real-0": ["real-0"],
                                            "real-1": []}, lambda: f"taints: {self.taints()}")
        self.cluster.apply(job("PyTorchJob", "theirs", 1, 2, namespace="team-b"))
        self.cluster.apply(job("PyTorchJob", "ours", 1, 2, namespace="team-a"))
        self.cluster.apply(job("MPIJob", "mpi", 1, 2, namespace="team-a"))
        for name in ("ours", "mpi"):
            self.size(f"team-a/{name}", 2, admin)
        self.wait(lambda: [one["status"]["phase"] for one in workers(self.cluster, "ours", "team-a").values()] ==
                  ["Running"] * 2, "its workers to run")
        self.assertEqual(self.ask("PUT", "/api/v1/settings", '{"rate_limit_seconds": 2}', token=admin)[0], 200)
        self.assertIsNotNone(self.cluster.api.get("configmaps", "gpus-settings", NAMESPACE))
        theirs = self.cluster.api.get("pytorchjobs", "theirs", "team-b")
        self.assertTrue(theirs["spec"]["runPolicy"]["suspend"])
        self.assertNotIn("vodascheduler", json.dumps(theirs["metadata"].get("annotations", {})))
        self.assertEqual(self.ask("GET", "/api/v1/jobs/team-b/theirs", token=admin)[0], 404)
        self.assertEqual(self.cluster.api.list("pods", "team-b"), [])
        self.nothing_was_forbidden()
        self.assertEqual([one["metadata"]["uid"] for one in self.pods()], [before], "it has evicted itself")

        # Stopped as the README says, it has given its lease back.
        uids = self.uids("ours")
        self.cluster.kubectl("-n", NAMESPACE, "scale", "deployment", "gpus", "--replicas=0")
        self.wait(lambda: not self.pods(), "Voda's pod to be gone")
        self.assertEqual(self.taints()["kwok-0"], ["kwok-0"])
        self.assertIn("released 0 templates, 0 pods and 3 nodes", self.released("--namespaces", "team-a"))
        self.assertEqual(sum(self.taints().values(), []), [])
        self.assertEqual(self.uids("ours"), uids)


if __name__ == "__main__":
    unittest.main(verbosity=2)
