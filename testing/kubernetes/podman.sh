#!/usr/bin/env bash
# Runs customer-360 from its manifests by `podman kube play`, and checks that a request passes all of its services.
#
# Usage: testing/kubernetes/podman.sh NARROWS     the binary
#
# Needs root, podman, runc, PostgreSQL, Python 3, and Debian's golang-github-containernetworking-plugin-dnsname for names of pods.
# Everything runs in namespaces of its own and ends with them. Images are left in target/kubernetes/images.
#
# Podman 4.3 plays Deployments and ConfigMaps, not all that a cluster does with them, so the manifests are changed:
#   - It has no Services. The pod of the Deployment `person` is called `person-pod-0`, and others find it by this name.
#   - It publishes every port of a container on the machine, where most of these are the same: none is kept.
#   - Secrets are those of `podman secret`, as JSON. Arguments have no variables, so the password stands in them.
#   - Probes for readiness are ignored.
#   - Volumes of kind `emptyDir` belong to all pods that call theirs alike.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly out=${NARROWS_KUBERNETES:-$here/../../target/kubernetes}
readonly manifests=$here/../../deploy/kubernetes/customer-360/base/manifests.yaml READY_SECONDS_MAX=30
PATH=$PATH:/usr/sbin

fail() { printf 'error: %s\n' "$1" >&2; [ -z "${2:-}" ] || printf 'hint: %s\n' "$2" >&2; exit 1; }

require() {
  local missing=() program
  for program in podman runc dnsmasq python3; do command -v "$program" >/dev/null || missing+=("$program"); done
  [ -x /usr/lib/cni/dnsname ] || missing+=(/usr/lib/cni/dnsname)
  [ ${#missing[@]} -eq 0 ] || fail "cannot play manifests: ${missing[*]} missing" \
    "apt-get install podman runc golang-github-containernetworking-plugin-dnsname python3"
  [ "$(id -u)" = 0 ] || fail "podman needs root to set limits"
}

# Settings of podman that touch nothing of this machine's own containers.
configure() {
  local folder
  for folder in /run/netns /run/containers /run/libpod /var/lib/cni; do
    mkdir -p "$folder"
    mount -t tmpfs -o mode=755 podman "$folder"
  done
  ip link set lo up
  mkdir "$work"/{images,run,networks,tmp}
  cat >"$work/containers.conf" <<END
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"] # more needs CAP_SYS_RESOURCE
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
infra_image = "localhost/holder:1"
runtime = "runc"
tmp_dir = "$work/tmp"
[network]
network_config_dir = "$work/networks"
END
  printf '[storage]\ndriver = "overlay"\ngraphroot = "%s/images"\nrunroot = "%s/run"\n' "$work" "$work" >"$work/storage.conf"
  export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf
}

# playable PASSWORD: the manifests as podman plays them.
playable() {
  sed -e 's|docker.io/library/postgres:.*|localhost/postgres:1|' -e '/^ \{8\}ports:$/,/containerPort/d' \
    -e 's/\(http:\/\/\|@\)\(database\|name\|person\):/\1\2-pod-0:/' \
    -e "s/\$(DATABASE_PASSWORD)/$1/" "$manifests" |
    awk 'BEGIN { RS = "---\n" } !/\nkind: Service\n/ { printf "---\n%s", $0 }'
}

get() { python3 -c 'import sys, urllib.request as http; print(http.urlopen(sys.argv[1], timeout=5).read().decode())' "$1"; }

# inside WORK: in the namespaces.
inside() {
  local work=$1 image password holder address response
  configure
  for image in holder narrows postgres; do podman load --quiet --input "$out/images/$image.tar" >/dev/null; done
  podman network create --subnet 10.89.0.0/24 narrows >/dev/null
  password=$(openssl rand -hex 16)
  printf '{ "password": "%s" }' "$(printf %s "$password" | base64 --wrap 0)" | podman secret create database - >/dev/null
  playable "$password" | podman kube play --network narrows -
  holder=$(podman pod inspect customer-pod-0 --format '{{.InfraContainerID}}')
  address=$(podman inspect "$holder" --format '{{.NetworkSettings.Networks.narrows.IPAddress}}')
  SECONDS=0
  until response=$(get "http://$address:8080/api/customer" 2>&1) || [ $SECONDS -ge $READY_SECONDS_MAX ]; do sleep 0.2; done
  # A row of the database, which only `name` reads.
  grep -qF Gandhi <<<"$response" || fail "expected customers from the database, found: $response"
  [ "$(podman inspect person-pod-0-person --format '{{.HostConfig.NanoCpus}}')" = 2000000000 ] || fail "person has no CPU limit"
  playable "$password" | podman kube down - >/dev/null
  [ -z "$(podman ps --all --quiet)" ] || fail "containers are left: $(podman ps --all)"
  echo "customer-360 responds under podman $(podman version --format '{{.Client.Version}}')"
}

case $# in
  1)
    require
    "$here/images.sh" "$1"
    python3 "$here/image.py" localhost/holder:1 "$out/images/holder.tar" --entry "/bin/sleep infinity" /bin/sleep
    work=$(mktemp -d /var/tmp/narrows-podman.XXXXXX)
    trap 'rm -rf --one-file-system "$work"; rmdir /sys/fs/cgroup/{,*/}libpod_parent 2>/dev/null || true' EXIT
    unshare --mount --net --pid --fork --kill-child --mount-proc --propagation private "$here/podman.sh" inside "$work"
    ;;
  2) inside "$2" ;;
  *) fail "expected the binary of Narrows" ;;
esac
