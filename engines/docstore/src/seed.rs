//! The documents a container starts with: drone utilisation, one document per owner and month.
//!
//! The generator is a function of the document's number alone, so every store with the same count holds the same
//! documents. Owners are `o0000`, `o0001`, … (the number after `o000`, unpadded); each has [`MONTHS_PER_OWNER`] consecutive months from January of
//! [`FIRST_YEAR`], as in the case study, so a query for owner, year and month finds exactly one document.

use serde_json::{Map, Value, json};

use crate::random::Random;

/// Months of utilisation each owner has, one document for each.
pub const MONTHS_PER_OWNER: u32 = 110;
/// The year of every owner's first document.
pub const FIRST_YEAR: u32 = 2020;
/// Size of the generated property that brings a stored document to about 785 bytes, in characters.
const FLIGHT_LOG_CHARACTERS: usize = 387;

/// The owners among `documents` seeded documents; the last one may have fewer months than the others.
#[must_use]
pub fn owners(documents: u32) -> u32 {
    documents.div_ceil(MONTHS_PER_OWNER)
}

/// Document number `number`, without system properties.
pub(crate) fn document(number: u32) -> Map<String, Value> {
    let (owner, month) = (number / MONTHS_PER_OWNER, number % MONTHS_PER_OWNER);
    let mut random = Random::new(u64::from(number));
    let owner_id = format!("o000{owner}");
    let fields = json!({
        "id": format!("d000{number}"),
        "type": "InternalDroneUtilization",
        "ownerId": owner_id,
        "regionId": owner_id,
        "droneId": format!("drone-{:04}", random.below(10_000)),
        "year": FIRST_YEAR + month / 12,
        "month": month % 12 + 1,
        "traveledMiles": hundredths(3_000 + random.below(47_000)),
        "assignedHours": hundredths(100 + random.below(2_900)),
        "flights": 1 + random.below(60),
        "flightLog": digits(&mut random, FLIGHT_LOG_CHARACTERS),
    });
    match fields {
        Value::Object(document) => document,
        _ => Map::new(),
    }
}

fn hundredths(number: u64) -> f64 {
    number as f64 / 100.0
}

/// Hexadecimal digits, `count` of them.
fn digits(random: &mut Random, count: usize) -> String {
    let mut digits = String::with_capacity(count + 16);
    while digits.len() < count {
        digits.push_str(&format!("{:016x}", random.next()));
    }
    digits.truncate(count);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_always_gives_the_same_document() {
        assert_eq!(document(12_345), document(12_345));
        assert_ne!(document(1)["flightLog"], document(2)["flightLog"]);
    }

    #[test]
    fn owner_and_month_name_one_document() {
        let mut seen = std::collections::HashSet::new();
        for number in 0..1_000 {
            let document = document(number);
            assert!(seen.insert(format!("{} {} {}", document["ownerId"], document["year"], document["month"])));
        }
        assert_eq!(document(0)["year"], 2020);
        assert_eq!(document(109)["year"], 2029);
        assert_eq!(document(109)["month"], 2);
        assert_eq!(document(110)["ownerId"], "o0001");
    }

    #[test]
    fn owners_round_up() {
        assert_eq!([owners(0), owners(1), owners(110), owners(111)], [0, 1, 1, 2]);
    }
}
