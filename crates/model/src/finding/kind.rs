//! The kinds of findings: one for each detector, with the evidence of each. They are listed in [`super::evidence`].

use std::fmt;
use std::str::FromStr;

use super::evidence::FindingKind;

/// Declares the kinds from the id of each and the file of its evidence.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $id:literal, $file:ident;)*) => {
        /// Cause or limit that a finding names. Its id is also that of its detector and of its page.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum FindingKind {
            $($(#[$doc])* #[serde(rename = $id)] $kind,)*
        }

        impl FindingKind {
            /// Every kind, in the order of their ids.
            pub const ALL: &[FindingKind] = &[$(FindingKind::$kind,)*];

            /// The id used in files, tables and links: lower case with dashes.
            pub fn id(self) -> &'static str {
                match self {
                    $(FindingKind::$kind => $id,)*
                }
            }
        }

        /// Evidence of a finding, by its kind.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "detector", content = "evidence")]
        pub enum Evidence {
            $($(#[$doc])* #[serde(rename = $id)] $kind($file::$kind),)*
        }

        impl Evidence {
            /// The cause or limit that it is evidence of.
            pub fn kind(&self) -> FindingKind {
                match self {
                    $(Evidence::$kind(_) => FindingKind::$kind,)*
                }
            }
        }

        /// Evidence of this kind without data, for tests.
        impl From<FindingKind> for Evidence {
            fn from(kind: FindingKind) -> Self {
                match kind {
                    $(FindingKind::$kind => Evidence::$kind($file::$kind::default()),)*
                }
            }
        }

        $(impl From<$file::$kind> for Evidence {
            fn from(evidence: $file::$kind) -> Self {
                Evidence::$kind(evidence)
            }
        })*
    };
}

pub(crate) use kinds;

impl fmt::Display for FindingKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.id())
    }
}

impl FromStr for FindingKind {
    type Err = UnknownKind;

    fn from_str(id: &str) -> Result<Self, UnknownKind> {
        Self::ALL.iter().copied().find(|kind| kind.id() == id).ok_or_else(|| UnknownKind(id.to_owned()))
    }
}

/// An id that no kind has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKind(String);

impl fmt::Display for UnknownKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "no finding is called `{}`", self.0)
    }
}

impl std::error::Error for UnknownKind {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        for kind in FindingKind::ALL {
            assert_eq!(kind.id().parse(), Ok(*kind));
            assert_eq!(serde_json::to_string(kind).unwrap(), format!("\"{kind}\""));
        }
        assert!("n+1".parse::<FindingKind>().is_err());
    }

    #[test]
    fn ids_are_sorted_and_unique() {
        assert!(FindingKind::ALL.is_sorted_by(|one, other| one.id() < other.id()));
    }
}
