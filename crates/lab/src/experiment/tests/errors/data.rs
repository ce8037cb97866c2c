//! `load.data`.

use insta::assert_snapshot;

use super::*;

#[test]
fn errors_in_data_are_reported_with_their_place() {
    let cases = [
        (
            "request: GET /",
            "request: GET /{{d}}/{{d.x}}\n  data: { d: { integers: { from: 3, to: 1 }, pick: random } }",
        ),
        ("request: GET /", "request: GET /{{d}}\n  data: { d: { values: [], csv: a.csv } }"),
        ("request: GET /", "request: GET /{{d}}\n  data: { d: { csv: none.csv } }"),
        ("request: GET /", "request: { path: /, json: [\"{{d}}\"] }\n  data: { d: { values: [fine, 'say \"hi\"'] } }"),
        (REQUEST, "request: GET /\n  data: { d: { json: a.json, csv: a.csv }, e: { json: none.json, pick: never } }"),
    ];
    assert_snapshot!(errors_of_all(&cases), @r#"
    --- request: GET /{{d}}/{{d.x}}
      data: { d: { integers: { from: 3, to: 1 }, pick: random } }
    e.yaml:14:16: load.scenarios.main.request: `d` has no columns, so `d.x` does not exist
      hint: write `{{d}}`
    e.yaml:15:16: load.data.d.integers: expected `from` to be `to` or less, found 3 and 1
    e.yaml:15:46: load.data.d: `pick` is allowed only with `values`, `csv`, `json`
    --- request: GET /{{d}}
      data: { d: { values: [], csv: a.csv } }
    e.yaml:15:11: load.data.d: `values`, `csv` cannot be combined
    e.yaml:15:24: load.data.d.values: expected at least 1 item, found none
    --- request: GET /{{d}}
      data: { d: { csv: none.csv } }
    e.yaml:15:21: load.data.d.csv: cannot read data file /lab/none.csv: No such file or directory (os error 2)
    --- request: { path: /, json: ["{{d}}"] }
      data: { d: { values: [fine, 'say "hi"'] } }
    e.yaml:14:33: load.scenarios.main.request.json: the value "say \"hi\"" of `d` would break the JSON it is put into
      hint: values for `json` must not hold quotes, backslashes or control characters
    --- request: GET /
      data: { d: { json: a.json, csv: a.csv }, e: { json: none.json, pick: never } }
    e.yaml:15:11: load.data.d: `csv`, `json` cannot be combined
    e.yaml:15:35: load.data.d.csv: cannot read data file /lab/a.csv: No such file or directory (os error 2)
    e.yaml:15:55: load.data.e.json: cannot read data file /lab/none.json: No such file or directory (os error 2)
    e.yaml:15:72: load.data.e.pick: expected one of `random`, `sequential`, `once`, found "never"
    "#);
}
