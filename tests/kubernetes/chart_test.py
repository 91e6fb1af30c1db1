"""The chart deploy/helm/voda with the real helm: what it renders, what it refuses, and what a real API server makes of
it, and a real kubelet. Also deploy/taints, on DaemonSets there.

    /usr/bin/python3 tests/kubernetes/chart_test.py               everything; a real node takes root and containers
    /usr/bin/python3 tests/kubernetes/chart_test.py -k Rendered   without a cluster
"""
import base64
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import real_nodes  # noqa: E402
from cluster import HERE, ROOT, Cluster  # noqa: E402
from processes import ClusterError, run  # noqa: E402

CHART = os.path.join(ROOT, "deploy", "helm", "voda")
BINARY = os.environ.get("VODA_BINARY") or os.path.join(ROOT, "build", "release", "voda")
NAMESPACE = "voda-chart"
VERSION = "1.36.3"
FORBIDDEN = {"hostPath", "hostNetwork", "hostPID", "hostIPC", "hostPort", "privileged", "clusterIP", "clusterIPs",
             "loadBalancerIP", "externalIPs", "nodePort"}
PROFILES = {
    "default": {},
    "namespaces": {"namespaces": ["team-a", "team-b", NAMESPACE]},
    "taints": {"steering": "taints", "tolerations": [{"operator": "Exists"}]},
    "claim": {"replicas": 1, "data": {"persistent": {"enabled": True, "storageClassName": "fast", "size": "5Gi"}}},
    "claim of others": {"replicas": 1, "data": {"persistent": {"enabled": True, "existingClaim": "mine"}}},
    "own certificate": {"tls": {"secretName": "mine"}, "hosts": ["voda.example.com"]},
    "monitor": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "all": {"serviceMonitor": {"enabled": True, "tokenSecret": {"name": "t"},
                               "tlsConfig": {"insecureSkipVerify": True}},
            "networkPolicy": {"enabled": True, "apiFrom": [{"podSelector": {}}]}, "userRoles": {"create": True},
            "steering": False, "options": {"c": 2.5, "guard": 3000000}, "gpuResources": {"mi300": "amd.com/gpu"},
            "allow": "a: b, \"c\"", "extraArgs": ["--min-runtime=5m"], "podLabels": {"team": "x"},
            "podAnnotations": {"a": "1"}, "nodeSelector": {"pool": "system"}, "affinity": {"nodeAffinity": {}},
            "priorityClassName": "high", "image": {"digest": "sha256:" + "0" * 64, "pullSecrets": ["pull"]},
            "service": {"type": "LoadBalancer", "annotations": {"a": "b"}}, "fullnameOverride": "gpus"},
    "accounts of others": {"serviceAccount": {"create": False, "name": "mine"}, "rbac": {"create": False}},
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

    def test_rights_are_those_of_the_tested_role_and_those_of_the_server(self):
        with open(os.path.join(HERE, "manifests", "voda-rbac.yaml")) as file:
            tested = rights(the(list(yaml.safe_load_all(file)), "ClusterRole"))
        tested.update({"pods/log": {"get"}, "tokenreviews": {"create"}, "subjectaccessreviews": {"create"}})
        objects = render()
        self.assertEqual(rights(the(objects, "ClusterRole")), tested)
        self.assertEqual(rights(the(objects, "Role")), {
            "leases": {"create"}, "leases:voda": {"get", "update"}, "configmaps": {"create"},
            "configmaps:voda-settings": {"get", "update", "patch"}, "pods": {"patch"}})
        taints = rights(the(render(PROFILES["taints"]), "ClusterRole"))
        self.assertEqual(taints, {**tested, "nodes": tested["nodes"] | {"patch"}})

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
                         "--allow=a: b, \"c\"", "--min-runtime=5m", "--host=gpus"):
            self.assertIn(argument, arguments(objects))
        spec = pod(objects)
        self.assertEqual(spec["containers"][0]["image"], "localhost/voda@sha256:" + "0" * 64)
        self.assertEqual(spec["imagePullSecrets"], [{"name": "pull"}])
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
                ({"podLabels": {"a": 1}}, "podLabels")):
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
        deployment = self.cluster.api.get("deployments", "voda", NAMESPACE)
        self.assertIn("--rate-limit=5s", deployment["spec"]["template"]["spec"]["containers"][0]["args"])
        self.assertEqual(self.cluster.api.get("secrets", "voda-tls", NAMESPACE)["data"], before["data"])

    def test_rights_everywhere(self):
        self.installed()
        for question in (("create", "mpijobs.kubeflow.org"), ("patch", "pytorchjobs.kubeflow.org:scale"),
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


class Running(unittest.TestCase):
    """The pod of the chart on a real node, with the real image. The node's pods have no way to the API server, so Voda
    gets the flags that need none; everything else is as the chart says."""
    APART = re.compile("--(cluster|progress|lease|steering|mpi-version|not-ready-grace)")

    @classmethod
    def setUpClass(cls):
        reason = real_nodes.why_not()
        if reason:
            raise unittest.SkipTest(f"no containers on this machine: {reason}")
        cls.cluster = Cluster(real=1)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        image = os.path.join(cls.cluster.folder, "voda.tar")
        run(sys.executable, os.path.join(ROOT, "tools", "make_image.py"), "--binary", BINARY, "--name",
            "localhost/voda:test", "--output", image)
        cls.cluster.nodes._ctr("real-0", "images", "import", image)
        cls.cluster.api.create("namespaces", {"metadata": {"name": NAMESPACE, "labels": {
            "pod-security.kubernetes.io/enforce": "restricted"}}})

    def test_the_pod_becomes_ready_and_answers(self):
        objects = render({"replicas": 1, "image": {"tag": "test", "pullPolicy": "Never"}})
        container = pod(objects)["containers"][0]
        container["args"] = [one for one in container["args"] if not self.APART.match(one)] + ["--slots=1"]
        self.cluster.apply(objects)

        def pods():
            return self.cluster.api.list("pods", NAMESPACE)

        def ready():
            return [one for one in pods() for condition in one["status"].get("conditions", [])
                    if condition["type"] == "Ready" and condition["status"] == "True"]
        self.cluster.wait_for(ready, 60, lambda: f"the pod to be Ready: {pods()[0]['status'] if pods() else None}; "
                                                 f"{self.cluster.nodes.logs(NAMESPACE, 'voda')}")
        found = ready()[0]
        self.assertEqual(found["status"]["containerStatuses"][0]["restartCount"], 0)
        secret = self.cluster.api.get("secrets", "voda-tls", NAMESPACE)
        client = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())
        client.check_hostname = False  # it is called by its address, as Prometheus does
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"https://{found['status']['podIP']}:55587/metrics", context=client, timeout=10)
        self.assertEqual(refused.exception.code, 401)  # the address is a name of it; only the token lacks
        refused.exception.close()
        self.assertIn('"level":"info"', self.cluster.nodes.logs(NAMESPACE, "voda").replace(": ", ":"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
