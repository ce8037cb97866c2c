//! Throwaway.
use super::*;

fn named(number: u64, name: String) -> Span {
    Span {
        trace_id: (u128::from(number) + 1).to_be_bytes(),
        span_id: (number + 1).to_be_bytes(),
        name,
        ..trace(1, T0).spans.remove(0)
    }
}

#[test]
fn r_full_file_strings() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits { bytes: 1, ..Limits::default() });
    for call in 0..30u64 {
        let spans: Vec<Span> = (0..500).map(|n| named(call * 500 + n, format!("GET /{}", call * 500 + n))).collect();
        wait(recorder.spans(spans)).unwrap();
    }
    file.finish(RunState::Complete).unwrap();
    println!("strings {}", row(&place.path(), "SELECT count(*) FROM strings"));
}

#[test]
fn r_restart_loses_counts_of_another() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_trial(&trial(2)).unwrap();
    // Fill one batch: many jobs queued while the writer is busy.
    let mut total = 0;
    for round in 0..200u64 {
        let mut receipts = Vec::new();
        for k in 0..5 {
            receipts.push(recorder.spans((0..20).map(|n| named(round * 100 + k * 20 + n, "x".into())).collect()));
        }
        total += 100;
        file.restart_trial(2).unwrap();
        receipts.into_iter().for_each(|r| {
            wait(r).unwrap();
        });
    }
    file.finish(RunState::Complete).unwrap();
    println!(
        "total {total} {}",
        row(
            &place.path(),
            "SELECT (SELECT sum(arrived) FROM span_counts), (SELECT spans_stored FROM trials WHERE id = 1), (SELECT count(*) FROM spans)"
        )
    );
}

#[test]
fn r_rollback_or_forget_splits_traces() {
    let place = Place::new();
    let bytes = 1 << 20;
    let (file, recorder) = started(&place.path(), Limits { bytes, ..Limits::default() });
    recorder.put_trial(&trial(2)).unwrap();
    // Early traces, first halves.
    wait(recorder.spans((0..100).map(|n| named(n, "first".into())).collect())).unwrap();
    for call in 1..100u64 {
        wait(recorder.spans((0..200).map(|n| named(call * 200 + n, format!("filler {n}"))).collect())).unwrap();
    }
    println!("one in {}", row(&place.path(), "SELECT spans_one_in FROM trials WHERE id = 1"));
    // A span of trial 2, then back.
    recorder.set_trial(Some(2));
    wait(recorder.spans(vec![named(1, "other".into())])).unwrap();
    recorder.set_trial(Some(1));
    let late = (0..100).map(|n| Span { span_id: [9; 8], ..named(n, "late".into()) }).collect();
    wait(recorder.spans(late)).unwrap();
    file.finish(RunState::Complete).unwrap();
    println!("late {}", row(&place.path(), "SELECT arrived, kept FROM span_counts WHERE name = 'late'"));
    println!("first {}", row(&place.path(), "SELECT arrived, kept FROM span_counts WHERE name = 'first'"));
}

#[test]
fn r_deep() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let mut s = trace(1, T0 + 11 * SECOND).spans.remove(0);
    s.attributes.insert("deep2".into(), deep);
    wait(recorder.spans(vec![s])).unwrap();
    file.finish(RunState::Complete).unwrap();
    let e = Reader::open(&place.path()).unwrap().evidence(TraceLimit::default());
    println!("deep {:?}", e.map(|e| e.trials[0].traces.len()));
}

#[test]
fn r_cycle() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    let base = trace(1, T0).spans.remove(1);
    let s = |id: u8, parent: u8, at: i64| Span {
        span_id: [id; 8],
        parent_id: Some([parent; 8]),
        start_ns: T0 + at,
        ..base.clone()
    };
    wait(recorder.spans(vec![
        s(1, 2, 0),
        s(1, 2, 1),
        s(2, 1, 0),
        s(2, 1, 1),
        s(3, 1, 0),
        Span { span_id: [8; 8], ..trace(1, T0).spans.remove(0) },
    ]))
    .unwrap();
    file.finish(RunState::Complete).unwrap();
    let limits = QueryLimits { time: std::time::Duration::from_secs(5), ..QueryLimits::default() };
    let t = std::time::Instant::now();
    let a = Reader::open(&place.path()).unwrap().sql("SELECT operation_Name FROM dependencies", &limits);
    println!("cycle {:?} {:?}", a.map(|t| t.rows), t.elapsed());
}

#[test]
fn r_holes() {
    let place = super::query::finished();
    for sql in [
        "SELECT * FROM pragma_journal_mode('delete')",
        "SELECT * FROM pragma_query_only",
        "SELECT readfile('/etc/passwd')",
        "SELECT writefile('/tmp/x','y')",
        "SELECT * FROM pragma_optimize",
        "PRAGMA optimize",
        "PRAGMA temp_store_directory='/tmp'",
        "SELECT * FROM dbstat LIMIT 1",
        "SELECT * FROM sqlite_dbpage LIMIT 1",
        "SELECT fts3_tokenizer('simple')",
        "CREATE VIRTUAL TABLE temp.t USING fts5(x)",
        "PRAGMA integrity_check",
        "EXPLAIN VACUUM",
        "PRAGMA page_size=512",
        "PRAGMA table_info(run)",
        "SELECT * FROM bytecode('SELECT 1') LIMIT 1",
        "SELECT * FROM pragma_table_info('run') WHERE schema='x'",
        "SELECT sqlite_rename_table(1,2,3,4,5,6,7)",
        "SELECT fts5(NULL)",
        "PRAGMA incremental_vacuum",
        "PRAGMA data_store_directory",
        "PRAGMA module_list",
        "SELECT key FROM json_each('[1]')",
        "RELEASE x",
        "PRAGMA integrity_check(run)",
        "PRAGMA function_list",
        "SELECT sqlite_log(1,'x')",
        "SELECT * FROM span_rows WHERE trace MATCH 'x'",
        "\0",
        "SELECT 1\0; DELETE FROM run",
    ] {
        let a = super::query::ask(&place, sql);
        match a {
            Ok(t) => println!("OK  {sql}: {:?}", t.rows.first().map(|r| r.iter().take(4).cloned().collect::<Vec<_>>())),
            Err(e) => println!("ERR {sql}: {e}"),
        }
    }
}

#[test]
fn r_memory() {
    let place = super::query::finished();
    let limits = QueryLimits { time: std::time::Duration::from_secs(5), ..QueryLimits::default() };
    let sql = std::env::var("R_SQL").unwrap_or("SELECT 1".into());
    let t = std::time::Instant::now();
    let a = Reader::open(&place.path()).unwrap().sql(&sql, &limits);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!(
        "{:?} {:?} {}",
        a.map(|t| t.rows.len()),
        t.elapsed(),
        status.lines().find(|l| l.starts_with("VmHWM")).unwrap()
    );
}
