//! Run records from JSON: one record, an array of them, or a comparison.
//!
//! Versions are checked before anything else, so that a record of another version is refused with
//! its version and not with the first field that happens to differ.

use crate::ReportError;
use leyden_record::{RunRecord, is_version_read};
use serde_json::Value;

/// Reads the run records in `json`: a [`RunRecord`], an array of them, or a
/// [`leyden_record::Comparison`]. The records keep their order.
///
/// # Errors
/// Anything that is not a run record of this build's version, saying where and what to do about it.
pub fn read_records(json: &str) -> Result<Vec<RunRecord>, ReportError> {
    let value: Value = serde_json::from_str(json).map_err(ReportError::NotJson)?;
    let (runs, prefix) = match value {
        Value::Array(runs) => (runs, "record "),
        Value::Object(mut object) => match object.remove("runs") {
            Some(Value::Array(runs)) => (runs, "run "),
            Some(_) => return Err(not_a_record("the file", "its `runs` is not an array")),
            None => return Ok(vec![record("the file", Value::Object(object))?]),
        },
        other => return Err(not_a_record("the file", kind(&other))),
    };
    if runs.is_empty() {
        return Err(ReportError::NoRuns);
    }
    let numbered = runs.into_iter().enumerate();
    numbered.map(|(i, run)| record(&format!("{prefix}{} of the file", i + 1), run)).collect()
}

/// Reads the one run record that `json` is.
///
/// # Errors
/// As [`read_records`].
pub fn read_record(json: &str) -> Result<RunRecord, ReportError> {
    record("the file", serde_json::from_str(json).map_err(ReportError::NotJson)?)
}

/// One record, its version checked.
fn record(place: &str, value: Value) -> Result<RunRecord, ReportError> {
    let Value::Object(object) = &value else {
        return Err(not_a_record(place, kind(&value)));
    };
    let Some(version) = object.get("record_version") else {
        return Err(not_a_record(place, "it has no `record_version`"));
    };
    let Some(found) = version.as_u64() else {
        return Err(not_a_record(place, "its `record_version` is not a number"));
    };
    if !is_version_read(found) {
        let writer = object.get("leyden_version").and_then(Value::as_str);
        return Err(ReportError::Version {
            place: place.to_owned(),
            found,
            writer: writer.map_or_else(String::new, |v| format!(" (Leyden {v})")),
        });
    }
    serde_json::from_value(value)
        .map_err(|source| ReportError::Damaged { place: place.to_owned(), source })
}

fn not_a_record(place: &str, what: &str) -> ReportError {
    ReportError::NotARecord { place: place.to_owned(), what: what.to_owned() }
}

/// The type of a value, for people.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "it is null",
        Value::Bool(_) => "it is true or false",
        Value::Number(_) => "it is a number",
        Value::String(_) => "it is a string",
        Value::Array(_) => "it is an array",
        Value::Object(_) => "it is an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_record::{Comparison, RECORD_VERSION, RECORD_VERSION_LEAST};

    fn sample() -> RunRecord {
        RunRecord { record_version: RECORD_VERSION, name: "a".into(), ..RunRecord::default() }
    }

    fn refusal(json: &str) -> String {
        read_records(json).unwrap_err().to_string()
    }

    #[test]
    fn all_three_forms_are_read() {
        let one = serde_json::to_string(&sample()).unwrap();
        assert_eq!(read_records(&one).unwrap(), [sample()]);
        let array = serde_json::to_string(&[sample(), sample()]).unwrap();
        assert_eq!(read_records(&array).unwrap().len(), 2);
        let comparison = serde_json::to_string(&Comparison { runs: vec![sample(), sample()] });
        assert_eq!(read_records(&comparison.unwrap()).unwrap().len(), 2);
    }

    #[test]
    fn another_version_is_refused_with_both_versions() {
        let json =
            r#"{"runs": [{"record_version": 7, "leyden_version": "9.1.0", "strange": true}]}"#;
        let message = refusal(json);
        let ours = format!("{RECORD_VERSION_LEAST} to {RECORD_VERSION}");
        for part in ["run 1 of the file", "version 7", &ours, "Leyden 9.1.0", "repeat the run"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_record_of_version_2_is_read() {
        let mut value = serde_json::to_value(sample()).unwrap();
        value["record_version"] = 2.into();
        value["flash"]["programs"]["recovery"] = 0.into();
        assert_eq!(read_records(&value.to_string()).unwrap()[0].record_version, 2);
    }

    #[test]
    fn foreign_input_is_refused_with_the_remedy() {
        for json in ["", "3", "null", "{}", "[1]", r#"{"runs": 3}"#, r#"{"claims": []}"#, "<html>"]
        {
            assert!(refusal(json).contains("leyden run --json"), "{json}");
        }
        assert!(refusal("[]").contains("at least one run record"));
    }

    #[test]
    fn a_damaged_record_names_the_missing_field() {
        let mut value = serde_json::to_value(sample()).unwrap();
        value.as_object_mut().unwrap().remove("host");
        assert!(refusal(&value.to_string()).contains("`host`"));
    }
}
