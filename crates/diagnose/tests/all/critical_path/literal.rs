//! The constants of a JavaScript module, as far as Jaeger's test cases go: objects, lists, texts, numbers, sums of
//! numbers and names of other constants; JSON files that are imported. What else a module holds is passed over.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

/// The constants of a module in `folder`, by name.
pub(crate) fn constants(module: &str, folder: &Path) -> BTreeMap<String, Value> {
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    let module = without_comments(module);
    for statement in module.split(';') {
        let words: Vec<&str> = statement.split_whitespace().collect();
        match words.as_slice() {
            ["import", name, "from", file] if file.contains(".json") => {
                let json = std::fs::read(folder.join(file.trim_matches('\''))).expect("an imported file");
                known.insert((*name).to_owned(), serde_json::from_slice(&json).unwrap());
            }
            ["const", name, "=", ..] => {
                let text = statement.split_once('=').map_or("", |(_, text)| text);
                if let Some(value) = (Reader { rest: text, known: &known }).sum() {
                    known.insert((*name).to_owned(), value);
                }
            }
            _ => {}
        }
    }
    known
}

fn without_comments(module: &str) -> String {
    let mut kept = String::new();
    let mut rest = module;
    while let Some((before, after)) = rest.split_once("/*") {
        kept += before;
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    kept += rest;
    kept.lines().filter(|line| !line.starts_with("//")).map(|line| format!("{line}\n")).collect()
}

struct Reader<'a> {
    rest: &'a str,
    known: &'a BTreeMap<String, Value>,
}

impl Reader<'_> {
    fn eat(&mut self, token: char) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn sum(&mut self) -> Option<Value> {
        let mut value = self.value()?;
        while self.eat('+') {
            value = json!(value.as_i64()? + self.value()?.as_i64()?);
        }
        Some(value)
    }

    fn value(&mut self) -> Option<Value> {
        if self.eat('[') {
            let mut list = Vec::new();
            while !self.eat(']') {
                list.push(self.sum()?);
                self.eat(',');
            }
            return Some(Value::Array(list));
        }
        if self.eat('{') {
            let mut object = Map::new();
            while !self.eat('}') {
                let name = self.word()?;
                self.eat(':').then_some(())?;
                object.insert(name, self.sum()?);
                self.eat(',');
            }
            return Some(Value::Object(object));
        }
        if self.eat('\'') {
            let (text, rest) = self.rest.split_once('\'')?;
            self.rest = rest;
            return Some(json!(text));
        }
        let word = self.word()?;
        word.parse::<i64>().map(|number| json!(number)).ok().or_else(|| self.known.get(&word).cloned())
    }

    fn word(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then(|| word.to_owned())
    }
}

#[test]
fn constants_are_read() {
    let module = "import x from '../x';\n/* a */\nconst start = 40;\n// b\nconst trace = { id: 'a-b', at: [start + 2, 7,], };\n\
                  const other = f(trace);\nexport default other;\n";
    let known = constants(module, Path::new("."));
    assert_eq!(known.keys().collect::<Vec<_>>(), ["start", "trace"]);
    assert_eq!(known["trace"], json!({"id": "a-b", "at": [42, 7]}));
}
