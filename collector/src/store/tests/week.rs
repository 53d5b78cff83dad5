//! What is shown of a week is what comes of going through all of its exchanges.

use super::aggregates::call;
use super::*;
use crate::store::query::Quantiles;
use crate::store::query::aggregates::{Edges, GapPeriod, Window};

/// A minute that begins a whole hour.
const START: i64 = 1_800_000_000 / 3600 * 3600 * S;

const HOUR: i64 = 3600 * S;

const WEEK: Window = Window {
    since_ns: START,
    until_ns: START + 7 * 24 * HOUR,
};

/// An exchange as the test made it up.
#[derive(Clone)]
struct Planted {
    server: String,
    started_ns: i64,
    gap_ns: i64,
}

impl Planted {
    /// As `call` has it.
    fn is_flagged(&self) -> bool {
        self.gap_ns > 50_000_000
    }

    fn row(&self, n: u64, evidence: i64) -> VerdictRow {
        row_of(
            &call(n, &self.server, self.started_ns, self.gap_ns),
            evidence,
        )
    }
}

/// A call every 15 minutes on each of four edges, with gaps from -20 ms to 1.8 s.
fn planted() -> Vec<Planted> {
    (0..7 * 24 * 4 * 4_i64)
        .map(|n| Planted {
            server: format!("server-{}", n % 4),
            started_ns: START + n / 4 * HOUR / 4 + n % 4 * S,
            gap_ns: (n * 7919 % 1354).pow(2) * 1_000 - 20_000_000,
        })
        .collect()
}

fn assert_quantiles(said: Option<Quantiles>, mut gaps: Vec<i64>) {
    let said = said.unwrap();
    gaps.sort_unstable();
    assert_eq!(said.known, gaps.len() as u64);
    for (percent, within) in [
        (50, said.p50),
        (90, said.p90),
        (99, said.p99),
        (100, said.max),
    ] {
        let gap = gaps[(gaps.len() * percent).div_ceil(100) - 1];
        assert!(within.contains(gap), "{percent}: {gap} {within:?}");
    }
}

fn assert_edges(said: &Edges, planted: &[Planted]) {
    assert_eq!((said.edges.len(), said.left_out), (4, 0));
    for edge in &said.edges {
        let server = edge.server_service.as_deref().unwrap();
        let here = || planted.iter().filter(|call| call.server == server);
        let flagged = here().filter(|call| call.is_flagged()).count() as u64;
        assert_eq!(
            (edge.exchanges, edge.flagged),
            (here().count() as u64, flagged)
        );
        assert_eq!(edge.causes["client_blind_sleep"], flagged);
        assert_quantiles(edge.gap, here().map(|call| call.gap_ns).collect());
    }
}

fn assert_periods(said: &[GapPeriod], planted: &[Planted]) {
    assert_eq!(said.len(), 7 * 24);
    for (period, hour) in said.iter().zip(0..) {
        let start_ns = START + hour * HOUR;
        assert_eq!(period.start_ns, start_ns);
        let within = start_ns..start_ns + HOUR;
        let calls = planted.iter();
        let here: Vec<&Planted> = calls.filter(|c| within.contains(&c.started_ns)).collect();
        let flagged = here.iter().filter(|call| call.is_flagged()).count() as u64;
        let exchanges = here.len() as u64;
        assert_eq!((period.exchanges, period.flagged), (exchanges, flagged));
        assert_quantiles(period.gap, here.iter().map(|call| call.gap_ns).collect());
    }
}

#[test]
fn the_sums_of_a_week_are_those_of_its_exchanges() {
    on_runtime(|runtime| {
        let bench = Bench::new(limits());
        let mut planted = planted();
        let numbered = planted.iter().zip(1..);
        let rows: Vec<VerdictRow> = numbered.map(|(call, n)| call.row(n, 1)).collect();
        // In several commits, and not in the order in which they began.
        for n in 0..5 {
            let some = rows.iter().skip(n).step_by(5);
            bench.write(some.cloned().collect(), 1);
        }
        // Every ninth is judged anew: on another edge, an hour later, with another gap.
        let mut revised = Vec::new();
        for (call, n) in planted.iter_mut().zip(1..) {
            if n % 9 == 0 && call.started_ns + HOUR < WEEK.until_ns {
                call.server = format!("server-{}", n % 4);
                call.started_ns += HOUR;
                call.gap_ns = -call.gap_ns / 2;
                revised.push(call.row(n, 2));
            }
        }
        assert!(revised.len() > 200);
        bench.write(revised, 2);

        let queries = bench.queries();
        let edges = runtime.block_on(queries.edges(WEEK, EdgeFilter::default()));
        let edges = edges.unwrap();
        assert_eq!(edges.covered, WEEK);
        assert_edges(&edges, &planted);
        let series = runtime.block_on(queries.gap_series(WEEK, EdgeFilter::default()));
        assert_periods(&series.unwrap().periods, &planted);
        bench.close();
    });
}
