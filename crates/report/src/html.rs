//! Text made safe for the two places it ends up in without the template engine: markup that Rust
//! writes (inline SVG, the configuration) and JSON inside a `<script>` element.

use serde::Serialize;

/// Escapes text for element content and for quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON that cannot end the `<script>` element it stands in, whatever strings it holds: `<`, `>`
/// and `&` only occur inside JSON strings, where an escape means the same.
pub(crate) fn json_for_script<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string(value)?
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_json_cannot_break_out_and_reads_back_the_same() {
        let nasty = "</script><!--<script>&\u{2028}\"'";
        let json = json_for_script(&nasty).unwrap();
        assert!(!json.contains('<') && !json.contains('&'));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), nasty);
    }

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape("<a href=\"'&\">"), "&lt;a href=&quot;&#39;&amp;&quot;&gt;");
    }
}
