//! How lists find what they show.

use super::*;

#[test]
fn the_common_lists_use_an_index_and_no_sorting() {
    let bench = Bench::new(limits());
    let database = bench.directory.path().join("skewtap.db");
    let connection = crate::store::query::open_reader(&database).unwrap();
    for (condition, index) in [
        ("", "COVERING INDEX verdict_by_start"),
        (
            "WHERE flagged = 1",
            "COVERING INDEX flagged_verdict_by_start",
        ),
        (
            "WHERE flagged = 1 AND started_ns >= 5",
            "COVERING INDEX flagged_verdict_by_start (started_ns>?)",
        ),
        (
            "WHERE causes <> '' AND instr(causes, ',x,') > 0",
            "COVERING INDEX verdict_with_cause_by_start",
        ),
        ("WHERE gap_ns >= 5", "COVERING INDEX verdict_by_start"),
        ("WHERE edge = 3", "COVERING INDEX verdict_by_edge (edge=?)"),
    ] {
        let plan: Vec<String> = connection
            .prepare(&format!(
                "EXPLAIN QUERY PLAN SELECT started_ns, id FROM verdict {condition}
                 ORDER BY started_ns DESC, id DESC LIMIT 10"
            ))
            .unwrap()
            .query_map([], |row| row.get("detail"))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert!(
            plan.len() == 1 && plan[0].ends_with(index),
            "{condition}: {plan:?}"
        );
    }
    bench.close();
}

/// Verdict `n` of `n` seconds after the epoch, from `client` to `server`.
fn call(n: u64, client: &str, server: &str) -> VerdictRow {
    let mut verdict = verdict(n);
    verdict.started_ns = Some(i64::try_from(n).unwrap() * S);
    verdict.client_service = Some(client.to_owned());
    verdict.server_service = Some(server.to_owned());
    row_of(&verdict, 1)
}

#[test]
fn services_are_told_apart_by_their_side() {
    on_runtime(|runtime| {
        let bench = Bench::new(limits());
        bench.write(
            vec![
                call(1, "web", "shop"),
                call(2, "shop", "stock"),
                call(3, "web", "stock"),
                call(4, "web", "shop"),
            ],
            1,
        );
        let found = |edges: EdgeFilter| {
            let filter = Filter {
                edges,
                ..Filter::default()
            };
            let page = runtime.block_on(bench.queries().exchanges(filter)).unwrap();
            let ids = page.verdicts.into_iter().map(|v| v.client_span_id);
            ids.collect::<Vec<_>>()
        };
        let named = |name: &str| Some(name.to_owned());
        let either = EdgeFilter {
            service: named("shop"),
            ..EdgeFilter::default()
        };
        assert_eq!(found(either), [4, 2, 1].map(span_id));
        let client = EdgeFilter {
            client_service: named("web"),
            ..EdgeFilter::default()
        };
        assert_eq!(found(client), [4, 3, 1].map(span_id));
        let both = EdgeFilter {
            client_service: named("web"),
            server_service: named("stock"),
            ..EdgeFilter::default()
        };
        assert_eq!(found(both), [3].map(span_id));
        let nobody = EdgeFilter {
            service: named("nobody"),
            ..EdgeFilter::default()
        };
        assert_eq!(found(nobody), []);
        bench.close();
    });
}

#[test]
fn pages_over_many_edges_follow_each_other() {
    on_runtime(|runtime| {
        let bench = Bench::new(limits());
        // More edges than are looked through one by one, and fewer.
        for clients in [60, 7] {
            let rows = (1..=200).map(|n| call(n, &format!("client-{}", n % clients), "server"));
            bench.write(rows.collect(), 1);
            let mut filter = Filter {
                limit: 33,
                edges: EdgeFilter {
                    server_service: Some("server".to_owned()),
                    ..EdgeFilter::default()
                },
                ..Filter::default()
            };
            let mut seen = Vec::new();
            loop {
                let page = runtime.block_on(bench.queries().exchanges(filter.clone()));
                let page = page.unwrap();
                seen.extend(page.verdicts.into_iter().map(|v| v.client_span_id));
                match page.next {
                    Some(next) => filter.after = Some(next),
                    None => break,
                }
            }
            assert_eq!(seen, (1..=200).rev().map(span_id).collect::<Vec<_>>());
        }
        bench.close();
    });
}

#[test]
fn only_gaps_of_the_asked_size_are_listed() {
    on_runtime(|runtime| {
        let bench = Bench::new(limits());
        let rows = (1..=5).map(|n| {
            let mut verdict = verdict(n);
            let server_ns = verdict.client.unwrap().lo() - i64::try_from(n).unwrap() * S;
            verdict.server_ns = Some(server_ns);
            row_of(&verdict, 1)
        });
        bench.write(rows.collect(), 1);
        let filter = Filter {
            least_gap_ns: Some(3 * S),
            ..Filter::default()
        };
        let page = runtime.block_on(bench.queries().exchanges(filter)).unwrap();
        let found: Vec<_> = page.verdicts.iter().map(|v| v.gap_ns.unwrap()).collect();
        assert_eq!(found, [5 * S, 4 * S, 3 * S]);
        bench.close();
    });
}
