"""What each program of the control plane, and of those that act on top of it, is started with."""
import http.client
import os
import ssl

from processes import Part

FAST = ("--kube-api-qps=500", "--kube-api-burst=1000")  # their defaults of 20 and 50 a second dominate every bulk test


def answers(port, path="/healthz", tls=True):
    """A check of readiness: 200 from this port of 127.0.0.1."""
    def check(_part):
        context = ssl._create_unverified_context() if tls else None
        connection = (http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=5) if tls
                      else http.client.HTTPConnection("127.0.0.1", port, timeout=5))
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
    return check


class ControlPlane:
    def __init__(self, programs, folder, certificates, ports, kubeconfigs, grace_seconds, changed):
        self.programs = programs
        self.folder = folder
        self.certificates = certificates
        self.ports = ports
        self.kubeconfigs = kubeconfigs
        self.grace_seconds = grace_seconds
        self._changed = changed

    def part(self, name, program, *flags, **keywords):
        return Part(name, [os.path.join(self.programs, program), *flags],
                    os.path.join(self.folder, "logs", name + ".log"), changed=self._changed, **keywords)

    def etcd(self):
        client, peer = (f"http://127.0.0.1:{self.ports[name]}" for name in ("etcd", "etcd-peer"))
        return self.part(
            "etcd", "etcd", "--name=voda", f"--data-dir={self.folder}/etcd", "--unsafe-no-fsync",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=voda={peer}",
            ready=answers(self.ports["etcd"], "/health", tls=False))

    def apiserver(self):
        certificates = self.certificates
        return self.part(
            "kube-apiserver", "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.ports['etcd']}",
            "--bind-address=127.0.0.1", f"--secure-port={self.ports['apiserver']}", "--advertise-address=127.0.0.1",
            f"--tls-cert-file={certificates.path('apiserver.crt')}",
            f"--tls-private-key-file={certificates.path('apiserver.key')}",
            f"--client-ca-file={certificates.authority}", f"--token-auth-file={certificates.tokens}",
            "--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={certificates.path('sa.pub')}",
            f"--service-account-signing-key-file={certificates.service_account_key}",
            "--authorization-mode=Node,RBAC", "--endpoint-reconciler-type=none", "--allow-privileged=true",
            f"--kubelet-client-certificate={certificates.path('kubelet-client.crt')}",
            f"--kubelet-client-key={certificates.path('kubelet-client.key')}",
            "--kubelet-preferred-address-types=InternalIP", "--shutdown-delay-duration=0s",
            ready=answers(self.ports["apiserver"], "/readyz"), ready_seconds=120)

    def controller_manager(self):
        config = self.kubeconfigs["kube-controller-manager"]
        return self.part(
            "kube-controller-manager", "kube-controller-manager", f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
            "--bind-address=127.0.0.1", f"--secure-port={self.ports['controller-manager']}", "--leader-elect=false",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.certificates.service_account_key}",
            f"--root-ca-file={self.certificates.authority}", "--node-monitor-period=1s",
            f"--node-monitor-grace-period={self.grace_seconds}s", *FAST,
            ready=answers(self.ports["controller-manager"]))

    def scheduler(self):
        config = self.kubeconfigs["kube-scheduler"]
        return self.part(
            "kube-scheduler", "kube-scheduler", f"--kubeconfig={config}", f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}", "--bind-address=127.0.0.1",
            f"--secure-port={self.ports['scheduler']}", "--leader-elect=false", *FAST,
            ready=answers(self.ports["scheduler"]))

    def kwok(self, stages):
        return self.part(
            "kwok", "kwok", f"--kubeconfig={self.kubeconfigs['kwok']}", f"--config={stages}",
            "--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-ip=127.0.0.1", "--cidr=10.95.0.1/16", f"--server-address=127.0.0.1:{self.ports['kwok']}",
            f"--node-lease-duration-seconds={max(4, self.grace_seconds // 2)}",
            ready=answers(self.ports["kwok"], tls=False))

    def mpi_operator(self):
        return self.part(
            "mpi-operator", "mpi-operator", f"--kubeConfig={self.kubeconfigs['mpi-operator']}", "--threadiness=16",
            "--controller-queue-rate-limit=1000", "--controller-queue-burst=10000", *FAST,
            ready=lambda part: part.logged("Started workers"))

    def training_operator(self, kinds, image):
        return self.part(
            "training-operator", "training-operator", *[f"--enable-scheme={kind}" for kind in kinds],
            f"--pytorch-init-container-image={image}", f"--mpi-kubectl-delivery-image={image}",
            environment={"KUBECONFIG": self.kubeconfigs["training-operator"]},
            ready=lambda part: part.logged("Starting workers"))
