//! `parameters`.

use insta::assert_snapshot;

use super::*;

#[test]
fn errors_in_parameters_are_reported_with_their_place() {
    let cases = [
        ("parameters: { n: 1 }", "parameters: [n]"),
        ("parameters: { n: 1 }", "parameters: { n: ~, m: [1], port: 2, \"a.b\": 3, o: \"${n}\" }"),
    ];
    assert_snapshot!(errors_of_all(&cases), @r#"
    --- parameters: [n]
    e.yaml:2:13: parameters: expected a map, found a list
      hint: write `name: …` for each parameter
    --- parameters: { n: ~, m: [1], port: 2, "a.b": 3, o: "${n}" }
    e.yaml:2:18: parameters.n: expected a text, found nothing
    e.yaml:2:24: parameters.m: expected a text, or a map, found a list
    e.yaml:2:29: parameters: a parameter cannot be named `port`, which is reserved
      hint: give it a longer name
    e.yaml:2:38: parameters: expected a name of letters, digits, `_` and `-`, found "a.b"
    e.yaml:2:51: parameters.o: `${…}` is not replaced here
      hint: write the value itself
    "#);
}

#[test]
fn a_parameter_with_a_reason_is_one_like_any_other() {
    let reason = with("parameters: { n: 1 }", "parameters: { n: { value: many, reason: so } }");
    let bound = reason.replace("vus: 1", "vus: \"${n}\"");
    assert_snapshot!(errors(&bound), @r#"e.yaml:12:12: load.scenarios.main.vus: expected a whole number from 1 to 100000, found "many""#);
    let experiment = parsed(&(reason + "variants: [{ name: a }, { name: b, n: few }]\n")).unwrap();
    assert_eq!(experiment.parameters["n"], "many");
    let values: Vec<&str> = experiment.variants.iter().map(|variant| variant.parameters["n"].as_str()).collect();
    assert_eq!(values, ["many", "few"]);
}
