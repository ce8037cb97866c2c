//! `published` and the reasons of parameters.

use insta::assert_snapshot;

use super::*;

#[test]
fn notes_for_readers_are_judged() {
    let published = "\
published:
  source: A Guide
  operation: webb GET /
  figures:
    - { measure: mean, values: { baseline: 669, other: 1ms } }
    - { measure: rates, values: { baseline: 1 } }
    - { measure: p95, values: { baseline: 1s }, remark: [slow] }
    - { measure: p95, values: { baseline: 1s }, fitted: { othr: n }, note: x }
    - { measure: rate, values: { baseline: 3ms } }
    - { measure: metric, metric: queue.length, values: { baseline: 3 } }
    - { measure: metric, metric: queue.length, values: { baseline: 3 } }
    - { measure: metric, values: { baseline: 3 } }
    - { measure: p50, values: { baseline: 1s }, fitted: { baseline: 'n, mm, price of n' } }
    - { measure: p50, scenario: lists }
    - { measure: cpu, service: wb }
    - { measure: cpu_share }
    - { measure: cpu, service: web, scenario: main }
    - { measure: cpu, service: web }
";
    let source =
        with("parameters: { n: 1 }", "parameters: { n: { value: 1 }, m: { value: ~, reason: x } }") + published;
    assert_snapshot!(errors(&source), @r#"
    e.yaml:2:15: parameters.n: `reason` is missing
    e.yaml:2:44: parameters.m.value: expected a text, found nothing
    e.yaml:17:14: published.operation: unknown service `webb`
      hint: did you mean `web`?
    e.yaml:19:44: published.figures[0].values.baseline: expected a length of time above 0 such as `30s` or `1m30s`, found 669
      hint: add a unit: `669s`, `669ms`
    e.yaml:19:49: published.figures[0].values: unknown variant `other`
      hint: known: `baseline`
    e.yaml:20:18: published.figures[1].measure: expected one of `rate`, `requests`, `failed`, `error_rate`, `mean`, `p50`, `p95`, `p99`, `cpu`, `memory`, `cpu_share`, `request_share`, `completed`, `throttled`, `calls_per_operation`, `attempts_per_operation`, `charge_per_operation`, `metric`, found "rates"
      hint: did you mean `rate`?
    e.yaml:21:57: published.figures[2].remark: expected a text, found a list
    e.yaml:22:18: published.figures[3].measure: `p95` is given twice, first on line 21
    e.yaml:22:59: published.figures[3].fitted: unknown variant `othr`
      hint: known: `baseline`
    e.yaml:22:70: published.figures[3]: unknown key `note`
      hint: known: `remark`, `fitted`, `given`, `restates`, `values`, `scenario`, `measure`
    e.yaml:23:44: published.figures[4].values.baseline: expected a number of 0 or more, found "3ms"
    e.yaml:25:34: published.figures[6].metric: `queue.length` is given twice, first on line 24
    e.yaml:26:7: published.figures[7]: `metric` is missing
    e.yaml:27:69: published.figures[8].fitted.baseline: unknown parameter `mm`
      hint: did you mean `m`?
    e.yaml:28:33: published.figures[9].scenario: unknown scenario `lists`
      hint: known: `main`
    e.yaml:29:32: published.figures[10].service: unknown service `wb`
      hint: did you mean `web`?
    e.yaml:30:7: published.figures[11]: `service` is missing
    e.yaml:31:37: published.figures[12]: unknown key `scenario`
      hint: it goes with `measure` `rate`, `requests`, `failed`, `error_rate`, `mean`, `p50`, `p95`, `p99`, not with `cpu`
    e.yaml:32:18: published.figures[13].measure: `web: cpu` is given twice, first on line 31
    "#);
    let bare = with("request: GET /", "request: GET /\nvariants: [{ name: a }, { nam: b }]") + published;
    assert!(!errors(&bare).contains("unknown variant"), "a variant whose name is misspelt may be meant");
    let bases = "\
published:
  source: A Guide
  ratio_to: { baseline: baselin, other: baseline }
  figures: [{ measure: memory, values: { baseline: 3 parsecs } }]
";
    assert_snapshot!(errors(&(with("n: 1", "n: 1") + bases)), @r#"
    e.yaml:17:25: published.ratio_to.baseline: unknown variant `baselin`
      hint: did you mean `baseline`?
    e.yaml:17:34: published.ratio_to: unknown variant `other`
      hint: known: `baseline`
    e.yaml:18:52: published.figures[0].values.baseline: expected an amount of memory such as `256MiB`, found "3 parsecs"
    "#);
    let of_clients = "\
published:
  source: A Guide
  figures: [{ measure: p95, values: { baseline: 1s } }, { measure: throttled, values: { baseline: 1 } }]
";
    let reported = errors(&(with("n: 1", "n: 1") + of_clients));
    let expected = "published.figures[1].measure: `throttled` needs `operation`, which `published` does not set";
    assert!(reported.contains(expected) && !reported.contains("figures[0]"), "{reported}");
}

#[test]
fn conclusions_are_about_figures_and_variants_that_exist() {
    let published = "\
published:
  source: A Guide
  figures:
    - { measure: mean, values: { baseline: 1ms } }
    - { measure: metric, metric: queue.length, values: { baseline: 3 }, restates: p95 }
  conclusions:
    - { claim: It waits., holds: [{ variant: baseline, bottleneck: pool-waits }] }
    - { claim: It fails., holds: [{ variant: other, finding: outage, at_most: 1 }] }
    - { claim: It grows., holds: [{ variant: baseline, figure: rate, to: others, at_least: 2, at_most: 1 }] }
    - { claim: It stays., holds: [{ variant: baseline, figure: mean }] }
    - { claim: It ends., holds: [{ variant: baseline }], becuse: so }
";
    assert_snapshot!(errors(&(with("n: 1", "n: 1") + published)), @r#"
    e.yaml:19:83: published.figures[1].restates: unknown figure `p95`
      hint: known: `mean`
    e.yaml:21:68: published.conclusions[0].holds[0].bottleneck: expected a kind of finding such as `pool-wait`, found "pool-waits"
    e.yaml:22:46: published.conclusions[1].holds[0].variant: unknown variant `other`
      hint: known: `baseline`
    e.yaml:22:70: published.conclusions[1].holds[0]: `at_most` is allowed only with `figure`
    e.yaml:23:64: published.conclusions[2].holds[0].figure: unknown figure `rate`
      hint: known: `mean`, `queue.length`
    e.yaml:23:64: published.conclusions[2].holds[0].figure: `at_least` 2 is above `at_most` 1
    e.yaml:23:74: published.conclusions[2].holds[0].to: unknown variant `others`
      hint: known: `baseline`
    e.yaml:24:64: published.conclusions[3].holds[0].figure: a figure without a bound is no condition
      hint: add `at_least` or `at_most`
    e.yaml:25:34: published.conclusions[4].holds[0]: one of `bottleneck`, `finding`, `figure` is missing
    e.yaml:25:58: published.conclusions[4]: unknown key `becuse`
      hint: did you mean `because`?
    "#);
}
