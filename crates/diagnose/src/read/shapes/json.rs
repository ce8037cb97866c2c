//! JSON bodies without their values: keys stay, what they hold becomes `?`.
//!
//! A scanner, not a parser: bodies arrive cut off, and in the dialects of shells and languages (keys without quotes,
//! single quotes, `ObjectId('…')`). A list of alike elements becomes one of them and a `+`, whatever its length, as the
//! values of an `IN` in SQL do. What is nested deeper than a limit counts as a value.

/// Maximum depth of nested objects and lists.
const DEPTH_MAX: usize = 32;

/// Bodies without values.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// The text with `?` for every value: different documents, each once, one on each line.
    pub(super) text: String,
    /// Number of documents.
    pub(super) documents: usize,
    /// Number of values that are written out.
    pub(super) literals: usize,
    /// Number of values that were already left out.
    pub(super) placeholders: usize,
    /// The keys of the outermost object, in order.
    pub(super) keys: Vec<String>,
    /// The lists of alike elements.
    pub(super) lists: Vec<List>,
}

/// A list of alike elements.
#[derive(Debug)]
pub(super) struct List {
    /// The key of what holds it.
    pub(super) parent: String,
    /// Its key.
    pub(super) key: String,
    /// Its elements, at least one.
    pub(super) length: usize,
}

/// Position of a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'p> {
    /// The key of what holds it; empty outside.
    parent: &'p str,
    /// Its key; empty for a document.
    pub(super) key: &'p str,
    /// Objects and lists around it.
    pub(super) depth: usize,
    /// Index of the field in its object, from 0.
    pub(super) position: usize,
}

impl Body {
    /// Reads bodies; `keeps` says where a value is a name and stays.
    pub(super) fn read(text: &str, keeps: fn(Place<'_>) -> bool) -> Self {
        let mut scanner = Scanner { chars: text.chars().collect(), at: 0, body: Body::default(), keeps };
        let mut documents: Vec<String> = Vec::new();
        loop {
            scanner.skip(|c| c.is_whitespace());
            if scanner.peek().is_none() {
                break;
            }
            let document = scanner.value(Place { parent: "", key: "", depth: 0, position: 0 });
            scanner.body.documents += 1;
            if !documents.contains(&document) {
                documents.push(document);
            }
        }
        Body { text: documents.join("\n"), ..scanner.body }
    }

    /// True if the outermost object has a key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|known| known == key)
    }
}

/// True if a body says that this key is 0.
pub(super) fn is_zero(text: &str, key: &str) -> bool {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    ["0,", "0}"].iter().any(|end| compact.contains(&format!("\"{key}\":{end}")))
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    body: Body,
    keeps: fn(Place<'_>) -> bool,
}

impl Scanner {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&is_skipped) {
            self.at += 1;
        }
    }

    /// Consumes at least one character, unless none is left.
    fn value(&mut self, place: Place<'_>) -> String {
        self.skip(|c| c.is_whitespace());
        match self.peek() {
            Some('{') if place.depth < DEPTH_MAX => self.object(place),
            Some('[') if place.depth < DEPTH_MAX => self.list(place),
            Some(quote @ ('"' | '\'')) => {
                let text = self.quoted(quote);
                self.leaf(&text, place)
            }
            Some(_) => {
                let text = self.bare();
                self.leaf(&text, place)
            }
            None => String::new(),
        }
    }

    fn object(&mut self, place: Place<'_>) -> String {
        self.at += 1;
        let mut fields: Vec<String> = Vec::new();
        loop {
            self.skip(|c| c.is_whitespace() || c == ',');
            match self.peek() {
                None => break,
                Some('}') => {
                    self.at += 1;
                    break;
                }
                Some(_) => {}
            }
            let key = self.key();
            self.skip(|c| c.is_whitespace() || c == ':');
            let inner = Place { parent: place.key, key: &key, depth: place.depth + 1, position: fields.len() };
            let value = self.value(inner);
            fields.push(format!("\"{key}\":{value}"));
            if place.depth == 0 {
                self.body.keys.push(key);
            }
        }
        format!("{{{}}}", fields.join(","))
    }

    fn list(&mut self, place: Place<'_>) -> String {
        self.at += 1;
        let mut elements: Vec<String> = Vec::new();
        loop {
            self.skip(|c| c.is_whitespace() || c == ',' || c == '+');
            match self.peek() {
                None => break,
                Some(']') => {
                    self.at += 1;
                    break;
                }
                Some(_) => elements.push(self.value(Place { depth: place.depth + 1, position: 0, ..place })),
            }
        }
        match elements.first() {
            Some(first) if elements.iter().all(|element| element == first) => {
                let (parent, key) = (place.parent.to_owned(), place.key.to_owned());
                self.body.lists.push(List { parent, key, length: elements.len() });
                format!("[{first}+]")
            }
            _ => format!("[{}]", elements.join(",")),
        }
    }

    /// Consumes at least one character.
    fn key(&mut self) -> String {
        match self.peek() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote),
            _ => {
                let from = self.at;
                self.at += 1;
                self.skip(|c| !c.is_whitespace() && !matches!(c, ':' | ',' | '{' | '}' | '[' | ']'));
                self.chars[from..self.at].iter().collect()
            }
        }
    }

    /// The text between two quotes, or up to the end of a truncated text.
    fn quoted(&mut self, quote: char) -> String {
        self.at += 1;
        let from = self.at;
        while let Some(c) = self.peek().filter(|c| *c != quote) {
            self.at += if c == '\\' { 2 } else { 1 };
        }
        let to = self.at.min(self.chars.len());
        self.at = to + 1;
        self.chars[from..to].iter().collect()
    }

    /// A number, a word, or a call such as `ObjectId('…')`. Consumes at least one character.
    fn bare(&mut self) -> String {
        let from = self.at;
        let mut open = 0_usize;
        self.at += 1;
        while let Some(c) = self.peek() {
            match c {
                '(' => open += 1,
                ')' => open = open.saturating_sub(1),
                ',' | '}' | ']' | '\n' if open == 0 => break,
                _ => {}
            }
            self.at += 1;
        }
        self.chars[from..self.at].iter().collect()
    }

    fn leaf(&mut self, text: &str, place: Place<'_>) -> String {
        if (self.keeps)(place) {
            return format!("\"{text}\"");
        }
        if text.starts_with('?') {
            self.body.placeholders += 1;
        } else {
            self.body.literals += 1;
        }
        "?".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn masked(text: &str) -> String {
        Body::read(text, |_| false).text
    }

    #[test]
    fn keys_stay_and_values_go() {
        let cases = [
            (r#"{"query":{"term":{"user.id":"kimchy"}},"size":10}"#, r#"{"query":{"term":{"user.id":?}},"size":?}"#),
            (r#"{ "_id" : { "$in" : [1, 2, 3] } }"#, r#"{"_id":{"$in":[?+]}}"#),
            ("{'_id': ObjectId('5f', 1), age: {$gt: 3}}", r#"{"_id":?,"age":{"$gt":?}}"#),
            (r#"{"documents":[{"a":1},{"a":2}]}"#, r#"{"documents":[{"a":?}+]}"#),
            (r#"{"pipeline":[{"$match":{"a":1}},{"$limit":2}]}"#, r#"{"pipeline":[{"$match":{"a":?}},{"$limit":?}]}"#),
            (r#"{"filter":{"name":"it's \"cut off"#, r#"{"filter":{"name":?}}"#),
            ("{}\n{\"a\":1}\n{}\n{\"a\":2}\n", "{}\n{\"a\":?}"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(masked(text), expected, "of {text}");
            assert_eq!(masked(expected), expected, "a shape is its own");
        }
    }

    #[test]
    fn what_is_in_a_body_is_counted() {
        let body = Body::read(r#"{"a":"?","b":[1,2],"c":{"d":null}}"#, |_| false);
        assert_eq!((body.placeholders, body.literals, body.documents), (1, 3, 1));
        assert_eq!(body.keys, ["a", "b", "c"]);
        assert_eq!((body.lists[0].key.as_str(), body.lists[0].length), ("b", 2));
        assert!(is_zero(r#"{"from": 0, "size": 5}"#, "from") && !is_zero(r#"{"from": 10}"#, "from"));
    }

    proptest! {
        #[test]
        fn any_text_has_a_shape(text in any::<String>()) {
            let body = Body::read(&text, |_| false);
            prop_assert!(body.documents <= text.chars().count());
        }

        #[test]
        fn crumbs_have_a_shape(crumbs in prop::collection::vec(prop::sample::select(CRUMBS), 0..80)) {
            let text = crumbs.concat();
            prop_assert!(Body::read(&text, |_| false).documents <= text.len());
        }
    }

    const CRUMBS: &[&str] = &["{", "}", "[", "]", ":", ",", "\"", "'", "a", "1", " ", "\n", "\\", "(", ")", "?", "+"];
}
