// Drop rules D1, D3 and D4, the order of entries, and markers: which entries the output takes, and with which tag.
//
// Each entry's key is written into the next of eight slots of a ring and compared with the slot before, whatever
// becomes of either, so the comparison never waits for a decision. Three stages: read, compare byte
// groups, join them; then the judge takes an entry a cycle, or longer where deletes wait. What it decided
// stands in a queue, and an emitter reads the keys of survivors out of the ring.
//
// Keeps: entries leave in the order of R7; a slot is not written while a queued decision may read it. At most 17
// deletes wait, one a stripe (D1 removes a second one). The sums' list has every data entry once, in input order.
// Leaves to others: where blocks start (plan), what entries weigh (hasher, weigher).
module gc #(
  parameter int W = 16,
  parameter int N = 4,
  parameter int CW = $clog2(W + 2),
  parameter int BW = 1 + 8*W + CW + 64 + pkg::VLEN + 5
) (
  input  logic               clk,
  input  logic               rst,
  // The recipe's part of the header; still while a set runs.
  input  logic               drop_tombstones,
  input  logic               zero_seqs,
  input  logic [15:0]        in_use_at_start,
  input  logic [1023:0]      snapshots,
  input  logic               begin_set,
  // From the tree.
  input  logic               in_valid,
  output logic               in_ready,
  input  logic [BW-1:0]      in_beat,
  // Keys of data entries, for the hasher: every beat, also of entries that go.
  output logic               hash_valid,
  input  logic               hash_ready,
  output logic [8*W-1:0]     hash_row,       // first byte lowest
  output logic [CW-1:0]      hash_count,     // as in key beats
  // What becomes of them, for the sums.
  output logic               weight_valid,
  input  logic               weight_ready,
  output pkg::weight_op_t    weight,
  // Decisions, and the rows of the keys of survivors.
  output logic               out_valid,
  input  logic               out_ready,
  output pkg::op_t           out_op,
  output logic [8*W-1:0]     out_row,        // first byte lowest, zero behind the end
  output logic               out_last,
  // Counts.
  output logic [32*N-1:0]    entries_in,
  output logic [63:0]        bytes_in,
  output logic [63:0]        hidden,
  output logic [63:0]        elided,
  output logic [63:0]        zeroed,
  output logic [63:0]        replayed,
  output logic               fault_valid,
  output pkg::fault_t        fault
);
  localparam int ROWS = 256 / W;
  localparam int RW = $clog2(ROWS);
  localparam int LW = $clog2(W);
  localparam int KC = 8*W + CW;              // a row of the ring: key bytes and their count
  localparam int GROUPS = (KC + 31) / 32;
  localparam int VL = pkg::VLEN;
  integer i;

  // ---- the parts of a beat ----
  logic i_eos, i_last, i_side;
  logic [8*W-1:0] i_key;
  logic [CW-1:0] i_count;
  logic [63:0] i_ntag;
  logic [VL-1:0] i_vlen;
  logic [4:0] i_way;
  assign {i_eos, i_key, i_count, i_ntag, i_vlen, i_way} = in_beat;
  assign i_last = i_count != CW'(W + 1);

  // Whose beat it is shows only in the last one, as long keys share their beats. The side way's keys are
  // hashed like others, and the hasher is told to forget them.
  assign i_side = i_way == 5'(N);

  // ---- stage 1: read the row before ----
  (* ram_style = "distributed" *) logic [KC-1:0] ring [8*ROWS];
  logic [2:0] slot, oldest;                  // being filled; still to be read
  logic [RW-1:0] row;
  logic stall, accept, slot_free;
  assign slot_free = slot != oldest;
  assign in_ready = !stall && slot_free && hash_ready && !fault_valid;
  assign accept = in_valid && in_ready;

  logic s1_valid, s1_first, s1_last, s1_eos;
  logic [KC-1:0] s1_new, s1_old;
  logic [63:0] s1_tag;
  logic [VL-1:0] s1_vlen;
  logic [4:0] s1_way;
  logic [2:0] s1_slot;
  logic [7:0] s1_ulen;
  always_ff @(posedge clk) begin
    if (rst) begin
      slot <= '0;
      row <= '0;
      s1_valid <= 1'b0;
    end else begin
      if (accept) begin
        row <= i_last ? '0 : row + 1'b1;
        if (i_last) slot <= slot + 1'b1;
      end
      if (!stall) s1_valid <= accept;
    end
    if (accept) ring[{slot, row}] <= {i_key, i_count};
    if (!stall) begin
      s1_new <= {i_key, i_count};
      s1_old <= ring[{slot - 3'd1, row}];
      s1_first <= row == '0;
      s1_last <= i_last;
      s1_eos <= i_eos;
      s1_tag <= ~i_ntag;
      s1_vlen <= i_vlen;
      s1_way <= i_way;
      s1_slot <= slot;
      s1_ulen <= {row, LW'(0)} + 8'(i_count);
    end
  end

  // ---- stage 2: compare byte groups, and the number with the snapshots ----
  logic s2_valid, s2_first, s2_last, s2_eos;
  logic [GROUPS-1:0] s2_same, s2_less;
  logic [32*GROUPS-1:0] cmp_new, cmp_old;
  logic [63:0] s2_tag;
  logic [VL-1:0] s2_vlen;
  logic [4:0] s2_way;
  logic [2:0] s2_slot;
  logic [7:0] s2_ulen;
  logic [15:0] s2_stripe;                    // a bit for each snapshot below: ones from bit 0 up
  assign cmp_new = (32*GROUPS)'(s1_new);
  assign cmp_old = (32*GROUPS)'(s1_old);
  always_ff @(posedge clk) begin
    if (rst) s2_valid <= 1'b0;
    else if (!stall) s2_valid <= s1_valid;
    if (!stall) begin
      for (i = 0; i < GROUPS; i = i + 1) begin
        s2_same[i] <= cmp_new[32*i +: 32] == cmp_old[32*i +: 32];
        s2_less[i] <= cmp_new[32*i +: 32] < cmp_old[32*i +: 32];
      end
      for (i = 0; i < 16; i = i + 1)
        s2_stripe[i] <= snapshots[64*i +: 64] < {8'd0, s1_tag[63:8]};
      {s2_first, s2_last, s2_eos} <= {s1_first, s1_last, s1_eos};
      {s2_tag, s2_vlen, s2_way, s2_slot, s2_ulen} <= {s1_tag, s1_vlen, s1_way, s1_slot, s1_ulen};
    end
  end

  // ---- stage 3: join groups and beats; the entry goes to the judge ----
  logic beat_same, beat_less, open_before, open_now, less_before, less_now;
  always_comb begin
    beat_same = &s2_same;
    beat_less = 1'b0;
    for (i = 0; i < GROUPS; i = i + 1)
      if (!s2_same[i]) beat_less = s2_less[i];
    open_now = (s2_first || open_before) && beat_same;
    less_now = (s2_first || open_before) ? beat_less : less_before;
  end

  logic e_valid, e_done, e_same, e_less, e_eos;
  logic [63:0] e_tag;
  logic [VL-1:0] e_vlen;
  logic [4:0] e_way;
  logic [2:0] e_slot;
  logic [7:0] e_ulen;
  logic [15:0] e_stripe;
  // Against the entry before, which still stands in these registers when the next one comes.
  logic e_tag_less, e_tag_same, e_way_behind, e_stripe_same, e_numbered;
  logic [28:0] e_bytes;
  assign stall = s2_valid && s2_last && e_valid && !e_done;
  always_ff @(posedge clk) begin
    if (rst) begin
      e_valid <= 1'b0;
    end else if (s2_valid && s2_last && !stall) begin
      e_valid <= 1'b1;
    end else if (e_done) begin
      e_valid <= 1'b0;
    end
    if (s2_valid && !stall) begin
      open_before <= open_now;
      less_before <= less_now;
      if (s2_last) begin
        {e_same, e_less, e_eos} <= {open_now, less_now, s2_eos};
        {e_tag, e_vlen, e_way, e_slot, e_ulen} <= {s2_tag, s2_vlen, s2_way, s2_slot, s2_ulen};
        e_stripe <= s2_stripe;
        e_tag_less <= s2_tag < e_tag;
        e_tag_same <= s2_tag == e_tag;
        e_way_behind <= s2_way > e_way;
        e_stripe_same <= s2_stripe == e_stripe;
        e_numbered <= s2_tag[63:8] != '0;
        e_bytes <= 29'(s2_ulen) + 29'(s2_vlen) + 29'd8;
      end
    end
  end

  // ---- the judge ----
  // The entry before, and what holds at this key.
  logic before_any, before_counts;           // counts: a data entry, with no marker behind it
  logic [2:0] before_slot;
  logic [7:0] before_ulen;
  logic [15:0] in_use;
  logic split, others;                       // a split is pending; more than replay was seen

  // Deletes that wait, oldest first.
  (* ram_style = "distributed" *) logic [64:0] held [32];
  logic [4:0] held_in, held_out;
  logic held_any, held_free;
  logic [63:0] held_tag;
  assign held_any = held_in != held_out;
  assign {held_free, held_tag} = held[held_out];

  logic is_side, is_marker, is_replay, is_data, is_value, same_key, key_ends, hides, frees, zeroes;
  logic out_of_order, waits, releases, let_go, judged, both_ready, op_ready;
  logic told_drop, told_free;
  assign is_side = e_way == 5'(N) && !e_eos;
  assign is_marker = is_side && (&e_tag[63:32]);
  assign is_replay = is_side && !is_marker;
  assign is_data = !e_eos && !is_side;
  assign is_value = e_tag[0];
  assign same_key = before_any && e_same;
  assign key_ends = !same_key || !is_data;
  assign hides = same_key && before_counts && e_stripe_same;
  always_comb begin
    frees = drop_tombstones;
    for (i = 0; i < N; i = i + 1)
      if (e_way == 5'(i) && in_use[i]) frees = 1'b0;
  end
  assign zeroes = is_value && !hides && frees && zero_seqs && !e_stripe[0] && e_numbered;
  assign out_of_order = !e_eos && ((before_any && (e_less || (e_same
      && !(e_tag_less || (e_tag_same && e_way_behind)))))
      || (is_replay && others));
  // Work on waiting deletes comes first: at the end of their key, or where a value follows.
  assign releases = held_any && is_data && is_value && !hides && same_key;
  assign let_go = e_valid && held_any && (key_ends || releases);
  assign waits = is_data && !is_value && !hides && (frees || held_any);
  assign both_ready = op_ready && weight_ready;
  assign judged = e_valid && !let_go && !out_of_order && both_ready && !fault_valid;
  assign e_done = judged;

  logic op_valid;
  pkg::op_t op;
  always_comb begin
    op.stop = e_eos;
    op.keep = is_replay || (is_data && !hides);
    op.replay = is_replay;
    op.split = split;
    op.slot = e_slot;
    op.ulen = e_ulen;
    op.tag = zeroes && is_data ? {56'd0, e_tag[7:0]} : e_tag;
    op.vlen = e_vlen;
    op.way = e_way;
    // A dropped entry leaves a value to be taken away, or nothing.
    op_valid = judged && !is_marker && !waits && (e_eos || op.keep || e_vlen != '0);
    if (let_go) begin
      op_valid = !held_free || !key_ends;
      op.stop = 1'b0;
      op.keep = 1'b1;
      op.replay = 1'b0;
      op.slot = key_ends ? before_slot : e_slot;
      op.ulen = key_ends ? before_ulen : e_ulen;
      op.tag = held_tag;
      op.vlen = '0;
    end
    weight.stop = e_eos;
    weight.drop_held = told_drop;
    weight.free_held = told_free;
    weight.fate = hides ? pkg::HIDES : waits && frees ? pkg::WAITS : zeroes ? pkg::ZEROES : pkg::PASSES;
    weight.tag = e_tag;
    weight.vlen = e_vlen;
    weight_valid = judged && (is_data || e_eos || is_side);
    weight.skip = is_side;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      {before_any, before_counts, split, others, told_drop, told_free} <= '0;
      {held_in, held_out} <= '0;
      before_slot <= 3'd7;
      fault_valid <= 1'b0;
      {entries_in, bytes_in, hidden, elided, zeroed, replayed} <= '0;
    end else begin
      if (begin_set) in_use <= in_use_at_start;
      if (op_valid && op_ready && op.keep) split <= 1'b0;
      if (let_go && (op_ready || !op_valid)) begin
        held_out <= held_out + 1'b1;
        if (key_ends && held_free) elided <= elided + 1'b1;
        if (key_ends) told_drop <= 1'b1;
        else told_free <= 1'b1;
      end
      if (judged) begin
        before_any <= 1'b1;
        before_counts <= is_data;
        before_slot <= e_slot;
        before_ulen <= e_ulen;
        if (!is_replay) others <= 1'b1;
        if (is_replay) replayed <= replayed + 1'b1;
        if (is_marker) begin
          in_use <= e_tag[15:0];
          if (e_tag[16]) split <= 1'b1;
        end
        if (weight_valid && !is_side) {told_drop, told_free} <= '0;
        if (is_data) begin
          for (i = 0; i < N; i = i + 1)
            if (e_way == 5'(i)) entries_in[32*i +: 32] <= entries_in[32*i +: 32] + 1'b1;
          bytes_in <= bytes_in + 64'(e_bytes);
          if (hides) hidden <= hidden + 1'b1;
          if (zeroes) zeroed <= zeroed + 1'b1;
          if (waits) held_in <= held_in + 1'b1;
        end
      end
      if (e_valid && out_of_order && !fault_valid) fault_valid <= 1'b1;
    end
    if (judged && waits) held[held_in] <= {frees, e_tag};
    fault.code <= pkg::ORDER;
    fault.way <= e_way == 5'(N) ? 8'(pkg::SIDE) : 8'(e_way);
    fault.descriptor <= '1;
    fault.entry <= '1;
  end

  // ---- keys to the hasher ----
  logic hash_in;
  assign hash_in = accept && !i_eos;
  always_comb
    for (i = 0; i < W; i = i + 1) hash_row[8*i +: 8] = i_key[8*(W-1-i) +: 8];
  assign hash_valid = hash_in;
  assign hash_count = i_count;

  // ---- decisions wait; the emitter reads the keys ----
  logic queued, unqueue;
  pkg::op_t now;
  logic [4:0] queue_count;
  fifo #(.WIDTH(pkg::OP_BITS), .LG(4)) queue (
    .clk, .rst, .in_valid(op_valid), .in_ready(op_ready), .in_word(op),
    .out_valid(queued), .out_ready(unqueue), .out_word(now), .count(queue_count)
  );
  assign oldest = queued ? now.slot : before_slot;

  logic [RW-1:0] out_at;
  logic step, ends;
  logic [KC-1:0] line;
  assign line = ring[{now.slot, out_at}];
  assign step = queued && (!out_valid || out_ready);
  assign ends = !now.keep || now.ulen <= {out_at, LW'(0)} + 8'(W) || (&out_at);
  assign unqueue = step && ends;
  always_ff @(posedge clk) begin
    if (rst) begin
      out_valid <= 1'b0;
      out_at <= '0;
    end else begin
      if (out_ready) out_valid <= 1'b0;
      if (step) begin
        out_valid <= 1'b1;
        out_at <= ends ? '0 : out_at + 1'b1;
      end
    end
    if (step) begin
      out_op <= now;
      out_last <= ends;
      for (i = 0; i < W; i = i + 1) out_row[8*i +: 8] <= line[CW + 8*(W-1-i) +: 8];
    end
  end

  logic unused;
  assign unused = ^{queue_count, i_side};
endmodule
