//! MurmurHash3, the 128-bit variant for 64-bit machines (Austin Appleby's reference `MurmurHash3_x64_128`), seed 0.
//!
//! Written out here because the partitioning of a whole store rests on these sixty lines; it is no defence against
//! somebody who chooses keys to collide.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The hash as its two words `h1` and `h2`, in the reference's order.
pub(crate) fn murmur3_x64_128(bytes: &[u8]) -> (u64, u64) {
    let (mut h1, mut h2) = (0_u64, 0_u64);
    let mut blocks = bytes.chunks_exact(16);
    for block in &mut blocks {
        let (k1, k2) = words(block);
        h1 = (h1 ^ mix_k1(k1)).rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix_k2(k2)).rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (k1, k2) = words(blocks.remainder());
    h1 ^= mix_k1(k1);
    h2 ^= mix_k2(k2);

    let length = bytes.len() as u64;
    h1 ^= length;
    h2 ^= length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2)
}

/// Up to 16 bytes as two little-endian words, missing bytes as zero (which the mixing maps to zero).
fn words(bytes: &[u8]) -> (u64, u64) {
    let mut padded = [0_u8; 16];
    padded[..bytes.len()].copy_from_slice(bytes);
    let both = u128::from_le_bytes(padded);
    (both as u64, (both >> 64) as u64)
}

fn mix_k1(word: u64) -> u64 {
    word.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix_k2(word: u64) -> u64 {
    word.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finish(mut word: u64) -> u64 {
    word ^= word >> 33;
    word = word.wrapping_mul(0xff51_afd7_ed55_8ccd);
    word ^= word >> 33;
    word = word.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors() {
        let cases: [(&str, (u64, u64)); 3] = [
            ("", (0, 0)),
            ("hello", (0xcbd8_a7b3_41bd_9b02, 0x5b1e_906a_48ae_1d19)),
            ("The quick brown fox jumps over the lazy dog", (0xe34b_bc7b_bc07_1b6c, 0x7a43_3ca9_c49a_9347)),
        ];
        for (text, expected) in cases {
            assert_eq!(murmur3_x64_128(text.as_bytes()), expected, "{text:?}");
        }
    }
}
