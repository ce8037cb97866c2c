//! The trace language: an indented tree, one span or block a line.
//!
//! Here it becomes nodes; what attributes mean and when spans happen is decided in `grow.rs`.

/// Meaning of a line, with the lines below it.
#[derive(Debug)]
pub(crate) enum Node {
    Span(SpanNode),
    Block(Block, Vec<Node>),
    /// Time without a span.
    Pause(Time),
}

#[derive(Debug)]
pub(crate) enum Block {
    /// One after the other, or starting every so many milliseconds.
    Repeat(Count, Option<Time>),
    /// Each child begins when the block does.
    Parallel,
    /// In some traces only.
    Chance(Time),
}

#[derive(Debug)]
pub(crate) struct SpanNode {
    pub(crate) line: usize,
    pub(crate) at: At,
    pub(crate) kind: String,
    pub(crate) words: Vec<String>,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Node>,
}

#[derive(Debug)]
pub(crate) enum At {
    /// After the end of the sibling before.
    After(Time),
    /// After the start of what it is in.
    Offset(Time),
}

/// How often; a range is drawn anew in each trace.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) from: Time,
    pub(crate) to: Time,
}

/// A sum of milliseconds, variables and the time that remains.
#[derive(Debug, Clone)]
pub(crate) struct Time {
    pub(crate) is_exact: bool,
    pub(crate) terms: Vec<Term>,
}

#[derive(Debug, Clone)]
pub(crate) enum Term {
    Fixed(f64),
    Variable(String, f64),
    Fill,
}

/// Reads a tree.
///
/// # Errors
/// Fault and its line of the tree.
pub(crate) fn parse(text: &str) -> Result<Vec<Node>, String> {
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let body = line.trim_start();
        if !body.is_empty() && !body.starts_with('#') {
            lines.push(Line { number: number + 1, depth: line.len() - body.len(), body });
        }
    }
    let (nodes, used) = siblings(&lines, 0)?;
    if used < lines.len() {
        return Err(format!("line {} of the tree is indented less than the first", lines[used].number));
    }
    Ok(nodes)
}

struct Line<'a> {
    number: usize,
    depth: usize,
    body: &'a str,
}

fn siblings(lines: &[Line<'_>], from: usize) -> Result<(Vec<Node>, usize), String> {
    let Some(first) = lines.get(from) else { return Ok((Vec::new(), from)) };
    let (mut nodes, mut at) = (Vec::new(), from);
    while let Some(line) = lines.get(at).filter(|line| line.depth >= first.depth) {
        if line.depth > first.depth {
            return Err(format!("line {} of the tree is indented unlike its siblings", line.number));
        }
        let is_parent = lines.get(at + 1).is_some_and(|next| next.depth > line.depth);
        let (children, next) = if is_parent { siblings(lines, at + 1)? } else { (Vec::new(), at + 1) };
        let node = node(line, children).map_err(|why| format!("line {} of the tree: {why}", line.number))?;
        nodes.push(node);
        at = next;
    }
    Ok((nodes, at))
}

fn node(line: &Line<'_>, children: Vec<Node>) -> Result<Node, String> {
    let mut words = words(line.body)?;
    let at = match words.first().and_then(|word| word.split_at_checked(1)) {
        Some(("+", time)) => Some(At::After(Time::parse(time)?)),
        Some(("@", time)) => Some(At::Offset(Time::parse(time)?)),
        _ => None,
    };
    if at.is_some() {
        words.remove(0);
    }
    let kind = if words.is_empty() { return Err("nothing but a time".into()) } else { words.remove(0) };
    let block = match kind.as_str() {
        "pause" => return Ok(Node::Pause(Time::parse(words.first().map_or("", String::as_str))?)),
        "repeat" => Block::Repeat(count(&words)?, every(&words)?),
        "parallel" => Block::Parallel,
        "chance" => Block::Chance(Time::parse(words.first().map_or("", String::as_str))?),
        _ => {
            let is_key = |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
            let is_attribute = |word: &String| word.split_once('=').is_some_and(|(key, _)| is_key(key));
            let (attributes, words): (Vec<String>, Vec<String>) = words.into_iter().partition(is_attribute);
            let split = |word: String| word.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
            let attributes = attributes.into_iter().filter_map(split).collect();
            let at = at.unwrap_or(At::After(Time { is_exact: false, terms: vec![Term::Fixed(0.1)] }));
            return Ok(Node::Span(SpanNode { line: line.number, at, kind, words, attributes, children }));
        }
    };
    if at.is_some() || children.is_empty() {
        return Err(format!("`{kind}` has children and no time of its own"));
    }
    Ok(Node::Block(block, children))
}

fn count(words: &[String]) -> Result<Count, String> {
    let word = words.first().map_or("", String::as_str);
    let (from, to) = word.split_once("..").unwrap_or((word, word));
    Ok(Count { from: Time::parse(from)?, to: Time::parse(to)? })
}

fn every(words: &[String]) -> Result<Option<Time>, String> {
    match &words[1..] {
        [] => Ok(None),
        [every, time] if every == "every" => Time::parse(time).map(Some),
        other => Err(format!("`{}` after `repeat N`, expected `every MS`", other.join(" "))),
    }
}

impl Time {
    /// Reads `4`, `=4`, `2+fill`, `$wait*0.5`.
    ///
    /// # Errors
    /// Expectation.
    pub(crate) fn parse(text: &str) -> Result<Time, String> {
        let (is_exact, body) = text.strip_prefix('=').map_or((false, text), |body| (true, body));
        let term = |word: &str| match word.strip_prefix('$') {
            _ if word == "fill" => Some(Term::Fill),
            Some(name) => match name.split_once('*') {
                Some((name, factor)) => Some(Term::Variable(name.into(), factor.parse().ok()?)),
                None => Some(Term::Variable(name.into(), 1.0)),
            },
            None => word.parse().ok().map(Term::Fixed),
        };
        let terms: Option<Vec<Term>> = body.split('+').map(term).collect();
        let terms = terms.ok_or(format!("`{text}` is no time, expected milliseconds, `$name`, `fill` or their sum"))?;
        Ok(Time { is_exact, terms })
    }
}

/// Words apart by spaces; what stands between double quotes is one, with the word it begins in. `\"` is a quotation mark
/// and `\n` the end of a line.
fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut is_quoted, mut has_word) = (Vec::new(), String::new(), false, false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.next_if_eq(&'"').is_some() => word.push('"'),
            '\\' if chars.next_if_eq(&'n').is_some() => word.push('\n'),
            '"' => (is_quoted, has_word) = (!is_quoted, true),
            ' ' if !is_quoted => {
                if has_word {
                    words.push(std::mem::take(&mut word));
                }
                has_word = false;
            }
            _ => {
                word.push(c);
                has_word = true;
            }
        }
    }
    if is_quoted {
        return Err("a quotation mark without its other".into());
    }
    words.extend(has_word.then_some(word));
    Ok(words)
}
