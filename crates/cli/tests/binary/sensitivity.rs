//! `narrows sensitivity`: its runs, its table and its errors.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Bench, TWO_FILE_SERVERS, eventually, has_python, text};

/// Two variants under a load whose users are fitted. With more than five, the service does not start.
fn fitted_users() -> String {
    let server = "[python3, -m, http.server, \"${port}\", --bind, 127.0.0.1]";
    let picky = "[sh, -c, 'test ${users} -le 5 && exec python3 -m http.server ${port} --bind 127.0.0.1']";
    let experiment = TWO_FILE_SERVERS
        .replace(
            "{ level: \"1\" }",
            "{ level: \"1\", users: { value: 5, reason: a few }, pace: { value: 1.5s, reason: so } }",
        )
        .replace(server, picky)
        .replace("vus: 2", "vus: \"${users}\"");
    format!(
        "{experiment}published:\n  source: A Guide\n  figures:\n    - measure: rate\n      values: {{ first: 100, second: 100 }}\n\
         \x20     fitted: {{ first: users, second: the pace of clients }}\n"
    )
}

const SHORT: [&str; 5] = ["sensitivity", "--time-scale", "0.25", "--out", "out"];

fn page(bench: &Bench, folder: &str) -> String {
    std::fs::read_to_string(bench.path(folder).join("sensitivity.md")).unwrap()
}

#[test]
fn each_fitted_parameter_is_scaled_and_a_run_that_fails_leaves_the_others() {
    if !has_python() {
        return;
    }
    let bench = Bench::new(&fitted_users());
    let ran = bench.run(&SHORT);
    let (said, told) = (text(&ran.stdout), text(&ran.stderr));
    assert_eq!(ran.status.code(), Some(2), "{said}{told}");
    for position in [
        "run 1 of 5: file-server as it is",
        "run 2 of 5: file-server with users 4 in place of 5",
        "run 3 of 5: file-server as it is",
    ] {
        assert!(told.contains(position), "{told}");
    }
    let failed = "file-server with users 6 in place of 5";
    assert!(told.contains(&format!("\nerror: could not run {failed}\nhint: `narrows sensitivity ")), "{told}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("value 4 5 6 conclusions ") && words.contains(" throughput ×"), "{said}");
    assert!(words.contains("- file-server with users 6 (+20 %") && words.contains(": not measured"), "{said}");
    assert!(said.contains("not scaled in file-server: the pace of clients (it names no parameter)"), "{said}");
    assert!(said.contains("not scaled in file-server: pace (chosen for another reason than a figure)"), "{said}");
    assert!(page(&bench, "out").contains(" | value | 4 | 5 | 6 |\n"), "{}", page(&bench, "out"));

    let again = bench.run(&SHORT);
    assert_eq!(text(&again.stderr).matches("complete, not run again").count(), 4, "{}", text(&again.stderr));
    from_the_record(&bench);
}

/// The page made from the record differs in the command alone.
fn from_the_record(bench: &Bench) {
    let made = bench.run(&["sensitivity", "--from", "out/sensitivity.json", "--out", "again"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let without_command = |page: String| page.lines().filter(|line| !line.starts_with("Made by")).collect::<String>();
    assert_eq!(without_command(page(bench, "again")), without_command(page(bench, "out")));
    let record = |folder: &str| std::fs::read(bench.path(folder).join("sensitivity.json")).unwrap();
    assert_eq!(record("again"), record("out"));
}

#[test]
fn an_interruption_keeps_what_was_measured_and_the_same_command_goes_on() {
    if !has_python() {
        return;
    }
    let bench = Bench::new(&fitted_users().replace("test ${users} -le 5 && ", ""));
    let (mut child, rest) = bench.start_until(&SHORT, "run 2 of 5");
    drop(rest);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(page(&bench, "out").contains("not measured"), "{}", page(&bench, "out"));
    eventually("the removal of every scratch folder", || bench.scratch().is_empty());

    let ran = bench.run(&SHORT);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    assert!(text(&ran.stderr).contains("run 1 of 5: file-server as it is: complete, not run again"));
    let said = text(&ran.stdout);
    assert!(said.contains(" come back in every unchanged run") && !said.contains("not measured"), "{said}");

    let other = bench.run(&["sensitivity", "--time-scale", "0.5", "--out", "out"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("has time scale 0.25, expected 0.5\nhint: choose another folder"));
}

#[test]
fn what_cannot_be_scaled_is_refused_before_anything_runs() {
    let bench = Bench::new(&fitted_users());
    std::fs::write(bench.path("bare.yaml"), TWO_FILE_SERVERS).unwrap();
    for (arguments, expected) in [
        (
            &["bare.yaml"][..],
            "error: no figure of file-server was fitted with a parameter that can be scaled\nhint: name a",
        ),
        (&["--parameter", "user"], "error: no experiment here has a parameter `user`\nhint: did you mean `users`?"),
        (&["--parameter", "shop.users"], "error: no experiment here has a parameter `shop.users`"),
        (
            &["--parameter", "level"],
            "error: cannot scale `level` of file-server: a whole number that 20 % does not change",
        ),
        (&["experiment.yaml", "bare.yaml"], "error: expected one experiment file at most, beside demos"),
        (&["--by", "0"], "expected a share from 0.1% to 100%"),
        (&["--from", "bare.yaml"], "error: bare.yaml is no record of `narrows sensitivity`: "),
        (&["--from", "none.json"], "error: cannot read the record none.json: "),
    ] {
        let refused = bench.run(&[&["sensitivity"], arguments].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(text(&refused.stderr).contains(expected), "{arguments:?}: {}", text(&refused.stderr));
    }
    assert!(!bench.path("runs").exists(), "nothing was run");
}

/// The page of the documentation is what the record beside it gives: no figure on it is written by hand.
#[test]
fn the_page_of_the_documentation_is_made_from_its_record() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bench = Bench::new("");
    let from = ["sensitivity", "--from", "docs/sensitivity.json", "--out"];
    let made = bench.narrows(&from).arg(bench.path("made")).current_dir(&root).output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    for file in ["sensitivity.md", "sensitivity.json"] {
        let made = std::fs::read_to_string(bench.path("made").join(file)).unwrap();
        let kept = std::fs::read_to_string(root.join("docs").join(file)).unwrap();
        assert!(made == kept, "make docs/{file} again: narrows {} docs", from.join(" "));
    }
}
