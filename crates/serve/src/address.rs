//! Addresses of pages: paths with names of runs, and what stands behind `?`.

use std::collections::BTreeMap;

use form_urlencoded::{Serializer, byte_serialize, parse};

/// Parameters of an address, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Parameters(BTreeMap<String, Vec<String>>);

impl Parameters {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in parse(query.unwrap_or_default().as_bytes()).filter(|(_, value)| !value.is_empty()) {
            all.entry(name.into_owned()).or_default().push(value.into_owned());
        }
        Self(all)
    }

    /// The last value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.last().map(String::as_str)
    }

    /// All values of a parameter.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// The same with another value; without the parameter if that is empty.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut all = self.0.clone();
        match value {
            "" => all.remove(name),
            value => all.insert(name.to_owned(), vec![value.to_owned()]),
        };
        Self(all)
    }

    /// A path with these parameters behind it.
    pub(crate) fn behind(&self, path: &str) -> String {
        let mut text = Serializer::new(String::new());
        for (name, values) in &self.0 {
            values.iter().for_each(|value| _ = text.append_pair(name, value));
        }
        match text.finish() {
            query if query.is_empty() => path.to_owned(),
            query => format!("{path}?{query}"),
        }
    }
}

/// The path of a run's page, and of one below it.
pub(crate) fn run(name: &str, below: &str) -> String {
    format!("/runs/{}{below}", segment(name))
}

/// A text as a segment of a path.
pub(crate) fn segment(text: &str) -> String {
    byte_serialize(text.as_bytes()).map(|part| if part == "+" { "%20" } else { part }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_back() {
        let read = Parameters::parse(Some("b=2&a=x+y%26&b=3&c="));
        assert_eq!((read.get("a"), read.get("b"), read.get("c")), (Some("x y&"), Some("3"), None));
        assert_eq!(read.all("b"), ["2", "3"]);
        assert_eq!(read.with("b", "").behind("/p"), "/p?a=x+y%26");
        assert_eq!(read.with("a", "").with("b", "").behind("/p"), "/p");
        assert_eq!(run("a b/c+?", "/traces"), "/runs/a%20b%2Fc%2B%3F/traces");
    }
}
