//! Results of queries over a few known rows: KQL's meaning, where it is not SQL's.

use crate::common::{Bench, START_NS};

fn check(cases: &[(&str, &[&str])]) {
    let bench = Bench::new();
    for (query, wanted) in cases {
        assert_eq!(bench.rows(query), *wanted, "{query}");
    }
}

#[test]
fn rows_are_filtered_ordered_and_cut() {
    check(&[
        ("requests | where success and duration > 20 | project id", &["r3"]),
        ("requests | sort by duration | project id", &["r2", "r3", "r1", "r5", "r4", "r6"]),
        ("requests | sort by duration asc | project id", &["r6", "r4", "r5", "r1", "r3", "r2"]),
        ("requests | sort by duration asc nulls last | take 1 | project id", &["r4"]),
        ("requests | top 2 by duration | project id, duration", &["r2|400.0", "r3|35.5"]),
        ("requests | top 3 by duration | where success | project id", &["r3", "r1"]),
        ("requests | sort by duration | extend x = 1 | project id | where id != 'r2' | take 2", &["r3", "r1"]),
        ("requests | take 4 | take 2 | count", &["2"]),
        ("requests | sort by name asc, id desc | project id", &["r6", "r2", "r1", "r5", "r4", "r3"]),
        ("requests | sort by duration desc | extend n = row_number() | where n == 2 | project id, n", &["r3|2"]),
        ("let n = 1 + 1;\nrequests | sort by id asc | limit n | project id", &["r1", "r2"]),
    ]);
}

#[test]
fn columns_are_made_and_chosen() {
    check(&[
        (
            "requests | where id == 'r1' | extend duration = duration * 2, was = duration | project duration, was",
            &["20.0|10.0"],
        ),
        ("requests | where id == 'r1' | project-rename took = duration | project took", &["10.0"]),
        ("requests | where id == 'r1' | project id, name | project-reorder n*, id", &["GET /orders|r1"]),
        ("requests | where id == 'r1' | project-keep name, id, d* | project-away d*", &["r1|GET /orders"]),
        ("print a = 1 | extend A = 2 | extend b = a + A | where A > a | project b, a, A", &["3|1|2"]),
        ("print a = 1 | extend A = 2 | sort by a | distinct a, A", &["1|2"]),
    ]);
}

#[test]
fn an_absent_value_is_unequal_and_an_absent_string_is_empty() {
    check(&[
        ("requests | where name != 'GET /stock' | count", &["4"]),
        ("requests | where name == '' | project id", &["r6"]),
        ("requests | where isempty(name) | project id", &["r6"]),
        ("requests | where isnull(duration) | project id", &["r6"]),
        ("requests | where duration != 10 | count", &["5"]),
        ("requests | where not(duration > 10) | count", &["4"]),
        ("requests | where name !has 'orders' | project id", &["r4", "r5", "r6"]),
        ("requests | where resultCode !in ('200', '201') | project id", &["r2", "r5", "r6"]),
        (
            "requests | where id == 'r6' | project strcat(name, '!'), strlen(name), coalesce(name, 'none')",
            &["!|0|none"],
        ),
        ("print isnull(long(null)), 5 + long(null), max_of(1, long(null))", &["1|-|1"]),
    ]);
}

#[test]
fn numbers_divide_as_their_types_say() {
    check(&[
        ("print 7 / 2, -7 / 2, 7 / 2.0, 7 / 0", &["3|-3|3.5|-"]),
        ("print 7 % 3, -7 % 3, 7.5 % 2", &["1|2|1.5"]),
        ("print bin(7, 5), bin(-7, 5), bin(7.3, 0.5), floor(-1, 10)", &["5|-10|7.0|-10"]),
        ("print 2 + 3 * 4 - 1, (2 + 3) * 4, -(2 + 3)", &["13|20|-5"]),
        ("print 1h / 1m, 1h / 2, 1.5 * 1s, 90s % 1m", &["60.0|1800000000000|1500000000|30000000000"]),
        ("requests | summarize sum(itemCount) / count(), avg(itemCount)", &["2|2.1666666666666665"]),
        ("print 0x10, 1e3, long(-5), 9223372036854775807", &["16|1000.0|-5|9223372036854775807"]),
    ]);
}

#[test]
fn time_is_nanoseconds() {
    let start = START_NS.to_string();
    let hour = (START_NS + 3_600_000_000_000).to_string();
    check(&[
        ("requests | where id == 'r1' | project timestamp", &[&start]),
        ("requests | where timestamp >= datetime(2024-03-01T10:01:00Z) | count", &["4"]),
        ("requests | where timestamp between (datetime(2024-03-01 10:00) .. 1m) | count", &["3"]),
        (
            "requests | summarize count() by bin(timestamp, 1h) | sort by timestamp asc",
            &[&format!("{start}|5"), &format!("{hour}|1")],
        ),
        ("print bin(datetime(2024-03-07), 7d) == datetime(2024-03-04)", &["1"]),
        ("print bin(datetime(1969-12-31 23:59), 1h) == datetime(1969-12-31 23:00)", &["1"]),
        ("print startofday(datetime(2024-03-07 11:59)) == datetime(2024-03-07)", &["1"]),
        ("print startofday(datetime(2024-03-07 11:59), -1) == datetime(2024-03-06)", &["1"]),
        (
            "print datetime(2024-03-07) - datetime(2024-03-06) == 1d, datetime(2024-03-07) + 1d > datetime(2024-03-07)",
            &["1|1"],
        ),
        ("print datetime_diff('day', datetime(2024-03-02 01:00), datetime(2024-03-01 23:00))", &["1"]),
        ("print datetime_diff('hour', datetime(2024-03-01 23:59), datetime(2024-03-01 23:01))", &["0"]),
        (
            "print datetime_diff('month', datetime(2024-03-01), datetime(2023-12-31)), datetime_part('quarter', datetime(2024-05-01))",
            &["3|2"],
        ),
        ("print datetime_add('day', 2, datetime(2024-02-28)) == datetime(2024-03-01)", &["1"]),
        ("print now() > datetime(2024-01-01), ago(1h) < now(), now(1h) > now()", &["1|1|1"]),
        ("print todatetime('2024-03-01') == datetime(2024-03-01), todatetime('soon')", &["1|-"]),
        ("print unixtime_seconds_todatetime(60) == datetime(1970-01-01 00:01)", &["1"]),
    ]);
}

#[test]
fn strings_are_compared_and_taken_apart() {
    check(&[
        ("requests | where name =~ 'get /ORDERS' | count", &["2"]),
        ("requests | where name has 'order' | count", &["0"]),
        ("requests | where name has 'ORDERS' and name !has_cs 'ORDERS' | count", &["3"]),
        ("requests | where name contains 'RDER' and name !contains_cs 'RDER' | count", &["3"]),
        ("requests | where name startswith 'get' and name endswith_cs '/stock' | count", &["2"]),
        ("requests | where name startswith_cs 'get' | count", &["0"]),
        ("requests | where name has_any ('stock', 'nope') | count", &["2"]),
        ("requests | where name has_all ('get', 'stock') | count", &["2"]),
        ("requests | where name matches regex '^PUT' | count", &["1"]),
        ("requests | where name in~ ('put /orders', 'x') | count", &["1"]),
        ("requests | where resultCode == 429 or 500 == resultCode | count", &["2"]),
        ("requests | where success == 'False' | count", &["2"]),
        ("requests | where duration == '35.5' or itemCount == '4' | count", &["3"]),
        (
            "print substring('abcdef', 2), substring('abcdef', 0, 2), substring('abcdef', -2), indexof('abc', 'c')",
            &["cdef|ab|ef|2"],
        ),
        ("print strcat('a', 1, true, 2.5), strcat_delim('-', 'a', 'b')", &["a1true2.5|a-b"]),
        (
            "print extract('(a+)(b+)', 2, 'xaabbb'), replace_regex('a1b22', @'\\d+', '#'), trim('/', '/x//')",
            &["bbb|a#b#|x"],
        ),
        ("print 'it\\'s' == \"it's\", 'a;b--c', @'a\"b'", &["1|a;b--c|a\"b"]),
        ("requests | where customDimensions.tenant == \"it's\" | project id", &["r4"]),
        ("print tostring(true), tolong('7'), tolong('x'), toint(2.9), tobool('TRUE')", &["true|7|-|2|1"]),
    ]);
}

#[test]
fn json_is_looked_into() {
    check(&[
        (
            "requests | where customDimensions.tenant == 'north' | project customDimensions['http.route']",
            &["\"/orders\""],
        ),
        ("requests | where customDimensions.size > 3 | project id, tolong(customDimensions.size) + 1", &["r1|8"]),
        (
            "requests | where id == 'r1' | project customDimensions.retry.attempts, customDimensions.tags[1], tostring(customDimensions.tags[-1])",
            &["2|\"y\"|y"],
        ),
        (
            "requests | where id == 'r1' | project tostring(customDimensions.cached), tobool(customDimensions.cached)",
            &["true|1"],
        ),
        (
            "requests | summarize count() by Tenant = tostring(customDimensions.tenant) | sort by Tenant asc",
            &["|3", "it's|1", "north|1", "south|1"],
        ),
        ("print d = parse_json('{\"a\": [1, {\"b\": 2}]}') | project d.a[1].b, array_length(d.a)", &["2|2"]),
        ("print tostring(split('a/b/c', '/')[1]), array_length(split('a/b', '/'))", &["b|2"]),
        ("requests | where tostring(customDimensions['tenant']) in (dynamic(['north'])) | count", &["1"]),
    ]);
}

#[test]
fn groups_have_the_values_that_the_language_gives() {
    check(&[
        (
            "requests | summarize count(), sum(itemCount), countif(success), dcount(name) by cloud_RoleName | sort by cloud_RoleName asc",
            &["shop|3|4|2|2", "stock|3|9|2|1"],
        ),
        (
            "requests | where false | summarize count(), sum(itemCount), sum(duration), avg(duration), max(name), make_list(id)",
            &["0|0|0.0|-|-|[]"],
        ),
        ("requests | where false | summarize count() by name", &[]),
        ("requests | where false | summarize x = 5", &["5"]),
        ("requests | summarize percentiles(duration, 50, 100)", &["10.0|400.0"]),
        ("requests | summarize (low, high) = percentiles(itemCount, 0, 100)", &["1|4"]),
        ("requests | summarize arg_max(duration, id, name)", &["400.0|r2|GET /orders"]),
        (
            "requests | summarize arg_min(duration, *) by cloud_RoleName | project cloud_RoleName, id | sort by id asc",
            &["shop|r1", "stock|r4"],
        ),
        ("requests | where cloud_RoleName == 'stock' | summarize take_any(name), take_any(trial)", &["GET /stock|1"]),
        (
            "requests | sort by duration desc | summarize make_list(id)",
            &["[\"r2\",\"r3\",\"r1\",\"r5\",\"r4\",\"r6\"]"],
        ),
        ("requests | summarize make_set(cloud_RoleName)", &["[\"shop\",\"stock\"]"]),
        (
            "requests | summarize sumif(itemCount, success), avgif(duration, success == false), dcountif(name, success)",
            &["8|203.625|3"],
        ),
        (
            "requests | summarize minif(duration, success), maxif(id, success), count_distinct(name), count_distinctif(name, success)",
            &["5.0|r6|3|3"],
        ),
        (
            "requests | summarize percentilew(duration, itemCount, 50), percentilesw(duration, itemCount, 0, 100)",
            &["7.25|5.0|400.0"],
        ),
        (
            "requests | where cloud_RoleName == 'shop' | summarize stdevp(itemCount), variancep(duration) > variance(duration)",
            &["0.4714045207910317|0"],
        ),
        (
            "requests | sort by id asc | summarize make_list(id, 2), make_list_if(id, success == false), make_set_if(name, success)",
            &["[\"r1\",\"r2\"]|[\"r2\",\"r5\"]|[\"GET /orders\",\"PUT /orders\",\"GET /stock\"]"],
        ),
        (
            "requests | take 2 | summarize make_list(success), make_list(timestamp), make_list(customDimensions.size)",
            &["[true,false]|[\"2024-03-01T10:00:00.0000000Z\",\"2024-03-01T10:00:30.0000000Z\"]|[7,3]"],
        ),
        ("requests | take 2 | summarize count()", &["2"]),
        ("requests | summarize round(100.0 * countif(success == false) / count(), 1)", &["33.3"]),
        ("requests | distinct cloud_RoleName | count", &["2"]),
        ("requests | summarize by cloud_RoleName | sort by cloud_RoleName desc", &["stock", "shop"]),
        ("requests | count", &["6"]),
    ]);
}

#[test]
fn tables_are_joined_and_put_behind_each_other() {
    check(&[
        // One row of the left for each value of the key, unless `inner` is said.
        ("dependencies | join requests on operation_Id | count", &["3"]),
        ("dependencies | join kind=inner requests on operation_Id | count", &["4"]),
        ("requests | join kind=leftouter dependencies on operation_Id | summarize count(), countif(isempty(id1))", &["7|3"]),
        ("requests | join kind=leftsemi dependencies on operation_Id | project id", &["r1", "r2", "r3"]),
        ("requests | join kind=leftanti dependencies on operation_Id | project id", &["r4", "r5", "r6"]),
        ("requests | top 1 by duration | join kind=inner dependencies on operation_Id | project id, id1", &["r2|d3"]),
        (
            "requests | join kind=inner (dependencies | where success == false) on $left.id == $right.operation_ParentId, operation_Id
             | project id, id1, operation_Id1 | sort by id1 asc",
            &["r1|d2|a", "r2|d3|b"],
        ),
        ("union requests, dependencies | summarize count(), count_charged = countif(isnotnull(charge))", &["10|2"]),
        ("union withsource=T requests, (dependencies | take 1) | summarize count() by T | sort by T asc", &["requests|6", "union_arg1|1"]),
        ("requests | project k = id | union (dependencies | project k = duration) | summarize count(), countif(isnull(k_real))", &["10|6"]),
        ("union kind=inner (requests | project id, name), (dependencies | project id, type) | count", &["10"]),
        ("(requests | top 1 by duration) | union (requests | top 2 by id asc) | project id", &["r2", "r1", "r2"]),
    ]);
}

#[test]
fn what_is_let_is_put_in_its_place() {
    check(&[
        ("let t = requests | summarize n = count() by name;\nt | join kind=inner (t) on name | count", &["3"]),
        (
            "let most = toscalar(requests | summarize max(duration));\nrequests | where duration == most | project id, duration / most",
            &["r2|1.0"],
        ),
        (
            "let busy = requests | summarize n = count() by name | where n > 1 | project name;\nrequests | where name in (busy) | count",
            &["4"],
        ),
        ("let t = materialize(requests | where success);\nunion t, t | count", &["8"]),
        (
            "let limits = datatable (s: string, m: real) ['shop', 50, 'stock', 6.0];\nrequests | join kind=inner limits on $left.cloud_RoleName == $right.s | where duration > m | project id",
            &["r2", "r5"],
        ),
        ("datatable (a: long, b: string) [] | count", &["0"]),
        ("range n from 1 to 10 step 3 | summarize make_list(n)", &["[1,4,7,10]"]),
        ("range n from 5 to 1 step -2 | project n", &["5", "3", "1"]),
        ("range n from 5 to 1 step 1 | count", &["0"]),
        ("print case(1 > 2, 'a', 2 > 1, 'b', 'c'), iff(false, 1, 2.5), min_of(2, 1.5)", &["b|2.5|1.5"]),
    ]);
}
