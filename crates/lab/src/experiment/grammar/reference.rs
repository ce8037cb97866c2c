//! The tables of keys in `docs/reference/experiment.md`, written from the grammar.
//!
//! A table stands between `<!-- keys: PATH -->` and `<!-- end -->`, where `PATH` names a map of the file, such as
//! `system.services` or `load.scenarios[constant-vus]`. Keys of a map inside it are listed with it, as `stop.signal`,
//! unless that map has a table of its own, to which the row then links.

use super::shape::{Field, GivenKey, KeyForm, Map, Need, Rule, Scope, Shape, TaggedMap};
use crate::experiment::language::Language;

const BEGIN: &str = "<!-- keys: ";
const END: &str = "<!-- end -->\n";
const HEAD: &str = "| key | value | default | meaning |\n|---|---|---|---|\n";

impl Language {
    /// The page with its tables written anew.
    ///
    /// # Errors
    /// When a marker names no map of the file or is not closed, and when a map of the file has no table.
    pub fn with_tables(self, page: &str) -> Result<String, String> {
        with_tables(page, self.experiment)
    }
}

fn with_tables(page: &str, experiment: &'static Shape) -> Result<String, String> {
    let tables = tables_of(page, experiment)?;
    let mut missing = tables_needed(experiment);
    let mut text = String::new();
    let mut rest = page;
    for table in &tables {
        let marker = table.marker();
        let (before, after) = rest.split_once(&marker).ok_or_else(|| format!("no line break after {marker:?}"))?;
        let (_, after) = after.split_once(END).ok_or_else(|| format!("no {END:?} after {marker:?}"))?;
        let mut writer = Writer::of(table, &tables);
        writer.add(&table.section, "");
        missing.retain(|(_, id)| !writer.listed.contains(id));
        text += &format!("{before}{marker}{HEAD}{}", writer.rows.concat());
        if !writer.rules.is_empty() {
            text += &format!("\n{}\n", writer.rules.join(" "));
        }
        text += END;
        rest = after;
    }
    match missing.first() {
        Some((path, _)) => Err(format!("no table for `{path}`: add `{BEGIN}{path} -->` and `{}`", END.trim_end())),
        None => Ok(text + rest),
    }
}

/// A table that the page has.
struct Table {
    path: String,
    section: Section,
    /// The title of the part of the page in which it stands.
    title: String,
}

impl Table {
    fn marker(&self) -> String {
        format!("{BEGIN}{} -->\n", self.path)
    }

    fn link(&self) -> String {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
        let anchor: String = self.title.to_lowercase().chars().filter(kept).collect();
        format!("See [{}](#{}).", self.title, anchor.replace(' ', "-"))
    }
}

fn tables_of(page: &str, experiment: &'static Shape) -> Result<Vec<Table>, String> {
    let mut title = "";
    let mut tables = Vec::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix('#') {
            title = heading.trim_start_matches('#').trim();
        }
        if let Some(path) = line.strip_prefix(BEGIN).and_then(|line| line.strip_suffix(" -->")) {
            let section =
                find(path, experiment).ok_or_else(|| format!("`{path}` is not a map of the experiment file"))?;
            tables.push(Table { path: path.to_owned(), section, title: title.to_owned() });
        }
    }
    Ok(tables)
}

/// A map of the file with known keys.
#[derive(Clone)]
enum Section {
    Map(&'static Map),
    Tagged(&'static TaggedMap),
}

/// Identity of sections: their keys and what these mean. Constants have no address of their own.
type Id = Vec<(&'static str, &'static str)>;

impl Section {
    fn of(shape: &'static Shape) -> Option<Self> {
        match shape {
            Shape::Map(map) => Some(Section::Map(map)),
            Shape::Tagged(tagged) => Some(Section::Tagged(tagged)),
            Shape::Named(named) => Section::of(named.value),
            Shape::List { item, .. } => Section::of(item),
            Shape::Either(shapes) => shapes.iter().find_map(Section::of),
            Shape::Arguments(_) | Shape::Scalar(..) | Shape::Json(_) => None,
        }
    }

    /// Its keys, those of single branches left out.
    fn fields(&self) -> Vec<&'static Field> {
        match self {
            Section::Map(map) => map.fields.iter().collect(),
            Section::Tagged(tagged) => [tagged.tag].into_iter().chain(tagged.common).collect(),
        }
    }

    fn rules(&self) -> impl Iterator<Item = &'static Rule> {
        match self {
            Section::Map(map) => map.rules.iter(),
            Section::Tagged(tagged) => tagged.rules.iter(),
        }
    }

    /// The key on whose value the branches depend.
    fn tag(&self) -> &'static str {
        match self {
            Section::Map(_) => "",
            Section::Tagged(tagged) => tagged.tag.key,
        }
    }

    fn id(&self) -> Id {
        self.fields().iter().map(|field| (field.key, field.doc)).collect()
    }

    /// The sections of its branches, by name.
    fn branches(&self) -> impl Iterator<Item = (&'static str, Section)> {
        let branches = match self {
            Section::Map(_) => &[],
            Section::Tagged(tagged) => tagged.branches,
        };
        branches.iter().map(|branch| (branch.value, Section::Map(&branch.map)))
    }
}

/// All sections that a field holds, not those below them.
fn sections_in(shape: &'static Shape) -> Vec<(&'static str, Section)> {
    match shape {
        Shape::Either(shapes) => shapes.iter().flat_map(sections_in).collect(),
        Shape::List { item, .. } => sections_in(item).into_iter().map(|(_, section)| ("[]", section)).collect(),
        Shape::Named(named) => sections_in(named.value).into_iter().map(|(_, section)| (".NAME", section)).collect(),
        _ => Section::of(shape).into_iter().map(|section| ("", section)).collect(),
    }
}

fn find(path: &str, experiment: &'static Shape) -> Option<Section> {
    let mut section = Section::of(experiment)?;
    for step in path.split('.').filter(|step| *step != "experiment") {
        let (key, branch) = step.split_once('[').map_or((step, None), |(key, rest)| (key, rest.strip_suffix(']')));
        let field =
            section.fields().into_iter().find(|field| field.key == key).or_else(|| {
                section.branches().flat_map(|(_, branch)| branch.fields()).find(|field| field.key == key)
            })?;
        section = Section::of(&field.shape)?;
        if let Some(name) = branch {
            let chosen = section.branches().find(|(value, _)| *value == name)?.1;
            section = chosen;
        }
    }
    Some(section)
}

/// Every section of the file and a path of it.
fn tables_needed(experiment: &'static Shape) -> Vec<(String, Id)> {
    fn collect(section: &Section, path: &str, found: &mut Vec<(String, Id)>) {
        if found.iter().any(|(_, id)| *id == section.id()) {
            return;
        }
        found.push((path.to_owned(), section.id()));
        for field in section.fields() {
            let path = if path == "experiment" { field.key.to_owned() } else { format!("{path}.{}", field.key) };
            sections_in(&field.shape).iter().for_each(|(_, section)| collect(section, &path, found));
        }
        for (name, branch) in section.branches() {
            collect(&branch, &format!("{path}[{name}]"), found);
        }
    }
    let mut found = Vec::new();
    Section::of(experiment).iter().for_each(|section| collect(section, "experiment", &mut found));
    found
}

/// Writes the rows of one table.
struct Writer<'a> {
    tables: &'a [Table],
    /// The title of the part of the page that it writes into.
    title: &'a str,
    rows: Vec<String>,
    /// Which of these keys go together, in sentences.
    rules: Vec<String>,
    /// The sections whose keys it has.
    listed: Vec<Id>,
}

impl<'a> Writer<'a> {
    fn of(table: &'a Table, tables: &'a [Table]) -> Self {
        let listed = vec![table.section.id()];
        Self { tables, title: &table.title, rows: Vec::new(), rules: Vec::new(), listed }
    }

    fn add(&mut self, section: &Section, prefix: &str) {
        for field in section.fields() {
            self.add_field(field, prefix, "");
        }
        self.rules.extend(section.rules().map(|rule| sentence(rule, prefix)));
        self.add_branches(section, prefix);
    }

    /// Keys of branches that have no table of their own; a key of several is listed once.
    fn add_branches(&mut self, section: &Section, prefix: &str) {
        let branches: Vec<_> = section.branches().filter(|(_, branch)| self.table_of(branch).is_none()).collect();
        let mut done: Vec<&Field> = Vec::new();
        for (_, branch) in &branches {
            self.listed.push(branch.id());
            for field in branch.fields() {
                let is_same = |other: &Field| (other.key, other.doc) == (field.key, field.doc);
                if done.iter().any(|other| is_same(other)) {
                    continue;
                }
                done.push(field);
                let having = branches.iter().filter(|(_, branch)| branch.fields().into_iter().any(is_same));
                let names = joined(having.map(|(name, _)| format!("`{name}`")), "or");
                self.add_field(field, prefix, &format!(" With `{}` {names}.", section.tag()));
            }
        }
    }

    fn add_field(&mut self, field: &'static Field, prefix: &str, remark: &str) {
        let sections = sections_in(&field.shape);
        let mut meaning = format!("{}{remark}", field.doc);
        if let Need::OptionalBeside(keys) = field.need {
            meaning += &format!(" Only with {}.", joined(keys.iter().map(|key| format!("`{key}`")), "or"));
        }
        let mut links: Vec<String> = sections.iter().filter_map(|(_, section)| self.link(section)).collect();
        links.dedup();
        links.iter().for_each(|link| meaning += &format!(" {link}"));
        let literal = if is_literal(&field.shape) { ", literal" } else { "" };
        let value = escaped(&value(&field.shape));
        let row = format!(
            "| `{prefix}{}` | {value}{literal} | {}| {} |\n",
            field.key,
            default(field.need),
            escaped(&meaning)
        );
        self.rows.push(row);
        for (step, section) in sections {
            if self.table_of(&section).is_none() && !self.listed.contains(&section.id()) {
                self.listed.push(section.id());
                self.add(&section, &format!("{prefix}{}{step}.", field.key));
            }
        }
    }

    /// A link to a section's table in another part of the page.
    fn link(&self, section: &Section) -> Option<String> {
        self.table_of(section).filter(|table| table.title != self.title).map(Table::link)
    }

    fn table_of(&self, section: &Section) -> Option<&Table> {
        self.tables.iter().find(|table| table.section.id() == section.id())
    }
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

/// With a space behind it.
fn default(need: Need) -> String {
    match need {
        Need::Required => "required ".to_owned(),
        Need::Default(yaml) => format!("`{yaml}` "),
        Need::Optional | Need::OptionalBeside(_) => String::new(),
    }
}

/// Description of a value in a few words.
fn value(shape: &Shape) -> String {
    match shape {
        Shape::Map(_) | Shape::Tagged(_) => "map".to_owned(),
        Shape::Named(named) => format!("map from {} to {}", named.what, value(named.value)),
        Shape::List { item, .. } => {
            format!("list of {}", joined(alternatives(item).iter().map(|name| plural(name)), "or"))
        }
        Shape::Arguments(_) => "command".to_owned(),
        Shape::Either(_) => joined(alternatives(shape).into_iter(), "or"),
        Shape::Scalar(kind, _) => kind.name(),
        Shape::Json(_) => "any value".to_owned(),
    }
}

/// Choices of a value.
fn alternatives(shape: &Shape) -> Vec<String> {
    match shape {
        Shape::Either(shapes) => shapes.iter().map(|shape| value(shape).replace(" or ", ", ")).collect(),
        _ => vec![value(shape)],
    }
}

fn plural(name: &str) -> String {
    match name.chars().last() {
        Some('s') => format!("{name}es"),
        Some(last) if last.is_alphabetic() => format!("{name}s"),
        _ => name.to_owned(),
    }
}

/// `a`, `a or b`, `a, b or c`.
fn joined(all: impl Iterator<Item = String>, word: &str) -> String {
    let all: Vec<String> = all.collect();
    match all.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} {word} {last}", before.join(", ")),
        None => String::new(),
    }
}

/// Whether nothing is replaced in a value, nor in any below it.
fn is_literal(shape: &Shape) -> bool {
    match shape {
        Shape::Map(map) => are_literal(map),
        Shape::Tagged(tagged) => {
            let common = tagged.common.iter().all(|field| is_literal(&field.shape));
            common && tagged.branches.iter().all(|branch| are_literal(&branch.map))
        }
        Shape::Named(named) => is_literal(named.value),
        Shape::List { item, .. } => is_literal(item),
        Shape::Either(shapes) => shapes.iter().all(is_literal),
        Shape::Arguments(scope) | Shape::Scalar(_, scope) | Shape::Json(scope) => *scope == Scope::Literal,
    }
}

fn are_literal(map: &Map) -> bool {
    map.fields.iter().all(|field| is_literal(&field.shape)) && map.others.is_none_or(is_literal)
}

/// A rule in words, about keys that stand in the table with a prefix.
fn sentence(rule: &Rule, prefix: &str) -> String {
    let quoted = |key: &str| format!("`{prefix}{key}`");
    let shown = |one: &GivenKey| match one.written {
        KeyForm::Anyhow => quoted(one.key),
        KeyForm::AsList => format!("{} (a list)", quoted(one.key)),
        KeyForm::AsMap => format!("{} (a map)", quoted(one.key)),
    };
    match rule {
        Rule::AtMostOne(all) => format!("{} cannot be combined.", joined(all.iter().map(shown), "and")),
        Rule::ExactlyOne(all) => format!("Exactly one of {} is given.", joined(all.iter().map(shown), "and")),
        Rule::Needs(key, needed) => format!("{} needs {}.", quoted(key), quoted(needed)),
        Rule::OnlyBeside(keys, beside) => {
            let verb = if keys.len() == 1 { "is" } else { "are" };
            let keys = joined(keys.iter().map(|key| quoted(key)), "and");
            format!("{keys} {verb} allowed only with {}.", quoted(beside))
        }
        Rule::NotBeside(keys, beside) => {
            let keys = joined(keys.iter().map(|key| quoted(key)), "and");
            format!("{keys} cannot be combined with {}.", quoted(beside))
        }
    }
}
