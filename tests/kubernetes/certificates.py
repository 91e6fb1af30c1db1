"""Keys, certificates, tokens and kubeconfigs of a cluster, made by openssl in its folder. They are worth nothing
outside it, and are readable by their owner only."""
import json
import os
import secrets

from processes import run

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc")


class Certificates:
    def __init__(self, folder, addresses):
        self.folder = folder
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.authority = self.path("ca.crt")
        self.service_account_key = self.path("sa.key")
        self.tokens = self.path("tokens.csv")
        self._lines = []
        run("openssl", "req", "-x509", *CURVE, "-days", "3650", "-subj", "/CN=voda test cluster",
            "-keyout", self.path("ca.key"), "-out", self.authority)
        run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-out", self.service_account_key)
        run("openssl", "pkey", "-in", self.service_account_key, "-pubout", "-out", self.path("sa.pub"))
        names = ["DNS:localhost", "DNS:kubernetes", "DNS:kubernetes.default.svc"]
        self.issue("apiserver", "/CN=kube-apiserver", "serverAuth", names + [f"IP:{ip}" for ip in addresses])

    def path(self, name):
        return os.path.join(self.folder, name)

    def issue(self, name, subject, usage, alternative=()):
        """Makes NAME.crt and NAME.key; `usage` is serverAuth or clientAuth. Returns their paths."""
        request, extensions = self.path(name + ".csr"), self.path(name + ".ext")
        certificate, key = self.path(name + ".crt"), self.path(name + ".key")
        run("openssl", "req", "-new", *CURVE, "-subj", subject, "-keyout", key, "-out", request)
        with open(extensions, "w") as file:
            file.write(f"extendedKeyUsage={usage}\nkeyUsage=digitalSignature\nbasicConstraints=CA:FALSE\n")
            if alternative:
                file.write(f"subjectAltName={','.join(alternative)}\n")
        run("openssl", "x509", "-req", "-in", request, "-CA", self.authority, "-CAkey", self.path("ca.key"),
            "-set_serial", str(secrets.randbits(63)), "-days", "3650", "-extfile", extensions, "-out", certificate)
        return certificate, key

    def token(self, user, *groups):
        """A token that the API server knows this user by. All of them must be made before it starts."""
        token = secrets.token_hex(16)
        self._lines.append(f'{token},{user},{user}' + (f',"{",".join(groups)}"' if groups else ""))
        with open(os.open(self.tokens, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write("\n".join(self._lines) + "\n")
        return token

    def kubeconfig(self, path, server, token, namespace="default"):
        """Written as JSON, which is YAML too."""
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "voda-test",
            "clusters": [{"name": "voda-test", "cluster": {"server": server, "certificate-authority": self.authority}}],
            "users": [{"name": "voda-test", "user": {"token": token}}],
            "contexts": [{"name": "voda-test",
                          "context": {"cluster": "voda-test", "user": "voda-test", "namespace": namespace}}],
        }
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(config, file, indent=1)
        return path
