"""Requests to the API server of a test cluster, one connection per thread."""
import http.client
import json
import select
import ssl
import threading
import urllib.parse

GROUPS = {  # what tests ask for; anything else is asked for by path
    "api/v1": ["configmaps", "endpoints", "events", "namespaces", "nodes", "pods", "resourcequotas", "secrets",
               "serviceaccounts", "services"],
    "apis/apps/v1": ["deployments"],
    "apis/batch/v1": ["jobs"],
    "apis/coordination.k8s.io/v1": ["leases"],
    "apis/apiextensions.k8s.io/v1": ["customresourcedefinitions"],
    "apis/rbac.authorization.k8s.io/v1": ["clusterroles", "clusterrolebindings", "roles", "rolebindings"],
    "apis/kubeflow.org/v1": ["pytorchjobs"],
    "apis/kubeflow.org/v2beta1": ["mpijobs"],
}
UNBOUND = {"namespaces", "nodes", "customresourcedefinitions", "clusterroles", "clusterrolebindings"}
PATCHES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class ApiError(Exception):
    def __init__(self, method, path, status, body):
        try:
            self.message = json.loads(body)["message"]
        except (ValueError, KeyError, TypeError):
            self.message = body
        super().__init__(f"{method} {path}: {status} {self.message}")
        self.status = status
        self.body = body


class Api:
    """The API server as one user sees it. `mpijobs` are of v2beta1 unless told otherwise."""

    def __init__(self, address, authority, token, mpijob_version="v2beta1"):
        self.host, self.port = address
        self.token = token
        self._tls = ssl.create_default_context(cafile=authority)
        self._local = threading.local()
        self._groups = {name: group for group, names in GROUPS.items() for name in names}
        self._groups["mpijobs"] = f"apis/kubeflow.org/{mpijob_version}"

    def ask(self, method, path, body=None, content="application/json", seconds=60):
        """The answer as JSON, or as text where it is none. Raises ApiError for any status of 400 or more."""
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content
        connection = self._connection(seconds)
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException):
            self._local.connection = None
            connection.close()
            raise
        if answer.status >= 400:
            raise ApiError(method, path, answer.status, text)
        try:
            return json.loads(text)
        except ValueError:
            return text

    def _connection(self, seconds):
        """The one of this thread, unless the server has closed it: then there is something to read, its end."""
        connection = getattr(self._local, "connection", None)
        if connection and connection.sock and not select.select([connection.sock], [], [], 0)[0]:
            connection.sock.settimeout(seconds)
            return connection
        if connection:
            connection.close()
        connection = http.client.HTTPSConnection(self.host, self.port, context=self._tls, timeout=seconds)
        self._local.connection = connection
        return connection

    def path(self, resource, name=None, namespace="default", subresource=None):
        parts = [self._groups[resource]]
        if resource not in UNBOUND and namespace:
            parts += ["namespaces", namespace]
        return "/" + "/".join(parts + [resource] + [part for part in (name, subresource) if part])

    def get(self, resource, name, namespace="default", subresource=None):
        """The object, or None when there is none."""
        try:
            return self.ask("GET", self.path(resource, name, namespace, subresource))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, resource, namespace="default", selector=None, fields=None):
        """Sorted by name; namespace=None lists all of them."""
        query = {key: value for key, value in (("labelSelector", selector), ("fieldSelector", fields)) if value}
        path = self.path(resource, namespace=namespace) + ("?" + urllib.parse.urlencode(query) if query else "")
        return sorted(self.ask("GET", path)["items"], key=lambda item: item["metadata"]["name"])

    def create(self, resource, body, namespace="default", subresource=None, name=None):
        return self.ask("POST", self.path(resource, name, namespace, subresource), body)

    def patch(self, resource, name, body, kind="merge", namespace="default", subresource=None):
        return self.ask("PATCH", self.path(resource, name, namespace, subresource), body, PATCHES[kind])

    def delete(self, resource, name, namespace="default", options=None):
        """False when it was gone already."""
        try:
            self.ask("DELETE", self.path(resource, name, namespace), options)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True
