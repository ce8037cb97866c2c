//! `objectives`.

use insta::assert_snapshot;

use super::*;

#[test]
fn errors_in_objectives_are_reported_with_their_place() {
    let cases = [("request: GET /", "request: GET /\nobjectives: [p95 < 300, eror_rate == 0, fast]")];
    assert_snapshot!(errors_of_all(&cases), @r#"
    --- request: GET /
    objectives: [p95 < 300, eror_rate == 0, fast]
    e.yaml:15:14: objectives[0]: expected a length of time such as `300ms` as the bound, found "300"
    e.yaml:15:25: objectives[1]: unknown metric `eror_rate`
      hint: did you mean `error_rate`?
    e.yaml:15:41: objectives[2]: expected an objective such as `p95 < 300ms`, found "fast"
      hint: a metric, `<`, `<=`, `>`, `>=` or `==`, and a bound
    "#);
}

#[test]
fn objectives_about_a_part_are_judged() {
    let objectives = r#"
objectives:
  - "shop/login: p95 < 1s"
  - "shopp: p95 < 1s"
  - "shop/loginn: p95 < 1s"
  - "main/x: p95 < 1s"
  - "shop/login: dropped_rate == 0"
  - "a b: p95 < 1s"
  - { objective: "shop: p95 < 1s" }
  - { objective: p95 < 1s, request: login }
  - { objective: p95 < 1s, scenario: none, abort: yes }
  - { objective: rate > 1, abort: true }
  - { objective: p95 < 1s, scenario: shop, request: list, abort: true }
"#;
    let shop = "  scenarios:\n    shop: { model: constant-vus, vus: 1, duration: 1s, steps: [{ name: login, request: GET / }, \
                { name: list, request: GET / }] }";
    let source = with("  scenarios:", shop) + objectives;
    assert_snapshot!(errors(&source), @r#"
    e.yaml:19:5: objectives[1]: unknown scenario `shopp`
      hint: did you mean `shop`?
    e.yaml:20:5: objectives[2]: unknown request of `shop`: `loginn`
      hint: did you mean `login`?
    e.yaml:21:5: objectives[3]: unknown request of `main`: `x`
      hint: it has only one request; name only the scenario
    e.yaml:22:5: objectives[4]: `dropped_rate` is about a scenario, not about one of its requests
      hint: an iteration is dropped before its first request
    e.yaml:23:5: objectives[5]: expected `scenario` or `scenario/request` before the colon, found "a b"
    e.yaml:24:18: objectives[6].objective: unknown metric `shop: p95`
      hint: known: `mean`, `p50`, `p90`, `p95`, `p99`, `p99.9`, `max`, `error_rate`, `dropped_rate`, `rate`
    e.yaml:25:28: objectives[7]: `request` is allowed only with `scenario`
    e.yaml:26:38: objectives[8].scenario: unknown scenario `none`
      hint: known: `shop`, `main`
    e.yaml:26:51: objectives[8].abort: expected `true` or `false`, found "yes"
    e.yaml:27:35: objectives[9].abort: `rate > 1` cannot end a trial early
      hint: upper limits of latencies and shares can
    "#);
    let command = format!("experiment: a\nload: {{ command: [k6] }}{objectives}");
    assert!(!errors(&command).contains("unknown scenario"), "another program has names of its own");
}
