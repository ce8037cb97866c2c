//! `system.services`.

use insta::assert_snapshot;

use super::*;

#[test]
fn errors_in_services_are_reported_with_their_place() {
    let cases = [
        ("  services:", "  service:"),
        ("    web:", "    otlp:"),
        ("run: [web, --port, \"${port}\"]", "run: []"),
        ("run: [web, --port, \"${port}\"]", "run: [\"\", [1], ~]"),
        ("run: [web, --port, \"${port}\"]", "run: web --port ${port}"),
        (
            "run: [web, --port, \"${port}\"]",
            "run: [web]\n      setup: make all\n      replicas: 0\n      cpus: 0\n      memory: 1G",
        ),
        ("run: [web, --port, \"${port}\"]", "run: [web]\n      setup: [[echo, \"${n}\"]]\n      port: \"${port}\""),
        ("run: [web, --port, \"${port}\"]", "run: [web]\n      port: 80\n      replicas: 2"),
        ("run: [web, --port, \"${port}\"]", "run: [web, \"${prot}\", \"${web.prot}\", \"${n\"]"),
        (
            "run: [web, --port, \"${port}\"]",
            "run: [web]\n      ready: { http: GET /, log: up }\n      stop: { signal: KIL }\n      restart: sometimes",
        ),
        ("run: [web, --port, \"${port}\"]", "run: [web]\n      ready: [tcp]\n      stop: now"),
    ];
    assert_snapshot!(errors_of_all(&cases), @r#"
    ---   service:
    e.yaml:4:3: system: unknown key `service`
      hint: did you mean `services`?
    ---     otlp:
    e.yaml:5:5: system.services: a service cannot be named `otlp`, which is reserved in `${…}`
    e.yaml:8:11: load.target: unknown service `web`
      hint: known: `otlp`
    --- run: []
    e.yaml:6:12: system.services.web.run: expected a program and its arguments, found an empty list
    --- run: ["", [1], ~]
    e.yaml:6:13: system.services.web.run[0]: expected a program, found ""
    e.yaml:6:17: system.services.web.run[1]: expected a text, found a list
    e.yaml:6:22: system.services.web.run[2]: expected a text, found nothing
    --- run: web --port ${port}
    e.yaml:6:12: system.services.web.run: expected a list of a program and its arguments, found "web --port ${port}"
      hint: commands do not run in a shell; write [web, --port, "${port}"]
    --- run: [web]
          setup: make all
          replicas: 0
          cpus: 0
          memory: 1G
    e.yaml:7:14: system.services.web.setup: expected a list, found "make all"
    e.yaml:8:17: system.services.web.replicas: expected a whole number from 1 to 100, found 0
    e.yaml:9:13: system.services.web.cpus: expected a number of cores above 0, found 0
    e.yaml:10:15: system.services.web.memory: expected an amount of memory such as `256MiB`, found "1G"
    --- run: [web]
          setup: [[echo, "${n}"]]
          port: "${port}"
    e.yaml:7:22: system.services.web.setup[0][1]: `${…}` is not replaced here
      hint: write the value itself
    e.yaml:8:13: system.services.web.port: `${port}` is not known here
      hint: it can be used in a service's own run, cwd, env and ready
    --- run: [web]
          port: 80
          replicas: 2
    e.yaml:7:13: system.services.web.port: a fixed port allows one replica, found 2 replicas
      hint: without `port`, each replica gets its own
    --- run: [web, "${prot}", "${web.prot}", "${n"]
    e.yaml:6:18: system.services.web.run[1]: unknown name in `${prot}`
      hint: did you mean `port`?
    e.yaml:6:29: system.services.web.run[2]: unknown name in `${web.prot}`
      hint: did you mean `web.port`?
    e.yaml:6:44: system.services.web.run[3]: `${` without `}` in "${n"
      hint: `$$` is a plain `$`
    --- run: [web]
          ready: { http: GET /, log: up }
          stop: { signal: KIL }
          restart: sometimes
    e.yaml:7:7: system.services.web.ready: `http`, `log` cannot be combined
    e.yaml:8:23: system.services.web.stop.signal: expected one of `TERM`, `INT`, `QUIT`, `HUP`, `KILL`, found "KIL"
      hint: did you mean `KILL`?
    e.yaml:9:16: system.services.web.restart: expected one of `never`, `always`, found "sometimes"
    --- run: [web]
          ready: [tcp]
          stop: now
    e.yaml:7:14: system.services.web.ready: expected `tcp` or a request such as `GET /health`, or a map, found a list
    e.yaml:8:13: system.services.web.stop: expected a map, found "now"
      hint: its keys are `signal`, `timeout`
    "#);
}

#[test]
fn a_folder_that_is_not_there_is_reported_if_nothing_can_make_it() {
    let web = |lines: &str| errors(&with("      run: [web,", &format!("{lines}\n      run: [web,")));
    assert_snapshot!(web("      cwd: nowhere"), @"
    e.yaml:6:12: system.services.web.cwd: expected a folder, found none at /lab/nowhere
      hint: it is relative to the experiment file's folder
    ");
    assert_snapshot!(web("      cwd: \"src/${n}\""), @"
    e.yaml:6:12: system.services.web.cwd: expected a folder, found none at /lab/src/1
      hint: it is relative to the experiment file's folder
    ");
    for cwd in ["src", "./src/experiment", "/", "${trial.dir}/data", "node-${port}", "${web.port}"] {
        assert_eq!(web(&format!("      cwd: \"{cwd}\"")), "", "{cwd}");
    }
    let made_by_setup = "      setup: [[mkdir, made]]\n      run: [a]\n    second:\n      cwd: made";
    assert_eq!(web(made_by_setup), "");
}

#[test]
fn a_service_elsewhere_is_an_address_and_nothing_that_is_started() {
    let web = |lines: &str| errors(&with("run: [web, --port, \"${port}\"]", lines));
    for address in ["10.0.0.7:80", "\"[::1]:80\"", "web.internal:8080", "[a:1, b:2]", "\"host-${n}:80\""] {
        assert_eq!(web(&format!("address: {address}")), "", "{address}");
    }
    assert_snapshot!(web("address: web\n      replicas: 2\n      sidecar: { proxy: narrows }"), @r#"
    e.yaml:6:16: system.services.web.address: expected `HOST:PORT` such as `10.0.0.7:8080`, found "web"
    e.yaml:7:7: system.services.web: `replicas` cannot be combined with `address`
    e.yaml:8:7: system.services.web: `sidecar` cannot be combined with `address`
    "#);
    assert_snapshot!(web("address: [a:1, \"b:0\", \"http://c:1\"]\n      run: [web]"), @r#"
    e.yaml:5:5: system.services.web: `run`, `address` cannot be combined
    e.yaml:6:22: system.services.web.address[1]: expected `HOST:PORT` such as `10.0.0.7:8080`, found "b:0"
    e.yaml:6:29: system.services.web.address[2]: expected `HOST:PORT` such as `10.0.0.7:8080`, found "http://c:1"
    "#);
    assert_snapshot!(web("run: [web]\n      token: some-token"), @"
    e.yaml:7:7: system.services.web: `token` is allowed only with `address`
    ");
    assert_snapshot!(web("address: a:1\n      ready: { log: up }"), @"
    e.yaml:7:16: system.services.web.ready: Narrows does not see what a service prints that it has not started
      hint: use `tcp` or `http`
    ");
    let killed = with(
        "    web:\n      run: [web, --port, \"${port}\"]\nload:",
        "    web:\n      address: a:1\nfaults: [{ at: 0s, kill: web }]\nload:",
    );
    assert_snapshot!(errors(&killed), @"
    e.yaml:7:26: faults[0].kill: Narrows did not start `web`, so it cannot stop it
      hint: faults need a service with `run` or a component
    ");
}
