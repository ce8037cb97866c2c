//! The shape of a MongoDB command: the command as JSON without its values, or what the driver reports of it.
//!
//! Java reports the whole command, Node.js the filter or the documents alone, Python the command and the collection alone.
//! Where the text does not name the command, the span's operation and collection stand before it. A text without a
//! filter does not show the values that it selects by.

use super::json::{Body, Place, is_zero};
use super::{Effect, Language, Portion, Shape, Statement};

pub(super) const LANGUAGE: Language = Language { systems: &["mongodb"], shape };

const READS: &[&str] = &["aggregate", "count", "distinct", "find", "getMore"];
const WRITES: &[&str] =
    &["bulkWrite", "delete", "findAndModify", "findandmodify", "insert", "remove", "replace", "update", "upsert"];
const STEERS: &[&str] = &[
    "abortTransaction",
    "buildInfo",
    "commitTransaction",
    "endSessions",
    "hello",
    "isMaster",
    "ismaster",
    "killCursors",
    "ping",
    "saslContinue",
    "saslStart",
];
/// Keys whose lists hold keys, or documents to write. Documents may also come without a key.
const BATCHES: &[&str] = &["$in", "deletes", "documents", "updates", ""];

fn shape(statement: &Statement<'_>) -> Shape {
    let at = statement.text.find(['{', '[']).unwrap_or(statement.text.len());
    let (words, json) = statement.text.split_at(at);
    let body = Body::read(json, is_name);
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_named = body.keys.first().is_some_and(|key| effect_of(key) != Effect::Unknown);
    let prefix = match () {
        () if is_named => String::new(),
        () if words.is_empty() => statement.target(),
        () => words,
    };
    let first_word = || prefix.split(' ').next().unwrap_or("").to_owned();
    let command = body.keys.first().filter(|_| is_named).cloned().unwrap_or_else(first_word);
    let lists = body.lists.iter().filter(|list| BATCHES.contains(&list.key.as_str()));
    let values_max = lists.map(|list| list.length).max().unwrap_or(0);
    let portion = match () {
        () if is_page(&command, &body, json) => Portion::Page,
        () if values_max > 1 => Portion::Batch,
        () => Portion::Selected,
    };
    let effect = effect_of(&command);
    let hidden = usize::from(json.is_empty() && effect != Effect::Steer);
    let text = [prefix, body.text].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    Shape {
        text,
        literals: body.literals,
        placeholders: body.placeholders + hidden,
        values_max,
        effect,
        portion,
        sql_words: None,
    }
}

/// The collection is the value of the command's first key.
fn is_name(place: Place<'_>) -> bool {
    let is_command = place.position == 0 && effect_of(place.key) != Effect::Unknown && place.key != "getMore";
    place.depth == 1 && (is_command || place.key == "collection")
}

fn effect_of(command: &str) -> Effect {
    match () {
        () if READS.contains(&command) => Effect::Read,
        () if WRITES.contains(&command) => Effect::Write,
        () if STEERS.contains(&command) => Effect::Steer,
        () => Effect::Unknown,
    }
}

/// True if it goes on from a cursor, skips what came before, or reads on past the last key in order.
fn is_page(command: &str, body: &Body, json: &str) -> bool {
    let skips = body.has("skip") && !is_zero(json, "skip");
    let is_past_a_key = ["\"$gt\":?", "\"$lt\":?"].iter().any(|sign| body.text.contains(sign));
    command == "getMore" || body.has("sort") && (skips || body.has("limit") && is_past_a_key)
}

#[cfg(test)]
mod tests {
    use super::super::tests::shape_of;
    use super::*;

    #[test]
    fn commands_have_one_shape_whatever_their_values() {
        let cases = [
            (r#"{"find":"users","filter":{"_id":"?"},"limit":1}"#, r#"{"find":"users","filter":{"_id":?},"limit":?}"#),
            (
                r#"{"find": "users", "filter": {"_id": {"$oid": "5f"}}, "$db": "shop"}"#,
                r#"{"find":"users","filter":{"_id":{"$oid":?}},"$db":?}"#,
            ),
            (r#"{"getMore":77,"collection":"users"}"#, r#"{"getMore":?,"collection":"users"}"#),
            ("find users", "find users"),
            ("find users {'_id': ObjectId('5f')}", r#"find users {"_id":?}"#),
        ];
        for (text, expected) in cases {
            assert_eq!(shape_of("mongodb", text).text, expected, "of {text}");
            assert_eq!(shape_of("mongodb", expected).text, expected, "a shape is its own");
        }
    }

    #[test]
    fn a_filter_alone_gets_its_operation_and_collection() {
        let statement = Statement {
            text: r#"{"_id":"?"}"#,
            system: Some("mongodb"),
            operation: Some("find"),
            collection: Some("users"),
        };
        let shape = Shape::of(&statement);
        assert_eq!((shape.text.as_str(), shape.effect), (r#"find users {"_id":?}"#, Effect::Read));
        assert_eq!((shape.literals, shape.placeholders), (0, 1));
        assert_eq!(shape_of("mongodb", "find users").placeholders, 1, "its filter is not shown");
    }

    #[test]
    fn batches_pages_and_writes_are_distinguished() {
        let of = |text: &str| {
            let shape = shape_of("mongodb", text);
            (shape.effect, shape.portion)
        };
        let cases = [
            (r#"{"find":"u","filter":{"_id":{"$in":[1,2]}}}"#, (Effect::Read, Portion::Batch)),
            (r#"{"find":"u","filter":{"loc":{"$near":[1.5,2.5]}}}"#, (Effect::Read, Portion::Selected)),
            (r#"{"insert":"u","documents":[{"a":1},{"a":2}]}"#, (Effect::Write, Portion::Batch)),
            (r#"{"insert":"u","documents":[{"a":1}]}"#, (Effect::Write, Portion::Selected)),
            (r#"{"find":"u","filter":{},"sort":{"a":1},"skip":20}"#, (Effect::Read, Portion::Page)),
            (r#"{"find":"u","filter":{"b":1},"sort":{"a":1},"skip":0,"limit":1}"#, (Effect::Read, Portion::Selected)),
            (r#"{"find":"u","filter":{"a":{"$gt":9}},"sort":{"a":1},"limit":5}"#, (Effect::Read, Portion::Page)),
            (r#"{"getMore":7,"collection":"u"}"#, (Effect::Read, Portion::Page)),
            (r#"{"ping":1}"#, (Effect::Steer, Portion::Selected)),
        ];
        for (text, expected) in cases {
            assert_eq!(of(text), expected, "of {text}");
        }
    }
}
