//! The choices of a configuration, gathered from its schema, which the layers' registries make.

use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};

/// Policies that stand for each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyFolder {
    /// The key that chooses among them.
    pub key: String,
    /// The subject of the choice.
    pub summary: String,
    /// The choices; the first is the default.
    pub policies: Vec<Policy>,
}

/// A choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Policy {
    /// The name a configuration uses.
    pub name: String,
    /// Its behaviour and its source.
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
    /// Its meaning.
    pub doc: String,
}

/// Every folder of policies, as the schema of a scenario has them: one that is declared is listed.
pub fn policies() -> Vec<PolicyFolder> {
    let root = crate::Scenario::schema().to_value();
    let mut walk = Walk { root: &root, seen: Vec::new(), found: vec![regions()] };
    walk.table(&root, "");
    walk.found
}

/// Goes through the keys of a scenario, each type once.
struct Walk<'r> {
    root: &'r Value,
    /// Types that were looked at.
    seen: Vec<&'r str>,
    found: Vec<PolicyFolder>,
}

impl<'r> Walk<'r> {
    fn table(&mut self, schema: &'r Value, path: &str) {
        let Some(properties) = schema["properties"].as_object() else { return };
        // Tables of every drive come before those of the host.
        let mut keys: Vec<(&String, &Value)> = properties.iter().collect();
        keys.sort_by_key(|(key, _)| *key != "device");
        for (key, property) in keys {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            self.key(property, path);
        }
    }

    fn key(&mut self, property: &'r Value, path: String) {
        for choice in property["anyOf"].as_array().map(Vec::as_slice).unwrap_or_default() {
            self.key(choice, path.clone());
        }
        let mut schema = property;
        if let Some(name) = property["$ref"].as_str() {
            if self.seen.contains(&name) {
                return;
            }
            self.seen.push(name);
            schema =
                name.strip_prefix('#').and_then(|name| self.root.pointer(name)).unwrap_or(property);
        }
        let variants = schema["oneOf"].as_array().map(Vec::as_slice).unwrap_or_default();
        let of_policies = |variant: &Value| variant["properties"]["policy"]["const"].is_string();
        if variants.first().is_some_and(of_policies) {
            let policies = variants.iter().map(|variant| self.policy(variant)).collect();
            self.found.push(PolicyFolder { key: path, summary: description(schema), policies });
        } else {
            self.table(schema, &path);
        }
    }

    fn policy(&self, variant: &Value) -> Policy {
        let mut properties = Map::new();
        collect(self.root, variant, &mut properties);
        let name = properties.remove("policy").unwrap_or_default();
        let parameters = properties.iter().map(|(key, property)| {
            let default = &property["default"];
            let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
            Parameter { key: key.clone(), default, doc: description(property) }
        });
        Policy {
            name: name["const"].as_str().unwrap_or_default().to_owned(),
            doc: description(variant),
            parameters: parameters.collect(),
        }
    }
}

fn to_value(config: impl Serialize) -> Value {
    serde_json::to_value(config).unwrap_or_default()
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

/// The protected regions of the buffer: a plain enum, whose schema holds its documentation.
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
    PolicyFolder { key: "device.buffer.region".to_owned(), summary: description(&schema), policies }
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
            // Tables that are not there by default.
            default.device.power = Some(leyden_power::Config::default());
            default.device.zoned = Some(leyden_ftl::zoned::Config::default());
            default.host.zoned_block = Some(leyden_host::ZonedBlockConfig::default());
            let mut default = to_value(default);
            // Left out of a configuration in which it is as by default.
            let pools = leyden_buffer::zoned::ZonePoolConfig::default();
            default["device"]["buffer"]["zones"] = to_value(pools);
            let chosen = folder.key.split('.').fold(&default, |value, key| &value[key]);
            let name = chosen["policy"].as_str().or(chosen.as_str());
            assert_eq!(name, Some(folder.policies[0].name.as_str()), "{}", folder.key);
        }
    }

    /// As many as there are lists of policies in the source.
    #[test]
    fn every_registry_is_listed() {
        fn count(folder: &std::path::Path) -> usize {
            let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            let of_file = |path: &std::path::Path| {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                text.lines().filter(|line| *line == "leyden_sim::policies! {").count()
            };
            entries.map(|path| if path.is_dir() { count(&path) } else { of_file(&path) }).sum()
        }
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let sources =
            ["buffer", "ftl", "power", "host"].map(|name| count(&crates.join(name).join("src")));
        // The region of the buffer is a choice, too, and no registry.
        assert_eq!(policies().len(), sources.iter().sum::<usize>() + 1);
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
