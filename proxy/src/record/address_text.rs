//! Addresses as text, written anew only where they change.

use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::journal::LegAddresses;

/// Texts kept for each end of a leg.
const KEPT: usize = 256;

/// The texts of both ends of one leg.
#[derive(Debug, Default)]
pub(super) struct LegTexts {
    local: AddressTexts,
    peer: AddressTexts,
}

impl LegTexts {
    /// The proxy's end and the other.
    pub(super) fn of(&mut self, ends: LegAddresses) -> [&str; 2] {
        [self.local.of(ends.local), self.peer.of(ends.peer)]
    }
}

/// The texts of the addresses that were met last, each in a place that its port gives.
#[derive(Debug)]
struct AddressTexts(Vec<AddressText>);

#[derive(Clone, Debug, Default)]
struct AddressText {
    address: Option<SocketAddr>,
    text: String,
}

impl Default for AddressTexts {
    fn default() -> Self {
        Self(vec![AddressText::default(); KEPT])
    }
}

impl AddressTexts {
    fn of(&mut self, address: SocketAddr) -> &str {
        let place = self.0.get_mut(usize::from(address.port()) % KEPT);
        // A port always gives a place.
        place.map_or("", |kept| kept.of(address))
    }
}

impl AddressText {
    fn of(&mut self, address: SocketAddr) -> &str {
        if self.address != Some(address) {
            self.text.clear();
            // Writing to a `String` does not fail.
            let written = write!(self.text, "{address}");
            self.address = written.is_ok().then_some(address);
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_follows_its_address() {
        let mut texts = LegTexts::default();
        let ends = |local: &str, peer: &str| {
            LegAddresses::new(local.parse().unwrap(), peer.parse().unwrap())
        };
        for [local, peer] in [
            ["127.0.0.1:80", "127.0.0.1:4711"],
            ["127.0.0.1:80", "[::1]:4711"],
            ["10.0.0.1:80", "[::1]:4711"],
            ["127.0.0.1:80", "[::1]:4967"],
            ["127.0.0.1:80", "[::1]:4711"],
        ] {
            assert_eq!(texts.of(ends(local, peer)), [local, peer]);
        }
    }
}
