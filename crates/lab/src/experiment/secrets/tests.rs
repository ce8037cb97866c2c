//! Texts that are redacted in an experiment, and texts that stay.

use super::*;
use crate::experiment::document::tree;
use crate::experiment::error::Report;

/// Blanks each secret, leaves the rest, and does nothing more when done again.
fn check(source: &str, expected: &str) {
    let once = redacted(source);
    assert_eq!(once, expected, "of {source}");
    assert_eq!(redacted(&once), once, "twice {source}");
}

#[test]
fn values_of_secret_keys_are_blanked_and_all_else_stays() {
    for (source, expected) in [
        ("env: { DB_PASSWORD: s3cr3t, A: b } # x\n", "env: { DB_PASSWORD: REDACTED, A: b } # x\n"),
        (
            "headers:\n  Authorization: 'Bearer abc'\n  X: \"y\"\n",
            "headers:\n  Authorization: 'REDACTED'\n  X: \"y\"\n",
        ),
        ("headers: { \"X-Api-Key\": \"a\\\"b\", é: ü }\n", "headers: { \"X-Api-Key\": \"REDACTED\", é: ü }\n"),
        ("{\"é\": 1, \"token\": \"x\", \"b\": [1, 2]}\n", "{\"é\": 1, \"token\": \"REDACTED\", \"b\": [1, 2]}\n"),
        ("token:\n  - a1\n  - { b: c1 }\nd: e\n", "token:\n  - REDACTED\n  - { b: REDACTED }\nd: e\n"),
        ("password: |\n  line one\n  line two\nb: c\n", "password: |\n  REDACTED\n\nb: c\n"),
        ("password: >-\n  folded\n  text\n# c\nb: c\n", "password: >-\n  REDACTED\n\n# c\nb: c\n"),
        ("password: two\n  lines\nb: c\n", "password: REDACTED\nb: c\n"),
        ("password: 12345\r\nb: c\r\n", "password: REDACTED\r\nb: c\r\n"),
        ("password:\nb: ~\n", "password:\nb: ~\n"),
        ("password: &a x1\nb: c\n", "password: REDACTED\nb: c\n"),
        ("a: 1\n---\ntoken: x1\n", "a: 1\n---\ntoken: REDACTED\n"),
        ("# password: x1 is\na: b # token=y1\n", "# password: REDACTED is\na: b # token=REDACTED\n"),
        ("a: \"# password: x\"\n", "a: \"# password: REDACTED\"\n"),
        ("run: [a, --token, x1, --password=y1, -v]\n", "run: [a, --token, REDACTED, --password=REDACTED, -v]\n"),
        ("run:\n  - a\n  - -p\n  - word\n  - -p\n  - 80\n", "run:\n  - a\n  - -p\n  - REDACTED\n  - -p\n  - 80\n"),
        ("request: GET /a?token=x1&b=c\n", "request: GET /a?token=REDACTED&b=c\n"),
        ("target: http://joe:x1@h:80\n", "target: http://REDACTED:REDACTED@h:80\n"),
        ("body: '{\"password\":\"it''s\"}'\n", "body: \"{\\\"password\\\":\\\"REDACTED\\\"}\"\n"),
        (
            "body: |\n  {\"a\":\n   \"password\": \"x1\"}\nb: c\n",
            "body: |\n  {\"a\":\n   \"password\": \"REDACTED\"}\nb: c\n",
        ),
    ] {
        check(source, expected);
    }
}

#[test]
fn names_and_the_grammars_own_keys_are_not_secrets() {
    let source = "\
experiment: e
parameters: { token: { value: REDACTED, reason: why, held_by: [a] } }
system: { services: { auth-token: { run: [a], env: { A: b } } } }
load:
  target: auth-token
  data: { tokens: { csv: tokens.csv, pick: sequential }, token: { integers: { from: 1, to: 500000 } } }
  scenarios:
    get-token:
      model: constant-vus
      cookies: per-user
      steps:
        - { name: token, request: GET /, extract: { token: { json: /access_token } } }
variants: [{ name: token, from: secret }]
published: { source: s, figures: [{ measure: rate, values: { token: 1 } }] }
thresholds: { token: 3 }
";
    check(source, source);
    assert_eq!(Secrets::of(source).values, BTreeSet::from(["REDACTED".to_owned()]));
}

#[test]
fn a_parameter_that_is_used_as_a_secret_is_one() {
    let source = "\
parameters: { one: alpha-11, two: beta-22, three: gamma-33, four: delta-44, five: eps-55 }
env: { API_TOKEN: \"${one}\", URL: \"http://u:${two}@h/${four}\" }
run: [a, --token, \"${three}\", \"--password=${five}\"]
headers: { Authorization: \"Bearer ${one}\", Cookie: \"{{sid}}\" }
variants: [{ name: v, one: alpha-12, four: delta-45 }]
";
    let expected = source
        .replace("alpha-11", REDACTED)
        .replace("alpha-12", REDACTED)
        .replace("beta-22", REDACTED)
        .replace("gamma-33", REDACTED)
        .replace("eps-55", REDACTED)
        .replace("http://u:", "http://REDACTED:");
    let shown = redacted(source);
    // The user goes, whatever stands for the password.
    assert_eq!(shown.replace("REDACTED:REDACTED@", "REDACTED:${two}@"), expected);
    let secrets = Secrets::of(source);
    let values: Vec<&str> = secrets.values.iter().map(String::as_str).collect();
    assert!(
        ["alpha-11", "alpha-12", "beta-22", "gamma-33", "eps-55"].iter().all(|one| values.contains(one)),
        "{values:?}"
    );
    assert!(!secrets.known().is_in(b"delta-44 delta-45"));
}

#[test]
fn values_are_known_secrets_with_what_is_in_them() {
    let source = "\
headers: { Authorization: Basic am9lOnB3LTEyMzQ=, Cookie: sid=sid-1234; b=c }
env: { URL: \"postgres://shop:shop-pw-1@h/shop\", DB_USER: worker-1, DB_PASSWORD: worker-1, PASSWORD: \"true\" }
";
    let known = Secrets::of(source).known();
    for secret in ["am9lOnB3LTEyMzQ", "pw-1234", "sid-1234", "shop-pw-1"] {
        assert!(known.is_in(secret.as_bytes()), "{secret}");
    }
    for open in ["shop", "worker-1", "true", "postgres://"] {
        assert!(!known.is_in(open.as_bytes()), "{open}");
    }
}

#[test]
fn a_known_secret_is_blanked_where_no_name_marks_it() {
    check(
        "env: { TOKEN: abc-123-def }\nrun: [sh, -c, \"echo abc-123-def\"] # abc-123-def\n",
        "env: { TOKEN: REDACTED }\nrun: [sh, -c, \"echo REDACTED\"] # REDACTED\n",
    );
}

#[test]
fn what_is_no_yaml_is_treated_as_text() {
    check("a: [1\npassword: x1\n", "a: [1\npassword: REDACTED\n");
    check("a: 'x\ntoken=y1", "a: 'x\ntoken=REDACTED");
    assert_eq!(redacted(""), "");
}

#[test]
fn the_result_has_the_structure_of_the_source() {
    fn keys(node: &tree::Node) -> String {
        let own = node.entries().iter().map(|entry| format!("{}:{{{}}}", entry.key, keys(&entry.value)));
        match &node.form {
            tree::Form::List(items) => items.iter().map(|item| format!("[{}]", keys(item))).collect(),
            _ => own.collect(),
        }
    }
    let source = "a:\n  password: |\n    x\n     y\n\n  token: 'a\n\n    b'\n  c: [ {secret: \"x\\ny\", d: 1}, --token, e ]\n  f: >+\n    pwd=1\n\n# g\nh: i\n";
    let read = |source: &str| {
        let mut report = Report::new("");
        let root = tree::parse(source, &mut report);
        root.map(|root| keys(&root)).ok_or_else(|| format!("{:?} in\n{source}", report.into_errors()))
    };
    let shown = redacted(source);
    assert_eq!(read(&shown), read(source), "{shown}");
    assert!(!shown.contains('y') && !shown.contains("pwd=1"), "{shown}");
}

#[test]
fn a_broken_text_is_read_again_until_nothing_changes() {
    let once = redacted("{token: {password}token: ]passwordtoken: token: &");
    assert_eq!(redacted(&once), once);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic_and_it_settles(source in "(password|token: |env: |[-?:,\\[\\]{}#&*!|>'\"% \n\ta-cé0-9$]){0,40}") {
        let once = redacted(&source);
        proptest::prop_assert_eq!(redacted(&once), once);
    }
}
