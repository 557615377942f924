//! Addresses and networks that a setting names.

use std::net::IpAddr;

/// Some addresses: those that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    /// Reads an address (`10.0.0.7`, `fd00::7`) or a network (`10.0.0.0/8`, `fd00::/8`).
    pub(crate) fn parse(text: &str) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) if bits.bytes().all(|byte| byte.is_ascii_digit()) => (address, bits.parse().ok()),
            Some(_) => return None,
            None => (text, Some(128)),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = if text.contains('/') { bits? } else { most };
        (bits <= most).then_some(Network { address, bits })
    }

    #[cfg_attr(not(any(feature = "zmq", feature = "native")), allow(dead_code, reason = "nobody connects"))]
    /// Whether `peer` is one of them. IPv4 written as IPv6 is IPv4.
    fn contains(&self, peer: IpAddr) -> bool {
        match (self.address.to_canonical(), peer.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(peer)) => {
                // A network of IPv4 written as IPv6 counts its bits from there.
                let bits = if self.address.is_ipv4() { self.bits } else { self.bits.saturating_sub(96) };
                (u32::from(own) ^ u32::from(peer)).leading_zeros() >= bits
            }
            (IpAddr::V6(own), IpAddr::V6(peer)) => (u128::from(own) ^ u128::from(peer)).leading_zeros() >= self.bits,
            _ => false,
        }
    }
}

/// Whether one of the networks has the address.
#[cfg(feature = "native")]
pub(crate) fn allows_address(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(address))
}

/// Whether one of the networks has the peer, as libzmq writes its address.
#[cfg_attr(not(feature = "zmq"), allow(dead_code, reason = "nobody connects"))]
pub(crate) fn allows(networks: &[Network], peer: &str) -> bool {
    // Behind % stands the interface of a link-local address.
    let address = peer.split_once('%').map_or(peer, |(address, _)| address);
    address.parse().is_ok_and(|address| networks.iter().any(|network| network.contains(address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_the_addresses_that_begin_like_them() {
        for (network, inside, outside) in [
            ("10.0.0.7", "10.0.0.7", "10.0.0.8"),
            ("10.0.0.0/8", "10.255.1.2", "11.0.0.1"),
            ("10.1.2.3/16", "10.1.255.255", "10.2.0.0"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("192.0.2.128/25", "192.0.2.129", "192.0.2.127"),
            ("::1", "::1", "127.0.0.1"),
            ("fd00::/8", "fdff::1", "fe80::1"),
            ("fe80::/10", "fe80::1%eth0", "fd00::1%eth0"),
            ("127.0.0.0/8", "::ffff:127.0.0.1", "::ffff:128.0.0.1"),
            ("::ffff:10.0.0.0/104", "10.1.1.1", "11.1.1.1"),
            ("::/0", "2001:db8::1", "no address"),
        ] {
            let networks = [Network::parse(network).unwrap()];
            assert!(allows(&networks, inside), "{network} has {inside}");
            assert!(!allows(&networks, outside), "{network} has not {outside}");
            assert!(!allows(&networks, ""), "nobody has no address");
        }
    }

    #[test]
    fn what_is_no_network_is_none() {
        for text in [
            "",
            "host",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0/8",
            "::/129",
            "[::1]",
            "10.0.0.1:80",
            " ::1",
        ] {
            assert_eq!(Network::parse(text), None, "{text:?}");
        }
    }
}
