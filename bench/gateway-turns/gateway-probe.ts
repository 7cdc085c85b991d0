import { watchLoop } from "../watch-loop.ts";

// Preloaded by a measured gateway. Answers each message with the process's figures since the message before.

/** The figures of a measured process. */
export interface ProcessFigures {
  /** CPU time of all threads, in milliseconds. */
  readonly cpuMs: number;
  /** The longest time between two turns of the event loop, in milliseconds. 0 if it was not watched. */
  readonly blockMs: number;
}

let cpu = process.cpuUsage();
let blockMs = 0;

process.on("message", () => {
  const { user, system } = process.cpuUsage(cpu);
  process.send!({ cpuMs: (user + system) / 1000, blockMs } satisfies ProcessFigures);
  cpu = process.cpuUsage();
  blockMs = 0;
});
// The channel does not keep the process alive.
process.channel?.unref();

if (process.env["GATEWAY_WATCHES_LOOP"] === "1") {
  watchLoop((ms) => (blockMs = Math.max(blockMs, ms)));
}
