// Takes the entry areas of one way apart: keys as beats, values as words.
//
// A ring of four words of W bytes holds what comes next; one byte rotator serves header, key and value. The key lies in
// rows of W bytes, so a shared prefix is what is not overwritten. Taking an entry costs 2 cycles, one for each row
// that its unshared bytes touch (one at least), and ceil(value/W); meanwhile its key goes out.
//
// Keeps: exactly the entries behind `skip` and within `take` go out, each key before its value; every
// check of the stream's page that concerns one way. No key of an entry that fails a check goes out, and nothing behind it.
// Leaves to others: the order of entries (gc), sums over bytes (fetch).
module decoder #(
  parameter int W = 16,
  parameter bit SIDE = 0,
  parameter int CW = $clog2(W + 2),
  parameter int BW = 1 + 8*W + CW + 64 + pkg::VLEN + 5
) (
  input  logic          clk,
  input  logic          rst,
  input  logic [4:0]    way,          // how its key beats name it
  input  logic          area_valid,
  output logic          area_ready,
  input  pkg::area_t    area,
  input  logic          word_valid,
  output logic          word_ready,
  input  logic [511:0]  word,
  output logic          key_valid,
  input  logic          key_ready,
  output logic [BW-1:0] key_beat,
  output logic          value_valid,
  input  logic          value_ready,
  output logic [8*W-1:0] value,
  output logic          ended,        // every byte of the way has been taken
  output logic          fault_valid,
  output pkg::fault_t   fault
);
  localparam int LW = $clog2(W);
  localparam int PER = W == 64 ? 1 : 2;    // words that are put into the ring at once
  localparam int PUTS = 64 / (W * PER);    // so often for a beat
  localparam int ROWS = 256 / W;           // of the key memory
  localparam int RW = $clog2(ROWS);
  localparam int VL = pkg::VLEN;
  integer i;

  typedef enum logic [2:0] {NEXT, HEAD, PARSE, KEY, VALUE, REST, STOPPED, OVER} state_e;
  state_e state;

  // ---- the ring ----
  // Byte `p` comes next. Both pointers count on past the ring's end, to tell a full one from an empty one.
  logic [32*W-1:0] ring;
  logic [LW+2:0] p;
  logic [2:0] put_at;                      // in words
  logic [2:0] have;                        // words from p's on
  logic [23:0] feed;                       // puts of the area that are due
  logic put, room, second;                 // second: of the two puts of a beat
  logic [8*W*PER-1:0] slice;
  assign have = put_at - p[LW+2:LW];
  assign room = have <= 3'(4 - PER);
  // What follows the last entry taken is dropped.
  assign put = feed != '0 && word_valid && (room || state == REST);
  generate
    if (PUTS == 1) begin : g_whole
      assign slice = word[8*W*PER-1:0];
      assign word_ready = put;
    end else begin : g_halves
      assign slice = second ? word[511:256] : word[255:0];
      assign word_ready = put && second;
    end
  endgenerate
  always_ff @(posedge clk)
    for (i = 0; i < 4; i = i + PER)
      if (put && put_at[1:0] == 2'(i)) ring[8*W*i +: 8*W*PER] <= slice;

  // Lane i of the W bytes from p on, as a circle: lanes below p's belong to the word behind.
  logic [8*W-1:0] circle, spun;
  logic [LW-1:0] turn;
  logic [1:0] from;
  always_comb begin
    from = '0;
    for (i = 0; i < W; i = i + 1) begin
      from = p[LW+1:LW] + 2'(LW'(i) < p[LW-1:0]);
      circle[8*i +: 8] = from[1] ? (from[0] ? ring[8*(3*W+i) +: 8] : ring[8*(2*W+i) +: 8])
          : (from[0] ? ring[8*(W+i) +: 8] : ring[8*i +: 8]);
    end
  end
  // The one rotator: lane b of the result is lane b + turn of the circle.
  logic [16*W-1:0] twice;
  assign twice = {circle, circle};
  assign spun = twice[8*32'(turn) +: 8*W];

  // Are the next n bytes there?
  function automatic logic there(input logic [LW-1:0] at, input logic [LW:0] n, input logic [2:0] words);
    logic [LW+1:0] behind;
    behind = {2'b0, at} + {1'b0, n};
    there = n == '0 || (behind > (LW+2)'(W) ? words[2:1] != '0 : words != '0);
  endfunction

  // ---- the entry in hand ----
  pkg::area_t cur;
  logic [pkg::COUNT:0] stop_at;            // behind the last entry taken
  logic signed [29:0] left;                // bytes of the area that are not taken apart; below 0 if a header overruns it
  logic [pkg::COUNT-1:0] done;             // entries of the area parsed
  logic [31:0] descriptor;
  logic [63:0] head_bytes;
  logic [7:0] last_len;                    // of the internal key before
  logic [13:0] shared, unshared;
  logic [7:0] k_left;                      // bytes of the key still to come
  logic [7:0] k_at;                        // where they go
  logic [VL-1:0] v_left;                   // bytes of the value
  logic first_key_cycle, too_long_key, too_long_value;

  // Header: varints of at most 2, 2 and 4 bytes.
  logic [3:0] at_u, at_v, head_len;
  logic [13:0] h_shared, h_unshared;
  logic [27:0] h_vlen;
  logic long_key, long_value;
  logic [31:0] vb;
  logic [15:0] ub;
  always_comb begin
    at_u = head_bytes[7] ? 4'd2 : 4'd1;
    h_shared = {head_bytes[7] ? head_bytes[14:8] : 7'd0, head_bytes[6:0]};
    ub = head_bytes[7] ? head_bytes[31:16] : head_bytes[23:8];
    h_unshared = {ub[7] ? ub[14:8] : 7'd0, ub[6:0]};
    at_v = at_u + (ub[7] ? 4'd2 : 4'd1);
    case (at_v)
      4'd2: vb = head_bytes[47:16];
      4'd3: vb = head_bytes[55:24];
      default: vb = head_bytes[63:32];
    endcase
    h_vlen = {21'd0, vb[6:0]};
    head_len = at_v + 4'd1;
    if (vb[7]) begin
      h_vlen[13:7] = vb[14:8];
      head_len = at_v + 4'd2;
      if (vb[15]) begin
        h_vlen[20:14] = vb[22:16];
        head_len = at_v + 4'd3;
        if (vb[23]) begin
          h_vlen[27:21] = vb[30:24];
          head_len = at_v + 4'd4;
        end
      end
    end
    long_key = (head_bytes[7] && head_bytes[15]) || (ub[7] && ub[15]);
    long_value = vb[7] && vb[15] && vb[23] && vb[31];
  end

  // ---- what this cycle takes ----
  logic [LW:0] n, head_need, k_need, v_need;
  logic [8:0] k_behind;                    // the key's end, from the row's beginning on
  logic [14:0] whole;                      // length of the internal key
  logic taken;                             // is the entry within skip and take
  logic to_end, limit, h_go, k_go, v_go, k_ends, v_ends, takes;
  logic out_busy;                          // the key before is still going out
  assign to_end = &cur.take;
  assign taken = done >= cur.skip;
  assign limit = !to_end && {1'b0, done} == stop_at;
  assign head_need = left < 30'sd8 ? (LW+1)'(left[3:0]) : (LW+1)'(8);
  assign k_behind = 9'(k_left) + 9'(k_at[LW-1:0]);
  assign k_ends = k_behind <= 9'(W);
  assign k_need = k_ends ? (LW+1)'(k_left) : (LW+1)'(W) - {1'b0, k_at[LW-1:0]};
  assign v_ends = v_left <= VL'(W);
  assign v_need = v_ends ? v_left[LW:0] : (LW+1)'(W);
  assign whole = 15'(shared) + 15'(unshared);
  assign h_go = state == HEAD && left != '0 && !limit && there(p[LW-1:0], head_need, have);
  assign k_go = state == KEY && !out_busy && there(p[LW-1:0], k_need, have);
  assign v_go = state == VALUE && there(p[LW-1:0], v_need, have) && (!value_valid || value_ready);
  assign takes = state == PARSE || k_go || v_go;
  always_comb begin
    turn = p[LW-1:0];
    n = v_need;
    case (state)
      PARSE: n = (LW+1)'(head_len);
      KEY: begin
        turn = p[LW-1:0] - k_at[LW-1:0];
        n = k_need;
      end
      default: ;
    endcase
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      feed <= '0;
      second <= 1'b0;
      {p, put_at} <= '0;
    end else begin
      if (put) begin
        feed <= feed - 1'b1;
        second <= PUTS == 2 && !second;
        put_at <= put_at + 3'(PER);
      end
      if (takes) p <= p + (LW+3)'(n);
      if (state == REST) {p, put_at} <= '0;
      if (state == NEXT && area_valid && !area.eos)
        feed <= (24'(area.bytes[28:6]) + 24'(|area.bytes[5:0])) << (PUTS - 1);
    end
  end

  // ---- the entry's steps ----
  logic [7:0] bad, o_bad;
  logic [pkg::COUNT-1:0] bad_entry, o_entry;
  assign area_ready = state == NEXT;
  assign ended = state == OVER;
  always_ff @(posedge clk) begin
    if (rst) begin
      state <= NEXT;
      descriptor <= '1;
      fault_valid <= 1'b0;
    end else begin
      case (state)
        NEXT: if (area_valid) begin
          if (!area.eos) descriptor <= descriptor + 1'b1;
          state <= area.eos ? OVER : HEAD;
        end
        HEAD:
          if (left == '0 || limit) state <= REST;
          else if (h_go) state <= PARSE;
        PARSE: state <= KEY;
        KEY: if (k_go && k_ends) state <= v_left == '0 ? HEAD : VALUE;
        VALUE: if (v_go && v_ends) state <= HEAD;
        REST: if (feed == '0) state <= NEXT;
        default: ;
      endcase
      if (!fault_valid && (bad != pkg::OK || o_bad != pkg::OK)) begin
        fault_valid <= 1'b1;
        fault.code <= o_bad != pkg::OK ? o_bad : bad;
        fault.entry <= o_bad != pkg::OK ? 32'(o_entry) : 32'(bad_entry);
        fault.descriptor <= descriptor;
      end
      if (fault_valid) state <= STOPPED;
    end
    fault.way <= SIDE ? 8'(pkg::SIDE) : 8'(way);
    if (takes) left <= left - 30'(n);
    if (state == NEXT) begin
      cur <= area;
      stop_at <= {1'b0, area.skip} + {1'b0, area.take};
      left <= {1'b0, area.bytes};
      done <= '0;
      last_len <= '0;
    end
    if (state == HEAD) head_bytes <= spun[63:0];
    first_key_cycle <= state == PARSE || (first_key_cycle && !k_go);
    if (state == PARSE) begin
      {shared, unshared, v_left} <= {h_shared, h_unshared, h_vlen};
      {too_long_key, too_long_value} <= {long_key, long_value};
      k_left <= h_unshared[7:0];
      k_at <= h_shared[7:0];
    end
    if (k_go) begin
      k_left <= {(8-LW)'(k_behind[8:LW] - 1'b1), k_behind[LW-1:0]};
      k_at <= {k_at[7:LW] + 1'b1, LW'(0)};
      if (k_ends) begin
        last_len <= whole[7:0];
        done <= done + 1'b1;
      end
    end
    if (v_go) v_left[VL-1:LW] <= v_left[VL-1:LW] - 1'b1;
  end

  // ---- checks: a cycle later, which is still before the key goes out ----
  logic fails;
  assign fails = fault_valid || bad != pkg::OK;
  always_ff @(posedge clk) begin
    bad_entry <= done;
    bad <= pkg::OK;
    if (state == HEAD && left == '0) begin
      if (to_end ? done < cur.skip : !limit) bad <= pkg::ITEMS;
      if (to_end && cur.expected != '0 && cur.expected != done) bad <= pkg::ITEMS;
    end
    if (state == KEY && first_key_cycle) begin
      if (left < 0) bad <= pkg::STRUCTURE;
      else if (too_long_key) bad <= pkg::KEY_LONG;
      else if (too_long_value) bad <= pkg::VALUE_LONG;
      else if (shared > 14'(last_len) || whole < 15'd8 || 30'(unshared) + 30'(v_left) > left) bad <= pkg::STRUCTURE;
      else if (whole > 15'd248) bad <= pkg::KEY_LONG;
      else if (&done) bad <= pkg::ITEMS;
    end
    if (rst) bad <= pkg::OK;
  end

  // Values of entries that are taken.
  logic v_taken;
  always_ff @(posedge clk) begin
    if (rst) begin
      value_valid <= 1'b0;
    end else begin
      if (value_ready) value_valid <= 1'b0;
      if (v_go && v_taken && !fails) value_valid <= 1'b1;
    end
    if (v_go) value <= spun;
    if (state == KEY) v_taken <= taken;
  end

  // ---- the key memory, and the key on its way out ----
  // A cycle writes one row of it, and reads one.
  typedef enum logic [1:0] {IDLE, TAG, TAG_REST, ROWS_OUT} out_e;
  out_e out_state;
  logic [7:0] o_len;                       // user key
  logic [RW-1:0] o_row;
  logic [VL-1:0] o_vlen;
  logic [63:0] o_tag;
  logic o_markers;
  logic [8*W-1:0] read;
  logic [W-1:0] write;
  always_comb
    for (i = 0; i < W; i = i + 1)
      write[i] = k_go && LW'(i) >= k_at[LW-1:0] && (!k_ends || 9'(i) < k_behind);
  genvar b;
  generate
    for (b = 0; b < W; b = b + 1) begin : g_bank
      (* ram_style = "distributed" *) logic [7:0] mem [ROWS];
      assign read[8*b +: 8] = mem[o_row];
      always_ff @(posedge clk) if (write[b]) mem[k_at[7:LW]] <= spun[8*b +: 8];
    end
  endgenerate
  // The tag is the eight bytes behind the user key, as a circle. If they go on in the next row, that comes a cycle later.
  logic [16*W-1:0] read_twice;
  logic [63:0] tag_here;
  logic straddles;
  assign read_twice = {read, read};
  assign tag_here = read_twice[8*32'(o_len[LW-1:0]) +: 64];
  assign straddles = o_len[LW-1:0] > LW'(W - 8);

  logic [7:0] o_rest;                      // bytes of the user key from this row on
  logic o_last;
  logic [8*W-1:0] o_key;                   // big endian, zero behind the end
  logic [CW-1:0] o_count;
  assign o_rest = o_len - {o_row, LW'(0)};
  assign o_last = o_rest <= 8'(W);
  assign o_count = o_last ? CW'(o_rest) : CW'(W + 1);
  always_comb
    for (i = 0; i < W; i = i + 1)
      o_key[8*(W-1-i) +: 8] = 8'(i) < o_rest ? read[8*i +: 8] : 8'd0;

  assign out_busy = out_state != IDLE;
  logic key_free;
  assign key_free = !key_valid || key_ready;
  always_comb begin
    o_bad = pkg::OK;
    if (out_state == ROWS_OUT) begin
      if (SIDE) begin
        if ((&o_tag[63:32]) != o_markers || (o_markers && o_vlen != '0)) o_bad = pkg::STRUCTURE;
      end else begin
        if (o_tag[7:1] != '0) o_bad = pkg::KIND;
        else if (&o_tag[63:32]) o_bad = pkg::SEQ_HIGH;
        else if (!o_tag[0] && o_vlen != '0) o_bad = pkg::DELETE_VALUE;
      end
    end
  end
  logic eos_sent;
  logic [7:0] user_len;
  assign user_len = whole[7:0] - 8'd8;
  always_ff @(posedge clk) begin
    if (rst) begin
      out_state <= IDLE;
      key_valid <= 1'b0;
      eos_sent <= 1'b0;
    end else begin
      if (key_ready) key_valid <= 1'b0;
      case (out_state)
        IDLE: begin
          if (k_go && k_ends && taken) out_state <= TAG;
          if (state == OVER && !eos_sent && key_free) begin
            key_valid <= 1'b1;
            eos_sent <= 1'b1;
          end
        end
        TAG: out_state <= straddles ? TAG_REST : ROWS_OUT;
        TAG_REST: out_state <= ROWS_OUT;
        default: if (key_free) begin
          key_valid <= o_bad == pkg::OK && !fault_valid;
          if (o_last) out_state <= IDLE;
        end
      endcase
    end
    case (out_state)
      IDLE: begin
        o_len <= user_len;
        o_row <= user_len[7:LW];
        o_vlen <= v_left;
        o_entry <= done;
        o_markers <= cur.markers;
        if (key_free) key_beat <= {1'b1, {(BW-1){1'b0}}};
      end
      TAG: begin
        o_tag <= tag_here;
        o_row <= straddles ? o_row + 1'b1 : '0;
      end
      TAG_REST: begin
        for (i = 1; i < 8; i = i + 1)
          if (LW'(i) + o_len[LW-1:0] < o_len[LW-1:0]) o_tag[8*i +: 8] <= tag_here[8*i +: 8];
        o_row <= '0;
      end
      default: if (key_free) begin
        key_beat <= {1'b0, o_key, o_count, o_last ? ~o_tag : 64'd0, o_vlen, way};
        o_row <= o_row + 1'b1;
      end
    endcase
  end

  logic unused;
  assign unused = ^{cur.eos, cur.bytes, cur.replay, area.bytes[28], second};
endmodule
