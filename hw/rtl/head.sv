// Reads header and tables of an input slot and checks them before anything else is read.
//
// Keeps: `good` only if magic, version, limits and the command's figures fit, all ways' descriptors exist, and
// F64 over header and tables is that of the header. At most eight bursts are under way.
// Leaves to others: what the descriptors say, and the sum over what comes (fetch).
module head #(
  parameter int N = 4
) (
  input  logic               clk,
  input  logic               rst,
  input  logic               halt,        // ask for nothing more
  input  logic               begin_set,
  input  logic [63:0]        base,
  input  logic [31:0]        in_bytes,
  input  logic [31:0]        out_bytes,
  input  logic [63:0]        tag,
  output logic               done,        // the rest is valid then
  output logic               good,
  output logic               bus_bad,
  // AXI4 read port.
  output logic               ar_valid,
  input  logic               ar_ready,
  output logic [63:0]        ar_address,
  output logic [7:0]         ar_len,
  input  logic               r_valid,
  input  logic [511:0]       r_beat,
  input  logic               r_bad,
  input  logic               r_last,
  output logic               idle,
  // Beats that come, for F64: the sum leaves out its own place in the first one.
  output logic               sum_in,
  output logic               sum_first,
  output logic               sum_last,
  input  logic               sum_valid,
  input  logic [63:0]        sum_a,
  input  logic [63:0]        sum_b,
  // What it found.
  output logic [4:0]         block_lg,
  output logic               drop_tombstones,
  output logic               zero_seqs,
  output logic [15:0]        interval,
  output logic [15:0]        s_low,
  output logic [15:0]        in_use,
  output logic [31:0]        tables_end,
  output logic [1023:0]      snapshots,
  output logic [32*(N+1)-1:0] first,      // way N is the side way
  output logic [32*(N+1)-1:0] count
);
  // Beats 0 to 7 have header, snapshots and ways; the descriptors follow, two a beat.
  logic [31:0] beat;               // the next one to come
  logic [31:0] beats;              // of header and tables; known behind beat 0
  logic [31:0] asked;              // beats asked for
  logic running, fits;
  logic [3:0] owed;                // bursts under way
  logic [31:0] descriptors;
  logic [63:0] want_a, want_b;
  logic [32*(N+1)-1:0] ends;       // behind the last descriptor of each way

  // Bursts: the 8 beats of the fixed part, then up to 32 beats, to the end of a line of 4 KiB. Each is placed in one cycle
  // and cut in the next.
  logic placed, asks;
  logic [63:0] from;
  logic [31:0] rest;
  logic [6:0] to_line, length;
  assign asks = placed && !ar_valid && !owed[3] && !halt;
  assign to_line = 7'd64 - 7'(from[11:6]);
  always_comb begin
    length = 7'd32;
    if (to_line < length) length = to_line;
    if (rest < 32'(length)) length = rest[6:0];
  end

  integer i;
  logic last, fits_first, ways_fit, side;
  assign last = beat + 32'd1 == beats && beat >= 32'd7;
  assign {sum_in, sum_first, sum_last} = {r_valid, beat == '0, last};

  always_ff @(posedge clk) begin
    if (rst) begin
      running <= 1'b0;
      placed <= 1'b0;
      owed <= '0;
      ar_valid <= 1'b0;
      done <= 1'b0;
      bus_bad <= 1'b0;
      fits <= 1'b1;
    end else begin
      if (begin_set) begin
        running <= 1'b1;
        beat <= '0;
        asked <= '0;
        beats <= 32'd8;
      end else if (asks) begin
        placed <= 1'b0;
        ar_valid <= 1'b1;
        ar_address <= from;
        ar_len <= 8'(length) - 8'd1;
        asked <= asked + 32'(length);
      end else begin
        placed <= running && asked < beats;
      end
      owed <= owed + 4'(asks) - 4'(r_valid && r_last);
      if (ar_valid && ar_ready) ar_valid <= 1'b0;
      if (r_valid) begin
        beat <= beat + 1'b1;
        if (r_bad) bus_bad <= 1'b1;
        if (beat == '0) begin
          // A number of descriptors that does not fit is not believed.
          if (fits_first) beats <= 32'd8 + {1'b0, r_beat[255:225]} + 32'(r_beat[224]);
          fits <= fits_first;
        end
        if (last) running <= 1'b0;
      end
      if (sum_valid) begin
        done <= 1'b1;
        good <= fits && ways_fit && want_a == sum_a && want_b == sum_b;
      end
    end
    if (r_valid) begin
      if (beat == '0) begin
        block_lg <= r_beat[132:128];
        {zero_seqs, drop_tombstones} <= r_beat[137:136];
        interval <= r_beat[159:144];
        s_low <= r_beat[175:160];
        in_use <= r_beat[207:192];
        descriptors <= r_beat[255:224];
        {want_b, want_a} <= r_beat[511:384];
      end
      if (beat == 32'd1) snapshots[511:0] <= r_beat;
      if (beat == 32'd2) snapshots[1023:512] <= r_beat;
      for (i = 0; i < N; i = i + 1)
        if (beat == 32'(3 + i / 4)) begin
          first[32*i +: 32] <= r_beat[128*(i%4) +: 32];
          count[32*i +: 32] <= r_beat[128*(i%4)+32 +: 32];
        end
      if (beat == 32'd7) begin
        first[32*N +: 32] <= r_beat[31:0];
        count[32*N +: 32] <= r_beat[63:32];
        side <= r_beat[87:80] == 8'd1;
      end
    end
    if (!placed) begin
      from <= base + {26'b0, asked, 6'b0};
      rest <= beats - asked;
    end
    tables_end <= 32'd512 + {descriptors[26:0], 5'b0};
    for (i = 0; i <= N; i = i + 1)
      ends[32*i +: 32] <= first[32*i +: 32] + count[32*i +: 32];
  end

  // Beat 0: everything that can be judged by itself.
  always_comb begin
    fits_first = r_beat[31:0] == 32'h5445_534c && r_beat[47:32] == pkg::VERSION
        && r_beat[55:48] <= 8'(N) && r_beat[63:56] <= 8'd16
        && r_beat[127:64] == tag
        && r_beat[135:128] >= 8'd6 && r_beat[135:128] <= 8'd16
        && r_beat[159:144] != '0
        && r_beat[191:160] < (32'd1 << r_beat[132:128])
        && r_beat[287:256] == in_bytes && r_beat[319:288] == out_bytes
        && r_beat[255:224] < 32'h0400_0000
        && 32'd512 + {r_beat[250:224], 5'b0} <= in_bytes;
    ways_fit = side;
    for (i = 0; i <= N; i = i + 1)
      if (ends[32*i +: 32] < first[32*i +: 32] || ends[32*i +: 32] > descriptors) ways_fit = 1'b0;
  end

  assign idle = !ar_valid && owed == '0;

  logic unused;
  assign unused = ^descriptors[31:27];
endmodule
