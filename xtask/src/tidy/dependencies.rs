//! Dependencies: each has a line of reason where it is declared.

use super::Finding;

/// Checks the workspace's list of dependencies.
pub(crate) fn check(manifest: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut inside = false;
    for (i, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
        }
        let Some((name, rest)) = line.split_once(" = ") else { continue };
        // Our own rooms need no reason.
        if inside && !rest.contains("path =") && !rest.contains(" # ") {
            let what = format!("`{name}` has no reason; say after a # what it is needed for");
            findings.push(Finding::new("Cargo.toml", i + 1, "dependencies", what));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let text = "[workspace.dependencies]\na = { path = \"a\" }\nb = \"1\" # words\nc = \"1\"\n\
                    [profile.dev]\nd = 1\n";
        let lines: Vec<_> = check(text).iter().map(|f| f.line).collect();
        assert_eq!(lines, [4]);
    }
}
