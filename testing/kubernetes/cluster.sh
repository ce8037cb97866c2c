#!/usr/bin/env bash
# A real Kubernetes on this machine, from what build.sh built.
#
# Usage: testing/kubernetes/cluster.sh up [NODES]      start it, with one node unless given: about 20 s, then it prints them
#        testing/kubernetes/cluster.sh run COMMAND…    run a command inside, with kubectl and its configuration
#        testing/kubernetes/cluster.sh load ARCHIVE…   add images, such as image.py packs
#        testing/kubernetes/cluster.sh down            end it and all it started, and delete its data
#
# Needs root and Debian's containerd, runc, etcd-server, iptables, conntrack, containernetworking-plugins, iproute2, openssl.
#
# A cluster is one process: the first of a namespace for processes, which starts everything else in it. When it ends, for
# whatever reason, the kernel ends all of it, pods and their shims included, and with the last process go its mounts and
# its network. That network has no way out. NARROWS_KUBERNETES names the folder of build.sh, NARROWS_CLUSTER that of the
# cluster's data, which is deleted with it.
#
# Each node beyond the first has a network, a kubelet, a containerd and a control group of its own. All nodes are this machine,
# and each says that it has all of its CPU and memory.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
programs=$(realpath -m "${NARROWS_KUBERNETES:-$here/../../target/kubernetes}")
data=$(realpath -m "${NARROWS_CLUSTER:-/var/tmp/narrows-cluster}")
readonly programs data
readonly NODES_MAX=9 NODE_ADDRESS=10.250.0.1 DNS_ADDRESS=10.96.0.10 READY_SECONDS_MAX=120 DOWN_SECONDS_MAX=30

fail() { printf 'error: %s\n' "$1" >&2; [ -z "${2:-}" ] || printf 'hint: %s\n' "$2" >&2; exit 2; }

# The process that holds the cluster, as this machine numbers it; nothing if there is no cluster. Its number may belong to
# another process by now, which does not have the mark in its environment.
holder() {
  local pid
  pid=$(cat "$data/holder" 2>/dev/null) || return 0
  if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qxF "NARROWS_CLUSTER_OF=$data"; then echo "$pid"; fi
}

# The first process of the cluster: the child of the one that made the namespaces.
inside_of() { pgrep -P "$1" | head -n 1; }

# --- outside ---

require() {
  local missing=() program
  for program in containerd ctr runc etcd iptables conntrack ip openssl; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  [ -x /usr/lib/cni/bridge ] || missing+=(/usr/lib/cni/bridge)
  [ ${#missing[@]} -eq 0 ] || fail "cannot start a cluster: ${missing[*]} missing" \
    "apt-get install containerd runc etcd-server iptables conntrack containernetworking-plugins iproute2 openssl"
  [ -x "$programs/kubernetes" ] || fail "no programs in $programs" "build them with testing/kubernetes/build.sh"
  [ "$(id -u)" = 0 ] || fail "a cluster needs root"
}

up() {
  local nodes=${1:-1}
  [[ $nodes =~ ^[1-$NODES_MAX]$ ]] || fail "expected 1 to $NODES_MAX nodes, found $nodes"
  require
  [ -z "$(holder)" ] || fail "a cluster runs already in $data" "end it with testing/kubernetes/cluster.sh down"
  down
  install -d -m 700 "$data"
  install -d "$data/log"
  NARROWS_CLUSTER_OF=$data setsid unshare --mount --net --pid --fork --kill-child --mount-proc --propagation private \
    "${BASH_SOURCE[0]}" inside "$nodes" >"$data/log/cluster" 2>&1 </dev/null &
  local pid=$!
  echo "$pid" >"$data/holder"
  trap 'down; exit 130' INT TERM
  for _ in $(seq $((READY_SECONDS_MAX * 5))); do
    if [ -e "$data/ready" ]; then
      run kubectl get nodes -o wide
      return
    fi
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.2
  done
  tail -n 20 "$data/log/"* >&2
  rm -rf "$data.log" && mv "$data/log" "$data.log"
  down
  fail "the cluster did not become ready" "its logs are in $data.log"
}

down() {
  local pid first
  pid=$(holder)
  if [ -n "$pid" ]; then
    # The kernel lets the first process go only after all others of the cluster.
    first=$(inside_of "$pid")
    kill -KILL "$pid"
    for _ in $(seq $((DOWN_SECONDS_MAX * 10))); do
      [ -d "/proc/${first:-$pid}" ] || break
      sleep 0.1
    done
  fi
  # The control groups of its pods, empty now. Those of another kubelet on this machine are not empty, so they stay.
  find /sys/fs/cgroup -depth -type d \( -path '*/kubepods*' -o -path '*/narrows-node-*' \) -exec rmdir {} + 2>/dev/null || true
  if [ -d "$data" ]; then
    [ -e "$data/holder" ] || [ -z "$(ls -A "$data")" ] || fail "$data is not the folder of a cluster; it is left alone"
    rm -rf --one-file-system "$data"
  fi
}

run() {
  local pid
  pid=$(holder)
  [ -n "$pid" ] || fail "no cluster runs in $data" "start one with testing/kubernetes/cluster.sh up"
  # shellcheck disable=SC2016 # expanded inside
  KUBECONFIG=$data/admin.yaml PATH=$data/bin:$PATH \
    nsenter --target "$(inside_of "$pid")" --mount --net --pid -- sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"
}

load() {
  local archive containerd
  for archive in "$@"; do
    [ -f "$archive" ] || fail "no image archive at $archive"
    for containerd in "$data"/node-*/containerd.sock; do
      run ctr -a "$containerd" -n k8s.io images import "$(realpath "$archive")" >/dev/null
    done
  done
}

# --- inside: the first process of the cluster ---

start() {
  local name=$1
  shift
  "$@" >"$data/log/$name" 2>&1 </dev/null &
}

await() {
  local what=$1
  shift
  for _ in $(seq $((READY_SECONDS_MAX * 5))); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.2
  done
  fail "$what is not ready after $READY_SECONDS_MAX s"
}

# Places that programs write to, of which this machine keeps its own.
private_folders() {
  local folder
  for folder in /run/containerd /run/netns /var/lib/cni /var/log; do
    mkdir -p "$folder"
    mount -t tmpfs -o mode=755 cluster "$folder"
  done
}

# The first node shares the network of the cluster's other programs. The kubelet refuses a loopback address for its node, so a
# bridge carries it, and leads to the others.
networks() {
  local number
  ip link add node0 type bridge
  for number in $(seq 2 "$1"); do
    ip netns add "node-$number"
    ip link add "node$number" type veth peer name node0 netns "node-$number"
    ip link set "node$number" up master node0
  done
}

# connect NUMBER NODES: gives a node its address, and its pods the way to those of the others.
connect() {
  local other
  ip link set lo up
  ip addr add "${NODE_ADDRESS%.*}.$1/24" dev node0
  ip link set node0 up
  ip route add default dev node0
  sysctl -qw net.ipv4.ip_forward=1
  for other in $(seq "$2"); do
    [ "$other" = "$1" ] || ip route add "10.244.$other.0/24" via "${NODE_ADDRESS%.*}.$other"
  done
}

# A kubelet removes pods of others from its control group. The first has that of the machine.
control_group() {
  local parent file
  [ "$1" -gt 1 ] || return 0
  for parent in /sys/fs/cgroup{,/*}; do
    [ -f "$parent/cgroup.procs" ] || continue
    mkdir -p "$parent/narrows-node-$1"
    for file in cpuset.cpus cpuset.mems; do
      [ ! -f "$parent/$file" ] || cat "$parent/$file" >"$parent/narrows-node-$1/$file"
    done
  done
}

certificates() {
  local key=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
  openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out accounts.key
  openssl req -x509 "${key[@]}" -keyout authority.key -out authority.crt -subj /CN=narrows-cluster -days 30
  openssl req "${key[@]}" -keyout server.key -out server.csr -subj /CN=kube-apiserver
  openssl x509 -req -in server.csr -CA authority.crt -CAkey authority.key -CAcreateserial -days 30 -out server.crt -extfile <(
    printf 'subjectAltName=IP:127.0.0.1,IP:%s,IP:10.96.0.1,DNS:kubernetes,DNS:kubernetes.default.svc' "$NODE_ADDRESS"
  )
}

configure() {
  local token
  token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  printf '%s,admin,admin,"system:masters"\n' "$token" >tokens.csv
  cat >admin.yaml <<END
apiVersion: v1
kind: Config
clusters: [{ name: here, cluster: { server: "https://$NODE_ADDRESS:6443", certificate-authority: "$data/authority.crt" } }]
users: [{ name: admin, user: { token: "$token" } }]
contexts: [{ name: here, context: { cluster: here, user: admin } }]
current-context: here
END
  mkdir bin
  local program
  for program in kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubectl kubelet; do
    ln -sf "$programs/kubernetes" "bin/$program"
  done
}

# configure_node NUMBER: in the node's folder.
configure_node() {
  mkdir cni static
  # A machine without CAP_SYS_RESOURCE cannot lower the score of a sandbox, which containerd otherwise insists on.
  cat >containerd.toml <<END
version = 2
root = "$PWD/containerd"
state = "$PWD/containerd-state"
[grpc]
  address = "$PWD/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$PWD/cni"
END
  cat >cni/10-pods.conflist <<END
{ "cniVersion": "0.4.0", "name": "pods", "plugins": [
  { "type": "bridge", "bridge": "pods0", "isGateway": true, "hairpinMode": true,
    "ipam": { "type": "host-local", "ranges": [[{ "subnet": "10.244.$1.0/24" }]], "routes": [{ "dst": "0.0.0.0/0" }] } },
  { "type": "portmap", "capabilities": { "portMappings": true } } ] }
END
  cat >kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: ${NODE_ADDRESS%.*}.$1
authentication: { anonymous: { enabled: true }, webhook: { enabled: false } }
authorization: { mode: AlwaysAllow }
cgroupDriver: cgroupfs
cgroupRoot: $([ "$1" = 1 ] && echo / || echo "/narrows-node-$1")
clusterDNS: [$DNS_ADDRESS]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix://$PWD/containerd.sock
cpuCFSQuotaPeriod: 100ms
enforceNodeAllocatable: []
evictionHard: { nodefs.available: 1%, imagefs.available: 1%, memory.available: 100Mi }
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
localStorageCapacityIsolation: false
readOnlyPort: 0
staticPodPath: $PWD/static
END
}

# node NUMBER: the programs of a node, in its own network, as children of this process.
node() {
  local number=$1 archive
  mkdir "$data/node-$number"
  cd "$data/node-$number"
  control_group "$number"
  configure_node "$number"
  start "containerd-$number" containerd -c containerd.toml
  for archive in "$programs"/images/{pause,coredns}.tar; do
    await "the image $archive" ctr -a "$PWD/containerd.sock" -n k8s.io images import "$archive"
  done
  start "kubelet-$number" kubelet --config=kubelet.yaml --kubeconfig="$KUBECONFIG" --root-dir="$PWD/kubelet" \
    --cert-dir="$PWD/kubelet/pki" --hostname-override="node-$number" --node-ip="${NODE_ADDRESS%.*}.$number" \
    --housekeeping-interval=1s
  start "kube-proxy-$number" kube-proxy --kubeconfig="$KUBECONFIG" --proxy-mode=iptables --hostname-override="node-$number" \
    --bind-address=127.0.0.1 --conntrack-max-per-core=0 --conntrack-min=0 --conntrack-tcp-timeout-established=0s \
    --conntrack-tcp-timeout-close-wait=0s
}

# other_node NUMBER NODES: a process with the programs of a node beyond the first, which ends when one of them does.
other_node() {
  private_folders
  connect "$1" "$2"
  node "$1"
  wait -n || true
  echo "a program of node $1 ended"
}

# Everything else is a child of this one. The first program that ends takes the cluster with it.
inside() {
  local nodes=$1 number
  cd "$data"
  private_folders
  networks "$nodes"
  connect 1 "$nodes"
  certificates
  configure
  export KUBECONFIG=$data/admin.yaml PATH=$data/bin:$PATH
  # Its state goes with the cluster, so no write has to wait for a disk.
  mkdir etcd
  mount -t tmpfs -o mode=700 etcd "$data/etcd"
  start etcd etcd --data-dir "$data/etcd" --log-level error --listen-client-urls http://127.0.0.1:2379 \
    --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380
  start kube-apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --bind-address="$NODE_ADDRESS" \
    --advertise-address="$NODE_ADDRESS" --secure-port=6443 --service-cluster-ip-range=10.96.0.0/16 \
    --tls-cert-file=server.crt --tls-private-key-file=server.key --token-auth-file=tokens.csv \
    --authorization-mode=Node,RBAC --allow-privileged=true --kubelet-preferred-address-types=InternalIP \
    --service-account-key-file=accounts.key --service-account-signing-key-file=accounts.key \
    --service-account-issuer=https://kubernetes.default.svc
  await "the API server" kubectl get --raw /readyz
  start kube-controller-manager kube-controller-manager --kubeconfig="$KUBECONFIG" --bind-address=127.0.0.1 \
    --leader-elect=false --use-service-account-credentials=true --root-ca-file=authority.crt \
    --service-account-private-key-file=accounts.key
  start kube-scheduler kube-scheduler --kubeconfig="$KUBECONFIG" --bind-address=127.0.0.1 --leader-elect=false
  for number in $(seq 2 "$nodes"); do
    start "node-$number" nsenter --net="/run/netns/node-$number" unshare --mount --propagation private \
      "$here/cluster.sh" other_node "$number" "$nodes"
  done
  node 1
  kubectl apply -f "$here/dns.yaml"
  for number in $(seq "$nodes"); do
    await "node-$number" kubectl wait --for=condition=Ready "node/node-$number" --timeout=1s
  done
  await "CoreDNS" kubectl -n kube-system rollout status deployment/coredns --timeout=1s
  touch "$data/ready"
  wait -n || true
  echo "a program of the cluster ended"
}

case ${1:-} in
  up) [ $# -le 2 ] || fail "\`up\` takes the number of nodes"; "$@" ;;
  down) [ $# -eq 1 ] || fail "\`down\` takes no arguments"; down ;;
  inside | other_node) "$@" ;;
  run | load) [ $# -ge 2 ] || fail "\`$1\` expects arguments"; "$@" ;;
  *) fail "expected up, run, load or down" "the head of $0 says what they do" ;;
esac
