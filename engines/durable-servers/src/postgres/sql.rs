//! The tables of a hub and every statement on them. Names without a schema are found by each connection's
//! `search_path`, which is the hub's schema alone.

/// A statement, and its form for an attempt after one whose outcome is unknown.
#[derive(Clone, Copy)]
pub(super) struct Statement {
    pub(super) first: &'static str,
    pub(super) again: &'static str,
}

impl Statement {
    /// A statement that may be run twice.
    pub(super) const fn repeatable(sql: &'static str) -> Self {
        Self { first: sql, again: sql }
    }
}

/// The version of the tables below.
pub(super) const LAYOUT: i64 = 1;
/// Nodes that create a hub at the same time wait for each other under this number: `NRWd`.
pub(super) const CREATE_LOCK: i64 = 0x4e52_5764;

/// Makes missing tables. Large values are neither compressed nor kept in line: they are written once and read whole.
/// Rows of `partitions` are changed with each append, in place as long as their page has room.
pub(super) const TABLES: &str = "
create table if not exists hub (
  one boolean primary key default true check (one), layout bigint not null, partitions bigint not null,
  format bigint not null, secret text not null);
create table if not exists partitions (
  id bigint primary key, epoch bigint not null default 0, owner text, session bigint not null default 0,
  begins bigint not null default 0, ends bigint not null default 0) with (fillfactor = 10);
create table if not exists batches (
  partition bigint not null, position bigint not null, frames bigint not null, epoch bigint not null,
  crc bigint not null, bytes bytea not null, primary key (partition, position));
alter table batches alter column bytes set storage external;
create table if not exists blobs (
  name text collate \"C\" primary key, crc bigint not null, bytes bytea not null);
alter table blobs alter column bytes set storage external;
create table if not exists nodes (
  name text collate \"C\" primary key, crc bigint not null, said bytea not null);
";

/// Whether the schema has a table `hub`, and how many tables it has. 1: the schema.
pub(super) const LOOK_FOR_HUB: &str = "
select count(*) filter (where relname = 'hub'), count(*) from pg_class join pg_namespace n on n.oid = relnamespace
where nspname = $1::text and relkind = 'r'";

pub(super) const HUB: &str = "select layout, partitions, format, secret from hub";

/// 1: partition, 2: owner, 3: session. A session is alive while a connection holds its number as an advisory lock.
pub(super) const ACQUIRE: &str = "
update partitions set epoch = epoch + 1, owner = $2::text, session = $3::bigint
where id = $1::bigint and (owner is null or session = $3::bigint or not exists (
  select from pg_locks where locktype = 'advisory' and objsubid = 1 and granted
    and database = (select oid from pg_database where datname = current_database())
    and ((classid::bigint << 32) | objid::bigint) = partitions.session))
returning epoch";

/// 1: partition, 2: the epoch seen, 3: node, 4: session.
pub(super) const TAKE: &str = "
update partitions set epoch = epoch + 1, owner = $3::text, session = $4::bigint
where id = $1::bigint and epoch = $2::bigint
returning epoch";

/// The same after an attempt whose outcome is unknown: it also succeeds if that one did.
pub(super) const TAKE_AGAIN: &str = "
update partitions set epoch = $2::bigint + 1, owner = $3::text, session = $4::bigint
where id = $1::bigint
  and (epoch = $2::bigint or (epoch = $2::bigint + 1 and owner = $3::text and session = $4::bigint))
returning epoch";

/// 1: partition, 2: epoch.
pub(super) const RELEASE: &str = "
update partitions set owner = null where id = $1::bigint and epoch = $2::bigint and owner is not null returning id";

/// The same after an attempt whose outcome is unknown.
pub(super) const RELEASE_AGAIN: &str =
    "update partitions set owner = null where id = $1::bigint and epoch = $2::bigint returning id";

/// 1: partition, 2: epoch, 3: position, 4: frames, 5: checksum, 6: bytes. The change of the partition's row is the
/// fence: whoever takes the partition changes the same row, before or after.
pub(super) const APPEND: &str = "
with moved as (
  update partitions set ends = $3::bigint + $4::bigint
  where id = $1::bigint and epoch = $2::bigint and owner is not null and ends = $3::bigint
  returning id)
insert into batches (partition, position, frames, epoch, crc, bytes)
select $1::bigint, $3::bigint, $4::bigint, $2::bigint, $5::bigint, $6::bytea from moved
returning position";

/// 1: partition, 2: position. The partition's row, and the checksum of the batch that begins at the position.
pub(super) const LOOK: &str = "
select epoch, owner, begins, ends,
  (select crc from batches where partition = $1::bigint and position = $2::bigint)
from partitions where id = $1::bigint";

/// 1: partition, 2: position. Batches from the one that holds the position on, about 8 MiB of them.
pub(super) const READ: &str = "
select position, frames, epoch, crc, bytes from (
  select position, frames, epoch, crc, bytes,
    sum(octet_length(bytes)) over (order by position) - octet_length(bytes) as bytes_before
  from (
    select * from batches where partition = $1::bigint and position >= coalesce(
      (select max(position) from batches where partition = $1::bigint and position <= $2::bigint), $2::bigint)
    order by position limit 1024) page) sized
where bytes_before < 8388608 order by position";

/// 1: partition, 2: position. A page of batches that begin at the position or later.
pub(super) const SCAN: &str = "
select position, frames, epoch, crc, bytes from batches where partition = $1::bigint and position >= $2::bigint
order by position limit 16";

/// 1: partition, 2: epoch, 3: position.
pub(super) const RESTART: &str = "
with owned as (
  update partitions set begins = $3::bigint, ends = $3::bigint
  where id = $1::bigint and epoch = $2::bigint and owner is not null returning id),
gone as (delete from batches b using owned where b.partition = owned.id)
select id from owned";

/// Tables of the hub with the prefix `damaged_`. 1: the schema.
pub(super) const COPIES: &str = "
select relname::text from pg_class join pg_namespace n on n.oid = relnamespace
where nspname = $1::text and relkind = 'r' and starts_with(relname::text, 'damaged_')";

/// 1: partition, 2: epoch, 3: position.
pub(super) const TRUNCATE: &str = "
with owned as (
  select id, least(ends, $3::bigint) as keep_from from partitions
  where id = $1::bigint and epoch = $2::bigint and owner is not null for update),
gone as (
  delete from batches b using owned where b.partition = owned.id and b.position + b.frames <= owned.keep_from)
update partitions p set begins = greatest(p.begins, owned.keep_from) from owned where p.id = owned.id
returning p.id";

/// Increases with each transaction on the server that calls it.
pub(super) const NUMBER: &str = "select txid_current()";

pub(super) const OWNERS: &str = "select id, epoch, owner from partitions order by id";

/// 1: name, 2: checksum, 3: bytes.
pub(super) const PUT_BLOB: &str = "
insert into blobs (name, crc, bytes) values ($1::text, $2::bigint, $3::bytea)
on conflict (name) do update set crc = excluded.crc, bytes = excluded.bytes";
pub(super) const GET_BLOB: &str = "select crc, bytes from blobs where name = $1::text";
pub(super) const DELETE_BLOB: &str = "delete from blobs where name = $1::text";
pub(super) const LIST_BLOBS: &str =
    "select name from blobs where name >= $1::text and starts_with(name, $1::text) order by name";

/// 1: node, 2: checksum, 3: its report. Returns the last reports of the other nodes.
pub(super) const SAY: &str = "
with mine as (
  insert into nodes (name, crc, said) values ($1::text, $2::bigint, $3::bytea)
  on conflict (name) do update set crc = excluded.crc, said = excluded.said)
select name, crc, said from nodes where name <> $1::text";
pub(super) const SAID: &str = "select name, crc, said from nodes order by name";
pub(super) const FORGET: &str = "delete from nodes where name = $1::text";
