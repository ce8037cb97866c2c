//! Files that are wrong as a whole, and how their errors are counted.

use insta::assert_snapshot;

use super::*;

#[test]
fn errors_in_document_are_reported_with_their_place() {
    let cases = [("experiment: small", "experiment: Small test"), ("experiment: small", "exp: small")];
    assert_snapshot!(errors_of_all(&cases), @r#"
    --- experiment: Small test
    e.yaml:1:13: experiment: expected a name of lower-case letters, digits and hyphens, found "Small test"
    --- exp: small
    e.yaml:1:1: unknown key `exp`
      hint: known: `experiment`, `parameters`, `system`, `load`, `faults`, `observe`, `telemetry`, `objectives`, `variants`, `prices`, `published`, `thresholds`, `seed`
    e.yaml:1:1: `experiment` is missing
    "#);
}

#[test]
fn five_errors_are_five_lines() {
    let source = "\
experiment: orders
system:
  services:
    web:
      run: node server.js
      env: { LEVEL: \"${levl}\" }
parameters: { level: 1 }
load:
  target: wbe
  scenarios:
    main:
      model: constant-vus
      vus: many
      duration: 10
      request: GET /
";
    assert_snapshot!(errors(source), @r#"
    e.yaml:5:12: system.services.web.run: expected a list of a program and its arguments, found "node server.js"
      hint: commands do not run in a shell; write [node, server.js]
    e.yaml:6:21: system.services.web.env.LEVEL: unknown name in `${levl}`
      hint: did you mean `level`?
    e.yaml:9:11: load.target: unknown service `wbe`
      hint: did you mean `web`?
    e.yaml:13:12: load.scenarios.main.vus: expected a whole number from 1 to 100000, found "many"
    e.yaml:14:17: load.scenarios.main.duration: expected a length of time above 0 such as `30s` or `1m30s`, found 10
      hint: add a unit: `10s`, `10ms`
    "#);
}

#[test]
fn a_file_that_is_no_map_is_errors() {
    assert_snapshot!(errors("just text"), @r#"
    e.yaml:1:1: expected a map, found "just text"
      hint: its keys are `experiment`, `parameters`, `system`, `load`, `faults`, `observe`, `telemetry`, `objectives`, `variants`, `prices`, `published`, `thresholds`, `seed`
    "#);
    assert_snapshot!(errors("a: [1\n"), @"e.yaml:2:1: not YAML: while parsing a flow sequence, expected ',' or ']'");
}

#[test]
fn a_value_that_is_wrong_in_one_variant_names_it() {
    let source = with("vus: 1", "vus: \"${n}\"") + "variants: [{ name: one }, { name: none, n: none }]\n";
    assert_snapshot!(errors(&source), @r#"e.yaml:12:12: load.scenarios.main.vus: expected a whole number from 1 to 100000, found "none" (in variant `none`)"#);
    let source = source.replace("n: 1", "n: some").replace(", n: none", "");
    assert_snapshot!(errors(&source), @r#"
    e.yaml:12:12: load.scenarios.main.vus: expected a whole number from 1 to 100000, found "some"
    e.yaml:13:17: load.scenarios.main.duration: expected a length of time above 0 such as `30s` or `1m30s`, found "somes"
    "#);
}

#[test]
fn a_fault_is_reported_once() {
    assert_snapshot!(errors(&with("target: web", "target: 7")), @r#"
    e.yaml:8:11: load.target: expected the name of a service or `http://host:port`, found 7
      hint: put it in quotes: `"7"`
    "#);
    let dots = with("    web:", "    a.b:").replace("run: [web,", "run: [web, \"${a.b.url}\", \"${c.d}\", \"${c.e}\",");
    assert_snapshot!(errors(&dots.replace("{ n: 1 }", "{ c.d: 1 }")), @r#"
    e.yaml:2:15: parameters: expected a name of letters, digits, `_` and `-`, found "c.d"
    e.yaml:5:5: system.services: expected a name of letters, digits, `_` and `-`, found "a.b"
    e.yaml:6:42: system.services.a.b.run[3]: unknown name in `${c.e}`
      hint: did you mean `c.d`?
    e.yaml:8:11: load.target: unknown service `web`
      hint: did you mean `a.b`?
    "#);
}

#[test]
fn files_that_cannot_be_read_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("e.yaml");
    assert!(matches!(crate::language().read(&file).unwrap_err(), ExperimentError::Io { .. }));
    std::fs::write(&file, b"experiment: a\nx: \xff\n").unwrap();
    let ExperimentError::Invalid(errors) = crate::language().read(&file).unwrap_err() else {
        panic!("expected errors")
    };
    assert_eq!((errors[0].line, errors[0].column), (2, 4));
    std::fs::write(&file, "#".repeat(FILE_BYTES_MAX + 1)).unwrap();
    assert!(crate::language().read(&file).unwrap_err().to_string().ends_with("the file is larger than 1048576 bytes"));
}
