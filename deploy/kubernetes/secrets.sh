#!/usr/bin/env bash
# Makes the Secrets that manifests need and the cluster does not have: passwords at random, certificates for sidecars from an
# authority of this call, and the token of the telemetry's receiver from the variable NARROWS_OTLP_TOKEN.
#
# Usage: deploy/kubernetes/secrets.sh MANIFESTS [KUBECTL OPTION…]     such as manifests.yaml --namespace shop
#
# The comments at the head of MANIFESTS say what is needed. Nothing is written to a disk: keys are in memory (/dev/shm) while
# this runs. Sidecars trust each other only if their certificates come from one call, so none is added to those of an earlier one.
set -euo pipefail

fail() { printf 'error: %s\n' "$1" >&2; [ -z "${2:-}" ] || printf 'hint: %s\n' "$2" >&2; exit 2; }

readonly manifests=${1:-}
[ -f "$manifests" ] || fail "expected a file of manifests, found ${manifests:-nothing}" "narrows kubernetes manifests prints them"
shift
readonly options=("$@")
cluster() { kubectl "${options[@]}" "$@"; }
has() { cluster get secret "$1" >/dev/null 2>&1; }
cluster get namespaces >/dev/null || fail "the cluster does not respond"

folder=$(mktemp -d /dev/shm/narrows-secrets.XXXXXX)
readonly folder
trap 'rm -rf "$folder"' EXIT

authority() {
  [ ! -f "$folder/ca.crt" ] || return 0
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=narrows-sidecars \
    -keyout "$folder/ca.key" -out "$folder/ca.crt" 2>/dev/null
}

# A certificate for one service, as server and client.
certificate() {
  local service=${1%-tls}
  authority
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$service" \
    -keyout "$folder/tls.key" -out "$folder/tls.csr" 2>/dev/null
  openssl x509 -req -in "$folder/tls.csr" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" -CAcreateserial -days 365 \
    -extfile <(printf 'subjectAltName=DNS:%s\nextendedKeyUsage=serverAuth,clientAuth' "$service") -out "$folder/tls.crt" 2>/dev/null
  cluster create secret generic "$1" --from-file="$folder/ca.crt" --from-file="$folder/tls.crt" --from-file="$folder/tls.key"
}

wanted=$(sed -n 's/^# Secret \([^ ]*\) has to be there, with \([^:]*\):.*/\1 \2/p' "$manifests")
tls=$(grep 'tls.key' <<<"$wanted" | cut -d ' ' -f 1 || true)
present=0
for name in $tls; do if has "$name"; then present=$((present + 1)); fi; done
if [ "$present" -gt 0 ] && [ "$present" -ne "$(wc -w <<<"$tls")" ]; then
  fail "some of these Secrets are there and some are not: ${tls//$'\n'/ }" "delete them, so that all come from one authority"
fi

while read -r name keys; do
  [ -n "$name" ] || continue
  if has "$name"; then continue; fi
  case $keys in
    password) openssl rand -hex 16 | tr -d '\n' | cluster create secret generic "$name" --from-file=password=/dev/stdin ;;
    *tls.key) certificate "$name" ;;
    token)
      [ -n "${NARROWS_OTLP_TOKEN:-}" ] || fail "Secret $name needs a token" "set the variable NARROWS_OTLP_TOKEN"
      printf %s "$NARROWS_OTLP_TOKEN" | cluster create secret generic "$name" --from-file=token=/dev/stdin
      ;;
    *) fail "cannot make Secret $name with $keys" ;;
  esac
done <<<"$wanted"
