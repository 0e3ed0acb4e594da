// One way of fetch: walks over its descriptors, asks for bursts, and keeps what has come.
//
// Both take several cycles, so that no sum stands behind another one: a descriptor is judged while the area before it is
// asked for, and a burst is placed, cut and offered one step after the other.
//
// Keeps: a burst is asked for only if all of it fits the queue, so what memory returns is always taken.
// Areas are announced to the decoder in order, and their beats follow in order without gaps between areas. No
// address outside of the input slot is asked for.
// Leaves to others: the bus and F64 of areas (fetch), what the bytes mean (decoder).
module fetch_way (
  input  logic         clk,
  input  logic         rst,
  // The way table: descriptors [first, first + count). `begin_set` starts a set.
  input  logic         begin_set,
  input  logic [63:0]  base,
  input  logic [31:0]  slot_bytes,
  input  logic [31:0]  tables_end,
  input  logic [31:0]  first,
  input  logic [31:0]  count,
  // What it wants from the bus next. `want_ready` takes it.
  output logic         want_valid,
  input  logic         want_ready,
  output logic         want_table,      // one beat with a descriptor
  output logic         want_high,       // which lies in the upper half of the beat
  output logic [63:0]  want_address,
  output logic [5:0]   want_beats,
  output logic         want_first,      // the burst begins an area, or ends it
  output logic         want_last,
  output logic [31:0]  index,           // the descriptor whose area is being asked for
  output logic [127:0] expected,        // the area's F64
  // What comes back, in the order asked for.
  input  logic         got_table,
  input  logic [255:0] got_row,
  input  logic         got_data,
  input  logic [511:0] got_beat,
  // To the decoder.
  output logic         area_valid,
  input  logic         area_ready,
  output pkg::area_t   area,
  output logic         word_valid,
  input  logic         word_ready,
  output logic [511:0] word,
  output logic         bad_place        // the descriptor behind `index` names a place outside of the slot
);
  localparam int LG = 6;                      // beats of the queue
  localparam logic [28:0] AREA_MAX = 29'h1010_0000;

  // ---- descriptors: `left` are still to be asked for; at most one is on its way or waits to begin ----
  logic live, asked, waiting, judged, begins, eos_due, idle, area_in_valid, area_in_ready, words_ready;
  logic [31:0] left, next_at;                 // next_at: in descriptors from the slot's beginning
  logic [255:0] waits;
  logic [1:0] checks;                         // steps of its judgement that are done
  logic [31:0] w_offset, w_bytes;
  logic [25:0] w_beats;
  logic [32:0] w_end;
  logic w_sound, w_good;
  assign w_offset = waits[31:0];
  assign w_bytes = waits[63:32];
  assign judged = waiting && (&checks);
  always_ff @(posedge clk) begin
    w_beats <= w_bytes[31:6] + 26'(|w_bytes[5:0]);
    w_sound <= w_bytes != '0 && w_bytes <= 32'(AREA_MAX) && w_offset[5:0] == '0 && w_offset >= tables_end;
    w_end <= {1'b0, w_offset} + {1'b0, w_beats, 6'b0};
    w_good <= w_sound && w_end <= {1'b0, slot_bytes};
    if (rst || !waiting) checks <= '0;
    else if (!judged) checks <= checks + 1'b1;
  end

  // ---- the area whose beats are being asked for ----
  logic [31:0] at;
  logic [22:0] beats;
  logic fresh;                                // no beat of it has been asked for

  // ---- a request: which, where, how many beats, and as soon as these fit ----
  typedef enum logic [2:0] {PICK, PLACE, CUT, FIT, OFFER} step_e;
  step_e step;
  logic asks_table, picks_table, takes;
  logic [LG:0] room;                          // places of the queue that no burst was asked for
  logic [31:0] offset;
  logic [6:0] to_line, cut;                   // beats to the end of a line of 4 KiB, and of a burst there
  logic ends_here;
  assign asks_table = live && left != '0 && !asked && !waiting;
  assign picks_table = step == PICK && asks_table;
  assign to_line = 7'd64 - 7'(want_address[11:6]);
  assign cut = to_line < 7'd32 ? to_line : 7'd32;
  assign ends_here = beats[22:6] == '0 && beats[6:0] <= cut;
  // `index` and `expected` are of a burst until it is granted.
  assign begins = judged && w_good && beats == '0 && step == PICK && area_in_ready;
  assign takes = step == FIT && !want_table && room >= {1'b0, want_beats};
  assign want_valid = step == OFFER;
  always_ff @(posedge clk) begin
    if (rst) begin
      step <= PICK;
    end else begin
      case (step)
        PICK: if (asks_table || (live && beats != '0)) step <= PLACE;
        PLACE: step <= CUT;
        CUT: step <= FIT;
        FIT: if (takes || want_table) step <= OFFER;
        default: if (want_ready) step <= PICK;
      endcase
    end
    if (step == PICK) begin
      want_table <= asks_table;
      want_high <= next_at[0];
      offset <= asks_table ? {next_at[26:1], 6'b0} : at;
    end
    if (step == PLACE) want_address <= base + 64'(offset);
    if (step == CUT) begin
      want_beats <= want_table ? 6'd1 : ends_here ? beats[5:0] : cut[5:0];
      want_last <= ends_here;
      want_first <= fresh;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      {live, asked, waiting, eos_due, bad_place} <= '0;
      beats <= '0;
      left <= '0;
      index <= '1;
      room <= (LG+1)'(1 << LG);
    end else begin
      if (begin_set) begin
        live <= 1'b1;
        left <= count;
        next_at <= first + 32'd16;
        eos_due <= 1'b1;
      end
      if (picks_table) begin
        asked <= 1'b1;
        left <= left - 1'b1;
        next_at <= next_at + 1'b1;
      end
      if (got_table) begin
        asked <= 1'b0;
        waiting <= 1'b1;
        waits <= got_row;
      end
      if (begins) begin
        waiting <= 1'b0;
        at <= w_offset;
        beats <= w_beats[22:0];
        fresh <= 1'b1;
        index <= index + 1'b1;
        expected <= waits[255:128];
      end else if (takes) begin
        at <= at + {20'b0, want_beats, 6'b0};
        beats <= beats - 23'(want_beats);
        fresh <= 1'b0;
      end
      room <= room - (takes ? {1'b0, want_beats} : '0) + (LG+1)'(word_valid && word_ready);
      if (judged && !w_good) bad_place <= 1'b1;
      if (eos_due && area_in_ready && idle) eos_due <= 1'b0;
    end
  end

  // The end is announced behind the last area.
  assign idle = live && left == '0 && !asked && !waiting;
  assign area_in_valid = begins || (eos_due && idle);
  pkg::area_t area_in;
  always_comb begin
    area_in.eos = !waiting;
    area_in.bytes = w_bytes[28:0];
    area_in.skip = waits[64 +: 20];
    area_in.take = waits[84 +: 20];
    area_in.expected = waits[104 +: 20];
    area_in.replay = waits[124];
    area_in.markers = waits[125];
  end
  logic [2:0] areas_count;
  logic [LG:0] stocked;
  fifo #(.WIDTH(pkg::AREA_BITS), .LG(2)) areas (
    .clk, .rst, .in_valid(area_in_valid), .in_ready(area_in_ready), .in_word(area_in),
    .out_valid(area_valid), .out_ready(area_ready), .out_word(area), .count(areas_count)
  );
  fifo #(.WIDTH(512), .LG(LG)) words (
    .clk, .rst, .in_valid(got_data), .in_ready(words_ready), .in_word(got_beat),
    .out_valid(word_valid), .out_ready(word_ready), .out_word(word), .count(stocked)
  );

  logic unused;
  assign unused = ^{areas_count, stocked, words_ready, w_beats[25:23], waits[127:126], next_at[31:27]};
endmodule
