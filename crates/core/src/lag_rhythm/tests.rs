use super::*;

const MS: i64 = 1_000_000;

/// The lags that libcurl itself had at known server delays, as recorded.
fn recorded(sweep: &str) -> Vec<LagSample> {
    let rows = sweep
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    rows.map(|row| {
        let mut fields = row.split('\t').map(|field| field.parse::<f64>().unwrap());
        let (delay, _, lag) = (fields.next(), fields.next(), fields.next());
        sample(nanoseconds(delay.unwrap()), nanoseconds(lag.unwrap()))
    })
    .collect()
}

fn sample(waited_ns: i64, lag_ns: i64) -> LagSample {
    LagSample {
        waited_ns,
        lag: Interval::exactly(lag_ns).widened(MS),
    }
}

/// Numbers from 0 to 1 without a pattern that matters here.
fn numbers(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        f64::from(u32::try_from(state >> 32).unwrap()) / f64::from(u32::MAX)
    })
}

/// A client that looks in the first `looking` of each `period` seconds, from `phase` on.
fn timed(waited: f64, period: f64, looking: f64, phase: f64) -> f64 {
    let at = (waited - phase).rem_euclid(period);
    if at < looking * period {
        0.0
    } else {
        period - at
    }
}

fn samples_of(seed: u64, count: usize, lag: impl Fn(f64, f64) -> f64) -> Vec<LagSample> {
    let mut numbers = numbers(seed);
    let mut next = || numbers.next().unwrap();
    (0..count)
        .map(|_| {
            let waited = 0.1 + 6.0 * next();
            let jitter = 0.004 * next();
            sample(
                nanoseconds(waited),
                nanoseconds(lag(waited, next()) + jitter),
            )
        })
        .collect()
}

#[test]
fn the_recorded_sweep_of_the_faulty_libcurl_has_its_two_seconds() {
    let sweep = recorded(include_str!("../../../../lab/libcurl/sweep-buggy.tsv"));
    assert_eq!(sweep.len(), 33);
    let rhythm = find(&sweep).unwrap();
    assert_eq!(
        (rhythm.period_ns, rhythm.blind_ns),
        (2_000 * MS, 1_000 * MS)
    );
    // A new connection's first look is cut short by the timer of 0.2 s.
    assert!((rhythm.phase_ns - 200 * MS).abs() < 20 * MS, "{rhythm:?}");
    assert_eq!((rhythm.samples, rhythm.lagging), (33, 16));
    assert!(rhythm.on_beat > 0.9 && rhythm.fit > 0.9, "{rhythm:?}");
    assert!(rhythm.chance <= 0.002, "{rhythm:?}");
}

#[test]
fn the_recorded_sweep_of_the_repaired_libcurl_has_none() {
    let sweep = recorded(include_str!("../../../../lab/libcurl/sweep-fixed.tsv"));
    assert_eq!(find(&sweep), None);
}

#[test]
fn each_known_rhythm_is_told_from_the_others_at_any_phase() {
    for (period_ns, looking) in KNOWN {
        let period = seconds(period_ns);
        for tenth in 0_u32..10 {
            let phase = period * f64::from(tenth) / 10.0;
            let samples = samples_of(u64::from(tenth) + 1, 120, |waited, _| {
                timed(waited, period, looking, phase)
            });
            let rhythm = find(&samples).unwrap();
            assert_eq!(rhythm.period_ns, period_ns, "{rhythm:?}");
            let off = distance(seconds(rhythm.phase_ns), phase, period);
            assert!(off <= 0.030, "{rhythm:?}");
        }
    }
}

#[test]
fn other_clients_in_between_do_not_hide_it() {
    let found = (1..=20).filter(|seed| {
        let samples = samples_of(*seed, 120, |waited, chance| {
            if chance < 0.1 {
                chance * 8.0
            } else {
                timed(waited, 2.0, 0.5, 0.7)
            }
        });
        find(&samples).is_some_and(|rhythm| rhythm.period_ns == 2_000 * MS)
    });
    assert_eq!(found.count(), 20);
}

#[test]
fn nothing_is_found_where_no_timer_is() {
    let long_tail = |_: f64, chance: f64| 0.01 * (1.0 - chance).max(1e-3).powf(-1.2);
    let in_proportion = |waited: f64, _: f64| waited * 0.2;
    let constant = |_: f64, _: f64| 0.5;
    let free_running = |_: f64, chance: f64| chance;
    let none = |_: f64, _: f64| 0.0;
    let kinds: [&dyn Fn(f64, f64) -> f64; 5] =
        [&long_tail, &in_proportion, &constant, &free_running, &none];
    for count in [60, 300] {
        for (kind, lag) in kinds.into_iter().enumerate() {
            for seed in 1..=40 {
                let found = find(&samples_of(seed, count, lag));
                assert_eq!(found, None, "kind {kind}, seed {seed}, {count} samples");
            }
        }
    }
}

#[test]
fn a_server_that_is_regular_itself_is_no_timer_of_the_client() {
    for seed in 1..=40 {
        let mut samples = samples_of(seed, 120, |_, chance| 0.5 + 0.01 * chance);
        for sample in &mut samples {
            let second = 1_000 * MS;
            sample.waited_ns = (sample.waited_ns / second) * second;
        }
        assert_eq!(find(&samples), None, "seed {seed}");
    }
}

#[test]
fn too_few_lags_or_too_uncertain_ones_say_nothing() {
    let few = samples_of(1, 12, |waited, _| timed(waited, 2.0, 0.5, 0.0));
    assert!(few.iter().filter(|s| s.lag.middle() > LEAST_LAG_NS).count() < FEWEST_LAGGING);
    assert_eq!(find(&few), None);
    let mut vague = samples_of(1, 120, |waited, _| timed(waited, 2.0, 0.5, 0.0));
    for sample in &mut vague {
        sample.lag = sample.lag.widened(400 * MS);
    }
    assert_eq!(find(&vague), None);
    assert_eq!(find(&[]), None);
}

#[test]
fn any_numbers_are_taken() {
    let odd = [i64::MIN, -1, 0, 1, i64::MAX].map(|ns| LagSample {
        waited_ns: ns,
        lag: Interval::between(ns, i64::MAX),
    });
    let many: Vec<_> = odd.iter().copied().cycle().take(3_000).collect();
    // Nothing is asked but an answer.
    let _answer = find(&many);
}
