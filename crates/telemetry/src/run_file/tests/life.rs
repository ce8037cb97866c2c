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
fn a_conclusion_is_added_to_a_finished_file_which_stays_as_old_as_it_is() {
    let place = Place::new();
    let (file, _) = started(&place.path(), Limits::default());
    let amend = |value: i64| RunFile::amend(&place.path(), "later", &serde_json::json!(value));
    assert!(matches!(amend(1), Err(Error::InUse { .. })));
    file.finish(RunState::Complete).unwrap();
    let modified = || std::fs::metadata(place.path()).unwrap().modified().unwrap();
    let long_ago = modified() - std::time::Duration::from_secs(1000);
    std::fs::File::options().write(true).open(place.path()).unwrap().set_modified(long_ago).unwrap();
    amend(1).unwrap();
    amend(2).unwrap();
    assert_eq!(Reader::open(&place.path()).unwrap().conclusion("later").unwrap(), Some(serde_json::json!(2)));
    assert_eq!((modified(), place.names().len()), (long_ago, 1));
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
    assert!(matches!(wait(recorder.spans(vec![])), Err(StoreError::Broken(_))));
}

#[test]
fn a_writer_that_panics_is_named_as_the_reason() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let error = recorder.call(1, |_| panic!("a defect")).unwrap_err();
    assert!(matches!(error, Error::WriterFailed), "{error}");
    let failed = "the run-file writer failed";
    assert_eq!(recorder.put_trial(&trial(1)).unwrap_err().to_string(), failed);
    assert_eq!(wait(recorder.spans(vec![])), Err(StoreError::Broken(failed.into())));
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
fn files_that_are_not_whole_run_files_are_distinguished() {
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
    for version in [-1, 0, 1, 7] {
        let expected = format!("run file /checkout 100%?.narrows has version {version}, expected {SCHEMA_VERSION}");
        assert_eq!(message(&changed(&format!("PRAGMA user_version = {version}"))), expected);
    }
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
