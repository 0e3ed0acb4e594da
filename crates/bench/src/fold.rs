//! Tables that are wider than the terminal: their columns below each other, as many at a time as fit.
//!
//! Keeps: each part begins with the columns that say whose figures a line has; no figure is cut.

/// A finished table as it goes to standard output: folded where a terminal of fewer columns is there. Its first `labels`
/// columns say whose figures a line has.
pub fn to_terminal(table: &str, labels: usize) -> String {
    to_columns(table, labels, columns_of_terminal())
}

/// Columns of the terminal that standard output is; `None` if it is none.
pub fn columns_of_terminal() -> Option<usize> {
    console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns))
}

/// A finished table, folded where it takes more than so many columns.
pub fn to_columns(table: &str, labels: usize, columns: Option<usize>) -> String {
    columns.map_or_else(|| table.to_owned(), |columns| folded(table, labels, columns))
}

/// `table` in at most so many columns, unless its labels and one of its own together take more. Its columns are those between which
/// two blanks or more stand in all lines but rules.
fn folded(table: &str, labels: usize, columns: usize) -> String {
    let lines: Vec<Vec<char>> = table.lines().map(|line| line.chars().collect()).collect();
    let width = lines.iter().map(Vec::len).max().unwrap_or(0);
    if width <= columns {
        return table.to_owned();
    }
    let spans = spans(&lines, width);
    let (first, rest) = spans.split_at(labels.min(spans.len()));
    let mut parts: Vec<Vec<(usize, usize)>> = Vec::new();
    for &span in rest {
        let size = |of: &[(usize, usize)]| of.iter().map(|(from, to)| to - from).sum::<usize>();
        match parts.last_mut() {
            Some(part) if size(part) + size(&[span]) <= columns => part.push(span),
            _ => parts.push([first, &[span]].concat()),
        }
    }
    let shown = |part: &Vec<(usize, usize)>| {
        let line = |line: &Vec<char>| {
            let of = |&(from, to): &(usize, usize)| line.iter().skip(from).take(to - from);
            let text: String = part.iter().flat_map(of).collect();
            text.trim_end().to_owned()
        };
        lines.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    parts.iter().map(shown).collect::<Vec<_>>().join("\n\n")
}

/// Where each column begins and ends, the blanks around it shared with its neighbours.
fn spans(lines: &[Vec<char>], width: usize) -> Vec<(usize, usize)> {
    let is_rule = |line: &&Vec<char>| !line.is_empty() && line.iter().all(|&c| c == '─');
    let written: Vec<&Vec<char>> = lines.iter().filter(|line| !is_rule(line)).collect();
    let blank = |at: usize| written.iter().all(|line| line.get(at).is_none_or(|&c| c == ' '));
    let (mut spans, mut from, mut at) = (Vec::new(), 0, 0);
    while at < width {
        let end = (at..width).find(|&i| !blank(i)).unwrap_or(width);
        if at > from && end - at >= 2 && end < width {
            spans.push((from, at + 1));
            from = at + 1;
        }
        at = end.max(at) + 1;
    }
    spans.push((from, width));
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = " workload   ops/s   p50 us   max ms \n\
                         ────────────────────────────────────\n\
                         \x20fill       543 k     1.45     12.3 \n\
                         \x20read                  0.4        2 ";

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(folded(TABLE, 1, 36), TABLE);
    }

    #[test]
    fn what_does_not_fit_goes_below_with_the_first_column() {
        assert_eq!(
            folded(TABLE, 1, 30),
            " workload   ops/s   p50 us\n\
             ───────────────────────────\n\
             \x20fill       543 k     1.45\n\
             \x20read                  0.4\n\
             \n\
             \x20workload   max ms\n\
             ───────────────────\n\
             \x20fill         12.3\n\
             \x20read            2"
        );
    }

    #[test]
    fn all_labels_come_again() {
        let text = folded(TABLE, 2, 30);
        assert_eq!(text.matches("ops/s").count(), 2, "{text}");
        assert_eq!(text.matches("543 k").count(), 2, "{text}");
    }

    /// No column is lost or cut, however narrow the terminal is.
    #[test]
    fn every_figure_is_there_at_every_width() {
        for columns in 1..40 {
            let text = folded(TABLE, 1, columns);
            for figure in ["ops/s", "p50 us", "max ms", "543 k", "1.45", "12.3", "0.4"] {
                assert!(text.contains(figure), "{figure} at {columns}: {text}");
            }
            let fits = text.lines().all(|line| line.chars().count() <= columns.max(20));
            assert!(fits, "{columns}:\n{text}");
        }
    }
}
