//! Facts of attribute sets as real instrumentation sends them.

use super::*;
use serde_json::json;

fn facts_of(attributes: Value) -> SpanFacts {
    facts(attributes.as_object().expect("an object"))
}

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

#[test]
fn fastapi_server_span_by_the_old_names() {
    let got = facts_of(json!({
        "http.scheme": "http", "http.host": "127.0.0.1:8000", "net.host.port": 8000, "http.flavor": "1.1",
        "http.target": "/cars/7", "http.url": "http://127.0.0.1:8000/cars/7", "http.method": "GET",
        "http.server_name": "127.0.0.1:8000", "http.user_agent": "curl", "net.peer.ip": "10.1.2.3",
        "net.peer.port": 43210, "http.route": "/cars/{mode}", "http.status_code": 200,
    }));
    let expected = SpanFacts {
        http_method: text("GET"),
        http_route: text("/cars/{mode}"),
        http_status: Some(200),
        url: text("http://127.0.0.1:8000/cars/7"),
        server_address: text("127.0.0.1"),
        server_port: Some(8000),
        ..SpanFacts::default()
    };
    assert_eq!(got, expected);
}

#[test]
fn fastapi_server_span_by_the_new_names() {
    let got = facts_of(json!({
        "url.scheme": "http", "server.address": "127.0.0.1", "server.port": 8000, "network.protocol.version": "1.1",
        "url.path": "/cars/7", "url.query": "full=1&token=abc", "http.request.method": "GET", "client.address": "10.1.2.3",
        "client.port": 43210, "http.route": "/cars/{mode}", "http.response.status_code": 500, "error.type": "500",
    }));
    let expected = SpanFacts {
        http_method: text("GET"),
        http_route: text("/cars/{mode}"),
        http_status: Some(500),
        url: text("/cars/7?full=1&token=abc"),
        server_address: text("127.0.0.1"),
        server_port: Some(8000),
        error_type: text("500"),
        ..SpanFacts::default()
    };
    assert_eq!(got, expected);
}

#[test]
fn sqlalchemy_query_span() {
    let got = facts_of(json!({
        "db.system": "postgresql", "net.peer.name": "127.0.0.1", "net.peer.port": 5432, "db.name": "cars",
        "db.user": "joe", "db.statement": "SELECT * FROM cars WHERE id = %(id)s",
    }));
    let expected = SpanFacts {
        db_system: text("postgresql"),
        db_namespace: text("cars"),
        db_query: text("SELECT * FROM cars WHERE id = %(id)s"),
        server_address: text("127.0.0.1"),
        server_port: Some(5432),
        ..SpanFacts::default()
    };
    assert_eq!(got, expected);
}

#[test]
fn node_pg_query_and_throttled_undici_call() {
    let query = facts_of(json!({
        "db.system.name": "postgresql", "db.namespace": "postgres", "server.address": "127.0.0.1", "server.port": 5432,
        "db.query.text": "SELECT * FROM item WHERE id = $1", "db.operation.name": "SELECT",
    }));
    assert_eq!((query.db_operation, query.db_namespace), (text("SELECT"), text("postgres")));
    let call = facts_of(json!({
        "http.request.method": "GET", "http.request.method_original": "GET", "url.full": "http://127.0.0.1:9000/limited",
        "url.path": "/limited", "url.query": "", "url.scheme": "http", "server.address": "127.0.0.1", "server.port": 9000,
        "network.peer.address": "127.0.0.1", "network.peer.port": 9000, "http.response.status_code": 429, "error.type": "429",
    }));
    assert_eq!((call.http_status, call.error_type), (Some(429), text("429")));
    assert_eq!(call.url, text("http://127.0.0.1:9000/limited"));
}

#[test]
fn node_server_span_by_the_old_names_is_not_its_callers_address() {
    let got = facts_of(json!({
        "http.url": "http://shop.local:8080/a", "http.host": "shop.local:8080", "net.host.name": "shop.local",
        "http.method": "GET", "http.target": "/a", "net.host.ip": "::1", "net.host.port": 8080, "net.peer.ip": "::2",
        "net.peer.port": 51234, "http.status_code": 200, "http.route": "/a",
    }));
    assert_eq!((got.server_address, got.server_port), (text("shop.local"), Some(8080)));
}

#[test]
fn spring_petclinic_mixes_generations() {
    let jdbc = facts_of(json!({
        "thread.id": 52, "thread.name": "http-nio-8080-exec-1", "db.system": "h2", "db.name": "petclinic",
        "db.operation": "SELECT", "db.sql.table": "owners", "db.connection_string": "h2:mem:", "db.user": "sa",
        "db.statement": "select o1_0.id from owners o1_0 where o1_0.id=?",
    }));
    assert_eq!((jdbc.db_system, jdbc.db_operation), (text("h2database"), text("SELECT")));
    assert_eq!(jdbc.db_query, text("select o1_0.id from owners o1_0 where o1_0.id=?"));
    let http = facts_of(json!({
        "http.request.method": "GET", "http.response.status_code": 200, "http.route": "/owners/{ownerId}",
        "url.path": "/owners/6", "url.scheme": "http", "server.address": "localhost", "server.port": 8080,
        "client.address": "127.0.0.1", "network.peer.address": "127.0.0.1", "network.peer.port": 44444,
    }));
    assert_eq!((http.url, http.http_route), (text("/owners/6"), text("/owners/{ownerId}")));
}

#[test]
fn cosmos_db_of_both_generations() {
    let new = facts_of(json!({
        "db.system.name": "azure.cosmosdb", "db.namespace": "deliveries", "db.operation.name": "query_items",
        "db.response.status_code": "429", "azure.cosmosdb.response.sub_status_code": 3200,
        "azure.cosmosdb.operation.request_charge": 29.2, "server.address": "docstore", "error.type": "429",
    }));
    let old = facts_of(json!({
        "db.system": "cosmosdb", "db.name": "deliveries", "db.operation": "query_items", "db.cosmosdb.status_code": 429,
        "db.cosmosdb.sub_status_code": 3200, "db.cosmosdb.request_charge": 29.2, "net.peer.name": "docstore",
        "error.type": "429",
    }));
    assert_eq!(new.db_status, text("429"));
    assert_eq!((new.db_charge, new.db_sub_status), (Some(29.2), Some(3200)));
    assert_eq!(new, old);
}

#[test]
fn remote_calls_of_both_generations() {
    let old = facts_of(json!({
        "rpc.system": "grpc", "rpc.service": "shop.v1.Cart", "rpc.method": "Add", "rpc.grpc.status_code": 4,
        "net.peer.name": "cart", "net.peer.port": 50051, "peer.service": "cart-service",
    }));
    let new = facts_of(json!({
        "rpc.system.name": "grpc", "rpc.method": "shop.v1.Cart/Add", "rpc.response.status_code": "DEADLINE_EXCEEDED",
        "server.address": "cart", "server.port": 50051, "service.peer.name": "cart-service",
    }));
    let expected = SpanFacts {
        rpc_system: text("grpc"),
        rpc_service: text("shop.v1.Cart"),
        rpc_method: text("Add"),
        rpc_status: text("DEADLINE_EXCEEDED"),
        server_address: text("cart"),
        server_port: Some(50051),
        peer_service: text("cart-service"),
        ..SpanFacts::default()
    };
    assert_eq!(old, expected);
    assert_eq!(new, expected);
}

#[test]
fn statuses_of_remote_calls() {
    let cases = [
        (json!({ "rpc.grpc.status_code": "0" }), text("OK")),
        (json!({ "rpc.grpc.status_code": 99 }), text("99")),
        (json!({ "rpc.response.status_code": "4" }), text("4")),
        (json!({ "rpc.response.status_code": "OK", "rpc.grpc.status_code": 4 }), text("OK")),
        (json!({ "rpc.jsonrpc.error_code": -32700 }), text("-32700")),
        (json!({ "rpc.connect_rpc.error_code": "not_found" }), text("not_found")),
        (json!({ "rpc.grpc.status_code": [4] }), None),
    ];
    for (attributes, expected) in cases {
        assert_eq!(facts_of(attributes.clone()).rpc_status, expected, "{attributes}");
    }
}

#[test]
fn messages_of_three_generations() {
    let oldest = facts_of(json!({
        "messaging.system": "kafka", "messaging.destination": "orders", "messaging.destination_kind": "topic",
        "messaging.operation": "deliver",
    }));
    let old = facts_of(json!({
        "messaging.system": "kafka", "messaging.destination.name": "orders", "messaging.operation": "process",
    }));
    let new = facts_of(json!({
        "messaging.system": "kafka", "messaging.destination.name": "orders", "messaging.operation.name": "poll",
        "messaging.operation.type": "process",
    }));
    assert_eq!(oldest.messaging_destination, text("orders"));
    assert_eq!((&oldest, &old), (&new, &new));
    let batch = facts_of(json!({ "messaging.operation": "publish", "messaging.batch.message_count": 40 }));
    assert_eq!((batch.messaging_operation, batch.batch_size), (text("send"), Some(40)));
}

#[test]
fn collections_and_batches_of_databases() {
    for name in
        ["db.collection.name", "db.sql.table", "db.cosmosdb.container", "db.mongodb.collection", "db.cassandra.table"]
    {
        assert_eq!(facts_of(json!({ name: "orders" })).db_collection, text("orders"), "{name}");
    }
    for name in ["db.operation.batch.size", "db.operation.batch_size", "messaging.batch.message_count"] {
        assert_eq!(facts_of(json!({ name: 3 })).batch_size, Some(3), "{name}");
    }
    assert_eq!(facts_of(json!({ "url.template": "/carts/{id}" })).url_template, text("/carts/{id}"));
}

#[test]
fn an_error_without_a_type_is_one_of_another_type() {
    let cases = [
        (json!({ "error.type": "timeout", "error": true }), text("timeout")),
        (json!({ "exception.type": "java.io.IOException", "otel.status_code": "ERROR" }), text("java.io.IOException")),
        (json!({ "otel.status_code": "ERROR" }), text("_OTHER")),
        (json!({ "error": true }), text("_OTHER")),
        (json!({ "error": "true" }), text("_OTHER")),
        (json!({ "otel.status_code": "OK" }), None),
        (json!({ "error": false }), None),
        (json!({ "error": "none" }), None),
        (json!({ "otel.status_code": 2 }), None),
    ];
    for (attributes, expected) in cases {
        assert_eq!(facts_of(attributes.clone()).error_type, expected, "{attributes}");
    }
}

#[test]
fn a_port_inside_the_address_is_parted_from_it() {
    let cases = [
        (json!({ "server.address": "127.0.0.1:8000" }), "127.0.0.1", Some(8000)),
        (json!({ "server.address": "127.0.0.1:8000", "server.port": 9000 }), "127.0.0.1", Some(9000)),
        (json!({ "server.address": "[::1]:8000" }), "::1", Some(8000)),
        (json!({ "server.address": "::1" }), "::1", None),
        (json!({ "server.address": "fe80::1:8000" }), "fe80::1:8000", None),
        (json!({ "server.address": "shop:http" }), "shop:http", None),
        (json!({ "server.address": "shop:0" }), "shop:0", None),
        (json!({ "server.address": "shop:80000" }), "shop:80000", None),
        (json!({ "server.address": ":80" }), ":80", None),
        (json!({ "server.address": "/run/shop.sock" }), "/run/shop.sock", None),
    ];
    for (attributes, address, port) in cases {
        let got = facts_of(attributes);
        assert_eq!((got.server_address, got.server_port), (text(address), port), "{address}");
    }
}

#[test]
fn each_old_name_reads_as_its_new_one_and_yields_to_it() {
    for renamed in RENAMED {
        let alone = facts_of(json!({ renamed.old: "17" }));
        assert_ne!(alone, SpanFacts::default(), "{} is read by nothing", renamed.old);
        assert_eq!(alone, facts_of(json!({ renamed.new: "17" })), "{}", renamed.old);
        assert_eq!(alone, facts_of(json!({ renamed.new: "17", renamed.old: "99" })), "{}", renamed.old);
    }
}

#[test]
fn each_name_was_renamed_once() {
    for table in [RENAMED, DB_SYSTEMS_RENAMED, RPC_SYSTEMS_RENAMED, MESSAGING_OPERATIONS_RENAMED] {
        let old: std::collections::BTreeSet<_> = table.iter().map(|renamed| renamed.old).collect();
        assert_eq!(old.len(), table.len());
        assert!(table.iter().all(|renamed| !old.contains(renamed.new)), "a new name is also an old one");
    }
}

#[test]
fn each_renamed_value_reads_as_its_new_one() {
    for renamed in DB_SYSTEMS_RENAMED {
        assert_eq!(facts_of(json!({ "db.system": renamed.old })).db_system, text(renamed.new));
    }
    for renamed in RPC_SYSTEMS_RENAMED {
        assert_eq!(facts_of(json!({ "rpc.system": renamed.old })).rpc_system, text(renamed.new));
    }
    for renamed in MESSAGING_OPERATIONS_RENAMED {
        assert_eq!(facts_of(json!({ "messaging.operation": renamed.old })).messaging_operation, text(renamed.new));
    }
}

#[test]
fn numbers_may_be_strings_and_nonsense_counts_as_absent() {
    let cases = [
        (json!(404), Some(404)),
        (json!("404"), Some(404)),
        (json!(" 404 "), Some(404)),
        (json!("4o4"), None),
        (json!(-1), None),
        (json!(70_000), None),
        (json!(0), None),
        (json!(404.5), None),
        (json!(["404"]), None),
        (json!(null), None),
    ];
    for (value, expected) in cases {
        assert_eq!(facts_of(json!({ "http.response.status_code": value })).http_status, expected, "{value}");
    }
    let fallen_back = facts_of(json!({ "http.response.status_code": "?", "http.status_code": 503 }));
    assert_eq!(fallen_back.http_status, Some(503));
}

#[test]
fn how_long_a_response_says_to_wait() {
    const SECONDS: &str = "http.response.header.retry-after";
    const MILLISECONDS: &str = "http.response.header.x-ms-retry-after-ms";
    let cases = [
        (json!({ MILLISECONDS: ["250"] }), Some(250_000_000)),
        (json!({ MILLISECONDS: "250" }), Some(250_000_000)),
        (json!({ MILLISECONDS: 250 }), Some(250_000_000)),
        (json!({ MILLISECONDS: ["0"] }), Some(0)),
        (json!({ SECONDS: ["3"] }), Some(3_000_000_000)),
        (json!({ SECONDS: 3 }), Some(3_000_000_000)),
        (json!({ SECONDS: ["1"], MILLISECONDS: ["250"] }), Some(250_000_000)),
        (json!({ SECONDS: ["1"], MILLISECONDS: ["soon"] }), Some(1_000_000_000)),
        (json!({ SECONDS: ["Wed, 21 Oct 2026 07:28:00 GMT"] }), None),
        (json!({ SECONDS: ["1", "2"] }), None),
        (json!({ SECONDS: [["1"]] }), None),
        (json!({ SECONDS: [] }), None),
        (json!({ SECONDS: "-1" }), None),
        (json!({ SECONDS: "1.5" }), None),
        (json!({ SECONDS: u64::MAX }), None),
        (json!({ MILLISECONDS: "9000000000000" }), None),
        (json!({ SECONDS: null }), None),
    ];
    for (attributes, expected) in cases {
        assert_eq!(facts_of(attributes.clone()).retry_after_ns, expected, "{attributes}");
    }
}

#[test]
fn counts_may_be_zero_and_a_charge_is_a_number_of_units() {
    let got = facts_of(json!({
        "db.response.returned_rows": 0, "azure.cosmosdb.response.sub_status_code": "0", "db.partition.id": 7,
        "http.request.resend_count": 2, "azure.cosmosdb.operation.request_charge": "2.83",
    }));
    let expected = SpanFacts {
        db_rows: Some(0),
        db_charge: Some(2.83),
        db_sub_status: Some(0),
        db_partition: text("7"),
        resend_count: Some(2),
        ..SpanFacts::default()
    };
    assert_eq!(got, expected);
    for charge in [json!("NaN"), json!("inf"), json!(-1.0), json!([1.0]), json!("much"), json!(null)] {
        let got = facts_of(json!({ "azure.cosmosdb.operation.request_charge": charge }));
        assert_eq!(got, SpanFacts::default(), "{charge}");
    }
    for count in [json!(-1), json!(1.5), json!("many"), json!(u64::MAX)] {
        let got = facts_of(json!({ "http.request.resend_count": count }));
        assert_eq!(got, SpanFacts::default(), "{count}");
    }
}

#[test]
fn a_call_has_the_address_of_its_url_when_it_gives_no_other() {
    let place = |attributes| {
        let facts = facts_of(attributes);
        (facts.server_address, facts.server_port)
    };
    for (url, host, port) in [
        ("http://127.0.0.1:20310/rates?city=7", "127.0.0.1", Some(20310)),
        ("https://user:pass@api.example/v1", "api.example", Some(443)),
        ("http://[::1]:8000/", "::1", Some(8000)),
        ("http://[::1]", "::1", Some(80)),
        ("ftp://files.example", "files.example", None),
    ] {
        assert_eq!(place(json!({ "http.url": url })), (text(host), port), "{url}");
    }
    let beside = json!({ "http.url": "http://proxy:80/", "server.address": "shop", "server.port": 8080 });
    assert_eq!(place(beside), (text("shop"), Some(8080)));
    assert_eq!(place(json!({ "http.url": "http://shop:80/", "net.host.name": "shop", "http.method": "GET" })).1, None);
    assert_eq!(place(json!({ "http.url": "/relative" })), (None, None));
}
