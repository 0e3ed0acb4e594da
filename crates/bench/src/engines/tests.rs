use super::*;

fn card() -> CardFigures {
    CardFigures {
        what: "model",
        units: 4,
        mhz: 250.0,
        is_estimate: true,
        buffer: "auto",
        link: "gen3x16".to_owned(),
        ns: 2e8,
        cycles: 4e7,
        bytes_to: 5e8,
        bytes_from: 4e8,
        busy: [0.5, 0.9, 0.4],
        set_bytes: 8e6,
        fell_back: 0.015,
        memory: [2e9, 1e9],
        host_ns: vec![[1e8, 2e8]],
    }
}

/// What is printed of the CPU, with the model of a card if it is `carded`, and of a GPU.
fn text(carded: bool, columns: Option<usize>) -> String {
    let ran = Ran { engine_ns: 1_000_000_000, bytes: 500_000_000, entries: 1000, ..Ran::default() };
    let kind = (1_200_000_000, 16, 128, 4);
    let mut rows = vec![EngineRow { kind, ran: ran.clone(), card: None }];
    if carded {
        rows.push(EngineRow { kind, ran, card: Some(card()) });
    }
    let prediction = Prediction {
        job: 1_200_000_000,
        units: 4,
        mhz: 250.0,
        is_estimate: true,
        buffer: "auto",
        ns: 1e8,
        busy: [0.5, 0.9, 0.4],
        set_bytes: 3e7,
    };
    let predicted = Predictions { rows: vec![prediction], link: "gen3x16".to_owned() };
    let gpu = GpuRow {
        is_predicted: true,
        job_bytes: 7_000_000_000,
        key_bytes: 16,
        value_bytes: 100,
        codec: "lz4",
        stored_share: 0.5,
        units: 3,
        set_bytes: 8 << 20,
        gb_per_s: 43.7,
        bound_by: "up",
        busiest: 0.98,
        emulated_bytes: 5_000_000,
    };
    engines_text(&rows, &predicted, &[gpu], columns)
}

/// Each table has a rule as wide as it is.
#[test]
fn tables_fit_the_terminal_and_lose_nothing() {
    for (carded, columns) in [(false, 70), (true, 110)] {
        let (whole, folded) = (text(carded, None), text(carded, Some(columns)));
        let widest = |text: &str| {
            let rules = text.lines().filter(|line| line.starts_with('─'));
            rules.map(|rule| rule.chars().count()).max().unwrap_or(0)
        };
        assert!(widest(&whole) > columns && widest(&folded) <= columns, "{folded}");
        let shown: Vec<&str> = folded.split_whitespace().collect();
        for word in whole.split_whitespace().filter(|word| !word.contains('─')) {
            assert!(shown.contains(&word), "{word} is lost:\n{folded}");
        }
    }
}
