//! The chain in Spring Boot, as the published benchmark had it: the sources are part of this program, and Maven builds them.
//!
//! One jar has all three services. It is built when it is first needed and kept in the user's cache folder, under a name
//! that changes with the sources. A service then replaces this process, so that its CPU and its end are this process's.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use narrows_listener::Listen;

use crate::Error;
use crate::base_url::{Authority, BaseUrls};

/// Path below the project's folder, and text.
const SOURCES: [(&str, &str); 6] = [
    ("pom.xml", include_str!("../spring/pom.xml")),
    ("src/main/resources/application.yaml", include_str!("../spring/src/main/resources/application.yaml")),
    ("src/main/java/customer360/Chain.java", include_str!("../spring/src/main/java/customer360/Chain.java")),
    (
        "src/main/java/customer360/CustomerService.java",
        include_str!("../spring/src/main/java/customer360/CustomerService.java"),
    ),
    (
        "src/main/java/customer360/PersonService.java",
        include_str!("../spring/src/main/java/customer360/PersonService.java"),
    ),
    (
        "src/main/java/customer360/NameService.java",
        include_str!("../spring/src/main/java/customer360/NameService.java"),
    ),
];

/// Options of the JVM. Without a limit, its heap would grow to a quarter of the machine's memory.
const JVM: [&str; 1] = ["-Xmx512m"];

/// A service of the chain.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SpringService {
    /// Arguments after the jar.
    arguments: Vec<String>,
}

impl SpringService {
    /// The service `name` over the database at that address.
    pub(crate) fn over_database(listen: &Listen, url: &str) -> Result<Self, Error> {
        url.parse::<tokio_postgres::Config>().map_err(Error::Database)?;
        let address = url.split_once("://").map_or(url, |(_, address)| address);
        let mut service = Self::new("name", listen)?;
        service.set("spring.r2dbc.url", &format!("r2dbc:postgresql://{address}"));
        Ok(service)
    }

    /// The service of that name, which calls the next one.
    pub(crate) fn over_service(name: &str, listen: &Listen, next: &BaseUrls) -> Result<Self, Error> {
        let [Authority { host, port: next_port }] = &next.0[..] else {
            return Err(Error::Setting {
                name: "URL",
                value: format!("{} replicas", next.0.len()),
                expected: "one with --stack spring",
            });
        };
        let mut service = Self::new(name, listen)?;
        service.set("upstream", &format!("http://{host}:{next_port}"));
        Ok(service)
    }

    fn new(profile: &str, listen: &Listen) -> Result<Self, Error> {
        if listen.token().is_some() {
            return Err(Error::Setting {
                name: "token",
                value: "set".to_owned(),
                expected: "none with --stack spring, whose services check none",
            });
        }
        let mut service = Self { arguments: Vec::new() };
        service.set("spring.profiles.active", profile);
        service.set("server.address", &listen.address().ip().to_string());
        service.set("server.port", &listen.address().port().to_string());
        Ok(service)
    }

    fn set(&mut self, property: &str, value: &str) {
        self.arguments.push(format!("--{property}={value}"));
    }

    /// Builds the jar if it is missing and replaces this process by the service, which ends on SIGTERM or SIGINT.
    ///
    /// # Errors
    ///
    /// [`Error`] if Java or Maven is missing, or the build fails.
    pub(crate) fn run(self) -> Result<Infallible, Error> {
        let jar = jar()?;
        let source = Command::new("java").args(JVM).arg("-jar").arg(jar).args(self.arguments).exec();
        Err(Error::NoProgram { program: "java", source })
    }
}

/// Path of the jar, which is built if it is not there.
fn jar() -> Result<PathBuf, Error> {
    let folder = cache_folder().ok_or(Error::NoCacheFolder)?;
    let jar = folder.join(format!("customer-360-spring-{:016x}.jar", fingerprint()));
    if !jar.is_file() {
        // Several processes may build at once: each builds in a separate folder, and the last jar stays.
        let project = folder.join(format!("customer-360-spring-{}", std::process::id()));
        let built = build(&project, &jar);
        // The folder is not needed any more. An error is ignored: a folder that stays does no harm.
        let _ = std::fs::remove_dir_all(&project);
        built?;
    }
    Ok(jar)
}

/// Writes the sources into a folder and has Maven build the jar from them.
fn build(project: &Path, jar: &Path) -> Result<(), Error> {
    for (name, text) in SOURCES {
        write(&project.join(name), text)?;
    }
    let maven = Command::new("mvn")
        .args(["--quiet", "--batch-mode", "--file"])
        .arg(project.join("pom.xml"))
        .arg("package")
        .stdin(Stdio::null())
        .status()
        .map_err(|source| Error::NoProgram { program: "mvn", source })?;
    if !maven.success() {
        return Err(Error::Maven(maven));
    }
    std::fs::rename(project.join("target/chain.jar"), jar)
        .map_err(|source| Error::File { path: jar.to_owned(), source })
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text))
        .map_err(|source| Error::File { path: path.to_owned(), source })
}

/// `$XDG_CACHE_HOME/narrows`, or else `~/.cache/narrows`.
fn cache_folder() -> Option<PathBuf> {
    let absolute = |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(folder.join("narrows"))
}

/// A number that other sources would not have.
fn fingerprint() -> u64 {
    let mut hasher = DefaultHasher::new();
    SOURCES.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use narrows_listener::{Guard, Token};

    use super::*;

    const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/spring");

    fn arguments(service: Result<SpringService, Error>) -> String {
        service.unwrap().arguments.join(" ")
    }

    #[test]
    fn a_service_has_its_port_and_what_is_behind_it() {
        let at = |port| Listen::loopback(port);
        assert_eq!(
            arguments(SpringService::over_database(&at(81), "postgres://someone@127.0.0.1:5432/customers")),
            "--spring.profiles.active=name --server.address=127.0.0.1 --server.port=81 \
             --spring.r2dbc.url=r2dbc:postgresql://someone@127.0.0.1:5432/customers"
        );
        let next = |urls: &str| urls.parse::<BaseUrls>().unwrap();
        assert_eq!(
            arguments(SpringService::over_service("person", &at(82), &next("http://127.0.0.1:81"))),
            "--spring.profiles.active=person --server.address=127.0.0.1 --server.port=82 --upstream=http://127.0.0.1:81"
        );
        let several = SpringService::over_service("person", &at(82), &next("http://a:1,http://b:1")).unwrap_err();
        assert_eq!(several.to_string(), "URL is \"2 replicas\", expected one with --stack spring");
        let secret = SpringService::over_database(&at(81), "postgres://a:secret@b:c/d").unwrap_err().to_string();
        assert!(secret.starts_with("--database is not an address") && !secret.contains("secret"), "{secret}");
        let guard = Guard::Token(Token::parse("secret").unwrap());
        let guarded = Listen::new(at(81).address(), guard).unwrap();
        let unchecked = SpringService::over_database(&guarded, "postgres://a@b/c").unwrap_err().to_string();
        assert!(unchecked.starts_with("token is \"set\", expected none with --stack spring"), "{unchecked}");
    }

    #[test]
    fn every_source_of_the_project_is_part_of_the_program() {
        let mut folders = vec![PathBuf::from(PROJECT)];
        let mut found = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                match entry.strip_prefix(PROJECT).unwrap().to_str().unwrap() {
                    "target" => {}
                    _ if entry.is_dir() => folders.push(entry),
                    name => {
                        let text = std::fs::read_to_string(&entry).unwrap();
                        assert!(SOURCES.contains(&(name, text.as_str())), "{name}");
                        found += 1;
                    }
                }
            }
        }
        assert_eq!(found, SOURCES.len());
    }
}
