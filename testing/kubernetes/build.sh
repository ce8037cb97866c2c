#!/usr/bin/env bash
# Builds the programs of a Kubernetes cluster from Go modules into target/kubernetes, Traefik as its ingress controller, and the
# images of these. Takes about half an hour of CPU time and 6 GB of Go's caches the first time, and seconds after that.
#
# Usage: testing/kubernetes/build.sh
#
# Needs Go 1.26 or newer and Python 3. NARROWS_KUBERNETES names another folder for the result.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly out=${NARROWS_KUBERNETES:-$here/../../target/kubernetes}
# Kubernetes 1.34 is the newest that runs on control groups of version 1 with containerd 1.6, which Debian 12 has.
readonly KUBERNETES=1.34.4 COREDNS=1.13.1 TRAEFIK=3.7.13

mkdir -p "$out/work" "$out/images"
# Go works beside the result, so that no go.mod or go.sum appears among the sources.
prepare() {
  mkdir -p "$out/work/$1"
  cp "$here/programs/$1/main.go" "$out/work/$1/"
  cd "$out/work/$1"
}

# source_of MODULE@VERSION: the folder of a module.
source_of() { go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'; }

# The module of Kubernetes replaces its libraries by folders of its repository, which a module proxy does not serve. They are
# published as modules of their own, in the same version with 0 for 1.
kubernetes_modules() {
  local folder library
  folder=$(source_of "k8s.io/kubernetes@v$KUBERNETES")
  printf 'module kubernetes\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$KUBERNETES"
  sed -n 's|^\tk8s.io/\([a-z-]*\) => ./staging/.*|\1|p' "$folder/go.mod" | grep -v '^sample-' | sort -u |
    while read -r library; do printf '\tk8s.io/%s => k8s.io/%s v0.%s\n' "$library" "$library" "${KUBERNETES#1.}"; done
  printf ')\n'
}

# build NAME [LINKER FLAGS [PACKAGE]]
build() {
  echo "building $1" >&2
  CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${2:-}" -o "$out/$1" "${3:-.}"
}

# Traefik is built from a copy of its module, in which parts are left out: what no module proxy serves, and the clients of 180
# providers of DNS, which would be most of the build.
traefik_source() {
  local folder=$out/work/traefik stubs=$here/programs/traefik
  rm -rf "$folder"
  mkdir "$folder"
  cp -r "$(source_of "github.com/traefik/traefik/v3@v$TRAEFIK")"/{cmd,internal,pkg,webui,go.mod,go.sum} "$folder"
  chmod -R u+w "$folder"
  cd "$folder"
  rm pkg/middlewares/auth/{basic,digest}_auth.go
  cp "$stubs/none.go" pkg/middlewares/auth/
  sed -i '/go-http-auth/d' go.mod
  sed -i -e '/lego\/v5\/providers\/dns"$/d' \
    -e 's/dns.NewDNSChallengeProviderByName(.*)$/nil, errors.New("this build knows no provider of DNS")/' pkg/provider/acme/provider.go
  mkdir pkg/config/dynamic/ext
  cd pkg/config/dynamic/ext
  cp "$stubs/ext.go" .
  printf 'module github.com/traefik/traefik/dynamic/ext\n\ngo 1.26.0\n' >go.mod
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

[ -f "$out/work/traefik/pkg/config/dynamic/ext/go.mod" ] || traefik_source
cd "$out/work/traefik"
build traefik "" ./cmd/traefik

image() { python3 "$here/image.py" "$@"; }
image localhost/pause:1 "$out/images/pause.tar" --entry /pause "$out/pause:/pause"
image localhost/coredns:1 "$out/images/coredns.tar" --entry /coredns "$out/coredns:/coredns"
image localhost/traefik:1 "$out/images/traefik.tar" --entry /traefik "$out/traefik:/traefik"
