#!/usr/bin/env bash
# Python's kiln (python/) over libkiln.so.0: its answers, runs and errors (tests/python/check_kiln.py), the notebook, and where the
# Python that KILN_PYTHON names has transformers, its pipelines, and sentence-transformers' vectors (tests/peers/check_python.py); its types by mypy.
. "$(dirname "$0")/begin.sh"
build=$(dirname "$kiln")
source=$(cd "$(dirname "$0")/../.." && pwd)
export KILN_PYTHON=${KILN_PYTHON:-/usr/bin/python3}
need_python python-numpy numpy
export KILN_LIBRARY=$build/libkiln.so.0 KILN_PROGRAM=$kiln PYTHONPATH=$source/python PYTHONDONTWRITEBYTECODE=1
"$build/tests/test_api" unpack "$dir/models"
"$build/tests/test_api_generate" unpack "$dir/decoders"
cd "$dir"
"$python" "$source/tests/python/check_kiln.py" "$dir/models" "$dir/decoders" "$dir" 2>"$dir/log" || fail "$(cat "$dir/log")"
"$python" "$source/tests/python/run_notebook.py" "$source/examples/python/first_steps.ipynb" >"$dir/out" 2>"$dir/log" ||
    fail "$(cat "$dir/log")"
if "$python" -c 'import nbclient, ipykernel' 2>/dev/null; then
    mkdir "$dir/jupyter"
    (cd "$dir/jupyter" && "$python" "$source/tests/python/run_notebook.py" "$source/examples/python/first_steps.ipynb" jupyter) >"$dir/log" 2>&1 ||
        fail "$(cat "$dir/log")"
else
    lack jupyter "KILN_PYTHON names no Python with nbclient and ipykernel: the notebook ran as a script"
fi
cp -r "$dir/models/single" "$dir/models/entailment"
sed -i 's/"yes"/"Entailment"/' "$dir/models/entailment/config.json"
if "$python" -c 'import torch, transformers' 2>/dev/null; then
    "$python" "$source/tests/peers/check_python.py" "$dir/models" "$dir/decoders" 2>"$dir/log" || fail "$(cat "$dir/log")"
else
    lack transformers "KILN_PYTHON names no Python with torch and transformers, whose pipelines are those of kiln"
fi
if "$python" -c 'import mypy' 2>/dev/null; then
    (cd "$source/python" && "$python" -m mypy --cache-dir "$dir/mypy" >"$dir/log") || fail "$(cat "$dir/log")"
else
    lack mypy "KILN_PYTHON names no Python with mypy, which checks the types of python/kiln"
fi
