// Weighs one entry at a time: content of key hash and value, then its weight with the tag as read and, if asked,
// with the number 0 (crates/format/src/weight.rs). Products are made by the group's engine.
//
// A value below 256 bytes is weighed when it has come whole; from 256 bytes on, stripes of 128 bytes go through four
// lanes as they come, and the window of 256 bytes is filled again behind them.
//
// Keeps: at most one product of a lane is under way. A byte is not overwritten before it was used for the last time: the
// last 32 bytes are always inside the window when the value ends.
module weigh_cell (
  input  logic            clk,
  input  logic            rst,
  // The entry. `seed` is the key's hash, mixed with the value's length.
  input  logic            begin_entry,
  input  logic [63:0]     seed,
  input  logic [63:0]     tag,
  input  logic [27:0]     vlen,
  input  logic            zero_too,
  output logic            idle,
  // Its value, 16 bytes at a time.
  input  logic            row_valid,
  output logic            row_ready,
  input  logic [127:0]    row,
  // Products. kind 1: fold of one product; 0: a round of two.
  output logic            ask_valid,
  input  logic            ask_ready,
  output logic            ask_first,      // a stripe: its value is coming in at full rate
  output logic            ask_single,
  output logic [1:0]      ask_lane,
  output logic [63:0]     ask_state,
  output logic [127:0]    ask_a,
  output logic [127:0]    ask_b,
  input  logic            reply_valid,
  input  logic [1:0]      reply_lane,
  input  logic [63:0]     reply,
  // The result stays until `taken`.
  output logic            done,
  input  logic            taken,
  output logic [63:0]     weight,
  output logic [63:0]     weight_zeroed
);
  localparam logic [63:0] K0 = 64'ha076_1d64_78bd_642f;
  localparam logic [63:0] K1 = 64'he703_7ed1_a0b4_28db;

  // ---- the window ----
  logic [27:0] rows, rows_in;             // of the value; those that came
  logic [27:0] rows_free;                 // those that may come
  logic put, whole;
  logic [7:0] at;
  logic [127:0] bytes;
  assign row_ready = rows_in != rows && rows_in != rows_free;
  assign put = row_valid && row_ready;
  assign whole = rows_in == rows;
  window #(.W(16), .LG(8)) value (
    .clk, .put, .put_row(rows_in[3:0]), .put_bytes(row), .at, .bytes
  );

  // ---- steps ----
  typedef enum logic [3:0] {
    IDLE, FILL, STRIPE_A, STRIPE_B, JOIN, JOIN_B, JOIN_WAIT, ROUND_A, ROUND_B, SHORT,
    WEIGH, WEIGH_WAIT, ZERO_WAIT, DONE
  } state_e;
  state_e state;
  logic [63:0] lane [4];
  logic [3:0] busy;                       // lanes whose product is under way
  logic [63:0] my_tag, first_join;
  logic [27:0] v;
  logic zero;
  logic [20:0] stripes, stripe;           // of 128 bytes
  logic [1:0] l;
  logic [3:0] round, rounds;              // the last round of 32 bytes or less is `rounds`
  logic last_is_tail;                     // that one takes the value's last 32 bytes
  logic [127:0] a;
  logic [63:0] short_a, short_b;
  logic [127:0] shifted;

  assign idle = state == IDLE;
  assign ask_first = state == STRIPE_B;
  assign done = state == DONE;
  always_comb begin
    // Up to 15 bytes. The window's row has them all.
    shifted = bytes >> {v[3:0] - 4'd8, 3'b0};
    short_b = shifted[63:0];
    short_a = bytes[63:0];
    if (v < 28'd8) begin
      shifted = bytes >> {v[2:0] - 3'd4, 3'b0};
      short_a = {32'd0, bytes[31:0]};
      short_b = {32'd0, shifted[31:0]};
    end
    if (v < 28'd4) begin
      short_b = '0;
      case (v[1:0])
        2'd0: short_a = '0;
        2'd1: short_a = {56'd0, bytes[7:0]};
        2'd2: short_a = {48'd0, bytes[7:0], bytes[15:8]};
        default: short_a = {40'd0, bytes[7:0], bytes[15:8], bytes[23:16]};
      endcase
    end
  end

  // Where the two halves of a round are.
  logic [7:0] a_at, b_at;
  always_comb begin
    if (v <= 28'd128) begin
      a_at = {round, 4'b0};
      b_at = v[7:0] - (v > 28'd64 ? 8'd64 : v > 28'd32 ? 8'd32 : 8'd16) + {round, 4'b0};
    end else if (last_is_tail && round == rounds) begin
      a_at = v[7:0] - 8'd32;
      b_at = v[7:0] - 8'd16;
    end else begin
      a_at = (v >= 28'd256 ? {stripes[0], 7'b0} : 8'd0) + {round[2:0], 5'b0};
      b_at = a_at + 8'd16;
    end
    case (state)
      STRIPE_A: at = {stripe[0], l, 5'b0};
      STRIPE_B: at = {stripe[0], l, 5'b0} + 8'd16;
      ROUND_A: at = a_at;
      ROUND_B: at = b_at;
      default: at = '0;
    endcase
  end

  always_comb begin
    ask_valid = 1'b0;
    ask_single = 1'b1;
    ask_lane = '0;
    ask_state = lane[0];
    ask_a = a;
    ask_b = bytes;
    case (state)
      STRIPE_B: begin
        ask_valid = !busy[l];
        ask_single = 1'b0;
        ask_lane = l;
        ask_state = lane[l];
      end
      // fold((a ^ K0) b) and fold(c (d ^ K1)): the engine has K0 on its second factor.
      JOIN: begin
        ask_valid = busy == '0;
        ask_a = {lane[1] ^ K0, K0};
      end
      JOIN_B: begin
        ask_valid = 1'b1;
        ask_lane = 2'd1;
        ask_state = lane[2];
        ask_a = {lane[3] ^ K1 ^ K0, 64'd0};
      end
      ROUND_B: begin
        // The bytes are read while the round before is under way.
        ask_valid = !busy[0];
        ask_single = 1'b0;
      end
      SHORT: begin
        ask_valid = 1'b1;
        ask_a = {short_b, short_a};
      end
      WEIGH: begin
        // Behind SHORT its product is still under way.
        ask_valid = !busy[0];
        ask_a = {K0 ^ K1, my_tag};
      end
      WEIGH_WAIT: begin
        // The other weight is asked for while the first is made.
        ask_valid = zero && !busy[1];
        ask_lane = 2'd1;
        ask_a = {K0 ^ K1, 56'd0, my_tag[7:0]};
      end
      default: ;
    endcase
  end
  logic asked;
  assign asked = ask_valid && ask_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= IDLE;
      busy <= '0;
      rows <= '0;
      rows_in <= '0;
    end else begin
      if (put) rows_in <= rows_in + 1'b1;
      if (asked) busy[ask_lane] <= 1'b1;
      if (reply_valid) busy[reply_lane] <= 1'b0;
      case (state)
        IDLE: if (begin_entry) begin
          state <= FILL;
          rows <= {4'd0, vlen[27:4]} + 28'(|vlen[3:0]);
          rows_in <= '0;
          rows_free <= 28'd16;
        end
        FILL: begin
          if (v >= 28'd256) state <= STRIPE_A;
          else if (whole) state <= v < 28'd16 ? SHORT : ROUND_A;
        end
        STRIPE_A: if (rows_in >= {4'd0, stripe, 3'd0} + 28'd8) state <= STRIPE_B;
        STRIPE_B: if (asked) begin
          state <= STRIPE_A;
          if (l == 2'd3) begin
            rows_free <= rows_free + 28'd8;
            if (stripe + 1'b1 == stripes) state <= JOIN;
          end
        end
        JOIN: if (asked) state <= JOIN_B;
        JOIN_B: if (asked) state <= JOIN_WAIT;
        JOIN_WAIT: if (busy == '0 && whole) state <= ROUND_A;
        ROUND_A: state <= ROUND_B;
        ROUND_B: if (asked) state <= round == rounds ? WEIGH : ROUND_A;
        SHORT: if (asked) state <= WEIGH;
        WEIGH: if (asked) state <= WEIGH_WAIT;
        WEIGH_WAIT: if (zero ? asked : busy == '0) state <= zero ? ZERO_WAIT : DONE;
        ZERO_WAIT: if (busy == '0) state <= DONE;
        DONE: if (taken) state <= IDLE;
        default: state <= IDLE;
      endcase
    end

    case (state)
      IDLE: if (begin_entry) begin
        v <= vlen;
        my_tag <= tag;
        zero <= zero_too;
        lane[0] <= seed;
        lane[1] <= seed ^ K0;
        lane[2] <= seed ^ K1;
        lane[3] <= seed ^ K0 ^ K1;
        stripes <= vlen[27:7];
        stripe <= '0;
        l <= '0;
        round <= '0;
      end
      FILL: begin
        last_is_tail <= v > 28'd128;
        if (v > 28'd128) rounds <= v >= 28'd256 ? {2'd0, v[6:5]} : {1'b0, v[7:5]};
        else rounds <= v > 28'd64 ? 4'd3 : v > 28'd32 ? 4'd1 : 4'd0;
      end
      STRIPE_A: a <= bytes;
      STRIPE_B: if (asked) begin
        l <= l + 1'b1;
        if (l == 2'd3) stripe <= stripe + 1'b1;
      end
      ROUND_A: a <= bytes;
      ROUND_B: if (asked) round <= round + 1'b1;
      default: ;
    endcase
    if (reply_valid) begin
      if (state == WEIGH_WAIT || state == ZERO_WAIT) begin
        if (reply_lane == 2'd0) weight <= reply;
        else weight_zeroed <= reply;
      end else if (state == JOIN_WAIT || state == JOIN_B) begin
        // The two halves of the join meet in lane 0.
        if (reply_lane == 2'd0) first_join <= reply;
        else lane[0] <= first_join ^ reply;
      end else begin
        lane[reply_lane] <= reply;
      end
    end
  end

  logic unused;
  assign unused = ^shifted[127:64];
endmodule
