// Takes the entry areas of one way apart: keys as beats, values as words.
//
// A window of three words of W bytes slides over the area; one byte rotator serves header, key and
// value. The key lies in W byte-wide banks, so a shared prefix is what is not overwritten. Taking an entry
// costs 2 + max(1, ceil(unshared/W)) + ceil(value/W) cycles; meanwhile its key goes out.
//
// Keeps: exactly the entries behind `skip` and within `take` go out, each key before its value; every
// check of the stream's page that concerns one way. After a fault nothing more goes out.
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
  localparam int SUBS = 64 / W;            // words of W bytes in a beat
  localparam int ROWS = 256 / W;           // rows of the key memory
  localparam int RW = $clog2(ROWS);
  integer i;

  // ---- the window ----
  // Byte `p` of it comes next; p may lie in the second word, which is then moved down.
  logic [8*W-1:0] w0, w1, w2;
  logic v0, v1, v2;
  logic [LW:0] p;
  logic [28:0] feed;                       // words of the area that are not in the window yet
  logic flush;                             // drop what is left of the area
  logic shift, slice_ready, slice_valid, slice_take;
  logic [8*W-1:0] slice;
  logic [2:0] sub;

  generate
    if (SUBS == 1) begin : g_whole
      assign slice = word;
      assign word_ready = slice_take;
    end else begin : g_parts
      assign slice = word[8*W*32'(sub[$clog2(SUBS)-1:0]) +: 8*W];
      assign word_ready = slice_take && sub == 3'(SUBS - 1);
    end
  endgenerate
  assign shift = p[LW];
  assign slice_ready = feed != '0 && (flush || !v2 || shift);
  assign slice_valid = word_valid;
  assign slice_take = slice_ready && slice_valid;

  // Lane i of the window from p on, as a circle: each lane from the word that p has it in.
  logic [8*W-1:0] circle, spun;
  logic [LW-1:0] turn;
  always_comb begin
    for (i = 0; i < W; i = i + 1)
      if (LW'(i) >= p[LW-1:0]) circle[8*i +: 8] = shift ? w1[8*i +: 8] : w0[8*i +: 8];
      else circle[8*i +: 8] = shift ? w2[8*i +: 8] : w1[8*i +: 8];
  end
  // The one rotator: lane b of the result is lane b + turn of the circle.
  logic [16*W-1:0] twice;
  assign twice = {circle, circle};
  assign spun = twice[8*32'(turn) +: 8*W];

  // Are the next n bytes there?
  function automatic logic there(input logic [LW:0] at, input logic [LW:0] n,
                                 input logic has0, input logic has1, input logic has2);
    logic [LW+1:0] behind;
    behind = (LW+2)'(at) + (LW+2)'(n) - 1'b1;
    there = n == '0 ? 1'b1 : behind[LW+1] ? has2 : behind[LW] ? has1 : has0;
  endfunction

  // ---- the entry in hand ----
  typedef enum logic [2:0] {NEXT, HEAD, PARSE, KEY, VALUE, REST, STOPPED, OVER} state_e;
  state_e state;
  pkg::area_t cur;
  logic [28:0] left;                       // bytes of the area that are not taken apart
  logic [pkg::COUNT-1:0] done;             // entries of the area parsed
  logic [31:0] descriptor;
  logic [63:0] head_bytes;
  logic [7:0] last_len;                    // of the internal key before
  logic [13:0] shared, unshared;
  logic [28:0] vlen;
  logic [13:0] k_left;                     // bytes of the key still to come
  logic [7:0] k_at;                        // where they go
  logic [28:0] v_left;
  logic first_key_cycle;

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
  logic [LW:0] n;                          // bytes taken
  logic taken;                             // is the entry within skip and take
  logic [pkg::COUNT:0] stop_at;
  logic to_end, bad_key;
  logic [LW:0] head_need, k_need, v_need;
  logic k_go, v_go, h_go, k_ends, v_ends, limit, bad_size;
  logic [14:0] whole;                      // length of the internal key
  logic out_busy;                          // the key before is still going out
  assign to_end = &cur.take;
  assign stop_at = {1'b0, cur.skip} + {1'b0, cur.take};
  assign taken = done >= cur.skip;
  assign head_need = left < 29'd8 ? (LW+1)'(left[3:0]) : (LW+1)'(8);
  assign k_need = k_left > 14'(W) ? (LW+1)'(W) : k_left[LW:0];
  assign v_need = v_left > 29'(W) ? (LW+1)'(W) : v_left[LW:0];
  assign k_ends = k_left <= 14'(W);
  assign v_ends = v_left <= 29'(W);
  assign whole = 15'(shared) + 15'(unshared);
  assign bad_key = first_key_cycle && (shared > 14'(last_len) || whole < 15'd8
      || 30'(unshared) + 30'(vlen) > 30'(left));
  assign bad_size = first_key_cycle && whole > 15'd248;
  assign limit = !to_end && {1'b0, done} == stop_at;
  assign h_go = state == HEAD && left != '0 && !limit && there(p, head_need, v0, v1, v2);
  assign k_go = state == KEY && !out_busy && there(p, k_need, v0, v1, v2) && !bad_key && !bad_size;
  assign v_go = state == VALUE && there(p, v_need, v0, v1, v2) && (!value_valid || value_ready);
  always_comb begin
    turn = p[LW-1:0];
    n = '0;
    case (state)
      PARSE: n = (LW+1)'(head_len);
      KEY: begin
        turn = p[LW-1:0] - k_at[LW-1:0];
        if (k_go) n = k_need;
      end
      VALUE: if (v_go) n = v_need;
      default: ;
    endcase
    if (fault_valid || state == REST) n = '0;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      {v0, v1, v2} <= '0;
      feed <= '0;
      p <= '0;
      sub <= '0;
      flush <= 1'b0;
    end else begin
      if (slice_take) begin
        feed <= feed - 1'b1;
        sub <= sub == 3'(SUBS - 1) ? '0 : sub + 1'b1;
      end
      if (flush) begin
        {v0, v1, v2} <= '0;
        p <= '0;
      end else begin
        p <= {1'b0, p[LW-1:0]} + n;
        if (shift) begin
          {v0, v1, v2} <= {v1, v2, 1'b0};
          if (slice_take) begin
            if (!v1) v0 <= 1'b1;
            else if (!v2) v1 <= 1'b1;
            else v2 <= 1'b1;
          end
        end else if (slice_take) begin
          if (!v0) v0 <= 1'b1;
          else if (!v1) v1 <= 1'b1;
          else v2 <= 1'b1;
        end
      end
      if (state == NEXT && area_valid && !area.eos) begin
        feed <= (29'(area.bytes[28:6]) + 29'(|area.bytes[5:0])) * 29'(SUBS);
        flush <= 1'b0;
      end
      if (state == REST) flush <= 1'b1;
    end
    if (shift) begin
      w0 <= v1 ? w1 : slice;
      w1 <= v2 ? w2 : slice;
      w2 <= slice;
    end else begin
      if (!v0) w0 <= slice;
      if (!v1) w1 <= slice;
      if (!v2) w2 <= slice;
    end
  end

  // ---- the entry's steps ----
  logic [7:0] bad, o_bad;
  logic [pkg::COUNT-1:0] o_entry;
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
          cur <= area;
          left <= area.bytes;
          done <= '0;
          last_len <= '0;
          if (!area.eos) descriptor <= descriptor + 1'b1;
          state <= area.eos ? OVER : HEAD;
        end
        HEAD: begin
          head_bytes <= spun[63:0];
          if (left == '0 || limit) begin
            state <= REST;
          end else if (h_go) begin
            state <= PARSE;
          end
        end
        PARSE: begin
          shared <= h_shared;
          unshared <= h_unshared;
          vlen <= {1'b0, h_vlen};
          k_left <= h_unshared;
          k_at <= h_shared[7:0];
          left <= left - 29'(head_len);
          first_key_cycle <= 1'b1;
          state <= KEY;
        end
        KEY: if (k_go) begin
          first_key_cycle <= 1'b0;
          k_left <= k_left - 14'(k_need);
          k_at <= k_at + 8'(k_need);
          left <= left - 29'(k_need);
          if (k_ends) begin
            last_len <= shared[7:0] + unshared[7:0];
            v_left <= vlen;
            done <= done + 1'b1;
            state <= vlen == '0 ? HEAD : VALUE;
          end
        end
        VALUE: if (v_go) begin
          v_left <= v_left - 29'(v_need);
          left <= left - 29'(v_need);
          if (v_ends) state <= HEAD;
        end
        REST: if (flush && feed == '0) state <= NEXT;
        default: ;
      endcase
      if (!fault_valid && (bad != pkg::OK || o_bad != pkg::OK)) begin
        fault_valid <= 1'b1;
        fault.code <= o_bad != pkg::OK ? o_bad : bad;
        fault.entry <= o_bad != pkg::OK ? 32'(o_entry) : 32'(done);
        fault.descriptor <= descriptor;
      end
      if (fault_valid) state <= STOPPED;
    end
    fault.way <= SIDE ? 8'(pkg::SIDE) : 8'(way);
  end
  always_comb begin
    bad = pkg::OK;
    case (state)
      HEAD: begin
        if (left == '0 && (to_end ? done < cur.skip : !limit)) bad = pkg::ITEMS;
        if (left == '0 && to_end && cur.expected != '0 && cur.expected != done) bad = pkg::ITEMS;
      end
      PARSE:
        if (29'(head_len) > left) bad = pkg::STRUCTURE;
        else if (long_key) bad = pkg::KEY_LONG;
        else if (long_value) bad = pkg::VALUE_LONG;
      KEY:
        if (bad_key) bad = pkg::STRUCTURE;
        else if (bad_size) bad = pkg::KEY_LONG;
        else if (k_go && &done) bad = pkg::ITEMS;
      default: ;
    endcase
  end

  // Values of entries that are taken.
  logic v_taken;
  always_ff @(posedge clk) begin
    if (rst) begin
      value_valid <= 1'b0;
    end else begin
      if (value_ready) value_valid <= 1'b0;
      if (v_go && v_taken && !fault_valid) value_valid <= 1'b1;
    end
    if (v_go) value <= spun;
    if (state == KEY) v_taken <= taken;
  end

  // ---- the key memory, and the key on its way out ----
  // Bank b has the bytes at positions b, b + W, ...; a write may go around to the next row.
  logic [W-1:0] bank_write;
  logic [RW*W-1:0] bank_row;
  logic [LW:0] k_end;
  always_comb begin
    for (i = 0; i < W; i = i + 1) begin
      // Distance of the bank behind the first byte written.
      k_end = {1'b0, LW'(i) - k_at[LW-1:0]};
      bank_write[i] = k_go && k_end < k_need;
      bank_row[RW*i +: RW] = LW'(i) >= k_at[LW-1:0] ? k_at[7:LW] : k_at[7:LW] + 1'b1;
    end
  end

  typedef enum logic [1:0] {IDLE, TAG, ROWS_OUT} out_e;
  out_e out_state;
  localparam int VL = pkg::VLEN;
  logic [7:0] o_len;                       // user key
  logic [RW-1:0] o_row;
  logic [VL-1:0] o_vlen;
  logic [63:0] o_tag;
  logic o_markers;
  logic [8*W-1:0] read;
  genvar b;
  generate
    for (b = 0; b < W; b = b + 1) begin : g_bank
      (* ram_style = "distributed" *) logic [7:0] mem [ROWS];
      logic [RW-1:0] row;
      logic [7:0] ahead;
      // For the tag: the eight bytes behind the user key, as a circle over two rows.
      assign ahead = o_len + 8'(W - 1 - b);
      assign row = out_state != TAG ? o_row : ahead[7:LW];
      assign read[8*b +: 8] = mem[row];
      logic unused_here;
      assign unused_here = ^ahead[LW-1:0];
      always_ff @(posedge clk)
        if (bank_write[b]) mem[bank_row[RW*b +: RW]] <= spun[8*b +: 8];
    end
  endgenerate
  logic [16*W-1:0] read_twice;
  logic [63:0] tag_here;
  assign read_twice = {read, read};
  assign tag_here = read_twice[8*32'(o_len[LW-1:0]) +: 64];

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
        TAG: out_state <= ROWS_OUT;
        default: if (key_free) begin
          key_valid <= o_bad == pkg::OK && !fault_valid;
          if (o_last) out_state <= IDLE;
        end
      endcase
    end
    case (out_state)
      IDLE: begin
        o_len <= shared[7:0] + unshared[7:0] - 8'd8;
        o_vlen <= vlen[VL-1:0];
        o_entry <= done;
        o_markers <= cur.markers;
        o_row <= '0;
        if (key_free) key_beat <= {1'b1, {(BW-1){1'b0}}};
      end
      TAG: o_tag <= tag_here;
      default: if (key_free) begin
        key_beat <= {1'b0, o_key, o_count, o_last ? ~o_tag : 64'd0, o_vlen, way};
        o_row <= o_row + 1'b1;
      end
    endcase
  end

  logic unused;
  assign unused = ^{cur.eos, cur.bytes, cur.replay, area.bytes[28], sub};
endmodule
