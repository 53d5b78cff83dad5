//! An exchange survives its way through span attributes unchanged.

use std::collections::BTreeMap;

use proptest::array::{uniform8, uniform16};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use skewtap_core::clock::{Source, Stamp};
use skewtap_core::endpoint::{
    Activity, ActivityCount, ProcessWatch, QueueOutcome, QueueWatch, ThreadWatch,
};
use skewtap_core::exchange::{
    ExchangeRecord, Leg, Outcome, SourceState, Sources, StreamShare, TcpFigures,
};
use skewtap_core::exchange_attributes::{
    AttributeValue, ExchangeSpan, ReadError, VERSION_KEY, Writer, read, write,
};
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::milestone::{Milestone, Milestones};
use skewtap_simulator::scenario::Scenario;
use skewtap_simulator::world::World;

fn any_activity() -> impl Strategy<Value = Activity> {
    let wait = || (".{0,12}", option::of(any::<i64>()));
    prop_oneof![
        wait().prop_map(|(call, timeout_ns)| Activity::Sleep { call, timeout_ns }),
        wait().prop_map(|(call, timeout_ns)| Activity::WaitElsewhere { call, timeout_ns }),
        ".{0,12}".prop_map(|call| Activity::WaitHere { call }),
        option::of(any::<i64>()).prop_map(|timeout_ns| Activity::Lock { timeout_ns }),
        option::of(".{0,12}").prop_map(|wait_channel| Activity::Hidden { wait_channel }),
        Just(Activity::Running),
        Just(Activity::Stopped),
    ]
}

fn any_process() -> impl Strategy<Value = ProcessWatch> {
    let counted = (any_activity(), any::<u32>())
        .prop_map(|(activity, samples)| ActivityCount { activity, samples });
    let thread = (
        any::<i32>(),
        ".{0,9}",
        option::of(any::<i64>()),
        vec(counted, 0..4),
    )
        .prop_map(|(tid, name, cpu_ns, activities)| ThreadWatch {
            tid,
            name,
            cpu_ns,
            run_queue_ns: cpu_ns,
            last: activities.first().map(|count| count.activity.clone()),
            woke_at_pick_up: cpu_ns.map(|ns| ns > 0),
            activities,
        });
    (
        any::<i32>(),
        ".{0,9}",
        any::<u32>(),
        vec(".{0,9}", 0..3),
        vec(thread, 0..4),
    )
        .prop_map(|(pid, command, samples, limits, threads)| ProcessWatch {
            pid,
            command,
            samples,
            limits,
            threads,
        })
}

fn any_milestones() -> impl Strategy<Value = Milestones> {
    let stamp = (
        proptest::sample::select(Milestone::ALL),
        any::<i64>(),
        any::<i64>(),
        proptest::sample::select(Source::ALL.to_vec()),
    );
    vec(stamp, 0..40).prop_map(|stamps| {
        let mut milestones = Milestones::default();
        for (milestone, a, b, source) in stamps {
            milestones.note(milestone, Stamp::between(a, b, source));
        }
        milestones
    })
}

fn any_leg() -> impl Strategy<Value = Leg> {
    (
        ".{0,30}",
        ".{0,30}",
        any::<i64>(),
        option::of(any::<[i64; 3]>()),
    )
        .prop_map(|(local, peer, earlier_exchanges, tcp)| Leg {
            local,
            peer,
            earlier_exchanges,
            tcp: tcp.map(|[min_rtt_ns, retransmits, window_limited_ns]| TcpFigures {
                min_rtt_ns,
                retransmits,
                window_limited_ns,
            }),
        })
}

fn any_stream() -> impl Strategy<Value = Option<StreamShare>> {
    let behind = || option::of(any::<i64>());
    let share = (any::<i64>(), behind(), behind());
    option::of(share.prop_map(
        |(id, request_behind_bytes, response_behind_bytes)| StreamShare {
            id,
            request_behind_bytes,
            response_behind_bytes,
        },
    ))
}

prop_compose! {
    fn any_record()(
        (trace, span, parent) in (uniform16(1_u8..), uniform8(1_u8..), option::of(uniform8(1_u8..))),
        (method, scheme, authority, path) in (".{0,9}", ".{0,9}", ".{0,30}", ".{0,50}"),
        (status, sampled, outcome) in (
            option::of(any::<u16>()), any::<bool>(), proptest::sample::select(Outcome::ALL.to_vec())
        ),
        (request_bytes, response_bytes, clock_step_ns) in (
            option::of(any::<i64>()), option::of(any::<i64>()), any::<i64>()
        ),
        (down, up, milestones) in (any_leg(), option::of(any_leg()), any_milestones()),
        (down_stream, up_stream) in (any_stream(), any_stream()),
        (client_process, server_process) in (option::of(any_process()), option::of(any_process())),
        (why, polls, unread_polls) in (".{0,30}", any::<u32>(), any::<u32>()),
    ) -> ExchangeRecord {
        let outcome_of_queue = QueueOutcome::StillUnread;
        let queue = QueueWatch { outcome: outcome_of_queue, polls, unread_polls };
        ExchangeRecord {
            trace_id: TraceId::from_bytes(&trace).unwrap(),
            span_id: SpanId::from_bytes(&span).unwrap(),
            parent_span_id: parent.map(|parent| SpanId::from_bytes(&parent).unwrap()),
            sampled, method, scheme, authority, path, status, outcome,
            request_bytes, response_bytes, down, up, down_stream, up_stream, milestones,
            client_queue: queue,
            client_process,
            server_queue: QueueWatch::NOT_WATCHED,
            server_process,
            sources: Sources {
                kernel_stamps: SourceState::Used,
                capture: SourceState::Unavailable(why),
                queues: SourceState::Off,
                processes: SourceState::Used,
            },
            clock_step_ns,
        }
    }
}

fn read_back(span: &ExchangeSpan) -> Result<ExchangeRecord, ReadError> {
    read(
        span.trace_id,
        span.span_id,
        span.parent_span_id,
        &span.attributes,
    )
}

fn simple_span() -> ExchangeSpan {
    write(&Scenario::healthy(1).observe(&World::PLAIN).exchanges[0])
}

proptest! {
    #[test]
    fn any_record_comes_back_as_it_was(record in any_record()) {
        prop_assert_eq!(read_back(&write(&record)), Ok(record));
    }

    #[test]
    fn a_writer_writes_each_record_as_if_it_were_the_first(
        mut records in vec(any_record(), 2..4), same in any::<bool>()
    ) {
        if same {
            records[1].sources = records[0].sources.clone();
            records[1].client_queue = records[0].client_queue;
        }
        let mut writer = Writer::default();
        for record in &records {
            let mut attributes = BTreeMap::new();
            writer.write(record, &mut |key, value| {
                let before = attributes.insert(key.to_owned(), AttributeValue::from(value));
                assert_eq!(before, None, "{key} came twice");
            });
            prop_assert_eq!(
                &read(record.trace_id, record.span_id, record.parent_span_id, &attributes),
                &Ok(record.clone())
            );
        }
    }

    #[test]
    fn attributes_of_others_are_passed_over(record in any_record(), key in "[a-z.]{1,20}") {
        let mut span = write(&record);
        span.attributes.insert(format!("vendor.{key}"), AttributeValue::Ints(vec![]));
        span.attributes.insert("skewtap.stamp.later.packet".into(), AttributeValue::Bool(true));
        prop_assert_eq!(read_back(&span), Ok(record));
    }

    #[test]
    fn a_lost_attribute_is_named_or_optional(lost in any::<proptest::sample::Index>()) {
        let mut span = simple_span();
        let keys: Vec<String> = span.attributes.keys().cloned().collect();
        let key = lost.get(&keys);
        span.attributes.remove(key);
        if let Err(error) = read_back(&span) {
            prop_assert_eq!(error, ReadError::Missing { key: key.clone() });
        }
    }
}

#[test]
fn a_later_version_is_refused() {
    let mut span = simple_span();
    span.attributes
        .insert(VERSION_KEY.to_owned(), AttributeValue::Int(2));
    assert_eq!(read_back(&span), Err(ReadError::Version { found: 2 }));
}

#[test]
fn what_is_malformed_is_named() {
    for (key, value) in [
        ("http.response.status_code", AttributeValue::Int(70_000)),
        (
            "skewtap.outcome",
            AttributeValue::Text("splendid".to_owned()),
        ),
        ("skewtap.sources", AttributeValue::Text("{".to_owned())),
        (
            "skewtap.stamp.up.fin.packet",
            AttributeValue::Ints(vec![2, 1]),
        ),
        ("skewtap.stamp.up.fin.packet", AttributeValue::Ints(vec![1])),
        ("skewtap.sampled", AttributeValue::Int(1)),
    ] {
        let mut span = simple_span();
        span.attributes.insert(key.to_owned(), value);
        let error = read_back(&span).unwrap_err();
        assert!(
            matches!(&error, ReadError::Malformed { key: named, .. } if named == key),
            "{error}"
        );
    }
}

#[test]
fn nothing_but_an_empty_map_says_what_is_missing() {
    let span = simple_span();
    let error = read(span.trace_id, span.span_id, None, &BTreeMap::new()).unwrap_err();
    assert_eq!(
        error,
        ReadError::Missing {
            key: VERSION_KEY.to_owned()
        }
    );
}
