// Turns survivors into the bytes of blocks: header, key, value; and at a block's end restart points and
// footer word. Takes the values of dropped entries away.
//
// The first piece of a survivor is its header and what of its key fits behind it: the key's first row is read and
// turned to its place while the entry before is at work. Each further row takes one more piece. So a survivor with a
// short key costs 1 + ceil(value/W) cycles, a dropped entry 1 + ceil(value/W); a block's end costs restart points + 1.
//
// Keeps: pieces go to the packer in the order of the block's bytes. Values are taken in the order of the decisions, so each
// way's values meet their keys. Every word of a data way's value that is taken is shown to the weigher.
// Leaves to others: where bytes lie in a word (packer).
module encoder #(
  parameter int W = 16,
  parameter int N = 4
) (
  input  logic                clk,
  input  logic                rst,
  input  logic                item_valid,
  output logic                item_ready,
  input  pkg::item_t          item,
  // The ring of keys in `prefix`.
  output logic [1:0]          read_slot,
  output logic [7:0]          read_at,
  input  logic [8*W-1:0]      read_row,
  output logic [1:0]          ahead_slot,       // a second port, for the next entry's first row
  output logic [7:0]          ahead_at,
  input  logic [8*W-1:0]      ahead_row,
  output logic                reading,
  output logic [1:0]          reading_slot,
  // Values, by way; N is the side way.
  input  logic [N:0]          value_valid,
  output logic [N:0]          value_ready,
  input  logic [(N+1)*8*W-1:0] value,
  // Words of data ways that were taken, for the weigher.
  output logic                tap_valid,
  input  logic                tap_ready,
  output logic [8*W-1:0]      tap,
  // Pieces for the packer: `len` bytes from lane `from` on, a lane being followed by lane 0.
  output logic                piece_valid,
  input  logic                piece_ready,
  output logic [8*W-1:0]      piece,
  output logic [$clog2(W)-1:0] piece_from,
  output logic [$clog2(W):0]  piece_len,
  output logic                piece_end,        // the payload ends behind it
  output pkg::block_t         piece_block,
  output logic                waits_items,      // for the counters of lost cycles
  output logic                waits_values,
  output logic                waits_out,
  output logic                fault_valid
);
  localparam int LW = $clog2(W);
  localparam int RL = pkg::RESTARTS_LG;
  integer i;

  // ---- the next entry, with its header and its key's first row ----
  pkg::item_t p;
  logic p_valid, p_go;
  logic [63:0] p_head;
  logic [3:0] p_head_len;
  logic [7:0] p_unshared;
  logic [8*W-1:0] p_row;
  logic [LW-1:0] p_turn;                     // of the row, to behind the header
  logic [LW:0] p_room;                       // bytes of the row that fit there
  logic [63:0] item_head;
  logic [3:0] item_head_len;
  logic [7:0] item_unshared;
  logic [15:0] two_s, two_u;
  logic [2:0] len_v;
  logic [31:0] four_v;
  always_comb begin
    item_unshared = item.ulen + 8'd8 - item.shared;
    two_s = item.shared[7] ? {7'd0, item.shared[7], 1'b1, item.shared[6:0]} : {8'd0, item.shared};
    two_u = item_unshared[7] ? {7'd0, item_unshared[7], 1'b1, item_unshared[6:0]}
        : {8'd0, item_unshared};
    len_v = 3'd1;
    four_v = {25'd0, item.vlen[6:0]};
    if (item.vlen[27:7] != '0) begin
      len_v = 3'd2;
      four_v[7] = 1'b1;
      four_v[14:8] = item.vlen[13:7];
    end
    if (item.vlen[27:14] != '0) begin
      len_v = 3'd3;
      four_v[15] = 1'b1;
      four_v[22:16] = item.vlen[20:14];
    end
    if (item.vlen[27:21] != '0) begin
      len_v = 3'd4;
      four_v[23] = 1'b1;
      four_v[30:24] = item.vlen[27:21];
    end
    case ({item.shared[7], item_unshared[7]})
      2'b00: item_head = {16'd0, four_v, two_u[7:0], two_s[7:0]};
      2'b01: item_head = {8'd0, four_v, two_u, two_s[7:0]};
      2'b10: item_head = {8'd0, four_v, two_u[7:0], two_s};
      default: item_head = {four_v, two_u, two_s};
    endcase
    item_head_len = 4'd2 + 4'(item.shared[7]) + 4'(item_unshared[7]) + 4'(len_v);
  end
  logic [LW:0] in_row, in_piece;
  assign in_row = (LW+1)'(W) - {1'b0, item.shared[LW-1:0]};
  assign in_piece = (LW+1)'(W) - (LW+1)'(item_head_len);
  assign item_ready = !p_valid || p_go;
  assign ahead_slot = item.slot;
  assign ahead_at = item.shared;
  always_ff @(posedge clk) begin
    if (rst) p_valid <= 1'b0;
    else if (item_ready) p_valid <= item_valid;
    if (item_ready) begin
      p <= item;
      p_head <= item_head;
      p_head_len <= item_head_len;
      p_unshared <= item_unshared;
      p_row <= ahead_row;
      p_turn <= item.shared[LW-1:0] - LW'(item_head_len);
      p_room <= in_row < in_piece ? in_row : in_piece;
    end
  end

  // ---- the entry at work, with its first piece ----
  pkg::item_t n;
  logic n_valid, n_done;
  logic [8*W-1:0] lead;
  logic [LW:0] lead_len;
  logic [7:0] n_at, n_left;                  // of the key, what is behind the first piece
  logic [16*W-1:0] twice;
  logic [8*W-1:0] turned, p_lead;
  logic [LW:0] fits;
  assign twice = {p_row, p_row};
  assign turned = twice[8*32'(p_turn) +: 8*W];
  always_comb begin
    fits = p_room;
    if (p_unshared < 8'(fits)) fits = (LW+1)'(p_unshared);
    p_lead = turned;
    for (i = 0; i < 8; i = i + 1)
      if (4'(i) < p_head_len) p_lead[8*i +: 8] = p_head[8*i +: 8];
  end
  assign p_go = !n_valid || n_done;
  assign reading = n_valid || p_valid;
  assign reading_slot = n_valid ? n.slot : p.slot;
  always_ff @(posedge clk) begin
    if (rst) n_valid <= 1'b0;
    else if (p_go) n_valid <= p_valid;
    if (p_go) begin
      n <= p;
      lead <= p_lead;
      lead_len <= (LW+1)'(p_head_len) + fits;
      n_at <= p.shared + 8'(fits);
      n_left <= p_unshared - 8'(fits);
    end
  end

  // ---- steps ----
  typedef enum logic [2:0] {START, KEY, VALUE, TAIL, STOPPED} state_e;
  state_e state;
  logic open;                                // a block has entries
  logic [31:0] bytes, entries, number;
  logic [15:0] s_low;
  logic [RL:0] restarts, tail_at;
  logic [7:0] k_at, k_left;
  logic [27:0] v_left;
  logic [LW:0] k_len, v_len;
  logic k_ends, v_ends, free, v_here, v_go, next_value;
  logic [8*W-1:0] v_word;
  assign free = !piece_valid || piece_ready;
  assign k_len = 9'(k_left) + 9'(k_at[LW-1:0]) > 9'(W) ? (LW+1)'(W) - (LW+1)'(k_at[LW-1:0])
      : (LW+1)'(k_left);
  assign k_ends = 8'(k_len) == k_left;
  assign v_len = v_left > 28'(W) ? (LW+1)'(W) : v_left[LW:0];
  assign v_ends = v_left <= 28'(W);
  assign read_slot = n.slot;
  assign read_at = k_at;

  always_comb begin
    v_here = 1'b0;
    v_word = '0;
    for (i = 0; i <= N; i = i + 1)
      if (n.way == 5'(i)) begin
        v_here = value_valid[i];
        v_word = value[8*W*i +: 8*W];
      end
  end
  // A dropped value goes nowhere but to the weigher.
  assign v_go = state == VALUE && v_here && (free || !n.keep) && (tap_ready || n.way == 5'(N));
  always_comb
    for (i = 0; i <= N; i = i + 1) value_ready[i] = v_go && n.way == 5'(i);
  assign tap_valid = v_go && n.way != 5'(N);
  assign tap = v_word;

  logic closes, begins, drops, stops, last_block;
  assign last_block = n.keep && n.cut.start && open;
  assign closes = state == START && n_valid && !n.stop && last_block && free;
  assign begins = state == START && n_valid && !n.stop && n.keep && !last_block && free;
  assign drops = state == START && n_valid && !n.stop && !n.keep;
  assign stops = state == START && n_valid && n.stop && free;
  assign next_value = n.vlen != '0;
  assign n_done = (state == VALUE && v_go && v_ends) || (drops && !next_value)
      || (begins && n_left == '0 && !next_value) || (state == KEY && free && k_ends && !next_value);
  assign waits_items = state == START && !n_valid;
  assign waits_values = state == VALUE && !v_here;
  assign waits_out = piece_valid && !piece_ready;

  // Restart points: the first one is 0; another is read while the one before goes out.
  (* ram_style = "block" *) logic [19:0] points [1 << RL];
  logic [19:0] point;
  logic point_read;
  logic [RL-1:0] point_at;
  assign point_read = closes || (state == TAIL && free);
  assign point_at = state == TAIL ? tail_at[RL-1:0] + 1'b1 : RL'(1);
  always_ff @(posedge clk) begin
    if (begins && n.cut.restart) points[n.cut.start ? '0 : restarts[RL-1:0]] <= n.cut.start ? '0 : bytes[19:0];
    if (point_read) point <= points[point_at];
  end

  logic [LW:0] add;
  always_comb begin
    add = '0;
    if (begins) add = lead_len;
    if (closes) add = (LW+1)'(4);
    if (state == KEY && free) add = k_len;
    if (state == VALUE && v_go && n.keep) add = v_len;
    if (state == TAIL && free) add = (LW+1)'(4);
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= START;
      piece_valid <= 1'b0;
      open <= 1'b0;
      number <= '0;
      fault_valid <= 1'b0;
    end else begin
      if (piece_ready) piece_valid <= 1'b0;
      case (state)
        START: begin
          if (begins) begin
            state <= n_left != '0 ? KEY : next_value ? VALUE : START;
            piece_valid <= 1'b1;
            open <= 1'b1;
            if (n.cut.restart && !n.cut.start && restarts[RL]) fault_valid <= 1'b1;
          end else if (drops && next_value) begin
            state <= VALUE;
          end else if (closes) begin
            state <= TAIL;
            piece_valid <= 1'b1;
          end else if (stops) begin
            state <= STOPPED;
            piece_valid <= 1'b1;
          end
        end
        KEY: if (free) begin
          piece_valid <= 1'b1;
          if (k_ends) state <= next_value ? VALUE : START;
        end
        VALUE: if (v_go) begin
          if (n.keep) piece_valid <= 1'b1;
          if (v_ends) state <= START;
        end
        TAIL: if (free) begin
          piece_valid <= 1'b1;
          if (tail_at == restarts) begin
            state <= START;
            open <= 1'b0;
            number <= number + 1'b1;
          end
        end
        default: ;
      endcase
    end

    // Counters of the block.
    if (begins && n.cut.start) begin
      bytes <= 32'(lead_len);
      entries <= 32'd1;
      restarts <= (RL+1)'(1);
      s_low <= n.cut.s_low;
    end else begin
      bytes <= bytes + 32'(add);
      if (begins) entries <= entries + 1'b1;
      if (begins && n.cut.restart) restarts <= restarts + 1'b1;
    end

    // The piece.
    if (state == START) begin
      k_at <= n_at;
      k_left <= n_left;
    end else if (state == KEY && free) begin
      k_at <= k_at + 8'(k_len);
      k_left <= k_left - 8'(k_len);
    end
    if (state == START || state == KEY) v_left <= n.vlen;
    else if (v_go) v_left <= v_left - 28'(v_len);
    tail_at <= state == START ? (RL+1)'(1) : state == TAIL && free ? tail_at + 1'b1 : tail_at;
    if (free) begin
      piece_end <= stops || (state == TAIL && tail_at == restarts);
      piece_from <= state == KEY ? k_at[LW-1:0] : '0;
      piece_len <= stops ? '0 : add;
      case (state)
        KEY: piece <= read_row;
        VALUE: piece <= v_word;
        TAIL: piece <= tail_at == restarts ? (8*W)'(restarts) : (8*W)'(point);
        default: piece <= closes ? '0 : lead;
      endcase
      piece_block.open <= stops;
      piece_block.ended <= stops && open && n.cut.ended;
      piece_block.bytes <= stops && !open ? '0 : bytes + (stops ? 32'd0 : 32'd4);
      piece_block.entries <= stops && !open ? '0 : entries;
      piece_block.restarts <= stops && !open ? '0 : 32'(restarts);
      piece_block.number <= number;
      piece_block.s_low <= stops && !open ? n.cut.s_low : s_low;
    end
  end

  logic unused;
  assign unused = ^{bytes[31:20], n};
endmodule
