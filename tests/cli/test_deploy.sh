#!/usr/bin/env bash
# deploy: every command of the manifests and of the Slurm script is one that kiln takes (a dry run), each edit point is in one
# place, no host, user or home is inside; the flags of kiln serve are its flags; and with Python's yaml the manifests have the
# fields that Kubernetes and the MPIJob's CRD have.
. "$(dirname "$0")/begin.sh"
shopt -s extglob
tests=$(cd "$(dirname "$0")" && pwd)
deploy=$tests/../../deploy
unset "${!OMPI_@}" "${!SLURM_@}" WORLD_SIZE RANK LOCAL_RANK
mkdir "$dir/bin" "$dir/run"
cp "$tests/../../configs/bert_large.json" "$dir/run/bert_config.json"

# kiln of the commands: the real one, as a dry run, of the launcher and of what it starts; bash and mkdir do nothing
cat >"$dir/bin/kiln" <<SH
#!/bin/bash
echo "\$*" >>$dir/commands
if [ "\$1" = launch ]; then
    "$kiln" launch --dry-run --cores_per_host 95 "\${@:2}" || exit
    shift
    while [ "\$1" != kiln ]; do shift; done
    shift
fi
exec "$kiln" "\$@" --dry-run
SH
printf '#!/bin/sh\necho "bash $*" >>%s/commands\n' "$dir" >"$dir/bin/bash"
printf '#!/bin/sh\n' | tee "$dir/bin/mkdir" "$dir/bin/cp" >"$dir/bin/scontrol"
chmod +x "$dir"/bin/*

# run_block FILE: the script behind "args: - |", with the variables of "env:", /data being a folder of this test
run_block()
{
    awk -v data="$dir/data" '
        /^ *- name: [A-Za-z_0-9]+$/ && in_env { name = $3; next }
        /^ *value: / && in_env { value = $2; gsub(/"/, "", value); sub(/^\/data\/run$/, run, value); sub(/^\/data/, data, value)
            print "export " name "=\"" value "\""; next }
        /^ *env: # edit here$/ { in_env = 1; n_env++; next }
        in_env { in_env = 0 }
        /^ *- \|$/ { match($0, /^ */); inside = RLENGTH; next }
        inside { match($0, /^ */); if (RLENGTH <= inside && $0 != "") inside = 0; else print }
        END { if (n_env != 1) print "false # not one place to edit" }' run="$dir/run" "$1" >"$dir/block"
    grep -q kiln "$dir/block" || fail "$1 has no command"
    PATH=$dir/bin:$PATH OMPI_MCA_orte_default_hostfile=$dir/hosts /bin/bash "$dir/block"
}

n=0
for file in "$deploy"/kubernetes/*.yaml; do
    workers=$(awk '/^    Worker:/ { at = 1 } at && /replicas:/ { print $2; exit }' "$file")
    for ((i = 0; i < ${workers:-1}; i++)); do echo "job-worker-$i.job.default.svc slots=8"; done >"$dir/hosts"
    : >"$dir/commands"
    run_block "$file" >"$dir/out" 2>"$dir/err" || fail "$file: $(cat "$dir/err")"
    [ -s "$dir/commands" ] || fail "$file ran nothing"
    if [ -n "$workers" ]; then
        grep -q -- "-n $((8 * workers)) -H job-worker-0.job.default.svc:8" "$dir/out" || fail "$file: $(cat "$dir/out")"
        grep -q "each rank is bound to 11 of its host's 95 cores" "$dir/err" || fail "$file: $(cat "$dir/err")"
    fi
    n=$((n + 1))
done
[ $n = 8 ] || fail "$n manifests"

# every volume that is claimed is the one that deploy makes, and no pod is started again for a wrong flag
[ "$(sed -n 's/^ *claimName: //p' "$deploy"/kubernetes/*.yaml | sort -u)" = "$(sed -n 's/^  name: //p' "$deploy/claim.yaml")" ] ||
    fail "claims"
if grep -n 'restartPolicy: OnFailure\|restartPolicy: Always' "$deploy"/kubernetes/*.yaml >"$dir/loops"; then
    fail "pods that loop: $(cat "$dir/loops")"
fi

# data is made in the order of its size, the configuration first; document 001 has no SQuAD v2.0
run_block "$deploy/kubernetes/data_gen.yaml" >"$dir/out" 2>"$dir/err" || fail "$(cat "$dir/err")"
grep -oE 'bert_config.json|vocab.txt"$|squad_download.sh --only .*|create_datasets.*' "$dir/block" | tr '\n"' '  ' >"$dir/order"
[ "$(tr -s ' ' <"$dir/order")" = "bert_config.json vocab.txt squad_download.sh --only '*-v1.1*' create_datasets_from_start.sh " ] ||
    fail "the order of data_gen.yaml: $(cat "$dir/order")"

# schemas of Kubernetes before 1.35 want both fields of such a condition
[ "$(grep -c '^ *- type: DisruptionTarget' "$deploy"/kubernetes/*.yaml)" = "$(grep -c '^ *status: "True"' "$deploy"/kubernetes/*.yaml)" ] ||
    fail "a condition of a pod has no status"

# both phases of the Slurm script
for phase in 1 2; do
    : >"$dir/commands"
    expect 0 "srun --mpi=pmix --kill-on-bad-exit=1 --cpu-bind=cores" env PATH="$dir/bin:$PATH" SLURM_JOB_ID=1 \
        RUN_PATH="$dir/run" dataset="$dir/d" \
        output="$dir/o" dllog="$dir/l" phase=$phase /bin/bash "$deploy/slurm/pretrain.sbatch"
    grep -q -- "--phase2" "$dir/commands" && [ $phase = 1 ] && fail "phase 1 is phase 2"
done

# nobody's own names
if grep -rnE '@[a-z]|/home/|/root/[^.]|/users/|/ceph|([0-9]+\.){3}[0-9]+' "$deploy" |
    grep -vE 'SystemCallFilter=|127\.0\.0\.1|0\.0\.0\.0' >"$dir/own"; then
    fail "names in deploy: $(cat "$dir/own")"
fi

# kiln serve: the flags of the Deployment and of the unit are its flags, and systemd knows the unit's
unpack_golden decoders
echo key >"$dir/keys"
serve() { "$kiln" serve "$@" --dry_run 2>"$dir/err" | grep generate >/dev/null || fail "kiln serve $*: $(cat "$dir/err")"; }
mapfile -t flags < <(awk '/^ *ports:/ { inside = 0 } inside { print $2 } /^ *args:$/ { inside = 1 }' "$deploy/serve/deployment.yaml" |
    sed "s|/data/model|$dir/bloom|; s|/etc/kiln/keys|$dir/keys|")
[ ${#flags[@]} = 4 ] || fail "flags of the Deployment: ${flags[*]}"
serve "${flags[@]}"
read -ra flags < <(sed -n 's/^ExecStart=kiln serve //p' "$deploy/serve/kiln-serve.service")
KILN_SERVE_MODEL=$dir/bloom serve "${flags[@]}"
if command -v systemd-analyze >/dev/null; then
    cp "$deploy"/serve/kiln-serve.* "$dir"
    sed -i "s|^ExecStart=kiln|ExecStart=$kiln|" "$dir/kiln-serve.service"
    systemd-analyze verify "$dir/kiln-serve.service" "$dir/kiln-serve.socket" 2>"$dir/err" && [ ! -s "$dir/err" ] ||
        fail "systemd-analyze: $(cat "$dir/err")"
fi

for script in "$deploy"/slurm/*.sbatch; do bash -n "$script"; done
if [ -n "${KILN_PYTHON:-}" ] && "$KILN_PYTHON" -c 'import yaml' 2>/dev/null; then
    "$KILN_PYTHON" "$tests/../deploy/check_manifests.py" "$deploy"/claim.yaml "$deploy"/kubernetes/*.yaml "$deploy"/serve/*.yaml
else
    lack yaml \
        "the fields of the manifests: KILN_PYTHON names no Python with yaml; make it by: python3 -m venv V; V/bin/pip install pyyaml; export KILN_PYTHON=V/bin/python"
fi
echo "test_deploy: $n manifests"
