#!/usr/bin/env bash
# Runs the reference systems on a real cluster: rolls all of them out from deploy/kubernetes, measures customer-360 there with
# one replica and with three, at a CPU limit, through an Ingress and with sidecars, and micron, a StatefulSet; and checks what
# Narrows says when a pod is deleted under load, and when an image, the API server, every pod or a pod's readiness is missing.
# On a second cluster, with three nodes, it measures replicas that call those beside them, and replicas that call any. Clusters
# are ended in any case.
#
# Usage: testing/kubernetes/prove.sh NARROWS [TIME_SCALE]     the binary; a factor on the loads' two minutes, 0.3 unless given
#
# Needs what cluster.sh needs, the programs that build.sh builds, PostgreSQL and MariaDB. Run files are left in
# target/kubernetes/runs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
readonly here root
readonly narrows=${1:?expected the binary of Narrows} time_scale=${2:-0.3}
readonly out=${NARROWS_KUBERNETES:-$root/target/kubernetes}
readonly runs=$out/runs ROLLOUT_TIMEOUT=180s
cd "$root"

fail() { printf 'error: %s\n' "$1" >&2; exit 1; }
inside() { "$here/cluster.sh" run "$@"; }

# roll_out NAMESPACE FOLDER MANIFESTS: applies a base or an overlay with the images of this machine, and waits for its pods.
roll_out() {
  local namespace=$1 folder=deploy/kubernetes/$2 work=$out/work/overlay-$1 workload
  echo "rolling out $2" >&2
  mkdir -p "$work"
  cat >"$work/kustomization.yaml" <<END
namespace: $namespace
resources: [$(realpath --relative-to "$work" "$folder")]
components: [$(realpath --relative-to "$work" deploy/kubernetes/components/local-images)]
END
  inside kubectl create namespace "$namespace"
  inside deploy/kubernetes/secrets.sh "$3" --namespace "$namespace"
  inside kubectl apply -k "$work"
  for workload in $(inside kubectl --namespace "$namespace" get deployments,statefulsets --output name); do
    inside kubectl --namespace "$namespace" rollout status "$workload" --timeout "$ROLLOUT_TIMEOUT"
  done
}

# start_cluster NODES IMAGE…
start_cluster() {
  "$here/cluster.sh" up "$1"
  shift
  "$here/cluster.sh" load "$@"
  inside kubectl proxy --port 8001 >"$runs/proxy.log" 2>&1 &
}

# address_of NAMESPACE SERVICE
address_of() { inside kubectl --namespace "$1" get service "$2" --output 'jsonpath={.spec.clusterIP}:{.spec.ports[0].port}'; }

# measure NAMESPACE NAME [OPTION…]: runs the experiment, or what the variable `experiment` names, against the Service of
# customers in a namespace, or the address that the variable `through` has.
measure() {
  local namespace=$1 name=$2 address
  shift 2
  address=${through:-$(address_of "$namespace" customer)}
  rm -f "$runs/$name.narrows"
  inside "$narrows" run "${experiment:-$base/customer-360/experiment.yaml}" --set "namespace=$namespace" --set "address=$address" \
    --time-scale "$time_scale" --out "$runs/$name.narrows" "$@"
}

# refused NAME TEXT: expects that nothing can be measured, and why.
refused() {
  local code=0
  measure customer-360 "$1" --variant one-replica >"$runs/$1.txt" 2>&1 || code=$?
  [ "$code" = 2 ] || fail "expected exit code 2 of $1, got $code: $(tail -n 30 "$runs/$1.txt")"
  expect "$2" "$runs/$1.txt"
}

# Only with this policy is an image that is not there missing for good.
image_of_person() {
  inside kubectl --namespace customer-360 patch deployment person --type strategic --patch \
    "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"person\",\"image\":\"$1\",\"imagePullPolicy\":\"Never\"}]}}}}"
}

# changed NAME SED: the experiment with something else in it.
changed() {
  sed -e "$2" $base/customer-360/experiment.yaml >"$out/work/$1.yaml"
  echo "$out/work/$1.yaml"
}

# expect TEXT FILE
expect() { grep -qF -- "$1" "$2" || fail "expected \`$1\` in $2: $(tail -n 30 "$2")"; }

# expect_limit SERVICE FILE: where other programs have most of a full machine, no replica may get as far as its limit.
expect_limit() { grep -qF "is not judged: the machine was full" "$2" || expect "$1 uses up its CPU limit" "$2"; }

base=deploy/kubernetes
mkdir -p "$runs"
trap '"$here/cluster.sh" down' EXIT
"$here/images.sh" "$narrows"
start_cluster 1 "$out"/images/{narrows,postgres,mariadb,traefik}.tar
inside kubectl apply -f testing/kubernetes/ingress.yaml

roll_out customer-360 customer-360/overlays/ingress $base/customer-360/base/manifests.yaml
measure customer-360 plain --variant one-replica --variant three-replicas
replicas=$(inside kubectl --namespace customer-360 get deployment customer --output 'jsonpath={.spec.replicas}')
[ "$replicas" = 1 ] || fail "expected that customer has its one replica back, found $replicas"
echo "measuring at a CPU limit" >&2
measure customer-360 limit --variant one-replica --set cpus=0.2 | tee "$runs/limit.txt"
expect_limit customer "$runs/limit.txt"
echo "measuring through an Ingress" >&2
inside kubectl --namespace ingress rollout status deployment/ingress --timeout "$ROLLOUT_TIMEOUT"
through=$(address_of ingress ingress) measure customer-360 ingress --variant one-replica
echo "deleting a pod under load" >&2
measure customer-360 deleted --variant one-replica >"$runs/deleted.txt" 2>&1 &
measuring=$!
until grep -q 'load 0:' "$runs/deleted.txt" || ! kill -0 "$measuring" 2>/dev/null; do sleep 0.2; done
inside kubectl --namespace customer-360 delete pod --selector app.kubernetes.io/name=person --wait=false
wait "$measuring" || true
expect "Pods changed under load" "$runs/deleted.txt"
echo "taking an image away" >&2
image_of_person localhost/missing:1
refused missing ErrImageNeverPull
image_of_person localhost/narrows:1
echo "asking for what is not there" >&2
experiment=$(changed nothing 's/part-of=customer-360/part-of=nothing/; /deployments:/,/customer: { replicas/d') refused nothing "no pod in namespace"
experiment=$(changed nobody '/selector:/a\    server: http://127.0.0.1:8002') refused nobody "no API server at"
inside kubectl --namespace customer-360 patch deployment person --type json --patch \
  '[{"op":"replace","path":"/spec/template/spec/containers/0/readinessProbe/httpGet/path","value":"/nowhere"}]'
experiment=$(changed unready '/selector:/a\    timeout: 10s') refused unready "containers with unready status"
inside kubectl delete namespace customer-360 --wait=true

roll_out sidecars customer-360/with-sidecars $base/customer-360/with-sidecars/manifests.yaml
measure sidecars sidecars --variant one-replica
inside kubectl delete namespace sidecars --wait=true

roll_out drone-delivery drone-delivery/overlays/two-schedulers $base/drone-delivery/base/manifests.yaml
roll_out micron micron/overlays/sticky-sessions $base/micron/base/manifests.yaml
experiment=$base/micron/experiment.yaml through=$(address_of micron micron) measure micron micron | tee "$runs/micron.txt"
expect_limit database "$runs/micron.txt"
roll_out hello-cities hello-cities/overlays/small $base/hello-cities/base/manifests.yaml
inside kubectl get pods --all-namespaces

"$here/cluster.sh" down
start_cluster 3 "$out"/images/{narrows,postgres}.tar
for overlay in beside-each-other three-replicas; do
  roll_out $overlay customer-360/overlays/$overlay $base/customer-360/base/manifests.yaml
  inside kubectl --namespace $overlay get pods --output wide
  # shellcheck disable=SC1083 # braces are for kubectl
  places=$(inside kubectl --namespace $overlay get pods --selector 'app.kubernetes.io/name!=database' --output \
    'jsonpath={range .items[*]}{.metadata.labels.app\.kubernetes\.io/name} {.spec.nodeName}{"\n"}{end}' | sort -u)
  [ "$(wc -l <<<"$places")" = 9 ] || fail "expected each of three services on each of three nodes, found $places"
  measure $overlay $overlay --variant three-at-equal-rate
  inside kubectl delete namespace $overlay --wait=true
done
