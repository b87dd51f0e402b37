//! The registry of a policy folder.
//!
//! A folder of policies declares itself once with [`policies!`](crate::policies); from that one
//! list come the modules, the config enum, its JSON schema, the names for `leyden policies`, the
//! sweep axis, and what the torture harness draws from.

use crate::Rng;

/// A policy as `leyden policies` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyInfo {
    /// The name a configuration uses.
    pub name: &'static str,
    /// Its doc comment: what it does and where it comes from.
    pub doc: &'static [&'static str],
}

impl PolicyInfo {
    /// The one of `policies` that `number` draws, each equally likely. By name, whatever the order of the
    /// list: a policy that is added takes the numbers that draw it, and all others draw what they did.
    ///
    /// Every name has its own hash of the number and the largest wins (Thaler and Ravishankar, "Using
    /// name-based mappings to increase hit rates", 1998: rendezvous hashing).
    ///
    /// # Panics
    /// If there are none.
    pub fn drawn(policies: &[Self], number: u64) -> &Self {
        let hash = |policy: &Self| (Rng::new(number, policy.name).next_u64(), policy.name);
        policies.iter().max_by_key(|policy| hash(policy)).expect("a registry has a policy")
    }

    /// The first line of the doc comment.
    pub fn summary(&self) -> &'static str {
        self.doc.first().map_or("", |line| line.trim())
    }
}

/// Declares a folder's policies.
///
/// Each variant names its module, the type in it (whose fields are the policy's parameters: it
/// implements `Default`, serde and `JsonSchema`), and the name in a configuration. A configuration
/// may write the bare name, or a table with the name under `policy` and the parameters beside it.
///
/// ```
/// mod fast {
///     #[derive(Clone, Debug, PartialEq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
///     #[serde(deny_unknown_fields, default)]
///     pub struct Fast { pub speed: u32 }
/// }
/// leyden_sim::policies! {
///     /// How to go.
///     pub enum Pace {
///         /// As fast as it can.
///         Fast(fast::Fast) = "fast",
///     }
/// }
/// let bare: Pace = serde_json::from_str(r#""fast""#).unwrap();
/// let full: Pace = serde_json::from_str(r#"{"policy": "fast", "speed": 3}"#).unwrap();
/// assert_eq!(bare, Pace::Fast(fast::Fast { speed: 0 }));
/// assert_eq!(full, Pace::Fast(fast::Fast { speed: 3 }));
/// assert_eq!(Pace::POLICIES[0].name, "fast");
/// ```
///
/// With `pub enum Pace: GoingPolicy`, a trait that all types implement, it also declares the modules, and
/// `policy()` gives the policy as a trait object: for folders whose policies are called rarely. A new
/// policy is a file and a line then.
#[macro_export]
macro_rules! policies {
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident: $trait:ident {
            $( $(#[doc = $policy_doc:literal])* $variant:ident($module:ident::$type:ident) = $key:literal ),+ $(,)?
        }
    ) => {
        $( pub mod $module; )+

        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, $crate::macro_support::serde::Serialize, $crate::macro_support::schemars::JsonSchema)]
        #[serde(tag = "policy", crate = "leyden_sim::macro_support::serde")]
        #[schemars(crate = "leyden_sim::macro_support::schemars", transform = $name::extend_schema)]
        pub enum $name {
            $( $(#[doc = $policy_doc])* #[serde(rename = $key)] $variant($module::$type), )+
            /// A policy of another crate ([`Self::register`]).
            #[serde(untagged)]
            #[schemars(skip)]
            Outside($crate::Outside<dyn $trait>),
        }

        $crate::policies!(@own $name $( $(#[doc = $policy_doc])* $variant($module::$type) = $key, )+);

        impl $name {
            fn outside() -> &'static $crate::OutsideRegistry<dyn $trait> {
                static OUTSIDE: $crate::OutsideRegistry<dyn $trait> = $crate::OutsideRegistry::new();
                &OUTSIDE
            }

            fn extend_schema(schema: &mut $crate::macro_support::schemars::Schema) {
                Self::outside().extend_schema(schema);
            }

            /// Adds a policy of another crate under `name`, with its documentation for users, a line each. Before
            /// anything is configured.
            ///
            /// # Panics
            /// If there is a policy of that name already.
            pub fn register<P>(name: &'static str, doc: &'static [&'static str])
            where
                P: $trait
                    + Default
                    + $crate::macro_support::serde::Serialize
                    + $crate::macro_support::serde::de::DeserializeOwned
                    + $crate::macro_support::schemars::JsonSchema
                    + 'static,
            {
                use $crate::macro_support::serde_json;

                let entry = $crate::OutsideEntry::<dyn $trait> {
                    info: $crate::PolicyInfo { name, doc },
                    make: |parameters| match serde_json::from_value::<P>(parameters) {
                        Ok(policy) => Ok(Box::new(policy)),
                        Err(error) => Err(error.to_string()),
                    },
                    defaults: || serde_json::to_value(P::default()).unwrap_or_default(),
                    schema: P::json_schema,
                };
                Self::outside().add(entry, Self::POLICIES);
            }

            /// The policy as the mechanism calls it.
            pub fn policy(&self) -> Box<dyn $trait> {
                match self {
                    $( Self::$variant(policy) => Box::new(policy.clone()), )+
                    Self::Outside(policy) => policy.policy(),
                }
            }

            /// The name a configuration uses for this policy.
            pub fn name(&self) -> &'static str {
                match self {
                    $( Self::$variant(_) => $key, )+
                    Self::Outside(policy) => policy.name(),
                }
            }

            /// The policy called `name`, with its default parameters.
            pub fn by_name(name: &str) -> Option<Self> {
                Self::own(name).or_else(|| Some(Self::Outside(Self::outside().named(name)?)))
            }

            /// The policy that a random `number` draws, with its default parameters: for tests that
            /// go through all of them, those that are yet to be written too ([`PolicyInfo::drawn`]), and those of
            /// other crates.
            ///
            /// [`PolicyInfo::drawn`]: $crate::PolicyInfo::drawn
            pub fn drawn(number: u64) -> Self {
                let outside = Self::outside().all();
                let all: Vec<$crate::PolicyInfo> =
                    Self::POLICIES.iter().copied().chain(outside.iter().map(|it| it.info)).collect();
                let name = $crate::PolicyInfo::drawn(&all, number).name;
                Self::by_name(name).expect("a policy of this folder")
            }

            /// The policy of another crate that a table names, if it is one.
            fn of_table(
                table: &$crate::macro_support::serde_json::Map<String, $crate::macro_support::serde_json::Value>,
            ) -> Option<Result<Self, String>> {
                Some(Self::outside().read(table)?.map(Self::Outside))
            }

            fn has_outside() -> bool {
                !Self::outside().all().is_empty()
            }
        }
    };
    (
        $(#[doc = $doc:literal])*
        pub enum $name:ident {
            $( $(#[doc = $policy_doc:literal])* $variant:ident($module:ident::$type:ident) = $key:literal ),+ $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, $crate::macro_support::serde::Serialize, $crate::macro_support::schemars::JsonSchema)]
        #[serde(tag = "policy", crate = "leyden_sim::macro_support::serde")]
        #[schemars(crate = "leyden_sim::macro_support::schemars")]
        pub enum $name {
            $( $(#[doc = $policy_doc])* #[serde(rename = $key)] $variant($module::$type), )+
        }

        $crate::policies!(@own $name $( $(#[doc = $policy_doc])* $variant($module::$type) = $key, )+);

        impl $name {
            /// The name a configuration uses for this policy.
            pub fn name(&self) -> &'static str {
                match self { $( Self::$variant(_) => $key, )+ }
            }

            /// The policy called `name`, with its default parameters.
            pub fn by_name(name: &str) -> Option<Self> {
                Self::own(name)
            }

            /// The policy that a random `number` draws, with its default parameters: for tests that
            /// go through all of them, those that are yet to be written too ([`PolicyInfo::drawn`]).
            ///
            /// [`PolicyInfo::drawn`]: $crate::PolicyInfo::drawn
            pub fn drawn(number: u64) -> Self {
                let name = $crate::PolicyInfo::drawn(Self::POLICIES, number).name;
                Self::by_name(name).expect("a policy of this folder")
            }

            fn of_table(
                _: &$crate::macro_support::serde_json::Map<String, $crate::macro_support::serde_json::Value>,
            ) -> Option<Result<Self, String>> {
                None
            }

            fn has_outside() -> bool {
                false
            }
        }
    };
    (@own $name:ident $( $(#[doc = $policy_doc:literal])* $variant:ident($module:ident::$type:ident) = $key:literal, )+) => {
        impl $name {
            /// Every policy of this folder, in the order they are listed.
            pub const POLICIES: &'static [$crate::PolicyInfo] = &[
                $( $crate::PolicyInfo { name: $key, doc: &[$($policy_doc),*] }, )+
            ];

            fn own(name: &str) -> Option<Self> {
                match name {
                    $( $key => Some(Self::$variant($module::$type::default())), )+
                    _ => None,
                }
            }
        }

        impl<'de> $crate::macro_support::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::macro_support::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use $crate::macro_support::serde::{self, de};
                use $crate::macro_support::serde_json;

                #[derive(serde::Deserialize)]
                #[serde(tag = "policy", crate = "leyden_sim::macro_support::serde")]
                enum Table {
                    $( #[serde(rename = $key)] $variant($module::$type), )+
                }

                impl From<Table> for $name {
                    fn from(table: Table) -> Self {
                        match table { $( Table::$variant(policy) => Self::$variant(policy), )+ }
                    }
                }

                struct NameOrTable;
                impl<'de> de::Visitor<'de> for NameOrTable {
                    type Value = $name;
                    fn expecting(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                        f.write_str("the name of a policy, or a table with the name under `policy`")
                    }
                    fn visit_str<E: de::Error>(self, name: &str) -> Result<$name, E> {
                        $name::by_name(name)
                            .ok_or_else(|| E::unknown_variant(name, &[$($key),+]))
                    }
                    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<$name, A::Error> {
                        let from = de::value::MapAccessDeserializer::new(map);
                        if !$name::has_outside() {
                            return Ok(<Table as serde::Deserialize>::deserialize(from)?.into());
                        }
                        let table = <serde_json::Map<String, serde_json::Value> as serde::Deserialize>::deserialize(from)?;
                        match $name::of_table(&table) {
                            Some(outside) => outside.map_err(de::Error::custom),
                            None => serde_json::from_value::<Table>(serde_json::Value::Object(table))
                                .map(Into::into)
                                .map_err(de::Error::custom),
                        }
                    }
                }
                deserializer.deserialize_any(NameOrTable)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn policy(name: &'static str) -> PolicyInfo {
        PolicyInfo { name, doc: &[] }
    }

    const FEW: &[PolicyInfo] = &[policy("greedy"), policy("fifo"), policy("random")];
    /// The same and one more, in another order.
    const MORE: &[PolicyInfo] =
        &[policy("random"), policy("new"), policy("greedy"), policy("fifo")];

    #[test]
    fn a_policy_more_takes_only_what_draws_it() {
        let mut rng = Rng::new(1, "draws");
        let numbers: Vec<u64> = (0..40_000).map(|_| rng.next_u64()).collect();
        let drawn = |policies, number: &u64| PolicyInfo::drawn(policies, *number).name;
        for number in &numbers {
            let after = drawn(MORE, number);
            assert!(after == "new" || after == drawn(FEW, number), "{number}");
        }
        for name in MORE.iter().map(|policy| policy.name) {
            let times = numbers.iter().filter(|number| drawn(MORE, number) == name).count();
            assert!((9_700..10_300).contains(&times), "{name}: {times} of 40,000");
        }
    }
}
