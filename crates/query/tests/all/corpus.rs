//! Every query of the corpus: the accepted ones run, the refused ones say what their first line says.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Bench, mistake};
use narrows_query::compile;

fn files(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn what_is_accepted_runs() {
    let bench = Bench::new();
    let files = files("accepted");
    assert!(files.len() >= 60, "{}", files.len());
    for (path, text) in files {
        let compiled = compile(&text, &[]).unwrap_or_else(|mistake| panic!("{}: {mistake}", path.display()));
        bench.run(&compiled).unwrap_or_else(|error| panic!("{}: {error}\n{}", path.display(), compiled.sql));
    }
}

#[test]
fn what_is_refused_says_why() {
    let files = files("refused");
    assert!(files.len() >= 40, "{}", files.len());
    for (path, text) in files {
        let wanted = text.lines().next().unwrap().trim_start_matches("// ");
        let mistake = mistake(&text);
        assert_eq!(mistake.message, wanted, "{}", path.display());
        let line = text.lines().nth(mistake.line - 1).unwrap_or("");
        assert!(mistake.column <= line.chars().count() + 1, "{}: column {}", path.display(), mistake.column);
    }
}

/// The article's own query, word for word, where its text is at hand: `NARROWS_SEEDS` names the folder.
#[test]
fn the_query_of_the_article_compiles() {
    let Some(folder) = std::env::var_os("NARROWS_SEEDS") else {
        return narrows_testing::skip("NARROWS_SEEDS names no folder with the text of the case study");
    };
    let mut found = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let article = fs::read_to_string(entry.unwrap().path()).unwrap();
        for query in article.split("```kusto\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let compiled = compile(query, &[]).unwrap_or_else(|mistake| panic!("{mistake}\n{query}"));
            Bench::new().run(&compiled).unwrap();
            found += 1;
        }
    }
    assert!(found > 0, "no query in the folder");
}
