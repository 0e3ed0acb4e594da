// XXPH3 of user keys of 0 to 240 bytes, with seed 0 (crates/format/src/xxph3.rs).
//
// Keys come as beats into one of two buffers, from which sixteen bytes at any place are read a cycle. One
// multiplier folds pairs of words, another ends the hash. Keys of 9 to 128 bytes pass without waiting for a
// product: two cycles up to 16 bytes, three up to 32, nine up to 128. Other lengths wait for products in between.
//
// Keeps: hashes leave in the order in which the keys came; no more are under way than the queue behind holds.
module hasher #(
  parameter int W = 16,
  parameter int CW = $clog2(W + 2)
) (
  input  logic           clk,
  input  logic           rst,
  input  logic           in_valid,
  output logic           in_ready,
  input  logic [8*W-1:0] in_row,
  input  logic [CW-1:0]  in_count,        // W + 1: more rows follow
  output logic           out_valid,
  input  logic           out_ready,
  output logic [63:0]    out_hash
);
  localparam int LW = $clog2(W);
  localparam int RW = 8 - LW;
  localparam logic [63:0] P64_1 = 64'h9e37_79b1_85eb_ca87;
  localparam logic [63:0] P64_2 = 64'hc2b2_ae3d_27d4_eb4f;
  localparam logic [63:0] P64_3 = 64'h1656_67b1_9e37_79f9;
  localparam logic [63:0] P32_1 = 64'h0000_0000_9e37_79b1;
  // The secret, first byte lowest.
  localparam logic [1535:0] SECRET = {
    64'h7e40_4bbb_cafb_d7af, 64'h2804_1695_8f3a_cb45, 64'hce31_d07a_d1b8_f88f,
    64'hfca1_477d_58be_162b, 64'h9e68_d429_2655_16d3, 64'h49da_f0b7_51dd_0d17,
    64'heb63_13fa_ffa0_81c5, 64'hc3eb_d334_83ac_c5ea, 64'h6473_78d9_c97e_9fc8,
    64'h3159_b4cd_4be0_518a, 64'h1d4f_0bc7_c7bb_dcf9, 64'h3f34_9ce3_3f76_faa8,
    64'hd8ac_dea9_46ef_1938, 64'h4ef9_0da2_9748_6471, 64'ha32e_531b_8b65_d088,
    64'hcb00_c391_bb52_283c, 64'h4c26_3a81_e690_35e0, 64'h8e24_43f7_7446_08b8,
    64'h2172_ffcc_7dd0_5a82, 64'h78e5_c0cc_4ee6_79cb, 64'h1f67_b3b7_a4a4_4072,
    64'hdb97_9083_e96d_d4de, 64'h1cad_21f7_2c81_017c, 64'hbe4b_a423_396c_feb8
  };

  // ---- two buffers ----
  logic [RW-1:0] row;
  logic put_to, get_from;                 // which buffer
  logic [1:0] full;
  logic [7:0] length [2];
  logic take, last_row, got;
  assign last_row = in_count != CW'(W + 1);
  assign in_ready = !full[put_to];
  assign take = in_valid && in_ready;
  always_ff @(posedge clk) begin
    if (rst) begin
      row <= '0;
      {put_to, get_from} <= '0;
      full <= '0;
    end else begin
      if (take) begin
        row <= last_row ? '0 : row + 1'b1;
        if (last_row) begin
          full[put_to] <= 1'b1;
          put_to <= !put_to;
        end
      end
      if (got) begin
        full[get_from] <= 1'b0;
        get_from <= !get_from;
      end
    end
    if (take && last_row) length[put_to] <= {row, LW'(0)} + 8'(in_count);
  end
  logic [7:0] at;
  logic [127:0] bytes;
  window #(.W(W), .LG(9)) keys (
    .clk, .put(take), .put_row({put_to, row}), .put_bytes(in_row), .at({get_from, at}), .bytes
  );

  // ---- steps: one product each ----
  // WAIT: the product before is needed. k counts steps.
  typedef enum logic [1:0] {GET, RUN, WAIT} state_e;
  state_e state;
  logic [7:0] n;
  logic [3:0] k, k_last;
  logic tiny, short_, long_;              // up to 3 bytes, up to 8, up to 16, above 128
  logic step, ends, back_valid;
  logic [63:0] back;
  logic [4:0] under_way;                  // hashes not out of the queue yet
  assign tiny = n < 8'd4;
  assign short_ = n >= 8'd4 && n < 8'd9;
  assign long_ = n > 8'd128;
  assign step = state == RUN;
  assign ends = step && k == k_last;
  assign got = ends;
  always_comb begin
    at = '0;
    if (long_) at = k == k_last ? n - 8'd16 : {k, 4'b0};
    else if (n > 8'd16) at = k[0] ? n - {1'b0, k[3:1], 4'b0} - 8'd16 : {1'b0, k[3:1], 4'b0};
  end
  logic [7:0] next_n;
  assign next_n = length[get_from];
  always_ff @(posedge clk) begin
    if (rst) begin
      state <= GET;
      under_way <= '0;
    end else begin
      case (state)
        GET: if (full[get_from] && under_way < 5'd12) state <= RUN;
        RUN: begin
          if (ends) state <= GET;
          else if (short_ || (long_ && k == 4'd7)) state <= WAIT;
        end
        default: if (back_valid) state <= RUN;
      endcase
      under_way <= under_way + 5'(state == GET && full[get_from] && under_way < 5'd12)
          - 5'(out_valid && out_ready);
    end
    if (state == GET) begin
      n <= next_n;
      k <= '0;
      k_last <= next_n > 8'd128 ? next_n[7:4]
          : next_n > 8'd96 ? 4'd7 : next_n > 8'd64 ? 4'd5 : next_n > 8'd32 ? 4'd3
          : next_n > 8'd16 || (next_n >= 8'd4 && next_n < 8'd9) ? 4'd1 : 4'd0;
    end else if (step) begin
      k <= k + 1'b1;
    end
  end

  // ---- stage 0: bytes and secret ----
  logic v0, first0, last0, low0, raw0, back0;
  logic [7:0] n0;
  logic [3:0] k0;
  logic [127:0] x0, secret0;
  logic resumed0;                          // begins with what came back
  logic [1535:0] secret_from;
  always_comb begin
    // Steps 0 to 7 take 16 bytes each; of long keys, those behind them 3 bytes further, the last one from 119 on.
    secret_from = k[3] ? SECRET >> (24 + 128 * 32'(k[2:0])) : SECRET >> (128 * 32'(k[2:0]));
    if (long_ && k == k_last) secret_from = SECRET >> (8 * 119);
  end
  logic [63:0] scaled0;                    // the length's share in the sum
  always_ff @(posedge clk) begin
    v0 <= step && !rst;
    first0 <= k == '0 || (long_ && k == 4'd8) || short_;
    resumed0 <= long_ && k >= 4'd8;
    last0 <= ends || (long_ && k == 4'd7) || short_;
    low0 <= tiny || short_;
    raw0 <= n == '0 || (short_ && k == '0);
    back0 <= !ends;
    n0 <= n;
    scaled0 <= 64'(n) * P64_1;
    k0 <= k;
    x0 <= bytes;
    secret0 <= secret_from[127:0];
  end

  // ---- stage 1: factors ----
  logic v1, first1, last1, low1, raw1, back1;
  logic [63:0] a1, b1, init1, mixed, keyed, tail8;
  logic [127:0] shifted;
  logic [31:0] tail4;
  always_comb begin
    shifted = x0 >> {n0[3:0] - 4'd8, 3'b0};
    tail8 = shifted[63:0];
    shifted = x0 >> {n0[2:0] - 3'd4, 3'b0};
    tail4 = shifted[31:0];
    if (n0 < 8'd4) begin
      // Of one byte, two or three: first, middle, last and length.
      keyed = {32'd0, n0[7:0], n0 == 8'd1 ? x0[7:0] : n0 == 8'd2 ? x0[15:8] : x0[23:16],
          n0 == 8'd1 ? x0[7:0] : x0[15:8], x0[7:0]} ^ {32'd0, secret0[31:0]};
    end else begin
      keyed = {tail4, x0[31:0]} ^ secret0[63:0];
    end
    mixed = back + 64'(n0);
  end
  always_ff @(posedge clk) begin
    v1 <= v0 && !rst;
    {first1, last1, low1, raw1, back1} <= {first0, last0, low0, raw0, back0};
    a1 <= x0[63:0] ^ secret0[63:0];
    b1 <= x0[127:64] ^ secret0[127:64];
    init1 <= resumed0 ? back : scaled0;
    if (n0 < 8'd9) begin
      init1 <= '0;
      a1 <= keyed;
      b1 <= P64_1;
      if (n0 == '0) {a1, b1} <= {secret0[63:0], P64_2};
      if (n0 >= 8'd4) begin
        a1 <= k0 == '0 ? keyed ^ keyed >> 51 : mixed ^ mixed >> 47;
        b1 <= k0 == '0 ? P32_1 : P64_2;
      end
      if (n0 == '0) low1 <= 1'b0;
    end else if (n0 < 8'd17) begin
      b1 <= tail8 ^ secret0[127:64];
      init1 <= 64'(n0) + (x0[63:0] ^ secret0[63:0]) + (tail8 ^ secret0[127:64]);
    end
  end

  // ---- stages 2 to 4: product, sum ----
  logic v2, first2, last2, low2, raw2, back2, v3, first3, last3, low3, raw3, back3;
  logic v4, raw4, back4;
  logic [63:0] init2, init3, sum;
  logic [127:0] product;
  logic [63:0] term;
  mul folding (.clk, .a(a1), .b(b1), .product);
  assign term = low3 ? product[63:0] : product[63:0] ^ product[127:64];
  always_ff @(posedge clk) begin
    v2 <= v1 && !rst;
    v3 <= v2 && !rst;
    {first2, last2, low2, raw2, back2, init2} <= {first1, last1, low1, raw1, back1, init1};
    {first3, last3, low3, raw3, back3, init3} <= {first2, last2, low2, raw2, back2, init2};
    v4 <= v3 && last3 && !rst;
    {raw4, back4} <= {raw3, back3};
    if (v3) sum <= (first3 ? init3 : sum) + term;
  end

  // ---- stages 5 to 8: the avalanche ----
  logic v5, raw5, back5, v6, raw6, back6, v7, raw7, back7;
  logic [63:0] h5, plain5, plain6, plain7, hash;
  logic [127:0] wide;
  mul #(.LOW(1)) ending (.clk, .a(h5), .b(P64_3), .product(wide));
  assign hash = raw7 ? plain7 : wide[63:0] ^ wide[63:0] >> 32;
  always_ff @(posedge clk) begin
    {v5, v6, v7} <= {v4, v5, v6} & {3{!rst}};
    {raw5, back5, raw6, back6, raw7, back7} <= {raw4, back4, raw5, back5, raw6, back6};
    h5 <= sum ^ sum >> 37;
    {plain5, plain6, plain7} <= {sum, plain5, plain6};
    back_valid <= v7 && back7 && !rst;
    if (v7 && back7) back <= hash;
  end
  logic queue_ready;
  logic [4:0] count;
  fifo #(.WIDTH(64), .LG(4)) queue (
    .clk, .rst, .in_valid(v7 && !back7), .in_ready(queue_ready), .in_word(hash),
    .out_valid, .out_ready, .out_word(out_hash), .count
  );

  logic unused;
  assign unused = ^{queue_ready, count, wide[127:64], secret_from[1535:128], shifted[127:64]};
endmodule
