//! The secrets in an experiment's text: which values are secrets, and the text without them.
//!
//! A run file keeps the experiment's text, and reports show it. A value is a secret when its key says so, wherever keys
//! are of the user's choice (`env`, `headers`, `parameters`, a body), when it follows a flag such as `--password`, and
//! when it stands in a text such as `password=X`. A parameter that is used in such a place is a secret too. Names of
//! services, scenarios and the like are names, whatever they are called.
//!
//! The text is changed at the places that the YAML parser tells, so comments, keys and lines stay as they are. It works
//! on texts with mistakes as far as the parser reads them, because messages about mistakes quote values.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use narrows_telemetry::secrets::{Argument, Known, REDACTED, find_in_arguments, find_in_text, is_secret_key};
use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};

use super::placeholder::{self, RequestPiece, TrialPiece};
use super::{Experiment, Variant};

/// What stands for an item of a list in a path.
const ITEM: &str = "[]";
/// What stands for a key that is no text.
const NO_TEXT: &str = "?";
/// Last words of keys whose values name something.
const NAMING: [&str; 10] = ["database", "db", "email", "host", "login", "name", "owner", "role", "user", "username"];
/// Words before a credential in a header.
const SCHEMES: [&str; 4] = ["apikey", "basic", "bearer", "token"];

/// The secrets of an experiment. Does not show them.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Secrets {
    /// Parameters whose values are secrets.
    parameters: BTreeSet<String>,
    values: BTreeSet<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({} values)", self.values.len())
    }
}

impl Secrets {
    /// The secrets in a text, as far as it is YAML.
    pub(super) fn of(source: &str) -> Self {
        Document::read(source).secrets()
    }

    /// The values, to be found wherever they stand.
    pub(super) fn known(&self) -> Known {
        Known::new(self.values.iter().cloned())
    }

    fn is_parameter(&self, name: &str) -> bool {
        is_secret_key(name) || self.parameters.contains(name)
    }
}

impl Experiment {
    /// The file's text with `REDACTED` for each secret: what a run file keeps.
    pub fn redacted_source(&self) -> String {
        redacted(&self.source)
    }

    /// The values of the experiment that are secrets, to be found wherever they stand.
    pub fn known_secrets(&self) -> Known {
        self.secrets.known()
    }

    /// A variant's parameters as they may be kept and shown.
    pub fn shown_parameters(&self, variant: &Variant) -> BTreeMap<String, String> {
        let known = self.known_secrets();
        let shown = |(name, value): (&String, &String)| {
            let value = if self.secrets.is_parameter(name) { REDACTED.to_owned() } else { known.hidden(value) };
            (name.clone(), value)
        };
        variant.parameters.iter().map(shown).collect()
    }
}

/// Passes of redaction at most.
const PASSES_MAX: usize = 8;

/// An experiment's text with `REDACTED` for each secret. What is no YAML is treated as free text.
///
/// Redacting a broken text can join its parts to other YAML than before, so it is read again until nothing changes.
pub fn redacted(source: &str) -> String {
    let mut text = redacted_once(source);
    for _ in 1..PASSES_MAX {
        let next = redacted_once(&text);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn redacted_once(source: &str) -> String {
    let document = Document::read(source);
    let secrets = document.secrets();
    let mut edits = document.edits(&secrets);
    edits.sort_by_key(|(place, _)| place.start);
    let mut text = String::with_capacity(source.len());
    let mut from = 0;
    for (place, instead) in edits.into_iter().filter(|(place, _)| !place.is_empty()) {
        // An anchor may stand within the place of its node.
        if place.start >= from {
            text.push_str(&source[from..place.start]);
            text.push_str(&instead);
            from = place.end;
        }
    }
    text.push_str(&source[from..]);
    secrets.known().hide(&mut text);
    text
}

/// The scalars of a text, in its order.
struct Document<'a> {
    source: &'a str,
    scalars: Vec<Scalar>,
    /// Where the parser gave up, or the text's end.
    end: usize,
}

struct Scalar {
    /// The keys to it, its own place in lists as [`ITEM`].
    path: Vec<String>,
    place: Range<usize>,
    style: ScalarStyle,
    text: String,
    role: Role,
}

enum Role {
    Key,
    /// With the item before it in its list, if that is a scalar too.
    Value(Option<String>),
}

/// A map or list that is being read.
enum Open {
    Map(Option<String>),
    /// With its last item.
    List(Option<String>),
}

/// What of a value is a secret.
enum Found {
    Whole,
    /// At these places of the value's text. Those of the second kind may be something else.
    Parts(Vec<Range<usize>>, Vec<Range<usize>>),
}

impl<'a> Document<'a> {
    fn read(source: &'a str) -> Self {
        let offsets = Offsets::of(source);
        let mut document = Document { source, scalars: Vec::new(), end: source.len() };
        let mut open: Vec<Open> = Vec::new();
        let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(source);
        while let Some(event) = parser.next_event() {
            let (event, span) = match event {
                Ok(read) => read,
                Err(error) => {
                    // What was read up to the last scalar is known; the rest is not.
                    let read = document.scalars.last().map_or(0, |scalar| scalar.place.end);
                    document.end = offsets.byte(error.marker().index()).min(read);
                    break;
                }
            };
            match event {
                Event::Scalar(text, style, ..) => {
                    let start = offsets.byte(span.start.index());
                    // A block ends before the indentation of what follows it.
                    let end = offsets.byte(span.end.index()).max(start);
                    let place = start..start + source[start..end].trim_end_matches([' ', '\t']).len();
                    let role = match open.last() {
                        Some(Open::Map(None)) => Role::Key,
                        Some(Open::List(before)) => Role::Value(before.clone()),
                        _ => Role::Value(None),
                    };
                    let path = open.iter().map(Open::step).collect();
                    let text = text.into_owned();
                    close(&mut open, Some(&text));
                    document.scalars.push(Scalar { path, place, style, text, role });
                }
                Event::SequenceStart(..) => open.push(Open::List(None)),
                Event::MappingStart(..) => open.push(Open::Map(None)),
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                    close(&mut open, None);
                }
                Event::Alias(_) => close(&mut open, None),
                _ => {}
            }
        }
        document
    }

    fn values(&self) -> impl Iterator<Item = &Scalar> {
        self.scalars.iter().filter(|scalar| matches!(scalar.role, Role::Value(_)))
    }

    fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        let parameters: BTreeSet<String> = self.values().flat_map(|scalar| scalar.secret_names()).collect();
        secrets.parameters = parameters;
        let names = self.names();
        for scalar in self.values() {
            let texts = match scalar.found(&secrets) {
                Found::Whole => credentials(&scalar.text),
                Found::Parts(places, _) => parts(&scalar.text, &places),
            };
            secrets.values.extend(texts.into_iter().filter(|text| !names.contains(text.as_str()) && !is_open(text)));
        }
        secrets
    }

    /// Texts that name something, so that they cannot be blanked wherever they stand.
    fn names(&self) -> BTreeSet<&str> {
        let is_name = |scalar: &&Scalar| match scalar.role {
            Role::Key => true,
            Role::Value(_) => scalar.path.last().is_some_and(|key| is_naming(key)),
        };
        self.scalars.iter().filter(is_name).map(|scalar| scalar.text.as_str()).collect()
    }

    /// What is to stand at which places of the source.
    fn edits(&self, secrets: &Secrets) -> Vec<(Range<usize>, String)> {
        let mut edits = Vec::new();
        let mut from = 0;
        for scalar in &self.scalars {
            self.edit_comments(from..scalar.place.start, &mut edits);
            from = scalar.place.end.max(from);
            if matches!(scalar.role, Role::Value(_)) {
                edits.extend(self.edits_of(scalar, secrets));
            }
        }
        self.edit_comments(from..self.end.max(from), &mut edits);
        let rest = self.end.max(from);
        edits.extend(blanks(&self.source[rest..], rest));
        edits
    }

    fn edits_of(&self, scalar: &Scalar, secrets: &Secrets) -> Vec<(Range<usize>, String)> {
        let written = &self.source[scalar.place.clone()];
        let is_block = matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded);
        match scalar.found(secrets) {
            Found::Whole if scalar.text.is_empty() || is_open(&scalar.text) => Vec::new(),
            Found::Whole => {
                let instead = match scalar.style {
                    ScalarStyle::SingleQuoted => format!("'{REDACTED}'"),
                    ScalarStyle::DoubleQuoted => format!("\"{REDACTED}\""),
                    // What follows stays in its lines.
                    _ if is_block => REDACTED.to_owned() + &"\n".repeat(written.matches('\n').count()),
                    _ => REDACTED.to_owned(),
                };
                vec![(scalar.place.clone(), instead)]
            }
            Found::Parts(..) if is_block => blanks(written, scalar.place.start).collect(),
            Found::Parts(mut places, perhaps) => {
                places.extend(perhaps);
                if places.is_empty() {
                    return Vec::new();
                }
                // Written as it is meant, perhaps in quotes.
                if let Some(at) = written.find(&scalar.text) {
                    let start = scalar.place.start + at;
                    let edit = |place: Range<usize>| (start + place.start..start + place.end, REDACTED.to_owned());
                    return places.into_iter().map(edit).collect();
                }
                let mut text = scalar.text.clone();
                places.iter().rev().for_each(|place| text.replace_range(place.clone(), REDACTED));
                vec![(scalar.place.clone(), serde_json::Value::from(text).to_string())]
            }
        }
    }

    /// Blanks comments between two scalars.
    fn edit_comments(&self, place: Range<usize>, edits: &mut Vec<(Range<usize>, String)>) {
        let Some(between) = self.source.get(place.clone()) else { return };
        let mut from = place.start;
        for line in between.split_inclusive('\n') {
            if let Some(at) = line.find('#') {
                edits.extend(blanks(&line[at + 1..], from + at + 1));
            }
            from += line.len();
        }
    }
}

/// Blanks for the secrets of free text that begins at `offset`.
fn blanks(text: &str, offset: usize) -> impl Iterator<Item = (Range<usize>, String)> {
    find_in_text(text).into_iter().map(move |place| (offset + place.start..offset + place.end, REDACTED.to_owned()))
}

impl Open {
    fn step(&self) -> String {
        match self {
            Open::Map(key) => key.clone().unwrap_or_else(|| NO_TEXT.to_owned()),
            Open::List(_) => ITEM.to_owned(),
        }
    }
}

/// Takes note in the innermost map or list that a part of it has ended.
fn close(open: &mut [Open], text: Option<&str>) {
    match open.last_mut() {
        Some(Open::Map(key @ None)) => *key = Some(text.unwrap_or(NO_TEXT).to_owned()),
        Some(Open::Map(key)) => *key = None,
        Some(Open::List(before)) => *before = text.map(str::to_owned),
        None => {}
    }
}

impl Scalar {
    fn found(&self, secrets: &Secrets) -> Found {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        if is_secret_place(&path, |name| secrets.is_parameter(name)) {
            return Found::Whole;
        }
        self.found_in(&self.text)
    }

    /// What of a text in this place is a secret by itself.
    fn found_in(&self, text: &str) -> Found {
        let Role::Value(Some(before)) = &self.role else { return Found::Parts(find_in_text(text), Vec::new()) };
        match find_in_arguments(&[before, text]).pop() {
            Some(Argument::Secret) => Found::Whole,
            Some(Argument::Parts(places)) => Found::Parts(places, Vec::new()),
            Some(Argument::Perhaps(place)) => Found::Parts(Vec::new(), vec![place]),
            None => Found::Parts(Vec::new(), Vec::new()),
        }
    }

    /// The names between `${` and `}` that stand where a secret stands.
    fn secret_names(&self) -> Vec<String> {
        let Ok(pieces) = placeholder::trial_pieces(&self.text) else { return Vec::new() };
        let names = pieces.iter().filter_map(|piece| match piece {
            TrialPiece::Name(name) => Some(*name),
            TrialPiece::Text(_) => None,
        });
        let names: Vec<&str> = names.collect();
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        if names.is_empty() {
            return Vec::new();
        }
        if is_secret_place(&path, is_secret_key) {
            return names.into_iter().map(str::to_owned).collect();
        }
        // A value that a secret name marks, were it written here.
        let marker = |at: usize| format!("Zq9x{at}y");
        let mut count = 0;
        let marked: String = pieces
            .iter()
            .map(|piece| match piece {
                TrialPiece::Text(text) => text.to_string(),
                TrialPiece::Name(_) => {
                    count += 1;
                    marker(count - 1)
                }
            })
            .collect();
        let is_marked = |at: usize| match self.found_in(&marked) {
            Found::Whole => true,
            Found::Parts(places, _) => places.into_iter().any(|place| marked[place].contains(&marker(at))),
        };
        names.iter().enumerate().filter(|(at, _)| is_marked(*at)).map(|(_, name)| (*name).to_owned()).collect()
    }
}

/// Whether a value is a secret because of its key or one above it. `is_parameter` says it of parameters.
fn is_secret_place(path: &[&str], is_parameter: impl Fn(&str) -> bool) -> bool {
    match path {
        ["published" | "thresholds" | "objectives", ..] => false,
        ["parameters", name] | ["parameters", name, "value"] => is_parameter(name),
        ["parameters", ..] | ["variants", ITEM, "name" | "from"] => false,
        ["variants", ITEM, name] | ["load", "scenarios", _, "when", name] => is_parameter(name),
        ["load", "data", name, "values", ..] => is_secret_key(name),
        ["load", "data", ..] | ["load", "scenarios", _, "cookies"] => false,
        // What is extracted is known only once it was answered.
        ["load", "scenarios", _, "steps", ITEM, "extract", ..]
        | ["load", "scenarios", _, "mix", _, "steps", ITEM, "extract", ..] => false,
        ["load", "scenarios", _, "mix", _, rest @ ..]
        | ["load", "scenarios", _, rest @ ..]
        | ["system", "services", _, rest @ ..]
        | rest => rest.iter().any(|key| is_secret_key(key)),
    }
}

fn is_naming(key: &str) -> bool {
    let last = key.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    NAMING.iter().any(|word| word.eq_ignore_ascii_case(last))
}

/// Whether nothing of a text is written here: `${token}`, `Bearer {{token}}`.
fn is_open(text: &str) -> bool {
    let Ok(pieces) = placeholder::trial_pieces(text) else { return false };
    let written: String =
        pieces.iter().map(|piece| if let TrialPiece::Text(text) = piece { text.as_ref() } else { "" }).collect();
    let is_bound = pieces.iter().any(|piece| matches!(piece, TrialPiece::Name(_)));
    let (pieces, end) = placeholder::request_pieces(&written);
    let is_drawn = pieces.iter().any(|piece| matches!(piece, RequestPiece::Field(..)));
    let written: String =
        pieces.iter().map(|piece| if let RequestPiece::Text(text) = piece { text.as_ref() } else { "" }).collect();
    let written = written.trim();
    let is_scheme = SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(written));
    end.is_ok() && (is_bound || is_drawn) && (is_scheme || !written.contains(char::is_alphanumeric))
}

/// A secret value, and the parts of it that are secrets by themselves: after a scheme, in Base64, in a cookie.
fn credentials(value: &str) -> Vec<String> {
    let value = value.trim();
    let mut all = vec![value.to_owned()];
    if let Some((scheme, rest)) = value.split_once(' ')
        && SCHEMES.iter().any(|one| one.eq_ignore_ascii_case(scheme))
    {
        // Some leave the padding out.
        all.push(rest.trim().trim_end_matches('=').to_owned());
        let decoded = BASE64_STANDARD.decode(rest.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        all.extend(decoded.as_deref().and_then(|text| text.split_once(':')).map(|(_, password)| password.to_owned()));
    }
    all.extend(value.split(';').filter_map(|cookie| Some(cookie.split_once('=')?.1.trim().to_owned())));
    all.extend(parts(value, &find_in_text(value)));
    // In a block, each line is printed by itself.
    all.extend(value.lines().map(|line| line.trim().to_owned()));
    all
}

/// The texts at these places. A user before a password is no secret where it stands alone.
fn parts(text: &str, places: &[Range<usize>]) -> Vec<String> {
    let mut parts = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let is_user =
            text[place.end..].starts_with(':') && places.get(at + 1).is_some_and(|next| next.start == place.end + 1);
        match (is_user, places.get(at + 1)) {
            (true, Some(password)) => parts.push(text[place.start..password.end].to_owned()),
            _ => parts.extend(credentials_of_part(&text[place.clone()])),
        }
    }
    parts
}

fn credentials_of_part(part: &str) -> Vec<String> {
    match part.split_once(' ') {
        Some((_, rest)) => vec![part.to_owned(), rest.trim().to_owned()],
        None => vec![part.to_owned()],
    }
}

/// Bytes of a text by its characters, in which the parser counts.
enum Offsets {
    /// As many as characters.
    Same(usize),
    Of(Vec<usize>),
}

impl Offsets {
    fn of(text: &str) -> Self {
        if text.is_ascii() {
            return Self::Same(text.len());
        }
        Self::Of(text.char_indices().map(|(at, _)| at).chain([text.len()]).collect())
    }

    fn byte(&self, character: usize) -> usize {
        match self {
            Self::Same(length) => character.min(*length),
            Self::Of(offsets) => offsets.get(character).or(offsets.last()).copied().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::mistake::Report;
    use crate::experiment::tree;

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
            root.map(|root| keys(&root)).ok_or_else(|| format!("{:?} in\n{source}", report.into_mistakes()))
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
}
