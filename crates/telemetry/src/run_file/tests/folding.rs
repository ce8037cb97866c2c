//! Long runs: old data is folded, and windows read the same.

use narrows_model::evidence::LoadTotals;
use proptest::prelude::*;

use super::*;

const NAMES: [&str; 2] = ["read", "write"];

/// A second of one of two scenarios, with latencies that differ from second to second.
fn second_of(scenario: usize, at: i64, requests: u64) -> LoadSecond {
    let mut row = LoadSecond {
        scenario: NAMES[scenario].into(),
        start_ns: T0 + at * SECOND,
        vus: 3,
        due: requests + 1,
        sent: requests + 1,
        succeeded: requests,
        errors: ErrorCounts { status: 1, ..ErrorCounts::default() },
        bytes: 100 * requests,
        ..LoadSecond::default()
    };
    for request in 0..requests {
        let ns = 1_000_000 + (at.unsigned_abs() * 7_919 + request * 104_729 + scenario as u64) % 9_000_000;
        row.latency.record(ns + 1_000);
        row.service.record(ns);
    }
    (0..=requests).for_each(|request| row.lateness.record(1_000 + 50 * request));
    row
}

/// A batch of seconds.
fn batch(seconds: std::ops::Range<i64>, requests: u64) -> LoadBatch {
    let rows = seconds.flat_map(|at| (0..2).map(move |scenario| second_of(scenario, at, requests)));
    LoadBatch { seconds: rows.collect(), samples: Vec::new() }
}

/// Writes seconds, ten at a time.
fn write(recorder: &Recorder, seconds: i64, requests: u64) {
    for at in (0..seconds).step_by(10) {
        recorder.put_load(1, batch(at..(at + 10).min(seconds), requests)).unwrap();
    }
}

fn sample_of(scenario: usize, at: i64, n: u32) -> Sample {
    let intended_ns = T0 + at * SECOND + i64::from(n) * 30_000_000;
    Sample {
        scenario: NAMES[scenario].into(),
        request: String::new(),
        intended_ns,
        sent_ns: intended_ns,
        done_ns: intended_ns + 1_000_000 + i64::from(n) * 1_000,
        error: (n < 4).then_some(ErrorKind::Status),
        weight: if (4..8).contains(&n) { 1.0 } else { 60.0 },
        ..sample(n)
    }
}

fn window(index: u32, kind: WindowKind, from_ns: i64, to_ns: i64) -> Window {
    let label = format!("window {index}");
    Window { index, kind, label, start_ns: T0 + from_ns, end_ns: T0 + to_ns, drained_ns: None, vus: 3, rate: None }
}

/// The loads of all windows, of the whole, and of each request.
fn loads(trial: &TrialEvidence) -> Vec<LoadTotals> {
    let requests = trial.requests_of_load().into_iter().map(|request| request.totals);
    trial.windows.iter().map(|window| trial.window_load(window)).chain([trial.counted_load()]).chain(requests).collect()
}

/// Whether the run is folded while it is written.
#[derive(Clone, Copy)]
enum Form {
    AsItCame,
    Folded,
}
use Form::{AsItCame, Folded};

/// Writes this many seconds and reads the trial.
fn written(form: Form, seconds: i64, windows: &[Window]) -> (Place, TrialEvidence) {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    if let Folded = form {
        let boundaries: Vec<i64> = windows.iter().flat_map(|window| [window.start_ns, window.end_ns]).collect();
        recorder.fold_between(1, &boundaries).unwrap();
    }
    write(&recorder, seconds, 3);
    recorder.put_windows(1, windows).unwrap();
    file.finish(RunState::Complete).unwrap();
    let trial = evidence(&place.path()).trials.remove(0);
    (place, trial)
}

#[test]
fn windows_of_a_long_run_read_the_same_when_it_is_folded() {
    const HALF: i64 = SECOND / 2;
    let windows = [
        window(0, WindowKind::Warmup, 0, 30 * SECOND),
        window(1, WindowKind::Steady, 30 * SECOND, 95 * SECOND + HALF),
        window(2, WindowKind::Ramp, 95 * SECOND + HALF, 400 * SECOND),
        window(3, WindowKind::Steady, 405 * SECOND, 1_500 * SECOND),
    ];
    let (whole_place, whole) = written(AsItCame, 1_500, &windows);
    let (place, folded) = written(Folded, 1_500, &windows);
    assert_eq!(loads(&folded), loads(&whole));
    let counts = |trial: &TrialEvidence| -> Vec<_> {
        trial
            .seconds
            .iter()
            .map(|row| (row.start_ns, row.succeeded, row.latency.sum_ns(), row.lateness.max_ns()))
            .collect()
    };
    assert_eq!(counts(&folded), counts(&whole), "every second keeps its counts, sums and extremes");
    let held = |place: &Place, sql: &str| number_of(place, sql);
    let with_buckets = "SELECT count(DISTINCT second) FROM load_latency_rows";
    assert_eq!(held(&whole_place, with_buckets), 3_000);
    let folded_rows = held(&place, with_buckets);
    assert!((1_200..1_300).contains(&folded_rows), "600 s and 16 to 20 minutes of two requests, not {folded_rows}");
    let newest = folded.seconds.iter().rev().take(1_200);
    assert!(newest.clone().all(|row| row.latency.is_whole()), "the last ten minutes are as they came");
}

#[test]
fn samples_of_a_long_run_are_fewer_and_stand_for_as_many() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.fold_between(1, &[T0]).unwrap();
    let mut expected = BTreeMap::from([(false, 0.0), (true, 0.0)]);
    for at in 0..900 {
        let samples: Vec<Sample> = (0..64).map(|n| sample_of(n as usize / 32, at, n % 32)).collect();
        for sample in &samples {
            *expected.entry(sample.error.is_some()).or_default() += sample.weight;
        }
        recorder.put_load(1, LoadBatch { samples, ..batch(at..at + 1, 1) }).unwrap();
    }
    file.finish(RunState::Complete).unwrap();
    let count = number_of(&place, "SELECT count(*) FROM samples");
    assert_eq!(count, 600 * 64 + 5 * 64, "five minutes are folded");
    for (has_failed, weight) in expected {
        let sum =
            format!("SELECT CAST(round(sum(weight)) AS INTEGER) FROM samples WHERE (error IS NOT NULL) = {has_failed}");
        assert_eq!(number_of(&place, &sum), weight as i64, "{has_failed}");
    }
    assert_eq!(row(&place.path(), "SELECT samples_stored, samples_refused FROM trials"), format!("{count}|0"));
}

fn number_of(place: &Place, sql: &str) -> i64 {
    row(&place.path(), sql).parse().unwrap()
}

/// Writes a point of each series every half second, beside a load of one request, and finishes.
fn sampled(boundaries: &[i64]) -> Place {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.fold_between(1, boundaries).unwrap();
    let series = |name: &str, unit: &str| SeriesKey { name: name.into(), unit: unit.into(), ..key("gateway") };
    for half in 0..1_800 {
        let time_ns = T0 + half * SECOND / 2;
        let up = f64::from(u8::from(half % 7 > 0));
        let points = vec![
            (series(names::CPU_CORES, "{cpu}"), Point { time_ns, value: half as f64 }),
            (series(names::REPLICA_UP, "1"), Point { time_ns, value: up }),
        ];
        assert_eq!(wait(recorder.points(points)), kept(2));
    }
    file.finish(RunState::Complete).unwrap();
    place
}

#[test]
fn points_of_a_long_window_are_thinned_out_and_those_of_short_ones_are_not() {
    let of = |name: &str| format!("SELECT count(*) FROM metrics WHERE name = '{name}'");
    let long = sampled(&[T0, T0 + 900 * SECOND]);
    // Fifteen minutes, less the ten recent ones, less the unfinished one.
    let cpu = number_of(&long, &of(names::CPU_CORES));
    assert!((1_800 - 600 + 60..=1_800 - 480 + 60).contains(&cpu), "{cpu}");
    assert_eq!(number_of(&long, &of(names::REPLICA_UP)), 1_800);
    assert_eq!(number_of(&long, "SELECT points_stored FROM trials"), cpu + 1_800);
    let steps: Vec<i64> = (0..=30).map(|step| T0 + step * 30 * SECOND).collect();
    assert_eq!(number_of(&sampled(&steps), &of(names::CPU_CORES)), 1_800);
}

#[test]
fn a_trial_that_is_done_again_is_folded_from_its_beginning() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    for _ in 0..2 {
        recorder.fold_between(1, &[T0]).unwrap();
        write(&recorder, 700, 1);
        file.restart_trial(1).unwrap();
    }
    recorder.fold_between(1, &[T0]).unwrap();
    write(&recorder, 1_300, 1);
    file.finish(RunState::Complete).unwrap();
    let with_buckets = number_of(&place, "SELECT count(DISTINCT second) FROM load_latency_rows");
    assert!(with_buckets <= 2 * (640 + 11), "{with_buckets}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn whatever_the_boundaries_are_windows_read_the_same(cuts in prop::collection::btree_set(0..700_000i64, 1..8)) {
        let cuts: Vec<i64> = cuts.into_iter().map(|ms| ms * 1_000_000).collect();
        let windows: Vec<Window> = cuts
            .windows(2)
            .zip(0..)
            .map(|(pair, index)| window(index, WindowKind::Steady, pair[0], pair[1]))
            .collect();
        let (_, whole) = written(AsItCame, 700, &windows);
        let (_, folded) = written(Folded, 700, &windows);
        prop_assert_eq!(loads(&folded), loads(&whole));
    }
}

/// Resident memory of this process, in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * rustix::param::page_size() as u64
}

#[test]
fn eight_hours_take_little_more_room_and_memory_than_one() {
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.fold_between(1, &[T0]).unwrap();
    let mut resident = Vec::new();
    for hour in 0..8 {
        for from in (hour * 3_600..(hour + 1) * 3_600).step_by(20) {
            let seconds = (from..from + 20).map(|at| second_of(0, at, 3)).collect();
            recorder.put_load(1, LoadBatch { seconds, samples: Vec::new() }).unwrap();
        }
        resident.push(resident_bytes());
    }
    recorder.put_windows(1, &[window(0, WindowKind::Steady, 0, 28_800 * SECOND)]).unwrap();
    file.finish(RunState::Complete).unwrap();
    // SQLite's cache of the file is at most 8 MiB.
    assert!(resident[7] <= resident[0] + (10 << 20), "{resident:?}");
    let with_buckets = number_of(&place, "SELECT count(DISTINCT second) FROM load_latency_rows");
    assert!((1_070..=1_081).contains(&with_buckets), "600 s and 470 minutes, not {with_buckets}");
    let trial = evidence(&place.path()).trials.remove(0);
    let load = trial.counted_load();
    assert_eq!((load.seconds, load.succeeded), (28_800.0, 86_400));
    let mut exact = Histogram::new();
    (0..28_800).for_each(|at| exact.merge(&second_of(0, at, 3).latency));
    assert_eq!(load.latency, exact);
    let held: usize = trial.seconds.iter().map(|row| row.latency.bytes() + row.lateness.bytes()).sum();
    assert!(held <= 4 << 20, "{held} bytes of distributions");
}
