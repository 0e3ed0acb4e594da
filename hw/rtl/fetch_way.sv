// One way of fetch: walks over its descriptors, asks for bursts, and keeps what has come.
//
// Keeps: a burst is asked for only if all of it fits the queue, so what memory returns is always taken.
// Areas are announced to the decoder in order, and their beats follow in order without gaps between areas. No
// address outside of the input slot is asked for.
// Leaves to others: the bus (fetch), what the bytes mean (decoder).
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
  output logic [63:0]  want_address,
  output logic [5:0]   want_beats,
  output logic         want_first,      // the burst begins an area, or ends it
  output logic         want_last,
  // What comes back, in the order asked for.
  input  logic         got_table,
  input  logic         got_data,
  input  logic [511:0] got_beat,
  // F64 of an area that has come whole.
  input  logic         sum_valid,
  input  logic [63:0]  sum_a,
  input  logic [63:0]  sum_b,
  // To the decoder.
  output logic         area_valid,
  input  logic         area_ready,
  output pkg::area_t   area,
  output logic         word_valid,
  input  logic         word_ready,
  output logic [511:0] word,
  // Errors: a place outside of the slot; a sum that differs. `fault_index` is the descriptor.
  output logic         bad_place,
  output logic         bad_sum,
  output logic [31:0]  fault_index
);
  localparam int LG = 6;                      // beats of the queue
  localparam logic [28:0] AREA_MAX = 29'h1010_0000;

  // Descriptors: `left` are still to be asked for; at most one is on its way or waits to begin.
  logic [31:0] left, next_at;
  logic half;                                 // which half of the beat has it
  logic asked, waiting, eos_due, live, idle, area_in_valid, words_ready, sums_valid;
  logic [255:0] waits;
  logic [31:0] index;                         // of the area whose beats are being asked for

  // The area whose beats are being asked for.
  logic [31:0] at;
  logic [22:0] beats;
  logic fresh;                                // no beat of it has been asked for

  logic [31:0] w_offset, w_bytes;
  logic [31:0] w_beats;
  logic w_good, starts, area_in_ready, sums_in_ready;
  assign w_offset = waits[31:0];
  assign w_bytes = waits[63:32];
  assign w_beats = {6'b0, w_bytes[31:6]} + 32'(|w_bytes[5:0]);
  assign w_good = w_bytes != '0 && w_bytes <= 32'(AREA_MAX) && w_offset[5:0] == '0
      && w_offset >= tables_end
      && {1'b0, w_offset} + {1'b0, w_beats[25:0], 6'b0} <= {1'b0, slot_bytes};
  assign starts = waiting && beats == '0 && area_in_ready && sums_in_ready && w_good;

  // The next burst: up to 32 beats, to the end of the area or of a line of 4 KiB.
  logic [LG:0] stocked, promised;
  logic [6:0] to_line, least, room;
  logic [63:0] from;
  assign from = base + 64'(at);
  assign to_line = 7'd64 - 7'(from[11:6]);
  assign room = 7'd64 - stocked - promised;
  always_comb begin
    least = 7'd32;
    if (to_line < least) least = to_line;
    if (beats < 23'(least)) least = beats[6:0];
  end

  // Both kinds of requests are made in registers.
  logic may_table, may_data;
  assign may_table = live && left != '0 && !asked && !waiting;
  assign may_data = live && beats != '0 && room >= least;
  always_ff @(posedge clk) begin
    if (rst) begin
      want_valid <= 1'b0;
    end else if (want_valid) begin
      if (want_ready) want_valid <= 1'b0;
    end else if (may_table || may_data) begin
      want_valid <= 1'b1;
      want_table <= may_table;
      want_address <= may_table ? base + 64'd512 + {27'b0, next_at[31:1], 6'b0} : from;
      want_beats <= may_table ? 6'd1 : least[5:0];
      want_first <= fresh;
      want_last <= beats == 23'(least);
    end
  end
  logic makes_table, makes_data;
  assign makes_table = !rst && !want_valid && may_table;
  assign makes_data = !rst && !want_valid && !may_table && may_data;

  always_ff @(posedge clk) begin
    if (rst) begin
      live <= 1'b0;
      asked <= 1'b0;
      waiting <= 1'b0;
      eos_due <= 1'b0;
      beats <= '0;
      left <= '0;
      index <= '1;
      bad_place <= 1'b0;
      promised <= '0;
    end else begin
      if (begin_set) begin
        live <= 1'b1;
        left <= count;
        next_at <= first;
        eos_due <= 1'b1;
      end
      if (makes_table) begin
        asked <= 1'b1;
        left <= left - 1'b1;
        next_at <= next_at + 1'b1;
        half <= next_at[0];
      end
      if (got_table) begin
        asked <= 1'b0;
        waiting <= 1'b1;
        waits <= half ? got_beat[511:256] : got_beat[255:0];
      end
      if (starts) begin
        waiting <= 1'b0;
        at <= w_offset;
        beats <= w_beats[22:0];
        fresh <= 1'b1;
        index <= index + 1'b1;
      end else if (makes_data) begin
        at <= at + {19'b0, least, 6'b0};
        beats <= beats - 23'(least);
        fresh <= 1'b0;
      end
      if (waiting && !w_good) bad_place <= 1'b1;
      if (eos_due && area_in_ready && !starts && idle) eos_due <= 1'b0;
      promised <= promised + (makes_data ? least : 7'd0) - 7'(got_data);
    end
  end

  // The end is announced behind the last area.
  assign idle = live && left == '0 && !asked && !waiting;
  assign area_in_valid = starts || (eos_due && idle);
  pkg::area_t area_in;
  always_comb begin
    area_in.eos = !starts;
    area_in.bytes = w_bytes[28:0];
    area_in.skip = waits[64 +: 20];
    area_in.take = waits[84 +: 20];
    area_in.expected = waits[104 +: 20];
    area_in.replay = waits[124];
    area_in.markers = waits[125];
  end
  logic [2:0] areas_count, sums_count;
  fifo #(.WIDTH(pkg::AREA_BITS), .LG(2)) areas (
    .clk, .rst, .in_valid(area_in_valid), .in_ready(area_in_ready), .in_word(area_in),
    .out_valid(area_valid), .out_ready(area_ready), .out_word(area), .count(areas_count)
  );
  fifo #(.WIDTH(512), .LG(LG)) words (
    .clk, .rst, .in_valid(got_data), .in_ready(words_ready), .in_word(got_beat),
    .out_valid(word_valid), .out_ready(word_ready), .out_word(word), .count(stocked)
  );

  // Sums announced, compared as areas come in whole.
  logic [127:0] expected;
  fifo #(.WIDTH(128), .LG(2)) sums (
    .clk, .rst, .in_valid(starts), .in_ready(sums_in_ready), .in_word(waits[255:128]),
    .out_valid(sums_valid), .out_ready(sum_valid), .out_word(expected), .count(sums_count)
  );
  logic [31:0] summed;
  always_ff @(posedge clk) begin
    if (rst) begin
      bad_sum <= 1'b0;
      summed <= '0;
    end else if (sum_valid && !bad_sum) begin
      if (!sums_valid || expected != {sum_b, sum_a}) bad_sum <= 1'b1;
      else summed <= summed + 1'b1;
    end
    fault_index <= bad_sum ? summed : index + 32'd1;
  end

  logic unused;
  assign unused = ^{areas_count, sums_count, words_ready, w_beats[31:23], waits[127:126]};
endmodule
