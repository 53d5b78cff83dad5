use super::*;

fn answer(kind: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(NLMSG_HEADER + payload.len()).unwrap();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(0_u16.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An established socket with 600 of 1000 bytes unread, behind another attribute.
fn socket() -> Vec<u8> {
    let mut payload = vec![0; 72];
    payload[1] = 1;
    payload[44..52].copy_from_slice(&[9; 8]);
    payload[56..60].copy_from_slice(&600_u32.to_ne_bytes());
    payload[68..72].copy_from_slice(&77_u32.to_ne_bytes());
    payload.extend(5_u16.to_ne_bytes());
    payload.extend(8_u16.to_ne_bytes());
    payload.extend([3, 0, 0, 0]);
    payload.extend((4 + 240_u16).to_ne_bytes());
    payload.extend(INET_DIAG_INFO.to_ne_bytes());
    let mut info = vec![0; 240];
    info[128..136].copy_from_slice(&1_000_u64.to_ne_bytes());
    payload.extend(info);
    payload
}

#[test]
fn a_request_is_as_long_as_it_says() {
    let mut out = Vec::new();
    let ask = Ask::listener("[::1]:80".parse().unwrap());
    write_request(&mut out, 1, &ask);
    assert_eq!(out.len(), 72);
    assert_eq!(out[16], AF_INET6);
}

#[test]
fn a_mapped_address_is_asked_for_as_ipv4() {
    let mut out = Vec::new();
    let ask = Ask {
        of: "[::ffff:127.0.0.1]:258".parse().unwrap(),
        to: "127.0.0.2:1".parse().unwrap(),
        cookie: None,
    };
    write_request(&mut out, 1, &ask);
    assert_eq!(out[16], AF_INET);
    assert_eq!(out[24..28], [1, 2, 0, 1]);
    assert_eq!(out[28..32], [127, 0, 0, 1]);
    assert_eq!(out[44..48], [127, 0, 0, 2]);
}

#[test]
fn several_answers_in_one_datagram_are_told_apart() {
    let mut bytes = answer(SOCK_DIAG_BY_FAMILY, 4, &socket());
    bytes.extend(answer(NLMSG_ERROR, 5, &(-ENOENT).to_ne_bytes()));
    bytes.extend(answer(NLMSG_ERROR, 6, &(-1_i32).to_ne_bytes()));
    let answers = read_answers(&bytes);
    let Look::Open(open) = answers[0].1 else {
        panic!("{answers:?}");
    };
    assert_eq!(open.read(), 400);
    assert_eq!((open.inode, open.cookie), (77, [9; 8]));
    assert_eq!(answers[1..], [(5, Look::Absent), (6, Look::Refused(1))]);
}

#[test]
fn a_socket_without_figures_is_only_remembered() {
    let mut payload = vec![0; 72];
    payload[1] = 6;
    let answers = read_answers(&answer(SOCK_DIAG_BY_FAMILY, 1, &payload));
    assert_eq!(answers, [(1, Look::Remembered(State::TimeWait))]);
}

#[test]
fn a_message_cut_anywhere_is_no_answer() {
    let whole = answer(SOCK_DIAG_BY_FAMILY, 4, &socket());
    for length in 0..whole.len() {
        assert_eq!(read_answers(&whole[..length]), []);
    }
    let mut lying = whole;
    for length in [0_u32, 15, 16, 17, u32::MAX] {
        lying[..4].copy_from_slice(&length.to_ne_bytes());
        assert_eq!(read_answers(&lying), []);
    }
}
