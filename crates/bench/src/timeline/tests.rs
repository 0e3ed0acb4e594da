//! Made-up histories with known areas.

use super::*;

fn at(seconds: f64, what: Happening) -> Moment {
    Moment { seconds, what }
}

fn compaction(job: u64, from: u8, to: u8) -> Happening {
    Happening::CompactionBegan { job, from, to }
}

fn ended(job: u64) -> Happening {
    Happening::JobEnded { job }
}

fn stall(cause: &str, stop: bool) -> Happening {
    Happening::StallBegan { cause: cause.into(), stop }
}

/// Two slots: a job from L0 from 0 to 0.15 s, one from L1 from 0.05 to 0.2 s, a flush without an
/// end, and two stalls that follow each other.
fn sample() -> Timeline {
    let moments = [
        at(0.0, compaction(1, 0, 1)),
        at(0.05, compaction(2, 1, 2)),
        at(0.1, stall("l0-runs", false)),
        at(0.15, ended(1)),
        at(0.15, stall("l0-runs", true)),
        at(0.2, ended(2)),
        at(0.25, Happening::StallEnded),
        at(0.3, Happening::FlushBegan { job: 3 }),
        at(0.35, ended(77)),
    ];
    let load = WorkloadReport {
        workload: "fill<random>".into(),
        began_seconds: 0.0,
        seconds: 0.2,
        quiesce_seconds: 0.1,
        written_bytes: 1,
        tenths: vec![100, 50],
        latency_series_us: vec![[5.0, 70.0, 900.0]],
        ..WorkloadReport::default()
    };
    let read = WorkloadReport {
        workload: "readrandom".into(),
        began_seconds: 0.3,
        seconds: 0.1,
        ..WorkloadReport::default()
    };
    let mut timeline = Timeline::new("lithify hybrid".into(), &moments, 0.4, 2, &[load, read]);
    timeline.load = "7 keys of 16 B & more".into();
    let reading = |seconds, l0, debt_bytes| Reading { seconds, l0_runs: Some(l0), debt_bytes };
    timeline.readings = vec![reading(0.15, 3, Some(5000)), reading(0.35, 9, None)];
    timeline
}

fn close(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-9, "{got} is not {want}");
}

/// A job whose parts come and go: it is one worker, and one more for each part besides another.
#[test]
fn each_part_is_a_worker() {
    let began = Happening::PartBegan { job: 1 };
    let over = Happening::PartEnded { job: 1 };
    let moments = [
        at(0.0, compaction(1, 0, 1)),
        at(0.1, began.clone()),
        at(0.1, began.clone()),
        at(0.1, began.clone()),
        at(0.2, over.clone()),
        // A fourth part takes its place.
        at(0.2, began),
        at(0.3, over.clone()),
        at(0.3, over.clone()),
        at(0.35, over),
        at(0.4, ended(1)),
        at(0.4, Happening::PartBegan { job: 9 }),
    ];
    let t = Timeline::new("lithify hybrid:sub3".into(), &moments, 0.4, 4, &[]);
    assert_eq!(t.jobs.len(), 1);
    t.jobs[0].active.iter().zip([1.0, 3.0, 3.0, 1.0]).for_each(|(&got, want)| close(got, want));
    let activity = t.activity(Span { from: 0.0, to: 0.4 });
    close(activity.mean_compactions, 2.0);
    assert_eq!(activity.peak_compactions, 3);
}

#[test]
fn steps_hold_means() {
    let t = sample();
    let names: Vec<_> = t.jobs.iter().map(|j| j.name.as_str()).collect();
    assert_eq!(names, ["L0->L1", "L1->L2", "flush"]);
    let want = [[1.0, 0.5, 0.0, 0.0], [0.5, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]];
    for (job, want) in t.jobs.iter().zip(want) {
        assert_eq!(job.active.len(), 4);
        job.active.iter().zip(want).for_each(|(&got, want)| close(got, want));
    }
    assert_eq!(t.ops_per_second, [1_000.0, 500.0, 0.0, 0.0]);
}

#[test]
fn activity_is_exact() {
    let a = sample().activity(Span { from: 0.0, to: 0.2 });
    close(a.mean_compactions, 1.5);
    close(a.over_half, 0.5);
    assert_eq!((a.peak_compactions, a.slots, a.mean_flushes), (2, 2, 0.0));
    close(a.by_level["L0->L1"], 0.75);
    let later = sample().activity(Span { from: 0.2, to: 0.4 });
    close(later.mean_flushes, 0.5);
    assert_eq!((later.mean_compactions, later.peak_compactions), (0.0, 0));
}

#[test]
fn a_slot_handed_on_is_one_slot() {
    let moments = [
        at(0.0, compaction(1, 0, 1)),
        at(0.1, compaction(2, 1, 2)),
        at(0.1, ended(1)),
        at(0.2, ended(2)),
    ];
    let t = Timeline::new(String::new(), &moments, 0.2, 1, &[]);
    let a = t.activity(Span { from: 0.0, to: 0.2 });
    assert_eq!(a.peak_compactions, 1);
    close(a.over_half, 1.0);
}

#[test]
fn stalls_have_causes_and_ends() {
    let t = sample();
    let stall = |stop, from, to| Stall { cause: "l0-runs".into(), stop, span: Span { from, to } };
    assert_eq!(t.stalls, [stall(false, 0.1, 0.15), stall(true, 0.15, 0.25)]);
}

#[test]
fn a_table_has_a_row_for_each_step() {
    let csv = sample().to_csv();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(
        lines,
        [
            "seconds,L0->L1,L1->L2,flush,compactions,delayed,stopped,ops_per_second,l0_runs,debt_bytes,p50_us,p99_us,max_us",
            "0.0,1.000,0.500,0.000,1.500,0.000,0.000,1000,,,5.0,70.0,900.0",
            "0.1,0.500,1.000,0.000,1.500,0.500,0.500,500,3,5000,5.0,70.0,900.0",
            "0.2,0.000,0.000,0.000,0.000,0.000,0.500,0,3,5000,5.0,70.0,900.0",
            "0.3,0.000,0.000,1.000,0.000,0.000,0.000,0,9,,5.0,70.0,900.0",
        ]
    );
}

/// Every element that is opened is closed, and no text breaks out of its element.
fn well_formed(svg: &str) {
    let mut open = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').unwrap_or_else(|| panic!("<{piece}"));
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{piece}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap_or(tag));
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn a_picture_shows_every_series() {
    let svg = chart::draw(&sample());
    well_formed(&svg);
    for text in [
        "lithify hybrid",
        "fill&lt;random",
        "flush",
        "L0\u{2192}L1",
        "L1\u{2192}L2",
        "2 compaction slots",
        "7 keys of 16 B &amp; more",
        "runs in L0",
        "debt",
        "latency",
        "slowest",
        "100 us",
    ] {
        assert!(svg.contains(text), "no {text}");
    }
    // The reading afterwards, in which nothing is active, dilutes no mean.
    assert!(svg.contains("1.50 of 2 slots on average, more than half of them 50% of the time"));
    // 0.15 s of being stopped or slowed for one cause; the flush has a colour, the levels two.
    assert!(svg.contains("l0-runs: 0.15 s"));
    assert_eq!(svg.matches("<path").count(), 4, "three kinds of jobs and the throughput");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn an_empty_history_is_a_picture_too() {
    let t = Timeline::new("nothing".into(), &[], 0.0, 1, &[]);
    let svg = chart::draw(&t);
    well_formed(&svg);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert!(svg.contains("Writers held back: 0.00 s"), "{svg}");
    assert_eq!(
        t.activity(Span { from: 0.0, to: 0.0 }),
        Activity { slots: 1, ..Activity::default() }
    );
}

#[test]
fn a_long_run_is_drawn_in_few_points() {
    let moments: Vec<Moment> = (0..20_000u64)
        .flat_map(|i| {
            let begin = i as f64 * 0.05;
            [at(begin, compaction(i, 0, 1)), at(begin + 0.04, ended(i))]
        })
        .collect();
    let t = Timeline::new("long".into(), &moments, 1_000.0, 4, &[]);
    let svg = chart::draw(&t);
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
}

#[test]
fn endings_name_the_form() {
    assert!(check_name(Path::new("a.svg")).is_ok() && check_name(Path::new("b.csv")).is_ok());
    let error = check_name(Path::new("a.png")).expect_err("no form").to_string();
    assert!(error.contains(".svg"), "{error}");
}
