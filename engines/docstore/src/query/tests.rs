//! Queries over a handful of documents, from the body of a request to the results of its pages.

use serde_json::json;

use super::*;

const DOCUMENTS: [&str; 5] = [
    r#"{"id":"1","kind":"a","n":3,"tags":["x","y"],"inner":{"city":"Oslo"},"users":[{"name":"Ann","age":30},{"name":"Bo","age":20}]}"#,
    r#"{"id":"2","kind":"b","n":1,"tags":["y"],"inner":{"city":"Bern"},"users":[]}"#,
    r#"{"id":"3","kind":"a","n":2.5,"tags":[],"users":[{"name":"Cy","age":40}]}"#,
    r#"{"id":"4","kind":"c","n":null,"tags":["x","x","z"],"users":[]}"#,
    r#"{"id":"5","kind":"b","tags":"none"}"#,
];

fn selection(sql: &str, parameters: Json) -> Selection {
    Selection::from_body(json!({ "query": sql, "parameters": parameters }).to_string().as_bytes()).unwrap()
}

fn first_page<'d>(
    selection: &Selection,
    documents: impl Iterator<Item = (u64, &'d str)>,
) -> Result<Batch, TooMuchWork> {
    selection.page(documents, &Progress::default(), 10, Allowance::unwatched())
}

/// All pages of `limit` results, joined by commas.
fn pages(selection: &Selection, limit: usize) -> String {
    let (mut results, mut progress) = (Vec::new(), Progress::default());
    loop {
        let documents = (0..).zip(DOCUMENTS).skip(selection.first(&progress) as usize);
        let batch = selection.page(documents, &progress, limit, Allowance::unwatched()).unwrap();
        assert!(batch.items.len() <= limit);
        results.extend(batch.items.iter().map(ToString::to_string));
        match batch.next {
            Some(next) => progress = next,
            None => return results.join(","),
        }
    }
}

/// Checks a query's results, which must be the same however they are cut into pages.
fn check(cases: &[(&str, &str)]) {
    for (sql, expected) in cases {
        let selection = selection(sql, json!([{ "name": "@p", "value": "a" }, { "name": "@two", "value": 2 }]));
        for limit in [1, 2, 100] {
            assert_eq!(pages(&selection, limit), *expected, "{sql} in pages of {limit}");
        }
    }
}

#[test]
fn projections_keep_the_digits_of_whole_numbers() {
    let document = r#"{"id":"1","big":9007199254740993,"list":[-9007199254740995]}"#;
    let results = |sql: &str| {
        let batch = first_page(&selection(sql, json!([])), std::iter::once((0, document))).unwrap();
        batch.items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    };
    for (sql, expected) in [
        ("SELECT c.big, c.list FROM c", r#"{"big":9007199254740993,"list":[-9007199254740995]}"#),
        ("SELECT VALUE MAX(c.big) FROM c WHERE c.big > 5 AND c.big = 9007199254740992", "9007199254740993"),
        ("SELECT VALUE x FROM x IN c.list ORDER BY x", "-9007199254740995"),
        ("SELECT VALUE [IS_NUMBER(c.big), IS_INTEGER(c.big), +c.big]  FROM c", "[true,true,9007199254740993]"),
        ("SELECT VALUE SUM(c.big - ABS(c.list[0])) FROM c", "-4"),
    ] {
        assert_eq!(results(sql), expected, "{sql}");
    }
}

#[test]
fn filters() {
    check(&[
        ("SELECT VALUE c.id FROM c WHERE c.kind = @p", r#""1","3""#),
        ("SELECT VALUE c.id FROM c WHERE c.n > 1 AND c.n <= 3", r#""1","3""#),
        ("SELECT VALUE c.id FROM c WHERE NOT (c.n = 3)", r#""2","3","4""#),
        ("SELECT VALUE c.id FROM c WHERE c.n != null", r#""1","2","3""#),
        ("SELECT VALUE c.id FROM c WHERE c.n = 1 OR c.kind = 'c'", r#""2","4""#),
        ("SELECT VALUE c.id FROM c WHERE c.kind IN ('b', 'c') AND IS_DEFINED(c.n)", r#""2","4""#),
        ("SELECT VALUE c.id FROM c WHERE c.n BETWEEN 1 AND 2.5", r#""2","3""#),
        ("SELECT VALUE c.id FROM c WHERE c.n NOT BETWEEN 1 AND 2.5", r#""1""#),
        ("SELECT VALUE c.id FROM c WHERE c.inner.city LIKE '%s%'", r#""1""#),
        ("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 'x')", r#""1","4""#),
        ("SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE u FROM u IN c.users WHERE u.age > 25)", r#""1","3""#),
        ("SELECT VALUE c.id FROM c WHERE c.missing = undefined", ""),
        ("SELECT VALUE c.id FROM c WHERE c.n", ""),
    ]);
}

#[test]
fn ranges_of_texts_and_dates() {
    const DATES: [&str; 3] = [
        r#"{"id":"1","at":"2026-01-31T23:59:59Z","tags":["x"],"users":[{"age":30},{"age":20}]}"#,
        r#"{"id":"2","at":"2026-02-01T00:00:00Z","tags":["x","y"],"users":[{"age":40}]}"#,
        r#"{"id":"3","at":"2026-12-24T18:00:00Z","tags":[],"users":[]}"#,
    ];
    for (sql, expected) in [
        ("SELECT VALUE c.id FROM c WHERE c.at >= '2026-02-01T00:00:00Z'", r#""2","3""#),
        ("SELECT VALUE c.id FROM c WHERE c.at > '2026-01-31' AND c.at < '2026-02-01T00:00:00Z'", r#""1""#),
        ("SELECT VALUE c.id FROM c WHERE c.at BETWEEN '2026-02-01' AND '2026-02-28'", r#""2""#),
        ("SELECT VALUE c.id FROM c WHERE c.id > '1' AND c.id <= '3'", r#""2","3""#),
        (
            "SELECT c.id, u.age FROM c JOIN t IN c.tags JOIN u IN c.users WHERE t = 'x' AND u.age > 25",
            r#"{"id":"1","age":30},{"id":"2","age":40}"#,
        ),
        ("SELECT VALUE DateTimeDiff('day', c.at, '2027-01-01T00:00:00Z') FROM c WHERE c.id = '3'", "8"),
    ] {
        let batch = first_page(&selection(sql, json!([])), (0..).zip(DATES)).unwrap();
        let found: Vec<String> = batch.items.iter().map(ToString::to_string).collect();
        assert_eq!(found.join(","), expected, "{sql}");
    }
}

#[test]
fn operators_on_texts_numbers_and_arrays() {
    check(&[
        ("SELECT VALUE CONCAT(c.kind, '-', c.id) FROM c WHERE STARTSWITH(c.inner.city, 'O')", r#""a-1""#),
        ("SELECT VALUE [c.n * 2 + 1, c.n % 2, ABS(-c.n), FLOOR(2.5)] FROM c WHERE c.id = '1'", "[7,1,3,2]"),
        ("SELECT VALUE ARRAY_LENGTH(ARRAY_CONCAT(c.tags, [1])) FROM c WHERE ARRAY_CONTAINS(c.tags, 'z')", "4"),
        ("SELECT VALUE ARRAY_SLICE(c.tags, 1) FROM c WHERE c.id = '1'", r#"["y"]"#),
        ("SELECT VALUE IS_BOOLEAN(true) AND IS_BOOL(false) FROM c WHERE c.id = '1'", "true"),
    ]);
}

#[test]
fn projections() {
    check(&[
        ("SELECT c.n, c.kind AS k, c.missing FROM c WHERE c.id = '1'", r#"{"n":3,"k":"a"}"#),
        (
            "SELECT c.id, {\"k\": [c.kind, c.missing]}, 1 + 1 FROM c WHERE c.id = '1'",
            r#"{"id":"1","$1":{"k":["a"]},"$2":2}"#,
        ),
        ("SELECT * FROM c WHERE c.id = '5'", DOCUMENTS[4]),
        ("SELECT VALUE c.inner.city FROM c", r#""Oslo","Bern""#),
        ("SELECT VALUE c.n ?? 'none' FROM c WHERE c.kind = 'b'", r#"1,"none""#),
        ("SELECT VALUE c.n > 2 ? 'big' : 'small' FROM c WHERE c.kind = 'a'", r#""big","big""#),
        ("SELECT VALUE c.tags[0] FROM c", r#""x","y","x""#),
        ("SELECT VALUE c['inner']['city'] FROM c WHERE c.id = '1'", r#""Oslo""#),
        ("SELECT * FROM c.inner", r#"{"city":"Oslo"},{"city":"Bern"}"#),
        ("SELECT VALUE a.city FROM c.inner AS a WHERE a.city = 'Bern'", r#""Bern""#),
    ]);
}

#[test]
fn joins_and_subqueries() {
    check(&[
        (
            "SELECT c.id, t FROM c JOIN t IN c.tags WHERE t != 'y'",
            r#"{"id":"1","t":"x"},{"id":"4","t":"x"},{"id":"4","t":"x"},{"id":"4","t":"z"}"#,
        ),
        ("SELECT VALUE u.name FROM c JOIN u IN c.users", r#""Ann","Bo","Cy""#),
        ("SELECT VALUE u.name FROM u IN c.users WHERE u.age >= 30", r#""Ann","Cy""#),
        ("SELECT VALUE s FROM c JOIN (SELECT VALUE u.age FROM u IN c.users) AS s", "30,20,40"),
        (
            "SELECT VALUE [t, u.name] FROM c JOIN t IN c.tags JOIN u IN c.users",
            r#"["x","Ann"],["x","Bo"],["y","Ann"],["y","Bo"]"#,
        ),
        (
            "SELECT c.id, ARRAY(SELECT VALUE u.age FROM u IN c.users) AS ages FROM c WHERE c.n >= 2.5",
            r#"{"id":"1","ages":[30,20]},{"id":"3","ages":[40]}"#,
        ),
        ("SELECT VALUE (SELECT VALUE COUNT(1) FROM u IN c.users) FROM c WHERE c.id < '4'", "2,0,1"),
        ("SELECT VALUE (SELECT VALUE SUM(u.age) FROM u IN c.users) FROM c WHERE c.id = '1'", "50"),
    ]);
}

#[test]
fn orders_and_windows() {
    check(&[
        ("SELECT VALUE c.id FROM c ORDER BY c.n", r#""5","4","2","3","1""#),
        ("SELECT VALUE c.id FROM c ORDER BY c.n DESC", r#""1","3","2","4","5""#),
        ("SELECT VALUE c.id FROM c ORDER BY c.kind DESC, c.id DESC", r#""4","5","2","3","1""#),
        ("SELECT TOP @two VALUE c.id FROM c", r#""1","2""#),
        ("SELECT TOP 0 VALUE c.id FROM c", ""),
        ("SELECT VALUE c.id FROM c OFFSET 1 LIMIT @two", r#""2","3""#),
        ("SELECT VALUE c.id FROM c ORDER BY c.id DESC OFFSET 1 LIMIT 3", r#""4","3","2""#),
        ("SELECT TOP 2 VALUE c.id FROM c ORDER BY c.id DESC", r#""5","4""#),
        ("SELECT DISTINCT VALUE c.kind FROM c", r#""a","b","c""#),
        ("SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind DESC", r#""c","b","a""#),
        ("SELECT DISTINCT TOP 2 c.kind FROM c", r#"{"kind":"a"},{"kind":"b"}"#),
        ("SELECT VALUE t FROM c JOIN t IN c.tags OFFSET 2 LIMIT 2", r#""y","x""#),
    ]);
}

#[test]
fn groups_and_aggregates() {
    check(&[
        ("SELECT VALUE COUNT(1) FROM c", "5"),
        ("SELECT VALUE COUNT(c.n) FROM c", "4"),
        ("SELECT VALUE SUM(c.n) FROM c WHERE IS_NUMBER(c.n)", "6.5"),
        ("SELECT VALUE SUM(c.n) FROM c", ""),
        ("SELECT VALUE AVG(c.n) FROM c WHERE c.kind = 'a'", "2.75"),
        ("SELECT MIN(c.n) AS least, MAX(c.id) AS most FROM c", r#"{"least":null,"most":"5"}"#),
        ("SELECT COUNT(1) AS n, SUM(c.n) AS s, AVG(c.n) AS a FROM c WHERE false", r#"{"n":0,"s":0}"#),
        (
            "SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind",
            r#"{"kind":"a","n":2},{"kind":"b","n":2},{"kind":"c","n":1}"#,
        ),
        ("SELECT VALUE c.kind FROM c GROUP BY c.kind", r#""a","b","c""#),
        (
            "SELECT UPPER(c.kind) AS k, MAX(c.n) / 2 AS half FROM c WHERE c.kind = 'a' GROUP BY UPPER(c.kind)",
            r#"{"k":"A","half":1.5}"#,
        ),
        (
            "SELECT t, COUNT(1) AS n FROM c JOIN t IN c.tags GROUP BY t",
            r#"{"t":"x","n":3},{"t":"y","n":2},{"t":"z","n":1}"#,
        ),
        ("SELECT COUNTIF(c.kind = 'a') AS n FROM c", r#"{"n":2}"#),
        ("SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind OFFSET 1 LIMIT 1", r#"{"kind":"b","n":2}"#),
    ]);
}

#[test]
fn operators_on_undefined() {
    check(&[
        ("SELECT VALUE (undefined AND false) FROM c WHERE c.id = '1'", "false"),
        ("SELECT VALUE (undefined AND true) FROM c WHERE c.id = '1'", ""),
        ("SELECT VALUE (undefined OR true) FROM c WHERE c.id = '1'", "true"),
        ("SELECT VALUE NOT undefined FROM c WHERE c.id = '1'", ""),
        ("SELECT VALUE [1 = '1', 1 != '1', null = null] FROM c WHERE c.id = '1'", "[false,true,true]"),
        ("SELECT VALUE [1 < '1', 1 = undefined, 'a' || 1, {} < {}] FROM c WHERE c.id = '1'", "[]"),
        ("SELECT VALUE [{'a': 1, 'b': 2} = {'b': 2, 'a': 1}, [1] = [1.0]] FROM c WHERE c.id = '1'", "[true,true]"),
        ("SELECT VALUE 2 IN (undefined, 2) FROM c WHERE c.id = '1'", "true"),
    ]);
}

#[test]
fn a_selection_can_be_restricted() {
    let all = || selection("SELECT VALUE c.id FROM c", json!([]));
    let [kind, inner] = ["kind", "inner"].map(KeyDefinition::of_property);
    let key = |text: &str| PartitionKey(vec![Scalar::Text(text.to_owned())]);
    assert_eq!(pages(&all().within(&kind, key("b")), 1), r#""2","5""#);
    assert_eq!(pages(&all().within(&inner, PartitionKey(vec![Scalar::Undefined])), 9), r#""3","4","5""#);
    let hash = EffectiveKey::new(&key("b"), false).digits();
    assert_eq!(pages(&all().within_hashes(&kind, &hash, &format!("{hash}0")), 9), r#""2","5""#);
    let (below, above) = (all().within_hashes(&kind, "", &hash), all().within_hashes(&kind, &hash, "FF"));
    let (below, above) = (pages(&below, 9), pages(&above, 9));
    let mut found: Vec<&str> = below.split(',').chain(above.split(',')).filter(|id| !id.is_empty()).collect();
    found.sort_unstable();
    assert_eq!(found.join(","), pages(&all(), 9));
}

/// A document on which a short query does much work.
fn heavy_document() -> String {
    let numbers: Vec<u32> = (0..1_000).collect();
    let many: Map<String, Json> = (0..5_000).map(|number| (format!("p{number}"), json!(1))).collect();
    json!({
        "a": numbers,
        "text": "x".repeat(300_000),
        "set": ('a'..='z').cycle().take(300_000).collect::<String>(),
        "open": "[".repeat(300_000),
        "empty": "",
        "many": many,
        "wide": [many],
        "objects": vec![json!({ "p0": 1 }); 5_000],
    })
    .to_string()
}

#[test]
fn work_is_bounded() {
    const SQUARE: &str = "FROM c JOIN x IN c.a JOIN y IN c.a";
    let document = heavy_document();
    let bombs = [
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a",
        "SELECT * FROM (SELECT VALUE 1 FROM c JOIN x IN c.a JOIN y IN c.a JOIN z IN c.a) AS s",
        "SELECT VALUE LENGTH(s) FROM c JOIN x IN c.a JOIN (SELECT VALUE REPLICATE('x', 2000000)) AS s WHERE false",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a WHERE LTRIM(c.text, c.set) = ''",
        &format!("SELECT VALUE COUNT(1) {SQUARE} WHERE c.text BETWEEN c.text AND c.text"),
        &format!("SELECT VALUE COUNT(1) {SQUARE} WHERE c.text IN (c.text)"),
        &format!("SELECT VALUE COUNT(1) {SQUARE} WHERE c.empty || c.text = 'x'"),
        &format!("SELECT VALUE COUNT(1) {SQUARE} WHERE c.empty LIKE c.text"),
        &format!("SELECT VALUE COUNT(1) {SQUARE} WHERE c.empty LIKE c.open"),
        &format!("SELECT VALUE COUNT(1) {SQUARE} WHERE c.many.none = 1"),
        &format!("SELECT VALUE COUNT(1) {SQUARE} WHERE c.many['none'] = 1"),
        &format!("SELECT VALUE COUNT(1) {SQUARE} WHERE c.objects[0] = c.many OR [c.many] = [x]"),
        &format!("SELECT VALUE COUNT(1) {SQUARE} WHERE REGEXMATCH('a', CONCAT('\\\\w{{50}}', ToString(x * 1000 + y)))"),
        &format!("SELECT VALUE COUNT(1) {SQUARE} WHERE REGEXMATCH(c.set, '(b|z.{{2000}}y)$')"),
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a WHERE ARRAY_CONTAINS(c.wide, c.many, true)",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a WHERE ARRAY_CONTAINS(c.objects, c.many)",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a WHERE ARRAY_CONTAINS_ANY(c.objects, x)",
        "SELECT VALUE OBJECTTOARRAY(c.many, c.text) FROM c",
        "SELECT VALUE COUNT(1) FROM c JOIN x IN c.a WHERE ARRAY_LENGTH(STRINGSPLIT(c.text, 'x')) = 1",
        "SELECT VALUE s FROM c JOIN (SELECT VALUE c.text FROM x IN c.a) AS s",
        &format!("SELECT DISTINCT VALUE CONCAT(c.text, ToString(x * 1000 + y)) {SQUARE}"),
        &format!("SELECT VALUE COUNT(1) {SQUARE} GROUP BY CONCAT(c.text, ToString(x * 1000 + y))"),
        &format!("SELECT VALUE {{'text': c.text, 'x': x, 'y': y}} {SQUARE} ORDER BY x"),
        "SELECT VALUE ARRAY(SELECT VALUE c.text FROM x IN c.a) FROM c",
    ];
    for sql in bombs {
        let selection = selection(sql, json!([]));
        let documents = std::iter::once((0, document.as_str()));
        // Far less than a page may do; each of these queries would need much more.
        let result = selection.page(documents, &Progress::default(), 10, Allowance::of(1_000_000));
        assert_eq!(result.map(|batch| batch.items.len()), Err(TooMuchWork), "{sql}");
    }
}

#[test]
fn a_condition_that_others_wait_for_may_do_little() {
    let sql = "SELECT * FROM c WHERE EXISTS(SELECT VALUE 1 FROM x IN c.a JOIN y IN c.a WHERE x + y < 0)";
    let condition = selection(sql, json!([]));
    assert_eq!(condition.matches(&heavy_document()), Err(TooMuchWork));
    assert_eq!(condition.matches(r#"{"a":[1,2,3]}"#), Ok(false));
    assert_eq!(selection("SELECT * FROM c WHERE c.empty = ''", json!([])).matches(&heavy_document()), Ok(true));
}

#[test]
fn what_took_the_square_of_a_text_is_done_at_once() {
    let document = heavy_document();
    for (sql, expected) in [
        ("SELECT VALUE LENGTH(LTRIM(c.text, c.set)) FROM c", "0"),
        ("SELECT VALUE c.empty LIKE c.open FROM c", "false"),
        ("SELECT VALUE c.objects[0] = c.many FROM c", "false"),
        ("SELECT VALUE ARRAY_LENGTH(c.objects) FROM c WHERE NOT ARRAY_CONTAINS(c.objects, {'p0': 2})", "5000"),
    ] {
        let batch = first_page(&selection(sql, json!([])), std::iter::once((0, document.as_str()))).unwrap();
        assert_eq!(batch.items.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected], "{sql}");
    }
}

#[test]
fn documents_that_do_not_fit_in_memory_are_sorted_a_page_at_a_time() {
    let text = "x".repeat(1 << 20);
    let documents: Vec<String> =
        (0..150).map(|number| format!(r#"{{"n":{},"text":"{text}"}}"#, number * 77 % 150)).collect();
    let selection = selection("SELECT * FROM c ORDER BY c.n", json!([]));
    let mut progress = Progress::default();
    for page in 0..2 {
        let documents = (0..).zip(documents.iter().map(String::as_str));
        let batch = selection.page(documents, &progress, 100, Allowance::unwatched()).unwrap();
        let begins: Vec<&str> = batch.items.iter().map(|item| &item[..7]).collect();
        let expected = [0, 1, 2].map(|place| format!("{{\"n\":{},", page * 3 + place));
        assert_eq!(begins, expected);
        progress = batch.next.unwrap();
    }
}

#[test]
fn merged_pages_end_where_one_of_them_was_cut() {
    let text = "x".repeat(1_500_000);
    let large = [0, 1, 2].map(|n| format!(r#"{{"n":{n},"text":"{text}"}}"#));
    let selection = selection("SELECT * FROM c ORDER BY c.n", json!([]));
    let page = |documents: &[&str], first: u64| {
        let documents = (first..).zip(documents.iter().copied());
        selection.page(documents, &Progress::default(), 100, Allowance::unwatched()).unwrap()
    };
    let cut = page(&large.each_ref().map(String::as_str), 0);
    let whole = page(&[r#"{"n":9}"#], 100);
    assert_eq!((cut.items.len(), cut.next.is_some(), whole.next.is_some()), (2, true, false));
    let merged = selection.merged([cut, whole], &Progress::default(), 100);
    let begins: Vec<&str> = merged.items.iter().map(|item| &item[..7]).collect();
    assert_eq!((begins, merged.next.is_some()), (vec![r#"{"n":0,"#, r#"{"n":1,"#], true), "2 comes before 9");
}

#[test]
fn a_bad_body_says_what_and_where() {
    let cases = [
        ("{\"query\" 1}", "the body is not JSON: expected `:` at line 1 column 10"),
        ("[]", "the body is not an object at line 1 column 1"),
        ("{}", "the body has no \"query\""),
        (r#"{"query":"SELECT * FROM c WHERE c.a=@a"}"#, "the query names @a, which is not among its parameters"),
        (r#"{"query":"SELECT * FROM c","parameters":1}"#, "\"parameters\" is no array"),
        (r#"{"query":"SELECT * FROM c","parameters":[{"value":1}]}"#, "parameters[0] has no \"name\""),
        (r#"{"query":"SELECT TOP @a * FROM c","parameters":[{"name":"@a","value":1.5}]}"#, "@a counts rows and is 1.5"),
    ];
    for (body, expected) in cases {
        let error = Selection::from_body(body.as_bytes()).unwrap_err();
        assert!(error.contains(expected), "{body}: {error}");
    }
}
