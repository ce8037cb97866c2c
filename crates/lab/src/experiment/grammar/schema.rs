//! The JSON Schema (draft 2020-12) of the experiment file, for editors: completion, descriptions, squiggles.
//!
//! It says what can be said of form. References between parts, and what `${…}` turns out to be, are for
//! `narrows check`, which is stricter; whatever it accepts, the schema accepts too.

use serde_json::{Map as Object, Value, json};

use super::complete::default_of;
use super::kind::{AnyKind, TEXT};
use super::shape::{Field, GivenKey, KeyForm, NamedMap, Need, Rule, Scope, Shape, TaggedMap};
use crate::experiment::language::Language;
use crate::experiment::load::request::to_json;

impl Language {
    /// The JSON Schema of the experiment file.
    pub fn json_schema(self) -> Value {
        let mut schema = Object::new();
        schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        schema.insert("title".into(), json!("Narrows experiment"));
        if let Value::Object(experiment) = of_shape(self.experiment) {
            schema.extend(experiment);
        }
        Value::Object(schema)
    }
}

fn of_shape(shape: &'static Shape) -> Value {
    match shape {
        Shape::Map(map) => of_map(map.fields.iter(), map.rules.iter(), map.others, None),
        Shape::Tagged(tagged) => of_tagged(tagged),
        Shape::Named(named) => of_named(named),
        Shape::List { item, least, most } => of_list(of_shape(item), *least, *most),
        Shape::Arguments(_) => of_list(TEXT.schema(), 1, usize::MAX),
        Shape::Either(shapes) => json!({ "anyOf": shapes.iter().map(of_shape).collect::<Vec<_>>() }),
        Shape::Scalar(kind, scope) => of_scalar(*kind, *scope),
        Shape::Json(_) => json!({}),
    }
}

fn of_scalar(kind: &dyn AnyKind, scope: Scope) -> Value {
    let schema = kind.schema();
    // A text may hold `${` anyhow.
    if scope == Scope::Literal || schema == TEXT.schema() {
        return schema;
    }
    json!({ "anyOf": [schema, { "type": "string", "pattern": r"\$\{" }] })
}

fn of_list(item: Value, least: usize, most: usize) -> Value {
    let mut schema = json!({ "type": "array", "items": item });
    if least > 0 {
        schema["minItems"] = json!(least);
    }
    if most < usize::MAX {
        schema["maxItems"] = json!(most);
    }
    schema
}

fn of_named(named: &'static NamedMap) -> Value {
    let mut schema = json!({
        "type": "object",
        "propertyNames": named.name.schema(),
        "additionalProperties": of_shape(named.value),
        "maxProperties": named.most,
    });
    if named.least > 0 {
        schema["minProperties"] = json!(named.least);
    }
    schema
}

fn of_map(
    fields: impl Iterator<Item = &'static Field> + Clone,
    rules: impl Iterator<Item = &'static Rule>,
    others: Option<&'static Shape>,
    tag: Option<(&str, &str)>,
) -> Value {
    let mut properties: Object<String, Value> =
        fields.clone().map(|field| (field.key.into(), of_field(field))).collect();
    let mut required: Vec<&str> = fields.clone().filter(|f| f.need == Need::Required).map(|f| f.key).collect();
    if let Some((tag, value)) = tag {
        properties.insert(tag.into(), json!({ "const": value }));
        required.push(tag);
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": others.map_or(json!(false), of_shape),
    });
    let mut conditions: Vec<Value> = rules.flat_map(of_rule).collect();
    for field in fields {
        if let Need::OptionalBeside(keys) = field.need {
            let having = keys.iter().map(|key| json!({ "required": [key] })).collect::<Vec<_>>();
            conditions.push(depends(field.key, json!({ "anyOf": having })));
        }
    }
    if !conditions.is_empty() {
        schema["allOf"] = json!(conditions);
    }
    schema
}

fn of_rule(rule: &'static Rule) -> Vec<Value> {
    match rule {
        Rule::AtMostOne(all) => vec![json!({ "not": { "allOf": all.map(having) } })],
        Rule::ExactlyOne(all) => vec![json!({ "oneOf": all.iter().map(|one| having(*one)).collect::<Vec<_>>() })],
        Rule::Needs(key, needed) => vec![depends(key, json!({ "required": [needed] }))],
        Rule::OnlyBeside(keys, beside) => {
            keys.iter().map(|key| depends(key, json!({ "required": [beside] }))).collect()
        }
        Rule::NotBeside(keys, beside) => {
            keys.iter().map(|key| depends(key, json!({ "not": { "required": [beside] } }))).collect()
        }
    }
}

fn having(given: GivenKey) -> Value {
    let form = match given.written {
        KeyForm::Anyhow => return json!({ "required": [given.key] }),
        KeyForm::AsList => "array",
        KeyForm::AsMap => "object",
    };
    json!({ "required": [given.key], "properties": { given.key: { "type": form, "description": given.shown() } } })
}

fn depends(key: &str, on: Value) -> Value {
    json!({ "dependentSchemas": { key: on } })
}

fn of_field(field: &'static Field) -> Value {
    let mut schema = of_shape(&field.shape);
    schema["description"] = json!(field.doc);
    if let Some(default) = default_of(field) {
        schema["default"] = serde_json::from_str(&to_json(&default)).unwrap_or_default();
    }
    schema
}

fn of_tagged(tagged: &'static TaggedMap) -> Value {
    let values: Vec<&str> = tagged.branches.iter().map(|branch| branch.value).collect();
    let branches = tagged.branches.iter().map(|branch| {
        let rules = tagged.rules.iter().chain(branch.map.rules);
        of_map(tagged.fields_of(branch), rules, branch.map.others, Some((tagged.tag.key, branch.value)))
    });
    json!({
        "type": "object",
        "properties": { tagged.tag.key: { "enum": values, "description": tagged.tag.doc } },
        "required": [tagged.tag.key],
        "oneOf": branches.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use regex_lite::Regex;

    use super::*;
    use crate::experiment::document::tree::parse;
    use crate::experiment::error::Report;

    /// Whether a value is valid: the keywords that our schema uses, by JSON Schema 2020-12. Panics at any other.
    fn is_valid(value: &Value, schema: &Value) -> bool {
        let Value::Object(keywords) = schema else { return schema == &json!(true) };
        keywords.iter().all(|(keyword, operand)| holds(value, keyword, operand, schema))
    }

    fn holds(value: &Value, keyword: &str, operand: &Value, schema: &Value) -> bool {
        let any = |wanted: &dyn Fn(usize) -> bool| {
            wanted(operand.as_array().unwrap().iter().filter(|schema| is_valid(value, schema)).count())
        };
        let number =
            |test: &dyn Fn(f64, f64) -> bool| value.as_f64().is_none_or(|n| test(n, operand.as_f64().unwrap()));
        let text = |test: &dyn Fn(&str) -> bool| value.as_str().is_none_or(test);
        let object = |test: &dyn Fn(&Object<String, Value>) -> bool| value.as_object().is_none_or(test);
        let count = operand.as_u64().unwrap_or_default() as usize;
        match keyword {
            "$schema" | "title" | "description" | "default" => true,
            "type" => match operand {
                Value::Array(types) => types.iter().any(|one| has_type(value, one)),
                one => has_type(value, one),
            },
            "const" => value == operand,
            "enum" => operand.as_array().unwrap().contains(value),
            "allOf" => any(&|valid| valid == operand.as_array().unwrap().len()),
            "anyOf" => any(&|valid| valid > 0),
            "oneOf" => any(&|valid| valid == 1),
            "not" => !is_valid(value, operand),
            "minimum" => number(&|n, least| n >= least),
            "exclusiveMinimum" => number(&|n, least| n > least),
            "maximum" => number(&|n, most| n <= most),
            "maxLength" => text(&|text| text.chars().count() <= count),
            "pattern" => text(&|text| Regex::new(operand.as_str().unwrap()).unwrap().is_match(text)),
            "items" => value.as_array().is_none_or(|items| items.iter().all(|item| is_valid(item, operand))),
            "minItems" => value.as_array().is_none_or(|items| items.len() >= count),
            "maxItems" => value.as_array().is_none_or(|items| items.len() <= count),
            "minProperties" => object(&|map| map.len() >= count),
            "maxProperties" => object(&|map| map.len() <= count),
            "required" => {
                object(&|map| operand.as_array().unwrap().iter().all(|key| map.contains_key(key.as_str().unwrap())))
            }
            "propertyNames" => object(&|map| map.keys().all(|key| is_valid(&json!(key), operand))),
            "properties" => {
                object(&|map| map.iter().all(|(k, v)| operand.get(k).is_none_or(|schema| is_valid(v, schema))))
            }
            "additionalProperties" => object(&|map| {
                let others = map.iter().filter(|(key, _)| schema["properties"].get(key).is_none());
                others.into_iter().all(|(_, value)| is_valid(value, operand))
            }),
            "dependentSchemas" => {
                let depends = operand.as_object().unwrap();
                object(&|map| depends.iter().all(|(key, schema)| !map.contains_key(key) || is_valid(value, schema)))
            }
            other => panic!("the schema uses `{other}`, which this test does not know"),
        }
    }

    fn has_type(value: &Value, name: &Value) -> bool {
        match name.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            other => panic!("type {other}"),
        }
    }

    fn schema_accepts(source: &str) -> bool {
        let node = parse(source, &mut Report::new("e.yaml")).unwrap();
        is_valid(&serde_json::from_str(&to_json(&node)).unwrap(), &crate::language().json_schema())
    }

    fn check_accepts(source: &str) -> bool {
        crate::language().parse(source, "e.yaml", Path::new("/lab")).is_ok()
    }

    const SMALL: &str = "\
experiment: small
parameters: { n: 1 }
system: { services: { web: { run: [web], SERVICE } } }
load:
  target: web
  LOAD
  scenarios: { main: { request: GET /, SCENARIO } }
";

    fn document(service: &str, load: &str, scenario: &str) -> String {
        let scenario = if scenario.contains("model") {
            scenario.to_owned()
        } else {
            format!("model: constant-vus, vus: 1, duration: 1s, {scenario}")
        };
        SMALL.replace("SERVICE", service).replace("LOAD", load).replace("SCENARIO", &scenario)
    }

    #[test]
    fn schema_and_check_agree_on_form() {
        let service = |text: &str| document(text, "", "");
        let load = |text: &str| document("", text, "");
        let scenario = |text: &str| document("", "", text);
        let flows = |text: &str| scenario(text).replacen("request: GET /, ", "", 1);
        let command = |text: &str| {
            let source = service("");
            format!("{}load: {{ {text} }}\n", &source[..source.find("load:").unwrap()])
        };
        let published = |figure: &str| {
            service("") + &format!("published: {{ source: S, operation: web GET /, figures: [{{ {figure} }}] }}")
        };
        let cases = [
            (service(""), true),
            (service("cpus: 0.5, memory: 1.5GiB, replicas: 3, ready: tcp"), true),
            (service("cpus: 2, memory: 4096, ready: GET /health, env: { A: 1, B: true, C: x }"), true),
            (service("ready: { log: up, timeout: 1m30s }, stop: { signal: INT }"), true),
            (service("ready: { timeout: 1.5s }, setup: [[make, 1]], port: 80"), true),
            (service("cpus: \"${n}\", replicas: \"${n}\", env: { P: \"${port}\" }"), true),
            (service("cpus: 0"), false),
            (service("cpus: many"), false),
            (service("cpus: \"1\""), false),
            (service("memory: 0"), false),
            (service("memory: 0MiB"), false),
            (service("memory: 1G"), false),
            (service("replicas: 0"), false),
            (service("replicas: 1.5"), false),
            (service("port: 70000"), false),
            (service("ready: { log: up, http: GET / }"), false),
            (service("ready: udp"), false),
            (service("ready: [tcp]"), false),
            (service("ready: ~"), false),
            (service("setup: make"), false),
            (service("setup: [[]]"), false),
            (service("stop: { signal: KIL }"), false),
            (service("restart: always"), true),
            (service("restart: sometimes"), false),
            (service("revive: always"), false),
            (service("env: { A: [1] }"), false),
            (load("warmup: 0"), true),
            (load("warmup: 0s\n  tracing: false\n  connections: per-request\n  threads: 2"), true),
            (load("tracing: { sample: 0.1 }\n  drain: \"${n}s\""), true),
            (load("data: { d: { integers: { from: -1, to: 1 } } }"), true),
            (load("data: { d: { values: [a, 1], pick: sequential } }"), true),
            (load("warmup: 10"), false),
            (load("timeout: 0s"), false),
            (load("tracing: { sample: 2 }"), false),
            (load("tracing: some"), false),
            (load("connections: close"), false),
            (load("data: { d: { values: [a], csv: b } }"), false),
            (load("data: { d: { integers: { from: 1, to: 2 }, pick: random } }"), false),
            (load("data: { d: { pick: random } }"), false),
            (load("data: { \"a b\": { values: [1] } }"), false),
            (scenario("think_time: 1ms, pace: 20us"), true),
            (scenario("model: ramping-vus, stages: [{ duration: 1m, target: 0 }]"), true),
            (scenario("model: ramping-vus, start_vus: 0, stages: [{ duration: 1m, target: 4 }]"), true),
            (scenario("model: ramping-vus, steps: { from: 1, add: 4, every: 45s, to: 40 }"), true),
            (scenario("model: shared-iterations, vus: 2, iterations: 100"), true),
            (scenario("model: ramping-vus, start_vus: 1, steps: { from: 1, add: 4, every: 45s, to: 40 }"), false),
            (scenario("model: ramping-vus"), false),
            (scenario("model: ramping-vus, stages: []"), false),
            (scenario("model: constant-vus, vus: 1"), false),
            (scenario("model: constant-vus, vus: 1, duration: 1s, iterations: 3"), false),
            (scenario("model: constant, vus: 1, duration: 1s"), false),
            (scenario("").replace("GET /,", "/,"), false),
            (scenario("").replace("GET /,", "FETCH /,"), false),
            (scenario("").replace("GET /,", "{ path: /, json: { a: [1] } },"), true),
            (scenario("").replace("GET /,", "{ method: PUT, path: /, body: a, headers: { X-A: 1 } },"), true),
            (scenario("").replace("GET /,", "{ method: put, path: / },"), false),
            (scenario("").replace("GET /,", "{ path: / , body: a, json: 1 },"), false),
            (scenario("").replace("GET /,", "{ path: / , headers: { a b: 1 } },"), false),
            (service("") + "objectives: [p95 < 300ms, error_rate == 0, error_rate < 1%, rate >= 100/s]", true),
            (service("") + "objectives: [p96 < 300ms]", false),
            (service("") + "objectives: [p95 < 300]", false),
            (service("") + "objectives: fast", false),
            (service("") + "variants: [{ name: v1.2 }, { name: b, from: v1.2, n: 2 }]", true),
            (service("") + "variants: [{ from: a }]", false),
            (service("") + "variants: [{ name: a, n: [1] }]", false),
            (service("") + "variants: []", false),
            (service("") + "seed: -1", false),
            (service("").replace("{ n: 1", "{ n: { value: 1, reason: one is enough }"), true),
            (service("").replace("{ n: 1", "{ n: { value: 1 }"), false),
            (service("").replace("{ n: 1", "{ n: { value: [1], reason: x }"), false),
            (published("measure: mean, values: { baseline: 669ms }, remark: slower there"), true),
            (published("measure: rate, values: { baseline: 19.4 }"), true),
            (published("measure: metric, metric: queue.length, values: { baseline: 19 }"), true),
            (published("measure: metric, metric: queue.length"), true),
            (published("measure: metric, values: { baseline: 19 }"), false),
            (published("measure: rate, metric: queue.length, values: { baseline: 19 }"), false),
            (published("measure: mean, values: { baseline: 669 }"), false),
            (published("measure: rate, values: { baseline: 19ms }"), false),
            (published("measure: rate, values: { baseline: -1 }"), false),
            (published("measure: rate, values: {}"), false),
            (published("measure: speed, values: { baseline: 1 }"), false),
            (published("values: { baseline: 1 }"), false),
            (published("measure: rate, values: { baseline: 1 }").replace("web GET /", "web"), false),
            (service("").replace("small", "Small"), false),
            (service("").replace("target: web", "target: http://localhost:80"), true),
            (service("").replace("target: web", "target: https://localhost"), true),
            (service("").replace("target: web", "target: ftp://localhost"), false),
            (load("protocol: http2\n  tls: { insecure: true, server_name: web.test }"), true),
            (load("protocol: http3"), false),
            (load("tls: { insecure: true, ca: a.pem }"), false),
            (load("tls: { server_name: a b }"), false),
            (load("tls: on"), false),
            (load("client_addresses: [127.0.0.2, 127.0.0.10-127.0.0.60, 127.1.0.0/24]"), true),
            (load("client_addresses: []"), false),
            (load("client_addresses: [localhost]"), false),
            (load("command: [k6]"), false),
            (load("results: k6-summary"), false),
            (load("duration: 1m"), false),
            (service("").replace("  target: web\n", ""), false),
            (command("command: [k6, run], env: { A: 1 }, cwd: ., results: k6-summary, duration: 1m"), true),
            (command("target: \"http://localhost\", command: [wrk]"), true),
            (command("command: k6"), false),
            (command("command: [k6], results: k6"), false),
            (command("command: [k6], warmup: 1s"), false),
            (command("command: [k6], data: {}"), false),
            (command("target: \"http://localhost\""), false),
            (scenario("model: per-vu-iterations, vus: 2, iterations: 3, max_duration: 1m, pace: 1s"), true),
            (scenario("model: per-vu-iterations, vus: 2"), false),
            (scenario("model: constant-arrival-rate, rate: 500/s, duration: 1s, max_vus: 3, arrivals: poisson"), true),
            (scenario("model: constant-arrival-rate, rate: 500/s, duration: 1s, arrivals: bursts of 82"), true),
            (scenario("model: constant-arrival-rate, rate: 500/s, duration: 1s, arrivals: bursts of 0"), false),
            (scenario("model: constant-arrival-rate, rate: 500/s, duration: 1s, arrivals: bursts of 200000"), false),
            (scenario("model: constant-arrival-rate, rate: 500/s, duration: 1s, arrivals: bursts every 7.7ms"), true),
            (scenario("model: constant-arrival-rate, rate: 500/s, duration: 1s, arrivals: bursts every 7"), false),
            (scenario("model: constant-arrival-rate, rate: 0.5, duration: 1s"), true),
            (scenario("model: constant-arrival-rate, rate: \"${n}/min\", duration: 1s"), true),
            (scenario("model: constant-arrival-rate, rate: 0, duration: 1s"), false),
            (scenario("model: constant-arrival-rate, rate: 0.0/h, duration: 1s"), false),
            (scenario("model: constant-arrival-rate, rate: 30/m, duration: 1s"), false),
            (scenario("model: constant-arrival-rate, rate: 1e9, duration: 1s"), false),
            (scenario("model: constant-arrival-rate, rate: 1, duration: 1s, pace: 1s"), false),
            (scenario("model: ramping-arrival-rate, start_rate: 0, stages: [{ duration: 1m, target: 30/min }]"), true),
            (scenario("model: ramping-arrival-rate, levels: { from: 10, add: 10/s, every: 1s, to: 50 }"), true),
            (scenario("model: ramping-arrival-rate, steps: { from: 10, add: 10, every: 1s, to: 50 }"), true),
            (scenario("model: ramping-arrival-rate"), false),
            (scenario("model: ramping-arrival-rate, levels: { from: 10 }"), false),
            (scenario("model: ramping-vus, levels: { from: 1, add: 4, every: 45s, to: 40 }"), true),
            (scenario("model: ramping-vus, steps: [{ name: a, request: GET / }]"), false),
            (flows("steps: [{ name: a, request: GET /, check: { status: 200 }, think_time: 1s, redirects: 3 }]"), true),
            (flows("steps: [{ name: a, request: GET /, extract: { t: { json: /t } } }], cookies: per-user"), true),
            (
                flows("steps: [{ name: a, request: GET / }]").replace(
                    "constant-vus, vus: 1, duration: 1s",
                    "ramping-vus, levels: { from: 1, add: 1, every: 1s, to: 3 }",
                ),
                true,
            ),
            (flows("steps: [{ request: GET / }]"), false),
            (flows("steps: []"), false),
            (flows("steps: [{ name: a, request: GET /, extract: { t: { json: t } } }]"), false),
            (flows("steps: [{ name: a, request: GET /, extract: { t: { json: /t, header: x } } }]"), false),
            (flows("steps: [{ name: a, request: GET / }], check: { status: 200 }"), false),
            (flows("steps: [{ name: a, request: GET / }], cookies: all"), false),
            (flows("mix: { a: { weight: 0.5, request: GET / }, b: { steps: [{ name: c, request: GET / }] } }"), true),
            (flows("mix: { a: { weight: 0, request: GET / } }"), false),
            (flows("mix: { a: {} }"), false),
            (flows("mix: { a: { request: GET /, steps: [{ name: c, request: GET / }] } }"), false),
            (flows("mix: {}"), false),
            (flows(""), false),
            (
                scenario(
                    "check: { status: 2xx, body_contains: ok, header: { A: ~, B: 1 }, json: { /a: [1], \"\": ~ } }",
                ),
                true,
            ),
            (scenario("check: [{ status: [200, 3xx, 400-404] }], redirects: 0"), true),
            (scenario("check: { status: 99 }"), false),
            (scenario("check: { status: 20x }"), false),
            (scenario("check: { header: {} }"), false),
            (scenario("check: { json: { a: 1 } }"), false),
            (scenario("check: 200"), false),
            (scenario("redirects: 21"), false),
            (load("data: { d: { values: [a], pick: once } }"), true),
            (load("data: { d: { values: [a], json: b } }"), false),
            (service("") + "objectives: [\"main: p99.9 < 1s\", dropped_rate < 1%]", true),
            (service("") + "objectives: [{ objective: p95 < 1s, scenario: main, abort: true }]", true),
            (service("") + "objectives: [{ objective: p95 < 1s, request: a }]", false),
            (service("") + "objectives: [{ scenario: main }]", false),
            (service("") + "objectives: [{ objective: \"main: p95 < 1s\" }]", false),
            (service("") + "objectives: [\"a b: p95 < 1s\"]", false),
            (service("").replace("run: [web]", "run: web"), false),
            (service("").replace("run: [web]", "run: []"), false),
        ];
        for (source, expected) in cases {
            assert_eq!(check_accepts(&source), expected, "check:\n{source}");
            assert_eq!(schema_accepts(&source), expected, "schema:\n{source}");
        }
        assert!(schema_accepts(crate::experiment::template()));
    }

    #[test]
    fn every_measure_is_a_case_of_the_grammar() {
        let schema = crate::language().json_schema();
        let cases = &schema["properties"]["published"]["properties"]["figures"]["items"]["oneOf"];
        let shown: Vec<(String, bool)> = cases
            .as_array()
            .unwrap()
            .iter()
            .map(|case| {
                let values = &case["properties"]["values"]["additionalProperties"];
                (case["properties"]["measure"]["const"].as_str().unwrap().to_owned(), values["type"] == "string")
            })
            .collect();
        let measures = narrows_model::published::Measure::ALL;
        assert_eq!(shown, measures.map(|measure| (measure.as_str().to_owned(), measure.is_duration())));
    }

    #[test]
    fn every_key_has_a_description_and_every_default_fits_its_key() {
        let schema = crate::language().json_schema();
        let mut keys = 0;
        walk(&schema, &mut |key, property| {
            keys += 1;
            assert!(property["description"].is_string() || property["const"].is_string(), "{key}");
            if let Some(default) = property.get("default") {
                assert!(is_valid(default, property), "{key}: {default}");
            }
        });
        assert!(keys > 50, "{keys} keys");
    }

    fn walk(schema: &Value, visit: &mut dyn FnMut(&str, &Value)) {
        let children: Vec<&Value> = match schema {
            Value::Object(keywords) => keywords.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => return,
        };
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            visit(key, property);
        }
        children.into_iter().for_each(|child| walk(child, visit));
    }
}
