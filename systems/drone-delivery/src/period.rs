//! Subject of every call: an owner and a month. All errors are reported at once.

use axum::extract::Query;
use axum::http::{StatusCode, Uri};
use serde_json::json;

use narrows_serving::problem::Problem;

/// The longest owner id, in bytes.
const OWNER_BYTES_MAX: usize = 255;
const YEAR_MAX: u32 = 9_999;

/// An owner's month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) owner: String,
    /// From 1 to 9999.
    pub(crate) year: u32,
    /// From 1 to 12.
    pub(crate) month: u32,
}

impl Period {
    /// Reads `ownerId`, `year` and `month` from a query. Other parameters are left alone.
    pub(crate) fn from_uri(uri: &Uri) -> Result<Self, Problem> {
        let given = Query::<Vec<(String, String)>>::try_from_uri(uri).map(|Query(pairs)| pairs).unwrap_or_default();
        let mut mistakes = Mistakes::default();
        let owner = owner(&given, &mut mistakes);
        let year = number(&given, "year", YEAR_MAX, &mut mistakes);
        let month = number(&given, "month", 12, &mut mistakes);
        match (owner, year, month) {
            (Some(owner), Some(year), Some(month)) => Ok(Self { owner: owner.to_owned(), year, month }),
            _ => Err(mistakes.into_problem()),
        }
    }

    /// The same as parameters for the next hop.
    pub(crate) fn parameters(&self) -> [(&'static str, String); 3] {
        [("ownerId", self.owner.clone()), ("year", self.year.to_string()), ("month", self.month.to_string())]
    }
}

#[derive(Default)]
struct Mistakes(Vec<(&'static str, String)>);

impl Mistakes {
    fn add(&mut self, name: &'static str, found: Option<&str>, expected: &str) {
        let found = found.map_or_else(|| "is missing".to_owned(), |value| format!("is {value:?}"));
        self.0.push((name, format!("{name} {found}, expected {expected}")));
    }

    fn into_problem(self) -> Problem {
        let (names, details): (Vec<&str>, Vec<String>) = self.0.into_iter().unzip();
        Problem::new(StatusCode::BAD_REQUEST, &details.join("; ")).with("parameter", json!(names))
    }
}

fn owner<'a>(given: &'a [(String, String)], mistakes: &mut Mistakes) -> Option<&'a str> {
    let value = only(given, "ownerId", mistakes)?;
    if value.is_empty() || value.len() > OWNER_BYTES_MAX {
        let shown = value.get(..OWNER_BYTES_MAX.min(value.len())).unwrap_or("…");
        mistakes.add("ownerId", Some(shown), &format!("1 to {OWNER_BYTES_MAX} bytes"));
        return None;
    }
    Some(value)
}

fn number(given: &[(String, String)], name: &'static str, max: u32, mistakes: &mut Mistakes) -> Option<u32> {
    let value = only(given, name, mistakes)?;
    let number = value.parse().ok().filter(|number| (1..=max).contains(number));
    if number.is_none() {
        let shown: String = value.chars().take(32).collect();
        mistakes.add(name, Some(&shown), &format!("a whole number from 1 to {max}"));
    }
    number
}

/// The one value of `name`. Two values would be read differently from hop to hop, so they are a mistake.
fn only<'a>(given: &'a [(String, String)], name: &'static str, mistakes: &mut Mistakes) -> Option<&'a str> {
    let mut values = given.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value),
        (None, _) => {
            mistakes.add(name, None, "one value");
            None
        }
        (Some(_), Some(second)) => {
            mistakes.add(name, Some(&second.chars().take(32).collect::<String>()), "one value, not two");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Period, String> {
        let uri: Uri = format!("/x{query}").parse().unwrap();
        Period::from_uri(&uri).map_err(|problem| format!("{problem:?}"))
    }

    #[test]
    fn an_owner_and_a_month_are_read() {
        let period = Period { owner: "o 7".to_owned(), year: 2021, month: 12 };
        assert_eq!(read("?ownerId=o%207&year=2021&month=12&more=1"), Ok(period));
    }

    #[test]
    fn every_mistake_is_reported() {
        let long = format!("?year=1&month=1&ownerId={}", "x".repeat(256));
        for (query, told) in [
            ("", vec!["ownerId is missing", "year is missing", "month is missing"]),
            ("?ownerId=&year=2021&month=1", vec!["ownerId is \\\"\\\""]),
            ("?ownerId=o1&year=x&month=13", vec!["year is \\\"x\\\"", "month is \\\"13\\\"", "from 1 to 12"]),
            ("?ownerId=o1&year=0&month=-1", vec!["year is \\\"0\\\"", "month is \\\"-1\\\""]),
            ("?ownerId=o1&year=99999999999&month=1.5", vec!["year is", "month is"]),
            ("?ownerId=o1&year=2021&month=1&month=2", vec!["not two"]),
            (&long, vec!["1 to 255 bytes"]),
        ] {
            let problem = read(query).unwrap_err();
            assert!(told.iter().all(|part| problem.contains(part)), "{query}: {problem}");
        }
    }
}
