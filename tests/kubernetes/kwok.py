"""Nodes that KWOK simulates, and what tests do to them."""
NOT_READY = "sim/not-ready"


def node(name, gpus, accelerator, cpu="64", memory="512Gi", labels=None):
    resources = {"cpu": cpu, "memory": memory, "ephemeral-storage": "1Ti", "pods": "500", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                       "voda.test/node": "kwok", "vodascheduler/accelerator": accelerator, **(labels or {})},
        },
        "status": {"capacity": resources, "allocatable": resources},
    }


def is_ready(node_object):
    conditions = node_object["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
