use super::*;

const SENT: u64 = 50;

fn request() -> WatchRequest {
    WatchRequest {
        peer: "127.0.0.1:1".parse().unwrap(),
        local: "127.0.0.1:2".parse().unwrap(),
        bytes_sent: SENT,
        sent_before_ns: 5,
        watch_accept: true,
        peer_had_ended: false,
    }
}

/// A socket into which all has arrived, all of it read, held by a process.
const WHOLE: OpenSocket = OpenSocket {
    state: State::Live,
    unread: 0,
    unacknowledged: 0,
    received: SENT,
    uid: 0,
    inode: 7,
    cookie: [0; 8],
};

/// A socket into which all has arrived, with `unread` bytes unread.
fn socket(state: State, unread: u32, inode: u32) -> Look {
    Look::Open(OpenSocket {
        state,
        unread,
        inode,
        ..WHOLE
    })
}

fn own_end(unacknowledged: u32) -> Look {
    Look::Open(OpenSocket {
        unacknowledged,
        ..WHOLE
    })
}

fn at(ns: i64, look: Look) -> Looked {
    Looked {
        before_ns: ns,
        after_ns: ns + 1,
        look,
    }
}

/// The state after look-ups at 10, 20, ... of which all but the last see unread bytes.
fn after(request: &WatchRequest, looks: &[Look]) -> (PickUp, Next) {
    let mut pick_up = PickUp::new(request);
    let mut next = Next::LookAgain;
    for (look, ns) in looks.iter().zip((10..).step_by(10)) {
        next = pick_up.look(&at(ns, *look));
    }
    (pick_up, next)
}

fn bounds(stamp: Option<Stamp<ProxyClock>>) -> Option<(i64, i64)> {
    stamp.map(|stamp| (stamp.lo(), stamp.hi()))
}

const UNREAD: fn() -> Look = || socket(State::Live, 50, 7);
const READ: fn() -> Look = || socket(State::Live, 0, 7);

#[test]
fn the_bracket_runs_from_before_the_last_unread_to_after_the_first_read() {
    let (pick_up, next) = after(&request(), &[UNREAD(), UNREAD(), READ()]);
    assert_eq!(next, Next::Over);
    assert_eq!(pick_up.queue().outcome, QueueOutcome::Read);
    assert_eq!(
        (pick_up.queue().polls, pick_up.queue().unread_polls),
        (3, 2)
    );
    assert_eq!(bounds(pick_up.picked_up()), Some((20, 31)));
}

#[test]
fn if_the_first_look_finds_it_read_the_bracket_starts_before_the_write() {
    let (pick_up, _) = after(&request(), &[READ()]);
    assert_eq!(bounds(pick_up.picked_up()), Some((5, 11)));
}

#[test]
fn bytes_still_on_their_way_are_not_read() {
    let partly = Look::Open(OpenSocket {
        received: SENT - 1,
        ..WHOLE
    });
    let (pick_up, next) = after(&request(), &[partly]);
    assert_eq!(next, Next::Unread);
    assert_eq!(pick_up.queue().outcome, QueueOutcome::StillUnread);
}

#[test]
fn our_end_of_stream_counts_on_both_sides() {
    let with_end = |unread| {
        Look::Open(OpenSocket {
            received: SENT + 1,
            unread,
            ..WHOLE
        })
    };
    assert_eq!(after(&request(), &[with_end(51)]).1, Next::Unread);
    assert_eq!(after(&request(), &[with_end(2)]).1, Next::Unread);
    assert_eq!(after(&request(), &[with_end(1)]).1, Next::Over);
}

#[test]
fn accepting_is_bracketed_only_if_it_was_seen_waiting() {
    let waiting = socket(State::Live, 50, 0);
    let (pick_up, _) = after(&request(), &[waiting, waiting, UNREAD(), READ()]);
    assert_eq!(bounds(pick_up.accepted()), Some((20, 31)));
    assert_eq!(bounds(pick_up.picked_up()), Some((30, 41)));
    assert_eq!(after(&request(), &[UNREAD(), READ()]).0.accepted(), None);
    let unwanted = WatchRequest {
        watch_accept: false,
        ..request()
    };
    assert_eq!(after(&unwanted, &[waiting, UNREAD()]).0.accepted(), None);
}

#[test]
fn closing_after_reading_is_read_however_far_the_closing_has_come() {
    for last in [
        socket(State::Finishing, 0, 0),
        socket(State::Closing, 0, 0),
        Look::Remembered(State::TimeWait),
    ] {
        let (pick_up, next) = after(&request(), &[UNREAD(), last]);
        assert_eq!(next, Next::Over);
        assert_eq!(bounds(pick_up.picked_up()), Some((10, 21)), "{last:?}");
    }
}

#[test]
fn a_socket_gone_is_judged_by_our_own_end() {
    let cases = [
        (Look::Remembered(State::TimeWait), QueueOutcome::Read),
        (Look::Absent, QueueOutcome::LeftUnread),
        (own_end(0), QueueOutcome::LeftUnread),
    ];
    for (own, outcome) in cases {
        let (mut pick_up, next) = after(&request(), &[UNREAD(), Look::Absent]);
        assert_eq!(next, Next::AskOwnEnd);
        assert_eq!(pick_up.own_end(&at(20, Look::Absent), &own), Next::Over);
        assert_eq!(pick_up.queue().outcome, outcome, "{own:?}");
        let read = outcome == QueueOutcome::Read;
        assert_eq!(bounds(pick_up.picked_up()), read.then_some((10, 21)));
    }
}

#[test]
fn a_socket_never_seen_is_elsewhere_unless_its_address_is_ours() {
    let elsewhere = WatchRequest {
        peer: "192.0.2.1:1".parse().unwrap(),
        local: "192.0.2.2:2".parse().unwrap(),
        ..request()
    };
    let remembered = Look::Remembered(State::TimeWait);
    let cases = [
        (elsewhere, own_end(0), QueueOutcome::NotHere),
        (elsewhere, remembered, QueueOutcome::NotHere),
        (elsewhere, Look::Absent, QueueOutcome::NotHere),
        (request(), own_end(0), QueueOutcome::NotHere),
        (request(), remembered, QueueOutcome::Read),
        (request(), Look::Absent, QueueOutcome::NotWatched),
        (request(), Look::Refused(1), QueueOutcome::NotWatched),
    ];
    for (request, own, outcome) in cases {
        let (mut pick_up, next) = after(&request, &[Look::Absent]);
        assert_eq!(next, Next::AskOwnEnd);
        assert_eq!(pick_up.own_end(&at(10, Look::Absent), &own), Next::Over);
        assert_eq!(pick_up.queue().outcome, outcome, "{request:?} {own:?}");
    }
}

#[test]
fn an_endpoint_that_finished_first_has_read_only_what_we_know_arrived() {
    let finishing = Look::Remembered(State::Finishing);
    let (mut pick_up, next) = after(&request(), &[finishing]);
    assert_eq!(next, Next::AskOwnEnd);
    assert_eq!(
        pick_up.own_end(&at(10, finishing), &own_end(1)),
        Next::LookAgain
    );
    assert_eq!(pick_up.own_end(&at(20, finishing), &own_end(0)), Next::Over);
    assert_eq!(bounds(pick_up.picked_up()), Some((5, 21)));
}

#[test]
fn closing_without_having_got_everything_is_leaving_it_unread() {
    let partly = Look::Open(OpenSocket {
        state: State::Finishing,
        inode: 0,
        received: SENT - 1,
        ..WHOLE
    });
    let (pick_up, next) = after(&request(), &[partly]);
    assert_eq!(
        (next, pick_up.queue().outcome),
        (Next::Over, QueueOutcome::LeftUnread)
    );
}

#[test]
fn of_an_endpoint_that_had_ended_its_side_closing_tells_nothing() {
    let told = WatchRequest {
        peer_had_ended: true,
        ..request()
    };
    let (pick_up, next) = after(&told, &[Look::Remembered(State::TimeWait)]);
    assert_eq!(
        (next, pick_up.queue().outcome),
        (Next::Over, QueueOutcome::NotWatched)
    );

    let seen = socket(State::Finishing, 50, 7);
    let (pick_up, _) = after(&request(), &[seen, Look::Remembered(State::TimeWait)]);
    assert_eq!(pick_up.queue().outcome, QueueOutcome::StillUnread);
    assert_eq!(pick_up.picked_up(), None);
}

#[test]
fn the_callers_word_closes_a_bracket_that_was_opened_and_no_other() {
    let (mut pick_up, _) = after(&request(), &[UNREAD()]);
    pick_up.end_now(Some(400));
    assert_eq!(bounds(pick_up.picked_up()), Some((10, 400)));

    let (mut contradicted, _) = after(&request(), &[UNREAD()]);
    contradicted.end_now(Some(9));
    assert_eq!(contradicted.queue().outcome, QueueOutcome::StillUnread);

    let mut unlooked = PickUp::new(&request());
    unlooked.end_now(Some(400));
    assert_eq!(unlooked.queue(), QueueWatch::NOT_WATCHED);
    assert_eq!(unlooked.picked_up(), None);
}
