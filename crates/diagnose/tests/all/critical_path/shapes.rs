//! The shapes of traces that CRISP's and Jaeger's own tests are about, in cases of our own.

use narrows_model::trace::SpanKind;

use super::told::{Case, Line, Told};

fn own(lines: &[Line<'_>]) -> Vec<(String, i64)> {
    Told::of(lines).own().into_iter().map(|(name, us)| (name.to_owned(), us)).collect()
}

/// As CRISP counts: time on the path in each span itself.
#[test]
fn time_of_each_span_on_the_path() {
    let cases: &[Case<'_, (&str, i64)>] = &[
        ("alone", &[("page", 0, 400, "")], &[("page", 400)]),
        ("one call", &[("page", 0, 400, ""), ("cart", 40, 300, "page")], &[("cart", 260), ("page", 140)]),
        ("a call as long as its caller", &[("page", 0, 400, ""), ("cart", 0, 400, "page")], &[("cart", 400)]),
        (
            "a call below a call",
            &[("page", 0, 400, ""), ("cart", 40, 300, "page"), ("store", 60, 90, "cart")],
            &[("cart", 230), ("page", 140), ("store", 30)],
        ),
        (
            "three calls in turn",
            &[("page", 0, 400, ""), ("a", 20, 80, "page"), ("b", 100, 150, "page"), ("c", 200, 390, "page")],
            &[("a", 60), ("b", 50), ("c", 190), ("page", 100)],
        ),
        (
            "two calls at once",
            &[("page", 0, 400, ""), ("a", 20, 200, "page"), ("b", 30, 220, "page")],
            &[("b", 190), ("page", 210)],
        ),
        (
            "a chain of calls that overlap",
            &[("page", 0, 400, ""), ("a", 20, 100, "page"), ("b", 80, 200, "page"), ("c", 150, 300, "page")],
            &[("a", 80), ("c", 150), ("page", 170)],
        ),
        (
            "the call ends after its caller",
            &[("page", 0, 400, ""), ("cart", 40, 460, "page"), ("store", 60, 90, "cart")],
            &[("cart", 330), ("page", 40), ("store", 30)],
        ),
        (
            "a call below ends after its caller",
            &[("page", 0, 400, ""), ("cart", 40, 300, "page"), ("store", 60, 450, "cart")],
            &[("cart", 20), ("page", 140), ("store", 240)],
        ),
        (
            "a call begins after its caller's end, with one below it",
            &[("page", 0, 400, ""), ("late", 450, 700, "page"), ("store", 460, 500, "late"), ("a", 20, 80, "page")],
            &[("a", 60), ("page", 340)],
        ),
        (
            "calls that end as the next begins",
            &[("page", 0, 400, ""), ("a", 20, 80, "page"), ("b", 80, 200, "page"), ("c", 200, 400, "page")],
            &[("a", 60), ("b", 120), ("c", 200), ("page", 20)],
        ),
        (
            "calls that end a tick after the next began",
            &[("page", 0, 400, ""), ("a", 20, 81, "page"), ("b", 80, 201, "page"), ("c", 200, 400, "page")],
            &[("a", 60), ("b", 120), ("c", 200), ("page", 20)],
        ),
    ];
    for (name, lines, expected) in cases {
        let expected: Vec<(String, i64)> = expected.iter().map(|(name, us)| ((*name).to_owned(), *us)).collect();
        assert_eq!(own(lines), expected, "{name}");
    }
}

/// As Jaeger's user interface shows it: sections from the end backwards.
#[test]
fn sections_from_the_end_backwards() {
    let cases: &[Case<'_, (&str, i64, i64)>] = &[
        (
            "two calls in turn",
            &[("page", 5, 95, ""), ("first", 15, 35, "page"), ("second", 45, 65, "page")],
            &[("page", 65, 95), ("second", 45, 65), ("page", 35, 45), ("first", 15, 35), ("page", 5, 15)],
        ),
        (
            "two calls at once",
            &[("page", 5, 95, ""), ("first", 15, 45, "page"), ("second", 25, 65, "page")],
            &[("page", 65, 95), ("second", 25, 65), ("page", 5, 25)],
        ),
        ("a call after the end", &[("page", 5, 45, ""), ("late", 60, 90, "page")], &[("page", 5, 45)]),
        (
            "a call after the end with one below",
            &[("page", 5, 45, ""), ("late", 60, 90, "page"), ("below", 65, 70, "late")],
            &[("page", 5, 45)],
        ),
        ("a call before the beginning", &[("page", 50, 95, ""), ("early", 10, 30, "page")], &[("page", 50, 95)]),
        (
            "a call over the end, one below it over its beginning",
            &[("page", 5, 45, ""), ("over", 25, 60, "page"), ("under", 15, 35, "over")],
            &[("over", 35, 45), ("under", 25, 35), ("page", 5, 25)],
        ),
        (
            "a call over the end, one below it over its end",
            &[("page", 5, 45, ""), ("over", 25, 60, "page"), ("further", 30, 80, "over")],
            &[("further", 30, 45), ("over", 25, 30), ("page", 5, 25)],
        ),
        ("a call around its caller", &[("page", 20, 45, ""), ("around", 5, 80, "page")], &[("around", 20, 45)]),
    ];
    for (name, lines, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|(name, from, to)| ((*name).to_owned(), *from, *to)).collect();
        assert_eq!(Told::of(lines).sections(), expected, "{name}");
    }
}

#[test]
fn a_message_is_not_waited_for() {
    let told = Told::of_kinds(&[
        (("send", 5, 45, ""), SpanKind::Producer),
        (("handle", 10, 30, "send"), SpanKind::Consumer),
        (("below", 15, 20, "handle"), SpanKind::Internal),
    ]);
    assert_eq!(told.sections(), [("send".to_owned(), 5, 45)]);
}
