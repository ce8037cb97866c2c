//! A file's life: killed, resumed, finished, damaged.

use super::*;

#[test]
fn what_was_acknowledged_survives_a_killed_writer() {
    let place = Place::new();
    let (_file, recorder) = started(&place.path(), Limits::default());
    let mut expected = write_all(&recorder);
    let killed = place.copy_as_killed();
    expected.run.state = RunState::Interrupted;
    expected.trials[0].trial.state = TrialState::Interrupted;
    assert_eq!(evidence(&killed.path()), expected);
    assert_eq!(row(&killed.path(), "SELECT count(*) FROM logs"), "2");
}

#[test]
fn an_interrupted_run_is_resumed_and_its_trial_redone() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_trial(&trial(2)).unwrap();
    write_all(&recorder);
    let error = RunFile::resume(&place.path()).unwrap_err();
    assert!(matches!(error, Error::InUse { pid, .. } if pid == std::process::id()), "{error}");
    file.finish(RunState::Interrupted).unwrap();

    let (file, run, trials) = RunFile::resume(&place.path()).unwrap();
    assert_eq!((run.state, run.ended_ns), (RunState::Running, None));
    assert_eq!(trials.iter().map(|trial| trial.state).collect::<Vec<_>>(), [TrialState::Interrupted; 2]);
    file.restart_trial(1).unwrap();
    let tables = "SELECT (SELECT count(*) FROM windows) + (SELECT count(*) FROM services) + \
                  (SELECT count(*) FROM load_second_rows) + (SELECT count(*) FROM load_latency_rows) + \
                  (SELECT count(*) FROM sample_rows) + (SELECT count(*) FROM span_rows) + \
                  (SELECT count(*) FROM points) + (SELECT count(*) FROM series) + (SELECT count(*) FROM log_rows) + \
                  (SELECT sum(spans_stored + points_stored + logs_stored + samples_stored) FROM trials), \
                  (SELECT group_concat(state) FROM trials)";
    assert_eq!(row(&place.path(), tables), "0|planned,interrupted");

    let recorder = file.recorder();
    recorder.put_trial(&trial(1)).unwrap();
    recorder.set_trial(Some(1));
    let expected = write_all(&recorder);
    assert_eq!(evidence(&place.path()).trials[0], expected.trials[0]);
    assert!(matches!(file.restart_trial(9), Err(Error::UnknownTrial(9))));
    file.finish(RunState::Complete).unwrap();
    assert!(matches!(RunFile::resume(&place.path()), Err(Error::Complete(_))));
}

#[test]
fn a_killed_run_is_resumed() {
    let place = Place::new();
    let (_file, recorder) = started(&place.path(), Limits::default());
    let expected = write_all(&recorder);
    let killed = place.copy_as_killed();
    let (file, ..) = RunFile::resume(&killed.path()).unwrap();
    assert_eq!(wait(file.recorder().spans(vec![])), kept(0));
    assert_eq!(evidence(&killed.path()).trials[0].traces, expected.trials[0].traces);
    drop(file);
    assert_eq!(Reader::open(&killed.path()).unwrap().run().unwrap().state, RunState::Interrupted);
    assert_eq!(killed.names().len(), 1, "a dropped file is plain as well");
}

#[test]
fn a_finished_run_is_one_plain_file() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    write_all(&recorder);
    assert!(place.names().len() > 1, "a log lies beside it while the run lasts");
    file.finish(RunState::Failed).unwrap();
    assert_eq!(place.names(), ["checkout 100%?.narrows"]);
    assert_eq!(row(&place.path(), "PRAGMA journal_mode"), "delete");
    assert_eq!(row(&place.path(), "PRAGMA integrity_check"), "ok");
    assert_eq!(row(&place.path(), "SELECT count(*) FROM pragma_foreign_key_check"), "0");
    assert!(matches!(recorder.put_trial(&trial(3)), Err(Error::Closed)));
    assert!(matches!(wait(recorder.spans(vec![])), Err(Refused::Broken(_))));
}

#[test]
fn a_writer_that_panics_is_named_as_the_reason() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let error = recorder.call(1, |_| panic!("a defect")).unwrap_err();
    assert!(matches!(error, Error::WriterFailed), "{error}");
    let failed = "the run file takes nothing more: the thread that writes it failed";
    assert_eq!(recorder.put_trial(&trial(1)).unwrap_err().to_string(), failed);
    assert_eq!(wait(recorder.spans(vec![])), Err(Refused::Broken(failed.into())));
    assert_eq!(file.finish(RunState::Complete).unwrap_err().to_string(), failed);
}

#[test]
fn a_run_never_overwrites_a_file_and_never_ends_running() {
    let place = Place::new();
    std::fs::write(place.path(), "mine").unwrap();
    let error = RunFile::create(&place.path(), &run()).unwrap_err();
    assert!(error.to_string().ends_with("checkout 100%?.narrows: it exists already"), "{error}");
    assert_eq!(std::fs::read(place.path()).unwrap(), b"mine");
    let nowhere = place.folder.path().join("no/such/folder.narrows");
    let error = RunFile::create(&nowhere, &run()).unwrap_err();
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(matches!(&error, Error::Io { .. }) && !error.to_string().contains(&reason), "{error}: {reason}");

    let other = place.folder.path().join("other.narrows");
    let file = RunFile::create(&other, &run()).unwrap();
    assert!(matches!(file.finish(RunState::Running), Err(Error::EndsRunning)));
    assert_eq!(Reader::open(&other).unwrap().run().unwrap().state, RunState::Interrupted);
}

#[test]
fn files_that_are_not_whole_run_files_are_told_apart() {
    let place = Place::new();
    let path = place.path();
    let (file, recorder) = started(&path, Limits::default());
    (0..200).for_each(|number| drop(recorder.spans(trace(number, T0).spans)));
    file.finish(RunState::Complete).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let message = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let error = match Reader::open(&path) {
            Ok(reader) => reader.evidence(TraceLimit::default()).unwrap_err(),
            Err(error) => error,
        };
        assert!(RunFile::resume(&path).is_err(), "{error}");
        error.to_string().replace(place.folder.path().to_str().unwrap(), "")
    };
    let changed = |sql: &str| {
        std::fs::write(&path, &whole).unwrap();
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        std::fs::read(&path).unwrap()
    };
    let not_one = "/checkout 100%?.narrows is not a Narrows run file";
    let damaged = "run file /checkout 100%?.narrows is damaged: ";
    assert_eq!(message(b""), not_one);
    assert_eq!(message(b"hello"), not_one);
    assert_eq!(message(&[b'x'; 10_000]), not_one);
    assert_eq!(message(&changed("PRAGMA application_id = 1")), not_one);
    for length in [300, 4096, whole.len() / 2] {
        assert_eq!(message(&whole[..length]), format!("{damaged}database disk image is malformed"), "{length}");
    }
    let length = whole.len();
    assert_eq!(message(&whole[..length - 1]), format!("{damaged}it is cut off after {} of {length} bytes", length - 1));
    assert_eq!(
        message(&changed("PRAGMA user_version = 8")),
        "/checkout 100%?.narrows was written by a newer version (schema 8; this narrows reads up to 7)"
    );
    assert!(message(&changed("PRAGMA user_version = 0")).starts_with(damaged));
    assert!(message(&changed("DELETE FROM run")).starts_with(damaged));
    assert!(message(&changed("UPDATE run SET environment = '{'")).starts_with(damaged));
    assert!(
        message(&changed("PRAGMA ignore_check_constraints = 1; UPDATE run SET state = 'odd'")).starts_with(damaged)
    );
    assert!(matches!(Reader::open(&place.folder.path().join("none")), Err(Error::Io { .. })));
    assert!(matches!(Reader::open(place.folder.path()), Err(Error::NotARunFile(_))));
}

#[test]
fn bytes_that_rot_never_panic() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    write_all(&recorder);
    file.finish(RunState::Complete).unwrap();
    let whole = std::fs::read(place.path()).unwrap();
    let mut failed = 0;
    for at in (0..whole.len()).step_by(509) {
        let mut bytes = whole.clone();
        bytes[at..(at + 8).min(whole.len())].fill(0xff);
        std::fs::write(place.path(), bytes).unwrap();
        let read = Reader::open(&place.path()).and_then(|reader| reader.evidence(TraceLimit::default()));
        failed += usize::from(read.is_err());
    }
    assert!(failed > 0, "some of it must have mattered");
}

/// Makes a file of schema 4 of one of schema 5, whose views are gone but for `spans`.
const TO_SCHEMA_4: &str = include_str!("to_schema_4.sql");

/// Makes a file of schema 3 of one of schema 4, whose views are gone but for `spans`.
const TO_SCHEMA_3: &str = include_str!("to_schema_3.sql");

/// Makes a file of schema 2 of one of schema 3: without what schema 3 added.
const TO_SCHEMA_2: &str = "DROP VIEW IF EXISTS load_seconds; \
     ALTER TABLE load_second_rows DROP COLUMN request; ALTER TABLE load_second_rows DROP COLUMN due; \
     ALTER TABLE load_second_rows DROP COLUMN late; ALTER TABLE load_second_rows DROP COLUMN dropped; \
     ALTER TABLE load_second_rows DROP COLUMN errors_check; ALTER TABLE windows DROP COLUMN rate; \
     CREATE TABLE older (id INTEGER PRIMARY KEY, trial INTEGER NOT NULL REFERENCES trials (id), \
     scenario INTEGER NOT NULL, vu INTEGER NOT NULL, intended_ns INTEGER NOT NULL, sent_ns INTEGER NOT NULL, \
     done_ns INTEGER NOT NULL, status INTEGER NOT NULL, \
     error TEXT CHECK (error IN ('connect', 'reset', 'timeout', 'protocol', 'status')), bytes INTEGER NOT NULL, \
     trace_id BLOB CHECK (length(trace_id) = 16), weight REAL NOT NULL); \
     INSERT INTO older SELECT id, trial, scenario, vu, intended_ns, sent_ns, done_ns, status, 'reset', bytes, trace_id, \
     weight FROM sample_rows; DROP TABLE sample_rows; ALTER TABLE older RENAME TO sample_rows; \
     CREATE INDEX sample_rows_by_time ON sample_rows (trial, intended_ns); \
     CREATE VIEW samples AS SELECT trial, vu, error FROM sample_rows; \
     CREATE VIEW load_seconds AS SELECT trial, vus FROM load_second_rows; PRAGMA user_version = 2;";

/// Makes a file of schema 1 of one of schema 2: without what schema 2 added.
const TO_SCHEMA_1: &str = "DROP VIEW spans; \
     ALTER TABLE span_rows DROP COLUMN db_rows; ALTER TABLE span_rows DROP COLUMN db_charge; \
     ALTER TABLE span_rows DROP COLUMN db_sub_status; ALTER TABLE span_rows DROP COLUMN db_partition; \
     ALTER TABLE span_rows DROP COLUMN retry_after_ns; ALTER TABLE span_rows DROP COLUMN resend_count; \
     CREATE VIEW spans AS SELECT trial, trace_hex AS trace_id FROM span_rows; PRAGMA user_version = 1;";

/// The evidence that [`write_all`] makes, as schema 2 has it.
fn as_of_schema_2(mut trial: TrialEvidence) -> TrialEvidence {
    for row in &mut trial.seconds {
        row.request.clear();
        (row.due, row.late, row.dropped, row.errors.check) = (0, 0, 0, 0);
    }
    trial.windows.iter_mut().for_each(|window| window.rate = None);
    trial
}

/// The evidence that [`write_all`] makes, as schema 1 has it.
fn as_of_schema_1(trial: TrialEvidence) -> TrialEvidence {
    let mut trial = as_of_schema_2(trial);
    let facts = trial.traces.iter_mut().flat_map(|trace| &mut trace.spans).map(|span| &mut span.facts);
    for facts in facts {
        *facts = SpanFacts {
            db_rows: None,
            db_charge: None,
            db_sub_status: None,
            db_partition: None,
            retry_after_ns: None,
            resend_count: None,
            ..facts.clone()
        };
    }
    for call in trial.operations.iter_mut().flat_map(|operation| &mut operation.calls) {
        call.charge = None;
        call.seconds.iter_mut().for_each(|second| second.charge = 0.0);
    }
    trial
}

/// A file of an older schema whose run was cut short, as these statements make it of one that has everything.
fn older_file(place: &Place, downgrades: &[&str]) -> TrialEvidence {
    let (file, recorder) = started(&place.path(), Limits::default());
    let mut written = write_all(&recorder).trials.remove(0);
    file.finish(RunState::Interrupted).unwrap();
    downgrade(place, downgrades);
    written.trial.state = TrialState::Interrupted;
    written
}

fn downgrade(place: &Place, downgrades: &[&str]) {
    let connection = Connection::open(place.path()).unwrap();
    let views =
        "SELECT group_concat('DROP VIEW ' || name, ';') FROM sqlite_schema WHERE type = 'view' AND name <> 'spans'";
    connection.execute_batch(&row(&place.path(), views)).unwrap();
    [&super::inbox::TO_SCHEMA_5, &TO_SCHEMA_4]
        .into_iter()
        .chain(downgrades)
        .for_each(|sql| connection.execute_batch(sql).unwrap());
}

/// Two traces whose attributes say what schema 4 has no columns for; some of it is another for each span.
fn remote_calls() -> Vec<Span> {
    let span = |number: u8| {
        let given = match number % 3 {
            0 => json!({ "rpc.system": "grpc", "rpc.service": "Cart", "rpc.method": "Add", "rpc.grpc.status_code": 4 }),
            1 => json!({
                "messaging.system": "kafka", "messaging.operation": "publish", "messaging.batch.message_count": number,
                "messaging.destination.name": format!("replies {number} 100 %"),
            }),
            _ => {
                json!({ "url.template": "/a/{id}", "peer.service": "b", "db.collection.name": "c", "http.method": "GET",
                "url.path": format!("/a/{number}") })
            }
        };
        let given = attributes(given);
        let facts = crate::normalise::facts(&given);
        let span = trace(1 + number % 2, T0 + 11 * SECOND + i64::from(number)).spans.remove(0);
        Span { span_id: [number + 1; 8], facts, attributes: given, name: "work".into(), ..span }
    };
    (0..30).map(span).collect()
}

#[test]
fn a_file_of_schema_4_has_all_facts_in_columns_once_it_is_resumed() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    assert_eq!(wait(recorder.spans(remote_calls())), kept(30));
    file.finish(RunState::Interrupted).unwrap();
    let expected = evidence(&place.path());
    let names = "SELECT group_concat(name, ' ') FROM (SELECT name FROM requests ORDER BY timestamp_ns)";
    let columns = "SELECT json_group_array(json_array(rpc_system, rpc_service, rpc_method, rpc_status, messaging_system, \
                   messaging_destination, messaging_operation, batch_size, db_collection, peer_service, url_template, \
                   request_name)) FROM (SELECT * FROM spans ORDER BY start_ns)";
    let (named, said) = (super::query::first(&place, names), row(&place.path(), columns));
    assert!(named.starts_with("work work GET /a/2 work work GET /a/5"), "{named}");
    assert!(said.contains("\"replies 4 100 %\",\"send\",4,"), "{said}");

    downgrade(&place, &[]);
    assert_eq!(evidence(&place.path()), expected, "read as it is");
    assert_eq!(super::query::first(&place, names), named);
    let (file, ..) = RunFile::resume(&place.path()).unwrap();
    file.finish(RunState::Interrupted).unwrap();
    assert_eq!(evidence(&place.path()), expected, "and brought up to date");
    assert_eq!((super::query::first(&place, names), row(&place.path(), columns)), (named, said));
    assert_eq!(row(&place.path(), "SELECT count(*) > 5 AND count(*) < 30 FROM span_shape_rows"), "1");
}

#[test]
fn what_a_trace_of_schema_4_stands_for_is_told_from_what_its_spans_came_with() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    assert_eq!(wait(recorder.spans(remote_calls())), kept(30));
    file.finish(RunState::Interrupted).unwrap();
    downgrade(&place, &[]);
    // One trace was kept for four; the other was sampled by who sent it. Their spans share shapes.
    let connection = Connection::open(place.path()).unwrap();
    let kept = "UPDATE trace_rows SET stands_for = 4 WHERE id = 1; UPDATE span_shape_rows SET weight = 4";
    connection.execute_batch(kept).unwrap();
    drop(connection);
    let (file, ..) = RunFile::resume(&place.path()).unwrap();
    file.finish(RunState::Interrupted).unwrap();
    let weights = "SELECT group_concat(weights, ' ') FROM (SELECT DISTINCT t.id || ':' || t.weight || '*' || h.weight AS \
                   weights FROM trace_rows AS t JOIN span_rows AS s ON s.trace = t.id JOIN span_shape_rows AS h \
                   ON h.id = s.shape ORDER BY 1)";
    assert_eq!(row(&place.path(), weights), "1:4.0*1.0 2:1.0*4.0");
    assert_eq!(row(&place.path(), "SELECT sum(weight) FROM spans"), "120.0");
}

#[test]
fn a_file_of_schema_1_is_read_as_it_is_and_brought_up_to_date_when_resumed() {
    let place = Place::new();
    let expected = as_of_schema_1(older_file(&place, &[TO_SCHEMA_3, TO_SCHEMA_2, TO_SCHEMA_1]));
    let bytes = std::fs::read(place.path()).unwrap();
    assert_eq!(evidence(&place.path()).trials[..], *std::slice::from_ref(&expected));
    assert_eq!(std::fs::read(place.path()).unwrap(), bytes, "reading changes nothing");

    let (file, ..) = RunFile::resume(&place.path()).unwrap();
    let recorder = file.recorder();
    recorder.set_trial(Some(1));
    assert_eq!(wait(recorder.spans(trace(4, T0 + 13 * SECOND).spans)), kept(2));
    file.finish(RunState::Complete).unwrap();
    assert_eq!(row(&place.path(), "PRAGMA user_version"), "7");
    let charges =
        "SELECT count(*), count(db_charge), sum(db_charge), (SELECT sum(charge) FROM dependencies) FROM spans";
    assert_eq!(row(&place.path(), charges), "8|1|2.5|2.5");
    let read = evidence(&place.path()).trials.remove(0);
    assert_eq!(read.traces[..2], expected.traces[..]);
    assert_eq!(read.traces[2], trace(4, T0 + 13 * SECOND));
    assert_eq!(read.operations[0].calls[0].charge, Some(10.0), "what the calls said that said it");
}

#[test]
fn a_file_of_schema_2_takes_named_requests_and_failed_checks_once_it_is_resumed() {
    let place = Place::new();
    let expected = as_of_schema_2(older_file(&place, &[TO_SCHEMA_3, TO_SCHEMA_2]));
    let older_sample = |vu| Sample { request: String::new(), error: Some(ErrorKind::Reset), ..sample(vu) };
    assert_eq!(evidence(&place.path()).trials[..], *std::slice::from_ref(&expected));
    assert_eq!(Reader::open(&place.path()).unwrap().samples(1).unwrap(), [older_sample(0), older_sample(1)]);

    let (file, ..) = RunFile::resume(&place.path()).unwrap();
    let batch = LoadBatch { seconds: vec![second(12)], samples: vec![sample(2)] };
    file.recorder().put_load(1, batch).unwrap();
    file.finish(RunState::Complete).unwrap();
    let read = evidence(&place.path()).trials.remove(0);
    assert_eq!(read.seconds, [expected.seconds, vec![second(12)]].concat());
    let samples = Reader::open(&place.path()).unwrap().samples(1).unwrap();
    assert_eq!(samples, [older_sample(0), older_sample(1), sample(2)]);
    let sums = "SELECT sum(due), sum(errors_check), (SELECT group_concat(error) FROM samples), \
                (SELECT count(*) FROM sqlite_schema WHERE name LIKE '%older%') FROM load_seconds";
    assert_eq!(row(&place.path(), sums), "110|1|reset,reset,check|0");
    let broken = "SELECT count(*) FROM pragma_foreign_key_check";
    assert_eq!(row(&place.path(), broken), "0");
}

#[test]
fn a_file_of_schema_3_keeps_every_span_as_it_was_once_it_is_resumed() {
    let place = Place::new();
    let expected = older_file(&place, &[TO_SCHEMA_3]);
    assert_eq!(evidence(&place.path()).trials[..], *std::slice::from_ref(&expected), "read as it is");

    let (file, ..) = RunFile::resume(&place.path()).unwrap();
    let recorder = file.recorder();
    recorder.set_trial(Some(1));
    assert_eq!(wait(recorder.spans(trace(1, T0 + 11 * SECOND).spans)), kept(2), "which are there already");
    file.finish(RunState::Interrupted).unwrap();
    assert_eq!(evidence(&place.path()).trials[..], *std::slice::from_ref(&expected), "and brought up to date");
    let span = "SELECT trace_id, name, end_ns - start_ns, status_message, url, db_query, attributes, weight FROM spans \
                WHERE trace_id = '01010101010101010101010101010101' AND kind = 'client'";
    let said = "01010101010101010101010101010101|SELECT invoices|12500000|too many requests||\
                SELECT * FROM c WHERE c.token = 'kept'|{\"db.response.status_code\":\"429\"}|4.0";
    assert_eq!(row(&place.path(), span), said);
    let counted = "SELECT sum(arrived), sum(kept), sum(weight), (SELECT spans_stored FROM trials) FROM span_counts";
    assert_eq!(row(&place.path(), counted), "6|6|24.0|6");
    let left = "SELECT count(*) FROM sqlite_schema WHERE name LIKE '%older%'";
    assert_eq!(row(&place.path(), left), "0");
}

#[test]
fn a_file_of_schema_6_knows_no_ports_of_sidecars_until_it_is_resumed() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let beside = ServiceInstance { stand_in_ports: vec![9001, 9002], ..service(0) };
    recorder.put_service(1, &beside).unwrap();
    file.finish(RunState::Interrupted).unwrap();
    let ports = || Reader::open(&place.path()).unwrap().services(1).unwrap().remove(0).stand_in_ports;
    assert_eq!(ports(), [9001, 9002]);
    let to_schema_6 = "ALTER TABLE services DROP COLUMN stand_in_ports; PRAGMA user_version = 6;";
    Connection::open(place.path()).unwrap().execute_batch(to_schema_6).unwrap();
    assert_eq!(ports(), [0; 0], "read as it is");
    let (file, ..) = RunFile::resume(&place.path()).unwrap();
    file.recorder().put_service(1, &beside).unwrap();
    file.finish(RunState::Complete).unwrap();
    assert_eq!(ports(), [9001, 9002]);
}
