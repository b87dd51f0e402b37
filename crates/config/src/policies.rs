//! What a configuration can choose from, gathered from the layers' registries.

use leyden_sim::PolicyInfo;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};

/// Policies that stand for each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyFolder {
    /// The key that chooses among them.
    pub key: &'static str,
    /// What is chosen.
    pub summary: String,
    /// The choices; the first is the default.
    pub policies: Vec<Policy>,
}

/// A choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Policy {
    /// The name a configuration uses.
    pub name: String,
    /// What it does and where it comes from.
    pub doc: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
}

/// A parameter of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// Its key.
    pub key: String,
    /// Its default, as a configuration writes it.
    pub default: String,
    /// What it means.
    pub doc: String,
}

/// Every folder of policies, in the order in which data flows down the drive.
pub fn policies() -> Vec<PolicyFolder> {
    vec![
        regions(),
        folder::<leyden_buffer::schedule::ScheduleConfig>(
            "device.buffer.schedule",
            leyden_buffer::schedule::ScheduleConfig::POLICIES,
            |name| leyden_buffer::schedule::ScheduleConfig::by_name(name).map(to_value),
        ),
        folder::<leyden_ftl::map::ProtectionConfig>(
            "device.ftl.map.protection",
            leyden_ftl::map::ProtectionConfig::POLICIES,
            |name| leyden_ftl::map::ProtectionConfig::by_name(name).map(to_value),
        ),
        folder::<leyden_ftl::place::PlacementConfig>(
            "device.ftl.placement",
            leyden_ftl::place::PlacementConfig::POLICIES,
            |name| leyden_ftl::place::PlacementConfig::by_name(name).map(to_value),
        ),
        folder::<leyden_ftl::logs::LogConfig>(
            "device.ftl.log_stream",
            leyden_ftl::logs::LogConfig::POLICIES,
            |name| leyden_ftl::logs::LogConfig::by_name(name).map(to_value),
        ),
        folder::<leyden_ftl::gc::VictimConfig>(
            "device.ftl.gc.victim",
            leyden_ftl::gc::VictimConfig::POLICIES,
            |name| leyden_ftl::gc::VictimConfig::by_name(name).map(to_value),
        ),
        folder::<leyden_power::DumpConfig>(
            "device.power.dump",
            leyden_power::DumpConfig::POLICIES,
            |name| leyden_power::DumpConfig::by_name(name).map(to_value),
        ),
    ]
}

fn to_value(config: impl Serialize) -> Value {
    serde_json::to_value(config).unwrap_or_default()
}

/// The registry of one folder.
fn folder<T: JsonSchema>(
    key: &'static str,
    policies: &[PolicyInfo],
    default_of: impl Fn(&str) -> Option<Value>,
) -> PolicyFolder {
    let schema = schemars::schema_for!(T).to_value();
    let policies = policies
        .iter()
        .map(|info| {
            let lines: Vec<&str> = info.doc.iter().map(|line| line.trim()).collect();
            let defaults = default_of(info.name).unwrap_or_default();
            Policy {
                name: info.name.to_owned(),
                doc: lines.join(" "),
                parameters: parameters(&schema, info.name, &defaults),
            }
        })
        .collect();
    PolicyFolder { key, summary: description(&schema), policies }
}

/// The parameters of the policy `name`: what its variant's schema names beside the tag.
fn parameters(schema: &Value, name: &str, defaults: &Value) -> Vec<Parameter> {
    let variants = schema["oneOf"].as_array().cloned().unwrap_or_default();
    let is_it = |variant: &&Value| variant["properties"]["policy"]["const"] == *name;
    let Some(variant) = variants.iter().find(is_it) else {
        return Vec::new();
    };
    let mut properties = Map::new();
    collect(schema, variant, &mut properties);
    properties
        .iter()
        .filter(|(key, _)| *key != "policy")
        .map(|(key, property)| {
            let default = &defaults[key];
            let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
            Parameter { key: key.clone(), default, doc: description(property) }
        })
        .collect()
}

/// The properties of `part`, following its reference into `schema`.
fn collect(schema: &Value, part: &Value, found: &mut Map<String, Value>) {
    if let Some(path) = part["$ref"].as_str().and_then(|path| path.strip_prefix('#'))
        && let Some(target) = schema.pointer(path)
    {
        collect(schema, target, found);
    }
    if let Some(properties) = part["properties"].as_object() {
        found.extend(properties.clone());
    }
}

/// What capacitors protect of the buffer: a plain enum, whose schema holds its documentation.
fn regions() -> PolicyFolder {
    let schema = leyden_buffer::Region::json_schema(&mut SchemaGenerator::default()).to_value();
    let default = to_value(leyden_buffer::Region::default());
    let variants = schema["oneOf"].as_array().cloned().unwrap_or_default();
    let mut policies: Vec<Policy> = variants
        .iter()
        .map(|variant| Policy {
            name: variant["const"].as_str().unwrap_or_default().to_owned(),
            doc: description(variant),
            parameters: Vec::new(),
        })
        .collect();
    policies.sort_by_key(|policy| default != *policy.name); // the default first, else as declared
    PolicyFolder { key: "device.buffer.region", summary: description(&schema), policies }
}

fn description(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_lists_its_default_first_and_documents_all() {
        for folder in policies() {
            assert!(!folder.summary.is_empty(), "{}", folder.key);
            assert!(!folder.policies.is_empty(), "{}", folder.key);
            for policy in &folder.policies {
                assert!(!policy.doc.is_empty(), "{}: {}", folder.key, policy.name);
            }
            let mut default = crate::Scenario::default();
            // A table that is not there by default.
            default.device.power = Some(leyden_power::Config::default());
            let default = to_value(default);
            let chosen = folder.key.split('.').fold(&default, |value, key| &value[key]);
            let name = chosen["policy"].as_str().or(chosen.as_str());
            assert_eq!(name, Some(folder.policies[0].name.as_str()), "{}", folder.key);
        }
    }

    #[test]
    fn parameters_come_with_their_defaults() {
        let folders = policies();
        let place = folders.iter().find(|f| f.key == "device.ftl.placement").unwrap();
        let dac = place.policies.iter().find(|p| p.name == "dac").unwrap();
        let Parameter { key, default, doc } = &dac.parameters[0];
        assert_eq!((key.as_str(), default.as_str()), ("regions", "3"));
        assert!(doc.contains("regions"), "{doc}");
    }
}
