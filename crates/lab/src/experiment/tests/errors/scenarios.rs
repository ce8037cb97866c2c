//! Scenarios and their models.

use insta::assert_snapshot;

use super::*;

#[test]
fn errors_in_scenarios_are_reported_with_their_place() {
    let cases = [
        ("    main:", "    main one:"),
        ("model: constant-vus", "model: constant-vu"),
        ("model: constant-vus", "mode: constant-vus"),
        ("model: constant-vus", "model: ramping-vus"),
        ("      vus: 1\n", "      vus: \"1\"\n      vus: 2\n"),
        ("      duration: 1s\n", ""),
        (
            "model: constant-vus\n      vus: 1\n      duration: 1s",
            "model: ramping-vus\n      start_vus: 0\n      stages: [{ duration: 1s, target: 0 }]",
        ),
        (
            "model: constant-vus\n      vus: 1\n      duration: 1s",
            "model: ramping-vus\n      start_vus: 1\n      steps: { from: 5, add: 1, every: 1s, to: 2 }",
        ),
        (
            "model: constant-vus\n      vus: 1\n      duration: 1s",
            "model: ramping-vus\n      steps: { from: 1, add: 1, every: 1s, to: 2000 }",
        ),
        (MODEL, "model: constant-arrival-rate\n      rate: 30/m\n      duration: 1s\n      pace: 1s"),
        (
            MODEL,
            "model: constant-arrival-rate\n      rate: 0\n      duration: 1s\n      arrivals: random\n      max_vus: 0",
        ),
        (MODEL, "model: ramping-arrival-rate\n      stages: [{ duration: 1s, target: 0 }]"),
        (
            MODEL,
            "model: ramping-arrival-rate\n      start_rate: fast\n      levels: { from: 5, add: 0, every: 1s, to: 2 }",
        ),
        (MODEL, "model: ramping-vus\n      levels: { from: 1, add: 1, every: 1s, to: 2 }\n      steps: { from: 1 }"),
        (REQUEST, "steps: { from: 1 }"),
    ];
    assert_snapshot!(errors_of_all(&cases), @r#"
    ---     main one:
    e.yaml:10:5: load.scenarios: expected a name of letters, digits, `_` and `-`, found "main one"
    --- model: constant-vu
    e.yaml:11:14: load.scenarios.main.model: expected one of `constant-vus`, `ramping-vus`, `shared-iterations`, `per-vu-iterations`, `constant-arrival-rate`, `ramping-arrival-rate`, found "constant-vu"
      hint: did you mean `constant-vus`?
    --- mode: constant-vus
    e.yaml:11:7: load.scenarios.main: unknown key `mode`
      hint: did you mean `model`?
    --- model: ramping-vus
    e.yaml:10:5: load.scenarios.main: one of `stages`, `levels`, `steps` (a map) is missing
    e.yaml:12:7: load.scenarios.main: unknown key `vus`
      hint: it goes with `model` `constant-vus`, `shared-iterations`, `per-vu-iterations`, not with `ramping-vus`
    e.yaml:13:7: load.scenarios.main: unknown key `duration`
      hint: it goes with `model` `constant-vus`, `constant-arrival-rate`, not with `ramping-vus`
    ---       vus: "1"
          vus: 2

    e.yaml:12:12: load.scenarios.main.vus: expected a whole number from 1 to 100000, found "1"
      hint: write it without quotes
    e.yaml:13:7: load.scenarios.main: `vus` is given twice, first on line 12
    --- 
    e.yaml:10:5: load.scenarios.main: `duration` is missing
    --- model: ramping-vus
          start_vus: 0
          stages: [{ duration: 1s, target: 0 }]
    e.yaml:13:7: load.scenarios.main.stages: expected a target above 0 in at least one stage
    --- model: ramping-vus
          start_vus: 1
          steps: { from: 5, add: 1, every: 1s, to: 2 }
    e.yaml:12:7: load.scenarios.main: `start_vus` is allowed only with `stages`
    e.yaml:13:7: load.scenarios.main.steps: expected `from` to be `to` or less, found 5 and 2
    --- model: ramping-vus
          steps: { from: 1, add: 1, every: 1s, to: 2000 }
    e.yaml:12:7: load.scenarios.main.steps: expected at most 1000 levels, found 2000
    --- model: constant-arrival-rate
          rate: 30/m
          duration: 1s
          pace: 1s
    e.yaml:12:13: load.scenarios.main.rate: expected a rate above 0 such as 500 or `30/min`, found "30/m"
      hint: use `/s`, `/min` or `/h`
    e.yaml:14:7: load.scenarios.main: unknown key `pace`
      hint: it goes with `model` `constant-vus`, `ramping-vus`, `shared-iterations`, `per-vu-iterations`, not with `constant-arrival-rate`
    --- model: constant-arrival-rate
          rate: 0
          duration: 1s
          arrivals: random
          max_vus: 0
    e.yaml:12:13: load.scenarios.main.rate: expected a rate above 0 such as 500 or `30/min`, found 0
    e.yaml:14:17: load.scenarios.main.arrivals: expected `uniform`, `poisson`, `bursts of N`, N from 1 to 100000, or `bursts every` and a length of time, found "random"
    e.yaml:15:16: load.scenarios.main.max_vus: expected a whole number from 1 to 100000, found 0
    --- model: ramping-arrival-rate
          stages: [{ duration: 1s, target: 0 }]
    e.yaml:12:7: load.scenarios.main.stages: expected a target above 0 in at least one stage
    --- model: ramping-arrival-rate
          start_rate: fast
          levels: { from: 5, add: 0, every: 1s, to: 2 }
    e.yaml:12:7: load.scenarios.main: `start_rate` is allowed only with `stages`
    e.yaml:12:19: load.scenarios.main.start_rate: expected a rate such as 500 or `30/min`, found "fast"
    e.yaml:13:7: load.scenarios.main.levels: expected `from` to be `to` or less, found 5 and 2
    e.yaml:13:31: load.scenarios.main.levels.add: expected a rate above 0 such as 500 or `30/min`, found 0
    --- model: ramping-vus
          levels: { from: 1, add: 1, every: 1s, to: 2 }
          steps: { from: 1 }
    e.yaml:10:5: load.scenarios.main: `levels`, `steps` (a map) cannot be combined
    e.yaml:13:7: load.scenarios.main.steps: `add` is missing
    e.yaml:13:7: load.scenarios.main.steps: `every` is missing
    e.yaml:13:7: load.scenarios.main.steps: `to` is missing
    --- steps: { from: 1 }
    e.yaml:10:5: load.scenarios.main: one of `request`, `steps` (a list), `mix` is missing
    e.yaml:14:14: load.scenarios.main.steps: expected a list, found a map
    "#);
}
