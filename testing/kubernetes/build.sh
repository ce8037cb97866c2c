#!/usr/bin/env bash
# Builds the programs of a Kubernetes cluster from Go modules into target/kubernetes, and the images that every cluster
# needs. Takes about 20 minutes of CPU time and 3 GB of Go's caches the first time, and seconds after that.
#
# Usage: testing/kubernetes/build.sh
#
# Needs Go 1.24 or newer and Python 3. NARROWS_KUBERNETES names another folder for the result.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly out=${NARROWS_KUBERNETES:-$here/../../target/kubernetes}
# Kubernetes 1.34 is the newest that runs on control groups of version 1 with containerd 1.6, which Debian 12 has.
readonly KUBERNETES=1.34.4 COREDNS=1.13.1

mkdir -p "$out/work" "$out/images"
# Go works beside the result, so that no go.mod or go.sum appears among the sources.
prepare() {
  mkdir -p "$out/work/$1"
  cp "$here/programs/$1/main.go" "$out/work/$1/"
  cd "$out/work/$1"
}

# The module of Kubernetes replaces its libraries by folders of its repository, which a module proxy does not serve. They are
# published as modules of their own, in the same version with 0 for 1.
kubernetes_modules() {
  local folder library
  folder=$(go mod download -json "k8s.io/kubernetes@v$KUBERNETES" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  printf 'module kubernetes\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$KUBERNETES"
  sed -n 's|^\tk8s.io/\([a-z-]*\) => ./staging/.*|\1|p' "$folder/go.mod" | grep -v '^sample-' | sort -u |
    while read -r library; do printf '\tk8s.io/%s => k8s.io/%s v0.%s\n' "$library" "$library" "${KUBERNETES#1.}"; done
  printf ')\n'
}

build() {
  echo "building $1" >&2
  CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${2:-}" -o "$out/$1" .
}

prepare kubernetes
if [ ! -f go.mod ]; then
  modules=$(kubernetes_modules)
  printf '%s\n' "$modules" >go.mod
fi
go mod tidy
version=k8s.io/component-base/version
build kubernetes "-X $version.gitVersion=v$KUBERNETES -X $version.gitMajor=1 -X $version.gitMinor=${KUBERNETES:2:2}"

prepare coredns
[ -f go.mod ] || go mod init coredns
go get "github.com/coredns/coredns@v$COREDNS"
go mod tidy
build coredns

prepare pause
[ -f go.mod ] || go mod init pause
build pause

image() { python3 "$here/image.py" "$@"; }
image localhost/pause:1 "$out/images/pause.tar" --entry /pause "$out/pause:/pause"
image localhost/coredns:1 "$out/images/coredns.tar" --entry /coredns "$out/coredns:/coredns"
