// Registers of a unit behind AXI4-Lite, and the ring of commands.
//
// Keeps: commands run one at a time, in order, as the doorbell announces them; `done` counts those finished. A reset
// is carried out only when the unit says that the bus is at rest.
// Leaves to others: what a command does (unit).
module csr #(
  parameter int W = 16,
  parameter int N = 4,
  parameter logic [63:0] BUILD = 64'd0
) (
  input  logic         clk,
  input  logic         rst,
  // AXI4-Lite, 32 bits.
  input  logic         s_aw_valid,
  output logic         s_aw_ready,
  input  logic [11:0]  s_aw_address,
  input  logic         s_w_valid,
  output logic         s_w_ready,
  input  logic [31:0]  s_w_word,
  output logic         s_b_valid,
  input  logic         s_b_ready,
  input  logic         s_ar_valid,
  output logic         s_ar_ready,
  input  logic [11:0]  s_ar_address,
  output logic         s_r_valid,
  input  logic         s_r_ready,
  output logic [31:0]  s_r_word,
  output logic         irq,
  // The unit.
  output logic         command_valid,
  output logic [255:0] command,
  input  logic         command_done,        // one cycle; `command_code` is its code then
  input  logic [7:0]   command_code,
  input  logic         command_silent,      // it had no status record
  output logic         abort,
  output logic         reset_wanted,
  input  logic         reset_done,
  input  logic         beat_read,
  input  logic         beat_written
);
  logic enabled, running, resetting;
  logic [1:0] mask, pending, pends, wiped;
  logic [31:0] doorbell, finished;
  logic [7:0] last_code;
  logic [63:0] cycles, busy, beats_read, beats_written;

  // ---- writes ----
  logic write;
  logic [11:0] waddr;
  assign write = s_aw_valid && s_w_valid && !s_b_valid;
  assign s_aw_ready = write;
  assign s_w_ready = write;
  assign waddr = s_aw_address;

  // The ring: 16 commands of 16 words; words 8 to 15 of a command are reserved.
  (* ram_style = "distributed" *) logic [31:0] ring [256];
  logic [31:0] ring_read;
  logic [7:0] fetch_at, ring_at;
  always_ff @(posedge clk) begin
    if (write && waddr[11:10] == 2'b01) ring[waddr[9:2]] <= s_w_word;
  end

  always_ff @(posedge clk) begin
    if (rst) s_b_valid <= 1'b0;
    else if (write) s_b_valid <= 1'b1;
    else if (s_b_ready) s_b_valid <= 1'b0;
  end

  // ---- commands: eight words are read out of the ring, then the unit starts ----
  logic [3:0] fetched;
  logic fetching, more;
  assign more = enabled && doorbell != finished && !running && !fetching && !resetting;
  assign fetch_at = {finished[3:0], fetched};
  assign ring_read = ring[ring_at];
  assign ring_at = fetching ? fetch_at : s_ar_address[9:2];
  assign command_valid = running;
  assign abort = write && waddr == 12'h040 && s_w_word[1] && running;
  assign reset_wanted = resetting;
  assign pends = command_done && running ? {command_silent, !command_silent} : '0;
  assign wiped = write && waddr == 12'h04c ? s_w_word[1:0] : '0;
  always_ff @(posedge clk) begin
    if (rst) begin
      {enabled, running, resetting, fetching} <= '0;
      {mask, pending} <= '0;
      {doorbell, finished} <= '0;
      last_code <= '0;
      fetched <= '0;
      {cycles, busy, beats_read, beats_written} <= '0;
    end else begin
      cycles <= cycles + 1'b1;
      if (running) busy <= busy + 1'b1;
      if (beat_read) beats_read <= beats_read + 1'b1;
      if (beat_written) beats_written <= beats_written + 1'b1;
      if (more) begin
        fetching <= 1'b1;
        fetched <= '0;
      end else if (fetching) begin
        fetched <= fetched + 1'b1;
        if (fetched == 4'd7) begin
          fetching <= 1'b0;
          running <= 1'b1;
        end
      end
      if (command_done && running) begin
        running <= 1'b0;
        finished <= finished + 1'b1;
        if (command_code != pkg::OK) last_code <= command_code;
      end
      // A bit that is set in the cycle in which the host wipes it stays set.
      pending <= (pending & ~wiped) | pends;
      if (write)
        case (waddr)
          12'h040: begin
            enabled <= s_w_word[0];
            if (s_w_word[2]) resetting <= 1'b1;
          end
          12'h048: mask <= s_w_word[1:0];
          12'h050: doorbell <= s_w_word;
          default: ;
        endcase
      if (resetting && reset_done) begin
        {enabled, running, resetting, fetching} <= '0;
        {mask, pending} <= '0;
        {doorbell, finished} <= '0;
        last_code <= '0;
        {cycles, busy, beats_read, beats_written} <= '0;
      end
    end
    if (fetching) command <= {ring_read, command[255:32]};
    irq <= |(mask & pending);
  end

  // ---- reads ----
  assign s_ar_ready = s_ar_valid && !s_r_valid && !fetching;
  always_ff @(posedge clk) begin
    if (rst) s_r_valid <= 1'b0;
    else if (s_ar_ready) s_r_valid <= 1'b1;
    else if (s_r_ready) s_r_valid <= 1'b0;
    if (s_ar_ready) begin
      case (s_ar_address)
        12'h000: s_r_word <= pkg::IDENTITY;
        12'h004: s_r_word <= 32'(pkg::VERSION);
        12'h008: s_r_word <= 32'(N);
        12'h00c: s_r_word <= 32'(W);
        12'h010: s_r_word <= 32'(pkg::KEY_MAX);
        12'h014: s_r_word <= 32'(pkg::VLEN);
        12'h018: s_r_word <= 32'd1 << pkg::RESTARTS_LG;
        12'h01c: s_r_word <= 32'd16;
        12'h020: s_r_word <= BUILD[31:0];
        12'h024: s_r_word <= BUILD[63:32];
        12'h040: s_r_word <= {31'd0, enabled};
        12'h044: s_r_word <= {29'd0, resetting, enabled, running || fetching};
        12'h048: s_r_word <= {30'd0, mask};
        12'h04c: s_r_word <= {30'd0, pending};
        12'h050: s_r_word <= doorbell;
        12'h054: s_r_word <= finished;
        12'h058: s_r_word <= {24'd0, last_code};
        12'h060: s_r_word <= cycles[31:0];
        12'h064: s_r_word <= cycles[63:32];
        12'h068: s_r_word <= busy[31:0];
        12'h06c: s_r_word <= busy[63:32];
        12'h070: s_r_word <= beats_read[31:0];
        12'h074: s_r_word <= beats_read[63:32];
        12'h078: s_r_word <= beats_written[31:0];
        12'h07c: s_r_word <= beats_written[63:32];
        default: s_r_word <= s_ar_address[11:10] == 2'b01 ? ring_read : 32'd0;
      endcase
    end
  end
endmodule
