//! Results of the larger operators over a few known rows. If Microsoft's documentation has an example with a result,
//! the case follows that example.

use crate::common::{Bench, START_NS, mistake};

fn check(cases: &[(&str, &[&str])]) {
    let bench = Bench::new();
    for (query, wanted) in cases {
        assert_eq!(bench.rows(query), *wanted, "{query}");
    }
}

const TABLES: &str = "let X = datatable (key: string, a: long) ['p', 1, 'q', 2, 'q', 3, 'r', 4];
let Y = datatable (key: string, b: long) ['q', 10, 'r', 20, 'r', 30, 's', 40];\n";

#[test]
fn joins_keep_the_rows_of_the_side_they_name() {
    let bench = Bench::new();
    for (kind, wanted) in [
        ("rightouter", vec!["-|-|s|40", "q|2|q|10", "q|3|q|10", "r|4|r|20", "r|4|r|30"]),
        ("fullouter", vec!["-|-|s|40", "p|1|-|-", "q|2|q|10", "q|3|q|10", "r|4|r|20", "r|4|r|30"]),
        ("leftouter", vec!["p|1|-|-", "q|2|q|10", "q|3|q|10", "r|4|r|20", "r|4|r|30"]),
        ("rightsemi", vec!["q|10", "r|20", "r|30"]),
        ("rightanti", vec!["s|40"]),
        ("leftanti", vec!["p|1"]),
    ] {
        let mut rows = bench.rows(&format!("{TABLES}X | join kind={kind} hint.strategy=broadcast Y on key"));
        rows.sort_unstable();
        assert_eq!(rows, wanted, "{kind}");
    }
}

#[test]
fn lookup_has_the_keys_once() {
    let bench = Bench::new();
    for (query, wanted) in [
        ("X | lookup Y on key", vec!["p|1|-", "q|2|10", "q|3|10", "r|4|20", "r|4|30"]),
        (
            "X | lookup kind=inner (Y | project other = key, b, a = 0) on $left.key == $right.other | where b < 30",
            vec!["q|2|10|0", "q|3|10|0", "r|4|20|0"],
        ),
    ] {
        let mut rows = bench.rows(&format!("{TABLES}{query}"));
        rows.sort_unstable();
        assert_eq!(rows, wanted, "{query}");
    }
}

#[test]
fn elements_become_rows() {
    let table = "datatable (a: long, b: dynamic, c: dynamic) [1, dynamic({'p': 'x', 'q': 2}), dynamic([5, 4, 3])]";
    let lists = "datatable (a: long, b: dynamic) [1, dynamic([10, 20]), 2, dynamic(['u', 'v']), 3, dynamic([]), 4, dynamic(null), 5, dynamic(7)]";
    check(&[
        (&format!("{lists} | mv-expand b"), &["1|10", "1|20", r#"2|"u""#, r#"2|"v""#, "4|-", "5|7"]),
        (&format!("{table} | project a, b | mv-expand b"), &[r#"1|{"p":"x"}"#, r#"1|{"q":2}"#]),
        (
            &format!("{table} | project a, b | mv-expand kind=array b | project tostring(b[0]), b[1]"),
            &[r#"p|"x""#, "q|2"],
        ),
        (&format!("{table} | mv-expand b, c"), &[r#"1|{"p":"x"}|5"#, r#"1|{"q":2}|4"#, "1|-|3"]),
        (&format!("{table} | mv-expand b | mv-expand c | count"), &["6"]),
        (&format!("{table} | project c | mv-expand with_itemindex=at c to typeof(long) limit 2"), &["5|0", "4|1"]),
        (
            &format!("{lists} | mv-expand n = b to typeof(long) | project a, n"),
            &["1|10", "1|20", "2|-", "2|-", "4|-", "5|7"],
        ),
        (&format!("{lists} | where a < 3 | mv-expand b to typeof(string) | project b"), &["10", "20", "u", "v"]),
        (
            "print x = dynamic(['2024-03-01', true, 1.5]) | mv-expand t = x to typeof(datetime), f = x to typeof(bool), r = x to typeof(real) | project t, f, r",
            &[&format!("{}|-|-", START_NS - 36_000_000_000_000), "-|1|-", "-|-|1.5"],
        ),
        (
            "requests | where id == 'r1' | mv-expand customDimensions.tags | project id, customDimensions_tags",
            &[r#"r1|"x""#, r#"r1|"y""#],
        ),
        (
            "requests | where id in ('r1', 'r3') | sort by id desc | mv-expand n = dynamic([1, 2]) | project id, n",
            &["r3|1", "r3|2", "r1|1", "r1|2"],
        ),
        ("range n from 1 to 200 step 1 | summarize l = make_list(n) | mvexpand l | count", &["128"]),
        ("requests | mvexpand customDimensions | summarize count() by id | where id == 'r1'", &["r1|6"]),
    ]);
}

#[test]
fn series_have_every_step() {
    let rows = "let T = datatable (t: datetime, k: string, x: real) [
        datetime(2024-03-01), 'a', 50, datetime(2024-03-03 06:00), 'a', 4, datetime(2024-03-03 18:00), 'a', 6,
        datetime(2024-03-02), 'b', 8, datetime(2024-03-09), 'b', 1, datetime(null), 'c', 1];\n";
    check(&[
        (
            &format!(
                "{rows}T | make-series n = count(), avg(x) default=-1.5 on t from datetime(2024-03-01) to datetime(2024-03-04) step 1d by k | project k, n, avg_x"
            ),
            &["a|[1,0,2]|[50.0,-1.5,5.0]", "b|[0,1,0]|[-1.5,8.0,-1.5]"],
        ),
        (
            &format!(
                "{rows}T | make-series sum(x) on t from datetime(2024-03-01 12:00) to datetime(2024-03-03 12:00) step 1d"
            ),
            &[r#"[8.0,4.0]|["2024-03-01T12:00:00.0000000Z","2024-03-02T12:00:00.0000000Z"]"#],
        ),
        (
            // Without bounds, each series goes from its first to its last row, in days.
            &format!(
                "{rows}T | where t > datetime(2024-03-01 01:00) | make-series max(x) default=real(null) on t step 1d by k | project max_x, array_length(t)"
            ),
            &["[6.0]|1", "[8.0,null,null,null,null,null,null,1.0]|8"],
        ),
        (
            // The end of a range is included, and its bins are those of `bin`.
            &format!(
                "{rows}T | make-series count() on t in range(datetime(2024-03-01 12:00), datetime(2024-03-03), 1d)"
            ),
            &[
                r#"[1,1,2]|["2024-03-01T00:00:00.0000000Z","2024-03-02T00:00:00.0000000Z","2024-03-03T00:00:00.0000000Z"]"#,
            ],
        ),
        ("range n from 1 to 10 step 1 | make-series count() on n from 0 to 12 step 4", &["[3,4,3]|[0,4,8]"]),
        (
            "range n from 1 to 3 step 1 | extend r = n * 1.5 | make-series sum(n) on r from 0.0 to 5.0 step 2.5",
            &["[1,5]|[0.0,2.5]"],
        ),
        ("requests | where id == 'x' | make-series count() on duration from 0.0 to 2.0 step 1.0", &[]),
        (
            "requests | where id == 'x' | make-series kind=nonempty count() default=7 on duration from 0.0 to 2.0 step 1.0",
            &["[7,7]|[0.0,1.0]"],
        ),
        ("requests | make-series sum(itemCount) on timestamp step 1h | project sum_itemCount", &["[12,1]"]),
        (
            // Rows outside the range give no series.
            &format!(
                "{rows}T | make-series count() on t from datetime(2024-03-08) to datetime(2024-03-10) step 1d by k | project k, count_"
            ),
            &["b|[0,1]"],
        ),
    ]);
}

#[test]
fn other_rows_are_looked_at_in_their_order() {
    check(&[
        (
            "requests | sort by timestamp asc | project id, before = prev(id), after = next(duration, 2, 0.0)",
            &["r1|-|35.5", "r2|r1|5.0", "r3|r2|7.25", "r4|r3|-", "r5|r4|0.0", "r6|r5|0.0"],
        ),
        (
            "requests | sort by timestamp asc | where prev(success) != success | project id",
            &["r1", "r2", "r3", "r5", "r6"],
        ),
        (
            "range a from 1 to 10 step 1 | where a % 2 == 0 | serialize s = row_cumsum(a)",
            &["2|2", "4|6", "6|12", "8|20", "10|30"],
        ),
        (
            // The sum restarts when the name changes, which is a comparison with the previous row.
            "requests | where isnotempty(name) | sort by name asc, id asc | extend s = row_cumsum(itemCount, name != prev(name)), n = row_number(1, name != prev(name)) | project name, s, n",
            &["GET /orders|1|1", "GET /orders|2|2", "GET /stock|4|1", "GET /stock|8|2", "PUT /orders|2|1"],
        ),
        (
            "range a from 1 to 4 step 1 | serialize | extend x = prev(row_cumsum(a)), y = row_cumsum(prev(row_cumsum(a)))",
            &["1|-|-", "2|1|1", "3|3|4", "4|6|10"],
        ),
        (
            "range a from 1 to 4 step 1 | serialize | where row_cumsum(a) > prev(row_cumsum(a)) + 2 | project a",
            &["3", "4"],
        ),
    ]);
}

#[test]
fn texts_are_parsed_by_a_pattern() {
    let rows = "let T = datatable (s: string) ['took 35 ms (retries=2, by=\"a.b\")', 'took x ms (retries=3, by=\"c\")', 'nothing', ''];\n";
    check(&[
        (
            &format!(
                "{rows}T | parse s with 'took ' ms: long ' ms (retries=' retries: long ', by=\"' by '\")' | project-away s"
            ),
            &["35|2|a.b", "-|-|", "-|-|", "-|-|"],
        ),
        (
            &format!(
                "{rows}T | parse kind=relaxed s with * 'took ' ms: long ' ms' * '=' retries: int ',' rest | project ms, retries, rest"
            ),
            &["35|2| by=\"a.b\")", "-|3| by=\"c\")", "-|-|", "-|-|"],
        ),
        (&format!("{rows}T | parse-where s with * 'by=\"' by '\"' * | project by"), &["a.b", "c"]),
        (
            "print s = 'a=1;b=2.5;c=true;d=end' | parse s with 'a=' a: int ';b=' b: real ';c=' c: bool ';' * '=' d | project a, b, c, d",
            &["1|2.5|1|end"],
        ),
        // Groups inside an expression are not counted, and strings match as much as they can.
        (
            "print s = 'GET /a/b/c HTTP' | parse kind=regex s with @'(GET|PUT) ' path '/' last @'\\s' * | project path, last",
            &["/a/b|c"],
        ),
        (
            "print s = 'GET /a/b/c HTTP' | parse kind=regex flags=Ui s with 'get ' path '/' last @'\\s' * | project path, last",
            &["|a/b/c"],
        ),
        ("requests | where id == 'r1' | parse name with verb ' ' name | project verb, name", &["GET|/orders"]),
        ("print s = '(a.b)' | parse s with '(' x ')' | project x", &["a.b"]),
    ]);
}

#[test]
fn functions_are_called_with_their_values() {
    check(&[
        ("let add = (a: long = 5) { a + 7 };\nrange x from 1 to 2 step 1 | project add(x), add()", &["8|12", "9|12"]),
        (
            "let outer = (id: int) { let two = 10; let three = 10 + two + id; let inner = (x: int) { let five = 20; two + three + five + x }; inner(10) };\nprint outer(10)",
            &["70"],
        ),
        (
            "let least = (T: (duration: real), ms: real) { T | where duration >= ms };\nleast((requests | where success), 10) | project id",
            &["r1", "r3"],
        ),
        (
            "let top_of = (T: (*), n: long) { T | take n };\nrequests | sort by id asc | invoke top_of(2) | project id",
            &["r1", "r2"],
        ),
        ("let ms = 100; let slow = () { requests | where duration > ms };\nslow | union (slow()) | count", &["2"]),
        (
            "let label = (s: string, n: real) { strcat(s, '=', n) };\nrequests | where id == 'r4' | project label(name, itemCount)",
            &["GET /stock=4.0"],
        ),
        ("let twice = (x: real) { x * 2 }; let four = (x: real) { twice(twice(x)) };\nprint four(3)", &["12.0"]),
        ("let x = 1; let f = (x: long) { let y = x * 10; y + x };\nprint f(5), x", &["55|1"]),
    ]);
}

#[test]
fn functions_come_to_an_end() {
    let deep = (1..=40).map(|at| format!("let f{at} = () {{ f{}() + f{}() }};\n", at - 1, at - 1)).collect::<String>();
    let doubled =
        (1..=40).map(|at| format!("let f{at} = () {{ union f{}(), f{}() }};\n", at - 1, at - 1)).collect::<String>();
    for (query, wanted) in [
        (
            "let f = (x: long) { f(x - 1) };\nprint f(5)".to_owned(),
            "the function `f` calls itself, which KQL does not allow",
        ),
        ("let f = (x: long) { x };\nprint f('a')".to_owned(), "the parameter `x` is a long, not a string"),
        ("let f = (x: long) { x };\nprint f()".to_owned(), "`f` takes 1 values and was given 0"),
        ("let f = (T: (a: long)) { T };\nf(requests)".to_owned(), "this table has no column `a` of type long"),
        (
            "let f = (x: long) { x };\nrequests | where f == 1".to_owned(),
            "`f` is a function, where a value was expected",
        ),
        (
            format!("let f0 = () {{ 1 }};\n{deep}print f40()"),
            "this query comes to more than 2000 calls of its own functions",
        ),
        (format!("let f0 = () {{ requests }};\n{doubled}f40 | count"), "this grows over 900000 bytes of SQL"),
    ] {
        assert_eq!(mistake(&query).message, wanted, "{query}");
    }
}

#[test]
fn the_greatest_within_the_greatest() {
    check(&[
        (
            "requests | top-nested 2 of cloud_RoleName by sum(itemCount), top-nested 1 of name by n = count() | sort by cloud_RoleName asc",
            &["shop|4|GET /orders|2", "stock|9|GET /stock|2"],
        ),
        ("requests | where isnotempty(name) | top-nested 1 of name by max(duration) asc", &["GET /stock|7.25"]),
        (
            "requests | top-nested of cloud_RoleName by Ignore = max(1), top-nested 1 of timestamp by latest = max(timestamp) | summarize count() by cloud_RoleName | sort by cloud_RoleName asc",
            &["shop|1", "stock|1"],
        ),
    ]);
}

#[test]
fn what_a_run_does_not_record_is_empty() {
    let bench = Bench::new();
    check(&[
        ("requests | summarize dcount(user_Id), countif(isempty(client_City)), max(appName)", &["0|6|-"]),
        ("pageViews | where timestamp > ago(1d) | summarize sum(itemCount), count()", &["0|0"]),
        ("union customEvents, availabilityResults, browserTimings | summarize count() by itemType", &[]),
        (
            "AppRequests | where Success == false | summarize sum(ItemCount), max(DurationMs) by Type",
            &["AppRequests|5|400.0"],
        ),
        ("AppDependencies | where DependencyType == 'HTTP' | project Id, Properties.x, UserId", &["d4|-|-"]),
        (
            "AppRequests | where TimeGenerated > datetime(2024-03-01 10:30) | project TimeGenerated",
            &[&(START_NS + 3_700_000_000_000).to_string()],
        ),
        (
            "AppRequests | join kind=inner AppDependencies on OperationId | summarize count() by Name1 | sort by Name1 asc",
            &["GET|1", "query|3"],
        ),
        ("union isfuzzy=true (requests | where success), (nowhere | where x > 1), nothing | count", &["4"]),
        ("union App* | summarize count() by Type | sort by Type asc", &["AppDependencies|4", "AppRequests|6"]),
        ("union withsource=t * | summarize count() by t | sort by t asc", &["dependencies|4", "requests|6"]),
    ]);
    let schema = bench
        .rows("requests | project id, timestamp, duration, itemCount, customDimensions, success, x = 1s | getschema");
    let wanted = [
        "id|0|System.String|string",
        "timestamp|1|System.DateTime|datetime",
        "duration|2|System.Double|real",
        "itemCount|3|System.Int64|long",
        "customDimensions|4|System.Object|dynamic",
        "success|5|System.SByte|bool",
        "x|6|System.TimeSpan|timespan",
    ];
    assert_eq!(schema, wanted);
    assert_eq!(mistake("union isfuzzy=true nowhere, nothing").message, "none of these tables exists");
    assert_eq!(mistake("union nowhere, requests").message, "there is no table `nowhere`");
}

#[test]
fn bags_and_arrays_are_made_and_read() {
    check(&[
        ("print bag_pack('a', 1, 'b', 'x', 'c', dynamic([1]), 'd', true)", &[r#"{"a":1,"b":"x","c":[1],"d":true}"#]),
        ("requests | where id == 'r4' | project id, itemCount | project pack_all()", &[r#"{"id":"r4","itemCount":4}"#]),
        (
            "print pack_array(1, 'a', 2.5), array_sum(dynamic([1, 2.5])), strcat_array(dynamic(['a', 1, 'b']), '-')",
            &[r#"[1,"a",2.5]|3.5|a-1-b"#],
        ),
        (
            "requests | where id == 'r2' | project bag_keys(customDimensions), bag_has_key(customDimensions, 'size')",
            &[r#"["tenant","size"]|1"#],
        ),
        (
            "print iff(true, 'a', dynamic({'x': 1})), case(false, 1, dynamic([2])), iff(false, 'a', dynamic('b'))",
            &["a|-|b"],
        ),
        ("print case(false, 1, true, 'a', dynamic([2])), iff(false, 1.5, dynamic(2))", &[r#""a"|2.0"#]),
        ("requests | where id == 'r1' | project customDimensions.cached or customDimensions.none", &["1"]),
        (
            "print column_ifexists('a', 5) | extend y = column_ifexists('print_0', 7), z = column_ifexists('no', 'none')",
            &["5|5|none"],
        ),
        (
            "print extract('([0-9]+)', 1, 'a12', typeof(long)) + 1, toreal(1s) / 10000, replace('a+', 'b', 'caad'), 'RT01' '02', 100. * 2",
            &["13|1000.0|cbd|RT0102|200.0"],
        ),
        ("print extract_json('$.a.b', '{\"a\":{\"b\":5}}'), extract_json('$.a', 'no')", &["5|-"]),
        (
            "print u = parse_url('https://me:pw@host.example:8080/a/b?x=1&y=#end') | project u.Scheme, u.Host, u.Port, u.Path, u.Username, u['Query Parameters'].x, u.Fragment",
            &[r#""https"|"host.example"|"8080"|"/a/b"|"me"|"1"|"end""#],
        ),
        ("requests | where name hasprefix 'ord' or name hassuffix 'tock' | count", &["5"]),
        ("requests | where customDimensions.['http.route'] == '/orders' | project id", &["r1"]),
    ]);
}
