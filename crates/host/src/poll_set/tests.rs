use super::*;
use crate::activity::tests::FakeProcess;

fn poll_array(entries: &[(i32, u16)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (descriptor, events) in entries {
        bytes.extend(descriptor.to_ne_bytes());
        bytes.extend(events.to_ne_bytes());
        bytes.extend([0, 0]);
    }
    bytes
}

fn waits_on_poll(entries: &[(i32, u16)]) -> Waits {
    let process = FakeProcess::watching(7).with_memory(0x1000, poll_array(entries));
    let count = u64::try_from(entries.len()).unwrap();
    PollSet::from_poll_array(&process, 0x1000, count)
        .unwrap()
        .waits(&process)
}

#[test]
fn a_poll_array_is_searched_for_the_socket() {
    assert_eq!(waits_on_poll(&[(3, 1), (7, 1)]), Waits::Here);
    assert_eq!(waits_on_poll(&[(3, 1), (4, 1)]), Waits::Elsewhere);
    assert_eq!(waits_on_poll(&[(7, 4)]), Waits::Elsewhere);
    assert_eq!(waits_on_poll(&[]), Waits::OnNothing);
    assert_eq!(waits_on_poll(&[(-1, 1), (-8, 1)]), Waits::OnNothing);
}

#[test]
fn an_array_that_cannot_be_read_in_full_does_not_exclude_the_socket() {
    let process = FakeProcess::watching(7).with_memory(0x1000, vec![0; 8 * MOST_MEMBERS]);
    assert_eq!(PollSet::from_poll_array(&process, 0x2000, 1), None);
    let set = PollSet::from_poll_array(&process, 0x1000, u64::MAX).unwrap();
    assert_eq!(set.waits(&process), Waits::Unknown);
}

#[test]
fn bit_sets_are_searched_for_the_socket() {
    let mut read = vec![0; 16];
    read[8] = 1 << 6;
    let process = FakeProcess::watching(70)
        .with_memory(0x1000, read)
        .with_memory(0x2000, vec![0; 16]);
    let waits = |count, sets| {
        PollSet::from_bit_sets(&process, count, sets)
            .unwrap()
            .waits(&process)
    };
    assert_eq!(waits(71, [0x1000, 0, 0]), Waits::Here);
    assert_eq!(waits(70, [0x1000, 0, 0]), Waits::OnNothing);
    assert_eq!(waits(71, [0, 0x1000, 0]), Waits::Elsewhere);
    assert_eq!(waits(71, [0x2000, 0x2000, 0]), Waits::OnNothing);
    assert_eq!(waits(0, [0, 0, 0]), Waits::OnNothing);
    assert_eq!(PollSet::from_bit_sets(&process, 8, [0x3000, 0, 0]), None);
}

const EPOLL_INFO: &str = "\
pos:\t0
flags:\t02000002
ino:\t1038
tfd:        4 events: c0000019 data:                4  pos:0 ino:93df sdev:9
tfd:        5 events:        4 data:                5  pos:0 ino:93e0 sdev:9
";

#[test]
fn epoll_members_are_read_with_what_they_wait_for() {
    let set = PollSet::from_epoll_info(EPOLL_INFO, true);
    let expected =
        [(4, true, 0x93df), (5, false, 0x93e0)].map(|(descriptor, for_reading, inode)| Member {
            descriptor,
            for_reading,
            inode: Some(inode),
        });
    assert_eq!(set.members, expected);
    assert!(!set.incomplete);
}

#[test]
fn a_line_that_cannot_be_read_makes_the_set_incomplete() {
    let set = PollSet::from_epoll_info("tfd: x events: 19\n", true);
    assert_eq!(set.waits(&FakeProcess::watching(7)), Waits::Unknown);
}

#[test]
fn an_epoll_member_is_recognised_by_its_inode_under_another_number() {
    let set = PollSet::from_epoll_info(EPOLL_INFO, true);
    let process = FakeProcess::watching(7).with_inode(0x93df);
    assert_eq!(set.waits(&process), Waits::Here);
    let process = FakeProcess::watching(7).with_inode(0x93e0);
    assert_eq!(set.waits(&process), Waits::Elsewhere);
}

#[test]
fn epoll_sets_are_followed_into_one_another_but_not_in_circles() {
    let holding = |descriptor| PollSet {
        members: vec![Member {
            descriptor,
            for_reading: true,
            inode: None,
        }],
        incomplete: false,
    };
    let process = FakeProcess::watching(7)
        .with_epoll(10, holding(7))
        .with_epoll(11, holding(10))
        .with_epoll(12, holding(12));
    assert_eq!(holding(11).waits(&process), Waits::Here);
    assert_eq!(holding(12).waits(&process), Waits::Unknown);
}
