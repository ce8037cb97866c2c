//! The fields of a message as protobuf's JSON mapping writes them.
//!
//! Lenient where the mapping is: an absent field and `null` are the field's default, 64-bit numbers come as numbers or
//! as strings, unknown fields are passed over. More lenient in one thing, as the OpenTelemetry Collector is: an enum may
//! be written by its name, although OTLP wants the number.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Number, Value};

/// A message that can be made of JSON.
pub(in crate::otlp) trait FromJson: Sized {
    /// # Errors
    /// When a field is of another kind than the message has it.
    fn from_json(value: Value) -> Result<Self, Mistake>;
}

/// Fault of a field, after the field's path.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::otlp) struct Mistake {
    path: String,
    what: String,
}

impl Mistake {
    pub(super) fn new(expected: &str, found: &Value) -> Self {
        Self { path: String::new(), what: format!("expected {expected}, found {}", described(found)) }
    }

    fn within(mut self, name: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{name}{dot}{}", self.path);
        self
    }
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, what } = self;
        if path.is_empty() { f.write_str(what) } else { write!(f, "{path}: {what}") }
    }
}

/// A value in few words, whatever its length.
fn described(value: &Value) -> String {
    const SHOWN_CHARS_MAX: usize = 40;
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > SHOWN_CHARS_MAX => {
            format!("a string of {} bytes", text.len())
        }
        value => value.to_string(),
    }
}

/// The fields of one message; each is taken out by its name.
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    pub(super) fn from_value(value: Value) -> Result<Self, Mistake> {
        match value {
            Value::Object(map) => Ok(Self(map)),
            value => Err(Mistake::new("an object", &value)),
        }
    }

    pub(super) fn text(&mut self, name: &str) -> Result<String, Mistake> {
        Ok(self.read(name, text)?.unwrap_or_default())
    }

    /// Bytes in hexadecimal, as OTLP writes ids.
    pub(super) fn id(&mut self, name: &str) -> Result<Vec<u8>, Mistake> {
        Ok(self.read(name, id)?.unwrap_or_default())
    }

    pub(super) fn u64(&mut self, name: &str) -> Result<u64, Mistake> {
        Ok(self.read(name, unsigned)?.unwrap_or_default())
    }

    pub(super) fn u32(&mut self, name: &str) -> Result<u32, Mistake> {
        let narrow = |value: Value| {
            unsigned(value.clone())
                .ok()
                .and_then(|number| u32::try_from(number).ok())
                .ok_or_else(|| Mistake::new("a whole number from 0 to 4294967295", &value))
        };
        Ok(self.read(name, narrow)?.unwrap_or_default())
    }

    /// The number of an enum's variant, or its name, which `by_name` knows.
    pub(super) fn variant(&mut self, name: &str, by_name: impl Fn(&str) -> Option<i32>) -> Result<i32, Mistake> {
        let read = |value: Value| {
            let named = value.as_str().and_then(by_name);
            let number = || signed(value.clone()).ok().and_then(|number| i32::try_from(number).ok());
            named.or_else(number).ok_or_else(|| Mistake::new("an enum's number", &value))
        };
        Ok(self.read(name, read)?.unwrap_or_default())
    }

    pub(super) fn f64(&mut self, name: &str) -> Result<f64, Mistake> {
        Ok(self.number(name)?.unwrap_or_default())
    }

    pub(super) fn number(&mut self, name: &str) -> Result<Option<f64>, Mistake> {
        self.read(name, double)
    }

    pub(super) fn list<M: FromJson>(&mut self, name: &str) -> Result<Vec<M>, Mistake> {
        Ok(self.read(name, items)?.unwrap_or_default())
    }

    pub(super) fn message<M: FromJson>(&mut self, name: &str) -> Result<Option<M>, Mistake> {
        self.read(name, M::from_json)
    }

    /// `None` if the field is absent or `null`.
    pub(super) fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Value) -> Result<T, Mistake>,
    ) -> Result<Option<T>, Mistake> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).map_err(|mistake| mistake.within(name)),
        }
    }
}

pub(super) fn text(value: Value) -> Result<String, Mistake> {
    match value {
        Value::String(text) => Ok(text),
        value => Err(Mistake::new("a string", &value)),
    }
}

pub(super) fn boolean(value: Value) -> Result<bool, Mistake> {
    value.as_bool().ok_or_else(|| Mistake::new("true or false", &value))
}

pub(super) fn signed(value: Value) -> Result<i64, Mistake> {
    let read = match &value {
        Value::Number(number) => number.as_i64().or_else(|| whole(number, i64::MIN as f64).map(|whole| whole as i64)),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    read.ok_or_else(|| Mistake::new("a whole number of 64 bits", &value))
}

pub(super) fn unsigned(value: Value) -> Result<u64, Mistake> {
    let read = match &value {
        Value::Number(number) => number.as_u64().or_else(|| whole(number, 0.0).map(|whole| whole as u64)),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    read.ok_or_else(|| Mistake::new("a whole number of 64 bits, 0 or more", &value))
}

/// A number written with a point or an exponent, such as `1e3`, that is whole all the same. Beyond 2^63 a double no
/// longer says which number was meant.
fn whole(number: &Number, least: f64) -> Option<f64> {
    let end = -(i64::MIN as f64);
    number.as_f64().filter(|value| value.fract() == 0.0 && *value >= least && *value < end)
}

pub(super) fn double(value: Value) -> Result<f64, Mistake> {
    let read = match &value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            text => text.parse().ok().filter(|value: &f64| value.is_finite()),
        },
        _ => None,
    };
    read.ok_or_else(|| Mistake::new("a number", &value))
}

/// An id in hexadecimal, or in base64, which programs write that follow protobuf's JSON mapping (Grafana Tempo). The
/// two forms differ in length.
fn id(value: Value) -> Result<Vec<u8>, Mistake> {
    let text = value.as_str().unwrap_or("?");
    let in_base64 = || BASE64_LENGTHS.contains(&text.trim_end_matches('=').len()).then(|| base64(text)).flatten();
    let bytes = hexadecimal(text).or_else(in_base64);
    bytes.ok_or_else(|| Mistake::new("hexadecimal digits, two for each byte", &value))
}

/// Lengths of ids of 8 and 16 bytes, without padding.
const BASE64_LENGTHS: [usize; 2] = [11, 22];

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// Accepts both alphabets, padded or not, as protobuf's JSON mapping requires; the two characters of the URL-safe
/// alphabet are replaced beforehand.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text.replace('-', "+").replace('_', "/")).ok()
}

fn items<M: FromJson>(value: Value) -> Result<Vec<M>, Mistake> {
    let Value::Array(items) = value else { return Err(Mistake::new("a list", &value)) };
    let read = items
        .into_iter()
        .enumerate()
        .map(|(index, item)| M::from_json(item).map_err(|mistake| mistake.within(&format!("[{index}]"))));
    read.collect()
}
