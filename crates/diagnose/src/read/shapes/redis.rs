//! The shape of a Redis command: its name, and its key with `?` for every part that holds a digit.
//!
//! Keys are names with ids between colons, by the convention of Redis's own documentation: `user:1000:cart`. What a
//! command writes becomes one `?`, however many words it has. Libraries differ in what they report: the whole command,
//! the command with `?` for some or all of its arguments, or its name alone, whose key is then not known. Commands of a
//! pipeline come as one text, a line each, and are a batch.

use super::{Effect, Language, Portion, Shape, Statement};

pub(super) const LANGUAGE: Language = Language { systems: &["redis", "valkey"], shape };

/// Commands that read and whose result is the same until something is written.
const READS: &[&str] = &[
    "BITCOUNT",
    "EXISTS",
    "GEODIST",
    "GEOPOS",
    "GEOSEARCH",
    "GET",
    "GETBIT",
    "GETRANGE",
    "HEXISTS",
    "HGET",
    "HGETALL",
    "HKEYS",
    "HLEN",
    "HMGET",
    "HSCAN",
    "HVALS",
    "JSON.GET",
    "JSON.MGET",
    "KEYS",
    "LINDEX",
    "LLEN",
    "LRANGE",
    "MGET",
    "PFCOUNT",
    "PTTL",
    "SCAN",
    "SCARD",
    "SDIFF",
    "SINTER",
    "SISMEMBER",
    "SMEMBERS",
    "SMISMEMBER",
    "SSCAN",
    "STRLEN",
    "SUNION",
    "TTL",
    "TYPE",
    "XLEN",
    "XRANGE",
    "ZCARD",
    "ZCOUNT",
    "ZRANGE",
    "ZRANGEBYSCORE",
    "ZRANK",
    "ZREVRANGE",
    "ZSCORE",
];
/// Commands that go on from a cursor.
const PAGES: &[&str] = &["HSCAN", "SCAN", "SSCAN", "ZSCAN"];
/// Commands that take several keys.
const OF_KEYS: &[&str] = &["DEL", "EXISTS", "JSON.MGET", "MGET", "MSET", "TOUCH", "UNLINK"];
/// Commands that steer the connection or a transaction, or are about the server.
const STEERS: &[&str] = &[
    "ASKING",
    "AUTH",
    "CLIENT",
    "CLUSTER",
    "COMMAND",
    "CONFIG",
    "DISCARD",
    "ECHO",
    "EXEC",
    "HELLO",
    "INFO",
    "MULTI",
    "PING",
    "QUIT",
    "READONLY",
    "READWRITE",
    "RESET",
    "SCRIPT",
    "SELECT",
    "UNWATCH",
    "WATCH",
];
/// Commands that take and wait, or run programs: what they change is not known.
const UNKNOWN: &[&str] = &[
    "BLMOVE",
    "BLPOP",
    "BRPOP",
    "BZPOPMIN",
    "EVAL",
    "EVALSHA",
    "FCALL",
    "PSUBSCRIBE",
    "SUBSCRIBE",
    "XREAD",
    "XREADGROUP",
];
/// The longest name of a command.
const NAME_CHARS_MAX: usize = 24;

fn shape(statement: &Statement<'_>) -> Shape {
    let lines: Vec<&str> = statement.text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_pipeline = lines.len() > 1 && lines.iter().all(|line| is_command(line));
    if is_pipeline { pipeline(&lines) } else { command(statement.text.trim()) }
}

fn is_command(line: &str) -> bool {
    let name = line.split_whitespace().next().unwrap_or("");
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '.' || c == '_';
    name.len() <= NAME_CHARS_MAX && name.chars().all(is_letter)
}

fn pipeline(lines: &[&str]) -> Shape {
    let commands: Vec<Shape> = lines.iter().map(|line| command(line)).collect();
    let mut texts: Vec<&str> = Vec::new();
    for one in &commands {
        if !texts.contains(&one.text.as_str()) {
            texts.push(&one.text);
        }
    }
    let all = |effect: Effect| commands.iter().all(|one| one.effect == effect);
    let effect = [Effect::Steer, Effect::Read].into_iter().find(|effect| all(*effect)).unwrap_or(Effect::Write);
    Shape {
        text: texts.join("\n"),
        literals: commands.iter().map(|one| one.literals).sum(),
        placeholders: commands.iter().map(|one| one.placeholders).sum(),
        values_max: lines.len(),
        effect,
        portion: Portion::Batch,
        sql_words: None,
    }
}

fn command(text: &str) -> Shape {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or("").to_ascii_uppercase();
    let arguments: Vec<&str> = words.collect();
    let effect = effect_of(&name);
    let keys = if name == "MSET" { arguments.len() / 2 } else { arguments.len() };
    let values_max = if OF_KEYS.contains(&name.as_str()) { keys } else { 0 };
    let portion = match () {
        () if PAGES.contains(&name.as_str()) => Portion::Page,
        () if values_max > 1 => Portion::Batch,
        () => Portion::Selected,
    };
    // Without any argument, the key is not shown.
    let hidden = usize::from(arguments.is_empty() && effect != Effect::Steer);
    let placeholders = arguments.iter().filter(|argument| argument.contains('?')).count();
    let literals = arguments.len() - placeholders;
    let mut parts = vec![name];
    parts.extend(masked(&arguments, effect));
    Shape {
        text: parts.join(" "),
        literals,
        placeholders: placeholders + hidden,
        values_max,
        effect,
        portion,
        sql_words: None,
    }
}

fn effect_of(name: &str) -> Effect {
    match () {
        () if READS.contains(&name) => Effect::Read,
        () if STEERS.contains(&name) => Effect::Steer,
        () if UNKNOWN.contains(&name) => Effect::Unknown,
        () => Effect::Write,
    }
}

/// The arguments without values, alike neighbours as one with a `+`.
fn masked(arguments: &[&str], effect: Effect) -> Vec<String> {
    if effect != Effect::Read {
        let rest = (arguments.len() > 1).then(|| "?".to_owned());
        return arguments.first().map(|key| without_ids(key)).into_iter().chain(rest).collect();
    }
    let mut parts: Vec<String> = Vec::new();
    for argument in arguments {
        let part = without_ids(argument);
        match parts.last_mut() {
            Some(last) if last.trim_end_matches('+') == part => *last = format!("{part}+"),
            _ => parts.push(part),
        }
    }
    parts
}

/// `user:1000:cart` as `user:?:cart`.
fn without_ids(key: &str) -> String {
    let is_id = |part: &str| part.contains('?') || part.chars().any(|c| c.is_ascii_digit()) && !is_version(part);
    let mut text = String::new();
    for part in key.split_inclusive([':', '.', '/']) {
        let name = part.trim_end_matches([':', '.', '/']);
        let plus = if name == "?+" { "+" } else { "" };
        text.push_str(if is_id(name) { "?" } else { name });
        text.push_str(plus);
        text.push_str(&part[name.len()..]);
    }
    text
}

/// `v1`, `v12`.
fn is_version(part: &str) -> bool {
    part.strip_prefix('v').is_some_and(|digits| digits.len() < 3 && digits.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::shape_of;
    use super::*;

    #[test]
    fn ids_go_and_names_stay() {
        let cases = [
            ("GET authors:1", "GET authors:?"),
            ("get user:1000:cart", "GET user:?:cart"),
            ("HGET v2:prices 17", "HGET v2:prices ?"),
            ("HGETALL session:9f1c-77", "HGETALL session:?"),
            ("HMSET myhash field1 'Hello' field2 'World'", "HMSET myhash ?"),
            ("SET ? ?", "SET ? ?"),
            ("GET", "GET"),
            ("MGET product:1 product:2 product:3", "MGET product:?+"),
            ("LRANGE timeline:7 0 9", "LRANGE timeline:? ?+"),
            ("GET user:1\nGET user:2\nTTL user:2", "GET user:?\nTTL user:?"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(shape_of("redis", text).text, expected, "of {text}");
            assert_eq!(shape_of("redis", expected).text, expected, "a shape is its own");
        }
    }

    #[test]
    fn a_key_is_a_value_and_no_placeholder() {
        let counts = |text: &str| {
            let shape = shape_of("redis", text);
            (shape.literals, shape.placeholders)
        };
        assert_eq!(counts("GET authors:1"), (1, 0));
        assert_eq!(counts("GET ?"), (0, 1));
        assert_eq!(counts("GET"), (0, 1), "its key is not shown");
        assert_eq!(counts("PING"), (0, 0));
    }

    #[test]
    fn what_a_command_does_is_known() {
        let of = |text: &str| {
            let shape = shape_of("redis", text);
            (shape.effect, shape.portion)
        };
        assert_eq!(of("GET a"), (Effect::Read, Portion::Selected));
        assert_eq!(of("SET a 1"), (Effect::Write, Portion::Selected));
        assert_eq!(of("MGET a b"), (Effect::Read, Portion::Batch));
        assert_eq!(of("MSET a 1 b 2"), (Effect::Write, Portion::Batch));
        assert_eq!(of("HMGET user:1 name age"), (Effect::Read, Portion::Selected), "fields of one key");
        assert_eq!(of("SCAN 0 MATCH user:*"), (Effect::Read, Portion::Page));
        assert_eq!(of("GET a\nGET b"), (Effect::Read, Portion::Batch));
        assert_eq!(of("GET a\nSET b 1"), (Effect::Write, Portion::Batch));
        assert_eq!(of("MULTI").0, Effect::Steer);
        assert_eq!(of("EVALSHA 9f 1 a").0, Effect::Unknown);
        assert_eq!(of("SET note first line\nsecond, line").1, Portion::Selected, "a value of two lines");
    }
}
