//! Tests of the parser: accepted queries, refused ones with the place of the fault, and no panic.

use proptest::prelude::*;

use crate::sql::parse;

/// Queries that must be read, and read again from their printed form.
pub(crate) const ACCEPTED: [&str; 25] = [
    "SELECT VALUE root FROM root WHERE root.year=@year AND root.month=@month AND root.ownerId=@ownerId",
    "select * from c",
    "SELECT * FROM drones AS d WHERE d.a[\"b c\"] = null",
    "SELECT c.id, c.a.b AS x, {\"n\": c.n, m: [1, c.m]} AS o FROM c",
    "SELECT DISTINCT TOP 3 VALUE c.a FROM c",
    "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a DESC, c.b OFFSET 2 LIMIT @limit",
    "SELECT * FROM c WHERE NOT (c.a > 1 OR c.b <= 2) AND c.c NOT IN (1, 'x', null) AND c.d BETWEEN 1 AND 3",
    "SELECT * FROM c WHERE c.name LIKE 'a!%%' ESCAPE '!' AND c.name NOT LIKE '%b'",
    "SELECT c.id, t AS tag FROM c JOIN t IN c.tags JOIN (SELECT VALUE u FROM u IN c.users) AS u",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT c.kind, SUM(c.n) AS total, AVG(c.n), MIN(c.n), MAX(c.n) FROM c GROUP BY c.kind",
    "SELECT * FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'x')",
    "SELECT ARRAY(SELECT VALUE t FROM t IN c.tags) AS tags, (SELECT VALUE COUNT(1) FROM c.tags) AS n FROM c",
    "SELECT VALUE c.a ?? c.b ?? 'none' FROM c",
    "SELECT VALUE c.a = 1 ? 'one' : c.a = 2 ? 'two' : 'many' FROM c",
    "SELECT VALUE -c.a + 2 * (3 - c.b) % 4 / 5 FROM c",
    "SELECT VALUE (c.a & 3) | (c.b ^ 1) | ~c.c << 2 >> 1 >>> 1 FROM c",
    "SELECT VALUE c.a || '-' || c.b FROM c WHERE c.a <> c.b",
    "SELECT VALUE 1",
    "SELECT * FROM x IN c.children WHERE x.age > 3",
    "SELECT * FROM c.address WHERE address.city = 'a'",
    "SELECT c[\"a\"][0][c.i].b FROM c",
    "SELECT VALUE {'a': undefined, 'b': [true, false]} FROM c",
    "SELECT c.order, c.value, c[\"group\"] FROM c -- keywords are names after a dot",
    "SELECT COUNTIF(c.a = 1) AS n FROM c WHERE ARRAY_CONTAINS(c.tags, {'a': 1}, true)",
];

#[test]
fn queries_are_read_and_printed_alike() {
    for query in ACCEPTED {
        let once = parse(query).unwrap_or_else(|error| panic!("{query}: {error}")).to_string();
        let twice = parse(&once).unwrap_or_else(|error| panic!("{once}: {error}")).to_string();
        assert_eq!(once, twice, "{query}");
    }
}

#[test]
fn an_error_names_the_construct_and_its_place() {
    let cases = [
        ("", "character 1 of the query: found the end, expected SELECT"),
        ("SELECT * FORM c", "character 10 of the query: found \"FORM\", expected the end of the query"),
        ("SELECT * FROM c WHERE c.a >", "character 28 of the query: found the end, expected an expression"),
        ("SELECT * FROM c WHERE d.a = 1", "character 23 of the query: found \"d.a\", expected an alias of FROM"),
        ("SELECT * FROM ü WHERE ü.a = x", "character 29 of the query: found \"x\", expected an alias of FROM"),
        ("SELECT VALUE udf.f(c) FROM c", "character 14 of the query: found \"udf.f(c)\", expected no user-defined"),
        ("SELECT VALUE FOO(c.a) FROM c", "character 14 of the query: found \"FOO(c.a)\", expected a function"),
        ("SELECT VALUE ABS(c.a, 2) FROM c", "expected ABS with 1 arguments, not 2"),
        ("SELECT * FROM c HAVING c.a = 1", "character 17 of the query: found \"HAVING\", expected the end"),
        ("SELECT c.a, c.b AS a FROM c", "character 13 of the query: found \"c.b\", expected no second column"),
        ("SELECT TOP -1 * FROM c", "character 12 of the query: found \"-1\", expected a whole number"),
        ("SELECT * FROM c OFFSET 1", "character 25 of the query: found the end, expected LIMIT"),
        ("SELECT * FROM c JOIN t IN c.tags", "expected a single source for *"),
        ("SELECT *", "expected FROM after *"),
        ("SELECT c.a, COUNT(1) FROM c GROUP BY c.b", "character 8 of the query: found \"c.a,\", expected an aggregate"),
        ("SELECT c.a FROM c WHERE COUNT(1) > 1", "expected no aggregate outside SELECT"),
        ("SELECT c.a FROM c GROUP BY c.a ORDER BY c.a", "expected no ORDER BY together with GROUP BY"),
        ("SELECT VALUE SUM(COUNT(1)) FROM c", "expected no aggregate within an aggregate"),
        ("SELECT TOP 1 * FROM c OFFSET 1 LIMIT 1", "expected TOP or OFFSET LIMIT, not both"),
        ("SELECT * FROM c WHERE c.a = 'x", "found \"'x\", expected an expression"),
    ];
    for (query, expected) in cases {
        let error = parse(query).map(|query| query.to_string()).unwrap_err().to_string();
        assert!(error.contains(expected), "{query}: {error}");
    }
}

#[test]
fn what_is_too_deep_or_too_long_is_refused() {
    let deep = [
        format!("SELECT VALUE {}1{} FROM c", "(".repeat(50_000), ")".repeat(50_000)),
        format!("SELECT VALUE {}1 FROM c", "- ".repeat(50_000)),
        format!("SELECT VALUE {}true FROM c", "NOT ".repeat(50_000)),
        format!("SELECT VALUE 1{} FROM c", "+1".repeat(50_000)),
        format!("SELECT VALUE c{} FROM c", ".a".repeat(50_000)),
        format!("SELECT VALUE {}", "[".repeat(50_000)),
        format!("SELECT VALUE {}", "(SELECT VALUE ".repeat(5_000)),
        format!("SELECT VALUE 1{}", " ? 1 : 1".repeat(20_000)),
    ];
    for query in deep {
        let error = parse(&query).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("nested at most "), "{error}");
    }
    let many = format!("SELECT * FROM c WHERE c.a = 0{}", " OR c.a = 1".repeat(10_000));
    assert!(parse(&many).is_ok(), "a long list is not deep");
    let long = "x".repeat(256 * 1024 + 1);
    assert!(parse(&long).unwrap_err().to_string().contains("expected at most 262144 bytes"));
}

proptest! {
    #[test]
    fn no_text_panics(query in "\\PC{0,80}") {
        let _ = parse(&query);
    }

    #[test]
    fn no_sequence_of_tokens_panics(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "SELECT", "VALUE", "FROM", "c", "WHERE", "c.a", "=", "(", ")", "[", "]", "{", "}", ",", ":", "?", "??", "AND",
                "OR", "NOT", "IN", "BETWEEN", "LIKE", "'x%'", "1", "@p", "COUNT", "ORDER", "BY", "GROUP", "TOP", "*", "JOIN",
                "EXISTS", "ARRAY", "AS", "-", "||", "OFFSET", "LIMIT", "undefined", "DISTINCT", ".",
            ]),
            0..40,
        )
    ) {
        if let Ok(query) = parse(&words.join(" ")) {
            let printed = query.to_string();
            prop_assert_eq!(parse(&printed).map(|query| query.to_string()), Ok(printed));
        }
    }
}
