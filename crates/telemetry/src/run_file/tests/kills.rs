//! A writer that is killed at any moment has kept every span that it acknowledged.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// Says to a process of this test that it is to write, and into which file.
const WRITE_TO: &str = "NARROWS_TEST_WRITE_TO";
const KILLS: u64 = 50;
const SEED: u64 = 0x6e61_7272_6f77_7331;
/// Says so, and gives the file this ceiling, under which stored traces are thinned out all the time.
const BYTES: &str = "NARROWS_TEST_BYTES";
/// Says so, and that spans come as an exporter sends them, so that they wait for their rows.
const PACKED: &str = "NARROWS_TEST_PACKED";
const FEW_BYTES: u64 = 4 << 20;
/// Spans of one call; each call is a trace.
const CALL: u64 = 16;
/// Calls that are under way at once.
const AHEAD: u64 = 8;

fn spans_of_call(round: u64, call: u64) -> Vec<Span> {
    let trace_id = (u128::from(round + 1) << 64 | u128::from(call + 1)).to_be_bytes();
    let span = |at: u64| Span {
        trace_id,
        span_id: (at + 1).to_be_bytes(),
        name: format!("call {}", call % 7),
        attributes: attributes(json!({ "call": call, "at": at })),
        ..trace(1, T0).spans.remove(0)
    };
    (0..CALL).map(span).collect()
}

/// Writes until it is killed, and says the number of each call once it is acknowledged.
fn write_until_killed(path: &Path) -> ! {
    let bytes = std::env::var(BYTES).ok().map(|bytes| bytes.parse().unwrap());
    let are_packed = std::env::var_os(PACKED).is_some();
    let limits = bytes.map_or_else(Limits::default, |bytes| Limits { bytes, ..Limits::default() });
    let (file, ..) = RunFile::resume_with(path, limits).unwrap();
    let recorder = file.recorder();
    let round: u64 = std::env::var("NARROWS_TEST_ROUND").unwrap().parse().unwrap();
    recorder.set_trial(Some(1));
    let mut receipts = std::collections::VecDeque::new();
    for call in 0.. {
        let later = bytes.map_or(0, |_| (round * 1_000 + call) as i64 * SECOND);
        let spans = spans_of_call(round, call).into_iter();
        let later = |span: Span| Span { start_ns: span.start_ns + later, end_ns: span.end_ns + later, ..span };
        let spans = spans.map(later).collect();
        let receipt = match are_packed {
            true => recorder.packed(super::packed_requests::packed(spans), vec![]),
            false => recorder.spans(spans),
        };
        receipts.push_back((call, receipt));
        if receipts.len() as u64 > AHEAD {
            let (call, receipt) = receipts.pop_front().unwrap();
            assert_eq!(wait(receipt), kept(CALL));
            // Not by print!, which the test harness would keep to itself.
            writeln!(std::io::stdout(), "acknowledged {call}").unwrap();
        }
    }
    unreachable!()
}

/// Lets a writer acknowledge so many calls, waits a little longer, kills it, and says how many it acknowledged.
fn kill_after(path: &Path, how: Option<(&str, u64)>, round: u64, calls: u64, timeout: Duration) -> u64 {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "run_file::tests::kills::no_acknowledged_span_is_lost"])
        .env(WRITE_TO, path)
        .envs(how.map(|(name, value)| (name, value.to_string())))
        .env("NARROWS_TEST_ROUND", round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(std::result::Result::ok);
    let mut acknowledged = 0;
    let number = |line: String| line.rsplit_once("acknowledged ").map(|(_, number)| number.parse::<u64>().unwrap() + 1);
    while acknowledged < calls {
        let line = lines.next().expect("the writer writes until it is killed");
        acknowledged = number(line).unwrap_or(acknowledged);
    }
    let reached = Instant::now();
    while reached.elapsed() < timeout {
        std::hint::spin_loop();
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    lines.filter_map(number).last().unwrap_or(acknowledged)
}

#[test]
fn no_acknowledged_span_is_lost() {
    if let Some(path) = std::env::var_os(WRITE_TO) {
        write_until_killed(Path::new(&path));
    }
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.put_windows(1, &windows()).unwrap();
    file.finish(RunState::Interrupted).unwrap();
    let mut random = SEED;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut acknowledged = Vec::new();
    for round in 0..KILLS {
        let (calls, timeout) = (1 + next(60), Duration::from_micros(next(3_000)));
        acknowledged.push(kill_after(&place.path(), None, round, calls, timeout));
        let connection = Connection::open(place.path()).unwrap();
        let sql = "SELECT count(*) FROM spans WHERE trace_id = ?1";
        let mut count = connection.prepare(sql).unwrap();
        for (round, calls) in (0..).zip(&acknowledged) {
            // Of earlier rounds the last call only: what one kill spares another must not take.
            let first = if round + 1 < acknowledged.len() as u64 { calls - 1 } else { 0 };
            for call in first..*calls {
                let id = narrows_model::trace::hex(&spans_of_call(round, call)[0].trace_id);
                let found: i64 = count.query_row([id], |row| row.get(0)).unwrap();
                assert_eq!(found, CALL as i64, "round {round}, call {call} of {calls}");
            }
        }
    }
    assert_eq!(row(&place.path(), "PRAGMA integrity_check"), "ok");
    let counts = "SELECT (SELECT count(*) FROM span_rows) = spans_stored, \
                  (SELECT sum(arrived) FROM span_counts) = spans_stored FROM trials";
    assert_eq!(row(&place.path(), counts), "1|1");
    assert!(acknowledged.iter().sum::<u64>() > KILLS);
}

#[test]
fn whenever_thinning_is_killed_counts_are_exact_and_weights_honest() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    file.finish(RunState::Interrupted).unwrap();
    drop(recorder);
    let mut acknowledged = 0;
    for round in 0..12 {
        let (calls, timeout) = (300 + 7 * round, Duration::from_micros(211 * round));
        acknowledged += CALL * kill_after(&place.path(), Some((BYTES, FEW_BYTES)), round, calls, timeout);
        let counts = "SELECT (SELECT count(*) FROM span_rows) = spans_stored, spans_refused, \
                      (SELECT sum(arrived) = spans_stored + spans_thinned AND sum(kept) = spans_stored FROM span_counts), \
                      (SELECT count(*) FROM (SELECT 1 FROM spans GROUP BY trace_id HAVING count(*) <> 16)), \
                      (SELECT count(*) FROM trace_rows) * 16 = spans_stored FROM trials";
        assert_eq!(row(&place.path(), counts), "1|0|1|0|1", "round {round}");
        let arrived: u64 = row(&place.path(), "SELECT sum(arrived) FROM span_counts").parse().unwrap();
        assert!(arrived >= acknowledged, "{arrived} of {acknowledged}");
        let weighed: f64 = row(&place.path(), "SELECT sum(weight) FROM spans").parse().unwrap();
        // Each span weighs four before anything is thinned out.
        assert!((weighed / (4 * arrived) as f64 - 1.0).abs() < 0.1, "{weighed} for {arrived}");
    }
    assert_eq!(row(&place.path(), "PRAGMA integrity_check"), "ok");
    let thinned = "SELECT spans_thinned > spans_stored / 2, spans_thinned_one_in > 1 FROM trials";
    assert_eq!(row(&place.path(), thinned), "1|1");
}

#[test]
fn no_acknowledged_span_that_waits_for_its_row_is_lost() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    file.finish(RunState::Interrupted).unwrap();
    drop(recorder);
    for round in 0..8 {
        let (calls, timeout) = (20 + 31 * round, Duration::from_micros(307 * round));
        let acknowledged = kill_after(&place.path(), Some((PACKED, 1)), round, calls, timeout);
        let left = Reader::open_as_it_is(&place.path()).unwrap().waiting().unwrap();
        assert!(left >= CALL * acknowledged, "{left} for {acknowledged} calls");
        let of_round =
            format!("SELECT count(*), count(DISTINCT trace_id) FROM spans WHERE trace_id LIKE '{:016x}%'", round + 1);
        let reader = Reader::open(&place.path()).unwrap();
        assert_eq!(row(&place.path(), &of_round), format!("{left}|{}", left / CALL), "round {round}");
        let counts = reader.counts(1).unwrap();
        assert_eq!(row(&place.path(), "SELECT sum(arrived) FROM span_counts"), counts.spans.stored.to_string());
        assert_eq!((reader.waiting().unwrap(), counts.spans.refused), (0, 0));
    }
    assert_eq!(row(&place.path(), "PRAGMA integrity_check"), "ok");
}
