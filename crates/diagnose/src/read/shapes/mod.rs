//! The shape of a statement, in its store's language: its text without the values.
//!
//! One file for each language, and one entry in [`LANGUAGES`]; a store without an entry speaks SQL or something like it.
//! To add a language: its file, its `mod` line, its entry. Nothing here fails: what cannot be read stays as it is.

mod elasticsearch;
mod json;
mod mongodb;
mod redis;

use std::collections::HashSet;

use narrows_model::trace::Span;

use crate::read::sql_shape::SqlShape;

/// A statement as a span reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Statement<'a> {
    /// Its text, or its summary.
    pub(crate) text: &'a str,
    /// `db.system.name`.
    system: Option<&'a str>,
    /// `db.operation.name`.
    operation: Option<&'a str>,
    /// `db.collection.name`.
    collection: Option<&'a str>,
}

impl<'a> Statement<'a> {
    /// The statement of a span whose text or summary this is.
    pub(crate) fn of(span: &'a Span, text: &'a str) -> Self {
        let facts = &span.facts;
        let (system, operation) = (facts.db_system.as_deref(), facts.db_operation.as_deref());
        Self { text, system, operation, collection: facts.db_collection.as_deref() }
    }

    /// `search orders`: what the text of a body leaves out.
    fn target(&self) -> String {
        self.operation.into_iter().chain(self.collection).collect::<Vec<_>>().join(" ")
    }
}

/// The effect of a statement on the stored data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Effect {
    /// It reads, and nothing else.
    Read,
    /// It changes something.
    Write,
    /// It only steers the connection or the transaction, or checks whether the store is there.
    Steer,
    /// It cannot be told.
    #[default]
    Unknown,
}

/// The portion of the rows, documents or keys that a statement addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Portion {
    /// Those that its values select.
    #[default]
    Selected,
    /// Several at once, each by its own value.
    Batch,
    /// Those after where an earlier statement stopped.
    Page,
}

/// A statement without its values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shape {
    /// The statement with `?` for every value.
    pub(crate) text: String,
    /// Number of literal values in the statement.
    pub(crate) literals: usize,
    /// Number of placeholders and of hidden values in the statement.
    pub(crate) placeholders: usize,
    /// The longest list of keys, and the largest number of rows or documents to write; 0 without either.
    pub(crate) values_max: usize,
    /// The effect of the statement.
    pub(crate) effect: Effect,
    /// The portion that the statement addresses.
    portion: Portion,
    /// Of a statement in SQL, its keywords and names without quotes, in capitals; none in another language.
    sql_words: Option<HashSet<String>>,
}

/// A language of statements.
struct Language {
    /// The systems that speak it, by `db.system.name`.
    systems: &'static [&'static str],
    /// The shape of a statement in it.
    shape: fn(&Statement<'_>) -> Shape,
}

/// Every language beside SQL.
const LANGUAGES: &[Language] = &[elasticsearch::LANGUAGE, mongodb::LANGUAGE, redis::LANGUAGE];

impl Shape {
    /// The shape of a statement in the language of its system.
    pub(crate) fn of(statement: &Statement<'_>) -> Self {
        let speaks = |system| LANGUAGES.iter().find(|language| language.systems.contains(&system));
        match statement.system.and_then(speaks) {
            Some(language) => (language.shape)(statement),
            None => Self::of_sql(statement.text),
        }
    }

    /// The shape of a statement in SQL.
    pub(crate) fn of_sql(text: &str) -> Self {
        let shape = SqlShape::parse(text);
        let effect = match () {
            () if shape.is_housekeeping() => Effect::Steer,
            () if shape.is_write() => Effect::Write,
            () => Effect::Unknown,
        };
        let portion = match () {
            () if shape.is_page() => Portion::Page,
            () if shape.is_batch() => Portion::Batch,
            () => Portion::Selected,
        };
        let SqlShape { text, literals, placeholders, values_max, words, .. } = shape;
        Self { text, literals, placeholders, values_max, effect, portion, sql_words: Some(words) }
    }

    /// True if the statement has any value in it, written out or bound.
    pub(crate) fn has_values(&self) -> bool {
        self.literals + self.placeholders > 0
    }

    /// True if it is about several rows at once, each by its own key, or writes several.
    pub(crate) fn is_batch(&self) -> bool {
        self.portion == Portion::Batch
    }

    /// True if it reads on where an earlier statement stopped.
    pub(crate) fn is_page(&self) -> bool {
        self.portion == Portion::Page
    }

    /// True if it changes stored data.
    pub(crate) fn is_write(&self) -> bool {
        self.effect == Effect::Write
    }

    /// True if it only steers the connection or the transaction, or checks whether the store is there.
    pub(crate) fn is_housekeeping(&self) -> bool {
        self.effect == Effect::Steer
    }

    /// True if it is in SQL.
    pub(crate) fn is_sql(&self) -> bool {
        self.sql_words.is_some()
    }

    /// True if it is in SQL and has a keyword or a name without quotes, given in capitals.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.sql_words.as_ref().is_some_and(|words| words.contains(word))
    }

    /// True if it is in SQL and any keyword or name without quotes, in capitals, begins like this.
    pub(crate) fn has_word_from(&self, start: &str) -> bool {
        self.sql_words.as_ref().is_some_and(|words| words.iter().any(|word| word.starts_with(start)))
    }

    /// Its first word in capitals; empty when it begins with something else.
    pub(crate) fn first_word(&self) -> String {
        let word: String = self.text.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
        word.to_ascii_uppercase()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The shape of a statement that a span of this system reports, without more.
    pub(super) fn shape_of(system: &str, text: &str) -> Shape {
        Shape::of(&Statement { text, system: Some(system), operation: None, collection: None })
    }

    #[test]
    fn each_language_has_its_file_and_its_systems() {
        const THIS: &str = include_str!("mod.rs");
        let files = THIS.lines().filter(|line| line.starts_with("mod ") && *line != "mod json;").count();
        assert_eq!(files - 1, LANGUAGES.len(), "the tests are a module too");
        let mut systems: Vec<&str> = LANGUAGES.iter().flat_map(|language| language.systems).copied().collect();
        let all = systems.len();
        systems.sort_unstable();
        systems.dedup();
        assert_eq!(systems.len(), all, "a system speaks one language");
    }

    #[test]
    fn the_system_decides_the_language() {
        assert_eq!(shape_of("redis", "get authors:1").text, "GET authors:?");
        assert_eq!(shape_of("postgresql", "SELECT a FROM t WHERE b = 1").text, "SELECT a FROM t WHERE b = ?");
        assert!(shape_of("postgresql", "SELECT a FROM t").is_sql() && !shape_of("redis", "GET a").is_sql());
        assert!(shape_of("postgresql", "SET search_path TO a").is_housekeeping());
        assert!(shape_of("redis", "SET a b").is_write(), "the same word in another language");
    }

    proptest! {
        #[test]
        fn any_text_has_a_shape_in_any_language(text in any::<String>(), system in 0_usize..LANGUAGES.len()) {
            let shape = shape_of(LANGUAGES[system].systems[0], &text);
            prop_assert!(!shape.is_sql());
        }

        #[test]
        fn ids_do_not_change_a_shape(one in 0_u32.., two in 0_u32..) {
            let get = |id: u32| shape_of("redis", &format!("GET user:{id}:cart"));
            prop_assert_eq!(get(one), get(two));
            let find = |id: u32| shape_of("mongodb", &format!("{{\"find\":\"users\",\"filter\":{{\"_id\":{id}}}}}"));
            prop_assert_eq!(find(one), find(two));
        }
    }
}
