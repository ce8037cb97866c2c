#!/usr/bin/env bash
# Packs the images that the manifests in deploy/kubernetes need for a cluster without a registry: Narrows, and PostgreSQL,
# MariaDB and NATS where this machine has them.
#
# Usage: testing/kubernetes/images.sh NARROWS     the binary, such as target/release/narrows
#
# The databases' images understand what those of Docker's library do, as far as the manifests use it: the user and its
# password, the database to create, and files of SQL in /docker-entrypoint-initdb.d.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly out=${NARROWS_KUBERNETES:-$here/../../target/kubernetes}/images
readonly narrows=${1:?expected the binary of Narrows}

image() { python3 "$here/image.py" "$@"; }
accounts() { printf 'root:x:0:0::/:/bin/sh\n%s:x:999:999::/:/bin/sh\n' "$1"; }

mkdir -p "$out"
image localhost/narrows:1 "$out/narrows.tar" --entry /narrows "$narrows:/narrows"

postgres=$(find /usr/lib/postgresql -maxdepth 3 -path '*/bin/postgres' 2>/dev/null | sort -V | tail -n 1)
if [ -n "$postgres" ]; then
  folder=${postgres%/bin/postgres}
  # Compiling queries at run time needs 150 MB of LLVM.
  mapfile -t libraries < <(find "$folder/lib" -name '*.so*' ! -name 'llvm*')
  # The programs find their other files by their own place, so they keep it.
  # shellcheck disable=SC2016
  image localhost/postgres:1 "$out/postgres.tar" --user 999:999 --entry /entry --path "$folder/bin:/bin" \
    --writable /var/lib/postgresql --writable /var/run/postgresql --text "/etc/passwd=$(accounts postgres)" \
    "$folder"/bin/{createdb,initdb,pg_ctl,pg_isready,postgres,psql} "${libraries[@]}" \
    "/usr/share/postgresql/${folder##*/}" /usr/share/zoneinfo/UTC /usr/share/zoneinfo/Etc /bin/sh \
    --text '/entry=#!/bin/sh
set -e
export PGDATA="${PGDATA:-/var/lib/postgresql/data}"
user="${POSTGRES_USER:-postgres}"
'"bin=$folder/bin"'
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  echo "$POSTGRES_PASSWORD" | "$bin/initdb" -U "$user" -E UTF8 --no-locale --auth-local=trust --auth-host=scram-sha-256 --pwfile=/dev/stdin
  echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
  "$bin/pg_ctl" start -w -o "-c listen_addresses="
  "$bin/createdb" -U "$user" "${POSTGRES_DB:-$user}" || true
  for file in /docker-entrypoint-initdb.d/*.sql; do
    [ ! -f "$file" ] || "$bin/psql" -U "$user" -d "${POSTGRES_DB:-$user}" -v ON_ERROR_STOP=1 -q -f "$file"
  done
  "$bin/pg_ctl" stop -w
fi
[ "$1" != postgres ] || shift
exec "$bin/postgres" -c "listen_addresses=*" "$@"
'
else
  echo "no PostgreSQL on this machine: apt-get install postgresql" >&2
fi

if [ -x /usr/sbin/mariadbd ]; then
  # shellcheck disable=SC2016
  image localhost/mariadb:1 "$out/mariadb.tar" --user 999:999 --entry /entry \
    --writable /var/lib/mysql --writable /run/mysqld --text "/etc/passwd=$(accounts mysql)" \
    /usr/sbin/mariadbd /usr/bin/mariadb /usr/bin/mariadb-admin /usr/share/mysql /usr/lib/mysql/plugin /bin/sh /bin/cat /bin/sleep \
    --text '/entry=#!/bin/sh
set -e
data=/var/lib/mysql
server() { /usr/sbin/mariadbd --no-defaults --datadir="$data" --socket=/run/mysqld/mysqld.sock "$@"; }
client() { /usr/bin/mariadb --no-defaults --socket=/run/mysqld/mysqld.sock -uroot "$@"; }
if [ ! -d "$data/mysql" ]; then
  {
    echo "create database mysql;"
    echo "use mysql;"
    cat /usr/share/mysql/mysql_system_tables.sql /usr/share/mysql/mysql_system_tables_data.sql
  } | server --bootstrap --silent-startup
  server --skip-networking --skip-grant-tables &
  until client -e "select 1" >/dev/null 2>&1; do
    kill -0 $! || exit 1
    sleep 0.2
  done
  client -e "create database if not exists ${MARIADB_DATABASE:-test}"
  for file in /docker-entrypoint-initdb.d/*.sql; do
    [ ! -f "$file" ] || client "${MARIADB_DATABASE:-test}" <"$file"
  done
  client <<END
delete from mysql.global_priv where host <> "localhost";
flush privileges;
create or replace user root@"%" identified by "$MARIADB_ROOT_PASSWORD";
grant all on *.* to root@"%" with grant option;
shutdown;
END
  wait $!
fi
[ "$1" != mariadbd ] || shift
exec /usr/sbin/mariadbd --no-defaults --datadir="$data" --socket=/run/mysqld/mysqld.sock "$@"
'
else
  echo "no MariaDB on this machine: apt-get install mariadb-server" >&2
fi

if [ -x /usr/sbin/nats-server ]; then
  image localhost/nats:1 "$out/nats.tar" --user 999:999 --entry /nats-server --text "/etc/passwd=$(accounts nats)" \
    /usr/sbin/nats-server:/nats-server
else
  echo "no NATS on this machine: apt-get install nats-server" >&2
fi
