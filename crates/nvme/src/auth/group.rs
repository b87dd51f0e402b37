//! The groups of Diffie-Hellman that hosts and controllers agree on (RFC 7919), and the null group.

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Limb, NonZero, Odd, Resize};

/// A group, or none: then the challenges are answered as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Group {
    Null,
    Ffdhe2048,
    Ffdhe3072,
    Ffdhe4096,
    Ffdhe6144,
    Ffdhe8192,
}

impl Group {
    /// By preference: 125 bits of strength first, then what is stronger and slower, then what is weaker.
    const PREFERRED: [Self; 6] = [
        Self::Ffdhe3072,
        Self::Ffdhe4096,
        Self::Ffdhe6144,
        Self::Ffdhe8192,
        Self::Ffdhe2048,
        Self::Null,
    ];

    /// The best of those that a host offers by their identifiers.
    pub(super) fn of(offered: &[u8]) -> Option<Self> {
        Self::PREFERRED.into_iter().find(|group| offered.contains(&group.id()))
    }

    pub(super) const fn id(self) -> u8 {
        self as u8
    }

    /// Bytes of a public value: those of the prime.
    pub(super) const fn bytes(self) -> usize {
        self.bits() as usize / 8
    }

    const fn bits(self) -> u32 {
        match self {
            Self::Null => 0,
            Self::Ffdhe2048 => 2_048,
            Self::Ffdhe3072 => 3_072,
            Self::Ffdhe4096 => 4_096,
            Self::Ffdhe6144 => 6_144,
            Self::Ffdhe8192 => 8_192,
        }
    }

    /// The prime, by the formula of RFC 7919, appendix A: 2^b - 2^(b-64) + (floor(2^(b-130) e) + X) 2^64 - 1.
    fn prime(self) -> BoxedUint {
        let x: u32 = match self {
            Self::Null => 0,
            Self::Ffdhe2048 => 560_316,
            Self::Ffdhe3072 => 2_625_351,
            Self::Ffdhe4096 => 5_736_041,
            Self::Ffdhe6144 => 15_705_020,
            Self::Ffdhe8192 => 10_965_728,
        };
        let bits = self.bits();
        let middle = euler(bits - 130, bits).wrapping_add(BoxedUint::from(x)).shl(64);
        let one = BoxedUint::one_with_precision(bits);
        // 2^b is one more than the largest number of b bits.
        let top = BoxedUint::zero_with_precision(bits).wrapping_sub(one.shl(bits - 64));
        top.wrapping_add(middle).wrapping_sub(one)
    }

    /// The public value of a secret exponent: two to its power.
    pub(super) fn public(self, secret: &[u8]) -> Vec<u8> {
        self.power(&BoxedUint::from(2_u32).resize(self.bits()), secret)
    }

    /// The shared secret, as long as the prime. `None` if the other's value is none: 0, 1, or the prime less one, of which the
    /// powers are known to everybody.
    pub(super) fn shared(self, secret: &[u8], public: &[u8]) -> Option<Vec<u8>> {
        let bits = self.bits();
        let value =
            BoxedUint::from_be_slice(public, bits).ok().filter(|_| public.len() == self.bytes())?;
        let one = BoxedUint::one_with_precision(bits);
        let last = self.prime().wrapping_sub(&one);
        (value > one && value < last).then(|| self.power(&value, secret))
    }

    fn power(self, base: &BoxedUint, secret: &[u8]) -> Vec<u8> {
        let exponent = BoxedUint::from_be_slice_vartime(secret);
        let prime = Odd::new(self.prime()).into_option().expect("a prime above two is odd");
        let params = BoxedMontyParams::new(prime);
        BoxedMontyForm::new(base.clone(), &params).pow(&exponent).retrieve().to_be_bytes().into()
    }
}

/// floor(2^`scale` e), in a number of `bits` bits: the sum of 2^`scale` / n!, with digits to spare for what the divisions drop.
fn euler(scale: u32, bits: u32) -> BoxedUint {
    const SPARE: u32 = 128;
    let mut term = BoxedUint::one_with_precision(bits + SPARE).shl(scale + SPARE);
    let mut sum = BoxedUint::zero_with_precision(bits + SPARE);
    let mut n = 0_u32;
    while !bool::from(term.is_zero()) {
        sum = sum.wrapping_add(&term);
        n += 1;
        let divisor = NonZero::new(Limb::from(n));
        term = term.div_rem_limb(divisor.into_option().expect("counted from one")).0;
    }
    sum.shr(SPARE).resize(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Group; 5] =
        [Group::Ffdhe2048, Group::Ffdhe3072, Group::Ffdhe4096, Group::Ffdhe6144, Group::Ffdhe8192];

    /// First and last digits as RFC 7919 prints them, and two generates the group of order (p - 1) / 2.
    #[test]
    fn primes_are_those_of_the_rfc() {
        let ends = [0x5c97, 0x2e37, 0x5f6a, 0x0e65, 0x424c];
        for (group, end) in ALL.into_iter().zip(ends) {
            let prime = group.prime().to_be_bytes();
            assert_eq!(prime.len(), group.bytes());
            assert_eq!(prime[..16], 0xffff_ffff_ffff_ffff_adf8_5458_a2bb_4a9a_u128.to_be_bytes());
            let tail = prime.last_chunk::<10>().unwrap();
            assert_eq!(tail[..2], u16::to_be_bytes(end));
            assert_eq!(tail[2..], [0xff; 8]);
        }
        for group in [Group::Ffdhe2048, Group::Ffdhe3072] {
            let order = group.prime().shr(1).to_be_bytes();
            assert_eq!(BoxedUint::from_be_slice_vartime(&group.public(&order)), BoxedUint::one());
        }
    }

    #[test]
    fn both_sides_come_to_one_secret_and_worthless_values_are_refused() {
        let group = Group::Ffdhe2048;
        let (one, other) = ([7; 32], [9; 32]);
        let here = group.shared(&one, &group.public(&other)).unwrap();
        assert_eq!(here, group.shared(&other, &group.public(&one)).unwrap());
        assert_eq!(here.len(), 256);
        let mut last = group.prime().to_be_bytes();
        last[255] -= 1;
        let mut unit = vec![0; 256];
        assert_eq!(group.shared(&one, &unit), None);
        unit[255] = 1;
        assert_eq!(group.shared(&one, &unit), None);
        assert_eq!(group.shared(&one, &last), None);
        assert_eq!(group.shared(&one, &unit[1..]), None);
        assert_eq!(group.shared(&one, &[0xff; 256]), None, "above the prime");
    }

    #[test]
    fn the_best_group_on_offer_is_taken() {
        assert_eq!(Group::of(&[0, 1, 2, 5]), Some(Group::Ffdhe3072));
        assert_eq!(Group::of(&[1, 0]), Some(Group::Ffdhe2048));
        assert_eq!(Group::of(&[0]), Some(Group::Null));
        assert_eq!(Group::of(&[6, 9]), None);
    }
}
