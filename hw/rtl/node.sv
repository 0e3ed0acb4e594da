// Merges two streams of key beats into one. Entries are compared beat by beat: equal beats pass once, at the
// first difference the winner's rest goes out and the loser begins again.
//
// Keeps: the order of each input; every entry of both leaves once; of two equal entries that of input A
// leaves first. The stream ends (eos) when both have ended. Both inputs hold an entry's beats until it has
// won, so 2^LG must exceed the beats of the longest key.
// A beat takes two cycles: byte groups are compared in the first, the verdict is used in the second.
module node #(
  parameter int W = 16,
  parameter int LG = 5,
  parameter int CW = $clog2(W + 2),
  parameter int BW = 1 + 8*W + CW + 64 + pkg::VLEN + 5
) (
  input  logic          clk,
  input  logic          rst,
  input  logic          a_valid,
  output logic          a_ready,
  input  logic [BW-1:0] a_beat,
  input  logic          b_valid,
  output logic          b_ready,
  input  logic [BW-1:0] b_beat,
  output logic          out_valid,
  input  logic          out_ready,
  output logic [BW-1:0] out_beat
);
  localparam int LOW = pkg::VLEN + 5;        // what takes no part in the comparison
  localparam int CMP = BW - LOW;
  localparam int GROUPS = (CMP + 31) / 32;
  localparam int DEPTH = 1 << LG;

  // wp: next to write. rp: next to show. sp: start of the entry that is shown.
  (* ram_style = "distributed" *) logic [BW-1:0] a_mem [DEPTH];
  (* ram_style = "distributed" *) logic [BW-1:0] b_mem [DEPTH];
  logic [LG:0] a_wp, a_rp, a_sp, b_wp, b_rp, b_sp;
  logic a_shown, b_shown;
  logic [BW-1:0] a_head, b_head;
  assign a_ready = a_wp - a_sp != (LG+1)'(DEPTH);
  assign b_ready = b_wp - b_sp != (LG+1)'(DEPTH);

  // First cycle of a comparison.
  logic judged;                              // same and less are of the beats that are shown
  logic [GROUPS-1:0] same, less;
  logic [32*GROUPS-1:0] a_cmp, b_cmp;
  assign a_cmp = (32*GROUPS)'(a_head[BW-1:LOW]);
  assign b_cmp = (32*GROUPS)'(b_head[BW-1:LOW]);
  integer i;
  always_ff @(posedge clk)
    for (i = 0; i < GROUPS; i = i + 1) begin
      same[i] <= a_cmp[32*i +: 32] == b_cmp[32*i +: 32];
      less[i] <= a_cmp[32*i +: 32] < b_cmp[32*i +: 32];
    end

  // Second cycle: the verdict.
  logic a_wins, all_same;
  always_comb begin
    a_wins = 1'b1;
    for (i = 0; i < GROUPS; i = i + 1)
      if (!same[i]) a_wins = less[i];
    all_same = &same;
  end

  function automatic logic last(input logic [CW-1:0] count);
    last = count != CW'(W + 1);
  endfunction
  logic a_last, b_last;
  assign a_last = last(a_head[LOW+64 +: CW]);
  assign b_last = last(b_head[LOW+64 +: CW]);

  typedef enum logic [1:0] {MATCH, PASS_A, PASS_B, OVER} mode_e;
  mode_e mode;
  logic free, a_out, b_out, a_next, b_next, a_again, b_again, a_done, b_done, ends;
  assign free = !out_valid || out_ready;
  always_comb begin
    {a_out, b_out, a_next, b_next, a_again, b_again, a_done, b_done, ends} = '0;
    case (mode)
      MATCH: if (judged && free) begin
        a_out = a_wins;
        b_out = !a_wins;
        a_done = a_wins && a_last;
        b_done = !a_wins && b_last;
        // Equal beats that end no entry leave once, and both go on.
        a_next = a_wins || all_same;
        b_next = !a_wins || (all_same && !a_last);
        a_again = !a_next;
        b_again = !b_next;
        ends = a_head[BW-1] && b_head[BW-1];
      end
      PASS_A: if (a_shown && free) begin
        a_out = 1'b1;
        a_next = 1'b1;
        a_done = a_last;
      end
      PASS_B: if (b_shown && free) begin
        b_out = 1'b1;
        b_next = 1'b1;
        b_done = b_last;
      end
      default: ;
    endcase
  end

  // What is shown next: the beat behind, or the entry's first once more.
  logic [LG:0] a_from, b_from;
  logic a_load, b_load;
  assign a_from = a_again ? a_sp : a_rp;
  assign b_from = b_again ? b_sp : b_rp;
  assign a_load = (!a_shown || a_next || a_again) && a_from != a_wp;
  assign b_load = (!b_shown || b_next || b_again) && b_from != b_wp;
  always_ff @(posedge clk) begin
    if (rst) begin
      {a_wp, a_rp, a_sp, b_wp, b_rp, b_sp} <= '0;
      {a_shown, b_shown, judged, out_valid} <= '0;
      mode <= MATCH;
    end else begin
      if (a_valid && a_ready) a_wp <= a_wp + 1'b1;
      if (b_valid && b_ready) b_wp <= b_wp + 1'b1;
      if (a_load) a_rp <= a_from + 1'b1;
      else if (a_again) a_rp <= a_sp;
      if (b_load) b_rp <= b_from + 1'b1;
      else if (b_again) b_rp <= b_sp;
      if (a_load) a_shown <= 1'b1;
      else if (a_next || a_again) a_shown <= 1'b0;
      if (b_load) b_shown <= 1'b1;
      else if (b_next || b_again) b_shown <= 1'b0;
      if (a_done) a_sp <= a_rp;
      if (b_done) b_sp <= b_rp;
      judged <= mode == MATCH && a_shown && b_shown && !judged;
      if (mode == MATCH && judged) judged <= !free;
      if (free) out_valid <= a_out || b_out;
      case (mode)
        MATCH: if (judged && free) begin
          if (ends) mode <= OVER;
          else if (a_out && !a_done && !all_same) mode <= PASS_A;
          else if (b_out && !b_done) mode <= PASS_B;
        end
        PASS_A: if (a_done) mode <= MATCH;
        PASS_B: if (b_done) mode <= MATCH;
        default: ;
      endcase
    end
    if (a_valid && a_ready) a_mem[a_wp[LG-1:0]] <= a_beat;
    if (b_valid && b_ready) b_mem[b_wp[LG-1:0]] <= b_beat;
    if (a_load) a_head <= a_mem[a_from[LG-1:0]];
    if (b_load) b_head <= b_mem[b_from[LG-1:0]];
    if (free) out_beat <= a_out ? a_head : b_head;
  end
endmodule
