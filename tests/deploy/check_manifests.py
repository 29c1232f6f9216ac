"""Checks Kubernetes manifests without a cluster: their fields are those of a batch/v1 Job, of a claim, and of the MPIJob of kubeflow.org/v2beta1 (its
CRD's list: mpi-operator, manifests/base/kubeflow.org_mpijobs.yaml), volumes that are mounted exist, numbers agree.
usage: check_manifests.py FILE..."""
import sys

import yaml

METADATA = {"name", "labels", "annotations"}
CONTAINER = {"name", "image", "imagePullPolicy", "env", "command", "args", "resources", "volumeMounts", "workingDir", "ports",
             "securityContext"}
POD = {"containers", "volumes", "restartPolicy", "terminationGracePeriodSeconds", "nodeSelector", "tolerations", "hostIPC",
       "initContainers", "serviceAccountName", "securityContext"}
PROBES = {"startupProbe", "readinessProbe", "livenessProbe"}
JOB = {"slotsPerWorker", "runLauncherAsWorker", "runPolicy", "mpiReplicaSpecs", "sshAuthMountPath", "launcherCreationPolicy",
       "mpiImplementation"}
POLICY = {"cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit", "schedulingPolicy", "suspend",
          "managedBy"}
REPLICA = {"replicas", "template", "restartPolicy"}
EDIT_POINTS = {"RUN_PATH", "dataset", "output", "dllog", "vocab", "init_ckpt", "phase1_end_step"}


def fields(where, thing, allowed, required=()):
    assert isinstance(thing, dict), f"{where} is no object"
    extra, missing = set(thing) - set(allowed), set(required) - set(thing)
    assert not extra and not missing, f"{where}: unknown {sorted(extra)}, missing {sorted(missing)}"


def one_of(where, value, choices):
    assert value in choices, f"{where} is {value!r}, not one of {choices}"


def check_container(where, c, volumes):
    fields(where, c, CONTAINER, {"name", "image", "command", "resources", "volumeMounts"})
    assert all(isinstance(w, str) for w in c["command"] + c.get("args", [])), f"{where}: a word is no string"
    for variable in c.get("env", []):
        fields(where, variable, {"name", "value"}, {"name", "value"})
        assert isinstance(variable["value"], str), f"{where}: {variable['name']} must be in quotes"
        one_of(where, variable["name"], EDIT_POINTS)
    for mount in c["volumeMounts"]:
        fields(where, mount, {"name", "mountPath", "readOnly", "subPath"}, {"name", "mountPath"})
        one_of(f"{where}: the volume", mount["name"], volumes)
    fields(where, c["resources"], {"requests", "limits"}, {"limits"})
    for amounts in c["resources"].values():
        fields(where, amounts, {"cpu", "memory", "nvidia.com/gpu"}, {"cpu", "memory"})


def check_pod(where, spec):
    fields(where, spec, POD, {"containers", "volumes"})
    volumes = {v["name"] for v in spec["volumes"]}
    for v in spec["volumes"]:
        fields(where, v, {"name", "persistentVolumeClaim", "emptyDir"}, {"name"})
        assert len(v) == 2, f"{where}: the volume {v['name']} has {len(v) - 1} kinds"
    for c in spec["containers"]:
        check_container(f"{where}/{c.get('name')}", c, volumes)


def check_batch_job(where, spec):
    """A policy for failures works only with pods that are never started again in place."""
    fields(where, spec, {"backoffLimit", "podFailurePolicy", "template"}, {"backoffLimit", "podFailurePolicy", "template"})
    fields(where, spec["podFailurePolicy"], {"rules"}, {"rules"})
    pod = spec["template"]["spec"]
    names = {c["name"] for c in pod["containers"]}
    for rule in spec["podFailurePolicy"]["rules"]:
        fields(where, rule, {"action", "onExitCodes", "onPodConditions"}, {"action"})
        one_of(where, rule["action"], ("FailJob", "Ignore", "Count"))
        codes = rule.get("onExitCodes")
        if codes:
            fields(where, codes, {"containerName", "operator", "values"}, {"operator", "values"})
            one_of(where, codes["containerName"], names)
            assert not set(codes["values"]) & {0, 74, 75, 137, 143}, f"{where}: what may be started again ends the job"
    assert pod.get("restartPolicy") == "Never", f"{where}: restartPolicy must be Never"
    check_pod(where, pod)


def check_job(where, spec):
    fields(where, spec, JOB, {"slotsPerWorker", "runPolicy", "mpiReplicaSpecs"})
    fields(where, spec["runPolicy"], POLICY, {"cleanPodPolicy", "backoffLimit"})
    one_of("cleanPodPolicy", spec["runPolicy"]["cleanPodPolicy"], ("None", "Running", "All"))
    one_of("mpiImplementation", spec.get("mpiImplementation", "OpenMPI"), ("OpenMPI", "Intel", "MPICH"))
    one_of("launcherCreationPolicy", spec.get("launcherCreationPolicy", "AtStartup"), ("AtStartup", "WaitForWorkersReady"))
    fields(where, spec["mpiReplicaSpecs"], {"Launcher", "Worker"}, {"Launcher", "Worker"})
    for role, replica in spec["mpiReplicaSpecs"].items():
        fields(f"{where}/{role}", replica, REPLICA, REPLICA)
        one_of(f"{where}/{role}: restartPolicy", replica["restartPolicy"], ("Always", "OnFailure", "Never", "ExitCode"))
        fields(f"{where}/{role}", replica["template"], {"metadata", "spec"}, {"spec"})
        check_pod(f"{where}/{role}", replica["template"]["spec"])
    assert spec["mpiReplicaSpecs"]["Launcher"]["replicas"] == 1, "one launcher"
    worker = spec["mpiReplicaSpecs"]["Worker"]
    container = worker["template"]["spec"]["containers"][0]
    cards = container["resources"]["limits"]["nvidia.com/gpu"]
    assert cards == spec["slotsPerWorker"], f"{where}: {cards} cards and {spec['slotsPerWorker']} slots"
    assert f"{cards * worker['replicas']}card" in where, f"{where}: {cards} x {worker['replicas']} cards"


def check_deployment(where, spec):
    """What a request needs: a pod is ready before it gets work, and has time to end."""
    fields(where, spec, {"replicas", "selector", "strategy", "template"}, {"selector", "template"})
    pod, labels = spec["template"]["spec"], spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items(), f"{where}: the selector does not select its pods"
    fields(where, pod, POD | {"enableServiceLinks", "automountServiceAccountToken"}, {"containers", "volumes", "terminationGracePeriodSeconds"})
    volumes, [c] = {v["name"] for v in pod["volumes"]}, pod["containers"]
    fields(where, c, CONTAINER | PROBES | {"lifecycle"}, {"name", "image", "command", "args", "ports", "resources"} | PROBES)
    ports = {p["name"] for p in c["ports"]}
    for probe in PROBES:
        fields(f"{where}: {probe}", c[probe], {"httpGet", "periodSeconds", "timeoutSeconds", "failureThreshold"}, {"httpGet"})
        one_of(f"{where}: {probe}", c[probe]["httpGet"]["port"], ports)
    for mount in c["volumeMounts"]:
        one_of(f"{where}: the volume", mount["name"], volumes)


def check_service(where, spec):
    fields(where, spec, {"selector", "ports", "type"}, {"selector", "ports"})
    for port in spec["ports"]:
        fields(where, port, {"name", "port", "targetPort", "protocol"}, {"port"})


def check(path):
    with open(path) as f:
        documents = list(yaml.safe_load_all(f))
    assert len(documents) == 1, "one object in a file"
    d = documents[0]
    fields(path, d, {"apiVersion", "kind", "metadata", "spec"}, {"apiVersion", "kind", "metadata", "spec"})
    fields(path, d["metadata"], METADATA, {"name"})
    one_of(path, (d["apiVersion"], d["kind"]), (("batch/v1", "Job"), ("v1", "PersistentVolumeClaim"), ("kubeflow.org/v2beta1", "MPIJob"),
                                             ("apps/v1", "Deployment"), ("v1", "Service")))
    if d["kind"] == "Job":
        check_batch_job(path, d["spec"])
    elif d["kind"] == "Deployment":
        check_deployment(path, d["spec"])
    elif d["kind"] == "Service":
        check_service(path, d["spec"])
    elif d["kind"] == "PersistentVolumeClaim":
        fields(path, d["spec"], {"accessModes", "resources", "storageClassName"}, {"accessModes", "resources"})
    else:
        check_job(path, d["spec"])


for name in sys.argv[1:]:
    check(name)
# the check sees a field that is none
try:
    fields("test", {"slotPerWorker": 8}, JOB)
except AssertionError:
    print(f"{len(sys.argv) - 1} manifests have the fields of their kinds")
else:
    sys.exit("an unknown field passed")
