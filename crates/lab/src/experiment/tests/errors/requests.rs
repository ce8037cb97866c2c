//! Requests and checks.

use insta::assert_snapshot;

use super::*;

#[test]
fn errors_in_requests_are_reported_with_their_place() {
    let cases = [
        ("request: GET /", "request: GET /{{who}}"),
        (
            "request: GET /",
            "request: { method: get, path: x, body: a, json: {}, headers: { \"a b\": 1, Content-Length: 3 } }",
        ),
        (REQUEST, "request: GET /\n      check: { status: [600, 2x], header: { a b: }, json: { a: 1 }, body: x }"),
        (
            REQUEST,
            "request: GET /\n      check: { body_contains: \"a {{id}} {{{{b\", header: { ETag: \"{{x.y}}\" }, json: { /a: \"{{\", /b: [{ c: \"{{d}}\" }] } }\n  \
             data: { id: { values: [1] } }",
        ),
    ];
    assert_snapshot!(errors_of_all(&cases), @r#"
    --- request: GET /{{who}}
    e.yaml:14:16: load.scenarios.main.request: unknown data `who`
      hint: describe it under `load.data`
    --- request: { method: get, path: x, body: a, json: {}, headers: { "a b": 1, Content-Length: 3 } }
    e.yaml:14:7: load.scenarios.main.request: `body`, `json` cannot be combined
    e.yaml:14:26: load.scenarios.main.request.method: expected one of `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE`, `OPTIONS`, found "get"
    e.yaml:14:37: load.scenarios.main.request.path: expected a path that begins with `/`, found "x"
    e.yaml:14:70: load.scenarios.main.request.headers: expected the name of a header, found "a b"
    e.yaml:14:80: load.scenarios.main.request.headers: the header `Content-Length` is set by Narrows from the body
      hint: leave it out
    --- request: GET /
          check: { status: [600, 2x], header: { a b: }, json: { a: 1 }, body: x }
    e.yaml:15:25: load.scenarios.main.check.status[0]: expected a status such as 200, `2xx` or `200-299`, found 600
    e.yaml:15:30: load.scenarios.main.check.status[1]: expected a status such as 200, `2xx` or `200-299`, found "2x"
    e.yaml:15:45: load.scenarios.main.check.header: expected the name of a header, found "a b"
    e.yaml:15:61: load.scenarios.main.check.json: expected a JSON pointer such as `/items/0/id`, found "a"
      hint: write `/a`
    e.yaml:15:69: load.scenarios.main.check: unknown key `body`
      hint: known: `status`, `body_contains`, `header`, `json`
    --- request: GET /
          check: { body_contains: "a {{id}} {{{{b", header: { ETag: "{{x.y}}" }, json: { /a: "{{", /b: [{ c: "{{d}}" }] } }
      data: { id: { values: [1] } }
    e.yaml:15:31: load.scenarios.main.check.body_contains: a check cannot contain `{{id}}`
      hint: a check is the same for every request; `{{{{` is a plain `{{`
    e.yaml:15:65: load.scenarios.main.check.header.ETag: a check cannot contain `{{x.y}}`
      hint: a check is the same for every request; `{{{{` is a plain `{{`
    e.yaml:15:90: load.scenarios.main.check.json./a: `{{` without `}}` in "{{"
      hint: `{{{{` is a plain `{{`
    e.yaml:15:100: load.scenarios.main.check.json./b: a check cannot contain `{{d}}`
      hint: a check is the same for every request; `{{{{` is a plain `{{`
    "#);
}

#[test]
fn all_faults_of_a_request_are_errors() {
    let data = "\n  data: { item: { integers: { from: 1, to: 9 } }, user: { values: [a] }, x.y: { values: [b] } }";
    let line = "request: GET /{{itme}}/{{}}/{{x.y}}/{{item}}/{{usr}} HTTP/1.1";
    let map = "request: { path: [], headers: { A: \"{{itme}}{{usr}}\" }, body: \"{{a}}-{{\" }";
    let reported = [line, map].map(|request| errors(&with("request: GET /", &format!("{request}{data}"))));
    assert_snapshot!(reported.join("---\n"), @r#"
    e.yaml:14:16: load.scenarios.main.request: a blank in the path "/{{itme}}/{{}}/{{x.y}}/{{item}}/{{usr}} HTTP/1.1"
      hint: leave out the protocol version
    e.yaml:14:16: load.scenarios.main.request: unknown data `itme`
      hint: did you mean `item`?
    e.yaml:14:16: load.scenarios.main.request: this `{{…}}` has no name
      hint: known: `item`, `user`, `x.y`
    e.yaml:14:16: load.scenarios.main.request: unknown data `usr`
      hint: did you mean `user`?
    e.yaml:15:74: load.data: expected a name of letters, digits, `_` and `-`, found "x.y"
    ---
    e.yaml:14:24: load.scenarios.main.request.path: expected a path such as `/orders`, found a list
    e.yaml:14:42: load.scenarios.main.request.headers.A: unknown data `itme`
      hint: did you mean `item`?
    e.yaml:14:42: load.scenarios.main.request.headers.A: unknown data `usr`
      hint: did you mean `user`?
    e.yaml:14:69: load.scenarios.main.request.body: `{{` without `}}` in "{{"
      hint: `{{{{` is a plain `{{`
    e.yaml:14:69: load.scenarios.main.request.body: unknown data `a`
      hint: known: `item`, `user`, `x.y`
    e.yaml:15:74: load.data: expected a name of letters, digits, `_` and `-`, found "x.y"
    "#);
}

#[test]
fn braces_without_quotes_are_reported_beside_other_errors() {
    let source =
        with("request: GET /", "request: { path: /, json: { id: {{u}}, n: \"{{v}}\" } }").replace("vus: 1", "vus: x");
    assert_snapshot!(errors(&source), @r#"
    e.yaml:12:12: load.scenarios.main.vus: expected a whole number from 1 to 100000, found "x"
    e.yaml:14:33: load.scenarios.main.request.json: unknown data `v`
      hint: describe it under `load.data`
    e.yaml:14:39: load.scenarios.main.request.json.id: a key that is a list or a map, expected a text
      hint: put the value in quotes, such as `"{{u}}"`
    "#);
    assert_snapshot!(errors(&with("request: GET /", "request: {{x}}")), @r#"
    e.yaml:14:16: load.scenarios.main.request: a key that is a list or a map, expected a text
      hint: put the value in quotes, such as `"{{x}}"`
    "#);
    assert_snapshot!(errors(&with("request: GET /", "request: { path: /{{x}} }")), @"
    e.yaml:14:25: not YAML: while parsing a flow mapping, did not find expected ',' or '}'
      hint: a value with `{{…}}` or `${…}` in it needs quotes
    ");
}
