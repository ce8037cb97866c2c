//! `variants`, and the seed.

use insta::assert_snapshot;

use super::*;

#[test]
fn errors_in_variants_are_reported_with_their_place() {
    let cases = [
        (
            "request: GET /",
            "request: GET /\nvariants: [{ name: a, from: b }, { name: b, m: 1 }, { name: a }, { n: 2 }, { name: c, from: x y }]",
        ),
        ("request: GET /", "request: GET /\nvariants: []\nseed: -1"),
    ];
    assert_snapshot!(errors_of_all(&cases), @r#"
    --- request: GET /
    variants: [{ name: a, from: b }, { name: b, m: 1 }, { name: a }, { n: 2 }, { name: c, from: x y }]
    e.yaml:15:29: variants[0].from: `b` is not listed before this variant
      hint: a variant starts from an earlier one
    e.yaml:15:45: variants[1]: unknown parameter `m`
      hint: known: `n`
    e.yaml:15:61: variants[2].name: `a` is the name of two variants, the first on line 15
    e.yaml:15:66: variants[3]: `name` is missing
    e.yaml:15:93: variants[4].from: expected a name of letters, digits, `_`, `-`, `.` and `+`, found "x y"
    --- request: GET /
    variants: []
    seed: -1
    e.yaml:15:11: variants: expected at least 1 item, found none
    e.yaml:16:7: seed: expected a whole number of 0 or more, found -1
    "#);
}

#[test]
fn a_variant_without_a_name_is_looked_into() {
    let variants = "variants: [{ from: c, d: 3s }, { nam: b, n: 2 }, { name: c }, { name: d, from: 7 }]";
    assert_snapshot!(errors(&with("request: GET /", &format!("request: GET /\n{variants}"))), @r#"
    e.yaml:15:12: variants[0]: `name` is missing
    e.yaml:15:20: variants[0].from: `c` is not listed before this variant
      hint: a variant starts from an earlier one
    e.yaml:15:23: variants[0]: unknown parameter `d`
      hint: known: `n`
    e.yaml:15:32: variants[1]: `name` is missing
    e.yaml:15:34: variants[1]: unknown parameter `nam`
      hint: did you mean `name`?
    e.yaml:15:80: variants[3].from: expected a name of letters, digits, `_`, `-`, `.` and `+`, found 7
      hint: put it in quotes: `"7"`
    "#);
}
