//! Steps and flows.

use insta::assert_snapshot;

use super::*;

#[test]
fn errors_in_steps_are_reported_with_their_place() {
    let steps = |text: &str| format!("steps:\n{text}");
    let cases = [
        (REQUEST, "extract: { a: { json: a } }"),
        (REQUEST, "request: GET /\n      steps: [{ name: a, request: GET / }]"),
        (REQUEST, "steps: [{ name: a, request: GET / }]\n      check: { status: 200 }\n      redirects: 21"),
        (REQUEST, "request: GET /\n      check: 200\n      cookies: some\n      redirects: 21"),
        (REQUEST, "mix: { a: { weight: 0, request: GET /, steps: [] }, b: { } }"),
        (
            REQUEST,
            &steps(
                "        - { name: a, request: \"GET /{{token}}{{tokn}}{{token.x}}\", extract: { token: { json: /t } } }\n        \
                 - { name: a, request: \"GET /{{token}}{{later}}{{d}}\", extract: { d: { header: X } } }\n        \
                 - { request: GET /, extract: { later: { regex: (a }, both: { json: /a, header: b }, none: {} } }\n  \
                 data: { d: { values: [1] } }",
            ),
        ),
        (
            REQUEST,
            "mix: { a: { steps: [{ name: b, request: GET /, extract: { t: { json: /t } } }] }, b: { request: \"GET /{{t}}\" } }",
        ),
    ];
    assert_snapshot!(errors_of_all(&cases), @r#"
    --- extract: { a: { json: a } }
    e.yaml:10:5: load.scenarios.main: one of `request`, `steps` (a list), `mix` is missing
    e.yaml:14:7: load.scenarios.main: unknown key `extract`
      hint: known: `request`, `check`, `redirects`, `mix`, `cookies`, `think_time`, `when`, `vus`, `duration`, `pace`, `steps`, `model`
    --- request: GET /
          steps: [{ name: a, request: GET / }]
    e.yaml:10:5: load.scenarios.main: `request`, `steps` (a list) cannot be combined
    --- steps: [{ name: a, request: GET / }]
          check: { status: 200 }
          redirects: 21
    e.yaml:15:7: load.scenarios.main: `check` is allowed only with `request`
    e.yaml:16:7: load.scenarios.main: `redirects` is allowed only with `request`
    e.yaml:16:18: load.scenarios.main.redirects: expected a whole number from 0 to 20, found 21
    --- request: GET /
          check: 200
          cookies: some
          redirects: 21
    e.yaml:15:14: load.scenarios.main.check: expected a map, or a list, found 200
    e.yaml:16:16: load.scenarios.main.cookies: expected one of `none`, `per-iteration`, `per-user`, found "some"
      hint: did you mean `none`?
    e.yaml:17:18: load.scenarios.main.redirects: expected a whole number from 0 to 20, found 21
    --- mix: { a: { weight: 0, request: GET /, steps: [] }, b: { } }
    e.yaml:14:14: load.scenarios.main.mix.a: `request`, `steps` cannot be combined
    e.yaml:14:27: load.scenarios.main.mix.a.weight: expected a number above 0, found 0
    e.yaml:14:53: load.scenarios.main.mix.a.steps: expected at least 1 item, found none
    e.yaml:14:59: load.scenarios.main.mix.b: one of `request`, `steps` is missing
    --- steps:
            - { name: a, request: "GET /{{token}}{{tokn}}{{token.x}}", extract: { token: { json: /t } } }
            - { name: a, request: "GET /{{token}}{{later}}{{d}}", extract: { d: { header: X } } }
            - { request: GET /, extract: { later: { regex: (a }, both: { json: /a, header: b }, none: {} } }
      data: { d: { values: [1] } }
    e.yaml:15:31: load.scenarios.main.steps[0].request: `token` is used before it is extracted
      hint: a step can use only values that earlier steps of its flow extracted
    e.yaml:15:31: load.scenarios.main.steps[0].request: unknown data or variable `tokn`
      hint: did you mean `token`?
    e.yaml:15:31: load.scenarios.main.steps[0].request: `token` is extracted and has no columns, so `token.x` does not exist
      hint: write `{{token}}`
    e.yaml:16:19: load.scenarios.main.steps[1]: `a` is the name of two steps, the first on line 15
      hint: steps of all flows of a scenario need different names
    e.yaml:16:31: load.scenarios.main.steps[1].request: `later` is used before it is extracted
      hint: a step can use only values that earlier steps of its flow extracted
    e.yaml:16:74: load.scenarios.main.steps[1].extract.d: `d` is the name of data as well
      hint: give one of them another name
    e.yaml:17:11: load.scenarios.main.steps[2]: `name` is missing
    e.yaml:17:56: load.scenarios.main.steps[2].extract.later.regex: expected a regular expression, found "(a": unclosed group
    e.yaml:17:62: load.scenarios.main.steps[2].extract.both: `json`, `header` cannot be combined
    e.yaml:17:93: load.scenarios.main.steps[2].extract.none: one of `json`, `header`, `regex` is missing
    --- mix: { a: { steps: [{ name: b, request: GET /, extract: { t: { json: /t } } }] }, b: { request: "GET /{{t}}" } }
    e.yaml:14:89: load.scenarios.main.mix.b: `b` is the name of two steps, the first on line 14
      hint: steps of all flows of a scenario need different names
    e.yaml:14:103: load.scenarios.main.mix.b.request: `t` is extracted in another flow only
      hint: a step can use only values that earlier steps of its flow extracted
    "#);
}
