#!/usr/bin/env python3
"""Writes a software bill of materials (SPDX 2.3 JSON) of a built program: kiln, and the libraries that `kiln --version` names, with
their licences.  SOURCE_DATE_EPOCH is its date.  usage: tools/make_sbom.py [KILN] >kiln.spdx.json"""
import datetime
import hashlib
import json
import os
import subprocess
import sys

LICENCES = {"jansson": "MIT", "utf8proc": "MIT", "zlib": "Zlib", "bzip2": "bzip2-1.0.6", "expat": "MIT", "oneDNN": "Apache-2.0",
            "HDF5": "BSD-3-Clause", "openblas": "BSD-3-Clause", "libcurl": "curl", "libarchive": "BSD-2-Clause",
            "libmicrohttpd": "LGPL-2.1-or-later", "libpcre2-8": "BSD-3-Clause"}


def package(name, version, licence, **more):
    return {"SPDXID": "SPDXRef-" + name, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION", **more}


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../build/kiln")
    first, *lines = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()
    facts = dict(line.split(maxsplit=1) for line in lines)
    libraries = [name_version.split() for name_version in facts["libraries"].split(", ")]
    with open(program, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    date = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), datetime.timezone.utc)
    name, version = first.split()
    kiln = package(name, version, "Apache-2.0", sourceInfo=f"commit {facts.get('commit', 'unknown')}, {facts['compiler']}",
                   checksums=[{"algorithm": "SHA256", "checksumValue": digest}], primaryPackagePurpose="APPLICATION")
    json.dump({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"{name}-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{version}-{digest}",
        "creationInfo": {"created": date.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: make_sbom.py"]},
        "packages": [kiln] + [package(name, version, LICENCES[name]) for name, version in libraries],
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": kiln["SPDXID"]}] +
                         [{"spdxElementId": kiln["SPDXID"], "relationshipType": "DEPENDS_ON", "relatedSpdxElement": "SPDXRef-" + name}
                          for name, _ in libraries],
    }, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
