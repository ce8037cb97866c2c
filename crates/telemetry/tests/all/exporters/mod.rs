//! Real programs, traced by their languages' own SDKs and agents, over every protocol that those speak.
//!
//! Each installs pinned versions with its language's package client into the target's temporary folder, where they stay
//! for the next time. Where a tool is missing, or with `NARROWS_TEST_SKIP_EXPORTERS=1`, a test says that it is skipped.

mod collecting;
mod exchange;
mod rust;

use std::path::Path;

use narrows_testing::{ForeignProgram, NPM_INSTALL, PIP_INSTALL, foreign_command, succeed};

use collecting::Collection;
use exchange::Expectation;

const SKIP_VARIABLE: &str = "NARROWS_TEST_SKIP_EXPORTERS";
const ROOT: &str = env!("CARGO_TARGET_TMPDIR");

#[test]
fn python_flask_and_urllib() {
    let program = ForeignProgram {
        skip_variable: SKIP_VARIABLE,
        name: "exporter-python",
        needs: &["python3"],
        files: &[
            ("app.py", include_str!("programs/python/app.py")),
            ("requirements.txt", include_str!("programs/python/requirements.txt")),
        ],
        install: PIP_INSTALL,
    };
    let Some(folder) = program.installed(ROOT.as_ref()) else { return };
    for protocol in ["grpc", "http/protobuf"] {
        let collected = run(&folder, protocol, &[".venv/bin/opentelemetry-instrument", ".venv/bin/python", "app.py"]);
        let expected = Expectation { routes: Some(["/hello/<name>", "/boom"]), exception: Some("ValueError") };
        exchange::check(&collected, protocol, &expected);
        collected.has_points("http.server.request.duration.count");
        collected.has_line_of_a_trace("greeting world");
        collected.has_line_of_exception("\nexception.type=ValueError\nexception.message=boom\nexception.stacktrace=");
    }
}

#[test]
fn node_http() {
    let program = ForeignProgram {
        skip_variable: SKIP_VARIABLE,
        name: "exporter-node",
        needs: &["node", "npm"],
        files: &[
            ("app.js", include_str!("programs/node/app.js")),
            ("package.json", include_str!("programs/node/package.json")),
        ],
        install: NPM_INSTALL,
    };
    let Some(folder) = program.installed(ROOT.as_ref()) else { return };
    for protocol in ["http/json", "grpc", "http/protobuf"] {
        let program = ["node", "--require", "@opentelemetry/auto-instrumentations-node/register", "app.js"];
        let collected = run(&folder, protocol, &program);
        exchange::check(&collected, protocol, &Expectation { routes: None, exception: None });
        collected.has_points("http.server.request.duration.count");
    }
}

#[test]
fn java_agent() {
    let agent = "opentelemetry-javaagent-2.20.1.jar";
    let program = ForeignProgram {
        skip_variable: SKIP_VARIABLE,
        name: "exporter-java",
        needs: &["java", "javac", "mvn"],
        files: &[("App.java", include_str!("programs/java/App.java"))],
        install: &[
            &[
                "mvn",
                "--quiet",
                "--batch-mode",
                "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
                "-Dartifact=io.opentelemetry.javaagent:opentelemetry-javaagent:2.20.1",
                "-DoutputDirectory=.",
            ],
            &["javac", "App.java"],
        ],
    };
    let Some(folder) = program.installed(ROOT.as_ref()) else { return };
    let agent = format!("-javaagent:{agent}");
    for protocol in ["http/protobuf", "grpc"] {
        let collected = run(&folder, protocol, &["java", "-XX:TieredStopAtLevel=1", &agent, "-cp", ".", "App"]);
        exchange::check(&collected, protocol, &Expectation { routes: Some(["/hello", "/boom"]), exception: None });
        collected.has_points("http.server.request.duration.count");
    }
}

#[test]
fn go_otelhttp() {
    let program = ForeignProgram {
        skip_variable: SKIP_VARIABLE,
        name: "exporter-go",
        needs: &["go"],
        files: &[
            ("main.go", include_str!("programs/go/main.go")),
            ("go.mod", include_str!("programs/go/go.mod")),
            ("go.sum", include_str!("programs/go/go.sum")),
        ],
        install: &[&["go", "build", "-o", "exporters", "."]],
    };
    let Some(folder) = program.installed(ROOT.as_ref()) else { return };
    for protocol in ["grpc", "http/protobuf"] {
        let collected = run(&folder, protocol, &["./exporters"]);
        exchange::check(&collected, protocol, &Expectation { routes: None, exception: Some("*errors.errorString") });
        collected.has_points("http.server.request.duration.count");
    }
}

#[test]
fn rust_opentelemetry_otlp() {
    if rust::is_wanted() {
        return rust::export();
    }
    let program = rust::command("exporters::rust_opentelemetry_otlp");
    let program: Vec<&str> = program.iter().map(String::as_str).collect();
    let folder = tempfile::tempdir().unwrap();
    for protocol in ["grpc", "http/protobuf"] {
        let collected = run(folder.path(), protocol, &program);
        let routes = Some(["/hello/{name}", "/boom"]);
        exchange::check(&collected, protocol, &Expectation { routes, exception: None });
        collected.has_points("http.server.request.duration.count");
    }
}

/// Runs a program to its end with a receiver of its own, whose address is all that it gets.
fn run(folder: &Path, protocol: &str, program: &[&str]) -> Collection {
    let collecting = Collection::start();
    let settings = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", collecting.address())),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol.to_owned()),
        ("OTEL_SERVICE_NAME", exchange::SERVICE.to_owned()),
        ("OTEL_TRACES_EXPORTER", "otlp".to_owned()),
        ("OTEL_METRICS_EXPORTER", "otlp".to_owned()),
        ("OTEL_LOGS_EXPORTER", "otlp".to_owned()),
        ("OTEL_PYTHON_LOGGING_AUTO_INSTRUMENTATION_ENABLED", "true".to_owned()),
        ("OTEL_SEMCONV_STABILITY_OPT_IN", "http".to_owned()),
    ];
    succeed(foreign_command(folder, program).envs(settings));
    collecting.end()
}
