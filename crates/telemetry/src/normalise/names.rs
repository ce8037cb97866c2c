//! Names that OpenTelemetry's semantic conventions replaced on their way to stability (HTTP 1.23, database 1.33, and
//! what was decided for remote calls and messaging so far).
//!
//! Source: the migration guides of the OpenTelemetry specification for HTTP, databases, RPC (from 1.37) and messaging
//! (from 1.16), and its schema files: 1.15.0 for `http.retry_count`, 1.17.0 for `messaging.destination`, 1.25.0 for
//! collections; the registry of deprecated attributes for `peer.service`; Azure's own SDK for .NET for the number of
//! items and `db.operation.batch_size`, which no convention had. Only names that a fact is read from stand here.

/// An old name and the stable one that replaced it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renaming {
    /// Name that older instrumentation sends.
    pub old: &'static str,
    /// Present name.
    pub new: &'static str,
}

const fn renamed(old: &'static str, new: &'static str) -> Renaming {
    Renaming { old, new }
}

/// Attribute names. Where several old names became one, the earlier row wins.
pub const RENAMED: &[Renaming] = &[
    renamed("http.method", "http.request.method"),
    renamed("http.status_code", "http.response.status_code"),
    renamed("http.url", "url.full"),
    renamed("net.host.name", "server.address"),
    renamed("net.peer.name", "server.address"),
    renamed("net.sock.peer.name", "server.address"),
    renamed("http.server_name", "server.address"),
    renamed("net.peer.ip", "server.address"),
    renamed("net.sock.peer.addr", "server.address"),
    renamed("net.host.port", "server.port"),
    renamed("net.peer.port", "server.port"),
    renamed("net.sock.peer.port", "server.port"),
    renamed("db.system", "db.system.name"),
    renamed("db.name", "db.namespace"),
    renamed("db.cassandra.keyspace", "db.namespace"),
    renamed("db.redis.database_index", "db.namespace"),
    renamed("db.statement", "db.query.text"),
    renamed("db.operation", "db.operation.name"),
    renamed("db.cosmosdb.status_code", "db.response.status_code"),
    renamed("db.cosmosdb.sub_status_code", "azure.cosmosdb.response.sub_status_code"),
    renamed("db.cosmosdb.request_charge", "azure.cosmosdb.operation.request_charge"),
    renamed("db.cosmosdb.item_count", "db.response.returned_rows"),
    renamed("db.cosmosdb.row_count", "db.response.returned_rows"),
    renamed("db.operation.batch_size", "db.operation.batch.size"),
    renamed("db.cosmosdb.container", "db.collection.name"),
    renamed("db.mongodb.collection", "db.collection.name"),
    renamed("db.cassandra.table", "db.collection.name"),
    renamed("db.sql.table", "db.collection.name"),
    renamed("http.resend_count", "http.request.resend_count"),
    renamed("http.retry_count", "http.request.resend_count"),
    renamed("http.response.header.retry_after", "http.response.header.retry-after"),
    renamed("http.response.header.x_ms_retry_after_ms", "http.response.header.x-ms-retry-after-ms"),
    renamed("peer.service", "service.peer.name"),
    renamed("exception.type", "error.type"),
    renamed("rpc.system", "rpc.system.name"),
    renamed("rpc.grpc.status_code", "rpc.response.status_code"),
    renamed("rpc.connect_rpc.error_code", "rpc.response.status_code"),
    renamed("rpc.jsonrpc.error_code", "rpc.response.status_code"),
    renamed("messaging.destination", "messaging.destination.name"),
    renamed("messaging.source.name", "messaging.destination.name"),
    renamed("messaging.operation", "messaging.operation.type"),
];

/// Values of `rpc.system` that are spelt differently as values of `rpc.system.name`.
pub const RPC_SYSTEMS_RENAMED: &[Renaming] = &[renamed("apache_dubbo", "dubbo"), renamed("connect_rpc", "connectrpc")];

/// Values of `messaging.operation` that are spelt differently as values of `messaging.operation.type`.
pub const MESSAGING_OPERATIONS_RENAMED: &[Renaming] = &[renamed("publish", "send"), renamed("deliver", "process")];

/// Values of `db.system` that are spelt differently as values of `db.system.name`.
pub const DB_SYSTEMS_RENAMED: &[Renaming] = &[
    renamed("adabas", "softwareag.adabas"),
    renamed("cosmosdb", "azure.cosmosdb"),
    renamed("db2", "ibm.db2"),
    renamed("dynamodb", "aws.dynamodb"),
    renamed("firebird", "firebirdsql"),
    renamed("h2", "h2database"),
    renamed("hanadb", "sap.hana"),
    renamed("informix", "ibm.informix"),
    renamed("ingres", "actian.ingres"),
    renamed("maxdb", "sap.maxdb"),
    renamed("mssql", "microsoft.sql_server"),
    renamed("netezza", "ibm.netezza"),
    renamed("oracle", "oracle.db"),
    renamed("redshift", "aws.redshift"),
    renamed("spanner", "gcp.spanner"),
];
