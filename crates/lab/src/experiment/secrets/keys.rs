//! Meaning of keys for their values: which hold secrets, and which name something.

use narrows_telemetry::secrets::is_secret_key;

use crate::experiment::document::scalars::ITEM;

/// Last words of keys whose values name something.
const NAMING: [&str; 10] = ["database", "db", "email", "host", "login", "name", "owner", "role", "user", "username"];

/// Whether a value is a secret because of its key or one above it. `is_parameter` says it of parameters.
pub(super) fn is_secret_place(path: &[&str], is_parameter: impl Fn(&str) -> bool) -> bool {
    match path {
        ["published" | "prices" | "thresholds" | "objectives", ..] => false,
        ["parameters", name] | ["parameters", name, "value"] => is_parameter(name),
        ["parameters", ..] | ["variants", ITEM, "name" | "from"] => false,
        ["variants", ITEM, name] | ["load", "scenarios", _, "when", name] => is_parameter(name),
        ["load", "data", name, "values", ..] => is_secret_key(name),
        ["load", "data", ..] | ["load", "scenarios", _, "cookies"] => false,
        // Extracted values are known only after a response.
        ["load", "scenarios", _, "steps", ITEM, "extract", ..]
        | ["load", "scenarios", _, "mix", _, "steps", ITEM, "extract", ..] => false,
        ["load", "scenarios", _, "mix", _, rest @ ..]
        | ["load", "scenarios", _, rest @ ..]
        | ["system", "services", _, rest @ ..]
        | rest => rest.iter().any(|key| is_secret_key(key)),
    }
}

pub(super) fn is_naming(key: &str) -> bool {
    let last = key.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    NAMING.iter().any(|word| word.eq_ignore_ascii_case(last))
}
