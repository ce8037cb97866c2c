//! Regular expressions with counted work.
//!
//! A lazy automaton searches in time linear in the text, as long as its cache is effective. Otherwise the search falls
//! back to a simulation whose time is the product of text and pattern; this work is counted beforehand. The crate
//! `regex` has the same engines, but selects them itself and can neither be counted nor stopped.

use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{Compiler, Config, NFA, WhichCaptures};

use super::TooMuchWork;
use super::work::Work;

/// Maximum number of compiled patterns that are kept for one page.
const PATTERNS_MAX: usize = 16;
/// The longest pattern, in bytes; REGEXMATCH with a longer one is undefined.
const PATTERN_BYTES_MAX: usize = 4 << 10;
/// Maximum memory of one compiled pattern, in bytes; REGEXMATCH with a larger one is undefined.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// Additional memory for the automaton of one pattern, in bytes.
const CACHE_BYTES: usize = 256 << 10;
/// Number of times that the automaton's cache may fill up before the automaton is abandoned.
const CACHE_CLEARS_MAX: usize = 2;
/// Steps for compiling: per pattern, per byte of it, and per state.
const COMPILE_STEPS: usize = 10_000;
const COMPILE_STEPS_PER_BYTE: usize = 100;
const COMPILE_STEPS_PER_STATE: usize = 4;
/// Steps charged for a pattern that is invalid or too large.
const FAILED_STEPS: usize = 200_000;
/// Steps charged for filling the cache of an automaton that is then abandoned.
const CACHE_STEPS: usize = 1_000_000;

/// The patterns of one page; the most recent ones are compiled.
#[derive(Debug, Default)]
pub(super) struct Patterns(Vec<(String, Option<CompiledPattern>)>);

#[derive(Debug)]
struct CompiledPattern {
    nfa: NFA,
    automaton: Option<Box<(DFA, Cache)>>,
}

impl Patterns {
    /// Whether `text` matches `pattern`; `None` if the pattern is invalid or too large.
    pub(super) fn matches(&mut self, work: &Work, pattern: &str, text: &str) -> Result<Option<bool>, TooMuchWork> {
        let place = match self.0.iter().position(|(known, _)| known == pattern) {
            Some(place) => place,
            None => self.compile(work, pattern)?,
        };
        match &mut self.0[place].1 {
            Some(compiled) => compiled.matches(work, text).map(Some),
            None => Ok(None),
        }
    }

    fn compile(&mut self, work: &Work, pattern: &str) -> Result<usize, TooMuchWork> {
        let compiled = if pattern.len() > PATTERN_BYTES_MAX {
            None
        } else {
            work.add(COMPILE_STEPS + pattern.len() * COMPILE_STEPS_PER_BYTE)?;
            CompiledPattern::new(pattern)
        };
        let states = compiled.as_ref().map(|compiled| compiled.nfa.states().len());
        work.add(states.map_or(FAILED_STEPS, |states| states * COMPILE_STEPS_PER_STATE))?;
        if self.0.len() == PATTERNS_MAX {
            self.0.remove(0);
        }
        self.0.push((pattern.to_owned(), compiled));
        Ok(self.0.len() - 1)
    }
}

impl CompiledPattern {
    fn new(pattern: &str) -> Option<Self> {
        let config = Config::new().nfa_size_limit(Some(COMPILED_BYTES_MAX)).which_captures(WhichCaptures::None);
        let nfa = Compiler::new().configure(config).build(pattern).ok()?;
        let config = DFA::config()
            .unicode_word_boundary(true)
            .cache_capacity(CACHE_BYTES)
            .minimum_cache_clear_count(Some(CACHE_CLEARS_MAX));
        let automaton = DFA::builder().configure(config).build_from_nfa(nfa.clone()).ok();
        let automaton = automaton.map(|automaton| {
            let cache = automaton.create_cache();
            Box::new((automaton, cache))
        });
        Some(Self { nfa, automaton })
    }

    fn matches(&mut self, work: &Work, text: &str) -> Result<bool, TooMuchWork> {
        work.add(text.len() / 8)?;
        let input = Input::new(text).earliest(true);
        if let Some((automaton, cache)) = self.automaton.as_deref_mut() {
            if let Ok(found) = automaton.try_search_fwd(cache, &input) {
                return Ok(found.is_some());
            }
            // The cache was filled too often, or `\b` met a non-ASCII character.
            work.add(if cache.clear_count() >= CACHE_CLEARS_MAX { CACHE_STEPS } else { 0 })?;
        }
        self.simulated(work, text)
    }

    fn simulated(&mut self, work: &Work, text: &str) -> Result<bool, TooMuchWork> {
        work.add(text.len().saturating_add(1).saturating_mul(self.nfa.states().len()) / 8)?;
        self.automaton = self.automaton.take().filter(|automaton| automaton.1.clear_count() < CACHE_CLEARS_MAX);
        let Ok(simulation) = PikeVM::new_from_nfa(self.nfa.clone()) else { return Ok(false) };
        Ok(simulation.is_match(&mut simulation.create_cache(), text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::work::Allowance;
    use super::*;

    fn matches(pattern: &str, text: &str) -> Result<Option<bool>, TooMuchWork> {
        Patterns::default().matches(&Work::new(Allowance::unwatched()), pattern, text)
    }

    #[test]
    fn an_invalid_or_too_large_pattern_gives_none() {
        let long = "a".repeat(PATTERN_BYTES_MAX + 1);
        for pattern in ["(", r"\w{1000}", "((a{1,100}){1,100}){1,100}", &long] {
            assert_eq!(matches(pattern, "a"), Ok(None), "{pattern:.40}");
        }
    }

    #[test]
    fn word_boundaries_are_found_beside_any_character() {
        for (text, expected) in [("a bc d", true), ("abcd", false), ("ü bc ü", true), ("übcü", false)] {
            assert_eq!(matches(r"\bbc\b", text), Ok(Some(expected)), "{text}");
        }
    }

    #[test]
    fn a_pattern_that_no_cache_helps_is_counted_by_the_product() {
        let text: String = (0..1 << 20)
            .map(|place: u32| if place.wrapping_mul(2_654_435_761) >> 31 == 0 { '0' } else { '1' })
            .collect();
        assert_eq!(matches("[01]*1[01]{2000}x", &text), Err(TooMuchWork));
        assert_eq!(matches("[01]*1[01]{20}", &text), Ok(Some(true)));
    }

    #[test]
    fn compiling_counts() {
        let work = Work::new(Allowance::of(1_000_000));
        let mut patterns = Patterns::default();
        let mut compiled = (0..).map(|number| patterns.matches(&work, &format!(r"\w{{50}}{number}"), "a"));
        assert!(compiled.by_ref().take(25).any(|result| result == Err(TooMuchWork)));
    }

    proptest! {
        #[test]
        fn both_engines_agree(pattern in r"(\[ab\]|[abü.]|\(a\|b\)|\\b)([*+?]|\{1,3\})?(\[ab\]|[abü.])[$]?", text in "[abcü ]{0,12}") {
            let work = Work::new(Allowance::unwatched());
            let mut compiled = CompiledPattern::new(&pattern).unwrap();
            let by_automaton = compiled.matches(&work, &text).unwrap();
            prop_assert_eq!(by_automaton, compiled.simulated(&work, &text).unwrap(), "{} {}", pattern, text);
        }
    }
}
