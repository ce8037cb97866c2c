//! Texts that are redacted, in every form that text comes in, and texts that stay.

use proptest::prelude::*;

use super::*;

fn redacted(text: &str, redact: fn(&mut String)) -> String {
    let mut text = text.to_owned();
    redact(&mut text);
    text
}

fn check(cases: &[(&str, &str)], redact: fn(&mut String)) {
    for (text, expected) in cases {
        let once = redacted(text, redact);
        assert_eq!(once, *expected, "of {text}");
        assert_eq!(redacted(&once, redact), once, "twice {text}");
    }
}

#[test]
fn addresses_lose_their_secrets_and_nothing_else() {
    check(
        &[
            ("/api/invoices?ownerId=o1&year=2020", "/api/invoices?ownerId=o1&year=2020"),
            ("https://h:8443/a?token=t0p&x=1#part", "https://h:8443/a?token=REDACTED&x=1#part"),
            ("https://h/back#access_token=abc&x=1", "https://h/back#access_token=REDACTED&x=1"),
            ("/a?token=b?c=d&e?f=g#h", "/a?token=REDACTED&e?f=g#h"),
            ("https://h/#/reset?token=abc", "https://h/#/reset?token=REDACTED"),
            ("https://joe:pw@h/a", "https://REDACTED:REDACTED@h/a"),
            ("https://joe:p@w@h?sig=1", "https://REDACTED:REDACTED@h?sig=REDACTED"),
            ("https://t0ken@h/a", "https://REDACTED@h/a"),
            ("a://h/http://joe:pw@h/", "a://h/http://REDACTED:REDACTED@h/"),
            ("/mail?to=joe@h://x@y", "/mail?to=joe@h://REDACTED@y"),
            ("/a?API-Key=1&Access_Token=2&tokens=3", "/a?API-Key=REDACTED&Access_Token=REDACTED&tokens=3"),
            ("/a?reset_token=1&zip_code=2&code=3", "/a?reset_token=REDACTED&zip_code=2&code=REDACTED"),
            ("/a?X-Amz-Signature=1&X-Amz-Date=2", "/a?X-Amz-Signature=REDACTED&X-Amz-Date=2"),
            ("/a?sv=1&sig=a%2Bb", "/a?sv=1&sig=REDACTED"),
            ("/a?token", "/a?token"),
            // The name shows once the user part is gone.
            ("?://=@:token=a", "?://REDACTED@:token=REDACTED"),
            ("", ""),
        ],
        redact_url,
    );
    check(&[("password=p&a=b", "password=REDACTED&a=b")], redact_query);
}

#[test]
fn pairs_of_free_text_lose_their_values() {
    check(
        &[
            ("login user=joe password=hunter2 ok", "login user=joe password=REDACTED ok"),
            ("password='a b' next", "password='REDACTED' next"),
            ("password=\"a b\" next", "password=\"REDACTED\" next"),
            (r#"password="a\"b" next"#, r#"password="REDACTED" next"#),
            ("password: hunter2", "password: REDACTED"),
            ("db_password : 'hunter2', user: joe", "db_password : 'REDACTED', user: joe"),
            ("password = hunter2;", "password = REDACTED;"),
            ("a=1&password=x&b=2", "a=1&password=REDACTED&b=2"),
            ("password=a,b;c&d, user=joe", "password=REDACTED, user=joe"),
            ("password=a,user=joe", "password=REDACTED,user=joe"),
            (":password=>\"x\", :b=>1", ":password=>\"REDACTED\", :b=>1"),
            ("config[\"password\"] = 'x'", "config[\"password\"] = 'REDACTED'"),
            ("{password: x} more", "{password: REDACTED} more"),
            ("{'password': 'x', 'a': 1}", "{'password': 'REDACTED', 'a': 1}"),
            (r#"ctx={"password":"X","a":1} more"#, r#"ctx={"password":"REDACTED","a":1} more"#),
            (r#"ctx={"password": 17} more"#, r#"ctx={"password": REDACTED} more"#),
            (r#"{"tokens":{"a":1},"token":["x","y]"],"b":{}}"#, r#"{"tokens":{"a":1},"token":REDACTED,"b":{}}"#),
            (r#"say "{\"password\":\"a b\",\"c\":1}""#, r#"say "{\"password\":\"REDACTED\",\"c\":1}""#),
            (r#"{"a":"{\\\"token\\\":\\\"x\\\"}"}"#, r#"{"a":"{\\\"token\\\":\\\"REDACTED\\\"}"}"#),
            ("AccountName=a;AccountKey=ab==;EndpointSuffix=b", "AccountName=a;AccountKey=REDACTED;EndpointSuffix=b"),
            ("token=Bearer abcdef x", "token=REDACTED x"),
            ("authorization=Basic abcdef x", "authorization=REDACTED x"),
            ("password=é b", "password=REDACTED b"),
            ("if token == abc", "if token == REDACTED"),
            ("password='unclosed and more", "password='REDACTED"),
            ("password=", "password="),
            ("password: ", "password: "),
        ],
        redact_text,
    );
}

#[test]
fn headers_flags_and_addresses_in_free_text_lose_theirs() {
    check(
        &[
            ("GET /a?token=abc&x=1 took 3 ms", "GET /a?token=REDACTED&x=1 took 3 ms"),
            ("cannot reach https://joe:pw@h/a, again", "cannot reach https://REDACTED:REDACTED@h/a, again"),
            (
                "dsn=postgres://joe:p%40w@h:5432/db?sslmode=off",
                "dsn=postgres://REDACTED:REDACTED@h:5432/db?sslmode=off",
            ),
            ("sent \"Authorization: Bearer abc def\" at 3", "sent \"Authorization: REDACTED\" at 3"),
            ("-H 'Authorization: Digest u=\"a\", r=\"b\"' x", "-H 'Authorization: REDACTED' x"),
            ("> Cookie: a=1; b=2\n> Accept: x\n", "> Cookie: REDACTED\n> Accept: x\n"),
            ("Cookie: {} password='x' token=:{}", "Cookie: REDACTED"),
            ("cookies: {a: 1}, status: 200", "cookies: REDACTED, status: 200"),
            ("Set-Cookie: sid=1; Path=/\r\nX: y", "Set-Cookie: REDACTED\r\nX: y"),
            ("X-Auth-Token: abc", "X-Auth-Token: REDACTED"),
            ("x-api-key:abc", "x-api-key:REDACTED"),
            ("with Bearer abc.DEF-1 and", "with Bearer REDACTED and"),
            ("Basic am9lOnB3 sent", "Basic REDACTED sent"),
            ("run --token abc --verbose", "run --token REDACTED --verbose"),
            ("run --db-password=abc x", "run --db-password=REDACTED x"),
            ("[\"run\", \"--token\", \"a b\"]", "[\"run\", \"--token\", \"REDACTED\"]"),
        ],
        redact_text,
    );
}

#[test]
fn prose_and_placeholders_stay_readable() {
    for text in [
        "bad token: unexpected end, code=7",
        "Unexpected token: end of file",
        "invalid credentials: user unknown",
        "a = b; c == d",
        "no secret in here: 17",
        "std::token::Kind",
        "Basic authentication failed, Bearer token expired, Visual Basic 6",
        "WWW-Authenticate: Bearer realm=\"api\"",
        "token_count=5 monkey=x session: abc",
        "WHERE password = ? AND token = $1",
        "--password=${DB_PASSWORD} token={{login.token}}",
        "password=*** token=REDACTED",
        "the password was changed, a token - as such - is needed",
        "GET /orders/{id}: 3 - 4 at 12:30:00",
        "",
    ] {
        assert_eq!(redacted(text, redact_text), text);
    }
    check(&[("bad token: abc123", "bad token: REDACTED"), ("token: end", "token: REDACTED")], redact_text);
}

#[test]
fn statements_lose_the_passwords_they_set() {
    check(
        &[
            ("CREATE USER a IDENTIFIED BY 'x y' REQUIRE SSL", "CREATE USER a IDENTIFIED BY 'REDACTED' REQUIRE SSL"),
            ("alter role a with password  'x", "alter role a with password  'REDACTED"),
            ("ALTER ROLE a ENCRYPTED PASSWORD \"x\" LOGIN", "ALTER ROLE a ENCRYPTED PASSWORD \"REDACTED\" LOGIN"),
            ("ALTER ROLE a PASSWORD E'x\\'y' LOGIN", "ALTER ROLE a PASSWORD E'REDACTED' LOGIN"),
            ("ALTER ROLE a PASSWORD 'x''y' LOGIN", "ALTER ROLE a PASSWORD 'REDACTED' LOGIN"),
            ("ALTER ROLE a PASSWORD $$x$$ LOGIN", "ALTER ROLE a PASSWORD $$REDACTED$$ LOGIN"),
            ("ALTER ROLE a PASSWORD $t$x$t$", "ALTER ROLE a PASSWORD $t$REDACTED$t$"),
            ("SET PASSWORD = 'x'", "SET PASSWORD = 'REDACTED'"),
            ("SET PASSWORD FOR u = PASSWORD('x')", "SET PASSWORD FOR u = PASSWORD('REDACTED')"),
            ("SET PASSWORD FOR 'u'@'h' = 'x'", "SET PASSWORD FOR 'u'@'h' = 'REDACTED'"),
            ("set password for u@h = \"x\"", "set password for u@h = \"REDACTED\""),
            (
                "ALTER USER 'u'@'h' IDENTIFIED WITH 'plug' BY 'y' REPLACE 'z'",
                "ALTER USER 'u'@'h' IDENTIFIED WITH 'plug' BY 'REDACTED' REPLACE 'REDACTED'",
            ),
            ("ALTER USER u IDENTIFIED WITH p AS 'h'", "ALTER USER u IDENTIFIED WITH p AS 'REDACTED'"),
            (
                "GRANT ALL ON a.* TO u IDENTIFIED BY PASSWORD '*h'",
                "GRANT ALL ON a.* TO u IDENTIFIED BY PASSWORD 'REDACTED'",
            ),
            (
                "CREATE USER u IDENTIFIED VIA p USING PASSWORD('x') OR q USING 'y'",
                "CREATE USER u IDENTIFIED VIA p USING PASSWORD('REDACTED') OR q USING 'REDACTED'",
            ),
            ("ALTER USER u IDENTIFIED BY x ACCOUNT UNLOCK", "ALTER USER u IDENTIFIED BY REDACTED ACCOUNT UNLOCK"),
            (
                "ALTER LOGIN u WITH PASSWORD = N'x' OLD_PASSWORD = 'y'",
                "ALTER LOGIN u WITH PASSWORD = N'REDACTED' OLD_PASSWORD = 'REDACTED'",
            ),
            (
                "CHANGE MASTER TO MASTER_PASSWORD='x', MASTER_PORT=1",
                "CHANGE MASTER TO MASTER_PASSWORD='REDACTED', MASTER_PORT=1",
            ),
            ("UPDATE user SET password = PASSWORD('x')", "UPDATE user SET password = PASSWORD('REDACTED')"),
            ("AUTH hunter2", "AUTH REDACTED"),
            ("auth user hunter2", "auth REDACTED"),
            ("HELLO 3 AUTH u p SETNAME n", "HELLO 3 AUTH REDACTED"),
            ("config set requirepass x", "config set requirepass REDACTED"),
            ("CONFIG SET maxmemory 1 masterauth x save 1", "CONFIG SET maxmemory 1 masterauth REDACTED save 1"),
            ("ACL SETUSER u on >x ~*", "ACL SETUSER u on >REDACTED ~*"),
            ("MULTI\nAUTH x\nGET auth", "MULTI\nAUTH REDACTED\nGET auth"),
        ],
        redact_statement,
    );
    for statement in [
        "SELECT * FROM t WHERE password = 'x' AND é = 'y'",
        "SELECT password, 'x' FROM t",
        "INSERT INTO t (password, name) VALUES ('x', 'y')",
        "CREATE TABLE t (password text DEFAULT 'x')",
        "SELECT id,\n  auth , name FROM t",
        "GET author",
        "CONFIG GET requirepass",
        "",
    ] {
        assert_eq!(redacted(statement, redact_statement), statement);
        assert!(is_plain_statement(statement), "{statement}");
    }
}

#[test]
fn arguments_lose_what_follows_a_secret_flag() {
    let cases: [(&[&str], &[&str]); 11] = [
        (&["a", "--token", "x", "y"], &["a", "--token", "REDACTED", "y"]),
        (&["a", "--password=x", "-v"], &["a", "--password=REDACTED", "-v"]),
        (&["a", "--api-key", "--other"], &["a", "--api-key", "--other"]),
        (&["mysql", "-p", "x"], &["mysql", "-p", "REDACTED"]),
        (&["serve", "-p", "8080"], &["serve", "-p", "8080"]),
        (&["docstore", "--key", "C2y6=="], &["docstore", "--key", "REDACTED"]),
        (&["docstore", "--key=C2y6==", "a=b"], &["docstore", "--key=REDACTED", "a=b"]),
        (&["docstore", "--key-file", "key"], &["docstore", "--key-file", "key"]),
        (&["curl", "-u", "joe:x", "-H", "X-Api-Key: y"], &["curl", "-u", "joe:REDACTED", "-H", "X-Api-Key: REDACTED"]),
        (&["a", "DB_PASSWORD=x", "http://u:p@h/"], &["a", "DB_PASSWORD=REDACTED", "http://REDACTED:REDACTED@h/"]),
        (&["a", "tokens", "x"], &["a", "tokens", "x"]),
    ];
    for (arguments, expected) in cases {
        let mut arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        redact_arguments(&mut arguments);
        assert_eq!(arguments, expected);
    }
}

/// Kinds of text in which secrets had been missed.
#[test]
fn coloured_and_encoded_text_is_redacted_as_it_reads() {
    check(
        &[
            ("\x1b[36mpassword\x1b[0m=\x1b[33mhunter2\x1b[0m ok", "\x1b[36mpassword\x1b[0m=\x1b[33mREDACTED\x1b[0m ok"),
            ("\u{9b}36mtoken\u{9b}0m=abc", "\u{9b}36mtoken\u{9b}0m=REDACTED"),
            (r"\u001b[32mapi_key\u001b[0m=abc", r"\u001b[32mapi_key\u001b[0m=REDACTED"),
            ("pass%77ord=hunter2 ok", "pass%77ord=REDACTED ok"),
            ("POST /a user%5Bpassword%5D=hunter2&b=1", "POST /a user%5Bpassword%5D=REDACTED&b=1"),
            (
                "to /a?next=https%3A%2F%2Fh%2F%3Ftoken%3Dabc%26b%3D1",
                "to /a?next=https%3A%2F%2Fh%2F%3Ftoken%3DREDACTED%26b%3D1",
            ),
            (r#"{"p\u0061ssword":"hunter2"}"#, r#"{"p\u0061ssword":"REDACTED"}"#),
            ("&lt;password&gt;hunter2&lt;/password&gt;", "&lt;password&gt;REDACTED&lt;/password&gt;"),
        ],
        redact_text,
    );
    check(
        &[
            ("https://h/a?api%5Fkey=abc&b=1", "https://h/a?api%5Fkey=REDACTED&b=1"),
            ("/a?user%5Bpassword%5D=x", "/a?user%5Bpassword%5D=REDACTED"),
            ("/a?next=https%3A%2F%2Fu%3Ap%40h%2F", "/a?next=https%3A%2F%2FREDACTED%3AREDACTED%40h%2F"),
        ],
        redact_url,
    );
    check(&[("%74oken=abc&b=1", "%74oken=REDACTED&b=1")], redact_query);
}

#[test]
fn values_lose_what_a_name_apart_from_them_marks() {
    check(
        &[
            (
                r#"{"name":"Authorization","value":"Bearer abc"},{"name":"Accept","value":"text/html"}"#,
                r#"{"name":"Authorization","value":"REDACTED"},{"name":"Accept","value":"text/html"}"#,
            ),
            (
                r#"{"value":"3","name":"page"},{"value":"abc","name":"token"}"#,
                r#"{"value":"3","name":"page"},{"value":"REDACTED","name":"token"}"#,
            ),
            (
                "env:\n- name: PORT\n  value: 80\n- name: DB_PASSWORD\n  value: a b\n- name: A\n  value: b\n",
                "env:\n- name: PORT\n  value: 80\n- name: DB_PASSWORD\n  value: REDACTED\n- name: A\n  value: b\n",
            ),
            ("[{\"Key\":\"api_key\", \"Value\":\"abc\"}]", "[{\"Key\":\"api_key\", \"Value\":\"REDACTED\"}]"),
            ("<add key=\"DbPassword\" value=\"abc\"/>", "<add key=\"DbPassword\" value=\"REDACTED\"/>"),
            (r#"{\"name\":\"token\",\"value\":\"abc\"}"#, r#"{\"name\":\"token\",\"value\":\"REDACTED\"}"#),
        ],
        redact_text,
    );
}

#[test]
fn elements_and_parts_of_forms_lose_theirs() {
    check(
        &[
            ("<a><user>joe</user><password>x y</password></a>", "<a><user>joe</user><password>REDACTED</password></a>"),
            (
                "<wsse:Password Type=\"t\">\n x\n</wsse:Password>",
                "<wsse:Password Type=\"t\">\n REDACTED\n</wsse:Password>",
            ),
            ("<token><![CDATA[abc]]></token>", "<token><![CDATA[REDACTED]]></token>"),
            ("<entry key=\"password\">abc</entry>", "<entry key=\"password\">REDACTED</entry>"),
            ("<name>db.password</name>\n<value>abc</value>", "<name>db.password</name>\n<value>REDACTED</value>"),
            (
                r#""form-data; name=\"password\"\r\n\r\nx\r\n--b""#,
                r#""form-data; name=\"password\"\r\n\r\nREDACTED\r\n--b""#,
            ),
            ("<key>ApiToken</key><string>abc</string>", "<key>ApiToken</key><string>REDACTED</string>"),
            (
                "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\na b\r\n--b\r\nContent-Disposition: \
                 form-data; name=\"a\"\r\n\r\nc\r\n--b--",
                "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nREDACTED\r\n--b\r\nContent-Disposition: \
                 form-data; name=\"a\"\r\n\r\nc\r\n--b--",
            ),
        ],
        redact_text,
    );
}

#[test]
fn options_of_programs_and_data_source_names_lose_theirs() {
    check(
        &[
            ("mysql -uroot -phunter2 shop", "mysql -uroot -pREDACTED shop"),
            ("/usr/bin/mysqldump -p'a b' shop", "/usr/bin/mysqldump -p'REDACTED' shop"),
            ("[\"mysql\", \"-px y\", \"shop\"]", "[\"mysql\", \"-pREDACTED\", \"shop\"]"),
            ("redis-cli -h db -a hunter2 ping", "redis-cli -h db -a REDACTED ping"),
            ("curl -u joe:hunter2 -X PUT", "curl -u joe:REDACTED -X PUT"),
            ("sshpass -p hunter2 ssh -p 22 h", "sshpass -p REDACTED ssh -p REDACTED h"),
            ("dsn app:hunter2@tcp(db:3306)/shop", "dsn app:REDACTED@tcp(db:3306)/shop"),
            ("dsn scott/tiger@//db:1521/orcl", "dsn scott/REDACTED@//db:1521/orcl"),
            ("CREATE USER a IDENTIFIED BY 'x'", "CREATE USER a IDENTIFIED BY 'REDACTED'"),
            ("CREATE USER a IDENTIFIED BY x", "CREATE USER a IDENTIFIED BY REDACTED"),
        ],
        redact_text,
    );
    let cases: [(&[&str], &[&str]); 6] = [
        (&["mysql", "-uroot", "-phunter2", "shop"], &["mysql", "-uroot", "-pREDACTED", "shop"]),
        (&["docker", "exec", "db", "mysql", "-px"], &["docker", "exec", "db", "mysql", "-pREDACTED"]),
        (&["redis-cli", "-a", "x", "ping"], &["redis-cli", "-a", "REDACTED", "ping"]),
        (&["curl", "-ujoe:x"], &["curl", "-ujoe:REDACTED"]),
        (&["tool", "-u", "a:x"], &["tool", "-u", "a:REDACTED"]),
        (&["sh", "-c", "mysql -px"], &["sh", "-c", "mysql -pREDACTED"]),
    ];
    for (arguments, expected) in cases {
        let mut arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        redact_arguments(&mut arguments);
        assert_eq!(arguments, expected);
    }
}

#[test]
fn statements_of_more_dialects_lose_theirs() {
    check(
        &[
            ("CREATE USER a IDENTIFIED BY /* why */ 'x'", "CREATE USER a IDENTIFIED BY /* why */ 'REDACTED'"),
            ("ALTER USER a PASSWORD -- why\n 'x'", "ALTER USER a PASSWORD -- why\n 'REDACTED'"),
            (
                "CREATE SUBSCRIPTION s CONNECTION 'host=h password=x dbname=d' PUBLICATION p",
                "CREATE SUBSCRIPTION s CONNECTION 'host=h password=REDACTED dbname=d' PUBLICATION p",
            ),
            (
                "SELECT * FROM dblink('postgres://u:p@h/d', 'SELECT 1')",
                "SELECT * FROM dblink('postgres://REDACTED:REDACTED@h/d', 'SELECT 1')",
            ),
            (
                "COPY t FROM 's3://b/k' CREDENTIALS 'aws_access_key_id=a;aws_secret_access_key=b'",
                "COPY t FROM 's3://b/k' CREDENTIALS 'REDACTED'",
            ),
            (
                "COPY t FROM 's3://b' ACCESS_KEY_ID 'a' SECRET_ACCESS_KEY 'b' SESSION_TOKEN 'c'",
                "COPY t FROM 's3://b' ACCESS_KEY_ID 'REDACTED' SECRET_ACCESS_KEY 'REDACTED' SESSION_TOKEN 'REDACTED'",
            ),
            ("COPY INTO t CREDENTIALS=(AWS_SECRET_KEY='b')", "COPY INTO t CREDENTIALS=(AWS_SECRET_KEY='REDACTED')"),
            ("CREATE CREDENTIAL c WITH SECRET = 'x'", "CREATE CREDENTIAL c WITH SECRET = 'REDACTED'"),
            (
                r#"createUser {"createUser":"app","pwd":"x","roles":[]}"#,
                r#"createUser {"createUser":"app","pwd":"REDACTED","roles":[]}"#,
            ),
            ("db.createUser({user: 'u', pwd: 'x'})", "db.createUser({user: 'u', pwd: 'REDACTED'})"),
        ],
        redact_statement,
    );
}

#[test]
fn ordinary_texts_stay_as_they_are() {
    for text in [
        "serve -p 8080 -u 1000:1000",
        "expected postgres://USER@HOST:PORT/DATABASE",
        "docker run -u 1000:1000 -p 127.0.0.1:8080:80 mysql:8",
        "tar -pxzf a.tgz && mkdir -p /data",
        "prompt tokens: 512, tokens=17 secrets: 3",
        "password_hash_seconds_bucket{le=\"0.5\"} 3",
        "password_resets_total 17, token_count=5, api_key_rotations: 2",
        "the key: value pairs of name=page value=3",
        "{\"name\":\"page\",\"value\":\"3\"}",
        "env:\n- name: PORT\n  value: 80\n",
        "<name>shop</name><value>3</value> <tokens>17</tokens>",
        "95 % of 100%25 %d %s %zz, A & B &amp; C",
        "\x1b[32mINFO\x1b[0m GET /orders/17 took 3 ms",
        "C:\\new\\users\\report at 12:30:00",
        "joe@example.com, git@github.com:joe/shop, npm/pkg@1.2.3, 3 @ (room)",
        "image/name@sha256:9f86d081884c7d659a2feaa0c55ad015",
        "GET /basic/plan, Basic plan, monkey: banana, keyboard=us",
        "the passage: a connection was reset, authority: host:80",
        "SELECT \"users\".\"token\" FROM \"users\" WHERE id = 'x'",
        "curl -X PUT -u joe http://h/",
        "redis-cli -h db -p 6379 ping",
        "http.status=200 code=17 signature_version=4",
    ] {
        assert_eq!(redacted(text, redact_text), text);
        assert!(is_plain_text(text), "{text}");
    }
    for statement in [
        "SELECT \"users\".\"token\" \"t0\" FROM \"users\"",
        "SELECT `password` FROM `users` WHERE `secret` = 'x'",
        "UPDATE users SET token = 'x' WHERE note = 'forgot password' AND a = 'b'",
        "SELECT a -- token\nFROM t /* password */ WHERE b LIKE '%ab%'",
        "SELECT pwd, connection FROM credentials WHERE name = 'a=b'",
        "CREATE TABLE t (password text, token text DEFAULT 'x')",
        "{\"find\":\"users\",\"filter\":{\"password\":\"x\"}}",
    ] {
        assert_eq!(redacted(statement, redact_statement), statement);
        assert!(is_plain_statement(statement), "{statement}");
    }
    let arguments =
        ["docker", "run", "-p", "8080:80", "-p", "53:53/udp", "-u", "1000:1000", "-v", "/a:/b", "-p", "/data"];
    let mut shown = arguments.map(str::to_owned);
    redact_arguments(&mut shown);
    assert_eq!(shown, arguments);
}

#[test]
fn a_known_value_that_a_limit_cut_is_blanked_at_the_end_of_a_long_text() {
    let known = KnownSecrets::new(["Zk4711-qV-secret".to_owned()]);
    let long = "x ".repeat(300);
    assert_eq!(known.hidden(format!("{long}Zk4711-q")), format!("{long}REDACTED"));
    assert_eq!(known.hidden("short Zk4711-q"), "short Zk4711-q");
    assert_eq!(known.hidden(format!("{long}Zk4")), format!("{long}Zk4"));
}

#[test]
fn known_values_are_blanked_wherever_they_stand() {
    let values =
        ["s3cr3t\"x", "correct", "s3cr3t\"x-longer", "12345678", "short", "true", "1234567", "postgres", "ünï€"];
    let known = KnownSecrets::new(values.map(str::to_owned));
    for (text, expected) in [
        ("a s3cr3t\"x b", "a REDACTED b"),
        ("as3cr3t\"x-longerb", "aREDACTEDb"),
        (r#"{"a":"s3cr3t\"x"}"#, r#"{"a":"REDACTED"}"#),
        ("/a?b=s3cr3t%22x&c", "/a?b=REDACTED&c"),
        ("czNjcjN0Ing=", "REDACTED="),
        ("correct, incorrect corrected", "REDACTED, incorrect corrected"),
        ("id 12345678", "id REDACTED"),
        ("short true 1234567 postgres", "short true 1234567 postgres"),
        ("ünï€!", "REDACTED!"),
    ] {
        assert_eq!(known.hidden(text), expected);
        assert_eq!(known.is_in(text.as_bytes()), text != expected, "{text}");
    }
    let mut value = serde_json::json!({ "a": ["x correct", 12345678], "b": 1 });
    known.hide_in_json(&mut value);
    assert_eq!(value, serde_json::json!({ "a": ["x REDACTED", "REDACTED"], "b": 1 }));
    let mut message = "expected a rate, found \"s3cr3t…\"".to_owned();
    known.hide_in_message(&mut message);
    assert_eq!(message, "expected a rate, found \"REDACTED…\"");
    assert!(KnownSecrets::new(["short".to_owned()]).is_empty());
    assert_eq!(KnownSecrets::default().hidden("as it is"), "as it is");
}

#[test]
fn known_values_are_bounded() {
    let many = KnownSecrets::new((0..5000).map(|n| format!("secret-{n:06}")));
    assert!(format!("{many:?}").ends_with("(1000 values)"));
    let long = KnownSecrets::new(["x1".repeat(1 << 20)]);
    assert_eq!(long.hidden("x1".repeat(2 << 10)), REDACTED);
}

/// Searches that look at a text again from each of its places would take hours here.
#[test]
fn long_hostile_texts_are_gone_through_once() {
    const BYTES: usize = 1 << 20;
    let pieces = [
        "?",
        "#",
        ":",
        "=",
        "-",
        "://",
        "://a",
        "?a",
        "a:",
        "password",
        "password=",
        "password: ",
        "password='",
        "password=[",
        "token=\\\"",
        "bearer ",
        "Bearer abcdef1 ",
        "basic",
        " --token ",
        "--token,\"",
        "bad token: a",
        "&",
        ",",
        "a,",
        "password=a,b",
        "identified by ",
        "identified with '",
        "password(",
        "set password for a",
        "$a",
        "auth ",
        "acl >",
        "'",
        "''",
        "\\",
        " ",
        "é",
        "\x1b[1m",
        "\x1b]8;;",
        "%70",
        "%2570",
        "&lt;",
        "\\u0070",
        "<password>",
        "<a>",
        "<key>token",
        "</",
        "name: token ",
        "value: a ",
        "value:a",
        "key=[",
        "mysql -p[ ",
        " -p\"",
        "a:@(",
        "a/b@",
        "form-data; name=\"password\"\n\n",
        "/*",
        "--",
        "/*! ",
        "createuser ",
        "secret 'a' ",
        "secret \"",
    ];
    let go_through = |text: &str| {
        for redact in [redact_url, redact_query, redact_text, redact_statement] {
            assert!(redacted(text, redact).len() <= 12 * text.len());
        }
    };
    go_through(&pieces.concat().repeat(BYTES / pieces.concat().len()));
    for piece in pieces {
        for begin in ["", "password=", "{\"password\":\""] {
            go_through(&(begin.to_owned() + &piece.repeat(BYTES / 16 / piece.len())));
        }
    }
}

proptest! {
    #[test]
    fn redacting_text_never_panics_and_settles(text in "[a-zé=:?&'\"/\\\\ \n,{}\\[\\]$*-]{0,60}", word in "(Cookie|Bearer|bad token:|--token|\"token\")") {
        let once = redacted(&format!("{word} {text} password='x' token={text}"), redact_text);
        prop_assert_eq!(redacted(&once, redact_text), once);
    }

    #[test]
    fn redacting_statements_never_panics_and_settles(
        text in "(password|identified|by|for|set |as|using|auth|config|[ '\"=()@$;é\\\\\n]){0,30}",
        begin in "(set |alter |select |acl |hello |)",
    ) {
        let once = redacted(&(begin + &text), redact_statement);
        prop_assert_eq!(redacted(&once, redact_statement), once);
    }

    #[test]
    fn redacting_addresses_settles(url in "(https?://)?[a-z:@é/?#&=]{0,40}(token=[a-z]{0,5}&?){0,3}") {
        let once = redacted(&url, redact_url);
        prop_assert_eq!(redacted(&once, redact_url), once);
    }

    #[test]
    fn a_plain_text_is_one_that_stays(text in "[a-z=: '?-]{0,40}(token|password|Bearer)[a-zA-Z1=: '?-]{0,20}") {
        if is_plain_text(&text) {
            prop_assert_eq!(redacted(&text, redact_text), text);
        }
    }

    #[test]
    fn a_random_value_behind_a_secret_name_is_gone(value in "[a-zA-Z0-9!#%+_~^][a-zA-Z0-9!#%+_~^-]{7,39}", shape in 0_usize..13) {
        let text = match shape {
            0 => format!("password={value} x"),
            1 => format!("password: {value}"),
            2 => format!("{{\"api_token\":\"{value}\"}}"),
            3 => format!("--client-secret {value}Z9"),
            4 => format!("X-Auth-Token: {value}"),
            5 => format!("Authorization: Bearer {value}"),
            6 => format!("passwd = '{value}' x"),
            7 => format!("http://joe:{}@h/", value.replace('#', "")),
            8 => format!("\x1b[1mpassword\x1b[0m=\x1b[2m{value}\x1b[0m x"),
            9 => format!("<password>{value}</password>"),
            10 => format!("{{\"name\":\"api_token\",\"value\":\"{value}\"}}"),
            11 => format!("app:{value}@tcp(db:3306)/d"),
            _ => format!("mysql -p{value} shop"),
        };
        let value = if shape == 7 { value.replace('#', "") } else { value };
        prop_assume!(!value.is_empty() && !value.starts_with('-'));
        prop_assert!(!redacted(&text, redact_text).contains(&value));
    }
}
