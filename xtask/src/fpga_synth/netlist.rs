//! A mapped netlist as Yosys writes it (JSON): what it takes of a card, and how deep its paths are.
//!
//! The hierarchy is kept by the synthesis, so each module is mapped once however often it stands in the unit; here it is
//! unfolded, and paths are followed through all modules.
//!
//! Depth is counted in sixteenths of a level: a LUT or the read of a LUT RAM is one level, a run along a carry
//! chain one level for 16 bits and at least one, a multiplier without a register between input and output five.
//! A path ends at a register, a write port, a block RAM or a multiplier with registers (which costs five, too).

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// One level.
const LEVEL: u32 = 16;
/// A multiplier, from its inputs to the register inside or the output.
const MULTIPLIER: u32 = 5 * LEVEL;
/// What is behind the register of a multiplier that has one in its midst only.
const SECOND_HALF: u32 = 2 * LEVEL;
/// Modules that are counted with the module that they stand in.
const FOLDED: [&str; 4] = ["fifo", "skid", "mul", "window"];
/// No net: a constant.
const NONE: u32 = u32::MAX;

/// Places of a card that something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sites {
    /// LUTs with logic.
    pub(super) logic: u64,
    /// LUTs used as memory or as shift registers.
    pub(super) memory: u64,
    /// Flip-flops.
    pub(super) ffs: u64,
    /// Block RAMs of 18 kbit; two are a BRAM36.
    pub(super) bram18: u64,
    /// Multipliers (DSP48E2).
    pub(super) dsps: u64,
}

impl Sites {
    pub(super) fn add(&mut self, other: Sites) {
        self.logic += other.logic;
        self.memory += other.memory;
        self.ffs += other.ffs;
        self.bram18 += other.bram18;
        self.dsps += other.dsps;
    }
}

/// A module of the unit, all its instances together.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Its name.
    pub(super) module: String,
    /// How often it stands in the unit.
    pub(super) instances: u64,
    /// What it takes, without the modules in it that have a row of their own.
    pub(super) sites: Sites,
    /// The deepest path that ends in it, in sixteenths of a level.
    pub(super) depth: u32,
    /// Where that path begins and ends.
    pub(super) path: String,
}

/// Reads a netlist; a row for each module, in the order of their names.
///
/// # Errors
/// If it is no netlist, has a cell of unknown kind, or a loop without a register.
pub(super) fn read(json: &str) -> Result<Vec<Row>> {
    let whole: Value = serde_json::from_str(json).context("reading Yosys' netlist")?;
    let modules = whole["modules"].as_object().context("a netlist has modules")?;
    let is_top = |m: &Value| m["attributes"]["top"].as_str().is_some();
    let (top, _) = modules.iter().find(|(_, m)| is_top(m)).context("a netlist has a top module")?;
    let mut flat = Flat::of(&whole["modules"]);
    flat.unfold(top, &[], "", None)?;
    flat.follow()
}

/// From inputs to an output without a register.
enum Node {
    Through { ins: Vec<u32>, out: u32, cost: u32 },
    Carry { ci: u32, s: Vec<u32>, di: Vec<u32>, o: Vec<u32>, co: Vec<u32> },
}

impl Node {
    fn ins(&self) -> Vec<u32> {
        match self {
            Node::Through { ins, .. } => ins.clone(),
            Node::Carry { ci, s, di, .. } => {
                let all = s.iter().chain(di).chain(std::iter::once(ci));
                all.copied().filter(|&net| net != NONE).collect()
            }
        }
    }
    fn outs(&self) -> Vec<u32> {
        match self {
            Node::Through { out, .. } => vec![*out],
            Node::Carry { o, co, .. } => {
                o.iter().chain(co).copied().filter(|&net| net != NONE).collect()
            }
        }
    }
}

/// Where a path ends.
struct End {
    net: u32,
    cost: u32,
    row: usize,
    name: String,
}

/// The netlist without hierarchy.
struct Flat<'a> {
    modules: &'a Value,
    rows: BTreeMap<String, usize>,
    made: Vec<Row>,
    nodes: Vec<Node>,
    ends: Vec<End>,
    /// Nets that are late by themselves.
    late: Vec<(u32, u32)>,
    /// Names of nets that registers drive.
    names: BTreeMap<u32, String>,
    nets: u32,
}

/// A cell's pins.
struct Pins<'a> {
    cell: &'a Value,
    nets: &'a [u32],
}

impl Pins<'_> {
    fn of(&self, pin: &str) -> Vec<u32> {
        let bits = self.cell["connections"][pin].as_array();
        bits.map(|bits| bits.iter().map(|b| net(b, self.nets)).collect()).unwrap_or_default()
    }
    fn all(&self, direction: &str, but: &[&str]) -> Vec<u32> {
        let directions = self.cell["port_directions"].as_object();
        let mine = directions
            .into_iter()
            .flatten()
            .filter(|(pin, d)| d.as_str() == Some(direction) && !but.contains(&pin.as_str()));
        mine.flat_map(|(pin, _)| self.of(pin)).filter(|&net| net != NONE).collect()
    }
    fn parameter(&self, name: &str) -> u64 {
        match &self.cell["parameters"][name] {
            Value::String(bits) => u64::from_str_radix(bits.trim(), 2).unwrap_or_default(),
            other => other.as_u64().unwrap_or_default(),
        }
    }
}

fn net(bit: &Value, nets: &[u32]) -> u32 {
    bit.as_u64().map_or(NONE, |bit| nets.get(bit as usize).copied().unwrap_or(NONE))
}

/// `$paramod\fifo\WIDTH=...` is a fifo.
fn plain(module: &str) -> &str {
    match module.strip_prefix('$') {
        Some(rest) => rest.split('\\').nth(1).unwrap_or(module),
        None => module,
    }
}

impl<'a> Flat<'a> {
    fn of(modules: &'a Value) -> Flat<'a> {
        Flat {
            modules,
            rows: BTreeMap::new(),
            made: Vec::new(),
            nodes: Vec::new(),
            ends: Vec::new(),
            late: Vec::new(),
            names: BTreeMap::new(),
            nets: 0,
        }
    }

    fn fresh(&mut self) -> u32 {
        self.nets += 1;
        self.nets - 1
    }

    fn row(&mut self, module: &str) -> usize {
        if let Some(&row) = self.rows.get(module) {
            return row;
        }
        self.made.push(Row { module: module.to_owned(), ..Row::default() });
        self.rows.insert(module.to_owned(), self.made.len() - 1);
        self.made.len() - 1
    }

    /// An instance of a module at `place`. `wires` says what its ports' bits are outside.
    fn unfold(
        &mut self,
        name: &str,
        wires: &[(&'a Value, u32)],
        place: &str,
        parent: Option<usize>,
    ) -> Result<()> {
        let modules: &'a Value = self.modules;
        let module = &modules[name];
        let row = match parent {
            Some(parent) if FOLDED.contains(&plain(name)) => parent,
            _ => {
                let row = self.row(plain(name));
                self.made[row].instances += 1;
                row
            }
        };
        let mut nets = vec![NONE; highest_bit(module) + 1];
        for &(bit, outside) in wires {
            let Some(bit) = bit.as_u64() else { continue };
            let inside = &mut nets[bit as usize];
            if *inside == NONE {
                *inside = outside;
            } else if outside != NONE {
                // A wire through the module.
                self.nodes.push(Node::Through { ins: vec![*inside], out: outside, cost: 0 });
            }
        }
        for net in &mut nets {
            if *net == NONE {
                *net = self.nets;
                self.nets += 1;
            }
        }
        let mut names = vec![""; nets.len()];
        for (wire, about) in module["netnames"].as_object().into_iter().flatten() {
            if about["hide_name"].as_u64() == Some(0) {
                for bit in about["bits"].as_array().into_iter().flatten() {
                    if let Some(bit) = bit.as_u64() {
                        names[bit as usize] = wire.as_str();
                    }
                }
            }
        }
        for (instance, cell) in module["cells"].as_object().into_iter().flatten() {
            let kind = cell["type"].as_str().unwrap_or_default();
            let pins = Pins { cell, nets: &nets };
            if is_ours(&modules[kind]) {
                let wires = self.wires(kind, &pins);
                self.unfold(kind, &wires, &format!("{place}{instance}."), Some(row))?;
                continue;
            }
            let sites = self.cell(kind, &pins, row, place, &names)?;
            self.made[row].sites.add(sites);
        }
        Ok(())
    }

    /// Bits of the ports of a module in `pins`, inputs first, with the nets outside.
    fn wires(&mut self, module: &str, pins: &Pins<'_>) -> Vec<(&'a Value, u32)> {
        let modules: &'a Value = self.modules;
        let mut wires = Vec::new();
        for direction in ["input", "output"] {
            for (port, about) in modules[module]["ports"].as_object().into_iter().flatten() {
                if about["direction"].as_str() != Some(direction) {
                    continue;
                }
                let outside = pins.of(port);
                let inside = about["bits"].as_array().into_iter().flatten();
                for (i, bit) in inside.enumerate() {
                    let net = outside.get(i).copied().unwrap_or(NONE);
                    wires.push((bit, if net == NONE { self.fresh() } else { net }));
                }
            }
        }
        wires
    }

    /// A cell of the card: its paths, and what it takes.
    fn cell(
        &mut self,
        kind: &str,
        pins: &Pins<'_>,
        row: usize,
        place: &str,
        names: &[&str],
    ) -> Result<Sites> {
        let mut sites = Sites::default();
        match kind {
            "LUT1" | "LUT2" | "LUT3" | "LUT4" | "LUT5" | "LUT6" | "INV" | "MUXF7" | "MUXF8" => {
                sites.logic = u64::from(!kind.starts_with('M'));
                self.through(pins.all("input", &[]), pins.of("O"), LEVEL);
            }
            "CARRY4" | "CARRY8" => {
                let mut ci = pins.of("CYINIT").into_iter().chain(pins.of("CI"));
                let ci = ci.find(|&net| net != NONE).unwrap_or(NONE);
                let (s, di) = (pins.of("S"), pins.of("DI"));
                self.nodes.push(Node::Carry { ci, s, di, o: pins.of("O"), co: pins.of("CO") });
            }
            "FDRE" | "FDSE" | "FDCE" | "FDPE" => {
                sites.ffs = 1;
                let named = self.register(pins, "Q", place, names);
                self.end(pins.all("input", &["C"]), 0, row, &named);
            }
            "SRL16E" | "SRLC32E" => {
                sites.memory = 1;
                let named = self.register(pins, "Q", place, names);
                self.end([pins.of("D"), pins.of("CE")].concat(), 0, row, &named);
                let at = ["A", "A0", "A1", "A2", "A3"].map(|pin| pins.of(pin)).concat();
                self.through(at, pins.of("Q"), LEVEL);
            }
            "DSP48E2" => {
                sites.dsps = 1;
                self.multiplier(pins, row, place, names);
            }
            "RAMB18E2" | "RAMB36E2" => {
                sites.bram18 = if kind == "RAMB36E2" { 2 } else { 1 };
                self.end(pins.all("input", &[]), 0, row, &format!("{place}(block RAM)"));
            }
            _ if kind.starts_with("RAM") => {
                sites.memory = self.lut_ram(kind, pins, row, place)?;
            }
            "GND" | "VCC" => {}
            _ => bail!("the netlist has a cell {kind}, which is not known here"),
        }
        Ok(sites)
    }

    fn through(&mut self, ins: Vec<u32>, outs: Vec<u32>, cost: u32) {
        let ins: Vec<u32> = ins.into_iter().filter(|&net| net != NONE).collect();
        for out in outs.into_iter().filter(|&net| net != NONE) {
            self.nodes.push(Node::Through { ins: ins.clone(), out, cost });
        }
    }

    fn end(&mut self, nets: Vec<u32>, cost: u32, row: usize, name: &str) {
        for net in nets.into_iter().filter(|&net| net != NONE) {
            self.ends.push(End { net, cost, row, name: name.to_owned() });
        }
    }

    /// Notes the name of a register by what it drives, and says it.
    fn register(&mut self, pins: &Pins<'_>, pin: &str, place: &str, names: &[&str]) -> String {
        let bits = pins.cell["connections"][pin].as_array();
        let bit = bits.and_then(|bits| bits.first()?.as_u64());
        let wire = bit.and_then(|bit| names.get(bit as usize).copied()).unwrap_or_default();
        let name = format!("{place}{wire}");
        for net in pins.of(pin).into_iter().filter(|&net| net != NONE) {
            self.names.insert(net, name.clone());
        }
        name
    }

    fn multiplier(&mut self, pins: &Pins<'_>, row: usize, place: &str, names: &[&str]) {
        let has = |register: &str| pins.parameter(register) != 0;
        let clocks = ["CLK", "RSTA", "RSTB", "RSTC", "RSTD", "RSTM", "RSTP"];
        let ins = pins.all("input", &clocks);
        let named = self.register(pins, "P", place, names);
        if has("PREG") || has("MREG") {
            self.end(ins, MULTIPLIER, row, &format!("{named} (multiplier)"));
            if !has("PREG") {
                self.late.extend(pins.of("P").iter().map(|&net| (net, SECOND_HALF)));
            }
        } else {
            self.through(ins, pins.all("output", &[]), MULTIPLIER);
        }
    }

    /// Memory made of LUTs; how many it takes.
    fn lut_ram(&mut self, kind: &str, pins: &Pins<'_>, row: usize, place: &str) -> Result<u64> {
        let luts = match kind {
            "RAM32X1S" | "RAM64X1S" => 1,
            "RAM32X1D" | "RAM64X1D" | "RAM128X1S" => 2,
            "RAM32M" | "RAM64M" | "RAM128X1D" | "RAM256X1S" => 4,
            "RAM32M16" | "RAM64M8" | "RAM256X1D" | "RAM512X1S" => 8,
            _ => bail!("the netlist has a memory {kind}, which is not known here"),
        };
        let named = format!("{place}(LUT RAM)");
        let directions = pins.cell["port_directions"].as_object();
        let outs: Vec<&String> = directions
            .into_iter()
            .flatten()
            .filter(|(_, d)| d.as_str() == Some("output"))
            .map(|(pin, _)| pin)
            .collect();
        for out in outs {
            // DOA is read at ADDRA; of the older kinds, DPO at DPRA and the rest at A.
            let at = match (out.strip_prefix("DO"), out.as_str()) {
                (Some(port), _) => pins.of(&format!("ADDR{port}")),
                (_, "DPO") => self.numbered(pins, "DPRA"),
                _ => self.numbered(pins, "A"),
            };
            self.through(at, pins.of(out), LEVEL);
        }
        self.end(pins.all("input", &["WCLK"]), 0, row, &named);
        Ok(luts)
    }

    /// Pins `A`, or `A0` to `A8`.
    fn numbered(&self, pins: &Pins<'_>, pin: &str) -> Vec<u32> {
        let single = (0..9).flat_map(|i| pins.of(&format!("{pin}{i}")));
        pins.of(pin).into_iter().chain(single).collect()
    }

    /// Follows all paths; the rows with their deepest one.
    fn follow(mut self) -> Result<Vec<Row>> {
        let nets = self.nets as usize;
        let mut driver = vec![NONE; nets];
        for (i, node) in self.nodes.iter().enumerate() {
            for out in node.outs() {
                driver[out as usize] = i as u32;
            }
        }
        let order = self.order(&driver)?;
        let mut arrival = vec![0u32; nets];
        let mut from = vec![NONE; nets];
        for &(net, time) in &self.late {
            arrival[net as usize] = time;
        }
        // Of nets that leave a carry chain: a level behind the latest entry, and a sixteenth for each bit.
        let mut along: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for i in order {
            match &self.nodes[i as usize] {
                Node::Through { ins, out, cost } => {
                    let last = ins.iter().max_by_key(|&&net| arrival[net as usize]).copied();
                    let came = last.map_or(0, |net| arrival[net as usize]);
                    arrival[*out as usize] = came + cost;
                    from[*out as usize] = last.unwrap_or(NONE);
                }
                Node::Carry { ci, s, di, o, co } => {
                    let at = |net: u32| if net == NONE { 0 } else { arrival[net as usize] };
                    let entered = at(*ci);
                    let (mut level, mut bits) =
                        along.get(ci).copied().unwrap_or((entered + LEVEL, entered));
                    let mut latest = (bits, *ci);
                    let mut out = Vec::new();
                    for k in 0..s.len() {
                        let source = if at(s[k]) >= at(di[k]) { s[k] } else { di[k] };
                        let came = at(source);
                        if came + 1 > latest.0 {
                            latest = (came + 1, source);
                        }
                        level = level.max(came + LEVEL);
                        bits = bits.max(came) + 1;
                        latest.0 = latest.0.max(bits);
                        for net in [o.get(k), co.get(k)].into_iter().flatten() {
                            out.push((*net, level.max(bits), latest.1, (level, bits)));
                        }
                    }
                    for (net, time, source, pair) in out.into_iter().filter(|out| out.0 != NONE) {
                        arrival[net as usize] = time;
                        from[net as usize] = source;
                        if co.contains(&net) {
                            along.insert(net, pair);
                        }
                    }
                }
            }
        }
        for end in &self.ends {
            let depth = arrival[end.net as usize] + end.cost;
            if depth > self.made[end.row].depth {
                let mut first = end.net;
                while from[first as usize] != NONE {
                    first = from[first as usize];
                }
                let began = self.names.get(&first).map_or("(memory)", String::as_str);
                let row = &mut self.made[end.row];
                row.depth = depth;
                row.path = format!("{began} to {}", end.name);
            }
        }
        self.made.sort_by(|a, b| a.module.cmp(&b.module));
        Ok(self.made)
    }

    /// The nodes, each behind those that drive it.
    fn order(&self, driver: &[u32]) -> Result<Vec<u32>> {
        let mut order = Vec::with_capacity(self.nodes.len());
        // 0: not seen, 1: those that drive it are looked at, 2: done.
        let mut seen = vec![0u8; self.nodes.len()];
        let mut stack = Vec::new();
        for start in 0..self.nodes.len() as u32 {
            stack.push(start);
            while let Some(&node) = stack.last() {
                match seen[node as usize] {
                    0 => {
                        seen[node as usize] = 1;
                        for net in self.nodes[node as usize].ins() {
                            let before = driver[net as usize];
                            if before == NONE || seen[before as usize] == 2 {
                                continue;
                            }
                            if seen[before as usize] == 1 {
                                bail!("the netlist has a loop without a register");
                            }
                            stack.push(before);
                        }
                    }
                    state => {
                        stack.pop();
                        if state == 1 {
                            seen[node as usize] = 2;
                            order.push(node);
                        }
                    }
                }
            }
        }
        Ok(order)
    }
}

/// False for the card's own cells, whose models Yosys leaves among the modules.
fn is_ours(module: &Value) -> bool {
    let model = |of: &str| module["attributes"][of].is_string();
    module.is_object() && !model("blackbox") && !model("whitebox")
}

/// The highest number of a bit in a module.
fn highest_bit(module: &Value) -> usize {
    let ports = module["ports"].as_object().into_iter().flatten().map(|(_, port)| &port["bits"]);
    let wires = module["netnames"].as_object().into_iter().flatten().map(|(_, wire)| &wire["bits"]);
    let cells = module["cells"].as_object().into_iter().flatten();
    let pins = cells.filter_map(|(_, cell)| cell["connections"].as_object()).flatten();
    let all = ports.chain(wires).chain(pins.map(|(_, bits)| bits));
    let bits = all.filter_map(Value::as_array).flatten().filter_map(Value::as_u64);
    bits.max().unwrap_or_default() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register, a LUT, a chain of 32 bits in two cells of 16 in a module of its own, a register.
    fn netlist() -> String {
        let bits = |from: u32, n: u32| format!("{:?}", (from..from + n).collect::<Vec<_>>());
        let carry = |ci: String, s: u32, co: u32| {
            format!(
                r#"{{"type": "CARRY8", "connections": {{"CI": {ci}, "S": {}, "DI": {}, "O": [],
                "CO": {}}}}}"#,
                bits(s, 8),
                bits(s, 8),
                bits(co, 8)
            )
        };
        format!(
            r#"{{"modules": {{
            "$paramod\\chain\\W=1": {{"ports": {{
                "a": {{"direction": "input", "bits": [2]}},
                "y": {{"direction": "output", "bits": [67]}}}},
              "cells": {{"one": {}, "two": {}, "three": {}, "four": {}}}}},
            "top": {{"attributes": {{"top": "1"}}, "ports": {{}},
              "netnames": {{"begin": {{"hide_name": 0, "bits": [2]}}, "stop": {{"hide_name": 0, "bits": [5]}}}},
              "cells": {{
                "r": {{"type": "FDRE", "port_directions": {{"D": "input", "Q": "output"}},
                       "connections": {{"D": ["0"], "Q": [2]}}}},
                "l": {{"type": "LUT1", "port_directions": {{"I0": "input", "O": "output"}},
                       "connections": {{"I0": [2], "O": [3]}}}},
                "c": {{"type": "$paramod\\chain\\W=1", "connections": {{"a": [3], "y": [4]}}}},
                "q": {{"type": "FDRE", "port_directions": {{"D": "input", "Q": "output"}},
                       "connections": {{"D": [4], "Q": [5]}}}}}}}}}}}}"#,
            carry("[\"0\"]".into(), 2, 20).replace("[2, 3, 4, 5, 6, 7, 8, 9]", &one_late()),
            carry("[27]".into(), 100, 30),
            carry("[37]".into(), 110, 40),
            carry("[47]".into(), 120, 60),
        )
    }

    fn one_late() -> String {
        "[2, \"0\", \"0\", \"0\", \"0\", \"0\", \"0\", \"0\"]".into()
    }

    #[test]
    fn a_path_goes_through_modules_and_along_a_chain() {
        let rows = read(&netlist()).unwrap();
        let names: Vec<&str> = rows.iter().map(|row| row.module.as_str()).collect();
        assert_eq!(names, ["chain", "top"]);
        // One LUT, and 32 bits of carry, which are two levels.
        assert_eq!(rows[1].depth, 3 * LEVEL);
        assert_eq!(rows[1].path, "begin to stop");
        let took = Sites { logic: 1, ffs: 2, ..Sites::default() };
        assert_eq!((rows[1].sites, rows[1].instances), (took, 1));
    }

    #[test]
    fn a_loop_without_a_register_is_told() {
        let looped = r#"{"modules": {"top": {"attributes": {"top": "1"}, "cells": {
            "a": {"type": "INV", "port_directions": {"I": "input", "O": "output"},
                  "connections": {"I": [2], "O": [3]}},
            "b": {"type": "INV", "port_directions": {"I": "input", "O": "output"},
                  "connections": {"I": [3], "O": [2]}}}}}}"#;
        assert!(read(looped).unwrap_err().to_string().contains("loop"));
    }
}
