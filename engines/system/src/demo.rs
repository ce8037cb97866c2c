//! An experiment that comes with a reference system, for `narrows demo`.

/// The experiment, embedded, and what to say about it.
#[derive(Debug)]
pub struct Demo {
    /// The name of its experiment; that of the system, or one that begins with it.
    pub name: &'static str,
    /// Subject of the tests, to follow "4 tests of".
    pub about: &'static str,
    /// The form that runs by default.
    pub short: Length,
    /// The form that runs with `--full`.
    pub full: Length,
    /// Conclusion that only the full form shows. It completes "too short to show that"; `None` if the short form shows all.
    pub only_full: Option<&'static str>,
    /// The programs that must be installed, in words; `None` if nothing is needed.
    pub needs: Option<&'static str>,
    /// Variants that need a program which may not be installed, and its executable, a line for each program of a variant, in
    /// the order of programs. Without it they are left out.
    pub optional: &'static [(&'static str, &'static str)],
    /// The experiment file, as YAML.
    pub experiment: &'static str,
    /// The files that the experiment names: name and content.
    pub files: &'static [(&'static str, &'static str)],
}

/// How long a demo runs.
#[derive(Debug)]
pub struct Length {
    /// How long it takes on a machine with two cores, in words.
    pub takes: &'static str,
    /// The factor on the durations of the load.
    pub time_scale: f64,
    /// How often each test runs.
    pub repetitions: u32,
    /// The variants that run; all if empty.
    pub variants: &'static [&'static str],
}
