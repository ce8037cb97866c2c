//! Programs with short options for passwords: `mysql -pX`, `redis-cli -a X`, `curl -u joe:X`.
//!
//! Such an option counts only after the name of its program, because `-p` is a port or a path to other programs.

/// A program with short options for passwords.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// Prefixes of its names, in lower case.
    pub(super) names: &'static [&'static str],
    /// Options that hold a password.
    passwords: &'static [&'static str],
    /// Options that hold `user:password`.
    users: &'static [&'static str],
    /// Whether the value may be in the next argument.
    is_parted: bool,
}

/// Kind of an option's value, and its start in the argument. If that equals the length of the argument, the value is
/// the next argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionValue {
    Password(usize),
    /// `user:password`.
    User(usize),
}

/// All known programs. Every text is searched for their names, so none of these occurs within other words.
pub(super) const PROGRAMS: [Program; 6] = [
    // After a separate `-p` follows the name of a database.
    Program { names: &["mysql", "mariadb", "mycli"], passwords: &["-p"], users: &[], is_parted: false },
    Program { names: &["redis-cli", "redis-benchmark", "valkey-"], passwords: &["-a"], users: &[], is_parted: true },
    Program { names: &["curl"], passwords: &[], users: &["-u", "-U"], is_parted: true },
    Program { names: &["mongo", "sshpass", "cqlsh", "rabbitmqadmin"], passwords: &["-p"], users: &[], is_parted: true },
    Program { names: &["sqlcmd"], passwords: &["-P"], users: &[], is_parted: true },
    Program { names: &["ldapsearch", "ldapadd", "ldapmodify"], passwords: &["-w"], users: &[], is_parted: true },
];

/// The program that a word names, with or without its path.
pub(super) fn named(word: &str) -> Option<&'static Program> {
    let name = word.rsplit('/').next().unwrap_or_default().as_bytes();
    let is_it = |begin: &&str| name.get(..begin.len()).is_some_and(|own| own.eq_ignore_ascii_case(begin.as_bytes()));
    PROGRAMS.iter().find(|program| program.names.iter().any(is_it))
}

impl Program {
    /// The value that an argument holds, if it is one of the program's options.
    pub(super) fn held(&self, argument: &str) -> Option<OptionValue> {
        let begins = |option: &&&str| {
            let rest = argument.strip_prefix(**option);
            rest.is_some_and(|rest| !rest.is_empty() || self.is_parted)
        };
        let password = self.passwords.iter().find(begins).map(|option| OptionValue::Password(option.len()));
        password.or_else(|| self.users.iter().find(begins).map(|option| OptionValue::User(option.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_count_after_the_names_of_their_programs() {
        let held = |program: &str, argument: &str| named(program)?.held(argument);
        for (program, argument, expected) in [
            ("/usr/bin/mysqldump", "-px", Some(OptionValue::Password(2))),
            ("mariadb-admin", "-p", None),
            ("redis-cli", "-a", Some(OptionValue::Password(2))),
            ("curl", "-ujoe:x", Some(OptionValue::User(2))),
            ("mongosh", "-p", Some(OptionValue::Password(2))),
            ("docker", "-p", None),
            ("/mysql/bin/tar", "-px", None),
        ] {
            assert_eq!(held(program, argument), expected, "{program} {argument}");
        }
    }
}
