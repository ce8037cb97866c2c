//! The wording of mistakes: what is wrong, where, and what to do.

use narrows_query::compile;

fn reported(query: &str) -> String {
    let mistake = compile(query, &[]).expect_err(query);
    format!("{mistake}; {}", mistake.hint.as_deref().unwrap_or_default())
}

#[test]
fn a_slip_of_the_pen_is_reported_with_what_was_meant() {
    for (query, wanted) in [
        ("request | count", "line 1, column 1: there is no table `request`; did you mean `requests`?"),
        ("AppRequest | count", "line 1, column 1: there is no table `AppRequest`; did you mean `AppRequests`?"),
        (
            "requests\n| where durration > 1",
            "line 2, column 9: there is no column `durration`; did you mean `duration`?",
        ),
        ("requests | project Name", "line 1, column 20: there is no column `Name`; did you mean `name`?"),
        ("requests | summarise count()", "line 1, column 12: `summarise` is no operator; did you mean `summarize`?"),
        ("print tolowr('A')", "line 1, column 7: `tolowr` is no function; did you mean `tolower`?"),
        ("requests | summarize cuont()", "line 1, column 22: `cuont` is no function; did you mean `count`?"),
        (
            "let limit_ms = 5;\nrequests | where duration > limit_m",
            "line 2, column 29: there is no column `limit_m`; did you mean `limit_ms`?",
        ),
        (
            "requests | join kind=iner dependencies on id",
            "line 1, column 22: `iner` is no kind of join; did you mean `inner`?",
        ),
        (
            "requests | render timchart",
            "line 1, column 19: `timchart` is no chart that is known here; did you mean `timechart`?",
        ),
        ("datatable (a: strng) []", "line 1, column 15: `strng` is no type; did you mean `string`?"),
        (
            "print datetime_part('yaer', now())",
            "line 1, column 21: an instant has no part `yaer`; did you mean `year`?",
        ),
    ] {
        assert_eq!(reported(query), wanted);
    }
}

#[test]
fn a_type_that_does_not_fit_is_reported_with_the_way_out() {
    for (query, wanted) in [
        (
            "requests | where name > 5",
            "line 1, column 18: `>` is not defined between string and long; convert the string with `tolong(…)`",
        ),
        (
            "requests | where timestamp > '2024-03-01'",
            "line 1, column 18: `>` is not defined between datetime and string; convert the string with `todatetime(…)`",
        ),
        (
            "requests | extend x = name + id",
            "line 1, column 23: `+` is not defined between string and string; `strcat(…)` joins strings",
        ),
        (
            "requests | where itemCount has '5'",
            "line 1, column 18: this is a long, where a string was expected; `tostring(…)` makes a string of it",
        ),
        (
            "requests | summarize name",
            "line 1, column 22: the column `name` stands outside an aggregate; put it behind `by`, or into an aggregate such as `max(name)`",
        ),
        (
            "requests | extend n = count()",
            "line 1, column 23: the aggregate `count` stands outside `summarize`; write `| summarize count(…)`",
        ),
        (
            "requests | where name == dependencies",
            "line 1, column 26: `dependencies` is a table, where a value was expected; `toscalar(…)` takes the first value of a table",
        ),
        (
            "requests | sort by customDimensions",
            "line 1, column 20: a dynamic value cannot be compared here; convert it first, such as by `tostring(…)`",
        ),
        ("print strlen(5)", "line 1, column 14: `strlen` takes a string here, not a long; `tostring(…)` converts it"),
    ] {
        assert_eq!(reported(query), wanted);
    }
}
