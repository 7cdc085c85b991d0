import { writeFileSync } from "node:fs";

// Loaded into a command before anything else: says what the process took, where STARTUP_USAGE says, when it
// ends, and ends it when told to.

/** What a process took until its end. */
export interface ProcessUsage {
  /** Of all its threads. */
  readonly cpuSeconds: number;
  /** The most that was resident. */
  readonly peakMiB: number;
}

process.on("exit", () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const usage: ProcessUsage = {
    cpuSeconds: (userCPUTime + systemCPUTime) / 1e6,
    peakMiB: maxRSS / 1024,
  };
  writeFileSync(process.env["STARTUP_USAGE"] ?? "", JSON.stringify(usage));
});
process.once("message", () => process.exit());
process.channel?.unref();
