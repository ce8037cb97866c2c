//! Random numbers and identifiers that are the same in replay: a hash of instance, generation and a count.

use crate::model::shared::Shared;

/// A number, evenly from all of `u64`: SplitMix64 (Steele, Lea and Flood, 2014), seeded with the instance.
pub(super) fn random(shared: &Shared) -> u64 {
    let mut state = shared.state_mut();
    state.draws += 1;
    let seed = fnv(shared.instance.as_str(), 0xcbf2_9ce4_8422_2325) ^ state.generation.rotate_left(32);
    mix(mix(seed).wrapping_add(state.draws.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// A UUID of version 8 (RFC 9562). The halves come from two hashes of the identifier, so that instances rarely meet.
pub(super) fn uuid(shared: &Shared) -> String {
    let low = random(shared);
    let other = fnv(shared.instance.as_str(), 0x6c62_272e_07bb_0142);
    let high = mix(other ^ low);
    let high = (high & !0xf000) | 0x8000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// 64-bit FNV-1a, from a basis of choice.
fn fnv(text: &str, basis: u64) -> u64 {
    text.bytes().fold(basis, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
