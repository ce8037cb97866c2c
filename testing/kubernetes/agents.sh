#!/usr/bin/env bash
# Has agents in pods send a load to customer-360 on a real cluster, deletes one of them while they do, and checks what the run
# says of it and that nothing else was lost. The cluster is ended in any case.
#
# Usage: testing/kubernetes/agents.sh NARROWS     the binary
#
# Needs what cluster.sh needs, the programs that build.sh builds, PostgreSQL and NATS.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
readonly here root
readonly narrows=${1:?expected the binary of Narrows}
readonly out=${NARROWS_KUBERNETES:-$root/target/kubernetes}
readonly said=$out/runs/agents.txt ROLLOUT_TIMEOUT=180s
cd "$root"

fail() { printf 'error: %s\n' "$1" >&2; exit 1; }
inside() { "$here/cluster.sh" run "$@"; }
expect() { grep -qF -- "$1" "$said" || fail "expected \`$1\` in $said: $(tail -n 40 "$said")"; }

# roll_out NAMESPACE FOLDER MANIFESTS: applies a folder with the images of this machine, and waits for its pods.
roll_out() {
  local namespace=$1 work=$out/work/overlay-$1 workload
  echo "rolling out $2" >&2
  mkdir -p "$work"
  cat >"$work/kustomization.yaml" <<END
namespace: $namespace
resources: [$(realpath --relative-to "$work" "$2")]
components: [$(realpath --relative-to "$work" deploy/kubernetes/components/local-images)]
END
  inside kubectl create namespace "$namespace"
  inside deploy/kubernetes/secrets.sh "$3" --namespace "$namespace"
  inside kubectl apply -k "$work"
  for workload in $(inside kubectl --namespace "$namespace" get deployments --output name); do
    inside kubectl --namespace "$namespace" rollout status "$workload" --timeout "$ROLLOUT_TIMEOUT"
  done
}

mkdir -p "$out/runs"
trap '"$here/cluster.sh" down' EXIT
"$here/images.sh" "$narrows"
"$here/cluster.sh" up
"$here/cluster.sh" load "$out"/images/{narrows,postgres,nats}.tar
base=deploy/kubernetes
roll_out customer-360 $base/customer-360/overlays/one-replica $base/customer-360/base/manifests.yaml
roll_out agents $base/agents $base/agents/agents.yaml

logs() { inside kubectl --namespace agents logs job/run; }
waited=0
until logs 2>/dev/null | grep -q 'load 0:'; do
  waited=$((waited + 1))
  [ "$waited" -lt 120 ] || fail "no load after 120 s: $(logs 2>&1 | tail -n 20)"
  sleep 1
done
lost=$(inside kubectl --namespace agents get pods --selector app.kubernetes.io/name=agents --output 'jsonpath={.items[0].metadata.name}')
echo "deleting $lost under load" >&2
inside kubectl --namespace agents delete pod "$lost" --grace-period 0 --force
inside kubectl --namespace agents wait --for=condition=complete job/run --timeout 120s
logs >"$said"
cat "$said"
expect "Agent $lost was asked to end"
expect "another agent took over"
expect "error_rate == 0  0 %"
